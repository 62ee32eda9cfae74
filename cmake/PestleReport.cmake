# SPDX-License-Identifier: Apache-2.0
# The table that configure ends with: what is built, what is left out and which
# Debian package would bring it.

# pestle_report(<component> <built|left out> <why> <package>)
function(pestle_report component state why package)
  if(NOT package)
    set(package "-")
  endif()
  set_property(GLOBAL APPEND PROPERTY PESTLE_REPORT
               "${component}|${state}|${why}|${package}")
endfunction()

function(pestle_pad_ text width out_text)
  string(LENGTH "${text}" length)
  math(EXPR missing "${width} - ${length}")
  if(missing GREATER 0)
    string(REPEAT " " ${missing} spaces)
    string(APPEND text "${spaces}")
  endif()
  set(${out_text} "${text}" PARENT_SCOPE)
endfunction()

function(pestle_print_report)
  get_property(rows GLOBAL PROPERTY PESTLE_REPORT)
  list(PREPEND rows "component|state|why|Debian package")
  message(STATUS "Pestle ${PROJECT_VERSION}:")
  foreach(row IN LISTS rows)
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 component)
    list(GET cells 1 state)
    list(GET cells 2 why)
    list(GET cells 3 package)
    pestle_pad_("${component}" 22 component)
    pestle_pad_("${state}" 9 state)
    pestle_pad_("${why}" 44 why)
    message(STATUS "  ${component} ${state} ${why} ${package}")
  endforeach()
endfunction()
