#pragma once

#include <cstdint>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// How large a pipeline is. Each is at least 1.
struct PipelineShape {
  std::int32_t ranks = 1;
  std::int32_t microbatches = 1;
  std::int32_t chunks = 1;  // stages on each rank
  std::int32_t slices = 1;  // pieces of a sequence, Seq1F1B only
};

// Each gives the lists of any shape that pipeline_registry.hpp lets through. Where a rule asks for
// a number of micro-batches that is not there, the lists are those of the next such number without
// the micro-batches that are too many: the order of the others stays right.

/// All forwards, then all backwards. GPipe (1811.06965).
PipelineLists gpipe(const PipelineShape& shape);
/// Rank r runs P-1-r forwards, then forward and backward in turn. PipeDream-Flush (2006.09503).
PipelineLists one_f_one_b(const PipelineShape& shape);
/// 1F1B over V chunks a rank, in rounds of micro-batches. Megatron-LM (2104.04473); rounds as
/// torch's ScheduleInterleaved1F1B has them.
PipelineLists interleaved_1f1b(const PipelineShape& shape);
/// All forwards chunk by chunk, then all backwards, the last micro-batch first. Breadth-First
/// Pipeline Parallelism (2211.05953), order as torch's ScheduleLoopedBFS.
PipelineLists looped_bfs(const PipelineShape& shape);
/// 1F1B with DX and DW apart; rank r's DW comes r DX's later. Zero Bubble (2401.10241), fig. 2.
PipelineLists zb_h1(const PipelineShape& shape);
/// The same with twice the forwards ahead, and DW 2r DX's later. Zero Bubble (2401.10241), fig. 3.
PipelineLists zb_h2(const PipelineShape& shape);
/// ZB-H1 over V chunks a rank, as torch's ScheduleInterleavedZeroBubble.
PipelineLists interleaved_zb(const PipelineShape& shape);
/// Two chunks a rank, laid out as a V: rank r has stages r and 2P-1-r. Zero Bubble (2401.10241) §6,
/// order as torch's ScheduleZBVZeroBubble.
PipelineLists zb_v(const PipelineShape& shape);
/// Micro-batches enter at both ends, a half of them each; P and M are even. DeepSeek-V3
/// (2412.19437) and its repository DualPipe.
PipelineLists dualpipe(const PipelineShape& shape);
/// DualPipe cut in half: the V layout of zb_v. DeepSeek's repository DualPipe.
PipelineLists dualpipe_v(const PipelineShape& shape);
/// The V layout with half of 1F1B's activations. Controllable Memory (2405.15362).
PipelineLists v_half(const PipelineShape& shape);
/// The same with a third of them. Controllable Memory (2405.15362).
PipelineLists v_min(const PipelineShape& shape);
/// 1F1B over slices of sequences: forwards from the first slice on, backwards from the last.
/// Seq1F1B (2406.03488).
PipelineLists seq_1f1b(const PipelineShape& shape);

}  // namespace remat
