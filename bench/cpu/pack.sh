#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what compare.py needs on a machine with neither a network nor compilers:
#
#   pack.sh OUT BUILD PEERS [OLD_BUILD [MODELS]]
#
# PEERS is of setup_peers.sh, with -p if Python is another there; OLD_BUILD may
# be ''; MODELS is of fetch_models.py. Folders OUT/1, OUT/2, ... have at most
# PESTLE_PACK_MB each (48), and packed.sh, which unpacks and runs there. Another
# call compresses only what is newer.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
root=$here/../..
out=$(realpath -m "$1")
build=$(realpath "$2")
peers=$(realpath "$3")
old=${4:+$(realpath "$4")}
models=${5:+$(realpath "$5")}
limit=$((${PESTLE_PACK_MB:-48} << 20))
mkdir -p "$out/archives"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

# archive NAME PATH: a file or folder of the stage, links followed.
archive() {
  local to=$out/archives/$1.txz newer
  if [[ -e $to ]]; then
    newer=$(find -L "$stage/$2/" -type f -newer "$to" -print -quit)
    [[ -n $newer ]] || return 0
  fi
  tar -C "$stage" --exclude=__pycache__ --exclude='*_runtime_libs_tracy' \
    --exclude='libopenvino_intel_[gn]pu_plugin.so' -chf - "$2" |
    xz -T0 >"$to.part"
  mv "$to.part" "$to"
}

# libraries_of FILE...: with all that they load but the C library.
libraries_of() {
  printf '%s\n' "$@"
  ldd "$@" | awk '/=> \// {print $3}' | grep -vE '/lib(c|m|dl|rt|pthread)\.so'
}

# The tree of the sources, and in it build/release and build/old.
tree=$stage/pestle/build
mkdir -p "$tree" "$stage"/{pestle/bench,pestle/tests/models,lib,peers}
cp -r "$here" "$stage/pestle/bench/"
cp "$root"/tests/models/*.{py,json} "$stage/pestle/tests/models/"
for folder in "$build:release" ${old:+"$old:old"}; do
  from=${folder%:*} to=$tree/${folder##*:}
  mkdir -p "$to/bench" "$to/backends"
  cp -L "$from/pestle" "$from/libpestle.so.0" "$to/"
  cp -L "$from/bench/cpu_worker" "$to/bench/"
  cp -L "$from"/backends/libpestle-llvm-v19.so "$to/backends/"
  strip "$to"/{pestle,libpestle.so.0,bench/*,backends/*}
done
mapfile -t libraries < <(ldconfig -p |
  awk '/lib(LLVM.so.19.1|blis.so.4|openblas.so.0) .*x86-64/ {print $NF}')
libraries_of "${libraries[@]}" "$peers"/bin/* | grep '\.so' | sort -u |
  xargs -I{} ln -sf {} "$stage/lib/"
for name in main torch bin; do
  if [[ -e $peers/$name ]]; then ln -s "$peers/$name" "$stage/peers/"; fi
done
archive pestle pestle
archive lib lib
archive peers peers
if [[ -n $models ]]; then
  mkdir "$stage/models"
  ln -s "$models/static" "$stage/models/"
  archive models models
fi
rm -rf "${out:?}"/[0-9]* "$out/pieces"
mkdir "$out/pieces"
cd "$out/pieces"
for file in ../archives/*.txz; do
  split -b "$limit" -d "$file" "$(basename "$file")."
done
sha256sum -- * >"$stage/pieces.sha256"
for piece in *; do
  n=1
  until mkdir -p "../$n" &&
    (($(du -sb "../$n" | cut -f1) + $(stat -c %s "$piece") < limit + 20000)); do
    n=$((n + 1))
  done
  mv "$piece" "../$n/"
  cp "$stage/pieces.sha256" "$here/packed.sh" "../$n/"
done
rmdir "$out/pieces"
du -sh "$out"/[0-9]*
