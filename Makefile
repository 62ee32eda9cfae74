# SPDX-License-Identifier: Apache-2.0
# What a person types in a fresh clone. Everything below is also plain CMake:
# cmake --preset release && cmake --build --preset release
#
#   make demo     runs a real model and shows every stage of it
#   make test     builds and runs all tests but the long ones
#   make check    make test, then the sanitizers, the long tests and fuzzing
#   make check-math  vector math on every float there is (part of make check)
#   make build    builds build/release
#   make wheels   builds the Python packages into build/wheels
#   make docs     builds the site of the documentation into build/docs
#   make dist     a tarball and a .deb for machines without compilers, build/dist
#   make install  installs it: PREFIX=/usr/local, DESTDIR=
#   make format   clang-format on our sources
#   make clean    removes build/, but for the Python environment
#
# Packages that are missing are installed first (tools/setup.sh says which).
# JOBS=N limits parallel work, PESTLE_WERROR=ON makes warnings errors,
# PESTLE_PYTHON=FILE uses that Python instead of build/venv.

SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: demo test check check-math build docs product install wheels dist format clean

JOBS ?= $(shell nproc)
PESTLE_WERROR ?= OFF
PREFIX ?= /usr/local
# Taken for a build folder that is new; one that exists keeps its generator.
export CMAKE_GENERATOR ?= Ninja

PYTHON := $(or $(PESTLE_PYTHON),$(CURDIR)/build/venv/bin/python)
CONFIGURE = cmake -DPESTLE_PYTHON=$(PYTHON) --preset
CTEST = ctest --output-on-failure --no-tests=error -j $(JOBS)

build:
	@tools/setup.sh build
	@cmake --preset release -DPESTLE_WERROR=$(PESTLE_WERROR)
	@cmake --build --preset release -j $(JOBS)

demo: build
	@tools/setup.sh demo
	@bash tools/demo.sh build/release

test:
	@tools/setup.sh test
	@$(CONFIGURE) release -DPESTLE_WERROR=$(PESTLE_WERROR)
	@cmake --build --preset release -j $(JOBS)
	@$(CTEST) --test-dir build/release -LE long

# What clang's AddressSanitizer, which is linked into each program, has no part
# in: Python loads the library without it, and leaks of LLVM and PoCL come
# without the frames that lsan.supp names. GCC's runs them (docs/testing.md).
NOT_CLANG_ASAN := ^(golden|python_.*|install_.*|plugin_abi_static)$$|opencl|test_compile_(custom_.*|source)$$

check:
	@tools/setup.sh check
	@$(MAKE) --no-print-directory test PESTLE_WERROR=ON
	@for preset in asan tsan; do \
	  $(CONFIGURE) $$preset && \
	  cmake --build --preset $$preset -j $(JOBS) && \
	  $(CTEST) --test-dir build/$$preset -LE long || exit 1; \
	done
	@$(CTEST) --test-dir build/asan -L long -R damage
	@$(CTEST) --test-dir build/release -L long
	@$(CONFIGURE) fuzz && cmake --build --preset fuzz -j $(JOBS)
	@$(CTEST) --test-dir build/fuzz -LE long -E '$(NOT_CLANG_ASAN)'
	@$(CTEST) --test-dir build/fuzz -L fuzz

wheels:
	@tools/setup.sh wheels
	@$(CONFIGURE) release -DPESTLE_WERROR=$(PESTLE_WERROR)
	@cmake --build --preset release -j $(JOBS)
	@$(PYTHON) tools/wheels.py build/release build/wheels

# What is installed, without tests. Root installs what another user built as it is: a
# build by root would leave files there that the user cannot write.
product:
	@[[ -e build/release && ! -O build/release ]] || { tools/setup.sh build && \
	  cmake --preset release -DPESTLE_WERROR=$(PESTLE_WERROR) && \
	  cmake --build --preset release -j $(JOBS) --target pestle_product; }

install: product
	@DESTDIR=$(DESTDIR) cmake --install build/release --prefix $(PREFIX)
	@[[ -n "$(DESTDIR)" || $$(id -u) -ne 0 ]] || ldconfig
	@chown --reference=build/release build/release/install_manifest.txt

docs:
	@tools/setup.sh docs
	@$(or $(PESTLE_DOCS_PYTHON),build/docs-venv/bin/python) tools/docs_site.py build/docs

dist:
	@tools/setup.sh dist
	@cmake --preset release -DPESTLE_WERROR=$(PESTLE_WERROR)
	@cmake --build --preset release -j $(JOBS) --target pestle_product
	@python3 tools/dist.py build/release build/dist

check-math: build
	@tools/setup.sh test
	@$(CONFIGURE) release
	@cmake --build --preset release -j $(JOBS) --target test_codegen_math_long
	@$(CTEST) --test-dir build/release -R '^test_codegen_math_long$$' -V

format:
	@tools/setup.sh format
	@git ls-files '*.c' '*.h' | xargs clang-format-19 -i

clean:
	@rm -rf build/release build/dev build/asan build/tsan build/fuzz \
	  build/runtime-only build/docs build/docs-src
