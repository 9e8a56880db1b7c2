#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace remat {

/// A file that appears whole or not at all: written under a temporary name in the same folder,
/// renamed by `commit`, removed where that is never called. gzip where the name ends in `.gz`; `-`
/// is standard output. All throw InputError.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  void write(std::string_view bytes);
  void commit();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace remat
