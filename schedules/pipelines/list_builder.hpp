#pragma once

#include <cstdint>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// Appends to one rank's list.
class ListBuilder {
 public:
  explicit ListBuilder(RankList& list) : list_(list) {}

  void add(Work work, std::int32_t stage, std::int32_t microbatch, std::int32_t slice = 0) {
    add({.work = work, .stage = stage, .microbatch = microbatch, .slice = slice});
  }
  void add(const PipelineAction& action) { list_.push_back(action); }
  /// DX and DW, one behind the other.
  void add_halves(std::int32_t stage, std::int32_t microbatch) {
    add(Work::dx, stage, microbatch);
    add(Work::dw, stage, microbatch);
  }

 private:
  RankList& list_;
};

}  // namespace remat
