#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX models that take and give strings, from lists of str."""

from case import raises, run

import pestle as pt


def field(number, value):
    """A field of a protobuf message: an int, or bytes with their length."""
    if isinstance(value, int):
        return bytes([number << 3]) + bytes([value])
    value = value.encode() if isinstance(value, str) else value
    size = bytes([len(value)]) if len(value) < 128 else \
        bytes([len(value) % 128 | 128, len(value) // 128])
    return bytes([number << 3 | 2]) + size + value


def info(name, kind, *dims):
    shape = b"".join(field(1, field(1, d)) for d in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def model(op, attributes, kinds, domain="ai.onnx.ml"):
    """One node on x of 2 rows of 2; kinds are those of ONNX: 7 int64, 8 string."""
    node = field(1, "x") + field(2, "y") + field(4, op) + field(7, domain) + attributes
    graph = field(1, node) + field(2, "g") + field(11, info("x", kinds[0], 2, 2)) + \
        field(12, info("y", kinds[1], 2, 2))
    return field(1, 8) + field(8, field(1, "") + field(2, 17)) + \
        field(8, field(1, "ai.onnx.ml") + field(2, 2)) + field(7, graph)


def strings(name, *values):
    return field(5, field(1, name) + b"".join(field(9, v) for v in values) +
                 b"\xa0\x01\x08")


def ints(name, *values):
    return field(5, field(1, name) + b"".join(field(8, v) for v in values) +
                 b"\xa0\x01\x07")


def test_strings_are_looked_up():
    f = pt.load_onnx(model("LabelEncoder", strings("keys_strings", "red", "grün") +
                           ints("values_int64s", 3, 5), (8, 7)))
    assert f([["red", "grün"], ["none", "red"]]).tolist() == [[3, 5], [-1, 3]]
    assert f(x=(("red", "red"), ("", "x"))).tolist() == [[3, 3], [-1, -1]]


def test_strings_come_out():
    f = pt.load_onnx(model("LabelEncoder", ints("keys_int64s", 3, 5) +
                           strings("values_strings", "red", "grün"), (7, 8)))
    assert f([[3, 5], [4, 3]]) == [["red", "grün"], ["_Unused", "red"]]


def test_unknown_strings_pass():
    f = pt.load_onnx(model("Identity", b"", (8, 8), domain=""))
    words = [["a", "b"], ["b", "色"]]
    assert f(words) == words


def joined():
    """Each string of x behind itself, and whether that has two letters."""
    nodes = [field(1, "x") + field(1, "x") + field(2, "y") + field(4, "StringConcat"),
             field(1, "y") + field(2, "z") + field(4, "RegexFullMatch") +
             field(5, field(1, "pattern") + field(4, "(?s)..") + b"\xa0\x01\x03")]
    graph = b"".join(field(1, n) for n in nodes) + field(2, "g") + \
        field(11, info("x", 8, 2)) + field(12, info("y", 8, 2)) + field(12, info("z", 9, 2))
    return field(1, 8) + field(8, field(1, "") + field(2, 20)) + field(7, graph)


def test_new_strings_want_a_session():
    f = pt.load_onnx(joined())
    raises(ValueError, lambda: f(["a", "bc"])[1].tolist(), "in Python a Session does")


def test_numbers_are_no_strings():
    f = pt.load_onnx(model("Identity", b"", (8, 8), domain=""))
    raises(TypeError, lambda: f([[1, 2], [3, 4]]), "no str")


if __name__ == "__main__":
    run(globals())
