#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gradients of the networks of cases.py beside jax's and torch's:

    gradients.py OUT.json [--cases REGEX] [--peers jax,torch,torch_compile]

The loss is the sum of the squares of a network's output; the gradient is that by
all its weights. Pestle takes it of the ONNX graph (pestle run --grad), the peers of
interpret.py's functions. Each is a process; they take turns, and each row is the
shortest run of all turns. The gradients of all are held against the first peer's of the
same function in f64: a network's f32 gradients differ among themselves by more than any
of them does from that. The exit status is 1 where Pestle's differ.
"""

import argparse
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import cases
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
clock = time.perf_counter


def is_weight(array):
    """As interpret.py has it."""
    return array.dtype == np.float32 and array.shape != (1,)


def write(name, folder):
    """NAME.onnx for the peers, grad.onnx whose weights are inputs and whose output is
    the loss, and the inputs. The number of weights, which come first."""
    model, rng = cases.make(name), np.random.default_rng(7)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    graph, weights, kept = model.graph, [], []
    for value in graph.initializer:
        array = numpy_helper.to_array(value)
        (weights if is_weight(array) else kept).append((value, array))
    given = list(graph.input)
    del graph.initializer[:], graph.input[:]
    graph.initializer.extend(value for value, _ in kept)
    for i, (value, array) in enumerate(weights):
        graph.input.append(
            helper.make_tensor_value_info(
                value.name, TensorProto.FLOAT, array.shape
            )
        )
        np.save(folder / f"input_{i}.npy", array)
    for i, value in enumerate(given):
        graph.input.append(value)
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        array = rng.standard_normal(dims, dtype=np.float32)
        np.save(folder / f"input_{len(weights) + i}.npy", array)
    y = graph.output[0].name
    graph.node.append(
        helper.make_node("ReduceSumSquare", [y], ["loss"], keepdims=0)
    )
    del graph.output[:]
    graph.output.append(
        helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    )
    (folder / "grad.onnx").write_bytes(model.SerializeToString())
    names = [value.name for value, _ in weights]
    (folder / "weights.json").write_text(json.dumps(names))
    return len(names), len(given)


# --- Peers, each in a process of this file: serve(PEER, FOLDER) ---


def load(folder, dtype):
    names = json.loads((folder / "weights.json").read_text())
    arrays = []
    while (folder / f"input_{len(arrays)}.npy").exists():
        array = np.load(folder / f"input_{len(arrays)}.npy")
        arrays.append(array.astype(dtype) if array.dtype == np.float32 else array)
    return names, arrays


def of_jax(folder, dtype=np.float32):
    import jax
    from interpret import function_of, jax_ops

    jax.config.update("jax_enable_x64", dtype == np.float64)
    names, arrays = load(folder, dtype)
    function, _ = function_of(folder / "model.onnx", jax_ops())
    weights = {n: jax.numpy.asarray(a) for n, a in zip(names, arrays)}
    inputs = [jax.numpy.asarray(a) for a in arrays[len(names) :]]

    def loss(weights, *inputs):
        return (function(weights, *inputs) ** 2).sum()

    compiled = jax.jit(jax.value_and_grad(loss))

    def run():
        return jax.block_until_ready(compiled(weights, *inputs))[1]

    return run, lambda out: [np.asarray(out[n]) for n in names]


def of_torch(folder, dtype=np.float32, compiles=False):
    import torch
    from interpret import function_of, torch_ops

    names, arrays = load(folder, dtype)
    function, _ = function_of(folder / "model.onnx", torch_ops())
    weights = {
        n: torch.from_numpy(a).requires_grad_() for n, a in zip(names, arrays)
    }
    inputs = [torch.from_numpy(a) for a in arrays[len(names) :]]
    torch.set_num_threads(len(os.sched_getaffinity(0)))

    def loss(*inputs):
        return (function(weights, *inputs) ** 2).sum()

    compiled = torch.compile(loss) if compiles else loss

    def run():
        return torch.autograd.grad(compiled(*inputs), list(weights.values()))

    return run, lambda out: [x.numpy() for x in out]


PEERS = {
    "jax": of_jax,
    "torch": of_torch,
    "torch_compile": lambda folder: of_torch(folder, compiles=True),
}
TRUTH = {"jax": of_jax, "torch": of_torch, "torch_compile": of_torch}


def save_truth(peer, folder):
    """truth_I.npy, the gradients in f64."""
    run, arrays = TRUTH[peer](folder, np.float64)
    for i, array in enumerate(arrays(run())):
        assert array.dtype == np.float64, array.dtype
        np.save(folder / f"truth_{i}.npy", array)


def serve(peer, folder):
    run, arrays = PEERS[peer](folder)
    start = clock()
    for i, array in enumerate(arrays(run())):
        np.save(folder / f"{peer}_{i}.npy", array)
    print(json.dumps({"first": clock() - start}), flush=True)
    for line in sys.stdin:
        times, end = [], clock() + float(line)
        while not times or clock() < end:
            start = clock()
            run()
            times.append(clock() - start)
        print(json.dumps({"min": min(times)}), flush=True)


class Peer:
    def __init__(self, name, folder):
        command = [sys.executable, __file__, "--serve", name, str(folder)]
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.read()

    def read(self):
        line = self.child.stdout.readline()
        if not line.startswith("{"):
            raise RuntimeError(f"ended: {self.child.wait()}")
        return json.loads(line)

    def turn(self, seconds):
        print(seconds, file=self.child.stdin, flush=True)
        return self.read()["min"]

    def stop(self):
        self.child.stdin.close()
        self.child.wait()


# --- Ours ---


class Pestle:
    """One process a turn; the plan is saved once."""

    def __init__(self, program, folder, count):
        self.program, self.folder, self.one = program, folder, None
        grads = [word for i in range(count) for word in ("--grad", str(i))]
        command = [program, "compile", folder / "grad.onnx", *grads]
        command += ["-o", folder / "grad.plan", "--no-cache"]
        start = clock()
        subprocess.run(command, check=True)
        self.compile = clock() - start

    def turn(self, seconds):
        runs = 3 if not self.one else max(3, math.ceil(seconds / self.one))
        command = [self.program, "run", self.folder / "grad.plan"]
        command += ["--inputs", self.folder, "--bench", str(runs)]
        command += ["--outputs", self.folder / "out"]
        done = subprocess.run(command, check=True, capture_output=True)
        line = done.stdout.decode().strip().splitlines()[-1]
        self.one = min(json.loads(line)["run_ms"]) / 1e3
        return self.one


def differs(folder, count, given):
    """The largest difference of a gradient, in the file given(I), from its truth, over
    that's largest element. One that is 0 but for roundings, as that of the keys' bias in
    attention, is held against those of its size in the network."""
    pairs = [
        (np.load(folder / given(i)), np.load(folder / f"truth_{i}.npy"))
        for i in range(count)
    ]
    most = max(np.abs(truth).max() for _, truth in pairs)
    return max(
        float(np.abs(a - truth).max() / max(np.abs(truth).max(), most * 1e-4))
        for a, truth in pairs
    )


def run_case(name, options):
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        (folder / "out").mkdir()
        count, _ = write(name, folder)
        peers = {}
        for peer in options.peers:
            try:
                peers[peer] = Peer(peer, folder)
            except RuntimeError as error:
                print(f"{name}: {peer}: {error}", file=sys.stderr)
        programs = {"pestle": options.build / "pestle"}
        if options.old:
            programs["old"] = options.old / "pestle"
        for key, program in programs.items():
            peers[key] = Pestle(program, folder, count)
        row = {key: math.inf for key in peers}
        for number in range(options.rounds):
            for key in sorted(peers, reverse=number % 2):
                row[key] = min(row[key], peers[key].turn(options.seconds))
        for peer in peers.values():
            if isinstance(peer, Peer):
                peer.stop()
        row = {key: value * 1e3 for key, value in row.items()}
        first = next(key for key in peers if key not in programs)
        command = [sys.executable, __file__, "--truth", first, str(folder)]
        subprocess.run(command, check=True)
        row["difference"] = {
            peer: differs(folder, count, lambda i: f"{peer}_{i}.npy")
            for peer in peers
            if peer not in programs
        }
        row["difference"]["pestle"] = differs(
            folder, count, lambda i: f"out/output_{i + 1}.npy"
        )
        return row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--cases", default="^net_", metavar="REGEX")
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--old", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="a turn")
    options = parser.parse_args()
    options.peers = options.peers.split(",")
    options.build = options.build or ROOT / "build" / "release"
    rows, ratios, wrong = {}, [], False
    for name in [n for n in cases.CASES if re.search(options.cases, n)]:
        row = rows[name] = run_case(name, options)
        options.out.write_text(json.dumps(rows))
        best = min(row[p] for p in options.peers if p in row)
        ratios.append(row["pestle"] / best)
        off = row["difference"]
        wrong |= not off["pestle"] < 1e-3
        times = ", ".join(f"{k} {row[k]:.2f}" for k in row if row[k] is not off)
        off = ", ".join(f"{k} {v:.1e}" for k, v in sorted(off.items()))
        print(
            f"{name}: {ratios[-1]:.2f} of the best; ms: {times}; off f64's: {off}",
            flush=True,
        )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}")
    return wrong


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], pathlib.Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--truth"]:
        save_truth(sys.argv[2], pathlib.Path(sys.argv[3]))
    else:
        sys.exit(main())
