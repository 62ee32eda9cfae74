# SPDX-License-Identifier: Apache-2.0
# pestle_add_plugin(): a backend as a shared library of its own. Works in
# Pestle's tree and, through pestleConfig.cmake, in a plugin's own project.

set(PESTLE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

# pestle_add_plugin(<name> [VARIANT <variant>] SOURCES <files...>
#                   [INCLUDES <directories...>] [DEFINES <definitions...>]
#                   [LIBRARIES <libraries...>])
# Makes target pestle_plugin_<name>[_<variant>] and the file
# backends/libpestle-<name>[-<variant>].so, which exports the functions of
# pestle/plugin.h and nothing else.
function(pestle_add_plugin name)
  cmake_parse_arguments(arg "" "VARIANT"
                        "SOURCES;INCLUDES;DEFINES;LIBRARIES" ${ARGN})
  set(target "pestle_plugin_${name}")
  set(file "pestle-${name}")
  if(arg_VARIANT)
    string(APPEND target "_${arg_VARIANT}")
    string(APPEND file "-${arg_VARIANT}")
  endif()
  add_library(${target} MODULE ${arg_SOURCES})
  if(TARGET pestle::headers)
    target_link_libraries(${target} PRIVATE pestle::headers)
  endif()
  target_include_directories(${target} PRIVATE ${arg_INCLUDES})
  target_compile_definitions(${target} PRIVATE ${arg_DEFINES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES})
  target_link_options(${target} PRIVATE
    -Wl,--exclude-libs,ALL "-Wl,--version-script=${PESTLE_PLUGIN_MAP}"
    -Wl,--build-id=sha1 ${PESTLE_LINK_OPTIONS})
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11
    C_VISIBILITY_PRESET hidden
    PREFIX lib
    SUFFIX .so
    OUTPUT_NAME "${file}"
    LINK_DEPENDS "${PESTLE_PLUGIN_MAP}"
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/backends")
endfunction()
