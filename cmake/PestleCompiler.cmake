# SPDX-License-Identifier: Apache-2.0
# Flags of all our targets, in the interface target pestle_flags.

get_property(pestle_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(NOT pestle_multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT DEFINED CMAKE_C_COMPILER_LAUNCHER)
  find_program(PESTLE_CCACHE ccache)
  if(PESTLE_CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER "${PESTLE_CCACHE}")
  endif()
endif()

add_library(pestle_flags INTERFACE)
target_compile_options(pestle_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wswitch-enum
  -Wstrict-prototypes -Wmissing-prototypes -Wvla
  # gcc does not see that what a function writes on success was written where
  # PESTLE_TRY() went on; clang's warnings have no such trouble.
  $<$<C_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # An enumerator is how C names an integer constant: the cost model's stand beside
  # doubles, and tables add one to another.
  "$<$<C_COMPILER_ID:Clang,AppleClang>:-Wno-enum-float-conversion;-Wno-enum-enum-conversion>"
  # Which multiply-adds are contracted is Pestle's decision, and the reference
  # evaluators must not depend on the compiler that built them.
  -ffp-contract=off -fno-math-errno
  -ffunction-sections -fdata-sections
  # Statuses carry __FILE__: relative to the sources, whoever built it.
  "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/="
  "-fmacro-prefix-map=${PROJECT_BINARY_DIR}/=")
if(PESTLE_WERROR)
  target_compile_options(pestle_flags INTERFACE -Werror)
endif()

# POSIX and Linux names for the *_posix.c files; harmless elsewhere.
target_compile_definitions(pestle_flags INTERFACE _GNU_SOURCE)

set(PESTLE_LINK_OPTIONS -Wl,--gc-sections -Wl,--build-id=sha1)
if(PESTLE_SANITIZE)
  string(REPLACE ";" "," PESTLE_SANITIZE "${PESTLE_SANITIZE}")
  target_compile_options(pestle_flags INTERFACE
    -fsanitize=${PESTLE_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(pestle_flags INTERFACE -fsanitize=${PESTLE_SANITIZE})
else()
  # A sanitizer's runtime is left undefined in shared libraries.
  list(APPEND PESTLE_LINK_OPTIONS -Wl,-z,defs)
endif()

# Of what parses, plans, caches and loads (tools/reliability/coverage.py).
set(PESTLE_COVERAGE_FLAGS "")
if(PESTLE_COVERAGE)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PESTLE_COVERAGE needs clang: -DCMAKE_C_COMPILER=clang-19")
  endif()
  set(PESTLE_COVERAGE_FLAGS -O1 -fprofile-instr-generate -fcoverage-mapping
      -fcoverage-mcdc)
  # Programs that end while threads of theirs count must not lose counts.
  list(APPEND PESTLE_COVERAGE_FLAGS -fprofile-update=atomic)
  target_link_options(pestle_flags INTERFACE -fprofile-instr-generate)
  pestle_report("coverage" "built" "" "")
endif()

set(PESTLE_FUZZ_ENABLED OFF)
if(PESTLE_FUZZ)
  if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    set(PESTLE_FUZZ_ENABLED ON)
    target_compile_options(pestle_flags INTERFACE -fsanitize=fuzzer-no-link)
    pestle_report("fuzz targets" "built" "" "")
  else()
    pestle_report("fuzz targets" "left out" "libFuzzer needs clang"
                  "clang-19 libclang-rt-19-dev")
  endif()
endif()

# GCC clears structs of more than 96 bytes by `rep stos`, which begins slowly and whose
# bytes the loads behind it wait for: for what is called often.
include(CheckCCompilerFlag)
set(quick_clears "-mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign")
check_c_compiler_flag("${quick_clears}" PESTLE_HAS_MEMSET_STRATEGY)
set(PESTLE_QUICK_CLEARS "")
if(PESTLE_HAS_MEMSET_STRATEGY)
  set(PESTLE_QUICK_CLEARS "${quick_clears}")
endif()

find_package(Threads REQUIRED)
