#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each function of the array API standard beside array-api-strict, on the same values:
results, their dtypes and shapes, and what is refused. It has what array-api-tests draws
no examples of, and what is newest in 2025.12. Needs array_api_strict and NumPy."""

import sys

from case import run

try:
    import array_api_strict as strict
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
import pestle as pt

# Left out: what strict refuses and the standard leaves open (int and float together,
# functions of bools, keys of fewer axes), and isin(invert=True), which it ignores.

# What strict makes without a dtype is float64; here both say it.
strict.set_array_api_strict_flags(api_version="2025.12")
RNG = np.random.default_rng(3)
F = RNG.standard_normal((3, 4)).astype("f4")
G = np.abs(F) + 0.25
I = RNG.integers(-9, 9, (3, 4)).astype("i4")
U = RNG.integers(0, 200, (3, 4)).astype("u1")
B = F > 0
Z = (F + 1j * G).astype("c8")
S = RNG.standard_normal((2, 4, 4)).astype("f8") + 4 * np.eye(4)
V = RNG.standard_normal(5)


def ours(x):
    return pt.asarray(x)


def theirs(x):
    return strict.asarray(x)


def plain(value):
    """Results as NumPy's: arrays, tuples of them, dtypes by name."""
    if isinstance(value, pt.Array):
        return pt.asnumpy(value)
    if type(value).__module__.startswith("array_api_strict") and hasattr(value, "shape"):
        return np.asarray(value)
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, int, float, complex)) or value is None:
        return value
    name = str(value).rpartition(".")[2].strip("'>)")
    return name


def same(a, b, title):
    if isinstance(b, list):
        assert isinstance(a, list) and len(a) == len(b), (title, a, b)
        for x, y in zip(a, b):
            same(x, y, title)
    elif isinstance(b, np.ndarray):
        assert isinstance(a, np.ndarray), (title, a)
        assert a.dtype == b.dtype and a.shape == b.shape, (title, a.dtype, b.dtype,
                                                           a.shape, b.shape)
        tight = 1e-9 if b.dtype in (np.float64, np.complex128) else 2e-5
        np.testing.assert_allclose(a, b, rtol=tight, atol=tight, err_msg=title)
    else:
        assert a == b, (title, a, b)


def compare(title, call):
    """call(xp, a) in both, where a makes an array of NumPy's."""
    got, wanted = [], []
    for out, xp, make in ((wanted, strict, theirs), (got, pt, ours)):
        try:
            out.append(plain(call(xp, make)))
        except Exception as error:  # pylint: disable=broad-except
            out.append(error)
    refused = [isinstance(v[0], Exception) for v in (wanted, got)]
    assert refused[0] == refused[1], (title, wanted, got)
    if not refused[0]:
        same(got[0], wanted[0], title)


TABLE = """
abs(a(F)); abs(a(Z)); acosh(a(G) + 1); add(a(F), a(F)); add(a(F), 2); add(2, a(I))
all(a(B), axis=1); all(a(I), axis=(0, 1), keepdims=True); any(a(F), axis=-1); any(a(B))
arange(5); arange(1, 9, 3); arange(0, 1, 0.25, dtype=xp.float32); arange(5, 0, -2)
argmax(a(F), axis=1); argmax(a(I), keepdims=True); argmin(a(F), axis=0); argsort(a(F), axis=0, descending=True)
asarray(True); asarray([1, 2]); asarray(2.5, dtype=xp.float32); asarray([[1j]], dtype=xp.complex64)
asin(a(F) / 4); asinh(a(F)); atan(a(Z)); atan2(a(F), a(G)); atan2(a(F), 1.0); atanh(a(F) / 4)
astype(a(F), xp.int32); astype(a(I), xp.bool); astype(a(Z), xp.complex128); astype(a(B), xp.float64)
bitwise_and(a(I), 3); bitwise_invert(a(B)); bitwise_left_shift(a(I), 1); bitwise_or(a(B), a(~B)); bitwise_right_shift(a(I), a(I) * 0 + 2); bitwise_xor(a(U), 7)
broadcast_arrays(a(F), a(F[:1])); broadcast_shapes((3, 1), (1, 4), (4,)); broadcast_to(a(F[0]), (2, 3, 4))
can_cast(xp.int8, xp.int16); can_cast(xp.float64, xp.float32)
ceil(a(F)); ceil(a(I)); clip(a(F), -0.5, 0.5); clip(a(F), min=0.0); clip(a(I), max=3); clip(a(F), a(-G), a(G))
concat([a(F), a(F)], axis=1); concat([a(F), a(G)], axis=None); concat((a(I), a(I)), axis=-2)
conj(a(Z)); copysign(a(F), a(-G)); cos(a(F)); cosh(a(F)); count_nonzero(a(I), axis=1, keepdims=True); count_nonzero(a(F))
cumulative_prod(a(F), axis=0); cumulative_prod(a(V), include_initial=True); cumulative_sum(a(I), axis=1, dtype=xp.int64); cumulative_sum(a(V), include_initial=True)
diff(a(F)); diff(a(I), axis=0, n=2); diff(a(F), axis=1, prepend=a(F[:, :1]), append=a(F[:, :2])); divide(a(F), 2); divide(a(F), a(G))
empty_like(a(F)).shape; equal(a(I), 0); equal(a(Z), a(Z)); exp(a(F)); expm1(a(F)); expand_dims(a(F), axis=1); expand_dims(a(F), axis=(0, -1)); expand_dims(a(F), axis=(0, 2))
eye(3, 4, k=1, dtype=xp.float32); eye(2, dtype=xp.int8); finfo(xp.float32).eps; finfo(xp.complex128).smallest_normal; iinfo(xp.uint8).max; finfo(a(F)).bits; iinfo(a(U)).min
flip(a(F)); flip(a(F), axis=(0, 1)); floor(a(F)); floor_divide(a(I), 4); floor_divide(a(F), a(G)); full((2, 2), 3, dtype=xp.int16); full((2,), True); full_like(a(F), 2)
from_dlpack(a(F)); greater(a(F), 0.0); greater_equal(a(I), a(I)); hypot(a(F), a(G)); imag(a(Z)); isdtype(xp.int8, "signed integer"); isdtype(xp.float32, ("bool", xp.float32)); isdtype(xp.bool, "numeric")
isfinite(a(F)); isinf(a(F)); isnan(a(F)); isin(a(I), a(I[0])); isin(3, a(I)); isin(a(I), 3)
less(a(F), a(G)); less_equal(0.0, a(F)); linspace(0.0, 1.0, 5, dtype=xp.float32); linspace(0, 1, 4, endpoint=False, dtype=xp.float64); log(a(G)); log10(a(G)); log1p(a(G)); log2(a(G)); logaddexp(a(F), a(G))
logical_and(a(B), a(~B)); logical_not(a(B)); logical_or(a(B), True); logical_xor(a(B), a(B))
matmul(a(F), a(F.T)); matrix_transpose(a(S)); max(a(F), axis=1); max(a(I)); maximum(a(F), 0.5); mean(a(F), axis=(0, 1)); mean(a(V), keepdims=True); meshgrid(a(V), a(V[:2])); meshgrid(a(V), a(V[:2]), indexing="ij"); min(a(F), axis=0, keepdims=True); minimum(a(F), a(G)); moveaxis(a(S), 0, 2); moveaxis(a(S), (0, 1), (2, 0)); multiply(a(F), a(F)); multiply(2, a(U))
negative(a(I)); nextafter(a(F), a(G)); nonzero(a(I)); not_equal(a(F), 0.0); ones((2, 3), dtype=xp.uint8); ones_like(a(Z)); permute_dims(a(S), (2, 0, 1)); positive(a(F)); pow(a(G), 2.0); pow(a(G), a(F)); pow(a(I), 2); pow(2.0, a(F)); prod(a(F), axis=1); prod(a(I), dtype=xp.int64); prod(a(B * 1), axis=0)
real(a(Z)); reciprocal(a(G)); remainder(a(I), 4); remainder(a(F), a(-G)); repeat(a(F), 2, axis=1); repeat(a(V), a(np.array([1, 0, 2, 1, 1]))); repeat(a(F), 2); reshape(a(F), (4, -1)); reshape(a(F), (2, 6), copy=True); roll(a(F), 1); roll(a(F), (1, -1), axis=(0, 1)); round(a(F * 3)); round(a(Z)); searchsorted(a(np.sort(V)), a(V)); searchsorted(a(V), a(V), side="right", sorter=a(np.argsort(V))); searchsorted(a(np.sort(V)), 0.5)
sign(a(F)); sign(a(Z)); signbit(a(F)); sin(a(F)); sinh(a(F)); sort(a(F), axis=0); sort(a(I), descending=True); sqrt(a(G)); square(a(Z)); squeeze(a(F[:1]), 0); squeeze(a(S[:1, :, :1]), (0, 2)); stack([a(F), a(G)], axis=1); std(a(F), axis=0, correction=1.0); subtract(a(F), 1.0); sum(a(I), axis=1); sum(a(F), dtype=xp.float64, keepdims=True); sum(a(U)); sum(a(B * 1))
take(a(F), a(np.array([1, 0, 1])), axis=0); take(a(V), a(np.array([0, -1]))); take_along_axis(a(F), a(np.argsort(F, 1)), axis=1); take_along_axis(a(F), a(np.zeros((1, 4), "i8")), axis=0); tan(a(F)); tanh(a(F)); tensordot(a(F), a(F.T), axes=1); tensordot(a(F), a(F), axes=((0, 1), (0, 1))); tile(a(F), (2, 1, 2)); tile(a(F), (2,)); tril(a(F), k=1); triu(a(S), k=-1); trunc(a(F)); unique_values(a(I))
unique_counts(a(I)); unique_inverse(a(I)); unstack(a(F), axis=1); var(a(F), axis=1, correction=0.5, keepdims=True); vecdot(a(F), a(G)); vecdot(a(Z), a(Z), axis=0); where(a(B), a(F), 0.0); where(a(B), a(F), a(G)); where(a(B), 1.5, a(F)); zeros((0, 2), dtype=xp.float64); zeros_like(a(U), dtype=xp.float32)
linalg.cholesky(a(S @ S.transpose(0, 2, 1))); linalg.cholesky(a(S[0] @ S[0].T), upper=True); linalg.cross(a(F[:, :3]), a(G[:, :3])); linalg.det(a(S)); linalg.diagonal(a(S), offset=1); linalg.diagonal(a(F), offset=-2); linalg.eigvalsh(a(S + S.transpose(0, 2, 1))); linalg.inv(a(S)); linalg.matmul(a(S), a(S)); linalg.matrix_norm(a(S)); linalg.matrix_norm(a(S), ord=1, keepdims=True); linalg.matrix_norm(a(F), ord="nuc"); linalg.matrix_norm(a(S), ord=-2); linalg.matrix_power(a(S), 3); linalg.matrix_power(a(S), -2); linalg.matrix_power(a(S), 0); linalg.matrix_rank(a(S)); linalg.matrix_rank(a(F), rtol=0.5); linalg.matrix_transpose(a(F)); linalg.outer(a(V), a(V)); linalg.pinv(a(F.astype("f8"))); linalg.slogdet(a(-S)); linalg.solve(a(S), a(S[:, :, :2])); linalg.solve(a(S), a(V[:4])); linalg.svdvals(a(S)); linalg.tensordot(a(S), a(S), axes=2); linalg.trace(a(S)); linalg.trace(a(F), offset=1, dtype=xp.float64); linalg.vecdot(a(F), a(F)); linalg.vector_norm(a(F)); linalg.vector_norm(a(F), axis=1, ord=1); linalg.vector_norm(a(F), axis=0, ord=float("inf"), keepdims=True); linalg.vector_norm(a(F), ord=0); linalg.vector_norm(a(Z), axis=1, ord=3)
fft.fft(a(Z)); fft.fft(a(Z), n=6, axis=0, norm="ortho"); fft.ifft(a(Z)); fft.fftn(a(Z)); fft.fftn(a(Z), s=(2, 3), axes=(0, 1)); fft.ifftn(a(Z), axes=(1,)); fft.rfft(a(F)); fft.irfft(a(Z), n=5); fft.rfftn(a(F)); fft.irfftn(a(Z)); fft.hfft(a(Z), n=5); fft.ihfft(a(F)); fft.fftfreq(5, d=0.1, dtype=xp.float32); fft.rfftfreq(6, dtype=xp.float64); fft.fftshift(a(F)); fft.ifftshift(a(F), axes=(1,))
a(F).T; a(S).mT; a(F).ndim; a(F).size; a(F).shape; a(F).to_device(a(F).device); a(F)[:, ::-2]; a(F)[None, 1, ..., None]; a(F)[a(B)]; a(F)[a(np.array([0, 2])), a(np.array([1, 3]))]; abs(a(I)); -a(F); ~a(B); +a(F); a(I) // 3; 3 % a(I * 0 + 2); a(F) ** 2.0; 2.0 ** a(F); a(I) << 1; a(B) & True; 1 | a(I); a(I) ^ a(I); a(F) @ a(F.T); bool(a(B)[0, 0]); int(a(I)[0, 0]); float(a(F)[1, 1]); complex(a(Z)[0, 0]); a(F) == 0.0; a(F) >= a(G)
"""

# Calls that strict refuses, and so must we.
REFUSED = """
add(a(B), a(B)) if xp is None else add(a(F), "x"); all(a(B), axis=5); argmax(a(Z)); argmax(a(F), axis=2); broadcast_to(a(F), (2, 2)); ceil(a(Z)); concat([a(F), a(F[0])]); bitwise_and(a(F), a(F)); bitwise_invert(a(F)); expand_dims(a(F), axis=5); eye(2, dtype="no"); astype(a(Z), xp.float32); floor_divide(a(Z), a(Z)); greater(a(Z), a(Z)); isdtype(xp.int8, "no"); matmul(a(F), a(F)); max(a(Z)); permute_dims(a(F), (0,)); reshape(a(F), (5, 5)); sort(a(Z)); squeeze(a(F), 0); stack([a(F), a(F[0])]); take(a(F), a(np.array([0.5]))); trunc(a(Z)); where(a(F), a(F), a(F)); linalg.inv(a(F)); linalg.det(a(V)); tensordot(a(F), a(F), axes=1); vecdot(a(F), a(F[:, :2])); unstack(a(F), axis=4); moveaxis(a(F), 0, 5); fft.rfft(a(Z)); fft.fft(a(Z), norm="no"); clip(a(Z), 0, 1); cumulative_sum(a(F)); searchsorted(a(F), a(F)); result_type(); a(F)[9]; a(F)[0, 0, 0]; bool(a(F)); float(a(F)); a(F)[a(F)]; a(B) < a(B) if xp is None else less(a(Z), 1j); reshape(a(F), (-1, -1)); roll(a(F), (1, 2), axis=(0, 1, 2)); iinfo(xp.float32); finfo(xp.int8); linalg.cross(a(F), a(F)); linalg.outer(a(F), a(V)); linalg.cholesky(a(F)); linalg.matrix_power(a(F), 2); arange(0, 5, 0)
"""


def cases(text):
    for line in text.strip().splitlines():
        for call in line.split(";"):
            call = call.strip()
            if call:
                yield call


def compiled(call):
    body = call
    first = call.split("(")[0].split(".")[0]
    if not call.startswith(("a(", "-", "~", "+", "2", "3", "1", "bool(", "int(", "float(",
                            "complex(")) and (hasattr(strict, first)):
        body = "xp." + call
    body = body.replace(" else ", " else xp.") if " else " in body else body
    return eval(f"lambda xp, a: {body}", globals())  # pylint: disable=eval-used


def test_results():
    bad = []
    count = 0
    for call in cases(TABLE):
        count += 1
        try:
            compare(call, compiled(call))
        except AssertionError as error:
            bad.append(str(error)[:300])
    assert not bad, f"{len(bad)} of {count}:\n" + "\n".join(bad)
    assert count > 280


def test_refusals():
    bad = []
    for call in cases(REFUSED):
        for xp, make in ((strict, theirs), (pt, ours)):
            try:
                compiled(call)(xp, make)
            except (TypeError, ValueError, IndexError):
                continue
            except Exception as error:  # pylint: disable=broad-except
                if xp is strict:
                    continue
                bad.append(f"{call}: {type(error).__name__}: {error}")
            else:
                bad.append(f"{call} is taken by {xp.__name__}")
    assert not bad, "\n".join(bad)


run(globals())
