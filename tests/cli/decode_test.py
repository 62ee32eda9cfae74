#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoders (include/pestle/decode.h) of small models as onnxruntime-genai's builder writes them
(tests/models/llama.py): logits after each token and after prompts of many lengths by ONNX
Runtime's, caches that stay where they are, what a token writes, forks, files, choices, and
bad input. Exits 77 when a package is missing, or where Python cannot load the library."""

import ctypes as C
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto as TP
    from onnx import helper as h
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import llama  # noqa: E402
import llama_plain  # noqa: E402

BUILD = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", "build/release"))
MOST = 64
bad = []


class Options(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("device", C.c_void_p), ("most", C.c_int64), ("slots", C.c_size_t),
                ("threads", C.c_int32), ("compile", C.c_void_p), ("room", C.c_int64),
                ("encoder", C.c_char_p), ("no_ahead", C.c_bool)]


class Sampling(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("temperature", C.c_double), ("top_k", C.c_int64), ("top_p", C.c_double),
                ("seed", C.c_uint64)]


class Info(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("words", C.c_int64), ("most", C.c_int64), ("slots", C.c_size_t),
                ("caches", C.c_size_t), ("caches_in_place", C.c_size_t), ("cache_bytes", C.c_uint64),
                ("token_bytes", C.c_uint64), ("weight_bytes", C.c_uint64), ("compiles", C.c_uint64),
                ("compile_ns", C.c_int64), ("batches", C.c_uint64), ("context", C.c_int64), ("begin_id", C.c_int64),
                ("pad_id", C.c_int64), ("end_ids", C.c_void_p), ("end_count", C.c_size_t), ("room", C.c_int64),
                ("caches_bounded", C.c_size_t), ("feature_dtype", C.c_int32), ("feature_rank", C.c_int32),
                ("feature_dims", C.POINTER(C.c_int64)), ("encoder_bytes", C.c_uint64), ("compiles_ahead", C.c_uint64),
                ("waits", C.c_uint64)]


class Tensor(C.Structure):
    _fields_ = [("data", C.c_void_p), ("device_type", C.c_int32), ("device_id", C.c_int32), ("ndim", C.c_int32),
                ("code", C.c_uint8), ("bits", C.c_uint8), ("lanes", C.c_uint16), ("shape", C.POINTER(C.c_int64)),
                ("strides", C.POINTER(C.c_int64)), ("byte_offset", C.c_uint64)]


class Failure(Exception):
    pass


class Decoder:
    lib, context = None, C.c_void_p()

    @classmethod
    def load(cls):
        lib = cls.lib = C.CDLL(str(BUILD / "libpestle.so"))
        for name in "create encode feed feed_each cut fork save load choose info".split():
            getattr(lib, f"pestle_decoder_{name}").restype = C.c_void_p
        lib.pestle_decoder_logits.restype = C.POINTER(C.c_float)
        lib.pestle_decoder_length.restype = C.c_int64
        lib.pestle_context_create.restype = C.c_void_p
        lib.pestle_status_message.restype = C.c_char_p
        cls.check(lib.pestle_context_create(None, C.byref(cls.context)))

    @classmethod
    def check(cls, status):
        if status:
            text = cls.lib.pestle_status_message(C.c_void_p(status)).decode()
            cls.lib.pestle_status_release(C.c_void_p(status))
            raise Failure(text)

    def __init__(self, path, most=MOST, slots=1, threads=0, room=0, encoder=None, no_ahead=False):
        self.it = C.c_void_p()
        options = Options(C.sizeof(Options), None, most, slots, threads, None, room,
                          None if encoder is None else str(encoder).encode(), no_ahead)
        self.check(self.lib.pestle_decoder_create(self.context, str(path).encode(), C.byref(options), C.byref(self.it)))

    def __del__(self):
        self.lib.pestle_decoder_release(self.it)

    def call(self, name, *args):
        self.check(getattr(self.lib, "pestle_decoder_" + name)(self.it, *args))

    def encode(self, features, slot=0):
        features = np.asarray(features)
        shape, strides = ((C.c_int64 * features.ndim)(*n) for n in (features.shape, [s // features.itemsize for s in features.strides]))
        code = {"f": 2, "i": 0}[features.dtype.kind]
        tensor = Tensor(features.ctypes.data, 1, 0, features.ndim, code, 8 * features.itemsize, 1, shape, strides, 0)
        self.call("encode", C.c_size_t(slot), C.byref(tensor))

    def feed(self, ids, slot=0):
        self.call("feed", C.c_size_t(slot), (C.c_int64 * max(len(ids), 1))(*map(int, ids)), C.c_size_t(len(ids)))

    def feed_each(self, ids):
        slots = (C.c_size_t * max(len(ids), 1))(*ids)
        self.call("feed_each", slots, (C.c_int64 * max(len(ids), 1))(*ids.values()), C.c_size_t(len(ids)))

    def cut(self, length, slot=0):
        self.call("cut", C.c_size_t(slot), C.c_int64(length))

    def fork(self, a, b):
        self.call("fork", C.c_size_t(a), C.c_size_t(b))

    def file(self, name, path, slot=0):
        self.call(name, C.c_size_t(slot), str(path).encode())

    def choose(self, slot=0, **how):
        id, s = C.c_int64(), Sampling(C.sizeof(Sampling), **how)
        self.call("choose", C.c_size_t(slot), C.byref(s), C.byref(id))
        return id.value

    def info(self):
        info = Info(C.sizeof(Info))
        self.call("info", C.byref(info))
        return info

    def length(self, slot=0):
        return self.lib.pestle_decoder_length(self.it, C.c_size_t(slot))

    def logits(self, slot=0):
        data = self.lib.pestle_decoder_logits(self.it, C.c_size_t(slot))
        return np.ctypeslib.as_array(data, (self.info().words,)).copy() if data else None


def expect(what, good):
    if not good:
        bad.append(what)
        print("wrong:", what)


def refused(what, sentence, call):
    try:
        call()
        expect(f"{what} is taken", False)
    except Failure as e:
        expect(f"{what}: {e}", sentence in str(e))


def peer(path, maker, ids):
    """Logits behind each token, by ONNX Runtime. Caches that move have room for all tokens."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    s = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {"input_ids": ids[None], "attention_mask": np.ones((1, len(ids)), np.int64)}
    if hasattr(maker, "positions"):
        given["position_ids"] = np.arange(len(ids))[None]
    for i in range(maker.layers):
        for p in "key", "value":
            given[f"past_key_values.{i}.{p}"] = np.zeros((1, maker.shared, maker.moving * MOST, maker.depth), np.float32)
    return s.run(["logits"], given)[0][0]


def check_logits(folder):
    for how in {"level": 0}, {}, {"packed": 1, "level": 0}, {"bits": 8, "level": 0}, {"zeros": 1, "block": 16, "level": 0}, \
            {"window": 7, "level": 0}, {"window": 16, "moving": 1, "level": 0}, {"softcap": 2, "level": 0}, \
            {"sink": 1, "window": 9, "level": 0}:
        # By bytes a quotient half between two of them may go either way.
        near = 1e-3 if "level" in how else 0.05
        path = folder / "model.onnx"
        maker = llama.make(path, "tiny", **how)
        ids = np.random.default_rng(3).integers(0, maker.words, MOST)
        want = peer(path, maker, ids)
        spread = want.std()
        d = Decoder(path)
        for i in range(MOST):
            d.feed(ids[i:i + 1])
            expect(f"{how}: token {i}", np.abs(d.logits() - want[i]).max() <= near * spread)
        for n in 1, 2, 7, 8, 9, 15, 16, 17, 33, 63, 64:
            d.cut(0)
            d.feed(ids[:n])
            expect(f"{how}: a prompt of {n}", np.abs(d.logits() - want[n - 1]).max() <= near * spread)
        info = d.info()
        expect("caches are copied", info.caches_in_place == info.caches == 2 * maker.layers)
        expect("bytes of a token", info.token_bytes == 2 * maker.layers * maker.shared * maker.depth * 4)


def check_growing(folder):
    """Models that append rows: the same logits, or a refusal where they count places."""
    path = folder / "model.onnx"
    for how in {}, {"window": 1000}:
        maker = llama_plain.make(path, "tiny", **how)
        ids = np.random.default_rng(3).integers(0, maker.words, MOST)
        want = peer(path, maker, ids)
        spread = want.std()
        d = Decoder(path, slots=2)
        for i in range(MOST):
            d.feed(ids[i:i + 1])
            expect(f"{how}, growing: token {i}", np.abs(d.logits() - want[i]).max() <= 1e-3 * spread)
        for n in 1, 2, 7, 8, 9, 17, 40, 63, 64:
            d.cut(0, 1)
            d.feed(ids[:n], 1)
            expect(f"{how}, growing: a prompt of {n}", np.abs(d.logits(1) - want[n - 1]).max() <= 1e-3 * spread)
        d.cut(20)
        d.fork(0, 1)
        d.feed(ids[20:33], 1)
        expect("a fork of a growing one", np.abs(d.logits(1) - want[32]).max() <= 1e-3 * spread)
        info = d.info()
        expect("growing caches are copied", info.caches_in_place == info.caches == 2 * maker.layers)
    refused("few positions", "has 8 at least", lambda: Decoder(path, 4))
    llama_plain.make(path, "tiny", window=20)
    refused("a window of places", "gives other rows for two tokens", lambda: Decoder(path))
    llama_plain.make(path, "tiny", positions="places")
    refused("angles of places", "gives other rows for two tokens", lambda: Decoder(path, 32))


def check_static(folder):
    """Opset 24's form: the numbers of the same model with a mask."""
    path = folder / "model.onnx"
    maker = llama_plain.make(path, "tiny")
    ids = np.random.default_rng(3).integers(0, maker.words, MOST)
    want = peer(path, maker, ids)
    llama_plain.make(path, "tiny", static=True)
    d = Decoder(path)
    for i in range(MOST):
        d.feed(ids[i:i + 1])
        expect(f"opset 24: token {i}", np.abs(d.logits() - want[i]).max() <= 1e-3 * want.std())
    for n in 1, 2, 7, 8, 9, 17, 40, 63, 64:
        d.cut(0)
        d.feed(ids[:n])
        expect(f"opset 24: a prompt of {n}", np.abs(d.logits() - want[n - 1]).max() <= 1e-3 * want.std())
    info = d.info()
    expect("opset 24: caches are copied", info.caches_in_place == info.caches == 2 * maker.layers)


def check_tables(folder):
    """Tables of 64 angles that a Gather reads: positions are as many as they have, or are refused. An offset takes some
    away; positions may be counted by the mask; a clamp asks for none."""
    path = folder / "model.onnx"

    def count(m, nodes):
        return nodes + [
            h.make_node("CumSum", ["attention_mask", "c.axis"], ["c.all"]), h.make_node("Sub", ["c.all", "c.axis"], ["c.from0"]),
            h.make_node("Shape", ["input_ids"], ["c.rows"], start=1, end=2), h.make_node("Neg", ["c.rows"], ["c.first"]),
            h.make_node("Slice", ["c.from0", "c.first", "c.end", "c.ones"], ["c.positions"])]

    def add(m, nodes):
        return nodes + [h.make_node("Add", ["position_ids", "c.two"], ["c.positions"])]

    def clamp(m, nodes):
        return nodes + [h.make_node("Min", ["position_ids", "c.last"], ["c.positions"])]

    def through(*ops):
        """Positions by one op after another, each with constants behind them."""
        def change(m, nodes):
            last = "position_ids"
            for i, (op, inputs, attrs) in enumerate(ops):
                to = "c.positions" if i + 1 == len(ops) else f"c.at{i}"
                nodes = nodes + [h.make_node(op, [x.replace("@", last) for x in inputs], [to], **attrs)]
                last = to
            return nodes
        return change

    def cast(to):
        return "Cast", ["@"], {"to": to}

    below = "Less", ["@", "c.most"], {}
    held = (("floats", through(cast(TP.FLOAT), cast(TP.INT64)), 64),
            ("unsigned integers", through(cast(TP.UINT32), cast(TP.INT64)), 64),
            ("what is negative", through(("Neg", ["@"], {}), ("Neg", ["@"], {})), 64),
            ("sizes", through(("Sub", ["c.axis", "@"], {}), ("Abs", ["@"], {})), 65),
            ("a divisor", through(("Div", ["@", "c.two"], {})), 128),
            ("a remainder", through(("Mod", ["@", "c.large"], {})), 64),
            ("a remainder within", through(("Mod", ["@", "c.most"], {})), None),
            ("a choice", through(below, ("Where", ["@", "position_ids", "c.zero"], {})), None),
            ("a choice of the others", through(("Greater", ["position_ids", "c.last"], {}), ("Where", ["@", "c.zero", "position_ids"], {})), None),
            ("a choice too far", through(("LessOrEqual", ["position_ids", "c.most"], {}), ("Where", ["@", "position_ids", "c.zero"], {})), 64),
            ("a factor", through(below, cast(TP.INT64), ("Mul", ["position_ids", "@"], {})), None))
    for what, static, change, places in (*((what, 0, change, places) for what, change, places in held), ("given", 0, None, 64), ("given, opset 24", 1, None, 64), ("two more", 0, add, 62),
                                         ("counted by the mask", 0, count, 64), ("clamped", 0, clamp, None)):
        maker = llama_plain.make(path, "tiny", static=bool(static))
        if change:
            model = onnx.load(path)
            for name, value in ("axis", 1), ("end", [1 << 40]), ("ones", [1]), ("two", 2), ("last", 63), ("most", 64), ("zero", 0), ("large", 1000):
                model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, np.int64), "c." + name))
            nodes = change(maker, [])
            for node in model.graph.node:
                node.input[:] = ["c.positions" if i == "position_ids" else i for i in node.input]
            for i, node in enumerate(nodes):
                model.graph.node.insert(i, node)
            if change is count:
                model.graph.input.remove(next(i for i in model.graph.input if i.name == "position_ids"))
            onnx.save(model, path)
        expect(f"{what}: positions", Decoder(path, 0).info().most == (places or 2048))
        if places:
            refused(f"{what}: one more", f"has them for {places}, where sequences may have {places + 1}", lambda: Decoder(path, places + 1))
        d = Decoder(path, places or 80)
        d.feed(range(40))
        expect(f"{what}: tokens", d.logits() is not None and d.info().most == (places or 80))


def check_compiles(folder):
    """Each number of rows is compiled once, and not in a second process."""
    path = folder / "model.onnx"
    llama.make(path, "tiny", seed=5)
    d, counts = Decoder(path), []
    for n in 1, 10, 30, 1, 10, 30, 9, 17:
        d.cut(0)
        d.feed(list(range(n)))
        for i in range(4):
            d.feed([i])
        counts.append(d.info().compiles)
    expect(f"compiles {counts}", counts == [1, 2, 3, 3, 3, 3, 4, 4])
    llama.make(path, "tiny", seed=6)
    code = ("import sys; sys.path.insert(0, sys.argv[1]); import decode_test as t; t.Decoder.load(); "
            "d = t.Decoder(sys.argv[2]); d.feed(range(30)); d.feed([1]); print(d.logits().tobytes().hex()); "
            "print('LLVM' in open('/proc/self/maps').read())")
    command = [sys.executable, "-c", code, pathlib.Path(__file__).parent, path]
    told = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    expect("the first process compiles", told[0][1] == "True")
    expect("the second process compiles nothing", told[1][1] == "False")
    expect("the second process gives the same", told[0][0] == told[1][0])


def check_moving(folder):
    """A cache of a window has a row for each position, or is refused."""
    llama.make(folder / "model.onnx", "tiny", window=8, moving=1)
    dims = [f"--dim={k}" for k in ("sequence=1", "all=16", "past=8")]
    command = [BUILD / "pestle", "compile", folder / "model.onnx", "-o", folder / "no.plan", *dims]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    expect(f"a cache of 8 rows: {done.stderr}", done.returncode and "'sliding_window_cache' is 1" in done.stderr and
           "8 rows for 16 positions" in done.stderr)


def check_slots(folder):
    path = folder / "model.onnx"
    maker = llama.make(path, "tiny")
    ids = np.random.default_rng(4).integers(0, maker.words, 40)
    d = Decoder(path, slots=3)
    d.feed(ids[:20])
    d.feed(ids[::-1][:5], 1)
    d.fork(0, 2)
    expect("a fork's length", d.length(2) == 20 and np.array_equal(d.logits(2), d.logits()))
    d.feed(ids[20:30])
    before, other = d.logits(), d.logits(1)
    d.feed(ids[20:30], 2)
    expect("a fork goes on alike", np.array_equal(d.logits(2), before))
    d.file("save", folder / "a.seq")
    d.feed(ids[30:40])
    want = d.logits()
    again = Decoder(path, slots=2)
    again.file("load", folder / "a.seq", 1)
    expect("what was loaded", again.length(1) == 30 and np.array_equal(again.logits(1), before))
    again.feed(ids[30:40], 1)
    expect("what was loaded goes on alike", np.array_equal(again.logits(1), want))
    expect("another slot stays", np.array_equal(d.logits(1), other))
    data = bytearray((folder / "a.seq").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "b.seq").write_bytes(data)
    (folder / "c.seq").write_bytes(data[:len(data) // 3])
    refused("a damaged file", "is damaged", lambda: again.file("load", folder / "b.seq"))
    refused("half a file", "is damaged", lambda: again.file("load", folder / "c.seq"))
    (folder / "d.seq").write_text("a text that is longer than a header" * 9)
    refused("another file", "is no sequence", lambda: again.file("load", folder / "d.seq"))
    refused("other positions", "of another model", lambda: Decoder(path, 32).file("load", folder / "a.seq"))
    expect("a slot after bad files", again.length(0) == 0 and again.length(1) == 40)


def check_each(folder):
    """Tokens of several slots at once are those of each alone."""
    path = folder / "model.onnx"
    r = np.random.default_rng(6)
    for what, make in (("GroupQueryAttention", lambda: llama.make(path, "tiny", level=0, batch=True)),
                       ("one sequence", lambda: llama.make(path, "tiny", level=0)),
                       ("growing", lambda: llama_plain.make(path, "tiny"))):
        maker = make()
        alone, d = Decoder(path), Decoder(path, slots=4)
        ids = [list(map(int, r.integers(0, maker.words, n))) for n in (5, 17, 1, 62)]
        for s in range(4):
            d.feed(ids[s], s)
        compiles = d.info().compiles
        for turn in range(6):  # slot 3 is full after two
            some = {s: int(r.integers(maker.words)) for s in ((2, 0, 3), (0, 1, 2, 3), (1, 0), (2,))[turn % 4]
                    if len(ids[s]) < MOST}
            d.feed_each(some)
            for s, id in some.items():
                ids[s].append(id)
        if what == "GroupQueryAttention":
            expect(f"{what}: one more plan", d.info().compiles == compiles + 1)
        # Slot 3 is full behind the second turn, and then each runs alone.
        expect(f"{what}: runs of several", d.info().batches == (2 if what == "GroupQueryAttention" else 0))
        for s in range(4):
            alone.cut(0)
            alone.feed(ids[s])
            expect(f"{what}: length of slot {s}", d.length(s) == len(ids[s]))
            near = np.abs(d.logits(s) - alone.logits()).max() <= 1e-4 * np.ptp(alone.logits())
            expect(f"{what}: logits of slot {s}", near)
        before = [d.logits(s) for s in range(4)]
        refused("a slot twice", "slot 1 is", lambda: d.call("feed_each", (C.c_size_t * 2)(1, 1), (C.c_int64 * 2)(1, 1), C.c_size_t(2)))
        refused("a bad id of several", "id 96 at place 0", lambda: d.feed_each({0: 1, 1: 96}))
        refused("a full slot of several", "1 tokens behind 64", lambda: d.feed_each({0: 1, 3: 1}))
        refused("no such slot of several", "no slot 4", lambda: d.feed_each({0: 1, 4: 1}))
        expect("bad input of several leaves all", all(np.array_equal(d.logits(s), before[s]) for s in range(4)))


def check_choices(folder):
    path = folder / "model.onnx"
    maker = llama.make(path, "tiny")
    d = Decoder(path)
    d.feed([1, 2, 3])
    logits = d.logits().astype("f8")
    order = np.argsort(-logits, kind="stable")
    expect("the likeliest", d.choose() == order[0])
    weights = np.exp((logits - logits.max()) / 0.7)
    share = weights / weights.sum()
    drawn = np.array([d.choose(temperature=0.7, seed=s) for s in range(4000)])
    counts = np.bincount(drawn, minlength=maker.words) / 4000
    expect("chances", np.abs(counts - share).max() < 5 * np.sqrt(share.max() / 4000))
    expect("the same seed", d.choose(temperature=0.7, seed=9) == drawn[9])
    few = {d.choose(temperature=5, top_k=3, seed=s) for s in range(300)}
    expect("the 3 likeliest", few == set(map(int, order[:3])))
    reach = int(np.searchsorted(np.cumsum(share[order]), 0.6)) + 1
    few = {d.choose(temperature=0.7, top_p=0.6, seed=s) for s in range(3000)}
    expect("those that reach 0.6", few <= set(map(int, order[:reach])) and len(few) > reach // 2)
    expect("one at least", {d.choose(temperature=2, top_p=1e-9, seed=s) for s in range(50)} == {int(order[0])})
    refused("a temperature below 0", "temperature -1", lambda: d.choose(temperature=-1))
    refused("top_p of 2", "top_p 2", lambda: d.choose(temperature=1, top_p=2))


def shaped(name, dims):
    """A change of a model: the input's extents."""
    def change(model):
        value = next(i for i in model.graph.input if i.name == name)
        value.CopyFrom(h.make_tensor_value_info(name, value.type.tensor_type.elem_type, dims))
    return change


def behind(name, op, **attrs):
    """A change of a model: an op behind an output."""
    def change(model):
        for node in model.graph.node:
            for i, output in enumerate(node.output):
                if output == name:
                    node.output[i] = "inner"
        value = next(o for o in model.graph.output if o.name == name)
        if "to" in attrs:
            value.type.tensor_type.elem_type = attrs["to"]
        more = ["past_key_values.0.key"] if op == "Concat" else []
        model.graph.node.append(h.make_node(op, ["inner", *more], [name], **attrs))
    return change


def gone(name):
    return lambda model: model.graph.output.remove(next(o for o in model.graph.output if o.name == name))


def twin(name):
    return lambda model: model.graph.input.append(h.make_tensor_value_info(name, TP.FLOAT, [1, 2, "past", 16]))


def swapped(one, other):
    """A change of a model: two outputs' names, also where its nodes read them."""
    names = {one: other, other: one}

    def change(model):
        for node in model.graph.node:
            node.output[:] = [names.get(o, o) for o in node.output]
            node.input[:] = [names.get(i, i) for i in node.input]
    return change


def changed(op, *numbers):
    """A change of a model: an op with more operands behind the keys of layer 0."""
    def change(model):
        behind("present.0.key", op)(model)
        for i, number in enumerate(numbers):
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number), f"c.{i}"))
            model.graph.node[-1].input.append(f"c.{i}")
    return change


KEY, VALUE, NEXT = "present.0.key", "present.0.value", "present.1.key"
PAIRS = (
    ("keys for values", "becomes 'present.0.key', which has the rows of another cache, 'past_key_values.0.value'", swapped(KEY, VALUE)),
    ("another layer", "becomes 'present.0.key', which has the rows of another cache, 'past_key_values.1.key'", swapped(KEY, NEXT)),
    ("twice the rows", "changes rows that are not new", changed("Mul", np.float32(2))),
    ("rows and 1", "changes rows that are not new", changed("Add", np.float32(1))),
    ("rows from last to first", "changes rows that are not new", changed("Slice", [-1], [-(1 << 62)], [2], [-1])),
)


def check_pairs(folder):
    """Models whose caches become something else than themselves with new rows, of both forms that keep their length."""
    for what, make in (("GroupQueryAttention", llama.make), ("opset 24", lambda *a: llama_plain.make(*a, static=True))):
        make(folder / "model.onnx", "tiny")
        for pair, sentence, change in PAIRS:
            model = onnx.load(folder / "model.onnx")
            change(model)
            onnx.save(model, folder / "odd.onnx")
            refused(f"{what}: {pair}", sentence, lambda: Decoder(folder / "odd.onnx"))
        for most in 1, 2, 3, 4:
            d = Decoder(folder / "model.onnx", most)
            d.feed([1])
            expect(f"{what}: {most} positions", d.info().compiles == 1 and d.length() == 1)
    llama_plain.make(folder / "model.onnx", "tiny")
    for pair, _, change in PAIRS[:2]:
        model = onnx.load(folder / "model.onnx")
        change(model)
        onnx.save(model, folder / "odd.onnx")
        refused(f"growing: {pair}", "or a present_* is of another cache", lambda: Decoder(folder / "odd.onnx"))


CACHE = "past_key_values.0.key"
CHANGES = (
    ("a cache of another dtype", "is tensor<1x2x64x16xf32> and becomes tensor<1x2x64x16xf16>",
     behind("present.0.key", "Cast", to=TP.FLOAT16)),
    ("a cache that doubles", "becomes tensor<1x2x128x16xf32>", behind("present.0.key", "Concat", axis=2)),
    ("a cache without an output", "'past_key_values.0.key' has no output present*", gone("present.0.key")),
    ("heads that are not known", "no genai_config.json beside the model", shaped(CACHE, [1, "h", "past", 16])),
    ("other heads", "do not fit each other", shaped(CACHE, [1, 4, "past", 16])),
    ("no heads", "has an extent of 0", shaped(CACHE, [1, 0, "past", 16])),
    ("a matrix as a cache", "has too few axes", shaped(CACHE, ["past", 16])),
    ("a batch of 2", "does not fit tensor<2x?xi64>", shaped("input_ids", [2, "s"])),
    ("rows that are fixed", "does not fit tensor<1x2x16x16xf32>", shaped(CACHE, [1, 2, 16, 16])),
    ("a cache beyond all memory", "passes 2^63", shaped(CACHE, [1, 1 << 31, "past", 1 << 31])),
    ("two caches of one name", "is what both", twin("past.0.key")),
    ("an input that is not known", "input 'beam' is none that is known", twin("beam")),
    ("no logits", "no output 'logits'", gone("logits")),
    ("logits of integers", "is not [1, tokens, words] of floats", behind("logits", "Cast", to=TP.INT32)),
)


def check_bad(folder):
    path = folder / "model.onnx"
    llama.make(path, "tiny")
    d = Decoder(path, 16)
    refused("no tokens yet", "has no logits", d.choose)
    refused("an id", "id 96 at place 1 is none of the model's, which are 0 to 95", lambda: d.feed([1, 96]))
    refused("an id below 0", "id -1 at place 0", lambda: d.feed([-1]))
    refused("no slot", "there is no slot 1, only 1", lambda: d.feed([1], 1))
    refused("nothing", "one token at least", lambda: d.feed([]))
    d.feed(range(10))
    before = d.logits()
    refused("too many tokens", "7 tokens behind 10", lambda: d.feed(range(7)))
    expect("bad input leaves all as it was", d.length() == 10 and np.array_equal(d.logits(), before))
    d.feed(range(6))
    refused("a full sequence", "room for 16 positions", lambda: d.feed([1]))
    refused("a cut behind the end", "cannot be cut at 17", lambda: d.cut(17))
    refused("fewer angles than positions", "row for each of the 128 positions", lambda: Decoder(path, 128))
    refused("positions below 0", "-1 positions", lambda: Decoder(path, -1))
    refused("no model", "none.onnx", lambda: Decoder(folder / "none.onnx"))
    model = onnx.load(path)
    next(o for o in model.graph.output if o.name == "present.0.key").name = "present.7.key"
    for node in model.graph.node:
        for i, name in enumerate(node.output):
            if name == "present.0.key":
                node.output[i] = "present.7.key"
    onnx.save(model, folder / "pair.onnx")
    refused("a cache without a partner", "'present.7.key' has no input past_*", lambda: Decoder(folder / "pair.onnx"))
    for what, sentence, change in CHANGES:
        model = onnx.load(path)
        change(model)
        onnx.save(model, folder / "odd.onnx")
        refused(what, sentence, lambda: Decoder(folder / "odd.onnx"))


def check_command(folder):
    path = folder / "model.onnx"
    llama.make(path, "tiny")
    d = Decoder(path)
    ids = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    want = []
    d.feed(ids)
    for _ in range(12):
        want.append(d.choose(temperature=0.9, top_k=40, seed=7))
        d.feed(want[-1:])

    def generate(*options, path=path, most=("--most", str(MOST))):
        command = [BUILD / "pestle", "generate", path, *most, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    how = ("--ids", ",".join(map(str, ids)), "-n", "12", "--seed", "7", "--temperature", "0.9", "--top-k", "40")
    done = generate(*how)
    expect(f"generate: {done.stdout} {done.stderr}", done.stdout == ",".join(map(str, want)) + "\n")
    told = json.loads(generate(*how, "--json").stdout)
    expect("generate --json", told["ids"] == want and told["caches_in_place"] == told["caches"] == 4)
    done = generate(*how, "--memory-limit", "1K")
    expect(f"a memory limit: {done.stderr}", done.returncode == 5 and "may hold 1024 bytes" in done.stderr and not done.stdout)
    expect("a limit that is enough", generate(*how, "--memory-limit", "64M").stdout == ",".join(map(str, want)) + "\n")
    expect("an end", len(json.loads(generate(*how, "--end-id", str(want[3]), "--json").stdout)["ids"]) <= 4)
    config = {"model": {"context_length": 32, "eos_token_id": [200, want[3]], "decoder": {"filename": "model.onnx"}},
              "search": {"do_sample": True, "temperature": 0.9, "top_k": 40}}
    (folder / "genai_config.json").write_text(json.dumps(config))
    told = json.loads(generate(*how[:6], "--json", path=folder, most=()).stdout)
    expect("a folder", told["ids"] == want[:want.index(want[3]) + 1] and told["cache_bytes"] == 4 * 2 * 32 * 16 * 4)
    (folder / "genai_config.json").write_text("[")
    expect("a bad config", "line 1, column 2" in generate(*how, path=folder).stderr)
    (folder / "genai_config.json").unlink()
    expect("no config", "has no genai_config.json" in generate(*how, path=folder).stderr)
    for options, sentence in ((("-n", "3"), "needs --ids"), (("--ids", "1,x"), "'x' is no integer"),
                              (("--ids", "1", "--top-p", "2"), "--top-p '2'"), (("--ids", "96"), "id 96 at place 0")):
        done = generate(*options)
        expect(f"{options}: {done.stderr}", done.returncode and sentence in done.stderr and not done.stdout)


def main():
    try:
        Decoder.load()
    except OSError as e:
        print(f"skipped: {e}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        # The second is that of contexts which read no variables of Pestle's.
        os.environ["PESTLE_CACHE_DIR"] = os.environ["XDG_CACHE_HOME"] = folder + "/cache"
        for check in check_logits, check_growing, check_static, check_tables, check_compiles, check_moving, check_slots, check_each, check_choices, check_bad, check_pairs, check_command:
            check(pathlib.Path(folder))
    print(f"{len(bad)} wrong")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
