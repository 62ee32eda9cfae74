# SPDX-License-Identifier: Apache-2.0
"""Conformance of array libraries to DLPack 1.3, as producers and as consumers.

    python -m pestle.testing.dlpack                    # Pestle, with all that is here
    python -m pestle.testing.dlpack --consumer numpy   # numpy as a consumer
    python -m pestle.testing.dlpack --matrix           # every library, as a table

A cell is one property of one producer and one consumer: it says whether the values
came over, whether memory is shared, and how often the deleter was called. Cells run in
a process of their own, so that a library which crashes costs its cell alone. Nothing
but Python and the libraries that are looked at is needed."""

from .cells import Cell, Outcome
from .libraries import LIBRARIES, Library, available
from .runner import matrix, run

__all__ = ["Cell", "LIBRARIES", "Library", "Outcome", "available", "matrix", "run"]
