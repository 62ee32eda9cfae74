#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle.Decoder: feeding, choosing, streaming, slots, files, genai_config.json, threads,
errors as exceptions. Logits are held by tests/cli/decode_test.py."""

import json
import os
import pathlib
import sys
import tempfile
import threading

from case import raises, run

try:
    import onnx  # noqa: F401
except ImportError:
    print("skipped: onnx is not installed")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
import llama  # noqa: E402
import whisper  # noqa: E402

import pestle as pt  # noqa: E402

FOLDER = tempfile.TemporaryDirectory()
HOME = pathlib.Path(FOLDER.name)
os.environ["PESTLE_CACHE_DIR"] = FOLDER.name + "/cache"
MODEL = HOME / "plain" / "model.onnx"
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]


def setup():
    MODEL.parent.mkdir()
    llama.make(MODEL, "tiny")
    folder = HOME / "genai"
    folder.mkdir()
    (folder / "decoder.onnx").write_bytes(MODEL.read_bytes())
    write_config(folder)
    return folder


def write_config(folder, **changes):
    config = {"model": {"bos_token_id": 1, "context_length": 48, "eos_token_id": [5, 7], "pad_token_id": None,
                        "decoder": {"filename": "decoder.onnx", "head_size": 16}},
              "search": {"do_sample": True, "temperature": 0.5, "top_k": 9, "top_p": 0.9}}
    for path, value in changes.items():
        at = config
        *ways, last = path.split("__")
        for way in ways:
            at = at[way]
        at[last] = value
    (folder / "genai_config.json").write_text(json.dumps(config))


GENAI = setup()


def test_tokens():
    d = pt.Decoder(MODEL, most=64)
    assert (d.words, d.most, d.slots, d.end_ids, d.begin_id, d.pad_id, d.context) == (96, 64, 1, (), None, None, 0)
    d.feed(IDS)
    first = d.logits()
    assert first.shape == (96,) and first.dtype == pt.float32
    values = first.tolist()
    assert d.choose() == values.index(max(values)), "the likeliest"
    got = []
    for _ in range(6):
        got.append(d.step())
    assert d.length() == len(IDS) + 6 and first.tolist() == values, "logits stay what they were"
    d.cut(len(IDS))
    raises(ValueError, d.choose, "slot 0 has no logits")
    assert list(d.generate(IDS, 6)) == got
    assert d.length() == len(IDS) + 5, "the last token is not fed"
    again = d.generate(pt.asarray(IDS), 6)
    assert next(again) == got[0] and d.length() == len(IDS), "one token at a time"
    d.prefill(IDS)
    assert list(d.generate(None, 3)) == got[:3]
    assert list(d.generate(IDS, 6, end=got[2]))[-1] == got[2]
    assert len(list(d.generate(IDS, 1000))) == 64 - len(IDS) + 1, "until there is no room"
    assert d.info()["caches_in_place"] == d.info()["caches"] == 4


def test_choices():
    d = pt.Decoder(MODEL, most=64)
    how = dict(temperature=0.9, top_k=40, seed=7)
    one, two = list(d.generate(IDS, 12, **how)), list(d.generate(IDS, 12, **how))
    assert one == two != list(d.generate(IDS, 12, **{**how, "seed": 8}))
    raises(ValueError, lambda: d.choose(temperature=-1), "temperature -1")
    raises(ValueError, lambda: d.choose(top_p=2), "top_p 2")
    for heat in float("inf"), float("nan"):
        raises(ValueError, lambda: d.choose(temperature=heat), "the first is a finite number")
    for seed in 1 << 64, -1:
        raises(ValueError, lambda: d.choose(seed=seed), f"{seed} is out of range")
    d.choose(seed=(1 << 64) - 1, temperature=1)
    for id in 1 << 63, -(1 << 63) - 1, 1 << 62:
        raises(ValueError, lambda: d.feed([1, id]), str(id))
    raises(ValueError, lambda: d.choose(top_k=1 << 63), "out of range")
    raises(ValueError, lambda: pt.Decoder(MODEL, most=1 << 63), "out of range")
    raises(TypeError, lambda: d.choose(heat=1), "heat")


def test_slots():
    d = pt.Decoder(MODEL, most=64, slots=2)
    d.feed(IDS)
    d.fork(0, 1)
    assert d.logits(1).tolist() == d.logits(0).tolist()
    d.feed_each({0: 7, 1: 8})
    assert (d.length(0), d.length(1)) == (len(IDS) + 1,) * 2 and d.info()["batches"] == 0
    raises(ValueError, lambda: d.feed_each({0: 7, 1: 96}), "id 96 at place 0")
    raises(ValueError, lambda: d.feed_each({0: 7, -1: 9}), "no slot -1")
    d.cut(len(IDS), 1)
    d.prefill(IDS)
    path = HOME / "a.seq"
    d.save(path)
    d.feed([1, 2])
    d.load(path, 1)
    assert (d.length(0), d.length(1)) == (len(IDS) + 2, len(IDS))
    path.write_bytes(b"no sequence at all" * 9)
    raises(pt.Error, lambda: d.load(path, 1), "is no sequence")
    assert d.length(1) == len(IDS)
    d.save(path)
    raises(pt.Error, lambda: pt.Decoder(MODEL, most=48).load(path), "of 64 positions where this decoder has 48")
    other = HOME / "other.onnx"
    llama.make(other, "tiny", seed=9)
    try:
        pt.Decoder(other, most=64).load(path)
        assert False
    except pt.Error as e:
        assert "is of another model" in str(e) and "positions" not in str(e), e


def test_config():
    d = pt.Decoder(GENAI)
    assert (d.end_ids, d.begin_id, d.pad_id, d.context, d.most) == ((5, 7), 1, None, 48, 48)
    plain = pt.Decoder(MODEL, most=48)
    for seed in range(4):
        theirs = list(plain.generate(IDS, 30, temperature=0.5, top_k=9, top_p=0.9, seed=seed, end=(5, 7)))
        assert list(d.generate(IDS, 30, seed=seed)) == theirs
        assert list(d.generate(IDS, 30, temperature=0, end=())) == list(plain.generate(IDS, 30))
    assert pt.Decoder(GENAI / "decoder.onnx").end_ids == (5, 7), "beside the file"
    (GENAI / "other.onnx").write_bytes(MODEL.read_bytes())
    assert pt.Decoder(GENAI / "other.onnx", most=48).end_ids == (), "of another file"
    write_config(GENAI, search__do_sample=False, model__eos_token_id=3)
    greedy = pt.Decoder(GENAI)
    assert greedy.end_ids == (3,)
    assert list(greedy.generate(IDS, 8, end=())) == list(plain.generate(IDS, 8))
    for path, value, words in (
            ("model__eos_token_id", "two", ("model.eos_token_id", "genai_config.json")),
            ("model__eos_token_id", [1, -1], ("model.eos_token_id",)),
            ("model__context_length", 0, ("model.context_length is not an integer from 1",)),
            ("model__decoder__head_size", 1e99, ("model.decoder.head_size",)),
            ("model__decoder__inputs", {"past_key_names": "past.key"}, ("past_key_names is not a name with one %d",)),
            ("model__decoder__head_size", 8, ("model.decoder.head_size is 8, and input 'past_key_values.0.key' has heads of 16",)),
            ("model__eos_token_id", [96, 200], ("model.eos_token_id is 96, and the model's ids are 0 to 95",)),
            ("model__decoder", 3, ("model.decoder is not an object", "genai_config.json")),
            ("model__decoder__outputs", [], ("model.decoder.outputs is not an object",)),
            ("model", 3, ("model is not an object",)),
            ("search", "all", ("search is not an object",)),
            ("model__decoder__filename", "../plain/model.onnx", ("not within its folder",)),
            ("model__decoder__filename", "/model.onnx", ("not within its folder",)),
            ("search__do_sample", 1, ("search.do_sample is not true or false",)),
            ("search__top_p", 1.5, ("search.top_p",))):
        write_config(GENAI, **{path: value})
        raises(pt.Error, lambda: pt.Decoder(GENAI), *words)
    write_config(GENAI, model__decoder__filename="none.onnx")
    raises(pt.Error, lambda: pt.Decoder(GENAI), "none.onnx")
    write_config(GENAI, model__decoder__inputs={"input_ids": "tokens"})
    raises(NotImplementedError, lambda: pt.Decoder(GENAI), "'input_ids' is none that is known")
    (GENAI / "genai_config.json").write_text("[]")
    raises(pt.Error, lambda: pt.Decoder(GENAI), "genai_config.json is not an object")
    (MODEL.parent / "genai_config.json").write_text('{"model": {"decoder": {}}}')
    assert pt.Decoder(MODEL.parent, most=48).end_ids == (), "each field may be missing"
    (MODEL.parent / "genai_config.json").unlink()
    (GENAI / "genai_config.json").write_text('{"model": {,}}')
    raises(pt.Error, lambda: pt.Decoder(GENAI), "line 1, column 12", "a key in quotes")
    write_config(GENAI)
    raises(pt.Error, lambda: pt.Decoder(HOME), "has no genai_config.json")


def test_speech():
    # Logits are held by tests/cli/decode_speech_test.py.
    import numpy as np

    folder = HOME / "whisper"
    _, encoder, decoder = whisper.make(folder)
    mel = np.random.default_rng(1).standard_normal((1, 8, 40)).astype(np.float32)
    d = pt.Decoder(folder, slots=2)
    assert d.info()["features"] == (1, 8, 40) and d.most == 64 and d.end_ids == (2,)
    raises(ValueError, lambda: d.feed([1]), "slot 0 has no features")
    raises(ValueError, lambda: d.encode(mel[:, :4]), "the encoder takes tensor<1x8x40xf32>")
    raises(ValueError, lambda: d.encode(mel, 2), "there is no slot 2")
    d.encode(mel)
    want = list(d.generate([3, 1, 4, 1], 8, end=()))
    raises(ValueError, lambda: d.encode(mel), "tokens of other features")
    for features in (mel[0], mel.astype("f8"), mel.tolist(), pt.asarray(mel), np.asfortranarray(mel)):
        d.cut(0, 1)
        d.encode(features, slot=1)
        assert list(d.generate([3, 1, 4, 1], 8, slot=1, end=())) == want
    two = pt.Decoder(decoder, encoder=encoder, most=64)
    two.encode(mel)
    assert list(two.generate([3, 1, 4, 1], 8, end=())) == want
    raises(FileNotFoundError, lambda: pt.Decoder(decoder, encoder=HOME / "none.onnx"))
    raises(ValueError, lambda: pt.Decoder(MODEL, most=48).encode(mel), "has no encoder")
    assert pt.Decoder(MODEL, most=48).info()["features"] is None


def test_rooms():
    fixed, d = pt.Decoder(MODEL, most=64, room=64), pt.Decoder(MODEL, most=64, room=8)
    assert (fixed.info()["room"], d.info()["room"]) == (64, 8)
    assert list(d.generate(IDS, 50)) == list(fixed.generate(IDS, 50))
    assert d.info()["room"] == 64
    raises(ValueError, lambda: pt.Decoder(MODEL, room=-1), "room is -1")


def test_threads():
    d = pt.Decoder(MODEL, most=64, slots=4)
    want = list(d.generate(IDS, 20))
    got = {}

    def work(slot):
        got[slot] = list(d.generate(IDS, 20, slot=slot))

    threads = [threading.Thread(target=work, args=(slot,)) for slot in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == {slot: want for slot in range(4)}


def test_bad():
    d = pt.Decoder(MODEL, most=16)
    raises(ValueError, d.choose, "has no logits")
    raises(ValueError, d.logits, "has no logits")
    d.feed(IDS)
    before = d.logits().tolist()
    raises(ValueError, lambda: d.feed([1, 96]), "id 96 at place 1 is none of the model's, which are 0 to 95")
    raises(ValueError, lambda: d.prefill([1, 96]), "id 96 at place 1")
    raises(ValueError, lambda: d.prefill([]), "one token at least")
    raises(ValueError, lambda: d.prefill([1] * 17), "room for 16")
    raises(ValueError, lambda: d.feed([]), "one token at least")
    raises(ValueError, lambda: d.feed([1] * 7), "7 tokens behind 10")
    raises(ValueError, lambda: d.feed([1], 1), "there is no slot 1")
    raises(ValueError, lambda: d.feed([1], -1), "there is no slot -1")
    raises(ValueError, lambda: d.length(9), "there is no slot 9")
    raises(ValueError, lambda: d.cut(11), "cannot be cut at 11")
    raises(TypeError, lambda: d.feed([1.5]), "not a sequence of integers")
    raises(TypeError, lambda: d.feed(1), "not a sequence of integers")
    raises(ValueError, lambda: d.feed([1 << 70]), "out of range")
    assert d.length() == 10 and d.logits().tolist() == before
    raises(FileNotFoundError, lambda: pt.Decoder(HOME / "none.onnx"))
    raises(TypeError, lambda: pt.Decoder(3), "not int")
    raises(TypeError, lambda: pt.Decoder(HOME, encoder=3), "not int")
    raises(ValueError, lambda: pt.Decoder(MODEL, most=-1), "most is -1")
    raises(ValueError, lambda: pt.Decoder(MODEL, slots=0), "slots is 0")
    for threads in (-1, 1 << 40):
        raises(ValueError, lambda: pt.Decoder(MODEL, threads=threads), f"threads is {threads}")
    raises(ValueError, lambda: pt.Decoder(MODEL, numerics="best"), "numerics is 'best'")
    raises(pt.Error, lambda: pt.Decoder(MODEL, most=128), "row for each of the 128 positions")
    (HOME / "no.onnx").write_bytes(b"\0" * 64)
    raises(pt.Error, lambda: pt.Decoder(HOME / "no.onnx"))


run(globals())
