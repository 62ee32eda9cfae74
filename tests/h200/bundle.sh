#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes what a machine with a GPU needs that has neither network nor compilers of
# ours: programs, libraries, models with inputs and expected outputs. Parts are
# under 60 MB each; a part is a folder that run.sh takes.
#
#   bundle.sh BUILD_DIR OUT_DIR [MODELS_DIR PYTHON]
#
# OUT_DIR/base has the programs, which every call needs. With MODELS_DIR
# (fetch_models.py fills one: static/NAME.onnx, inputs/NAME/) OUT_DIR/small and
# more have models; large1 and large2 are halves of one that is larger. PYTHON has
# onnxruntime, which computes the expected outputs.
set -eu
build=$(realpath "$1")
out=$2
models=${3:-}
python=${4:-python3}
here=$(dirname "$(realpath "$0")")
# The machine takes 64 MiB a call, this tree and one part.
limit=$((46 * 1000 * 1000))

rm -rf "$out"
mkdir -p "$out/base/bin" "$out/base/lib" "$out/base/backends"
cp "$build/pestle" "$out/base/bin/"
cp -a "$build"/libpestle.so* "$out/base/lib/"
cp "$build/backends/libpestle-cuda.so" "$out/base/backends/"
cp "$build/pjrt_plugin_pestle.so" "$out/base/lib/"
for program in "$build"/tests/bin/test_cuda_* "$build/pestle-conform" \
  "$build"/tests/bin/test_plugins_vulkan_{rows,casts,flow,stream,math} \
  "$build/tests/bin/pestle-random" "$build/bin/bench_device"; do
  if [[ -x $program ]]; then cp "$program" "$out/base/bin/"; fi
done
cmocka=$(ldd "$build/tests/bin/test_cuda_rows" | awk '/cmocka/ {print $3}')
cp "$cmocka" "$out/base/lib/"
cp "$here/run.sh" "$here/world.py" "$here/gpus.py" "$out/base/"
git -C "$here" describe --always --dirty --abbrev=12 >"$out/base/commit" ||
  echo unknown >"$out/base/commit"
# For Vulkan, in a folder of their own that run.sh puts first for that stage
# alone (other programs there have a C++ library of theirs): the plugin, the
# loader, and what of C++ the plugin's compiler of shaders needs.
if [[ -e $build/backends/libpestle-vulkan.so ]]; then
  mkdir -p "$out/base/vulkan/backends"
  cp "$build/backends/libpestle-vulkan.so" "$out/base/vulkan/backends/"
  loader=$(ldconfig -p | awk '/libvulkan.so.1 .*x86-64/ {print $NF; exit}')
  for library in $loader $(ldd "$build/backends/libpestle-vulkan.so" |
    awk '/libstdc|libgcc_s/ {print $3}'); do
    cp -L "$library" "$out/base/vulkan/"
  done
fi
mkdir -p "$out/base/bench"
cp "$here"/../../bench/h200/*.py "$out/base/bench/" 2>/dev/null || true
cp -r "$here/../../bench/h200/cases" "$out/base/bench/" 2>/dev/null || true
strip --strip-unneeded "$out"/base/bin/* "$out"/base/lib/*.so* \
  "$out"/base/backends/*.so "$out"/base/vulkan/backends/*.so 2>/dev/null || true

size_of() { du -sb "$1" | cut -f1; }

# One model with inputs and expected outputs, to the first part that has room.
add_model() {
  local name=$1 file=$models/static/$1.onnx stage part
  stage=$(mktemp -d)
  mkdir -p "$stage/inputs" "$stage/expected"
  cp "$models/inputs/$name"/* "$stage/inputs/"
  "$python" "$here/expected.py" "$file" "$stage/inputs" "$stage/expected"
  if (($(size_of "$file") > limit)); then
    mkdir -p "$out/large1/models/$name" "$out/large2/models/$name"
    split -n 2 -d "$file" "$stage/model.onnx."
    mv "$stage/model.onnx.00" "$out/large1/models/$name/"
    mv "$stage/model.onnx.01" "$out/large2/models/$name/"
    cp -r "$stage/inputs" "$stage/expected" "$out/large1/models/$name/"
  else
    cp "$file" "$stage/model.onnx"
    for part in small more more2 more3; do
      mkdir -p "$out/$part/models"
      if (($(size_of "$out/$part") + $(size_of "$stage") < limit)); then
        break
      fi
    done
    mkdir "$out/$part/models/$name"
    cp -r "$stage"/* "$out/$part/models/$name/"
  fi
  rm -rf "$stage"
}

if [[ -n $models ]]; then
  # The smallest first: they are what is run under compute-sanitizer.
  for file in $(ls -Sr "$models"/static/*.onnx); do
    add_model "$(basename "$file" .onnx)"
  done
fi
du -sh "$out"/*
