#pragma once

namespace remat {

/// Such a build is ten to twenty times slower: tests that repeat themselves do so less often in it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool built_with_sanitizers = true;
#else
constexpr bool built_with_sanitizers = false;
#endif

}  // namespace remat
