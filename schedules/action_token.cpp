#include "schedules/action_token.hpp"

#include <algorithm>
#include <cstdint>

namespace remat {
namespace {

constexpr std::string_view overlap_word = "OVERLAP_F_B";
constexpr std::string_view batch_word = "BATCH";
/// Numbers are indices of tables: more digits than this are a slip.
constexpr std::size_t digits_max = 7;
constexpr std::size_t batch_max = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Takes parts off the front of a text.
class TokenText {
 public:
  explicit TokenText(std::string_view text) : text_(text) {}

  bool is_done() const { return text_.empty(); }
  bool begins_with_digit() const { return !text_.empty() && is_digit(text_.front()); }

  bool take(std::string_view what) {
    if (!text_.starts_with(what)) return false;
    text_.remove_prefix(what.size());
    return true;
  }
  std::optional<std::int32_t> take_number() {
    std::size_t n = 0;
    std::int32_t number = 0;
    for (; n < text_.size() && n < digits_max && is_digit(text_[n]); ++n)
      number = 10 * number + (text_[n] - '0');
    text_.remove_prefix(n);
    return n == 0 ? std::nullopt : std::optional(number);
  }
  std::optional<Work> take_work() {
    const auto* end = std::find_if_not(text_.begin(), text_.end(),
                                       [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; });
    const std::string_view word = text_.substr(0, static_cast<std::size_t>(end - text_.begin()));
    text_.remove_prefix(word.size());
    return work_named(word);
  }

 private:
  static std::optional<Work> work_named(std::string_view word) {
    if (word == "I") return Work::dx;
    if (word == "W") return Work::dw;
    for (std::size_t i = 0; i < work_count; ++i) {
      if (word_of(static_cast<Work>(i)) == word) return static_cast<Work>(i);
    }
    return std::nullopt;
  }

  std::string_view text_;
};

/// `between` stands before the micro-batch, `before_slice` before the slice.
bool read_numbers(TokenText& text, std::string_view between, std::string_view before_slice,
                  PipelineAction& action) {
  if (is_collective(action.work)) return true;
  if (!text.take(between)) return false;
  const auto microbatch = text.take_number();
  if (!microbatch) return false;
  action.microbatch = *microbatch;
  if (!text.take(before_slice)) return true;
  const auto slice = text.take_number();
  if (!slice) return false;
  action.slice = *slice;
  return true;
}

std::optional<PipelineAction> read_single(std::string_view whole) {
  TokenText text(whole);
  PipelineAction action;
  if (text.take("p")) {
    const auto pipe = text.take_number();
    if (!pipe || *pipe > 1 || !text.take(":")) return std::nullopt;
    action.pipe = static_cast<std::uint16_t>(*pipe);
  }
  const bool is_tables = text.begins_with_digit();
  auto stage = is_tables ? text.take_number() : std::optional<std::int32_t>();
  const auto work = text.take_work();
  if (!is_tables) stage = text.take_number();
  if (!work || !stage) return std::nullopt;
  action.work = *work;
  action.stage = *stage;
  const bool is_read =
      is_tables ? read_numbers(text, "", ".", action) : read_numbers(text, ".", "/", action);
  return is_read && text.is_done() ? std::optional(action) : std::nullopt;
}

bool fits_together(const RankList& group, Joined joined) {
  const bool is_pair = joined == Joined::overlapped;
  if (is_pair ? group.size() != 2 : group.size() > batch_max) return false;
  return std::all_of(group.begin(), group.end(), [&](const PipelineAction& action) {
    return is_pair ? is_compute(action.work) : is_send(action.work) || is_recv(action.work);
  });
}

std::optional<RankList> read_joined(std::string_view inside, char separator, Joined joined) {
  RankList group;
  for (std::size_t begin = 0; begin <= inside.size();) {
    const std::size_t end = std::min(inside.find(separator, begin), inside.size());
    const auto action = read_single(inside.substr(begin, end - begin));
    if (!action) return std::nullopt;
    group.push_back(*action);
    group.back().joined = joined;
    begin = end + 1;
  }
  if (!fits_together(group, joined)) return std::nullopt;
  group.back().joined = Joined::no;
  return group;
}

std::string table_single(const PipelineAction& action) {
  std::string text;
  if (action.pipe != 0) text += "p" + std::to_string(action.pipe) + ":";
  text += std::to_string(action.stage);
  text += action.work == Work::dx ? "I" : action.work == Work::dw ? "W" : word_of(action.work);
  if (is_collective(action.work)) return text;
  text += std::to_string(action.microbatch);
  if (action.slice != 0) text += "." + std::to_string(action.slice);
  return text;
}

}  // namespace

std::optional<RankList> read_token(std::string_view text) {
  const bool is_batch = text.starts_with(batch_word);
  if (is_batch) text.remove_prefix(batch_word.size());
  const bool is_overlap = !is_batch && text.ends_with(overlap_word);
  if (is_overlap) text.remove_suffix(overlap_word.size());
  if (text.size() >= 2 && text.front() == '(' && text.back() == ')') {
    const std::string_view inside = text.substr(1, text.size() - 2);
    return read_joined(inside, is_overlap ? ';' : '+',
                       is_batch ? Joined::batched : Joined::overlapped);
  }
  if (is_batch || is_overlap) return std::nullopt;
  const auto action = read_single(text);
  return action ? std::optional(RankList{*action}) : std::nullopt;
}

std::string table_token(const RankList& list, std::size_t first) {
  const std::size_t end = group_end(list, first);
  if (end == first + 1) return table_single(list[first]);
  const bool is_batch = list[first].joined == Joined::batched;
  std::string text = is_batch ? "BATCH(" : "(";
  for (std::size_t i = first; i < end; ++i)
    text += (i == first ? "" : is_batch ? "+" : ";") + table_single(list[i]);
  text += ")";
  return is_batch ? text : text + std::string(overlap_word);
}

}  // namespace remat
