# SPDX-License-Identifier: Apache-2.0
# pestle_add_extension(): ops of one's own as a shared library, which
# pestle_context_load_extension() loads.

# pestle_add_extension(<name> SOURCES <files...> [TEXTS <files...>]
#                      [LIBRARIES <libraries...>])
# Makes target <name> and the file lib<name>.so, which is linked to libpestle.so and
# exports pestle_extension_init(). TEXTS, sources of kernels, become arrays of char in
# the header <name>_texts.h: of axpby.cu.txt axpby_cu, which ends in 0.
function(pestle_add_extension name)
  cmake_parse_arguments(arg "" "" "SOURCES;TEXTS;LIBRARIES" ${ARGN})
  add_library(${name} MODULE ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE pestle::pestle ${arg_LIBRARIES})
  set_target_properties(${name} PROPERTIES
    C_STANDARD 11
    C_VISIBILITY_PRESET hidden
    PREFIX lib
    SUFFIX .so)
  if(NOT arg_TEXTS)
    return()
  endif()
  set(header "// Made of ${arg_TEXTS}.\n")
  foreach(text IN LISTS arg_TEXTS)
    cmake_path(ABSOLUTE_PATH text BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
               OUTPUT_VARIABLE path)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    cmake_path(GET text FILENAME array)
    string(REGEX REPLACE "\\.txt$" "" array "${array}")
    string(MAKE_C_IDENTIFIER "${array}" array)
    file(READ "${path}" bytes HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    string(APPEND header "static const char ${array}[] = {${bytes}0};\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${name}_texts.h"
       CONTENT "${header}" @ONLY)
  target_include_directories(${name} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
