#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/ops.md from scalar.def, ops.def, kir.def, onnx_ops.def and
docs/support/.

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
    plane = {r[0]: r[2] for r in rows("ir/complex.def", "PESTLE_COMPLEX")}
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


def attributes():
    out = {}
    for name, _, kind, attr, need in rows(
        "include/pestle/ops.def", "PESTLE_OP_ATTR"
    ):
        text = f"`{attr}` {kind.lower()}"
        out.setdefault(name, []).append(
            text if need == "REQUIRED" else text + "?"
        )
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
            "class", "flags", "attributes (? optional)"]  # fmt: skip
    return table(head, lines)


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


def last_opset():
    for path in sorted((ROOT / "frontend/onnx").glob("*.h")):
        found = re.search(
            r"define PESTLE_ONNX_LAST_OPSET (\d+)", path.read_text()
        )
        if found:
            return found[1]
    sys.exit("PESTLE_ONNX_LAST_OPSET is defined in no header")


def onnx_ops():
    ops, last = {}, last_opset()
    for r in rows("frontend/onnx/onnx_ops.def", "PESTLE_ONNX_OP"):
        name, domain, since, until = r[:4]
        domain = domain.strip('"')
        name = f"{domain}::{name}" if domain else name
        until = int(last if until == "LAST" else until)
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
    parts.append("\n## Kernel ops (`kir.def`)\n\n"
                 "Operands: v value, o value or none, b buffer, i immediate. "
                 "Classes: P pure, M reads memory, S side effect, B L E begin, "
                 "split and end a region.\n\n" + kernel_ops())  # fmt: skip
    parts.append("\n## ONNX ops (`onnx_ops.def`)\n\n"
                 "What the importer takes; forms that it refuses are named "
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
