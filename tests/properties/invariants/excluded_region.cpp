#include "tests/properties/invariants/excluded_region.hpp"

#include <sstream>
#include <stdexcept>

namespace remat {

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos)
    throw std::logic_error("not there once: " + std::string(from));
  return text.replace(at, from.size(), to);
}

std::string without_line(const std::string& text, std::string_view part) {
  std::string kept;
  int n_dropped = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool drop = line.find(part) != std::string::npos;
    n_dropped += drop ? 1 : 0;
    if (!drop) kept += line + "\n";
  }
  if (n_dropped != 1) throw std::logic_error("not in one line: " + std::string(part));
  return kept;
}

}  // namespace remat
