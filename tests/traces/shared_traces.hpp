#pragma once

#include <string>
#include <vector>

namespace remat {

/// The traces that we have from elsewhere, recordings and hand-made cases, in the order of their
/// paths: those of $REMATSIM_SHARED (../shared where that is not set); where there is no such
/// folder, those under traces/recorded, with a line that says so.
std::vector<std::string> traces_of_others();

/// The same; in a build with sanitizers, which is ten times slower, every tenth of them.
std::vector<std::string> some_traces_of_others();

/// What stands in `path`, unpacked.
std::string unpacked_bytes(const std::string& path);

}  // namespace remat
