#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several sequences in one run beside one: CPU time a token, the least of all, and how many
times the tokens of one sequence a second that is. The model is of random int4 weights, from
a seed (tests/models/llama.py).

    decode_slots.py BUILD [SIZE [PAST [SLOTS,SLOTS.. [TOKENS [THREADS]]]]]

A prompt of PAST tokens is fed to each slot; then a token to one, and a token to all, in
turns."""

import pathlib
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "models"), str(ROOT / "tests" / "cli")]
import llama  # noqa: E402

MOST = 2048


def timed(call):
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    return np.array([time.process_time() - cpu, time.perf_counter() - wall])


def main():
    import decode_test

    given = sys.argv[1:] + [None] * 6
    if not given[0]:
        sys.exit(__doc__)
    size, past, tokens, threads = given[1] or "135m", int(given[2] or 128), int(given[4] or 16), int(given[5] or 1)
    decode_test.BUILD = pathlib.Path(given[0])
    decode_test.Decoder.load()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        maker = llama.make(path, size, level=4, batch=True)
        r = np.random.default_rng(1)
        alone = decode_test.Decoder(path, MOST, 1, threads)
        ids = r.integers(0, maker.words, MOST)
        for slots in map(int, (given[3] or "8").split(",")):
            d = decode_test.Decoder(path, MOST, slots, threads)
            for s in range(slots):
                d.feed(ids[:past], s)
            alone.cut(0)
            alone.feed(ids[:past])
            best = [np.full(2, 1e9), np.full(2, 1e9)]
            for t in range(tokens):
                for i, call in enumerate((lambda: alone.feed([int(ids[t])]),
                                          lambda: d.feed_each({s: int(ids[t + s]) for s in range(slots)}))):
                    best[i] = np.minimum(best[i], timed(call))
            if not d.info().batches:
                sys.exit("the tokens of several slots were no single run")
            (one, one_wall), (all_, all_wall) = best[0] * 1e3, best[1] * 1e3
            print(f"{size} past {past} threads {threads}: one {one:.2f} ms of CPU ({one_wall:.2f} of wall time), {slots} slots {all_:.2f} "
                  f"({all_wall:.2f}): {slots * one / all_:.2f} times the tokens, {slots * one_wall / all_wall:.2f} by wall time", flush=True)


if __name__ == "__main__":
    main()
