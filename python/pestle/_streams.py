# SPDX-License-Identifier: Apache-2.0
"""stream= of the functions that compute arrays."""

from . import _pestle as c
from . import tree

# What computes no array, or takes a stream itself.
_OTHERS = {"broadcast_shapes", "can_cast", "finfo", "iinfo", "isdtype", "result_type"}


class _Block:
    """A block in which work goes to a stream and new arrays are made on its device."""

    def __init__(self, stream):
        self._stream = stream

    def __enter__(self):
        self._device = c.set_here(self._stream.device)
        self._before = c.set_stream(self._stream)

    def __exit__(self, *error):
        c.set_stream(self._before)
        c.set_here(self._device)


def on_stream(function, stream, args, kwargs=None):
    """What function gives, whose work is queued on stream when this returns. What is
    traced has no work yet: it goes where the traced function does."""
    stream = c.default_stream(stream)
    with _Block(stream):
        result = function(*args, **(kwargs or {}))
    arrays = [x for x in tree.leaves(result)
              if isinstance(x, c.Array) and x.state != "traced"]
    for x in arrays:
        if x.device != stream.device:
            raise ValueError(f"the stream is of {stream.device}, and the result is on "
                             f"{x.device}: pestle.copy(x, device) moves what it is made of")
    c.async_eval(arrays, stream=stream)
    return result


def streamed(function, module):
    """function with the keyword stream."""
    def call(*args, stream=None, **kwargs):
        if stream is None:
            return function(*args, **kwargs)
        return on_stream(function, stream, args, kwargs)
    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__, call.__module__ = function.__doc__, module
    call.__wrapped__, call.takes_stream = function, True
    return call


def install(names, files, module):
    """Gives the functions among names that files of the package have the keyword."""
    files = {f"pestle.{file}" for file in files}
    for name, value in list(names.items()):
        if (type(value) is type(install) and value.__module__ in files and
                not name.startswith("_") and name not in _OTHERS):
            names[name] = streamed(value, module)
