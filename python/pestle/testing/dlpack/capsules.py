# SPDX-License-Identifier: Apache-2.0
"""Block C: tensors made by hand, as no library makes them, for a consumer."""

import gc
import threading

from . import zoo
from .cells import OK, REFUSED, Absent, Cell, need, same

EITHER, TAKES, REFUSES = (OK, REFUSED), (OK,), (REFUSED,)
FLOATS = zoo.pack("float32", range(12))
F32 = (2, 32)


def _take(c, made, values, *, ended_after=1, **options):
    """made is taken, has these values, and ends once, when the array does; or is
    refused, and ends once all the same, since its capsule does."""
    def check():
        gc.collect()
        made.settle()
        need(made.ended == ended_after,
             f"ended {made.ended} times, expected {ended_after}")

    try:
        y = c.take(zoo.Producer(made, **options))
    except BaseException:
        check()
        raise
    found = c.flat(y)
    if values is not None:
        same(found, values)
    need(made.ended <= 1, f"ended {made.ended} times while it is seen")
    del y
    check()


def _plain(values=None, legacy=False, **spec):
    def run(p, c):
        spec.setdefault("data", FLOATS)
        spec.setdefault("shape", (3, 4))
        spec.setdefault("dtype", F32)
        ended = 0 if spec.get("deleter") is False else 1
        _take(c, zoo.Made(**spec), list(range(12)) if values is None else values,
              ended_after=ended, legacy=legacy)
    return run


def _raw(c, capsule):
    if not c.takes_capsules:
        raise Absent(f"{c.name} takes no capsules")
    return c.take(capsule)


def _raw_taken(name):
    def run(p, c):
        made = zoo.Made(FLOATS, (12,), F32)
        capsule = made.capsule(name)
        y = _raw(c, capsule)
        same(c.flat(y), range(12))
        need(zoo.capsule_name(capsule) == zoo.USED[name],
             f"the capsule's name is {zoo.capsule_name(capsule)}")
        del capsule
        gc.collect()
        need(made.ended <= 1, "its capsule ended what was consumed")
        same(c.flat(y), range(12))
        del y
        gc.collect()
        need(made.ended == 1, f"ended {made.ended} times")
    return run


def _raw_refused(name, keep=True, **spec):
    """What is refused stays as it was, for another consumer."""
    def run(p, c):
        spec.setdefault("dtype", F32)
        made = zoo.Made(FLOATS, (12,), **spec)
        capsule = made.capsule(name)
        try:
            _raw(c, capsule)
        except Absent:
            raise
        except Exception:
            need(zoo.capsule_name(capsule) == name, "a refused capsule was renamed")
            need(made.ended == 0, f"ended {made.ended} times by a refusal")
            raise
    return run


def _raw_twice(p, c):
    made = zoo.Made(FLOATS, (12,), F32)
    capsule = made.capsule()
    y = _raw(c, capsule)
    try:
        c.take(capsule)
    finally:
        same(c.flat(y), range(12))


def _no_destructor(refused):
    def run(p, c):
        made = zoo.Made(FLOATS, (12,), F32, ndim=-1 if refused else None)
        _take(c, made, range(12), destructor=False, ended_after=1)
    return run


def _raises(error):
    def run(p, c):
        made = zoo.Made(FLOATS, (12,), F32)
        producer = zoo.Producer(made, raises=error("from inside"))
        try:
            c.take(producer)
        except (Exception, KeyboardInterrupt) as found:
            need(isinstance(found, error), f"{type(found).__name__} came of it")
            need(len(producer.asked) <= 3, "asked over and over")
            raise
    return run


def _asked_once(p, c):
    """A TypeError from inside of a producer is no reason to ask again."""
    made = zoo.Made(FLOATS, (12,), F32)
    producer = zoo.Producer(made, raises=TypeError("a fault of the producer"))
    try:
        c.take(producer)
    except TypeError:
        need(len(producer.asked) == 1, f"asked {len(producer.asked)} times")


def _returns(value):
    def run(p, c):
        c.take(zoo.Producer(zoo.Made(FLOATS, (12,), F32), returns=value))
    return run


def _device_says(value):
    def run(p, c):
        c.take(zoo.Producer(zoo.Made(FLOATS, (12,), F32), device=value))
    return run


def _no_device(p, c):
    class Half:
        def __dlpack__(self, **keywords):
            return zoo.Made(FLOATS, (12,), F32).capsule()
    c.take(Half())


def _no_dlpack(p, c):
    class Half:
        def __dlpack_device__(self):
            return zoo.CPU
    c.take(Half())


def _old(keywords):
    def run(p, c):
        made = zoo.Made(FLOATS, (12,), F32)
        y = c.take(zoo.OldProducer(made, keywords=keywords))
        same(c.flat(y), range(12))
        del y
        gc.collect()
        need(made.ended == 1, f"ended {made.ended} times")
    return run


def _other_thread(p, c):
    made = zoo.Made(FLOATS, (12,), F32)
    box = [c.take(zoo.Producer(made))]
    same(c.flat(box[0]), range(12))
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    gc.collect()
    need(made.ended == 1, f"ended {made.ended} times")


def _reenters(p, c):
    inner = zoo.Made(FLOATS, (12,), F32)
    found = []
    made = zoo.Made(FLOATS, (12,), F32, on_end=lambda: found.extend(
        c.flat(c.take(zoo.Producer(inner)))))
    y = c.take(zoo.Producer(made))
    same(c.flat(y), range(12))
    del y
    gc.collect()
    need(made.ended == 1, f"ended {made.ended} times")
    same(found, range(12), "in the deleter")


def _small(name, packed, values):
    def run(p, c):
        code, bits, _ = zoo.DTYPES[name]
        data = packed if packed is not None else bytes(v & 0xff for v in values)
        flags = 0 if packed is not None else zoo.IS_PADDED
        made = zoo.Made(data, (len(values),), (code, bits), flags=flags)
        numbers = values if name.startswith(("int", "uint")) else None
        _take(c, made, numbers)
    return run


def _dtype(name, legacy):
    def run(p, c):
        code, bits, form = zoo.DTYPES[name]
        values = [0, 1, 2, 3, 4, 5] if name != "bool" else [False, True] * 3
        data = zoo.pack(name, values)
        numbers = None if form is None and name != "bfloat16" else values
        _take(c, zoo.Made(data, (2, 3), (code, bits)), numbers, legacy=legacy)
    return run


def _dirty_bool(p, c):
    made = zoo.Made(b"\0\1\2\xff", (4,), (6, 8))
    y = c.take(zoo.Producer(made))
    found = [bool(v) for v in c.flat(y)]
    same(found, [False, True, True, True])
    del y
    gc.collect()
    need(made.ended == 1, f"ended {made.ended} times")


def _copy_not_told(p, c):
    """A producer that ignores copy=True is copied."""
    made = zoo.Made(FLOATS, (12,), F32)
    y = c.take(zoo.Producer(made), copy=True)
    same(c.flat(y), range(12))
    need(c.address(y) != made.address, "copy=True shares memory")


def _not_written(flags, strides="row-major", shape=(12,)):
    """Nobody writes to memory that may not be written."""
    def run(p, c):
        made = zoo.Made(FLOATS, shape, F32, flags=flags, strides=strides)
        before = made.data()
        y = c.take(zoo.Producer(made))
        for _ in range(3):
            z = y + y
            c.flat(z)
        need(made.data() == before, "the memory was written to")
    return run


def _re_export(p, c):
    made = zoo.Made(FLOATS, (12,), F32, flags=zoo.READ_ONLY)
    y = c.take(zoo.Producer(made))
    capsule = y.__dlpack__(max_version=(1, 3))
    if zoo.capsule_name(capsule) != zoo.VERSIONED:
        raise Absent("exports the older struct alone")
    m = zoo.capsule_struct(capsule)
    at = (m.dl_tensor.data or 0) + m.dl_tensor.byte_offset
    need(m.flags & zoo.READ_ONLY or at != made.address, "READ_ONLY was lost")


def _keywords(p, c):
    """A consumer asks for a version, and for nothing of a CPU's streams."""
    producer = zoo.Producer(zoo.Made(FLOATS, (12,), F32))
    same(c.flat(c.take(producer)), range(12))
    last = producer.asked[-1]
    need(last["stream"] is None, f"stream {last['stream']} of a CPU")
    version = last["max_version"]
    need(version is not None, "asked for the older struct alone")
    need(version[0] >= 1, f"max_version {version}")


def capsules():
    out = []

    def cell(name, run, expects=TAKES):
        out.append(Cell("capsules", name, run, expects))

    for legacy in (False, True):
        tag = "dltensor" if legacy else "versioned"
        cell(f"{tag}: plain", _plain(legacy=legacy))
        for name in zoo.DTYPES:
            whole = zoo.DTYPES[name][1] >= 8
            if whole:
                cell(f"{tag}: dtype {name}", _dtype(name, legacy), EITHER)
        cell(f"{tag}: strides NULL", _plain(legacy=legacy, strides=None,
                                            version=(1, 1)))
        cell(f"{tag}: deleter NULL", _plain(legacy=legacy, deleter=False))
        cell(f"{tag}: rank 0, all NULL", _plain(
            [0], legacy=legacy, shape=(), strides=None, null_shape=True))
        cell(f"{tag}: no elements, data NULL", _plain(
            [], legacy=legacy, shape=(0, 3), null_data=True))
        cell(f"{tag}: data NULL", _plain(legacy=legacy, null_data=True), REFUSES)
        cell(f"{tag}: shape NULL", _plain(legacy=legacy, null_shape=True), REFUSES)
        for ndim in (-1, -2**31):
            cell(f"{tag}: ndim {ndim}", _plain(legacy=legacy, ndim=ndim), REFUSES)
        cell(f"{tag}: 17 axes", _plain(range(12), legacy=legacy,
                                       shape=(12,) + (1,) * 16), EITHER)
        cell(f"{tag}: 16 axes", _plain(range(12), legacy=legacy,
                                       shape=(12,) + (1,) * 15), EITHER)
        cell(f"{tag}: extent -3", _plain(legacy=legacy, shape=(-3,)), REFUSES)
        cell(f"{tag}: extents past memory", _plain(
            legacy=legacy, shape=(2**31, 2**32), strides=(0, 0)), REFUSES)
        cell(f"{tag}: transposed", _plain(
            [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11], legacy=legacy, shape=(4, 3),
            strides=(1, 4)), EITHER)
        cell(f"{tag}: backwards", _plain(
            list(range(11, -1, -1)), legacy=legacy, shape=(12,), strides=(-1,),
            offset=44), EITHER)
        cell(f"{tag}: repeated", _plain(
            [0, 1, 2, 0, 1, 2], legacy=legacy, shape=(2, 3), strides=(0, 1)), EITHER)
        cell(f"{tag}: overlapping", _plain(
            [0, 1, 2, 1, 2, 3], legacy=legacy, shape=(2, 3), strides=(1, 1)), EITHER)
        cell(f"{tag}: axis of 1 with another stride", _plain(
            [2, 3], legacy=legacy, shape=(1, 2), strides=(-77, 1), offset=8))
        cell(f"{tag}: offset 8", _plain(
            list(range(2, 12)), legacy=legacy, shape=(10,), offset=8))
        cell(f"{tag}: offset 64", _plain(
            [16, 17], legacy=legacy, data=zoo.pack("float32", range(18)), shape=(2,),
            offset=64))
        for shift in (1, 2, 3):
            cell(f"{tag}: {shift} bytes off", _plain(legacy=legacy, shift=shift), EITHER)
        for code, bits, lanes in ((3, 64, 1), (18, 8, 1), (255, 255, 1), (0, 5, 1),
                                  (2, 128, 1), (2, 32, 0), (17, 8, 1), (6, 1, 1)):
            cell(f"{tag}: dtype {code}, {bits} bits, {lanes} lanes", _plain(
                legacy=legacy, shape=(1,), dtype=(code, bits), lanes=lanes),
                 REFUSES if code != 2 and code != 3 else EITHER)
        cell(f"{tag}: 4 lanes", _plain(legacy=legacy, shape=(3,), lanes=4), EITHER)
        for device in ((1, 1), (2, 7), (10, 0), (18, 0), (99, 0), (-1, 0)):
            cell(f"{tag}: device {device}", _plain(legacy=legacy, device=device),
                 EITHER if device == (1, 1) else REFUSES)
    for version in ((1, 0), (1, 1), (1, 2), (1, 9), (1, 2**31)):
        cell(f"version {version}", _plain(version=version))
    for version in ((0, 8), (2, 0), (2**31, 0)):
        cell(f"version {version}", _plain(version=version),
             EITHER if version[0] == 0 else REFUSES)
    for bit in (3, 17, 63):
        cell(f"flag {bit}", _plain(flags=1 << bit), EITHER)
    cell("IS_COPIED", _plain(flags=zoo.IS_COPIED))
    cell("READ_ONLY", _plain(flags=zoo.READ_ONLY), EITHER)
    cell("READ_ONLY is not written", _not_written(zoo.READ_ONLY), EITHER)
    cell("repeated is not written", _not_written(0, (0,)), EITHER)
    cell("READ_ONLY goes on so", _re_export, EITHER)
    cell("IS_PADDED of float32", _plain(flags=zoo.IS_PADDED))
    cell("dirty booleans", _dirty_bool, EITHER)
    for name, packed, values in (
            ("int4", b"\x80\x7f\x01", [0, -8, -1, 7, 1]),
            ("uint4", b"\x80\x7f\x01", [0, 8, 15, 7, 1]),
            ("int2", b"\xe4\x01", [0, 1, -2, -1, 1]),
            ("uint2", b"\xe4\x01", [0, 1, 2, 3, 1]),
            ("float4_e2m1fn", b"\x80\x7f\x01", [0, 8, 15, 7, 1]),
            ("float6_e2m3fn", b"\xc0\x1f\x80\x05", [0, 63, 1, 32, 5]),
            ("float6_e3m2fn", b"\xc0\x1f\x80\x05", [0, 63, 1, 32, 5])):
        cell(f"{name}, packed", _small(name, packed, values), EITHER)
        cell(f"{name}, a byte each", _small(name, None, values), EITHER)
    for name in (zoo.LEGACY, zoo.VERSIONED):
        cell(f"capsule {name.decode()}", _raw_taken(name))
        cell(f"refused capsule {name.decode()}", _raw_refused(name, ndim=-1), REFUSES)
        cell(f"capsule {zoo.USED[name].decode()}", _raw_refused(zoo.USED[name]), REFUSES)
    cell("capsule of version 2", _raw_refused(zoo.VERSIONED, version=(2, 0)), REFUSES)
    cell("capsule of another name", _raw_refused(b"tensor"), REFUSES)
    cell("capsule without a name", _raw_refused(None), REFUSES)
    cell("capsule taken twice", _raw_twice, REFUSES)
    cell("capsule without destructor", _no_destructor(False))
    cell("refused capsule without destructor", _no_destructor(True), REFUSES)
    for error in (TypeError, BufferError, ValueError, KeyboardInterrupt):
        cell(f"producer raises {error.__name__}", _raises(error), REFUSES)
    cell("TypeError from inside: asked once", _asked_once)
    for value in (3, "x", (1,)):
        cell(f"__dlpack__ returns {value!r}", _returns(value), REFUSES)
    for value in (None, 3, (1,), ("cpu", 0), (1, 0, 0)):
        cell(f"__dlpack_device__ returns {value!r}", _device_says(value) if
             value is not None else _no_device, EITHER)
    cell("no __dlpack__", _no_dlpack, REFUSES)
    cell("producer that knows stream alone", _old(True))
    cell("producer that knows no keyword", _old(False))
    cell("ended on another thread", _other_thread)
    cell("deleter takes another", _reenters)
    cell("copy=True, producer does not", _copy_not_told, EITHER)
    cell("keywords of the request", _keywords)
    return out
