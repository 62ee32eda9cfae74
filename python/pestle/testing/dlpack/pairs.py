# SPDX-License-Identifier: Apache-2.0
"""Blocks A and B: an array of one library becomes one of another, by each property."""

import gc

from . import zoo
from .cells import OK, REFUSED, Absent, Cell, Wrong, need, same

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex64", "complex128")
VALUES = [0, 1, 2, 3, 4, 5]


def _values(name):
    if name == "bool":
        return [False, True, True, False, True, False]
    if name in COMPLEX:
        return [v + 1j * (v - 2) for v in VALUES]
    return [v - 3 for v in VALUES] if name.startswith("int") else VALUES


def _dtype(name):
    def run(p, c):
        c.dtype(name) if name != "bool" else None
        x = p.make(_values(name), (2, 3), name)
        y = c.take(x)
        same(c.flat(y), _values(name))
        need(c.shape(y) == (2, 3), f"shape {c.shape(y)}")
        need(str(y.dtype).rsplit(".", 1)[-1].strip("_>'").startswith(name[:4]),
             f"dtype {y.dtype}, expected {name}")
    return run


def _make(p, n=6, shape=(2, 3), dtype="float32"):
    return p.make(list(range(n)), shape, dtype)


def _scalar(p, c):
    y = c.take(p.make([7], ()))
    need(c.shape(y) == (), f"shape {c.shape(y)}")
    same(c.flat(y), [7])


def _empty(shape):
    def run(p, c):
        y = c.take(p.make([], shape))
        need(c.shape(y) == shape, f"shape {c.shape(y)}")
        same(c.flat(y), [])
    return run


def _one_axis_of_one(p, c):
    y = c.take(p.make([1, 2, 3], (1, 3, 1)))
    need(c.shape(y) == (1, 3, 1), f"shape {c.shape(y)}")
    same(c.flat(y), [1, 2, 3])


def _many_axes(p, c):
    shape = (1, 2, 1, 3, 1, 1, 1, 1)
    y = c.take(p.make(VALUES, shape))
    need(c.shape(y) == shape, f"shape {c.shape(y)}")
    same(c.flat(y), VALUES)


def _transposed(p, c):
    same(c.flat(c.take(p.transposed(_make(p)))), [0, 3, 1, 4, 2, 5])


def _stepped(p, c):
    same(c.flat(c.take(p.stepped(_make(p, shape=(6,))))), [0, 2, 4])


def _stepped_rows(p, c):
    same(c.flat(c.take(p.stepped(_make(p, 8, (4, 2))))), [0, 1, 4, 5])


def _reversed(p, c):
    same(c.flat(c.take(p.reversed(_make(p, shape=(6,))))), [5, 4, 3, 2, 1, 0])


def _repeated(p, c):
    same(c.flat(c.take(p.repeated(p.make([4, 5], (2,)), (3, 2)))), [4, 5] * 3)


def _shifted(p, c):
    same(c.flat(c.take(p.shifted(_make(p, shape=(6,))))), [1, 2, 3, 4, 5])


def _shifted_bytes(p, c):
    same(c.flat(c.take(p.shifted(_make(p, shape=(6,), dtype="uint8")))), [1, 2, 3, 4, 5])


def _large(p, c):
    n = 300000
    found = c.flat(c.take(_make(p, n, (n,), "int32")))
    need(found[0] == 0 and found[-1] == n - 1 and sum(found) == n * (n - 1) // 2,
         "elements of a large array differ")


def _shares(p, c):
    """Where memory is shared, what is written there is seen."""
    x = _make(p, shape=(6,))
    at = p.address(x)
    y = c.take(x)
    need(c.address(y) == at, "the memory was copied")


def _write_before(p, c):
    x = _make(p, shape=(6,))
    y = c.take(x)
    p.set(x, 2, 9)
    found = c.flat(y)
    need(found in ([0, 1, 9, 3, 4, 5], [0, 1, 2, 3, 4, 5]), f"values {found}")
    if c.address(y) == p.address(x):
        same(found, [0, 1, 9, 3, 4, 5])


def _write_after(p, c):
    x = _make(p, shape=(6,))
    y = c.take(x)
    c.set(y, 2, 9)
    found = p.flat(x)
    if c.address(y) == p.address(x):
        same(found, [0, 1, 9, 3, 4, 5])
    else:
        same(found, VALUES)


def _copy(value):
    def run(p, c):
        x = _make(p, shape=(6,))
        at = p.address(x)
        y = c.take(x, copy=value)
        same(c.flat(y), VALUES)
        if value:
            need(c.address(y) != at, "copy=True shares memory")
        elif value is False:
            need(c.address(y) == at, "copy=False copied")
    return run


def _copy_is_apart(p, c):
    x = _make(p, shape=(6,))
    y = c.take(x, copy=True)
    p.set(x, 0, 77)
    same(c.flat(y), VALUES)


def _device(p, c):
    same(c.flat(c.take(_make(p), device="cpu")), VALUES)


def _hidden(p, c):
    same(c.flat(c.take(zoo.Hidden(_make(p)))), VALUES)


def _legacy(p, c):
    same(c.flat(c.take(zoo.Hidden(_make(p), versions=False))), VALUES)


def _producer_first(p, c):
    x = _make(p, 5000, (5000,), "int32")
    y = c.take(x)
    del x
    gc.collect()
    _ = [bytearray(20000) for _ in range(50)]
    same(c.flat(y)[::1000], [0, 1000, 2000, 3000, 4000])


def _consumer_first(p, c):
    x = _make(p, 5000, (5000,), "int32")
    y = c.take(x)
    del y
    gc.collect()
    same(p.flat(x)[::1000], [0, 1000, 2000, 3000, 4000])


def _twice(p, c):
    x = _make(p)
    y, z = c.take(x), c.take(x)
    del x, y
    gc.collect()
    same(c.flat(z), VALUES)


def _and_back(p, c):
    same(p.flat(p.take(c.take(_make(p)))), VALUES)


def _read_only(p, c):
    x = p.read_only(_make(p))
    y = c.take(x)
    same(c.flat(y), VALUES)
    need(not c.is_writable(y) or c.address(y) != p.address(x),
         "read-only memory became writable")


def _read_only_and_on(p, c):
    """What came in read-only goes out read-only, or as a copy."""
    x = p.read_only(_make(p))
    y = c.take(x)
    capsule = y.__dlpack__(max_version=(1, 3))
    if zoo.capsule_name(capsule) != zoo.VERSIONED:
        raise Absent("the consumer exports the older struct alone")
    m = zoo.capsule_struct(capsule)
    at = (m.dl_tensor.data or 0) + m.dl_tensor.byte_offset
    need(m.flags & zoo.READ_ONLY or at != p.address(x),
         "read-only memory goes on as writable")


def _device_pair(p, c):
    pair = tuple(int(v) for v in _make(p).__dlpack_device__())
    need(pair == zoo.CPU, f"__dlpack_device__() is {pair}")


def _capsule(p, version):
    x = _make(p)
    keywords = {} if version is None else {"max_version": version}
    try:
        return x, x.__dlpack__(**keywords)
    except TypeError as reason:
        raise Absent(f"{p.name}: {reason}") from None


def _says(version, check):
    def run(p, c):
        x, capsule = _capsule(p, version)
        name = zoo.capsule_name(capsule)
        need(name in (zoo.LEGACY, zoo.VERSIONED), f"a capsule '{name}'")
        check(p, x, name, zoo.capsule_struct(capsule))
    return run


def _is_legacy(p, x, name, m):
    need(name == zoo.LEGACY, "no max_version, but a versioned capsule")


def _is_versioned(p, x, name, m):
    if name != zoo.VERSIONED:
        raise Absent("exports the older struct alone")
    need(m.major == 1, f"major version {m.major}")
    need(not m.flags & ~7, f"flags {m.flags}")


def _fits(p, x, name, m):
    t = m.dl_tensor
    need(t.ndim == 2 and (t.shape[0], t.shape[1]) == (2, 3), "another shape")
    need((t.dtype.code, t.dtype.bits, t.dtype.lanes) == (2, 32, 1), "another dtype")
    need(tuple(t.device.__getattribute__(f) for f in ("device_type", "device_id")) ==
         zoo.CPU, "another device")
    if name == zoo.VERSIONED and m.minor >= 2:
        need(bool(t.strides), "1.2 demands strides, they are NULL")


def _copied_flag(p, c):
    x = _make(p)
    try:
        capsule = x.__dlpack__(max_version=(1, 3), copy=True)
    except TypeError as reason:
        raise Absent(f"{p.name}: {reason}") from None
    if zoo.capsule_name(capsule) != zoo.VERSIONED:
        raise Absent("exports the older struct alone")
    m = zoo.capsule_struct(capsule)
    need(m.flags & zoo.IS_COPIED, "copy=True without the flag IS_COPIED")
    need(m.dl_tensor.data != p.address(x), "copy=True shares memory")


def _null_when_empty(p, c):
    capsule = p.make([], (0, 3)).__dlpack__()
    t = zoo.capsule_struct(capsule).dl_tensor
    need(not t.data, "data of no elements is not NULL")


def _refuses(what, **keywords):
    def run(p, c):
        try:
            _make(p).__dlpack__(**keywords)
        except (ValueError, TypeError, BufferError, NotImplementedError, RuntimeError,
                AssertionError):
            return
        raise Wrong(f"{what} was taken")
    return run


def _unused_capsules(p, c):
    """Capsules that nobody takes end what they hold."""
    x = _make(p, 1000, (1000,))
    for _ in range(200):
        x.__dlpack__()
    gc.collect()
    need(p.flat(x)[999] == 999, "the array changed")


def pairs():
    either, out = (OK, REFUSED), []

    def cell(name, run, expects=(OK,)):
        out.append(Cell("pairs", name, run, expects))

    for name in ("bool",) + INTEGERS + FLOATS + COMPLEX:
        cell(f"dtype {name}", _dtype(name))
    cell("rank 0", _scalar)
    cell("no elements, (0,)", _empty((0,)))
    cell("no elements, (2, 0, 3)", _empty((2, 0, 3)))
    cell("axes of 1", _one_axis_of_one)
    cell("8 axes", _many_axes)
    cell("transposed", _transposed)
    cell("every second", _stepped)
    cell("every second row", _stepped_rows)
    cell("backwards", _reversed)
    cell("repeated", _repeated)
    cell("from the second on", _shifted)
    cell("bytes from the second on", _shifted_bytes)
    cell("300,000 elements", _large)
    cell("shares memory", _shares)
    cell("producer writes", _write_before)
    cell("consumer writes", _write_after)
    for value in (None, True, False):
        cell(f"copy={value}", _copy(value))
    cell("copy=True is apart", _copy_is_apart)
    cell("device='cpu'", _device)
    cell("by __dlpack__ alone", _hidden)
    cell("by the older struct", _legacy, either)
    cell("producer ends first", _producer_first)
    cell("consumer ends first", _consumer_first)
    cell("taken twice", _twice)
    cell("and back", _and_back)
    cell("read-only", _read_only, either)
    cell("read-only goes on so", _read_only_and_on, either)
    return out


def producers():
    """Of the producer alone: what its capsules say."""
    out = []

    def cell(name, run, expects=(OK,)):
        out.append(Cell("export", name, run, expects))

    cell("__dlpack_device__", _device_pair)
    cell("no max_version: dltensor", _says(None, _is_legacy))
    cell("no max_version: fields", _says(None, _fits))
    for version in ((1, 0), (1, 1), (1, 3), (1, 9), (2, 0)):
        cell(f"max_version={version}", _says(version, _is_versioned))
        cell(f"max_version={version}: fields", _says(version, _fits))
    cell("max_version=(0, 8): dltensor", _says((0, 8), _is_legacy))
    cell("copy=True: IS_COPIED", _copied_flag)
    cell("no elements: NULL", _null_when_empty)
    cell("200 unused capsules", _unused_capsules)
    cell("stream=1 on a CPU refused", _refuses("stream=1", stream=1))
    cell("dl_device=(99, 0) refused", _refuses("dl_device=(99, 0)", dl_device=(99, 0),
                                              max_version=(1, 0)))
    cell("max_version=1 refused", _refuses("max_version=1", max_version=1))
    return out
