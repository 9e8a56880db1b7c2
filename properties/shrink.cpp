#include "properties/shrink.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "properties/case_token.hpp"

namespace remat {
namespace {

using Choices = std::vector<std::uint64_t>;

bool is_smaller(const Choices& a, const Choices& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

class Shrinker {
 public:
  Shrinker(const std::string& alarm, const ShrinkOptions& options)
      : alarm_(&alarm), options_(&options), runner_(options.fault) {}

  Shrunk run(const Choices& choices) {
    Shrunk shrunk;
    shrunk.choices = choices;
    best_ = choices;
    if (adopt(choices, true)) {
      bool goes_on = true;
      while (goes_on && !is_cut_short())
        goes_on = delete_spans() || delete_chunks() || zero_choices() || lower_choices();
      shrunk.choices = best_;
      shrunk.is_minimal = !is_cut_short();
    }
    shrunk.n_runs = n_runs_;
    shrunk.n_choices = static_cast<std::size_t>(std::count_if(
        best_.begin(), best_.end(), [](std::uint64_t choice) { return choice != 0; }));
    shrunk.n_regions = n_regions_;
    return shrunk;
  }

 private:
  bool is_cut_short() {
    if (n_runs_ >= options_->runs_max) is_cut_short_ = true;
    if (options_->is_over && n_runs_ % 16 == 0 && options_->is_over()) is_cut_short_ = true;
    return is_cut_short_;
  }

  /// Takes the candidate for the best where it fails alike and is smaller.
  bool adopt(const Choices& candidate, bool is_first = false) {
    const Choices trimmed = without_trailing_zeros(candidate);
    if (!is_first && (is_cut_short() || !is_smaller(trimmed, best_))) return false;
    ++n_runs_;
    ChoiceTape tape(trimmed);
    const GeneratedCase generated = generate_case(tape, {.protocol = options_->protocol});
    if (runner_.run(generated).alarm != *alarm_) return false;
    // What the generator did not draw is no part of the case.
    Choices drawn = without_trailing_zeros(tape.chosen());
    if (!is_first && !is_smaller(drawn, best_)) return false;
    best_ = std::move(drawn);
    spans_ = tape.spans();
    n_regions_ = 0;
    for (const Statement& statement : generated.scenario.program.forwards.front().statements)
      n_regions_ += std::holds_alternative<RegionBegin>(statement) ? 1 : 0;
    return true;
  }

  static Choices without(const Choices& choices, std::size_t begin, std::size_t end) {
    Choices left(choices.begin(), choices.begin() + static_cast<std::ptrdiff_t>(begin));
    end = std::min(end, choices.size());
    left.insert(left.end(), choices.begin() + static_cast<std::ptrdiff_t>(end), choices.end());
    return left;
  }

  /// Whole parts of the program, the largest first.
  bool delete_spans() {
    bool any = false;
    for (bool again = true; again;) {
      again = false;
      std::vector<ChoiceTape::Span> spans = spans_;
      std::stable_sort(spans.begin(), spans.end(), [](const auto& a, const auto& b) {
        return a.end - a.begin > b.end - b.begin;
      });
      for (const ChoiceTape::Span& span : spans) {
        if (span.begin >= best_.size() || !adopt(without(best_, span.begin, span.end))) continue;
        again = any = true;
        break;
      }
    }
    return any;
  }

  bool delete_chunks() {
    bool any = false;
    for (std::size_t size = 8; size > 0; size /= 2) {
      for (std::size_t end = best_.size(); end >= size; end = std::min(end - 1, best_.size()))
        any |= adopt(without(best_, end - size, end));
    }
    return any;
  }

  bool zero_choices() {
    bool any = false;
    for (std::size_t at = 0; at < best_.size(); ++at) {
      if (best_[at] == 0) continue;
      Choices candidate = best_;
      candidate[at] = 0;
      any |= adopt(candidate);
    }
    return any;
  }

  /// The choice without a bit that is set: features are bits.
  bool drop_bits(std::size_t at) {
    bool any = false;
    for (unsigned bit = 64; bit-- > 0;) {
      if (at >= best_.size() || ((best_[at] >> bit) & 1U) == 0) continue;
      Choices candidate = best_;
      candidate[at] &= ~(std::uint64_t{1} << bit);
      any |= adopt(candidate);
    }
    return any;
  }

  /// Smaller choices: without a bit, and one less. One less may set all the bits below: they go
  /// before the next.
  bool lower_choices() {
    bool any = false;
    for (std::size_t at = 0; at < best_.size(); ++at) {
      any |= drop_bits(at);
      while (at < best_.size() && best_[at] > 0) {
        Choices candidate = best_;
        candidate[at] -= 1;
        if (!adopt(candidate)) break;
        any = true;
        drop_bits(at);
      }
    }
    return any;
  }

  const std::string* alarm_;
  const ShrinkOptions* options_;
  CaseRunner runner_;
  Choices best_;
  std::vector<ChoiceTape::Span> spans_;
  std::size_t n_regions_ = 0;
  std::uint64_t n_runs_ = 0;
  bool is_cut_short_ = false;
};

}  // namespace

Shrunk shrink(const std::vector<std::uint64_t>& choices, const std::string& alarm,
              const ShrinkOptions& options) {
  return Shrinker(alarm, options).run(choices);
}

}  // namespace remat
