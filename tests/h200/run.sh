#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# All that is tested and measured on a machine with an NVIDIA GPU, from bundles
# that bundle.sh made elsewhere. Needs a driver and NVRTC; the benches also torch
# and jax for python3. Ends with one table; the exit status tells whether
# everything that ran was right.
#
#   run.sh [-s STAGES] BUNDLE...
#
# STAGES: facts,unit,parity,models,sanitize (the default), random, bench, vulkan,
# limits (a few programs with --profile), shapes (bench/h200/every_shape.py).
# PESTLE_H200_SHAPES: the kinds of rows of the stage shapes, in order; PESTLE_H200_MINUTES
# (default 8): after so many no row is begun. Its rows so far are read from $OUT/shapes.jsonl.
# PESTLE_H200_JOBS: processes at once of the kit and of random graphs (default: the
# cores). PESTLE_H200_ICD names the file by which a Vulkan loader finds the driver.
# BUNDLE: base, and any of small, more, large1, large2. Halves of one model are joined, also when they
# come in two calls on one machine. $OUT, or ./h200_out, gets table.txt, logs.tgz
# and, of parity, cuda.md: what docs/support/ keeps of this machine and commit.
set -u
stages=facts,unit,parity,models,sanitize
if [[ ${1:-} == -s ]]; then
  stages=$2
  shift 2
fi
OUT=$(realpath -m "${OUT:-h200_out}")
logs=$(mktemp -d)
mkdir -p "$OUT"
table=$OUT/table.txt
: >"$table"
base=
for bundle in "$@"; do
  [[ -x $bundle/bin/pestle ]] && base=$(realpath "$bundle")
done
if [[ -z $base ]]; then
  echo "run.sh: none of the bundles has bin/pestle: name base too" >&2
  exit 2
fi
export LD_LIBRARY_PATH=$base/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PESTLE_BACKEND_PATH=$base/backends
export PESTLE_CACHE_DIR=${PESTLE_CACHE_DIR:-/tmp/pestle_h200_cache}
device=${PESTLE_H200_DEVICE:-cuda}
jobs=${PESTLE_H200_JOBS:-$(nproc)}

has() { [[ ,$stages, == *,$1,* ]]; }
# row STAGE NAME RESULT DETAIL...
row() {
  local stage=$1 name=$2 result=$3
  shift 3
  printf '%-9s %-22s %-5s %s\n' "$stage" "$name" "$result" "$*" |
    tee -a "$table"
}
# judge STAGE NAME SECONDS COMMAND...: its output goes to a log of its own.
judge() {
  local stage=$1 name=$2 seconds=$3 start log rc
  shift 3
  log=$logs/$stage.$name.log
  start=$(date +%s.%N)
  timeout -k 5 "$seconds" "$@" >"$log" 2>&1
  rc=$?
  local took
  took=$(awk -v a="$start" -v b="$(date +%s.%N)" 'BEGIN {printf "%.1f s", b - a}')
  case $rc in
    0) row "$stage" "$name" ok "$took" ;;
    77) row "$stage" "$name" skip "$took: $(tail -n 1 "$log")" ;;
    124 | 137) row "$stage" "$name" SLOW "more than $seconds s" ;;
    *) row "$stage" "$name" FAIL "$took, exit $rc: $(grep -v '^$' "$log" |
      tail -n 1 | cut -c1-300)" ;;
  esac
}

# What docs/support/ keeps of the kit's output |from|.
write_matrix() {
  local from=$1 to=$2 gpu
  gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader \
    2>/dev/null | head -n 1)
  gpu=${gpu:-a device that nvidia-smi does not know, unknown}
  grep -q '^| op |' "$from" || return
  {
    echo '<!-- SPDX-License-Identifier: Apache-2.0 -->'
    echo "On ${gpu%%,*}, driver${gpu##*,}, commit $(cat "$base/commit")."
    echo
    sed -n '/^| op |/,$p' "$from"
  } >"$to"
  row parity matrix ok "$to"
}

if has facts; then
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader \
    2>&1 | while read -r line; do row facts gpu info "$line"; done
  judge facts devices 60 "$base/bin/pestle" plugins --why
  cat "$logs/facts.devices.log"
fi

if has unit; then
  for program in "$base"/bin/test_cuda_*; do
    # Those of the driver of threads ask for it themselves and skip.
    judge unit "$(basename "$program")" 400 "$program"
  done
fi

if has parity; then
  if [[ -x $base/bin/pestle-conform ]]; then
    judge parity kit 580 "$base/bin/pestle" plugins test "$device" --markdown \
      --jobs "$jobs"
    grep -E '^[0-9]+ cells' "$logs/parity.kit.log"
    write_matrix "$logs/parity.kit.log" "$OUT/cuda.md"
  else
    row parity kit skip "this build has no conformance kit"
  fi
fi

if has random; then
  judge random graphs 500 "$base/bin/pestle-random" --device "$device" \
    --seeds "${PESTLE_H200_SEEDS:-300}" --jobs "$jobs"
  tail -n 5 "$logs/random.graphs.log"
fi

# Vulkan on the same device. Where the driver brings its half for Vulkan without
# saying so to a loader, which this machine need not have, it is said here.
find_icd() {
  local file library
  for file in /etc/vulkan/icd.d/*nvidia*.json /usr/share/vulkan/icd.d/*nvidia*.json; do
    [[ -e $file ]] && echo "$file" && return
  done
  for library in libGLX_nvidia.so.0 libEGL_nvidia.so.0; do
    if ldconfig -p | grep -q "$library" ||
      ls /usr/lib*/"$library" /usr/lib*/*/"$library" >/dev/null 2>&1; then
      file=$logs/nvidia_icd.json
      echo "{\"file_format_version\": \"1.0.0\", \"ICD\": {\"library_path\":" \
        "\"$library\", \"api_version\": \"1.2.0\"}}" >"$file"
      echo "$file" && return
    fi
  done
}
if has vulkan; then
  icd=${PESTLE_H200_ICD:-$(find_icd)}
  vulkan=(env "VK_ICD_FILENAMES=$icd" "VK_DRIVER_FILES=$icd"
    "LD_LIBRARY_PATH=$base/vulkan:$LD_LIBRARY_PATH"
    "PESTLE_BACKEND_PATH=$base/vulkan/backends")
  if [[ ! -d $base/vulkan ]]; then
    row vulkan all skip "the bundle has no vulkan: that build left it out"
  elif [[ -z $icd ]]; then
    row vulkan all skip "the driver here has no Vulkan half: no icd.d, neither" \
      "libGLX_nvidia.so.0 nor libEGL_nvidia.so.0"
  else
    judge vulkan devices 60 "${vulkan[@]}" "$base/bin/pestle" plugins --why
    cat "$logs/vulkan.devices.log"
    if grep -q '^vulkan  *vulkan ' "$logs/vulkan.devices.log"; then
      for program in "$base"/bin/test_plugins_vulkan_*; do
        [[ -x $program ]] || continue
        judge vulkan "$(basename "$program" | cut -c21-)" 300 "${vulkan[@]}" "$program"
      done
      judge vulkan random 300 "${vulkan[@]}" "$base/bin/pestle-random" \
        --device vulkan --seeds 0..99 --jobs "$jobs"
      judge vulkan noint64 300 "${vulkan[@]}" "$base/bin/pestle-random" \
        --device vulkan --target-cpu noint64 --seeds 0..99 --jobs "$jobs"
      judge vulkan kit 580 "${vulkan[@]}" "$base/bin/pestle" plugins test vulkan \
        --markdown --jobs "$jobs"
      grep -E '^[0-9]+ cells|^- ' "$logs/vulkan.kit.log" | head -n 40
      write_matrix "$logs/vulkan.kit.log" "$OUT/vulkan.md"
    else
      row vulkan all skip "$(grep -A1 '^vulkan' "$logs/vulkan.devices.log" |
        tail -n 1 | cut -c1-300)"
    fi
  fi
fi

# Models of all bundles, halves joined.
joined=/tmp/pestle_h200_parts
for bundle in "$@"; do
  for part in "$bundle"/models/*/model.onnx.0?; do
    [[ -e $part ]] || continue
    name=$(basename "$(dirname "$part")")
    mkdir -p "$joined/$name"
    cp -r "$(dirname "$part")"/* "$joined/$name/"
    if [[ -e $joined/$name/model.onnx.00 && -e $joined/$name/model.onnx.01 ]]; then
      cat "$joined/$name"/model.onnx.0? >"$joined/$name/model.onnx"
    fi
  done
done

# As tests/models: 1e-3 of the value plus 1e-5.
model_command() {
  command=("$base/bin/pestle" run "$folder/model.onnx" --device "$device"
    --inputs "$folder/inputs" --compare "$folder/expected")
}
# The median of "run_ms": [...].
median_of() {
  sed 's/.*"run_ms": *\[\([^]]*\)\].*/\1/' "$1" | tr ',' '\n' | sort -g |
    awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'
}
if has models; then
  for bundle in "$@" "$joined"; do
    for folder in "$bundle"/models/* "$bundle"/*; do
      [[ -e $folder/model.onnx && -d $folder/expected ]] || continue
      name=$(basename "$folder")
      model_command
      judge models "$name" 280 "${command[@]}"
      timeout 120 "$base/bin/pestle" run "$folder/model.onnx" --device "$device" \
        --inputs "$folder/inputs" --bench ${PESTLE_H200_RUNS:-50} >"$logs/models.$name.bench" 2>&1 &&
        row models "$name" time "$(median_of "$logs/models.$name.bench") ms a run"
    done
  done
fi

if has sanitize; then
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      judge sanitize "flow_$tool" 280 compute-sanitizer --tool "$tool" \
        --error-exitcode 9 "$base/bin/test_cuda_flow"
    done
    for bundle in "$@"; do
      for folder in "$bundle"/models/*; do
        [[ -e $folder/model.onnx ]] || continue
        # The smallest: each access of each kernel is checked.
        (($(stat -c %s "$folder/model.onnx") < 4000000)) || continue
        model_command
        judge sanitize "$(basename "$folder")" 280 compute-sanitizer \
          --tool memcheck --error-exitcode 9 "${command[@]}"
      done
    done
  else
    row sanitize all skip "there is no compute-sanitizer here"
  fi
fi

if has bench; then
  judge bench peers 560 python3 "$base/bench/bench.py" --base "$base" \
    --out "$OUT"
  cat "$logs/bench.peers.log"
fi

if has limits; then
  while read -r name inputs; do
    words=()
    for input in $inputs; do words+=(--input "$input=random:1"); done
    judge limits "$name" 100 "$base/bin/pestle" run "$base/bench/cases/$name.mlir" \
      --device "$device" --profile "${words[@]}"
    cat "$logs/limits.$name.log"
  done <<<'gemm_bf16_4096 a b
gemm_f32_4096 a b
chain_f32 x
softmax_bf16 x'
fi

# Last: what there is of it stays when time is up.
if has shapes; then
  minutes=${PESTLE_H200_MINUTES:-8}
  judge shapes peers $((minutes * 60 + 60)) python3 "$base/bench/every_shape.py" \
    --base "$base" --device "$device" --out "$OUT/shapes.jsonl" --minutes "$minutes" \
    --workers "$((jobs < 5 ? 1 : 4))" --only "${PESTLE_H200_SHAPES:-}"
  cat "$logs/shapes.peers.log"
fi

tar -C "$logs" -czf "$OUT/logs.tgz" . && rm -rf "$logs"
echo
echo "=== all of it"
cat "$table"
! grep -qE ' (FAIL|SLOW) ' "$table"
