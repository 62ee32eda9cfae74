#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole networks of torch on one GPU: Pestle, torch and torch.compile in turns.

    networks.py --base DIR [--out FILE] [--only TEXT,...] [--minutes M] [--seconds N]
                [--rounds N] [--device cuda] [--workers N] [--onnx FOLDER]

A network is made here from a seed, exported by torch.onnx, and given to bench_device.
torch runs it as it is and compiled, both as CUDA graphs, convolutions of f16 channels
last; f32 is f32 in all. --onnx adds the files NAME.onnx of a folder that onnx2torch turns
into modules of torch. Results are held against torch's in f32. Contenders take turns, about
3 ms each after 10 ms of rest, the median counts. --workers N
makes N rows ready side by side; then each is timed alone. Rows that --out has are left out; a row
that takes more than --seconds is ended and said. Ends with geometric means."""

import argparse
import json
import math
import os
import pathlib
import select
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from bench import BATCH_MS, Pestle, take_turns, torch_timer  # noqa: E402

OFF = {"float16": 2e-2, "float32": 2e-3}


def vision(name, batch, dtype, side=224):
    def make(torch):
        import torchvision
        model = torchvision.models.get_model(name, weights=None)
        for part in model.modules():
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        return model, [torch.randn(batch, 3, side, side)]
    return make, dtype


def encoder(batch, rows, dtype, layers=4, width=768, heads=12):
    def make(torch):
        layer = torch.nn.TransformerEncoderLayer(
            width, heads, 4 * width, activation="gelu", batch_first=True, norm_first=True)
        return (torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False),
                [torch.randn(batch, rows, width)])
    return make, dtype


def lstm(batch, steps, features, layers, dtype="float32"):
    def make(torch):
        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = torch.nn.LSTM(features, features, layers)

            def forward(self, x):
                return self.cells(x)[0]
        return Last(), [torch.randn(steps, batch, features)]
    return make, dtype


def mlp(batch, dtype="float32"):
    def make(torch):
        n = torch.nn
        return (n.Sequential(n.Linear(784, 512), n.ReLU(), n.Linear(512, 512), n.ReLU(),
                             n.Linear(512, 10)), [torch.randn(batch, 784)])
    return make, dtype


def lenet(batch, dtype="float32"):
    def make(torch):
        n = torch.nn
        return (n.Sequential(
            n.Conv2d(1, 6, 5, padding=2), n.ReLU(), n.MaxPool2d(2), n.Conv2d(6, 16, 5),
            n.ReLU(), n.MaxPool2d(2), n.Flatten(), n.Linear(400, 120), n.ReLU(),
            n.Linear(120, 84), n.ReLU(), n.Linear(84, 10)), [torch.randn(batch, 1, 28, 28)])
    return make, dtype


# The eight of the list, the six of bench/cpu with one and with 32 rows, and four
# layers with longer rows.
EIGHT = {
    "mobilenet_v3_b1_f32": vision("mobilenet_v3_large", 1, "float32"),
    "resnet50_b1_f32": vision("resnet50", 1, "float32"),
    "resnet50_b32_f16": vision("resnet50", 32, "float16"),
    "efficientnet_b0_b16_f16": vision("efficientnet_b0", 16, "float16"),
    "vit_b_16_b8_f16": vision("vit_b_16", 8, "float16"),
    "encoder4_b8_s256_f16": encoder(8, 256, "float16"),
    "encoder4_b1_s128_f32": encoder(1, 128, "float32"),
    "lstm_2x256_b8_100_f32": lstm(8, 100, 256, 2),
}
MORE = {
    "encoder4_b8_s512_f16": encoder(8, 512, "float16"),
    "encoder4_b8_s1024_f16": encoder(8, 1024, "float16"),
}
for size in (1, 32):
    MORE |= {
        f"mlp_b{size}": mlp(size), f"lenet5_b{size}": lenet(size),
        f"resnet18_b{size}": vision("resnet18", size, "float32"),
        f"mobilenet_v2_b{size}": vision("mobilenet_v2", size, "float32"),
        f"bert4_b{size}_s128": encoder(size, 128, "float32"),
    }


def by_pestle(options, path, data, want, folder, np):
    child = Pestle(options.base, options.device)
    try:
        compile_ms = float(child.ask(f"load {path} 1")[0])
        for i, d in enumerate(data):
            (folder / "input").write_bytes(d.tobytes())
            child.ask(f"input {i} {folder / 'input'}")
        child.ask(f"save 0 {folder / 'output'}")
    except BaseException:
        child.child.kill()
        raise
    got = np.frombuffer((folder / "output").read_bytes(), want.dtype)
    return child, got.reshape(want.shape), compile_ms


def prepared(name, options, torch):
    """The module on the device, its inputs, and where its ONNX file is or shall be."""
    if options.onnx and (options.onnx / f"{name}.onnx").exists():
        import numpy as np
        import onnx2torch
        path = options.onnx / f"{name}.onnx"
        shapes = np.load(options.onnx / f"{name}.npz")
        return (onnx2torch.convert(str(path)).eval(),
                [torch.from_numpy(shapes[key]) for key in shapes.files], "float32", path)
    make, dtype = (EIGHT | MORE)[name]
    torch.manual_seed(0)
    module, inputs = make(torch)
    return module.eval(), inputs, dtype, None


def measured(name, options):
    import numpy as np
    import torch
    torch.set_grad_enabled(False)
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.mha.set_fastpath_enabled(False)
    cuda = options.device == "cuda"
    where, found = "cuda" if cuda else "cpu", {"row": name}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        module, inputs, dtype, path = prepared(name, options, torch)
        module, inputs = module.to(where), [x.to(where) for x in inputs]
        wanted = module(*inputs).float().cpu().numpy()
        half = dtype == "float16"
        if half:
            module, inputs = module.half(), [x.half() for x in inputs]
        if not path:
            path = folder / "net.onnx"
            torch.onnx.export(module, tuple(inputs), str(path), dynamo=False,
                              opset_version=17)
        data = [x.cpu().numpy() for x in inputs]
        like = wanted.astype(np.float16 if half else np.float32)
        times, child = {}, None
        try:
            child, got, found["compile_ms"] = by_pestle(options, path, data, like, folder, np)
            norm = float(np.linalg.norm(wanted)) or 1.0
            found["off"] = float(np.linalg.norm(got.astype(np.float32) - wanted)) / norm
            found["right"] = bool(found["off"] <= OFF[dtype])
            times["pestle"] = (lambda: float(child.ask(f"time {BATCH_MS}")[0]), [])
        except Exception as error:  # a row says it, and the peers are timed
            found["pestle_error"] = f"{type(error).__name__}: {str(error)[:400]}"
        if half and any(len(x.shape) == 4 for x in inputs):
            module = module.to(memory_format=torch.channels_last)
            inputs = [x.to(memory_format=torch.channels_last) for x in inputs]

        def timer(function):
            function(*inputs)
            if cuda:
                return torch_timer(torch, function, [inputs])

            def batch():
                begin = time.perf_counter()
                function(*inputs)
                return (time.perf_counter() - begin) * 1e6
            return batch
        for who, make in (("torch", lambda: module),
                          ("compile", lambda: torch.compile(module, dynamic=False))):
            try:
                times[who] = (timer(make()), [])
            except Exception as error:
                found[f"{who}_error"] = f"{type(error).__name__}: {str(error)[:400]}"
        print("READY", flush=True)
        sys.stdin.readline()
        take_turns(times, options.rounds, time.time() + options.seconds, found)
        if child:
            child.child.kill()
    peers = [found[who] for who in ("torch", "compile") if who in found]
    if "pestle" in found and peers:
        found["ratio"] = found["pestle"] / min(peers)
    return found


class Row:
    """A row in a process of its own: made ready side by side with others, timed alone."""

    def __init__(self, name, options):
        words = [sys.executable, __file__, "--row", name, "--base", options.base,
                 "--rounds", str(options.rounds), "--device", options.device,
                 "--seconds", str(options.seconds)]
        if options.onnx:
            words += ["--onnx", str(options.onnx)]
        self.name, self.seconds, self.error = name, options.seconds, None
        self.until = time.monotonic() + options.seconds
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=self.errors, text=True)

    def hear(self, word):
        """What follows |word|, or None: why is in |error|."""
        while (left := self.until - time.monotonic()) > 0:
            if select.select([self.child.stdout], [], [], left)[0]:
                line = self.child.stdout.readline()
                if line.startswith(word):
                    return line[len(word):]
                if not line:
                    self.errors.seek(0)
                    self.error = "the process ended: " + self.errors.read()[-400:]
                    return None
        self.error = f"took more than {self.seconds:g} s"
        return None

    def measured(self):
        line = None
        if not self.error:
            self.until = time.monotonic() + self.seconds
            self.child.stdin.write("go\n")
            self.child.stdin.flush()
            line = self.hear("ROW ")
        self.child.kill()
        self.child.wait()
        return json.loads(line) if line else {"row": self.name, "error": self.error}


def shown(found):
    ratio = f"{found['ratio']:7.2f}" if "ratio" in found else "      -"
    us = " ".join(f"{who} {found[who]:.1f}" for who in ("pestle", "torch", "compile")
                  if who in found)
    wrong = "" if found.get("right", True) else f" WRONG, off by {found['off']:.2g}"
    error = "; ".join(str(v) for k, v in found.items() if k.endswith("error"))
    ms = f" compiled in {found['compile_ms']:.0f} ms" if "compile_ms" in found else ""
    return f"{ratio} {found['row']} {us}{ms}{wrong} {error}".rstrip()


def mean(found, names, title):
    ratios = [f["ratio"] for f in found if f["row"] in names and "ratio" in f]
    if ratios:
        print(f"{title}: {len(ratios)} rows, geometric mean "
              f"{math.exp(sum(map(math.log, ratios)) / len(ratios)):.2f}, most "
              f"{max(ratios):.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", required=True)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("networks.jsonl"))
    parser.add_argument("--only", default="")
    parser.add_argument("--minutes", type=float, default=9)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--onnx", type=pathlib.Path)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.base = str(pathlib.Path(options.base).resolve())
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", "/tmp/networks_inductor")
    if options.row:
        found = measured(options.row, options)
        print("ROW " + json.dumps(found), flush=True)
        return 0
    own = sorted(p.stem for p in options.onnx.glob("*.onnx")) if options.onnx else []
    end = time.monotonic() + 60 * options.minutes
    done = {json.loads(line)["row"] for line in options.out.read_text().splitlines()
            } if options.out.exists() else set()
    left = [name for name in [*EIGHT, *MORE, *own]
            if name not in done and any(t in name for t in options.only.split(","))]
    while left:
        if time.monotonic() > end:
            print("time is up: the same command goes on from here")
            break
        rows = [Row(name, options) for name in left[:options.workers]]
        left = left[len(rows):]
        for row in rows:
            row.hear("READY")
        for row in rows:
            found = row.measured()
            print(shown(found), flush=True)
            with open(options.out, "a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
    every = [json.loads(line) for line in options.out.read_text().splitlines()
             ] if options.out.exists() else []
    mean(every, EIGHT, "the eight")
    mean(every, MORE, "six networks and four layers")
    mean(every, own, "files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
