# SPDX-License-Identifier: Apache-2.0
"""Five programs that people divide, on a mesh of 8: the collectives that the pass
`partition` makes and the bytes that a process sends by them, beside those of XLA's
partitioner for the same annotated module. Pestle's are no more than XLA's.

Skips where JAX cannot be imported (PESTLE_JAX_PYTHON names a Python that can).
With --print it prints the table, with --keep DIR the modules too."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))

PROGRAMS = r"""
import sys, pathlib
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P, NamedSharding

out = pathlib.Path(sys.argv[1])
devices = np.array(jax.devices("cpu"))
assert len(devices) == 8


def emit(name, f, mesh, args, specs, outs=None):
    place = lambda s: NamedSharding(mesh, s)
    shapes = [jax.ShapeDtypeStruct(s, d) for s, d in args]
    where = {} if outs is None else {"out_shardings": jax.tree.map(
        place, outs, is_leaf=lambda x: isinstance(x, P))}
    lowered = jax.jit(f, in_shardings=[place(s) for s in specs], **where).lower(*shapes)
    (out / f"{name}.mlir").write_text(lowered.as_text())
    (out / f"{name}.hlo").write_text(lowered.compile().as_text())


F = jnp.float32
data8 = Mesh(devices, ("data",))
grid = Mesh(devices.reshape(2, 4), ("data", "model"))


def loss(w, x, y):
    h = jax.nn.relu(x @ w[0] + w[1])
    return jnp.mean((h @ w[2] + w[3] - y) ** 2)


def step(a, b, c, d, x, y):
    g = jax.grad(loss)((a, b, c, d), x, y)
    return tuple(p - 0.1 * q for p, q in zip((a, b, c, d), g))


weights = [((64, 256), F), ((256,), F), ((256, 32), F), ((32,), F)]
batch = [((128, 64), F), ((128, 32), F)]
# Weights everywhere, rows of the batch in parts: one sum of all gradients.
emit("data_parallel", step, data8, weights + batch,
     [P(), P(), P(), P(), P("data"), P("data")], (P(),) * 4)

# Weights in parts along their rows, gathered for use, gradients scattered.
emit("fsdp", step, data8, weights + batch,
     [P("data"), P("data"), P("data"), P("data"), P("data"), P("data")],
     (P("data"),) * 4)


def megatron(x, up, down, q, k, v, o):
    b, s, d = x.shape
    heads = lambda w: (x @ w).reshape(b, s, 8, d // 8).transpose(0, 2, 1, 3)
    a = jax.nn.softmax(heads(q) @ heads(k).transpose(0, 1, 3, 2) / 4.0, axis=-1)
    y = (a @ heads(v)).transpose(0, 2, 1, 3).reshape(b, s, d) @ o
    x = x + y
    return x + jax.nn.gelu(x @ up) @ down


D = 128
emit("megatron", megatron, grid,
     [((4, 32, D), F), ((D, 4 * D), F), ((4 * D, D), F)] + [((D, D), F)] * 4,
     [P("data"), P(None, "model"), P("model", None)]
     + [P(None, "model")] * 3 + [P("model", None)],
     P("data"))


def embed(table, ids):
    return table[ids] * 2.0


# Rows of the table in parts: each looks up its own, and they are summed up.
emit("vocabulary", embed, Mesh(devices, ("model",)),
     [((1024, 64), F), ((16, 32), jnp.int32)], [P("model"), P()], P())


def experts(x, w):
    return jnp.einsum("ecd,edf->ecf", x, w)


# Tokens of all experts by rows, experts by processes: an all_to_all.
emit("experts", experts, Mesh(devices, ("expert",)),
     [((8, 64, 32), F), ((8, 32, 48), F)], [P(None, "expert"), P("expert")],
     P(None, "expert"))
"""

SIZES = {"f32": 4, "s32": 4, "u32": 4, "pred": 1, "s64": 8, "i32": 4, "i1": 1, "i64": 8,
         "ui32": 4, "bf16": 2, "f16": 2, "f64": 8}  # fmt: skip
KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute")


def cost(kind, n, into, out):
    """Bytes that a process sends, by the least that the collective takes."""
    if kind == "all_reduce":
        return 2 * (n - 1) / n * into
    if kind == "all_gather":
        return (n - 1) / n * out
    if kind in ("reduce_scatter", "all_to_all"):
        return (n - 1) / n * into
    return into


def count(dims, dtype):
    n = SIZES[dtype]
    for d in dims:
        n *= d
    return n


def of_hlo(text):
    found = {}
    for line in text.splitlines():
        m = re.match(r"\s*(?:ROOT )?\S+ = (.*?) (all-reduce|all-gather|reduce-scatter|"
                     r"all-to-all|collective-permute)(?:-start)?\((.*)", line)  # fmt: skip
        if not m:
            continue
        out = sum(count([int(d) for d in dims.split(",") if d], t)
                  for t, dims in re.findall(r"(\w+)\[([\d,]*)\]", m[1]))  # fmt: skip
        kind = m[2].replace("-", "_")
        groups = re.search(r"replica_groups=\{\{([\d,]+)\}", line)
        iota = re.search(r"replica_groups=\[(\d+),(\d+)\]", line)
        named = re.search(r"replica_groups=mesh\[(.*?)\] \{(.*?)\}", line)
        n = len(groups[1].split(",")) if groups else int(iota[2]) if iota else 8
        if named:
            sizes = dict(re.findall(r"'(\w+)'=(\d+)", named[1]))
            n = 1
            for axis in re.findall(r"'(\w+)'", named[2]):
                n *= int(sizes[axis])
        into = out * n if kind == "reduce_scatter" else out
        found.setdefault(kind, []).append(cost(kind, n, into, out))
    return found


def of_pestle(text):
    found = {}
    types = r"tensor<((?:\d+x)*)(\w+)>"
    pending = None
    for line in text.splitlines():
        m = re.search(r'"?stablehlo\.(' + "|".join(KINDS) + r')"?\(', line)
        if m:
            groups = re.search(r"replica_groups = dense<[^>]*> : tensor<(\d+)x(\d+)xi64>", line)
            pending = m[1], int(groups[2]) if groups else 2
        if pending and re.search(r": \(.*\) -> ", line):
            left, right = line.rsplit(": (", 1)[1].split(") -> ", 1)
            size = lambda s: sum(
                count([int(d) for d in dims.split("x") if d], t)
                for dims, t in re.findall(types, s)
            )
            kind, n = pending
            found.setdefault(kind, []).append(cost(kind, n, size(left), size(right)))
            pending = None
    return found


def show(found):
    return ", ".join(f"{k} x{len(v)} {sum(v):.0f} B" for k, v in sorted(found.items())) or "none"


def main():
    python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import jax"], capture_output=True).returncode:
        print("skipped: no JAX")
        return 77
    keep = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(keep or folder)
        environment = dict(os.environ, JAX_PLATFORMS="cpu",
                           XLA_FLAGS="--xla_force_host_platform_device_count=8")  # fmt: skip
        subprocess.run([python, "-c", PROGRAMS, str(folder)], env=environment, check=True)
        modules = sorted(folder.glob("*.mlir"))
        assert len(modules) == 5, modules
        for module in modules:
            r = subprocess.run(
                [BUILD / "pestle", "opt", str(module), "--passes",
                 "place_custom,inline,expand_collectives,expand_composites,canonicalise,"
                 "recognise,partition,canonicalise"],
                capture_output=True, text=True, check=False)  # fmt: skip
            assert r.returncode == 0, (module.name, r.stderr)
            if keep:
                module.with_suffix(".local").write_text(r.stdout)
            ours = of_pestle(r.stdout)
            theirs = of_hlo(module.with_suffix(".hlo").read_text())
            mine = sum(map(sum, ours.values()))
            xla = sum(map(sum, theirs.values()))
            print(f"{module.stem}: {mine:.0f} B, XLA {xla:.0f} B\n"
                  f"  pestle  {show(ours)}\n  XLA     {show(theirs)}")  # fmt: skip
            assert xla > 0, "nothing of XLA's was understood"
            failed += mine > xla * 1.001
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
