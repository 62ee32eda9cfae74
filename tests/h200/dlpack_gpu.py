#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tensors between Pestle, torch, CuPy and JAX on a GPU: nothing is copied, whoever owns
the memory, and work on two streams is ordered, which delays on purpose show. Each row
says what was found; rows that are to fail where nothing orders the streams show that the
delays are long enough. python.sh runs it.

    dlpack_gpu.py [ROUNDS [ROW ...]]"""

import sys
import time
import traceback

import numpy as np
import torch

import pestle as pt

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
ONLY = sys.argv[2:]
GPU = pt.device("cuda")
N = 1 << 20
rows = []


def row(function):
    rows.append(function)
    return function


def address(p):
    """Of p's memory, as torch sees it."""
    return torch.from_dlpack(p).data_ptr()


def equal(p, expected):
    return np.array_equal(np.asarray(p.to_device("cpu")), np.asarray(expected))


# --- Nothing is copied ---

@row
def torch_dtypes_in():
    names = ("float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool complex64 "
             "complex128 float8_e4m3fn float8_e5m2").split()
    for name in names:
        x = torch.arange(24, device="cuda").to(getattr(torch, name)).reshape(4, 6)
        p = pt.from_dlpack(x)
        assert p.device == GPU and p.shape == (4, 6), (name, p.device)
        # A byte of a bool may be any: it is converted.
        assert (address(p) == x.data_ptr()) == (name != "bool"), name
        back = torch.from_dlpack(p)
        assert back.dtype == x.dtype and torch.equal(
            back.view(torch.uint8) if name.startswith("float8") else back,
            x.view(torch.uint8) if name.startswith("float8") else x), name
    return f"{len(names)} dtypes at their address"


@row
def torch_views_in():
    base = torch.arange(48, device="cuda", dtype=torch.float32).reshape(6, 8)
    for name, x in (("transposed", base.T), ("stepped", base[::2, ::3]),
                    ("offset", base[2:, 3:]), ("expanded", base[:1].expand(5, 8)),
                    ("rank 0", base[1, 1]), ("empty", base[:0])):
        p = pt.from_dlpack(x)
        assert p.shape == tuple(x.shape), name
        if x.numel():
            assert address(p) == x.data_ptr(), name
        assert equal(p + 1, (x + 1).cpu().numpy()), name
    return "6 views"


@row
def cupy_in():
    import cupy
    for name in ("float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 "
                 "bool complex64 complex128").split():
        x = cupy.arange(24).astype(name).reshape(4, 6)
        p = pt.from_dlpack(x)
        assert p.device == GPU, name
        assert (address(p) == x.data.ptr) == (name != "bool"), name
        assert equal(p, x.get()), name
    x = cupy.arange(24, dtype="float32").reshape(4, 6)
    for view in (x.T, x[::2], x[1:, 2:]):
        assert equal(pt.from_dlpack(view) * 2, view.get() * 2)
    # CuPy 14 divides the bytes of a negative stride as a number without a sign.
    try:
        assert equal(pt.from_dlpack(x[:, ::-1]) * 2, x[:, ::-1].get() * 2)
    except BufferError as error:
        assert "leads out of memory" in str(error)
    return "14 dtypes, transposed, stepped, offset; backwards right or refused"


@row
def out():
    import cupy
    p = pt.arange(24, dtype=pt.float32, device=GPU).reshape(4, 6) * 2
    pt.eval(p)
    t, c = torch.from_dlpack(p), cupy.from_dlpack(p)
    assert t.data_ptr() == c.data.ptr
    want = np.arange(24, dtype=np.float32).reshape(4, 6) * 2
    assert np.array_equal(t.cpu().numpy(), want) and np.array_equal(c.get(), want)
    assert np.array_equal(torch.from_dlpack(p.T).cpu().numpy(), want.T)
    lazy = pt.sin(p) + 1
    assert np.allclose(torch.from_dlpack(lazy).cpu().numpy(), np.sin(want) + 1, atol=1e-6)
    return "torch and CuPy see one address; lazy arrays are computed"


@row
def jax_both():
    import jax
    if jax.devices()[0].platform != "gpu":
        return "skipped: this JAX has no GPU"
    x = jax.numpy.arange(24, dtype="float32") + 1
    p = pt.from_dlpack(x)
    assert p.device == GPU and address(p) == x.unsafe_buffer_pointer()
    assert equal(p, np.asarray(x))
    y = jax.dlpack.from_dlpack(pt.asarray([1.0, 2.0], device=GPU) + 1)
    assert np.asarray(y).tolist() == [2.0, 3.0]
    return "both ways"


@row
def refused_and_copied():
    x = torch.ones(4, device="cuda")
    p = pt.from_dlpack(x, device="cpu")
    assert str(p.device) != str(GPU) and p.tolist() == [1.0] * 4
    try:
        pt.from_dlpack(x, device="cpu", copy=False)
    except BufferError as error:
        assert "copy" in str(error)
    else:
        raise AssertionError("copy=False copied")
    own = pt.from_dlpack(x, copy=True)
    x.fill_(7)
    torch.cuda.synchronize()
    assert own.tolist() == [1.0] * 4
    host = torch.from_dlpack(pt.ones(3, device=GPU).to_device("cpu"))
    assert host.device.type == "cpu"
    return "device=, copy="


@row
def pinned_and_managed():
    import cupy
    x = torch.arange(6, dtype=torch.float32).pin_memory()
    p = pt.from_dlpack(x)
    assert p.tolist() == [0, 1, 2, 3, 4, 5]
    with cupy.cuda.using_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc):
        m = cupy.arange(6, dtype="float32")
    kind = m.__dlpack_device__()
    p = pt.from_dlpack(m)
    assert equal(p + 1, m.get() + 1)
    return f"pinned host memory; managed memory, which CuPy calls {tuple(map(int, kind))}"


@row
def jit_takes_torch():
    f = pt.jit(lambda x, y: 4 * x + 2 * y)
    x, y = (torch.rand(256, 512, device="cuda") for _ in range(2))
    got = torch.from_dlpack(f(x, y))
    assert torch.allclose(got, 4 * x + 2 * y)
    return "tensors as arguments"


# --- Life ---

@row
def lifetimes():
    want = np.full(N, 3, np.float32)
    for _ in range(50):
        x = torch.full((N,), 3.0, device="cuda")
        p = pt.from_dlpack(x)
        del x
        torch.full((N,), 9.0, device="cuda")  # takes the memory if it is free
        assert equal(p, want)
        q = pt.full((N,), 3.0, dtype=pt.float32, device=GPU) + 0
        t = torch.from_dlpack(q)
        del q
        pt.eval(pt.full((N,), 9.0, dtype=pt.float32, device=GPU) + 0)
        assert bool((t == 3).all())
    return "either goes first, 50 times"


@row
def no_leak():
    free = []
    for i in range(400):
        big = torch.zeros(16 << 20, device="cuda")
        p = pt.from_dlpack(big) + 1
        t = torch.from_dlpack(p)
        del big, p, t
        if i in (99, 399):
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            free.append(torch.cuda.mem_get_info()[0])
    assert free[0] - free[1] < 64 << 20, free
    return f"400 of 64 MB; free memory moved by {(free[0] - free[1]) / 1e6:.1f} MB"


# --- Streams ---

CYCLES = 1_000_000  # half a millisecond


def delayed(stream, value):
    """A tensor that |stream| makes |value| after a while."""
    with torch.cuda.stream(stream):
        x = torch.zeros(N, device="cuda")
        stream.synchronize()
        torch.cuda._sleep(CYCLES)
        x.fill_(value)
    return x


@row
def theirs_then_ours():
    """By the exchange table, which says torch's current stream."""
    side = torch.cuda.Stream()
    for i in range(ROUNDS):
        x = delayed(side, i)
        with torch.cuda.stream(side):
            p = pt.from_dlpack(x)
        y = (p * 2).max() - (p * 2).min()
        z = p.max()
        pt.eval(y, z)
        assert y.item() == 0 and z.item() == i, (i, y.item(), z.item())
    return f"{ROUNDS} rounds through the table"


@row
def theirs_then_ours_by_capsule():
    """By __dlpack__(stream=1): torch has the legacy stream wait for its current one."""
    side = torch.cuda.Stream()

    class Plain:
        """A producer without a table."""

        def __init__(self, x):
            self.x = x

        def __dlpack__(self, **keywords):
            return self.x.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.x.__dlpack_device__()

    for i in range(ROUNDS):
        x = delayed(side, i)
        with torch.cuda.stream(side):
            p = pt.from_dlpack(Plain(x))
        low, high = p.min(), p.max()
        pt.eval(low, high)
        assert low.item() == i == high.item(), (i, low.item(), high.item())
    return f"{ROUNDS} rounds by capsules"


def slow(value, size=1536, steps=6):
    """A value that takes Pestle some milliseconds of the GPU."""
    a = pt.eye(size, dtype=pt.float32, device=GPU) * 1.0
    y = a * float(value)
    for _ in range(steps):
        y = y @ a
    return y


@row
def ours_then_theirs():
    """torch passes the stream that it reads on, and reads at once."""
    side = torch.cuda.Stream()
    for i in range(ROUNDS):
        y = slow(i + 1)
        pt.async_eval(y)
        with torch.cuda.stream(side):
            t = torch.from_dlpack(y)
            s = t.diagonal().sum()
        side.synchronize()
        assert s.item() == (i + 1) * 1536, (i, s.item())
    return f"{ROUNDS} rounds"


@row
def host_does_not_wait():
    """Giving an array that is not computed yet takes the host much less than computing
    it takes the device."""
    side = torch.cuda.Stream()
    y = slow(3, 4096, 40)
    pt.eval(y)
    y = slow(4, 4096, 40)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    pt.async_eval(y)
    with torch.cuda.stream(side):
        t = torch.from_dlpack(y)
    given = time.perf_counter() - begin
    torch.cuda.synchronize()
    whole = time.perf_counter() - begin
    assert t[0, 0].item() == 4
    return (f"given after {given * 1e3:.2f} ms, done after {whole * 1e3:.2f} ms"
            + ("" if given < whole / 2 else ": THE HOST WAITED"))


@row
def without_order_it_shows():
    """The control: stream=-1 orders nothing, so that some reads come too early."""
    side, early = torch.cuda.Stream(), 0
    for i in range(60):
        y = slow(i + 1, 2048, 12)
        pt.async_eval(y)
        with torch.cuda.stream(side):
            t = torch.from_dlpack(y.__dlpack__(stream=-1, max_version=(1, 0)))
            s = t.diagonal().sum()
        side.synchronize()
        early += s.item() != (i + 1) * 2048
        pt.synchronize()
    assert early, "the delays are too short to show anything"
    return f"{early} of 60 reads came too early, as they may"


@row
def memory_stays_behind_their_stream():
    """torch's queue still reads when the last reference goes; Pestle's next arrays must
    not have that memory before."""
    side = torch.cuda.Stream()
    for i in range(ROUNDS // 5):
        p = pt.full((N,), float(i), dtype=pt.float32, device=GPU) + 0
        pt.eval(p)
        with torch.cuda.stream(side):
            t = torch.from_dlpack(p)
            torch.cuda._sleep(CYCLES)
            s = t.sum(dtype=torch.float64)
            del t
        del p
        for _ in range(3):
            pt.eval(pt.full((N,), -1.0, dtype=pt.float32, device=GPU) + 0)
        side.synchronize()
        assert s.item() == float(i) * N, (i, s.item())
    return f"{ROUNDS // 5} rounds"


@row
def streams_of_all_kinds():
    y = pt.asarray([1.0, 2.0], device=GPU) + 1
    for stream in (None, 1, 2, torch.cuda.Stream().cuda_stream):
        t = torch.from_dlpack(y.__dlpack__(stream=stream, max_version=(1, 0)))
        torch.cuda.synchronize()
        assert t.tolist() == [2.0, 3.0], stream
    for stream, kind in ((0, ValueError), (-2, ValueError), ("1", TypeError),
                         (True, TypeError)):
        try:
            y.__dlpack__(stream=stream)
        except kind:
            continue
        raise AssertionError(f"stream={stream!r} raised no {kind.__name__}")
    return "None, 1, 2, a handle; 0, -2, a text and a bool are refused"


@row
def cupy_streams():
    import cupy
    side = cupy.cuda.Stream(non_blocking=True)
    kernel = cupy.RawKernel(r"""
        extern "C" __global__ void late(float* x, float v, int n, long long cycles) {
          long long begin = clock64();
          while (clock64() - begin < cycles) {}
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) x[i] = v;
        }""", "late")
    for i in range(ROUNDS):
        with side:
            x = cupy.zeros(N, dtype="float32")
            kernel((N // 256,), (256,), (x, np.float32(i), np.int32(N), np.int64(20_000)))
            p = pt.from_dlpack(x)
        low, high = p.min(), p.max()
        pt.eval(low, high)
        assert low.item() == i == high.item(), (i, low.item(), high.item())
        y = slow(i + 1)
        pt.async_eval(y)
        with side:
            s = cupy.from_dlpack(y).diagonal().sum()
        side.synchronize()
        assert float(s) == (i + 1) * 1536, (i, float(s))
    return f"{ROUNDS} rounds each way"


@row
def capture():
    """While torch captures a graph nothing may wait on the host."""
    y = pt.asarray([1.0, 2.0], device=GPU) + 1
    pt.eval(y)
    torch.cuda.synchronize()
    graph, out_ = torch.cuda.CUDAGraph(), torch.zeros(2, device="cuda")
    with torch.cuda.graph(graph, capture_error_mode="relaxed"):
        out_.copy_(torch.from_dlpack(y) * 2)
    graph.replay()
    torch.cuda.synchronize()
    assert out_.tolist() == [4.0, 6.0], out_.tolist()
    return "an export in a capture"


@row
def two_gpus():
    if torch.cuda.device_count() < 2:
        return "skipped: one GPU"
    x = torch.arange(8, device="cuda:1", dtype=torch.float32)
    p = pt.from_dlpack(x)
    assert p.device == pt.device("cuda:1") and address(p) == x.data_ptr()
    assert equal(p * 2, np.arange(8) * 2)
    return "the second GPU's memory is its own"


def main():
    failed = 0
    for function in rows:
        if ONLY and function.__name__ not in ONLY:
            continue
        begin = time.perf_counter()
        try:
            said = function()
            state = "skip" if str(said).startswith("skipped") else "ok"
        except Exception as error:  # pylint: disable=broad-except
            traceback.print_exc()
            state, said = "FAIL", f"{type(error).__name__}: {error}"
            failed += 1
        print(f"{state:5} {function.__name__:34} {time.perf_counter() - begin:6.1f} s  "
              f"{str(said)[:300]}", flush=True)
    sys.exit(1 if failed else 0)


main()
