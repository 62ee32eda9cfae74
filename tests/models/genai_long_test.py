#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoders of fourteen forms as the builder of onnxruntime-genai writes them (genai.py), by
ONNX Runtime's logits: pestle.Decoder, whose caches stay where they are, token by token and by
prompts of many lengths, and pestle.Session, whose caches are values of their own, over
batches that are padded. Exits 77 when a package is missing.

    genai_long_test.py [ARCHITECTURE...]"""

import contextlib
import io
import json
import logging
import os
import pathlib
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1] / "python")]
import case  # noqa: E402, F401

try:
    import numpy as np
    import onnx
    import onnxruntime
    import onnxruntime_genai  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import genai  # noqa: E402

import pestle as pt  # noqa: E402

MOST = 64
PROMPTS = 1, 2, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 63, 64
NEAR = 1e-3  # of the logits' spread
bad = []


def expect(what, error):
    if not error <= NEAR:
        bad.append(what)
        print(f"wrong: {what}: {error:.2g} of the spread")
    return error


class Peer:
    def __init__(self, path, width):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]
        self.caches = [i for i in self.session.get_inputs() if i.name.startswith("past")]
        self.width = width

    def empty(self, batch, rows):
        return {i.name: np.zeros((batch, i.shape[1], rows, self.width), np.float32) for i in self.caches}

    def run(self, given):
        return dict(zip(self.names, self.session.run(None, given)))


def exact(folder):
    """Products of int4 weights in f32: at level 4 bytes of x may be rounded apart."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    for node in model.graph.node:
        for a in node.attribute:
            if a.name == "accuracy_level":
                a.i = 0
    onnx.save(model, folder / "model.onnx")


def check_decoder(what, folder, peer):
    ids = np.random.default_rng(3).integers(0, genai.SMALL["vocab_size"], MOST)
    # A cache of a window must have room for all, else it would move its rows.
    room = MOST if any("sliding" in str(i.shape[2]) for i in peer.caches) else 0
    want = peer.run({"input_ids": ids[None], "attention_mask": np.ones((1, MOST), np.int64), **peer.empty(1, room)})
    want = want["logits"][0]
    spread, worst = np.ptp(want), 0
    decoder = pt.Decoder(folder, most=MOST)
    for i, id in enumerate(ids):
        decoder.feed([id])
        worst = max(worst, expect(f"{what}: token {i}", np.abs(np.asarray(decoder.logits()) - want[i]).max() / spread))
    for n in PROMPTS:
        decoder.prefill(ids[:n])
        worst = max(worst, expect(f"{what}: a prompt of {n}",
                                  np.abs(np.asarray(decoder.logits()) - want[n - 1]).max() / spread))
    info = decoder.info()
    if info["caches_in_place"] != info["caches"]:
        bad.append(f"{what}: {info['caches_in_place']} of {info['caches']} caches are in place")
        print("wrong:", bad[-1])
    return worst


def check_batches(what, folder, peer):
    """Prompts of three lengths in one batch, then two tokens behind each, by caches that
    grow. The mask's ones are counted alone, as in ONNX Runtime: padding is behind."""
    session = pt.Session(folder / "model.onnx", dims={"kv_cache_dim": peer.width})
    r = np.random.default_rng(4)
    lengths, rows, worst = np.array([20, 13, 1]), 20, 0
    mask = (np.arange(rows) < lengths[:, None]).astype(np.int64)
    counted = mask.astype(bool)
    caches = peer.empty(3, 0)
    for turn in range(3):
        ids = r.integers(0, genai.SMALL["vocab_size"], counted.shape)
        given = {"input_ids": ids, "attention_mask": mask, **caches}
        want = peer.run(given)
        got = {k: np.asarray(v) for k, v in session.run(given).items()}
        error = np.abs(got["logits"] - want["logits"])[counted].max() / np.ptp(want["logits"])
        worst = max(worst, expect(f"{what}: turn {turn} of a batch", error))
        mask = np.concatenate([mask, np.ones((3, 1), np.int64)], 1)
        counted = np.ones((3, 1), bool)
        caches = {name: want[name.replace("past_key_values", "present")] for name in caches}
    return worst


def check(kind, precision, home):
    what, folder = f"{kind}, {precision}", home / f"{kind}-{precision}"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        genai.make(folder, kind, precision)
    if precision == "int4":
        exact(folder)
    config = json.loads((folder / "genai_config.json").read_text())
    peer = Peer(folder / "model.onnx", config["model"]["decoder"]["head_size"])
    worst = check_decoder(what, folder, peer)
    if not any("sliding" in str(i.shape[2]) for i in peer.caches):
        worst = max(worst, check_batches(what, folder, peer))
    print(f"{what}: {worst:.2g}", flush=True)


def main():
    logging.disable(logging.INFO)
    os.environ["TQDM_DISABLE"] = "1"
    with tempfile.TemporaryDirectory() as home:
        os.environ["PESTLE_CACHE_DIR"] = home + "/cache"
        for kind in sys.argv[1:] or genai.KINDS:
            for precision in "fp32", "int4":
                check(kind, precision, pathlib.Path(home))
    print(f"{len(bad)} wrong")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
