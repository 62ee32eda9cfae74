# SPDX-License-Identifier: Apache-2.0
"""ONNX models written field by field, so that tests need no package for it."""
import struct


def varint(v):
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def number(field, v):
    return varint(field << 3) + varint(v)


def data(field, v):
    v = v.encode() if isinstance(v, str) else v
    return varint(field << 3 | 2) + varint(len(v)) + v


def declared(name, dims, element=1):
    """A ValueInfoProto, of f32 unless |element| says other. A dim is an extent, a name,
    or None where neither is told; dims None: no shape."""
    def dim(d):
        return b"" if d is None else data(2, d) if isinstance(d, str) else number(1, d)
    kind = number(1, element)
    if dims is not None:
        kind += data(2, b"".join(data(1, dim(d)) for d in dims))
    return data(1, name) + data(2, data(1, kind))


def stored(name, values):
    """A TensorProto of f32."""
    return (number(1, len(values)) + number(2, 1) + data(8, name)
            + data(9, struct.pack(f"<{len(values)}f", *values)))


def node(op, inputs, output, domain=""):
    return data(1, b"".join(data(1, i) for i in inputs) + data(2, output)
                + data(4, op) + (data(7, domain) if domain else b""))
