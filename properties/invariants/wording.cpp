#include "properties/invariants/wording.hpp"

#include <fmt/format.h>

namespace remat {
namespace {

std::string shown_numbers(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string shown_call(std::optional<NameId> unit, std::optional<std::int64_t> invocation,
                       std::optional<std::int64_t> microbatch, const Trace& trace) {
  if (!unit) return {};
  std::string text(trace.names()[*unit]);
  if (invocation) text += fmt::format("#{}", *invocation);
  if (microbatch) text += fmt::format(" (micro-batch {})", *microbatch);
  return text;
}

// A JSON string that needs no escapes reads better without its quotes.
std::string_view unquoted(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.find('\\') != std::string_view::npos)
    return json;
  return json.substr(1, json.size() - 2);
}

}  // namespace

std::string shown_wrapper(NameId wrapper, std::optional<std::int64_t> call, const Trace& trace) {
  std::string text = fmt::format("wrapper {}", trace.names()[wrapper]);
  if (call) text += fmt::format("#{}", *call);
  return text;
}

std::string shown_input(NameId wrapper, std::optional<std::int64_t> call, std::string_view path,
                        const Trace& trace) {
  const std::string text = shown_wrapper(wrapper, call, trace);
  return path.empty() ? text : fmt::format("{}, input {},", text, unquoted(path));
}

std::string shown_excluded_call(const EventView& event, const Facts& facts) {
  const auto wrapper = event.name(Field::wrapper);
  std::string text = wrapper ? shown_wrapper(*wrapper, event.integer(Field::call), event.trace())
                             : std::string("an excluded region");
  if (facts.frame()) text += " of " + shown_call(*facts.frame(), facts, event.trace());
  return text;
}

std::string ordinal(std::int64_t n) {
  const std::int64_t tens = n % 100;
  const char* ending = "th";
  if (tens < 11 || tens > 13) {
    if (n % 10 == 1) ending = "st";
    if (n % 10 == 2) ending = "nd";
    if (n % 10 == 3) ending = "rd";
  }
  return fmt::format("{}{}", n, ending);
}

std::string shown(const Slot& slot, const Trace& trace) {
  std::string text = fmt::format("slot {}", trace.names()[slot.name]);
  if (slot.excluded) {
    const ExcludedPlace& place = *slot.excluded;
    text += " of " + shown_input(place.wrapper, place.call, place.path, trace);
  }
  const std::string call = shown_call(slot.unit, slot.invocation, slot.microbatch, trace);
  if (!call.empty()) return text + " of " + call;
  if (slot.region) text += fmt::format(" of region {}", trace.names()[*slot.region]);
  return text;
}

std::string shown(std::optional<SessionKey> session, const Trace& trace) {
  if (!session) return "no session";
  const auto named = session->named();
  if (!named) return fmt::format("graph task {}", session->graph_task());
  const SessionName& name = trace.session(*named);
  const std::string_view kind = trace.names()[name.kind];
  const std::string which =
      name.name ? std::string(trace.names()[*name.name]) : std::to_string(name.number.value_or(0));
  if (kind == "adhoc") return fmt::format("a single read ({})", which);
  return fmt::format("{} {}", kind, which);
}

std::string shown(StorageId storage, const Facts& facts, const Trace& trace) {
  std::string text = fmt::format("storage {}", storage.number());
  if (const auto name = facts.storages().name(storage))
    text += fmt::format(" '{}'", trace.names()[*name]);
  return text;
}

std::string shown(const Layout& layout, const Trace& trace) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : " ") + part; };
  if (layout.dtype) add(std::string(trace.names()[*layout.dtype]));
  if (layout.has_shape) add(shown_numbers(layout.shape));
  if (layout.has_stride) add("stride " + shown_numbers(layout.stride));
  if (layout.offset) add(fmt::format("offset {}", *layout.offset));
  if (layout.device) add(fmt::format("on {}", trace.names()[*layout.device]));
  return text;
}

std::string shown(const Frame& frame, const Trace& trace) {
  return shown_call(frame.unit, frame.invocation, frame.microbatch, trace);
}

std::string shown_call(std::int64_t frame, const Facts& facts, const Trace& trace) {
  const Frame* known = facts.scopes().frame(frame);
  std::string text = known == nullptr ? std::string() : shown(*known, trace);
  if (text.empty()) text = frame >= 0 ? fmt::format("frame {}", frame) : std::string("a region");
  return text;
}

std::string where(const EventView& event, const Facts& facts) {
  const Trace& trace = event.trace();
  std::string text;
  if (const Scope* replay = facts.replay()) {
    const Frame* frame = facts.scopes().frame(replay->frame);
    text = fmt::format("in the replay of {}", frame != nullptr && frame->unit
                                                  ? shown(*frame, trace)
                                                  : trace.names()[replay->unit]);
    if (replay->session) text += " for " + shown(replay->session, trace);
  } else {
    text = event.phase() == Phase::none ? std::string("outside any phase")
                                        : fmt::format("in {}", name_of(event.phase()));
    const auto microbatch = event.integer(Field::microbatch);
    if (event.has(Field::unit)) {
      text += " of " +
              shown_call(event.name(Field::unit), event.integer(Field::inv), microbatch, trace);
    } else if (microbatch) {
      text += fmt::format(" of micro-batch {}", *microbatch);
    }
  }
  if (const auto rank = event.integer(Field::rank)) text += fmt::format(" on rank {}", *rank);
  return text;
}

std::string by_session(std::optional<SessionKey> session, const Facts& facts, const Trace& trace) {
  if (!session || (facts.in_replay() && facts.replay()->session == session)) return {};
  return " by " + shown(session, trace);
}

std::string counted(std::int64_t n, const std::string& noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

}  // namespace remat
