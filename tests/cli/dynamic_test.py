#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs whose extents follow from shapes, constants and values, as jax.export and
refinement write them, made at random: each op of StableHLO that takes extents as
operands in both forms, sizes that go through calls, loops and arithmetic, conditions
on shapes, and inputs whose values decide. Values by numpy. Exits 77 without numpy.

    dynamic_test.py          eleven of each kind
    dynamic_test.py 2        two of each
"""
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
NAMES = {"float32": "f32", "int32": "i32", "int64": "i64"}
COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 11
rng = np.random.default_rng(4)
failures = []
ran = 0


def t(dims, dtype="f32"):
    return f"tensor<{''.join(f'{d}x' for d in dims)}{dtype}>"


def of(a, unknown=()):
    return t(["?" if i in unknown else d for i, d in enumerate(a.shape)],
             NAMES[str(a.dtype)])


def constant(name, values, dtype="i32"):
    values = [int(v) for v in values]
    data = f"dense<[{', '.join(map(str, values))}]>" if values else "dense<>"
    return f"{name} = stablehlo.constant {data} : {t([len(values)], dtype)}"


def run(text, inputs, device, *options):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.mlir").write_text(text)
        (folder / "out").mkdir()
        for i, a in enumerate(inputs):
            np.save(folder / f"input_{i}.npy", a)
        done = subprocess.run(
            [PESTLE, "run", str(folder / "m.mlir"), "--device", device, "--no-cache",
             "--inputs", str(folder), "--outputs", str(folder / "out"), *options],
            capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        count = len(list((folder / "out").glob("output_*.npy")))
        return [np.load(folder / "out" / f"output_{i}.npy") for i in range(count)]


def judge(kind, text, inputs, want, device="llvm"):
    global ran
    ran += 1
    out = run(text, inputs, device)
    good = not isinstance(out, str) and out[0].shape == want.shape and \
        out[0].dtype == want.dtype and np.allclose(out[0], want, 1e-5, 1e-5)
    if not good:
        failures.append(f"{kind} on {device}: {out}\n{text}")


def refused(kind, text, inputs, say):
    global ran
    ran += 1
    out = run(text, inputs, "ref")
    if not isinstance(out, str) or say not in out:
        failures.append(f"{kind}: not refused with {say!r}: {out}\n{text}")


def function(arguments, result, lines, last="%y"):
    body = "\n  ".join(lines)
    return (f"func.func @main({', '.join(arguments)}) -> {result} {{\n  {body}\n  "
            f"return {last} : {result}\n}}\n")


def array(rank, low=1, high=6):
    return rng.standard_normal(rng.integers(low, high, rank)).astype(np.float32)


def extents(x, name="%x", prefix="%d", unknown=None):
    """Lines that make an i32 of each extent and [%dI] of rank 1."""
    ty = of(x, range(x.ndim) if unknown is None else unknown)
    lines = []
    for i in range(x.ndim):
        form = (f"stablehlo.get_dimension_size {name}, dim = {i} : ({ty}) -> tensor<i32>"
                if rng.integers(2) else
                f'"stablehlo.get_dimension_size"({name}) <{{dimension = {i} : i64}}> : '
                f"({ty}) -> tensor<i32>")
        lines += [f"{prefix}{i} = {form}",
                  f"{prefix}{i}v = stablehlo.reshape {prefix}{i} : (tensor<i32>) -> "
                  "tensor<1xi32>"]
    return lines


def joined(name, parts):
    types = ", ".join(["tensor<1xi32>"] * len(parts))
    return (f"{name} = stablehlo.concatenate {', '.join(parts)}, dim = 0 : ({types}) -> "
            f"{t([len(parts)], 'i32')}")


# --- Each op, by constants or by the input's own extents ---

def broadcast():
    x = array(rng.integers(0, 3))
    front = list(rng.integers(1, 4, rng.integers(1, 3)))
    axes = [len(front) + i for i in range(x.ndim)]
    want = np.broadcast_to(x, front + list(x.shape))
    unknown = range(x.ndim) if rng.integers(2) else ()
    lines = extents(x, unknown=unknown)
    lines += [constant(f"%c{i}", [d]) for i, d in enumerate(front)]
    lines.append(joined("%s", [f"%c{i}" for i in range(len(front))]
                        + [f"%d{i}v" for i in range(x.ndim)]))
    out = t(["?"] * want.ndim)
    types = f"({of(x, unknown)}, {t([want.ndim], 'i32')}) -> {out}"
    if rng.integers(2):
        lines.append(f"%y = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = {axes} : {types}")
    else:
        axes = f"array<i64: {', '.join(map(str, axes))}>" if axes else "array<i64>"
        lines.append('%y = "stablehlo.dynamic_broadcast_in_dim"(%x, %s) <{'
                     f"broadcast_dimensions = {axes}, known_expanding_dimensions = array<i64>}}>"
                     f" : {types}")
    judge("broadcast", function([f"%x: {of(x, unknown)}"], out, lines), [x], want)


def iota():
    x = array(rng.integers(1, 4))
    axis = int(rng.integers(x.ndim))
    want = np.broadcast_to(np.arange(x.shape[axis], dtype=np.int32).reshape(
        [-1 if i == axis else 1 for i in range(x.ndim)]), x.shape)
    out = t(["?"] * x.ndim, "i32")
    ty = f"({t([x.ndim], 'i32')}) -> {out}"
    lines = extents(x) + [joined("%s", [f"%d{i}v" for i in range(x.ndim)])]
    lines.append(f"%y = stablehlo.dynamic_iota %s, dim = {axis} : {ty}" if rng.integers(2) else
                 f'%y = "stablehlo.dynamic_iota"(%s) <{{iota_dimension = {axis} : i64}}> : {ty}')
    judge("iota", function([f"%x: {of(x, range(x.ndim))}"], out, lines), [x], want)


def reshape():
    x = array(rng.integers(2, 4))
    lines = extents(x)
    lines.append("%n = stablehlo.multiply %d0v, %d1v : tensor<1xi32>")
    parts = ["%n"] + [f"%d{i}v" for i in range(2, x.ndim)]
    lines.append(joined("%s", parts))
    want = x.reshape((x.shape[0] * x.shape[1],) + x.shape[2:])
    out = t(["?"] * want.ndim)
    lines.append(f"%y = stablehlo.dynamic_reshape %x, %s : ({of(x, range(x.ndim))}, "
                 f"{t([want.ndim], 'i32')}) -> {out}")
    judge("reshape", function([f"%x: {of(x, range(x.ndim))}"], out, lines), [x], want)


def pad():
    x = array(rng.integers(1, 4))
    low, high, inner = (rng.integers(0, 3, x.ndim) for _ in range(3))
    want = np.full([l + h + d + (d - 1) * i for l, h, d, i in
                    zip(low, high, x.shape, inner)], 7, np.float32)
    want[tuple(slice(l, l + (d - 1) * (i + 1) + 1, i + 1)
               for l, d, i in zip(low, x.shape, inner))] = x
    unknown = [i for i in range(x.ndim) if rng.integers(2)]
    out = t(["?"] * x.ndim)
    n = t([x.ndim], "i32")
    lines = [constant("%l", low), constant("%h", high), constant("%i", inner),
             "%v = stablehlo.constant dense<7.0> : tensor<f32>",
             ("%y = stablehlo.dynamic_pad %x, %v, %l, %h, %i : "
              if rng.integers(2) else '%y = "stablehlo.dynamic_pad"(%x, %v, %l, %h, %i) : ') +
             f"({of(x, unknown)}, tensor<f32>, {n}, {n}, {n}) -> {out}"]
    judge("pad", function([f"%x: {of(x, unknown)}"], out, lines), [x], want)


def slices():
    x = array(rng.integers(1, 4), 2, 8)
    low = [int(rng.integers(0, d)) for d in x.shape]
    high = [int(rng.integers(l + 1, d + 1)) for l, d in zip(low, x.shape)]
    step = rng.integers(1, 3, x.ndim)
    want = x[tuple(map(slice, low, high, step))]
    n = t([x.ndim], "i64")
    unknown = [i for i in range(x.ndim) if rng.integers(2)]
    out = t(["?"] * x.ndim)
    lines = [constant("%l", low, "i64"), constant("%h", high, "i64"),
             constant("%s", step, "i64"),
             f"%y = stablehlo.real_dynamic_slice %x, %l, %h, %s : ({of(x, unknown)}, {n}, {n}, "
             f"{n}) -> {out}"]
    judge("slice", function([f"%x: {of(x, unknown)}"], out, lines), [x], want)


def slice_of_run():
    """A start that only a run tells, of a size that is known."""
    x = array(1, 4, 8)
    at = np.array([int(rng.integers(0, x.size - 2))], np.int32)
    lines = [constant("%two", [2]), constant("%one", [1]),
             "%z = stablehlo.negate %i : tensor<1xi32>",
             "%j = stablehlo.negate %z : tensor<1xi32>",
             "%h = stablehlo.add %j, %two : tensor<1xi32>",
             f"%y = stablehlo.real_dynamic_slice %x, %j, %h, %one : ({of(x, [0])}, "
             "tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>"]
    judge("slice of a run", function([f"%x: {of(x, [0])}", "%i: tensor<1xi32>"],
                                     "tensor<?xf32>", lines), [x, at],
          x[at[0]:at[0] + 2])


def gather():
    x = array(2, 2, 7)
    i = rng.integers(0, x.shape[0], 4).astype(np.int64)
    lines = extents(x) + [constant("%one", [1]), joined("%s", ["%one", "%d1v"])]
    lines.append('%y = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = '
                 "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
                 "start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : "
                 f"({of(x, [0, 1])}, {of(i)}, tensor<2xi32>) -> {t([4, '?'])}")
    judge("gather", function([f"%x: {of(x, [0, 1])}", f"%i: {of(i)}"], t([4, "?"]), lines),
          [x, i], x[i])


def convolution():
    x = rng.standard_normal((1, rng.integers(3, 7), rng.integers(3, 7), 1)).astype(np.float32)
    k = rng.standard_normal((2, 2, 1, 1)).astype(np.float32)
    p = rng.integers(0, 2, (2, 2))
    padded = np.pad(x[0, :, :, 0], p)
    want = sum(padded[i:padded.shape[0] - 1 + i, j:padded.shape[1] - 1 + j] * k[i, j, 0, 0]
               for i in range(2) for j in range(2))[None, :, :, None]
    lines = [f"%p = stablehlo.constant dense<{p.tolist()}> : tensor<2x2xi32>",
             '%y = "stablehlo.dynamic_conv"(%x, %k, %p) <{batch_group_count = 1 : i64, '
             "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, "
             "feature_group_count = 1 : i64, window_strides = array<i64: 1, 1>}> : "
             f"({of(x, [1, 2])}, {of(k)}, tensor<2x2xi32>) -> {t([1, '?', '?', 1])}"]
    judge("convolution", function([f"%x: {of(x, [1, 2])}", f"%k: {of(k)}"],
                                  t([1, "?", "?", 1]), lines), [x, k], want)


def fewer():
    x = array(2, 2, 7)
    n = int(rng.integers(1, x.shape[1] + 1))
    lines = [f"%n = stablehlo.constant dense<{n}> : tensor<i32>",
             f"%z = stablehlo.set_dimension_size %x, %n, dim = 1 : ({of(x)}, tensor<i32>) -> "
             f"tensor<{x.shape[0]}x?xf32, #stablehlo.bounds<?, {x.shape[1]}>>",
             "%c = stablehlo.constant dense<0.0> : tensor<f32>",
             "%y = stablehlo.reduce(%z init: %c) applies stablehlo.add across dimensions = "
             f"[1] : (tensor<{x.shape[0]}x?xf32, #stablehlo.bounds<?, {x.shape[1]}>>, "
             f"tensor<f32>) -> {t([x.shape[0]])}"]
    judge("set_dimension_size", function([f"%x: {of(x)}"], t([x.shape[0]]), lines), [x],
          x[:, :n].sum(1))


# --- Extents that go a long way ---

def calls():
    """Softmax over sizes that two functions hand on, as jax.export writes them."""
    x = array(2, 2, 7)
    ty = of(x, [0, 1])
    text = f"""module @jit_f attributes {{mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}} {{
  func.func public @main(%arg0: {ty}) -> {ty} {{
    %0 = stablehlo.get_dimension_size %arg0, dim = 0 : ({ty}) -> tensor<i32>
    %1 = stablehlo.get_dimension_size %arg0, dim = 1 : ({ty}) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %2 = stablehlo.compare GE, %0, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%2, %0) {{error_message = "extent {{0}} is none", has_side_effect = true}} : (tensor<i1>, tensor<i32>) -> ()
    %3 = call @outer(%0, %1, %arg0) : (tensor<i32>, tensor<i32>, {ty}) -> {ty}
    return %3 : {ty}
  }}
  func.func private @outer(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: {ty}) -> {ty} {{
    %0 = call @spread(%arg0, %arg1, %arg2) : (tensor<i32>, tensor<i32>, {ty}) -> {ty}
    %1 = stablehlo.subtract %arg2, %0 : {ty}
    %2 = stablehlo.exponential %1 : {ty}
    %cst = stablehlo.constant dense<0.0> : tensor<f32>
    %3 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [1] : ({ty}, tensor<f32>) -> tensor<?xf32>
    %4 = call @wide(%arg0, %arg1, %3) : (tensor<i32>, tensor<i32>, tensor<?xf32>) -> {ty}
    %5 = stablehlo.divide %2, %4 : {ty}
    return %5 : {ty}
  }}
  func.func private @spread(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: {ty}) -> {ty} {{
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%arg2 init: %cst) applies stablehlo.maximum across dimensions = [1] : ({ty}, tensor<f32>) -> tensor<?xf32>
    %1 = call @wide(%arg0, %arg1, %0) : (tensor<i32>, tensor<i32>, tensor<?xf32>) -> {ty}
    return %1 : {ty}
  }}
  func.func private @wide(%arg0: tensor<i32>, %arg1: tensor<i32>, %arg2: tensor<?xf32>) -> {ty} {{
    %0 = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %arg1 : (tensor<i32>) -> tensor<1xi32>
    %2 = stablehlo.concatenate %0, %1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %3 = stablehlo.dynamic_broadcast_in_dim %arg2, %2, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> {ty}
    return %3 : {ty}
  }}
}}
"""
    e = np.exp(x - x.max(1, keepdims=True))
    judge("calls", text, [x], e / e.sum(1, keepdims=True))


def factor():
    """LAPACK's Cholesky factor of symbolic extents: the results' are operands."""
    a = array(3, 1, 4)
    n = a.shape[2]
    a = (np.einsum("bij,bkj->bik", a, a)[:, :1, :1] * np.ones((n, n))
         + 9 * np.eye(n)).astype(np.float32)
    batch = int(rng.integers(2))
    unknown = [0] if batch else [0, 1, 2]
    ty = of(a, unknown)
    first = t(["?"], "i32")
    lines = extents(a, unknown=unknown)
    lines += [joined("%s", ["%d0v", "%d1v", "%d2v"]),
              "%r:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x, %s, %d0v) "
              "{indices_of_shape_operands = dense<[1, 2]> : tensor<2xi64>, "
              "mhlo.backend_config = {uplo = 76 : ui8}, operand_layouts = [dense<[1, 2, 0]> "
              ": tensor<3xindex>, dense<0> : tensor<1xindex>, dense<0> : tensor<1xindex>], "
              "result_layouts = [dense<[1, 2, 0]> : tensor<3xindex>, dense<0> : "
              f"tensor<1xindex>]}} : ({ty}, tensor<3xi32>, tensor<1xi32>) -> ({ty}, {first})"]
    lower = np.linalg.cholesky(a.astype(np.float64)).astype(np.float32)
    # The other triangle stays as it was.
    judge("factor", function([f"%x: {ty}"], ty, lines, "%r#0"), [a], lower + np.triu(a, 1))


def loop():
    """A sum of as many rows as there are, in a loop over a carried buffer."""
    x = array(2, 2, 6)
    ty = of(x, [0, 1])
    lines = extents(x) + [
        "%z = stablehlo.constant dense<0.0> : tensor<f32>",
        "%k = stablehlo.constant dense<0> : tensor<i32>",
        "%one = stablehlo.constant dense<1> : tensor<i32>",
        "%s0 = stablehlo.dynamic_broadcast_in_dim %z, %d1v, dims = [] : (tensor<f32>, "
        "tensor<1xi32>) -> tensor<?xf32>",
        f"%w:2 = stablehlo.while(%i = %k, %s = %s0) : tensor<i32>, tensor<?xf32> cond {{",
        "%p = stablehlo.compare LT, %i, %d0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        "stablehlo.return %p : tensor<i1>", "} do {",
        constant("%ones", [1, 1]),
        "%iv = stablehlo.reshape %i : (tensor<i32>) -> tensor<1xi32>",
        "%kv = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>",
        constant("%onev", [1]), joined("%from", ["%iv", "%kv"]),
        joined("%size", ["%onev", "%d1v"]),
        "%to = stablehlo.add %from, %size : tensor<2xi32>",
        f"%r = stablehlo.real_dynamic_slice %x, %from, %to, %ones : ({ty}, tensor<2xi32>, "
        "tensor<2xi32>, tensor<2xi32>) -> tensor<1x?xf32>",
        "%q = stablehlo.dynamic_reshape %r, %d1v : (tensor<1x?xf32>, tensor<1xi32>) -> "
        "tensor<?xf32>",
        "%t = stablehlo.add %s, %q : tensor<?xf32>",
        "%n = stablehlo.add %i, %one : tensor<i32>",
        "stablehlo.return %n, %t : tensor<i32>, tensor<?xf32>", "}"]
    judge("loop", function([f"%x: {ty}"], "tensor<?xf32>", lines, "%w#1"), [x], x.sum(0))


def arithmetic():
    """(2 n + m) / 3, clamped, of ones."""
    x = array(2, 2, 7)
    n, m = x.shape
    size = min(max((2 * n + m) // 3, 2), 5)
    lines = extents(x) + [
        constant("%two", [2]), constant("%three", [3]), constant("%five", [5]),
        "%a = stablehlo.multiply %d0v, %two : tensor<1xi32>",
        "%b = stablehlo.add %a, %d1v : tensor<1xi32>",
        "%c = stablehlo.divide %b, %three : tensor<1xi32>",
        "%e = stablehlo.clamp %two, %c, %five : tensor<1xi32>",
        "%g = stablehlo.convert %e : (tensor<1xi32>) -> tensor<1xi64>",
        "%one = stablehlo.constant dense<1.0> : tensor<f32>",
        "%y = stablehlo.dynamic_broadcast_in_dim %one, %g, dims = [] : (tensor<f32>, "
        "tensor<1xi64>) -> tensor<?xf32>"]
    judge("arithmetic", function([f"%x: {of(x, [0, 1])}"], "tensor<?xf32>", lines), [x],
          np.ones(size, np.float32))


def by_value():
    """An input whose value is the shape."""
    x = array(2, 2, 5)
    s = np.array([x.shape[1], x.shape[0]], np.int64)
    text = function([f"%x: {of(x)}", "%s: tensor<2xi64>"], "tensor<?x?xf32>",
                    [f"%y = stablehlo.dynamic_reshape %x, %s : ({of(x)}, tensor<2xi64>) -> "
                     "tensor<?x?xf32>"])
    judge("by value", text, [x, s], x.reshape(s))


def static_result():
    """A result that is written whole needs no value."""
    x = array(2)
    out = t(x.shape)
    lines = [f"%y = stablehlo.dynamic_reshape %x, %s : ({of(x)}, tensor<2xi32>) -> {out}"]
    judge("static result", function([f"%x: {of(x)}", "%s: tensor<2xi32>"], out, lines),
          [x, np.array(x.shape, np.int32)], x)


kinds = [broadcast, iota, reshape, pad, slices, slice_of_run, gather, convolution, fewer, calls,
         factor, loop, arithmetic, by_value, static_result]
for make in kinds:
    for _ in range(COUNT):
        make()

# --- What is wrong ---
small = rng.standard_normal(3).astype(np.float32)
refused("assertion", function(["%x: tensor<?xf32>"], "tensor<?xf32>", [
    "%d = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>",
    "%f = stablehlo.constant dense<4> : tensor<i32>",
    "%p = stablehlo.compare EQ, %d, %f, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>",
    'stablehlo.custom_call @shape_assertion(%p, %d, %f) {error_message = "there are {0}, not '
    '{1}"} : (tensor<i1>, tensor<i32>, tensor<i32>) -> ()'], "%x"), [small],
        "there are 3, not 4")
refused("a shape that does not fit", function(["%x: tensor<?xf32>"], "tensor<?x?xf32>", [
    constant("%s", [2, 2]), "%y = stablehlo.dynamic_reshape %x, %s : (tensor<?xf32>, "
    "tensor<2xi32>) -> tensor<?x?xf32>"]), [small], "reshape")
refused("extents by what a run computes", function(["%x: tensor<?xf32>"], "tensor<?xf32>", [
    "%z = stablehlo.constant dense<0.0> : tensor<f32>",
    "%m = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : "
    "(tensor<?xf32>, tensor<f32>) -> tensor<f32>",
    "%n = stablehlo.convert %m : (tensor<f32>) -> tensor<i32>",
    "%v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>",
    "%y = stablehlo.dynamic_broadcast_in_dim %z, %v, dims = [] : (tensor<f32>, tensor<1xi32>) "
    "-> tensor<?xf32>"]), [small], "not known")
twice = "".join(
    f"func.func private @f{i}(%x: tensor<?xf32>) -> tensor<?xf32> {{\n  %0 = call @f{i + 1}(%x) "
    f": (tensor<?xf32>) -> tensor<?xf32>\n  %1 = call @f{i + 1}(%0) : (tensor<?xf32>) -> "
    "tensor<?xf32>\n  return %1 : tensor<?xf32>\n}\n" for i in range(40))
refused("extents that are none of the call's", function(
    ["%x: tensor<?x3x3xf32>"], "tensor<?x3x3xf32>",
    [constant("%s", [2, 3, 3]),
     "%y:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x, %s) {indices_of_shape_operands = "
     "dense<[1, 1]> : tensor<2xi64>, mhlo.backend_config = {uplo = 76 : ui8}} : "
     "(tensor<?x3x3xf32>, tensor<3xi32>) -> (tensor<?x3x3xf32>, tensor<?xi32>)"], "%y#0"),
    [np.ones((2, 3, 3), np.float32)], "'indices_of_shape_operands' does not name")
refused("calls that double", twice + "func.func private @f40(%x: tensor<?xf32>) -> "
        "tensor<?xf32> {\n  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> "
        "tensor<i32>\n  return %x : tensor<?xf32>\n}\n" + function(
            ["%x: tensor<?xf32>"], "tensor<?xf32>",
            ["%y = call @f0(%x) : (tensor<?xf32>) -> tensor<?xf32>"]), [small], "ops of the text")

# --- Names that messages give are those that options take ---
text = function(["%x: tensor<2x3xf32>", "%s: tensor<2xi64>"], "tensor<?x?xf32>", [
    "%y = stablehlo.dynamic_reshape %x, %s : (tensor<2x3xf32>, tensor<2xi64>) -> "
    "tensor<?x?xf32>"])
x = rng.standard_normal((2, 3)).astype(np.float32)
with tempfile.TemporaryDirectory() as place:
    np.save(place + "/s.npy", np.array([3, 2], np.int64))
    np.save(place + "/t.npy", np.array([3, 2], np.int32))
    for option, want in (("s", None), ("1", None), ("q", "it has 'x', 's'")):
        ran += 1
        out = run(text, [x], "llvm", "--const", f"{option}={place}/s.npy")
        right = isinstance(out, str) and want in out if want else \
            not isinstance(out, str) and np.array_equal(out[0], x.reshape(3, 2))
        if not right:
            failures.append(f"--const {option}: {out}")
    ran += 1
    out = run(text, [x], "llvm", "--const", f"s={place}/t.npy")
    if "elements of i32" not in str(out):
        failures.append(f"--const of another type: {out}")
ran += 1
with tempfile.TemporaryDirectory() as place:
    (pathlib.Path(place) / "m.mlir").write_text(text)
    done = subprocess.run([PESTLE, "compile", place + "/m.mlir", "-o", place + "/p"],
                          capture_output=True, text=True, check=False)
    if "'s' (tensor<2xi64>)" not in done.stderr:
        failures.append(f"what is missing: {done.stderr}")

for line in failures:
    print(line[:1500])
print(f"{ran} programs, {len(failures)} failures")
sys.exit(bool(failures))
