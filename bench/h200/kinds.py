# SPDX-License-Identifier: Apache-2.0
"""The kinds of cases that every_shape.py times: what people compute, in shapes that no
benchmark was made for.

A kind draws its parameters from a seeded generator, and says of them its inputs, the
function in JAX (whose text Pestle gets), the same in torch, and its operations. The
modules `jax` and `torch` are given, so that either may be missing.
"""

import dataclasses
import math
import random

FLOATS = ("bf16", "f16", "f32")


@dataclasses.dataclass
class Input:
    """Normal numbers times |scale|, or whole numbers in [0, below)."""
    shape: tuple
    dtype: str
    scale: float = 1.0
    below: int = 0


def odd(r, low, high):
    """Evenly by size, and of no kind: 37, 512 or 777."""
    n = int(round(math.exp(r.uniform(math.log(low), math.log(high)))))
    return n if r.random() < 0.5 else max(low, n - n % 8)


def text_of(p):
    def word(key, value):
        if isinstance(value, tuple):
            return "x".join(map(str, value))
        return key if value is True else str(value) if isinstance(value, str) else (
            f"{key}{value}")
    return "_".join(word(*item) for item in p.items() if item[1] is not False)


class Product:
    """[batch] m x k times k x n, by either side's transpose, with what follows it."""
    rows = 46

    @staticmethod
    def draw(r):
        form = r.choice(("few", "few", "odd", "odd", "even", "batch"))
        p = {"dtype": r.choice(FLOATS), "b": 1, "tb": r.random() < 0.5, "then": "none"}
        if form == "few":
            p.update(m=r.choice((1, 2, 4, 7, 8, 16, 24, 32, 48, 64)),
                     n=odd(r, 256, 12288), k=odd(r, 256, 8192))
        elif form == "batch":
            p.update(b=r.choice((4, 12, 64, 96)), m=odd(r, 16, 512), n=odd(r, 16, 512),
                     k=odd(r, 16, 256))
        else:
            most = 3000 if form == "odd" else 4096
            p.update(m=odd(r, 64, most), n=odd(r, 64, most), k=odd(r, 64, most))
            if form == "even":
                p.update({x: -(-p[x] // 64) * 64 for x in "mnk"})
        if p["b"] == 1:
            p["then"] = r.choice(("none", "bias", "relu", "gelu"))
        return p

    @staticmethod
    def inputs(p):
        batch = (p["b"],) if p["b"] > 1 else ()
        right = (p["n"], p["k"]) if p["tb"] else (p["k"], p["n"])
        found = [Input((*batch, p["m"], p["k"]), p["dtype"]),
                 Input((*batch, *right), p["dtype"], p["k"]**-0.5)]
        return found + ([] if p["then"] == "none" else [Input((p["n"],), p["dtype"])])

    @staticmethod
    def of_jax(p, jax):
        def run(a, b, *c):
            y = a @ (b.mT if p["tb"] else b)
            y = y + c[0] if c else y
            return {"relu": jax.nn.relu, "gelu": lambda v: jax.nn.gelu(
                v, approximate=False)}.get(p["then"], lambda v: v)(y)
        return run

    @staticmethod
    def of_torch(p, torch):
        def run(a, b, *c):
            b = b.mT if p["tb"] else b
            y = torch.addmm(c[0], a, b) if c else a @ b
            return {"relu": torch.relu, "gelu": torch.nn.functional.gelu}.get(
                p["then"], lambda v: v)(y)
        return run

    @staticmethod
    def flops(p):
        return 2 * p["b"] * p["m"] * p["n"] * p["k"]


class Convolution:
    """Of images; channels first or last, dense, in groups, of each channel, transposed."""
    rows = 36

    @staticmethod
    def draw(r):
        form = r.choice(("dense", "dense", "dense", "point", "groups", "each", "up"))
        side = r.choice((7, 14, 17, 28, 35, 56, 112))
        c, o = odd(r, 16, 512), odd(r, 16, 512)
        p = {"dtype": r.choice(FLOATS), "first": r.random() < 0.5,
             "n": r.choice((1, 2, 8, 16, 32)), "h": side, "w": r.choice((side, side + 3)),
             "c": c, "o": o, "r": r.choice((3, 3, 3, 5, 7)), "stride": r.choice((1, 1, 2)),
             "dilation": 1, "groups": 1, "up": False}
        if form == "point":
            p.update(r=1)
        elif form == "groups":
            p.update(groups=4, c=-(-c // 32) * 32, o=-(-o // 32) * 32)
        elif form == "each":
            p.update(groups=c, o=c)
        elif form == "up":
            p.update(up=True, r=4, stride=2)
        elif r.random() < 0.3:
            p.update(dilation=2, stride=1)
        if side >= 56:  # no image of a hundred GFLOP
            p.update(c=min(p["c"], 64), o=min(p["o"], 64))
            p.update(groups=min(p["groups"], p["c"]))
            if form == "groups":
                p.update(c=64, o=64)
            if form == "each":
                p.update(o=p["c"])
        return p

    @staticmethod
    def sizes(p):
        pad = 1 if p["up"] else (p["r"] - 1) * p["dilation"] // 2
        shape = (p["c"], p["h"], p["w"]) if p["first"] else (p["h"], p["w"], p["c"])
        return pad, (p["n"], *shape)

    @staticmethod
    def inputs(p):
        each = p["c"] // p["groups"]
        scale = (each * p["r"]**2)**-0.5
        weights = (p["c"], p["o"]) if p["up"] else (p["o"], each)
        return [Input(Convolution.sizes(p)[1], p["dtype"]),
                Input((*weights, p["r"], p["r"]), p["dtype"], scale)]

    @staticmethod
    def of_jax(p, jax):
        pad = Convolution.sizes(p)[0]
        layout = "NCHW" if p["first"] else "NHWC"

        def run(x, w):
            if p["up"]:
                low = p["r"] - 1 - pad
                return jax.lax.conv_general_dilated(
                    x, jax.numpy.flip(w, (2, 3)), (1, 1), [(low, low)] * 2,
                    lhs_dilation=(p["stride"],) * 2,
                    dimension_numbers=(layout, "IOHW", layout))
            return jax.lax.conv_general_dilated(
                x, w, (p["stride"],) * 2, [(pad, pad)] * 2,
                rhs_dilation=(p["dilation"],) * 2, feature_group_count=p["groups"],
                dimension_numbers=(layout, "OIHW", layout))
        return run

    @staticmethod
    def of_torch(p, torch):
        pad = Convolution.sizes(p)[0]

        def run(x, w):
            if not p["first"]:
                # The same bytes: what torch calls channels_last.
                x = x.permute(0, 3, 1, 2)
            if p["up"]:
                y = torch.nn.functional.conv_transpose2d(x, w, None, p["stride"], pad)
            else:
                y = torch.nn.functional.conv2d(x, w, None, p["stride"], pad,
                                               p["dilation"], p["groups"])
            return y if p["first"] else y.permute(0, 2, 3, 1)
        return run

    @staticmethod
    def laid_out(p, torch, tensors):
        """Weights as torch wants them beside channels last."""
        if p["first"]:
            return tensors
        return [tensors[0], tensors[1].contiguous(memory_format=torch.channels_last),
                *tensors[2:]]

    @staticmethod
    def flops(p):
        pad = Convolution.sizes(p)[0]
        pixels = 1
        for side in (p["h"], p["w"]):
            pixels *= side if p["up"] else (
                side + 2 * pad - (p["r"] - 1) * p["dilation"] - 1) // p["stride"] + 1
        return 2 * p["n"] * pixels * p["o"] * p["c"] // p["groups"] * p["r"]**2


class Gradient:
    """Of a convolution, by its data or its weights."""
    rows = 12

    @staticmethod
    def draw(r):
        p = Convolution.draw(r)
        while p["up"] or p["groups"] > 4:
            p = Convolution.draw(r)
        return {**p, "by": r.choice(("data", "weights"))}

    @staticmethod
    def out(p):
        pad = Convolution.sizes(p)[0]
        h, w = ((s + 2 * pad - (p["r"] - 1) * p["dilation"] - 1) // p["stride"] + 1
                for s in (p["h"], p["w"]))
        return (p["n"], p["o"], h, w) if p["first"] else (p["n"], h, w, p["o"])

    @staticmethod
    def inputs(p):
        return [*Convolution.inputs(p), Input(Gradient.out(p), p["dtype"], 0.1)]

    @staticmethod
    def of_jax(p, jax):
        forward = Convolution.of_jax(p, jax)

        def run(x, w, g):
            if p["by"] == "data":
                return jax.vjp(lambda v: forward(v, w), x)[1](g)[0]
            return jax.vjp(lambda v: forward(x, v), w)[1](g)[0]
        return run

    @staticmethod
    def of_torch(p, torch):
        pad = Convolution.sizes(p)[0]
        data = p["by"] == "data"

        def run(x, w, g):
            if not p["first"]:
                x, g = x.permute(0, 3, 1, 2), g.permute(0, 3, 1, 2)
            found = torch.ops.aten.convolution_backward(
                g, x, w, None, [p["stride"]] * 2, [pad] * 2, [p["dilation"]] * 2, False,
                [0, 0], p["groups"], [data, not data, False])
            y = found[0 if data else 1]
            return y.permute(0, 2, 3, 1) if data and not p["first"] else y
        return run

    flops = Convolution.flops
    laid_out = Convolution.laid_out


class Fold:
    """Sums, largest and means along rows, columns, the middle or all."""
    rows = 16

    @staticmethod
    def draw(r):
        return {"dtype": r.choice((*FLOATS, "f64")), "op": r.choice(("sum", "max", "mean")),
                "shape": r.choice(((odd(r, 100, 60000), odd(r, 16, 4096)),
                                   (odd(r, 8, 64), odd(r, 64, 1024), odd(r, 64, 1024)))),
                "axis": r.choice(("last", "first", "middle", "all"))}

    @staticmethod
    def axes(p):
        n = len(p["shape"])
        return {"last": (n - 1,), "first": (0,), "middle": (n - 2,),
                "all": tuple(range(n))}[p["axis"]]

    @staticmethod
    def inputs(p):
        return [Input(p["shape"], p["dtype"])]

    @staticmethod
    def of_jax(p, jax):
        return lambda x: getattr(jax.numpy, p["op"])(x, axis=Fold.axes(p))

    @staticmethod
    def of_torch(p, torch):
        name = {"max": "amax"}.get(p["op"], p["op"])
        return lambda x: getattr(torch, name)(x, dim=Fold.axes(p))


class Norm:
    """Softmax, its logarithm, layer norm and RMS norm of rows."""
    rows = 16

    @staticmethod
    def draw(r):
        return {"dtype": r.choice(FLOATS),
                "op": r.choice(("softmax", "log_softmax", "layer_norm", "rms_norm")),
                "shape": (odd(r, 64, 40000), odd(r, 32, 8192))}

    @staticmethod
    def inputs(p):
        n, dtype = p["shape"][1], p["dtype"]
        more = {"layer_norm": 2, "rms_norm": 1}.get(p["op"], 0)
        return [Input(p["shape"], dtype)] + [Input((n,), dtype)] * more

    @staticmethod
    def of_jax(p, jax):
        jnp = jax.numpy

        def run(x, *w):
            f = x.astype(jnp.float32)
            if p["op"] in ("softmax", "log_softmax"):
                return getattr(jax.nn, p["op"])(f, axis=-1).astype(x.dtype)
            m = f.mean(-1, keepdims=True) if p["op"] == "layer_norm" else 0
            y = (f - m) * jax.lax.rsqrt(jnp.square(f - m).mean(-1, keepdims=True) + 1e-5)
            y = y * w[0].astype(jnp.float32)
            return (y + w[1].astype(jnp.float32) if len(w) > 1 else y).astype(x.dtype)
        return run

    @staticmethod
    def of_torch(p, torch):
        F = torch.nn.functional
        n = p["shape"][1:]
        return {"softmax": lambda x: torch.softmax(x, -1),
                "log_softmax": lambda x: torch.log_softmax(x, -1),
                "layer_norm": lambda x, w, b: F.layer_norm(x, n, w, b, 1e-5),
                "rms_norm": lambda x, w: F.rms_norm(x, n, w, 1e-5)}[p["op"]]


class Pick:
    """Rows of a table by their numbers, or one element of each row."""
    rows = 8

    @staticmethod
    def draw(r):
        return {"dtype": r.choice(FLOATS), "op": r.choice(("rows", "rows", "along")),
                "table": odd(r, 500, 50000), "wide": odd(r, 16, 2048),
                "count": odd(r, 64, 20000)}

    @staticmethod
    def inputs(p):
        if p["op"] == "rows":
            return [Input((p["table"], p["wide"]), p["dtype"]),
                    Input((p["count"],), "i32", below=p["table"])]
        return [Input((p["count"], p["wide"]), p["dtype"]),
                Input((p["count"], 4), "i32", below=p["wide"])]

    @staticmethod
    def of_jax(p, jax):
        jnp = jax.numpy
        if p["op"] == "rows":
            return lambda x, i: jnp.take(x, i, axis=0, mode="clip")
        return lambda x, i: jnp.take_along_axis(x, i, axis=1, mode="clip")

    @staticmethod
    def of_torch(p, torch):
        if p["op"] == "rows":
            return lambda x, i: torch.index_select(x, 0, i)
        return lambda x, i: torch.gather(x, 1, i.long())


class Put:
    """Rows added to those of a table: an embedding's gradient."""
    rows = 6

    @staticmethod
    def draw(r):
        return {"dtype": r.choice(("f32", "f32", "bf16")), "table": odd(r, 500, 30000),
                "wide": odd(r, 16, 1024), "count": odd(r, 64, 20000)}

    @staticmethod
    def inputs(p):
        return [Input((p["table"], p["wide"]), p["dtype"]),
                Input((p["count"],), "i32", below=p["table"]),
                Input((p["count"], p["wide"]), p["dtype"])]

    @staticmethod
    def of_jax(p, jax):
        return lambda t, i, x: t.at[i].add(x, mode="clip")

    @staticmethod
    def of_torch(p, torch):
        return lambda t, i, x: torch.index_add(t, 0, i, x)


class Sort:
    """Rows in order, their places, or the largest of them."""
    rows = 10

    @staticmethod
    def draw(r):
        n = odd(r, 64, 8192)
        return {"dtype": r.choice(("f32", "f32", "f16", "i32")),
                "op": r.choice(("sort", "argsort", "top_k")),
                "shape": (max(1, odd(r, 1 << 14, 1 << 22) // n), n),
                "k": min(n, r.choice((1, 5, 40, 100)))}

    @staticmethod
    def inputs(p):
        return [Input(p["shape"], p["dtype"], below=1 << 20 if p["dtype"] == "i32" else 0)]

    @staticmethod
    def of_jax(p, jax):
        return {"sort": lambda x: jax.numpy.sort(x, axis=-1),
                "argsort": lambda x: jax.numpy.argsort(x, axis=-1, stable=True),
                "top_k": lambda x: jax.lax.top_k(x, p["k"])[0]}[p["op"]]

    @staticmethod
    def of_torch(p, torch):
        return {"sort": lambda x: torch.sort(x, dim=-1)[0],
                "argsort": lambda x: torch.argsort(x, dim=-1, stable=True),
                "top_k": lambda x: torch.topk(x, p["k"], dim=-1)[0]}[p["op"]]


class Running:
    """Running sums and largest, along rows or columns."""
    rows = 6

    @staticmethod
    def draw(r):
        return {"dtype": r.choice(("f32", "f32", "f64", "i32")),
                "op": r.choice(("cumsum", "cummax")),
                "shape": (odd(r, 16, 4096), odd(r, 64, 8192)), "axis": r.choice((0, 1, 1))}

    @staticmethod
    def inputs(p):
        return [Input(p["shape"], p["dtype"], below=1000 if p["dtype"] == "i32" else 0)]

    @staticmethod
    def of_jax(p, jax):
        return lambda x: getattr(jax.lax, p["op"])(x, axis=p["axis"])

    @staticmethod
    def of_torch(p, torch):
        if p["op"] == "cummax":
            return lambda x: torch.cummax(x, p["axis"])[0]
        kind = torch.int32 if p["dtype"] == "i32" else None
        return lambda x: torch.cumsum(x, p["axis"], dtype=kind)


class Move:
    """What computes nothing: transposes, joins, borders, every second, turned round."""
    rows = 10

    @staticmethod
    def draw(r):
        return {"dtype": r.choice(FLOATS),
                "op": r.choice(("swap", "turn", "join", "pad", "second", "flip")),
                "shape": (odd(r, 4, 64), odd(r, 32, 600), odd(r, 32, 1000))}

    @staticmethod
    def inputs(p):
        return [Input(p["shape"], p["dtype"])] * (2 if p["op"] == "join" else 1)

    @staticmethod
    def of_jax(p, jax):
        jnp = jax.numpy
        return {"swap": lambda x: jnp.transpose(x, (0, 2, 1)),
                "turn": lambda x: jnp.transpose(x, (2, 0, 1)),
                "join": lambda x, y: jnp.concatenate((x, y), 2),
                "pad": lambda x: jnp.pad(x, ((0, 0), (1, 1), (3, 2))),
                "second": lambda x: x[:, ::2, 1::2],
                "flip": lambda x: jnp.flip(x, 2)}[p["op"]]

    @staticmethod
    def of_torch(p, torch):
        return {"swap": lambda x: x.permute(0, 2, 1).contiguous(),
                "turn": lambda x: x.permute(2, 0, 1).contiguous(),
                "join": lambda x, y: torch.cat((x, y), 2),
                "pad": lambda x: torch.nn.functional.pad(x, (3, 2, 1, 1)),
                "second": lambda x: x[:, ::2, 1::2].contiguous(),
                "flip": lambda x: torch.flip(x, (2,))}[p["op"]]


class Recurrent:
    """LSTM, GRU and plain cells over all steps, in torch's order of gates."""
    rows = 14

    @staticmethod
    def draw(r):
        return {"op": r.choice(("lstm", "gru", "rnn")), "steps": odd(r, 16, 1000),
                "n": r.choice((1, 1, 4, 8, 32, 64)), "in": odd(r, 16, 512),
                "h": r.choice((16, 40, 64, 128, 256, 512, 1024))}

    @staticmethod
    def inputs(p):
        gates = {"lstm": 4, "gru": 3, "rnn": 1}[p["op"]] * p["h"]
        scale = p["h"]**-0.5
        return [Input((p["steps"], p["n"], p["in"]), "f32"),
                Input((gates, p["in"]), "f32", scale), Input((gates, p["h"]), "f32", scale),
                Input((gates,), "f32", scale), Input((gates,), "f32", scale)]

    @staticmethod
    def of_jax(p, jax):
        jnp, s = jax.numpy, jax.nn.sigmoid

        def run(x, wi, wh, bi, bh):
            xs = x @ wi.T + bi

            def step(carry, a):
                h, c = carry
                b = h @ wh.T + bh
                if p["op"] == "rnn":
                    h = jnp.tanh(a + b)
                elif p["op"] == "gru":
                    (ar, az, an), (br, bz, bn) = (jnp.split(v, 3, 1) for v in (a, b))
                    z = s(az + bz)
                    h = (1 - z) * jnp.tanh(an + s(ar + br) * bn) + z * h
                else:
                    i, f, g, o = jnp.split(a + b, 4, 1)
                    c = s(f) * c + s(i) * jnp.tanh(g)
                    h = s(o) * jnp.tanh(c)
                return (h, c), h
            zero = jnp.zeros((p["n"], p["h"]), x.dtype)
            return jax.lax.scan(step, (zero, zero), xs)[1]
        return run

    @staticmethod
    def of_torch(p, torch):
        name = {"rnn": "rnn_tanh"}.get(p["op"], p["op"])

        def run(x, *weights):
            zero = torch.zeros((1, p["n"], p["h"]), device=x.device, dtype=x.dtype)
            state = (zero, zero) if p["op"] == "lstm" else zero
            return getattr(torch._VF, name)(x, state, list(weights), True, 1, 0.0, False,
                                            False, False)[0]
        return run


class Attention:
    """Heads of many sizes, whole, causal or with a mask of flags."""
    rows = 12

    @staticmethod
    def draw(r):
        keys = odd(r, 32, 2048)
        causal = r.random() < 0.4
        return {"dtype": r.choice(FLOATS), "b": r.choice((1, 2, 8)),
                "h": r.choice((4, 8, 12, 16)), "d": r.choice((32, 40, 64, 80, 96, 128, 256)),
                "q": keys if causal else r.choice((1, odd(r, 32, 2048))), "k": keys,
                "causal": causal}

    @staticmethod
    def inputs(p):
        return [Input((p["b"], p["h"], p[n], p["d"]), p["dtype"]) for n in ("q", "k", "k")]

    @staticmethod
    def of_jax(p, jax):
        jnp = jax.numpy

        def run(q, k, v):
            s = jnp.einsum("bhqd,bhkd->bhqk", q, k,
                           preferred_element_type=jnp.float32) * p["d"]**-0.5
            if p["causal"]:
                rows, columns = (jax.lax.broadcasted_iota("int32", s.shape, d)
                                 for d in (2, 3))
                s = jnp.where(columns <= rows, s, -jnp.inf)
            return jnp.einsum("bhqk,bhkd->bhqd",
                              jax.nn.softmax(s, axis=-1).astype(v.dtype), v)
        return run

    @staticmethod
    def of_torch(p, torch):
        return lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=p["causal"])

    @staticmethod
    def flops(p):
        return 4 * p["b"] * p["h"] * p["q"] * p["k"] * p["d"] // (2 if p["causal"] else 1)


class Chain:
    """Elements in a row, with operands that are stretched along rows or columns."""
    rows = 8

    @staticmethod
    def draw(r):
        return {"dtype": r.choice((*FLOATS, "f64")), "op": r.choice(("tanh", "exp", "poly")),
                "shape": (odd(r, 64, 20000), odd(r, 16, 4096))}

    @staticmethod
    def inputs(p):
        return [Input(p["shape"], p["dtype"]), Input(p["shape"][1:], p["dtype"]),
                Input((p["shape"][0], 1), p["dtype"])]

    @staticmethod
    def run(m, p, zero):
        def run(x, row, column):
            y = x * row + column
            y = {"tanh": lambda: m.tanh(y), "exp": lambda: m.exp(-m.abs(y)),
                 "poly": lambda: (y * 0.3 + 0.2) * y + 0.1}[p["op"]]()
            return zero(y * x - 0.25) * column
        return run

    @staticmethod
    def of_jax(p, jax):
        return Chain.run(jax.numpy, p, jax.nn.relu)

    @staticmethod
    def of_torch(p, torch):
        return Chain.run(torch, p, torch.relu)


KINDS = {kind.__name__.lower(): kind for kind in (
    Product, Convolution, Gradient, Fold, Norm, Pick, Put, Sort, Running, Move, Recurrent,
    Attention, Chain)}


BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i32": 4}


@dataclasses.dataclass
class Row:
    index: int
    kind: str
    parameters: dict
    floor: float = 0  # the ratio asked of it; 0: none of its own

    @property
    def name(self):
        return f"{self.kind}_{text_of(self.parameters)}"

    @property
    def inputs(self):
        return KINDS[self.kind].inputs(self.parameters)

    @property
    def flops(self):
        of = getattr(KINDS[self.kind], "flops", None)
        return of(self.parameters) if of else 0

    @property
    def bytes(self):
        return sum(math.prod(i.shape) * BYTES[i.dtype] for i in self.inputs)


def rows(seed=0):
    """All of a seed, those of a kind spread over the whole."""
    r = random.Random(seed)
    drawn = [(kind, KINDS[kind].draw(r)) for kind in KINDS
             for _ in range(KINDS[kind].rows)]
    r.shuffle(drawn)
    return [Row(i, kind, p) for i, (kind, p) in enumerate(drawn)]


def floors():
    """What the issues name: a row each, whose ratio has a floor of its own."""
    def product(m, n, k, dtype="bf16", then="none"):
        return "product", {"dtype": dtype, "b": 1, "tb": False, "then": then,
                           "m": m, "n": n, "k": k}

    def attention(b, h, s, d, causal=False, dtype="bf16"):
        return "attention", {"dtype": dtype, "b": b, "h": h, "d": d, "q": s, "k": s,
                             "causal": causal}

    def image(first, then):
        return then, {"dtype": "bf16", "first": first, "n": 64, "h": 28, "w": 28, "c": 256,
                      "o": 256, "r": 3, "stride": 1, "dilation": 1, "groups": 1, "up": False}
    named = [
        (attention(4, 16, 2048, 128), 1.15), (attention(4, 16, 2048, 128, True), 1.15),
        (attention(4, 16, 2048, 64), 1.15), (attention(4, 16, 2048, 64, True), 1.15),
        (attention(4, 8, 2048, 256), 1.15), (attention(4, 8, 2048, 256, True), 1.15),
        (attention(8, 12, 512, 64, False, "f16"), 1.15),
        (attention(1, 12, 128, 64, False, "f32"), 1.1),
        (image(False, "convolution"), 1.10), (image(True, "convolution"), 1.0),
        (product(4096, 16384, 4096, then="gelu"), 1.05), (product(3000, 777, 1111), 0.8),
        *((product(n, n, n), 1.2) for n in (512, 1024, 2048)),
        *((product(n, n, n), 1.02) for n in (4096, 8192)),
        (product(16, 4096, 4096), 1.1), (product(16, 8192, 8192), 1.1),
        (product(4096, 4096, 4096, "f32"), 1.05),
        (("fold", {"dtype": "f32", "op": "sum", "shape": (16384, 16384), "axis": "first"}), 1.1),
        (("sort", {"dtype": "f32", "op": "argsort", "shape": (4096, 1024), "k": 1}), 1.3)]
    return [Row(i, kind, p, floor) for i, ((kind, p), floor) in enumerate(named)]


def smallest(every):
    """One of each kind, that of least work."""
    return [min((row for row in every if row.kind == kind),
                key=lambda row: row.flops + row.bytes) for kind in KINDS]
