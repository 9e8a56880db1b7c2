# Sources that are compiled together share what they include: a whole build takes a third of the time. That
# a source of the rooms stands alone is shown by the preset release, which has no REMATSIM_UNITY.
option(REMATSIM_UNITY "Compile several sources of a target at once" OFF)
set(REMATSIM_UNITY_SIZE 8)

# rematsim_unity(TARGET): call it when the target has all its sources.
function(rematsim_unity target)
  if(NOT REMATSIM_UNITY)
    return()
  endif()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE paths)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/cmake/unity_groups.py ${REMATSIM_UNITY_SIZE} ${paths}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    OUTPUT_VARIABLE numbers OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" numbers "${numbers}")
  foreach(source number IN ZIP_LISTS sources numbers)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP group_${number})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP
    # clang-tidy reads these units as well.
    UNITY_BUILD_CODE_BEFORE_INCLUDE "// NOLINTNEXTLINE(bugprone-suspicious-include)")
endfunction()
