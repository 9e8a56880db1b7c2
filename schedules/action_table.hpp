#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// All entries of all lists, numbered one list after the other, to be found by what they do. Keeps
/// a reference to the lists, which must outlive it.
class ActionTable {
 public:
  explicit ActionTable(const PipelineLists& lists);

  std::uint32_t size() const { return static_cast<std::uint32_t>(rank_of_.size()); }
  const PipelineAction& operator[](std::uint32_t number) const {
    return lists_.ranks[rank_of_[number]][place_of(number)];
  }
  std::uint32_t rank_of(std::uint32_t number) const { return rank_of_[number]; }
  /// Its place in its rank's list.
  std::size_t place_of(std::uint32_t number) const {
    return number - first_of_rank_[rank_of_[number]];
  }
  /// The number of a rank's first entry; `rank` may be one behind the last.
  std::uint32_t first_of(std::size_t rank) const { return first_of_rank_[rank]; }

  /// The entry that does this, whatever it is joined to; the first where there are several. B and
  /// DX, which both make a stage's gradient, stand for each other.
  std::optional<std::uint32_t> find(const PipelineAction& action) const;

  const PipelineLists& lists() const { return lists_; }
  const PipelineExtent& extent() const { return extent_; }

 private:
  std::size_t cell_of(const PipelineAction& action) const;

  static constexpr std::uint32_t nothing = UINT32_MAX;

  const PipelineLists& lists_;
  PipelineExtent extent_;
  std::vector<std::uint32_t> rank_of_;
  std::vector<std::uint32_t> first_of_rank_;
  std::array<std::vector<std::uint32_t>, work_count> numbers_;  // empty where no such work is
};

/// How many entries that are looked up for one may be: producers of its inputs.
constexpr std::size_t needs_max = 4;

/// What an entry needs to have run. A gradient is asked for as B, whether B or DX makes it.
struct Needs {
  std::array<PipelineAction, needs_max> actions;
  std::size_t size = 0;
  const PipelineAction* begin() const { return actions.data(); }
  const PipelineAction* end() const { return actions.data() + size; }
};

/// F: the stage before's F. B and DX: the next stage's gradient, F and R of their own. DW: DX. R:
/// F, and on demand the next stage's gradient too. A send: what makes its message. Slices come one
/// after the other, forwards from the first, backwards from the last. Nothing for other work.
/// Source: pipelines.md §0.
Needs needs_of(const PipelineAction& action, const PipelineExtent& extent, bool on_demand);

}  // namespace remat
