#include "tests/sim/wrapped_recording.hpp"

#include <fmt/format.h>

#include "tests/traces/trace_text.hpp"

namespace remat {
namespace {

constexpr int trigger = 1000;

std::string strides_of(const std::string& shape) {
  return shape == "[2,2]" ? "[2,1]" : shape == "[]" ? "[]" : "[1]";
}

std::string gid(const std::string& name) {
  return fmt::format(R"("gid":["session","{}"])", name);
}

}  // namespace

WrappedRecording::WrappedRecording() {
  event(R"("kind":"header","format":"ckpt-trace","version":1,"plain_save_observation":"none")");
  for (int tensor = 1; tensor <= 3; ++tensor) {
    looks_[tensor] = {tensor, "[2,2]", "f32"};
    const std::string look = tensor_json(tensor);
    event(fmt::format(R"("kind":"tensor","name":"{}","requires_grad":true,{})",
                      tensor == 1 ? "input" : "w" + std::to_string(tensor),
                      look.substr(1, look.size() - 2)));
    event(fmt::format(R"("kind":"role","storage":{},"role":"{}")", tensor,
                      tensor == 1 ? "input" : "param"));
  }
  looks_[trigger] = {trigger, "[0]", "f32"};
  phase("forward");
}

std::string WrappedRecording::tensor_json(int tensor) const {
  const Look& look = looks_.at(tensor);
  return fmt::format(
      R"({{"t":{},"s":{},"dtype":"{}","shape":{},"stride":{},"off":0,"bytes":16,"v":0}})", tensor,
      look.storage, look.dtype, look.shape, strides_of(look.shape));
}

std::string WrappedRecording::list(const std::vector<int>& tensors, bool described) const {
  std::string text;
  for (const int tensor : tensors)
    text += (text.empty() ? "" : ",") + (described ? tensor_json(tensor) : std::to_string(tensor));
  return "[" + text + "]";
}

WrappedRecording& WrappedRecording::event(const std::string& fields) {
  text_ += fmt::format("{{\"seq\":{},\"phase\":\"{}\",{}}}\n", seq_++, phase_, fields);
  return *this;
}

WrappedRecording& WrappedRecording::phase(const std::string& name, const std::string& more) {
  phase_ = name;
  return event(R"("kind":"phase_begin")" + more);
}

WrappedRecording& WrappedRecording::begin_region(int frame, const std::string& more) {
  event(fmt::format(
      R"("kind":"unit_begin","unit":"u{0}","inv":0,"frame":{0},"exec":"forward","checkpointed":true)",
      frame));
  return event(fmt::format(
      R"("kind":"frame_create","frame":{0},"unit":"u{0}","inv":0,"impl":"hyper_parallel"{1})",
      frame, more));
}

WrappedRecording& WrappedRecording::inputs(int frame, const std::vector<int>& inputs) {
  return event(fmt::format(R"("kind":"inputs_save","frame":{},"tensors":{},"n_nontensor":0)", frame,
                           list(inputs, false)));
}

WrappedRecording& WrappedRecording::region(int frame, const std::vector<int>& inputs,
                                           const std::string& more) {
  return begin_region(frame, more).inputs(frame, inputs);
}

WrappedRecording& WrappedRecording::op(const std::string& name, const std::vector<int>& inputs,
                                       int output, const std::string& shape,
                                       const std::string& dtype) {
  looks_[output] = {output, shape, dtype};
  return event(fmt::format(R"("kind":"op","name":"aten.{}","inputs":{},"outputs":{})", name,
                           list(inputs, false), list({output}, true)));
}

WrappedRecording& WrappedRecording::save(int frame, int tensor) {
  const int index = saves_[frame]++;
  return event(fmt::format(
      R"("kind":"pack","slot":"f{0}.{1}","frame":{0},"idx":{1},"role":"checkpointed","tensor":{2}{3})",
      frame, index, tensor_json(tensor), tensor == trigger ? R"(,"boundary":true)" : ""));
}

WrappedRecording& WrappedRecording::enter(const std::string& wrapper,
                                          const std::vector<int>& inputs, bool save_output) {
  std::string described;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string look = tensor_json(inputs[i]);
    described += fmt::format(R"({}{},"path":"arg{}"}})", i == 0 ? "" : ",",
                             look.substr(0, look.size() - 1), i);
  }
  return event(fmt::format(
      R"("kind":"wrapper_enter","wrapper":"{}","call":0,"exec":"forward","save_output":{},"inputs":[{}])",
      wrapper, save_output, described));
}

WrappedRecording& WrappedRecording::kept(int number, int tensor) {
  return event(
      fmt::format(R"("kind":"pack","slot":"x{}","role":"excl_saved","held":"saved","tensor":{})",
                  number, tensor_json(tensor)));
}

WrappedRecording& WrappedRecording::slot(int number, int tensor, int argument) {
  return event(fmt::format(
      R"("kind":"pack","slot":"x{}","role":"excl_input","held":"slot","path":"arg{}","tensor":{})",
      number, argument, tensor_json(tensor)));
}

WrappedRecording& WrappedRecording::begin_boundary(int leaf, int output, int passed) {
  looks_[passed] = looks_.at(output);
  event(fmt::format(R"("kind":"boundary","leaf":{},"exec":"forward","input":{})", leaf, output));
  return event(fmt::format(
      R"("kind":"op","name":"aten.view.default","internal":"boundary","inputs":{},"outputs":{})",
      list({output}, false), list({passed}, true)));
}

WrappedRecording& WrappedRecording::boundary(int frame, int leaf, int output, int passed) {
  return begin_boundary(leaf, output, passed).save(frame, trigger);
}

WrappedRecording& WrappedRecording::leave(const std::string& wrapper,
                                          const std::vector<int>& outputs,
                                          const std::string& ended_by) {
  return event(fmt::format(
      R"("kind":"wrapper_exit","wrapper":"{}","call":0,"exec":"forward","ended_by":"{}","outputs":{})",
      wrapper, ended_by, list(outputs, false)));
}

WrappedRecording& WrappedRecording::open(const std::string& name, bool retain,
                                         const std::string& cause) {
  return event(fmt::format(R"("kind":"session_open",{},"retain":{},"cause":"{}")", gid(name),
                           retain, cause));
}

WrappedRecording& WrappedRecording::close(const std::string& name) {
  return event(R"("kind":"session_close",)" + gid(name));
}

WrappedRecording& WrappedRecording::clear(const std::string& name) {
  return event(R"("kind":"session_clear",)" + gid(name));
}

WrappedRecording& WrappedRecording::update(int tensor) {
  return phase("optimizer")
      .event(fmt::format(R"("kind":"mutate","tensor":{},"storage":{})", tensor,
                         looks_.at(tensor).storage))
      .end_phase();
}

std::vector<std::string> WrappedRecording::predicted() const {
  Trace simulated;
  const Prediction prediction = predicted_from(trace_in(text_), simulated);
  if (prediction.unsupported) return {"unsupported: " + *prediction.unsupported};
  return prediction.predicted;
}

}  // namespace remat
