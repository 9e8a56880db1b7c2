#include "schedules/pipeline_checks.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "schedules/action_table.hpp"

namespace remat {
namespace {

/// How often each work of one stage, micro-batch and slice is in the lists.
using Counts = std::array<std::uint8_t, 5>;  // is_compute's five

/// Counts every chunk run that lists of this extent can have.
class Completeness {
 public:
  Completeness(const PipelineLists& lists, std::size_t most)
      : extent_(extent_of(lists)), most_(most) {
    counts_.resize(cell({.pipe = static_cast<std::uint16_t>(extent_.pipes)}));
    ranks_.resize(home({.pipe = static_cast<std::uint16_t>(extent_.pipes)}));
    for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
      for (const PipelineAction& action : lists.ranks[rank]) {
        if (is_compute(action.work)) count(action, rank);
      }
    }
  }

  std::vector<ListComplaint> complaints() {
    for (std::int32_t pipe = 0; pipe < extent_.pipes; ++pipe) {
      for (std::int32_t stage = 0; stage < extent_.stages; ++stage) {
        for (std::int32_t m = 0; m < extent_.microbatches; ++m) {
          for (std::int32_t slice = 0; slice < extent_.slices; ++slice) {
            judge({.pipe = static_cast<std::uint16_t>(pipe),
                   .stage = stage,
                   .microbatch = m,
                   .slice = slice});
          }
        }
      }
    }
    return complaints_;
  }

 private:
  /// Index of a stage of a pipe.
  std::size_t home(const PipelineAction& at) const {
    return at.pipe * static_cast<std::size_t>(extent_.stages) + static_cast<std::size_t>(at.stage);
  }
  std::size_t cell(const PipelineAction& at) const {
    const std::size_t run = home(at) * static_cast<std::size_t>(extent_.microbatches) +
                            static_cast<std::size_t>(at.microbatch);
    return run * static_cast<std::size_t>(extent_.slices) + static_cast<std::size_t>(at.slice);
  }

  void complain(const std::string& message) {
    if (complaints_.size() < most_) complaints_.push_back({ListCheck::complete, message});
  }

  void count(const PipelineAction& action, std::size_t rank) {
    std::uint8_t& n = counts_[cell(action)][static_cast<std::size_t>(action.work)];
    if (n < 2) ++n;
    std::optional<std::size_t>& first = ranks_[home(action)];
    if (!first) first = rank;
    if (*first != rank) {
      complain(name_of(action) + " is on rank " + std::to_string(rank) +
               ", other work of its stage on rank " + std::to_string(*first));
    }
  }

  void judge(const PipelineAction& at) {
    const Counts& counts = counts_[cell(at)];
    const auto n = [&](Work work) { return counts[static_cast<std::size_t>(work)]; };
    for (std::size_t work = 0; work < counts.size(); ++work) {
      if (counts[work] > 1)
        complain(name_of(with_work(at, static_cast<Work>(work))) + " is there more than once");
    }
    if (n(Work::forward) == 0) complain(name_of(with_work(at, Work::forward)) + " is missing");
    const bool is_whole = n(Work::backward) > 0;
    const bool is_split = n(Work::dx) > 0 || n(Work::dw) > 0;
    if (is_whole && is_split)
      complain(name_of(with_work(at, Work::backward)) + " is there beside its DX or DW");
    if (is_whole) return;
    if (!is_split) {
      complain(name_of(with_work(at, Work::backward)) + " is missing");
    } else if (n(Work::dx) == 0 || n(Work::dw) == 0) {
      const Work missing = n(Work::dx) == 0 ? Work::dx : Work::dw;
      complain(name_of(with_work(at, missing)) + " is missing");
    }
  }

  PipelineExtent extent_;
  std::size_t most_;
  std::vector<Counts> counts_;
  std::vector<std::optional<std::size_t>> ranks_;  // for each stage of each pipe
  std::vector<ListComplaint> complaints_;
};

/// The collectives of a list on stages that another has too, in order.
std::vector<std::string> shared_collectives(const RankList& list, const std::vector<bool>& shared) {
  std::vector<std::string> names;
  for (const PipelineAction& action : list) {
    if (is_collective(action.work) && shared[static_cast<std::size_t>(action.stage)]) {
      PipelineAction in_group = action;
      in_group.pipe = 0;  // both pipes' copies of a stage are one group
      names.push_back(name_of(in_group));
    }
  }
  return names;
}

/// For each rank, the stages that it has collectives of.
std::vector<bool> stages_of(const RankList& list, std::int32_t stages) {
  std::vector<bool> has(static_cast<std::size_t>(stages));
  for (const PipelineAction& action : list) {
    if (is_collective(action.work)) has[static_cast<std::size_t>(action.stage)] = true;
  }
  return has;
}

std::optional<std::string> disagreement(const PipelineLists& lists, std::size_t a, std::size_t b,
                                        std::int32_t stages) {
  std::vector<bool> shared = stages_of(lists.ranks[a], stages);
  const std::vector<bool> of_b = stages_of(lists.ranks[b], stages);
  for (std::size_t stage = 0; stage < shared.size(); ++stage)
    shared[stage] = shared[stage] && of_b[stage];
  const std::vector<std::string> mine = shared_collectives(lists.ranks[a], shared);
  const std::vector<std::string> other = shared_collectives(lists.ranks[b], shared);
  const auto [at, at_other] = std::mismatch(mine.begin(), mine.end(), other.begin(), other.end());
  if (at == mine.end() && at_other == other.end()) return std::nullopt;
  const auto shown = [](const auto& place, const auto& end) {
    return place == end ? std::string("nothing") : *place;
  };
  return "collective " + std::to_string(at - mine.begin()) + " of the stages that ranks " +
         std::to_string(a) + " and " + std::to_string(b) + " share is " + shown(at, mine.end()) +
         " on one and " + shown(at_other, other.end()) + " on the other";
}

/// Pairs of ranks that have collectives of one stage.
std::vector<std::pair<std::size_t, std::size_t>> sharing_ranks(const PipelineLists& lists,
                                                               std::int32_t stages) {
  std::vector<std::vector<std::size_t>> ranks_of(static_cast<std::size_t>(stages));
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    const std::vector<bool> has = stages_of(lists.ranks[rank], stages);
    for (std::size_t stage = 0; stage < has.size(); ++stage) {
      if (has[stage]) ranks_of[stage].push_back(rank);
    }
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (const std::vector<std::size_t>& ranks : ranks_of) {
    for (std::size_t i = 0; i + 1 < ranks.size(); ++i)
      pairs.emplace_back(ranks[i], ranks[i + 1]);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

}  // namespace

std::string_view name_of(ListCheck check) {
  return check == ListCheck::complete ? "complete" : "collectives_agree";
}

std::vector<ListComplaint> complaints_about(const PipelineLists& lists, std::size_t most) {
  std::vector<ListComplaint> complaints = Completeness(lists, most).complaints();
  if (!has_work(lists, is_collective)) return complaints;
  const std::int32_t stages = extent_of(lists).stages;
  std::size_t n = 0;
  for (const auto& [a, b] : sharing_ranks(lists, stages)) {
    const auto message = disagreement(lists, a, b, stages);
    if (message && n++ < most) complaints.push_back({ListCheck::collectives_agree, *message});
  }
  return complaints;
}

}  // namespace remat
