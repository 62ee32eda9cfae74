# SPDX-License-Identifier: Apache-2.0
"""__array_namespace_info__()."""

from . import _pestle as c
from ._core import default_complex, default_float
from ._make import _KINDS


class Info:
    """What the namespace has, as the array API standard asks it."""

    def capabilities(self):
        """What may depend on data, and how many axes there are."""
        return {"boolean indexing": True, "data-dependent shapes": True,
                "max dimensions": 16}

    def default_device(self):
        """Where new arrays are made."""
        return c.device()

    def default_dtypes(self, *, device=None):
        """The dtypes of what is made without one."""
        return {"real floating": default_float(), "complex floating": default_complex(),
                "integral": c.int64, "indexing": c.int64}

    def devices(self):
        """All devices."""
        from . import backends
        return tuple(backends.devices())

    def dtypes(self, *, device=None, kind=None):
        """The standard's dtypes of a kind, by name."""
        if kind is None:
            kinds = ("bool", "numeric")
        else:
            kinds = kind if isinstance(kind, tuple) else (kind,)
        for k in kinds:
            if k not in _KINDS:
                raise ValueError(f"there is no kind {k!r}")
        return {d.name: d for k in kinds for d in _KINDS[k]}
