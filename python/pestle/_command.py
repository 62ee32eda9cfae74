# SPDX-License-Identifier: Apache-2.0
"""The command `pestle` of the wheel: the program itself, in place of this process."""
import os
import pathlib
import sys


def main():
    program = pathlib.Path(__file__).resolve().parent / "bin" / "pestle"
    os.execv(program, ["pestle", *sys.argv[1:]])
