#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files on one GPU: greedy ids of small models of each architecture and type by `pestle
generate`, each of which must be the likeliest by numpy or within 1e-3 of the spread of it, and
the tokens a second of a file, or of a random model of 0.5 B in Q4_0 and Q4_K.

    gguf.py --base DIR [--file FILE.gguf] [--device cuda]

DIR has bin/pestle, lib/ and backends/ (bundle.sh makes one). Lines are JSON; the last one says
how many are wrong."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from gguf_model import TYPES, Model  # noqa: E402

NEAR = 1e-3
MODELS = [("llama", "Q4_0", dict(tied=True)), ("qwen2", "Q8_0", {}), ("qwen3", "Q4_1", dict(tied=True)), ("phi3", "Q5_1", {}),
          ("gemma", "Q5_0", dict(tied=True)), ("gemma2", "Q4_0", dict(tied=True, window=9)), ("gemma3", "F16", dict(tied=True, window=9))]
MODELS += [("llama", kind, dict(width=256, inner=512, heads=8, depth=32)) for kind in TYPES]
LARGE = dict(width=896, layers=24, heads=14, shared=2, depth=64, inner=4864, words=151936, context=2048, tied=True)


def generate(base, path, device, ids, count, *options):
    environment = dict(os.environ, LD_LIBRARY_PATH=f"{base}/lib:" + os.environ.get("LD_LIBRARY_PATH", ""), PESTLE_BACKEND_PATH=f"{base}/backends")
    command = [f"{base}/bin/pestle", "generate", str(path), "--ids", ",".join(map(str, ids)), "-n", str(count), "--device", device, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return json.loads(done.stdout) if not done.returncode else {"error": done.stderr.strip()[-300:]}


def check(base, device, arch, kind, how, folder):
    path = folder / "model.gguf"
    model = Model(arch, kind, **{"depth": 32, **how}).write(path)
    prompt = list(range(3, 14))
    said = generate(base, path, device, prompt, 16, "--most", "64", "--end-id", str(model.words - 1))
    ids = said.get("ids", [])
    logits = model.logits(prompt + ids, 64)[len(prompt) - 1:]
    behind = max((logits[i].max() - logits[i][id] for i, id in enumerate(ids)), default=np.inf) / logits.std()
    good = bool(ids and behind <= NEAR)
    print(json.dumps({"model": arch, "type": kind, "good": good, "behind": float(behind), "error": said.get("error")}), flush=True)
    return good


def speed(base, device, path, name):
    for numerics in "default", "fast":
        for past in 128, 1900:
            said = generate(base, path, device, [1 + i % 90 for i in range(past)], 128, "--numerics", numerics)
            said.pop("ids", None)
            print(json.dumps({"model": name, "numerics": numerics, "past": past, **said}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--file")
    parser.add_argument("--device", default="cuda")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wrong = sum(not check(a.base, a.device, *row, folder) for row in MODELS)
        if a.file:
            speed(a.base, a.device, a.file, pathlib.Path(a.file).name)
        else:
            for kind in "Q4_0", "Q4_K":
                width = {} if kind == "Q4_0" else dict(width=1024, heads=16, inner=4864)
                path = folder / f"{kind}.gguf"
                Model("llama", kind, **{**LARGE, **width}).write(path)
                speed(a.base, a.device, path, f"0.5 B {kind}")
    print(json.dumps({"wrong": wrong, "of": len(MODELS)}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
