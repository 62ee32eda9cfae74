#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle/python.h: an extension that is built apart from the package, in the limited
API, against the headers and the library alone."""

import gc
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

from case import raises, run

import pestle as pt

SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
CC = os.environ.get("CC") or shutil.which("cc")
if not CC or not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
    print("skipped: no C compiler, or no Python.h")
    sys.exit(77)

folder = tempfile.TemporaryDirectory()
subprocess.run([CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared",
                f"-I{SOURCE / 'include'}", f"-I{BUILD / 'include'}",
                f"-isystem{sysconfig.get_path('include')}",
                str(SOURCE / "tests/python/extension/smooth.c"), f"-L{BUILD}", "-lpestle",
                f"-Wl,-rpath,{BUILD}", "-o", f"{folder.name}/smooth.abi3.so"], check=True)
sys.path.insert(0, folder.name)
import smooth  # noqa: E402


def test_arrays_in_and_out():
    x = pt.arange(4, dtype=pt.float32) * 2
    y = smooth.smooth(x)
    assert isinstance(y, pt.Array) and y.state == "lazy"
    assert (y + 1).tolist() == [7, 7, 7, 7]
    f = pt.jit(lambda v: smooth.smooth(v) * 2)
    assert f(x).tolist() == [12, 12, 12, 12], "it may be traced"
    assert smooth.is_array(x) and not smooth.is_array([1])
    assert smooth.total([[1, 2], [3, 4.5]]) == 10.5
    assert smooth.total(x) == 12 and smooth.total(3) == 3


def test_memory_of_the_extension():
    before = smooth.freed()
    x = smooth.squares(5)
    assert x.tolist() == [0, 1, 4, 9, 16]
    y = x[1:]
    del x
    gc.collect()
    assert smooth.freed() == before, "a view sees it"
    del y
    gc.collect()
    assert smooth.freed() == before + 1
    assert smooth.squares(2, "ref").device == pt.device("ref")
    for _ in range(1000):
        smooth.squares(10)
    assert smooth.freed() == before + 1002


def test_failures_are_exceptions():
    raises(TypeError, lambda: smooth.smooth([1.0]), "[1.0]", "pestle.Array")
    raises(ValueError, lambda: smooth.smooth(pt.ones(())), "reverse")
    raises(TypeError, lambda: smooth.total("text"), "'text'")
    raises(pt.Error, lambda: smooth.squares(2, "nowhere"), "nowhere")
    x = pt.ones((2,))
    x.delete()
    raises(ValueError, lambda: smooth.smooth(x), "deleted")
    # References are given back on each path.
    x = pt.ones((3,))
    count = sys.getrefcount(x)
    for _ in range(100):
        smooth.smooth(x)
    assert sys.getrefcount(x) == count


run(globals())
