# SPDX-License-Identifier: Apache-2.0
"""Tensors to and from PyTorch without a copy: a layer of torch, its loss by pestle, and
torch tensors out of a compiled function.

usage: torch_interop.py
"""

import sys

import pestle as pt

try:
    import torch
except ImportError:
    print("PyTorch is not installed: this example shows how tensors go to it and back")
    sys.exit(0)


@pt.jit(like="inputs")
def huber(x, y, width):
    """The mean of Huber's loss, and its derivative, as one plan."""
    away = x - y
    size = pt.abs(away)
    small = size < width
    loss = pt.where(small, 0.5 * away * away, width * (size - 0.5 * width))
    slope = pt.where(small, away, width * pt.sign(away)) / x.size
    return pt.mean(loss), slope


torch.manual_seed(0)
layer = torch.nn.Linear(8, 1)
inputs, wanted = torch.randn(64, 8), torch.randn(64, 1)

# By the DLPack protocol an array of pestle sees the memory of a tensor, and the other
# way around.
x = pt.from_dlpack(inputs)
back = torch.from_dlpack(x)
assert back.data_ptr() == inputs.data_ptr(), "nothing was copied"

for step in range(5):
    outputs = layer(inputs)
    # Tensors are arguments as they are; like="inputs" makes results tensors too.
    loss, slope = huber(outputs.detach(), wanted, 1.0)
    assert isinstance(loss, torch.Tensor)
    reference = torch.nn.functional.huber_loss(outputs, wanted)
    assert abs(loss.item() - reference.item()) < 1e-5
    layer.zero_grad()
    outputs.backward(slope)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter -= 0.5 * parameter.grad
    print(f"step {step}: loss {loss.item():.4f}")
