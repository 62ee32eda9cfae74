# SPDX-License-Identifier: Apache-2.0
# libpestle.so: all folders in one shared library.

get_property(pestle_parts GLOBAL PROPERTY PESTLE_PARTS)

add_library(pestle SHARED "${PROJECT_SOURCE_DIR}/cmake/empty.c")
add_library(pestle::pestle ALIAS pestle)
foreach(part IN LISTS pestle_parts)
  # Whole archives, since the exported functions are called from outside.
  target_link_libraries(pestle PRIVATE
    "$<LINK_LIBRARY:WHOLE_ARCHIVE,${part}>")
endforeach()
target_link_libraries(pestle PRIVATE pestle_flags Threads::Threads
                      ${CMAKE_DL_LIBS} m)
target_link_options(pestle PRIVATE ${PESTLE_LINK_OPTIONS})
target_include_directories(pestle PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(pestle PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION 0
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
pestle_report("libpestle.so" "built" "" "")
