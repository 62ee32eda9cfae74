# SPDX-License-Identifier: Apache-2.0
"""ONNX files that travel without their weights.

    hollow.py FOLDER                fills each *.hollow of it: an ONNX file of that name

What a compilation does hangs on a model's shapes and ops, hardly on its weights, and a
pack must be small: pack() leaves out the bytes of large float and 8-bit tensors, and
fill() puts seeded ones of the same type there. A hollow file is a line of JSON, the list
of [bytes that follow] and [type, bytes that were left out], and then those that follow."""

import array
import json
import pathlib
import random
import sys

# Variances of a batch normalization, tables of shapes and quantization's scales stay.
LEAST_BYTES = 1 << 15
FLOAT, UINT8, INT8 = 1, 2, 3
MODEL, GRAPH, NODE, ATTRIBUTE, TENSOR = range(5)
# Fields of onnx.proto that lead to a tensor: {field: message}.
INSIDE = {MODEL: {7: GRAPH}, GRAPH: {1: NODE, 5: TENSOR}, NODE: {5: ATTRIBUTE},
          ATTRIBUTE: {5: TENSOR, 6: GRAPH, 10: TENSOR, 11: GRAPH}}
DATA_TYPE, RAW_DATA = 2, 9
BLOCK = 1 << 16  # values that are made once for a type


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data, at, end):
    """(number, value, begin, end) of each field of a message; the value of a varint."""
    while at < end:
        key, at = varint(data, at)
        wire, value, begin = key & 7, None, at
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            at += 8
        elif wire == 2:
            size, begin = varint(data, at)
            at = begin + size
        elif wire == 5:
            at += 4
        else:
            raise ValueError(f"a field of wire type {wire} at byte {begin}")
        yield key >> 3, value, begin, at


def weights(data, message, at, end):
    """(type, begin, end) of the bytes of each tensor that can be left out."""
    if message == TENSOR:
        found = {number: (value, begin, stop)
                 for number, value, begin, stop in fields(data, at, end)}
        kind = found.get(DATA_TYPE, (0,))[0]
        _, begin, stop = found.get(RAW_DATA, (None, 0, 0))
        if kind in (FLOAT, UINT8, INT8) and stop - begin >= LEAST_BYTES:
            yield kind, begin, stop
        return
    for number, _, begin, stop in fields(data, at, end):
        if number in INSIDE[message]:
            yield from weights(data, INSIDE[message][number], begin, stop)


def pack(data):
    """The bytes of the hollow file of an ONNX file's."""
    parts, kept, at = [], [], 0
    for kind, begin, end in sorted(weights(data, MODEL, 0, len(data)),
                                   key=lambda span: span[1]):
        parts += [[begin - at], [kind, end - begin]]
        kept.append(data[at:begin])
        at = end
    parts.append([len(data) - at])
    kept.append(data[at:])
    return json.dumps(parts).encode() + b"\n" + b"".join(kept)


def block(kind):
    chance = random.Random(kind)
    if kind == FLOAT:
        return array.array("f", (chance.uniform(-0.1, 0.1)
                                 for _ in range(BLOCK))).tobytes()
    return chance.randbytes(BLOCK)


def fill(text):
    """The bytes of an ONNX file: each tensor takes its block from another place."""
    head, rest = text.split(b"\n", 1)
    out, blocks, at, chance = [], {}, 0, random.Random(0)
    for part in json.loads(head):
        if len(part) == 1:
            out.append(rest[at:at + part[0]])
            at += part[0]
            continue
        kind, size = part
        if kind not in blocks:
            blocks[kind] = block(kind)
        values = blocks[kind]
        first = chance.randrange(len(values) // 4) * 4
        turned = values[first:] + values[:first]
        out.append((turned * (size // len(turned) + 1))[:size])
    return b"".join(out)


def fill_folder(folder):
    for path in sorted(folder.glob("*.hollow")):
        path.with_suffix(".onnx").write_bytes(fill(path.read_bytes()))
        path.unlink()


if __name__ == "__main__":
    fill_folder(pathlib.Path(sys.argv[1]))
