#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each public function over a table of wrong arguments: types, shapes, axes, dtypes,
devices, deleted and donated arrays. What it raises is what docs/python.md says, in a
sentence with what was found; a function without a row is a failure."""

import importlib
import importlib.util
import inspect
import os
import pathlib

from case import run

import pestle as pt

spec = importlib.util.spec_from_file_location(
    "python_api", pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]) / "tools/python_api.py")
api = importlib.util.module_from_spec(spec)
spec.loader.exec_module(api)


def f(*shape):
    return pt.ones(shape)


def i(*values):
    return pt.asarray(list(values))


KEY = pt.random.key(0)
IDENTITY = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n" \
           "return %x : tensor<2xf32>\n}\n"

# Right arguments of each function that takes arrays: those in ARRAYS places are arrays.
# name: (arguments, keywords, places of arrays)
X = (f(2, 3),)
TWO = (f(2, 3), f(2, 3))
SQUARE = (f(2, 3, 3),)
CALLS = {
    "where": ((f(2, 3) > 0, *TWO), {}, (0, 1, 2)), "asnumpy": (X, {}, (0,)),
    "astype": ((f(2, 3), pt.int32), {}, (0,)), "broadcast_arrays": (TWO, {}, (0, 1)),
    "broadcast_to": ((f(3), (2, 3)), {}, (0,)), "clip": ((f(2, 3), 0, 1), {}, (0,)),
    "copy": (X, {}, (0,)), "cumulative_sum": (X, {"axis": 0}, (0,)),
    "cumulative_prod": (X, {"axis": 0}, (0,)), "empty_like": (X, {}, (0,)),
    "zeros_like": (X, {}, (0,)), "ones_like": (X, {}, (0,)),
    "full_like": ((f(2, 3), 1), {}, (0,)), "expand_dims": (X, {"axis": 0}, (0,)),
    "einsum": (("ij,jk", f(2, 3), f(3, 2)), {}, (1, 2)), "isin": (TWO, {}, (0, 1)),
    "matmul": ((f(2, 3), f(3, 2)), {}, (0, 1)), "meshgrid": ((f(2), f(3)), {}, (0, 1)),
    "moveaxis": ((f(2, 3), 0, 1), {}, (0,)), "outer": ((f(2), f(3)), {}, (0, 1)),
    "pad": ((f(2, 3), 1), {}, (0,)), "permute_dims": ((f(2, 3), (1, 0)), {}, (0,)),
    "repeat": ((f(2, 3), 2), {}, (0,)), "reshape": ((f(2, 3), (3, 2)), {}, (0,)),
    "roll": ((f(2, 3), 1), {}, (0,)), "searchsorted": ((f(3), f(2)), {}, (0, 1)),
    "split": ((f(2, 3), 2), {}, (0,)), "squeeze": ((f(1, 3),), {"axis": 0}, (0,)),
    "swapaxes": ((f(2, 3), 0, 1), {}, (0,)), "take": ((f(2, 3), i(0)), {"axis": 0}, (0, 1)),
    "take_along_axis": ((f(2, 3), pt.asarray([[0]])), {}, (0, 1)),
    "tensordot": ((f(2, 3), f(3, 2)), {"axes": 1}, (0, 1)),
    "tile": ((f(2, 3), (1, 2)), {}, (0,)), "topk": ((f(2, 3), 1), {}, (0,)),
    "conv": ((f(1, 4, 2), f(3, 2, 2)), {}, (0, 1)), "kron": (TWO, {}, (0, 1)),
    "dot": ((f(2, 3), f(3, 2)), {}, (0, 1)), "inner": (TWO, {}, (0, 1)),
    "array_equal": (TWO, {}, (0, 1)), "isclose": (TWO, {}, (0, 1)),
    "allclose": (TWO, {}, (0, 1)), "quantile": ((f(2, 3), 0.5), {}, (0,)),
    "percentile": ((f(2, 3), 50), {}, (0,)), "diag": (X, {}, (0,)),
    "cumsum": (X, {}, (0,)), "cumprod": (X, {}, (0,)),
    "vecdot": (TWO, {}, (0, 1)), "linalg.cross": (TWO, {}, (0, 1)),
    "linalg.matmul": ((f(2, 3), f(3, 2)), {}, (0, 1)),
    "linalg.matrix_power": ((f(3, 3), 2), {}, (0,)),
    "linalg.outer": ((f(2), f(3)), {}, (0, 1)),
    "linalg.solve": ((f(3, 3), f(3)), {}, (0, 1)),
    "linalg.tensordot": ((f(2, 3), f(3, 2)), {"axes": 1}, (0, 1)),
    "linalg.vecdot": (TWO, {}, (0, 1)), "fft.irfftn": (X, {}, (0,)),
    "random.fold_in": ((KEY, 1), {}, (0,)), "random.split": ((KEY,), {}, (0,)),
    "random.randint": ((KEY, (2,), 0, 5), {}, (0,)),
    "random.permutation": ((KEY, 3), {}, (0,)),
    "random.truncated_normal": ((KEY, -1.0, 1.0), {}, (0,)),
    "random.categorical": ((KEY, f(3)), {}, (0, 1)),
    "random.choice": ((KEY, 3), {}, (0,)),
    "random.beta": ((KEY, 1.0, f(3)), {}, (0, 2)),
    "random.multivariate_normal": ((KEY, f(3), f(3, 3)), {}, (0, 1, 2)),
}
for name in ("chisquare", "dirichlet", "gamma", "loggamma", "poisson", "t"):
    CALLS["random." + name] = ((KEY, f(3)), {}, (0, 1))
for name in ("cauchy", "laplace", "logistic", "rademacher"):
    CALLS["random." + name] = ((KEY,), {}, (0,))
for name in ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet"):
    CALLS["linalg." + name] = (SQUARE, {}, (0,))
for name in ("bernoulli", "bits", "exponential", "gumbel", "normal", "uniform"):
    CALLS["random." + name] = ((KEY,), {}, (0,))

# What takes no array, or any value: each has a test of its own below, or nothing that
# can be wrong.
OTHERS = {
    "arange", "array", "asarray", "async_eval", "hstack", "identity", "tri", "vstack", "broadcast_shapes", "can_cast", "clear_cache",
    "concat", "concatenate", "cond", "config", "default_device", "device", "device_info",
    "dtype", "empty", "eval", "export", "eye", "finfo", "fori_loop", "from_dlpack",
    "from_stablehlo", "full", "get_active_memory", "get_cache_memory", "get_memory_limit",
    "get_peak_memory", "gpu", "iinfo", "isdtype", "jit", "linspace", "load", "load_onnx",
    "lower", "map", "ones", "reset_peak_memory", "result_type", "scan", "set_cache_limit",
    "set_default_device", "set_memory_limit", "set_wired_limit", "stack", "stats",
    "stop_gradient", "stream", "switch", "synchronize", "while_loop", "zeros", "Array",
    "Decoder", "Error", "Function", "Lowered", "Module", "Session", "Spec", "Stream", "cpu", "custom_op",
    "extension", "kernel", "pure_callback", "grad", "value_and_grad", "jvp", "vjp",
    "checkpoint", "checkpoint_name", "custom_function", "custom_jvp", "custom_vjp", "custom_vmap", "vmap",
    "linearize", "jacfwd", "jacrev", "hessian", "fft.fftfreq",
    "fft.rfftfreq", "random.key", "linalg.EigResult", "linalg.EighResult",
    "linalg.QRResult", "linalg.SVDResult", "linalg.SlogdetResult",
}


def functions():
    for place in ("", "linalg", "fft", "random"):
        module = importlib.import_module("pestle." + place) if place else pt
        for name, value in api.public(module):
            if type(value).__name__ != "dtype":
                yield (place + "." if place else "") + name, value


def call_of(name, value):
    if name in CALLS:
        return CALLS[name]
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return None
    if names[:2] == ["x1", "x2"]:
        bits = name.startswith("bitwise")
        x = i(1, 2) if bits else f(2, 3)
        return (x, x), {}, (0, 1)
    if names[:1] == ["x"]:
        whole = name in ("bitwise_invert", "popcount")
        return (i(1, 2) if whole else f(2, 3),), {}, (0,)
    return None


TABLE = {name: (value, call_of(name, value)) for name, value in functions()
         if name not in OTHERS}


def refused(title, function, args, kwargs, kinds, words, bad):
    try:
        y = function(*args, **kwargs)
        pt.eval(y)
    except Exception as error:  # pylint: disable=broad-except
        text = str(error)
        if type(error) not in kinds:
            bad.append(f"{title}: {type(error).__name__}, not "
                       f"{' or '.join(k.__name__ for k in kinds)}: {text}")
        for word in words:
            if word not in text:
                bad.append(f"{title}: no {word!r} in {text!r}")
        return
    bad.append(f"{title}: it was taken")


def told(bad):
    assert not bad, f"{len(bad)}:\n" + "\n".join(b[:250] for b in bad)


def test_each_has_a_row():
    missing = [n for n, (_, call) in TABLE.items() if call is None]
    assert not missing, missing
    gone = OTHERS - {n for n, _ in functions()}
    assert not gone, f"there is no {gone}"
    for name, (function, (args, kwargs, _)) in TABLE.items():
        function(*args, **kwargs)  # the right arguments are right


def replaced(args, place, value):
    return args[:place] + (value,) + args[place + 1:]


# A number beside an array is right here.
NUMBERS = {"isin", "searchsorted", "where", "clip"}


def test_wrong_types():
    bad = []
    for name, (function, (args, kwargs, places)) in TABLE.items():
        for place in places:
            for wrong, word in (("text", "text"), (object(), "object"), ({}, "")):
                refused(f"{name}, argument {place} {type(wrong).__name__}", function,
                        replaced(args, place, wrong), kwargs, (TypeError,), (), bad)
    told(bad)


def test_deleted_and_donated():
    bad = []
    donate = pt.jit(lambda x: x + x if x.dtype != pt.bool else x, donate_argnums=0)
    for name, (function, (args, kwargs, places)) in TABLE.items():
        if name in ("stop_gradient", "positive", "zeros_like", "ones_like", "empty_like",
                    "full_like"):
            continue  # they read no element
        for place in places:
            x = args[place]
            if not isinstance(x, pt.Array):
                continue
            for how, word in ((lambda v: v.delete(), "deleted"), (donate, "donated")):
                gone = pt.copy(x)
                how(gone)
                assert gone.is_deleted()
                refused(f"{name}, argument {place} {word}", function,
                        replaced(args, place, gone), kwargs, (ValueError,), (word,), bad)
    told(bad)


def test_wrong_axes():
    bad = []
    for name, (function, (args, kwargs, _)) in TABLE.items():
        names = inspect.signature(function).parameters
        for key in ("axis", "axes"):
            if key not in names or name in ("transpose", "permute_dims", "tensordot",
                                            "linalg.tensordot"):
                continue
            title = f"{name}({key}=...)"
            refused(title + " 99", function, args, {**kwargs, key: 99}, (IndexError,),
                    ("99", "axes"), bad)
            refused(title + " 'a'", function, args, {**kwargs, key: "a"}, (TypeError,),
                    ("'a'", "ax"), bad)
            refused(title + " 1.5", function, args, {**kwargs, key: 1.5}, (TypeError,),
                    ("1.5",), bad)
    told(bad)


def test_wrong_dtypes_and_devices():
    bad = []
    for name, value in functions():
        call = TABLE[name][1] if name in TABLE else MAKERS.get(name)
        if call is None:
            continue
        args, kwargs, _ = call
        try:
            names = inspect.signature(value).parameters
        except (TypeError, ValueError):
            continue
        if "dtype" in names and "dtype" not in kwargs and name not in (
                "isdtype", "astype"):
            for wrong in ("float99", object()):
                refused(f"{name}(dtype={wrong!r})", value, args,
                        {**kwargs, "dtype": wrong}, (TypeError,), ("dtype",), bad)
        if "device" in names:
            refused(f"{name}(device='nowhere')", value, args,
                    {**kwargs, "device": "nowhere"}, (pt.Error,), ("nowhere",), bad)
            refused(f"{name}(device=1.5)", value, args, {**kwargs, "device": 1.5},
                    (TypeError,), ("1.5",), bad)
    told(bad)


MAKERS = {
    "arange": ((3,), {}, ()), "asarray": (([1],), {}, ()), "empty": (((2,),), {}, ()),
    "eye": ((2,), {}, ()), "full": (((2,), 1), {}, ()), "linspace": ((0, 1, 3), {}, ()),
    "ones": (((2,),), {}, ()), "zeros": (((2,),), {}, ()),
    "fft.fftfreq": ((3,), {}, ()), "fft.rfftfreq": ((3,), {}, ()),
    "device_info": ((), {}, ()), "get_active_memory": ((), {}, ()),
    "clear_cache": ((), {}, ()),
}


def test_wrong_shapes():
    bad = []
    for name in ("zeros", "ones", "empty"):
        for wrong, kind in ((-1, ValueError), ((2, -3), ValueError), ("a", TypeError),
                            ((2, "b"), TypeError), (1.5, TypeError), (None, TypeError)):
            refused(f"{name}({wrong!r})", getattr(pt, name), (wrong,), {}, (kind,), (),
                    bad)
        refused(f"{name} of 17 axes", getattr(pt, name), ((1,) * 17,), {}, (ValueError,),
                ("16",), bad)
    pairs = [("add", (f(2), f(3))), ("where", (f(2) > 0, f(3), f(3))),
             ("matmul", (f(2, 3), f(2, 3))), ("concat", ([f(2, 3), f(2)],)),
             ("stack", ([f(2), f(3)],)), ("reshape", (f(2, 3), (4,))),
             ("broadcast_to", (f(2), (3,))), ("outer", (f(2, 2), f(2))),
             ("tensordot", (f(2, 3), f(2, 3))), ("vecdot", (f(2), f(3))),
             ("einsum", ("ij,jk", f(2, 3), f(2, 3))), ("squeeze", (f(2, 3),)),
             ("take_along_axis", (f(2, 3), i(0))), ("meshgrid", (f(2, 2), f(2))),
             ("tril", (f(3),)), ("split", (f(3), 2)), ("repeat", (f(3), i(1, 2))),
             ("pad", (f(2, 3), ((1, 1),))), ("searchsorted", (f(2, 2), f(2)))]
    for name, args in pairs:
        kwargs = {"axis": 0} if name == "squeeze" else {}
        if name == "tensordot":
            kwargs = {"axes": 1}
        refused(f"{name} of wrong shapes", getattr(pt, name), args, kwargs, (ValueError,),
                (), bad)
    for name in ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet",
                 "matrix_power"):
        args = (f(2, 3), 2) if name == "matrix_power" else (f(2, 3),)
        refused(f"linalg.{name} of 2 x 3", getattr(pt.linalg, name), args, {},
                (ValueError,), ("(2, 3)",), bad)
    told(bad)


ORDERED = ("max min argmax argmin sort argsort topk clip ceil floor trunc floor_divide "
           "remainder less greater maximum minimum atan2 hypot copysign nextafter cbrt "
           "erf signbit").split()


def test_wrong_dtypes_of_arrays():
    bad = []
    z = pt.asarray([1 + 1j, 2j])
    for name in ORDERED:
        function = getattr(pt, name)
        args = TABLE[name][1][0]
        args = tuple(z if isinstance(a, pt.Array) else a for a in args)
        refused(f"{name} of complex numbers", function, args, {}, (TypeError,), (), bad)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift"):
        refused(f"{name} of floats", getattr(pt, name), TWO, {}, (TypeError,), ("f32",),
                bad)
    for name in ("add", "multiply", "maximum"):
        narrow = pt.astype(f(2, 3), pt.float8_e4m3fn)
        refused(f"{name} of float8 and float32", getattr(pt, name), (narrow, f(2, 3)), {},
                (TypeError,), ("common dtype",), bad)
    told(bad)


def test_other_devices():
    bad, here = [], pt.device().name
    other = "llvm" if here == "ref" else "ref"
    for name, (function, (args, kwargs, places)) in TABLE.items():
        arrays = [p for p in places if isinstance(args[p], pt.Array)]
        if len(arrays) < 2 or name in ("broadcast_arrays", "meshgrid"):
            continue
        moved = replaced(args, arrays[-1], pt.copy(args[arrays[-1]], other))
        refused(f"{name} on two devices", function, moved, kwargs, (ValueError,),
                ("different backends", here, other, "pestle.copy"), bad)
    told(bad)


def test_others():
    x = f(2, 3)
    rows = [
        (pt.arange, (0, 5, 0), {}, ValueError, ("step",)),
        (pt.arange, ("a",), {}, TypeError, ()),
        (pt.asarray, ([[1], [1, 2]],), {}, ValueError, ("lengths",)),
        (pt.asarray, (300,), {"dtype": pt.int8}, OverflowError, ("300", "int8")),
        (pt.asarray, ("text",), {}, TypeError, ("'text'",)),
        (pt.asarray, ([1],), {"copy": False}, ValueError, ("copy",)),
        (pt.concat, ([],), {}, ValueError, ("at least one",)),
        (pt.stack, ([],), {}, ValueError, ("at least one",)),
        (pt.concat, ([x, x],), {"axis": 2}, IndexError, ("axis 2", "2 axes")),
        (pt.isdtype, (pt.int8, "whole"), {}, ValueError, ("'whole'", "integral")),
        (pt.finfo, (pt.int8,), {}, TypeError, ("int8",)),
        (pt.iinfo, (pt.float32,), {}, TypeError, ("float32",)),
        (pt.broadcast_shapes, ((2,), (3,)), {}, ValueError, ("(2,)", "(3,)")),
        (pt.linspace, (0, 1, -1), {}, ValueError, ("-1",)),
        (pt.full, ((2,), "a"), {}, TypeError, ()),
        (pt.jit, (3,), {}, TypeError, ("3",)),
        (pt.jit, (pt.sin,), {"numerics": "wild"}, ValueError, ("'wild'", "strict")),
        (pt.lower, (3,), {}, TypeError, ("3",)),
        (pt.export, (pt.sin, x), {"format": "pdf"}, ValueError, ("'pdf'", "stablehlo")),
        (pt.load, (b"nothing",), {}, pt.Error, ()),
        (pt.load_onnx, (b"\xff\xff\xff",), {}, pt.Error, ()),
        (pt.load_onnx, (b"",), {"compat": "tf"}, ValueError, ("'tf'", "ort")),
        (pt.from_stablehlo, ("func.func @main( {",), {}, pt.Error, ("1:",)),
        (pt.cond, (x, pt.sin, pt.cos, x), {}, TypeError, ("rank 0",)),
        (pt.while_loop, (lambda v: v < 3, lambda v: v > 3, i(1)[0]), {}, TypeError,
         ("leaf 0", "int64", "bool")),
        (pt.scan, (lambda c, v: (c, v), 0, None), {}, ValueError, ("length",)),
        (pt.random.key, ("a",), {}, TypeError, ("'a'",)),
        (pt.random.normal, (x,), {}, TypeError, ("uint32", "(2, 3)")),
        (pt.random.normal, (KEY, (2,)), {"dtype": pt.int8}, TypeError, ("int8",)),
        (pt.random.choice, (KEY, 2, (3,)), {"replace": False}, ValueError, ("3 of 2",)),
        (pt.set_cache_limit, ("a",), {}, TypeError, ()),
        (pt.Stream, (1.5,), {}, TypeError, ("1.5",)),
        (pt.default_device, (1.5,), {}, TypeError, ("1.5",)),
        (pt.device, ("nowhere",), {}, pt.Error, ("nowhere",)),
        (pt.dtype, ("float99",), {}, TypeError, ("float99", "float32")),
        (pt.einsum, (3, x), {}, TypeError, ("3",)),
        (pt.isdtype, ("no", "numeric"), {}, TypeError, ("'no'",)),
        (pt.result_type, (), {}, ValueError, ("at least one",)),
        (pt.result_type, ("no",), {}, TypeError, ("'no'",)),
        (pt.from_dlpack, (3,), {}, TypeError, ("int", "__dlpack__")),
        (pt.tree.unflatten, (3, []), {}, TypeError, ("3",)),
        (pt.tree.map, (pt.add, [1], [1, 2]), {}, ValueError, ("mapped together",)),
        (pt.tree.reduce, (pt.add, []), {}, ValueError, ("initial",)),
        (pt.backends.load, ("no.so",), {}, pt.Error, ("no.so",)),
        (x.__getitem__, ((0, 0, 0),), {}, IndexError, ("2 axes",)),
        (x.__getitem__, (5,), {}, IndexError, ("index 5", "axis 0", "2 elements")),
        (x.__getitem__, (1.5,), {}, IndexError, ()),
        (x.__setitem__, (0, f(7)), {}, ValueError, ("(7,)", "(3,)")),
        (x.at[0].set, (f(7),), {}, ValueError, ("(7,)", "(3,)")),
        (bool, (x,), {}, TypeError, ("rank 0", "rank 2")),
        (x.item, (), {}, ValueError, ("one element",)),
        (f(2).reshape, (3,), {}, ValueError, ("2 elements", "(3,)")),
        (lambda: hash(x), (), {}, TypeError, ()),
        (lambda: len(f()), (), {}, TypeError, ("rank 0",)),
        (lambda: list(f()), (), {}, TypeError, ("rank 0",)),
        (lambda: pt.copy(x, "cpu").__dlpack__(stream="a"), (), {}, ValueError,
         ("'a'", "no streams")),
        (lambda: range(3)[f()], (), {}, TypeError, ("float32",)),
        (pt.jit(lambda v: bool(v.sum() > 0)), (x,), {}, ValueError, ("traced",)),
        (pt.jit(lambda v: pt.nonzero(v)), (x,), {}, ValueError, ("traced",)),
        (pt.jit(lambda v: v), ("text",), {}, TypeError, ("'text'", "static_argnums")),
        (pt.jit(lambda v: object()), (x,), {}, TypeError, ("returns",)),
    ]
    bad = []
    for n, (function, args, kwargs, kind, words) in enumerate(rows):
        name = getattr(function, "__name__", "a function")
        refused(f"row {n}, {name}{args if len(str(args)) < 60 else ''}", function, args,
                kwargs, (kind,), words, bad)
    told(bad)


run(globals())
