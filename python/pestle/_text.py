# SPDX-License-Identifier: Apache-2.0
"""Arrays as text."""

import math

from . import _pestle as c
from ._core import PART

# What more elements than this have, is shown by their edges.
MOST, EDGE = 1000, 3
# Bits of a float of each width behind its first one.
_FRACTION = {64: 52, 32: 23, 16: 10}


def _shortest(value, fraction):
    """The fewest digits that no other number of so many bits is nearer to; 8 at most."""
    part, exponent = math.frexp(value)
    near = math.ldexp(0.25 if abs(part) == 0.5 else 0.5, exponent - 1 - fraction)
    for digits in range(1, 8):
        short = float(f"{value:.{digits}g}")
        if abs(short - value) < near:
            return f"{short:.8g}"
    return f"{value:.8g}"


def _number(value, fraction=52):
    if isinstance(value, bool) or isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{_number(value.real, fraction)}{sign}{_number(value.imag, fraction)}j"
    if value != value or value in (float("inf"), -float("inf")):
        return str(value)
    text = _shortest(value, fraction)
    return text if any(mark in text for mark in ".e") else text + "."


def _edges(x):
    """x without the middle of long axes, and which axes these are."""
    cut = [n > 2 * EDGE for n in x.shape]
    for axis, is_long in enumerate(cut):
        if is_long:
            key = (slice(None),) * axis
            x = c_concat([x[key + (slice(0, EDGE),)], x[key + (slice(-EDGE, None),)]],
                         axis)
    return x, cut


def c_concat(parts, axis):
    return c.apply("concatenate", parts, {"dimension": axis})


def _nest(values, cut, indent):
    if not isinstance(values, list):
        return values
    parts = [_nest(v, cut[1:], indent + 1) for v in values]
    if cut and cut[0]:
        parts.insert(EDGE, "...")
    deep = len(cut) - 1
    separator = ", " if deep <= 0 else "," + "\n" * deep + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _texts(values, fraction):
    if isinstance(values, list):
        return [_texts(v, fraction) for v in values]
    return _number(values, fraction)


def _widths(values):
    if isinstance(values, list):
        return max((_widths(v) for v in values), default=0)
    return len(values)


def _align(values, width):
    if isinstance(values, list):
        return [_align(v, width) for v in values]
    return values.rjust(width)


def _body(x, indent):
    if x.state == "traced" or x.is_deleted():
        return None
    cut = [False] * x.ndim
    if x.size > MOST:
        x, cut = _edges(x)
    if not x.size:
        return "[]" if x.ndim == 1 else f"[] of shape {x.shape}"
    part = PART.get(x.dtype, x.dtype)
    fraction = 7 if part == c.bfloat16 else _FRACTION.get(part.bits, 3)
    values = _texts(x.tolist(), fraction)
    return _nest(_align(values, _widths(values)), cut, indent)


def text(x):
    body = _body(x, 0)
    return describe(x) if body is None else body


def describe(x):
    what = "deleted" if x.is_deleted() else "traced"
    return f"Array({what}, shape={x.shape}, dtype={x.dtype})"


def represent(x):
    body = _body(x, 6)
    return describe(x) if body is None else f"Array({body}, dtype={x.dtype})"
