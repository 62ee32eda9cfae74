# SPDX-License-Identifier: Apache-2.0
"""Python callbacks: pure_callback, io_callback, debug.print, debug.callback.

A callback becomes `custom_call @pjrt.python_callback {index = N}`. N is a place in a table
here, held by the module that was lowered and by each program of the plugin that calls it
(one that is still queued too). The plugin calls _trampoline(), whose address the client is
given when it is made.
"""
import atexit
import ctypes
import itertools
import threading
import traceback

import ml_dtypes
import numpy as np

from jax_plugins.pestle import versions

TARGET = "pjrt.python_callback"


class _Tensor(ctypes.Structure):
    """pestle_tensor_t: DLPack's DLTensor."""
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_int32, ctypes.c_int64, ctypes.POINTER(_Tensor), ctypes.c_size_t,
    ctypes.POINTER(_Tensor), ctypes.c_size_t, ctypes.POINTER(ctypes.c_char),
    ctypes.c_size_t)

_SMALL = {(0, 2): "int2", (1, 2): "uint2", (0, 4): "int4", (1, 4): "uint4",
          (4, 16): "bfloat16", (7, 8): "float8_e3m4", (8, 8): "float8_e4m3",
          (9, 8): "float8_e4m3b11fnuz", (10, 8): "float8_e4m3fn",
          (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2",
          (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
          (17, 4): "float4_e2m1fn"}


def _dtype(code, bits):
    if (code, bits) in _SMALL:
        return np.dtype(getattr(ml_dtypes, _SMALL[code, bits]))
    if code == 6:
        return np.dtype(bool)
    return np.dtype(f"{'iuf  c'[code]}{bits // 8}")


def _view(tensor):
    """The tensor's memory, as an array that is valid during the call."""
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    dtype = _dtype(tensor.code, tensor.bits)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    memory = (ctypes.c_char * size).from_address(tensor.data +
                                                 tensor.byte_offset)
    return np.frombuffer(memory, dtype).reshape(shape)


_CALL, _HOLD, _LET_GO = range(3)

_table = {}  # index -> [callable, how many hold it]
_lock = threading.Lock()
_indices = itertools.count(1)


def _hold(index, change):
    with _lock:
        entry = _table[index]
        entry[1] += change
        if not entry[1]:
            del _table[index]


def _call(index, inputs, outputs):
    function = _table[index][0]
    # Copies: what the callable keeps must outlive the call.
    results = function(*(_view(x).copy() for x in inputs))
    for result, tensor in zip(results, outputs):
        target = _view(tensor)
        if target.size:
            target[...] = result


@_FUNCTION
def _trampoline(what, index, inputs, input_count, outputs, output_count,
                message, message_size):
    try:
        if what == _CALL:
            _call(index, inputs[:input_count], outputs[:output_count])
        else:
            _hold(index, 1 if what == _HOLD else -1)
        return 0
    except BaseException:  # pylint: disable=broad-except
        if message_size:
            text = traceback.format_exc().encode()
            text = text[-(message_size - 1):] + b"\0"
            ctypes.memmove(message, text, len(text))
        return 1


class _Side(ctypes.Structure):
    """pestle_pjrt_python_t"""
    _fields_ = [("call", _FUNCTION), ("is_alive", ctypes.c_int32)]


# The plugin looks at it until the process ends: it is never freed.
_side = _Side(_trampoline, 1)
for _immortal in (_side, _trampoline):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_immortal))


@atexit.register
def _interpreter_ends():
    versions.wait_for_effects()
    _side.is_alive = 0


def address():
    """Of what the client needs to know."""
    return ctypes.addressof(_side)


class _Entry:
    """Keeps a callable in the table as long as it lives itself."""

    def __init__(self, function):
        self.index = next(_indices)
        with _lock:
            _table[self.index] = [function, 1]

    def __del__(self):
        _hold(self.index, -1)


# --- Lowering ---


def _is_complex(aval):
    return np.issubdtype(aval.dtype, np.complexfloating)


def _parts(avals):
    """Of each value the types that it travels as: complex ones as two of reals."""
    shaped = versions.shaped_array()
    for aval in avals:
        if _is_complex(aval):
            part = np.dtype(f"f{aval.dtype.itemsize // 2}")
            yield shaped(aval.shape, part)
            yield shaped(aval.shape, part)
        else:
            yield aval


def _join(avals, parts):
    """The values of |avals| from the arrays that they travelled as."""
    parts = iter(parts)
    for aval in avals:
        if _is_complex(aval):
            real = next(parts)
            value = np.empty(real.shape, aval.dtype)
            value.real, value.imag = real, next(parts)
            yield value
        else:
            yield next(parts)


def _check(results, avals):
    """What the callback returned, in the parts that it travels as."""
    if len(results) != len(avals):
        raise RuntimeError("Mismatched number of outputs from callback. "
                           f"Expected: {len(avals)}, Actual: {len(results)}")
    parts = []
    for i, (value, aval) in enumerate(zip(results, avals)):
        value = versions.canonical(value)
        if value.shape != aval.shape:
            raise RuntimeError(
                f"Incorrect output shape for return value #{i}: Expected: "
                f"{aval.shape}, Actual: {value.shape}")
        if value.dtype != aval.dtype:
            raise RuntimeError(
                f"Incorrect output dtype for return value #{i}: Expected: "
                f"{aval.dtype}, Actual: {value.dtype}")
        parts += [value.real, value.imag] if _is_complex(aval) else [value]
    return parts


def emit_call(ctx, callback, operands, operand_avals, result_avals, *,
              has_side_effect, sharding=None):
    """The results of a call of |callback| with arrays for |operands|."""
    mlir, ir, hlo = versions.mlir(), versions.ir(), versions.hlo()

    def function(*parts):
        return _check(callback(*_join(operand_avals, parts)), result_avals)

    entry = _Entry(function)
    ctx.module_context.add_keepalive(entry)
    parts = []
    for operand, aval in zip(operands, operand_avals):
        parts += ([hlo.real(operand), hlo.imag(operand)]
                  if _is_complex(aval) else [operand])
    types = [mlir.aval_to_ir_type(ctx.module_context, a)
             for a in _parts(result_avals)]
    index = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), entry.index)
    call = mlir.custom_call(TARGET, result_types=types, operands=parts,
                            backend_config={"index": index},
                            has_side_effect=has_side_effect)
    if sharding is not None and not any(map(_is_complex, result_avals)):
        mlir.set_sharding(ctx.module_context, call, sharding)
    got, results = iter(call.results), []
    for aval in result_avals:
        results.append(hlo.complex(next(got), next(got))
                       if _is_complex(aval) else next(got))
    return results, entry


def _replacement(platform):
    def make(original):
        def emit_python_callback(ctx, callback, token, operands, operand_avals,
                                 result_avals, *args, has_side_effect,
                                 sharding=None, **kwargs):
            platforms = ctx.module_context.platforms
            if len(platforms) != 1 or platforms[0] != platform:
                return original(ctx, callback, token, operands, operand_avals,
                                result_avals, *args, sharding=sharding,
                                has_side_effect=has_side_effect, **kwargs)
            # Effects keep their order in the program: a token goes by.
            results, entry = emit_call(ctx, callback, operands, operand_avals,
                                       result_avals, sharding=sharding,
                                       has_side_effect=has_side_effect)
            return results, token, entry
        return emit_python_callback
    return make


def install(platform):
    versions.replace_emit_python_callback(_replacement(platform))
    for primitive, rule in versions.debug_primitives():
        if rule is not None:
            versions.register_lowering(primitive, rule, platform,
                                       cacheable=False)
