#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speech models of Whisper tiny's sizes with random weights (tests/models/whisper.py): CPU time
of the encoder and of a token, one thread, in turns with ONNX Runtime, whose caches are arrays
that each run gives anew. Says the least of the rounds and how far the logits are apart.

    decode_speech.py [genai|plain ...] [--tokens N]

PESTLE_BUILD_DIR is where libpestle.so lies."""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "models"), str(ROOT / "tests" / "cli")]
import decode_test  # noqa: E402
import whisper  # noqa: E402

TINY = dict(layers=4, width=384, heads=6, mels=80, frames=3000, words=51865, most=448)
EARLY = 5  # tokens that warm up


def timed(call):
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


class Peer:
    def __init__(self, maker, encoder, decoder):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        self.maker, self.genai = maker, maker.kind == "genai"
        self.encoder, self.decoder = (onnxruntime.InferenceSession(str(p), options, providers=["CPUExecutionProvider"])
                                      for p in (encoder, decoder))
        self.names = [o.name for o in self.decoder.get_outputs()]

    def run(self, given):
        return dict(zip(self.names, self.decoder.run(None, given)))

    def encode(self, features):
        names = [o.name for o in self.encoder.get_outputs()]
        self.made = dict(zip(names, self.encoder.run(None, {self.encoder.get_inputs()[0].name: features})))

    def begin(self):
        m = self.maker
        empty = np.zeros((1, m.heads, 0, m.depth), np.float32)
        self.given = {past: empty for _, past, _ in m.caches()}
        made = self.made
        if not self.genai:
            self.given["encoder_hidden_states"] = made["last_hidden_state"]
            one = np.zeros((1, m.heads, 1, m.depth), np.float32)
            first = {past: one for _, past, _ in m.caches()}
            made = self.run({**self.given, **first, "input_ids": np.ones((1, 1), np.int64), "use_cache_branch": np.array([False])})
            self.given["use_cache_branch"] = np.array([True])
        self.given |= {past: made[present] for of, past, present in m.caches() if of in ("cross", "encoder")}

    def feed(self, id):
        out = self.run({**self.given, "input_ids": np.array([[id]], np.int32 if self.genai else np.int64)})
        self.given |= {past: out[present] for of, past, present in self.maker.caches() if of in ("self", "decoder")}
        return out["logits"][0, 0]


def measure(kind, tokens, folder):
    maker, encoder, decoder = whisper.make(folder / kind, kind, **TINY)
    features = np.random.default_rng(7).standard_normal((1, TINY["mels"], TINY["frames"])).astype(np.float32)
    ids = np.random.default_rng(3).integers(0, maker.words, tokens)
    own = decode_test.Decoder(decoder, maker.most, threads=1, encoder=encoder)
    peer = Peer(maker, encoder, decoder)
    rounds = [(timed(lambda: own.encode(features))[1], timed(lambda: peer.encode(features))[1]) for _ in range(4)]
    peer.begin()
    steps, apart = [], 0
    for id in map(int, ids):
        mine = timed(lambda id=id: own.feed([id]))[1]
        want, theirs = timed(lambda id=id: peer.feed(id))
        steps.append((mine, theirs))
        apart = max(apart, np.abs(own.logits() - want).max() / want.std())
    for what, times, unit in (("encoder", rounds[1:], 1e3), ("token", steps[EARLY:], 1e3)):
        mine, theirs = (min(t[i] for t in times) * unit for i in (0, 1))
        print(f"{kind}, {what}: {mine:.1f} ms, ONNX Runtime {theirs:.1f} ms, ratio {mine / theirs:.2f}", flush=True)
    print(f"{kind}: logits are {apart:.1e} of the spread apart", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=["genai", "plain"])
    parser.add_argument("--tokens", type=int, default=60)
    args = parser.parse_args()
    decode_test.Decoder.load()
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds:
            measure(kind, args.tokens, pathlib.Path(folder))


if __name__ == "__main__":
    main()
