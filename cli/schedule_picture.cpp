#include "cli/schedule_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/units.hpp"

namespace remat {
namespace {

/// Where times fall on a line.
class Scale {
 public:
  Scale(std::int64_t makespan, std::size_t columns) : makespan_(makespan), columns_(columns) {}

  std::size_t column_of(std::int64_t time) const {
    const WideInteger column = static_cast<WideInteger>(time) * static_cast<WideInteger>(columns_);
    return static_cast<std::size_t>(column / makespan_);
  }

 private:
  std::int64_t makespan_;
  std::size_t columns_;
};

/// A letter and the micro-batch; the letter is small where it is of another chunk than the rank's
/// first.
std::string label_of(const PipelineAction& action, const PipelineAction& first) {
  const std::string_view word = action.work == Work::dx   ? "I"
                                : action.work == Work::dw ? "W"
                                                          : word_of(action.work);
  const bool is_first_chunk = action.stage == first.stage && action.pipe == first.pipe;
  constexpr char to_small = 'a' - 'A';
  const auto letter = static_cast<char>(is_first_chunk ? word[0] : word[0] + to_small);
  return fmt::format("{}{}", letter, action.microbatch);
}

std::string line_of(const RankList& list, const std::vector<ActionTimes>& times, const Scale& scale,
                    std::size_t columns) {
  std::string line(columns, '.');
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_compute(list[i].work)) continue;
    const std::size_t begin = scale.column_of(times[i].start);
    const std::size_t end = scale.column_of(times[i].end);
    const std::string label = label_of(list[i], list.front());
    for (std::size_t column = begin; column < end; ++column)
      line[column] = column - begin < label.size() ? label[column - begin] : '-';
  }
  return line;
}

/// As many columns for each unit of time as fit, if one does.
std::size_t columns_for(std::int64_t makespan, std::size_t most) {
  const auto time = static_cast<std::uint64_t>(makespan);
  if (time > most) return most;
  constexpr std::uint64_t enough = 4;  // shows any label of a two-digit micro-batch
  return static_cast<std::size_t>(time * std::min<std::uint64_t>(most / time, enough));
}

}  // namespace

std::string schedule_picture(const PipelineLists& lists, const PipelineRun& run,
                             std::int64_t makespan, std::size_t columns) {
  if (makespan == 0) return "";
  const std::size_t used = columns_for(makespan, columns);
  const Scale scale(makespan, used);
  const std::size_t digits = std::to_string(lists.ranks.size() - 1).size();
  std::string picture;
  for (std::size_t rank = 0; rank < lists.ranks.size(); ++rank) {
    picture += fmt::format("rank {:>{}}  {}\n", rank, digits,
                           line_of(lists.ranks[rank], run.times[rank], scale, used));
  }
  return picture;
}

}  // namespace remat
