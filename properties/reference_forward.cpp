#include <algorithm>
#include <optional>
#include <set>

#include "model/units.hpp"
#include "properties/reference_backward.hpp"

// What a forward keeps, and what its regions' replays make.

namespace remat {
namespace {

std::vector<ValueId> roots_of(const Program& program) {
  const std::optional<ValueId> root = program.forwards.front().root;
  return root ? std::vector<ValueId>{*root} : std::vector<ValueId>{};
}

}  // namespace

ReferenceForward::ReferenceForward(const Program& program, const ReferenceRules& rules)
    : program_(&program),
      rules_(rules),
      wrappers_(program, rules_),
      graph_(program, rules_, wrappers_, 0, statements_of(program).size(), roots_of(program)),
      walk_(reference_walk(program, rules, wrappers_,
                           {.begin = 0, .end = statements_of(program).size()})) {
  if (rules_.regions == ReferenceRules::Regions::holders)
    find_replays(0, statements_of(program).size(), ReferenceGraph::no_frame);
  find_resident();
}

void ReferenceForward::find_replays(std::size_t begin, std::size_t end, std::size_t outer) {
  for (std::size_t at = begin; at < end; ++at) {
    const auto* region = std::get_if<RegionBegin>(&statements_of(*program_)[at]);
    if (region == nullptr) continue;
    const ReferenceRules::Regions mode = rules_.mode_of(*region);
    if (mode != ReferenceRules::Regions::holders) {
      // In a reentrant region's own replay, what it holds are frames of nobody's.
      if (mode == ReferenceRules::Regions::reentrant) {
        find_replays(at + 1, region->end, ReferenceGraph::no_frame);
        at = region->end;
      }
      continue;
    }
    const ReferenceWalk packs = reference_walk(*program_, rules_, wrappers_,
                                               {.begin = at + 1, .end = region->end, .frame = at});
    const bool stops = rules_.early_stop && (region->early_stop || rules_.remat);
    ReferenceWalk walk = reference_walk(*program_, rules_, wrappers_,
                                        {.begin = at + 1,
                                         .end = region->end,
                                         .is_replay = true,
                                         .saves = ReferenceSaves::kept,
                                         .stop_after = stops ? packs.packed.size() : 0,
                                         .frame = at});
    Replay& replay = replays_[at];
    replay.ran = std::move(walk.ran);
    replay.peak_bytes = walk.peak_bytes;
    replay.is_made = std::move(walk.is_made);
    replay.packed = std::move(walk.packed);
    replay.outer = outer;
    if (outer != ReferenceGraph::no_frame) replay.fetched = region->inputs;
    find_replays(at + 1, region->end, at);
    at = region->end;
  }
}

/// What the nodes that the root leads to have saved, the frames that still have a holder or a slot
/// of an excluded region, and the root itself.
void ReferenceForward::find_resident() {
  std::vector<bool> kept(program_->buffers.size(), false);
  const auto keep = [&](ValueId id) { kept[program_->values[id].buffer.index()] = true; };
  const auto keep_all = [&](const std::vector<ValueId>& ids) {
    std::for_each(ids.begin(), ids.end(), keep);
  };
  for (const ValueId root : roots_of(*program_))
    keep(root);
  std::set<std::size_t> frames;
  for (const ReferenceGraph::Node& node : graph_.nodes()) {
    if (!node.is_reached) continue;
    const auto* op = std::get_if<OpStatement>(&statements_of(*program_)[node.statement]);
    if (op == nullptr && !node.leaf) {
      keep_all(region(node.statement).inputs);
      keep_all(region(node.statement).captured);
    } else if (node.frame == ReferenceGraph::no_frame) {
      for (std::size_t i = 0; i < op->saves.size(); ++i) {
        if (wrappers_.is_slot(node.statement, i)) {
          frames.insert(node.excluded_in);
        } else {
          keep(op->saves[i].value);
        }
      }
    } else if (node.has_saves) {
      frames.insert(node.frame);
    }
  }
  // The arguments of a frame are slots of the one around it.
  for (auto frame = replays_.rbegin(); frame != replays_.rend(); ++frame) {
    const auto& [begin, replay] = *frame;
    if (frames.count(begin) == 0) continue;
    if (!replay.fetched.empty()) {
      frames.insert(replay.outer);
    } else {
      keep_all(region(begin).inputs);
    }
    keep_all(region(begin).captured);
  }
  for (const auto& [frame, served] : walk_.kept_by_frame)
    if (frames.count(frame) != 0) keep(served);
  for (std::uint32_t i = 0; i < kept.size(); ++i) {
    const ProgramBuffer& buffer = program_->buffers[BufferId(i)];
    if (kept[i] && buffer.role == BufferRole::none)
      resident_ = saturated_sum(resident_, buffer.bytes);
  }
}

std::int64_t ReferenceForward::bytes_of_all_gradients() const {
  std::int64_t bytes = 0;
  const auto add = [&](std::int64_t more) { bytes = saturated_sum(bytes, more); };
  const auto add_twice = [&](std::int64_t more) { add(saturated_sum(more, more)); };
  for (const ReferenceGraph::Node& node : graph_.nodes()) {
    const auto* op = std::get_if<OpStatement>(&statements_of(*program_)[node.statement]);
    if (node.leaf) continue;  // what passes a boundary is what came
    const std::vector<ValueId>& inputs = op != nullptr ? op->inputs : region(node.statement).inputs;
    for (const ValueId input : inputs)
      add_twice(element_bytes_of(program_->values[input].layout));
  }
  for (const ValueId root : roots_of(*program_))
    add(element_bytes_of(program_->values[root].layout));
  for (const auto& [begin, replay] : replays_)
    add_twice(replay.peak_bytes);
  return bytes;
}

}  // namespace remat
