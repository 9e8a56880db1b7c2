# What every target of ours is compiled with. Linked privately, so it never reaches a user of a room.
add_library(rematsim_options INTERFACE)
target_compile_features(rematsim_options INTERFACE cxx_std_20)
target_compile_options(rematsim_options INTERFACE
  # For C++ alone: nvcc refuses -Wall.
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wconversion -Wnon-virtual-dtor
    -Wold-style-cast -Woverloaded-virtual -Wimplicit-fallthrough>
  # Where sources are compiled together, what one keeps to itself may be called as another's local is, and a
  # type that only one completes may hold what that one keeps to itself.
  $<$<COMPILE_LANGUAGE:CXX>:$<IF:$<BOOL:${REMATSIM_UNITY}>,$<$<CXX_COMPILER_ID:GNU>:-Wshadow=local;-Wno-subobject-linkage>,-Wshadow>>
  # What broke is named as in the tree, wherever that was built.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  # g++ 12 at -O3 warns of overlap inside libstdc++ for `"text" + string` (GCC bug 105651).
  # and of copies of an impossible size once whole programs are optimised (GCC bug 105329).
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${REMATSIM_WERROR}>>:-Werror>)

target_link_options(rematsim_options INTERFACE
  $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)

if(REMATSIM_SANITIZE)
  list(JOIN REMATSIM_SANITIZE "," sanitizers)
  # Undefined behaviour must fail the test that meets it, not only print.
  target_compile_options(rematsim_options INTERFACE
    -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rematsim_options INTERFACE -fsanitize=${sanitizers})
endif()

if(REMATSIM_FUZZ)
  # Coverage for libFuzzer in every room; only a fuzz target itself links libFuzzer's main.
  target_compile_options(rematsim_options INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(rematsim_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
