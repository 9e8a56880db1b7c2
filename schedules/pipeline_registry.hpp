#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipelines/generators.hpp"

namespace remat {

/// What is asked of a pipeline schedule. Where chunks are left out, the schedule's own number.
struct PipelineRequest {
  std::int64_t ranks = 1;
  std::int64_t microbatches = 1;
  std::optional<std::int64_t> chunks = std::nullopt;
  std::int64_t slices = 1;
};

struct PipelineRow {
  enum class Chunks : std::uint8_t { one, any, two };

  std::string_view name;
  std::string_view what;
  PipelineLists (*make)(const PipelineShape& shape);
  Chunks chunks = Chunks::one;
  bool has_slices = false;
  bool is_bidirectional = false;  // micro-batches enter at both ends
};

/// Every pipeline schedule that there is, in the order in which they are listed.
const std::vector<PipelineRow>& pipelines();

/// Their names, for a message.
std::string known_pipelines();

/// The schedule of that name; none where there is no such.
const PipelineRow* pipeline_named(std::string_view name);

/// The lists. Throws InputError where the schedule has none for what is asked, or where they would
/// be longer than this program takes (about a million chunk runs).
PipelineLists make_pipeline(const PipelineRow& row, const PipelineRequest& request);

}  // namespace remat
