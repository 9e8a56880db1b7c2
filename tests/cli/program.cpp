#include "tests/cli/program.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/traces/temporary_folder.hpp"

namespace remat {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void redirect(const std::string& path, int flags, int to) {
  const int descriptor = open(path.c_str(), flags, 0600);
  if (descriptor < 0 || dup2(descriptor, to) < 0) _exit(126);
}

}  // namespace

ProgramRun rematsim(const std::vector<std::string>& words, const std::string& input) {
  const TemporaryFolder folder;
  const std::string in = folder / "in";
  const std::string out = folder / "out";
  const std::string err = folder / "err";
  std::ofstream(in, std::ios::binary) << input;
  std::vector<std::string> command = {REMATSIM_PROGRAM};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    if (chdir(REMATSIM_SOURCE_DIR) != 0) _exit(126);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), content(out), content(err)};
}

}  // namespace remat
