#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace remat {

/// What an op saves for backward: an input before its kernel runs, or an output after it.
struct SaveRule {
  enum class What : std::uint8_t { input, output };
  What what = What::input;
  std::uint8_t index = 0;
  /// Saved only where this input requires grad; `always` where any does.
  std::int8_t if_grad_of = always;
  static constexpr std::int8_t always = -1;
};

/// A product of inputs and outputs. A factor below `first_output` is an input's index; from there
/// on an output's.
struct Monomial {
  static constexpr std::uint8_t first_output = 128;
  std::uint8_t n_factors = 0;
  std::uint8_t factors[3] = {};
};

/// How shapes follow from the inputs' (a statement may give its own).
enum class ShapeRule : std::uint8_t {
  like_first,   // that of the first input
  broadcast,    // numpy's rule over all inputs
  matmul,       // (…, m, k) × (…, k, n)
  addmm,        // bias, (m, k), (k, n)
  transpose,    // the last two dimensions swapped
  scalar,       // no dimensions
  concatenate,  // along the last dimension
  embedding     // weight (v, d), index (…) → (…, d)
};

/// What an op makes beside its first output (a statement may give shapes and types of its own).
enum class Beside : std::uint8_t {
  row_statistics,      // one number a row, of the first input's type
  channel_statistics,  // one a channel, the second dimension
  indices,             // one for each element of the first output, i64
  mask                 // likewise, bool
};

enum class ValueForm : std::uint8_t {
  polynomial,  // output 0 is the sum of the monomials, each times a constant
  /// Output 0 is a·L^17 + c, L linear in the inputs: 17 has an inverse modulo p − 1, so backward
  /// finds L from the saved output.
  from_output
};

/// What the ranks of a group hand one another, where an op is a collective.
enum class Exchange : std::uint8_t {
  none,
  all_reduce,      // everyone gets the sum of what all have
  all_gather,      // everyone gets what all have, one after the other along the first dimension
  reduce_scatter,  // the r-th gets the r-th part of the sum
  all_to_all       // the r-th gets the r-th part of each
};

/// One row of the table of op kinds. Sources: observed-torch.md §8 and its tables for what is saved
/// and in which order; architecture.md "Exact" for the values, which are polynomial stand-ins of
/// degree 2 or more with the same saves.
struct OpKind {
  std::string_view name;
  std::span<const Monomial> value;  // empty: linear in all inputs
  std::span<const SaveRule> saves;  // in the order packed, inputs first
  ValueForm form = ValueForm::polynomial;
  ShapeRule shape = ShapeRule::like_first;
  Beside beside = Beside::row_statistics;
  bool makes_view = false;         // the output lies on the first input's storage
  bool differentiable = true;      // gets a node where an input requires grad
  bool draws = false;              // takes a random number
  bool outputs_are_parts = false;  // every output is differentiable, as of unbind
  bool is_matmul = false;          // its cost is that of the arithmetic, not of the bytes
  Exchange exchange = Exchange::none;
  /// By its schema it writes its first input, which keeps its value. It makes nothing.
  bool preserves_value = false;
};

/// The row of a kind by its plain name ("mm"), or of a framework's ("aten.mm.default",
/// "aten.relu_.default"); none where the table does not have it.
const OpKind* find_op_kind(std::string_view name);
/// What an op of no known kind is: linear, saving nothing.
const OpKind& unknown_op_kind();
/// All rows, in the order of the table.
std::span<const OpKind> op_kinds();

/// "aten.add_.Tensor" → "add": a framework's name without namespace, overload and the underscore of
/// an in-place form.
std::string_view plain_op_name(std::string_view name);
/// "_c10d_functional.all_reduce.default", "c10d.allreduce_", "all_gather": ranks issue the op
/// together (protocols.md P8).
bool is_collective_name(std::string_view name);
/// "aten.add_.Tensor", "add_": the op writes its first input.
bool is_in_place_name(std::string_view name);

}  // namespace remat
