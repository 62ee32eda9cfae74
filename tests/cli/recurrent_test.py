#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loops by rows as one kernel on targets with lanes: LSTM and GRU of the benchmark's
modules, layers of ONNX's form, masks by lengths, a counter that the turn reads, narrow
floats, a state without batch, and what must stay a loop. All on ref as a GPU, with fibres
that run lanes in any order, beside numpy. Exits 77 without numpy."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

BUILD = os.environ.get("PESTLE_BUILD_DIR", "")
PESTLE = os.path.join(BUILD, "pestle")
ROOT = pathlib.Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("recurrent", ROOT / "bench/h200/recurrent.py")
bench = importlib.util.module_from_spec(spec)
spec.loader.exec_module(bench)
CPUS = ("simt90", "simt90c", "simt", "simt8", "simt1", "simtw")
bad = []


def pestle(verb, text, folder, *options):
    path = pathlib.Path(folder) / "m.mlir"
    path.write_text(text, encoding="ascii")
    done = subprocess.run([PESTLE, verb, str(path), "--device", "ref", *options],
                          capture_output=True, text=True, check=False)
    return done.stdout if not done.returncode else f"FAILED {done.stderr}"


def check(what, text, inputs, wants, cpus=CPUS, scans=None, most=2e-5, options=()):
    """|scans|: how many kernels are whole loops; None: any number."""
    for cpu in cpus:
        with tempfile.TemporaryDirectory() as folder:
            how = ["--target-cpu", cpu, *options] if cpu else list(options)
            plan = pestle("dump", text, folder, "--stage", "plan", *how)
            found = sum("launch" in line and " scan_" in line for line in plan.splitlines())
            if plan.startswith("FAILED") or (scans is not None and found != scans) or (
                    scans and " repeat " in plan):
                bad.append(what)
                print(f"{what} {cpu}: {found} scans, not {scans}:\n{plan[:1500]}")
                continue
            args = []
            for i, a in enumerate(inputs):
                np.save(f"{folder}/{i}.npy", a)
                args += ["--input", f"{i}={folder}/{i}.npy"]
            said = pestle("run", text, folder, "--no-cache", "--outputs", f"{folder}/out",
                          *args, *how)
            names = sorted(f for f in os.listdir(f"{folder}/out") if f.endswith(".npy")) \
                if not said.startswith("FAILED") else []
            got = [np.load(f"{folder}/out/{n}") for n in names]
        if len(got) != len(wants):
            bad.append(what)
            print(f"{what} {cpu}: {said[:1500]}")
            continue
        for g, w in zip(got, wants):
            off = np.abs(g.astype(np.float64) - w)
            if g.shape != w.shape or not (off <= most).all():
                bad.append(what)
                print(f"{what} {cpu}: off by {np.max(off)}")


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def layer(cell, x, W, R, bx, bh, reverse):
    T, B, _ = x.shape
    H = R.shape[0]
    h, c, ys = np.zeros((B, H)), np.zeros((B, H)), [None] * T
    for t in (range(T - 1, -1, -1) if reverse else range(T)):
        gx, gh = x[t] @ W + bx, h @ R + bh
        if cell == "lstm":
            i, f, g, o = np.split(gx + gh, 4, axis=1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        else:
            (rx, zx, nx), (rh, zh, nh) = np.split(gx, 3, axis=1), np.split(gh, 3, axis=1)
            z = sigmoid(zx + zh)
            h = (1 - z) * np.tanh(nx + sigmoid(rx + rh) * nh) + z * h
        ys[t] = h
    return np.stack(ys)


def network(case, x):
    cell, _, _, _, directions, layers = bench.read(case)
    weights = iter(bench.weights_of(case))
    for _ in range(layers):
        x = np.concatenate([layer(cell, x, *[w.astype(np.float64) for w in next(weights)],
                                  d == 1) for d in range(directions)], axis=2)
    return x


def test_layers():
    rng = np.random.default_rng(3)
    for case, scans in (("lstm_8_1_1", 1), ("gru_12_5_3_2_2", 4), ("lstm_20_6_4", 1),
                        ("gru_33_3_10", 1), ("lstm_64_4_2", 1)):
        _, h, t, b, _, _ = bench.read(case)
        x = rng.standard_normal((t, b, h)).astype(np.float32)
        check(case, bench.module(case), [x], [network(case, x.astype(np.float64))],
              scans=scans if t > 1 else None)
    # Columns that registers do not hold lie in shared memory, or those of several
    # execution units hold them; else the loop stays one, and its inputs leave it.
    for case, cpu, scans in (("gru_96_2_1", "simt90", 1), ("lstm_128_3_2", "simt90", 1),
                             ("lstm_256_2_3", "simt90", 1), ("gru_200_3_2_2", "simt90", 2),
                             ("lstm_128_3_2", "simt", 0), ("gru_136_3_1", "simt", 0)):
        _, h, t, b, _, _ = bench.read(case)
        x = rng.standard_normal((t, b, h)).astype(np.float32)
        check(case, bench.module(case), [x], [network(case, x.astype(np.float64))],
              cpus=(cpu,), scans=scans)
    # And those of a launch of one group; each lane of an element takes a row where there
    # are more than a few.
    for case, rows in (("lstm_128_3_1", 1), ("lstm_128_3_2", 2), ("lstm_128_3_7", 7),
                       ("gru_128_2_32", 32)):
        _, h, t, b, _, _ = bench.read(case)
        x = rng.standard_normal((t, b, h)).astype(np.float32)
        check(case, bench.module(case), [x], [network(case, x.astype(np.float64))],
              cpus=("simt90c",), scans=1)
        with tempfile.TemporaryDirectory() as folder:
            said = pestle("explain", bench.module(case), folder, "--target-cpu", "simt90c")
        if not any(f"on {n} execution units" in said for n in (16, 32, 64)) or (
                f" {rows} rows a group" not in said):
            bad.append(case)
            print(f"{case}: no wide launch: {said[:1500]}")


LOOP = """func.func @main({args}) -> ({results}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<{turns}> : tensor<i32>
{before}
  %r:{count} = stablehlo.while({carried}) : {types} cond {{
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
{body}
    stablehlo.return %j, {back} : {types}
  }}
  return {out} : {results}
}}
"""


def by_hand(args, carried, body, back, before="", turns=5):
    """|carried|: (name, begins as, type) but for the counter."""
    types = ["tensor<i32>"] + [t for _, _, t in carried]
    return LOOP.format(
        args=args, turns=turns, before=before, body=body, back=back,
        count=len(types), types=", ".join(types),
        carried=", ".join(["%i = %zero"] + [f"%{n} = {b}" for n, b, _ in carried]),
        out=", ".join(f"%r#{i + 1}" for i in range(len(carried))),
        results=", ".join(types[1:]))


def test_many_narrow_rows():
    """Rows that lanes share: of narrow floats no more than a few."""
    for rows, scans in ((8, 1), (9, 0)):
        case = f"lstm_128_2_{rows}"
        _, h, t, b, _, _ = bench.read(case)
        lines = []
        for line in bench.module(case).splitlines():
            found = re.match(r"  (%\w+) = stablehlo.dot_general (%\w+_h), (%\w+), (.*: )", line)
            if found:
                to, a, w, how = found.groups()
                lines += [f"  {a}n = stablehlo.convert {a} : (tensor<{b}x{h}xf32>) -> "
                          f"tensor<{b}x{h}xbf16>",
                          f"  {w}n = stablehlo.convert {w} : (tensor<{h}x{4 * h}xf32>) -> "
                          f"tensor<{h}x{4 * h}xbf16>"]
                line = (f"  {to} = stablehlo.dot_general {a}n, {w}n, {how}(tensor<{b}x{h}xbf16>, "
                        f"tensor<{h}x{4 * h}xbf16>) -> tensor<{b}x{4 * h}xf32>")
            lines.append(line)
        x = np.random.default_rng(4).standard_normal((t, b, h)).astype(np.float32)
        # Weights and states are rounded to bf16, 2^-9 of each; those of network() are not.
        check(f"narrow {case}", "\n".join(lines) + "\n", [x],
              [network(case, x.astype(np.float64))], cpus=("simt90c",), scans=scans, most=1e-2)


def test_state_alone():
    """Without a batch: [24] x [24, 24]."""
    rng = np.random.default_rng(5)
    h, w = rng.standard_normal(24).astype(np.float32), rng.standard_normal((24, 24))
    w = (w / 5).astype(np.float32)
    text = by_hand("%h0: tensor<24xf32>, %w: tensor<24x24xf32>",
                   [("h", "%h0", "tensor<24xf32>")], """
    %d = stablehlo.dot_general %h, %w, contracting_dims = [0] x [0] : (tensor<24xf32>, tensor<24x24xf32>) -> tensor<24xf32>
    %t = stablehlo.tanh %d : tensor<24xf32>""", "%t")
    want = h.astype(np.float64)
    for _ in range(5):
        want = np.tanh(want @ w)
    check("state alone", text, [h, w], [want])


MASKED = """
    %d = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<6x16xf32>, tensor<16x16xf32>) -> tensor<6x16xf32>
    %t = stablehlo.tanh %d : tensor<6x16xf32>
    %ib = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<i32>) -> tensor<6xi32>
    %a = stablehlo.compare LT, %ib, %lengths : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
    %ab = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<6xi1>) -> tensor<6x16xi1>
    %next = stablehlo.select %ab, %t, %h : tensor<6x16xi1>, tensor<6x16xf32>
    %s2 = stablehlo.add %s, %half : tensor<f32>"""


def test_masks():
    """Rows that end, by a counter and a number that are carried too."""
    rng = np.random.default_rng(6)
    h, w = rng.standard_normal((6, 16)).astype(np.float32), rng.standard_normal((16, 16))
    w = (w / 4).astype(np.float32)
    lengths = np.array([0, 5, 2, 3, 1, 4], np.int32)
    text = by_hand("%h0: tensor<6x16xf32>, %w: tensor<16x16xf32>, %lengths: tensor<6xi32>, "
                   "%s0: tensor<f32>", [("h", "%h0", "tensor<6x16xf32>"),
                                        ("s", "%s0", "tensor<f32>")], MASKED, "%next, %s2",
                   before="  %half = stablehlo.constant dense<0.5> : tensor<f32>")
    want = h.astype(np.float64)
    for t in range(5):
        want = np.where((t < lengths)[:, None], np.tanh(want @ w), want)
    check("masks", text, [h, w, lengths, np.float32(1)], [want, np.float64(3.5)], scans=1)


def test_narrow():
    """A state of bf16, whose products are summed in f32."""
    rng = np.random.default_rng(8)
    h, w = rng.standard_normal((4, 32)).astype(np.float32), rng.standard_normal((32, 32))
    w = (w / 6).astype(np.float32)
    for name, most in (("bf16", 0.03), ("f16", 0.004)):
        text = by_hand("%a: tensor<4x32xf32>, %b: tensor<32x32xf32>",
                       [("h", "%h0", f"tensor<4x32x{name}>"),
                        ("y", "%a", "tensor<4x32xf32>")], f"""
    %d = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<4x32x{name}>, tensor<32x32x{name}>) -> tensor<4x32x{name}>
    %t = stablehlo.tanh %d : tensor<4x32x{name}>
    %y2 = stablehlo.convert %t : (tensor<4x32x{name}>) -> tensor<4x32xf32>""", "%t, %y2",
                       before=f"""
  %h0 = stablehlo.convert %a : (tensor<4x32xf32>) -> tensor<4x32x{name}>
  %w = stablehlo.convert %b : (tensor<32x32xf32>) -> tensor<32x32x{name}>""")
        lines = text.splitlines()
        lines[0] = lines[0].replace(f"-> (tensor<4x32x{name}>, ", "-> (")
        lines[-2] = "  return %r#2 : tensor<4x32xf32>"
        want = h.astype(np.float64)
        for _ in range(5):
            want = np.tanh(want @ w)
        check(name, "\n".join(lines) + "\n", [h, w], [want], most=most, scans=1)


MIXED = """
    %m = stablehlo.reverse %h, dims = [0] : tensor<4x16xf32>
    %d = stablehlo.dot_general %m, %w, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %t = stablehlo.tanh %d : tensor<4x16xf32>"""


def test_not_by_rows():
    """Rows that read each other's state stay a loop, which is counted."""
    rng = np.random.default_rng(9)
    h, w = rng.standard_normal((4, 16)).astype(np.float32), rng.standard_normal((16, 16))
    w = (w / 4).astype(np.float32)
    text = by_hand("%h0: tensor<4x16xf32>, %w: tensor<16x16xf32>",
                   [("h", "%h0", "tensor<4x16xf32>")], MIXED, "%t")
    want = h.astype(np.float64)
    for _ in range(5):
        want = np.tanh(want[::-1] @ w)
    check("mixed rows", text, [h, w], [want], scans=0)
    # And under strict, which adds in order.
    case = "gru_12_3_2"
    x = rng.standard_normal((3, 2, 12)).astype(np.float32)
    check("strict", bench.module(case), [x], [network(case, x.astype(np.float64))],
          cpus=("simt",), scans=0, options=("--numerics", "strict"))

class Random:
    """A turn of random ops by rows, as text and as a function of numpy."""

    def __init__(self, seed):
        r = self.rng = np.random.default_rng(seed)
        self.B, self.W = int(r.choice([1, 2, 3, 4, 8])), int(r.choice([8, 12, 16, 20]))
        self.T, self.lines, self.steps = int(r.choice([1, 2, 3, 5])), [], []
        self.inputs, self.arguments, self.before = [], [], []
        self.reverse, self.next = bool(r.integers(2)), 0

    def tensor(self, *dims):
        return f"tensor<{''.join(f'{d}x' for d in dims)}f32>"

    def argument(self, *dims, scale=1.0):
        a = (self.rng.standard_normal(dims) * scale).astype(np.float32)
        self.inputs.append(a)
        self.arguments.append(f"%a{len(self.inputs) - 1}: {self.tensor(*dims)}")
        return f"%a{len(self.inputs) - 1}", len(self.inputs) - 1

    def put(self, text, shape, function):
        """|function| of the environment, by names."""
        self.next += 1
        name = f"%v{self.next}"
        self.lines.append(f"    {name} = {text}")
        self.steps.append((name, function))
        return name, shape

    def pick(self, values, shape=None):
        fit = [v for v in values if shape is None or v[1] == shape]
        return fit[int(self.rng.integers(len(fit)))] if fit else None

    def grow(self, values, kind=None):
        r, B, W = self.rng, self.B, self.W
        kind = kind or r.choice(["dot", "part", "two", "one", "bias", "rows", "select"])
        a, shape = self.pick(values)
        t = self.tensor(*shape)
        if kind == "dot":
            a, shape = self.pick(values, (B, W))
            m = int(r.integers(1, 4))
            w, i = self.argument(W, m * W, scale=1 / np.sqrt(W))
            return self.put(
                f"stablehlo.dot_general {a}, {w}, contracting_dims = [1] x [0] : "
                f"({self.tensor(B, W)}, {self.tensor(W, m * W)}) -> {self.tensor(B, m * W)}",
                (B, m * W), lambda e: e[a] @ self.inputs[i].astype(np.float64))
        if kind == "part" and shape[1] > W:
            j = int(r.integers(shape[1] // W))
            return self.put(f"stablehlo.slice {a} [0:{B}, {j * W}:{(j + 1) * W}] : ({t}) -> "
                            f"{self.tensor(B, W)}", (B, W),
                            lambda e: e[a][:, j * W:(j + 1) * W])
        if kind == "one":
            op, f = [("tanh", np.tanh), ("logistic", sigmoid)][int(r.integers(2))]
            return self.put(f"stablehlo.{op} {a} : {t}", shape, lambda e: f(e[a]))
        if kind in ("bias", "rows"):
            n, d = (shape[1], 1) if kind == "bias" else (B, 0)
            c, i = self.argument(n)
            b, _ = self.put(f"stablehlo.broadcast_in_dim {c}, dims = [{d}] : "
                            f"({self.tensor(n)}) -> {t}", shape,
                            lambda e: np.broadcast_to(
                                self.inputs[i].astype(np.float64)[None, :] if d else
                                self.inputs[i].astype(np.float64)[:, None], shape))
            return self.put(f"stablehlo.add {a}, {b} : {t}", shape, lambda e: e[a] + e[b])
        b, _ = self.pick(values, shape)
        if kind == "select":
            p, _ = self.put(f"stablehlo.compare LT, {a}, {b} : ({t}, {t}) -> "
                            f"{t.replace('f32', 'i1')}", None, lambda e: e[a] < e[b])
            return self.put(f"stablehlo.select {p}, {b}, {a} : {t.replace('f32', 'i1')}, {t}",
                            shape, lambda e: np.where(e[p], e[b], e[a]))
        op, f = [("add", np.add), ("multiply", np.multiply),
                 ("subtract", np.subtract)][int(r.integers(3))]
        return self.put(f"stablehlo.{op} {a}, {b} : {t}", shape, lambda e: f(e[a], e[b]))

    def bounded(self, value):
        """Of a value that is handed on: it must not grow from turn to turn."""
        return self.put(f"stablehlo.tanh {value[0]} : {self.tensor(*value[1])}", value[1],
                        lambda e: np.tanh(e[value[0]]))

    def build(self):
        r, B, W, T = self.rng, self.B, self.W, self.T
        n = int(r.integers(1, 4))
        wide = int(r.integers(1, 4)) * W
        xs, self.xs = self.argument(T, B, wide)
        begin = [self.argument(B, W) for _ in range(n)]
        self.begin = [i for _, i in begin]
        at = "%t" if self.reverse else "%i"
        if self.reverse:
            self.lines.append("    %t = stablehlo.subtract %last, %i : tensor<i32>")
        self.lines += [
            f"    %x1 = stablehlo.dynamic_slice {xs}, {at}, %zero, %zero, sizes = "
            f"[1, {B}, {wide}] : ({self.tensor(T, B, wide)}, tensor<i32>, tensor<i32>, "
            f"tensor<i32>) -> {self.tensor(1, B, wide)}",
            f"    %x = stablehlo.reshape %x1 : ({self.tensor(1, B, wide)}) -> "
            f"{self.tensor(B, wide)}"]
        values = [(f"%h{i}", (B, W)) for i in range(n)] + [("%x", (B, wide))]
        values.append(self.grow([values[0]], "dot"))
        values.append(self.grow(values[-1:], "part"))
        for _ in range(int(r.integers(2, 12))):
            value = self.grow(values)
            if value:
                values.append(value)
        narrow = [v for v in values[n + 1:] if v[1] == (B, W)][-3:] or values[:1]
        nexts = [self.bounded(narrow[int(r.integers(len(narrow)))]) for _ in range(n)]
        y, shape = self.bounded(self.pick(values))
        self.lines += [
            f"    %y1 = stablehlo.reshape {y} : ({self.tensor(*shape)}) -> "
            f"{self.tensor(1, *shape)}",
            f"    %y2 = stablehlo.dynamic_update_slice %ys, %y1, {at}, %zero, %zero : "
            f"({self.tensor(T, *shape)}, {self.tensor(1, *shape)}, tensor<i32>, tensor<i32>, "
            f"tensor<i32>) -> {self.tensor(T, *shape)}"]
        self.before = [f"  %ys0 = stablehlo.constant dense<0.0> : {self.tensor(T, *shape)}",
                       f"  %last = stablehlo.constant dense<{T - 1}> : tensor<i32>"]
        self.ends, self.y = [v for v, _ in nexts], y
        carried = [(f"h{i}", b, self.tensor(B, W)) for i, (b, _) in enumerate(begin)]
        carried.append(("ys", "%ys0", self.tensor(T, *shape)))
        return by_hand(", ".join(self.arguments), carried, "\n".join(self.lines),
                       ", ".join(self.ends + ["%y2"]), "\n".join(self.before), T)

    def compute(self):
        h = [self.inputs[i].astype(np.float64) for i in self.begin]
        ys = [None] * self.T
        for turn in range(self.T):
            at = self.T - 1 - turn if self.reverse else turn
            env = {f"%h{i}": v for i, v in enumerate(h)}
            env["%x"] = self.inputs[self.xs][at].astype(np.float64)
            for name, function in self.steps:
                env[name] = function(env)
            h, ys[at] = [env[n] for n in self.ends], env[self.y]
        return h + [np.stack(ys)]


def test_random(first=0, count=12, cpus=("simt90", "simt90c", "simt8")):
    for seed in range(first, first + count):
        made = Random(seed)
        text = made.build()
        check(f"random {seed}", text, made.inputs, made.compute(), cpus=cpus, most=1e-4)


def test_wide():
    """Where units hold a layer together the group is a cluster, or all of a launch; elsewhere
    it stays a loop."""
    for case, target, wide in (("gru_200_3_2", "cuda:sm_90a", "cluster"),
                               ("gru_200_3_2", "cuda:sm_80", None),
                               ("lstm_128_2_32", "cuda:sm_90a", "cluster"),
                               ("gru_64_2_1", "cuda:sm_90a", None),
                               ("gru_512_2_9", "cuda:sm_90a", "launch")):
        text = bench.module(case)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.mlir"
            path.write_text(text, encoding="ascii")
            done = subprocess.run([PESTLE, "dump", str(path), "--stage", "source",
                                   "--target", target], capture_output=True, text=True,
                                  check=False)
        if done.returncode and "there is no device 'cuda'" in done.stderr:
            return  # a build without it
        found = ["__cluster_dims__(1, 1, " in done.stdout,
                 "barrier.cluster.wait.acquire" in done.stdout,
                 "  pestle_launch_barrier();" in done.stdout]
        if found != [wide == "cluster", wide == "cluster", wide == "launch"]:
            bad.append(f"wide {target}")
            print(f"wide {case} {target}: {found}, not {wide}: {done.stderr[:500]}")
        # What is kept in registers has the unit alone.
        if target == "cuda:sm_90a" and not re.search(r"__launch_bounds__\(\d+, 1\)",
                                                     done.stdout):
            bad.append(f"bounds {case}")
            print(f"bounds {case}")


def test_same_next():
    """Two states with one next value, of which one alone takes turns with it."""
    t = "tensor<8192xf32>"
    h, g = np.arange(8192, dtype=np.float32), np.zeros(8192, np.float32)
    for turns in (1, 2, 3):
        text = by_hand(f"%h0: {t}, %g0: {t}", [("g", "%g0", t), ("h", "%h0", t)], f"""
    %r = stablehlo.reverse %h, dims = [0] : {t}
    %z = stablehlo.add %r, %g : {t}""", "%z, %z", turns=turns)
        a, b = h.astype(np.float64), g.astype(np.float64)
        for _ in range(turns):
            a = b = a[::-1] + b
        check(f"same next {turns}", text, [h, g], [b, a], cpus=(None, "simt"), most=0)


def test_explain():
    with tempfile.TemporaryDirectory() as folder:
        said = pestle("explain", bench.module("gru_12_3_2"), folder, "--target-cpu", "simt90")
    if "all 3 turns are one kernel" not in said:
        bad.append("explain")
        print(said)


if __name__ == "__main__":
    if len(sys.argv) == 3:  # FIRST COUNT: more random turns
        test_random(int(sys.argv[1]), int(sys.argv[2]), CPUS)
        sys.exit(1 if bad else 0)
    for test in (test_layers, test_many_narrow_rows, test_state_alone, test_masks, test_narrow, test_not_by_rows,
                 test_random, test_wide, test_same_next, test_explain):
        test()
    sys.exit(1 if bad else 0)
