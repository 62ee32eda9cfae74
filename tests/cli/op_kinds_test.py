#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle op-test of an op with an attribute of each kind, one of them dynamic: words, lists
of several lengths, numbers as values of the function and as arrays. Right as it is; each
of six planted faults is found, and by the question that is about it. Exits 77 without a C
compiler or libpestle.so."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
SOURCE = pathlib.Path(__file__).resolve().parents[2]
CC = os.environ.get("CC") or shutil.which("cc")
LIBRARY = BUILD / "libpestle.so"
if not CC or not LIBRARY.exists():
    print("skipped: no C compiler, or no libpestle.so")
    sys.exit(77)

# What says so of each planted fault.
FAULTS = {
    1: r"eval of .*reals=\[3 numbers\]",
    2: r"eval of .*shifts=\[[012] (integers|numbers)\]",
    3: r"jvp of ",
    4: r"jvp of .*down=true",
    5: r"eval of .*mode='x'",
    6: r"eval of .*alpha=",
}


def op_test(folder, fault, said=None):
    """The exit status and what is told: all of it, or as far as |said|. The questions behind
    that are asked where there is no fault."""
    library = folder / f"libkinds{fault}.so"
    command = [CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared",
               f"-DFAULT={fault}", f"-I{SOURCE / 'include'}", f"-I{BUILD / 'include'}",
               SOURCE / "tests/cli/extension/kinds.c", f"-L{BUILD}", "-lpestle", "-lm",
               "-o", library]
    subprocess.run(command, check=True)
    folder.chmod(0o700)
    library.chmod(0o700)
    with subprocess.Popen([BUILD / "pestle", "op-test", library], stdout=subprocess.PIPE,
                          text=True) as asked:
        text = ""
        for line in asked.stdout:
            text += line
            if said and re.search(said, text):
                asked.kill()
                return 1, text
    return asked.returncode, text


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    status, told = op_test(folder, 0)
    print(told)
    counts = dict(zip(("right", "refused", "WRONG"),
                      map(int, re.findall(r"[a-zA-Z]+ (\d+)",
                                          told.splitlines()[-1]))))
    assert status == 0 and counts["WRONG"] == 0, told
    assert counts["right"] >= 400, counts
    for fault, said in FAULTS.items():
        # The first to the end, for the exit status.
        status, told = op_test(folder, fault, said if fault > 1 else None)
        print(fault, "\n".join(told.splitlines()[:4]))
        assert status == 1 and re.search(said, told), (fault, said, status, told)
