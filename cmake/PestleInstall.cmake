# SPDX-License-Identifier: Apache-2.0
# Headers, libpestle.so, backends, the command, and what finds them again:
# pestleConfig.cmake and pestle.pc; the manual page, completions, documents and examples.
# pestle_product is all that is installed and needs to be built, without tests.

include(CMakePackageConfigHelpers)

set(PESTLE_BACKEND_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/pestle/backends")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/pestle")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/pestle"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" COMPONENT dev
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(FILES "${PROJECT_BINARY_DIR}/include/pestle/version.h"
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/pestle" COMPONENT dev)

# What a plugin needs: the headers and nothing to link.
add_library(pestle_headers INTERFACE)
set_target_properties(pestle_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(pestle_headers INTERFACE
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")

set(product pestle)
install(TARGETS pestle pestle_headers EXPORT pestleTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
# An installed archive cannot name the objects of a linked-in plugin.
if(NOT PESTLE_STATIC_PLUGINS)
  install(TARGETS pestle_static EXPORT pestleTargets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT dev)
  list(APPEND product pestle_static)
endif()
get_property(plugins GLOBAL PROPERTY PESTLE_PLUGINS)
if(plugins)
  install(TARGETS ${plugins}
          LIBRARY DESTINATION "${PESTLE_BACKEND_INSTALL_DIR}")
endif()
if(TARGET pestle_pjrt)
  install(TARGETS pestle_pjrt LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/python/jax_plugins"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pestle/python"
          FILES_MATCHING PATTERN "*.py")
endif()
if(TARGET pestle_command)
  install(TARGETS pestle_command
          RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(DIRECTORY "${PROJECT_BINARY_DIR}/share/" DESTINATION "${CMAKE_INSTALL_DATADIR}")
  if(TARGET pestle_conform)
    install(TARGETS pestle_conform
            RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT dev)
  endif()
endif()

install(EXPORT pestleTargets NAMESPACE pestle:: DESTINATION "${package_dir}"
        COMPONENT dev)
configure_package_config_file(
  "${PROJECT_SOURCE_DIR}/cmake/pestleConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/pestleConfig.cmake"
  INSTALL_DESTINATION "${package_dir}"
  PATH_VARS PESTLE_BACKEND_INSTALL_DIR)
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/pestleConfigVersion.cmake"
  COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/pestleConfig.cmake"
              "${PROJECT_BINARY_DIR}/pestleConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/PestleExtension.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/PestlePlugin.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/plugin.map"
        DESTINATION "${package_dir}" COMPONENT dev)

# pestle.pc states paths relative to itself, so that the tree can be moved.
file(RELATIVE_PATH PESTLE_PC_PREFIX
     "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" PESTLE_PC_PREFIX "${PESTLE_PC_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/pestle.pc.in"
               "${PROJECT_BINARY_DIR}/pestle.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/pestle.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT dev)

# Documents lie as in the sources, so that their links lead somewhere. The extension and
# the backend there are projects of their own, which find_package(pestle) builds.
set(documents "${CMAKE_INSTALL_DATADIR}/doc/pestle")
foreach(file README.md CHANGELOG.md CONTRIBUTING.md LICENSE bench/README.md)
  cmake_path(GET file PARENT_PATH folder)
  install(FILES "${PROJECT_SOURCE_DIR}/${file}" DESTINATION "${documents}/${folder}")
endforeach()
foreach(folder docs examples plugins/example)
  cmake_path(GET folder PARENT_PATH above)
  # examples/CMakeLists.txt builds them as tests of this tree.
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}" DESTINATION "${documents}/${above}"
          PATTERN "__pycache__" EXCLUDE
          REGEX "/examples/CMakeLists.txt$" EXCLUDE)
endforeach()

foreach(target ${plugins} pestle_pjrt pestle_python pestle_command pestle_conform
        pestle_texts)
  if(TARGET ${target})
    list(APPEND product ${target})
  endif()
endforeach()
add_custom_target(pestle_product DEPENDS ${product})
