#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "model/program.hpp"
#include "model/program_json.hpp"

namespace remat {

/// A key of a builder: what may stand under it.
struct BuilderKey {
  enum class Holds : std::uint8_t {
    size,            // an integer of 1 or more
    cost,            // an integer of 0 or more
    flag,            // true or false
    choice,          // one of `choices`; the first where it is not told
    size_or_steps,   // a size, or a list of a chain's steps
    size_or_lengths  // a size, or a list of sizes
  };
  std::string_view name;
  Holds holds = Holds::size;
  bool is_required = false;
  std::span<const std::string_view> choices = {};
};

/// The most layers that a builder makes.
inline constexpr std::int64_t layers_max = 10'000;

/// Types that a builder's tensors may be of.
inline constexpr std::array<std::string_view, 3> builder_dtypes = {"bf16", "f16", "f32"};

/// A known model that a program is made of out of a few sizes (docs/cli.md, "A builder").
struct ProgramBuilderRow {
  std::string_view name;
  std::span<const BuilderKey> keys;
  Program (*build)(const JsonPlace& place, const ProgramReading& reading);
};

/// All builders, by name.
std::span<const ProgramBuilderRow> program_builders();

/// Makes the program of `{"builder": NAME, …}`. Throws InputError, with line and pointer, for an
/// unknown builder or key, sizes that do not divide each other, and tensors larger than any memory.
Program build_program(const JsonPlace& place, const ProgramReading& reading);

/// `n` equal steps, or steps of their own bytes and costs: each saves its input.
Program build_chain(const JsonPlace& place, const ProgramReading& reading);
/// Layers of attention and MLP. What each saves is what Korthikanti et al. 2022 count ("Reducing
/// Activation Recomputation in Large Transformer Models", §4): s·b·h·(34 + 5·a·s/h) bytes in 16
/// bit.
Program build_transformer(const JsonPlace& place, const ProgramReading& reading);
/// Layers of a mixture of experts: routing and dispatch in a checkpointed region, the experts'
/// products in an excluded one; with sparse attention (DSA) before them where asked for.
Program build_moe(const JsonPlace& place, const ProgramReading& reading);

std::span<const BuilderKey> chain_keys();
std::span<const BuilderKey> transformer_keys();
std::span<const BuilderKey> moe_keys();

/// Keys of one step in a chain's list.
std::span<const BuilderKey> chain_step_keys();

}  // namespace remat
