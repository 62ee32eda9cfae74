#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every pattern of every float of 8, 6 and 4 bits against ml_dtypes, and of integers
of 2 and 4 bits against Python, on ref and llvm: conversions between all of them,
rounding at every boundary, sums and products of all pairs; files as numpy saves
them. Exits 77 without ml_dtypes.

    narrow_test.py
"""

import itertools
import os
import subprocess
import sys
import tempfile

try:
    import ml_dtypes
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
DEVICES = ("ref", "llvm")
FLOATS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn, "f6E3M2FN": ml_dtypes.float6_e3m2fn,
}  # fmt: skip
# Their high bits are 0, and ignored.
SMALL = {"f4E2M1FN": 4, "f6E2M3FN": 6, "f6E3M2FN": 6}
WIDE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32,
        "f64": np.float64}  # fmt: skip
INTS = {"i2": (2, True), "ui2": (2, False), "i4": (4, True), "ui4": (4, False),
        "i8": (8, True), "ui8": (8, False)}  # fmt: skip
BITS = np.arange(256, dtype=np.uint8)


def stored(name):
    """What the file of a tensor of |name| has."""
    if name in FLOATS or name in INTS:
        return np.int8 if name == "i8" else np.uint8
    return np.uint16 if name == "bf16" else WIDE[name]


def run(text, inputs, count, device):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
            file.write(text)
        command = [PESTLE, "run", f"{folder}/m.mlir", "--device", device,
                   "--no-cache", "--outputs", f"{folder}/out"]  # fmt: skip
        for name, value in inputs.items():
            np.save(f"{folder}/{name}.npy", value)
            command += ["--input", f"{name}={folder}/{name}.npy"]
        subprocess.run(command, check=True)
        return [np.load(f"{folder}/out/output_{i}.npy") for i in range(count)]


def convert(source, values, targets, device):
    n = values.size
    types = [f"tensor<{n}x{t}>" for t in targets]
    x = f"tensor<{n}x{source}>"
    text = f"func.func @main(%x: {x}) -> ({', '.join(types)}) {{\n"
    for i, t in enumerate(types):
        text += f"  %{i} = stablehlo.convert %x : ({x}) -> {t}\n"
    names = ", ".join(f"%{i}" for i in range(len(types)))
    text += f"  return {names} : {', '.join(types)}\n}}\n"
    return run(text, {"x": values.view(stored(source))}, len(types), device)


def signed(bits, width, is_signed):
    """The numbers that the low bits are."""
    value = bits.astype(np.int64) & ((1 << width) - 1)
    return value - ((value >> (width - 1) & 1) << width) if is_signed else value


def as_numbers(name, data):
    if name in INTS:
        return signed(data.view(np.uint8), *INTS[name])
    kind = FLOATS.get(name) or WIDE[name]
    if name in SMALL:
        data = data & np.uint8((1 << SMALL[name]) - 1)
    return data.view(kind).astype(np.float64)


def rounded(numbers, target):
    """As |target|, which NaN is -0 in where it has none: ml_dtypes makes 0 of one
    with a sign, XLA -0."""
    if target in SMALL:
        numbers = np.where(np.isnan(numbers), numbers.dtype.type(-0.0), numbers)
    return numbers.astype(FLOATS.get(target) or WIDE[target])


def expected(numbers, target, is_float):
    """The bits of |numbers| as |target|; floats become integers towards zero."""
    if target not in INTS:
        return rounded(numbers, target)
    width, has_sign = INTS[target]
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if has_sign else (
        0, (1 << width) - 1)  # fmt: skip
    if is_float:
        numbers = np.clip(np.nan_to_num(np.trunc(numbers), nan=0.0,
                                        posinf=high, neginf=low), low, high)
    mask = (1 << width) - 1
    return (numbers.astype(np.int64) & mask).astype(np.uint8)


def odd_float32(x):
    """f64 as f32, towards zero and the last bit set where something was lost, so
    that rounding it on is rounding once; ml_dtypes rounds to f32 and again."""
    near = x.astype(np.float32)
    bits = near.view(np.uint32).copy()
    finite = ~np.isnan(x)
    back = near.astype(np.float64)
    bits[finite & (np.abs(back) > np.abs(x))] -= 1
    bits[finite & (back != x)] |= 1
    return bits.view(np.float32)


def compare(what, target, want, got):
    kind = np.dtype(f"u{got.dtype.itemsize}")
    same = want.view(kind) == got.view(kind)
    if target not in INTS:  # which NaN is not said
        floats = FLOATS.get(target) or WIDE[target]
        nan = [np.isnan(a.view(floats).astype(np.float64)) for a in (want, got)]
        same |= nan[0] & nan[1]
    wrong = np.flatnonzero(~same)
    if wrong.size:
        i = wrong[0]
        print(f"{what}: {wrong.size} wrong, at {wrong[:4]}: {got[i]}, not {want[i]}")
    return wrong.size != 0


def boundaries(dtype):
    """Every value of every format, what lies between neighbours, and the
    numbers beside those."""
    all_of = [BITS.view(f).astype(np.float64) for f in FLOATS.values()]
    values = np.unique(np.abs(np.concatenate(all_of)))
    values = np.unique(values[np.isfinite(values)])
    middle = (values[1:] + values[:-1]) / 2
    beyond = [1.5 * 2.0**127, 464.0, 465.0, 61440.0, 15.75, 31.0, 248.0, 0.0]
    x = np.concatenate([values, middle, beyond]).astype(dtype)
    zero, far = np.array(0, dtype), np.array(np.inf, dtype)
    x = np.concatenate([x, np.nextafter(x, zero), np.nextafter(x, far)])
    # Above 2^-127, where f32 has subnormal numbers, ml_dtypes rounds all up.
    x = x[(x <= 2.0**-127) | (x >= 1.5 * 2.0**-127)]
    return np.concatenate([x, -x, [np.nan, np.inf, -np.inf]]).astype(dtype)


def check_conversions(device):
    bad = 0
    small = [*FLOATS, *INTS]
    for source in small:
        data = BITS
        if source in INTS:
            data = signed(BITS, *INTS[source]).astype(np.uint8)
        targets = [t for t in [*small, *WIDE] if t != source]
        outputs = convert(source, data, targets, device)
        numbers = as_numbers(source, data)
        for target, got in zip(targets, outputs):
            want = expected(numbers, target, source in FLOATS)
            bad += compare(f"{device}: {source} to {target}", target, want, got)
    for source in ("f32", "f64"):
        with np.errstate(all="ignore"):
            data = boundaries(WIDE[source])
            outputs = convert(source, data, small, device)
            for target, got in zip(small, outputs):
                numbers = data.astype(np.float64)
                if target in FLOATS and source == "f64":
                    numbers = odd_float32(data)
                want = expected(numbers, target, True)
                bad += compare(f"{device}: {source} to {target}", target, want,
                               got)  # fmt: skip
    return bad


def elementwise(ops, source, result_of, arguments, device):
    n = arguments[0].size
    x = f"tensor<{n}x{source}>"
    results = [f"tensor<{n}x{result_of(op)}>" for op in ops]
    text = f"func.func @main(%a: {x}, %b: {x}) -> ({', '.join(results)}) {{\n"
    for i, (op, r) in enumerate(zip(ops, results)):
        name, arity = op.split()[0], ops[op][0]
        used = "%a, %b" if arity == 2 else "%a"
        takes = ", ".join([x] * arity)
        if name == "compare":
            text += (f"  %{i} = stablehlo.compare {op.split()[1]}, %a, %b : "
                     f"({takes}) -> {r}\n")  # fmt: skip
        else:
            text += (f'  %{i} = "stablehlo.{name}"({used}) : ({takes}) -> '
                     f"{r}\n")  # fmt: skip
    names = ", ".join(f"%{i}" for i in range(len(ops)))
    text += f"  return {names} : {', '.join(results)}\n}}\n"
    return run(text, dict(zip("ab", arguments)), len(ops), device)


def check_float_pairs(device):
    ops = {"add": (2, np.add), "subtract": (2, np.subtract),
           "multiply": (2, np.multiply), "divide": (2, np.divide),
           "negate": (1, np.negative), "abs": (1, np.abs),
           "floor": (1, np.floor),
           "sign": (1, lambda x: np.where(x == 0, x, np.sign(x)))}  # fmt: skip
    a, b = np.repeat(BITS, 256), np.tile(BITS, 256)
    bad = 0
    for name in FLOATS:
        outputs = elementwise(ops, name, lambda op: name, [a, b], device)
        x, y = (as_numbers(name, v).astype(np.float32) for v in (a, b))
        for (op, (arity, fn)), got in zip(ops.items(), outputs):
            with np.errstate(all="ignore"):
                want = rounded(fn(x, y) if arity == 2 else fn(x), name)
            bad += compare(f"{device}: {op} of {name}", name,
                           want.view(np.uint8), got)  # fmt: skip
    return bad


def int_ops(width, has_sign):
    ones = (1 << width) - 1

    def quotient(a, b):
        if b == 0:
            return -1
        q = abs(a) // abs(b)
        return q if (a < 0) == (b < 0) else -q

    def remainder(a, b):
        return a if b == 0 else a - b * quotient(a, b)

    def amount(b):
        return width if b < 0 or b > width else b

    def arithmetic(a, b):
        a = a - (1 << width) if a >= 1 << (width - 1) else a
        return a >> min(amount(b), width - 1)

    ops = {
        "add": (2, lambda a, b: a + b), "subtract": (2, lambda a, b: a - b),
        "multiply": (2, lambda a, b: a * b), "divide": (2, quotient),
        "remainder": (2, remainder), "maximum": (2, max), "minimum": (2, min),
        "and": (2, lambda a, b: a & b), "or": (2, lambda a, b: a | b),
        "xor": (2, lambda a, b: a ^ b),
        "shift_left": (2, lambda a, b: (a & ones) << amount(b)),
        "shift_right_logical": (2, lambda a, b: (a & ones) >> amount(b)),
        "shift_right_arithmetic": (2, arithmetic),
        "not": (1, lambda a: ~a), "negate": (1, lambda a: -a),
        "popcnt": (1, lambda a: bin(a & ones).count("1")),
        "count_leading_zeros": (1, lambda a: width - (a & ones).bit_length()),
        "sign": (1, lambda a: (a > 0) - (a < 0)),
        "compare LT": (2, lambda a, b: a < b),
        "compare EQ": (2, lambda a, b: a == b),
    }  # fmt: skip
    if has_sign:
        ops["abs"] = (1, abs)
    return ops


def check_int_pairs(device):
    bad = 0
    for name in ("i2", "ui2", "i4", "ui4"):
        width, has_sign = INTS[name]
        ops = int_ops(width, has_sign)
        codes = np.arange(1 << width, dtype=np.uint8)
        a, b = np.repeat(codes, codes.size), np.tile(codes, codes.size)

        def result_of(op):
            return "i1" if op.startswith("compare") else name

        outputs = elementwise(ops, name, result_of, [a, b], device)
        x, y = signed(a, width, has_sign), signed(b, width, has_sign)
        for (op, (arity, fn)), got in zip(ops.items(), outputs):
            pairs = zip(x.tolist(), y.tolist())
            want = [fn(*p[:arity]) for p in pairs]
            mask = 1 if op.startswith("compare") else (1 << width) - 1
            want = np.array([int(w) & mask for w in want], np.uint8)
            bad += compare(f"{device}: {op} of {name}", name, want,
                           got.view(np.uint8))  # fmt: skip
    return bad


def check_padding(device):
    """Windows that reach over the border add nothing, in the format without a
    zero as well."""
    x = np.random.default_rng(3).integers(124, 131, 9, np.uint8)
    types = "tensor<1x9x1xf8E8M0FNU>", "tensor<3x1x1xf8E8M0FNU>"
    text = f"""func.func @main(%x: {types[0]}) -> tensor<1x9x1xf32> {{
  %w = stablehlo.constant dense<2.0> : {types[1]}
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {{pad = [[1, 1]]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({types[0]}, {types[1]}) -> tensor<1x9x1xf32>
  return %0 : tensor<1x9x1xf32>
}}
"""
    got, = run(text, {"x": x.reshape(1, 9, 1)}, 1, device)
    want = np.convolve(np.exp2(x.astype(np.float32) - 127), [2, 2, 2], "same")
    bad = int((got.ravel() != want).sum())
    if bad:
        print(f"{device}: padded f8E8M0FNU: {got.ravel()} for {want}")
    return bad


def check_rounding(device):
    """What is rounded to an integer beyond the largest number is rounded again
    before it goes on."""
    bad = 0
    for name, least in (("f8E3M4", -np.inf), ("f6E2M3FN", -6.5),
                        ("f4E2M1FN", -4), ("f6E3M2FN", -28)):  # fmt: skip
        x = f"tensor<1x{name}>"
        most = float(ml_dtypes.finfo(FLOATS[name]).max)
        text = f"""func.func @main(%x: {x}) -> {x} {{
  %0 = stablehlo.floor %x : {x}
  %1 = stablehlo.constant dense<1.0> : {x}
  %2 = stablehlo.add %0, %1 : {x}
  return %2 : {x}
}}
"""
        value = np.array([-most], FLOATS[name])
        got, = run(text, {"x": value.view(np.uint8)}, 1, device)
        got = got.view(FLOATS[name]).astype(float)[0]
        if got != least:
            print(f"{device}: floor({-most}) + 1 of {name}: {got}, not {least}")
            bad += 1
    return bad


def check_files(device):
    """Arrays as numpy saves them, which calls the types V1 and V2."""
    bad = 0
    for name, dtype in {**FLOATS, "bf16": WIDE["bf16"]}.items():
        value = np.array([0.5, 1, 2, 4], dtype)
        text = f"""func.func @main(%x: tensor<4x{name}>) -> tensor<4xf32> {{
  %0 = stablehlo.convert %x : (tensor<4x{name}>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}}
"""
        got, = run(text, {"x": value}, 1, device)
        if not np.array_equal(got.ravel(), value.astype(np.float32)):
            print(f"{device}: a file of {name}: {got}")
            bad += 1
    return bad


def main():
    bad = 0
    checks = (check_files, check_conversions, check_float_pairs,
              check_int_pairs, check_padding, check_rounding)
    for check, device in itertools.product(checks, DEVICES):
        bad += check(device)
    print(f"{bad} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
