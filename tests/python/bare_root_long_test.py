#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheels in a root that has Python, pip and nothing else: no compiler, no LLVM, no
LAPACK. debootstrap makes it, of the suites that PESTLE_BARE_SUITES names (bookworm; of
trixie and sid others bring Python 3.13 and 3.14), or PESTLE_BARE_ROOTS names folders
with roots that are there. Skips without root's rights, debootstrap, or a mirror that it
reaches."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]).resolve()
# Else debootstrap's own.
MIRROR = [os.environ["PESTLE_BARE_MIRROR"]] if "PESTLE_BARE_MIRROR" in os.environ else []


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def make_root(suite, folder):
    """A root of |suite|; None where the mirror is not reached."""
    root = folder / suite
    done = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3,python3-pip",
                           suite, root, *MIRROR], check=False, capture_output=True, text=True)
    if done.returncode == 0:
        return root
    print(done.stdout[-2000:] + done.stderr[-500:])
    return None


def inside(root, *words):
    """Runs words in |root|, with a home of its own and nothing of the tests'."""
    return subprocess.run(
        ["chroot", root, "/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/root",
         "LANG=C.UTF-8", *words], check=False, capture_output=True, text=True)


def is_bare(root):
    """What must not be there: or the test tells nothing."""
    found = [str(p) for pattern in ("usr/lib/*/libLLVM*", "usr/lib/*/liblapack*",
                                    "usr/lib/*/libblas*", "usr/bin/gcc*", "usr/bin/cc",
                                    "usr/bin/clang*", "usr/lib/*/libpestle*")
             for p in root.glob(pattern)]
    assert not found, found


def check(root, wheels):
    is_bare(root)
    place = root / "wheels"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(wheels, place)
    shutil.copy(HERE / "bare_check.py", place)
    # /proc, for what the check asks of its own maps.
    mounted = not (root / "proc/self").exists()
    if mounted:
        subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        done = inside(root, "python3", "-m", "pip", "install", "--no-index",
                      "--find-links", "/wheels", "--break-system-packages",
                      "--root-user-action=ignore", "--force-reinstall", "pestle")
        assert done.returncode == 0, done.stdout + done.stderr
        done = inside(root, "python3", "/wheels/bare_check.py", "--bare")
        print(done.stdout + done.stderr)
        assert done.returncode == 0, "the check failed"
        done = inside(root, "pestle", "plugins", "--why")
        assert done.returncode == 0 and "llvm" in done.stdout, done.stdout + done.stderr
    finally:
        if mounted:
            subprocess.run(["umount", root / "proc"], check=False)


def main():
    if os.geteuid() != 0:
        skip("chroot needs root")
    named = os.environ.get("PESTLE_BARE_ROOTS", "").split()
    if not named and not shutil.which("debootstrap"):
        skip("no debootstrap here")
    for archive in ("/usr/lib/llvm-19/lib/libLLVMX86CodeGen.a",
                    "/usr/lib/x86_64-linux-gnu/libzstd.a"):
        if not pathlib.Path(archive).exists():
            skip(f"no {archive} for the wheel")
    if subprocess.run([sys.executable, "-c", "import wheel"], check=False,
                      capture_output=True).returncode:
        skip("no wheel of PyPI's")
    with tempfile.TemporaryDirectory(prefix="pestle-bare-") as scratch:
        folder = pathlib.Path(scratch)
        roots = [pathlib.Path(r) for r in named]
        for suite in [] if named else os.environ.get("PESTLE_BARE_SUITES",
                                                     "bookworm").split():
            roots.append(make_root(suite, folder))
            if not roots[-1]:
                skip(f"debootstrap made no root of {suite}")
        subprocess.run([sys.executable, SOURCE / "tools/wheels.py", BUILD,
                        folder / "wheels", "pestle", "pestle-llvm"], check=True)
        for root in roots:
            check(root, folder / "wheels")
            print(f"{root.name}: right")


main()
