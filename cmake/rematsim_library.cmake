# One room, one target:
#
#   rematsim_library(traces SOURCES reader.cpp … USES model PUBLIC_LIBS … PRIVATE_LIBS simdjson::simdjson)
#
# makes rematsim::traces. USES names the rooms that it may include; tests/tidy_test.cpp holds the includes
# against the same table, because headers resolve from the repository root and linking alone would not.
# A room without SOURCES has no code of its own yet: it is an INTERFACE target that hands on what it uses.
function(rematsim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;PUBLIC_LIBS;PRIVATE_LIBS" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "rematsim_library(${name}): what is '${ARG_UNPARSED_ARGUMENTS}'?")
  endif()
  list(TRANSFORM ARG_USES PREPEND rematsim::)

  if(ARG_SOURCES)
    add_library(rematsim_${name} STATIC ${ARG_SOURCES})
    rematsim_unity(rematsim_${name})
    set(visibility PUBLIC)
    target_link_libraries(rematsim_${name} PRIVATE $<BUILD_INTERFACE:rematsim_options> ${ARG_PRIVATE_LIBS})
  else()
    add_library(rematsim_${name} INTERFACE)
    set(visibility INTERFACE)
  endif()
  add_library(rematsim::${name} ALIAS rematsim_${name})
  target_include_directories(rematsim_${name} ${visibility} ${PROJECT_SOURCE_DIR})
  target_link_libraries(rematsim_${name} ${visibility} ${ARG_USES} ${ARG_PUBLIC_LIBS})
endfunction()
