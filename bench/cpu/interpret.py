# SPDX-License-Identifier: Apache-2.0
"""The ONNX graphs of cases.py as functions of jax or of torch."""

import operator

import onnx
from onnx import helper, numpy_helper


def shared(xp):
    ops = {
        "Add": operator.add,
        "Sub": operator.sub,
        "Mul": operator.mul,
        "Div": operator.truediv,
        "Neg": operator.neg,
        "Reshape": lambda x, shape: x.reshape(shape),
        "Flatten": lambda x, axis: x.reshape(x.shape[0], -1),
        "ReduceSum": lambda x, axes, keepdims: x.sum(tuple(axes)),
    }
    names = ("Abs", "Sqrt", "Tanh", "Exp", "Log", "MatMul")
    return ops | {name: getattr(xp, name.lower()) for name in names}


def jax_ops():
    import jax
    import jax.numpy as jnp

    lax, layout = jax.lax, ("NCHW", "OIHW", "NCHW")

    def layer_norm(x, scale, offset, axis, epsilon):
        y = x - x.mean(axis, keepdims=True)
        variance = (y**2).mean(axis, keepdims=True)
        return y * lax.rsqrt(variance + epsilon) * scale + offset

    def conv(x, w, b, strides, pads, group, **_):
        pads = [(pads[0], pads[2]), (pads[1], pads[3])]
        options = {"dimension_numbers": layout, "feature_group_count": group}
        y = lax.conv_general_dilated(x, w, strides, pads, **options)
        return y + b[None, :, None, None]

    def pool(x, kernel_shape, strides, pads=(0, 0, 0, 0)):
        pads = [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])]
        window, strides = (1, 1, *kernel_shape), (1, 1, *strides)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, pads)

    def attention(q, k, v):
        turned = [x.transpose(0, 2, 1, 3) for x in (q, k, v)]
        return jax.nn.dot_product_attention(*turned).transpose(0, 2, 1, 3)

    def product_s8(a, b):
        return lax.dot_general(
            a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32
        )

    return shared(jnp) | {
        "Sigmoid": jax.nn.sigmoid,
        "Erf": lax.erf,
        "Relu": lambda x: jnp.maximum(x, 0),
        "Clip": jnp.clip,
        "MatMulInteger": product_s8,
        "Gemm": lambda x, w, b: x @ w + b,
        "Transpose": lambda x, perm: x.transpose(perm),
        "Softmax": jax.nn.softmax,
        "LayerNormalization": layer_norm,
        "Conv": conv,
        "MaxPool": pool,
        "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
        "Attention": attention,
    }


def torch_ops():
    import torch

    functional = torch.nn.functional

    def conv(x, w, b, strides, pads, group, **_):
        return functional.conv2d(x, w, b, strides, pads[0], 1, group)

    def pool(x, kernel_shape, strides, pads=(0,)):
        return functional.max_pool2d(x, kernel_shape, strides, pads[0])

    def transpose(x, perm):
        y = x.permute(perm)
        return y.contiguous() if len(perm) == 2 else y

    def layer_norm(x, scale, offset, axis, epsilon):
        return functional.layer_norm(x, scale.shape, scale, offset, epsilon)

    return shared(torch) | {
        "Sigmoid": torch.sigmoid,
        "Erf": torch.erf,
        "Relu": torch.relu,
        "Clip": torch.clamp,
        "Gemm": lambda x, w, b: torch.addmm(b, x, w),
        "Transpose": transpose,
        "Softmax": torch.softmax,
        "LayerNormalization": layer_norm,
        "Conv": conv,
        "MaxPool": pool,
        "GlobalAveragePool": lambda x: x.mean((2, 3), keepdim=True),
        "Attention": functional.scaled_dot_product_attention,
    }


def function_of(path, ops):
    """A function (weights, *inputs) of a model, and the weights by name.
    Scalars and shapes are not weights: the function has them."""
    graph, weights, fixed, steps = onnx.load(path).graph, {}, {}, []
    for value in graph.initializer:
        array = numpy_helper.to_array(value)
        if array.dtype.name == "int64":
            fixed[value.name] = array.tolist()
        elif array.shape == (1,):
            fixed[value.name] = array.item()
        else:
            weights[value.name] = array
    for node in graph.node:
        values = [helper.get_attribute_value(a) for a in node.attribute]
        options = dict(zip([a.name for a in node.attribute], values))
        if node.op_type not in ops:
            raise NotImplementedError(f"not for this peer: {node.op_type}")
        steps.append((ops[node.op_type], node.input, node.output[0], options))
    names = [value.name for value in graph.input]

    def function(given, *inputs):
        values = fixed | given | dict(zip(names, inputs))
        for op, operands, result, options in steps:
            values[result] = op(*[values[name] for name in operands], **options)
        return values[graph.output[0].name]

    return function, weights
