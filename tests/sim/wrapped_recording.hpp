#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/prediction.hpp"

namespace remat {

/// A small recording of excluded regions and recompute sessions, written event by event. It begins
/// with an input `x` (tensor 1) and two parameters (2 and 3), all of which want gradients, and the
/// begin of a forward. A tensor lies on a storage of its own, unless a boundary made it.
class WrappedRecording {
 public:
  WrappedRecording();

  /// Any event: `"kind":"note"`. Its phase is the current one.
  WrappedRecording& event(const std::string& fields);
  /// `more` is of the form `,"retain":true`.
  WrappedRecording& phase(const std::string& name, const std::string& more = "");
  WrappedRecording& end_phase() { return event(R"("kind":"phase_end")"); }

  /// A region that knows sessions, of the frame of that number; `more` is of the frame.
  WrappedRecording& region(int frame, const std::vector<int>& inputs,
                           const std::string& more = R"(,"early_stop":true)");
  WrappedRecording& end_region() { return event(R"("kind":"unit_end","exec":"forward")"); }
  /// The begin of one inside a body: a save of its own, then its inputs, in these slots of the
  /// call.
  WrappedRecording& begin_region(int frame, const std::string& more = R"(,"early_stop":true)");
  WrappedRecording& inputs(int frame, const std::vector<int>& inputs);
  /// An op on tensors of `shape`, which makes one of it.
  WrappedRecording& op(const std::string& name, const std::vector<int>& inputs, int output,
                       const std::string& shape = "[2,2]", const std::string& dtype = "f32");
  /// A save of the frame: numbered by itself.
  WrappedRecording& save(int frame, int tensor);

  WrappedRecording& enter(const std::string& wrapper, const std::vector<int>& inputs,
                          bool save_output = true);
  /// A save of a body that is kept, in the slot x`number`.
  WrappedRecording& kept(int number, int tensor);
  /// One that a replay brings from the call's argument number `argument`.
  WrappedRecording& slot(int number, int tensor, int argument);
  /// The boundary of an output: `passed` comes out. Its save is the frame's.
  WrappedRecording& boundary(int frame, int leaf, int output, int passed);
  WrappedRecording& leave(const std::string& wrapper, const std::vector<int>& outputs,
                          const std::string& ended_by = "return");

  WrappedRecording& open(const std::string& name, bool retain,
                         const std::string& cause = "backward");
  WrappedRecording& close(const std::string& name);
  WrappedRecording& clear(const std::string& name);
  /// An optimizer's phase that writes the tensor.
  WrappedRecording& update(int tensor);

  /// What is foreseen; one line `unsupported: …` where nothing is.
  std::vector<std::string> predicted() const;

 private:
  struct Look {
    int storage = 0;
    std::string shape, dtype;
  };
  std::string tensor_json(int tensor) const;
  std::string list(const std::vector<int>& tensors, bool described) const;
  WrappedRecording& begin_boundary(int leaf, int output, int passed);

  std::string text_;
  std::string phase_ = "setup";
  std::int64_t seq_ = 0;
  std::map<int, Look> looks_;
  std::map<int, int> saves_;  // by frame
};

}  // namespace remat
