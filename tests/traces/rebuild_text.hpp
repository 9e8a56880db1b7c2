#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/rebuild/rebuild.hpp"

namespace remat {

/// A small recording, written event by event: tensor t lies in storage t, two by two, unless told
/// otherwise. It begins with its header, an input `x` (tensor 1) and the parameters `w` (2) and `v`
/// (3), all of which want gradients, and the begin of a forward.
class SmallRecording {
 public:
  explicit SmallRecording(bool shows_plain_saves = true);

  /// Any event: `"kind":"note"`. Its phase is the current one.
  SmallRecording& event(const std::string& fields);
  SmallRecording& phase(const std::string& name);
  SmallRecording& end_phase() { return event(R"("kind":"phase_end")"); }
  SmallRecording& op(const std::string& name, const std::vector<int>& inputs,
                     const std::vector<int>& outputs);
  /// A save outside all frames.
  SmallRecording& plain(int tensor);
  /// The save number `idx` of a frame.
  SmallRecording& pack(int frame, int idx, int tensor);
  /// A frame is made: its input slots, then the list of them.
  SmallRecording& frame(int frame, const std::string& unit, const std::vector<int>& inputs);
  /// `more` is of the form `,"reentrant":true`.
  SmallRecording& unit(const std::string& name, const std::string& more = "");
  SmallRecording& end_unit(const std::string& name);
  /// A region of torch_remat, `save` or `recompute`, and its end.
  SmallRecording& region(const std::string& name, const std::string& policy);
  SmallRecording& end_region();
  /// A save of the region's body that is kept, in slot r`number`.
  SmallRecording& kept(int number, int tensor);
  /// One that a replay brings from the argument at this path; the recorder shows no tensor.
  SmallRecording& brought(int number, const std::string& path, bool is_view = false);
  /// The region keeps an output for the replay.
  SmallRecording& persist(int tensor);

  const std::string& text() const { return text_; }
  RebuiltRun rebuilt() const;

 private:
  std::string text_;
  std::string phase_ = "setup";
  std::string region_;  // entered last
  std::int64_t seq_ = 0;
  std::int64_t slots_ = 0;
};

/// The statements of a program's forward, a line each: `mm(x, w) -> t4 saves w, x` (an output that
/// is saved stands behind `after`), `region a#0(x)`, `end`, `release t4`; no node: `[no node]`. Of
/// regions of torch_remat `saved r(t4 at [0])`, `recomputed c()`, `leave`, `needs t5`; where their
/// saves go: `[slot 0]`, kept, or `[slot 0 of input 1]`, `[hooks]`.
std::vector<std::string> forward_lines(const RebuiltRun& run, std::size_t forward = 0);

}  // namespace remat
