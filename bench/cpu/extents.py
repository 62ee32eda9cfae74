#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs whose extents a run decides, beside ONNX Runtime, one thread each, in turns:
a row is Pestle's time / ONNX Runtime's by minimum. Outputs are compared.

    extents.py BUILD [ROUNDS [NAME...]]
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime
from onnx import TensorProto, helper as h, numpy_helper

F, B, I = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
RNG = np.random.default_rng(0)


def model(nodes, inputs, outputs, **stored):
    graph = h.make_graph(
        [h.make_node(op, ins, outs, **attrs) for op, ins, outs, attrs in nodes],
        "g",
        [h.make_tensor_value_info(n, h.np_dtype_to_tensor_dtype(a.dtype), a.shape)
         for n, a in inputs.items()],
        [h.make_tensor_value_info(n, t, None) for n, t in outputs.items()],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in stored.items()])
    return h.make_model(graph, opset_imports=[h.make_opsetid("", 18)],
                        ir_version=9), inputs


def filtered_tokens(share):
    """NonZero's rows through two products."""
    x = RNG.standard_normal((4096, 256)).astype(np.float32)
    k = RNG.random(4096) < share
    w, v = (RNG.standard_normal(s).astype(np.float32) * .05
            for s in ((256, 1024), (1024, 256)))
    nodes = [("NonZero", ["k"], ["z"], {}), ("Squeeze", ["z", "a"], ["i"], {}),
             ("Gather", ["x", "i"], ["g"], {"axis": 0}),
             ("MatMul", ["g", "w"], ["h"], {}), ("Relu", ["h"], ["r"], {}),
             ("MatMul", ["r", "v"], ["y"], {})]
    return model(nodes, {"x": x, "k": k}, {"y": F}, a=np.array([0]), w=w, v=v)


def behind_compress(*nodes, out="y", dtype=F, **stored):
    """1 % of 100,000 x 64, then |nodes|."""
    x = RNG.standard_normal((100000, 64)).astype(np.float32)
    k = RNG.random(100000) < .01
    first = ("Compress", ["x", "k"], ["c" if nodes else "y"], {"axis": 0})
    return model([first, *nodes], {"x": x, "k": k}, {out: dtype}, **stored)


def suppression(boxes, classes, limit, least, passing=None):
    place = RNG.random((1, boxes, 2)) * 600
    b = np.concatenate([place, place + RNG.random((1, boxes, 2)) * 60], 2)
    s = RNG.random((1, classes, boxes))
    if passing:
        s = np.where(RNG.random(s.shape) < passing, s, s * least)
    stored = {"m": np.array([limit]), "o": np.array([.5], np.float32)}
    names = ["b", "s", "m", "o"]
    if least is not None:
        stored["t"] = np.array([least], np.float32)
        names.append("t")
    return model([("NonMaxSuppression", names, ["y"], {})],
                 {"b": b.astype(np.float32), "s": s.astype(np.float32)},
                 {"y": I}, **stored)


def non_zero():
    k = RNG.random(100000) < .01
    return model([("NonZero", ["k"], ["y"], {})], {"k": k}, {"y": I})


def unique():
    u = RNG.integers(0, 500, 100000)
    return model([("Unique", ["u"], ["y"], {"sorted": 1})], {"u": u}, {"y": I})


def chosen_list(*nodes, n=100000, share=.01, out="y", dtype=F, **stored):
    """Numbers v and places i of what NonZero finds, then |nodes|."""
    x = RNG.standard_normal(n).astype(np.float32)
    k = RNG.random(n) < share
    first = [("NonZero", ["k"], ["z"], {}), ("Squeeze", ["z", "a"], ["i"], {}),
             ("Gather", ["x", "i"], ["v"], {"axis": 0})]
    return model([*first, *nodes], {"x": x, "k": k}, {out: dtype},
                 a=np.array([0]), **stored)


def attention():
    """5 % of 4,096 rows attend to each other, 4 heads of 64."""
    x = RNG.standard_normal((4096, 256)).astype(np.float32)
    k = RNG.random(4096) < .05
    nodes = [("Compress", ["x", "k"], ["c"], {"axis": 0}),
             ("Reshape", ["c", "s"], ["h"], {}),
             ("Transpose", ["h"], ["q"], {"perm": [1, 0, 2]}),
             ("Transpose", ["h"], ["t"], {"perm": [1, 2, 0]}),
             ("MatMul", ["q", "t"], ["p"], {}), ("Mul", ["p", "f"], ["m"], {}),
             ("Softmax", ["m"], ["w"], {"axis": -1}),
             ("MatMul", ["w", "q"], ["y"], {})]
    return model(nodes, {"x": x, "k": k}, {"y": F},
                 s=np.array([-1, 4, 64]), f=np.float32(.125))


def loop_to_count():
    """A row a trip, as many trips as NonZero finds: 100 of 10,000."""
    x = RNG.standard_normal((10000, 256)).astype(np.float32)
    k = np.arange(10000) % 100 == 0
    info = h.make_tensor_value_info
    body = h.make_graph(
        [h.make_node("Gather", ["i", "t"], ["at"]),
         h.make_node("Gather", ["x", "at"], ["row"]),
         h.make_node("Add", ["s", "row"], ["s2"]),
         h.make_node("Identity", ["c"], ["c2"])], "b",
        [info("t", I, []), info("c", B, []), info("s", F, [256])],
        [info("c2", B, []), info("s2", F, [256])])
    nodes = [("NonZero", ["k"], ["z"], {}), ("Squeeze", ["z", "a"], ["i"], {}),
             ("Shape", ["i"], ["n"], {}), ("Squeeze", ["n"], ["m"], {}),
             ("Loop", ["m", "true", "zero"], ["y"], {"body": body})]
    return model(nodes, {"x": x, "k": k}, {"y": F}, a=np.array([0]),
                 true=np.array(True), zero=np.zeros(256, np.float32))


CASES = {
    "tokens_2%": lambda: filtered_tokens(.02),
    "tokens_none": lambda: filtered_tokens(0),
    "tokens_all": lambda: filtered_tokens(2),
    "compress_1%": lambda: behind_compress(),
    "non_zero_1%": non_zero,
    "unique": unique,
    "elementwise": lambda: behind_compress(
        ("Exp", ["c"], ["e"], {}), ("Add", ["e", "c"], ["y"], {})),
    "reduce_sum": lambda: behind_compress(
        ("ReduceSum", ["c", "a"], ["y"], {"keepdims": 0}), a=np.array([0])),
    "reduce_mean_all": lambda: behind_compress(
        ("ReduceMean", ["c"], ["y"], {"keepdims": 0})),
    "softmax_rows": lambda: behind_compress(("Softmax", ["c"], ["y"], {"axis": 1})),
    "softmax_along": lambda: behind_compress(("Softmax", ["c"], ["y"], {"axis": 0})),
    "concat": lambda: behind_compress(("Concat", ["c", "c"], ["y"], {"axis": 0})),
    "slice_last": lambda: behind_compress(
        ("Slice", ["c", "b", "e", "a"], ["y"], {}), b=np.array([-500]),
        e=np.array([2**31]), a=np.array([0])),
    "sums_over_rows": lambda: behind_compress(
        ("Transpose", ["c"], ["t"], {"perm": [1, 0]}),
        ("MatMul", ["t", "c"], ["y"], {})),
    "top_k_rows": lambda: behind_compress(
        ("TopK", ["c", "k10"], ["y", "i"], {"axis": 1}), k10=np.array([10])),
    "top_k_along": lambda: chosen_list(
        ("TopK", ["v", "k100"], ["y", "j"], {"axis": 0}), k100=np.array([100])),
    "sort_rows": lambda: behind_compress(
        ("TopK", ["c", "k64"], ["y", "i"], {"axis": 1}), k64=np.array([64])),
    "scatter_add": lambda: chosen_list(
        ("Mod", ["i", "m"], ["j"], {}),
        ("ScatterElements", ["b", "j", "v"], ["y"], {"reduction": "add"}),
        m=np.array(4096), b=np.zeros(4096, np.float32)),
    "scatter_rows": lambda: behind_compress(
        ("NonZero", ["k"], ["z"], {}), ("Transpose", ["z"], ["i"], {}),
        ("Mul", ["c", "c"], ["d"], {}),
        ("ScatterND", ["x", "i", "d"], ["y"], {})),
    "unique_of_chosen": lambda: chosen_list(
        ("Round", ["v"], ["r"], {}), ("Unique", ["r"], ["y"], {})),
    "attention_5%": attention,
    "loop_to_count": loop_to_count,
    "nms_8400x80_0.3%": lambda: suppression(8400, 80, 20, .25, .004),
    "nms_8400x80_all": lambda: suppression(8400, 80, 20, None),
    "nms_8400x1_all": lambda: suppression(8400, 1, 8400, None),
    "nms_1000x8": lambda: suppression(1000, 8, 100, .5),
}


class Pair:
    def __init__(self, build, name, folder):
        made, self.feeds = CASES[name]()
        self.path, self.folder = f"{folder}/m.onnx", folder
        with open(self.path, "wb") as f:
            f.write(made.SerializeToString())
        for i, a in enumerate(self.feeds.values()):
            np.save(f"{folder}/input_{i}.npy", a)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(self.path, options)
        self.command = [f"{build}/pestle", "run", self.path, "--device", "llvm",
                        "--threads", "1", "--inputs", folder]

    def peer(self, seconds=.3):
        best, end = 1e9, time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            self.session.run(None, self.feeds)
            best = min(best, time.perf_counter() - start)
        return best * 1e3

    def own(self, runs=30):
        done = subprocess.run([*self.command, "--bench", str(runs)], check=True,
                              capture_output=True, text=True).stdout
        return min(json.loads(done[done.index("{"):].splitlines()[0])["run_ms"])

    def differs(self):
        results = f"{self.folder}/results"
        os.mkdir(results)
        subprocess.run([*self.command, "--outputs", results], check=True,
                       capture_output=True)
        for i, want in enumerate(self.session.run(None, self.feeds)):
            got = np.load(f"{results}/output_{i}.npy")
            if got.shape != want.shape or not np.allclose(got, want, 1e-3, 1e-4):
                return True
        return False


def main():
    build = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 4
    for name in sys.argv[3:] or CASES:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PESTLE_CACHE_DIR"] = f"{folder}/cache"
            pair = Pair(build, name, folder)
            wrong = pair.differs()
            own, peer = 1e9, 1e9
            for _ in range(rounds):
                own, peer = min(own, pair.own()), min(peer, pair.peer())
            print(f"{name:18} {own:9.3f} ms  ONNX Runtime {peer:9.3f}  "
                  f"{own / peer:5.2f}{'  OUTPUTS DIFFER' if wrong else ''}",
                  flush=True)


if __name__ == "__main__":
    main()
