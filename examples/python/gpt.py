# SPDX-License-Identifier: Apache-2.0
"""A small GPT that learns to add: lines such as 27+58=085, digit by digit, with Adam. A
step is one plan, whose parameters and moments lie where they lay.

usage: gpt.py [STEPS]
"""

import sys

import pestle as pt

WORDS, LENGTH, WIDTH, HEADS, LAYERS = 12, 9, 64, 4, 2  # digits, + and =
PLUS = 10


def lines(key, count):
    """Rows of 9 words: a, +, b, =, a + b with 3 digits."""
    pair = pt.random.randint(key, (2, count), 0, 100)
    total = pair[0] + pair[1]
    word = pt.full((count,), PLUS, dtype=total.dtype)
    parts = [pair[0] // 10, pair[0] % 10, word, pair[1] // 10, pair[1] % 10, word + 1,
             total // 100, total // 10 % 10, total % 10]
    return pt.stack(parts, axis=1)


def parameters(key):
    keys = iter(pt.random.split(key, 3 + 4 * LAYERS))

    def normal(*shape):
        return pt.random.normal(next(keys), shape) * 0.02 * (64 / shape[0]) ** 0.5

    def norm():
        return {"scale": pt.ones((WIDTH,)), "offset": pt.zeros((WIDTH,))}
    return {
        "words": normal(WORDS, WIDTH), "places": normal(LENGTH, WIDTH),
        "layers": [{"first": norm(), "qkv": normal(WIDTH, 3 * WIDTH),
                    "mix": normal(WIDTH, WIDTH), "second": norm(),
                    "up": normal(WIDTH, 4 * WIDTH), "down": normal(4 * WIDTH, WIDTH)}
                   for _ in range(LAYERS)],
        "last": norm(), "head": normal(WIDTH, WORDS)}


def normalised(x, p):
    x = x - pt.mean(x, axis=-1, keepdims=True)
    return x / pt.sqrt(pt.mean(x * x, axis=-1, keepdims=True) + 1e-5) * p["scale"] + \
        p["offset"]


def attention(x, p):
    n, t, _ = x.shape
    q, k, v = (pt.reshape(part, (n, t, HEADS, WIDTH // HEADS))
               for part in pt.split(x @ p["qkv"], 3, axis=-1))
    scores = pt.einsum("nthc,nshc->nhts", q, k) / (WIDTH // HEADS) ** 0.5
    past = pt.tril(pt.ones((t, t))) > 0
    weights = pt.softmax(pt.where(past, scores, -1e9), axis=-1)
    mixed = pt.einsum("nhts,nshc->nthc", weights, v)
    return pt.reshape(mixed, (n, t, WIDTH)) @ p["mix"]


def network(p, words):
    x = pt.take(p["words"], words, axis=0) + p["places"][:words.shape[1]]
    for layer in p["layers"]:
        x = x + attention(normalised(x, layer["first"]), layer)
        h = normalised(x, layer["second"]) @ layer["up"]
        h = 0.5 * h * (1 + pt.tanh(0.7978845608 * (h + 0.044715 * h * h * h)))
        x = x + h @ layer["down"]
    return normalised(x, p["last"]) @ p["head"]


def loss(p, rows):
    """Of the three digits behind the sign of equality."""
    logits = network(p, rows[:, :-1])[:, 5:]
    wanted = pt.expand_dims(rows[:, 6:], axis=2)
    found = pt.take_along_axis(logits, wanted, axis=2)[:, :, 0]
    return pt.mean(pt.logsumexp(logits, axis=2) - found)


def update(state, rows, i):
    """Adam."""
    p, first, second = state
    value, grads = pt.value_and_grad(loss)(p, rows)
    first = pt.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
    second = pt.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
    rate = 3e-3 * pt.sqrt(1 - 0.99 ** i) / (1 - 0.9 ** i)
    p = pt.tree.map(lambda w, m, v: w - rate * m / (pt.sqrt(v) + 1e-8), p, first, second)
    return (p, first, second), value


step = pt.jit(update, donate_argnums=0)


def main(steps, batch=128):
    p = parameters(pt.random.key(0))
    state = p, pt.tree.map(pt.zeros_like, p), pt.tree.map(pt.zeros_like, p)
    draw, losses = pt.jit(lines, static_argnums=1), []
    for i in range(steps):
        rows = draw(pt.random.key(i + 1), batch)
        state, value = step(state, rows, pt.asarray(i + 1.0))
        losses.append(float(value))
        if i % 100 == 0 or i == steps - 1:
            answer = pt.argmax(network(state[0], rows[:, :-1])[:, 5:], axis=2)
            right = pt.mean(pt.astype(pt.all(answer == rows[:, 6:], axis=1), pt.float32))
            print(f"step {i:4}  loss {losses[-1]:.4f}  sums right {float(right):.0%}")
    return losses


if __name__ == "__main__":
    result = main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
    assert result[-1] < result[0]
