#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the models that people export, for run_exported.py, from seeds: the real ones of
models.json, and what skl2onnx, onnxmltools, torch.onnx, tf2onnx and ONNX Runtime's
optimiser and quantiser write.

    make_exported.py FOLDER [GROUP...] [--only PATTERN] [--again]

GROUP: open, tables, torch, keras, ort (default all of which the packages are there; ort
last, it starts from models of open and torch). FOLDER/GROUP/NAME.onnx is a model,
FOLDER/GROUP/NAME.in/ its inputs as io.txt says, as `pestle run --inputs` takes them. What
is there is not made again. Each group may have an environment of its own:

| Group | Packages |
|---|---|
| open | onnx 1.23.2, numpy 2.4.6; the wheels that models.json names |
| tables | as run_ml_models.py says |
| torch | torch 2.11.0, torchvision 0.26.0, onnxscript 0.7.2, onnx 1.23.2 |
| keras | tensorflow-cpu 2.21.0, tf2onnx 1.16.1, onnx 1.17.0 |
| ort | onnxruntime 1.31.1, onnx 1.23.2 |
"""

import argparse
import fnmatch
import importlib
import os
import pathlib
import shutil
import sys

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
GROUPS = ("open", "tables", "torch", "keras", "ort")


def write_inputs(feeds, folder):
    os.makedirs(folder, exist_ok=True)
    with open(folder / "io.txt", "w", encoding="utf-8") as io:
        for i, (name, v) in enumerate(feeds.items()):
            v = np.asarray(v)
            text = v.dtype == object
            np.save(folder / f"input_{i}.npy", v.astype(str) if text else v)
            shape = "x".join(map(str, v.shape)) or "scalar"
            io.write(f"input {i} {'string' if text else v.dtype.name} {shape} input_{i}.npy {name}\n")


def read_inputs(folder):
    feeds = {}
    for line in open(folder / "io.txt", encoding="utf-8"):
        _, _, dtype, _, file, name = line.rstrip("\n").split(" ", 5)
        v = np.load(folder / file)
        feeds[name] = v.astype(object) if dtype == "string" else v
    return feeds


class Open:
    """The models of models.json, with their shapes fixed."""

    def __init__(self, root):
        import fetch_models

        self.root = root / ".fetched"
        fetch_models.fetch(str(self.root))
        self.NAMES = sorted(p.stem for p in (self.root / "static").glob("*.onnx"))

    def export(self, name, path):
        shutil.copy(self.root / "static" / f"{name}.onnx", path)
        return read_inputs(self.root / "inputs" / name)


class Tables:
    """Models of tables, 1,000 rows each."""

    def __init__(self, _):
        self.ml = importlib.import_module("run_ml_models")
        self.NAMES = [*self.ml.SK, *self.ml.BOOSTED, "table"]

    def export(self, name, path):
        data, feeds = self.ml.make(name)
        pathlib.Path(path).write_bytes(data)
        return feeds


class Ort:
    def __init__(self, root):
        from exported import ort_models

        self.root, self.module, self.NAMES = root, ort_models, ort_models.NAMES

    def load(self, name):
        return str(self.root / f"{name}.onnx"), read_inputs(self.root / f"{name}.in")

    def export(self, name, path):
        return self.module.export(name, path, self.load)


def open_group(group, root):
    own = {"open": Open, "tables": Tables, "ort": Ort}
    return own[group](root) if group in own else importlib.import_module(f"exported.{group}_models")


def make(root, group, only, again):
    """How many could not be made."""
    bad = 0
    try:
        maker = open_group(group, root)
    except ImportError as e:
        print(f"left {group}: {e}", flush=True)
        return 0
    (root / group).mkdir(parents=True, exist_ok=True)
    for name in maker.NAMES:
        label = f"{group}/{name}"
        flat = name.replace("/", "_")
        path, given = root / group / f"{flat}.onnx", root / group / f"{flat}.in"
        if not fnmatch.fnmatch(label, only) or (given.exists() and path.exists() and not again):
            continue
        try:
            feeds = maker.export(name, str(path))
            write_inputs(feeds, given)
            print(f"made {label}: {path.stat().st_size} bytes", flush=True)
        except Exception as e:  # of exporters, of many types
            path.unlink(missing_ok=True)
            print(f"left {label}: {type(e).__name__}: {str(e)[:300]}", flush=True)
            bad += 1
    return bad


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("folder", type=pathlib.Path)
    a.add_argument("groups", nargs="*", default=GROUPS)
    a.add_argument("--only", default="*")
    a.add_argument("--again", action="store_true")
    o = a.parse_args()
    sys.path.insert(0, str(HERE))
    return 1 if sum(make(o.folder.resolve(), g, o.only, o.again) for g in o.groups) else 0


if __name__ == "__main__":
    sys.exit(main())
