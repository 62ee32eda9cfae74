#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the peers of compare.py, pinned, and says what could not be had.
#
#   setup_peers.sh [-x PEER,...] [-p VERSION] [DIR]     (default build/peers)
#
# -x leaves peers out: jax and iree are 0.4 GB each, torch_compile 6, all else
# 0.5. -p is the version of the Python that is to run them, for pack.sh if it is
# not this machine's. What DIR has stays. From PyPI; BLIS, OpenBLAS from Debian.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
without=
version=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
while getopts x:p: option; do
  case $option in
    x) without=$OPTARG ;;
    p) version=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
dir=$(realpath -m "${1:-$here/../../build/peers}")
mkdir -p "$dir/bin"
missing=()

wanted() { [[ ,$without, != *,$1,* ]]; }

# packages FOLDER NAME==VERSION...: those that FOLDER has not.
packages() {
  local folder=$1/lib/python$version/site-packages pin name new=() options
  options=(--target "$folder" --python-version "$version")
  if [[ $1 == */onednn ]]; then # its lib/ and include/, for any Python
    options=(--prefix "$1")
    folder="$1/lib/python*/site-packages"
  fi
  shift
  for pin in "$@"; do
    name=${pin//-/_}
    compgen -G "$folder/${name/==/-}.dist-info" >/dev/null || new+=("$pin")
  done
  [[ ${#new[@]} -eq 0 ]] && return
  echo "installing ${new[*]}"
  [[ -x $dir/pip/bin/pip ]] || python3 -m venv "$dir/pip"
  "$dir/pip/bin/pip" install -q --disable-pip-version-check "${options[@]}" \
    --only-binary=:all: "${new[@]}" || missing+=("${new[@]}")
}

pins=(onnx==1.23.2)
wanted ort && pins+=(onnxruntime==1.31.1)
wanted openvino && pins+=(openvino==2026.4.1)
wanted jax && pins+=(jax==0.10.2 jaxlib==0.10.2)
wanted iree && pins+=(iree-base-compiler==3.13.0 iree-base-runtime==3.13.0)
packages "$dir/main" "${pins[@]}"
wanted torch_compile && packages "$dir/torch" torch==2.15.0 onnx==1.23.2
if wanted dnnl; then
  dnnl=$dir/onednn
  packages "$dnnl" onednn-cpu-gomp==2023.2.0 onednn-devel-cpu-gomp==2023.2.0
  g++ -O2 -std=c++17 "-I$dnnl/include" "$here/dnnl_worker.cpp" -ldnnl \
    "-L$dnnl/lib" "-Wl,-rpath,$dnnl/lib" -o "$dir/bin/dnnl_worker" ||
    missing+=(dnnl_worker)
fi
gcc -O2 -std=gnu11 "$here/cblas_worker.c" -ldl -lm -o "$dir/bin/cblas_worker" ||
  missing+=(cblas_worker)
for name in blis:libblis4-openmp openblas:libopenblas0-pthread; do
  if wanted "${name%:*}" && ! dpkg -s "${name#*:}" >/dev/null 2>&1; then
    apt-get install -q -y --no-install-recommends "${name#*:}" ||
      missing+=("${name#*:}")
  fi
done

if [[ ${#missing[@]} -gt 0 ]]; then
  echo "setup_peers.sh: missing, could not be had: ${missing[*]}" >&2
  exit 1
fi
echo "compare.py --peers-dir $dir"
