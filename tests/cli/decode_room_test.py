#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rooms of decoders (session/decode_room.c): caches that are doubled when a sequence passes
them. Logits by a decoder of one room for all, at each boundary, token by token and by prompts,
of slots, forks and files; which models have rooms, and what fails. Exits 77 when a package is
missing, or where Python cannot load the library."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import decode_test as t  # noqa: E402
from decode_test import Decoder, expect, refused  # noqa: E402
import llama  # noqa: E402
import llama_plain  # noqa: E402

MOST, ROOM = 64, 8
HERE = pathlib.Path(__file__).resolve().parent
KINDS = {
    "GroupQueryAttention": lambda path: llama.make(path, "tiny", level=0, batch=True),
    "a window": lambda path: llama.make(path, "tiny", level=0, window=9),
    "a soft cap": lambda path: llama.make(path, "tiny", level=0, softcap=2),
    "growing": lambda path: llama_plain.make(path, "tiny"),
    "TensorScatter": lambda path: llama_plain.make(path, "tiny", static=True),
}


def near(what, a, b):
    expect(what, a is not None and np.abs(a - b).max() <= 1e-4 * np.ptp(b) and a.argmax() == b.argmax())


def check_boundaries(what, path, ids):
    fixed, d = Decoder(path, MOST, room=MOST), Decoder(path, MOST, room=ROOM)
    expect(f"{what}: a fixed room", fixed.info().room == MOST)
    rooms, bytes_each = [], d.info().cache_bytes // ROOM
    for i in range(MOST):
        for one in fixed, d:
            one.feed(ids[i:i + 1])
        near(f"{what}: token {i}", d.logits(), fixed.logits())
        rooms.append(d.info().room)
        expect(f"{what}: bytes of token {i}", d.info().cache_bytes == bytes_each * rooms[-1])
    expect(f"{what}: rooms {rooms}", rooms == [8] * 8 + [16] * 8 + [32] * 16 + [64] * 32)
    refused(f"{what}: past the most", f"1 tokens behind {MOST}", lambda: d.feed([1]))
    expect(f"{what}: all is as it was", d.length() == MOST and d.info().room == MOST)
    for n in 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64:
        for first in 0, 3, 12:
            for one in fixed, d:
                one.cut(0)
                if 0 < first < n:
                    one.feed(ids[:first])
                one.feed(ids[first if first < n else 0:n])
            near(f"{what}: a prompt of {n} behind {first}", d.logits(), fixed.logits())
            expect(f"{what}: the room of {n}", d.info().room >= n)
    d.cut(0)
    d.feed(ids[:2])
    expect(f"{what}: an empty sequence gives room back", d.info().room == ROOM)
    compiles = d.info().compiles
    d.feed(ids[2:9])
    expect(f"{what}: a room that was there is not compiled", d.info().compiles == compiles and d.info().room == 16)
    return fixed


def check_slots(what, path, ids, fixed, folder):
    def alone(n):
        fixed.cut(0)
        fixed.feed(ids[:n])
        return fixed.logits()

    d = Decoder(path, MOST, slots=3, room=ROOM)
    lengths = [3, 7, 5]
    for s, n in enumerate(lengths):
        d.feed(ids[:n], s)
    for _ in range(12):  # slots pass 8, 16 one after the other, in runs of all
        d.feed_each({s: int(ids[n]) for s, n in enumerate(lengths)})
        lengths = [n + 1 for n in lengths]
    for s, n in enumerate(lengths):
        near(f"{what}: slot {s} of length {n}", d.logits(s), alone(n))
    expect(f"{what}: the room of slots", d.info().room == 32)
    d.fork(1, 0)
    d.feed(ids[19:40], 0)
    near(f"{what}: a fork that passes the room", d.logits(0), alone(40))
    d.feed(ids[lengths[2]:lengths[2] + 1], 2)
    near(f"{what}: a slot that was moved", d.logits(2), alone(lengths[2] + 1))
    # Files know nothing of rooms.
    d.file("save", folder / "long.seq", 0)
    other = Decoder(path, MOST, room=ROOM)
    other.feed(ids[:4])
    other.file("save", folder / "short.seq")
    other.file("load", folder / "long.seq")
    expect(f"{what}: the room of a file", other.info().room == 64 and other.length() == 40)
    near(f"{what}: a file's logits", other.logits(), alone(40))
    other.feed(ids[40:41])
    near(f"{what}: behind a file", other.logits(), alone(41))
    for one, slot in ((d, 1), (fixed, 0)):
        one.file("load", folder / "short.seq", slot)
        one.feed(ids[4:9], slot)
        got = one.logits(slot)
        near(f"{what}: a short file in a long room", got, alone(9))


def wait_for(what, d, compiles):
    """Until the decoder's thread has compiled so many plans: it has nothing else to do."""
    while d.info().compiles_ahead < compiles:
        time.sleep(0.01)
    expect(f"{what}: {d.info().compiles_ahead} plans ahead", d.info().compiles_ahead == compiles)


def check_ahead(what, path, ids, slots):
    """The token that passes a room compiles nothing and waits for nobody: a thread did it when half of the room was
    in use, once for each room, for one sequence and for runs of all slots."""
    d, each = Decoder(path, MOST, slots=slots, room=ROOM), 1 + (slots > 1)
    own = d.info().compiles

    def feed(i):
        if slots > 1:
            d.feed_each({s: int(ids[i]) for s in range(slots)})
        else:
            d.feed(ids[i:i + 1])

    made = 0
    for i in range(MOST):
        feed(i)
        info = d.info()
        together = slots == 1 or info.batches == i + 1
        expect(f"{what}: token {i} compiles nothing", info.compiles - info.compiles_ahead == own + (slots > 1))
        expect(f"{what}: token {i} of all slots", together)
        if info.room < MOST and i + 1 >= info.room // 2 and made < info.room:
            made = info.room
            wait_for(what, d, each * (made // ROOM).bit_length())
    info = d.info()
    expect(f"{what}: {info.compiles_ahead} plans ahead", info.compiles_ahead == 3 * each)
    expect(f"{what}: {info.waits} waits", info.waits == 0)
    off = Decoder(path, MOST, slots=slots, room=ROOM, no_ahead=True)
    off.feed(ids[:ROOM])
    off.feed(ids[ROOM:ROOM + 1])
    expect(f"{what}: without a thread", off.info().compiles_ahead == off.info().waits == 0 and off.info().room == 2 * ROOM)


def check_ahead_ends(path, ids):
    """One that is let go while its thread compiles; a token that comes before it is done; a jump over a room."""
    for _ in range(4):
        d = Decoder(path, MOST, room=ROOM)
        d.feed(ids[:ROOM])
        del d
    d = Decoder(path, MOST, room=ROOM)
    own = d.info().compiles
    for i in range(ROOM + 1):
        d.feed(ids[i:i + 1])
    info = d.info()
    expect(f"a token that waits: {info.compiles}, {info.waits}", info.compiles - info.compiles_ahead == own and info.waits <= 1)
    d = Decoder(path, MOST, room=ROOM)
    d.feed(ids[:ROOM // 2])
    d.feed(ids[ROOM // 2:5 * ROOM])
    expect("a jump over rooms", d.info().room == 8 * ROOM and d.info().waits == 0)


EXITS = """
import ctypes, sys, threading, time
sys.path.insert(0, sys.argv[1])
from decode_test import Decoder
Decoder.load()
d = Decoder(sys.argv[2], 64, room=8)
for i in range(5):
    d.feed([i])
def leave():
    time.sleep(float(sys.argv[3]))
    ctypes.CDLL(None).exit(0)
if sys.argv[4] == "main":
    leave()
threading.Thread(target=leave).start()
"""


def check_exits(folder):
    """A process that ends while its decoder's thread compiles, by exit() of one thread or another, where LLVM was at work
    before and where the plan for one token came from a file."""
    path = folder / "exits.onnx"
    llama.make(path, "tiny", seed=9)
    cache = folder / "exits"
    env = {**os.environ, "PESTLE_CACHE_DIR": str(cache), "XDG_CACHE_HOME": str(cache)}
    one = EXITS.split("for i in")[0]
    for thread, what in ("main", "cold"), ("main", "warm"), ("other", "cold"):
        for ms in 0, 4, 15, 30:
            shutil.rmtree(cache, ignore_errors=True)
            if what == "warm":
                subprocess.run([sys.executable, "-c", one, HERE, path], check=True, env=env)
            command = [sys.executable, "-c", EXITS, HERE, path, str(ms / 1e3), thread]
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=100)
            expect(f"exit() of the {thread} thread after {ms} ms, {what}: {done.returncode} {done.stderr}", done.returncode == 0)


def check_choice(folder):
    """Which decoders begin with few positions follows from what a token's kernels do."""
    path, most = folder / "model.onnx", 600
    row = dict(llama.SIZES["tiny"], most=most)
    llama.Maker(row)
    for what, how, bounded, room in (("attention that ends", {}, 4, most), ("a window", {"window": 9}, 0, 256),
                                     ("a soft cap", {"softcap": 2}, 0, 256)):
        onnx.save(llama.Maker(row, level=0, **how).model(), path)
        info = Decoder(path, most).info()
        expect(f"{what}: {info.caches_bounded} of {info.caches} caches, {info.room} positions",
               (info.caches_bounded, info.caches, info.room) == (bounded, 4, room))
    onnx.save(llama.Maker({**row, "most": 2100}).model(), path)
    for slots, room in (1, 2100), (1100, 2048):  # of 1 MiB each
        info = Decoder(path, 2100, slots=slots).info()
        expect(f"{slots} slots have room for {info.room}", info.room == room)
    maker = llama_plain.Maker(row)
    onnx.save(maker.model(), path)
    d = Decoder(path, most)
    expect("a growing model has rooms", d.info().room == 256)
    ids = np.random.default_rng(5).integers(0, maker.words, most)
    fixed = Decoder(path, most, room=most)
    for n in 255, 256, 257, 511, 512, 513, 600:
        for one in d, fixed:
            one.feed(ids[one.length():n - 1] if one.length() < n - 1 else ids[n - 1:n])
            if one.length() < n:
                one.feed(ids[n - 1:n])
        near(f"growing: {n} positions", d.logits(), fixed.logits())
    expect("all the rooms", d.info().room == 600)
    refused("past the most", "1 tokens behind 600", lambda: d.feed([1]))
    refused("a room below 0", "-5 to begin with", lambda: Decoder(path, most, room=-5))


def main():
    try:
        Decoder.load()
    except OSError as e:
        print(f"skipped: {e}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["PESTLE_CACHE_DIR"] = os.environ["XDG_CACHE_HOME"] = name + "/cache"
        for what, make in KINDS.items():
            path = folder / "model.onnx"
            maker = make(path)
            ids = np.random.default_rng(3).integers(0, maker.words, MOST)
            fixed = check_boundaries(what, path, ids)
            check_slots(what, path, ids, fixed, folder)
            if what in ("GroupQueryAttention", "growing"):
                check_ahead(what, path, ids, 1)
                check_ahead_ends(path, ids)
            if what == "GroupQueryAttention":
                check_ahead("slots", path, ids, 3)
        check_choice(folder)
        check_exits(folder)
    print(f"{len(t.bad)} wrong")
    return bool(t.bad)


if __name__ == "__main__":
    sys.exit(main())
