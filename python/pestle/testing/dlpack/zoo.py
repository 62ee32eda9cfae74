# SPDX-License-Identifier: Apache-2.0
"""DLPack's structs by ctypes: tensors that may say anything, whose deleter counts its
calls and spoils the memory, and capsules around them."""

import ctypes
import struct
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64,
                    c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, py_object, pythonapi)

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}
READ_ONLY, IS_COPIED, IS_PADDED = 1, 2, 4
CPU = (1, 0)

# name: code, bits, format of struct
DTYPES = {
    "bool": (6, 8, "B"), "int8": (0, 8, "b"), "int16": (0, 16, "h"),
    "int32": (0, 32, "i"), "int64": (0, 64, "q"), "uint8": (1, 8, "B"),
    "uint16": (1, 16, "H"), "uint32": (1, 32, "I"), "uint64": (1, 64, "Q"),
    "float16": (2, 16, "e"), "float32": (2, 32, "f"), "float64": (2, 64, "d"),
    "bfloat16": (4, 16, None), "complex64": (5, 64, "ff"),
    "complex128": (5, 128, "dd"), "float8_e3m4": (7, 8, None),
    "float8_e4m3": (8, 8, None), "float8_e4m3b11fnuz": (9, 8, None),
    "float8_e4m3fn": (10, 8, None), "float8_e4m3fnuz": (11, 8, None),
    "float8_e5m2": (12, 8, None), "float8_e5m2fnuz": (13, 8, None),
    "float8_e8m0fnu": (14, 8, None), "float6_e2m3fn": (15, 6, None),
    "float6_e3m2fn": (16, 6, None), "float4_e2m1fn": (17, 4, None),
    "int4": (0, 4, None), "uint4": (1, 4, None), "int2": (0, 2, None),
    "uint2": (1, 2, None),
}


class Device(Structure):
    _fields_ = [("device_type", c_int32), ("device_id", c_int32)]


class DataType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("device", Device), ("ndim", c_int32),
                ("dtype", DataType), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("byte_offset", c_uint64)]


DELETER = CFUNCTYPE(None, c_void_p)


class Managed(Structure):
    _fields_ = [("dl_tensor", Tensor), ("manager_ctx", c_void_p), ("deleter", c_void_p)]


class ManagedVersioned(Structure):
    _fields_ = [("major", c_uint32), ("minor", c_uint32), ("manager_ctx", c_void_p),
                ("deleter", c_void_p), ("flags", c_uint64), ("dl_tensor", Tensor)]


_new = pythonapi.PyCapsule_New
_new.restype, _new.argtypes = py_object, [c_void_p, c_void_p, c_void_p]
_is_valid = pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, [c_void_p, c_char_p]
_pointer = pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [c_void_p, c_char_p]
_name = pythonapi.PyCapsule_GetName
_name.restype, _name.argtypes = c_char_p, [py_object]
_set_name = pythonapi.PyCapsule_SetName
_set_name.restype, _set_name.argtypes = c_int, [py_object, c_void_p]


def capsule_name(capsule):
    return _name(capsule)


def capsule_struct(capsule):
    """The struct in a capsule of either name, not taken out of it."""
    name = _name(capsule)
    kind = ManagedVersioned if name == VERSIONED else Managed
    return kind.from_address(_pointer(id(capsule), name))


# A destructor that does nothing. One in Python would run while the consumer's exception
# is set, which no Python code outlives; so a tensor keeps its capsules and does what
# their destructors would have done itself (Made.settle()).
_nothing = ctypes.cast(pythonapi.PyThread_get_thread_ident, c_void_p)


# Everything that a deleter may still be called for.
_alive = {}


class Made:
    """A tensor that a test says everything of. ended counts calls of its deleter."""

    def __init__(self, data=b"", shape=(0,), dtype=(2, 32), *, strides="row-major",
                 lanes=1, offset=0, shift=0, flags=0, version=(1, 3), ndim=None,
                 device=CPU, deleter=True, null_data=False, null_shape=False,
                 on_end=None):
        self.ended = 0
        self.on_end = on_end
        self.size = len(data)
        self._memory = ctypes.create_string_buffer(len(data) + shift + 192)
        base = (ctypes.addressof(self._memory) + 63) // 64 * 64
        self.address = base + shift
        ctypes.memmove(self.address, data, len(data))
        rank = len(shape)
        if strides == "row-major":
            strides, step = [], 1
            for dim in reversed(shape):
                strides.insert(0, step)
                step *= max(dim, 1)
        self._shape = (c_int64 * max(rank, 1))(*shape)
        self._strides = (c_int64 * max(rank, 1))(*(strides or ()))
        code, bits = dtype
        tensor = Tensor(
            None if null_data else self.address, Device(*device),
            rank if ndim is None else ndim, DataType(code, bits, lanes),
            None if null_shape else ctypes.cast(self._shape, POINTER(c_int64)),
            None if strides is None else ctypes.cast(self._strides, POINTER(c_int64)),
            offset)
        self._call = DELETER(self._on_end)
        call = ctypes.cast(self._call, c_void_p).value if deleter else None
        self.legacy = Managed(tensor, None, call)
        self.versioned = ManagedVersioned(*version, None, call, flags, tensor)
        self.device = device
        self.capsules = []
        _alive[id(self)] = self

    def _on_end(self, _):
        self.ended += 1
        ctypes.memset(self.address, 0xdd, self.size)
        if self.on_end:
            self.on_end()

    def data(self):
        return ctypes.string_at(self.address, self.size)

    def capsule(self, name=VERSIONED, destructor=True):
        """A new capsule; which of the structs is in it, its name says."""
        legacy = name is not None and b"versioned" not in name
        at = ctypes.addressof(self.legacy if legacy else self.versioned)
        held = None
        if name is not None:
            held = _kept(name)
        made = _new(at, held, _nothing if destructor else None)
        if destructor:
            self.capsules.append(made)
        return made

    def settle(self):
        """What the destructors of capsules that nobody consumed do."""
        for capsule in self.capsules:
            name = capsule_name(capsule)
            if name not in (LEGACY, VERSIONED):
                continue
            _set_name(capsule, _kept(USED[name]))
            m = self.legacy if name == LEGACY else self.versioned
            if m.deleter:
                DELETER(m.deleter)(ctypes.addressof(m))
        self.capsules.clear()


_names = {}


def _kept(name):
    """The address of a text that stays."""
    return ctypes.addressof(_names.setdefault(name, ctypes.create_string_buffer(name)))


class Producer:
    """An object that a consumer may ask, and what it was asked."""

    def __init__(self, made, *, legacy=False, raises=None, destructor=True,
                 returns=None, device=None):
        self.made, self.legacy, self.raises = made, legacy, raises
        self.destructor, self.returns, self.asked = destructor, returns, []
        self._device = device

    def __dlpack_device__(self):
        return self.made.device if self._device is None else self._device

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self.asked.append({"stream": stream, "max_version": max_version,
                           "dl_device": dl_device, "copy": copy})
        if self.raises:
            raise self.raises
        if self.returns is not None:
            return self.returns
        old = self.legacy or max_version is None
        return self.made.capsule(LEGACY if old else VERSIONED, self.destructor)


class OldProducer:
    """One that was written before DLPack had versions."""

    def __init__(self, made, *, keywords=True):
        self.made, self.asked = made, 0
        if not keywords:
            self.__class__ = _Keywordless

    def __dlpack_device__(self):
        return self.made.device

    def __dlpack__(self, stream=None):
        self.asked += 1
        return self.made.capsule(LEGACY)


class _Keywordless(OldProducer):
    def __dlpack__(self):
        self.asked += 1
        return self.made.capsule(LEGACY)


class Hidden:
    """An array whose protocol is all that is seen of it: no exchange table."""

    def __init__(self, array, versions=True):
        self.array, self.versions = array, versions

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **keywords):
        if not self.versions:
            keywords.pop("max_version", None)
        return self.array.__dlpack__(**keywords)


def pack(name, values):
    """The bytes of values as elements of dtype name."""
    form = DTYPES[name][2]
    if name.startswith("complex"):
        parts = [p for v in values for p in (complex(v).real, complex(v).imag)]
        return struct.pack(f"={len(parts)}{form[0]}", *parts)
    if name == "bfloat16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    if form is None:
        return bytes(v & 0xff for v in values)
    return struct.pack(f"={len(values)}{form}", *values)
