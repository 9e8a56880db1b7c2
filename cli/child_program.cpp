#include "cli/child_program.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "model/errors.hpp"

namespace remat {
namespace {

[[noreturn]] void cannot_run(const std::string& why) {
  throw InputError("a second process of this program cannot be run: " + why);
}

std::string all_of(int descriptor) {
  std::string text;
  std::array<char, 65536> block{};
  for (;;) {
    const ssize_t n = read(descriptor, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string output_of_this_program(const std::vector<std::string>& words) {
  std::array<int, 2> pipe_ends{};
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0) cannot_run(std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  std::vector<std::string> held = {"rematsim"};
  held.insert(held.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(held.size() + 1);
  for (std::string& word : held)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // What the environment says of campaigns is not for this one.
  std::vector<char*> kept;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with("REMATSIM_")) kept.push_back(*entry);
  kept.push_back(nullptr);
  pid_t child = 0;
  const int error =
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments.data(), kept.data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  if (error != 0) {
    close(pipe_ends[0]);
    cannot_run(std::strerror(error));
  }
  std::string text = all_of(pipe_ends[0]);
  close(pipe_ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
    cannot_run("it ended with status " + std::to_string(status));
  return text;
}

}  // namespace remat
