#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The package on a machine with an NVIDIA GPU, from wheels that tools/wheels.py made
# elsewhere (pestle, pestle-llvm, pestle-cuda): its tests on that machine's Python, on
# the CPU and on the GPU, and tensors between it, torch, CuPy and JAX with streams.
# Ends with one table; the exit status tells whether all was right.
#
#   python.sh WHEELS [ROUNDS [ROW ...]]
#
# Run it in a checkout: tests/python is taken from there. $OUT, or ./h200_out, gets
# table.txt and the logs.
set -u
wheels=$(realpath "$1")
rounds=${2:-1000}
only=" ${*:3} "
here=$(dirname "$(realpath "$0")")
source=$(realpath "$here/../..")
OUT=$(realpath -m "${OUT:-h200_out}")
mkdir -p "$OUT"
table=$OUT/table.txt
: >"$table"
scratch=$(mktemp -d)
site=$scratch/site
failed=0

row() {
  local name=$1 state=$2
  shift 2
  printf '%-5s %-26s %s\n' "$state" "$name" "$*" | tee -a "$table"
  [[ $state == FAIL || $state == SLOW ]] && failed=1
}
# judge NAME SECONDS COMMAND...
judge() {
  local name=$1 seconds=$2 rc begin=$SECONDS
  shift 2
  [[ -n ${only// /} && $only != *" $name "* ]] && return
  timeout -k 5 "$seconds" "$@" >"$OUT/$name.log" 2>&1
  rc=$?
  local last
  last=$(grep -v '^$' "$OUT/$name.log" | tail -n 1 | cut -c1-250)
  case $rc in
    0) row "$name" ok "$((SECONDS - begin)) s" ;;
    77) row "$name" skip "$last" ;;
    124 | 137) row "$name" SLOW "more than $seconds s" ;;
    *) row "$name" FAIL "$((SECONDS - begin)) s, exit $rc: $last" ;;
  esac
}

python3 -m pip install -q --no-index --no-deps --no-compile --target "$site" \
  "$wheels"/pestle-*.whl "$wheels"/pestle_llvm-*.whl "$wheels"/pestle_cuda-*.whl \
  >"$OUT/pip.log" 2>&1 || row pip FAIL "$(tail -n 1 "$OUT/pip.log")"
# The tests look for the package in a build's folder.
mkdir -p "$scratch/build"
ln -s "$site" "$scratch/build/python"
export PYTHONPATH=$site PYTHONUNBUFFERED=1 PESTLE_BUILD_DIR=$scratch/build
export PESTLE_SOURCE_DIR=$source PESTLE_CACHE_DIR=$scratch/cache
unset PESTLE_BACKEND_PATH PESTLE_DEVICE
row gpu info "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>&1 | head -n 1)"
row python info "$(python3 -VV | tr '\n' ' ')"
python3 - <<'P' 2>&1 | tee "$OUT/backends.log"
import pestle as pt
print(pt.backends.why())
P
grep -q '^cuda  *loaded' "$OUT/backends.log" || {
  # NVRTC of the machine's own packages, where the plugin does not find it.
  nvrtc=$(python3 -c "import pathlib, sys
for p in sys.path:
    for f in pathlib.Path(p or '.').glob('nvidia/*/lib/libnvrtc.so.1[23]'):
        print(f.parent); raise SystemExit")
  row nvrtc info "not found by the plugin; LD_LIBRARY_PATH gets $nvrtc"
  export LD_LIBRARY_PATH=$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  python3 -c "import pestle as pt; print(pt.backends.why())" | tee "$OUT/backends.log"
}

cd "$scratch" || exit 2
export JAX_PLATFORMS=cpu
for test in array errors refuse log numpy function ops random custom life threads dlpack; do
  judge "cpu_$test" 300 python3 "$source/tests/python/${test}_test.py"
done
unset JAX_PLATFORMS
judge cpu_bare 500 python3 "$source/tests/python/bare_check.py"
if grep -q '^cuda  *loaded' "$OUT/backends.log"; then
  for test in array errors refuse numpy function custom; do
    PESTLE_DEVICE=cuda judge "cuda_$test" 500 python3 "$source/tests/python/${test}_test.py"
  done
  PESTLE_TEST_DEVICES=cuda judge cuda_ops 500 python3 "$source/tests/python/ops_test.py"
  PESTLE_DEVICE=cuda judge cuda_linalg 500 python3 "$source/tests/python/bare_check.py"
  judge cuda_dlpack 580 python3 "$here/dlpack_gpu.py" "$rounds"
  cat "$OUT/cuda_dlpack.log" 2>/dev/null || : >"$OUT/cuda_dlpack.log"
  grep -E '^(ok|FAIL|skip) ' "$OUT/cuda_dlpack.log" >>"$table"
  grep -q '^FAIL' "$OUT/cuda_dlpack.log" && failed=1
else
  row cuda FAIL "no device: $(grep '^cuda' "$OUT/backends.log" | cut -c1-200)"
fi
# torch has no negative strides, which is no fault of what gives it some.
# shellcheck disable=SC2016
pairs='python3 -m pestle.testing.dlpack --pairs --producer $0 --consumer $1 | tee pairs.txt
  ! grep "^FAULT" pairs.txt | grep -qv "pestle -> torch: pairs: backwards: \(refused\|crashed\)" &&
    grep -q "cells: [1-9]" pairs.txt'
judge pairs_torch 500 bash -c "$pairs" torch pestle
judge pairs_to_torch 500 bash -c "$pairs" pestle torch
echo
cat "$table"
rm -rf "$scratch"
exit $failed
