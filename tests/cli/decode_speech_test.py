#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoders of speech models (session/decode_encode.c) of Whisper's structure
(tests/models/whisper.py), as onnxruntime-genai's builder and as optimum write them: logits by
ONNX Runtime's token by token, by prompts, in rooms, slots, forks and files, other features in
the same slot, the command line, and bad input. Exits 77 when a package is missing, or where
Python cannot load the library."""

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
    from onnx import helper as h
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import decode_test as t  # noqa: E402
from decode_test import BUILD, Decoder, expect, refused  # noqa: E402
import llama  # noqa: E402
import whisper  # noqa: E402

MOST = whisper.SMALL["most"]
NEAR = 1e-3  # of the spread


class Model:
    def __init__(self, folder, kind, **keys):
        self.maker, self.encoder, self.decoder = whisper.make(folder, kind, **keys)
        self.folder, self.kind, self.twin = folder, kind, self.decoder
        if self.maker.masked:  # the same weights in the form without room
            self.twin = whisper.make(folder / "twin", kind)[2]
        self.genai = kind == "genai"

    def open(self, **options):
        if self.genai:
            return Decoder(self.folder, 0, **options)
        return Decoder(self.decoder, MOST, encoder=self.encoder, **options)

    def features(self, seed):
        return np.random.default_rng(seed).standard_normal((1, self.maker.mels, self.maker.frames)).astype(np.float32)

    def peer(self, features, ids):
        """Logits behind each token, by ONNX Runtime."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        m = self.maker
        one, two = (onnxruntime.InferenceSession(str(p), options, providers=["CPUExecutionProvider"])
                    for p in (self.encoder, self.twin))
        made = dict(zip([o.name for o in one.get_outputs()], one.run(None, {one.get_inputs()[0].name: features})))
        given = {"input_ids": ids[None].astype(np.int32 if self.genai else np.int64)}
        for of, past, present in m.caches():
            empty = np.zeros((1, m.heads, 0 if self.genai else 1, m.depth), np.float32)
            given[past] = made[present] if of == "cross" else empty
        if not self.genai:
            given |= {"encoder_hidden_states": made["last_hidden_state"], "use_cache_branch": np.array([False])}
            if m.positions:
                given["cache_position"] = np.arange(len(ids))
        return two.run(["logits"], given)[0][0]


def near(what, got, want, spread):
    error = np.abs(got - want).max() / spread if got is not None else np.inf
    expect(f"{what}: {error:.2g} of the spread", error <= NEAR)


def check_logits(what, model, folder):
    ids = np.random.default_rng(3).integers(0, model.maker.words, MOST)
    first, second = model.features(7), model.features(8)
    want, other = model.peer(first, ids), model.peer(second, ids)
    spread = want.std()
    expect(f"{what}: features matter", np.abs(want - other).max() > 0.1 * spread)
    d = model.open()
    info = d.info()
    expect(f"{what}: the features", info.feature_dims[:info.feature_rank] == [1, model.maker.mels, model.maker.frames])
    d.encode(first)
    for i in range(MOST):
        d.feed(ids[i:i + 1])
        near(f"{what}: token {i}", d.logits(), want[i], spread)
    info = d.info()
    expect(f"{what}: caches are copied or read whole",
           info.caches == info.caches_in_place == info.caches_bounded == 2 * model.maker.layers)
    refused(f"{what}: past the most", f"1 tokens behind {MOST}", lambda: d.feed([1]))
    refused(f"{what}: features behind tokens", f"slot 0 has {MOST} tokens of other features", lambda: d.encode(second))
    d.cut(0)
    d.feed(ids[:4])  # the same features
    near(f"{what}: once more", d.logits(), want[3], spread)
    d.cut(0)
    d.encode(second[0])  # without the batch
    for n in 1, 3, 4, 5, 8, 9, 17, 40, 64:
        d.cut(0)
        d.feed(ids[:n])
        near(f"{what}: a prompt of {n}", d.logits(), other[n - 1], spread)
    check_slots(what, model, folder, ids, (first, second), (want, other))


def check_slots(what, model, folder, ids, features, want):
    spread = want[0].std()
    d = model.open(slots=3, room=8)
    refused(f"{what}: tokens before features", "slot 1 has no features", lambda: d.feed([1], 1))
    for s in 0, 1:
        d.encode(features[s], s)
        d.feed(ids[:5], s)
    refused(f"{what}: one of several without", "slot 2 has no features", lambda: d.feed_each({0: 1, 2: 1}))
    expect(f"{what}: nothing was fed", d.length(0) == d.length(1) == 5 and d.length(2) == 0)
    for n in range(5, 20):  # past two rooms
        d.feed_each({0: int(ids[n]), 1: int(ids[n])})
    expect(f"{what}: the room", d.info().room == 32)
    d.fork(1, 2)
    for s in 0, 1, 2:
        near(f"{what}: slot {s}", d.logits(s), want[min(s, 1)][19], spread)
    d.cut(0, 1)
    d.encode(features[0], 1)  # leaves the fork what it has
    d.feed(ids[20:33], 2)
    near(f"{what}: a fork", d.logits(2), want[1][32], spread)
    d.file("save", folder / "a.seq", 2)
    again = model.open()
    again.file("load", folder / "a.seq")
    near(f"{what}: a file", again.logits(), want[1][32], spread)
    again.feed(ids[33:40])
    near(f"{what}: behind a file", again.logits(), want[1][39], spread)
    data = bytearray((folder / "a.seq").read_bytes())
    data[200] ^= 1
    (folder / "b.seq").write_bytes(data)
    refused(f"{what}: a damaged file", "is damaged", lambda: again.file("load", folder / "b.seq"))
    near(f"{what}: after a damaged file", again.logits(), want[1][39], spread)


def check_features(what, model):
    d = model.open()
    good = model.features(7)
    for name, bad, said in (("frames", good[:, :, :-1], "are tensor<1x8x39xf32>: the encoder takes tensor<1x8x40xf32>"),
                            ("mels", np.zeros((1, 9, 40), np.float32), "tensor<1x9x40xf32>"),
                            ("a batch", np.zeros((2, 8, 40), np.float32), "tensor<2x8x40xf32>"),
                            ("an axis more", good[None], "tensor<1x1x8x40xf32>"),
                            ("a matrix of another shape", good[0].T, "tensor<40x8xf32>"),
                            ("gaps", np.zeros((1, 8, 80), np.float32)[:, :, ::2], "without gaps"),
                            ("doubles", good.astype("f8"), "tensor<1x8x40xf64>"),
                            ("integers", good.astype("i4"), "tensor<1x8x40xsi32>")):
        refused(f"{what}: {name}", said if name != "integers" else "the encoder takes", lambda bad=bad: d.encode(bad))
    refused(f"{what}: no slot", "there is no slot 3", lambda: d.encode(good, 3))
    refused(f"{what}: bad features give nothing", "has no features", lambda: d.feed([1]))


def changed(path, to, change):
    model = onnx.load(path)
    change(model.graph)
    onnx.save(model, to)
    return to


def gone(name):
    return lambda graph: graph.output.remove(next(o for o in graph.output if o.name == name))


def shaped(name, dims):
    def change(graph):
        value = next(i for i in graph.input if i.name == name)
        value.CopyFrom(h.make_tensor_value_info(name, value.type.tensor_type.elem_type, dims))
    return change


def check_models(genai, plain, folder):
    odd = folder / "odd.onnx"
    config = json.loads((genai.folder / "genai_config.json").read_text())
    changed(genai.encoder, odd, gone("present_key_cross_1"))
    refused("a cross cache that nobody makes", "nothing makes the decoder's input 'past_key_cross_1'",
            lambda: Decoder(genai.decoder, MOST, encoder=odd))
    refused("no encoder", "'encoder_hidden_states' is what an encoder gives", lambda: Decoder(plain.decoder, MOST))
    changed(plain.encoder, odd, shaped("input_features", ["b", 8, "frames"]))
    refused("frames that are not known", "all its extents but the batch", lambda: Decoder(plain.decoder, MOST, encoder=odd))
    changed(plain.encoder, odd, lambda g: g.input.append(h.make_tensor_value_info("more", onnx.TensorProto.FLOAT, [1])))
    refused("two inputs", "has 2 inputs: one is known", lambda: Decoder(plain.decoder, MOST, encoder=odd))
    refused("an encoder that is none", "none.onnx", lambda: Decoder(plain.decoder, MOST, encoder=folder / "none.onnx"))
    refused("a table of fewer places", f"a row for {MOST} positions", lambda: Decoder(plain.decoder, 2 * MOST, encoder=plain.encoder))
    changed(genai.decoder, odd, shaped("past_key_cross_0", ["b", 4, 21, 16]))
    refused("cross caches of other rows", "tensor<1x4x20x16xf32> does not fit tensor<?x4x21x16xf32>",
            lambda: Decoder(odd, MOST, encoder=genai.encoder))
    llama.make(folder / "llama.onnx", "tiny")
    refused("a decoder without cross attention", "has no input of cross attention",
            lambda: Decoder(folder / "llama.onnx", MOST, encoder=genai.encoder))
    refused("features without an encoder", "has no encoder", lambda: Decoder(folder / "llama.onnx").encode(genai.features(1)))
    config["model"]["encoder"]["filename"] = "../encoder.onnx"
    (genai.folder / "genai_config.json").write_text(json.dumps(config))
    refused("an encoder out of the folder", "not within its folder", lambda: Decoder(genai.folder))
    config["model"]["encoder"] = {"filename": "encoder.onnx", "outputs": {"cross_present_key_names": "present"}}
    (genai.folder / "genai_config.json").write_text(json.dumps(config))
    refused("an odd pattern", "cross_present_key_names is not a name with one %d", lambda: Decoder(genai.folder))


def check_command(genai, plain, folder):
    features, start = genai.features(7), [3, 1, 4, 1]
    d = genai.open()
    d.encode(features)
    d.feed(start)
    want = []
    while len(want) < 12 and (not want or want[-1] != 2):
        want.append(d.choose())
        d.feed(want[-1:])
    np.save(folder / "mel.npy", features)
    np.save(folder / "bad.npy", features[:, :4])

    def generate(*options):
        command = [BUILD / "pestle", "generate", *options, "--ids", ",".join(map(str, start)), "-n", "12"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    done = generate(genai.folder, "--features", folder / "mel.npy")
    expect(f"generate: {done.stdout} {done.stderr}", done.stdout == ",".join(map(str, want)) + "\n")
    two = plain.decoder, "--encoder", plain.encoder, "--end-id", "2"
    done = generate(*two, "--features", folder / "mel.npy", "--json")
    expect(f"two files: {done.stdout} {done.stderr}", json.loads(done.stdout)["ids"] == want)
    done = generate(*two, "--features", folder / "mel.npy", "--most", str(MOST + 1))
    expect(f"more positions than places: {done.stderr}", done.returncode == 4 and "--most" in done.stderr and str(MOST) in done.stderr)
    for options, said in (((genai.folder,), "slot 0 has no features"), ((genai.folder, "--features", folder / "bad.npy"), "the encoder takes"),
                          ((genai.folder, "--features", folder / "no.npy"), "no.npy")):
        done = generate(*options)
        expect(f"{options}: {done.stderr}", done.returncode and said in done.stderr and not done.stdout)


# --- pestle_import_options_t.lengths ---


class Length(C.Structure):
    _fields_ = [("input", C.c_char_p), ("axis", C.c_int32), ("length", C.c_char_p)]


class ImportOptions(C.Structure):
    _fields_ = [("struct_size", C.c_size_t), ("dims", C.c_void_p), ("dim_count", C.c_size_t), ("shapes", C.c_void_p),
                ("shape_count", C.c_size_t), ("consts", C.c_void_p), ("const_count", C.c_size_t), ("control", C.c_void_p),
                ("compat", C.c_int32), ("lengths", C.POINTER(Length)), ("length_count", C.c_size_t)]


def check_lengths(genai):
    lib = Decoder.lib
    lib.pestle_import_onnx_file.restype = C.c_void_p

    def take(*rows, count=None):
        lengths = (Length * max(len(rows), 1))(*(Length(*r) for r in rows))
        options = ImportOptions(struct_size=C.sizeof(ImportOptions), lengths=lengths, length_count=len(rows))
        module = C.c_void_p()
        Decoder.check(lib.pestle_import_onnx_file(Decoder.context, str(genai.decoder).encode(), C.byref(options), C.byref(module)))
        lib.pestle_module_release(module)

    key = b"past_key_self_0"
    take((key, 2, b"rows"), (b"past_value_self_0", 2, b"rows"))
    refused("a length of no input", "the model has no such input", lambda: take((b"past", 2, b"rows")))
    refused("a length of an axis that is fixed", "whose extent it fixes", lambda: take((key, 1, b"rows")))
    refused("a length of no axis", "which the model has not", lambda: take((key, 9, b"rows")))
    refused("a length called as an input", "has the name of an input", lambda: take((key, 2, b"input_ids")))
    refused("a length without a name", "without its name", lambda: take((key, 2, None)))


def main():
    try:
        Decoder.load()
    except OSError as e:
        print(f"skipped: {e}")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        os.environ["PESTLE_CACHE_DIR"] = os.environ["XDG_CACHE_HOME"] = name + "/cache"
        models = {"genai": Model(folder / "genai", "genai"), "plain": Model(folder / "plain", "plain"),
                  "cache_position": Model(folder / "placed", "plain", positions=1),
                  "three layers": Model(folder / "deep", "genai", layers=3, seed=5),
                  "past_sequence_length": Model(folder / "masked", "genai", masked=1),
                  "masked attention": Model(folder / "one", "genai", masked=2, ranged=1)}
        for what, model in models.items():
            check_logits(what, model, folder)
            check_features(what, model)
        check_command(models["genai"], models["plain"], folder)
        check_lengths(models["genai"])
        check_models(models["genai"], models["plain"], folder)
    print(f"{len(t.bad)} wrong")
    return bool(t.bad)


if __name__ == "__main__":
    sys.exit(main())
