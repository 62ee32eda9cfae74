# SPDX-License-Identifier: Apache-2.0
# pestle/version.h (numbers only, so that it never causes a rebuild) and the
# build id: a hash of the sources and the compiler, computed at each build and
# written only when it changed, in a header that one small file includes.

configure_file("${PROJECT_SOURCE_DIR}/cmake/version.h.in"
               "${PROJECT_BINARY_DIR}/include/pestle/version.h" @ONLY)

# pestle_build_id(<target> <header> <MACRO> <folders...>)
# A plugin's header (MACRO is PESTLE_PLUGIN_BUILD_ID) tells the host's id too, by
# which the host knows its own build's plugins.
function(pestle_build_id target header macro)
  set(globs "")
  foreach(folder IN LISTS ARGN)
    list(APPEND globs "${PROJECT_SOURCE_DIR}/${folder}/*.[ch]"
         "${PROJECT_SOURCE_DIR}/${folder}/*.def"
         "${PROJECT_SOURCE_DIR}/${folder}/*.in")
  endforeach()
  string(CONCAT salt "${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} "
         "${CMAKE_BUILD_TYPE} ${CMAKE_C_FLAGS} ${PESTLE_SANITIZE} "
         "${PESTLE_RUNTIME_ONLY} ${PROJECT_VERSION}")
  set(host "")
  if(macro STREQUAL "PESTLE_PLUGIN_BUILD_ID")
    set(host "${PESTLE_GENERATED}/pestle_build_id.h")
  endif()
  add_custom_target(${target}
    COMMAND "${CMAKE_COMMAND}" "-DHOST_HEADER=${host}"
      "-DROOT=${PROJECT_SOURCE_DIR}" "-DGLOBS=${globs}"
      "-DSALT=${salt}" "-DMACRO=${macro}" "-DOUTPUT=${header}"
      -P "${PROJECT_SOURCE_DIR}/cmake/write_build_id.cmake"
    BYPRODUCTS "${header}"
    COMMENT "Computing ${macro}" VERBATIM)
  if(host)
    add_dependencies(${target} pestle_build_id_header)
  endif()
endfunction()

set(PESTLE_GENERATED "${PROJECT_BINARY_DIR}/generated")
pestle_build_id(pestle_build_id_header
  "${PESTLE_GENERATED}/pestle_build_id.h" PESTLE_BUILD_ID
  include base ir frontend passes codegen compile runtime plugins/ref)
