#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many processes at once on one model and one cold cache: half of them run it, half write
its plan to a file of their own. All succeed, all outputs are the right one, all plans are
the same bytes, and the cache has one plan, which verifies. Prints one JSON line.

    processes.py COUNT [DEVICE]
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cache_torture  # noqa: E402

BUILD = cache_torture.BUILD


def start(torture, folder, i, device):
    words = torture.command(out=folder / f"out{i}")
    if i % 2:
        words = [str(BUILD / "pestle"), "compile", str(torture.models[0]),
                 "-o", str(folder / f"{i}.plan"), "--cache-dir",
                 str(torture.cache)]
    return subprocess.Popen([*words, "--device", device],
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            text=True, env=os.environ)


def main(count, device):
    failed = []
    with tempfile.TemporaryDirectory(prefix="pestle-processes-") as name:
        folder = pathlib.Path(name)
        torture = cache_torture.Torture(folder, {}, None)
        running = [start(torture, folder, i, device) for i in range(count)]
        for i, process in enumerate(running):
            _, text = process.communicate(timeout=1200)
            if process.returncode:
                failed.append(f"process {i}: exit code {process.returncode}: "
                              f"{text.strip()[-200:]}")
        plans = {hashlib.sha256(p.read_bytes()).hexdigest()
                 for p in folder.glob("*.plan")}
        if len(plans) != (count > 1):
            failed.append(f"{len(plans)} different plans")
        for i in range(0, count, 2):
            path = folder / f"out{i}" / "output_0.npy"
            if path.read_bytes()[-1024:] != torture.expected(0):
                failed.append(f"process {i}: another output")
        kept = cache_torture.plans_in(torture.cache)
        if len(kept) != 1:
            failed.append(f"the cache has {len(kept)} plans: "
                          f"{sorted(p.name for p in kept)[:4]}")
        done = subprocess.run([str(BUILD / "pestle"), "cache", "verify",
                               "--cache-dir", str(torture.cache)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            failed.append(f"cache verify: {done.stdout.strip()[-200:]}")
    for text in failed:
        print(f"FAILED {text}")
    print(json.dumps({"processes": count, "failed": len(failed)}))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), (sys.argv[2:] or ["llvm"])[0]))
