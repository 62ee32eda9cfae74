# SPDX-License-Identifier: Apache-2.0
"""File types by content: the model of the PyPI package magika (Apache-2.0)."""

import array
import json
import os

import common

PACKAGE = "magika==1.0.3"
FOLDER = "magika/models/standard_v3_3/"
MODEL = "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c"
CONFIG = "ae24c742205358f6ff6dfd5facb6743fb69743dbba8373e73da58ff0cbd695db"
SIZE, BLOCK, PADDING = 1024, 4096, 256

# Files of this repository, and some that its build made.
FILES = [
    "README.md",
    "LICENSE",
    "Makefile",
    "CMakeLists.txt",
    "CMakePresets.json",
    "base/map.c",
    "tools/setup.sh",
    "tools/demo/ocr.py",
    "build/demo/page.svg",
]


def features(path):
    """The first and the last 1024 bytes without outer white space, padded."""
    with open(path, "rb") as f:
        data = f.read()
    begin = data[:BLOCK].lstrip()[:SIZE]
    end = data[-BLOCK:].rstrip()[-SIZE:]
    fill = lambda part: [PADDING] * (SIZE - len(part))
    return array.array("i", [*begin, *fill(begin), *fill(end), *end])


def classify(demo, model, labels, path, options=()):
    inputs = [("bytes", "int32", (1, 2 * SIZE), features(path))]
    outputs, times = demo.run_model(model, inputs, "magika", options)
    scores = outputs[0][1]
    best = max(range(len(scores)), key=scores.__getitem__)
    return labels[best], scores[best], times


def show(demo):
    model = common.fetch(demo.models, PACKAGE, FOLDER + "model.onnx", MODEL)
    config = common.fetch(
        demo.models, PACKAGE, FOLDER + "config.min.json", CONFIG
    )
    with open(config) as f:
        labels = json.load(f)["target_labels_space"]
    files = [p for p in FILES if os.path.exists(p)]
    files.append(os.path.relpath(demo.library))
    print(f"\nFile types by content (magika, {os.path.getsize(model)} bytes)")
    demo.clear_cache()
    # Both compile; the second one also says how long each pass took.
    _, _, cold = classify(demo, model, labels, files[0])
    passes = classify(demo, model, labels, files[0], ["--time-passes"])[2]
    cold["passes"] = passes["passes"]
    for path in files:
        label, score, warm = classify(demo, model, labels, path)
        print(
            f"  {path:36} {label:14} {100 * score:3.0f} %  {warm['run']:6.2f} ms"
        )
    common.print_times("Times of magika", cold, warm)
    return model, ["--shape", f"bytes=1x{2 * SIZE}"]
