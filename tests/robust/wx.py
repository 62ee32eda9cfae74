#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks again and again at the memory map of a process that loads kernels and lets go of
them, thousands a second: no page may be writable and executable at once, and some sample
must meet code that no file has. Prints one JSON line.

    wx.py SECONDS [SEED]
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
BOTH = re.compile(r"^\S+ .?wx. .*$", re.M)


def main(seconds, seed):
    with subprocess.Popen([str(BUILD / "tests/bin/pestle-soak"), "hits",
                           str(seconds), str(seed), "llvm"], text=True,
                          stdout=subprocess.PIPE) as process:
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        samples, code_pages, failed = 0, 0, []
        while process.poll() is None:
            try:
                text = maps.read_text()
            except OSError:
                break
            samples += 1
            # Code that no file has: kernels, and the vdso.
            code_pages = max(code_pages, len(re.findall(
                r"^\S+ r-xp 00000000 00:00 0 *$", text, re.M)))
            failed += BOTH.findall(text)[:1]
            time.sleep(0.002)
        text, _ = process.communicate()
        if process.returncode:
            failed.append(f"exit code {process.returncode}: {text[-200:]}")
    if not code_pages:
        failed.append("no sample met code of a kernel")
    for line in failed[:5]:
        print(f"FAILED {line}")
    print(json.dumps({"samples": samples, "failed": len(failed)}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int((sys.argv[2:] or [1])[0])))
