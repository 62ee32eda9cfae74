#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A token of a decoder writes its own rows of the caches and nothing else of them: all other
pages are made read-only, and the token is right still. A process that protects the page of the
new rows too ends, so that the protection is seen to hold. Exits 77 where a package is missing."""

import ctypes as C
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "robust")]
from build import sanitized  # noqa: E402

if sanitized():  # Python has no runtime of it, whose shadow is terabytes to look through
    print("skipped: a build with a sanitizer")
    sys.exit(77)

import decode_test  # noqa: E402
import llama  # noqa: E402

MOST, PAST, PAGE = 4096, 200, 4096
HEADER = 72  # of a saved sequence (session/decode_file.c)


def regions():
    """Writable memory of nobody's file."""
    for line in open("/proc/self/maps"):
        word = line.split()
        if word[1].startswith("rw") and (len(word) < 6 or word[5] == "[heap]"):
            low, high = (int(a, 16) for a in word[0].split("-"))
            yield low, high


def find(needle, copies):
    """Where |needle| lies in memory, beside it itself and |copies|, bytes that have it too."""
    own = [(id(b), id(b) + sys.getsizeof(b)) for b in (needle, *copies)]
    pattern, found = re.compile(re.escape(needle)), []
    for low, high in list(regions()):
        # Looked at where it is: a copy would be found the next time.
        for match in pattern.finditer((C.c_char * (high - low)).from_address(low)):
            at = low + match.start()
            if at % 64 == 0 and not any(a <= at < b for a, b in own):
                found.append(at)
    return found


def protect(low, high):
    low, high = -(-low // PAGE) * PAGE, high // PAGE * PAGE
    if high > low and C.CDLL(None, use_errno=True).mprotect(C.c_void_p(low), C.c_size_t(high - low), 1):
        raise OSError(C.get_errno(), "mprotect")
    return max(high - low, 0)


def child(path, breaks):
    want = None
    maker = llama.Maker({**llama.SIZES["tiny"], "most": MOST})
    row = maker.depth * 4
    ids = np.random.default_rng(3).integers(0, maker.words, PAST + 2)
    with tempfile.TemporaryDirectory() as folder:
        d = decode_test.Decoder(path, MOST)
        # In parts: what a run leaves in its arena has fewer rows than a cache.
        for end in (PAST + 2, PAST + 1):  # the second time all is warm
            d.cut(0)
            for at in range(0, PAST, PAST // 4):
                d.feed(ids[at:at + PAST // 4])
            for at in range(PAST, end):
                d.feed(ids[at:at + 1])
            want = d.logits() if end == PAST + 2 else want
        file = pathlib.Path(folder) / "sequence"
        d.file("save", file)
        saved = file.read_bytes()
        data = memoryview(saved)[HEADER + 4 * maker.words:]
        length, protected = PAST + 1, 0
        for c in range(2 * maker.layers):
            rows = bytes(data[c * maker.shared * length * row:][:length * row])
            places = find(rows, [saved])
            if len(places) != 1:
                print(f"skipped: cache {c} was found {len(places)} times")
                return 77
            for head in range(maker.shared):
                first = places[0] + head * MOST * row
                new = first + length * row
                protected += protect(first, new // PAGE * PAGE)
                end = -(-(new + row) // PAGE) * PAGE
                protected += protect(end if not breaks else new // PAGE * PAGE, first + MOST * row)
    d.feed(ids[PAST + 1:])
    good = np.abs(d.logits() - want).max() < 1e-4 * want.std()
    print(f"{protected} bytes were protected")
    return not (good and protected > 2 * maker.layers * maker.shared * MOST * row * 9 // 10)


def main():
    if len(sys.argv) > 1:
        decode_test.Decoder.load()
        return child(sys.argv[1], sys.argv[2] == "breaks")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tiny.onnx"
        llama.make(path, "tiny", most=MOST)
        codes = [subprocess.run([sys.executable, __file__, str(path), how], check=False).returncode for how in ("keeps", "breaks")]
    print(codes)
    if 77 in codes:
        return 77
    return not (codes[0] == 0 and codes[1] == -signal.SIGSEGV)


if __name__ == "__main__":
    sys.exit(main())
