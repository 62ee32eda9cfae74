# SPDX-License-Identifier: Apache-2.0
# libpestle.so: all folders in one shared library; and libpestle.a, the same for
# programs that have Pestle in themselves. Plugins load into either, since they
# link against nothing of the host.

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
# Calls of our own exported functions go straight there.
target_link_options(pestle PRIVATE ${PESTLE_LINK_OPTIONS} -Wl,-Bsymbolic-functions)
target_include_directories(pestle PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(pestle PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION 0
  LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
pestle_report("libpestle.so" "built" "" "")

set(objects "")
foreach(part IN LISTS pestle_parts)
  list(APPEND objects "$<TARGET_OBJECTS:${part}>")
endforeach()
add_library(pestle_static STATIC ${objects})
add_library(pestle::static ALIAS pestle_static)
target_link_libraries(pestle_static PUBLIC Threads::Threads ${CMAKE_DL_LIBS} m)
foreach(name IN LISTS PESTLE_STATIC_PLUGINS)
  target_link_libraries(pestle_static PRIVATE pestle_linked_${name})
endforeach()
target_include_directories(pestle_static PUBLIC
  "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
  "$<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>"
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
set_target_properties(pestle_static PROPERTIES
  OUTPUT_NAME pestle
  EXPORT_NAME static
  LINKER_LANGUAGE C
  ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
pestle_report("libpestle.a" "built" "" "")
