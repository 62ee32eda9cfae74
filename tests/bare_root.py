# SPDX-License-Identifier: Apache-2.0
"""A root of Debian that has nothing of ours, no compiler and no LLVM, for chroot. Made by
debootstrap, of the suites that PESTLE_BARE_SUITES names (else bookworm) and from
PESTLE_BARE_MIRROR (else debootstrap's own); or PESTLE_BARE_ROOTS names folders with
roots that are there."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

MIRROR = [os.environ["PESTLE_BARE_MIRROR"]] if "PESTLE_BARE_MIRROR" in os.environ else []
ARCHIVES = ("/usr/lib/llvm-19/lib/libLLVMX86CodeGen.a",
            "/usr/lib/x86_64-linux-gnu/libzstd.a")


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def check_can():
    """Skips where no root can be made, or no LLVM be linked into what is tried there."""
    if os.geteuid() != 0:
        skip("chroot needs root")
    if "PESTLE_BARE_ROOTS" not in os.environ and not shutil.which("debootstrap"):
        skip("no debootstrap here")
    for archive in ARCHIVES:
        if not pathlib.Path(archive).exists():
            skip(f"no {archive}")


def roots(folder, packages=()):
    """The roots that are asked for; skips where the mirror is not reached."""
    if "PESTLE_BARE_ROOTS" in os.environ:
        return [pathlib.Path(r) for r in os.environ["PESTLE_BARE_ROOTS"].split()]
    made = []
    include = [f"--include={','.join(packages)}"] if packages else []
    for suite in os.environ.get("PESTLE_BARE_SUITES", "bookworm").split():
        made.append(folder / suite)
        done = subprocess.run(["debootstrap", "--variant=minbase", *include, suite, made[-1],
                               *MIRROR], check=False, capture_output=True, text=True)
        if done.returncode:
            print(done.stdout[-2000:] + done.stderr[-500:])
            skip(f"debootstrap made no root of {suite}")
    return made


def check_bare(root):
    """What must not be there: or the test tells nothing."""
    found = [str(p) for pattern in ("usr/lib/*/libLLVM*", "usr/lib/*/liblapack*",
                                    "usr/lib/*/libblas*", "usr/bin/gcc*", "usr/bin/cc",
                                    "usr/bin/clang*", "usr/lib/*/libpestle*")
             for p in root.glob(pattern)]
    assert not found, found


@contextlib.contextmanager
def with_proc(root):
    """/proc, for who asks what its own process has open."""
    mounted = not (root / "proc/self").exists()
    if mounted:
        subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", root / "proc"], check=False)


def inside(root, *words):
    """Runs words in |root|, with a home of its own and nothing of the tests'."""
    return subprocess.run(
        ["chroot", root, "/usr/bin/env", "-i",
         "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
         "LANG=C.UTF-8", *words], check=False, capture_output=True, text=True)
