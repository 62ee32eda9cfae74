#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every op of the StableHLO specification, and the older ones, in each form that
StableHLO prints it in: tests/stablehlo/data/specification.mlir, whose generic form is
specification.generic.mlir, on llvm and ref. Both forms give the same bits, which are
numpy's to some steps. Fails where an op of the list has no case. Exits 77 without
numpy."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/stablehlo/data"
PESTLE = os.path.join(os.environ.get("PESTLE_BUILD_DIR", ""), "pestle")
# The specification's list of ops.
OPS = """abs add after_all all_gather all_reduce all_to_all and async_done async_start atan2
batch_norm_grad batch_norm_inference batch_norm_training bitcast_convert broadcast_in_dim
case cbrt ceil cholesky clamp collective_broadcast collective_permute compare complex
composite concatenate constant convert convolution cosine count_leading_zeros custom_call
divide dot_general dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota
dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice exponential
exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag infeed
iota is_finite log log_plus_one logistic map maximum minimum multiply negate not
optimization_barrier or outfeed pad partition_id popcnt power real recv reduce
reduce_precision reduce_scatter reduce_window remainder replica_id reshape return reverse
rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select
select_and_scatter send shift_left shift_right_arithmetic shift_right_logical sign sine
slice sort sqrt subtract tan tanh transpose triangular_solve tuple uniform_dequantize
uniform_quantize while xor""".split()
# Not in it, or not any more.
OLDER = """broadcast create_token cross-replica-sum dot einsum real_dynamic_slice
set_dimension_size torch_index_select unary_einsum""".split()
# What talks to a host or to other devices, which a program of one device cannot.
REFUSED = "async_done async_start infeed outfeed recv send".split()
# In programs of their own: jaxlib, which writes the data, has no quantised types.
QUANTISED = "uniform_dequantize uniform_quantize".split()
# StableHLO prints these in the generic form alone.
GENERIC_ALONE = """all_gather all_reduce all_to_all batch_norm_grad batch_norm_inference
batch_norm_training case collective_broadcast collective_permute cross-replica-sum
dynamic_conv dynamic_gather gather if map reduce_scatter reduce_window scatter
select_and_scatter sort torch_index_select triangular_solve""".split()
bad = []


def check_list():
    generic = (DATA / "specification.generic.mlir").read_text()
    pretty = (DATA / "specification.mlir").read_text()
    quantised = (ROOT / "tests/cli/quantised_test.py").read_text()
    for op in OPS + OLDER:
        name = re.escape(f"stablehlo.{op}")
        if op in REFUSED:
            continue
        if op in QUANTISED:
            found = [re.search(f'"{name}"', quantised), re.search(f"(?<!\"){name}\\b",
                                                                  quantised)]
        elif op in GENERIC_ALONE:
            found = [re.search(f'"{name}"', generic), re.search(f'"{name}"', pretty)]
        else:
            found = [re.search(f'"{name}"', generic),
                     re.search(f"(?<![\"\\w]){name}(?![\\w-])", pretty)]
        if not all(found):
            bad.append(f"{op} has no case in its {'generic' if found[1] else 'pretty'} form")
    for op in re.findall(r'"stablehlo\.([\w-]+)"', generic):
        if op not in OPS + OLDER:
            bad.append(f"{op} is not in the list")


def check_refused():
    token = "%t = stablehlo.create_token : !stablehlo.token\n"
    handle = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>"
    lines = {
        "infeed": token + '%r:2 = "stablehlo.infeed"(%t) <{infeed_config = ""}> : '
        "(!stablehlo.token) -> (tensor<f32>, !stablehlo.token)",
        "outfeed": token + '%r = "stablehlo.outfeed"(%x, %t) <{outfeed_config = ""}> : '
        "(tensor<f32>, !stablehlo.token) -> !stablehlo.token",
        "send": token + f'%r = "stablehlo.send"(%x, %t) <{{{handle}}}> : (tensor<f32>, '
        "!stablehlo.token) -> !stablehlo.token",
        "recv": token + f'%r:2 = "stablehlo.recv"(%t) <{{{handle}}}> : (!stablehlo.token) -> '
        "(tensor<f32>, !stablehlo.token)",
        "async_start": '%r = "stablehlo.async_start"(%x) ({\n^bb0(%y: tensor<f32>):\n'
        "stablehlo.return %y : tensor<f32>\n}) : (tensor<f32>) -> "
        "!stablehlo.future<tensor<f32>>",
        "async_done": '%r = "stablehlo.async_done"(%x) : (tensor<f32>) -> tensor<f32>',
    }
    for op in REFUSED:
        text = (f"func.func @main(%x: tensor<f32>) -> tensor<f32> {{\n{lines[op]}\nreturn %x "
                ": tensor<f32>\n}\n")
        done = subprocess.run([PESTLE, "dump", "-"], input=text, capture_output=True,
                              text=True, check=False)
        if done.returncode == 0 or f"stablehlo.{op}" not in done.stderr:
            bad.append(f"{op} is not refused by name: {done.stderr}")


# --- Values ---

rng = np.random.default_rng(24)


def floats(*shape):
    return rng.uniform(0.25, 2, shape).astype(np.float32) * rng.choice([-1, 1], shape)


F, G = floats(3, 4).astype(np.float32), floats(3, 4).astype(np.float32)
Z = (floats(3, 4) + 1j * floats(3, 4)).astype(np.complex64)
I, J = rng.integers(-99, 99, (3, 4), np.int32), rng.integers(0, 31, (3, 4), np.int32)
B = rng.integers(0, 2, (3, 4)).astype(bool)
S, N = np.float32(-0.5), np.int32(1)
IMAGE, KERNEL = floats(1, 8, 8, 2).astype(np.float32), floats(3, 3, 2, 4).astype(np.float32)
M, PLACES = floats(2, 3, 3).astype(np.float32), np.array([[2], [0]], np.int32)
U, STATE = floats(2, 4).astype(np.float32), np.array([3, 5], np.uint64)
R = np.abs(floats(4)).astype(np.float32)
INPUTS = [F, G, Z, I, J, B, np.array(S), np.array(N), IMAGE, KERNEL, np.zeros(2, np.float32),
          M, PLACES, U, STATE, R]


def convolution():
    padded = np.pad(IMAGE, ((0, 0), (1, 1), (1, 1), (0, 0))).astype(np.float64)
    return np.array([[[np.einsum("hwi,hwio->o", padded[0, y:y + 3, x:x + 3], KERNEL)
                       for x in range(8)] for y in range(0, 8, 2)]])


def bits(f):
    return lambda x: np.vectorize(f)(x.view(np.uint32)).astype(np.int32)


def padded():
    out = np.full((4, 7), S, np.float32)
    out[1:, ::2] = F
    return out[:, :6]


def updated():
    out = F.copy()
    out[1:, :] = U
    return out


def scattered():
    out = F.copy()
    out[2] += U[0]
    out[0] += U[1]
    return out


def windows():
    p = np.pad(F, ((0, 0), (1, 1)), constant_values=S)
    return np.stack([S + p[:, k] + p[:, k + 1] for k in (0, 2, 4)], 1)


def folded():
    out = np.full(4, S, np.float32)
    for row in F:
        out = -(out * row)
    return out


def selected():
    out = np.full((3, 4), S, np.float32)
    for k, value in enumerate((0.5, -1.5)):
        y, x = np.unravel_index(np.argmax(F[:, 2 * k:2 * k + 2]), (3, 2))
        out[y, 2 * k + x] += value
    return out


def batch_norms():
    mean, variance = F.mean(0), F.var(0)
    yield R * (F - R) / np.sqrt(R + 9) + R
    yield R * (F - mean) / np.sqrt(variance + 0.1) + R
    yield mean
    yield variance
    scale = 1 / np.sqrt(1.1)
    d = F - R
    yield R * scale * (G - G.mean(0) - d / 1.1 * (G * d).mean(0))
    yield (G * d).sum(0) * scale
    yield G.sum(0)


LOWER = np.array([[4, 0, 0], [1, 3, 0], [0.5, 0.25, 2]], np.float32)
FULL = np.array([[4, 1, 0.5], [1, 3, 0.25], [0.5, 0.25, 2]], np.float32)
ORDER = np.argsort(F, 1, kind="stable")
ANY = None  # held by other tests; here both forms give the same


def wanted():
    """Of each result, in order."""
    yield from (np.abs(F), np.cbrt(F), np.ceil(F), np.cos(F), np.exp(F), np.expm1(F),
                np.floor(F), np.log(F), np.log1p(F), 1 / (1 + np.exp(-F)), -F,
                np.copysign(np.floor(np.abs(F) + 0.5), F), np.round(F), 1 / np.sqrt(F),
                np.sign(F), np.sin(F), np.sqrt(F), np.tan(F), np.tanh(F), np.isfinite(F))
    yield bits(lambda v: 32 - int(v).bit_length())(I)
    yield ~I
    yield bits(lambda v: int(v).bit_count())(I)
    yield from (Z.real, Z.imag, F + G, np.arctan2(F, G), F / G, np.maximum(F, G),
                np.minimum(F, G), F * G, np.power(F, G), np.fmod(F, G), F - G,
                I & J, I | J, I ^ J, I << J, I >> J,
                (I.view(np.uint32) >> J.view(np.uint32)).view(np.int32), F + 1j * G,
                F < G, F >= G, np.where(B, F, G), np.minimum(np.maximum(F, S), G),
                F.astype(np.int32), F.view(np.int32), F.astype(np.float16), [1.5, -2.0],
                np.tile(np.arange(4.0), (3, 1)), np.tile(R, (3, 1)), F.reshape(2, 6), F.T,
                F[:, ::-1], F[1:3, 0:4:2], padded(), np.concatenate([F, G]),
                F[1:3, 1:3], updated(), F[[2, 0]], scattered(), F.sum(1) + S, folded(),
                windows(), -(F * G), selected(), np.take_along_axis(F, ORDER, 1),
                np.take_along_axis(I, ORDER, 1), F @ G.T, convolution(),
                np.stack([np.linalg.cholesky(LOWER + np.tril(LOWER, -1).T),
                          np.linalg.cholesky(FULL)]),
                np.linalg.solve(np.stack([LOWER, np.tril(FULL)]), M), np.fft.fft(Z))
    yield from batch_norms()
    yield from (ANY, ANY, ANY, F, I, F, G, np.int32(5), F * 16, F, F * 2, I, np.uint32(0),
                np.uint32(0), F, F, F, F, F, F, np.int32(4), np.tile(R, (3, 1)),
                np.tile(np.arange(3.0)[:, None], (1, 4)), F.reshape(2, 6),
                np.pad(F, ((1, 1), (0, 0)), constant_values=S), F[[2, 0]], convolution(),
                np.tile(R, (3, 1)), F @ G.T, np.einsum("ij,kj->ki", F, G), F.sum(0),
                F[:, [2, 0]], F[1:3], F, F)


def run(path, folder, device):
    command = [PESTLE, "run", str(path), "--device", device, "--no-cache", "--outputs",
               f"{folder}/out"]
    for i, x in enumerate(INPUTS):
        np.save(f"{folder}/{i}.npy", x)
        command += ["--input", f"{i}={folder}/{i}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        bad.append(f"{path.name} on {device}: {done.stderr}")
        return []
    count = len(list(pathlib.Path(folder, "out").glob("*.npy")))
    return [np.load(f"{folder}/out/output_{i}.npy") for i in range(count)]


def check_values():
    with np.errstate(all="ignore"):
        wants = list(wanted())
    for device in ("llvm", "ref"):
        forms = []
        for name in ("specification.mlir", "specification.generic.mlir"):
            with tempfile.TemporaryDirectory() as folder:
                forms.append(run(DATA / name, folder, device))
        if not forms[0] or len(forms[0]) != len(forms[1]) or len(forms[0]) != len(wants):
            bad.append(f"{device}: {len(forms[0])} and {len(forms[1])} results, not "
                       f"{len(wants)}")
            continue
        for i, (a, b, want) in enumerate(zip(*forms, wants)):
            # Which random numbers come depends on the place of their op.
            if a.tobytes() != b.tobytes():
                bad.append(f"{device}: result {i} differs between the forms")
            if want is ANY:
                continue
            want = np.asarray(want)
            if a.shape != want.shape or not np.allclose(a, want, 1e-4, 1e-5,
                                                        equal_nan=True):
                bad.append(f"{device}: result {i} is {a.ravel()[:6]}, not "
                           f"{want.ravel()[:6]}")


def main():
    check_list()
    check_refused()
    check_values()
    for line in bad:
        print(f"wrong: {line}")
    print(f"{len(OPS) + len(OLDER)} ops, {len(bad)} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
