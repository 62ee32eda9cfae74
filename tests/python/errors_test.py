#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every public function over a table of wrong arguments: what it raises is one of the
exceptions that docs/python.md names, and has a sentence."""

import importlib
import inspect

from case import raises, run

import pestle as pt

ALLOWED = (TypeError, ValueError, IndexError, NotImplementedError, OverflowError,
           pt.Error, MemoryError)
SKIPPED = {"set_default_device", "set_cache_limit", "set_memory_limit",
           "set_wired_limit", "reset_peak_memory", "clear_cache", "load_all", "eval",
           "async_eval", "synchronize", "set_search_paths", "Error", "Array"}
# Files that are not there are the system's own error.
FILES = {"load", "load_onnx", "from_stablehlo"}
X = pt.ones((2, 3))
WRONG = ["text", b"bytes", object(), {"a": 1}, [], {1}, -1, 10**30, 1.5, 2j, True, X,
         pt.ones((2, 3), dtype=pt.int8), pt.ones((0,)), pt.ones(()),
         pt.ones((3,), dtype=pt.complex64), pt.ones((2, 3), dtype=pt.bool),
         pt.asarray([0, 1, 5]), len, (1, "x"), pt.float32, slice(1), None]
KEYWORDS = {"axis": [7, "a", (0, 0), 1.5], "dtype": ["no", 3, object()],
            "device": ["nowhere", 3.5], "shape": ["a", -1, (2, "b")],
            "copy": [object()], "axes": [(9, 9), "a"]}


def functions():
    for place in ("", ".linalg", ".fft", ".random", ".tree"):
        module = importlib.import_module("pestle" + place)
        for name in sorted(dir(module)):
            value = getattr(module, name)
            if (name.startswith("_") or name in SKIPPED or not callable(value) or
                    inspect.isclass(value) or inspect.ismodule(value) or
                    type(value).__name__ == "dtype"):
                continue
            # What a file of the package imports is not its own.
            home = value.__module__ or "pestle._pestle"
            if place and home not in (module.__name__, "pestle._pestle"):
                continue
            yield f"pestle{place}.{name}", name, value


def attempt(title, name, function, args, kwargs, bad):
    try:
        function(*args, **kwargs)
    except ALLOWED as error:
        if not str(error):
            bad.append(f"{title}{args}: {type(error).__name__} without a sentence")
    except OSError:
        if name not in FILES:
            bad.append(f"{title}: OSError")
    except Exception as error:  # pylint: disable=broad-except
        bad.append(f"{title}{args} {kwargs}: {type(error).__name__}: {error}")


def test_wrong_arguments():
    bad = []
    for title, name, function in functions():
        attempt(title, name, function, (), {}, bad)
        for value in WRONG:
            attempt(title, name, function, (value,), {}, bad)
            attempt(title, name, function, (X, value), {}, bad)
            attempt(title, name, function, (value, X), {}, bad)
        for key, values in KEYWORDS.items():
            for value in values:
                attempt(title, name, function, (X,), {key: value}, bad)
    shown = sorted({b.split("(")[0].split(" {")[0] + ": " + b.split("}: ")[-1]
                    for b in bad})
    assert not bad, f"{len(bad)} of them:\n" + "\n".join(shown[:60])


def test_sentences():
    x = pt.ones((2, 3))
    raises(IndexError, lambda: pt.sum(x, axis=2), "axis 2", "2 axes")
    raises(ValueError, lambda: pt.sum(x, axis=(0, 0)), "twice")
    raises(TypeError, lambda: pt.sum(x, axis=1.5), "1.5")
    raises(ValueError, lambda: pt.reshape(x, (4, 2)), "6 elements", "(4, 2)")
    raises(TypeError, lambda: pt.sqrt([1.0]), "sqrt() takes arrays and numbers", "list")
    raises(ValueError, lambda: pt.ones((2, 3)) + pt.ones((4,)), "(2, 3) and (4)",
           "do not broadcast", "axis -1", "4", "3")
    raises(ValueError, lambda: pt.concat([pt.ones((2, 2)), pt.ones((3, 3))]), "(2, 2)",
           "(3, 3)", "axis 0")
    raises(TypeError, lambda: pt.zeros(2.5), "shape (2.5,)", "integers")
    raises(TypeError, lambda: pt.fori_loop(0, 3, lambda i, x: pt.concat([x, x]), X),
           "the body of a loop", "float32[2, 3]", "float32[4, 3]")
    raises(ValueError, lambda: x @ x, "(2, 3)", "no matrix product")
    raises(TypeError, lambda: pt.sort(pt.astype(x, pt.complex64)), "no order")
    raises(ValueError, lambda: pt.max(pt.ones((0,))), "no elements")
    raises(TypeError, lambda: pt.zeros((2,), dtype="float99"), "float99")
    raises(pt.Error, lambda: pt.device("nowhere"), "nowhere")
    raises(TypeError, lambda: pt.where(x, x, x), "f32, not i1")
    raises(IndexError, lambda: x[pt.asarray([1.0])], "float32")
    raises(TypeError, lambda: pt.add(x), "2 arrays, 1 are given")
    try:
        pt.device("nowhere")
    except pt.Error as error:
        assert error.code == "NOT_FOUND" and isinstance(error.notes, list)


run(globals())
