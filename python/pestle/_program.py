# SPDX-License-Identifier: Apache-2.0
"""Graphs as functions, shown, exported and loaded."""

import os

from . import _pestle as c
from ._core import Array, asarray
from ._jit import lower


class Lowered:
    """A function's graph for arguments of certain types. text(stage) shows it."""

    def __init__(self, module, device):
        self.module, self.device = module, device

    def text(self, stage="graph"):
        """The graph, or what a stage of its compilation says: fused, schedule,
        kernels, source, asm, plan, times, explain."""
        return str(self.module) if stage == "graph" else self.module.dump(stage,
                                                                         self.device)

    def compile(self):
        """A function of flat arguments that runs the graph."""
        return Function(self.module, self.device)


class Function:
    """A graph that is called with an array for each argument."""

    def __init__(self, module, device=None):
        self.module, self.device = module, device
        self._run = c.Program(module, c.device(device))

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
        arrays = []
        for i, x in enumerate(args):
            y = x if isinstance(x, Array) else asarray(
                x, dtype=rows[i][1] if i < len(rows) and
                not hasattr(x, "dtype") else None, device=self.device)
            arrays.append(y)
        results = self._run(arrays)
        return results[0] if len(results) == 1 else results

    def lower(self):
        """The graph, to be looked at."""
        return Lowered(self.module, c.device(self.device))


def export(function, *args, format="stablehlo", **kwargs):
    """function for these arguments as bytes: StableHLO text ("stablehlo"), or the
    graph's binary form ("module"), for load()."""
    lowered = lower(function, *args, **kwargs)
    if format == "stablehlo":
        return str(lowered.module).encode()
    if format == "module":
        return lowered.module.serialize()
    raise ValueError(f"format is {format!r}: 'stablehlo' and 'module' are known")


def load(path, device=None):
    """The function of a file or of bytes: ONNX, StableHLO as text or bytecode, or
    what export() gave."""
    if isinstance(path, (bytes, bytearray, memoryview)):
        return Function(c.import_bytes(path), device)
    return Function(c.import_file(os.fspath(path)), device)


def load_onnx(path, device=None):
    """The function of an ONNX model: a file, or its bytes."""
    return load(path, device)


def from_stablehlo(text, device=None):
    """The function that StableHLO text says."""
    return load(text.encode() if isinstance(text, str) else text, device)
