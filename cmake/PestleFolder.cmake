# SPDX-License-Identifier: Apache-2.0
# One static library per folder. A folder sees others through a directory of
# symbolic links that holds only those that it may include, so that a wrong
# #include does not compile. tools/check_includes.py checks the same rules on
# the text.

# Makes <build>/inc/<name> with links to the given folders of the source tree.
function(pestle_include_view name out_directory)
  set(view "${PROJECT_BINARY_DIR}/inc/${name}")
  file(REMOVE_RECURSE "${view}")
  foreach(folder IN LISTS ARGN)
    cmake_path(GET folder PARENT_PATH parent)
    file(MAKE_DIRECTORY "${view}/${parent}")
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/${folder}" "${view}/${folder}"
         SYMBOLIC)
  endforeach()
  set(${out_directory} "${view}" PARENT_SCOPE)
endfunction()

# The sources in this folder, or the one that is named behind (and below with RECURSE),
# found anew at each build.
function(pestle_glob out_sources recurse)
  set(folder "${CMAKE_CURRENT_SOURCE_DIR}" ${ARGN})
  list(GET folder -1 folder)
  set(mode GLOB)
  if(recurse)
    set(mode GLOB_RECURSE)
  endif()
  file(${mode} sources CONFIGURE_DEPENDS "${folder}/*.c")
  list(SORT sources)
  set(${out_sources} "${sources}" PARENT_SCOPE)
endfunction()

# pestle_add_folder(<target> SEES <folders...> [LIBRARIES <libs...>]
#                   [FOLDER <below this one>] [SOURCES <files...>] [RECURSE]
#                   [EXCLUDE <regex>] [SMALL])
# A folder without sources makes no target. SMALL: a release build optimises it by -O2,
# where -O3 makes code a quarter larger and nothing that can be measured faster.
function(pestle_add_folder target)
  cmake_parse_arguments(arg "RECURSE;SMALL" "EXCLUDE;FOLDER" "SEES;LIBRARIES;SOURCES"
                        ${ARGN})
  set(home "${CMAKE_CURRENT_SOURCE_DIR}")
  if(arg_FOLDER)
    string(APPEND home "/${arg_FOLDER}")
  endif()
  cmake_path(RELATIVE_PATH home
             BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE folder)
  if(arg_SOURCES)
    cmake_path(GET arg_SOURCES FILENAME file)
    string(APPEND folder "/${file}")
  else()
    pestle_glob(arg_SOURCES "${arg_RECURSE}" "${home}")
    if(arg_EXCLUDE)
      list(FILTER arg_SOURCES EXCLUDE REGEX "${arg_EXCLUDE}")
    endif()
  endif()
  if(NOT arg_SOURCES)
    pestle_report("${folder}" "left out" "has no sources yet" "")
    return()
  endif()
  pestle_include_view(${target} view ${arg_SEES})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target} PRIVATE
    "${view}" "${PROJECT_SOURCE_DIR}/include"
    "${PROJECT_BINARY_DIR}/include")
  if(arg_SMALL)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  target_link_libraries(${target} PRIVATE pestle_flags ${arg_LIBRARIES})
  if(target MATCHES "^pestle_(frontend|ir|compile|runtime)")
    target_compile_options(${target} PRIVATE ${PESTLE_COVERAGE_FLAGS})
  endif()
  # The public functions of the folder are exported when it becomes a part of
  # libpestle.so; everything else is hidden.
  set_property(GLOBAL APPEND PROPERTY PESTLE_PARTS ${target})
  pestle_report("${folder}" "built" "" "")
endfunction()
