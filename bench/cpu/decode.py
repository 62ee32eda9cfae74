#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Decoding beside ONNX Runtime and llama.cpp, one token after the other, in turns: CPU time a
token, the least of all, and wall time a token, the least, with so many tokens past. The
model is of random int4 weights, from a seed (tests/models/llama.py); ONNX Runtime runs it
with its caches bound as present and past at once.

    decode.py BUILD [SIZE [PAST,PAST.. [TOKENS [THREADS [GGUF]]]]]

GGUF: a model of the same shape for llama.cpp (llama_cpp must be installed)."""

import ctypes as C
import pathlib
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "models"), str(ROOT / "tests" / "cli")]
import llama  # noqa: E402

MOST = 2048


class Pestle:
    name = "pestle"

    def __init__(self, build, path, maker, threads):
        import decode_test

        decode_test.BUILD = pathlib.Path(build)
        decode_test.Decoder.load()
        self.d = decode_test.Decoder(path, MOST, 1, threads)

    def begin(self, ids):
        self.d.cut(0)
        self.d.feed(ids)

    def step(self, id):
        self.d.feed([id])


class Peer:
    name = "onnxruntime"

    def __init__(self, path, maker, threads):
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        self.s = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.ort, self.maker = ort, maker
        shape = (1, maker.shared, MOST, maker.depth)
        self.caches = {f"{i}.{p}": ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32))
                       for i in range(maker.layers) for p in ("key", "value")}

    def begin(self, ids):
        self.length = 0
        self.feed(np.asarray(ids))

    def feed(self, ids):
        bound = self.s.io_binding()
        self.length += len(ids)
        bound.bind_cpu_input("input_ids", ids.astype(np.int64)[None])
        bound.bind_cpu_input("attention_mask", np.ones((1, self.length), np.int64))
        for name, value in self.caches.items():
            bound.bind_ortvalue_input("past_key_values." + name, value)
            bound.bind_ortvalue_output("present." + name, value)
        bound.bind_output("logits")
        self.s.run_with_iobinding(bound)
        self.bound = bound

    def logits(self, ids):
        """Behind the last of |ids|, which are fed."""
        self.feed(np.asarray(ids))
        return self.bound.copy_outputs_to_cpu()[-1][0, -1]

    def step(self, id):
        self.feed(np.array([id]))


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, path, threads):
        import llama_cpp as ll

        ll.llama_backend_init()
        self.ll = ll
        model = ll.llama_model_default_params()
        context = ll.llama_context_default_params()
        context.n_ctx = MOST
        context.n_batch = context.n_ubatch = 512
        context.n_threads = context.n_threads_batch = threads
        self.model = ll.llama_model_load_from_file(str(path).encode(), model)
        self.context = ll.llama_init_from_model(self.model, context)
        print(ll.llama_print_system_info().decode())

    def begin(self, ids):
        self.ll.llama_memory_clear(self.ll.llama_get_memory(self.context), True)
        for at in range(0, len(ids), 512):
            self.feed(ids[at:at + 512])

    def feed(self, ids):
        tokens = (self.ll.llama_token * len(ids))(*map(int, ids))
        if self.ll.llama_decode(self.context, self.ll.llama_batch_get_one(tokens, len(ids))):
            raise RuntimeError("llama_decode failed")

    def logits(self, ids):
        self.feed(ids)
        words = self.ll.llama_vocab_n_tokens(self.ll.llama_model_get_vocab(self.model))
        return np.ctypeslib.as_array(self.ll.llama_get_logits_ith(self.context, -1), (words,)).copy()

    def step(self, id):
        self.feed([id])


def main():
    given = sys.argv[1:] + [None] * 6
    if not given[0]:
        sys.exit(__doc__)
    size, tokens, threads = given[1] or "135m", int(given[3] or 24), int(given[4] or 1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        maker = llama.make(path, size, level=4)
        runners = [Pestle(given[0], path, maker, threads), Peer(path, maker, threads)]
        if given[5]:
            runners.append(LlamaCpp(given[5], threads))
        ids = np.random.default_rng(1).integers(0, maker.words, MOST)
        for past in map(int, (given[2] or "128,2000").split(",")):
            best = {r.name: [1e9, 1e9] for r in runners}
            prefill = {}
            for r in runners:
                r.begin(ids[:past])  # compiles what is not yet
                cpu, wall = time.process_time(), time.perf_counter()
                r.begin(ids[:past])
                prefill[r.name] = (time.process_time() - cpu, time.perf_counter() - wall)
            for t in range(tokens):
                for r in runners:
                    for _ in range(2):
                        cpu, wall = time.process_time(), time.perf_counter()
                        r.step(int(ids[t]))
                        got = (time.process_time() - cpu, time.perf_counter() - wall)
                        best[r.name] = [min(a, b) for a, b in zip(best[r.name], got)]
            others = [n for n in best if n != "pestle"]
            for name, (cpu, wall) in best.items():
                print(f"{size} past {past:5d} threads {threads}: {name:12s} {cpu * 1e3:8.2f} ms of CPU, {wall * 1e3:8.2f} ms "
                      f"a token; {past} tokens of prompt {prefill[name][0] * 1e3:9.1f} ms of CPU")
            least = min(best[n][0] for n in others)
            first = min(prefill[n][0] for n in others)
            print(f"  ratio to the best peer: decode {best['pestle'][0] / least:.3f}, prompt {prefill['pestle'][0] / first:.3f}")


if __name__ == "__main__":
    main()
