# SPDX-License-Identifier: Apache-2.0
"""Rules for primitives that JAX has for its own platforms alone, or that Pestle has an op
for. Matrices of f32 and f64 go to ops of Pestle's, `custom_call @pestle.OP`; all else is
lowered as JAX lowers it for CPUs, to calls of LAPACK's functions by name, which Pestle
reads as what they mean (ir/built.def) and computes itself."""
import functools
import inspect
import logging

import numpy as np

from jax_plugins.pestle import versions

logger = logging.getLogger(__name__)


def _is_real(aval):
    return aval.dtype in (np.float32, np.float64)


def _attribute(ir, value):
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    return ir.StringAttr.get(value)


def _call(ctx, op, operands, result_avals, **attributes):
    """`custom_call @pestle.OP`, whose results are of |result_avals|."""
    mlir, ir = versions.mlir(), versions.ir()
    types = [mlir.aval_to_ir_type(ctx.module_context, a) for a in result_avals]
    config = {k: _attribute(ir, v) for k, v in attributes.items()}
    return list(mlir.custom_call("pestle." + op, result_types=types,
                                 operands=operands,
                                 backend_config=config).results)


def _general(ctx, operand, name, **params):
    """JAX's own rule for any platform, by the function that it is made of."""
    function = versions.primitive("lax.linalg", name)
    return versions.mlir().lower_fun(function, multiple_results=True)(
        ctx, operand, **params)


def _as_on_cpus(name, ctx, *operands, **params):
    """JAX's rule for its own CPU backend."""
    rule = versions.cpu_rule(versions.primitive("lax.linalg", name))
    if rule is None:
        raise NotImplementedError(f"this JAX has no rule for {name} on CPUs")
    return rule(ctx, *operands, **params)


# --- Ops of Pestle's ---


def _lu(ctx, operand):
    aval = ctx.avals_in[0]
    if 0 in aval.shape:
        return _general(ctx, operand, "_lu_python")
    if not _is_real(aval):
        return _as_on_cpus("lu_p", ctx, operand)
    return _call(ctx, "lu", [operand], ctx.avals_out)


def _qr(ctx, operand, *, full_matrices, pivoting=False, **params):
    aval = ctx.avals_in[0]
    if 0 in aval.shape or pivoting or not _is_real(aval):
        return _general(ctx, operand, "_qr_lowering", pivoting=pivoting,
                        full_matrices=full_matrices, **params)
    return _call(ctx, "qr", [operand], ctx.avals_out, full=full_matrices)


def _part(array, axis, bounds):
    import jax
    return jax.lax.slice_in_dim(array, *bounds, axis=axis % array.ndim)


def _eigh(ctx, operand, *, lower, subset_by_index=None, **params):
    """Values from |subset_by_index|[0] to [1] alone are cut out of all."""
    aval, shaped = ctx.avals_in[0], versions.shaped_array()
    whole = [aval, shaped(aval.shape[:-1], ctx.avals_out[1].dtype)]
    n = aval.shape[-1]
    if _is_real(aval):
        w, v = _call(ctx, "eigh", [operand], whole[::-1], lower=lower)
    else:
        v, w = _as_on_cpus("eigh_p", ctx.replace(avals_out=whole), operand,
                           lower=lower, subset_by_index=None, **params)
    if subset_by_index in (None, (0, n)):
        return [v, w]
    cut = versions.mlir().lower_fun(
        lambda v, w: (_part(v, -1, subset_by_index),
                      _part(w, -1, subset_by_index)), multiple_results=True)
    return cut(ctx.replace(avals_in=whole), v, w)


def _svd(ctx, operand, *, full_matrices, compute_uv, subset_by_index=None,
         **params):
    aval = ctx.avals_in[0]
    m, n = aval.shape[-2:]
    k, batch, shaped = min(m, n), aval.shape[:-2], versions.shaped_array()
    full = full_matrices and compute_uv
    whole = [shaped(batch + (k,), ctx.avals_out[0].dtype),
             shaped(batch + (m, m if full else k), aval.dtype),
             shaped(batch + (n if full else k, n), aval.dtype)]
    if _is_real(aval):
        u, s, vt = _call(ctx, "svd", [operand], [whole[1], whole[0], whole[2]],
                         full=full)
        results = [s, u, vt] if compute_uv else [s]
    else:
        results = _as_on_cpus(
            "svd_p", ctx.replace(avals_out=whole if compute_uv else whole[:1]),
            operand, full_matrices=full_matrices, compute_uv=compute_uv,
            subset_by_index=None, **params)
    if subset_by_index in (None, (0, k)):
        return results

    def cut(s, *vectors):
        parts = [_part(s, -1, subset_by_index)]
        for x, axis in zip(vectors, (-1, -2)):
            parts.append(_part(x, axis, subset_by_index))
        return parts
    return versions.mlir().lower_fun(cut, multiple_results=True)(
        ctx.replace(avals_in=whole if compute_uv else whole[:1]), *results)


def _nan_unless_definite(factor):
    """A factor whose diagonal is not positive is of no positive definite matrix: NaN."""
    import jax.numpy as jnp
    diagonal = jnp.diagonal(factor, axis1=-2, axis2=-1).real
    good = jnp.all(diagonal > 0, axis=-1)
    return jnp.where(good[..., None, None], factor, jnp.nan)


def _cholesky(ctx, operand, **params):
    factor = versions.primitive("lax.linalg", "_cholesky_lowering")(
        ctx, operand, **params)
    return versions.mlir().lower_fun(
        _nan_unless_definite, multiple_results=False)(
            ctx.replace(avals_in=ctx.avals_out), *factor)


def _triangular_solve(ctx, a, b, **params):
    return versions.primitive("lax.linalg", "_triangular_solve_lowering")(
        ctx, a, b, **params)


# --- Running reductions: one op in the place of 2 log n slices ---

SCANS = {"cumsum_p": "ADD", "cumprod_p": "MULTIPLY", "cummax_p": "MAXIMUM",
         "cummin_p": "MINIMUM", "cumlogsumexp_p": "LOGSUMEXP"}


def _running_logsumexp(x, *, axis, reverse):
    import jax
    import jax.numpy as jnp
    rows = jnp.moveaxis(x, axis, 0)

    def step(carry, row):
        carry = jnp.logaddexp(carry, row)
        return carry, carry
    _, sums = jax.lax.scan(step, jnp.full_like(rows, -jnp.inf, shape=rows.shape[1:]), rows,
                           reverse=reverse)
    return jnp.moveaxis(sums, 0, axis)


def _cumulative(name, ctx, operand, **params):
    """Of exponentials of complex numbers a loop: Pestle has no op of it."""
    if set(params) != {"axis", "reverse"}:
        raise NotImplementedError(f"Pestle's rule for {name} does not fit this JAX: it has "
                                  f"{', '.join(params)}")
    if name == "cumlogsumexp_p" and ctx.avals_in[0].dtype.kind == "c":
        return versions.mlir().lower_fun(_running_logsumexp, multiple_results=False)(
            ctx, operand, **params)
    return _call(ctx, "cumulative", [operand], ctx.avals_out, dimension=params["axis"],
                 combiner=SCANS[name], reverse=params["reverse"])


RULES = {
    "cholesky_p": _cholesky,
    "triangular_solve_p": _triangular_solve,
    "lu_p": _lu,
    "qr_p": _qr,
    "eigh_p": _eigh,
    "svd_p": _svd,
}
AS_ON_CPUS = ("eig_p", "schur_p", "hessenberg_p", "geqrf_p", "geqp3_p",
              "tridiagonal_p", "householder_product_p", "ormqr_p",
              "tridiagonal_solve_p")


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
    for name in AS_ON_CPUS:
        RULES.setdefault(name, functools.partial(_as_on_cpus, name))
    for name, rule in RULES.items():
        primitive = versions.primitive("lax.linalg", name)
        if primitive is None:
            continue
        versions.register_lowering(primitive, _guarded(name, rule), platform)
    for name in SCANS:
        versions.register_lowering(versions.primitive("lax.control_flow.loops", name),
                                   functools.partial(_cumulative, name), platform)
