#pragma once

namespace remat {

/// From now on Ctrl-C (SIGINT) and SIGTERM ask the command to stop at the next event block and to
/// keep what it has.
void catch_interrupts();
bool is_interrupted();

}  // namespace remat
