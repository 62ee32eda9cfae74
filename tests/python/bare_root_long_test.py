#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheels in a root that has Python, pip and nothing else: no compiler, no LLVM, no
LAPACK (tests/bare_root.py; trixie and sid bring Python 3.13 and 3.14). Skips where no such
root can be made."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import bare_root  # noqa: E402

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]).resolve()


def check(root, wheels):
    bare_root.check_bare(root)
    place = root / "wheels"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(wheels, place)
    shutil.copy(HERE / "bare_check.py", place)
    with bare_root.with_proc(root):
        done = bare_root.inside(root, "python3", "-m", "pip", "install", "--no-index",
                                "--find-links", "/wheels", "--break-system-packages",
                                "--root-user-action=ignore", "--force-reinstall", "pestle")
        assert done.returncode == 0, done.stdout + done.stderr
        done = bare_root.inside(root, "python3", "/wheels/bare_check.py", "--bare")
        print(done.stdout + done.stderr)
        assert done.returncode == 0, "the check failed"
        done = bare_root.inside(root, "pestle", "plugins", "--why")
        assert done.returncode == 0 and "llvm" in done.stdout, done.stdout + done.stderr


def main():
    bare_root.check_can()
    if subprocess.run([sys.executable, "-c", "import wheel"], check=False,
                      capture_output=True).returncode:
        bare_root.skip("no wheel of PyPI's")
    with tempfile.TemporaryDirectory(prefix="pestle-bare-") as scratch:
        folder = pathlib.Path(scratch)
        roots = bare_root.roots(folder, ("python3", "python3-pip"))
        subprocess.run([sys.executable, SOURCE / "tools/wheels.py", BUILD,
                        folder / "wheels", "pestle", "pestle-llvm"], check=True)
        for root in roots:
            check(root, folder / "wheels")
            print(f"{root.name}: right")


main()
