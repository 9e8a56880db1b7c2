#include "cli/written_files.hpp"

#include <filesystem>

#include "model/errors.hpp"
#include "traces/output_file.hpp"

namespace remat {

void write_file(const std::string& path, const std::string& text) {
  OutputFile file(path);
  file.write(text);
  file.commit();
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw InputError(path + ": " + error.message() + "; expected a folder to write to");
}

}  // namespace remat
