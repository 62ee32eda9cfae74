#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random graphs against XLA: the text that `pestle-random --for-peer` writes, of
StableHLO alone, compiled and run by XLA's CPU compiler (through jax), held
against what ir/ref makes of the same inputs, within the radii of the ops' rows.

    run_vs_jax.py [--seeds 1..500] [--jobs 2] [--keep FOLDER]

Rows with TRANS and composites have 5 times their radius, since XLA's own
approximations are within 8 ulp where a row says 2 (tests/random/random.h). What
XLA does otherwise than StableHLO or not at all is listed below and is not asked
of it. A graph that XLA refuses is counted, with its reason.
Exit code 77: jax is not there.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# What XLA makes of the text as it stands: with excess precision conversions to a
# narrow type and back are dropped; its simplifier takes (x + c) + c for x + 2 c and
# a quotient by a constant for a product; its constant folder counts the leading
# zeros of negative numbers as -32.
os.environ["XLA_FLAGS"] = (
    os.environ.get("XLA_FLAGS", "") + " --xla_allow_excess_precision=false"
    " --xla_disable_hlo_passes=algsimp,constant_folding")
try:
    import jax
    import ml_dtypes
    import numpy as np
    from jaxlib import xla_client
    from jax._src import xla_bridge
except ImportError as error:
    print(f"skipped: no jax ({error}); pip install jax")
    sys.exit(77)

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SIGNED = ["i2", "i4", "i8", "i16", "i32", "i64"]
UNSIGNED = ["ui2", "ui4", "ui8", "ui16", "ui32", "ui64"]
INTS = SIGNED + UNSIGNED
F8 = ["f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E3M4", "f8E4M3",
      "f8E4M3B11FNUZ", "f8E8M0FNU", "f4E2M1FN"]
COMPLEX = ["complex<f32>", "complex<f64>"]

# (op, dtypes, why): dtypes of the first operand; none: all. "*": all ops, and no
# tensor is of that dtype (cli_narrow holds those against ml_dtypes).
WITHOUT = [
    ("*", ["i2", "ui2"], "XLA 0.10's sort of them spoils its memory, and what "
     "it makes of them is seldom right"),
    ("*", ["f4E2M1FN"], "XLA takes 6, the largest, for an infinity"),
    ("*", ["f6E2M3FN", "f6E3M2FN"], "refused: XLA knows their names alone"),
    ("*", ["f8E8M0FNU"], "what is no power of two is NaN or 2^-127 in XLA, as "
     "its passes have it"),
    ("sqrt", ["f8E3M4"], "XLA rounds twice, to f16 first"),
    ("rsqrt", ["f8E3M4"], "the same"),
    ("cbrt", ["f8E3M4"], "the same"),
    ("ge", COMPLEX, "XLA takes equal real parts for enough"),
    ("le", COMPLEX, "the same"),
    ("fusion", [], "Pestle's own, and with no meaning of its own"),
    ("lu", [], "Pestle's own; XLA has it as a custom call of LAPACK"),
    ("solve", [], "the same"),
    ("inverse", [], "the same"),
    ("rng", [], "which numbers come is not said"),
    ("fma", ["f64"], "StableHLO has none, and no type wide enough to say it"),
    ("rng_bit_generator", SIGNED, "XLA makes unsigned bits of signed ones"),
    ("subtract", ["i1"], "not in StableHLO"),
    ("add", ["i1"], "jaxlib's folder adds constants modulo 2, XLA ors"),
    ("abs", UNSIGNED, "not in StableHLO"),
    ("sign", UNSIGNED, "not in StableHLO"),
    ("bitcast_convert", ["i1", *COMPLEX], "an i1 of XLA has 8 bits, and a "
     "complex number is no pair of its parts"),
    ("reduce", [*F8, "bf16", "f16"], "XLA rounds each partial sum to the type"),
    ("reduce_window", [*F8, "bf16", "f16"], "the same"),
    ("dot_general", F8, "XLA sums them in f16"),
    ("convolution", F8, "the same"),
    ("popcnt", ["i4"], "XLA counts the copies of the sign in the other "
     "bits"),
    ("count_leading_zeros", ["i4"], "the same"),
    ("shift_right_logical", ["i4"], "XLA shifts those copies in"),
    ("log_plus_one", ["f64"], "near -0.5 XLA is 60 ulp off"),
    ("power", INTS, "XLA multiplies negative exponents out and takes large "
     "unsigned ones for negative ones"),
    # Against the C library's: 64 ulp at 8.73 in f32, 510 at 23.95 in f64, and
    # 37 at 0.9998 in f32, more in f64 near 1.
    ("erfc", [*F8, "f32", "f64"], "refused on f8; XLA is hundreds of ulp off "
     "where it is small"),
    ("erf_inv", ["f32", "f64"], "XLA is dozens of ulp off near 1"),
    ("cbrt", COMPLEX, "refused: 'floating for cbrt operation'"),
]

NUMPY = {
    "i1": np.bool_, "i4": ml_dtypes.int4, "i8": np.int8, "i16": np.int16,
    "i32": np.int32, "i64": np.int64, "ui4": ml_dtypes.uint4,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E3M4": ml_dtypes.float8_e3m4, "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn, "bf16": ml_dtypes.bfloat16,
    "i2": ml_dtypes.int2, "ui2": ml_dtypes.uint2, "f16": np.float16,
    "f32": np.float32, "f64": np.float64,
    "complex<f32>": np.complex64, "complex<f64>": np.complex128,
}  # fmt: skip


class Xla:
    def __init__(self):
        jax.config.update("jax_enable_x64", True)
        self.client = xla_bridge.get_backend("cpu")
        self.devices = xla_client.DeviceList(
            tuple(self.client.local_devices()[:1]))
        self.options = xla_client.CompileOptions()

    def run(self, text, inputs):
        made = self.client.compile_and_load(text, self.devices, self.options)
        out = made.execute_sharded([jax.device_put(a) for a in inputs])
        return [np.asarray(a[0])
                for a in out.disassemble_into_single_device_arrays()]


def elements(dtype, shape, data, at):
    """The array at |at|; 4-bit integers take a byte each."""
    kind = np.dtype(NUMPY[dtype])
    n = int(np.prod(shape, dtype=np.int64))
    raw = {"i4": np.dtype(np.int8), "ui4": np.dtype(np.uint8)}.get(dtype, kind)
    bytes_ = data[at:at + n * raw.itemsize]
    return np.frombuffer(bytes_, raw).astype(kind, copy=False).reshape(shape)


class Graph:
    """What pestle-random wrote for one seed."""

    def __init__(self, folder, seed):
        data = (folder / f"{seed}.bin").read_bytes()
        self.text = (folder / f"{seed}.mlir").read_text()
        self.inputs, self.outputs, self.ops = [], [], []
        for line in (folder / f"{seed}.txt").read_text().splitlines():
            f = line.split(" ")
            if f[0] == "op":
                self.ops.append((f[1], f[2]))
                continue
            shape = tuple(int(n) for n in f[2].split("x")[:-1])
            a = elements(f[1], shape, data, int(f[3]))
            if f[0] == "in":
                self.inputs.append(a)
            else:
                self.outputs.append((f[5], f[1], a, float(f[4])))


def parts(a):
    if a.dtype.kind == "c":
        a = np.ascontiguousarray(a)
        return a.view(np.float32 if a.dtype == np.complex64 else np.float64)
    return a


def on_cut(want, got, radius):
    """Parts of roots of negative numbers whose imaginary part is -0: XLA takes that
    for 0, C's csqrt (Annex G) and ir/ref give the conjugate."""
    w, g = want.reshape(-1, 2), got.reshape(-1, 2)
    with np.errstate(all="ignore"):
        cut = (np.abs(w) - np.abs(g) <= radius) & (np.abs(g) - np.abs(w) <= radius)
    cut = cut.all(axis=1) & (np.abs(w[:, 0]) <= radius) & (np.abs(g[:, 0]) <= radius)
    return np.repeat(cut, 2).reshape(want.shape)


def compare(op, dtype, want, radius, got):
    """None, or what differs."""
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{op}: {want.dtype}{want.shape} became {got.dtype}{got.shape}"
    if dtype in INTS or dtype == "i1":
        w, g = want.astype(object), got.astype(object)
        wrong = want != got
    else:
        w = parts(np.atleast_1d(want)).astype(np.float64)
        g = parts(np.atleast_1d(got)).astype(np.float64)
        with np.errstate(all="ignore"):
            near = np.abs(w - g) <= radius
        if op == "sqrt" and dtype in COMPLEX:
            near |= on_cut(w, g, radius)
        wrong = ~((w == g) | (np.isnan(w) & np.isnan(g)) | near)
    if not wrong.any():
        return None
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    return (f"{op} on {dtype}: {int(wrong.sum())} of {wrong.size} differ, first "
            f"{at}: XLA has {np.atleast_1d(g)[at]}, ir/ref "
            f"{np.atleast_1d(w)[at]} within {radius:g}")


def write_graphs(options, folder):
    without = ",".join(f"{op}:{d}" if d else op
                       for op, dtypes, _ in WITHOUT for d in dtypes or [""])
    build = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR",
                                        SOURCE / "build" / "release"))
    command = [str(build / "tests" / "bin" / "pestle-random"), "--device",
               "ref", "--for-peer", str(folder), "--seeds", options.seeds,
               "--without", without, "--counts"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout


def run_one(xla, folder, seed):
    """'same', 'different' or 'refused', and what of it is to be told."""
    graph = Graph(folder, seed)
    try:
        results = xla.run(graph.text, graph.inputs)
    except Exception as error:  # XLA's refusals have many classes
        lines = str(error).strip().splitlines()
        return "refused", lines[0][:200] if lines else "?"
    bad = [compare(*o, g) for o, g in zip(graph.outputs, results)]
    bad = [b for b in bad if b]
    return ("different", bad[0]) if bad else ("same", "")


def worker(folder):
    """A line a seed: what came of it."""
    xla = Xla()
    for seed in sys.stdin.read().split():
        outcome, text = run_one(xla, folder, seed)
        print(seed, outcome, text, flush=True)


def run_share(folder, seeds, outcomes):
    """Workers are processes: one that XLA takes down is lost with its seed, and
    another goes on behind it."""
    while seeds:
        command = [sys.executable, __file__, "--worker", str(folder)]
        done = 0
        with subprocess.Popen(command, stdin=subprocess.PIPE, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as process:
            process.stdin.write(" ".join(map(str, seeds)))
            process.stdin.close()
            for line in process.stdout:
                seed, outcome, text = line.rstrip("\n").split(" ", 2)
                outcomes[outcome] += 1
                done += 1
                if text:
                    print(f"seed {seed}: {outcome}: {text}", flush=True)
        if done < len(seeds):
            print(f"seed {seeds[done]}: XLA's process ended", flush=True)
            outcomes["lost"] += 1
        seeds = seeds[done + 1:]


def run_workers(options, folder, seeds):
    outcomes = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for job in [pool.submit(run_share, folder, seeds[k::options.jobs],
                                outcomes) for k in range(options.jobs)]:
            job.result()
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="1..500")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--keep", help="folder of the graphs")
    parser.add_argument("--counts", action="store_true",
                        help="how often each op met each dtype")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(pathlib.Path(options.worker))
        return 0
    for op, dtypes, why in WITHOUT:
        print(f"left out: {op}{' on ' if dtypes else ''}{', '.join(dtypes)}: "
              f"{why}")
    first, last = re.fullmatch(r"(\d+)\.\.(\d+)", options.seeds).groups()
    seeds = list(range(int(first), int(last) + 1))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(options.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        lines = write_graphs(options, folder).splitlines()
        print("\n".join(lines if options.counts else lines[-1:]))
        n = run_workers(options, folder, seeds)
    print(f"XLA {jax.__version__}: seeds {first} to {last}: {n['same']} agree, "
          f"{n['different']} differ, {n['refused']} refused, {n['lost']} lost")
    # What XLA itself dies of is told, and no fault of ours.
    return 1 if n["different"] or n["lost"] > len(seeds) / 100 else 0


if __name__ == "__main__":
    sys.exit(main())
