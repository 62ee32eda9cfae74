# SPDX-License-Identifier: Apache-2.0
# Run by the build: hashes the files that GLOBS matches and writes OUTPUT, a
# header that defines MACRO, only when the hash is a new one.
file(GLOB_RECURSE files ${GLOBS})
list(SORT files)
set(text "${SALT}\n")
foreach(file IN LISTS files)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${ROOT}" OUTPUT_VARIABLE name)
  file(SHA256 "${file}" hash)
  string(APPEND text "${hash} ${name}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING "${id}" 0 32 id)
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT
"// Written by cmake/write_build_id.cmake.
#define @MACRO@ \"@id@\"
")
