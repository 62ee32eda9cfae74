# SPDX-License-Identifier: Apache-2.0
"""Arrays as text."""

from . import _pestle as c

# What more elements than this have, is shown by their edges.
MOST, EDGE = 1000, 3


def _number(value):
    if isinstance(value, bool) or isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        sign = "" if str(value.imag).startswith("-") else "+"
        return f"{_number(value.real)}{sign}{_number(value.imag)}j"
    if value != value or value in (float("inf"), -float("inf")):
        return str(value)
    text = f"{value:.8g}"
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


def _texts(values):
    if isinstance(values, list):
        return [_texts(v) for v in values]
    return _number(values)


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
    values = _texts(x.tolist())
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
