#include "schedules/pipeline_registry.hpp"

#include <algorithm>

#include "model/errors.hpp"
#include "model/listed.hpp"

namespace remat {
namespace {

using Chunks = PipelineRow::Chunks;

/// Lists and the graph of their times are held in memory: some hundred bytes a chunk run.
constexpr std::int64_t chunk_runs_max = std::int64_t{1} << 20U;

void require_number(const char* option, std::int64_t number) {
  if (number >= 1 && number <= chunk_runs_max) return;
  throw InputError(std::string(option) + ": " + std::to_string(number) +
                   " is out of range; expected 1 to " + std::to_string(chunk_runs_max));
}

std::int64_t chunks_of(const PipelineRow& row, const PipelineRequest& request) {
  const std::int64_t usual = row.chunks == Chunks::two ? 2 : 1;
  const std::int64_t chunks = request.chunks.value_or(usual);
  require_number("--chunks", chunks);
  if (row.chunks != Chunks::any && chunks != usual) {
    throw InputError("--chunks: " + std::string(row.name) + " has " + std::to_string(usual) +
                     (usual == 1 ? " chunk" : " chunks") + " a rank, not " +
                     std::to_string(chunks));
  }
  return chunks;
}

void require_even(const PipelineRow& row, const char* option, std::int64_t number) {
  if (number % 2 == 0) return;
  throw InputError(std::string(option) + ": " + std::string(row.name) +
                   " takes an even number, a half for each direction, not " +
                   std::to_string(number));
}

void require_size(const PipelineRow& row, const PipelineShape& shape) {
  // Schedules over a V are made for at least so many and cut down.
  const std::int64_t least = row.chunks == Chunks::two ? 2 * std::int64_t{shape.ranks} : 1;
  const std::int64_t microbatches = std::max<std::int64_t>(shape.microbatches, least);
  std::int64_t runs = microbatches;  // each factor is at most 2^20, so no product of two overflows
  for (const std::int32_t factor : {shape.ranks, shape.chunks, shape.slices}) {
    runs = runs * factor;
    if (runs > chunk_runs_max) {
      throw InputError(std::string(row.name) +
                       ": ranks, micro-batches, chunks and slices make more than " +
                       std::to_string(chunk_runs_max) + " chunk runs; expected fewer");
    }
  }
}

}  // namespace

const std::vector<PipelineRow>& pipelines() {
  static const std::vector<PipelineRow> rows = {
      {"gpipe", "all forwards, then all backwards", gpipe},
      {"1f1b", "forward and backward in turn", one_f_one_b},
      {"interleaved-1f1b", "1F1B over several chunks a rank", interleaved_1f1b, Chunks::any},
      {"looped-bfs", "all micro-batches chunk by chunk", looped_bfs, Chunks::any},
      {"zb-h1", "DX and DW apart, 1F1B's memory", zb_h1},
      {"zb-h2", "DX and DW apart, twice the memory", zb_h2},
      {"interleaved-zb", "ZB-H1 over several chunks a rank", interleaved_zb, Chunks::any},
      {"zb-v", "two chunks a rank in a V, DX and DW apart", zb_v, Chunks::two},
      {"dualpipe", "micro-batches enter at both ends", dualpipe, Chunks::two, false, true},
      {"dualpipe-v", "DualPipe cut in half, in a V", dualpipe_v, Chunks::two},
      {"v-half", "a V with half of 1F1B's activations", v_half, Chunks::two},
      {"v-min", "a V with a third of 1F1B's activations", v_min, Chunks::two},
      {"seq1f1b", "1F1B over slices of sequences", seq_1f1b, Chunks::one, true},
  };
  return rows;
}

std::string known_pipelines() {
  return listed(pipelines(), &PipelineRow::name);
}

const PipelineRow* pipeline_named(std::string_view name) {
  const std::vector<PipelineRow>& rows = pipelines();
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const PipelineRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

PipelineLists make_pipeline(const PipelineRow& row, const PipelineRequest& request) {
  require_number("--ranks", request.ranks);
  require_number("--microbatches", request.microbatches);
  require_number("--slices", request.slices);
  if (!row.has_slices && request.slices != 1) {
    throw InputError("--slices: " + std::string(row.name) +
                     " runs whole sequences; expected 1, or seq1f1b");
  }
  const std::int64_t chunks = chunks_of(row, request);
  if (row.is_bidirectional) {
    require_even(row, "--ranks", request.ranks);
    require_even(row, "--microbatches", request.microbatches);
  }
  const PipelineShape shape = {.ranks = static_cast<std::int32_t>(request.ranks),
                               .microbatches = static_cast<std::int32_t>(request.microbatches),
                               .chunks = static_cast<std::int32_t>(chunks),
                               .slices = static_cast<std::int32_t>(request.slices)};
  require_size(row, shape);
  return row.make(shape);
}

}  // namespace remat
