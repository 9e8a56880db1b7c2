# A simulated op is a handful of small allocations; this library's are faster than libc's. A
# sanitizer brings its own. Nothing but speed depends on it.
find_library(REMATSIM_TCMALLOC tcmalloc_minimal)
if(NOT REMATSIM_TCMALLOC OR REMATSIM_SANITIZE)
  message(STATUS "rematsim is built without tcmalloc")
endif()

function(rematsim_fast_allocation target)
  if(REMATSIM_TCMALLOC AND NOT REMATSIM_SANITIZE)
    target_link_libraries(${target} PRIVATE ${REMATSIM_TCMALLOC})
  endif()
endfunction()
