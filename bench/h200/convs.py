#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Convolutions: Pestle of two builds and torch (cuDNN) in turns, and results against
torch's in f32.

    convs.py --before DIR --after DIR [--out DIR] [--only CASE] [--rounds N]
             [--seconds N] [--compile]

DIR has bin/bench_device, lib/ and backends/; contenders take turns as in bench.py.
torch has its data channels last (of nchw: as the graph has it) and its weights so
beforehand, and cuDNN looks for its best algorithm. Ends with a table: microseconds,
the ratio to the best peer, and whether the result is right.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from bench import ROTATE, Pestle, take_turns, torch_timer  # noqa: E402
from techniques import input_of, load_normal, stream_timer  # noqa: E402

SAME = ((1, 1), (1, 1))
CHILDREN = []  # of the case at hand


def case(n, h, w, c, o, y, x, pad=((0, 0), (0, 0)), step=(1, 1), dilate=(1, 1), after="",
         nchw=False, gradient=None):  # fmt: skip
    rows = (h + sum(pad[0]) - (y - 1) * dilate[0] - 1) // step[0] + 1
    columns = (w + sum(pad[1]) - (x - 1) * dilate[1] - 1) // step[1] + 1
    return dict(n=n, h=h, w=w, c=c, o=o, y=y, x=x, pad=pad, step=step, dilate=dilate,
                after=after, nchw=nchw, gradient=gradient, rows=rows, columns=columns)  # fmt: skip


CASES = {
    "3x3_256": case(64, 28, 28, 256, 256, 3, 3, SAME),
    "3x3_256_relu": case(64, 28, 28, 256, 256, 3, 3, SAME, after="bias relu"),
    "3x3_256_nchw": case(64, 28, 28, 256, 256, 3, 3, SAME, nchw=True),
    # Of ResNet-50, 32 images.
    "3x3_64_b32": case(32, 56, 56, 64, 64, 3, 3, SAME, after="bias relu"),
    "3x3_128_s2_b32": case(32, 56, 56, 128, 128, 3, 3, SAME, (2, 2)),
    "1x1_256_512_s2": case(32, 56, 56, 256, 512, 1, 1, step=(2, 2)),
    "1x1_64_256_add": case(32, 56, 56, 64, 256, 1, 1, after="bias add relu"),
    "3x3_256_b32": case(32, 14, 14, 256, 256, 3, 3, SAME, after="bias relu"),
    "3x3_512_b32": case(32, 7, 7, 512, 512, 3, 3, SAME, after="bias relu"),
    # The first layer, and the same of images with the line's padding and a fourth channel.
    "stem": case(32, 224, 224, 3, 64, 7, 7, ((3, 3), (3, 3)), (2, 2), after="bias relu"),
    "stem_wide": case(32, 224, 230, 4, 64, 7, 7, ((3, 3), (0, 0)), (2, 2), after="bias relu"),
    # Every edge: two sides, steps, dilations and paddings, channels that end in a copy.
    "odd": case(3, 41, 57, 200, 136, 3, 5, ((2, 0), (1, 3)), (2, 1), (1, 2)),
    "7x7": case(16, 37, 50, 64, 128, 7, 7, ((3, 3), (3, 3)), (2, 2)),
    "dilated": case(16, 60, 44, 72, 96, 3, 3, ((2, 2), (4, 4)), (1, 1), (2, 4)),
    # Its gradients, windows of 3 x 3 with one row and column of padding.
    "3x3_256_data": case(64, 28, 28, 256, 256, 3, 3, SAME, gradient="data"),
    "3x3_256_weights": case(64, 28, 28, 256, 256, 3, 3, SAME, gradient="weights"),
    # One image.
    "3x3_256_b1": case(1, 14, 14, 256, 256, 3, 3, SAME, after="bias relu"),
    "3x3_128_b1": case(1, 28, 28, 128, 128, 3, 3, SAME, after="bias relu"),
    "1x1_1024_b1": case(1, 14, 14, 1024, 256, 1, 1, after="bias relu"),
}


def shapes_of(k):
    """Of x, w, and what is added."""
    if k["nchw"]:
        x, w = (k["n"], k["c"], k["h"], k["w"]), (k["o"], k["c"], k["y"], k["x"])
    else:
        x, w = (k["n"], k["h"], k["w"], k["c"]), (k["y"], k["x"], k["c"], k["o"])
    dy = (k["n"], k["rows"], k["columns"], k["o"])
    if k["gradient"]:
        return [dy, w] if k["gradient"] == "data" else [x, dy]
    more = [(k["o"],)] if "bias" in k["after"] else []
    return [x, w, *more, *([result_of_case(k)] if "add" in k["after"] else [])]


def result_of_case(k):
    lead, tail = k["n"], (k["rows"], k["columns"])
    if k["gradient"]:
        return (k["n"], k["h"], k["w"], k["c"]) if k["gradient"] == "data" else (k["y"], k["x"], k["c"], k["o"])
    return (lead, k["o"], *tail) if k["nchw"] else (lead, *tail, k["o"])


def module_of(k):
    def t(shape):
        return "tensor<" + "".join(f"{d}x" for d in shape) + "bf16>"

    shapes, y = shapes_of(k), t(result_of_case(k))
    dims = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]" if k["nchw"] else "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    reverse = ""
    if k["gradient"] == "data":
        dims, reverse = "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]", ", reverse = [true, true]"
    if k["gradient"] == "weights":
        dims = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]"
    arguments = ", ".join(f"%{i}: {t(s)}" for i, s in enumerate(shapes))
    pad = [list(p) for p in k["pad"]]
    text = (f"func.func @main({arguments}) -> {y} {{\n"
            f"  %y = stablehlo.convolution(%0, %1) dim_numbers = {dims}, window = {{stride = "
            f"{list(k['step'])}, pad = {pad}, rhs_dilate = {list(k['dilate'])}{reverse}}} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            f"({t(shapes[0])}, {t(shapes[1])}) -> {y}\n")  # fmt: skip
    last = "%y"
    if "bias" in k["after"]:
        axis = 1 if k["nchw"] else 3
        text += (f"  %b = stablehlo.broadcast_in_dim %2, dims = [{axis}] : ({t(shapes[2])}) -> {y}\n"
                 f"  %z = stablehlo.add %y, %b : {y}\n")  # fmt: skip
        last = "%z"
    if "add" in k["after"]:
        text += f"  %r = stablehlo.add {last}, %3 : {y}\n"
        last = "%r"
    if "relu" in k["after"]:
        text += (f"  %c = stablehlo.constant dense<0.0> : {y}\n"
                 f"  %m = stablehlo.maximum {last}, %c : {y}\n")  # fmt: skip
        last = "%m"
    return f"{text}  return {last} : {y}\n}}\n"


def prepare(torch, k, data):
    """torch's arguments, channels last."""
    if k["nchw"]:
        return data
    turned = [d.permute(0, 3, 1, 2) if d.dim() == 4 else d for d in data]
    if k["gradient"] != "weights":
        w = data[1].permute(3, 2, 0, 1)
        turned[1] = w.contiguous(memory_format=torch.channels_last)
    return turned


def function_of(torch, k):
    F = torch.nn.functional
    if k["gradient"]:
        by_data = k["gradient"] == "data"
        back = torch.ops.aten.convolution_backward
        rest = (None, k["step"], (1, 1), k["dilate"], False, (0, 0), 1, [by_data, not by_data, False])

        def of(a, b):
            if by_data:  # dy, w; of the data only its shape is read
                x = torch.empty_like(a) if k["c"] == k["o"] else None
                return back(a, x, b, *rest)[0]
            w = torch.empty((k["o"], k["c"], k["y"], k["x"]), device=a.device, dtype=a.dtype,
                            memory_format=torch.channels_last)  # fmt: skip
            return back(b, a, w, *rest)[1]

        return of
    (top, bottom), (left, right) = k["pad"]
    even = top == bottom and left == right

    def run(x, w, b=None, more=None):
        if not even:
            x = F.pad(x, (left, right, top, bottom))
        pad = (top, left) if even else (0, 0)
        y = F.conv2d(x, w, b, k["step"], pad, k["dilate"])
        if more is not None:
            y = y + more
        return F.relu(y) if "relu" in k["after"] else y

    return run


def judge(torch, k, data, got):
    """How far off in parts of the norm; each op of the graph rounds."""
    def r(v):
        return v.bfloat16().float()

    wide = [d.float() for d in prepare(torch, k, data)]
    plain = dict(k, after="")
    want = r(function_of(torch, plain)(wide[0], wide[1]))
    if "bias" in k["after"]:
        want = r(want + wide[2].view(1, -1, 1, 1))
    if "add" in k["after"]:
        want = r(want + wide[3])
    if "relu" in k["after"]:
        want = want.clamp(min=0)
    got = got.view(result_of_case(k)).float()
    if k["gradient"] == "weights":
        got = got.permute(3, 2, 0, 1)
    elif not k["nchw"]:
        got = got.permute(0, 3, 1, 2)
    return float((got - want).norm() / want.norm())


def run_case(torch, name, options, out):
    k = CASES[name]
    shapes = shapes_of(k)
    path = HERE / "cases" / f"conv_{name}.mlir"
    path.parent.mkdir(exist_ok=True)
    path.write_text(module_of(k), encoding="utf-8")
    size = 2 * sum(torch.Size(s).numel() for s in [*shapes, result_of_case(k)])
    sets = max(1, min(16, ROTATE // size + 1))
    row, times, children, start = {"case": name}, {}, {}, time.time()
    for who in ("before", "after"):
        children[who] = Pestle(getattr(options, who), "cuda")
        CHILDREN.append(children[who])
        try:
            times[who] = (children[who].load(f"conv_{name}", sets), [])
            row[f"{who}_compile_ms"] = round(children[who].compile_ms)
        except Exception as error:
            row[f"{who}_error"] = str(error)[:400]
    normal = load_normal(torch, children["after"], out)
    data = [input_of(torch, normal, s, "bf16", i) for i, s in enumerate(shapes)]
    for who in times:
        try:
            children[who].ask(f"save 0 {out}/result.bin")
            raw = bytearray((out / "result.bin").read_bytes())
            got = torch.frombuffer(raw, dtype=torch.bfloat16).cuda()
            row[f"{who}_off"] = judge(torch, k, data, got)
            row[f"{who}_right"] = row[f"{who}_off"] < 4e-3
        except Exception as error:
            row[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:400]}"
    torch.cuda.empty_cache()
    all_sets = [prepare(torch, k, [d.clone() for d in data]) for _ in range(sets)]
    function = function_of(torch, k)
    with torch.no_grad():
        times["torch"] = (torch_timer(torch, function, all_sets), [])
        times["torch_stream"] = (stream_timer(torch, function, all_sets), [])
        if options.compile:
            torch._dynamo.reset()
            fast = torch.compile(function, fullgraph=True, dynamic=False)
            fast(*all_sets[0])
            times["compile"] = (torch_timer(torch, fast, all_sets), [])
        take_turns(times, options.rounds, start + options.seconds, row)
    row["best_peer"] = min(row[w] for w in ("torch", "compile") if w in row)
    flops = 2 * k["n"] * k["rows"] * k["columns"] * k["o"] * k["c"] * k["y"] * k["x"]
    if "after" in row:
        row["tflops"] = round(flops / row["after"] * 1e-6, 1)
    return row


def table(rows):
    print(f"{'case':16} {'before':>8} {'after':>8} {'torch':>8} {'stream':>8} {'compile':>8} "
          f"{'ratio':>6} {'was':>6} TFLOP/s right, compile ms")  # fmt: skip
    for r in rows:
        def us(key):
            return f"{r[key]:8.1f}" if key in r else f"{'-':>8}"

        def ratio(key):
            return f"{r[key] / r['best_peer']:6.2f}" if key in r and "best_peer" in r else f"{'-':>6}"

        print(f"{r['case']:16} {us('before')} {us('after')} {us('torch')} {us('torch_stream')} "
              f"{us('compile')} {ratio('after')} {ratio('before')} {r.get('tflops', 0):7} "
              f"{r.get('before_right')} {r.get('after_right')} ({r.get('after_off', 9):.2g}), "
              f"{r.get('before_compile_ms')} -> {r.get('after_compile_ms')}")  # fmt: skip
        for key, value in r.items():
            if key.endswith("_error"):
                print(f"    {key}: {value}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", required=True)
    parser.add_argument("--after", required=True)
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=20, help="of a case")
    parser.add_argument("--all-seconds", type=float, default=600)
    parser.add_argument("--only", action="append")
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    out = pathlib.Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    rows, start = [], time.time()

    def stop(*_):
        raise TimeoutError("the case hangs")

    signal.signal(signal.SIGALRM, stop)
    for name in options.only or CASES:
        if time.time() - start > options.all_seconds:
            print(f"{name}: no time left")
            continue
        try:
            signal.alarm(int(2 * options.seconds) + 2)
            rows.append(run_case(torch, name, options, out))
        except Exception as error:
            rows.append({"case": name, "case_error": f"{type(error).__name__}: {str(error)[:400]}"})
        signal.alarm(0)
        for child in CHILDREN:
            child.child.kill()
        CHILDREN.clear()
        print(json.dumps(rows[-1]), flush=True)
        torch.cuda.empty_cache()
    table(rows)
    sys.exit(any(r.get("after_right") is False for r in rows))


if __name__ == "__main__":
    main()
