#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which library calls which: what check_includes.py cannot see.

A public header declares functions of several folders, so that a library may
call what its includes do not tell. Each archive must find its pestle_ symbols
in itself and in those that its row names.

usage: check_links.py BUILD_DIR
"""

import pathlib
import subprocess
import sys

# archive -> the archives that it stands on
STANDS_ON = {
    "base": [],
    "ir": ["base"],
    "ir_ref": ["base", "ir"],
    "frontend": ["base", "ir", "frontend_gguf", "frontend_onnx",
                 "frontend_stablehlo"],
    "frontend_gguf": ["base", "ir", "frontend"],
    "frontend_onnx": ["base", "ir", "ir_ref", "frontend"],
    "frontend_stablehlo": ["base", "ir"],
    "transform": ["base", "ir"],
    "passes": ["base", "ir", "ir_ref"],
    "codegen_nest": ["base", "ir"],
    "codegen_kir": ["base", "ir", "codegen_nest"],
    "codegen_lower": ["base", "ir", "codegen_nest"],
    "codegen_schedule": ["base", "ir", "codegen_nest"],
    "codegen_emit": ["base", "ir", "codegen_nest", "codegen_schedule",
                     "codegen_kir"],
    "codegen_sketch": ["base", "ir", "codegen_nest", "codegen_schedule"],
    "codegen_template": ["base", "ir", "codegen_nest", "codegen_schedule",
                         "codegen_kir", "codegen_emit", "codegen_sketch"],
    "codegen_legalise": ["base", "ir", "codegen_kir"],
    "codegen_direct": ["base", "ir", "codegen_nest", "codegen_kir"],
    "compile": ["base", "ir", "passes", "runtime", "codegen_nest",
                "codegen_kir", "codegen_lower", "codegen_schedule",
                "codegen_emit", "codegen_sketch", "codegen_template",
                "codegen_legalise", "codegen_direct"],
    "runtime": ["base", "plugin_ref"],
    "lazy": ["base", "ir", "compile", "runtime"],
    "session": ["base", "ir", "frontend", "compile", "runtime"],
}
# Custom calls are registered with a context, which is the runtime's. Templates are
# rows of a table, which rooms below them ask; the verifier of nests is in two rooms.
# Readers evaluate the numbers of shapes as they read them (ir/fold.c).
EXCEPTIONS = {
    "ir": {"pestle_ref_evaluate_node"},
    "ir_ref": {"pestle_context_custom_call"},
    "codegen_nest": {"pestle_template_at", "pestle_nest_broken",
                     "pestle_nest_verify_loops"},
    "codegen_sketch": {"pestle_template_at"},
}


def symbols(archive):
    """(undefined, defined) names of an archive's pestle_ symbols."""
    text = subprocess.run(["nm", str(archive)], capture_output=True, text=True,
                          check=True).stdout  # fmt: skip
    undefined, defined = set(), set()
    for line in text.splitlines():
        fields = line.split()
        if len(fields) < 2 or not fields[-1].startswith("pestle_"):
            continue
        (undefined if fields[-2] == "U" else defined).add(fields[-1])
    return undefined, defined


def main():
    build = pathlib.Path(sys.argv[1])
    found = {p.stem.removeprefix("libpestle_"): symbols(p)
             for folder in ("base", "ir", "frontend", "transform", "passes",
                            "codegen",
                            "compile", "runtime", "lazy", "session",
                            "plugins/ref")
             for p in (build / folder).rglob("libpestle_*.a")}  # fmt: skip
    problems = 0
    for name, rows in STANDS_ON.items():
        if name not in found:
            if "compile" in found:
                print(f"there is no libpestle_{name}.a")
                problems += 1
            continue  # a build without the compiler
        undefined, there = found[name]
        there = there.union(*(found[r][1] for r in rows if r in found))
        for symbol in sorted(undefined - there - EXCEPTIONS.get(name, set())):
            print(f"libpestle_{name}.a calls {symbol}(), which is in none of "
                  f"{', '.join([name, *rows])}")  # fmt: skip
            problems += 1
    if "base" not in found:
        print(f"there are no archives in {build}")
        problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
