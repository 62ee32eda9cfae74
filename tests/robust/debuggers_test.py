#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GDB, perf's map and perf's dump of code know a kernel of a cached plan by its name; a hit never
maps libLLVM."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from build import BUILD, sanitized

MODEL = """module @m {
  func.func @main(%x: tensor<4096xf32>) -> tensor<4096xf32> {
    %y = stablehlo.tanh %x : tensor<4096xf32>
    return %y : tensor<4096xf32>
  }
}
"""
# Where the command ends, the plan is loaded.
STOP = ["-q", "-batch", "-ex", "set debuginfod enabled off",
        "-ex", "set breakpoint pending on", "-ex", "break pestle_executable_run",
        "-ex", "run", "-ex", "info functions tanh_",
        "-ex", "info proc mappings", "--args"]


def perf_map(command, asked):
    """What a run leaves for perf; None: no file."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL,
        env={**os.environ, "PESTLE_PERF_MAP": asked})
    code = process.wait(timeout=600)
    path = pathlib.Path(f"/tmp/perf-{process.pid}.map")
    if code or not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    path.unlink()
    return text


def check_perf(command):
    if perf_map(command, "0") is not None:
        print("a map for perf that nobody asked for")
        return False
    text = perf_map(command, "1") or ""
    line = r"(?m)^[0-9a-f]+ [1-9a-f][0-9a-f]* pestle:tanh_0(\.body)?$"
    if re.search(line, text):
        return True
    print("perf's map of a cached plan lacks the kernel:", text)
    return False


def perf_says(command, folder):
    """What perf says of a run: with its map, and with the dump of the code; None: perf
    cannot record here."""
    perf = shutil.which("perf")
    data = f"{folder}/perf.data"
    if not perf or subprocess.run(
            [perf, "record", "-o", data, "-e", "cpu-clock", "true"],
            capture_output=True, check=False).returncode:
        return None
    # Enough runs to be seen in.
    command = [*command, "--bench", "3000"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    found = []
    for asked in ({"PESTLE_PERF_MAP": "1"}, {"PESTLE_JITDUMP": folder}):
        subprocess.run([perf, "record", "-k", "mono", "-F", "2000", "-e", "cpu-clock", "-o",
                        data, *command], env={**os.environ, **asked}, check=True, **quiet)
        if "PESTLE_JITDUMP" in asked:
            subprocess.run([perf, "inject", "--jit", "-i", data, "-o", f"{data}.jit"],
                           check=True, **quiet)
            data += ".jit"
        report = subprocess.run([perf, "report", "-i", data, "--stdio", "--sort", "sym"],
                                capture_output=True, text=True, check=True).stdout
        found.append("pestle:tanh_0" in report)
    return found


def check_real_perf(command, folder):
    found = perf_says(command, folder)
    if found is None:
        print("perf cannot record here: its part is skipped")
        return True
    if all(found):
        return True
    print("perf report does not name the kernel: by map, by dump:", found)
    return False


def main():
    if not any((BUILD / "backends").glob("libpestle-llvm-*.so")):
        print("there is no llvm plugin")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "m.mlir")
        model.write_text(MODEL, encoding="utf-8")
        command = [str(BUILD / "pestle"), "run", str(model), "--input",
                   "x=4096xf32=1", "--device", "llvm", "--cache-dir",
                   f"{folder}/cache"]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        if not check_perf(command):
            return 1
        if not check_real_perf(command, folder):
            return 1
        gdb = shutil.which("gdb")
        if not gdb:
            print("gdb is not installed")
            return 77
        if sanitized():
            print("sanitizers do not run under gdb")
            return 77
        for asked in ("0", "1"):
            text = subprocess.run(
                [gdb, *STOP, *command], capture_output=True, text=True,
                env={**os.environ, "PESTLE_GDB": asked}, check=False).stdout
            if "libpestle-llvm" not in text:
                print("gdb cannot run a process here:", text)
                return 77
            named = "tanh_0.body" in text or "  tanh_0" in text
            if named != (asked == "1"):
                print(f"with PESTLE_GDB={asked}:", text)
                return 1
            if "libLLVM" in text:
                print("libLLVM is mapped for a cached plan:", text)
                return 1
    return 0


sys.exit(main())
