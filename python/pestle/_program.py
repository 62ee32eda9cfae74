# SPDX-License-Identifier: Apache-2.0
"""Graphs as functions, shown, exported and loaded."""

import os

from . import _pestle as c
from ._core import Array, asarray
from ._jit import lower


class Lowered:
    """A function's graph for arguments of certain types. text(stage) shows it.

    Raises ValueError for a stage that there is not.

    >>> lowered = pt.lower(lambda x: pt.exp(x) + 1, pt.ones((4,)))
    >>> "pestle.fusion" in lowered.text("fused")
    True
    """

    def __init__(self, module, device, hidden=()):
        self.module, self.device, self._hidden = module, device, hidden

    def _closed(self):
        """The module with the arrays that the function reads besides its arguments as
        constants. Raises ValueError for one of a trace that the function is called in."""
        return c.close(self.module, self._hidden)

    def text(self, stage="graph"):
        """The graph, or what a stage of its compilation says: fused, schedule,
        kernels, source, asm, plan, times, explain."""
        return str(self.module) if stage == "graph" else self.module.dump(stage,
                                                                         self.device)

    def compile(self):
        """A function of flat arguments that runs the graph."""
        return Function(self._closed(), self.device)


def _numbers_of(x, ids, count, words):
    """Strings as their numbers; one that the model has not gets one behind |count|, by
    its place in |words|."""
    if isinstance(x, str):
        if x in ids:
            return ids[x]
        if x not in words:
            words.append(x)
        return count + words.index(x)
    x = x.tolist() if hasattr(x, "tolist") else x
    if not isinstance(x, (list, tuple, str)):
        raise TypeError(f"{x!r} is no str, of which the model takes an array")
    if isinstance(x, str):
        return _numbers_of(x, ids, count, words)
    return [_numbers_of(y, ids, count, words) for y in x]


def _words_of(numbers, words):
    return ([_words_of(n, words) for n in numbers] if isinstance(numbers, list)
            else words[numbers])


class Function:
    """A graph that is called with an array for each argument.

    inputs: (name, dtype, shape) of each argument. Called with arrays, or what asarray()
    takes, by place or by name. Where an ONNX model takes strings, a list of str, of lists
    of them, or a NumPy array of str; where it gives strings, the result is such a list.
    Raises TypeError for a name that there is not, ValueError for arguments of other
    types.

    >>> pt.load(pt.export(lambda x: x * 2, pt.ones((2,)))).inputs[0][1:]
    (pestle.float32, (2,))
    """

    def __init__(self, module, device=None):
        self.module, self.device = module, device
        self._run = c.Program(module, c.device(device))
        words, self._texts_in, self._texts_out = module.strings
        self._words = tuple(words)
        self._ids = {word: i for i, word in enumerate(words)}

    @property
    def inputs(self):
        """(name, dtype, shape) of each argument; None where an extent is open."""
        return self.module.inputs

    def __call__(self, *args, **kwargs):
        if kwargs:
            names = [row[0] for row in self.inputs]
            for name in kwargs:
                if name not in names[len(args):]:
                    raise TypeError(f"there is no argument {name!r}: "
                                    f"{', '.join(map(str, names))} are")
            args = args + tuple(kwargs[n] for n in names[len(args):] if n in kwargs)
        rows = self.inputs
        arrays, words = [], []
        for i, x in enumerate(args):
            if i in self._texts_in:
                x = _numbers_of(x, self._ids, len(self._words), words)
            y = x if isinstance(x, Array) else asarray(
                x, dtype=rows[i][1] if i < len(rows) and
                not hasattr(x, "dtype") else None, device=self.device)
            arrays.append(y)
        # In a function that is traced it is a part of that.
        traced = any(x.state == "traced" for x in arrays)
        results = c.inline(self.module, tuple(arrays)) if traced else self._run(arrays)
        for i in self._texts_out if not traced else ():
            results = list(results)
            results[i] = _words_of(results[i].tolist(), (*self._words, *words))
        return results[0] if len(results) == 1 else results

    def lower(self):
        """The graph, to be looked at."""
        return Lowered(self.module, c.device(self.device))


def export(function, *args, format="stablehlo", **kwargs):
    """function for these arguments as bytes: StableHLO text ("stablehlo"), or the
    graph's binary form ("module"), for load().

    args: as function takes them. Arrays that function reads besides are constants.
    Raises ValueError for another format, and what tracing function raises.

    >>> pt.load(pt.export(lambda x: x + 1, pt.ones((2,))))(pt.ones((2,))).tolist()
    [2.0, 2.0]
    """
    module = lower(function, *args, **kwargs)._closed()
    if format == "stablehlo":
        return str(module).encode()
    if format == "module":
        return module.serialize()
    raise ValueError(f"format is {format!r}: 'stablehlo' and 'module' are known")


def load(path, device=None):
    """The function of a file or of bytes: ONNX, StableHLO as text or bytecode, or
    what export() gave.

    Raises OSError for a file that cannot be read, Error for bytes that are no model,
    which says what is wrong where, NotImplementedError for what is valid and not taken.

    >>> data = pt.export(lambda x: x * 2, pt.ones((2,)), format="module")
    >>> pt.load(data)(pt.ones((2,))).tolist()
    [2.0, 2.0]
    """
    if isinstance(path, (bytes, bytearray, memoryview)):
        return Function(c.import_bytes(path), device)
    return Function(c.import_file(os.fspath(path)), device)


def load_onnx(path, device=None, compat=None):
    """The function of an ONNX model: a file, or its bytes.

    path: a path or bytes. inputs of the result says names, dtypes and shapes, None
    where an extent is open.
    compat: "ort": an op that ONNX Runtime reads otherwise than its text says is read so
    (docs/onnx.md lists these).
    Raises as load().

    >>> model = bytes.fromhex(
    ...     "08083a350a0c0a01781201792204"
    ...     "52656c751201675a100a0178120b0a0908011205"
    ...     "0a0312016e62100a0179120b0a09080112050a0312016e42040a00100d")
    >>> pt.load_onnx(model)(pt.asarray([1.0, -1.0])).tolist()
    [1.0, 0.0]
    """
    if compat not in (None, "ort"):
        raise ValueError(f"compat is {compat!r}: 'ort' is known")
    if isinstance(path, (bytes, bytearray, memoryview)):
        return Function(c.import_bytes(path, None, compat == "ort"), device)
    return Function(c.import_file(os.fspath(path), compat == "ort"), device)


def from_stablehlo(text, device=None):
    """The function that StableHLO text says.

    text: one module, as text or bytecode. Raises Error that names the line and what is
    wrong with it, NotImplementedError for what is valid and not taken.

    >>> text = pt.export(lambda x: x * 2, pt.ones((2,))).decode()
    >>> pt.from_stablehlo(text)(pt.ones((2,))).tolist()
    [2.0, 2.0]
    """
    return load(text.encode() if isinstance(text, str) else text, device)
