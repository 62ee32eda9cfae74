#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GGUF files (tests/models/gguf_model.py) through decoders and the command: each architecture
and each type of tensor beside numpy, what a token writes, and bad files. Exits 77 without
numpy, or where Python cannot load the library."""

import sys

try:
    import numpy as np
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

import ctypes as C
import json
import pathlib
import struct
import subprocess
import tempfile

import decode_test
from decode_test import Decoder, expect

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import gguf_model  # noqa: E402
from gguf_model import TYPES, Model  # noqa: E402
from program import PESTLE  # noqa: E402

MOST = 64
NEAR = 1e-3  # of the spread


def check(what, path, model, most=MOST, count=24):
    """Logits behind each token, and behind a prompt that is fed at once."""
    model.write(path)
    ids = np.random.default_rng(3).integers(0, model.words, count)
    want = model.logits(ids, most)
    spread, worst = want.std(), 0
    d = Decoder(path, most)
    info = d.info()
    expect(f"{what}: {info.caches_in_place} of {info.caches} caches are in place", info.caches == info.caches_in_place == 2 * model.layers)
    for i in range(count):
        d.feed(ids[i:i + 1])
        worst = max(worst, np.abs(d.logits() - want[i]).max() / spread)
    d.cut(0)
    d.feed(ids)
    worst = max(worst, np.abs(d.logits() - want[-1]).max() / spread)
    print(f"{what}: {worst:.1e} of the spread", flush=True)
    expect(f"{what}: {worst:.2e} of the spread", worst <= NEAR)


def check_models(folder):
    path = folder / "model.gguf"
    check("llama", path, Model(tied=True))
    check("llama, angles with divisors", path, Model(divisors=True, more={"llama.rope.freq_base": 5e5}, base=5e5))
    check("llama, linear", path, Model(scaling=("linear", 4)))
    check("llama, yarn", path, Model(scaling=("yarn", 4), depth=32))
    check("llama, a part of a head turned", path, Model(turned=8, value_depth=24))
    check("llama, places by few lanes", path, Model(heads=4, shared=1, depth=32))
    check("qwen2", path, Model("qwen2"))
    check("qwen3", path, Model("qwen3", tied=True, depth=32))
    check("phi3", path, Model("phi3"))
    check("phi3, a window", path, Model("phi3", window=7))
    for most in 32, 64:  # of 128 positions it was trained for 32
        check(f"phi3, divisors for {most}", path, Model("phi3", divisors="two"), most)
    # A room of 256 would take the divisors of few.
    check("phi3, divisors beyond a room", path, Model("phi3", context=1024, divisors="two", window=50), 600)
    check("gemma", path, Model("gemma", tied=True, shared=1))
    check("gemma2", path, Model("gemma2", tied=True, layers=3, window=9))
    check("gemma2, other caps", path, Model("gemma2", tied=True, cap=2, last_cap=1, window=9))
    check("gemma3", path, Model("gemma3", tied=True, layers=7, window=9, scaling=("linear", 8)))
    check("gemma3, a base of its own in windows", path,
          Model("gemma3", tied=True, layers=7, window=9, base=1e6, more={"gemma3.rope.freq_base_swa": 300.0}))


def check_types(folder):
    for kind in TYPES:
        width = max(TYPES[kind][1], 64)
        check(kind, folder / "model.gguf", Model(kind=kind, width=width, inner=width, depth=32, layers=1, tied=kind in ("Q4_1", "Q6_K", "F16")))
    check("Q4_0 over Q8_0", folder / "model.gguf", Model(tied=False, embedding="Q8_0", head="F16"))
    check("version 2, alignment 64", folder / "model.gguf", Old(more={"general.alignment": 64}))


class Old(Model):
    def bytes(self):
        return super().bytes(version=2, alignment=64)


# --- What is no model ---

TINY = dict(layers=1, width=32, heads=2, shared=1, depth=16, inner=32, words=4)


def read(data):
    """The message of the bytes' import, or None."""
    module = C.c_void_p()
    call = Decoder.lib.pestle_import_bytes
    call.restype = C.c_void_p
    status = call(Decoder.context, data, C.c_size_t(len(data)), b"x.gguf", None, C.byref(module))
    if not status:
        Decoder.lib.pestle_module_release(module)
        return None
    text = C.create_string_buffer(4096)
    Decoder.lib.pestle_status_format(C.c_void_p(status), text, C.c_size_t(len(text)))
    text = text.value.decode("utf-8", "replace")
    Decoder.lib.pestle_status_release(C.c_void_p(status))
    return text


def refuse(what, data, *words):
    text = read(data)
    good = text is not None and all(w in text for w in words) and "x.gguf" in text
    if not good:
        print(f"wrong: {what}: {text}")
        decode_test.bad.append(what)


def changed(change=None, **how):
    m = Model(**TINY, **how)
    if change:
        change(m)
    return m.bytes()


def check_bad():
    whole = changed()
    expect("the whole file is taken", read(whole) is None)
    data = sum(len(raw) + -len(raw) % 32 for _, _, raw in Model(**TINY).tensors.values())
    head = len(whole) - data
    for size in list(range(4, head + 1)) + [len(whole) - 100]:
        refuse(f"cut off at byte {size}", whole[:size], "cut off")

    def at(offset, form, number, base=whole):
        return base[:offset] + struct.pack(form, number) + base[offset + struct.calcsize(form):]

    refuse("2^63 tensors", at(8, "<Q", 1 << 63), str(1 << 63))
    refuse("2^64 - 1 values", at(16, "<Q", (1 << 64) - 1), "values")
    refuse("a key of 2^63 bytes", at(24, "<Q", 1 << 63), "a key")
    refuse("version 1", at(4, "<I", 1), "version 1", "2 and 3")
    refuse("version 4", at(4, "<I", 4), "version 4")
    refuse("the other order of bytes", at(4, ">I", 3), "high bytes first")
    place = whole.index(b"token_embd.weight") + 17
    refuse("5 axes", at(place, "<I", 5), "token_embd.weight", "5 axes")
    refuse("an extent of 2^63", at(place + 4, "<Q", 1 << 63), "token_embd.weight", "extent 0")
    refuse("extents whose product is too large", at(place + 12, "<Q", 1 << 62), "token_embd.weight", "more than there can be")
    refuse("rows of half a block", at(place + 4, "<Q", 48), "blocks of 32")
    refuse("type 35", at(place + 20, "<I", 35), "TQ2_0", "Q4_K", "token_embd.weight")
    refuse("type 99", at(place + 20, "<I", 99), "type 99", "Q4_0")
    refuse("outside of the file", at(place + 24, "<Q", 1 << 40), "token_embd.weight", "cut off")
    refuse("a place near 2^64", at(place + 24, "<Q", (1 << 64) - 32), "token_embd.weight")
    refuse("between two multiples", at(place + 24, "<Q", 8), "alignment, 32")
    refuse("two at one place", at(place + 24, "<Q", 96), "overlap", "token_embd.weight")
    place = whole.index(b"llama.block_count") + 17
    refuse("a kind that is none", at(place, "<I", 77), "llama.block_count", "kind 77")
    for name, v, *words in (
            ("llama.block_count", "two", "string"), ("llama.block_count", 0, "block_count"), ("llama.block_count", 1 << 31, "block_count"),
            ("llama.attention.head_count", 3.5, "f32"), ("llama.attention.head_count_kv", 3, "2 heads"),
            ("llama.attention.head_count_kv", [1, 2], "layer 1"), ("llama.embedding_length", 64, "token_embd.weight", "64"),
            ("llama.attention.layer_norm_rms_epsilon", float("nan"), "epsilon"), ("llama.rope.freq_base", 0.0, "freq_base"),
            ("llama.rope.dimension_count", 3, "pairs"), ("llama.rope.scaling.type", "odd", "odd", "yarn"),
            ("llama.expert_count", 8, "8 experts"), ("llama.attention.causal", False, "'llama.attention.causal' is false"), ("general.alignment", 24, "general.alignment"),
            ("general.architecture", "mamba", "mamba", "llama", "qwen3", "gemma2"), ("general.architecture", 7, "u32")):
        refuse(f"{name}: {v}", changed(lambda m: m.values.__setitem__(name, v)), *words)
    for name in ("general.architecture", "llama.block_count", "llama.embedding_length", "llama.attention.head_count",
                 "llama.feed_forward_length", "llama.attention.layer_norm_rms_epsilon"):
        refuse(f"no {name}", changed(lambda m: m.values.pop(name)), name, "missing")
    refuse("a deep array", changed(lambda m: m.values.__setitem__("x", (9, struct.pack("<IQ", 9, 1) * 9 + struct.pack("<IQ", 0, 0)))), "deeper")
    gone = ["output_norm.weight", "blk.0.attn_k.weight", "blk.0.ffn_down.weight"]
    refuse("no " + ", ".join(gone), changed(lambda m: [m.tensors.pop(n) for n in gone]), *gone, "3 in all")
    refuse("no tensors", changed(lambda m: m.tensors.clear()), "token_embd.weight", "11 in all")
    refuse("one more", changed(lambda m: m.tensors.__setitem__("blk.0.attn_sinks.weight", ("F32", (2,), bytes(8)))), "attn_sinks", "llama")
    refuse("a key twice", twice(), "'x'", "twice")
    refuse("a bias of another length", changed(lambda m: m.vector("blk.0.attn_q.bias", 5)), "attn_q.bias", "5")


def twice():
    data = Model(**TINY, more={"x": 1, "y": 1}).bytes()
    place = data.index(b"\1\0\0\0\0\0\0\0y")
    return data[:place + 8] + b"x" + data[place + 9:]


def check_said(folder):
    """What the file tells of ids and positions; one that is called otherwise; the command."""
    path = folder / "model.bin"
    Model(more={"tokenizer.ggml.eot_token_id": 5, "tokenizer.ggml.padding_token_id": 4294967295}, context=40).write(path)
    done = subprocess.run([PESTLE, "info", str(path), "--json"], capture_output=True, text=True, check=True)
    info = json.loads(done.stdout)
    expect("info: the format", info["format"] == "GGUF")
    expect("info: texts", info["texts"]["general.architecture"] == "llama" and info["texts"]["llama.context_length"] == "40")
    done = subprocess.run([PESTLE, "info", str(path)], capture_output=True, text=True, check=True)
    expect("info: names of dims", "f32[batch_size, sequence_length, 96]" in done.stdout and "llama.block_count: 2" in done.stdout)
    done = subprocess.run([PESTLE, "generate", str(path), "--ids", "1,2,3", "-n", "4", "--json"], capture_output=True, text=True, check=False)
    expect(f"generate: {done.stdout} {done.stderr}", done.returncode == 0)
    done = subprocess.run([PESTLE, "generate", str(path), "--ids", "1,2,3", "-n", "50", "--most", "8", "--end-id", "90"], capture_output=True,
                          text=True, check=False)
    expect(f"no room is left: {done.stdout} {done.stderr}", done.returncode == 0 and done.stdout.count(",") == 5 and
           "all 8 positions are in use, so that 44 tokens are not made" in done.stderr)
    d = Decoder(path, 0)
    info = d.info()
    known = C.cast(info.end_ids, C.POINTER(C.c_int64))
    ends = [known[i] for i in range(info.end_count)]
    expect(f"ids: {info.begin_id}, {ends}, {info.pad_id}", (info.begin_id, ends, info.pad_id) == (1, [2, 5], -1))
    expect(f"positions: {info.most} of {info.context}", info.most == info.context == 40)
    fixed = [f"--dim={n}={v}" for n, v in (("batch_size", 1), ("sequence_length", 1), ("total_sequence_length", 32))]
    done = subprocess.run([PESTLE, "dump", str(path), *fixed], capture_output=True, text=True, check=False)
    expect(f"dump: {done.stderr}", done.returncode == 0 and done.stdout.count("pestle.block_dot") == 15)
    done = subprocess.run([PESTLE, "dump", str(path), "--dim", "batch=1"], capture_output=True, text=True, check=False)
    expect(f"a dim that there is not: {done.stderr}", done.returncode != 0 and "total_sequence_length" in done.stderr)


def check_parts(folder):
    """A model in three files is that of one; what is missing, or of another model."""
    path, model = folder / "model.gguf", Model(layers=1)
    model.write(path)
    first = model.parts(folder, "model", 3)
    d, whole = Decoder(first, MOST), Decoder(path, MOST)
    for one in d, whole:
        one.feed(range(1, 9))
    expect("parts: the same bits", np.array_equal(d.logits(), whole.logits()))
    told = [json.loads(subprocess.run([PESTLE, "info", str(p), "--json"], capture_output=True, text=True, check=True).stdout) for p in (first, path)]
    expect("parts: weights", all(told[0][k] == told[1][k] for k in ("weights", "weight_bytes")) and told[0]["weights"] > 10000)
    expect("parts: texts", told[0]["texts"]["llama.block_count"] == "1")

    def refused(what, path, *words):
        done = subprocess.run([PESTLE, "generate", str(path), "--ids", "1"], capture_output=True, text=True, check=False)
        expect(f"{what}: {done.stderr}", done.returncode in (3, 4, 5, 6) and all(w in done.stderr for w in words))

    second = folder / "model-00002-of-00003.gguf"
    refused("the second part", second, "part 2 of 3", "-00001-of-00003.gguf")
    refuse("bytes of a part", first.read_bytes(), "part 1 of 3", "join")
    (folder / "other.gguf").write_bytes(first.read_bytes())
    refused("a part by another name", folder / "other.gguf", "-00001-of-00003.gguf", "--merge")
    kept = second.read_bytes()
    second.write_bytes(kept[:200])
    refused("a part that is cut off", first, "cut off", second.name)
    second.write_bytes((folder / "model-00003-of-00003.gguf").read_bytes())
    refused("a part twice", first, "part 3 of 3", "2 of 3", second.name)
    second.unlink()
    refused("a part that is missing", first, second.name)
    second.write_bytes(kept)
    number = lambda form, n: ({"<H": 2, "<i": 5}[form], struct.pack(form, n))  # noqa: E731
    for what, part, key, v, words in (("another count of parts", 1, "split.count", number("<H", 4), ("of 4", "of 3")),
                                      ("a part of another model", 2, "general.name", "other", ("'general.name' is not the first part's", "part 3")),
                                      ("another count of tensors", range(3), "split.tensors.count", number("<i", 99), ("are to have 99",)),
                                      ("a part of other tensors", 1, "split.tensors.count", number("<i", 99), ("'split.tensors.count'", "part 2")),
                                      ("a count of parts that is text", 0, "split.count", "three", ("split.count",)),
                                      ("too many parts", 0, "split.count", number("<H", 60000), ("60000 parts",))):
        refused(what, model.parts(folder, "bad", 3, **{f"part{i}": {key: v} for i in (part if isinstance(part, range) else [part])}), *words)
    first = model.parts(folder, "twice", 2)
    (folder / "twice-00002-of-00002.gguf").write_bytes(again(model))
    refused("a tensor in two parts", first, "is there twice, in two parts")


def again(model):
    """The second of two parts, which has a tensor of the first too."""
    names = list(model.tensors)
    split = {"split.no": (2, struct.pack("<H", 1)), "split.count": (2, struct.pack("<H", 2))}
    return gguf_model.file_of(split, {n: model.tensors[n] for n in [names[0], *names[-(len(names) // 2):]]})


def check_cut(folder):
    """A file that loses its end while it is open is told when another plan is made of it; one that is replaced is not."""
    path, model = folder / "open.gguf", Model(layers=1)
    model.write(path)
    d = Decoder(path, MOST)
    d.feed([1, 2])
    (folder / "new.gguf").write_bytes(b"GGUF")
    (folder / "new.gguf").rename(path)
    d.feed(range(1, 20))
    expect("a file that was replaced", d.length() == 21)
    model.write(path)
    d = Decoder(path, MOST)
    d.feed([1, 2])
    with open(path, "r+b") as f:
        f.truncate(100)
    decode_test.refused("a file that was cut off", "cut off while it is in use", lambda: d.feed(range(1, 20)))
    d.feed([3])
    expect("a file that was cut off: tokens go on", d.length() == 3)


def check_slots(folder):
    """Sequences of their own lengths in one run."""
    path, model = folder / "model.gguf", Model(layers=1)
    model.write(path)
    d = Decoder(path, MOST, slots=3)
    for slot in range(3):
        d.feed(list(range(1, 5 + 3 * slot)), slot)
    d.feed_each({0: 7, 1: 8, 2: 9})
    want = [model.logits([*range(1, 5 + 3 * slot), 7 + slot])[-1] for slot in range(3)]
    expect("slots run together", d.info().batches == 1)
    expect("slots", max(np.abs(d.logits(s) - want[s]).max() / want[s].std() for s in range(3)) <= NEAR)


class CompileOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("numerics", C.c_int)]


def decoder(path, numerics):
    """A decoder with numerics of its own."""
    d = Decoder.__new__(Decoder)
    d.it, compile_options = C.c_void_p(), CompileOptions(C.sizeof(CompileOptions), numerics)
    options = decode_test.Options(C.sizeof(decode_test.Options), None, MOST, 1, 0, C.addressof(compile_options))
    d.check(d.lib.pestle_decoder_create(d.context, str(path).encode(), C.byref(options), C.byref(d.it)))
    return d


def check_numerics(folder):
    """Strict multiplies unpacked weights; fast takes x as bytes, where the CPU has products of bytes."""
    path, model = folder / "model.gguf", Model(kind="Q4_1")
    model.write(path)
    ids = list(range(1, 12))
    want = model.logits(ids)[-1]
    for name, numerics, least, most in ("default", 0, 0, NEAR), ("strict", 1, 0, NEAR), ("fast", 2, 1e-4, 0.3):
        d = decoder(path, numerics)
        d.feed(ids)
        error = np.abs(d.logits() - want).max() / want.std()
        has_bytes = any(f in pathlib.Path("/proc/cpuinfo").read_text() for f in ("avx512_vnni", "avx_vnni", "avx2"))
        expect(f"{name}: {error:.1e} of the spread", error <= most and (error >= least or not has_bytes))


def main():
    Decoder.load()
    check_bad()
    with tempfile.TemporaryDirectory() as folder:
        check_said(pathlib.Path(folder))
        check_slots(pathlib.Path(folder))
        check_parts(pathlib.Path(folder))
        check_cut(pathlib.Path(folder))
        check_numerics(pathlib.Path(folder))
        check_models(pathlib.Path(folder))
        check_types(pathlib.Path(folder))
    return bool(decode_test.bad)


if __name__ == "__main__":
    sys.exit(main())
