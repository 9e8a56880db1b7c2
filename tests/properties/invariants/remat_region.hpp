#pragma once

#include <string>

namespace remat {

// A sound trace with regions of torch_remat in it, as the simulator writes it, in parts that tests
// put together and change: region A (frame 1) takes the sine of its input and gives it to the saved
// region r, whose body saves two rows of it (slot A.r) and something of its own (slot r0); the
// recomputed region c reads what r returns. The replay is session g's.

/// Events 1 to 15.
inline const std::string remat_forward = R"(
  {"kind":"unit_begin","phase":"forward","unit":"A","inv":0,"frame":1,"exec":"forward"}
  {"kind":"op","phase":"forward","unit":"A","name":"sin","inputs":[],"outputs":[{"t":1,"s":1,"dtype":"f32","shape":[4],"stride":[1],"off":0,"bytes":16}]}
  {"kind":"region_begin","phase":"forward","unit":"A","frame":1,"region":"r","policy":"save","body":"run"}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"slot":"A.r","held":"placeholder","role":"remat_saved_input","region":"r","path":"arg0","view":true,"tensor":{"t":2,"s":1,"dtype":"f32","shape":[2],"stride":[1],"off":2,"value":7}}
  {"kind":"op","phase":"forward","unit":"A","name":"square","inputs":[2],"outputs":[{"t":3,"s":3,"dtype":"f32","shape":[2],"stride":[1],"off":0,"bytes":8}]}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"slot":"r0","held":"saved","role":"remat_save","region":"r","tensor":{"t":3,"s":3,"dtype":"f32","shape":[2],"stride":[1],"off":0,"value":49}}
  {"kind":"op","phase":"forward","unit":"A","name":"cos","inputs":[3],"outputs":[{"t":4,"s":4,"dtype":"f32","shape":[2],"stride":[1],"off":0,"bytes":8}]}
  {"kind":"region_end","phase":"forward","unit":"A","frame":1,"region":"r","policy":"save"}
  {"kind":"region_begin","phase":"forward","unit":"A","frame":1,"region":"c","policy":"recompute","body":"run"}
  {"kind":"remat_persist","phase":"forward","unit":"A","frame":1,"region":"r","output":0,"tensor":{"t":5,"s":4,"dtype":"f32","shape":[2],"stride":[1],"off":0}}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":0,"slot":"A.0","held":"placeholder","role":"checkpointed","tensor":{"t":4,"s":4,"dtype":"f32","shape":[2],"stride":[1],"off":0,"value":5}}
  {"kind":"op","phase":"forward","unit":"A","name":"exp","inputs":[4],"outputs":[{"t":6,"s":6,"dtype":"f32","shape":[2],"stride":[1],"off":0,"bytes":8}]}
  {"kind":"region_end","phase":"forward","unit":"A","frame":1,"region":"c","policy":"recompute"}
  {"kind":"pack","phase":"forward","unit":"A","inv":0,"frame":1,"idx":1,"slot":"A.1","held":"placeholder","role":"checkpointed","boundary":true}
  {"kind":"unit_end","phase":"forward","unit":"A","frame":1,"exec":"forward"}
)";

/// Events 16 to 27, behind it.
inline const std::string remat_replay = R"(
  {"kind":"unit_begin","phase":"replay","unit":"A","inv":0,"frame":1,"exec":"replay","gid":["session","g"]}
  {"kind":"op","phase":"replay","unit":"A","name":"sin","inputs":[],"outputs":[{"t":11,"s":11,"dtype":"f32","shape":[4],"stride":[1],"off":0,"bytes":16}]}
  {"kind":"region_begin","phase":"replay","unit":"A","frame":1,"region":"r","policy":"save","body":"skipped"}
  {"kind":"remat_rederive","phase":"replay","unit":"A","frame":1,"region":"r","gid":["session","g"],"recipes":[{"path":"arg0","view":true,"alive":true}]}
  {"kind":"repack","phase":"replay","slot":"A.r","gid":["session","g"],"tensor":{"t":12,"s":11,"dtype":"f32","shape":[2],"stride":[1],"off":2,"value":7}}
  {"kind":"remat_serve","phase":"replay","unit":"A","frame":1,"region":"r","output":0,"popped":true,"tensor":{"t":5,"s":4,"dtype":"f32","shape":[2],"stride":[1],"off":0}}
  {"kind":"region_end","phase":"replay","unit":"A","frame":1,"region":"r","policy":"save"}
  {"kind":"region_begin","phase":"replay","unit":"A","frame":1,"region":"c","policy":"recompute","body":"run"}
  {"kind":"repack","phase":"replay","frame":1,"idx":0,"gid":["session","g"],"tensor":{"t":15,"s":4,"dtype":"f32","shape":[2],"stride":[1],"off":0,"value":5}}
  {"kind":"op","phase":"replay","unit":"A","name":"exp","inputs":[15],"outputs":[{"t":16,"s":16,"dtype":"f32","shape":[2],"stride":[1],"off":0,"bytes":8}]}
  {"kind":"repack","phase":"replay","frame":1,"idx":1,"gid":["session","g"],"boundary":true}
  {"kind":"unit_end","phase":"replay","unit":"A","frame":1,"exec":"replay","ended_by":"_StopRecomputationError"}
)";

/// Events 28 to 31, behind both: the trigger's save, c's, then what r saved.
inline const std::string remat_reads = R"(
  {"kind":"unpack","phase":"backward","slot":"A.1","gid":["session","g"]}
  {"kind":"unpack","phase":"backward","slot":"A.0","gid":["session","g"],"tensor":{"t":15,"s":4,"dtype":"f32","shape":[2],"stride":[1],"off":0,"value":5}}
  {"kind":"unpack","phase":"backward","slot":"r0","gid":["session","g"],"tensor":{"t":3,"s":3,"dtype":"f32","shape":[2],"stride":[1],"off":0,"value":49}}
  {"kind":"unpack","phase":"backward","slot":"A.r","gid":["session","g"],"from":"rederived","tensor":{"t":12,"s":11,"dtype":"f32","shape":[2],"stride":[1],"off":2,"value":7}}
)";

}  // namespace remat
