#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files (tests/models/gguf_model.py) through decoders and the command: each architecture
and each type of tensor beside numpy, what a token writes, and bad files. Exits 77 without
numpy, or where Python cannot load the library."""

import sys

try:
    import numpy as np
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import pathlib
import tempfile

import decode_test
from decode_test import Decoder, expect

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from gguf_model import TYPES, Model  # noqa: E402

MOST = 64
NEAR = 1e-3  # of the spread


def check(what, path, model, most=MOST, count=24):
    """Logits behind each token, and behind a prompt that is fed at once."""
    model.write(path)
    ids = np.random.default_rng(3).integers(0, model.words, count)
    want = model.logits(ids, most)
    spread, worst = want.std(), 0
    d = Decoder(path, most)
    info = d.info()
    expect(f"{what}: {info.caches_in_place} of {info.caches} caches are in place", info.caches == info.caches_in_place == 2 * model.layers)
    for i in range(count):
        d.feed(ids[i:i + 1])
        worst = max(worst, np.abs(d.logits() - want[i]).max() / spread)
    d.cut(0)
    d.feed(ids)
    worst = max(worst, np.abs(d.logits() - want[-1]).max() / spread)
    print(f"{what}: {worst:.1e} of the spread", flush=True)
    expect(f"{what}: {worst:.2e} of the spread", worst <= NEAR)


def check_models(folder):
    path = folder / "model.gguf"
    check("llama", path, Model(tied=True))
    check("llama, angles with divisors", path, Model(divisors=True, more={"llama.rope.freq_base": 5e5}, base=5e5))
    check("llama, linear", path, Model(scaling=("linear", 4)))
    check("llama, yarn", path, Model(scaling=("yarn", 4), depth=32))
    check("llama, a part of a head turned", path, Model(turned=8, value_depth=24))
    check("llama, places by few lanes", path, Model(heads=4, shared=1, depth=32))
    check("qwen2", path, Model("qwen2"))
    check("qwen3", path, Model("qwen3", tied=True, depth=32))
    check("phi3", path, Model("phi3"))
    check("phi3, a window", path, Model("phi3", window=7))
    for most in 32, 64:  # of 128 positions it was trained for 32
        check(f"phi3, divisors for {most}", path, Model("phi3", divisors="two"), most)
    check("gemma", path, Model("gemma", tied=True, shared=1))
    check("gemma2", path, Model("gemma2", tied=True, layers=3, window=9))
    check("gemma2, other caps", path, Model("gemma2", tied=True, cap=2, last_cap=1, window=9))
    check("gemma3", path, Model("gemma3", tied=True, layers=7, window=9, scaling=("linear", 8)))


def check_types(folder):
    for kind in TYPES:
        width = max(TYPES[kind][1], 64)
        check(kind, folder / "model.gguf", Model(kind=kind, width=width, inner=width, depth=32, layers=1, tied=kind in ("Q4_1", "Q6_K", "F16")))
    check("Q4_0 over Q8_0", folder / "model.gguf", Model(tied=False, embedding="Q8_0", head="F16"))
    check("version 2, alignment 64", folder / "model.gguf", Old(more={"general.alignment": 64}))


class Old(Model):
    def bytes(self):
        return super().bytes(version=2, alignment=64)


def main():
    Decoder.load()
    with tempfile.TemporaryDirectory() as folder:
        check_models(pathlib.Path(folder))
        check_types(pathlib.Path(folder))
    return bool(decode_test.bad)


if __name__ == "__main__":
    sys.exit(main())
