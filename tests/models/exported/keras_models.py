# SPDX-License-Identifier: Apache-2.0
"""Networks of Keras with weights from a seed as tf2onnx writes them."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf
import tf2onnx
from tensorflow import keras
from tensorflow.keras import layers as L


def application(name, size, **kw):
    return lambda: (getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), **kw), [(size, size, 3)])


def stack(shape, *steps):
    return lambda: (keras.Sequential([keras.Input(shape), *(s() for s in steps)]), [shape])


def attention():
    x = y = keras.Input((40, 96))
    for _ in range(2):
        a = L.MultiHeadAttention(4, 24)(y, y)
        y = L.LayerNormalization()(L.Add()([y, a]))
        y = L.LayerNormalization()(L.Add()([y, L.Dense(96)(L.Dense(384, activation="silu")(y))]))
    return keras.Model(x, L.Dense(5, activation="softmax")(L.GlobalAveragePooling1D()(y))), [(40, 96)]


def two_inputs():
    a, b = keras.Input((32,)), keras.Input((24, 16))
    y = L.Concatenate()([L.Dense(64, activation="elu")(a), L.Flatten()(L.SeparableConv1D(24, 3, activation="selu")(b))])
    return keras.Model([a, b], [L.Dense(10)(y), L.Dense(1, activation="sigmoid")(y)]), [(32,), (24, 16)]


MODELS = {
    "mobilenet_v2": application("MobileNetV2", 160, alpha=0.5),
    "efficientnet_v2": application("EfficientNetV2B0", 128, include_preprocessing=False),
    "nasnet_mobile": application("NASNetMobile", 128),
    "densenet121": application("DenseNet121", 96),
    "cnn": stack((28, 28, 1), lambda: L.Conv2D(32, 3, activation="relu"), lambda: L.MaxPooling2D(),
                 lambda: L.Conv2D(64, 3, activation="relu"), lambda: L.MaxPooling2D(), L.Flatten,
                 lambda: L.Dense(128, activation="relu"), lambda: L.Dense(10, activation="softmax")),
    "lstm": stack((60, 24), lambda: L.LSTM(64, return_sequences=True), lambda: L.LSTM(64), lambda: L.Dense(8)),
    "gru": stack((60, 24), lambda: L.Bidirectional(L.GRU(48, return_sequences=True)), lambda: L.GRU(48), lambda: L.Dense(8)),
    "conv_lstm": stack((6, 20, 20, 2), lambda: L.ConvLSTM2D(8, 3, padding="same"), lambda: L.Conv2D(1, 1)),
    "keywords": stack((98, 40, 1), lambda: L.Conv2D(32, (10, 4), (2, 2), padding="same", activation="relu"),
                      lambda: L.DepthwiseConv2D(3, padding="same"), L.BatchNormalization, L.ReLU,
                      lambda: L.Conv2D(32, 1), lambda: L.SpatialDropout2D(0.2), L.GlobalAveragePooling2D,
                      lambda: L.Dense(12, activation="softmax")),
    "unet": stack((64, 64, 3), lambda: L.Conv2D(16, 3, 2, "same", activation="relu"), lambda: L.Conv2D(32, 3, 2, "same"),
                  lambda: L.LeakyReLU(), lambda: L.UpSampling2D(interpolation="bilinear"),
                  lambda: L.Conv2DTranspose(8, 3, 2, "same", activation="tanh"), lambda: L.Conv2D(1, 1)),
    "attention": attention,
    "two_inputs": two_inputs,
}  # fmt: skip


def export(name, path):
    keras.utils.set_random_seed(7)
    net, shapes = MODELS[name]()
    batch = 4 if len(shapes[0]) < 3 else 1
    r = np.random.default_rng(7)
    feeds = [r.standard_normal((batch, *s)).astype(np.float32) for s in shapes]
    spec = [tf.TensorSpec((batch, *s), tf.float32, f"x{i}") for i, s in enumerate(shapes)]
    call = tf.function(lambda *x: net(list(x) if len(x) > 1 else x[0], training=False), input_signature=spec)
    model, _ = tf2onnx.convert.from_function(call, input_signature=spec, opset=17, output_path=path)
    return {i.name: f for i, f in zip(model.graph.input, feeds)}


NAMES = list(MODELS)
