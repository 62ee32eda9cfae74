# SPDX-License-Identifier: Apache-2.0
"""The command `pestle` of the wheel: the program itself, in place of this process. It
is told of the backends of other packages, which it does not look for."""
import os
import pathlib
import sys


def main():
    from ._plugins import folders
    home = pathlib.Path(__file__).resolve().parent
    found = [f for f in folders() if os.pathsep not in f]
    if found:
        own = str(home / "lib" / "pestle" / "backends")
        os.environ["PESTLE_BACKEND_PATH"] = os.pathsep.join([own, *found])
    os.execv(home / "bin" / "pestle", ["pestle", *sys.argv[1:]])
