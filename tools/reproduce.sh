#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what `make dist` packs twice, from the last commit, in two folders and under two
# umasks, time zones and locales, without ccache; exits with 1, and says which files
# differ, unless all bytes are the same.
# usage: tools/reproduce.sh [FOLDER]    FOLDER keeps both trees; else they are removed
set -euo pipefail
cd "$(dirname "$0")/.."

place=${1:-$(mktemp -d "${TMPDIR:-/tmp}/pestle-reproduce-XXXXXX")}
mkdir -p "$place"
place=$(realpath "$place")
[[ $# -gt 0 ]] || trap 'rm -rf "$place"' EXIT
jobs=${JOBS:-$(nproc)}
commit=$(git rev-parse HEAD)  # of both, if others commit meanwhile

# build FOLDER, with the settings of the environment
build() {
  rm -rf "$1"
  git clone -q . "$1"
  git -C "$1" checkout -q "$commit"
  make -s -C "$1" dist JOBS="$jobs" >"$place/log" 2>&1 || {
    tail -n 30 "$place/log" >&2
    exit 1
  }
}

# PESTLE_REPRODUCE_CCACHE=1 is quicker, and says less: both have objects of one build.
[[ -n ${PESTLE_REPRODUCE_CCACHE:-} ]] || export CCACHE_DISABLE=1
first=$place/a second=$place/another/and-longer/folder
(umask 022 && TZ=UTC LC_ALL=C build "$first")
(umask 077 && TZ=Asia/Kathmandu LC_ALL=C.UTF-8 build "$second")

if cmp -s "$first/build/dist/SHA256SUMS" "$second/build/dist/SHA256SUMS"; then
  cat "$first/build/dist/SHA256SUMS"
  echo "both builds are the same"
  exit 0
fi
echo "the builds differ:" >&2
files() {
  python3 -c 'import json, sys
for f in json.load(open(sys.argv[1]))["files"]:
  print(f["checksums"][1]["checksumValue"], f["fileName"])' "$1"/build/dist/*.spdx.json
}
diff <(files "$first") <(files "$second") >&2 || true
diff "$first/build/dist/SHA256SUMS" "$second/build/dist/SHA256SUMS" >&2 || true
exit 1
