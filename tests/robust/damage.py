# SPDX-License-Identifier: Apache-2.0
"""Damaged models through `pestle dump --stage graph`.

Each model is cut off or gets bits flipped, mostly in its structure (nodes,
attributes, shapes, names), since a flip in a weight damages nothing that an
importer can see. Each must end within 20 s and 1 GB, by no signal, with exit 0
or with a sentence that begins `pestle: error: `.

The models are those of $PESTLE_MODELS or /opt/models that models.json names;
where there are none, one that this script writes.
"""

import collections
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile
import time

from build import BUILD, sanitized

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_bytes import data, declared, number  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SECONDS, BYTES = 20, 1 << 30


# --- A model of our own ---


def node(op, inputs, output, *attributes):
    return data(1, b"".join(data(1, i) for i in inputs) + data(2, output)
                + data(3, output) + data(4, op)
                + b"".join(data(5, a) for a in attributes))


def tensor(name, dims, size):
    return data(5, b"".join(number(1, d) for d in dims) + number(2, 1)
                + data(8, name) + data(9, bytes(4 * size)))


def own_model():
    pads = data(1, "pads") + b"".join(number(8, 1) for _ in range(4))
    axis = data(1, "axis") + number(3, 1) + number(20, 2)
    graph = (node("Conv", ["x", "k"], "c", pads + number(20, 7))
             + node("Relu", ["c"], "r") + node("Flatten", ["r"], "f", axis)
             + node("MatMul", ["f", "w"], "d") + node("Softmax", ["d"], "y")
             + tensor("k", [4, 3, 3, 3], 108) + tensor("w", [256, 5], 1280)
             + data(11, declared("x", [1, 3, 8, 8]))
             + data(12, declared("y", [1, 5])))
    return (number(1, 8) + data(7, graph) + data(8, data(1, "")
                                                 + number(2, 13)))


# --- Where the structure of a model lies ---


def fields(blob, begin, end):
    """(field, first byte, payload, end) of each field of a message."""

    def read(at):
        value = shift = 0
        while True:
            value |= (blob[at] & 127) << shift
            at, shift = at + 1, shift + 7
            if blob[at - 1] < 128:
                return value, at

    at = begin
    while at < end:
        first = at
        tag, at = read(at)
        payload = at
        if tag & 7 == 0:
            _, at = read(at)
        elif tag & 7 == 2:
            size, payload = read(at)
            at = payload + size
        else:
            at += 8 if tag & 7 == 1 else 4
        yield tag >> 3, first, payload, at


def structure(blob):
    """Ranges of bytes that are no tensor's data."""
    ranges = []
    for field, first, payload, end in fields(blob, 0, len(blob)):
        if field != 7:
            ranges.append((first, end))
            continue
        ranges.append((first, payload))
        for inner, at, inside, stop in fields(blob, payload, end):
            if inner != 5 and stop - at < 65536:
                ranges.append((at, stop))
                continue
            ranges.append((at, inside))
            if inner != 5:
                continue
            for part, begin, _, finish in fields(blob, inside, stop):
                ranges.append((begin, min(finish, begin + 64)))
    return ranges


def pick(chance, ranges, size):
    if chance.random() < 0.1:
        return chance.randrange(size)
    begin, end = ranges[chance.randrange(len(ranges))]
    return chance.randrange(begin, end)


def damage(chance, blob, ranges):
    """What was done, and the bytes."""
    how = chance.randrange(3)
    if how == 0:
        at = pick(chance, ranges, len(blob))
        return f"cut at {at}", blob[:at]
    out = bytearray(blob)
    bits = [(pick(chance, ranges, len(blob)), chance.randrange(8))
            for _ in range(1 if how == 1 else 8)]
    for at, bit in bits:
        out[at] ^= 1 << bit
    return f"flipped {bits}", bytes(out)


# --- Runs ---


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if not sanitized():
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def models():
    """(name, bytes, arguments that fix its shapes)"""
    folder = os.environ.get("PESTLE_MODELS", "/opt/models")
    specs = json.loads((HERE.parent / "models" / "models.json").read_text())
    found = []
    for spec in specs:
        path = pathlib.Path(folder, spec["name"] + ".onnx")
        if not path.exists():
            continue
        shapes = []
        for one in spec["inputs"]:
            shape = "x".join(str(d) for d in one["shape"])
            shapes += ["--shape", f"{one['name']}={shape}"]
        found.append((spec["name"], path.read_bytes(), shapes))
    return found or [("own", own_model(), [])]


def main(count):
    environment = dict(os.environ)
    kind = sanitized()
    if "address" in kind:
        # The shadow memory is address space: what counts is what is resident,
        # and one request alone may not ask for more.
        environment["ASAN_OPTIONS"] = (
            "allocator_may_return_null=1:max_allocation_size_mb=1024:"
            "hard_rss_limit_mb=1024:detect_leaks=1")
    chance = random.Random(3)
    failures, codes, peak, slowest = [], collections.Counter(), 0, 0.0
    chosen = models()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "damaged.onnx")
        prepared = [(n, b, s, structure(b)) for n, b, s in chosen]
        for i in range(count):
            name, blob, shapes, ranges = prepared[i % len(prepared)]
            what, out = damage(chance, blob, ranges)
            path.write_bytes(out)
            # One in eight without shapes: symbolic modules have a path of
            # their own.
            command = [os.path.join(BUILD, "pestle"), "dump", str(path),
                       "--stage", "graph"]
            command += [] if chance.random() < 0.125 else shapes
            before = time.monotonic()
            with subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, env=environment,
                                  preexec_fn=limits) as p:
                try:
                    # RLIMIT_CPU ends those that work, this those that sleep.
                    _, errors = p.communicate(timeout=10 * SECONDS)
                except subprocess.TimeoutExpired:
                    p.kill()
                    _, errors = p.communicate()
            slowest = max(slowest, time.monotonic() - before)
            text = errors.decode(errors="replace")
            why = ""
            if p.returncode < 0:
                why = f"ended by signal {-p.returncode}"
            elif "Sanitizer" in text or "runtime error" in text:
                why = "a sanitizer's report"
            elif p.returncode and not any(
                    line.startswith("pestle: error: ")
                    for line in text.splitlines()):
                why = f"exit {p.returncode} without a sentence"
            codes[p.returncode] += 1
            if why:
                failures.append((name, what, why))
                print(f"FAILED: {name}, {what}: {why}\n{text[:3000]}")
                keep = os.environ.get("PESTLE_KEEP_DAMAGED")
                if keep:
                    pathlib.Path(keep, f"{name}-{i}.onnx").write_bytes(out)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{count} damaged models of {', '.join(n for n, _, _ in chosen)}: "
          f"{len(failures)} failures; exit codes "
          f"{dict(sorted(codes.items()))}; at most {slowest:.1f} s and "
          f"{peak >> 10} MiB resident")
    if not sanitized() and peak << 10 > BYTES:
        failures.append(("all", "", "more memory than allowed"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
