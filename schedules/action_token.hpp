#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// Reads one token, in either of two ways of writing:
///
///   as tables have it   [p<pipe>:]<stage><what><micro-batch>[.<slice>]    0F1, p1:3I0, 0F1.2
///   as we print it      [p<pipe>:]<what><stage>.<micro-batch>[/<slice>]   F0.1, p1:DX3.0, F0.1/2
///
/// what: F B I or DX, W or DW, R, SEND_F RECV_F SEND_B RECV_B WAIT_SEND_F WAIT_SEND_B, and without
/// a micro-batch UNSHARD RESHARD REDUCE_GRAD WAIT_REDUCE_GRAD. Two compute actions side by side are
/// (0F3;3B1)OVERLAP_F_B or (F0.3+B3.1), messages under way together BATCH(0SEND_F1+0RECV_B0).
/// None where it is no such token.
std::optional<RankList> read_token(std::string_view text);

/// How a table has what is joined at `first`: "0F1", "(0F3;3B1)OVERLAP_F_B".
std::string table_token(const RankList& list, std::size_t first);

}  // namespace remat
