#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Worlds on two GPUs of one machine: what is right, the same bits as by sockets, how fast beside
NCCL called directly and beside torch, a model divided over both, and ranks that die or stop.

    world.py --base BUNDLE [--only PART,PART] [--seconds N] [--small]

BUNDLE has lib/libpestle.so.0 and backends/libpestle-cuda.so (bundle.sh makes one). Needs two
GPUs, NCCL (the wheel that torch brings is found) and numpy; torch for its own rows. Rows are
printed as they come, and go to $OUT/world.jsonl (or ./world.jsonl). NVLink multicast stays off.
PARTS: right, bits, wire, tensor, data, overlap, torch, fail. --small: sizes for the fakes of tests/cuda.
The exit status tells whether all that ran was right."""
import argparse
import ctypes
import hashlib
import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

os.environ.update(NCCL_NVLS_ENABLE="0", TORCH_SYMM_MEM_DISABLE_MULTICAST="1",
                  NVSHMEM_DISABLE_NVLS="1")
import numpy as np  # noqa: E402

PARTS = ("right", "bits", "wire", "tensor", "data", "overlap", "torch", "fail")
SECRET = "00112233445566778899aabbccddeeff" * 2
P = ctypes.c_void_p
CUDA = 2

# --- The driver and NCCL, by hand ---


class Gpu:
    def __init__(self, index):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.index = index
        self.context = P()
        device = ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), index)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.enter()
        self.stream = P()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def enter(self):
        """Of each thread that calls."""
        self.call("cuCtxPushCurrent_v2", self.context)

    def call(self, name, *arguments):
        result = getattr(self.lib, name)(*arguments)
        if result:
            raise RuntimeError(f"{name}: error {result}")

    def new(self, size):
        data = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(data), ctypes.c_size_t(max(size, 1)))
        return data.value

    def free(self, data):
        self.call("cuMemFree_v2", ctypes.c_uint64(data))

    def put(self, array):
        array = np.ascontiguousarray(array)
        data = self.new(array.nbytes)
        if array.nbytes:
            self.call("cuMemcpyHtoDAsync_v2", ctypes.c_uint64(data), P(array.ctypes.data),
                      ctypes.c_size_t(array.nbytes), self.stream)
        self.wait()
        return data

    def get(self, data, like):
        array = np.empty_like(like)
        if array.nbytes:
            self.call("cuMemcpyDtoH_v2", P(array.ctypes.data), ctypes.c_uint64(data),
                      ctypes.c_size_t(array.nbytes))
        return array

    def wait(self):
        self.call("cuStreamSynchronize", self.stream)


def find_nccl():
    if os.environ.get("PESTLE_NCCL"):
        return os.environ["PESTLE_NCCL"]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations if spec else ()):
        path = pathlib.Path(folder, "nccl/lib/libnccl.so.2")
        if path.exists():
            return str(path)
    return "libnccl.so.2"


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("numbers", ctypes.c_int * 4), ("net", P), ("share", ctypes.c_int)]


class Nccl:
    """A communicator, and the calls that a program by hand would make."""

    def __init__(self, gpu, rank, size, path):
        self.gpu = gpu
        self.lib = ctypes.CDLL(find_nccl())
        unique = UniqueId()
        if rank == 0:
            self.check(self.lib.ncclGetUniqueId(ctypes.byref(unique)))
            part = path.with_suffix(".part")
            part.write_bytes(bytes(memoryview(unique)))
            part.rename(path)
        while not path.exists():
            time.sleep(0.01)
        ctypes.memmove(ctypes.byref(unique), path.read_bytes(), 128)
        undefined = -(1 << 31)
        config = Config(ctypes.sizeof(Config), 0xcafebeef, 21800,
                        (ctypes.c_int * 4)(0, undefined, undefined, undefined), None, undefined)
        self.comm = P()
        self.lib.ncclCommInitRankConfig.argtypes = [P, ctypes.c_int, UniqueId, ctypes.c_int, P]
        self.ready(self.lib.ncclCommInitRankConfig(ctypes.byref(self.comm), size, unique, rank,
                                                   ctypes.byref(config)))
        self.lib.ncclAllReduce.argtypes = [P, P, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, P, P]

    @staticmethod
    def check(result):
        if result not in (0, 7):
            raise RuntimeError(f"NCCL: error {result}")

    def ready(self, result):
        now = ctypes.c_int(result)
        while now.value == 7:
            self.check(self.lib.ncclCommGetAsyncError(self.comm, ctypes.byref(now)))
        self.check(now.value)

    def all_reduces(self, a, b, count, times):
        for _ in range(times):
            result = self.lib.ncclAllReduce(a, b, count, 7, 0, self.comm, self.gpu.stream)
            if result:
                self.ready(result)
        while self.gpu.lib.cuStreamQuery(self.gpu.stream):
            pass

    def end(self):
        self.lib.ncclCommDestroy(self.comm)


# --- Pestle, by its C interface ---


class Tensor(ctypes.Structure):
    _fields_ = [("data", P), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", P), ("byte_offset", ctypes.c_uint64)]


class RunOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("donated", P),
                ("donated_count", ctypes.c_size_t), ("control", P), ("on_step", P),
                ("on_step_user", P), ("output_place", ctypes.c_int32), ("world", P)]


class CompileOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("numerics", ctypes.c_int),
                ("target_cpu", P)]


class TransformOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("function", ctypes.c_char_p),
                ("arguments", P), ("argument_count", ctypes.c_size_t), ("results", P),
                ("result_count", ctypes.c_size_t), ("to_transpose", ctypes.c_bool),
                ("max_trips", ctypes.c_int64)]


class WorldOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("deadline_ms", ctypes.c_int64),
                ("create_deadline_ms", ctypes.c_int64), ("rank", ctypes.c_int32),
                ("size", ctypes.c_int32), ("address", ctypes.c_char_p),
                ("secret", ctypes.c_char_p), ("flags", ctypes.c_uint32),
                ("transport", ctypes.c_char_p)]


# name: DLPack's code and bits, numpy's type of the bytes
TYPES = {"f32": (2, 32, np.float32), "f64": (2, 64, np.float64), "f16": (2, 16, np.float16),
         "bf16": (4, 16, np.uint16), "i8": (0, 8, np.int8), "ui8": (1, 8, np.uint8),
         "i16": (0, 16, np.int16), "i32": (0, 32, np.int32), "ui32": (1, 32, np.uint32),
         "i64": (0, 64, np.int64), "ui64": (1, 64, np.uint64), "i1": (6, 8, np.uint8)}


def to_bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def from_bf16(x):
    return (x.astype(np.uint32) << 16).view(np.float32)


class Failed(Exception):
    pass


class Pestle:
    def __init__(self, base):
        self.lib = ctypes.CDLL(str(base / "lib" / "libpestle.so.0"))
        for name in ("context_create", "context_device", "import_file", "compile",
                     "executable_create", "executable_run", "world_create", "world_status",
                     "world_create_local", "plan_save", "plan_load", "module_gradient",
                     "module_print", "module_parse"):
            getattr(self.lib, "pestle_" + name).restype = P
        for name in ("executable_release", "plan_release", "module_release", "status_release",
                     "world_release"):
            getattr(self.lib, "pestle_" + name).restype = None
        self.lib.pestle_executable_run.argtypes = [P, P, P, ctypes.c_size_t, P, ctypes.c_size_t, P]
        self.context = P()
        self.check(self.lib.pestle_context_create(None, ctypes.byref(self.context)))
        plugin = base / "backends" / "libpestle-cuda.so"
        self.lib.pestle_context_load_backend.restype = P
        self.check(self.lib.pestle_context_load_backend(self.context, str(plugin).encode()))
        self.folder = tempfile.mkdtemp()
        self.count = 0

    def check(self, status):
        if not status:
            return
        text = ctypes.create_string_buffer(4096)
        self.lib.pestle_status_format(P(status), text, ctypes.c_size_t(4096))
        self.lib.pestle_status_release(P(status))
        raise Failed(text.value.decode())

    def device(self, name):
        device = P()
        self.check(self.lib.pestle_context_device(self.context, name.encode(),
                                                  ctypes.byref(device)))
        return device

    def gradient(self, text, arguments):
        """The text of a loss and of what it changes with |arguments|, by their numbers."""
        module, changed = P(), P()
        out, size = ctypes.c_void_p(), ctypes.c_size_t()
        data = text.encode()
        self.check(self.lib.pestle_module_parse(self.context, data, ctypes.c_size_t(len(data)),
                                                None, ctypes.byref(module)))
        numbers = (ctypes.c_uint32 * len(arguments))(*arguments)
        options = TransformOptions(struct_size=ctypes.sizeof(TransformOptions),
                                   arguments=ctypes.cast(numbers, P),
                                   argument_count=len(arguments))
        self.check(self.lib.pestle_module_gradient(module, ctypes.byref(options),
                                                   ctypes.byref(changed)))
        self.check(self.lib.pestle_module_print(changed, 0, ctypes.byref(out),
                                                ctypes.byref(size)))
        printed = ctypes.string_at(out.value, size.value).decode()
        self.lib.pestle_module_release(module)
        self.lib.pestle_module_release(changed)
        return printed

    def load(self, text, device, strict=False, save=None):
        self.count += 1
        path = pathlib.Path(self.folder, f"m{self.count}-{threading.get_ident()}.mlir")
        path.write_text(text)
        module, plan, executable = P(), P(), P()
        options = CompileOptions(ctypes.sizeof(CompileOptions), int(strict), None)
        self.check(self.lib.pestle_import_file(self.context, str(path).encode(), None,
                                               ctypes.byref(module)))
        try:
            self.check(self.lib.pestle_compile(self.context, module, device,
                                               ctypes.byref(options), ctypes.byref(plan)))
            if save:
                self.check(self.lib.pestle_plan_save(plan, str(save).encode()))
            self.check(self.lib.pestle_executable_create(self.context, plan, device,
                                                         ctypes.byref(executable)))
        finally:
            self.lib.pestle_module_release(module)
            self.lib.pestle_plan_release(plan)
        return executable

    def load_plan(self, path, device):
        plan, executable = P(), P()
        self.check(self.lib.pestle_plan_load(self.context, str(path).encode(),
                                             ctypes.byref(plan)))
        self.check(self.lib.pestle_executable_create(self.context, plan, device,
                                                     ctypes.byref(executable)))
        self.lib.pestle_plan_release(plan)
        return executable

    def world(self, transport=None, port=None, deadline_ms=30000):
        """This process's rank, by PESTLE_WORLD and RANK; |port|: another world beside it."""
        options = WorldOptions(ctypes.sizeof(WorldOptions), deadline_ms, 120000)
        options.transport = transport.encode() if transport else None
        if port:
            options.address = f"tcp://127.0.0.1:{port}".encode()
            options.rank, options.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        world = P()
        self.check(self.lib.pestle_world_create(self.context, ctypes.byref(options),
                                                ctypes.byref(world)))
        return world

    def local(self, size):
        options = WorldOptions(ctypes.sizeof(WorldOptions), 30000)
        worlds = (P * size)()
        self.check(self.lib.pestle_world_create_local(self.context, size, ctypes.byref(options),
                                                      worlds))
        return [P(w) for w in worlds]

    def run(self, executable, inputs, outputs, world=None):
        """Lists of (address on GPU |index|, type, shape, index)."""
        views = (Tensor * (len(inputs) + len(outputs)))()
        shapes = []
        for view, (data, kind, shape, index) in zip(views, list(inputs) + list(outputs)):
            shapes.append((ctypes.c_int64 * max(len(shape), 1))(*shape))
            code, bits, _ = TYPES[kind]
            view.data, view.device_type, view.device_id = data, CUDA, index
            view.ndim, view.code, view.bits, view.lanes = len(shape), code, bits, 1
            view.shape = shapes[-1]
        options = RunOptions(struct_size=ctypes.sizeof(RunOptions), world=world)
        n = len(inputs)
        self.check(self.lib.pestle_executable_run(
            executable, None, views, n, ctypes.byref(views, n * ctypes.sizeof(Tensor)),
            len(outputs), ctypes.byref(options)))


# --- Programs ---

# Of a rank's process, how many there are; gpus.py has more than two.
RANKS = int(os.environ.get("WORLD_SIZE", 2))
GROUP = ("channel_handle = #stablehlo.channel_handle<handle = {channel}, type = 1>, "
         f"replica_groups = dense<[{list(range(RANKS))}]> : tensor<1x{RANKS}xi64>")


def module(arguments, results, body, name="step", ranks=RANKS):
    head = f"module @{name}"
    if ranks > 1:
        head += (f" attributes {{mhlo.num_partitions = {ranks} : i32, "
                 "mhlo.num_replicas = 1 : i32}")
    listed = ", ".join(f"%{n}: tensor<{t}>" for n, t in arguments)
    types = ", ".join(f"tensor<{t}>" for _, t in results)
    names = ", ".join(f"%{n}" for n, _ in results)
    return (f"{head} {{\nfunc.func @main({listed}) -> ({types}) {{\n{body}"
            f"  return {names} : {types}\n}}\n}}\n")


def all_reduce(to, of, kind, channel, op="add"):
    scalar = kind.split("x")[-1]
    return (f'  %{to} = "stablehlo.all_reduce"(%{of}) <{{{GROUP.format(channel=channel)}, '
            f"use_global_device_ids}}> ({{\n  ^bb0(%l: tensor<{scalar}>, %r: tensor<{scalar}>):\n"
            f"    %s = stablehlo.{op} %l, %r : tensor<{scalar}>\n    stablehlo.return %s : "
            f"tensor<{scalar}>\n  }}) : (tensor<{kind}>) -> tensor<{kind}>\n")


def one_collective(kind, n, dtype, op):
    a, group = f"{n}x{dtype}", GROUP.format(channel=1)
    half, twice = f"{n // RANKS}x{dtype}", f"{RANKS * n}x{dtype}"
    scalar = dtype
    out = {"all_gather": twice, "reduce_scatter": half}.get(kind, a)
    if kind == "all_reduce":
        body = all_reduce("b", "a", a, 1, op)
    elif kind == "all_gather":
        body = (f'  %b = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, {group}, '
                f"use_global_device_ids}}> : (tensor<{a}>) -> tensor<{twice}>\n")
    elif kind == "reduce_scatter":
        body = (f'  %b = "stablehlo.reduce_scatter"(%a) <{{scatter_dimension = 0 : i64, {group}, '
                f"use_global_device_ids}}> ({{\n  ^bb0(%l: tensor<{scalar}>, %r: tensor<{scalar}>):"
                f"\n    %s = stablehlo.{op} %l, %r : tensor<{scalar}>\n    stablehlo.return %s : "
                f"tensor<{scalar}>\n  }}) : (tensor<{a}>) -> tensor<{half}>\n")
    elif kind == "all_to_all":
        body = (f'  %b = "stablehlo.all_to_all"(%a) <{{split_dimension = 0 : i64, '
                f"concat_dimension = 0 : i64, split_count = {RANKS} : i64, {group}}}> : (tensor<{a}>) -> "
                f"tensor<{a}>\n")
    elif kind == "permute":
        body = ('  %b = "stablehlo.collective_permute"(%a) <{channel_handle = '
                "#stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = "
                f"dense<[[0, 1]]> : tensor<1x2xi64>}}> : (tensor<{a}>) -> tensor<{a}>\n")
    else:
        body = (f'  %b = "stablehlo.collective_broadcast"(%a) <{{{group}}}> : (tensor<{a}>) -> '
                f"tensor<{a}>\n")
    return module([("a", a)], [("b", out)], body, f"{kind}_{dtype}_{op}"), out


def expected(kind, parts, rank, op):
    """Of two ranks, as numpy has them."""
    combine = {"add": np.add, "multiply": np.multiply, "minimum": np.minimum,
               "maximum": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or}[op]
    n = len(parts[0])
    if kind == "all_reduce":
        return combine(*parts)
    if kind == "all_gather":
        return np.concatenate(parts)
    if kind == "reduce_scatter":
        return combine(*parts)[rank * n // 2:(rank + 1) * n // 2]
    if kind == "all_to_all":
        return np.concatenate([p[rank * n // 2:(rank + 1) * n // 2] for p in parts])
    if kind == "permute":
        return parts[0] if rank else np.zeros_like(parts[0])
    return parts[0]


# Of what each GPU combines itself, which is a kernel to compile each.
FEW = (("all_reduce", "f32", "maximum"), ("all_reduce", "i32", "and"), ("all_reduce", "i16", "add"),
       ("reduce_scatter", "i16", "add"))


def has_kernel(kind, dtype, op):
    return kind in ("all_reduce", "reduce_scatter") and dtype != "i1" and (
        dtype == "i16" or op in ("and", "or") or
        (op in ("minimum", "maximum") and TYPES[dtype][0] in (2, 4)))


def cases(every):
    for case in all_cases():
        if every or case in FEW or not has_kernel(*case):
            yield case


def all_cases():
    for dtype in TYPES:
        for kind in ("all_gather", "all_to_all", "permute", "broadcast"):
            yield kind, dtype, "add"
        ops = ["add", "multiply", "minimum", "maximum"]
        if TYPES[dtype][0] in (0, 1):
            ops += ["and", "or"]
        if dtype == "i1":
            ops = ["and", "or"]
        for op in ops:
            yield "all_reduce", dtype, op
        yield "reduce_scatter", dtype, "add" if dtype != "i1" else "or"


def values(dtype, n, rank, op):
    random = np.random.default_rng(rank * 1000 + n)
    if dtype == "i1":
        return random.integers(0, 2, n).astype(np.uint8)
    if TYPES[dtype][0] in (2, 4):
        x = random.standard_normal(n)
        if op in ("minimum", "maximum"):
            x[::37] = np.nan
        return to_bf16(x) if dtype == "bf16" else x.astype(TYPES[dtype][2])
    return random.integers(0, 7, n).astype(TYPES[dtype][2])


def judge(kind, dtype, op, n, rank, got):
    parts = [values(dtype, n, r, op) for r in range(2)]
    if dtype == "bf16":
        want = expected(kind, [from_bf16(p) for p in parts], rank, op)
        moved = kind not in ("all_reduce", "reduce_scatter")
        got = from_bf16(got)
        want = want if moved else from_bf16(to_bf16(want))
    else:
        with np.errstate(over="ignore"):
            want = expected(kind, parts, rank, op)
    return np.array_equal(got, want, equal_nan=TYPES[dtype][0] in (2, 4))


# --- What a rank does: processes and threads alike ---


def run_cases(pestle, gpu, load, world, rank, n, host=None, strict=False, every=False):
    """(how many, which were wrong, which differ from those by |host|). |load| makes an
    executable of a text."""
    wrong, other, count = [], [], 0
    for kind, dtype, op in cases(every):
        text, out = one_collective(kind, n, dtype, op)
        executable = load(text, strict)
        array = values(dtype, n, rank, op)
        like = np.empty(int(out.split("x")[0]), TYPES[dtype][2])
        a, b = gpu.put(array), gpu.put(like)
        got = []
        for w in [world] + ([host] if host else []):
            pestle.run(executable, [(a, dtype, (n,), gpu.index)],
                       [(b, dtype, like.shape, gpu.index)], w)
            got.append(gpu.get(b, like))
        count += 1
        if not judge(kind, dtype, op, n, rank, got[0]):
            wrong.append(f"{kind} {dtype} {op}")
        if host and got[0].tobytes() != got[1].tobytes():
            other.append(f"{kind} {dtype} {op}")
        gpu.free(a)
        gpu.free(b)
        pestle.lib.pestle_executable_release(executable)
    return count, wrong, other


def best(call, times):
    least = 1e9
    for _ in range(times):
        begin = time.perf_counter()
        call()
        least = min(least, time.perf_counter() - begin)
    return least


def chain(n, times):
    a = f"{n}xf32"
    body = "".join(all_reduce(f"v{i + 1}", f"v{i}", a, 1) for i in range(times))
    return module([("v0", a)], [(f"v{times}", a)], body, f"chain_{n}_{times}")


def part_wire(r):
    """all_reduce in a plan beside ncclAllReduce on the same memory, in turns."""
    direct = Nccl(r.gpu, r.rank, 2, r.folder / "direct.id")
    sizes = [1 << e for e in ((10, 13, 16) if r.small else
                              (10, 13, 16, 18, 20, 22, 24, 26, 28, 30))]
    for size in sizes:
        n, times = size // 4, 100 if size <= 1 << 18 else 30 if size <= 1 << 24 else 8
        executable = r.pestle.load(chain(n, times), r.device)
        ones = np.ones(n, np.float32)
        a, b = r.gpu.put(ones), r.gpu.new(size)
        one = [(a, "f32", (n,), r.rank)]
        two = [(b, "f32", (n,), r.rank)]

        def plan():
            r.pestle.run(executable, one, two, r.world)

        def by_hand():
            direct.all_reduces(a, b, n, times)

        plan()
        right = bool((r.gpu.get(b, ones) == np.float32(2.0) ** times).all())
        plan(), by_hand(), plan(), by_hand()
        mine, bare = [], []
        for _ in range(4):
            mine.append(best(plan, 5) / times)
            bare.append(best(by_hand, 5) / times)
        mine, bare = min(mine), min(bare)
        r.say("wire", f"all_reduce f32 {size} B", right, plan_us=mine * 1e6, nccl_us=bare * 1e6,
              plan_gbs=size / mine * 1e-9, nccl_gbs=size / bare * 1e-9, ratio=bare / mine)
        r.gpu.free(a)
        r.gpu.free(b)
        r.pestle.lib.pestle_executable_release(executable)
    direct.end()


def part_right(r):
    for n in (2, 1000) if r.small else (2, 1000, 1 << 20):
        count, wrong, _ = run_cases(r.pestle, r.gpu, r.load, r.world, r.rank, n, every=n == 1000)
        r.say("right", f"processes, n = {n}", not wrong, cases=count, wrong=wrong)


def part_bits(r):
    """The same inputs by NCCL and through sockets; of two ranks all sums have one order."""
    host = r.pestle.world("host", r.port + 1)
    for strict in (False, True):
        count, wrong, other = run_cases(r.pestle, r.gpu, r.load, r.world, r.rank, 3000, host,
                                        strict)
        r.say("bits", "strict" if strict else "default", not wrong and not other, cases=count,
              wrong=wrong, differ_from_sockets=other)
    # Runs of a sum are all alike.
    executable = r.pestle.load(chain(1 << 16, 3), r.device)
    x = np.random.default_rng(r.rank).standard_normal(1 << 16).astype(np.float32)
    a, b = r.gpu.put(x), r.gpu.new(x.nbytes)
    seen = set()
    for _ in range(20):
        r.pestle.run(executable, [(a, "f32", x.shape, r.rank)], [(b, "f32", x.shape, r.rank)],
                     r.world)
        seen.add(r.gpu.get(b, x).tobytes())
    r.say("bits", "20 runs", len(seen) == 1)
    r.pestle.lib.pestle_world_release(host)


def filled(shape, seed, scale):
    random = np.random.default_rng(seed)
    block = to_bf16(random.standard_normal(1 << 16) * scale)
    return np.resize(block, shape)


def mlp(tokens, d, h, ranks):
    x, w1, w2, m, y = (f"{tokens}x{d}xbf16", f"{d}x{h}xbf16", f"{h}x{d}xbf16",
                       f"{tokens}x{h}xbf16", f"{tokens}x{d}xbf16")
    body = (f"  %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<{x}>, "
            f"tensor<{w1}>) -> tensor<{m}>\n"
            f"  %z = stablehlo.constant dense<0.0> : tensor<{m}>\n"
            f"  %g = stablehlo.maximum %h, %z : tensor<{m}>\n"
            f"  %y = stablehlo.dot_general %g, %w2, contracting_dims = [1] x [0] : (tensor<{m}>, "
            f"tensor<{w2}>) -> tensor<{y}>\n")
    out = "y"
    if ranks > 1:
        body += all_reduce("o", "y", y, 1)
        out = "o"
    return module([("x", x), ("w1", w1), ("w2", w2)], [(out, y)], body, f"mlp{ranks}", ranks)


def part_tensor(r):
    """An MLP whose middle is halved, beside the whole on one GPU."""
    tokens, d, h = (64, 64, 128) if r.small else (4096, 8192, 28672)
    times = 2 if r.small else 10
    x = filled((tokens, d), 1, 1.0)
    w1, w2 = filled((d, h), 2, 0.02), filled((h, d), 3, 0.02)
    y = np.empty((tokens, d), np.uint16)
    alone, whole = None, None
    r.meet()
    if r.rank == 0:
        executable = r.pestle.load(mlp(tokens, d, h, 1), r.device)
        data = [(r.gpu.put(v), "bf16", v.shape, 0) for v in (x, w1, w2)]
        out = (r.gpu.new(y.nbytes), "bf16", y.shape, 0)
        r.pestle.run(executable, data, [out])
        alone = best(lambda: r.pestle.run(executable, data, [out]), times)
        whole = from_bf16(r.gpu.get(out[0], y))
        for view in data + [out]:
            r.gpu.free(view[0])
        r.pestle.lib.pestle_executable_release(executable)
    r.meet()
    half = slice(r.rank * h // 2, (r.rank + 1) * h // 2)
    executable = r.load(mlp(tokens, d, h // 2, 2))
    data = [(r.gpu.put(v), "bf16", v.shape, r.rank) for v in (x, w1[:, half], w2[half])]
    out = (r.gpu.new(y.nbytes), "bf16", y.shape, r.rank)
    r.pestle.run(executable, data, [out], r.world)
    r.pestle.run(executable, data, [out], r.world)
    both = best(lambda: r.pestle.run(executable, data, [out], r.world), times)
    if r.rank == 0:
        mine = from_bf16(r.gpu.get(out[0], y))
        off = float(np.linalg.norm(mine - whole) / np.linalg.norm(whole))
        r.say("tensor", f"MLP {d} x {d} x {h} bf16, {tokens} tokens", off < 0.02,
              one_gpu_ms=alone * 1e3, two_gpus_ms=both * 1e3, speedup=alone / both, off=off)
    for view in data + [out]:
        r.gpu.free(view[0])
    r.pestle.lib.pestle_executable_release(executable)


def training(batch, d, h, ranks, rate):
    """A step of gradient descent of two layers."""
    x, w1, w2, m = f"{batch}x{d}xbf16", f"{d}x{h}xbf16", f"{h}x{d}xbf16", f"{batch}x{h}xbf16"
    p = f"{batch}x{h}xi1"

    def dot(to, a, b, ta, tb, tc, left, right):
        return (f"  %{to} = stablehlo.dot_general %{a}, %{b}, contracting_dims = [{left}] x "
                f"[{right}] : (tensor<{ta}>, tensor<{tb}>) -> tensor<{tc}>\n")
    body = (dot("h", "x", "w1", x, w1, m, 1, 0) +
            f"  %z = stablehlo.constant dense<0.0> : tensor<{m}>\n"
            f"  %g = stablehlo.maximum %h, %z : tensor<{m}>\n" +
            dot("y", "g", "w2", m, w2, x, 1, 0) +
            f"  %e = stablehlo.subtract %y, %t : tensor<{x}>\n" +
            dot("d2", "g", "e", m, x, w2, 0, 0))
    if ranks > 1:
        body += all_reduce("s2", "d2", w2, 1)
    body += (dot("f", "e", "w2", x, w2, m, 1, 1) +
             f"  %q = stablehlo.compare GT, %h, %z : (tensor<{m}>, tensor<{m}>) -> tensor<{p}>\n"
             f"  %k = stablehlo.select %q, %f, %z : tensor<{p}>, tensor<{m}>\n" +
             dot("d1", "x", "k", x, m, w1, 0, 0))
    if ranks > 1:
        body += all_reduce("s1", "d1", w1, 2)
    for i, w in ((1, w1), (2, w2)):
        of = f"s{i}" if ranks > 1 else f"d{i}"
        body += (f"  %r{i} = stablehlo.constant dense<{rate}> : tensor<{w}>\n"
                 f"  %u{i} = stablehlo.multiply %{of}, %r{i} : tensor<{w}>\n"
                 f"  %n{i} = stablehlo.subtract %w{i}, %u{i} : tensor<{w}>\n")
    return module([("x", x), ("t", x), ("w1", w1), ("w2", w2)], [("n1", w1), ("n2", w2)], body,
                  f"train{ranks}", ranks)


def whole_batch(r, batch, d, h, rate, shapes, inputs, mine):
    """How far the steps of both GPUs are from one of all samples on one, of what they moved."""
    both = [np.concatenate([inputs[i], filled(shapes[i], i + 10, 1.0)]) for i in range(2)]
    executable = r.pestle.load(training(2 * batch, d, h, 1, rate), r.device)
    data = [(r.gpu.put(v), "bf16", v.shape, 0) for v in both + inputs[2:]]
    outs = [(r.gpu.new(2 * d * h), "bf16", s, 0) for s in shapes[2:]]
    r.pestle.run(executable, data, outs)
    off = 0.0
    for o, w, m in zip(outs, inputs[2:], mine):
        want, w = from_bf16(r.gpu.get(o[0], m)), from_bf16(w)
        moved = float(np.linalg.norm(want - w))
        off = max(off, float(np.linalg.norm(from_bf16(m) - want)) / max(moved, 1e-30))
    for v in data + outs:
        r.gpu.free(v[0])
    r.pestle.lib.pestle_executable_release(executable)
    return off


def part_data(r):
    """Weak scaling: a step of a batch alone, and of twice the batch on two GPUs."""
    batch, d, h = (16, 64, 128) if r.small else (8192, 2048, 6144)
    times, rate = (2, "1.0e-2") if r.small else (20, "1.0e-5")
    shapes = ((batch, d), (batch, d), (d, h), (h, d))
    inputs = [filled(s, i + (10 * r.rank if i < 2 else 0), 0.05 if i > 1 else 1.0)
              for i, s in enumerate(shapes)]
    data = [(r.gpu.put(v), "bf16", v.shape, r.rank) for v in inputs]
    outs = [(r.gpu.new(2 * d * h), "bf16", s, r.rank) for s in shapes[2:]]
    steps = []
    for ranks in (1, 2):
        executable = r.load(training(batch, d, h, ranks, rate))
        world = r.world if ranks > 1 else None
        r.pestle.run(executable, data, outs, world)
        r.pestle.run(executable, data, outs, world)
        r.meet()
        steps.append(best(lambda: r.pestle.run(executable, data, outs, world), times))
        r.pestle.lib.pestle_executable_release(executable)
    mine = [r.gpu.get(o[0], np.empty(s, np.uint16)) for o, s in zip(outs, shapes[2:])]
    (r.folder / f"data{r.rank}").write_bytes(b"".join(m.tobytes() for m in mine))
    r.meet()
    same = (r.folder / "data0").read_bytes() == (r.folder / "data1").read_bytes()
    off = whole_batch(r, batch, d, h, rate, shapes, inputs, mine) if r.rank == 0 else 0.0
    r.meet()
    executable = r.pestle.load(chain(d * h // 2, 8), r.device)  # the bytes of one gradient
    a, b = r.gpu.new(2 * d * h), r.gpu.new(2 * d * h)
    view = [(a, "f32", (d * h // 2,), r.rank)], [(b, "f32", (d * h // 2,), r.rank)]
    r.pestle.run(executable, *view, r.world)
    wire = best(lambda: r.pestle.run(executable, *view, r.world), 5) / 8 * 2
    exposed = max(0.0, steps[1] - steps[0])
    r.say("data", f"step of {2 * d * h} parameters, batch {batch} a GPU", same and off < 0.05,
          off=off,
          one_gpu_ms=steps[0] * 1e3, two_gpus_ms=steps[1] * 1e3, weak_scaling=steps[0] / steps[1],
          wire_ms=wire * 1e3, exposed_share=exposed / wire)
    for v in data + outs:
        r.gpu.free(v[0])
    r.gpu.free(a)
    r.gpu.free(b)


# --- A transformer ---


class Transformer:
    """Blocks of attention and two products, with norms, in bf16; the loss is that of a
    regression. Its text is made here, its gradients are Pestle's."""

    def __init__(self, layers, batch, rows, width, heads, middle):
        self.layers, self.batch, self.rows = layers, batch, rows
        self.width, self.heads, self.middle = width, heads, middle
        self.tokens = batch * rows
        d, h = width, middle
        self.weights = [(d, d)] * 4 + [(d, h), (h, d)]
        self.weights = self.weights * layers
        self.lines, self.count = [], 0

    def op(self, text, kind=None):
        self.count += 1
        self.lines.append(f"  %v{self.count} = {text}" + (f" -> tensor<{kind}>" if kind else ""))
        return f"v{self.count}"

    def dot(self, a, b, ta, tb, tc, contract, batch=None):
        batching = f"batching_dims = [{batch}] x [{batch}], " if batch else ""
        return self.op(f"stablehlo.dot_general %{a}, %{b}, {batching}contracting_dims = "
                       f"[{contract[0]}] x [{contract[1]}] : (tensor<{ta}>, tensor<{tb}>)", tc)

    def two(self, name, a, b, kind):
        return self.op(f"stablehlo.{name} %{a}, %{b} : tensor<{kind}>")

    def change(self, name, a, of, to, more=""):
        return self.op(f"stablehlo.{name} %{a}{more} : (tensor<{of}>)", to)

    def spread(self, a, of, to, dims):
        return self.change("broadcast_in_dim", a, of, to, f", dims = [{dims}]")

    def total(self, a, of, to, axis):
        return self.op(f"stablehlo.reduce(%{a} init: %zero) applies stablehlo.add across "
                       f"dimensions = [{axis}] : (tensor<{of}>, tensor<f32>)", to)

    def norm(self, x):
        t, d = self.tokens, self.width
        wide = self.change("convert", x, f"{t}x{d}xbf16", f"{t}x{d}xf32")
        square = self.two("multiply", wide, wide, f"{t}x{d}xf32")
        mean = self.two("multiply", self.total(square, f"{t}x{d}xf32", f"{t}xf32", 1), "mean",
                        f"{t}xf32")
        root = self.op(f"stablehlo.rsqrt %{self.two('add', mean, 'least', f'{t}xf32')} : "
                       f"tensor<{t}xf32>")
        scaled = self.two("multiply", wide, self.spread(root, f"{t}xf32", f"{t}x{d}xf32", 0),
                          f"{t}x{d}xf32")
        return self.change("convert", scaled, f"{t}x{d}xf32", f"{t}x{d}xbf16")

    def attention(self, x, w):
        t, d, b, s, h = self.tokens, self.width, self.batch, self.rows, self.heads
        e, flat = d // h, f"{t}x{d}xbf16"
        apart, turned = f"{b}x{s}x{h}x{e}xbf16", f"{b}x{h}x{s}x{e}xbf16"
        square, wide = f"{b}x{h}x{s}x{s}xbf16", f"{b}x{h}x{s}x{s}xf32"
        q, k, v = (self.change("transpose", self.change(
            "reshape", self.dot(x, w[i], flat, f"{d}x{d}xbf16", flat, (1, 0)), flat, apart),
            apart, turned, ", dims = [0, 2, 1, 3]") for i in range(3))
        scores = self.change("convert", self.dot(q, k, turned, turned, square, (3, 3), "0, 1"),
                             square, wide)
        power = self.op(f"stablehlo.exponential "
                        f"%{self.two('multiply', scores, 'scale', wide)} : tensor<{wide}>")
        whole = self.spread(self.total(power, wide, f"{b}x{h}x{s}xf32", 3), f"{b}x{h}x{s}xf32",
                            wide, "0, 1, 2")
        share = self.change("convert", self.two("divide", power, whole, wide), wide, square)
        mixed = self.dot(share, v, square, turned, turned, (3, 2), "0, 1")
        back = self.change("reshape", self.change("transpose", mixed, turned, apart,
                                                  ", dims = [0, 2, 1, 3]"), apart, flat)
        return self.dot(back, w[3], flat, f"{d}x{d}xbf16", flat, (1, 0))

    def loss(self):
        """The module of the loss: x, t, then the weights."""
        t, d, m = self.tokens, self.width, self.middle
        flat, mid = f"{t}x{d}xbf16", f"{t}x{m}xbf16"
        b, s, h = self.batch, self.rows, self.heads
        wide = f"{b}x{h}x{s}x{s}xf32"
        self.lines = [
            "  %zero = stablehlo.constant dense<0.0> : tensor<f32>",
            f"  %mean = stablehlo.constant dense<{1 / d:e}> : tensor<{t}xf32>",
            f"  %least = stablehlo.constant dense<1.0e-5> : tensor<{t}xf32>",
            f"  %scale = stablehlo.constant dense<{(d // h) ** -0.5:e}> : tensor<{wide}>",
            f"  %none = stablehlo.constant dense<0.0> : tensor<{mid}>"]
        x = "x"
        for layer in range(self.layers):
            w = [f"w{6 * layer + i}" for i in range(6)]
            x = self.two("add", x, self.attention(self.norm(x), w), flat)
            up = self.dot(self.norm(x), w[4], flat, f"{d}x{m}xbf16", mid, (1, 0))
            x = self.two("add", x, self.dot(self.two("maximum", up, "none", mid), w[5], mid,
                                            f"{m}x{d}xbf16", flat, (1, 0)), flat)
        off = self.change("convert", self.two("subtract", x, "t", flat), flat, f"{t}x{d}xf32")
        out = self.total(self.two("multiply", off, off, f"{t}x{d}xf32"), f"{t}x{d}xf32", "f32",
                         "0, 1")
        arguments = [("x", flat), ("t", flat)] + [
            (f"w{i}", f"{a}x{b}xbf16") for i, (a, b) in enumerate(self.weights)]
        return module(arguments, [(out, "f32")], "\n".join(self.lines) + "\n", "loss", 1)

    def step(self, gradient, ranks, rate):
        """Of the printed gradients: each is summed over the ranks and moves its weight."""
        head = re.search(r"@main\((.*)\) ->", gradient).group(1)
        names = re.findall(r"%(\w+): ", head)
        last = re.findall(r"^ +return (.*) : (.*)$", gradient, re.M)[-1]
        values = re.findall(r"%(\w+)", last[0])
        body, out = "", [values[0]]
        for i, value in enumerate(values[1:]):
            kind = "x".join(map(str, self.weights[i])) + "xbf16"
            if ranks > 1:
                body += all_reduce(f"sum{i}", value, kind, i + 1)
                value = f"sum{i}"
            body += (f"  %rate{i} = stablehlo.constant dense<{rate}> : tensor<{kind}>\n"
                     f"  %by{i} = stablehlo.multiply %{value}, %rate{i} : tensor<{kind}>\n"
                     f"  %new{i} = stablehlo.subtract %{names[2 + i]}, %by{i} : tensor<{kind}>\n")
            out.append(f"new{i}")
        old = f"return {last[0]} : {last[1]}"
        text = gradient.replace(
            old, body.lstrip() + "  return " + ", ".join(f"%{v}" for v in out) + f" : {last[1]}")
        if ranks > 1:
            text = re.sub(r"module( @\w+)?( attributes \{[^}]*\})? \{",
                          f"module @step attributes {{mhlo.num_partitions = {ranks} : i32, "
                          "mhlo.num_replicas = 1 : i32} {", text, count=1)
        return text

    def sums(self):
        """The collectives of a step alone."""
        body = "".join(all_reduce(f"s{i}", f"a{i}", f"{a}x{b}xbf16", i + 1)
                       for i, (a, b) in enumerate(self.weights))
        named = [f"{a}x{b}xbf16" for a, b in self.weights]
        return module([(f"a{i}", k) for i, k in enumerate(named)],
                      [(f"s{i}", k) for i, k in enumerate(named)], body, "sums")


def part_overlap(r):
    """Weak scaling of a transformer's step, with and without overlap and recordings."""
    model = Transformer(2, 2, 16, 32, 2, 64) if r.small else Transformer(6, 8, 1024, 1024, 16, 4096)
    times, again = (2, 4) if r.small else (20, 20)
    count = sum(a * b for a, b in model.weights)
    flat = (model.tokens, model.width)
    gradient = r.pestle.gradient(model.loss(), range(2, 2 + len(model.weights)))
    shapes = [flat, flat] + model.weights
    data = [(r.gpu.put(filled(s, i + (1000 * r.rank if i < 2 else 0), 0.02 if i > 1 else 1.0)),
             "bf16", s, r.rank) for i, s in enumerate(shapes)]
    outs = [(r.gpu.new(4), "f32", (), r.rank)] + [
        (r.gpu.new(2 * a * b), "bf16", (a, b), r.rank) for a, b in model.weights]

    def results():
        digest = hashlib.sha256()
        for o, s in zip(outs[1:], model.weights):
            digest.update(r.gpu.get(o[0], np.empty(s, np.uint16)).tobytes())
        return digest.hexdigest()

    def measure(executable, world):
        for _ in range(3):  # as it is seen first, recorded, launched
            r.pestle.run(executable, data, outs, world)
        r.meet()
        return best(lambda: r.pestle.run(executable, data, outs, world), times)

    executable = r.load(model.step(gradient, 1, "1.0e-6"))
    alone = measure(executable, None)
    moved = results()
    r.pestle.lib.pestle_executable_release(executable)
    sums = r.load(model.sums())
    executable = r.load(model.step(gradient, 2, "1.0e-6"))
    seen, wire = set(), None
    for overlap, recorded in ((0, 0), (0, 1), (1, 0), (1, 1)):
        os.environ["PESTLE_WORLD_OVERLAP"] = str(overlap)
        os.environ["PESTLE_WORLD_RECORDINGS"] = str(recorded)
        world = r.pestle.world(port=r.agree_on_port())
        both = measure(executable, world)
        mine = {results()}
        for _ in range(again - 1):
            r.pestle.run(executable, data, outs, world)
            mine.add(results())
        seen |= mine
        one = [(o[0], "bf16", s, r.rank) for o, s in zip(outs[1:], model.weights)]
        two = [(r.gpu.new(2 * a * b), "bf16", (a, b), r.rank) for a, b in model.weights]
        for _ in range(3):
            r.pestle.run(sums, one, two, world)
        r.meet()
        wire = best(lambda: r.pestle.run(sums, one, two, world), times)
        for v in two:
            r.gpu.free(v[0])
        exposed = max(0.0, both - alone)
        r.say("overlap", f"transformer of {count} parameters, {model.tokens} tokens a GPU, "
              f"overlap {overlap}, recordings {recorded}",
              len(mine) == 1 and len(seen) == 1 and mine != {moved}, one_gpu_ms=alone * 1e3,
              two_gpus_ms=both * 1e3, weak_scaling=alone / both, wire_ms=wire * 1e3,
              exposed_share=exposed / wire, runs=again)
        r.meet()
        r.pestle.lib.pestle_world_release(world)
    (r.folder / f"overlap{r.rank}").write_text("\n".join(sorted(seen)))
    r.meet()
    same = (r.folder / "overlap0").read_text() == (r.folder / "overlap1").read_text()
    r.say("overlap", "both ranks have the same weights, with and without", same and len(seen) == 1)
    for v in data + outs:
        r.gpu.free(v[0])
    for e in (executable, sums):
        r.pestle.lib.pestle_executable_release(e)


class Rank:
    def __init__(self, arguments):
        self.rank = int(os.environ["RANK"])
        self.port = int(os.environ["PESTLE_WORLD"].rsplit(":", 1)[1])
        self.small = arguments.small
        self.folder = pathlib.Path(arguments.folder)
        self.pestle = Pestle(arguments.base)
        self.device = self.pestle.device(f"cuda:{self.rank}")
        self.gpu = Gpu(self.rank)
        self.world = self.pestle.world(deadline_ms=arguments.deadline)
        self.met = 0

    def say(self, part, name, right, **more):
        if self.rank == 0 or not right:
            print("ROW " + json.dumps({"part": part, "name": name, "right": right,
                                       "rank": self.rank, **more}), flush=True)

    def meet(self):
        """By files: nothing of what is measured."""
        self.met += 1
        (self.folder / f"met{self.met}-{self.rank}").touch()
        for other in range(RANKS):
            while not (self.folder / f"met{self.met}-{other}").exists():
                time.sleep(0.001)

    def agree_on_port(self):
        path = self.folder / f"port{self.met}"
        if self.rank == 0:
            path.write_text(str(free_port()))
        self.meet()
        return int(path.read_text())

    def load(self, text, strict=False):
        """What rank 0 compiles both run."""
        path = self.folder / f"shared{self.met}.plan"
        executable = None
        if self.rank == 0:
            executable = self.pestle.load(text, self.device, strict, path)
        self.meet()
        return executable or self.pestle.load_plan(path, self.device)

    def loop(self):
        executable = self.pestle.load(chain(1 << 20, 4), self.device)
        data = self.gpu.put(np.ones(1 << 20, np.float32))
        out = self.gpu.new(4 << 20)
        view = [(data, "f32", (1 << 20,), self.rank)], [(out, "f32", (1 << 20,), self.rank)]
        self.pestle.run(executable, *view, self.world)
        print("ready", flush=True)
        while True:
            self.pestle.run(executable, *view, self.world)


def rank_main(arguments):
    r = Rank(arguments)
    if arguments.rank == "loop":
        try:
            r.loop()
        except Failed as failed:
            print(f"error {failed}", flush=True)
            # What NCCL or the driver still do must not hold the process.
            os._exit(1)
    globals()["part_" + arguments.rank](r)
    sys.stdout.flush()
    r.pestle.lib.pestle_world_release(r.world)
    return 0


def threads_main(arguments):
    """Ranks as threads of this process, each with its GPU."""
    pestle = Pestle(arguments.base)
    gpus = [Gpu(i) for i in range(2)]
    devices = [pestle.device(f"cuda:{i}") for i in range(2)]
    for n in (2, 1000):
        worlds = pestle.local(2)
        results = [None, None]

        def run(rank):
            gpus[rank].enter()
            try:
                results[rank] = run_cases(
                    pestle, gpus[rank], lambda text, strict: pestle.load(text, devices[rank]),
                    worlds[rank], rank, n)
            except Exception as failed:  # shown, and the other rank ends by it
                results[rank] = (0, [str(failed)], [])
        ranks = [threading.Thread(target=run, args=(i,)) for i in range(2)]
        for t in ranks:
            t.start()
        for t in ranks:
            t.join()
        for rank, (count, wrong, _) in enumerate(results):
            print("ROW " + json.dumps({"part": "right", "name": f"threads, n = {n}", "rank": rank,
                                       "right": not wrong, "cases": count, "wrong": wrong}),
                  flush=True)
        for w in worlds:
            pestle.lib.pestle_world_release(w)
    return 0


def torch_main(arguments):
    import torch
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{arguments.port}", rank=rank,
                            world_size=2)
    for size in (1 << 13, 1 << 20, 1 << 24, 1 << 28):
        x = torch.ones(size // 4, device="cuda")
        times = 100 if size <= 1 << 18 else 10

        def run():
            for _ in range(times):
                dist.all_reduce(x)
            torch.cuda.synchronize()
        run(), run()
        seconds = best(run, 8) / times
        if rank == 0:
            print("ROW " + json.dumps({
                "part": "torch", "name": f"torch {torch.__version__} all_reduce f32 {size} B",
                "right": True, "rank": 0, "us": seconds * 1e6, "gbs": size / seconds * 1e-9}),
                flush=True)
    dist.destroy_process_group()
    return 0


# --- The whole ---


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Main:
    def __init__(self, arguments):
        self.a = arguments
        self.right = True
        self.begin = time.monotonic()
        out = pathlib.Path(os.environ.get("OUT", "."))
        out.mkdir(parents=True, exist_ok=True)
        self.file = open(out / "world.jsonl", "a", encoding="utf-8")
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def row(self, row):
        self.right &= bool(row.get("right", True))
        row["t"] = round(time.monotonic() - self.begin, 1)
        self.file.write(json.dumps(row) + "\n")
        self.file.flush()
        numbers = "  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
                            for k, v in row.items()
                            if k not in ("part", "name", "right", "t") and v != [])
        print(f"{row['t']:6.1f} {'ok  ' if row.get('right', True) else 'FAIL'} {row['part']:7s} "
              f"{row['name']}: {numbers}", flush=True)

    def start(self, words, port, rank=None, deadline=30000):
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        env = os.environ | {"PESTLE_WORLD": f"tcp://127.0.0.1:{port}", "WORLD_SIZE": "2",
                            "PESTLE_WORLD_SECRET": SECRET, "PESTLE_NCCL": find_nccl()}
        if rank is not None:
            env["RANK"] = str(rank)
        line = [sys.executable, __file__, "--base", self.a.base, "--folder", folder, "--port",
                str(port), "--deadline", str(deadline)] + words
        if self.a.small:
            line.append("--small")
        return subprocess.Popen([str(w) for w in line], env=env, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    @staticmethod
    def stop(processes):
        for p in processes:
            if p.poll() is None:
                p.send_signal(signal.SIGCONT)
                p.kill()
            p.wait()
            p.stdout.close()

    def left(self):
        return self.a.seconds - (time.monotonic() - self.begin)

    def listen(self, name, processes, limit):
        """Rows of all, as they come; a part that hangs ends here."""
        other = [[] for _ in processes]

        def read(i, p):
            for line in p.stdout:
                if line.startswith("ROW "):
                    self.row(json.loads(line[4:]))
                else:
                    other[i].append(line.rstrip())
        readers = [threading.Thread(target=read, args=(i, p)) for i, p in enumerate(processes)]
        for t in readers:
            t.start()
        end = time.monotonic() + min(limit, max(5.0, self.left()))
        late = False
        for p in processes:
            try:
                p.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                late = True
        if late:
            for p in processes:
                if p.poll() is None:
                    p.kill()
        for t in readers:
            t.join(10)
        for i, p in enumerate(processes):
            p.wait()
            if p.returncode:
                self.row({"part": name, "name": "did not end well" if not late else "was too slow",
                          "right": False, "rank": i, "code": p.returncode,
                          "said": other[i][-6:]})

    def part(self, name, limit):
        if name not in self.a.only:
            return
        if self.left() < 10:
            self.row({"part": name, "name": "no time is left", "right": False})
            return
        port = free_port()
        if name == "torch":
            if not importlib.util.find_spec("torch"):
                self.row({"part": name, "name": "torch is not here"})
                return
            self.listen(name, [self.start(["--rank", "torch"], port, i) for i in range(2)], limit)
            return
        if name == "right":
            self.listen(name, [self.start(["--rank", "threads"], port)], limit)
        self.listen(name, [self.start(["--rank", name], port, i) for i in range(2)], limit)

    def fail(self, number, words):
        port = free_port()
        ranks = [self.start(["--rank", "loop"], port, i, deadline=5000) for i in range(2)]
        try:
            for p in ranks:
                line = p.stdout.readline()
                if line != "ready\n":
                    self.row({"part": "fail", "name": number.name, "right": False,
                              "said": line + p.stdout.read(2000) if p.poll() is not None else line})
                    return
            time.sleep(1.0)
            begin = time.monotonic()
            ranks[1].send_signal(number)
            try:
                text, _ = ranks[0].communicate(timeout=25)
            except subprocess.TimeoutExpired:
                text = "rank 0 has not ended for 25 s"
            seconds = time.monotonic() - begin
            self.row({"part": "fail", "name": number.name, "seconds": seconds,
                      "right": any(w in text for w in words) and seconds < 5 + 2 + 2,
                      "said": text.strip()[-400:]})
        finally:
            self.stop(ranks)

    def run(self):
        facts = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader; "
                               "nvidia-smi topo -m", shell=True, text=True, capture_output=True,
                               check=False).stdout
        version = ctypes.c_int()
        try:
            ctypes.CDLL(find_nccl()).ncclGetVersion(ctypes.byref(version))
        except OSError as missing:
            self.row({"part": "facts", "name": "NCCL", "right": False, "said": str(missing)})
            return 1
        self.row({"part": "facts", "name": "machine", "nccl": version.value, "file": find_nccl(),
                  "said": facts.strip().split("\n")[:6]})
        for name, limit in (("right", 60), ("bits", 45), ("wire", 75), ("tensor", 60),
                            ("data", 45), ("overlap", 120), ("torch", 60)):
            self.part(name, limit)
        if "fail" in self.a.only:  # last: what they leave is the driver's matter
            self.fail(signal.SIGKILL, ("rank 1 has died", "rank 1 has gone"))
            self.fail(signal.SIGSTOP, ("rank 1 has",))
        print("all right" if self.right else "NOT all right", flush=True)
        return 0 if self.right else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--base", type=lambda p: pathlib.Path(p).resolve(), required=True)
    parser.add_argument("--only", type=lambda t: t.split(","), default=PARTS)
    parser.add_argument("--seconds", type=float, default=240)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--rank", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--deadline", type=int, default=30000, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank == "threads":
        return threads_main(arguments)
    if arguments.rank == "torch":
        return torch_main(arguments)
    if arguments.rank:
        return rank_main(arguments)
    return Main(arguments).run()


if __name__ == "__main__":
    sys.exit(main())
