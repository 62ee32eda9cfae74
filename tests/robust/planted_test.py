#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each line of docs/reliability.md finds what is planted for it: a job with the fault
fails, and the same job without one does not. The faults are PESTLE_FAULT(trust_...) of
the sources (base/fault.h), which only build/.../tests/faults and the fuzz targets named
.._faults have; those of random graphs have a test of their own, random_faults. Without a
fault a job is a short one, which shows that it is not the fault's library or the job itself
that fails: the whole one is a test of its own, and planted_long_test.py's.

    planted_test.py [--long] [FAULT..]
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from build import BUILD, sanitized

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TORTURE = ("import sys; sys.path.insert(0, {folder!r}); "
           "import cache_torture as t; t.main({counts!r}, {key!r})")
MODEL = "tests/fuzz/corpus/onnx/conv_with_strides_padding.onnx"
NOTHING = {"kills": 0, "flips": 0, "truncations": 1, "full": []}


def fuzz(target):
    return lambda brief=False: [
        str(BUILD / f"fuzz/{target}_fuzz_faults"), "--mutations", "2" if brief else "200",
        str(SOURCE / "tests/fuzz/corpus" / target)]


def soak(mode, seconds=4, model=None):
    return lambda brief=False: [
        str(BUILD / "tests/bin/pestle-soak"), mode, str(1 if brief else seconds), "1", "ref",
        *([str(SOURCE / model)] if model else [])]


def race(brief=False):
    return ["env", "TSAN_OPTIONS=halt_on_error=1",
            str(BUILD / "tests/bin/pestle-race"), "crowd", "1" if brief else "4", "1", "ref"]


def torture(key, count):
    def job(brief=False):
        counts = {**NOTHING, key: 4 if brief else count}
        return [sys.executable, "-c", TORTURE.format(
            folder=str(SOURCE / "tests/robust"), key=key, counts=counts)]
    return job


def io_faults(only):
    return lambda brief=False: [
        sys.executable, str(SOURCE / "tests/robust/io_faults.py"), "--only", only,
        *(["--part", "1/6"] if brief else [])]


def power_loss(only):
    return lambda brief=False: [
        sys.executable, str(SOURCE / "tests/robust/power_loss.py"), "--only", only, "--sample",
        "4" if brief else "40"]


def script(name, *words):
    return lambda brief=False: [sys.executable, str(SOURCE / "tests/robust" / name), *words]


def allocations(brief=False):
    return ["env", "PESTLE_ROBUST_PHASE=6", str(BUILD / "tests/bin/robust_oom")]


def preloaded(plant, job):
    """With tests/robust/io_fault.c, where the library is not what is at fault."""
    shim = BUILD / "tests/bin/libpestle_io_fault.so"
    return lambda brief=False: ["env", f"LD_PRELOAD={shim}", f"PESTLE_IO_PLANT={plant}",
                    *job()]


# The fault, what kind it is, the line that must find it, and a short job of that.
ROWS = [
    ("trust_proto_length", "a skipped check", "fuzz-onnx", fuzz("onnx")),
    ("trust_parse_leak", "a leak", "fuzz-stablehlo", fuzz("stablehlo")),
    ("trust_reader_index", "a skipped check", "fuzz-bytecode",
     fuzz("bytecode")),
    ("trust_kir_lanes", "a flipped comparison", "fuzz-ir", fuzz("ir")),
    ("trust_plan_leak", "a leak", "fuzz-plan", fuzz("plan")),
    ("trust_dlpack_twice", "a deleter called twice", "fuzz-dlpack",
     fuzz("dlpack")),
    ("trust_gguf_length", "a skipped check", "fuzz-gguf", fuzz("gguf")),
    ("trust_in_place", "a write in place of a rename", "cache-kill",
     torture("kills", 60)),
    ("trust_checksum", "a skipped check", "cache-flip",
     torture("flips", 60)),
    ("trust_short_write", "a short write taken for a whole one", "io-faults",
     io_faults("save")),
    ("trust_lost_fsync", "a lost fsync", "io-faults", io_faults("save")),
    ("trust_lost_fsync", "a lost fsync", "power-loss", power_loss("save")),
    ("trust_lost_name", "a lost fsync of a folder", "power-loss",
     power_loss("first")),
    ("trust_left_over", "a file left over", "io-faults", io_faults("save")),
    ("trust_own_names", "names of a process's own", "processes",
     script("processes.py", "8", "ref")),
    ("trust_unchecked", "a skipped check", "allocations",
     allocations),
    ("trust_plan_leak", "a leak", "valgrind", script("valgrind.py", "add")),
    ("", "a page that is written and run", "wx",
     preloaded("wx", script("wx.py", "4"))),
    ("trust_race", "a lock let go too early", "crowd", race),
    ("trust_executable_leak", "a leak", "cycles-llvm", soak("evict")),
    ("trust_executable_leak", "a leak", "cycles-hits", soak("hits")),
    ("trust_cancel", "a flag that is not looked at", "cancel-llvm",
     soak("cancel")),
    ("trust_cancel", "a deadline that is not looked at", "deadline-llvm",
     soak("deadline")),
    ("trust_cancel", "a flag that is not looked at", "cancel-models",
     soak("cancel", model=MODEL)),
    ("trust_cancel", "a deadline that is not looked at", "deadline-models",
     soak("deadline", model=MODEL)),
]


def run(command, fault, folder):
    env = {**os.environ, "PESTLE_SEED": "1", "PESTLE_FAULT": fault,
           "PESTLE_BUILD_DIR": str(BUILD), "PESTLE_SOURCE_DIR": str(SOURCE),
           "LD_LIBRARY_PATH": str(BUILD / "tests/faults")}
    done = subprocess.run(command, env=env, cwd=folder, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, errors="replace", timeout=1200)
    lines = done.stdout.strip().splitlines() or [""]
    told = [line for line in lines if re.search(r"FAILED|fuzz:|Error|soak:|SUMMARY",
                                                line)]
    return done.returncode, (told or lines)[-1]


def planted():
    names = set()
    for folder in ("base", "ir", "frontend", "passes", "codegen", "compile",
                   "runtime"):
        for path in (SOURCE / folder).rglob("*.c"):
            names.update(re.findall(r"PESTLE_FAULT\((trust_\w+)\)",
                                    path.read_text()))
    return names


def main():
    if sanitized():
        print("one build is enough")
        return 77
    sys.path.insert(0, str(SOURCE / "tools/reliability"))
    import lines
    wrong = [f"{name}: no line for it"
             for name in planted() ^ {row[0] for row in ROWS if row[0]}]
    # random_faults is the test of that line.
    without = ({line.name for line in lines.ALL} - {row[2] for row in ROWS}
               - {"random-llvm"})
    wrong += [f"{name}: nothing is planted for it" for name in without]
    clean, words = set(), sys.argv[1:]
    brief = "--long" not in words
    only = [word for word in words if word != "--long"]
    with tempfile.TemporaryDirectory() as folder:
        for fault, kind, line, job in ROWS:
            if only and fault not in only:
                continue
            code, text = run(job(), fault, folder)
            if code == 77:
                print(f"{line:14} {text}", flush=True)
                continue
            print(f"{line:14} {fault:22} {kind:36} "
                  f"{'found' if code else 'MISSED'}  {text[:120]}", flush=True)
            if code == 0:
                wrong.append(f"{line} misses {fault}")
            plain = job(brief)
            # valgrind's is a minute, and robust_valgrind.
            if not fault or " ".join(plain) in clean or (brief and line == "valgrind"):
                continue
            clean.add(" ".join(plain))
            code, text = run(plain, "", folder)
            if code:
                wrong.append(f"{line} fails without a fault: {text}")
    print("\n".join(wrong) or "all found")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
