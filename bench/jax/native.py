#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same graph through `pestle run` and through JAX on Pestle, in turns: what JAX's
dispatch and the plugin add to a run. JAX's own backend stands beside them.

    native.py --python PYTHON [--build BUILD] [--device cpu --peer cpu]

JAX writes each program as StableHLO; `pestle run --bench` takes that text."""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

import common


def programs():
    import jax
    import jax.numpy as jnp
    import numpy as np
    r = np.random.RandomState(0)
    array = lambda *s: jnp.asarray(r.standard_normal(s).astype(np.float32) * 0.1)

    def mlp(x, w1, w2, w3):
        return jax.nn.softmax(jnp.tanh(jnp.tanh(x @ w1) @ w2) @ w3)

    def block(x, qkv, out, up, down):
        norm = lambda z: (z - z.mean(-1, keepdims=True)) / jnp.sqrt(
            z.var(-1, keepdims=True) + 1e-5)
        q, k, v = jnp.split((norm(x) @ qkv).reshape(1, -1, 4, 96), 3, -1)
        x = x + jax.nn.dot_product_attention(q, k, v).reshape(x.shape) @ out
        return x + jax.nn.gelu(norm(x) @ up) @ down

    return {
        "x + 1, 4 elements": (lambda x: x + 1, [array(4)]),
        "20 arguments": (lambda *x: [v + 1 for v in x], [array(4) for _ in range(20)]),
        "mlp, batch 64": (mlp, [array(64, 256), array(256, 256), array(256, 256),
                                array(256, 10)]),
        "transformer block, 128 rows": (block, [array(1, 128, 128), array(128, 384),
                                                array(128, 128), array(128, 512),
                                                array(512, 128)]),
    }


def child():
    import jax
    print(json.dumps({name: common.least(lambda g=jax.jit(f), a=args: g(*a))
                      for name, (f, args) in programs().items()}))


def write(folder):
    """Each program as StableHLO text, by JAX in this process."""
    import jax
    for number, (f, args) in enumerate(programs().values()):
        text = jax.jit(f).lower(*args).as_text()
        (pathlib.Path(folder) / f"{number}.mlir").write_text(text, encoding="utf-8")


def native(args, folder, names):
    """Seconds of each file in |folder|, by the command."""
    rows = {}
    for number, name in enumerate(names):
        path = pathlib.Path(folder) / f"{number}.mlir"
        count = path.read_text(encoding="utf-8").split("->")[0].count("%arg")
        inputs = [word for i in range(count) for word in ("--input", f"{i}=random:{i}")]
        done = subprocess.run(
            [args.build / "pestle", "run", path, "--device", args.device, *inputs,
             "--bench", "400", "--threads", str(args.threads)],
            check=True, capture_output=True, text=True)
        rows[name] = min(json.loads(done.stdout.splitlines()[-1])["run_ms"]) * 1e-3
    return rows


def main():
    parser = common.arguments(argparse.ArgumentParser(description=__doc__))
    parser.add_argument("--write", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.write:
        return write(args.write)
    if args.child:
        return child()
    backends = ["pestle", args.peer]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.python, __file__, "--write", folder], check=True,
                       env=common.environment("cpu", args.build, "cpu", 0))
        seen = {}
        rows = {}
        for _ in range(args.rounds):
            one = argparse.Namespace(**{**vars(args), "rounds": 1})
            for name, row in common.turns(__file__, backends, one).items():
                for backend, seconds in row.items():
                    seen.setdefault((name, backend), []).append(seconds)
                    rows.setdefault(name, {})
            for name, seconds in native(args, folder, rows).items():
                seen.setdefault((name, "pestle run"), []).append(seconds)
        for (name, backend), seconds in seen.items():
            rows[name][backend] = statistics.median(seconds)
    common.show(rows, ["pestle", "pestle run", args.peer])


if __name__ == "__main__":
    main()
