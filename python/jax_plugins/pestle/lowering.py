# SPDX-License-Identifier: Apache-2.0
"""Rules for primitives that JAX has for its own platforms alone, or that Pestle has an op
for: matrices in f32 and f64 go to ops of Pestle's, `custom_call @pestle.OP`; what it has
none for is computed by NumPy and SciPy on the host."""
import inspect
import logging

import numpy as np

from jax_plugins.pestle import callback, versions

logger = logging.getLogger(__name__)


def _is_real(aval):
    return aval.dtype in (np.float32, np.float64)


def _call(ctx, op, operands, result_avals, **attributes):
    """`custom_call @pestle.OP`, whose results are of |result_avals|."""
    mlir, ir = versions.mlir(), versions.ir()
    types = [mlir.aval_to_ir_type(ctx.module_context, a) for a in result_avals]
    config = {k: ir.BoolAttr.get(v) for k, v in attributes.items()}
    return list(mlir.custom_call("pestle." + op, result_types=types,
                                 operands=operands,
                                 backend_config=config).results)


def _on_host(ctx, function, operands):
    """The results of |function| of arrays, computed by NumPy."""
    results, _ = callback.emit_call(ctx, function, operands, ctx.avals_in,
                                    ctx.avals_out, has_side_effect=False)
    return results


def _batched(function, *arrays):
    """function() over the matrices of arrays, stacked."""
    batch = arrays[0].shape[:-2]
    if not batch:
        return function(*arrays)
    flat = [a.reshape((-1,) + a.shape[len(batch):]) for a in arrays]
    rows = [function(*parts) for parts in zip(*flat)]
    return [np.stack(r).reshape(batch + r[0].shape) for r in zip(*rows)]


def _host_rule(function):
    """A rule that gives |function|(params) -> (matrices -> results) to the host. Without
    matrices there is nothing to stack."""
    def rule(ctx, *operands, **params):
        avals = ctx.avals_out

        def run(*arrays):
            if not all(a.shape[:-2] == () or np.prod(a.shape[:-2])
                       for a in arrays[:1]):
                return [np.zeros(a.shape, a.dtype) for a in avals]
            results = _batched(function(params, *(a.dtype for a in arrays)),
                               *arrays)
            return [np.asarray(r, a.dtype) for r, a in zip(results, avals)]
        return _on_host(ctx, run, operands)
    return rule


# --- Ops of Pestle's ---


def _general(ctx, operand, name, **params):
    """JAX's own rule for any platform, by the function that it is made of: for matrices
    without elements."""
    function = versions.primitive("lax.linalg", name)
    return versions.mlir().lower_fun(function, multiple_results=True)(
        ctx, operand, **params)


def _lu(ctx, operand):
    if 0 in ctx.avals_in[0].shape:
        return _general(ctx, operand, "_lu_python")
    if not _is_real(ctx.avals_in[0]):
        return _host_rule(_host_lu)(ctx, operand)
    return _call(ctx, "lu", [operand], ctx.avals_out)


def _qr(ctx, operand, *, full_matrices, pivoting=False, **params):
    if 0 in ctx.avals_in[0].shape:
        return _general(ctx, operand, "_qr_lowering", pivoting=pivoting,
                        full_matrices=full_matrices, **params)
    if pivoting or not _is_real(ctx.avals_in[0]):
        return _host_rule(_host_qr)(ctx, operand, full_matrices=full_matrices,
                                    pivoting=pivoting)
    return _call(ctx, "qr", [operand], ctx.avals_out, full=full_matrices)


def _eigh(ctx, operand, *, lower, subset_by_index=None, **params):
    del params
    aval = ctx.avals_in[0]
    n = aval.shape[-1]
    if subset_by_index not in (None, (0, n)) or not _is_real(aval):
        return _host_rule(_host_eigh)(ctx, operand, lower=lower,
                                      subset_by_index=subset_by_index)
    vectors, values = ctx.avals_out
    w, v = _call(ctx, "eigh", [operand], [values, vectors], lower=lower)
    return [v, w]


def _svd(ctx, operand, *, full_matrices, compute_uv, subset_by_index=None,
         **params):
    del params
    aval = ctx.avals_in[0]
    m, n = aval.shape[-2:]
    k = min(m, n)
    if subset_by_index not in (None, (0, k)) or not _is_real(aval):
        return _host_rule(_host_svd)(ctx, operand, full_matrices=full_matrices,
                                     compute_uv=compute_uv,
                                     subset_by_index=subset_by_index)
    shaped, batch = versions.shaped_array(), aval.shape[:-2]
    full = full_matrices and compute_uv
    u = shaped(batch + (m, m if full else k), aval.dtype)
    vt = shaped(batch + (n if full else k, n), aval.dtype)
    u, s, vt = _call(ctx, "svd", [operand], [u, ctx.avals_out[0], vt],
                     full=full)
    return [s, u, vt] if compute_uv else [s]


def _nan_unless_definite(factor):
    """A factor whose diagonal is not positive is of no positive definite matrix: NaN."""
    import jax.numpy as jnp
    good = jnp.all(jnp.diagonal(factor, axis1=-2, axis2=-1) > 0, axis=-1)
    return jnp.where(good[..., None, None], factor, jnp.nan)


def _cholesky(ctx, operand, **params):
    if _is_real(ctx.avals_in[0]):
        factor = versions.primitive("lax.linalg", "_cholesky_lowering")(
            ctx, operand, **params)
        return versions.mlir().lower_fun(
            _nan_unless_definite, multiple_results=False)(
                ctx.replace(avals_in=ctx.avals_out), *factor)
    return _host_rule(_host_cholesky)(ctx, operand)


def _triangular_solve(ctx, a, b, **params):
    if _is_real(ctx.avals_in[0]):
        return versions.primitive("lax.linalg", "_triangular_solve_lowering")(
            ctx, a, b, **params)
    return _host_rule(_host_triangular_solve)(ctx, a, b, **params)


# --- The host's ---


def _host_triangular_solve(params, dtype, _):
    import scipy.linalg
    trsm, = scipy.linalg.get_blas_funcs(("trsm",), dtype=dtype)
    options = {"side": 0 if params["left_side"] else 1,
               "lower": int(params["lower"]),
               "trans_a": int(params["transpose_a"]),
               "diag": int(params["unit_diagonal"])}

    def run(a, b):
        if not b.size:
            return (b,)
        return (trsm(1, a.conj() if params["conjugate_a"] else a, b, **options),)
    return run


def _host_cholesky(params, dtype):
    del params, dtype

    def run(a):
        try:
            return (np.linalg.cholesky(a),)
        except np.linalg.LinAlgError:
            return (np.full(a.shape, np.nan, a.dtype),)
    return run


def _host_lu(params, dtype):
    del params, dtype
    import scipy.linalg

    def run(a):
        lu, pivots = scipy.linalg.lu_factor(a, check_finite=False)
        order = np.arange(a.shape[0])
        for i, p in enumerate(pivots):
            order[[i, p]] = order[[p, i]]
        return lu, pivots, order
    return run


def _host_qr(params, dtype):
    del dtype
    import scipy.linalg
    mode = "full" if params["full_matrices"] else "economic"
    return lambda a: scipy.linalg.qr(a, mode=mode, check_finite=False,
                                     pivoting=params["pivoting"])


def _host_eigh(params, dtype):
    del dtype
    first, last = params["subset_by_index"] or (0, None)

    def run(a):
        if not np.isfinite(a).all():
            w, v = np.full(a.shape[0], np.nan), np.full(a.shape, np.nan)
        else:
            w, v = np.linalg.eigh(a, "L" if params["lower"] else "U")
        return v[:, first:last], w[first:last]
    return run


def _host_svd(params, dtype):
    del dtype
    first, last = params["subset_by_index"] or (0, None)

    def run(a):
        if not params["compute_uv"]:
            return (np.linalg.svd(a, compute_uv=False)[first:last],)
        u, s, vt = np.linalg.svd(a, full_matrices=params["full_matrices"])
        if params["subset_by_index"]:
            u, s, vt = u[:, first:last], s[first:last], vt[first:last]
        return s, u, vt
    return run


def _host_eig(params, dtype):
    del dtype
    import scipy.linalg
    left = params["compute_left_eigenvectors"]
    right = params["compute_right_eigenvectors"]

    def run(a):
        if not np.isfinite(a).all():
            nan = np.full(a.shape, complex(np.nan, np.nan))
            return (nan[:, 0], *[nan] * (left + right))
        results = scipy.linalg.eig(a, left=left, right=right)
        return results if left or right else (results,)
    return run


def _host_schur(params, dtype):
    import scipy.linalg
    output = "complex" if np.issubdtype(dtype, np.complexfloating) else "real"

    def run(a):
        t, z = scipy.linalg.schur(a, output=output)
        return (t, z) if params["compute_schur_vectors"] else (t,)
    return run


def _host_hessenberg(params, dtype):
    del params
    import scipy.linalg
    gehrd, = scipy.linalg.get_lapack_funcs(("gehrd",), dtype=dtype)

    def run(a):
        h, tau, _ = gehrd(a, lo=0, hi=a.shape[0] - 1)
        return h, tau
    return run


def _host_geqrf(params, dtype):
    del params
    import scipy.linalg
    geqrf, = scipy.linalg.get_lapack_funcs(("geqrf",), dtype=dtype)

    def run(a):
        qr, tau, _, _ = geqrf(a)
        return qr, tau
    return run


def _host_geqp3(params, dtype, _):
    del params
    import scipy.linalg
    geqp3, = scipy.linalg.get_lapack_funcs(("geqp3",), dtype=dtype)

    def run(a, pivots):
        del pivots  # all columns are free
        qr, order, tau, _, _ = geqp3(a)
        return qr, order, tau
    return run


def _host_tridiagonal(params, dtype):
    import scipy.linalg
    kind = "hetrd" if np.issubdtype(dtype, np.complexfloating) else "sytrd"
    trd, = scipy.linalg.get_lapack_funcs((kind,), dtype=dtype)
    return lambda a: trd(a, lower=int(params["lower"]))[:4]


def _host_householder_product(params, dtype, _):
    del params
    import scipy.linalg
    kind = "ungqr" if np.issubdtype(dtype, np.complexfloating) else "orgqr"
    gqr, = scipy.linalg.get_lapack_funcs((kind,), dtype=dtype)
    return lambda a, tau: gqr(a, tau)[:1]


def _householder_product(ctx, a, taus):
    run = _host_householder_product

    def compute(a, taus):
        columns = _batched_pair(run({}, a.dtype, None), a, taus)
        return [np.asarray(columns, a.dtype)]
    return _on_host(ctx, compute, [a, taus])


def _batched_pair(function, a, taus):
    batch = a.shape[:-2]
    if a.size == 0 or taus.shape[-1] == 0:
        out = np.zeros_like(a)
        out[...] = np.eye(*a.shape[-2:], dtype=a.dtype)
        return out
    if not batch:
        return function(a, taus)[0]
    rows = [function(x, t)[0]
            for x, t in zip(a.reshape((-1,) + a.shape[-2:]),
                            taus.reshape((-1, taus.shape[-1])))]
    return np.stack(rows).reshape(a.shape)


RULES = (
    # primitive, rule
    ("cholesky_p", _cholesky),
    ("triangular_solve_p", _triangular_solve),
    ("lu_p", _lu),
    ("qr_p", _qr),
    ("eigh_p", _eigh),
    ("svd_p", _svd),
    ("eig_p", _host_rule(_host_eig)),
    ("schur_p", _host_rule(_host_schur)),
    ("hessenberg_p", _host_rule(_host_hessenberg)),
    ("geqrf_p", _host_rule(_host_geqrf)),
    ("geqp3_p", _host_rule(_host_geqp3)),
    ("tridiagonal_p", _host_rule(_host_tridiagonal)),
    ("householder_product_p", _householder_product),
)


def _guarded(name, rule):
    """Says which rule it was that this JAX calls differently."""
    def guarded(ctx, *operands, **params):
        dtype = ctx.avals_in[0].dtype
        if dtype.name not in ("float32", "float64", "complex64", "complex128"):
            raise NotImplementedError(f"Unsupported dtype {dtype}")
        try:
            inspect.signature(rule).bind(ctx, *operands, **params)
        except TypeError as error:
            raise NotImplementedError(
                f"Pestle's rule for {name} does not fit this JAX: {error}"
            ) from error
        return rule(ctx, *operands, **params)
    return guarded


def install(platform):
    for name, rule in RULES:
        primitive = versions.primitive("lax.linalg", name)
        if primitive is None:
            continue
        # A rule that calls the host holds a callable: it is made anew each time.
        versions.register_lowering(primitive, _guarded(name, rule), platform,
                                   cacheable=False)
