# SPDX-License-Identifier: Apache-2.0
"""What the tests of derivatives and batching share."""

import pestle as pt


def near(a, b, tolerance=1e-6):
    """Trees of one structure and shapes whose leaves are as near as that, relatively
    where they are larger than 1. A list of numbers stands for an array."""
    if isinstance(b, list):
        b = pt.asarray(b)
    a, b = (pt.tree.flatten(v) for v in (a, b))
    assert a[1] == b[1], f"{a[1]}, not {b[1]}"
    for x, y in zip(a[0], b[0]):
        x, y = pt.asarray(x), pt.asarray(y)
        assert x.shape == y.shape, f"{x.shape}, not {y.shape}"
        x, y = (pt.ravel(pt.astype(v, pt.float64)).tolist() for v in (x, y))
        for p, q in zip(x, y):
            assert p == q or abs(p - q) <= tolerance * max(1, abs(q)), f"{p}, not {q}"
