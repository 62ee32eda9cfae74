#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Weights in parts: each rank reads its own of a saved plan and of the cache folder, by
threads, sockets and shared memory with the same bits; what is damaged stops who needs it."""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from ranks import PESTLE, RANK, World

ROWS, INNER, WIDE = 8, 256, 4096
WEIGHTS = 2 * 4 * INNER * WIDE
# What is mapped around a page that is read, and what all ranks have.
SLACK = 1 << 20

MODEL = """module @mlp {{
  func.func public @main(%x: tensor<{r}x{k}xf32>) -> tensor<{r}x{k}xf32> {{
    %up = stablehlo.constant dense<"0x{up}"> : tensor<{k}x{h}xf32>
    %bias = stablehlo.constant dense<"0x{bias}"> : tensor<{h}xf32>
    %down = stablehlo.constant dense<"0x{down}"> : tensor<{h}x{k}xf32>
    %h = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
        : (tensor<{r}x{k}xf32>, tensor<{k}x{h}xf32>) -> tensor<{r}x{h}xf32>
    %b = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<{h}xf32>) -> tensor<{r}x{h}xf32>
    %a = stablehlo.add %h, %b : tensor<{r}x{h}xf32>
    %t = stablehlo.tanh %a : tensor<{r}x{h}xf32>
    %y = stablehlo.dot_general %t, %down, contracting_dims = [1] x [0]
        : (tensor<{r}x{h}xf32>, tensor<{h}x{k}xf32>) -> tensor<{r}x{k}xf32>
    return %y : tensor<{r}x{k}xf32>
  }}
}}
"""


def numbers(seed, count):
    """Of f32, small ones: a byte of a random mantissa each."""
    r = random.Random(seed).randbytes(2 * count)
    return b"".join(bytes((0, 0, r[i] & 0x7f, 0x3c | (r[i + 1] & 0x80)))
                    for i in range(0, 2 * count, 2)).hex()


def text_of(rows, inner, wide):
    return MODEL.format(r=rows, k=inner, h=wide, up=numbers(1, inner * wide),
                        bias=numbers(2, wide), down=numbers(3, inner * wide))


def call(*words, **more):
    done = subprocess.run([str(w) for w in (PESTLE, *words)], check=False, text=True,
                          capture_output=True, timeout=300, env=os.environ | more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def rules(n):
    return ["--mesh", f"m={n}", "--shard", "up=-,m", "--shard", "down=m,-"]


def mapped(pid, names):
    """Bytes in memory of the mappings of files whose names have |names| in them."""
    resident, counts = 0, False
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as f:
        for line in f:
            words = line.split()
            if not words[0].endswith(":"):
                counts = len(words) > 5 and names in words[5]
            elif counts and words[0] == "Rss:":
                resident += int(words[1]) << 10
    return resident


def wait_stopped(rank):
    stat = pathlib.Path(f"/proc/{rank.pid}/stat")
    for _ in range(1200):
        state = stat.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
        if state == "T":
            return
        assert state != "Z", "a rank has ended"
        time.sleep(0.05)
    raise AssertionError("a rank has not come to where it stops")


def resident(n, model, names, **more):
    """Of each rank, after two runs."""
    with World([[RANK, model, 3, "stop", 2]] * n, **more) as world:
        for rank in world.ranks:
            wait_stopped(rank)
        return [mapped(rank.pid, names) for rank in world.ranks]


def has_share(n, bytes_of_ranks):
    share = WEIGHTS // n
    for bytes_of in bytes_of_ranks:
        assert share * 0.95 <= bytes_of <= share + SLACK, (n, share, bytes_of_ranks)


def lines(n, model, **more):
    with World([[RANK, model, 3]] * n, **more) as world:
        world.wait_ready()
        ends = world.ends(limit=240)
    assert all(code == 0 for code, _, _ in ends.values()), ends
    return {text for _, text, _ in ends.values()}


def threads(n, model, **more):
    with World([[RANK, model, 3]], WORLD_RANK_THREADS=n, **more) as world:
        code, text, _ = world.ends(limit=240)[0]
    assert code == 0, text
    return {line + "\n" for line in text.splitlines() if line.startswith("done")}


def on_ranks(n, model, folder):
    saved = folder / f"saved{n}.plan"
    call("compile", model, *rules(n), "-o", saved)
    steps = call("dump", model, *rules(n), "--stage", "plan").split("locations:")[0]
    assert "slice" not in steps and "partition_id" not in steps, steps
    told = call("explain", model, *rules(n))
    assert f"weights: a process has {(WEIGHTS + 4 * WIDE) // n} of {WEIGHTS + 4 * WIDE}" in told
    # As many ranks as cores are there for it; more are no more than right.
    results = lines(n, saved, PESTLE_WORLD_SHM=1)
    assert results == lines(n, saved, PESTLE_WORLD_SHM=0) == threads(n, saved)
    assert len(results) == 1, results  # what was summed up is alike
    has_share(n, resident(n, saved, saved.name))
    return saved


def by_the_cache(n, model, folder):
    divided = folder / "divided.mlir"
    divided.write_text(call("opt", model, *rules(n), "--passes",
                            "canonicalise,recognise,partition"), encoding="utf-8")
    cache = folder / "cache"
    first = lines(n, divided, XDG_CACHE_HOME=cache)
    assert first == lines(n, divided, XDG_CACHE_HOME=cache)
    has_share(n, resident(n, divided, "/c-", XDG_CACHE_HOME=cache))
    heals(n, divided, cache, first)
    return first


def heals(n, divided, cache, right):
    """A run that meets damaged parts makes them anew, and the next finds them."""
    parts = sorted(cache.rglob("c-*"))
    assert len(parts) >= n, parts
    for run in (lines, lambda *_, **more: threads(n, divided, **more)):
        before = [part.read_bytes() for part in parts]
        for part, data in zip(parts, before):
            part.chmod(0o600)
            part.write_bytes(data[:-64] + bytes((data[-64] ^ 1,)) + data[-63:])
        assert run(n, divided, XDG_CACHE_HOME=cache) == right
        assert [part.read_bytes() for part in parts] == before


def simulated(n, model, folder):
    topology = folder / "two.topology"
    topology.write_text("rank flops=60G memory=10G\nlink shm alpha=3us beta=3G by=peers\n",
                        encoding="utf-8")
    told = json.loads(call("world", model, *rules(n), "--simulate", n, "--topology", topology,
                           "--json"))
    for own in told["weight_bytes"]:
        assert WEIGHTS // n <= own <= WEIGHTS // n + 4 * WIDE, told
    assert told["all_weight_bytes"] >= WEIGHTS


def damaged(saved):
    """The last bytes are of the last rank's part."""
    data = bytearray(saved.read_bytes())
    data[-64] ^= 1
    saved.write_bytes(data)
    with World([[RANK, saved, 2]] * 2) as world:
        ends = world.ends()
    assert ends[1][0] == 1 and "is damaged" in ends[1][1], ends
    assert ends[0][0] == 1 and "UNAVAILABLE" in ends[0][1], ends


BITS = """module @bits {{
  func.func public @main(%x: tensor<2x64xf32>) -> tensor<2x64xf32> {{
    %uw = stablehlo.constant dense<"0x{uw}"> : tensor<256x32xui8>
    %us = stablehlo.constant dense<"0x{us}"> : tensor<256x2xf32>
    %dw = stablehlo.constant dense<"0x{dw}"> : tensor<64x128xui8>
    %ds = stablehlo.constant dense<"0x{ds}"> : tensor<64x8xf32>
    %h = "pestle.block_dot"(%x, %uw, %us) <{{bits = 4 : i64, block = 32 : i64}}>
        : (tensor<2x64xf32>, tensor<256x32xui8>, tensor<256x2xf32>) -> tensor<2x256xf32>
    %t = stablehlo.tanh %h : tensor<2x256xf32>
    %y = "pestle.block_dot"(%t, %dw, %ds) <{{bits = 4 : i64, block = 32 : i64}}>
        : (tensor<2x256xf32>, tensor<64x128xui8>, tensor<64x8xf32>) -> tensor<2x64xf32>
    return %y : tensor<2x64xf32>
  }}
}}
"""


def few_bits(folder):
    """Weights of a few bits, by rows and by blocks, in parts of a kernel of their own."""
    r = random.Random(5)
    model = folder / "bits.mlir"
    model.write_text(BITS.format(uw=r.randbytes(256 * 32).hex(), us=numbers(6, 512),
                                 dw=r.randbytes(64 * 128).hex(), ds=numbers(7, 512)),
                     encoding="utf-8")
    cut = ["--mesh", "m=2", "--shard", "uw=m,-", "--shard", "us=m,-", "--shard", "dw=-,m",
           "--shard", "ds=-,m"]
    call("run", model, "--input", "0=random:1", "--outputs", folder / "whole")
    call("run", model, "--input", "0=random:1", *cut, "--compare", folder / "whole")
    steps = call("dump", model, *cut, "--stage", "plan").split("locations:")[0]
    assert "slice" not in steps and "part3[" in steps and "block_dot" in steps, steps


def from_onnx(folder):
    """MatMulNBits' weights keep their names."""
    try:
        import numpy as np
        import onnx
    except ImportError:
        return
    r = np.random.default_rng(1)

    def product(x, n, k, y):
        tensors = [onnx.numpy_helper.from_array(a, y + end) for a, end in (
            (r.integers(0, 256, (n, k // 32, 16)).astype("u1"), ".w"),
            (r.random(n * (k // 32)).astype("f4"), ".s"))]
        return tensors, onnx.helper.make_node(
            "MatMulNBits", [x, y + ".w", y + ".s"], [y], domain="com.microsoft", K=k, N=n,
            bits=4, block_size=32)
    first, up = product("x", 256, 64, "h")
    second, down = product("h", 64, 256, "y")
    graph = onnx.helper.make_graph(
        [up, down], "bits", [onnx.helper.make_tensor_value_info("x", 1, [1, 64])],
        [onnx.helper.make_tensor_value_info("y", 1, [1, 64])], first + second)
    path = folder / "bits.onnx"
    onnx.save(onnx.helper.make_model(graph, opset_imports=[
        onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]), path)
    cut = ["--mesh", "m=2"]
    for rule in ("h.w=m,-", "h.s=m,-", "y.w=-,m", "y.s=-,m"):
        cut += ["--shard", rule]
    call("run", path, "--input", "x=random:1", "--outputs", folder / "of_onnx")
    call("run", path, "--input", "x=random:1", *cut, "--compare", folder / "of_onnx")
    steps = call("dump", path, *cut, "--stage", "plan").split("locations:")[0]
    assert "slice" not in steps and "part3[" in steps, steps


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "mlp.mlir"
        model.write_text(text_of(ROWS, INNER, WIDE), encoding="utf-8")
        one = folder / "one"
        call("run", model, "--input", "0=random:1", "--outputs", one)
        call("run", model, "--input", "0=random:1", *rules(2), "--compare", one)
        saved = on_ranks(2, model, folder)
        on_ranks(4, model, folder)
        by_the_cache(2, model, folder)
        simulated(2, model, folder)
        damaged(saved)
        few_bits(folder)
        from_onnx(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
