#include "model/releases.hpp"

#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/op_kinds.hpp"

namespace remat {
namespace {

/// Values 0 and 1 are leaves, the others lie in buffers of the program's own.
Program program_of(std::size_t n_values) {
  Program program;
  for (std::size_t i = 0; i < n_values; ++i) {
    const BufferRole role = i == 0   ? BufferRole::input
                            : i == 1 ? BufferRole::param
                                     : BufferRole::none;
    ProgramValue value;
    value.name = "v" + std::to_string(i);
    value.buffer = program.buffers.push_back({4, role});
    program.values.push_back(std::move(value));
  }
  return program;
}

std::vector<ValueId> ids(const std::vector<std::uint32_t>& numbers) {
  std::vector<ValueId> values;
  values.reserve(numbers.size());
  for (const std::uint32_t number : numbers)
    values.push_back(ValueId(number));
  return values;
}

OpStatement op(const std::vector<std::uint32_t>& in, const std::vector<std::uint32_t>& out) {
  OpStatement statement;
  statement.name = "op";
  statement.kind = find_op_kind("add");
  statement.inputs = ids(in);
  statement.outputs = ids(out);
  return statement;
}

/// One line for each statement: "op 2", "begin..4", "end of 0", "release 2 3".
std::vector<std::string> shown(const Forward& forward) {
  std::vector<std::string> lines;
  for (const Statement& statement : forward.statements) {
    if (const auto* made = std::get_if<OpStatement>(&statement)) {
      lines.push_back("op " + std::to_string(made->outputs.front().index()));
    } else if (const auto* region = std::get_if<RegionBegin>(&statement)) {
      lines.push_back("begin.." + std::to_string(region->end));
    } else if (const auto* end = std::get_if<RegionEnd>(&statement)) {
      lines.push_back("end of " + std::to_string(end->begin));
    } else if (const auto* branch = std::get_if<BranchBegin>(&statement)) {
      lines.push_back("branch.." + std::to_string(branch->end));
    } else if (const auto* off = std::get_if<NoGradBegin>(&statement)) {
      lines.push_back("no_grad.." + std::to_string(off->end));
    } else if (std::holds_alternative<Bind>(statement)) {
      lines.emplace_back("bind");
    } else if (const auto* release = std::get_if<Release>(&statement)) {
      std::string line = "release";
      for (const ValueId value : release->values)
        line += " " + std::to_string(value.index());
      lines.push_back(line);
    } else {
      lines.emplace_back("other");
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

Lines after_releases(std::vector<Statement> statements, std::size_t n_values,
                     std::optional<std::uint32_t> root = std::nullopt) {
  const Program program = program_of(n_values);
  Forward forward;
  forward.statements = std::move(statements);
  if (root) forward.root = ValueId(*root);
  add_releases(program, forward);
  return shown(forward);
}

}  // namespace

TEST_CASE("a variable goes out of scope behind the statement that reads it last", "[model]") {
  // v2 = v0 + v1; v3 = v2; v4 = v2 + v3
  CHECK(after_releases({op({0, 1}, {2}), op({2}, {3}), op({2, 3}, {4})}, 5, 4) ==
        Lines{"op 2", "op 3", "op 4", "release 2 3"});
}

TEST_CASE("a variable that nobody reads goes at once", "[model]") {
  CHECK(after_releases({op({0}, {2, 3}), op({2}, {4})}, 5, 4) ==
        Lines{"op 2", "release 3", "op 4", "release 2"});
}

TEST_CASE("leaves and the root stay", "[model]") {
  CHECK(after_releases({op({0, 1}, {2})}, 3, 2) == Lines{"op 2"});
  CHECK(after_releases({op({0, 1}, {2})}, 3) == Lines{"op 2", "release 2"});
}

TEST_CASE("a leaf written in place stays under its new name", "[model]") {
  Program program = program_of(3);
  program.values[ValueId(2)].buffer = program.values[ValueId(1)].buffer;
  Forward forward;
  forward.statements = {op({1}, {2})};
  add_releases(program, forward);
  CHECK(shown(forward) == Lines{"op 2"});
}

TEST_CASE("to save a value is to read it", "[model]") {
  OpStatement saving = op({0}, {3});
  saving.saves.push_back({ValueId(2), false, Save::no_factor});
  CHECK(after_releases({op({0}, {2}), saving, op({3}, {4})}, 5, 4) ==
        Lines{"op 2", "op 3", "release 2", "op 4", "release 3"});
}

TEST_CASE("a region's argument outlives the region's body", "[model]") {
  RegionBegin region;
  region.inputs = ids({2});
  region.end = 3;
  CHECK(after_releases({op({0}, {2}), region, op({0}, {3}), RegionEnd{1}, op({3}, {4})}, 5, 4) ==
        Lines{"op 2", "begin..3", "op 3", "end of 1", "release 2", "op 4", "release 3"});
}

TEST_CASE("blocks keep their borders where releases come between", "[model]") {
  RegionBegin outer;
  outer.end = 5;
  RegionBegin inner;
  inner.end = 4;
  CHECK(after_releases(
            {outer, op({0}, {2, 4}), inner, op({2}, {3}), RegionEnd{2}, RegionEnd{0}, op({3}, {5})},
            6, 5) == Lines{"begin..7", "op 2", "release 4", "begin..5", "op 3", "end of 3",
                           "release 2", "end of 0", "op 5", "release 3"});
}

TEST_CASE("a variable from before a region that its body reads last goes at the region's end",
          "[model]") {
  RegionBegin region;
  region.end = 4;
  CHECK(after_releases({op({0}, {2}), region, op({2}, {3}), op({3}, {4}), RegionEnd{1}}, 5, 4) ==
        Lines{"op 2", "begin..5", "op 3", "op 4", "release 3", "end of 1", "release 2"});
}

TEST_CASE("a branch and a block without gradients reach as far as before", "[model]") {
  CHECK(
      after_releases(
          {op({0}, {2}), BranchBegin{true, 3}, op({2}, {3}), NoGradBegin{5}, op({3}, {4})}, 5, 4) ==
      Lines{"op 2", "branch..4", "op 3", "release 2", "no_grad..7", "op 4", "release 3"});
}

TEST_CASE("a value that a branch binds to another's name is read there", "[model]") {
  CHECK(after_releases({op({0}, {2}), op({0}, {3}), Bind{ValueId(2), ValueId(3)}, op({3}, {4})}, 5,
                       4) == Lines{"op 2", "op 3", "bind", "release 2", "op 4", "release 3"});
}

TEST_CASE("values that go together go in the order in which they were made", "[model]") {
  CHECK(after_releases({op({0}, {2}), op({0}, {3}), op({0}, {4}), op({4, 3, 2}, {5})}, 6, 5) ==
        Lines{"op 2", "op 3", "op 4", "op 5", "release 2 3 4"});
}

TEST_CASE("a forward without statements has nothing to release", "[model]") {
  CHECK(after_releases({}, 2).empty());
}

}  // namespace remat
