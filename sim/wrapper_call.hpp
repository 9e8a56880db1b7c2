#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/program.hpp"

namespace remat {

/// A forward call of an excluded region, while its body runs.
struct WrapperCall {
  /// An argument's leaf as it came in: what it was, without keeping it alive.
  struct Input {
    ValueId value{0};
    std::int64_t object = 0;    // the tensor's identity
    std::int64_t storage = 0;   // the storage's: no later one has it
    std::uint32_t address = 0;  // where it lies: once it is gone, another may
    std::uint32_t version = 0;
    bool is_parameter = false;
    bool is_save_output = false;
    bool is_duplicate = false;
  };
  const WrapperBegin* wrapper = nullptr;
  std::uint32_t frame = 0;
  std::int64_t number = 0;
  bool can_have_boundary = false;  // some output leaf requires grad
  std::vector<Input> inputs;
  std::vector<std::uint32_t> slots;
  std::vector<std::int64_t> kept_storages;  // of what the body saves and keeps
};

}  // namespace remat
