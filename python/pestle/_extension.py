# SPDX-License-Identifier: Apache-2.0
"""Ops of libraries of one's own, and what setuptools needs to build such."""

import os
import pathlib
import sys

from . import _pestle as c
from ._core import Array
from ._custom import call_op
from ._streams import on_stream


class _Extension:
    """The ops of an extension as functions."""

    def __init__(self, names):
        self._names = {name.rsplit(".", 1)[-1]: name for name in names}

    def __getattr__(self, name):
        full = self.__dict__["_names"].get(name)
        if full is None:
            raise AttributeError(f"the extension has no op {name!r}; it has "
                                 f"{', '.join(self._names) or 'none'}")
        table = c.op_table(full)

        def op(*args, stream=None, **named):
            count = len(args)
            for i, a in enumerate(args):  # numbers behind arrays are attributes
                if not isinstance(a, Array) and not hasattr(a, "__dlpack__") and \
                        isinstance(a, (bool, int, float, str, tuple)) and \
                        len(args) - i <= len(table) and i > 0:
                    count = i
                    break
            if isinstance(stream, c.Stream):
                return on_stream(op, stream, args, named)
            operands = [f"operand {i}" for i in range(count)]
            return call_op(full, operands, table, args, named, stream)

        op.__name__ = name
        setattr(self, name, op)
        return op


def _open(where):
    """The ops of a library of one's own."""
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(f"extension() takes a file or a package's name, not {where!r}")
    path = pathlib.Path(where)
    if not path.suffix or not path.exists():
        module = sys.modules.get(str(where))
        folder = pathlib.Path(module.__file__).parent if module and \
            getattr(module, "__file__", None) else path
        files = sorted(f for end in ("so", "dylib", "dll")
                       for f in folder.glob(f"lib*.{end}"))
        if not files:
            raise ValueError(f"no lib*.so is in {folder}")
        path = files[0]
    before = set(c.op_names())
    c.load_extension(str(path.resolve()))
    names = [n for n in c.op_names() if n not in before] or _loaded.get(str(path), [])
    _loaded[str(path)] = names
    return _Extension(names)


class _Extensions:
    """The ops of a library of one's own. where is its file, or the name of the package
    that it lies in: ``axpby = pestle.extension(__name__).axpby``. For setup.py of such a
    package it has setuptools' CMakeExtension and CMakeBuild. Raises ValueError where there
    is no such file, Error where it cannot be loaded.

    >>> pt.extension("nowhere")
    Traceback (most recent call last):
    ...
    ValueError: no lib*.so is in nowhere
    """
    __name__ = __qualname__ = "extension"

    def __call__(self, where):
        return _open(where)

    def __getattr__(self, name):
        if name not in ("CMakeExtension", "CMakeBuild"):
            raise AttributeError(f"extension has no attribute {name!r}: CMakeExtension and "
                                 "CMakeBuild are")
        from . import _build
        return getattr(_build, name)

    def __repr__(self):
        return "<pestle.extension>"


extension = _Extensions()
_loaded = {}
