#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks of torchvision and timm as ONNX files, for own_models.py.

    export_zoo.py FOLDER                 all of the list below
    export_zoo.py FOLDER resnet50 ...    these

Weights are random, of one seed, and so are the numbers of batch norms. It needs
torch, onnx, torchvision and timm (`pip install --no-deps torchvision timm`).
"""

import pathlib
import sys

import timm
import torch
import torchvision

TORCHVISION = """resnet50 mobilenet_v3_large mobilenet_v3_small efficientnet_b0
efficientnet_v2_s convnext_tiny densenet121 googlenet shufflenet_v2_x1_0
squeezenet1_1 mnasnet1_0 regnet_y_400mf vgg11 alexnet swin_t""".split()
TIMM = """tf_efficientnet_lite0 ghostnet_100 mobilevit_s mixer_b16_224
deit_tiny_patch16_224 poolformer_s12 edgenext_small repvgg_a0 hrnet_w18_small
res2net50_26w_4s coatnet_0_rw_224 levit_128s xcit_nano_12_p16_224 gmlp_s16_224
efficientformer_l1 fastvit_t8 mobilenetv4_conv_small resnext50_32x4d seresnet50
skresnet18""".split()


def make(name):
    """The network, and the shape of an image."""
    torch.manual_seed(0)
    if name in TORCHVISION:
        model, size = torchvision.models.get_model(name, weights=None), 224
    else:
        model = timm.create_model(name, pretrained=False)
        size = model.default_cfg["input_size"][-1]
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return model.eval(), (1, 3, size, size)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or TORCHVISION + TIMM:
        model, shape = make(name)
        target = folder / f"{name}.onnx"
        with torch.no_grad():
            torch.onnx.export(
                model, (torch.zeros(shape),), target, dynamo=False, opset_version=17
            )
        print(target, flush=True)


if __name__ == "__main__":
    sys.exit(main())
