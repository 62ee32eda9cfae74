# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's optimiser and quantiser make of models that the other groups
wrote, as tests/ort/optimised.py has it. A name is MODEL@HOW."""

import pathlib
import sys
import tempfile

import onnx

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ort"))
import optimised

# Of float models whose convolutions have their bias from a node the quantiser makes no
# operators ("operators-u8" ends in an AttributeError).
HOWS = {
    "open/ppocr_rec": ("extended", "qdq-u8"),
    "open/yolox_det": ("qdq-s8",),
    "open/lcnet_orient": ("basic", "extended"),
    "open/minilm_l3": ("extended", "fused", "dynamic-u8"),
    "open/magika": ("extended",),
    "open/aecmos_gru": ("extended", "dynamic-u8"),
    "torch/resnet18": ("extended", "qdq-s8", "qdq-u16"),
    "torch/mobilenet_v2": ("qdq-u8",),
    "torch/text_bert": ("extended", "dynamic-extended"),
    "torch/text_gpt": ("extended",),
    "torch/speech_lstm_ctc": ("dynamic-u8",),
    "torch/unet": ("extended", "qdq-u8"),
}
SHAPES = {"open/minilm_l3": (12, 384)}
NAMES = [f"{m}@{how}" for m, hows in HOWS.items() for how in hows]


def export(name, path, load):
    """|load|(name) gives the path and the inputs of a model that is made already."""
    source, how = name.split("@")
    at, feeds = load(source)
    model = onnx.load(at)
    with tempfile.TemporaryDirectory() as folder:
        made = dict(optimised.variants(model, feeds, folder, SHAPES.get(source)))[how]()
    onnx.save(made, path)
    return feeds
