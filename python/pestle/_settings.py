# SPDX-License-Identifier: Apache-2.0
"""What holds for the process or a block: config, devices of new arrays, streams."""

from . import _pestle as c


class _Block:
    """A block in which config has other values."""

    def __init__(self, values):
        self._values, self._before = values, []

    def __enter__(self):
        eager, real = c.get_settings()
        self._before.append(c.set_settings(self._values.get("eager", eager),
                                           self._values.get("default_float", real), True))
        return config

    def __exit__(self, *error):
        before = self._before.pop()
        c.set_settings(*(before or (None, None)), True)


class _Config:
    """What may be set for the process, config.eager = True, or for a block of one
    thread, with config(eager=True):

    eager          each operation is computed when it is recorded (False)
    default_float  what Python's floats, zeros(), mean() of integers and the like are:
                   float32 or float64 (float32); complex numbers follow it

    Raises TypeError for another setting and for no dtype, ValueError for another dtype.

    >>> with pt.config(default_float="float64"):
    ...     pt.zeros((2,)).dtype.name
    'float64'
    """

    __slots__ = ()

    @property
    def eager(self):
        return c.get_settings()[0]

    @eager.setter
    def eager(self, value):
        c.set_settings(_truth("eager", value), c.get_settings()[1], False)

    @property
    def default_float(self):
        return c.get_settings()[1]

    @default_float.setter
    def default_float(self, value):
        c.set_settings(c.get_settings()[0], value, False)

    def __call__(self, **values):
        for name, value in values.items():
            if name not in ("eager", "default_float"):
                raise TypeError(f"config has no setting {name!r}: eager and "
                                "default_float are")
            if name == "eager":
                _truth(name, value)
        return _Block(values)

    def __repr__(self):
        return f"config(eager={self.eager}, default_float={self.default_float})"


def _truth(name, value):
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}, not True or False")
    return value


config = _Config()


class _Here:
    """A block in which a thread has another device or stream."""

    _set = staticmethod(c.set_here)

    def __init__(self, device):
        self._value, self._before = c.device(device), []

    def __enter__(self):
        self._before.append(self._set(self._value))
        return self._value

    def __exit__(self, *error):
        self._set(self._before.pop())


class default_device(_Here):
    """Where this thread makes new arrays while the block runs:
    with pestle.default_device("gpu:0"): ...

    device is a device or its name. Other threads have their own; set_default_device()
    is for those that say nothing. Raises TypeError for no device, Error for one that is
    not there.

    >>> with pt.default_device("cpu"):
    ...     x = pt.zeros((2,))
    >>> x.device.type
    'cpu'
    """


class stream(_Here):
    """The stream that this thread's work of its device goes to while the block runs:
    with pestle.stream(s): ...

    s is a Stream, or a device, which has one. What is computed in the block is ordered
    there; results are waited for when they are read. Raises TypeError for what is
    neither.

    >>> s = pt.Stream()
    >>> with pt.stream(s):
    ...     y = pt.ones((3,)) * 2
    ...     pt.eval(y)
    >>> y.tolist()
    [2.0, 2.0, 2.0]
    """

    _set = staticmethod(c.set_stream)

    def __init__(self, s):
        self._value, self._before = c.default_stream(s), []
