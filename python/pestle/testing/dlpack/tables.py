# SPDX-License-Identifier: Apache-2.0
"""Blocks D, I and H: the exchange table of C, which protocol comes first, life."""

import ctypes
import gc
import threading
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_uint32,
                    c_void_p, py_object, pythonapi)

from . import zoo
from .cells import OK, REFUSED, Absent, Cell, need, same

NAME = b"dlpack_exchange_api"
SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
ALLOCATE = CFUNCTYPE(c_int, POINTER(zoo.Tensor), POINTER(c_void_p), c_void_p, SET_ERROR)
# Functions that set Python's exceptions are called with the lock held.
FROM = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(c_void_p))
TO = ctypes.PYFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))
BORROW = ctypes.PYFUNCTYPE(c_int, py_object, POINTER(zoo.Tensor))
STREAM = ctypes.PYFUNCTYPE(c_int, c_int32, c_int32, POINTER(c_void_p))


class Table(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("previous", c_void_p),
                ("allocate", c_void_p), ("from_object", c_void_p),
                ("to_object", c_void_p), ("borrow", c_void_p), ("stream", c_void_p)]


_pointer = pythonapi.PyCapsule_GetPointer
_new = pythonapi.PyCapsule_New


def table_of(library):
    x = library.make([0, 1, 2, 3, 4, 5], (2, 3))
    capsule = getattr(type(x), "__dlpack_c_exchange_api__", None)
    if capsule is None:
        raise Absent(f"{library.name} has no exchange table")
    need(zoo.capsule_name(capsule) == NAME, f"a capsule {zoo.capsule_name(capsule)}")
    _pointer.restype, _pointer.argtypes = c_void_p, [c_void_p, c_char_p]
    return Table.from_address(_pointer(id(capsule), NAME)), x


def _header(p, c):
    table, _ = table_of(p)
    need(table.major == 1, f"major version {table.major}")
    for slot in ("allocate", "from_object", "to_object", "stream"):
        need(getattr(table, slot), f"{slot} is NULL")


def _from(p, c):
    table, x = table_of(p)
    out = c_void_p()
    need(FROM(table.from_object)(x, out) == 0, "failed without an exception")
    m = zoo.ManagedVersioned.from_address(out.value)
    t = m.dl_tensor
    need((t.shape[0], t.shape[1]) == (2, 3), "another shape")
    need(bool(t.strides) or m.minor < 2, "strides are NULL")
    values = (ctypes.c_float * 6).from_address(t.data + t.byte_offset)
    if bool(t.strides) and (t.strides[0], t.strides[1]) == (3, 1):
        same(list(values), range(6))
    if m.deleter:
        zoo.DELETER(m.deleter)(out.value)


def _from_other(p, c):
    table, _ = table_of(p)
    out = c_void_p()
    FROM(table.from_object)([1, 2], out)


def _borrow(p, c):
    table, x = table_of(p)
    if not table.borrow:
        raise Absent("borrow is NULL")
    t = zoo.Tensor()
    need(BORROW(table.borrow)(x, t) == 0, "failed without an exception")
    need((t.ndim, t.shape[0], t.shape[1]) == (2, 2, 3), "another shape")
    need(t.data, "data is NULL")
    same(list((ctypes.c_float * 6).from_address(t.data + t.byte_offset)), range(6))


def _borrow_other(p, c):
    table, _ = table_of(p)
    if not table.borrow:
        raise Absent("borrow is NULL")
    BORROW(table.borrow)("x", zoo.Tensor())


def _to(**spec):
    def run(p, c):
        table, _ = table_of(p)
        made = zoo.Made(zoo.pack("float32", range(6)), (2, 3), (2, 32), **spec)
        out = c_void_p()
        try:
            failed = TO(table.to_object)(ctypes.addressof(made.versioned), out)
            need(failed == 0, "failed without an exception")
        except Exception:
            need(made.ended == 0, "a failure ended what it did not take")
            raise
        y = ctypes.cast(out, py_object).value
        pythonapi.Py_DecRef(py_object(y))
        same(p.flat(y), range(6))
        del y
        gc.collect()
        need(made.ended == 1, f"ended {made.ended} times")
    return run


def _allocate(device, shape, dtype=(2, 32)):
    def run(p, c):
        table, _ = table_of(p)
        made = zoo.Made(b"", shape, dtype, device=device)
        said = []
        out = c_void_p()
        call = SET_ERROR(lambda self, kind, text: said.append((kind, text)))
        failed = ALLOCATE(table.allocate)(made.versioned.dl_tensor, out, None, call)
        if failed:
            need(said, "failed and said nothing")
            raise BufferError(said[0][1].decode(errors="replace")[:100])
        m = zoo.ManagedVersioned.from_address(out.value)
        t = m.dl_tensor
        need(tuple(t.shape[i] for i in range(t.ndim)) == shape, "another shape")
        count = 1
        for dim in shape:
            count *= dim
        if count:
            ctypes.memset(t.data + t.byte_offset, 1, count * dtype[1] // 8)
        if m.deleter:
            zoo.DELETER(m.deleter)(out.value)
    return run


def _stream(p, c):
    table, _ = table_of(p)
    out = c_void_p(77)
    need(STREAM(table.stream)(1, 0, out) == 0, "failed without an exception")
    need(not out.value, f"a CPU's stream is {out.value}")


_kept = []


def _offers(made, **change):
    """A type with a table of ours, whose tensors are made."""
    class Offers(zoo.Producer):
        calls = []

    def give(x, out):
        Offers.calls.append("from")
        out[0] = ctypes.addressof(made.versioned)
        return 0

    def fail(x, out):
        raise_now = pythonapi.PyErr_SetString
        raise_now.argtypes = [py_object, c_char_p]
        raise_now(BufferError, b"no tensor today")
        return -1

    def stream(kind, index, out):
        out[0] = None
        return 0

    first = FROM(fail if change.get("fails") else give)
    second = STREAM(stream)
    table = Table(change.get("major", 1), 3, None, 1, ctypes.cast(first, c_void_p).value,
                  1, None, ctypes.cast(second, c_void_p).value)
    if change.get("behind"):
        old = table
        table = Table(2, 0, ctypes.addressof(old), 1, 1, 1, None, 1)
        _kept.append(old)
    _kept.extend((first, second, table, made))
    _new.restype, _new.argtypes = py_object, [c_void_p, c_void_p, c_void_p]
    name = ctypes.create_string_buffer(NAME)
    _kept.append(name)
    Offers.__dlpack_c_exchange_api__ = _new(ctypes.addressof(table),
                                            ctypes.addressof(name), None)
    return Offers(made)


def _consumes(**change):
    def run(p, c):
        made = zoo.Made(zoo.pack("float32", range(6)), (6,), (2, 32),
                        **change.pop("spec", {}))
        x = _offers(made, **change)
        y = c.take(x)
        same(c.flat(y), range(6))
        del y
        gc.collect()
        need(made.ended == 1, f"ended {made.ended} times")
    return run


# --- Which protocol comes first ---

def _precedence(*names, wants):
    """An object of several protocols, each with another value: which does asarray
    take?"""
    def run(p, c):
        if c.name != "pestle":
            raise Absent("no standard says it")
        members = {}
        if "dlpack" in names:
            made = zoo.Made(zoo.pack("float32", [1, 1]), (2,), (2, 32))
            members["__dlpack__"] = lambda self, **k: made.capsule()
            members["__dlpack_device__"] = lambda self: zoo.CPU
        if "refuses" in names:
            def refuse(self, **keywords):
                raise BufferError("not today")
            members["__dlpack__"] = refuse
            members["__dlpack_device__"] = lambda self: zoo.CPU
        if "array" in names:
            import numpy
            members["__array__"] = lambda self, dtype=None, copy=None: numpy.array(
                [2, 2], numpy.float32)
        if "sequence" in names:
            members["__len__"] = lambda self: 2
            members["__getitem__"] = lambda self, i: [3.0, 3.0][i]
        x = type("Several", (), members)()
        found = c.flat(c.m.asarray(x))
        need(found == [wants] * 2, f"took {found}, expected {wants}")
    return run


# --- Life ---

def _threads(p, c):
    failures = []

    def work():
        try:
            for _ in range(100):
                made = zoo.Made(zoo.pack("float32", range(6)), (6,), (2, 32))
                y = c.take(zoo.Producer(made))
                if list(c.flat(y)) != [0, 1, 2, 3, 4, 5]:
                    failures.append("values")
        except Exception as reason:  # noqa: whatever a library raises
            failures.append(repr(reason))
    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    need(not failures, f"{failures[:2]}")


def _many(p, c):
    made = [zoo.Made(zoo.pack("float32", range(6)), (6,), (2, 32)) for _ in range(300)]
    arrays = [c.take(zoo.Producer(m)) for m in made]
    same(c.flat(arrays[299]), range(6))
    del arrays
    gc.collect()
    need(all(m.ended == 1 for m in made), "some did not end once")


def _cycle(p, c):
    """An array in a cycle that the collector finds ends what it holds."""
    made = zoo.Made(zoo.pack("float32", range(6)), (6,), (2, 32))
    box = [c.take(zoo.Producer(made))]
    box.append(box)
    del box
    gc.collect()
    need(made.ended == 1, f"ended {made.ended} times")


def _at_exit(held):
    def run(p, c):
        import subprocess
        import sys
        code = (
            "from pestle.testing.dlpack import zoo\n"
            "from pestle.testing.dlpack.libraries import LIBRARIES\n"
            f"c = LIBRARIES[{c.name!r}]()\n"
            "m = zoo.Made(zoo.pack('float32', range(6)), (6,), (2, 32))\n"
            "y = c.take(zoo.Producer(m))\n"
            f"{'import builtins; builtins.kept = y' if held == 'array' else ''}\n"
            f"{'k = c.make([1], (1,)).__dlpack__(); import builtins; builtins.kept = k' if held == 'capsule' else ''}\n")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True,
                              timeout=120, check=False)
        need(done.returncode == 0, f"ended with {done.returncode}: "
             f"{done.stderr.decode(errors='replace')[-100:]}")
    return run


def tables():
    out = []

    def cell(block, name, run, expects=(OK,)):
        out.append(Cell(block, name, run, expects))

    either, no = (OK, REFUSED), (REFUSED,)
    cell("table, offered", "header and slots", _header)
    cell("table, offered", "from_object", _from)
    cell("table, offered", "from_object of a list", _from_other, no)
    cell("table, offered", "borrow", _borrow)
    cell("table, offered", "borrow of a str", _borrow_other, no)
    cell("table, offered", "to_object", _to())
    cell("table, offered", "to_object, version 1.9", _to(version=(1, 9)))
    cell("table, offered", "to_object, version 2", _to(version=(2, 0)), either)
    cell("table, offered", "to_object, ndim -1", _to(ndim=-1), no)
    cell("table, offered", "allocate", _allocate(zoo.CPU, (3, 4)))
    cell("table, offered", "allocate rank 0", _allocate(zoo.CPU, ()))
    cell("table, offered", "allocate nothing", _allocate(zoo.CPU, (0, 4)))
    cell("table, offered", "allocate int64", _allocate(zoo.CPU, (5,), (0, 64)))
    cell("table, offered", "allocate on device (18, 0)", _allocate((18, 0), (3,)), no)
    cell("table, offered", "allocate of dtype 99", _allocate(zoo.CPU, (3,), (99, 8)), no)
    cell("table, offered", "current_stream of a CPU", _stream)
    cell("table, taken", "by table", _consumes())
    cell("table, taken", "that fails", _consumes(fails=True), either)
    cell("table, taken", "of major version 2", _consumes(major=2))
    cell("table, taken", "behind one of major version 2", _consumes(behind=True))
    cell("table, taken", "tensor of version 1.9",
         _consumes(spec={"version": (1, 9)}))
    for names, wants in ((("dlpack",), 1), (("array",), 2), (("dlpack", "array"), 1),
                         (("dlpack", "sequence"), 1), (("array", "sequence"), 2),
                         (("refuses", "array"), 2), (("dlpack", "array", "sequence"), 1)):
        cell("asarray", " + ".join(names), _precedence(*names, wants=wants), either)
    cell("life", "16 threads", _threads)
    cell("life", "300 arrays", _many)
    cell("life", "in a cycle", _cycle)
    cell("life", "array at exit", _at_exit("array"))
    cell("life", "capsule at exit", _at_exit("capsule"), either)
    cell("life", "array gone before exit", _at_exit(""))
    return out
