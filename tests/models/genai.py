#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small decoders of many architectures with random weights from a seed, as the model builder of
onnxruntime-genai writes them for CPUs: a folder with model.onnx and genai_config.json.

    genai.py FOLDER ARCHITECTURE [fp32|int4] [SEED]

Needs torch, transformers (5) and onnxruntime-genai (0.18)."""

import pathlib
import sys
import tempfile

# What all architectures call alike.
SMALL = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             vocab_size=160, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=0)
WINDOW = 24
WINDOWED = dict(head_dim=32, sliding_window=WINDOW, query_pre_attn_scalar=32)
# The class of the configuration, and what is other than in SMALL.
KINDS = {
    "llama": ("LlamaConfig", dict(head_dim=16)),
    "llama3": ("LlamaConfig", dict(head_dim=16, rope_parameters=dict(
        rope_type="llama3", rope_theta=5e5, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=32))),
    "qwen2": ("Qwen2Config", {}),
    "qwen3": ("Qwen3Config", dict(head_dim=32)),
    "phi": ("PhiConfig", dict(hidden_size=128, num_key_value_heads=4)),
    "phi3": ("Phi3Config", dict(original_max_position_embeddings=128)),
    "gemma": ("GemmaConfig", dict(head_dim=32)),
    "gemma2": ("Gemma2Config", WINDOWED),
    "gemma2-long": ("Gemma2Config", WINDOWED),  # windows in caches of all positions
    "gemma3": ("Gemma3TextConfig", dict(WINDOWED, num_hidden_layers=7)),
    "mistral": ("MistralConfig", dict(head_dim=16)),
    "granite": ("GraniteConfig", dict(embedding_multiplier=4.0, attention_multiplier=0.3, residual_multiplier=0.4,
                                      logits_scaling=2.0)),
    "olmo": ("OlmoConfig", {}),
    "nemotron": ("NemotronConfig", dict(hidden_size=128, head_dim=32)),
}
OPTIONS = {"gemma2-long": dict(windowed_kv_cache=False)}
# What the builder looks for where transformers 5 has it elsewhere.
CHANGES = {"gemma3": dict(rope_parameters=dict(rope_type="default", rope_theta=1e6), rope_local_base_freq=1e4,
                          rope_theta=1e6)}


def tokenizer(folder):
    import tokenizers
    import transformers

    words = {f"t{i}": i for i in range(SMALL["vocab_size"])}
    one = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="t0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=one, bos_token="t1", eos_token="t2", pad_token="t0",
                                         unk_token="t0").save_pretrained(folder)


def source(folder, kind, seed):
    """Writes the model as transformers has it. Its queries are three times as large as they
    would be, so that scores differ."""
    import torch
    import transformers

    name, more = KINDS[kind]
    config = getattr(transformers, name)(**{**SMALL, "tie_word_embeddings": False, **more})
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for path, p in model.named_parameters():
            if p.ndim < 2:
                p.add_(torch.randn_like(p) * 0.1)
            elif "embed" in path:
                p.copy_(torch.randn_like(p))
            else:
                p.copy_(torch.randn_like(p) * (3 if "q_proj" in path else 1) / p.shape[-1] ** 0.5)
    model.config.architectures = [type(model).__name__]
    model.save_pretrained(folder)
    tokenizer(folder)


def make(folder, kind, precision="fp32", seed=1):
    import onnxruntime_genai

    sys.path.insert(0, str(pathlib.Path(onnxruntime_genai.__file__).parent / "models"))
    import builder

    options = dict(OPTIONS.get(kind, {}))
    with tempfile.TemporaryDirectory() as hub, tempfile.TemporaryDirectory() as cache:
        source(hub, kind, seed)
        details = builder.get_hf_details("", hub, cache, options)
        for name, value in CHANGES.get(kind, {}).items():
            setattr(details["hf_config"], name, value)
        builder.create_model("", hub, str(folder), precision, "cpu", cache, hf_details=details, **options)


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[2] not in KINDS:
        sys.exit(__doc__)
    make(*sys.argv[1:4], **({"seed": int(sys.argv[4])} if len(sys.argv) > 4 else {}))
