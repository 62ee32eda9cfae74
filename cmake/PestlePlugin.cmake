# SPDX-License-Identifier: Apache-2.0
# pestle_add_plugin(): a backend as a shared library of its own. Works in
# Pestle's tree and, through pestleConfig.cmake, in a plugin's own project.

set(PESTLE_PLUGIN_MAP "${CMAKE_CURRENT_LIST_DIR}/plugin.map")

# pestle_add_plugin(<name> [VARIANT <variant>] SOURCES <files...>
#                   [INCLUDES <directories...>] [DEFINES <definitions...>]
#                   [LIBRARIES <libraries...>])
# Makes target pestle_plugin_<name>[_<variant>] and the file
# backends/libpestle-<name>[-<variant>].so, which exports the functions of
# pestle/plugin.h and nothing else. And target pestle_static_<name>[_<variant>],
# built only when something links to it: the same backend for a host that has it
# in itself, with the functions pestle_<name>_backend_abi_info, ..._init and,
# if it has one, ..._score, for pestle_context_add_backend().
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
  string(REPLACE "pestle_plugin_" "pestle_static_" static "${target}")
  pestle_add_static_plugin_("${static}" "${name}")
endfunction()

# All objects in one, of which only the entry points can be seen: two backends
# in a program may have functions of the same name. The files that write those points are
# compiled a second time, for their names; the others are the shared library's.
function(pestle_add_static_plugin_ target name)
  set(entries "")
  set(plugin "")
  set(shared "")
  foreach(source IN LISTS arg_SOURCES)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    if(EXISTS "${path}")
      file(STRINGS "${path}" uses REGEX "PESTLE_BACKEND_(IMPL|SCORE|ENTRY)" LIMIT_COUNT 1)
      if(uses)
        list(APPEND entries "${source}")
      endif()
    endif()
  endforeach()
  if(entries)
    string(REPLACE "pestle_static_" "pestle_plugin_" plugin "${target}")
    set(shared "$<TARGET_OBJECTS:${plugin}>")
    foreach(entry IN LISTS entries)
      cmake_path(GET entry FILENAME file)
      string(REPLACE "." "[.]" file "${file}")
      set(shared "$<FILTER:${shared},EXCLUDE,/${file}[.]o(bj)?$>")
    endforeach()
  else()
    set(entries ${arg_SOURCES})
  endif()
  add_library(${target}_objects OBJECT EXCLUDE_FROM_ALL ${entries})
  if(TARGET pestle::headers)
    target_link_libraries(${target}_objects PRIVATE pestle::headers)
  endif()
  target_include_directories(${target}_objects PRIVATE ${arg_INCLUDES})
  target_compile_definitions(${target}_objects PRIVATE ${arg_DEFINES}
                             PESTLE_BACKEND_PREFIX=${name})
  target_link_libraries(${target}_objects PRIVATE ${arg_LIBRARIES})
  set_target_properties(${target}_objects PROPERTIES
    C_STANDARD 11 C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON)
  set(whole "${CMAKE_CURRENT_BINARY_DIR}/${target}_whole.o")
  set(object "${CMAKE_CURRENT_BINARY_DIR}/${target}.o")
  set(kept "")
  foreach(entry abi_info score init)
    list(APPEND kept "--keep-global-symbol=pestle_${name}_backend_${entry}")
  endforeach()
  add_custom_command(OUTPUT "${object}"
    COMMAND "${CMAKE_C_COMPILER}" -r -nostdlib -o "${whole}"
            "$<TARGET_OBJECTS:${target}_objects>" "${shared}"
    COMMAND "${CMAKE_OBJCOPY}" ${kept} "${whole}" "${object}"
    DEPENDS ${target}_objects "$<TARGET_OBJECTS:${target}_objects>"
            ${plugin} "${shared}"
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Joining ${target}")
  add_library(${target} STATIC EXCLUDE_FROM_ALL "${object}")
  set_source_files_properties("${object}" PROPERTIES
    EXTERNAL_OBJECT ON GENERATED ON)
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(${target} INTERFACE ${arg_LIBRARIES})
endfunction()
