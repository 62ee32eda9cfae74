#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Running reductions on ref and llvm, by numpy: pestle.cumulative of every combiner,
type and direction, short and long, in the order of its terms under strict; chlo.scan in
both forms of text with bodies that are one op and others; pestle.scan of every length,
direction and unrolling, and loops that are one kernel. Exits 77 without numpy."""

import itertools
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "i8",
         "int32": "i32", "uint8": "ui8", "bool": "i1",
         "complex64": "complex<f32>", "complex128": "complex<f64>"}
bad = []


def tensor(a):
    return f"tensor<{''.join(f'{n}x' for n in a.shape)}{NAMES[a.dtype.name]}>"


def run(text, inputs, device, *options):
    """Outputs, or the message."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
            file.write(text)
        command = [PESTLE, "run", f"{folder}/m.mlir", "--device", device, "--no-cache",
                   "--outputs", f"{folder}/out", *options]
        for i, a in enumerate(inputs):
            np.save(f"{folder}/{i}.npy", a)
            command += ["--input", f"{i}={folder}/{i}.npy"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        names = sorted(os.listdir(f"{folder}/out"), key=lambda n: (len(n), n))
        return [np.load(f"{folder}/out/{n}") for n in names if n.endswith(".npy")]


def check(what, got, wants, rtol=1e-5):
    good = not isinstance(got, str) and len(got) == len(wants)
    for g, w in zip(got, wants) if good else ():
        good &= g.shape == w.shape
        if good and g.dtype.kind in "fc":
            with np.errstate(invalid="ignore"):
                good &= np.allclose(g.astype(w.dtype), w, rtol, rtol * 20,
                                    equal_nan=True)
        elif good:
            good &= np.array_equal(g, w)
    if not good:
        bad.append(what)
        print(f"{what}: {got}, not {wants}")


# --- pestle.cumulative ---

def wide(function):
    """numpy's sums of narrow floats round each step; here they are rounded once."""
    return lambda a, axis: function(a, axis, dtype=np.float64 if a.dtype == np.float16
                                    else a.dtype)


def log_sum(a, axis):
    with np.errstate(invalid="ignore"):
        return np.logaddexp.accumulate(a.astype(np.float64), axis)


COMBINERS = {
    "ADD": (wide(np.cumsum), "fciu", lambda d: 0),
    "MULTIPLY": (wide(np.cumprod), "fciu", lambda d: 1),
    "MAXIMUM": (np.maximum.accumulate, "fiub", lambda d: -np.inf if d.kind == "f" else
                False if d.kind == "b" else np.iinfo(d).min),
    "MINIMUM": (np.minimum.accumulate, "fiub", lambda d: np.inf if d.kind == "f" else
                True if d.kind == "b" else np.iinfo(d).max),
    "AND": (np.bitwise_and.accumulate, "iub", lambda d: True if d.kind == "b" else
            np.array(-1).astype(d)),
    "OR": (np.bitwise_or.accumulate, "iub", lambda d: 0),
    "XOR": (np.bitwise_xor.accumulate, "iub", lambda d: 0),
    "LOGSUMEXP": (log_sum, "f", lambda d: -np.inf),
}  # fmt: skip


def data(rng, shape, dtype, combiner):
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        return rng.integers(0, 120, shape).astype(dtype)
    x = rng.standard_normal(shape)
    x = 1 + 0.3 * x if combiner == "MULTIPLY" else 2 * x
    if dtype.kind == "c":
        x = x + 0.1j * rng.standard_normal(shape)
    return x.astype(dtype)


def cumulative(combiner, x, axis, reverse, exclusive):
    function, _, identity = COMBINERS[combiner]
    x = np.flip(x, axis) if reverse else x
    y = function(x, axis) if x.size else x.copy()
    if exclusive and x.size:
        y = np.roll(y, 1, axis)
        y[(slice(None),) * axis + (0,)] = identity(x.dtype)
    return np.flip(y, axis) if reverse else y


def cumulative_line(combiner, x, axis, reverse, exclusive):
    flags = ", reverse = true" * reverse + ", exclusive = true" * exclusive
    return (f'"pestle.cumulative"(%x) <{{dimension = {axis} : i64, combiner = '
            f'"{combiner}"{flags}}}> : ({tensor(x)}) -> {tensor(x)}')


def text_of(x, lines):
    kind = tensor(x)
    kinds = ", ".join([kind] * len(lines))
    return (f"func.func @main(%x: {kind}) -> ({kinds}) {{\n" +
            "".join(f"%{i} = {line}\n" for i, line in enumerate(lines)) +
            f"return {', '.join(f'%{i}' for i in range(len(lines)))} : {kinds}\n}}\n")


def cumulative_text(*case):
    return text_of(case[1], [cumulative_line(*case)])


def check_cumulative(rng):
    """All combiners of a type in one program; all ways of some."""
    shapes = [((7,), 0), ((3, 40, 2), 1), ((300, 3), 0), ((1, 0, 2), 1)]
    ways = list(itertools.product((False, True), (False, True)))
    for (shape, axis), name in itertools.product(shapes, NAMES):
        dtype = np.dtype(name)
        x = data(rng, shape, dtype, "MULTIPLY")
        cases = [(c, x, axis, *way) for i, c in enumerate(COMBINERS)
                 for k, way in enumerate(ways)
                 if dtype.kind in COMBINERS[c][1] and
                 ((i + k + len(shape)) % 4 == 0 or name in ("float32", "int32"))]
        text = text_of(x, [cumulative_line(*case) for case in cases])
        wants = [cumulative(*case) for case in cases]
        rtol = {"float16": 2e-3, "float64": 1e-12, "complex128": 1e-12}
        for device in ("llvm", "ref") if x.size < 200 else ("llvm",):
            check(f"cumulative of {tensor(x)} along {axis}, {device}",
                  run(text, [x], device), wants, rtol.get(name, 1e-5))


def check_edges():
    inf, nan = np.inf, np.nan
    x = np.array([-inf, -inf, 1, 500, -500, inf, 2, nan, 3], np.float32)
    want = [np.array([-inf, -inf, 1, 500, 500, inf, inf, nan, nan], np.float32)]
    far = np.concatenate([np.linspace(-1000, -200, 40), [300.0]])
    for device in ("llvm", "ref"):
        check(f"LOGSUMEXP edges, {device}",
              run(cumulative_text("LOGSUMEXP", x, 0, False, False), [x], device), want)
        # What is far below the largest of all is exact before it comes.
        check(f"LOGSUMEXP far, {device}",
              run(cumulative_text("LOGSUMEXP", far, 0, False, False), [far], device),
              [log_sum(far, 0)], 1e-14)
    sums = run(cumulative_text("ADD", x[:0], 0, False, True), [x[:0]], "llvm")
    check("nothing", sums, [x[:0]])
    x = np.random.default_rng(3).standard_normal(5000).astype(np.float32)
    in_order = np.cumsum(x, dtype=np.float32)
    got = run(cumulative_text("ADD", x, 0, False, False), [x], "llvm", "--numerics",
              "strict")
    if isinstance(got, str) or not np.array_equal(got[0], in_order):
        bad.append("strict")
    for attrs, said in (('combiner = "DIVIDE"', "must be ADD"),
                        ('combiner = "AND"', "operand 0"),
                        ('combiner = "ADD", reverse = true, dimension = 1 : i64',
                         "dimension")):
        text = cumulative_text("ADD", x, 0, False, False).replace(
            'combiner = "ADD"', attrs)
        if "dimension = 1" in attrs:
            text = text.replace("dimension = 0 : i64, ", "")
        got = run(text, [x], "llvm")
        if not isinstance(got, str) or said not in got:
            bad.append(f"message of {attrs}: {got}")


# --- chlo.scan ---

def scan_text(xs, inits, outs, dim, body, *, pretty, reverse=False, more=""):
    """|body| takes %x0.., %c0.. and ends with what it returns."""
    names = [f"%a{i}" for i in range(len(xs) + len(inits))]
    values, n = [*xs, *inits], len(xs)

    def element(a):
        return tensor(np.empty(np.delete(a.shape, dim), a.dtype))

    into = ", ".join(map(tensor, values))
    types = ", ".join(map(tensor, [*outs, *inits]))
    arguments = ", ".join([f"%x{i}: {element(x)}" for i, x in enumerate(xs)] +
                          [f"%c{i}: {tensor(c)}" for i, c in enumerate(inits)])
    region = f"{{\n^bb0({arguments}):\n{body}\n}}"
    back = f", is_reverse = true{more}" if reverse else more
    count = len(outs) + len(inits)
    if pretty:
        line = (f"chlo.scan({', '.join(names[:n])}) inits ({', '.join(names[n:])}) "
                f"dimension={dim}" + f" attributes {{{back[2:]}}}" * bool(back) +
                f" {region} : ({into}) -> ({types})")
    else:
        sizes = (f"operandSegmentSizes = array<i32: {n}, {len(inits)}>, "
                 f"resultSegmentSizes = array<i32: {len(outs)}, {len(inits)}>")
        line = (f'"chlo.scan"({", ".join(names)}) <{{dimension = {dim} : i64{back}, '
                f"{sizes}}}> ({region}) : ({into}) -> ({types})")
    results = ", ".join(f"%r#{i}" if count > 1 else "%r" for i in range(count))
    ports = ", ".join(f"{v}: {tensor(a)}" for v, a in zip(names, values))
    return (f"func.func @main({ports}) -> ({types}) {{\n%r{f':{count}' * (count > 1)} = "
            f"{line}\nreturn {results} : {types}\n}}\n")


def check_scan(rng):
    def both(what, xs, inits, outs, dim, body, ends, **how):
        for pretty, device in itertools.product((False, True), ("llvm", "ref")):
            text = scan_text(xs, inits, outs, dim, body, pretty=pretty, **how)
            check(f"scan {what}, {'pretty' if pretty else 'generic'}, {device}",
                  run(text, [*xs, *inits], device), [*outs, *ends])

    x = rng.standard_normal((3, 20)).astype(np.float32)
    for op, ufunc, reverse, swap in (("add", np.add, False, False),
                                     ("maximum", np.maximum, True, False),
                                     ("multiply", np.multiply, True, True)):
        init = rng.standard_normal(3).astype(np.float32)
        part = "%c0, %x0" if swap else "%x0, %c0"
        body = (f"%s = stablehlo.{op} {part} : tensor<3xf32>\n"
                "stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>")
        y = ufunc.accumulate(np.concatenate(
            [init[:, None], x[:, ::-1] if reverse else x], 1), 1)[:, 1:]
        end = y[:, -1]
        y = y[:, ::-1].copy() if reverse else y
        both(op, [x], [init], [y], 1, body, [end], reverse=reverse,
             more=", is_associative = true")
    # From the identity, as JAX writes it: no element in front.
    text = scan_text([x], [], [x], 1, "", pretty=True).split("%r = ")[0]
    text = text.replace(f"-> ({tensor(x)})", f"-> {tensor(x)}") + (
        "%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%i = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> tensor<3xf32>\n"
        "%r:2 = chlo.scan(%a0) inits (%i) dimension=1 {\n^bb0(%x: tensor<3xf32>, "
        "%c: tensor<3xf32>):\n%s = stablehlo.add %x, %c : tensor<3xf32>\n"
        "stablehlo.return %s, %s : tensor<3xf32>, tensor<3xf32>\n} : "
        f"({tensor(x)}, tensor<3xf32>) -> ({tensor(x)}, tensor<3xf32>)\n"
        f"return %r#0 : {tensor(x)}\n}}\n")
    check("scan of zero", run(text, [x], "llvm"), [np.cumsum(x, 1)])
    shown = subprocess.run([PESTLE, "dump", "-"], input=text, capture_output=True,
                           text=True, check=False).stdout
    if shown.count("pestle.cumulative") != 1 or "concatenate" in shown:
        bad.append(f"scan of zero is not one op: {shown}")
    # A linear recurrence and a counter; what is carried is not what is given.
    a, b = (rng.uniform(-1, 1, (9, 2)).astype(np.float32) for _ in range(2))
    c, n = np.array([0.5, -1], np.float32), np.array(3, np.int32)
    h, want = c.copy(), np.empty((9, 2), np.float32)
    for i in reversed(range(9)):
        want[i] = h * 2
        h = a[i] * h + b[i]
    body = ("%m = stablehlo.multiply %x0, %c0 : tensor<2xf32>\n"
            "%h = stablehlo.add %m, %x1 : tensor<2xf32>\n"
            "%d = stablehlo.add %c0, %c0 : tensor<2xf32>\n"
            "%one = stablehlo.constant dense<1> : tensor<i32>\n"
            "%k = stablehlo.add %c1, %one : tensor<i32>\n"
            "stablehlo.return %d, %h, %k : tensor<2xf32>, tensor<2xf32>, tensor<i32>")
    both("recurrence", [a, b], [c, n], [want], 0, body, [h, np.array(12, np.int32)],
         reverse=True)
    # Without inputs, and without what is carried.
    body = ("%d = stablehlo.add %c0, %c0 : tensor<2xf32>\n"
            "stablehlo.return %d, %d : tensor<2xf32>, tensor<2xf32>")
    doubled = (c[:, None] * 2.0 ** np.arange(1, 6)).astype(np.float32)
    both("without inputs", [], [c], [doubled], 1, body, [doubled[:, -1]],
         more=", scan_dim_size = 5 : i64")
    body = ("%d = stablehlo.negate %x0 : tensor<2xf32>\n"
            "stablehlo.return %d : tensor<2xf32>")
    both("without carries", [a], [], [-a], 0, body, [])
    for text, said in (
        (scan_text([a], [c], [a], 0, body, pretty=True), "its body"),
        (scan_text([a], [], [a[:4]], 0, body, pretty=True), "9 and 4 elements"),
        (scan_text([a], [], [a], 0, body, pretty=True).replace("dimension=0",
                                                               "dimension=2"),
         "'dimension' is 2"),
        (scan_text([a], [], [a], 0, body, pretty=False).replace(
            "operandSegmentSizes = array<i32: 1, 0>",
            "operandSegmentSizes = array<i32: 1, 3>"), "operandSegmentSizes"),
    ):
        got = run(text, [a, c], "llvm")
        if not isinstance(got, str) or said not in got:
            bad.append(f"no message '{said}': {got}")


# --- pestle.scan ---

def op_text(carries, xs, constants, ys, length, body, reverse=False, unroll=0):
    """|ys| as they are stacked up; the body's arguments are %c0.., %x0.., %k0.."""
    values = [*carries, *xs, *constants]
    names = [f"%a{i}" for i in range(len(values))]
    inside = [*(f"%c{i}: {tensor(c)}" for i, c in enumerate(carries)),
              *(f"%x{i}: {tensor(x)}".replace(f"<{length}x", "<", 1)
                for i, x in enumerate(xs)),
              *(f"%k{i}: {tensor(k)}" for i, k in enumerate(constants))]
    types = ", ".join(tensor(a) for a in [*carries, *ys])
    count = len(carries) + len(ys)
    results = ", ".join(f"%r#{i}" if count > 1 else "%r" for i in range(count))
    ports = ", ".join(f"{n}: {tensor(v)}" for n, v in zip(names, values))
    return (f"func.func @main({ports}) -> ({types}) {{\n%r{f':{count}' * (count > 1)} = "
            f'"pestle.scan"({", ".join(names)}) <{{length = {length} : i64, carry_count = '
            f"{len(carries)} : i64, xs_count = {len(xs)} : i64, reverse = "
            f"{str(reverse).lower()}, unroll = {unroll} : i64}}> "
            f"({{\n^bb0({', '.join(inside)}):\n{body}\n}}) : "
            f"({', '.join(tensor(v) for v in values)}) -> ({types})\n"
            f"return {results} : {types}\n}}\n")


def check_op(rng):
    def recur(a, b, c, k, reverse):
        ys, h = np.empty_like(a), c.copy()
        for i in reversed(range(len(a))) if reverse else range(len(a)):
            ys[i] = h * k
            h = a[i] * h + b[i]
        return h, ys

    body = ("%m = stablehlo.multiply %x0, %c0 : tensor<2xf32>\n"
            "%h = stablehlo.add %m, %x1 : tensor<2xf32>\n"
            "%w = stablehlo.broadcast_in_dim %k0, dims = [] : (tensor<f32>) -> "
            "tensor<2xf32>\n%y = stablehlo.multiply %c0, %w : tensor<2xf32>\n"
            "%one = stablehlo.constant dense<1> : tensor<i32>\n"
            "%n = stablehlo.add %c1, %one : tensor<i32>\n"
            "stablehlo.return %h, %n, %y : tensor<2xf32>, tensor<i32>, tensor<2xf32>")
    c, n, k = np.array([0.5, -1], np.float32), np.array(3, np.int32), np.float32(1.5)
    for length, reverse, unroll in ((0, False, 0), (1, True, 0), (7, False, 0),
                                    (7, True, 3), (6, False, 3), (5, True, 8)):
        a, b = (rng.uniform(-1, 1, (length, 2)).astype(np.float32) for _ in range(2))
        h, ys = recur(a, b, c, k, reverse)
        text = op_text([c, n], [a, b], [np.array(k)], [ys], length, body, reverse, unroll)
        for device in ("llvm", "ref"):
            check(f"pestle.scan of {length}, {reverse}, {unroll}, {device}",
                  run(text, [c, n, a, b, np.array(k)], device),
                  [h, np.array(3 + length, np.int32), ys])
    # Without carries, without arrays, of several dimensions, and one in another.
    a = rng.standard_normal((4, 3, 5)).astype(np.float32)
    body = ("%y = stablehlo.negate %x0 : tensor<3x5xf32>\n"
            "stablehlo.return %y : tensor<3x5xf32>")
    check("pestle.scan without carries", run(op_text([], [a], [], [-a], 4, body), [a],
                                             "llvm"), [-a])
    ones = np.cumsum(np.ones((6, 2)), 0).astype(np.float32)
    body = ("%one = stablehlo.constant dense<1.0> : tensor<2xf32>\n"
            "%y = stablehlo.add %c0, %one : tensor<2xf32>\n"
            "stablehlo.return %y, %y : tensor<2xf32>, tensor<2xf32>")
    zero = np.zeros(2, np.float32)
    check("pestle.scan without arrays", run(op_text([zero], [], [], [ones], 6, body),
                                            [zero], "llvm"), [ones[-1], ones])
    inner = op_text([np.zeros(5, np.float32)], [a[0]], [], [], 3,
                    "%s = stablehlo.add %c0, %x0 : tensor<5xf32>\n"
                    "stablehlo.return %s : tensor<5xf32>")
    inner = inner[inner.index("%r = "):inner.index("return %r")]
    inner = inner.replace("%r", "%in").replace("%a0", "%c0").replace("%a1", "%x0")
    inner = inner.replace("^bb0(%c0: tensor<5xf32>, %x0", "^bb0(%d0: tensor<5xf32>, %e0")
    inner = inner.replace("add %c0, %x0", "add %d0, %e0")
    body = inner + "stablehlo.return %in, %in : tensor<5xf32>, tensor<5xf32>"
    want = np.cumsum(a.sum(1), 0, dtype=np.float32)
    zero = np.zeros(5, np.float32)
    check("pestle.scan of scans", run(op_text([zero], [a], [], [want], 4, body), [zero, a],
                                      "llvm"), [want[-1], want])


# --- Loops that are one kernel ---

def check_whole(rng):
    def both(what, carries, xs, constants, ys, length, body, ends, kernels=1, **how):
        text = op_text(carries, xs, constants, ys, length, body, **how)
        values = [*carries, *xs, *constants]
        for device in ("llvm", "ref"):
            check(f"{what}, {device}", run(text, values, device), [*ends, *ys])
        plan = subprocess.run([PESTLE, "dump", "-", "--stage", "plan", "--no-cache",
                               "--device", "ref"],
                              input=text, capture_output=True, text=True, check=False)
        if f" {kernels} kernels" not in plan.stdout or "jump" in plan.stdout:
            bad.append(what)
            print(f"{what} is not {kernels} kernel: {plan.stdout[:400]}{plan.stderr}")

    # Small matrices: products, sums, and what only moves.
    m = rng.uniform(-1, 1, (3, 3)).astype(np.float32)
    a = rng.uniform(-1, 1, (6, 3)).astype(np.float32)
    body = """
%d = stablehlo.dot_general %c0, %x0, contracting_dims = [1] x [0] : (tensor<3x3xf32>, tensor<3xf32>) -> tensor<3xf32>
%t = stablehlo.transpose %c0, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>
%s = stablehlo.slice %t [0:2, 0:3] : (tensor<3x3xf32>) -> tensor<2x3xf32>
%w = stablehlo.reshape %d : (tensor<3xf32>) -> tensor<1x3xf32>
%n = stablehlo.concatenate %s, %w, dim = 0 : (tensor<2x3xf32>, tensor<1x3xf32>) -> tensor<3x3xf32>
%z = stablehlo.constant dense<0.5> : tensor<f32>
%r = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x3xf32>, tensor<f32>) -> tensor<3xf32>
%v = stablehlo.reverse %r, dims = [0] : tensor<3xf32>
%i = stablehlo.iota dim = 0 : tensor<3xf32>
%y = stablehlo.multiply %v, %i : tensor<3xf32>
stablehlo.return %n, %y : tensor<3x3xf32>, tensor<3xf32>"""
    ys, c = np.empty((6, 3), np.float32), m
    for i in range(6):
        c = np.concatenate([c.T[:2], (c @ a[i])[None]])
        ys[i] = (c.sum(1) + np.float32(0.5))[::-1] * np.arange(3)
    both("a loop of small matrices", [m], [a], [], [ys], 6, body, [c])
    # A table that is looked up, of places outside of it too.
    table = rng.standard_normal(300).astype(np.float32)
    step = rng.integers(-400, 400, 50).astype(np.int32)
    body = """
%p = stablehlo.add %c0, %x0 : tensor<i32>
%e = stablehlo.dynamic_slice %k0, %p, sizes = [2] : (tensor<300xf32>, tensor<i32>) -> tensor<2xf32>
%n = stablehlo.constant dense<37> : tensor<i32>
%q = stablehlo.remainder %p, %n : tensor<i32>
stablehlo.return %q, %e : tensor<i32>, tensor<2xf32>"""
    ys, at = np.empty((50, 2), np.float32), 5
    for i in range(50):
        at += int(step[i])
        low = min(max(at, 0), 298)
        ys[i] = table[low:low + 2]
        at = int(np.fmod(at, 37))
    both("a loop that looks up", [np.array(5, np.int32)], [step], [table], [ys], 50, body,
         [np.array(at, np.int32)])
    # Elements by themselves, with numbers that go with all, of extents that no vector is.
    for extent, dtype, reverse in ((37, np.float32, False), (37, np.float32, True),
                                   (9, np.float64, True), (300, np.float16, False),
                                   (64, np.int32, False)):
        kind = NAMES[np.dtype(dtype).name]
        c, b = (rng.integers(-4, 5, s).astype(dtype) for s in (extent, (5, extent)))
        f = f"tensor<{extent}x{kind}>"
        body = f"""
%g = stablehlo.compare LT, %c0, %x0 : ({f}, {f}) -> tensor<{extent}xi1>
%s = stablehlo.select %g, %x0, %c0 : tensor<{extent}xi1>, {f}
%i = stablehlo.convert %c1 : (tensor<i32>) -> tensor<{kind}>
%w = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<{kind}>) -> {f}
%h = stablehlo.subtract %s, %w : {f}
%o = stablehlo.constant dense<1> : tensor<i32>
%n = stablehlo.add %c1, %o : tensor<i32>
stablehlo.return %h, %n, %s, %n : {f}, tensor<i32>, {f}, tensor<i32>"""
        h, k = c.copy(), 0
        ys, ns = np.empty((5, extent), dtype), np.empty(5, np.int32)
        for i in reversed(range(5)) if reverse else range(5):
            ys[i] = np.maximum(h, b[i])
            h, k = (ys[i] - dtype(k)).astype(dtype), k + 1
            ns[i] = k
        both(f"a loop over {extent} of {kind}, {reverse}", [c, np.array(0, np.int32)], [b],
             [], [ys, ns], 5, body, [h, np.array(5, np.int32)], reverse=reverse)
    # A long one stacks its results where they lie: no memory but theirs.
    text = op_text([np.zeros((), np.float32)], [], [], [np.zeros(10000, np.float32)], 10000,
                   "%s = stablehlo.cosine %c0 : tensor<f32>\n"
                   "stablehlo.return %s, %s : tensor<f32>, tensor<f32>")
    plan = subprocess.run([PESTLE, "dump", "-", "--stage", "plan", "--no-cache",
                               "--device", "ref"],
                          input=text, capture_output=True, text=True, check=False).stdout
    if "1 kernels, arena 0 bytes" not in plan.replace("arena 64 bytes", "arena 0 bytes"):
        bad.append(f"a long scan has memory of its own: {plan[:300]}")


def main():
    rng = np.random.default_rng(12)
    check_edges()
    check_op(rng)
    check_whole(rng)
    check_scan(rng)
    check_cumulative(rng)
    for line in bad:
        print(f"wrong: {line}")
    print(f"{len(bad)} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
