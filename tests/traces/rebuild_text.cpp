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

std::string op_line(const Program& program, const OpStatement& op) {
  std::string line = std::string(plain_op_name(op.name)) + "(" + names(program, op.inputs) +
                     ") -> " + names(program, op.outputs);
  if (!op.makes_node) line += " [no node]";
  bool is_first = true;
  for (const Save& save : op.saves) {
    line += (is_first ? " saves " : ", ") + std::string(save.after_op ? "after " : "") +
            program.values[save.value].name;
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
