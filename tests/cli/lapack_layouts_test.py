#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Custom calls of LAPACK's functions by any layouts: they read and write memory column by
column, so that a matrix said to lie row by row is another one to them. What they see is
made here with numpy, and given to the same call by its own layouts. (XLA's CPU backend
does the same: held against it when this was written.)"""
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}; tools/requirements.txt lists what is needed")
    sys.exit(77)

PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"
NAMES = {"float32": "f32", "int32": "i32"}


def tensor(shape, dtype):
    return f"tensor<{''.join(f'{d}x' for d in shape)}{NAMES[np.dtype(dtype).name]}>"


def layout(order):
    text = f"[{', '.join(map(str, order))}]" if len(order) != 1 else str(order[0])
    return f"dense<{text if order else ''}> : tensor<{len(order)}xindex>"


def own(rank, batch):
    """Fastest axis first, as LAPACK has it."""
    rest = list(range(rank - 2))[::-1] if rank - batch == 2 else []
    return [rank - 2, rank - 1] + rest if rank - batch == 2 else list(range(rank))[::-1]


def reread(x, as_it_lies, as_read):
    """The array that somebody has who reads the bytes of x in another order."""
    slow, other = as_it_lies[::-1], as_read[::-1]
    data = x.transpose(slow).ravel().reshape([x.shape[i] for i in other])
    return data.transpose(np.argsort(other)) if x.ndim else x


def text(name, config, inputs, outputs, layouts):
    arguments = [f"%a{i}" for i in range(len(inputs))]
    types = ", ".join(tensor(a.shape, a.dtype) for a in inputs)
    results = [tensor(*o) for o in outputs]
    values = [f"%0#{i}" for i in range(len(outputs))] if len(outputs) > 1 else ["%0"]
    count = f":{len(outputs)}" if len(outputs) > 1 else ""
    ins, outs = (", ".join(map(layout, side)) for side in layouts)
    joined = ", ".join(results)
    head = ", ".join(f"{a}: {tensor(x.shape, x.dtype)}" for a, x in zip(arguments, inputs))
    return (f"func.func @main({head}) -> ({joined}) {{\n  %0{count} = stablehlo.custom_call @{name}"
            f"({', '.join(arguments)}) {{mhlo.backend_config = {{{config}}}, "
            f"operand_layouts = [{ins}], result_layouts = [{outs}]}} : ({types}) -> "
            f"{joined if len(outputs) == 1 else f'({joined})'}\n"
            f"  return {', '.join(values)} : {joined}\n}}\n")


def run(module, inputs):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "m.mlir").write_text(module)
        for i, a in enumerate(inputs):
            np.save(f"{folder}/input_{i}.npy", np.ascontiguousarray(a))
        done = subprocess.run(
            [PESTLE, "run", f"{folder}/m.mlir", "--inputs", folder, "--outputs",
             f"{folder}/out", "--device", "ref", "--no-cache"], check=False,
            capture_output=True, text=True)
        if done.returncode:
            return done.returncode, done.stderr
        count = len(list(pathlib.Path(folder, "out").glob("*.npy")))
        return 0, [np.load(f"{folder}/out/output_{i}.npy") for i in range(count)]


def check(name, config, inputs, outputs, batch):
    mine = [[own(a.ndim, batch) for a in inputs], [own(len(s), batch) for s, _ in outputs]]
    rows = [[list(range(a.ndim))[::-1] for a in inputs],
            [list(range(len(s)))[::-1] for s, _ in outputs]]
    for ins, outs in itertools.product((0, 1), repeat=2):
        layouts = [(mine, rows)[ins][0], (mine, rows)[outs][1]]
        code, got = run(text(name, config, inputs, outputs, layouts), inputs)
        assert code == 0, got
        seen = [reread(a, lies, own(a.ndim, batch)) for a, lies in zip(inputs, layouts[0])]
        code, wanted = run(text(name, config, inputs, outputs, mine), seen)
        assert code == 0, wanted
        for i, (g, w, lies) in enumerate(zip(got, wanted, layouts[1])):
            w = reread(w, own(w.ndim, batch), lies)
            assert np.allclose(g, w, 1e-5, 1e-5), (name, layouts, i, g, w)


def main():
    rng = np.random.default_rng(3)
    f, i = np.float32, np.int32
    draw = lambda *shape: rng.standard_normal(shape).astype(f)
    for shape in ((3, 3), (4, 3), (2, 3, 4)):
        batch, k = len(shape) - 2, min(shape[-2:])
        lead = shape[:batch]
        check("lapack_sgetrf_ffi", "", [draw(*shape)],
              [(shape, f), (lead + (k,), i), (lead, i)], batch)
        check("lapack_sgeqrf_ffi", "", [draw(*shape)], [(shape, f), (lead + (k,), f)], batch)
    a = draw(4, 4)
    check("lapack_spotrf_ffi", "uplo = 76 : ui8", [a @ a.T + 4 * np.eye(4, dtype=f)],
          [((4, 4), f), ((), i)], 0)
    check("lapack_strsm_ffi", "side = 76 : ui8, uplo = 85 : ui8, trans_x = 84 : ui8, "
          "diag = 78 : ui8", [a + 4 * np.eye(4, dtype=f), draw(4, 3)], [((4, 3), f)], 0)
    # LAPACK leaves the other triangle as it was.
    square = a @ a.T + 4 * np.eye(4, dtype=f)
    square[0, 3] = 77
    _, (factor, _) = run(text("lapack_spotrf_ffi", "uplo = 76 : ui8", [square],
                              [((4, 4), f), ((), i)], [[[0, 1]], [[0, 1], []]]), [square])
    assert factor[0, 3] == 77 and factor[3, 0] != square[3, 0], factor
    # What is no order of the axes is refused, whichever function it is.
    for name in ("lapack_sgeqrf_ffi", "cusolver_geqrf_ffi"):
        for bad in ([0, 0], [0, 2], [1], [-1, 0], [0, 1, 2]):
            code, message = run(text(name, "", [a], [((4, 4), f), ((4,), f)],
                                     [[bad], [[0, 1], [0]]]), [a])
            assert code == 4 and "must name each axis" in message, (bad, code, message)
    print("all lie as they are said to")


if __name__ == "__main__":
    main()
