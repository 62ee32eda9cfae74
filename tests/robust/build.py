# SPDX-License-Identifier: Apache-2.0
"""The build that is tested."""

import os
import pathlib

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])


def sanitized():
    """The sanitizers that it has, joined by commas; "" without any."""
    cache = (BUILD / "CMakeCache.txt").read_text(encoding="utf-8")
    for line in cache.splitlines():
        if line.startswith("PESTLE_SANITIZE:"):
            return line.split("=", 1)[1]
    return ""
