#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a make target needs and the machine lacks, by the names of the
# Debian 12 packages, and says so. Does nothing, quickly, when all is there.
#
# usage: tools/setup.sh build|demo|test|check|wheels|dist|docs|format
#
# PESTLE_PYTHON=/path/to/python3 uses that Python, with the packages of
# tools/requirements.txt in it, instead of a virtual environment in build/venv.
set -euo pipefail
cd "$(dirname "$0")/.."

build_packages=(gcc libc6-dev binutils cmake ninja-build git libxxhash-dev
  llvm-19-dev)
# llvm-16-dev: the other variant of plugins/llvm, held beside the first one.
# python3-dev: the package's module is built against its headers.
test_packages=(g++ pkgconf libcmocka-dev llvm-19-tools llvm-16-dev python3
  python3-dev python3-venv)
# What the plugins for graphics cards are built with, and drivers that run their
# kernels on a CPU.
gpu_packages=(libvulkan-dev libshaderc-dev spirv-tools mesa-vulkan-drivers
  vulkan-validationlayers ocl-icd-libopencl1 pocl-opencl-icd
  libspirv-cross-c-shared-dev clang-19)
check_packages=(clang-19 libclang-rt-19-dev)
format_packages=(clang-format-19)
docs_packages=(doxygen python3 python3-venv)

packages=("${build_packages[@]}")
case "${1:-}" in
  build) ;;
  demo) packages+=(python3 python3-venv) ;;
  test) packages+=("${test_packages[@]}" "${gpu_packages[@]}") ;;
  check) packages+=("${test_packages[@]}" "${gpu_packages[@]}"
    "${check_packages[@]}") ;;
  wheels | dist) packages+=(g++ python3 python3-dev python3-venv zlib1g-dev
    libzstd-dev "${gpu_packages[@]}") ;;
  format) packages=("${format_packages[@]}") ;;
  docs) packages=("${docs_packages[@]}") ;;
  *)
    echo "usage: tools/setup.sh build|demo|test|check|wheels|dist|docs|format" >&2
    exit 2
    ;;
esac

say() { echo "pestle: $*"; }
fail() {
  echo "pestle: error: $*" >&2
  exit 1
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "this is no Debian: make sure that there is: ${packages[*]}"
    return
  fi
  local missing=() package
  for package in "${packages[@]}"; do
    is_installed "$package" || missing+=("$package")
  done
  [[ ${#missing[@]} -eq 0 ]] && return
  say "installing the Debian packages: ${missing[*]}"
  local as_root=()
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null || fail "neither root nor sudo: as root, run" \
      "apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local log
  log=$(mktemp)
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c '
      apt-get update -q && apt-get install -q -y --no-install-recommends "$@"
      ' sh "${missing[@]}" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: ${missing[*]}"
  fi
  rm -f "$log"
}

install_python() {
  if [[ -n ${PESTLE_PYTHON:-} ]]; then
    "$PESTLE_PYTHON" -c 'import lit, numpy, onnx, onnxruntime' ||
      fail "PESTLE_PYTHON=$PESTLE_PYTHON lacks packages of" \
        "tools/requirements.txt"
    return
  fi
  local venv=build/venv stamp=build/venv/requirements.txt
  cmp -s tools/requirements.txt "$stamp" && return
  say "installing into $venv from PyPI:" \
    "$(grep -v '^#' tools/requirements.txt | tr '\n' ' ')"
  mkdir -p build
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check \
    -r tools/requirements.txt || fail "pip could not install them"
  cp tools/requirements.txt "$stamp"
}

# Tests that want more are skipped without it.
install_check_python() {
  [[ -n ${PESTLE_PYTHON:-} ]] && return
  build/venv/bin/python -m pip install -q --disable-pip-version-check \
    -r tools/requirements-check.txt ||
    say "without jax the comparison with XLA is skipped"
}

# The site's tools stand apart from those of the tests.
install_docs_python() {
  if [[ -n ${PESTLE_DOCS_PYTHON:-} ]]; then
    "$PESTLE_DOCS_PYTHON" -c 'import sphinx, myst_parser, breathe, furo' ||
      fail "PESTLE_DOCS_PYTHON=$PESTLE_DOCS_PYTHON lacks packages of" \
        "tools/requirements-docs.txt"
    return
  fi
  local venv=build/docs-venv stamp=build/docs-venv/requirements.txt
  cmp -s tools/requirements-docs.txt "$stamp" && return
  say "installing into $venv from PyPI:" \
    "$(grep -v '^#' tools/requirements-docs.txt | tr '\n' ' ')"
  mkdir -p build
  [[ -x $venv/bin/python ]] || python3 -m venv "$venv"
  "$venv/bin/python" -m pip install -q --disable-pip-version-check \
    -r tools/requirements-docs.txt || fail "pip could not install them"
  cp tools/requirements-docs.txt "$stamp"
}

install_packages
case "$1" in
  test) install_python ;;
  check) install_python && install_check_python ;;
  wheels) install_python ;;
  docs) install_docs_python ;;
esac
