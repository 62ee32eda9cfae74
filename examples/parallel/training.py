# SPDX-License-Identifier: Apache-2.0
"""What the examples of this folder share: a function of arrays as a module in a file, run
by the command `pestle` on one process and on several, and the results of both."""

import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import pestle as pt

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
PESTLE = os.environ.get("PESTLE", "pestle")


def write_inputs(folder, arguments):
    """Each array of |arguments|, a dict, in a file; the number of the first of each."""
    first, count = {}, 0
    for name, tree in arguments.items():
        first[name] = count
        for leaf in pt.tree.leaves(tree):
            np.save(folder / f"input_{count}.npy", np.asarray(leaf))
            count += 1
    return first


def run(module, folder, out, *options):
    done = subprocess.run([PESTLE, "run", module, "--inputs", folder, "--outputs", out,
                           *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr.strip()


def run_both(function, arguments, mesh, shard):
    """The first result of |function|, losses of steps, by one process and by those of
    |mesh|. |shard|: "NAME=SPEC", where NAME, a key of |arguments|, is one array."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        first = write_inputs(folder, arguments)
        module = folder / "train.mlir"
        module.write_bytes(pt.export(function, *arguments.values()))
        rules = []
        for rule in shard:
            name, spec = rule.split("=")
            rules += ["--shard", f"arg{first[name]}={spec}"]
        run(module, folder, folder / "one")
        said = run(module, folder, folder / "many", "--mesh", mesh, *rules)
        one, many = (np.load(folder / out / "output_0.npy") for out in ("one", "many"))
    for i, (a, b) in enumerate(zip(one, many)):
        print(f"step {i:2}  loss {a:.5f} on one process, {b:.5f} on {mesh}")
    print(said)
    assert np.allclose(one, many, rtol=1e-3, atol=1e-5)
    third = len(many) // 3
    assert np.mean(many[-third:]) < np.mean(many[:third])
    return many
