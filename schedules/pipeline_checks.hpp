#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/pipeline_action.hpp"

namespace remat {

/// What is checked of lists alone, without running them.
enum class ListCheck : std::uint8_t {
  complete,          // each stage has each micro-batch's F, and B or DX and DW, once, on one rank
  collectives_agree  // ranks that share stages have their collectives in one order
};
std::string_view name_of(ListCheck check);

struct ListComplaint {
  ListCheck check = ListCheck::complete;
  std::string message;
};

/// All that is wrong with the lists, at most `most` complaints of each check.
std::vector<ListComplaint> complaints_about(const PipelineLists& lists, std::size_t most);

}  // namespace remat
