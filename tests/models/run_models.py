#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Correctness and interleaved speed of runtimes over models.json.

    fetch_models.py DIR
    run_models.py --dir DIR --peers ort1,ort2,ov1,ov2 --rounds 8 --json out.json
    run_models.py --dir DIR --peers ort1,pestle1 --define 'pestle1=exe:pestle \
        run {model} --inputs {inputs} --outputs {outputs} --threads 1 \
        --bench {iters}'
    run_models.py --check-only ...     outputs are compared, nothing is timed

A peer is also --define NAME=module:factory:threads, whose factory is
make(path, inputs: dict name -> array, threads) -> callable(inputs) -> list of
arrays in the order of the graph's outputs. Each peer runs in a process of its
own; peers take turns (batches of k runs), so that noise falls on all alike.

An exe peer is called once a batch; it reads INPUTS/io.txt (as in
run_node_tests.py), writes OUTPUTS/output_N.npy and prints one JSON line:
{"create_ms": x, "run_ms": [t, ...], "peak_rss_kb": n}.

Reference: ONNX Runtime without graph optimisation, 1 thread. An output passes
when |a-r| <= atol + rtol*|r| for all but --outliers of its elements and
max|a-r|/max|r| <= --maxnorm; integers must be equal.
"""

import argparse
import importlib
import json
import multiprocessing as mp
import os
import resource
import shlex
import subprocess
import sys
import tempfile
import time
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))


def inputs_of(m):
    from fetch_models import make_inputs

    return make_inputs(m["inputs"], m["seed"])


def make_ort(path, inputs, threads, level="all"):
    import onnxruntime as ort

    so = ort.SessionOptions()
    so.intra_op_num_threads = threads
    so.inter_op_num_threads = 1
    so.log_severity_level = 4
    so.graph_optimization_level = (
        ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        if level == "off"
        else ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    )
    s = ort.InferenceSession(path, so, providers=["CPUExecutionProvider"])
    return lambda x: s.run(None, x)


def make_ov(path, inputs, threads, precision="f32"):
    import openvino as ov

    c = ov.Core()
    cfg = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "ENABLE_CPU_PINNING": False,
    }
    if precision:
        cfg["INFERENCE_PRECISION_HINT"] = precision
    m = c.read_model(path)
    cm = c.compile_model(m, "CPU", cfg)
    rq = cm.create_infer_request()
    n = len(cm.outputs)
    names = []
    for (
        p
    ) in (
        cm.inputs
    ):  # OpenVINO may rename 'a:0' style names; keep order-safe mapping
        nm = next((k for k in inputs if k in p.get_names()), None)
        names.append(nm)

    def run(x):
        r = rq.infer(
            {p: x[k] for p, k in zip(cm.inputs, names)},
            share_inputs=True,
            share_outputs=True,
        )
        return [np.asarray(r[i]) for i in range(n)]

    return run


BUILTIN = {
    "ortoff": ("ort", 1, "off"),
    "ort1": ("ort", 1),
    "ort2": ("ort", 2),
    "ov1": ("ov", 1),
    "ov2": ("ov", 2),
    "ov1def": ("ov", 1, None),
}


def hwm():
    for l in open("/proc/self/status"):
        if l.startswith("VmHWM"):
            return int(l.split()[1])


def worker(conn, spec, path, m):
    try:
        sys.path[:0] = [HERE, os.getcwd()]
        # OpenVINO reports its import by a forked process, which may hang.
        sys.modules["openvino_telemetry"] = None
        x = inputs_of(m)
        if isinstance(spec, tuple):
            mk = {"ort": make_ort, "ov": make_ov}[spec[0]]
            extra = spec[2:]
            th = spec[1]
            importlib.import_module(
                {"ort": "onnxruntime", "ov": "openvino"}[spec[0]]
            )
        else:
            mod, fn, th = spec.split(":")
            mk = getattr(importlib.import_module(mod), fn)
            extra = ()
            th = int(th)
        base = hwm()
        t = time.perf_counter()
        f = mk(path, x, th, *extra)
        create = time.perf_counter() - t
        t = time.perf_counter()
        y = [np.array(v) for v in f(x)]
        first = time.perf_counter() - t
        conn.send(("ok", create * 1e3, first * 1e3, y, base))
        while True:
            k = conn.recv()
            if k is None:
                break
            w, c = [], []
            for _ in range(k):
                c0 = time.process_time()
                t = time.perf_counter()
                f(x)
                w.append((time.perf_counter() - t) * 1e3)
                c.append((time.process_time() - c0) * 1e3)
            conn.send((w, c, hwm()))
    except EOFError:
        pass
    except BaseException as e:
        conn.send(("err", f"{type(e).__name__}: {str(e)[:400]}"))


class Proc:
    def __init__(self, name, spec, path, m):
        ctx = mp.get_context("spawn")
        self.name = name
        self.wall, self.cpu = [], []
        self.c, ch = ctx.Pipe()
        self.p = ctx.Process(target=worker, args=(ch, spec, path, m))
        self.p.start()
        ch.close()
        r = self.c.recv() if self.c.poll(180) else ("err", "time-out")
        self.err = r[1] if r[0] == "err" else None
        if not self.err:
            _, self.create, self.first, self.out, self.base = r
            self.peak = None

    def batch(self, k):
        self.c.send(k)
        w, c, self.peak = self.c.recv()
        self.wall += w
        self.cpu += c
        return w

    def close(self):
        try:
            self.c.send(None)
        except OSError:
            pass
        self.p.join(10)
        if self.p.is_alive():
            self.p.kill()


class Exe:
    def __init__(self, name, tmpl, path, m):
        self.name, self.t, self.path = name, tmpl, path
        self.wall, self.cpu = [], []
        self.base = 0
        self.peak = 0
        self.d = tempfile.mkdtemp()
        x = inputs_of(m)
        os.makedirs(self.d + "/in")
        os.makedirs(self.d + "/out")
        with open(self.d + "/in/io.txt", "w") as f:
            for i, (n, a) in enumerate(x.items()):
                np.save(f"{self.d}/in/input_{i}.npy", a)
                f.write(
                    f"input {i} {a.dtype.name} {'x'.join(map(str, a.shape)) or 'scalar'} input_{i}.npy {n}\n"
                )
        try:
            t = time.perf_counter()
            w = self._call(1)
            self.first = w[0]
            self.err = None
            import glob

            n = len(glob.glob(f"{self.d}/out/output_*.npy"))
            self.out = [
                np.load(f"{self.d}/out/output_{i}.npy") for i in range(n)
            ]
        except Exception as e:
            self.err = str(e)[:400]

    def _call(self, k):
        cmd = [
            p.format(
                model=self.path,
                inputs=self.d + "/in",
                outputs=self.d + "/out",
                iters=k,
            )
            for p in shlex.split(self.t)
        ]
        r = subprocess.run(cmd, capture_output=True, text=True, timeout=600)
        if r.returncode:
            raise RuntimeError(f"exit {r.returncode}: {r.stderr[-300:]}")
        j = json.loads(
            [l for l in r.stdout.splitlines() if l.startswith("{")][-1]
        )
        self.create = j["create_ms"]
        self.peak = max(self.peak, j.get("peak_rss_kb", 0))
        return j["run_ms"]

    def batch(self, k):
        w = self._call(k)
        self.wall += w
        return w

    def close(self):
        pass


def compare(ref, out, a):
    if len(ref) != len(out):
        return dict(ok=False, why=f"{len(out)} outputs, expected {len(ref)}")
    worst = dict(ok=True, max_abs=0.0, max_norm=0.0, outlier_frac=0.0)
    for i, (r, o) in enumerate(zip(ref, out)):
        if r.shape != o.shape:
            return dict(
                ok=False, why=f"output {i} shape {o.shape} != {r.shape}"
            )
        if r.dtype.kind in "iub":
            if not np.array_equal(r, o):
                return dict(
                    ok=False,
                    why=f"output {i}: integers differ in {int((r != o).sum())} places",
                )
            continue
        if r.size == 0:
            continue
        r64, o64 = r.astype(np.float64), o.astype(np.float64)
        if not np.array_equal(np.isfinite(r64), np.isfinite(o64)):
            return dict(ok=False, why=f"output {i}: nan/inf differ")
        d = np.abs(np.where(np.isfinite(r64), r64 - o64, 0))
        sc = np.nanmax(np.abs(np.where(np.isfinite(r64), r64, 0))) or 1.0
        frac = float(
            (
                d > a.atol + a.rtol * np.abs(np.where(np.isfinite(r64), r64, 0))
            ).mean()
        )
        worst["max_abs"] = max(worst["max_abs"], float(d.max()))
        worst["max_norm"] = max(worst["max_norm"], float(d.max() / sc))
        worst["outlier_frac"] = max(worst["outlier_frac"], frac)
    worst["ok"] = (
        worst["outlier_frac"] <= a.outliers and worst["max_norm"] <= a.maxnorm
    )
    return worst


def main():
    ap = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ap.add_argument("--models", default=HERE + "/models.json")
    ap.add_argument(
        "--dir", required=True, help="where fetch_models.py put the models"
    )
    ap.add_argument("--set", default="open")
    ap.add_argument("--only", action="append")
    ap.add_argument("--peers", default="ort1,ort2,ov1,ov2")
    ap.add_argument("--define", action="append", default=[])
    ap.add_argument(
        "--original",
        action="store_true",
        help="give peers the original (symbolic) file, not the static copy",
    )
    ap.add_argument("--rounds", type=int, default=8)
    ap.add_argument("--batch-ms", type=float, default=60)
    ap.add_argument("--check-only", action="store_true")
    ap.add_argument("--rtol", type=float, default=1e-3)
    ap.add_argument("--atol", type=float, default=1e-5)
    ap.add_argument("--outliers", type=float, default=0.0)
    ap.add_argument("--maxnorm", type=float, default=1e-3)
    ap.add_argument("--json")
    a = ap.parse_args()
    dfn = dict(d.split("=", 1) for d in a.define)
    res = {}
    npass = nfail = 0
    for m in json.load(open(a.models)):
        if (
            a.set != "all"
            and m["set"] not in a.set.split(",")
            or a.only
            and m["name"] not in a.only
        ):
            continue
        path = os.path.join(
            a.dir, ("" if a.original else "static/") + m["name"] + ".onnx"
        )
        ref = Proc("ref", BUILTIN["ortoff"], path, m)
        R = ref.out if not ref.err else None
        ref.close()
        ps = []
        row = res[m["name"]] = dict(set=m["set"], gflop=m["gflop"], peers={})
        for n in a.peers.split(","):
            s = dfn.get(n) or BUILTIN[n]
            p = (
                Exe(n, s[4:], path, m)
                if isinstance(s, str) and s.startswith("exe:")
                else Proc(n, s, path, m)
            )
            if p.err:
                row["peers"][n] = dict(error=p.err)
                nfail += 1
                print(f"{m['name']:16} {n:8} ERROR {p.err[:150]}", flush=True)
                p.close()
                continue
            c = (
                compare(R, p.out, a)
                if R is not None
                else dict(ok=False, why="no reference")
            )
            npass += c["ok"]
            nfail += not c["ok"]
            row["peers"][n] = dict(
                create_ms=p.create, first_ms=p.first, check=c
            )
            ps.append(p)
        if not a.check_only and ps:
            for p in ps:
                p.batch(3)
            for p in ps:
                p.k = int(max(3, min(60, a.batch_ms / max(1e-3, min(p.wall)))))
                p.wall.clear()
                p.cpu.clear()
            for r in range(a.rounds):
                for p in (ps if r % 2 == 0 else ps[::-1]):
                    p.batch(p.k)
                    time.sleep(0.01)
        for p in ps:
            d = row["peers"][p.name]
            if p.wall:
                d.update(
                    min_ms=min(p.wall),
                    median_ms=float(np.median(p.wall)),
                    p90_ms=float(np.percentile(p.wall, 90)),
                    cpu_min_ms=min(p.cpu) if p.cpu else None,
                    runs=len(p.wall),
                    peak_rss_mb=p.peak / 1024,
                    base_rss_mb=p.base / 1024,
                )
            if p.wall and m["gflop"]:
                d["gflops_at_min"] = m["gflop"] / d["min_ms"] * 1e3
            c = d["check"]
            print(
                f"{m['name']:16} {p.name:8} {'ok  ' if c['ok'] else 'DIFF'} norm {c.get('max_norm', -1):.1e} out {c.get('outlier_frac', -1):.1e} {c.get('why', '')} create {d['create_ms']:.0f}ms"
                + (
                    f" min {d['min_ms']:.3f} med {d['median_ms']:.3f} n {d['runs']} rss {d['peak_rss_mb']:.0f} (+{d['peak_rss_mb'] - d['base_rss_mb']:.0f})MB {d.get('gflops_at_min', 0):.1f}GF/s"
                    if p.wall
                    else ""
                ),
                flush=True,
            )
            p.close()
        if a.json:
            json.dump(
                dict(rtol=a.rtol, atol=a.atol, results=res),
                open(a.json, "w"),
                indent=1,
            )
    print(f"{npass} passed, {nfail} failed")
    return 1 if nfail else 0


if __name__ == "__main__":
    sys.exit(main())
