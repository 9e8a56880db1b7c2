#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/flat_map.hpp"
#include "model/json_place.hpp"
#include "model/program.hpp"
#include "model/program_json.hpp"
#include "model/shapes.hpp"

namespace remat {

/// Turns statements of a scenario into those of a forward.
class ProgramReader {
 public:
  ProgramReader(const JsonPlace& program, const ProgramReading& reading)
      : program_place_(program), reading_(&reading) {}

  Program read();

 private:
  using Names = std::map<std::string, ValueId, std::less<>>;

  void read_leaves();
  ValueId add_leaf(const std::string& name, const JsonPlace& place, BufferRole role);
  void read_body(const JsonPlace& list);
  void read_statement(const JsonPlace& statement);
  void read_op(const JsonPlace& statement, std::string_view key);
  void read_in_place(const JsonPlace& statement);
  void read_update(const JsonPlace& statement);
  void read_view(const JsonPlace& statement);
  void read_container(const JsonPlace& statement);
  void read_region(const JsonPlace& statement, bool checkpointed);
  void read_call(const JsonPlace& statement);
  void read_branch(const JsonPlace& statement);
  void read_no_grad(const JsonPlace& statement);
  void read_raise(const JsonPlace& statement);

  ValueId named(const JsonPlace& place);
  std::vector<ValueId> all_named(const JsonPlace& list);
  ValueId add_value(const std::string& name, BufferId buffer, TensorLayout layout,
                    bool requires_grad);
  void define(const JsonPlace& place, const std::string& name, ValueId value);
  OpStatement start_op(const JsonPlace& statement, const std::string& name);
  bool wants_grad(const OpStatement& op) const;
  void add_outputs(const JsonPlace& statement, OpStatement& op);
  TensorLayout output_layout(const JsonPlace& statement, const OpStatement& op,
                             std::size_t j) const;
  void check_views(const JsonPlace& statement, const OpStatement& op) const;
  void add_saves(const JsonPlace& statement, OpStatement& op);
  void add_cost(const JsonPlace& statement, OpStatement& op);
  void push(Statement statement) { forward_.statements.push_back(std::move(statement)); }

  JsonPlace program_place_;
  const ProgramReading* reading_;
  Program program_;
  Forward forward_;
  Names names_;
  std::set<std::string, std::less<>> hidden_;  // names that reach a region inside a container
  IdSet read_hidden_;                          // values that were read by such a name
  IdSet read_openly_;                          // and by another
  std::vector<std::string> calling_;           // named bodies that are being read
  std::size_t depth_ = 0;
  bool grad_ = true;
};

}  // namespace remat
