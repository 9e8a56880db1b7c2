#pragma once

#include <string>
#include <string_view>

namespace remat {

// A sound trace with an excluded region in it, in parts that tests put together and change: region
// A (frame 1) takes the sine of its input and gives it to wrapper w, whose body saves it; the one
// output passes a boundary and is kept for the replay, which is session g's.

/// Events 1 to 10.
inline const std::string excluded_forward = R"(
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
  {"kind":"op","phase":"forward","unit":"A","name":"sin","inputs":[],"outputs":[{"t":1,"s":1,"dtype":"f32","shape":[4],"stride":[1],"off":0,"bytes":16}]}
  {"kind":"wrapper_enter","phase":"forward","frame":1,"wrapper":"w","call":0,"exec":"forward","skipped":false,"inputs":[{"t":1,"s":1,"path":"arg0"}]}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"slot":"x0","held":"slot","role":"excl_input","handle":"h0","wrapper":"w","call":0,"path":"arg0","tensor":{"t":1,"s":1,"dtype":"f32","shape":[4],"stride":[1],"off":0}}
  {"kind":"op","phase":"forward","unit":"A","wrapper":"w","call":0,"name":"square","inputs":[1],"outputs":[{"t":2,"s":2,"dtype":"f32","shape":[4],"bytes":16}]}
  {"kind":"boundary","phase":"forward","frame":1,"wrapper":"w","call":0,"leaf":0,"exec":"forward","input":2}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","boundary":true}
  {"kind":"cache_put","phase":"forward","frame":1,"wrapper":"w","call":0,"leaves":1,"kept":true,"tensors":[{"t":2,"s":2}]}
  {"kind":"wrapper_exit","phase":"forward","frame":1,"wrapper":"w","call":0,"exec":"forward","ended_by":"return","outputs":[2],"rng_crc":5}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"}
)";

/// Events 11 to 19, behind it.
inline const std::string excluded_replay = R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["session","g"]}
  {"kind":"op","phase":"replay","unit":"A","name":"sin","inputs":[],"outputs":[{"t":11,"s":11,"dtype":"f32","shape":[4],"stride":[1],"off":0,"bytes":16}]}
  {"kind":"wrapper_enter","phase":"replay","frame":1,"wrapper":"w","call":0,"exec":"replay","skipped":true,"inputs":[{"t":11,"s":11,"path":"arg0"}]}
  {"kind":"cache_pop","phase":"replay","frame":1,"wrapper":"w","call":0,"entry_call":0,"ok":true,"leaves":1,"kept":true,"tensors":[2]}
  {"kind":"slot_fill","phase":"replay","frame":1,"slot":"x0","handle":"h0","wrapper":"w","call":0,"entry_call":0,"path":"arg0","tensor":{"t":11,"s":11,"dtype":"f32","shape":[4],"stride":[1],"off":0}}
  {"kind":"boundary","phase":"replay","frame":1,"wrapper":"w","call":0,"leaf":0,"exec":"replay","input":2}
  {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["session","g"],"boundary":true}
  {"kind":"wrapper_exit","phase":"replay","frame":1,"wrapper":"w","call":0,"exec":"replay","ended_by":"return","outputs":[2],"rng_crc":5}
  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"return"}
)";

/// Events 20 to 22, behind both: the boundary's save and the input are read, the entries dropped.
inline const std::string excluded_reads = R"(
  {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","g"]}
  {"kind":"unpack","phase":"backward","slot":"x0","from":"rederived","graph_task":7,"tensor":{"t":12,"s":11,"dtype":"f32","shape":[4],"stride":[1],"off":0}}
  {"kind":"cache_clear","phase":"backward","frame":1,"entries":0}
)";

/// Events 23 to 27: the record of the call and all storages are gone, and the step ends.
inline const std::string excluded_end = R"(
  {"kind":"frame_free","phase":"backward","frame":1,"unit":"A"}
  {"kind":"storage_free","phase":"backward","storage":1}
  {"kind":"storage_free","phase":"backward","storage":2}
  {"kind":"storage_free","phase":"backward","storage":11}
  {"kind":"step_end","phase":"backward"}
)";

/// The text with `from`, which must be in it once, replaced by `to`. Throws std::logic_error.
std::string with(std::string text, std::string_view from, std::string_view to);
/// Likewise without the one line in which `part` is.
std::string without_line(const std::string& text, std::string_view part);

}  // namespace remat
