#include <algorithm>

#include "model/collectives.hpp"
#include "model/listed.hpp"
#include "model/program_reader.hpp"

// Statements of a scenario that concern several ranks.

namespace remat {

/// Which group the statement names; without a name the first, all ranks.
std::uint32_t ProgramReader::group_at(const JsonPlace& statement) const {
  const std::vector<RankGroup>& groups = reading_->groups;
  const auto name = statement.find("group");
  if (!name) {
    if (groups.empty()) statement.fail("there are no ranks; expected 'ranks' in the scenario");
    return 0;
  }
  const auto known = std::find_if(groups.begin(), groups.end(), [&](const RankGroup& group) {
    return group.name == name->text();
  });
  if (known == groups.end()) {
    name->fail("unknown group '" + name->text() + "'; expected one of " +
               listed(groups, &RankGroup::name));
  }
  return static_cast<std::uint32_t>(known - groups.begin());
}

/// A collective makes a tensor (`out`), or writes one that is there (`into`).
void ProgramReader::read_collective(const JsonPlace& statement) {
  statement.allow_only(
      {"collective", "group", "in", "out", "into", "attrs", "keep", "cost_ns", "gradient_cost_ns"});
  const std::string kind = statement.at("collective").text();
  NewOp op = start_op(statement, kind);
  op.group = group_at(statement);
  const RankGroup& group = reading_->groups[*op.group];
  if (std::find(group.ranks.begin(), group.ranks.end(), reading_->rank) == group.ranks.end()) {
    statement.fail("rank " + std::to_string(reading_->rank) + " is no member of group '" +
                   group.name + "'; expected on_ranks around what others issue alone");
  }
  if (op.inputs.size() != 1)
    statement.at("in").fail("a collective hands over one tensor; expected its name");
  if (statement.has("out") == statement.has("into"))
    statement.fail("a collective either makes a tensor or writes one; expected 'out' or 'into'");
  const ProgramValue given = value(op.inputs.front());
  ExchangedShape made = exchanged_shape(op.kind->exchange, given.layout.shape, group.ranks.size());
  if (!made.mismatch.empty()) {
    statement.fail("'" + kind + "' cannot take shape " + shown_shape(given.layout.shape) +
                   "; expected " + made.mismatch);
  }
  TensorLayout layout{
      .dtype = given.layout.dtype, .shape = std::move(made.shape), .stride = {}, .offset = 0};
  layout.stride = dense_strides(layout.shape);
  add_cost(statement, op, {layout});
  if (statement.has("out")) {
    const std::vector<JsonPlace> names = statement.at("out").items();
    if (names.size() != 1)
      statement.at("out").fail("a collective makes one tensor; expected one name");
    if (is_larger_than_memory(layout))
      names[0].fail("the tensor is larger than any memory; expected a smaller shape");
    return add(statement, op, {{std::move(layout), names[0].text()}});
  }
  const JsonPlace into = statement.at("into");
  const ValueId target = named(into);
  const ProgramValue& old = value(target);
  const bool is_leaf = builder_.program().buffers[old.buffer].role != BufferRole::none;
  if (is_leaf) into.fail("'" + old.name + "' is a leaf; expected a tensor that the program makes");
  if (old.layout.shape != layout.shape || old.layout.dtype != layout.dtype) {
    into.fail("'" + old.name + "' has shape " + shown_shape(old.layout.shape) + " of " +
              old.layout.dtype + "; expected " + shown_shape(layout.shape) + " of " + layout.dtype);
  }
  if (element_bytes_of(old.layout) < builder_.program().buffers[old.buffer].bytes)
    into.fail("'" + old.name + "' is a part of its storage; expected a tensor that fills it");
  if (target != op.inputs.front()) op.inputs.insert(op.inputs.begin(), target);
  builder_.in_place(op);
}

/// Statements that some ranks alone run: what the others never make, they cannot read.
void ProgramReader::read_on_ranks(const JsonPlace& statement) {
  statement.allow_only({"on_ranks", "body"});
  builder_.note_rank_dependence();
  bool is_ours = false;
  if (statement.at("on_ranks").items().empty())
    statement.at("on_ranks").fail("statements of nobody; expected a rank or more");
  for (const JsonPlace& item : statement.at("on_ranks").items()) {
    const std::int64_t rank = item.integer(0);
    if (rank >= reading_->n_ranks) {
      item.fail("there is no rank " + std::to_string(rank) + "; expected one below " +
                std::to_string(reading_->n_ranks));
    }
    is_ours |= rank == reading_->rank;
  }
  if (is_ours) read_body(statement.at("body"));
}

}  // namespace remat
