#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Linear algebra against what it is defined by and against numpy: values within
roundings of the matrix's size, vectors by what they reconstruct, stand upright
on and by their sign. By kernels, and by LAPACK where libpestle-lapack has one."""
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

build = os.environ["PESTLE_BUILD_DIR"]
devices = os.environ.get("PESTLE_LINALG_DEVICES", "llvm,ref").split(",")
backends = os.environ.get("PESTLE_BACKEND_PATH", f"{build}/backends")
plain = tempfile.TemporaryDirectory()  # all backends but lapack
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32"}
failures = []
ran = 0


def tensor(a):
    dims = "".join(f"{d}x" for d in a.shape)
    return f"tensor<{dims}{NAMES[str(a.dtype)]}>"


for folder in backends.split(":"):
    for file in pathlib.Path(folder).glob("libpestle-*"):
        if "lapack" not in file.name:
            (pathlib.Path(plain.name) / file.name).symlink_to(file)


def command(arguments, lapack):
    """Runs the command with or without the library."""
    environment = dict(os.environ)
    environment["PESTLE_BACKEND_PATH"] = backends if lapack else plain.name
    return subprocess.run([f"{build}/pestle"] + arguments,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, env=environment)


def results(op, a, flag):
    """Empty arrays of the shapes of the results."""
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    full = flag and op != "eigh"
    if op in ("cholesky", "inverse", "triangular_solve", "solve"):
        return [np.empty(a.shape, a.dtype)]
    if op == "lu":
        return [np.empty(a.shape, a.dtype), np.empty(batch + (k,), np.int32),
                np.empty(batch + (m,), np.int32)]
    shapes = {
        "qr": [(m, m if full else k), (m if full else k, n)],
        "eigh": [(n,), (n, n)],
        "svd": [(m, m if full else k), (k,), (n if full else k, n)],
    }[op]
    return [np.empty(batch + s, a.dtype) for s in shapes]


def attributes(op, flag):
    word = "true" if flag else "false"
    if op == "triangular_solve":
        turned_ = "TRANSPOSE" if flag else "NO_TRANSPOSE"
        return (f" <{{left_side = {word}, lower = true, unit_diagonal = false,"
                f" transpose_a = #stablehlo<transpose {turned_}>}}>")
    if op in ("lu", "solve", "inverse"):
        return ""
    key = "lower" if op in ("eigh", "cholesky") else "full"
    return f" <{{{key} = {word}}}>"


def run(op, a, flag, device, lapack):
    types = [tensor(y) for y in results(op, a, flag)]
    two = op in ("solve", "triangular_solve")  # b is a itself, upside down
    name = ("stablehlo." if op in ("cholesky", "triangular_solve")
            else "pestle.") + op
    b = np.ascontiguousarray(a[..., ::-1, :])
    operands = "%x, %b" if two else "%x"
    given = f"{tensor(a)}, {tensor(a)}" if two else tensor(a)
    arguments = (f"%x: {tensor(a)}, %b: {tensor(a)}" if two
                 else f"%x: {tensor(a)}")
    names = ", ".join(f"%y#{i}" for i in range(len(types)))
    joined = ", ".join(types)
    text = (f"func.func public @main({arguments}) -> ({joined}) {{\n"
            f'  %y:{len(types)} = "{name}"({operands}){attributes(op, flag)} '
            f": ({given}) -> ({joined})\n"
            f"  return {names} : {joined}\n}}\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        (path / "m.mlir").write_text(text, encoding="utf-8")
        np.save(path / "x.npy", a)
        np.save(path / "b.npy", b)
        more = ["--input", f"b={path}/b.npy"] if two else []
        done = command(
            ["run", f"{path}/m.mlir", "--device", device, "--input",
             f"x={path}/x.npy", "--outputs", f"{path}/out", "--no-cache"] +
            more, lapack)
        if done.returncode:
            return done.stdout
        return [np.load(path / "out" / f"output_{i}.npy")
                for i in range(len(types))]


def turned(x):
    return np.swapaxes(x, -1, -2)


def off(x, y):
    """The largest difference; 0 for nothing, NaN where only one is NaN."""
    if x.size == 0:
        return 0.0
    return float(np.max(np.abs(x - y)))


def signed(columns):
    """Whether the leading component of each column is not negative."""
    size = np.abs(columns)
    if size.size == 0:
        return True
    large = size >= 0.75 * size.max(axis=-2, keepdims=True)
    first = np.argmax(large, axis=-2)[..., None, :]
    return bool(np.all(np.take_along_axis(columns, first, axis=-2) >= 0))


def upright(q):
    return off(turned(q) @ q, np.eye(q.shape[-1]))


def eliminated(a):
    """lu of one matrix and the order of its rows, operation by operation."""
    a = a.copy()
    order = np.arange(len(a))
    for k in range(len(a)):
        at = k
        for i in range(k + 1, len(a)):
            if abs(a[i, k]) > abs(a[at, k]):
                at = i
        a[[k, at]], order[[k, at]] = a[[at, k]], order[[at, k]]
        for i in range(k + 1, len(a)):
            if a[k, k] != 0:
                a[i, k] /= a[k, k]
            a[i, k + 1:] -= a[i, k] * a[k, k + 1:]
    return a, order


def substituted(a, b, lower, unit):
    """x of a x = b, of which a half of a is read."""
    x = b.copy()
    n = len(a)
    done = []
    for i in range(n) if lower else range(n - 1, -1, -1):
        for k in done:
            x[i] -= a[i, k] * x[k]
        if not unit:
            x[i] /= a[i, i]
        done.append(i)
    return x


def factored(a):
    """cholesky's lower triangle: NaN from the first pivot on that is not
    positive."""
    y = np.zeros_like(a)
    for k in range(len(a)):
        for i in range(k, len(a)):
            total = a[i, k]
            for j in range(k):
                total -= y[i, j] * y[k, j]
            if i == k:
                y[i, k] = np.sqrt(total) if total > 0 else np.nan
            else:
                y[i, k] = total / y[k, k]
    return y


def defined(op, a, flag):
    """What IEEE arithmetic gives in the order in which docs/ops.md has it."""
    b = a[::-1, :]
    with np.errstate(all="ignore"):
        if op == "cholesky":
            return factored(a) if flag else factored(a.T).T
        if op == "triangular_solve":
            if flag:
                return substituted(a.T, b, False, False)
            return substituted(a.T, b.T, False, False).T
        lu, order = eliminated(a)
        if op == "lu":
            return lu
        if op == "inverse":
            b = np.eye(len(a), dtype=a.dtype)
        x = substituted(lu, b[order], True, True)
        return substituted(lu, x, False, False)


def judge_strange(op, a, flag, out):
    """Matrices whose arithmetic is exact until it is not finite: numbers,
    infinities and NaN are where defined() has them."""
    want = defined(op, a, flag)
    if np.array_equal(out[0], want, equal_nan=True):
        return []
    return [f"gives\n{out[0]}\nnot\n{want}"]


def judge_product(op, a, flag, out):
    """The ops whose result is judged by a product; the matrix is sound."""
    x = a.astype(np.float64)
    y = out[0].astype(np.float64)
    n = x.shape[-1]
    eps = np.finfo(a.dtype).eps
    b = x[..., ::-1, :]
    if op == "lu":
        m, k = x.shape[-2], min(x.shape[-2:])
        lower = np.tril(y, -1)[..., :, :k] + np.eye(m, k)
        want = np.take_along_axis(x, out[2][..., :, None].astype(np.int64),
                                  axis=-2)
        error = off(lower @ np.triu(y)[..., :k, :], want)
        order = np.broadcast_to(np.arange(m), out[2].shape).copy()
        for index in np.ndindex(*out[2].shape[:-1]):
            for step, other in enumerate(out[1][index]):
                order[index][[step, other]] = order[index][[other, step]]
        if not np.array_equal(order, out[2]):
            return ["the order is not what the pivots make"]
        if (np.abs(lower) > 1 + 8 * eps).any():
            return ["a pivot is not the largest"]
        size = np.abs(want).max(initial=0)
        bound = 8 * n * eps * size
    elif op == "cholesky":
        error = off(y @ turned(y) if flag else turned(y) @ y, x)
        bound = 8 * n * eps * np.abs(x).max(initial=0)
        if off(np.triu(y, 1) if flag else np.tril(y, -1), 0):
            return ["the other half is not zero"]
    elif op == "triangular_solve":
        half = np.tril(x)
        error = off(turned(half) @ y if flag else y @ half, b)
        bound = 8 * n * eps * (1 + np.abs(y).max(initial=0)) * np.abs(
            x).max(initial=0)
    else:
        error = off(x @ y, b if op == "solve" else np.eye(n))
        bound = 16 * n * eps * (1 + np.abs(y).max(initial=0)) * max(
            1, np.abs(x).max(initial=0))
    return [] if error <= bound else [f"off by {error:.3g}, not {bound:.3g}"]


def judge(op, a, flag, out):
    """What is wrong, as a list of sentences."""
    wrong = []
    wide = [y.astype(np.float64) for y in out]
    x = a.astype(np.float64)
    n = max(a.shape[-2:])
    eps = np.finfo(a.dtype).eps
    if a.size and not np.isfinite(x).all():
        # Matrices that are not finite are NaN, others are not.
        for y in wide:
            bad = ~np.isfinite(x).all(axis=(-1, -2))
            nan = np.isnan(y).all(axis=tuple(range(bad.ndim, y.ndim)))
            some = np.isnan(y).any(axis=tuple(range(bad.ndim, y.ndim)))
            if not (np.array_equal(nan, bad) and np.array_equal(some, bad)):
                wrong.append("NaN is not where it should be")
        return wrong
    if op == "eigh":
        half = np.tril(x) if flag else np.triu(x)
        x = half + turned(half) - x * np.eye(n)
    size = float(np.max(np.linalg.norm(x, 2, axis=(-2, -1)))) if x.size else 1
    # Roundings of numbers as large as the matrix, and denormals for ever.
    least = 8 * n * eps * size + 4 * n * float(np.finfo(a.dtype).tiny)

    def check(what, error, bound):
        if not error <= bound:
            wrong.append(f"{what} is off by {error:.3g}, not {bound:.3g}")

    if op == "qr":
        q, r = wide
        check("q r", off(q @ r, x), least)
        check("q'q", upright(q), 8 * n * eps)
        check("below r's diagonal", off(np.tril(r, -1), 0), 0)
        if (np.diagonal(r, axis1=-2, axis2=-1) < 0).any():
            wrong.append("r has a negative diagonal")
    elif op == "eigh":
        w, v = wide
        check("v w v'", off((v * w[..., None, :]) @ turned(v), x), least)
        check("v'v", upright(v), 8 * n * eps)
        if x.size:
            check("w", off(w, np.linalg.eigvalsh(x)), least)
        if (np.diff(w) < 0).any():
            wrong.append("w does not ascend")
        if not signed(v):
            wrong.append("v has another sign")
    else:
        u, s, v = wide
        k = s.shape[-1]
        check("u s v", off((u[..., :k] * s[..., None, :]) @ v[..., :k, :], x),
              least)
        check("u'u", upright(u), 8 * n * eps)
        check("v v'", upright(turned(v)), 8 * n * eps)
        if x.size:
            check("s", off(s, np.linalg.svd(x, compute_uv=False)), least)
        if (np.diff(s) > 0).any() or (s < 0).any():
            wrong.append("s does not descend to 0")
        if not signed(u[..., :k]):
            wrong.append("u has another sign")
    return wrong


def matrices():
    """Name and matrix, square ones first."""
    rng = np.random.default_rng(6)
    even = rng.standard_normal((4, 4))
    yield "random 4", even
    yield "random 23", rng.standard_normal((23, 23))
    yield "batched 5", rng.standard_normal((2, 3, 5, 5))
    yield "one number", np.array([[-3.0]])
    yield "two", np.array([[0.0, 1.0], [1.0, 0.0]])
    yield "unit 6", np.eye(6)
    yield "zeros 3", np.zeros((3, 3))
    yield "0 x 0", np.zeros((0, 0))
    yield "no matrices", np.zeros((0, 3, 3))
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    yield "repeated", (basis * [1, 1, 1, 5, 5, -2, -2, -2]) @ basis.T
    yield "wide range", (basis * 10.0 ** np.arange(-6, 10, 2)) @ basis.T
    yield "rank 2", basis[:, :2] @ basis[:2, :]
    yield "large numbers", even * 1e37
    yield "small numbers", even * 1e-36
    bad = np.stack([even, even, even])
    bad[1, 2, 3] = bad[1, 3, 2] = np.nan
    bad[2, 0, 0] = np.inf
    yield "NaN and infinity", bad


def oblong():
    rng = np.random.default_rng(7)
    yield "tall", rng.standard_normal((9, 4))
    yield "wide", rng.standard_normal((3, 10))
    yield "column", rng.standard_normal((5, 1))
    yield "row", rng.standard_normal((1, 6))
    yield "batched tall", rng.standard_normal((3, 6, 5))
    yield "tall of rank 1", np.ones((6, 3))
    yield "3 x 0", np.zeros((3, 0))
    yield "0 x 4", np.zeros((0, 4))
    yield "columns of many sizes", (rng.standard_normal((7, 5)) *
                                    10.0 ** -np.arange(0, 10, 2))


def one(op, name, a, flag, device, lapack):
    global ran
    out = run(op, a, flag, device, lapack)
    what = (f"{op} {'full/lower/left ' if flag else ''}{name} {a.dtype} on "
            f"{device}{' by LAPACK' if lapack else ''}")
    if isinstance(out, str):
        wrong = [out]
    elif name.startswith("strange"):
        wrong = judge_strange(op, a, flag, out)
    elif op in ("qr", "eigh", "svd"):
        wrong = judge(op, a, flag, out)
    else:
        wrong = judge_product(op, a, flag, out)
    failures.extend(f"{what}: {w}" for w in wrong)
    ran += 1


def sound():
    """Matrices with a large diagonal, symmetric."""
    rng = np.random.default_rng(8)
    for name, shape in [("4", (4, 4)), ("20", (20, 20)), ("batched",
                                                          (3, 5, 5)),
                        ("1", (1, 1)), ("0 x 0", (0, 0))]:
        x = rng.standard_normal(shape)
        yield name, x + turned(x) + 4 * shape[-1] * np.eye(shape[-1])


def strange():
    """Matrices that LAPACK promises nothing of, with exact arithmetic."""
    yield "zeros", np.zeros((3, 3))
    yield "ones", np.ones((4, 4))
    yield "a zero pivot", np.diag([4.0, 0.0, 1.0])
    yield "indefinite", np.array([[4.0, 2, 2], [2, 1, 0], [2, 0, 8]])
    yield "negative", -np.eye(3)
    yield "infinite", np.diag([np.inf, 1.0, 2.0])
    yield "infinite beside", np.array([[4.0, 0, 2], [0, 1, np.inf],
                                       [2, np.inf, 9]])
    yield "NaN", np.array([[4.0, 2, 0], [2, np.nan, 0], [0, 0, 1]])
    wide = np.diag(np.arange(1.0, 101) ** 2)  # of more than one block
    wide[70, 70] = 0
    yield "a zero pivot late", wide


only = sys.argv[1:]


def factors(device, lapack):
    for index, (title, matrix) in enumerate(list(matrices()) + list(oblong())):
        square = matrix.shape[-1] == matrix.shape[-2]
        for operation in ["qr", "eigh", "svd"]:
            if only and operation not in only:
                continue
            if operation == "eigh" and not square:
                continue
            # Half of the cases in each dtype, a third with the flag, so that
            # each meets each.
            kinds = [np.float32, np.float64]
            if "numbers" not in title:
                kinds = [kinds[index % 2]]
            for kind in kinds:
                one(operation, title, matrix.astype(kind), index % 3 == 1,
                    device, lapack)


def products(device, lapack):
    cases = list(sound()) + [(f"strange: {t}", m) for t, m in strange()]
    for index, (title, matrix) in enumerate(cases):
        for number, operation in enumerate(
            ["lu", "cholesky", "triangular_solve", "solve", "inverse"]):
            if only and operation not in only:
                continue
            kind = [np.float32, np.float64][(index + number) % 2]
            for flag in [False, True][:1 + (operation in ("cholesky",
                                                         "triangular_solve"))]:
                one(operation, title, matrix.astype(kind), flag, device,
                    lapack)
    rng = np.random.default_rng(9)
    for shape in [(7, 4), (3, 6), (2, 5, 3)]:
        if not only or "lu" in only:
            one("lu", "oblong", rng.standard_normal(shape), False, device,
                lapack)


for at in devices:
    factors(at, False)
    products(at, False)
listed = command(["plugins", "--why"], True).stdout
if "libpestle-lapack" in listed and "used" in listed.split("lapack ", 1)[-1]:
    factors(devices[0], True)
    products(devices[0], True)
else:
    print("LAPACK is left out: libpestle-lapack finds no liblapack.so.3")
print("\n".join(failures))
print(f"{ran} cases, {len(failures)} failures")
sys.exit(1 if failures or not ran else 0)
