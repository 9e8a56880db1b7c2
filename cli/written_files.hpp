#pragma once

#include <string>

namespace remat {

/// `text` as a file, whole or not at all. Throws InputError.
void write_file(const std::string& path, const std::string& text);

/// The folder is there to be written to, made where it was not. Throws InputError.
void make_folder(const std::string& path);

}  // namespace remat
