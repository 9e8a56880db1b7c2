#include "properties/invariants/gradients_equal_plain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "properties/invariants/expectations.hpp"
#include "properties/invariants/layouts_agree.hpp"
#include "properties/invariants/told_handles.hpp"
#include "properties/invariants/wording.hpp"

namespace remat {
namespace {

constexpr std::string_view invariant_name = "gradients_equal_plain";

std::string listed(const std::vector<std::string>& values, std::int64_t n_without_value) {
  if (values.empty() && n_without_value == 0) return "none";
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const std::string& value : values)
    add(value);
  if (n_without_value > 0)
    add(counted(n_without_value, "contribution") + " without a recorded value");
  return text;
}

class GradientsEqualPlain : public Invariant {
 public:
  void observe(const EventView& event, const Facts& facts, Report& report) override {
    switch (event.kind()) {
      case Kind::header:
        expected_ = expected_gradients(facts.header());
        break;
      case Kind::grad:
        observe_gradient(event);
        break;
      case Kind::zero_grad:
        forget(event.integer(Field::rank));
        break;
      case Kind::repack:
      case Kind::slot_fill:
        observe_fill(event, facts, report);
        break;
      case Kind::unpack:
        observe_unpack(event, facts, report);
        break;
      case Kind::step_end:
        observe_end(event, facts, report);
        break;
      default:
        break;
    }
  }

  void finish(const Facts&, Report& report) override {
    if (expected_.empty() && !any_value_) {
      report.not_checked(invariant_name,
                         "expect.gradients in the header, or a value on pack and repack");
    } else if (!expected_.empty() && !any_end_) {
      report.not_checked(invariant_name, "a step_end event");
    }
  }

 private:
  struct Contributions {
    std::vector<std::string> values;
    std::int64_t n_without_value = 0;
    std::vector<std::int64_t> events;
  };

  void observe_gradient(const EventView& event) {
    if (!event.has(Field::param)) return;
    const std::string_view value = event.text(Field::value);
    Contributions& of_param =
        gradients_[std::string(event.text(Field::param))][event.integer(Field::rank)];
    if (value.empty()) {
      ++of_param.n_without_value;
    } else {
      // A number is spelled in one way only; other JSON is brought to one.
      const bool is_number = value.find_first_not_of("0123456789") == std::string_view::npos;
      of_param.values.push_back(is_number ? std::string(value)
                                          : nlohmann::json::parse(value).dump());
    }
    of_param.events.push_back(event.seq());
  }

  /// The rank (none: every rank) lets go of its gradients.
  void forget(std::optional<std::int64_t> rank) {
    for (auto& [param, of_param] : gradients_)
      rank ? static_cast<void>(of_param.erase(rank)) : of_param.clear();
  }

  /// What the ranks have contributed, taken together.
  static Contributions together(const std::map<std::optional<std::int64_t>, Contributions>& all) {
    Contributions sum;
    for (const auto& [rank, of_rank] : all) {
      sum.values.insert(sum.values.end(), of_rank.values.begin(), of_rank.values.end());
      sum.n_without_value += of_rank.n_without_value;
      sum.events.insert(sum.events.end(), of_rank.events.begin(), of_rank.events.end());
    }
    std::sort(sum.values.begin(), sum.values.end());
    std::sort(sum.events.begin(), sum.events.end());
    return sum;
  }

  /// Both sorted. A contribution whose value was not recorded may be any of those wanted.
  static bool agree(const std::vector<std::string>& values, std::int64_t n_without_value,
                    const std::vector<std::string>& wanted) {
    return std::ssize(values) + n_without_value == std::ssize(wanted) &&
           std::includes(wanted.begin(), wanted.end(), values.begin(), values.end());
  }

  // G1: the multiset of contributions; parameters that nothing is expected of are not judged.
  void observe_end(const EventView& event, const Facts& facts, Report& report) {
    any_end_ = true;
    if (!facts.ends_the_step()) return;
    const auto gradients = std::exchange(gradients_, {});
    if (facts.stopped_at()) return;
    for (const auto& [param, expected] : expected_) {
      const auto found = gradients.find(param);
      const Contributions got =
          found == gradients.end() ? Contributions{} : together(found->second);
      const std::vector<std::string>& values = got.values;
      std::vector<std::string> wanted = expected;
      std::sort(wanted.begin(), wanted.end());
      if (agree(values, got.n_without_value, wanted)) continue;
      std::vector<std::int64_t> proof = got.events;
      proof.push_back(event.seq());
      report.found(invariant_name, event.seq(),
                   fmt::format("the gradient of {} got {}; the run without checkpointing gives {}",
                               param, listed(values, got.n_without_value), listed(wanted, 0)),
                   std::move(proof));
    }
  }

  // G2
  void observe_fill(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    const auto tensor = event.tensor(Field::tensor);
    if (slot == nullptr || !tensor || tensor->value.empty() || slot->packed.value.empty()) return;
    any_value_ = true;
    if (told_.contains(*slot)) return;
    if (tensor->value == slot->packed.value || !slot->packed.layout) return;
    const Trace& trace = event.trace();
    // A replay may have the input elsewhere in its storage.
    const bool may_move = event.kind() == Kind::slot_fill || slot->is_brought;
    const auto offset = may_move ? CompareOffset::no : CompareOffset::yes;
    if (!layouts_agree(trace.layout(*slot->packed.layout), trace.layout(tensor->layout), offset))
      return;
    // R1: a replay that went wrong before computes other values.
    if (facts.in_replay() && report.found_since(facts.replay()->begin_seq)) return;
    if (event.kind() == Kind::slot_fill) told_.insert(*slot);
    report.found(
        invariant_name, event.seq(),
        fmt::format("{} was packed with value {} and is filled {} with {}; expected the value that "
                    "forward saved",
                    shown(*slot, trace), slot->packed.value, where(event, facts), tensor->value),
        {slot->packed_seq, event.seq()});
  }

  void observe_unpack(const EventView& event, const Facts& facts, Report& report) {
    const Slot* slot = facts.slot();
    const auto tensor = event.tensor(Field::tensor);
    if (slot == nullptr || slot->released_seq || !tensor || tensor->value.empty()) return;
    const Fill* fill = slot->fill_for(facts.session());
    if (fill == nullptr && slot->held != Held::saved) return;
    const std::string& kept = fill != nullptr ? fill->what.value : slot->packed.value;
    if (kept.empty()) return;
    any_value_ = true;
    if (kept == tensor->value || report.found_since(facts.asked_seq())) return;  // R1
    const std::int64_t since = fill != nullptr ? fill->seq : slot->packed_seq;
    report.found(
        invariant_name, event.seq(),
        fmt::format("{} is read {} with value {}, but it was given {} at event {}",
                    shown(*slot, event.trace()), where(event, facts), tensor->value, kept, since),
        {since, event.seq()});
  }

  std::map<std::string, std::vector<std::string>> expected_;
  // Of the step that runs, by parameter and rank.
  std::map<std::string, std::map<std::optional<std::int64_t>, Contributions>> gradients_;
  ToldHandles told_;  // whose fill was told
  bool any_value_ = false;
  bool any_end_ = false;
};

}  // namespace

std::unique_ptr<Invariant> gradients_equal_plain() {
  return std::make_unique<GradientsEqualPlain>();
}

}  // namespace remat
