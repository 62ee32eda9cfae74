# SPDX-License-Identifier: Apache-2.0
"""Models that are served: any shape, from any thread."""

import os

from . import _pestle as c
from ._core import Array, asarray
from ._program import _numbers_of, _words_of

_PLANS = (b"PSTLPLN1", b"PSTLSET1")


def _on_host(x, dtype, host):
    """x as an array that a session reads: where it lies if it can be."""
    if isinstance(x, Array):
        return x if x.device.type == "cpu" else c.copy(x, host)
    if not hasattr(x, "dtype"):
        return asarray(x, dtype=dtype, device=host)
    try:
        return asarray(x, device=host, copy=False)
    except (BufferError, TypeError, ValueError):
        return asarray(x, device=host)


class Session:
    """A model as it is served: it is imported once, takes any shape, from any threads at
    once, and has an executable for each shape, compiled when it first comes or declared.

    path: a model, a plan, or a set of plans of 'pestle compile'.
    shapes: extents that are compiled from the beginning, "batch=1,2,4..32", more dims
    behind a ';'. Others are served by the next larger one where that is shown to be
    right (docs/sessions.md); None: each shape is compiled when it first comes.
    device: where it runs. dims: {name: extent} of dims that are fixed.
    most_executables: how many of undeclared shapes are kept; 0: 16.
    exact: no shape is served by a larger one. waiting: no thread, who needs an
    executable compiles it. quick: serve by a quick tier until the full one is there.
    numerics: "default", "strict" or "fast". compat: as load_onnx() has it.
    Raises OSError for a file that cannot be read, ValueError for shapes and dims that the
    model has not, Error for bytes that are no model.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".mlir") as file:
    ...     _ = file.write(pt.export(lambda x: x * 2, pt.ones((2,))))
    ...     file.flush()
    ...     session = pt.Session(file.name)
    >>> session([1.0, 2.0]).tolist()
    [2.0, 4.0]
    >>> session.stats()["runs"]
    1
    """

    def __init__(self, path, shapes=None, *, device=None, dims=None, most_executables=0,
                 exact=False, waiting=False, quick=False, numerics="default", compat=None):
        if numerics not in ("default", "strict", "fast"):
            raise ValueError(f"numerics is {numerics!r}: 'default', 'strict' and 'fast' "
                             "are known")
        if compat not in (None, "ort"):
            raise ValueError(f"compat is {compat!r}: 'ort' is known")
        self._raw = c.RawSession(os.fspath(path), shapes, device, dims, compat == "ort",
                                 most_executables, exact, waiting, quick, numerics)
        self._host = c.device("cpu")
        self._inputs, self._outputs = self._raw.inputs, self._raw.outputs
        self._read_strings(path, compat)

    def _read_strings(self, path, compat):
        """Which inputs and outputs are strings, and the strings of the model."""
        with open(path, "rb") as file:
            is_plan = file.read(8) in _PLANS
        words, self._texts_in, self._texts_out = (
            ((), (), ()) if is_plan else
            c.import_file(os.fspath(path), compat == "ort").strings)
        self._words = tuple(words)
        self._ids = {word: i for i, word in enumerate(words)}

    @property
    def inputs(self):
        """(name, dtype, shape) of each input; None where runs decide an extent."""
        return list(self._inputs)

    @property
    def outputs(self):
        """The names of the outputs."""
        return list(self._outputs)

    def run(self, inputs, outputs=None):
        """Runs once: a dict of the results by name.

        inputs: what the model takes, by name: arrays, or what asarray() takes. outputs:
        names of those that are wanted; None: all.
        Raises ValueError for inputs that lack, that there are not, or that do not fit, and
        for outputs that there are not.
        """
        names = [row[0] for row in self._inputs]
        for name in inputs:
            if name not in names:
                raise ValueError(f"the model has no input {name!r}; it has "
                                 f"{', '.join(map(repr, names))}")
        lacking = [name for name in names if name not in inputs]
        if lacking:
            raise ValueError(f"the run lacks inputs: {', '.join(map(repr, lacking))}")
        wanted = list(self._outputs if outputs is None else outputs)
        for name in wanted:
            if name not in self._outputs:
                raise ValueError(f"the model has no output {name!r}; it has "
                                 f"{', '.join(map(repr, self._outputs))}")
        return dict(zip(wanted, self._run([inputs[name] for name in names], wanted)))

    def __call__(self, *args, **kwargs):
        """Runs with inputs by place or by name: the result, or a list of them."""
        names = [row[0] for row in self._inputs]
        if len(args) > len(names):
            raise TypeError(f"{len(args)} inputs are given, the model has {len(names)}")
        given = dict(zip(names, args))
        for name in kwargs:
            if name in given or name not in names:
                raise TypeError(f"there is no input {name!r} to be given: "
                                f"{', '.join(names[len(args):]) or 'none'} are")
        results = list(self.run({**given, **kwargs}).values())
        return results[0] if len(results) == 1 else results

    def _run(self, values, wanted):
        words, arrays = [], []
        for i, (x, row) in enumerate(zip(values, self._inputs)):
            if i in self._texts_in:
                x = _numbers_of(x, self._ids, len(self._words), words)
            arrays.append(_on_host(x, row[1], self._host))
        texts = self._texts_in or self._texts_out
        results = self._raw.run(arrays, wanted, *((words,) if texts else ()))
        for i in self._texts_out:
            if self._outputs[i] in wanted:
                at = wanted.index(self._outputs[i])
                results[at] = _words_of(results[at].tolist(), (*self._words, *words))
        return results

    def wait(self, seconds=None):
        """Returns when nothing is queued or being compiled.

        seconds: at most; None: as long as it takes. Raises TimeoutError after that, and
        what a compilation failed with since the last call.
        """
        try:
            self._raw.wait(seconds)
        except c.Error as error:
            if error.code != "DEADLINE_EXCEEDED":
                raise
            raise TimeoutError(str(error)) from None

    def stats(self):
        """What it counted, a dict: runs, padded_runs, compiles, waits, arena_bytes ...
        (pestle/session.h says what each is)."""
        return self._raw.stats()

    def shapes(self):
        """What it knows of each shape, the one that ran last first: dicts of shape,
        state ("ready", "padded", "queued", "failed", "quick"), declared, runs and note,
        which says why a larger executable does not serve it."""
        return self._raw.shapes()
