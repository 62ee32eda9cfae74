#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder of language models (include/pestle/decode.h) on the fake driver of this folder:
the logits of a CPU, and, once a token was fed before, a token as one launch of a recording,
with no allocation, nothing compiled and nothing read back; the likeliest token is one read of
eight bytes. Exits 77 where packages are missing.

usage: decode_test.py FAKE_DRIVER_FOLDER FAKE_NVRTC_FOLDER
"""

import ctypes as C
import os
import pathlib
import sys
import tempfile

if len(sys.argv) == 3 and not os.environ.get("LD_LIBRARY_PATH", "").startswith(sys.argv[1]):
    # The loader reads it when a process begins.
    os.environ["LD_LIBRARY_PATH"] = ":".join(sys.argv[1:3])
    os.environ["PESTLE_BACKEND_PATH"] = os.environ.get("PESTLE_BUILD_DIR", "build/release") + "/backends"
    os.environ["PESTLE_NO_CACHE"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
try:
    import decode_test
    import llama
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

MOST = 256
CALLS = ["cuGraphLaunch", "cuLaunchKernel", "cuMemAlloc_v2", "cuMemFree_v2", "cuStreamBeginCapture_v2", "cuModuleLoadData",
         "cuLibraryLoadData", "cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2"]
bad = []


def expect(what, good):
    if not good:
        bad.append(what)
        print("wrong:", what)


class Decoder(decode_test.Decoder):
    def __init__(self, path, device, most=MOST, slots=1):
        self.it, found = C.c_void_p(), C.c_void_p()
        self.lib.pestle_context_device.restype = C.c_void_p
        self.check(self.lib.pestle_context_device(self.context, device, C.byref(found)))
        options = decode_test.Options(C.sizeof(decode_test.Options), found, most, slots, 0, None)
        self.check(self.lib.pestle_decoder_create(self.context, str(path).encode(), C.byref(options), C.byref(self.it)))


def counts(driver):
    return {name: driver.fake_cuda_calls(name.encode()) for name in CALLS}


def calls(driver, act):
    before = counts(driver)
    act()
    return {name: now - before[name] for name, now in counts(driver).items() if now != before[name]}


def check_choice(how, driver, a, b, ids):
    for i in range(4):
        a.feed(ids[i:i + 1])
        b.feed(ids[i:i + 1])
        said = calls(driver, lambda: b.choose())
        expect(f"{how}: a choice is {said}", sum(said.values()) == 1)
        expect(f"{how}: choice {i}", b.choose() == b.logits().argmax())
        b.logits()
        expect(f"{how}: choice {i} of the host", b.choose() == b.logits().argmax())
        expect(f"{how}: choice {i} by chance", how["level"] == 4 or b.choose(temperature=1.0, top_k=9, seed=i) ==
               a.choose(temperature=1.0, top_k=9, seed=i))


def check_slots(folder):
    path = folder / "model.onnx"
    maker = llama.make(path, "tiny", most=MOST, level=0, batch=True)
    ids = np.random.default_rng(5).integers(0, maker.words, 40)
    a, b = Decoder(path, b"cpu", slots=2), Decoder(path, b"cuda", slots=2)
    for d in a, b:
        d.feed(ids[:9])
        d.fork(0, 1)
    for i in range(9, 12):
        for d in a, b:
            d.feed_each({0: int(ids[i]), 1: int(ids[i + 9])})
        for s in 0, 1:
            expect(f"slot {s}, token {i}", np.abs(a.logits(s) - b.logits(s)).max() <= 1e-4 * a.logits(s).std())
            expect(f"slot {s}, choice {i}", b.choose(s) == b.logits(s).argmax())
    for d in a, b:
        d.feed(ids[20:21], 1)
        d.file("save", folder / "sequence", 1)
        d.cut(0)
        d.file("load", folder / "sequence", 0)
    expect("a file", np.abs(a.logits() - b.logits()).max() <= 1e-4 * a.logits().std() and b.choose() == b.logits().argmax())


def check(folder, driver, **how):
    path = folder / "model.onnx"
    maker = llama.make(path, "tiny", most=MOST, **how)
    ids = np.random.default_rng(3).integers(0, maker.words, MOST)
    a, b = Decoder(path, b"cpu"), Decoder(path, b"cuda")
    near = 1e-4 if how["level"] == 0 else 0.05  # a quotient half between two bytes goes either way
    for i in range(6):
        a.feed(ids[i:i + 1])
        said = calls(driver, lambda: b.feed(ids[i:i + 1]))
        expect(f"{how}: logits of token {i}", np.abs(a.logits() - b.logits()).max() <= near * a.logits().std())
        if i > 1:
            expect(f"{how}: token {i} is {said}", said == {"cuGraphLaunch": 1})
    check_choice(how, driver, a, b, ids[6:])
    # Prompts to the end of a tile of keys and to beyond, and tokens behind them. At level 4 the
    # products of prompts are of bf16 here and of bytes there.
    for n in (127, 200) if how["level"] == 0 else ():
        for d in a, b:
            d.cut(0)
            d.feed(ids[:n])
        expect(f"{how}: a prompt of {n}", np.abs(a.logits() - b.logits()).max() <= near * a.logits().std())
        for i in range(n, n + 3):
            a.feed(ids[i:i + 1])
            said = calls(driver, lambda: b.feed(ids[i:i + 1]))
            expect(f"{how}: token {i} behind {n} is {said}", said == {"cuGraphLaunch": 1})
            expect(f"{how}: logits of token {i}", np.abs(a.logits() - b.logits()).max() <= near * a.logits().std())
    info = b.info()
    expect("caches are copied", info.caches_in_place == info.caches == 2 * maker.layers)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        Decoder.load()
        decode_test.Decoder.context = Decoder.context
    except OSError as e:  # a library of sanitizers
        print(f"skipped: {e}")
        sys.exit(77)
    driver = C.CDLL("libcuda.so.1")
    with tempfile.TemporaryDirectory() as folder:
        check(pathlib.Path(folder), driver, level=4)
        check(pathlib.Path(folder), driver, level=0)
        check_slots(pathlib.Path(folder))
    print(f"{len(bad)} wrong: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
