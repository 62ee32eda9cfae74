#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the onnx package's backend cases as files.

    gen_node_data.py FOLDER

The node cases are Python code that runs at import; the others lie in the
package. Seeded: repeatable for one pair of onnx and numpy versions.
"""

import sys
import os
import json
import shutil
import random
import glob
import numpy as np

np.random.seed(0)
random.seed(0)
import onnx
from onnx import (
    numpy_helper,
    TensorProto,
    SequenceProto,
    OptionalProto,
    MapProto,
)
from onnx.backend.test.loader import load_model_tests, DATA_DIR

out = sys.argv[1]


def to_proto(v, vi):
    t = vi.type
    if isinstance(v, (TensorProto, SequenceProto, OptionalProto, MapProto)):
        return v
    if t.HasField("map_type"):
        return numpy_helper.from_dict(v, vi.name)
    if t.HasField("sequence_type"):
        return numpy_helper.from_list(v, vi.name)
    if t.HasField("optional_type"):
        return numpy_helper.from_optional(v, vi.name)
    return numpy_helper.from_array(np.asarray(v), vi.name)


index = {}
bad = []
for tc in load_model_tests(kind="node"):
    d = os.path.join(out, "node", tc.name)
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    with open(os.path.join(d, "model.onnx"), "wb") as f:
        f.write(tc.model.SerializeToString(deterministic=True))
    try:
        for i, (ins, outs) in enumerate(tc.data_sets):
            dd = os.path.join(d, f"test_data_set_{i}")
            os.makedirs(dd)
            for pre, vals, vis in (
                ("input", ins, tc.model.graph.input),
                ("output", outs, tc.model.graph.output),
            ):
                for j, v in enumerate(vals):
                    with open(os.path.join(dd, f"{pre}_{j}.pb"), "wb") as f:
                        f.write(
                            to_proto(v, vis[j]).SerializeToString(
                                deterministic=True
                            )
                        )
    except Exception as e:
        bad.append((tc.name, repr(e)[:200]))
        shutil.rmtree(d)
        continue
    index[f"node/{tc.name}"] = dict(rtol=tc.rtol, atol=tc.atol)
for kind in ("simple", "pytorch-converted", "pytorch-operator"):
    src = os.path.join(DATA_DIR, kind)
    for name in sorted(os.listdir(src)):
        if not os.path.isdir(os.path.join(src, name)):
            continue
        dst = os.path.join(out, kind, name)
        shutil.rmtree(dst, ignore_errors=True)
        shutil.copytree(src and os.path.join(src, name), dst)
        p = os.path.join(dst, "data.json")
        tol = json.load(open(p)) if os.path.exists(p) else {}
        index[f"{kind}/{name}"] = dict(
            rtol=tol.get("rtol", 1e-3), atol=tol.get("atol", 1e-7)
        )
# 'light': real architectures with constant weights; the input is what the onnx
# runner's generate_dummy_data makes.
src = os.path.join(DATA_DIR, "light")
for p in sorted(glob.glob(os.path.join(src, "*.onnx"))):
    n = "test_" + os.path.basename(p)[len("light_") : -5]
    d = os.path.join(out, "light", n)
    dd = os.path.join(d, "test_data_set_0")
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(dd)
    shutil.copy(p, os.path.join(d, "model.onnx"))
    m = onnx.load(p)
    ini = {i.name for i in m.graph.initializer}
    for j, x in enumerate([v for v in m.graph.input if v.name not in ini]):
        shp = tuple(
            k.dim_value if k.HasField("dim_value") else 1
            for k in x.type.tensor_type.shape.dim
        )
        k = int(np.prod(shp))
        open(os.path.join(dd, f"input_{j}.pb"), "wb").write(
            numpy_helper.from_array(
                (np.arange(k).reshape(shp) / k).astype(np.float32), x.name
            ).SerializeToString()
        )
    shutil.copy(p[:-5] + "_output_0.pb", os.path.join(dd, "output_0.pb"))
    index[f"light/{n}"] = dict(rtol=1e-3, atol=1e-7)
json.dump(
    index,
    open(os.path.join(out, "tolerances.json"), "w"),
    indent=0,
    sort_keys=True,
)
print(
    "onnx",
    onnx.__version__,
    "numpy",
    np.__version__,
    "cases",
    len(index),
    "bad",
    bad,
)
