#include "model/releases.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/flat_map.hpp"
#include "model/uses.hpp"

namespace remat {
namespace {

/// Where a region or wrapper ends that begins here.
std::optional<std::size_t> end_of_call(const Statement& statement) {
  if (const auto* region = std::get_if<RegionBegin>(&statement)) return region->end;
  if (const auto* wrapper = std::get_if<WrapperBegin>(&statement)) return wrapper->end;
  return std::nullopt;
}

/// It hands over the value: in its body, only the body's own use keeps it.
bool hands_over(const Statement& statement, ValueId value) {
  const auto* wrapper = std::get_if<WrapperBegin>(&statement);
  const auto is_it = [&](const WrapperBegin::Input& input) { return input.value == value; };
  return wrapper != nullptr && wrapper->hands_over &&
         std::any_of(wrapper->inputs.begin(), wrapper->inputs.end(), is_it);
}

/// What a region was given lives as long as the call: a variable from before it that is read in it
/// last goes at its end.
std::size_t end_of_regions(const Forward& forward, ValueId value, std::size_t born,
                           std::size_t last) {
  for (std::size_t at = born; at < last; ++at) {
    if (hands_over(forward.statements[at], value)) continue;
    const std::optional<std::size_t> end = end_of_call(forward.statements[at]);
    if (end && *end >= last) return *end;
  }
  return last;
}

/// The statements of `forward` after which values are not read any more: statement → values.
std::vector<std::vector<ValueId>> last_readers(const Program& program, const Forward& forward) {
  FlatMap<std::size_t> last;
  FlatMap<std::size_t> born;
  std::vector<ValueId> made;
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    each_use(forward, at, [&](ValueId value, Use) { last[value.index()] = at; });
    const auto* op = std::get_if<OpStatement>(&forward.statements[at]);
    if (op == nullptr) continue;
    for (const ValueId output : op->outputs) {
      born[output.index()] = at;
      made.push_back(output);
    }
  }
  std::vector<std::vector<ValueId>> releases(forward.statements.size());
  for (const ValueId value : made) {
    const bool is_leaf = program.buffers[program.values[value].buffer].role != BufferRole::none;
    if (forward.root == value || is_leaf) continue;
    const std::size_t at =
        end_of_regions(forward, value, *born.find(value.index()), *last.find(value.index()));
    releases[at].push_back(value);
  }
  return releases;
}

/// Begins and ends of blocks are places in the list: they move with it.
void move_places(Statement& statement, const std::vector<std::size_t>& place) {
  if (auto* region = std::get_if<RegionBegin>(&statement)) region->end = place[region->end];
  if (auto* end = std::get_if<RegionEnd>(&statement)) end->begin = place[end->begin];
  if (auto* wrapper = std::get_if<WrapperBegin>(&statement)) wrapper->end = place[wrapper->end];
  if (auto* end = std::get_if<WrapperEnd>(&statement)) end->begin = place[end->begin];
  if (auto* branch = std::get_if<BranchBegin>(&statement)) branch->end = place[branch->end];
  if (auto* off = std::get_if<NoGradBegin>(&statement)) off->end = place[off->end];
  if (auto* caught = std::get_if<CatchBegin>(&statement)) caught->end = place[caught->end];
  if (auto* compiled = std::get_if<CompiledBegin>(&statement)) compiled->end = place[compiled->end];
  if (auto* offloaded = std::get_if<OffloadBegin>(&statement))
    offloaded->end = place[offloaded->end];
}

}  // namespace

void add_releases(const Program& program, Forward& forward) {
  std::vector<std::vector<ValueId>> releases = last_readers(program, forward);
  std::vector<std::size_t> place(forward.statements.size() + 1);
  std::vector<Statement> statements;
  statements.reserve(forward.statements.size() * 2);
  for (std::size_t at = 0; at < forward.statements.size(); ++at) {
    place[at] = statements.size();
    // A region's arguments are read where it begins; a variable must not go before its body runs.
    if (const auto end = end_of_call(forward.statements[at])) {
      std::move(releases[at].begin(), releases[at].end(), std::back_inserter(releases[*end]));
      releases[at].clear();
    }
    statements.push_back(std::move(forward.statements[at]));
    if (!releases[at].empty()) statements.emplace_back(Release{std::move(releases[at])});
  }
  place.back() = statements.size();
  for (Statement& statement : statements)
    move_places(statement, place);
  forward.statements = std::move(statements);
}

}  // namespace remat
