#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ONNX backend test cases against any implementation.

A case is test_*/model.onnx + test_data_set_N/{input,output}_M.pb, as
gen_node_data.py writes them.

    run_node_tests.py --data DATA --backend module:function
    run_node_tests.py --data DATA \
        --exe 'pestle run {model} --inputs {inputs} --outputs {outputs}'
    run_node_tests.py --data DATA \
        --exe 'pestle run {model} --inputs-pb {dataset} --outputs {outputs}'

Selection: --include and --exclude take a FILE of names, a glob or 'cat/name';
repeatable. --category node,simple,...

--backend: function(model_path, inputs, input_names, output_names) -> list of
values: numpy arrays (ml_dtypes for bf16, f8, int4), lists for sequences, None
for an empty optional. Unsupported (any class of that name) or
NotImplementedError means skipped.

--exe: exit 0 = ran; --unsupported-rc (default 3) = skipped; anything else, a
signal or a time-out = failed. Lines of io.txt, which it
reads beside the inputs and writes beside the outputs:
    input <index> <onnx-dtype> <d0xd1x..|scalar> <file> <name>
    output <index> <onnx-dtype|?> <shape|?> <file> <name>
The name is last: it may hold any character. bfloat16 is stored in the .npy as
<u2, float8* and 4- and 2-bit types as |u1 (one element a byte). The tensors of a sequence
have lines of their own and are called name[0], name[1].

Comparison: as onnx.backend.test.runner has it (equal shape and dtype, rtol
1e-3, atol 1e-7 unless the case has its own; bfloat16 rtol >= 2^-6).
Exit status: 0 when nothing failed. Last line: 'N passed, N failed, N skipped'.
"""

import argparse
import fnmatch
import glob
import importlib
import json
import multiprocessing as mp
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import numpy as np
import onnx
from onnx import numpy_helper, TensorProto, SequenceProto, OptionalProto


class Unsupported(Exception):
    pass


def dtype_name(a):
    return np.dtype(a.dtype).name


def load_pb(path, type_proto):
    data = open(path, "rb").read()
    kind = (
        type_proto.WhichOneof("value")
        if type_proto is not None
        else "tensor_type"
    )
    if kind == "sequence_type":
        p = SequenceProto()
        p.ParseFromString(data)
        return numpy_helper.to_list(p)
    if kind == "optional_type":
        p = OptionalProto()
        p.ParseFromString(data)
        return numpy_helper.to_optional(p)
    p = TensorProto()
    p.ParseFromString(data)
    return numpy_helper.to_array(p)


def assert_similar(refs, outs, rtol, atol):
    if len(refs) != len(outs):
        raise AssertionError(f"{len(outs)} outputs, expected {len(refs)}")
    for i, (ref, out) in enumerate(zip(refs, outs)):
        if isinstance(ref, (list, tuple)):
            if not isinstance(out, (list, tuple)):
                raise AssertionError(
                    f"output {i}: {type(out).__name__}, expected a sequence"
                )
            assert_similar(list(ref), list(out), rtol, atol)
            continue
        if ref is None or out is None:
            if (ref is None) != (out is None):
                raise AssertionError(f"output {i}: one is None")
            continue
        out = np.asarray(out)
        if tuple(out.shape) != tuple(ref.shape):
            raise AssertionError(
                f"output {i}: shape {tuple(out.shape)}, expected {tuple(ref.shape)}"
            )
        if ref.dtype == object or ref.dtype.kind in "US":
            if not np.array_equal(out.astype(object), ref.astype(object)):
                raise AssertionError(f"output {i}: strings differ")
            continue
        if out.dtype != ref.dtype:
            raise AssertionError(
                f"output {i}: dtype {out.dtype}, expected {ref.dtype}"
            )
        rt = rtol
        if ref.dtype.name == "bfloat16":
            rt = max(rtol, 2**-6)
        if (
            ref.dtype.kind == "V"
            or ref.dtype.name in EXOTIC
            or ref.dtype.name == "bfloat16"
        ):
            out, ref = out.astype(np.float32), ref.astype(np.float32)
        np.testing.assert_allclose(
            out, ref, rtol=rt, atol=atol, err_msg=f"output {i}"
        )


EXOTIC = {
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
    "int4",
    "uint4",
    "int2",
    "uint2",
}


def to_npy(a):
    """array -> one that plain .npy readers understand"""
    n = a.dtype.name
    if n == "bfloat16":
        return a.view(np.uint16)
    if n in EXOTIC:
        return a.view(np.uint8)
    return a


def from_npy(a, ref):
    if not isinstance(ref, np.ndarray):
        return a
    n = ref.dtype.name
    if (
        n == "bfloat16"
        and a.dtype == np.uint16
        or n in EXOTIC
        and a.dtype == np.uint8
    ):
        return a.view(ref.dtype)
    return a


def flat(values, names):
    """Arrays with their names: those of a sequence are name[i], of nothing there are none."""
    for v, n in zip(values, names):
        if isinstance(v, (list, tuple)):
            yield from ((np.asarray(x), f"{n}[{i}]") for i, x in enumerate(v))
        elif v is not None:
            yield np.asarray(v), n


class ExeBackend:
    def __init__(self, template, timeout, unsupported_rc, keep):
        self.t, self.timeout, self.rc, self.keep = (
            template,
            timeout,
            unsupported_rc,
            keep,
        )

    def read(self, folder, made, name, ref):
        """Output |name|: an array, or of a sequence those called name[i]; None for an
        optional without either."""

        def load(file, like):
            path = os.path.join(folder, file)
            return from_npy(np.load(path, allow_pickle=False), like)

        if name in made:
            return load(made[name], ref)
        if isinstance(ref, np.ndarray):
            raise RuntimeError(f"no output '{name}'")
        out = []
        while f"{name}[{len(out)}]" in made:
            like = ref[len(out)] if ref and len(out) < len(ref) else None
            out.append(load(made[f"{name}[{len(out)}]"], like))
        return None if ref is None and not out else out

    def __call__(self, model, inputs, inames, onames, dataset, refs):
        wd = tempfile.mkdtemp(prefix="nodetest_")
        try:
            ind, outd = os.path.join(wd, "in"), os.path.join(wd, "out")
            os.makedirs(ind)
            os.makedirs(outd)
            with open(os.path.join(ind, "io.txt"), "w") as f:
                for i, (v, n) in enumerate(flat(inputs, inames)):
                    text = v.dtype == object or v.dtype.kind in "US"
                    np.save(
                        os.path.join(ind, f"input_{i}.npy"),
                        v.astype(np.str_) if text else to_npy(v),
                    )
                    dtype = "string" if text else v.dtype.name
                    f.write(
                        f"input {i} {dtype} {'x'.join(map(str, v.shape)) or 'scalar'} input_{i}.npy {n}\n"
                    )
            sub = dict(
                model=model,
                inputs=ind,
                outputs=outd,
                dataset=dataset,
                workdir=wd,
            )
            cmd = [p.format(**sub) for p in shlex.split(self.t)]
            p = subprocess.Popen(
                cmd,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                out, _ = p.communicate(timeout=self.timeout)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.communicate()
                raise RuntimeError(f"time-out after {self.timeout}s")
            tail = out.decode(errors="replace")[-400:]
            if p.returncode == self.rc:
                raise Unsupported(
                    tail.strip().splitlines()[-1]
                    if tail.strip()
                    else "unsupported"
                )
            if p.returncode:
                raise RuntimeError(f"exit {p.returncode}: {tail}")
            with open(os.path.join(outd, "io.txt")) as f:
                lines = [x.rstrip("\n").split(" ", 5) for x in f]
            made = {x[5]: x[4] for x in lines if x[0] == "output"}
            return [
                self.read(outd, made, n, refs[i] if i < len(refs) else None)
                for i, n in enumerate(onames)
            ]
        finally:
            if not self.keep:
                shutil.rmtree(wd, ignore_errors=True)


def run_case(case, a, fn, exe):
    """-> (status, message, seconds)"""
    t0 = time.time()
    try:
        mpath = os.path.join(case["dir"], "model.onnx")
        m = onnx.load(mpath)
        init = {x.name for x in m.graph.initializer}
        gin = list(m.graph.input)
        sets = sorted(
            glob.glob(os.path.join(case["dir"], "test_data_set_*")),
            key=lambda p: int(p.rsplit("_", 1)[1]),
        )
        if not sets:
            return "skipped", "no data set", 0.0
        for ds in sets:
            n_in = len(glob.glob(os.path.join(ds, "input_*.pb")))
            # old pytorch cases list initializers among graph inputs: data files cover the first n_in non-initializers
            free = [v for v in gin if v.name not in init]
            vis = gin[:n_in] if len(free) != n_in else free
            ins = [
                load_pb(os.path.join(ds, f"input_{j}.pb"), vis[j].type)
                for j in range(n_in)
            ]
            n_out = len(glob.glob(os.path.join(ds, "output_*.pb")))
            refs = [
                load_pb(
                    os.path.join(ds, f"output_{j}.pb"), m.graph.output[j].type
                )
                for j in range(n_out)
            ]
            onames = [o.name for o in m.graph.output]
            inames = [v.name for v in vis]
            if exe:
                outs = exe(mpath, ins, inames, onames, ds, refs)
            else:
                outs = fn(mpath, ins, inames, onames)
            assert_similar(refs, list(outs), case["rtol"], case["atol"])
        return "passed", "", time.time() - t0
    except BaseException as e:
        if isinstance(e, KeyboardInterrupt):
            raise
        if (
            isinstance(e, NotImplementedError)
            or type(e).__name__ == "Unsupported"
        ):
            return "skipped", "unsupported: " + str(e)[:300], time.time() - t0
        kind = "mismatch" if isinstance(e, AssertionError) else "error"
        return (
            "failed",
            f"{kind}: {type(e).__name__}: {str(e).strip()[:400]}",
            time.time() - t0,
        )


def load_fn(spec):
    mod, _, fn = spec.partition(":")
    sys.path.insert(0, os.getcwd())
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    return getattr(importlib.import_module(mod), fn or "run")


def worker(conn, a):
    fn = load_fn(a.backend) if a.backend else None
    exe = (
        ExeBackend(a.exe, a.timeout, a.unsupported_rc, a.keep)
        if a.exe
        else None
    )
    while True:
        try:
            case = conn.recv()
        except EOFError:
            return
        if case is None:
            return
        conn.send(run_case(case, a, fn, exe))


class Worker:
    """one process that runs cases one by one; replaced when it dies or hangs, so a crash costs one case"""

    def __init__(self, a):
        self.a = a
        self.start()

    def start(self):
        self.c, child = mp.Pipe()
        self.p = mp.Process(target=worker, args=(child, self.a), daemon=False)
        self.p.start()
        child.close()

    def stop(self):
        try:
            self.c.send(None)
        except OSError:
            pass
        self.p.join(5)
        if self.p.is_alive():
            self.p.kill()
            self.p.join()

    def submit(self, case):
        self.case, self.t0 = case, time.time()
        self.c.send(case)

    def poll(self):
        """None while busy"""
        try:
            if self.c.poll(0):
                return self.c.recv()
        except (EOFError, ConnectionResetError):
            self.p.join()
            rc = self.p.exitcode
            self.start()
            return (
                "failed",
                f"crash: worker died with exit code {rc}",
                time.time() - self.t0,
            )
        if time.time() - self.t0 > self.a.timeout + 15:
            self.p.kill()
            self.p.join()
            self.start()
            return (
                "failed",
                f"time-out after {self.a.timeout}s",
                time.time() - self.t0,
            )
        return None


def selector(specs):
    names, globs = set(), []
    for s in specs or []:
        if os.path.isfile(s):
            for line in open(s):
                line = line.split("#")[0].strip()
                if line:
                    (
                        globs.append(line)
                        if any(c in line for c in "*?[")
                        else names.add(line)
                    )
        else:
            globs.append(s)
    return (
        lambda cat, name: name in names
        or f"{cat}/{name}" in names
        or any(
            fnmatch.fnmatch(name, g) or fnmatch.fnmatch(f"{cat}/{name}", g)
            for g in globs
        )
    )


def main():
    ap = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ap.add_argument(
        "--data",
        required=True,
        help="folder holding node/, simple/, ... (each with test_*/)",
    )
    ap.add_argument(
        "--category", help="comma list; default: every folder under --data"
    )
    ap.add_argument("--backend", help="module:function")
    ap.add_argument("--exe", help="command template")
    ap.add_argument("--include", action="append")
    ap.add_argument("--exclude", action="append")
    ap.add_argument("--rtol", type=float)
    ap.add_argument("--atol", type=float)
    ap.add_argument(
        "--tolerances",
        help="JSON {cat/name:{rtol,atol}}; default DATA/tolerances.json",
    )
    ap.add_argument("--timeout", type=float, default=30)
    ap.add_argument("--unsupported-rc", type=int, default=3)
    ap.add_argument("--jobs", type=int, default=1)
    ap.add_argument("--json")
    ap.add_argument("--keep", action="store_true")
    ap.add_argument("--list", action="store_true")
    ap.add_argument("-v", "--verbose", action="store_true")
    ap.add_argument("--show-failed", type=int, default=0, metavar="N")
    ap.add_argument(
        "--must-run",
        type=int,
        help="fail unless at least N cases passed (guards against an all-skipped run)",
    )
    a = ap.parse_args()
    if not a.list and bool(a.backend) == bool(a.exe):
        ap.error("give exactly one of --backend and --exe")
    a.data = os.path.abspath(a.data)
    tolp = a.tolerances or os.path.join(a.data, "tolerances.json")
    tol = json.load(open(tolp)) if os.path.exists(tolp) else {}
    cats = (
        a.category.split(",")
        if a.category
        else sorted(
            d
            for d in os.listdir(a.data)
            if os.path.isdir(os.path.join(a.data, d))
        )
    )
    inc, exc = selector(a.include), selector(a.exclude)
    cases = []
    for c in cats:
        for n in sorted(os.listdir(os.path.join(a.data, c))):
            d = os.path.join(a.data, c, n)
            if not os.path.exists(os.path.join(d, "model.onnx")):
                continue
            if a.include and not inc(c, n) or a.exclude and exc(c, n):
                continue
            t = tol.get(f"{c}/{n}", {})
            cases.append(
                dict(
                    cat=c,
                    name=n,
                    dir=d,
                    rtol=a.rtol if a.rtol is not None else t.get("rtol", 1e-3),
                    atol=a.atol if a.atol is not None else t.get("atol", 1e-7),
                )
            )
    if a.list:
        for c in cases:
            print(f"{c['cat']}/{c['name']}")
        return 0
    res, t0 = {}, time.time()
    ws = [Worker(a) for _ in range(max(1, min(a.jobs, len(cases))))]
    queue, busy, idle = list(reversed(cases)), [], list(ws)
    while queue or busy:
        while queue and idle:
            w = idle.pop()
            w.submit(queue.pop())
            busy.append(w)
        mp.connection.wait([w.c for w in busy], timeout=0.5)
        for w in list(busy):
            r = w.poll()
            if r is None:
                continue
            k = f"{w.case['cat']}/{w.case['name']}"
            res[k] = dict(status=r[0], message=r[1], seconds=round(r[2], 4))
            if (
                a.verbose
                or r[0] == "failed"
                and 0 < a.show_failed
                and sum(x["status"] == "failed" for x in res.values())
                <= a.show_failed
            ):
                print(f"{r[0].upper():8} {k}  {r[1][:200]!r}", flush=True)
            busy.remove(w)
            idle.append(w)
    for w in ws:
        w.stop()
    tot = dict(passed=0, failed=0, skipped=0)
    by = {}
    for k, r in res.items():
        c = by.setdefault(k.split("/")[0], dict(passed=0, failed=0, skipped=0))
        c[r["status"]] += 1
        tot[r["status"]] += 1
    print(f"{'category':22}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for c in sorted(by):
        print(
            f"{c:22}{by[c]['passed']:8}{by[c]['failed']:8}{by[c]['skipped']:8}"
        )
    if a.json:
        json.dump(
            dict(
                onnx=onnx.__version__,
                backend=a.backend or a.exe,
                seconds=round(time.time() - t0, 2),
                totals=tot,
                by_category=by,
                results=dict(sorted(res.items())),
            ),
            open(a.json, "w"),
            indent=1,
        )
    short = a.must_run is not None and tot["passed"] < a.must_run
    if short:
        print(f"only {tot['passed']} passed, --must-run {a.must_run}")
    print(
        f"{tot['passed']} passed, {tot['failed']} failed, {tot['skipped']} skipped"
    )
    return 1 if tot["failed"] or short else 0


if __name__ == "__main__":
    import multiprocessing.connection

    mp.set_start_method("fork")
    sys.exit(main())
