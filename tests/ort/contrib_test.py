#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""com.microsoft's ops: random nodes against ONNX Runtime's CPU kernels, forms that are
refused by name, and a small transformer as ONNX Runtime's tools write it. Exits 77,
"skipped", when a Python package is missing."""

import sys


def masked(past=3, rows=1, columns=None, batch=2, width=None, dtype="int32", cross=False):
    """Attention of two sequences, whose two heads of four have room for six rows."""
    import numpy as np

    def change(c):
        c.attrs = {"num_heads": 2}
        if c.op != "MultiHeadAttention":
            c.attrs["past_present_share_buffer"] = 1
        x, room = np.ones((2, rows, 8), np.float32), np.ones((2, 2, 6, 4), np.float32)
        mask = None if columns is None else np.ones((batch, columns), np.int32)
        at, beams = np.array([past], dtype), None if width is None else np.array([width], np.int32)
        key = np.ones((2, 2, 1, 4), np.float32) if cross else x
        inputs = {
            "MultiHeadAttention": (x, x, x, None, mask, None, room, room, at),
            "DecoderMaskedMultiHeadAttention": (x, key, key, mask, None, room, room, at, beams),
            "DecoderMaskedSelfAttention": (x, np.ones((8, 24), np.float32), np.ones(24, np.float32), mask, np.stack((room, room)), None, at, beams),
        }[c.op]
        c.inputs = [None if i is None else (i, i is at or i is beams) for i in inputs]
        c.outputs = ["o0", "o1", "o2"][:2 if c.op == "DecoderMaskedSelfAttention" else 3]
    return change


def fitting():
    """What is one less than what is refused."""
    return (
        ("DecoderMaskedMultiHeadAttention", masked(5)),
        ("DecoderMaskedMultiHeadAttention", masked(0, width=1)),
        ("DecoderMaskedMultiHeadAttention", masked(columns=4)),
        ("DecoderMaskedSelfAttention", masked(5)),
        ("DecoderMaskedSelfAttention", masked(columns=4, width=1)),
        ("MultiHeadAttention", masked(3, rows=3)),
        ("MultiHeadAttention", masked(columns=4)),
    )


def refused():
    """(what is wrong, how the node's case is changed, what the sentence must hold)"""
    def attrs(**kw):
        return lambda c: c.attrs.update(kw)

    def given(index, array):
        def change(c):
            c.inputs += [None] * (index + 1 - len(c.inputs))
            c.add(array)
            c.inputs[index] = c.inputs.pop()
        return change

    import numpy as np

    heads, own, any_rows = "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "MultiHeadAttention"
    one = np.zeros(1, np.int32)
    return (
        ("FastGelu", attrs(faster=1), "attribute 'faster' is none that Pestle knows"),
        ("Attention", attrs(do_rotary=1), "attribute 'do_rotary' is 1"),
        ("Attention", attrs(past_present_share_buffer=1), "'past_present_share_buffer' is 1"),
        ("Attention", attrs(qkv_hidden_sizes=[4, 4]), "'qkv_hidden_sizes' has 2 numbers"),
        ("MultiHeadAttention", given(9, np.zeros((1, 2, 4), np.int32)), "of 2 beams"),
        ("DecoderMaskedMultiHeadAttention", given(9, np.zeros((1, 3, 4), np.int32)), "of 3 beams"),
        ("DecoderMaskedSelfAttention", attrs(do_rotary=1), "attribute 'do_rotary' is 1"),
        ("DecoderMaskedSelfAttention", given(6, np.zeros(2, np.int32)), "past_sequence_length, is not one number"),
        (heads, masked(6), "past_sequence_length is 6, and its pasts have room for 6 rows"),
        (heads, masked(-1), "past_sequence_length is -1"),
        (own, masked(6), "past_sequence_length is 6"),
        (own, masked(-1), "past_sequence_length is -1"),
        (any_rows, masked(6), "past_sequence_length is 6"),
        (any_rows, masked(4, rows=3), "room for 6 rows, of which 3 are new"),
        (any_rows, masked(-1), "past_sequence_length is -1"),
        (heads, masked(columns=3), "a column for each of 4 keys"),
        (own, masked(columns=3), "a column for each of 4 keys"),
        (any_rows, masked(columns=3), "a column for each of 4 keys"),
        (heads, masked(columns=4, batch=1), "its mask has 1 rows for a batch of 2"),
        (own, masked(columns=4, batch=1), "its mask has 1 rows for a batch of 2"),
        (heads, masked(width=2), "its beam_width is not 1"),
        (own, masked(width=2), "its beam_width is not 1"),
        (heads, masked(dtype=np.int64), "is not one number of int32"),
        (own, masked(dtype=np.float32), "is not one number of int32"),
        (heads, masked(cross=True), "which has no past"),
        ("GroupQueryAttention", attrs(k_quant_type="PER_TENSOR"), "'k_quant_type' is 'PER_TENSOR'"),
        ("GroupQueryAttention", attrs(kv_cache_bit_width=4), "'kv_cache_bit_width' is 4"),
        ("GroupQueryAttention", given(12, np.ones(1, np.float32)), "k_scale"),
        ("RotaryEmbedding", attrs(is_packed_batching=1), "'is_packed_batching' is 1"),
        ("RotaryEmbedding", attrs(scale=2.0), "'scale' is 2"),
        ("MatMulNBits", given(4, one), "g_idx"),
        ("MatMulNBits", attrs(bits=3), "'bits' 3"),
        ("MatMulNBits", attrs(block_size=24), "'block_size' 24"),
        ("MatMulNBits", attrs(weight_prepacked=1), "'weight_prepacked' is 1"),
        ("GatherBlockQuantized", attrs(gather_axis=1), "along axis 1"),
        ("QLinearSoftmax", attrs(opset=99), "'opset' is 99"),
        ("FusedConv", attrs(activation="Cosine"), "the activation 'Cosine' is not known"),
    )  # fmt: skip


def check_refusals():
    import contrib
    import contrib_cases

    wrong = 0
    for name, change in fitting():
        case = contrib_cases.make(name, 1)
        change(case)
        model, inputs = case.model()
        got, why = contrib.run_pestle(model, inputs, "ref")
        if got is None:
            print(f"{name}: refused: {why}")
            wrong += 1
    for name, change, sentence in refused():
        case = contrib_cases.make(name, 1)
        change(case)
        model, inputs = case.model()
        got, why = contrib.run_pestle(model, inputs, "ref")
        if got is not None or sentence not in why or not why.startswith(("exit 3", "exit 4")):
            print(f"{name}: not refused by '{sentence}': {why}")
            wrong += 1
    return wrong


def check_random():
    import contrib
    import contrib_cases

    wrong, count = 0, len(contrib_cases.NAMES)
    for device, seed, each in (("ref", 1, 2), ("llvm", 41, 1)):
        kinds = contrib.run(each * count, seed, device)
        wrong += kinds["wrong"] + kinds["refused"]
        judged = each * count - kinds["no peer"]
        if judged < 0.9 * each * count:
            print(f"only {judged} cases were run by ONNX Runtime")
            wrong += 1
    return wrong


def main():
    try:
        import onnxruntime  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        return 77
    import optimised

    small = [m for m in optimised.small_models() if m[0] != "encoder1"]
    right, wrong = optimised.run(small, "*/[aefdo]*")
    if right < 9:
        print(f"only {right} of what ONNX Runtime's tools write was run")
    return 1 if check_refusals() + check_random() + len(wrong) or right < 9 else 0


if __name__ == "__main__":
    sys.exit(main())
