#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/ops.md from scalar.def, ops.def, chlo.def, kir.def, onnx_ops.def
and docs/support/.

gen_op_docs.py            writes it
gen_op_docs.py --check    exit 1 when it is not what the tables say
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Written by tools/gen_op_docs.py from the tables; do not edit. -->
# Ops

The tables in `include/pestle/` are the source of everything here: enum,
builder, printer, parser, verifier, reference evaluator, constant folder and
tests expand them.
"""


def rows(path, macro):
    """The arguments of each use of |macro|, after comments are gone."""
    text = (ROOT / path).read_text()
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.M)
    for start in re.finditer(rf"^{macro}\(", text, re.M):
        yield split_arguments(text, start.end())


def split_arguments(text, at):
    """What is between the commas up to the closing parenthesis."""
    out, depth, quoted, begin = [], 0, False, at
    while True:
        c = text[at]
        if c == '"':
            quoted = not quoted
        elif not quoted and c == "(":
            depth += 1
        elif not quoted and (c == "," and not depth or c == ")" and not depth):
            out.append(" ".join(text[begin:at].split()))
            begin = at + 1
            if c == ")":
                return out
        elif not quoted and c == ")":
            depth -= 1
        at += 1


def cell(text):
    return text.replace("|", "\\|").strip() or " "


def table(header, lines):
    out = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    out += ["| " + " | ".join(map(cell, line)) + " |" for line in lines]
    return "\n".join(out) + "\n"


def flags(text):
    words = re.findall(r"[A-Z][A-Z_]+", text)
    return ", ".join(w.lower() for w in words)


def kinds(text):
    text = text.replace("PESTLE_KIND_", "").replace("K_", "")
    return text.lower()


def code(text):
    return "" if text == "NO" else f"`{text}`"


def scalar_ops():
    plane = {r[0]: r[4] for r in rows("ir/complex.def", "PESTLE_COMPLEX")}
    lines = []
    for r in rows("include/pestle/scalar.def", "PESTLE_SCALAR"):
        name, op, mlir, arity, rule, takes, flag, f, s, u = r
        z = plane.get(name, "")
        lines.append([f"`{mlir[1:-1]}`" + (f" {name}" if rule == "COMPARE"
                      else ""), f"`pestle_op_{op}`", rule.lower(),
                      kinds(takes), flags(flag), code(f), code(s),
                      code(u), z and code(z)])  # fmt: skip
    head = ["in text", "builder", "rule", "takes", "flags", "floats",
            "signed", "unsigned", "complex"]  # fmt: skip
    return table(head, lines)


def accuracy():
    """Steps of the type; a scalar row on floats without a line has none."""
    stated = {r[0]: r[1:] for r in rows("ir/accuracy.def", "PESTLE_ACCURACY")}
    plane = {r[0]: r[2:4] for r in rows("ir/complex.def", "PESTLE_COMPLEX")}
    lines, exact = [], []
    for r in rows("include/pestle/scalar.def", "PESTLE_SCALAR"):
        name, op, takes = r[0], r[1], r[5]
        floats = not re.search("BITS|INT", takes)
        z = plane.get(name, ["", ""])
        if name in stated:
            lines.append([f"`{op}`", *stated[name], *z])
        elif name in plane and z[0] != "0":
            lines.append([f"`{op}`", "0", "0", "0", "0", *z])
        elif floats:
            exact.append(f"`{op}`")
    head = ["op", "f8", "bf16, f16", "f32", "f64", "complex", "of parts up to"]
    text = table(head, lines)
    text += "\nCorrectly rounded, the same bits everywhere: " + ", ".join(exact)
    text += ".\n\nWhere a target's compiler has the function:\n\n"
    text += table(["target", "op", "f32", "by"],
                  [[f"`{t}`", f"`{n.lower()}`", ulp, source.strip('"')]
                   for t, n, ulp, source in rows("ir/accuracy.def",
                                                 "PESTLE_ACCURACY_OF")])
    text += "\n" + table(["op", "at most off by"],
                          [[f"`{n.lower()}`", bound.strip('"')]
                           for n, bound in rows("ir/accuracy.def",
                                                "PESTLE_ACCURACY_BY")])
    return text


ACCURACY = """
How far a result may be from the exact one rounded to the type, in steps of the
type (ulp); of complex numbers in roundoffs (half ulp) of the number's size. The
tables are `ir/accuracy.def` and `ir/complex.def`. The bounds of the scalar ops are
held by tests/unit/codegen/accuracy (llvm, ref: all pairs of 8-bit floats, all
16-bit ones, samples with special values of f32 and f64, against long double) and
math_long (every f32); GPU targets run the same expansions but for those named
below. The bounds of the other ops are what tests/random allows around the reference: u is
the roundoff of f32, 2^-24 (of f64 2^-53), n the elements that are summed, m the
largest operand.

Numerics `default` may contract a product into the sum that takes it (one rounding
less), sums in any order and makes `erf(x) + 1` of f32 one function (1.05 ulp of 1;
0.98 as two); `strict` does none of it.

An f8E4M3FN and an f8E5M2 are multiplied as they are where the result is f32. Hopper's units
keep about 14 bits of a sum of 8-bit floats. So `default` sums 128 products
there, by units of a subgroup (sm_89 and later) 32, and the sums of these in f32: of positive
numbers 2^-10 of the result, as the emulator
has it. `fast` leaves the whole sum to the units (2^-5 of 4,096 products, 2^-3 of 16,384),
and `strict` does not use them.

A product by `algorithm` tf32 has operands that NVIDIA's units since sm_80 cut to 10 bits of the
mantissa, and one of f32 under `fast` those of Hopper's warpgroups: within 2^-9 of the sum of |a b|. On other targets, and by `strict`,
`algorithm` rounds them (2^-10), and `fast` leaves them as they are. Six and nine products of
bf16 are within 2^-20, three within 2^-15.

Edges, on every target:

- A NaN operand makes a NaN (where the type has one), in `maximum`, `minimum` and `clamp` too (comparisons:
  false, `ne`: true; `power` of 1, or to 0, is 1); which NaN's bits is not said.
- `maximum(-0, +0)` is +0, `minimum` -0; zeros keep the sign that IEEE 754 gives
  them.
- Subnormal numbers are kept, but by OpenCL devices without `CL_FP_DENORM`.
- Overflow is infinity; where the type has none (f8E4M3FN, f8E8M0FNU, FNUZ types)
  it is NaN. f8E8M0FNU has powers of two alone: zeros and negative numbers are NaN.
  f4E2M1FN, f6E2M3FN and f6E3M2FN have finite numbers alone: what is too large is
  the largest, NaN is -0.
- Integers wrap. A quotient by 0 is -1 (unsigned: all ones) and its remainder the
  dividend; the least number over -1 is itself, with remainder 0. A shift by the
  width or more is 0, or the sign. A negative exponent rounds towards 0.
- Floats become integers towards 0; what does not fit becomes the nearest end,
  NaN 0.
- Indices of slices are clamped; a window of gather is clamped, of scatter left
  out.
- What only moves elements (slices, gathers, sorts, control flow) gives them as they
  are.
- Complex numbers are as C's Annex G has them, also where a part is infinite, NaN, a
  zero of either sign or subnormal, and on branch cuts; a part overflows where it
  must, not where a step on the way to it does. But:
  - `multiply` is (ac - bd, ad + bc): a part with one product out of range is
    infinite, with two of them infinite or NaN, and infinities are not rescued, as in
    XLA; `chlo.square` has (x - y) (x + y), which is 0 where |x| is |y|;
  - of `divide` and `power` the signs of zeros are not said;
  - `power` is 1 of a zero exponent or of 1; of zero 0 where the exponent has a
    positive real part, else NaN; else exp(b log a), where a real b multiplies each
    part. Where |b log a| is above 1 / u, or the result infinite, its size alone is
    known;
  - `atan2` is -i log((x + iy) / sqrt(x^2 + y^2)) within some u of 1, of real operands
    what it is of those; on its cuts the side is not said.
- Sums over nothing are the initial value; extents of 0 and rank 0 are as any
  other.

"""


def attributes():
    out = {}
    for name, _, kind, attr, need, means in rows(
        "include/pestle/ops.def", "PESTLE_OP_ATTR"
    ):
        text = f"`{attr}` {kind.lower()}{'' if need == 'REQUIRED' else '?'}"
        if means != "PLAIN":
            text += f" {means.lower()}"
        out.setdefault(name, []).append(text)
    return out


def tensor_ops():
    attrs, lines = attributes(), []
    for r in rows("include/pestle/ops.def", "PESTLE_OP_BEGIN"):
        name, op, mlir, operands, regions, results, type_, fuse, flag = r
        counts = f"{operands}, {regions}, {results}".lower()
        lines.append([f"`{mlir[1:-1]}`", f"`pestle_op_{op}`", counts,
                      type_.lower(), fuse.lower(), flags(flag),
                      ", ".join(attrs.get(name, []))])  # fmt: skip
    head = ["in text", "builder", "operands, regions, results", "type",
            "class", "flags", "attributes (? optional; of the dims of an operand "
            "or of the result)"]  # fmt: skip
    return table(head, lines)


def formulas():
    lines = [[f"`chlo.{op}`", kind.lower(), "0" if ulps == "0" else
              f"{ulps} ulp of {bound.strip(chr(34)) or 'y'}"]
             for op, _, kind, ulps, bound in rows("ir/chlo.def", "PESTLE_CHLO")]
    plane = [[f"`chlo.{op}`", steps, reach] for op, steps, reach in
             rows("ir/chlo.def", "PESTLE_CHLO_COMPLEX")]  # fmt: skip
    return (table(["in text", "computed in", "at most off by"], lines) +
            "\nBounds for complex numbers, in roundoffs (half ulp) of the result's size; "
            "edges, zeros' signs and branch cuts are those of C's Annex G:\n\n" +
            table(["in text", "at most off by", "of parts up to"], plane))


def kernel_ops():
    text = (ROOT / "include/pestle/kir.def").read_text()
    row = (
        r'^PESTLE_KIR\((\w+), +(\d+), +"(\w+)", +"(\w*)", +(\w)\) *(?://(.*))?$'
    )
    lines = [
        [f"`{mnemonic}`", number, operands, class_, note]
        for _, number, mnemonic, operands, class_, note in re.findall(
            row, text, re.M
        )
    ]
    return table(["in text", "code", "operands", "class", "meaning"], lines)


def defined(name):
    for path in sorted((ROOT / "frontend/onnx").glob("*.h")):
        found = re.search(rf"define {name} (\d+)", path.read_text())
        if found:
            return found[1]
    sys.exit(f"{name} is defined in no header")


# What the rows of each table write for their domain and its newest opset.
ONNX_TABLES = [("onnx_ops.def", {"LAST": "PESTLE_ONNX_LAST_OPSET"}, {}),
               ("onnx_ops_ml.def", {"LAST_ML": "PESTLE_ONNX_LAST_ML_OPSET"},
                {"ML": "ai.onnx.ml"}),
               ("onnx_ops_contrib.def", {}, {"MS": "com.microsoft"})]  # fmt: skip


def onnx_ops():
    ops = {}
    for table_of, newest, domains in ONNX_TABLES:
        last = {name: defined(macro) for name, macro in newest.items()}
        for r in rows(f"frontend/onnx/{table_of}", "PESTLE_ONNX_OP"):
            name, domain, since, until = r[:4]
            domain = domains.get(domain, domain.strip('"'))
            name = f"{domain}::{name}" if domain else name
            until = int(last.get(until, until))
            low, high = ops.get(name, (int(since), until))
            ops[name] = (min(low, int(since)), max(high, until))
    lines = [[f"`{n}`", f"{a} to {b}"] for n, (a, b) in sorted(ops.items())]
    return table(["op", "opsets"], lines)


def document():
    parts = [HEAD]
    parts.append("\n## Elementwise ops (`scalar.def`)\n\n"
                 "Shared by the graph IR and the Kernel IR. The expressions "
                 "are the meaning.\n\n" + scalar_ops())  # fmt: skip
    parts.append("\n## Tensor ops (`ops.def`)\n\n" + tensor_ops())
    parts.append("\n## Ops of CHLO whose body is a formula (`chlo.def`)\n\n"
                 "In the graph each is a `composite` of its name, whose body is inlined "
                 "before other passes look at it. "
                 "Wide: in f32 (f64 for f64), rounded once to the operands' type; "
                 "self: in that type. What is no number is what XLA says: "
                 "lgamma is infinite and digamma NaN at 0 and whole numbers below, "
                 "zeta NaN for s < 1. As XLA's, zeta means nothing for q < -5. "
                 "`chlo.top_k` and `chlo.ragged_dot` are such ops too, their bodies a "
                 "sort and dot_general; `erf`, `erfc` and `erf_inv` are scalar ops. "
                 "A `stablehlo.composite` with the name and types of any of these "
                 "is that op, whatever its decomposition.\n\n" + formulas())  # fmt: skip
    parts.append("\n## Accuracy\n" + ACCURACY + accuracy())
    parts.append("\n## Kernel ops (`kir.def`)\n\n"
                 "Operands: v value, o value or none, b buffer, i immediate. "
                 "Classes: P pure, M reads memory, S side effect, B L E begin, "
                 "split and end a region.\n\n" + kernel_ops())  # fmt: skip
    parts.append("\n## ONNX ops (`onnx_ops*.def`)\n\n"
                 "The importer takes these; forms that it refuses are named "
                 "when they are met.\n\n" + onnx_ops())  # fmt: skip
    parts.append(support())
    return "".join(parts)


def support():
    """What 'pestle plugins test NAME --markdown' printed for each target."""
    parts = ["\n## Which target compiles what\n\n"
             "One matrix a target, as `pestle plugins test NAME --markdown` "
             "prints it into docs/support/: P pass, F right by the fallback "
             "backend, U unsupported, W wrong, each against the reference "
             "evaluator.\n"]  # fmt: skip
    for path in sorted((ROOT / "docs/support").glob("*.md")):
        text = path.read_text()
        text = re.sub(r"^<!--.*-->\n", "", text)
        parts.append(f"\n### `{path.stem}`\n\n{text}")
    return "".join(parts)


def main():
    path = ROOT / "docs/ops.md"
    text = document()
    if "--check" in sys.argv:
        if not path.exists() or path.read_text() != text:
            sys.exit(f"{path} is not what the tables say: run {sys.argv[0]}")
        return
    path.write_text(text)


if __name__ == "__main__":
    main()
