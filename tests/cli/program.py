# SPDX-License-Identifier: Apache-2.0
"""Programs of many ops in one function, run on llvm and ref: what tests of StableHLO
are made of."""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64",
         "int8": "i8", "uint32": "ui32", "bool": "i1",
         "complex64": "complex<f32>", "complex128": "complex<f64>"}
failures = []
ran = 0


def tensor(a):
    dims = "".join(f"{d}x" for d in a.shape)
    return f"tensor<{dims}{NAMES[str(a.dtype)]}>"


def run(text, inputs, device, *options):
    """Outputs, or the message."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "m.mlir").write_text(text)
        (folder / "out").mkdir()
        for i, a in enumerate(inputs):
            np.save(folder / f"input_{i}.npy", a)
        command = [PESTLE, "run", str(folder / "m.mlir"), "--device", device,
                   "--no-cache", "--outputs", str(folder / "out"), *options]
        if inputs:
            command += ["--inputs", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr
        count = len(list((folder / "out").glob("output_*.npy")))
        return [np.load(folder / "out" / f"output_{i}.npy") for i in range(count)]


def is_elsewhere(got):
    """Whether what run() gave is that the code is for a CPU which this machine is not."""
    return isinstance(got, str) and "INCOMPATIBLE" in got and "compile the model for this machine" in got


def multiplies_bytes():
    """Whether this CPU has products of bytes without saturation (VNNI)."""
    try:
        words = pathlib.Path("/proc/cpuinfo").read_text().split()
    except OSError:
        return False
    return "avx512_vnni" in words or "avx_vnni" in words


def explain(text, *options):
    """What pestle explain says."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.mlir"
        path.write_text(text)
        done = subprocess.run([PESTLE, "explain", path, *options], text=True, capture_output=True,
                              check=False)
        return done.stdout + done.stderr


def check(name, good, what=""):
    global ran
    ran += 1
    if not good:
        failures.append(f"{name}: {what}")


def close(got, want, rtol=2e-5):
    want = np.asarray(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    scale = 1 + np.abs(want.astype(np.complex128)).max() if want.size else 1
    return bool(np.all(np.abs(got.astype(np.complex128) - want) <= rtol * scale))


class Program:
    """Lines of one function, the results that they give and what is right of each."""

    def __init__(self, *inputs):
        self.inputs, self.lines, self.results, self.before = inputs, [], [], ""

    def add(self, line, *wants):
        """|line| has {r} for its results; a want is an array, or a pair of an array
        like it and a function of all the arrays of the line that says whether they
        are right."""
        n = len(self.lines)
        name = f"%r{n}" + (f":{len(wants)}" if len(wants) > 1 else "")
        self.lines.append(f"{name} = {line}" if wants else line)
        for i, want in enumerate(wants):
            self.results.append((n, i, len(wants), line, want))

    def text(self):
        arguments = ", ".join(f"%a{i}: {tensor(a)}" for i, a in enumerate(self.inputs))
        arrays = [w[0] if isinstance(w, tuple) else w for *_, w in self.results]
        types = ", ".join(tensor(np.asarray(a)) for a in arrays)
        values = ", ".join(f"%r{n}" + (f"#{i}" if of > 1 else "")
                           for n, i, of, *_ in self.results)
        body = "\n  ".join(self.lines)
        return (f"{self.before}\nfunc.func @main({arguments}) -> ({types}) {{\n  {body}\n"
                f"  return {values} : {types}\n}}\n")

    def run(self):
        for device in ("llvm", "ref"):
            out = run(self.text(), self.inputs, device)
            if isinstance(out, str):
                check("program", False, f"{device}: {out}")
                continue
            for (n, i, of, line, want), got in zip(self.results, out):
                group = [o for (m, *_), o in zip(self.results, out) if m == n]
                if isinstance(want, tuple):
                    good = got.shape == want[0].shape and want[1](*group)
                else:
                    good = close(got, np.asarray(want))
                check(line, good, f"{device}, result {i}: {got.ravel()[:6]}")


def t(*shape, dtype="f32"):
    return f"tensor<{''.join(f'{d}x' for d in shape)}{dtype}>"


def layouts(operands, results, batch):
    """As JAX writes them: matrices by columns, all else by rows."""
    def of(ranks):
        return ", ".join(
            f"dense<[{r - 2}, {r - 1}{''.join(f', {k}' for k in reversed(range(r - 2)))}]> : "
            f"tensor<{r}xindex>" if r > 1 and r - batch == 2 else f"dense<{list(range(r))[::-1]}> : "
            f"tensor<{r}xindex>" for r in ranks)
    return f"operand_layouts = [{of(operands)}], result_layouts = [{of(results)}]"


def call(name, operands, results, config=""):
    """By all of |operands|, pairs of a value and an array."""
    batch = max(operands[0][1].ndim - (1 if "gtsv" in name else 2), 0)
    ranks = layouts([a.ndim for _, a in operands], [a.ndim for a in results], batch)
    types = ", ".join(tensor(a) for _, a in operands)
    out = ", ".join(tensor(a) for a in results)
    alias = ("output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices "
             f"= [{'0' if len(results) > 1 else ''}], operand_index = 0, "
             "operand_tuple_indices = []>]")
    return (f"stablehlo.custom_call @{name}({', '.join(v for v, _ in operands)}) "
            f"{{mhlo.backend_config = {{{config}}}, {ranks}, {alias}}} : ({types}) -> ({out})")


def finish():
    """Says what failed, and ends the test."""
    for line in failures:
        print(line[:600])
    print(f"{ran} checks, {len(failures)} failures")
    sys.exit(bool(failures))
