#include "tests/traces/rebuild_text.hpp"

#include "tests/traces/trace_text.hpp"

namespace remat {
namespace {

std::string tensor_json(int tensor) {
  const std::string id = std::to_string(tensor);
  return "{\"t\":" + id + ",\"s\":" + id +
         R"(,"dtype":"f32","shape":[2,2],"stride":[2,1],"off":0,"bytes":16,"v":0})";
}

std::string list(const std::vector<int>& items, bool as_tensors) {
  std::string text;
  for (const int item : items)
    text += (text.empty() ? "" : ",") + (as_tensors ? tensor_json(item) : std::to_string(item));
  return "[" + text + "]";
}

std::string names(const Program& program, const std::vector<ValueId>& values) {
  std::string text;
  for (const ValueId value : values)
    text += (text.empty() ? "" : ", ") + program.values[value].name;
  return text;
}

/// Where a save of an excluded region's body goes: ` [slot 0 of input 1]`; kept: ` [slot 0]`; kept
/// by hooks of the user's: ` [hooks]`. Of others nothing.
std::string place_of(const Save& save) {
  if (!save.excluded) return {};
  if (save.excluded->number < 0) return " [hooks]";
  std::string place = " [slot " + std::to_string(save.excluded->number);
  if (save.excluded->input) place += " of input " + std::to_string(*save.excluded->input);
  return place + "]";
}

/// A region within a checkpointed one: `saved r(t4 at [0])`.
std::string wrapper_line(const Program& program, const WrapperBegin& wrapper) {
  std::string inputs;
  for (const WrapperBegin::Input& input : wrapper.inputs)
    inputs += (inputs.empty() ? "" : ", ") + program.values[input.value].name + " at " + input.path;
  const bool is_excluded = wrapper.policy == WrapperBegin::Policy::exclude;
  return std::string(is_excluded            ? "excluded "
                     : is_left_out(wrapper) ? "saved "
                                            : "recomputed ") +
         wrapper.name + "(" + inputs + ")";
}

std::string op_line(const Program& program, const OpStatement& op) {
  std::string line = std::string(plain_op_name(op.name)) + "(" + names(program, op.inputs) +
                     ") -> " + names(program, op.outputs);
  if (!op.makes_node) line += " [no node]";
  bool is_first = true;
  for (const Save& save : op.saves) {
    line += (is_first ? " saves " : ", ") + std::string(save.after_op ? "after " : "") +
            program.values[save.value].name + place_of(save);
    is_first = false;
  }
  return line;
}

std::string line_of(const Program& program, const Statement& statement) {
  if (const auto* op = std::get_if<OpStatement>(&statement)) return op_line(program, *op);
  if (const auto* region = std::get_if<RegionBegin>(&statement)) {
    return std::string(region->kind == RegionKind::unit ? "unit " : "region ") + region->name +
           "#" + (region->invocation ? std::to_string(*region->invocation) : "none") + "(" +
           names(program, region->inputs) + ")";
  }
  if (std::holds_alternative<RegionEnd>(statement)) return "end";
  if (const auto* wrapper = std::get_if<WrapperBegin>(&statement))
    return wrapper_line(program, *wrapper);
  if (std::holds_alternative<WrapperEnd>(statement)) return "leave";
  if (const auto* needs = std::get_if<NeedsTensor>(&statement))
    return "needs " + program.values[needs->value].name;
  if (const auto* release = std::get_if<Release>(&statement))
    return "release " + names(program, release->values);
  return "another statement";
}

}  // namespace

SmallRecording::SmallRecording(bool shows_plain_saves) {
  event(R"("kind":"header","format":"ckpt-trace","version":1,"plain_save_observation":")" +
        std::string(shows_plain_saves ? "hooks" : "none") + "\"");
  const std::vector<std::string> leaves = {"input", "w", "v"};
  for (int tensor = 1; tensor <= 3; ++tensor) {
    const std::string& name = leaves[static_cast<std::size_t>(tensor) - 1];
    event(R"("kind":"tensor","name":")" + name + R"(","requires_grad":true,)" +
          tensor_json(tensor).substr(1, tensor_json(tensor).size() - 2));
    event(R"("kind":"role","storage":)" + std::to_string(tensor) +
          (tensor == 1 ? R"(,"role":"input")" : R"(,"role":"param")"));
  }
  phase("forward");
}

SmallRecording& SmallRecording::event(const std::string& fields) {
  text_ += "{\"seq\":" + std::to_string(seq_++) + ",\"phase\":\"" + phase_ + "\"," + fields + "}\n";
  return *this;
}

SmallRecording& SmallRecording::phase(const std::string& name) {
  phase_ = name;
  return event(R"("kind":"phase_begin")");
}

SmallRecording& SmallRecording::op(const std::string& name, const std::vector<int>& inputs,
                                   const std::vector<int>& outputs) {
  return event(R"("kind":"op","name":")" + name + R"(","inputs":)" + list(inputs, false) +
               R"(,"outputs":)" + list(outputs, true));
}

SmallRecording& SmallRecording::plain(int tensor) {
  return event(R"("kind":"pack","slot":"p)" + std::to_string(slots_++) +
               R"(","role":"plain","tensor":)" + tensor_json(tensor));
}

SmallRecording& SmallRecording::pack(int frame, int idx, int tensor) {
  const std::string of = std::to_string(frame);
  const std::string at = std::to_string(idx);
  return event(R"("kind":"pack","slot":"f)" + of + "." + at + R"(","frame":)" + of + R"(,"idx":)" +
               at + R"(,"role":"checkpointed","tensor":)" + tensor_json(tensor));
}

SmallRecording& SmallRecording::frame(int frame, const std::string& unit,
                                      const std::vector<int>& inputs) {
  const std::string id = std::to_string(frame);
  event(R"("kind":"frame_create","frame":)" + id + R"(,"unit":")" + unit +
        R"(","inv":0,"early_stop":true)");
  for (const int input : inputs) {
    event(R"("kind":"pack","slot":"p)" + std::to_string(slots_++) +
          R"(","role":"unit_input","tensor":)" + tensor_json(input));
  }
  return event(R"("kind":"inputs_save","frame":)" + id + R"(,"tensors":)" + list(inputs, false));
}

SmallRecording& SmallRecording::region(const std::string& name, const std::string& policy) {
  region_ = name;
  return event(R"("kind":"region_begin","region":")" + name + R"(","policy":")" + policy + "\"");
}

SmallRecording& SmallRecording::end_region() {
  return event(R"("kind":"region_end","region":")" + region_ + "\"");
}

SmallRecording& SmallRecording::kept(int number, int tensor) {
  return event(R"("kind":"pack","slot":"r)" + std::to_string(number) +
               R"(","role":"remat_save","region":")" + region_ + R"(","tensor":)" +
               tensor_json(tensor));
}

SmallRecording& SmallRecording::brought(int number, const std::string& path, bool is_view) {
  return event(R"("kind":"pack","slot":")" + region_ + ":saved_input." + std::to_string(number) +
               R"(","role":"remat_saved_input","region":")" + region_ + R"(","path":)" + path +
               R"(,"view":)" + (is_view ? "true" : "false") + R"(,"tensor":null)");
}

SmallRecording& SmallRecording::persist(int tensor) {
  return event(R"("kind":"remat_persist","region":")" + region_ + R"(","output":0,"tensor":)" +
               tensor_json(tensor));
}

SmallRecording& SmallRecording::unit(const std::string& name, const std::string& more) {
  return event(R"("kind":"unit_begin","unit":")" + name + R"(","inv":0,"exec":"forward")" + more);
}

SmallRecording& SmallRecording::end_unit(const std::string& name) {
  return event(R"("kind":"unit_end","unit":")" + name + R"(","inv":0,"exec":"forward")");
}

RebuiltRun SmallRecording::rebuilt() const {
  return rebuild(trace_in(text_));
}

std::vector<std::string> forward_lines(const RebuiltRun& run, std::size_t forward) {
  std::vector<std::string> lines;
  for (const Statement& statement : run.program.forwards.at(forward).statements)
    lines.push_back(line_of(run.program, statement));
  return lines;
}

}  // namespace remat
