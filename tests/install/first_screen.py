# SPDX-License-Identifier: Apache-2.0
"""The commands of README.md from a tarball to a result, and the result of a model of one's
own: that of tests/cli/stranger.py."""
import pathlib
import re

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
ROWS = [[1, 2, 3], [4, 5, 6]]
RIGHT = "[6.25, 8, 16, 15.5]"  # relu(x w + b), by hand


def commands():
    """The block that unpacks a tarball, which stands in the first 60 lines."""
    text = "\n".join(README.read_text(encoding="utf-8").splitlines()[:60])
    found = [b for b in re.findall(r"(?:^    .+\n)+", text, re.M)
             if "tar xzf pestle-" in b]
    assert len(found) == 1, "README.md does not begin with how to unpack a tarball"
    return re.sub("^    ", "", found[0], flags=re.M)
