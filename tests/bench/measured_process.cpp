#include "tests/bench/measured_process.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>

namespace remat {
namespace {

std::int64_t microseconds(const timeval& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1000000 + static_cast<std::int64_t>(time.tv_usec);
}

}  // namespace

ProcessCost measured_process(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command)
    arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) < 0)
    throw std::runtime_error("cannot wait for " + command.front());
  const auto end = std::chrono::steady_clock::now();
  if (!WIFEXITED(status) || WEXITSTATUS(status) == 127)
    throw std::runtime_error(command.front() + " cannot be run");
  return {microseconds(usage.ru_utime) + microseconds(usage.ru_stime),
          std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count(),
          static_cast<std::int64_t>(usage.ru_maxrss) * 1024, WEXITSTATUS(status)};
}

}  // namespace remat
