#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes each single-op program of tests/models/run_stablehlo_vs_jax.py as bytecode
of several versions of StableHLO and of its own, and checks that all have the
signature of the text. Needs jax.

usage: run_versions.py [--every N] [VERSION ...]
"""

import argparse
import collections
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))
import run_stablehlo_vs_jax as single  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jaxlib.mlir import ir  # noqa: E402
from jaxlib.mlir.dialects import stablehlo  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
VERSIONS = ["0.9.0", "0.12.0", "0.14.0", "0.19.0", "1.0.0", "1.4.0", "1.9.3",
            "1.13.7", "1.17.0"]  # fmt: skip


@contextlib.contextmanager
def quiet():
    """What MLIR says of forms that an old version has not is no news."""
    saved, null = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(null)


def write_all(text, stem, versions):
    """The files of one program, its text first."""
    files = [stem.with_suffix(".mlir")]
    files[0].write_text(text)
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        own = io.BytesIO()
        module.operation.write_bytecode(own)
        files.append(stem.with_suffix(".own.bc"))
        files[-1].write_bytes(own.getvalue())
        for version in versions:
            try:
                data = stablehlo.serialize_portable_artifact(module, version,
                                                             True)  # fmt: skip
            except Exception:
                continue
            files.append(stem.with_suffix(f".{version}.bc"))
            files[-1].write_bytes(data)
    return files


def signatures(files):
    out = subprocess.run([BUILD / "tests/bin/pestle_signatures", *files],
                         capture_output=True, text=True).stdout  # fmt: skip
    return out.splitlines()


def check(files):
    """What is wrong with the programs whose files these are."""
    problems, text = [], None
    for path, line in zip(files, signatures(files), strict=True):
        if path.suffix == ".mlir":
            text = line.split()[0]
            if text == "ERROR":
                problems.append(line)
        elif line.split()[0] != text:
            problems.append(f"{path.name}: {line}")
    return problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("versions", nargs="*")
    options = parser.parse_args()
    programs = list(single.programs(collections.Counter()))[:: options.every]
    problems, count, refused = [], 0, 0
    with tempfile.TemporaryDirectory() as folder, quiet():
        for first in range(0, len(programs), 200):
            files = []
            for i, program in enumerate(programs[first : first + 200]):
                stem = pathlib.Path(folder) / f"p{first + i}"
                try:
                    files += write_all(program.text(), stem,
                                       options.versions or VERSIONS)  # fmt: skip
                except ir.MLIRError:
                    refused += 1
            count += len(files)
            problems += check(files)
            for path in files:
                path.unlink()
    for problem in problems[:100]:
        print(problem)
    print(f"{len(programs)} programs, {refused} that MLIR refuses, {count} files, "
          f"{len(problems)} problems")  # fmt: skip
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
