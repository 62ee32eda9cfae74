#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The open models on one GPU: Pestle and XLA, given the same StableHLO, in turns.

    models.py pack PESTLE MODELS_DIR STATIC_DIR OUT
    models.py run PACKED --base DIR [--out FILE] [--only TEXT,...] [--minutes M]
                  [--rounds N] [--device cuda]

pack writes OUT/NAME_bN.mlir.gz: what `pestle opt --passes decompose` prints of a model
with N rows, in which each large array of weights stands as its seed, mean and deviation, so
that all models fit into two megabytes. STATIC_DIR has the files with fixed shapes,
MODELS_DIR those with symbolic ones, of which batches of 32 rows are made.

run makes the weights again, gives the text to bench_device and to XLA (jax's client, with
its default tuning), holds the results against each other, and times both: about 3 ms each
after 10 ms of rest, by the clock around calls that end with a wait; the median counts.
Weights are constants for both. A model with quantised values is only timed where these
flip at ties: its row says how far apart the results are. Rows that --out has are left
out. Ends with the geometric mean."""

import argparse
import gzip
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from bench import BATCH_MS, Pestle, take_turns  # noqa: E402

# Arrays with as many elements are made from a seed.
LARGE = 2048
SEEDED = {"f32": "<f4", "f16": "<f2", "i8": "i1", "ui8": "u1"}
OTHERS = {"i1": "?", "i32": "<i4", "i64": "<i8", "f64": "<f8"}
CONSTANT = re.compile(
    r'dense<"0x([0-9A-F]+)">( : tensor<((?:\d+x)+)(%s)>)' % "|".join(SEEDED))
SEED = re.compile(r'dense<"seed (\d+) (\S+) (\S+)">( : tensor<((?:\d+x)*)(\w+)>)')
# The dims that are fixed, by model, for batches.
BATCHES = {
    "lcnet_orient": {"DynamicDimension.0": 32},
    "magika": {"unk__214": 32},
    "minilm_l3": {"batch_size": 32, "sequence_length": 128},
    "ppocr_det": {"p2o.DynamicDimension.0": 32, "p2o.DynamicDimension.1": 320,
                  "p2o.DynamicDimension.2": 320},
    "ppocr_rec": {"p2o.DynamicDimension.0": 32, "?": 48, "p2o.DynamicDimension.1": 320},
    "silero_vad": {"batch": 32, "sequence": 576},
}
OFF = 2e-3  # of the norm: f32 in another order


def extents(text):
    return [int(n) for n in text.split("x") if n]


# --- pack ---

def pack(options):
    import numpy as np
    options.out.mkdir(parents=True, exist_ok=True)
    jobs = [(path, 1, {}) for path in sorted(options.static.glob("*.onnx"))]
    jobs += [(options.models / f"{name}.onnx", 32, dims) for name, dims in BATCHES.items()
             if (options.models / f"{name}.onnx").exists()]
    for path, batch, dims in jobs:
        words = [word for k, v in dims.items() for word in ("--dim", f"{k}={v}")]
        text = subprocess.run([options.pestle, "opt", path, "--passes", "decompose", *words],
                              check=True, capture_output=True, text=True).stdout
        seeds = iter(range(1 << 30))

        def seeded(match):
            digits, tail, _, element = match.groups()
            values = np.frombuffer(bytes.fromhex(digits), SEEDED[element]).astype("f4")
            if values.size < LARGE:
                return match.group(0)
            return (f'dense<"seed {next(seeds)} {values.mean():.6g} {values.std():.6g}">'
                    f"{tail}")
        with gzip.open(options.out / f"{path.stem}_b{batch}.mlir.gz", "wt") as file:
            file.write(CONSTANT.sub(seeded, text))
    return 0


# --- run ---

def unpacked(path, np):
    def values(match):
        seed, mean, deviation, tail, dims, element = match.groups()
        rng = np.random.default_rng(int(seed))
        made = rng.standard_normal(math.prod(extents(dims)), "f4")
        made = made * np.float32(deviation) + np.float32(mean)
        if SEEDED[element] in ("i1", "u1"):
            limits = np.iinfo(SEEDED[element])
            made = made.round().clip(limits.min, limits.max)
        return f'dense<"0x{made.astype(SEEDED[element]).tobytes().hex().upper()}">{tail}'
    with gzip.open(path, "rt") as file:
        return SEED.sub(values, file.read())


def inputs_of(text, np):
    head = text[text.index("@main("):].split(") -> ", 1)[0]
    made, rng = [], np.random.default_rng(0)
    for dims, element in re.findall(r"%\w+: tensor<((?:\d+x)*)(\w+)>", head):
        dims = extents(dims)
        if element.startswith("f"):
            made.append(rng.standard_normal(dims, "f4").astype(SEEDED[element]))
        else:  # ids, lengths and masks
            made.append(np.ones(dims, (SEEDED | OTHERS)[element]))
    return made


def exact(text):
    """Products and convolutions of f32 in f32: XLA takes tf32 else."""
    high = "#stablehlo<precision HIGHEST>"
    text = re.sub(r"(stablehlo\.dot_general [^:]*?)( : \()",
                  r"\1, precision = [HIGHEST, HIGHEST]\2", text)
    return re.sub(r"(stablehlo\.convolution.*?feature_group_count = \d+ : i64)",
                  rf"\1, precision_config = [{high}, {high}]", text)


def by_xla(text, data):
    import jax
    import jax.extend
    jax.config.update("jax_enable_x64", True)
    from jax._src.lib import xla_client
    client = jax.extend.backend.get_backend()
    devices = xla_client.DeviceList(tuple(client.local_devices()[:1]))
    begin = time.perf_counter()
    compiled = client.compile_and_load(exact(text), devices, xla_client.CompileOptions())
    took = (time.perf_counter() - begin) * 1e3
    placed = [jax.device_put(d) for d in data]

    def run():
        made = compiled.execute_sharded(placed).disassemble_into_single_device_arrays()
        return [parts[0] for parts in made]

    def timed(count):
        begin = time.perf_counter()
        for _ in range(count):
            out = run()
        for array in out:
            array.block_until_ready()
        return (time.perf_counter() - begin) * 1e6 / count
    timed(3)
    count = max(1, int(BATCH_MS * 1e3 / timed(3)))
    return [client_array.__array__() for client_array in run()], lambda: timed(count), took


def by_pestle(options, path, data, wants, folder, np):
    child = Pestle(options.base, options.device)
    took = float(child.ask(f"load {path} 1")[0])
    for i, d in enumerate(data):
        (folder / "input").write_bytes(d.tobytes())
        child.ask(f"input {i} {folder / 'input'}")
    got = []
    for i, want in enumerate(wants):
        child.ask(f"save {i} {folder / 'output'}")
        got.append(np.frombuffer((folder / "output").read_bytes(), want.dtype))
    return child, got, took


def off(got, wants, np):
    """How far all results are apart, of the norm."""
    apart = norm = 0.0
    for a, b in zip(got, wants):
        a, b = a.astype("f8").reshape(-1), b.astype("f8").reshape(-1)
        apart += float(((a - b) ** 2).sum())
        norm += float((b**2).sum())
    return math.sqrt(apart / max(norm, 1e-30))


def measured(options, path):
    import numpy as np
    name = path.name.removesuffix(".mlir.gz")
    row = {"row": name}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        text = unpacked(path, np)
        (folder / "model.mlir").write_text(text, encoding="utf-8")
        data, times, child = inputs_of(text, np), {}, None
        try:
            wants, timer, row["xla_compile_ms"] = by_xla(text, data)
            times["xla"] = (timer, [])
            child, got, row["compile_ms"] = by_pestle(options, folder / "model.mlir", data,
                                                      wants, folder, np)
            row["off"] = off(got, wants, np)
            row["right"] = bool(row["off"] <= OFF)
            times["pestle"] = (lambda: float(child.ask(f"time {BATCH_MS}")[0]), [])
        except Exception as error:  # a row says it, and the next one comes
            row["error"] = f"{type(error).__name__}: {str(error)[:400]}"
        take_turns(times, options.rounds, time.time() + 60, row)
        if child:
            child.child.kill()
            child.child.wait()
    if "pestle" in row and "xla" in row:
        row["ratio"] = row["pestle"] / row["xla"]
    return row


def run(options):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    options.base = str(pathlib.Path(options.base).resolve())
    done = {json.loads(line)["row"] for line in options.out.read_text().splitlines()
            } if options.out.exists() else set()
    end = time.monotonic() + 60 * options.minutes
    for path in sorted(options.packed.glob("*.mlir.gz")):
        name = path.name.removesuffix(".mlir.gz")
        if name in done or not any(t in name for t in options.only.split(",")):
            continue
        if time.monotonic() > end:
            print("time is up: the same command goes on from here")
            break
        row = measured(options, path)
        ratio = f"{row['ratio']:7.2f}" if "ratio" in row else "      -"
        print(f"{ratio} {json.dumps(row)}", flush=True)
        with open(options.out, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
    rows = [json.loads(line) for line in options.out.read_text().splitlines()]
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        print(f"{len(ratios)} rows, geometric mean "
              f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, most "
              f"{max(ratios):.2f}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    p = commands.add_parser("pack")
    for name in ("pestle", "models", "static", "out"):
        p.add_argument(name, type=pathlib.Path)
    p.set_defaults(do=pack)
    p = commands.add_parser("run")
    p.add_argument("packed", type=pathlib.Path)
    p.add_argument("--base", required=True)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("models.jsonl"))
    p.add_argument("--only", default="")
    p.add_argument("--minutes", type=float, default=9)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--device", default="cuda")
    p.set_defaults(do=run)
    options = parser.parse_args()
    return options.do(options)


if __name__ == "__main__":
    sys.exit(main())
