#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One case for each schedule of GPUs that does not need an op of its own: Pestle of
two builds and torch in turns, and results against torch in f64.

    techniques.py --before DIR --after DIR [--out DIR] [--only CASE] [--rounds N]
                  [--seconds N] [--no-compile] [--no-threads]

DIR has bin/bench_device, lib/ and backends/. Contenders are timed as bench.py says
(about 3 ms after 10 ms of rest, inputs over at least 256 MiB, the median), torch both
as a CUDA graph and by calls on a stream, as Pestle's runs are. A case that takes more
than --seconds is left where it is. Ends with a table.
"""

import argparse
import ctypes
import glob
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from bench import BATCH_MS, ROTATE, Pestle, take_turns, torch_timer  # noqa: E402

BLOCK, APART = 1 << 20, 99991
# Case: shapes and dtype of inputs, of the output, bytes moved, operations.
G = 4096 * 4096 * 16384
CASES = {
    "sum_columns_f32": ([(16384, 16384)], "f32", 16384**2 * 4),
    "gemm_bf16_odd": ([(3000, 1111), (1111, 777)], "bf16", 2 * (3000 * 1111 + 1111 * 777 + 3000 * 777)),
    "chain_tanh_bf16": ([(1 << 28,)], "bf16", 4 << 28),
    "chain_tanh_f32": ([(1 << 28,)], "f32", 8 << 28),
    "gemm_bf16_gelu": ([(4096, 4096), (4096, 16384), (16384,)], "bf16", 2 * (4096**2 + 2 * 4096 * 16384)),
    "argsort_f32": ([(4096, 1024)], "f32", 4096 * 1024 * 8),
    "topk_f32": ([(4096, 1000)], "f32", 4096 * 1000 * 4),
    "softmax_f32_1000": ([(65536, 1000)], "f32", 65536 * 1000 * 8),
    "softmax_bf16": ([(8192, 8192)], "bf16", 8192**2 * 4),
    "gemm_bf16_512": ([(512, 512)] * 2, "bf16", 6 * 512**2),
    "gemm_bf16_1024": ([(1024, 1024)] * 2, "bf16", 6 * 1024**2),
    "gemm_bf16_2048": ([(2048, 2048)] * 2, "bf16", 6 * 2048**2),
    "gemm_bf16_4096": ([(4096, 4096)] * 2, "bf16", 6 * 4096**2),
}  # fmt: skip
FLOPS = {"gemm_bf16_odd": 2 * 3000 * 1111 * 777, "gemm_bf16_gelu": 2 * G,
         "gemm_bf16_512": 2 * 512**3, "gemm_bf16_1024": 2 * 1024**3,
         "gemm_bf16_2048": 2 * 2048**3, "gemm_bf16_4096": 2 * 4096**3}  # fmt: skip


def functions(torch):
    F = torch.nn.functional

    def chain(x):
        y = torch.tanh(x * 1.01 + 0.1) * x - 0.3
        return torch.clamp_max((torch.sigmoid(y) * 1.7 + x).abs(), 3.0)

    table = {
        "sum_columns_f32": lambda x: x.sum(0),
        "chain_tanh_bf16": chain,
        "chain_tanh_f32": chain,
        "gemm_bf16_gelu": lambda a, b, c: F.gelu(torch.addmm(c, a, b)),
        "argsort_f32": lambda x: torch.argsort(x, dim=1, stable=True),
        "topk_f32": lambda x: torch.topk(x, 40, dim=1)[0],
        "softmax_f32_1000": lambda x: torch.softmax(x, -1),
        "softmax_bf16": lambda x: torch.softmax(x, -1),
    }
    for name in CASES:
        if name.startswith("gemm") and name not in table:
            table[name] = torch.matmul
    return table


def by_steps(torch, name, x):
    """The chain as torch and Pestle say it of bf16: each op is rounded."""
    def r(v):
        return v.to(torch.bfloat16).double() if name.endswith("bf16") else v

    x = x.double()
    c = [r(torch.tensor(v, dtype=torch.float64, device=x.device))
         for v in (1.01, 0.1, 0.3, 1.7, 3.0)]  # fmt: skip
    y = r(r(torch.tanh(r(r(x * c[0]) + c[1]))) * x)
    y = r(r(torch.sigmoid(r(y - c[2]))) * c[3])
    return torch.minimum(r(y + x).abs(), c[4])


def judge(torch, name, data, got):
    """Whether Pestle's result |got| is right, and by how much it is off."""
    with torch.no_grad():
        if name == "argsort_f32":
            want = torch.argsort(data[0], dim=1, stable=True)
            wrong = int((want != got.view(want.shape).long()).sum())
            return wrong == 0, f"{wrong} of {got.numel()} differ"
        if name == "topk_f32":
            want = torch.topk(data[0], 40, dim=1)[0]
            wrong = int((want != got.view(want.shape)).sum())
            return wrong == 0, f"{wrong} of {got.numel()} differ"
        if name.startswith("chain"):
            n, most, far = got.numel(), 0.0, 0
            for at in range(0, n, 1 << 25):
                part = slice(at, min(n, at + (1 << 25)))
                want = by_steps(torch, name, data[0][part])
                off = (got[part].double() - want).abs()
                step = 2.0**-7 if name.endswith("bf16") else 2.0**-20
                far += int((off > 2 * step * want.abs().clamp(min=0.125)).sum())
                most = max(most, float(off.max()))
            return far == 0 and most < 0.1, f"most {most:.2g}, {far} beyond 2 steps"
        wide = [x.double() for x in data]
        if name == "gemm_bf16_gelu":
            sums = (wide[0] @ wide[1]).bfloat16().double()
            sums = (sums + wide[2]).bfloat16().double()
            want = torch.nn.functional.gelu(sums)
        else:
            want = functions(torch)[name](*wide)
        got = got.view(want.shape).double()
        off = float((got - want).norm() / want.norm())
        most = 1e-2 if CASES[name][1] == "bf16" else 1e-5
        return off < most, f"off by {off:.2g} of the norm"


def stream_timer(torch, function, sets):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for s in sets:
        function(*s)
    begin.record()
    for s in sets:
        function(*s)
    end.record()
    end.synchronize()
    rounds = max(1, int(BATCH_MS / max(begin.elapsed_time(end), 1e-3)) + 1)

    def batch():
        begin.record()
        for _ in range(rounds):
            for s in sets:
                function(*s)
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / (rounds * len(sets))

    return batch


def input_of(torch, normal, shape, dtype, index):
    count = 1
    for d in shape:
        count *= d
    block = torch.roll(normal, -APART * index % BLOCK)
    x = block.repeat((count + BLOCK - 1) // BLOCK)[:count].reshape(shape)
    return x.to(torch.bfloat16) if dtype == "bf16" else x


def load_normal(torch, pestle, out):
    path = out / "normal.bin"
    pestle.ask(f"normal {path}")
    raw = bytearray(path.read_bytes())
    path.unlink()
    return torch.frombuffer(raw, dtype=torch.float32).cuda()


def result_of(torch, pestle, name, out):
    path = out / "result.bin"
    pestle.ask(f"save 0 {path}")
    raw = bytearray(path.read_bytes())
    path.unlink()
    kind = {"bf16": torch.bfloat16, "f32": torch.float32}[CASES[name][1]]
    if name == "argsort_f32":
        kind = torch.int32
    return torch.frombuffer(raw, dtype=kind).cuda()


def bases(options):
    also = [a.split("=", 1) for a in options.also or []]
    return [("before", options.before), ("after", options.after), *also]


def run_case(torch, name, options, out):
    shapes, dtype, size = CASES[name]
    sets = max(1, min(16, ROTATE // size + 1))
    row, times = {"case": name}, {}
    start = time.time()
    children = {}
    for who, base in bases(options):
        try:
            children[who] = Pestle(base, "cuda")
            times[who] = (children[who].load(name, sets), [])
            row[f"{who}_compile_ms"] = round(children[who].compile_ms)
        except Exception as error:
            row[f"{who}_error"] = str(error)[:300]
    found = load_normal(torch, children["after"], out)
    data = [input_of(torch, found, s, dtype, i) for i, s in enumerate(shapes)]
    for who in children:
        if who not in times:
            continue
        try:
            row[f"{who}_right"], row[f"{who}_off"] = judge(
                torch, name, data, result_of(torch, children[who], name, out))
        except Exception as error:
            row[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:300]}"
    torch.cuda.empty_cache()
    all_sets = [data] + [[x.clone() for x in data] for _ in range(sets - 1)]
    function = functions(torch)[name]

    def peer(who, make):
        if time.time() - start > options.seconds / 2:
            row[f"{who}_error"] = "no time left"
            return
        try:
            times[who] = (make(), [])
        except Exception as error:
            row[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:200]}"

    with torch.no_grad():
        peer("torch", lambda: torch_timer(torch, function, all_sets))
        peer("torch_stream", lambda: stream_timer(torch, function, all_sets))
        if name == "gemm_bf16_gelu":
            # cuBLASLt's own epilogue, of the other GELU.
            peer("cublaslt_tanh", lambda: torch_timer(
                torch, lambda a, b, c: torch._addmm_activation(
                    c, a, b, use_gelu=True), all_sets))  # fmt: skip

        def compiled():
            torch._dynamo.reset()
            fast = torch.compile(function, fullgraph=True, dynamic=False)
            fast(*data)
            return torch_timer(torch, fast, all_sets)

        if not options.no_compile:
            peer("compile", compiled)
        take_turns(times, options.rounds, start + options.seconds, row)
    peers = [row[w] for w in ("torch", "compile", "cublaslt_tanh") if w in row]
    row["best_peer"] = min(peers) if peers else None
    if name in FLOPS and "after" in row:
        row["tflops"] = round(FLOPS[name] / row["after"] * 1e-6, 1)
    if "after" in row:
        row["gb_s"] = round(size / row["after"] * 1e-3)
    for child in children.values():
        child.child.kill()
        child.child.wait()
    return row


# --- NVRTC on several threads ---


def nvrtc_path():
    places = [p for b in sys.path for p in glob.glob(f"{b}/nvidia/*/lib/libnvrtc.so.1?")]
    places += glob.glob("/usr/local/cuda*/lib*/libnvrtc.so.1?")
    return places[0] if places else "libnvrtc.so"


def compile_text(lib, text):
    program = ctypes.c_void_p()
    lib.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None)
    flags = [b"--gpu-architecture=sm_90a", b"--std=c++17", b"-fmad=false",
             b"--disable-warnings", b"--restrict"]  # fmt: skip
    array = (ctypes.c_char_p * len(flags))(*flags)
    done = lib.nvrtcCompileProgram(program, len(flags), array)
    lib.nvrtcDestroyProgram(ctypes.byref(program))
    return done


def compile_files(files):
    lib = ctypes.CDLL(nvrtc_path())
    for f in files:
        if compile_text(lib, pathlib.Path(f).read_bytes()):
            raise RuntimeError(f"NVRTC refuses {f}")


def threads_row(options, out):
    env = dict(os.environ, LD_LIBRARY_PATH=f"{options.after}/lib",
               PESTLE_BACKEND_PATH=f"{options.after}/backends")  # fmt: skip
    files = []
    for name in ("gemm_bf16_4096",):
        text = subprocess.run(
            [f"{options.after}/bin/pestle", "dump", f"{HERE}/cases/{name}.mlir",
             "--target", "cuda:sm_90a", "--stage", "source"],
            env=env, capture_output=True, check=True).stdout  # fmt: skip
        for copy in range(8):
            path = out / f"{name}_{copy}.cu"
            path.write_bytes(text + f"\n// {copy}\n".encode())
            files.append(str(path))
    lib = ctypes.CDLL(nvrtc_path())
    texts = [pathlib.Path(f).read_bytes() for f in files]
    compile_text(lib, texts[0])
    begin = time.time()
    for t in texts:
        compile_text(lib, t)
    serial = time.time() - begin
    begin = time.time()
    threads = [threading.Thread(target=compile_text, args=(lib, t)) for t in texts]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    threaded = time.time() - begin
    begin = time.time()
    code = f"import sys; sys.path.insert(0, {str(HERE)!r}); import techniques as t; t.compile_files(sys.argv[1:])"
    children = [subprocess.Popen([sys.executable, "-c", code, f]) for f in files]
    wrong = sum(c.wait() != 0 for c in children)
    apart = time.time() - begin
    return (f"NVRTC, 8 kernels, {os.cpu_count()} cores: one after the other {serial:.2f} s, "
            f"8 threads {threaded:.2f} s ({serial / threaded:.1f} x), 8 processes "
            f"{apart:.2f} s ({serial / apart:.1f} x, {wrong} failed)")  # fmt: skip


def table(rows, also):
    print(f"{'case':18} {'before':>9} {'after':>9} {'torch':>9} {'stream':>9} "
          f"{'compile':>9} {'ratio':>6} {'was':>6} right  compile ms, rate, off")  # fmt: skip
    for r in rows:
        def us(key):
            return f"{r[key]:9.1f}" if key in r else f"{'-':>9}"

        best = r.get("best_peer")
        ratio = f"{r['after'] / best:6.2f}" if best and "after" in r else f"{'-':>6}"
        was = f"{r['before'] / best:6.2f}" if best and "before" in r else f"{'-':>6}"
        right = {True: "yes  ", False: "WRONG"}.get(r.get("after_right"), "?    ")
        print(f"{r['case']:18} {us('before')} {us('after')} {us('torch')} "
              f"{us('torch_stream')} {us('compile')} {ratio} {was} {right}  "
              f"{r.get('before_compile_ms')} -> {r.get('after_compile_ms')} ms, "
              f"{r.get('tflops', r.get('gb_s'))}, {r.get('after_off')}"
              + (f", cublaslt tanh {r['cublaslt_tanh']:.1f}" if "cublaslt_tanh" in r else ""))  # fmt: skip
        for key, value in r.items():
            if key.endswith("_right") and value is False or key in also:
                print(f"    {key}: {value} {r.get(key + '_right', '')}")
            if key.endswith("_error"):
                print(f"    {key}: {value}")
        if r.get("before_right") is False:
            print(f"    before was wrong too: {r['before_off']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--also", action="append", metavar="NAME=DIR")
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--only", action="append")
    parser.add_argument("--no-compile", action="store_true")
    parser.add_argument("--no-threads", action="store_true")
    options = parser.parse_args()
    import torch

    out = pathlib.Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    rows = []
    for name in options.only or CASES:
        try:
            rows.append(run_case(torch, name, options, out))
        except Exception as error:
            rows.append({"case": name, "case_error": f"{type(error).__name__}: {str(error)[:300]}"})
        print(json.dumps(rows[-1]), flush=True)
        with open(out / "techniques.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        torch.cuda.empty_cache()
    print()
    table(rows, [a.split("=", 1)[0] for a in options.also or []])
    if not options.no_threads:
        try:
            print(threads_row(options, out))
        except Exception as error:
            print(f"NVRTC on threads: {type(error).__name__}: {str(error)[:300]}")
    sys.exit(any(r.get("after_right") is False for r in rows))


if __name__ == "__main__":
    main()
