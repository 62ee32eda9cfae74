#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Backends that other packages bring: by the namespace package pestle_plugins, by entry
points, by neither where PESTLE_BACKEND_PATH is set. The backend is the tests' own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from case import HOME, run

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
MOCK = next(iter((BUILD / "tests/mock/backends").glob("libpestle-mock*")), None)
if MOCK is None:
    print("skipped: the tests' backend is not built")
    sys.exit(77)

NAMES = "import pestle as pt; print([b.name for b in pt.backends.list()])"


def python(code, *places, fails=False, **environment):
    env = {k: v for k, v in os.environ.items()
           if k not in ("PESTLE_BACKEND_PATH", "PYTHONPATH")}
    env.update(environment)
    env["PYTHONPATH"] = os.pathsep.join(str(p) for p in (HOME, *places))
    done = subprocess.run([sys.executable, "-c", code], env=env, check=False,
                          capture_output=True, text=True)
    assert bool(done.returncode) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


def site(folder, inside):
    """A folder for sys.path with the backend in |inside|."""
    place = pathlib.Path(folder) / inside
    place.mkdir(parents=True)
    shutil.copy(MOCK, place / MOCK.name)
    return pathlib.Path(folder)


def entry_point(place, value, package="stranger"):
    info = place / f"{package}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[pestle.plugins]\nmock = {value}\n")


def test_namespace():
    with tempfile.TemporaryDirectory() as folder:
        place = site(folder, "pestle_plugins/stranger")
        assert "'mock'" not in python(NAMES)
        assert "'mock'" in python(NAMES, place)
        got = python("import sys, pestle as pt; x = pt.ones(3, device='mock')\n"
                     "print((x + 1).tolist(), 'importlib.metadata' in sys.modules, "
                     "'pestle_plugins' in sys.modules)", place)
        assert "[2.0, 2.0, 2.0] False False" in got, got
        # A folder that depends on the current one is none.
        assert "'mock'" not in python(f"import os, sys; os.chdir({str(place)!r}); "
                                      f"sys.path.insert(0, '')\n" + NAMES)


def test_trust():
    with tempfile.TemporaryDirectory() as folder:
        place = site(folder, "pestle_plugins/stranger")
        (place / "pestle_plugins/stranger" / MOCK.name).chmod(0o777)
        why = python("import pestle as pt; print(pt.backends.why())", place)
        row = [line for line in why.splitlines() if line.startswith("mock")]
        assert row and "loaded" not in row[0], why


def test_search_path_alone():
    with tempfile.TemporaryDirectory() as folder:
        place = site(folder, "pestle_plugins/stranger")
        entry_point(place, "pestle_plugins.stranger")
        out = python(NAMES + "\npt.backends.load_all()\n" + NAMES, place,
                     PESTLE_BACKEND_PATH=str(BUILD / "backends"))
        assert "'mock'" not in out, out


def test_entry_points():
    with tempfile.TemporaryDirectory() as folder:
        place = site(folder, "stranger")
        (place / "stranger/__init__.py").write_text(
            "import os\ndef place():\n    return os.path.dirname(__file__)\n")
        entry_point(place, "stranger")
        # They are asked for a name that is not there, and by load_all().
        assert "'mock'" not in python(NAMES, place)
        for code in ("pt.device('mock')", "pt.device('mock:0')",
                     "pt.backends.load_best('mock')", "pt.backends.load_all()"):
            out = python(f"import pestle as pt\npt.ones(1)\n{code}\n{NAMES}", place)
            assert "'mock'" in out, (code, out)
        shutil.rmtree(place / "stranger-1.dist-info")
        entry_point(place, "stranger:place")
        assert "'mock'" in python("import pestle as pt; pt.device('mock')\n" + NAMES, place)


def test_entry_points_that_fail():
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        entry_point(place, "no_such_module")
        out = python("import pestle as pt\n"
                     "try:\n    pt.device('mock')\nexcept Exception as e:\n"
                     "    print(type(e).__name__, e)", place)
        assert "entry point 'mock' of stranger in pestle.plugins" in out, out
        assert "ModuleNotFoundError" in out and "no device 'mock'" in out, out
        # What there is stays usable.
        assert "[2.0]" in python("import warnings; warnings.simplefilter('ignore')\n"
                                 "import pestle as pt; pt.backends.load_all()\n"
                                 "print((pt.ones(1) + 1).tolist())", place)


if __name__ == "__main__":
    run(dict(globals()))
