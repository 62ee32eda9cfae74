#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs what pack.sh packed: takes over the pieces of its own folder; when it has
# all of them, unpacks what changed and calls compare.py with the arguments.
#
#   for folder in OUT/*; do bash $folder/packed.sh; done     in one call or many
#   bash OUT/1/packed.sh OUT.json --cases net_ --cpus 1,2
#
# PESTLE_BENCH_STORE is where they stay (/tmp/pestle_bench); pestle/build/old in
# it is for --old, models for --models.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
store=${PESTLE_BENCH_STORE:-/tmp/pestle_bench}
mkdir -p "$store/pieces"
cp "$here"/*.txz.* "$store/pieces/"
cd "$store/pieces"
if ! sha256sum --quiet -c "$here/pieces.sha256" >"$store/wanting" 2>&1; then
  echo "packed.sh: first run it in the folders that have:" >&2
  grep FAILED "$store/wanting" >&2
  exit $(($# > 0))
fi
for archive in pestle lib peers models; do
  pieces=$(grep " $archive.txz" "$here/pieces.sha256") || continue
  if [[ $(cat "../$archive.pieces" 2>/dev/null) != "$pieces" ]]; then
    rm -rf "../$archive"
    awk '{print $2}' <<<"$pieces" | xargs cat | tar -xJ -C ..
    echo "$pieces" >"../$archive.pieces"
  fi
done
ln -sfn ../lib ../peers/lib
cd "$OLDPWD"
if [[ $# -gt 0 ]]; then
  exec python3 "$store/pestle/bench/cpu/compare.py" \
    --peers-dir "$store/peers" "$@"
fi
