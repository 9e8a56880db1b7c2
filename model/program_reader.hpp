#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/flat_map.hpp"
#include "model/json_place.hpp"
#include "model/program_builder.hpp"
#include "model/program_json.hpp"
#include "model/shapes.hpp"

namespace remat {

/// A type of elements whose width is known.
std::string dtype_at(const JsonPlace& place);

/// Turns statements of a scenario into those of a forward.
class ProgramReader {
 public:
  ProgramReader(const JsonPlace& program, const ProgramReading& reading)
      : program_place_(program), reading_(&reading) {}

  Program read();

 private:
  using Names = std::map<std::string, ValueId, std::less<>>;

  void read_leaves();
  void add_leaf(const std::string& name, const JsonPlace& place, BufferRole role);
  void read_body(const JsonPlace& list);
  void read_statement(const JsonPlace& statement);
  void read_op(const JsonPlace& statement, std::string_view key);
  void read_in_place(const JsonPlace& statement);
  void read_collective(const JsonPlace& statement);
  void read_on_ranks(const JsonPlace& statement);
  std::uint32_t group_at(const JsonPlace& statement) const;
  void read_update(const JsonPlace& statement);
  void read_view(const JsonPlace& statement);
  void read_container(const JsonPlace& statement);
  RegionBegin checkpoint_of(const JsonPlace& statement) const;
  static RegionBegin unit_of(const JsonPlace& statement);
  void read_region(const JsonPlace& statement, RegionBegin region);
  void read_excluded(const JsonPlace& statement);
  void read_remat_region(const JsonPlace& statement);
  void read_needs_tensor(const JsonPlace& statement);
  void read_compiled(const JsonPlace& statement);
  void read_offload(const JsonPlace& statement);
  void read_wrapper(const JsonPlace& statement, WrapperBegin wrapper);
  void read_leaves_of(const JsonPlace& argument, const std::string& path,
                      std::vector<WrapperBegin::Input>& leaves);
  void read_call(const JsonPlace& statement);
  void read_branch(const JsonPlace& statement);
  void read_no_grad(const JsonPlace& statement);
  void read_catch(const JsonPlace& statement);
  void read_raise(const JsonPlace& statement);

  /// What the name stands for now.
  ValueId known(const JsonPlace& place) const;
  /// The same, read by it.
  ValueId named(const JsonPlace& place);
  bool is_hidden(const std::string& name) const;
  bool is_in_container_here(const std::string& name) const;
  std::size_t innermost_region() const {
    return open_regions_.empty() ? no_region : open_regions_.back();
  }
  std::vector<ValueId> all_named(const JsonPlace& list);
  void define(const JsonPlace& place, const std::string& name, ValueId value);
  const ProgramValue& value(ValueId id) const { return builder_.value(id); }
  NewOp start_op(const JsonPlace& statement, const std::string& name);
  std::vector<NewTensor> new_tensors(const JsonPlace& statement, const NewOp& op);
  void add(const JsonPlace& statement, const NewOp& op, const std::vector<NewTensor>& outputs);
  TensorLayout output_layout(const JsonPlace& statement, const NewOp& op, std::size_t j) const;
  void check_view_dtype(const JsonPlace& dtype, const NewOp& op) const;
  void check_view(const JsonPlace& statement, const NewOp& op, const TensorLayout& layout) const;
  void choose_saves(const JsonPlace& statement, NewOp& op,
                    const std::vector<std::string>& output_names) const;
  void add_cost(const JsonPlace& statement, NewOp& op, const std::vector<TensorLayout>& outputs);

  JsonPlace program_place_;
  const ProgramReading* reading_;
  ProgramBuilder builder_;
  Names names_;  // what each stood for when it was given; see ProgramBuilder::since_write
  // Names of what lies in a container, and the region that put it there.
  std::map<std::string, std::size_t, std::less<>> hidden_;
  static constexpr std::size_t no_region = SIZE_MAX;
  IdSet read_hidden_;                      // values that were read by such a name
  IdSet read_openly_;                      // and by another
  std::vector<std::size_t> open_regions_;  // their statements
  std::vector<std::string> calling_;       // named bodies that are being read
  std::size_t depth_ = 0;
  std::size_t no_grad_depth_ = 0;
};

}  // namespace remat
