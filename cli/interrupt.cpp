#include "cli/interrupt.hpp"

#include <csignal>

namespace remat {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void remember(int) {
  interrupted = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second Ctrl-C ends the program at once
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool is_interrupted() {
  return interrupted != 0;
}

}  // namespace remat
