#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of jax.numpy.linalg, jax.scipy.linalg and jax.lax.linalg as jax.export writes
them for CPU, CUDA and TPU, real and complex, as text and as bytecode: what the command
makes of them is what numpy and scipy say. Vectors, which are free in sign or phase, are
judged by what they reconstruct. What JAX itself does not export for a platform is left
out. Needs jax and scipy.

usage: run_jax_linalg.py [--build DIR] [--device NAME] [--keep DIR] [FUNCTION ...]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jax.scipy.linalg as jsl  # noqa: E402
import numpy as np  # noqa: E402
import scipy.linalg as sl  # noqa: E402
from jax import export  # noqa: E402
from jax.lax import linalg as lax  # noqa: E402

L = jnp.linalg
SQUARE, TALL, WIDE, TWO, VECTOR = (5, 5), (6, 4), (3, 5), (5, 2), (5,)
BATCH, LONG = (2, 3, 4, 4), (3, 1100)


def hermitian(x):
    return (x + x.conj().swapaxes(-1, -2)) / 2


def definite(x):
    return x @ x.conj().swapaxes(-1, -2) + 5 * np.eye(x.shape[-1])


def near(x, y, bound=2e-4):
    if x.shape != y.shape:
        return False
    if not x.size:
        return True
    return bool(np.max(np.abs(x - y)) <= bound * (1 + np.max(np.abs(y))))


def adjoint(x):
    return x.conj().swapaxes(-1, -2)


def same(want):
    """The results are those of |want|(arguments)."""
    def judge(args, out):
        expected = want(*args)
        if not isinstance(expected, (tuple, list)):
            expected = [expected]
        return len(expected) == len(out) and all(
            near(o, np.asarray(e)) for o, e in zip(out, expected))
    return judge


def eig(args, out):
    w, v = out
    return near(args[0] @ v, v * w[..., None, :]) and near(
        np.linalg.norm(v, axis=-2), np.ones(w.shape))


def eig_both(args, out):
    w, vl, vr = out
    a = args[0]
    return near(a @ vr, vr * w[..., None, :]) and near(
        adjoint(vl) @ a, w[..., :, None] * adjoint(vl))


def eigvals(args, out):
    w = out[0]
    k = range(1, 4)
    powers = [np.trace(np.linalg.matrix_power(args[0], i), axis1=-2, axis2=-1) for i in k]
    return all(near(np.sum(w**i, -1), p, 1e-3) for i, p in zip(k, powers))


def eigh(args, out):
    w, v = out
    return near((v * w[..., None, :]) @ adjoint(v), args[0]) and near(
        adjoint(v) @ v, np.broadcast_to(np.eye(v.shape[-1]), v.shape))


def svd(args, out):
    u, s, vh = out
    k = s.shape[-1]
    whole = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
    return (near(whole, args[0]) and near(s, np.linalg.svd(args[0], compute_uv=False))
            and near(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]),
                                                     u.shape[:-2] + (u.shape[-1],) * 2))
            and near(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]),
                                                       vh.shape[:-2] + (vh.shape[-2],) * 2)))


def qr(args, out):
    q, r = out[:2]
    a = args[0]
    if len(out) == 3:
        a = np.take_along_axis(a, out[2][..., None, :].astype(np.int64), axis=-1)
        d = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
        if (np.diff(d) > 1e-5 * d[..., :1]).any():
            return False
    return near(q @ r, a) and near(np.tril(r, -1), 0 * r) and near(
        adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), q.shape[:-2] + (q.shape[-1],) * 2))


def schur(args, out):
    t, z = out
    below = np.diagonal(t, -1, axis1=-2, axis2=-1)
    pairs = not (np.abs(below[..., :-1] * below[..., 1:]) > 0).any()
    if np.iscomplexobj(t):
        pairs = near(np.tril(t, -1), 0 * t, 1e-6)
    elif pairs:
        for i in range(t.shape[-1] - 1):
            if t[i + 1, i]:
                pairs &= t[i, i] == t[i + 1, i + 1] and t[i + 1, i] * t[i, i + 1] < 0
    return (pairs and near(np.tril(t, -2), 0 * t, 1e-6) and near(z @ t @ adjoint(z), args[0])
            and near(z @ adjoint(z), np.eye(z.shape[-1])))


def rebuilt(args, out):
    """(h, q): args[0] = q h q^H, h nearly triangular."""
    h, q = out
    return (near(q @ h @ adjoint(q), args[0]) and near(np.tril(h, -2), 0 * h)
            and near(q @ adjoint(q), np.eye(q.shape[-1])))


def tridiagonal(lower):
    def judge(args, out):
        a, d, e, tau = out
        n = d.shape[-1]
        q = np.eye(n, dtype=a.dtype)
        for i in range(n - 1):
            v = np.zeros(n, a.dtype)
            if lower:
                v[i + 1] = 1
                v[i + 2:] = a[i + 2:, i]
            else:
                v[i] = 1
                v[:i] = a[:i, i + 1]
            h = np.eye(n) - tau[i] * np.outer(v, v.conj())
            q = q @ h if lower else h @ q
        t = np.diag(d) + np.diag(e, -1) + np.diag(e, 1)
        return near(q @ t @ adjoint(q), args[0])
    return judge


def sqrtm(args, out):
    return near(out[0] @ out[0], args[0], 1e-3)


def polar(args, out):
    u, p = out
    return near(u @ p, args[0]) and near(adjoint(u) @ u, np.eye(u.shape[-1])) and near(
        p, adjoint(p))


def solves_tridiagonal(args, out):
    dl, d, du, b = args
    a = np.diag(d) + np.diag(dl[1:], -1) + np.diag(du[:-1], 1)
    return near(a @ out[0], b, 1e-3)


def updated(args, out):
    r, w = args
    return near(adjoint(out[0]) @ out[0], adjoint(r) @ r + np.outer(w, w)) and near(
        np.tril(out[0], -1), 0 * r)


def householder(args, out):
    q = np.eye(args[0].shape[0], dtype=args[0].dtype)
    for i, tau in enumerate(args[1]):
        v = np.zeros(len(q), args[0].dtype)
        v[i] = 1
        v[i + 1:] = args[0][i + 1:, i]
        q = q @ (np.eye(len(q)) - tau * np.outer(v, v.conj()))
    return near(out[0], q[:, :args[0].shape[1]])


def multiplied(left, transpose):
    def judge(args, out):
        a, tau, c = args
        q = np.eye(a.shape[0], dtype=a.dtype)
        for i, t in enumerate(tau):
            v = np.zeros(len(q), a.dtype)
            v[i] = 1
            v[i + 1:] = a[i + 1:, i]
            q = q @ (np.eye(len(q)) - t * np.outer(v, v.conj()))
        q = adjoint(q) if transpose else q
        return near(out[0], q @ c if left else c @ q)
    return judge


def first(transform):
    """Arguments of which the first is made of what was drawn."""
    return lambda *args: (transform(args[0]), *args[1:])


def cholesky_of(x):
    return np.linalg.cholesky(definite(x))


UPPER = first(lambda x: cholesky_of(x).conj().T.copy())
# name: (function, shapes, judge, what the arguments are made of, kinds)
CASES = {
    "cholesky": (L.cholesky, [SQUARE], same(np.linalg.cholesky), first(definite)),
    "cholesky_upper": (lambda a: jsl.cholesky(a, lower=False), [SQUARE],
                       same(lambda a: sl.cholesky(a, lower=False)), first(definite)),
    "cond": (L.cond, [SQUARE], same(np.linalg.cond)),
    "det": (L.det, [SQUARE], same(np.linalg.det)),
    "det_batch": (L.det, [BATCH], same(np.linalg.det)),
    "eig": (L.eig, [SQUARE], eig),
    "eig_batch": (L.eig, [BATCH], eig),
    "eig_both": (lambda a: lax.eig(a), [SQUARE], eig_both),
    "eigvals": (L.eigvals, [SQUARE], eigvals),
    "eigh": (L.eigh, [SQUARE], eigh, first(hermitian)),
    "eigh_batch": (L.eigh, [BATCH], eigh, first(hermitian)),
    "eigvalsh": (L.eigvalsh, [SQUARE], same(np.linalg.eigvalsh), first(hermitian)),
    "inv": (L.inv, [SQUARE], same(np.linalg.inv)),
    "inv_batch": (L.inv, [BATCH], same(np.linalg.inv)),
    "lstsq": (lambda a, b: L.lstsq(a, b)[0], [SQUARE, TWO], same(np.linalg.solve)),
    "matrix_norm": (L.matrix_norm, [TALL], same(np.linalg.norm)),
    "matrix_power": (lambda a: L.matrix_power(a, -3), [SQUARE],
                     same(lambda a: np.linalg.matrix_power(np.linalg.inv(a), 3))),
    "matrix_rank": (L.matrix_rank, [SQUARE], same(np.linalg.matrix_rank)),
    "multi_dot": (lambda a, b: L.multi_dot([a, a, b]), [SQUARE, TWO],
                  same(lambda a, b: a @ a @ b)),
    "norm2": (lambda a: L.norm(a, 2), [SQUARE], same(lambda a: np.linalg.norm(a, 2))),
    "nuc": (lambda a: L.norm(a, "nuc"), [SQUARE], same(lambda a: np.linalg.norm(a, "nuc"))),
    "pinv": (L.pinv, [TALL], same(np.linalg.pinv)),
    "qr": (L.qr, [TALL], qr),
    "qr_batch": (L.qr, [BATCH], qr),
    "qr_complete": (lambda a: L.qr(a, "complete"), [TALL], qr),
    "qr_wide": (L.qr, [WIDE], qr),
    "qr_pivoted": (lambda a: jsl.qr(a, pivoting=True, mode="economic"), [TALL], qr),
    "qr_pivoted_wide": (lambda a: jsl.qr(a, pivoting=True), [WIDE], qr),
    "qr_multiply": (lambda a, c: jsl.qr_multiply(a, c)[0], [SQUARE, SQUARE],
                    lambda args, out: near(np.abs(np.linalg.det(out[0])),
                                           np.abs(np.linalg.det(args[1])), 1e-3)),
    "slogdet": (L.slogdet, [SQUARE], same(np.linalg.slogdet)),
    "solve": (L.solve, [SQUARE, TWO], same(np.linalg.solve)),
    "svd": (lambda a: L.svd(a, full_matrices=False), [TALL], svd),
    "svd_full": (L.svd, [WIDE], svd),
    "svd_batch": (L.svd, [BATCH], svd),
    "svd_long": (lambda a: L.svd(a, full_matrices=False), [LONG], svd),
    "svd_polar": (lambda a: lax.svd(a, full_matrices=False, algorithm=lax.SvdAlgorithm.POLAR),
                  [TALL], svd),
    "svdvals": (L.svdvals, [TALL], same(lambda a: np.linalg.svd(a, compute_uv=False))),
    "tensorinv": (lambda a: L.tensorinv(a.reshape(5, 1, 5), 1), [SQUARE],
                  same(lambda a: np.linalg.inv(a.reshape(5, 5)).reshape(1, 5, 5)
                       if False else np.linalg.tensorinv(a.reshape(5, 1, 5), 1))),
    "tensorsolve": (L.tensorsolve, [SQUARE, VECTOR], same(np.linalg.solve)),
    "cho_solve": (lambda a, b: jsl.cho_solve((a, True), b), [SQUARE, TWO],
                  same(lambda a, b: np.linalg.solve(a @ adjoint(a), b)), first(cholesky_of)),
    "lu": (jsl.lu, [SQUARE], same(sl.lu)),
    "lu_solve": (lambda a, b: jsl.lu_solve(jsl.lu_factor(a), b), [SQUARE, TWO],
                 same(np.linalg.solve)),
    "expm": (jsl.expm, [SQUARE], same(sl.expm)),
    "expm_frechet": (lambda a, e: jsl.expm_frechet(a, e)[1], [SQUARE, SQUARE],
                     same(lambda a, e: sl.expm_frechet(a, e)[1])),
    "funm": (lambda a: jsl.funm(a, jnp.exp)[0] if False else jsl.funm(a, jnp.exp), [SQUARE],
             lambda args, out: near(out[0], sl.expm(args[0]), 5e-3)),
    "schur": (jsl.schur, [SQUARE], schur),
    "schur_complex": (lambda a: jsl.schur(a, output="complex"), [SQUARE], schur),
    "rsf2csf": (lambda a: jsl.rsf2csf(*jsl.schur(a)), [SQUARE], schur),
    "hessenberg": (lambda a: jsl.hessenberg(a, calc_q=True), [SQUARE], rebuilt),
    "sqrtm": (jsl.sqrtm, [SQUARE], sqrtm),
    "polar": (jsl.polar, [SQUARE], polar),
    "polar_svd": (lambda a: jsl.polar(a, method="svd"), [SQUARE], polar),
    "solve_triangular": (lambda a, b: jsl.solve_triangular(a, b, lower=True), [SQUARE, TWO],
                         same(lambda a, b: sl.solve_triangular(a, b, lower=True)),
                         first(cholesky_of)),
    "solve_sylvester": (lambda a, b, q: jsl.solve_sylvester(a, b, q), [SQUARE, SQUARE, SQUARE],
                        lambda args, out: near(args[0] @ out[0] + out[0] @ args[1], args[2],
                                               1e-3)),
    "eigh_tridiagonal": (lambda d, e: jsl.eigh_tridiagonal(d, e[:4], eigvals_only=True),
                         [VECTOR, VECTOR],
                         same(lambda d, e: np.linalg.eigvalsh(
                             np.diag(d) + np.diag(e[:4], 1) + np.diag(e[:4].conj(), -1)))),
    "tridiagonal": (lambda a: lax.tridiagonal(a), [SQUARE], tridiagonal(True), first(hermitian)),
    "tridiagonal_upper": (lambda a: lax.tridiagonal(a, lower=False), [SQUARE],
                          tridiagonal(False), first(hermitian)),
    "tridiagonal_solve": (lax.tridiagonal_solve, [VECTOR, VECTOR, VECTOR, TWO],
                          solves_tridiagonal),
    "tridiagonal_perturbed": (
        lambda *a: lax.tridiagonal_solve(*a, perturb_singular=True),
        [VECTOR, VECTOR, VECTOR, TWO], solves_tridiagonal),
    "cholesky_update": (lax.cholesky_update, [SQUARE, VECTOR], updated, UPPER),
    "householder_product": (lax.householder_product, [TALL, (4,)], householder),
    "ormqr": (lambda a, t, c: lax.ormqr(a, t, c), [TALL, (4,), (6, 3)],
              multiplied(True, False)),
    "ormqr_transposed": (lambda a, t, c: lax.ormqr(a, t, c, transpose=True),
                         [TALL, (4,), (6, 3)], multiplied(True, True)),
    "ormqr_right": (lambda a, t, c: lax.ormqr(a, t, c, left=False), [TALL, (4,), (3, 6)],
                    multiplied(False, False)),
    "ormqr_right_transposed": (lambda a, t, c: lax.ormqr(a, t, c, left=False, transpose=True),
                               [TALL, (4,), (3, 6)], multiplied(False, True)),
    "symmetric_product": (lambda a, c: lax.symmetric_product(a, c, alpha=2., beta=3.),
                          [TALL, (6, 6)],
                          lambda args, out: near(np.tril(out[0]),
                                                 np.tril(2 * args[0] @ args[0].T + 3 * args[1]))),
    "symmetric_product_batch": (
        lambda a, c: lax.symmetric_product(a, c), [BATCH, BATCH],
        lambda args, out: near(np.tril(out[0]),
                               np.tril(args[0] @ args[0].swapaxes(-1, -2)))),
    "top_k": (lambda x: jax.lax.top_k(x, 2), [SQUARE],
              lambda args, out: near(out[0], -np.sort(-args[0], -1)[..., :2])),
    "approx_top_k": (lambda x: jax.lax.approx_max_k(x, 2), [SQUARE],
                     lambda args, out: near(out[0], -np.sort(-args[0], -1)[..., :2])),
    "random": (lambda x: x + jax.random.uniform(jax.random.key(3), x.shape, jnp.float32),
               [SQUARE], lambda args, out: near(
                   out[0], args[0] + np.asarray(
                       jax.random.uniform(jax.random.key(3), SQUARE, jnp.float32)))),
}
ALL = [export.DisabledSafetyCheck.custom_call("ALL")]


def arguments(case, kind, seed):
    rng = np.random.default_rng(seed)
    out = []
    for shape in case[1]:
        x = rng.standard_normal(shape)
        if kind == np.complex64:
            x = x + 1j * rng.standard_normal(shape)
        out.append(x)
    if len(case) > 3:
        out = case[3](*out)
    return [np.ascontiguousarray(x.astype(kind)) for x in out]


def run(args, path, inputs, options):
    with tempfile.TemporaryDirectory() as folder:
        for i, a in enumerate(inputs):
            np.save(f"{folder}/input_{i}.npy", a)
        done = subprocess.run(
            [f"{options.build}/pestle", "run", path, "--device", options.device, "--no-cache",
             "--outputs", f"{folder}/o", "--inputs", folder],
            capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            return done.stderr.strip()
        files = sorted(pathlib.Path(folder, "o").glob("output_*.npy"),
                       key=lambda p: int(p.stem.split("_")[1]))
        return [np.load(f) for f in files]


def exported(function, kind, platform, shapes):
    avals = [jax.ShapeDtypeStruct(s, kind) for s in shapes]
    return export.export(jax.jit(function), platforms=[platform], disabled_checks=ALL)(*avals)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default=os.environ.get("PESTLE_BUILD_DIR", "build/release"))
    parser.add_argument("--device", default="llvm")
    parser.add_argument("--keep", help="a folder for what is exported")
    parser.add_argument("functions", nargs="*")
    options = parser.parse_args()
    keep = pathlib.Path(options.keep or tempfile.mkdtemp())
    keep.mkdir(exist_ok=True, parents=True)
    ran, left_out, failures, targets = 0, 0, [], set()
    for seed, (name, case) in enumerate(CASES.items()):
        if options.functions and name not in options.functions:
            continue
        for platform in ("cpu", "cuda", "tpu"):
            for kind in (np.float32, np.complex64):
                what = f"{name} {platform} {np.dtype(kind).name}"
                try:
                    module = exported(case[0], kind, platform, case[1])
                except Exception as error:  # JAX has no such function there
                    left_out += 1
                    if options.functions:
                        print(f"left out: {what}: {str(error).splitlines()[0][:100]}")
                    continue
                inputs = arguments(case, kind, seed)
                text = module.mlir_module()
                targets |= {w.split("(")[0] for w in text.split("custom_call @")[1:]}
                stem = keep / what.replace(" ", ".")
                stem.with_suffix(stem.suffix + ".mlir").write_text(text)
                stem.with_suffix(stem.suffix + ".mlirbc").write_bytes(
                    module.mlir_module_serialized)
                for form in (".mlir", ".mlirbc"):
                    out = run(case, f"{stem}{form}", inputs, options)
                    ran += 1
                    if isinstance(out, str):
                        failures.append(f"{what}{form}: {out}")
                        continue
                    wide = [np.asarray(a, np.complex128 if np.iscomplexobj(a) else np.float64)
                            for a in inputs]
                    if not case[2](wide, out):
                        failures.append(f"{what}{form}: another value")
    print("\n".join(failures))
    print(f"{len(targets)} targets: {' '.join(sorted(targets))}")
    print(f"{ran} runs, {len(failures)} failures; JAX itself exports {left_out} not")
    return 1 if failures or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
