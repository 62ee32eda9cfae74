# SPDX-License-Identifier: Apache-2.0
"""Networks with weights from a seed as torch.onnx writes them: vision, detection with NMS,
speech, audio, text. MODELS maps a name to a function that gives (module, inputs, how)."""

import numpy as np
import torch
import torchvision
from torch import nn
from torchvision.models import detection, segmentation

HEADS = 4


def picture(size, channels=3):
    return (torch.rand(1, channels, size, size),)


def vision(name, size=224, **kw):
    return lambda: (getattr(torchvision.models, name)(weights=None, **kw), picture(size))


def small_vit():
    net = torchvision.models.VisionTransformer(
        image_size=160, patch_size=16, num_layers=4, num_heads=HEADS, hidden_dim=192, mlp_dim=768
    )
    nn.init.normal_(net.heads.head.weight, std=0.02)
    return net, picture(160)


class Unet(nn.Module):
    """Segmentation of medical pictures: down, up, and what is carried across."""

    def __init__(self, width=16):
        super().__init__()

        def block(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.InstanceNorm2d(b, affine=True), nn.LeakyReLU(0.1))

        sizes = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList(block(a, b) for a, b in zip([1, *sizes], sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:]))
        self.join = nn.ModuleList(block(2 * a, a) for a in sizes[:-1])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, f in enumerate(self.down):
            x = f(x if not i else nn.functional.max_pool2d(x, 2))
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.join[i](torch.cat([self.up[i](x), kept[i]], 1))
        return self.last(x).softmax(1)


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 64, 5, padding=2), nn.PReLU(), nn.Conv2d(64, 64, 3, padding=1), nn.PReLU(),
            nn.Conv2d(64, 32, 3, padding=1), nn.PReLU(), nn.Conv2d(32, 9, 3, padding=1), nn.PixelShuffle(3))  # fmt: skip

    def forward(self, x):
        return self.body(x) + nn.functional.interpolate(x, scale_factor=3, mode="bicubic", align_corners=False)


class Yolo(nn.Module):
    """A small one-stage detector whose boxes go through NMS inside of the model."""

    def __init__(self, classes=8):
        super().__init__()
        layers, before = [], 3
        for after in (16, 32, 64, 128):
            layers += [nn.Conv2d(before, after, 3, 2, 1, bias=False), nn.BatchNorm2d(after), nn.SiLU()]
            layers += [nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after), nn.SiLU()]
            before = after
        self.body, self.head = nn.Sequential(*layers), nn.Conv2d(before, 5 + classes, 1)
        nn.init.normal_(self.head.weight, std=2.0)  # scores that are apart

    def forward(self, x):
        y = self.head(self.body(x)).flatten(2)[0].t()
        n = y.shape[0]
        at = torch.arange(n, dtype=torch.float32)
        side = int(n**0.5)
        centre = torch.stack([at % side, torch.div(at, side, rounding_mode="floor")], 1) * 16 + y[:, :2].tanh() * 16
        half = torch.sigmoid(y[:, 2:4]) * 48 + 8
        boxes = torch.cat([centre - half, centre + half], 1)
        score, kind = (y[:, 5:].softmax(1) * torch.sigmoid(y[:, 4:5])).max(1)
        keep = torchvision.ops.nms(boxes, score, 0.45)[:50]
        return boxes[keep], score[keep], kind[keep]


def detector(name, size, **kw):
    def make():
        net = getattr(detection, name)(weights=None, weights_backbone=None, **kw)
        return net, ([torch.rand(3, size, size)],)

    return make


def segmenter(name, size):
    class Out(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = getattr(segmentation, name)(weights=None, weights_backbone=None, num_classes=21)

        def forward(self, x):
            return self.net(x)["out"]

    return lambda: (Out(), picture(size))


# --- Speech and audio ---


class Ctc(nn.Module):
    """Filters over a spectrogram, recurrent layers, letters."""

    def __init__(self, cell=nn.LSTM, both=True, h=128, letters=32):
        super().__init__()
        self.front = nn.Sequential(nn.Conv2d(1, 16, 3, (1, 2), 1), nn.ReLU(), nn.Conv2d(16, 16, 3, (2, 2), 1), nn.ReLU())
        self.rnn = cell(16 * 20, h, 2, batch_first=True, bidirectional=both)
        self.last = nn.Linear(h * (1 + both), letters)

    def forward(self, x):
        x = self.front(x).permute(0, 2, 1, 3).flatten(2)
        return self.last(self.rnn(x)[0]).log_softmax(-1)


class Spectrogram(nn.Module):
    """Log-mel features of 16 kHz samples."""

    def __init__(self):
        super().__init__()
        self.register_buffer("window", torch.hann_window(400))
        self.register_buffer("mel", torch.rand(201, 64) / 50)

    def forward(self, x):
        s = torch.stft(x, 400, 160, window=self.window, return_complex=False, center=False)
        return ((s**2).sum(-1).transpose(1, 2) @ self.mel + 1e-6).log()


class ConvTasNet(nn.Module):
    """Speakers apart: dilated convolutions by depth, a mask, a filter bank back."""

    def __init__(self, n=128, h=128, layers=6):
        super().__init__()
        self.enc, self.dec = nn.Conv1d(1, n, 16, 8), nn.ConvTranspose1d(n, 1, 16, 8)
        self.norm, self.into = nn.GroupNorm(1, n), nn.Conv1d(n, h, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(h, h, 1), nn.PReLU(), nn.GroupNorm(1, h),
                          nn.Conv1d(h, h, 3, padding=2**i, dilation=2**i, groups=h), nn.PReLU(),
                          nn.GroupNorm(1, h), nn.Conv1d(h, h, 1)) for i in range(layers))  # fmt: skip
        self.mask = nn.Conv1d(h, 2 * n, 1)

    def forward(self, x):
        e = self.enc(x).relu()
        y = self.into(self.norm(e))
        for b in self.blocks:
            y = y + b(y)
        m = torch.sigmoid(self.mask(y)).chunk(2, 1)
        return torch.cat([self.dec(e * k) for k in m], 1)


class Demucs(nn.Module):
    def __init__(self, c=32, depth=3):
        super().__init__()
        self.enc, self.dec, last = nn.ModuleList(), nn.ModuleList(), 1
        for i in range(depth):
            k = c * 2**i
            self.enc.append(nn.Sequential(nn.Conv1d(last, k, 8, 4, 2), nn.ReLU(), nn.Conv1d(k, 2 * k, 1), nn.GLU(1)))
            back = [nn.Conv1d(k, 2 * k, 1), nn.GLU(1), nn.ConvTranspose1d(k, last, 8, 4, 2)]
            self.dec.insert(0, nn.Sequential(*back, nn.ReLU()) if i else nn.Sequential(*back))
            last = k
        self.rnn = nn.LSTM(last, last // 2, 1, bidirectional=True)

    def forward(self, x):
        kept = []
        for f in self.enc:
            x = f(x)
            kept.append(x)
        x = x + self.rnn(x.permute(2, 0, 1))[0].permute(1, 2, 0)
        for f in self.dec:
            x = f(x + kept.pop())
        return x


class WaveNet(nn.Module):
    def __init__(self, c=48, layers=8):
        super().__init__()
        self.into, self.out = nn.Conv1d(1, c, 1), nn.Conv1d(c, 64, 1)
        self.gates = nn.ModuleList(nn.Conv1d(c, 2 * c, 2, dilation=2**i) for i in range(layers))
        self.skips = nn.ModuleList(nn.Conv1d(c, c, 1) for _ in range(layers))

    def forward(self, x):
        x, total = self.into(x), 0
        for i, (g, s) in enumerate(zip(self.gates, self.skips)):
            a, b = g(nn.functional.pad(x, (2**i, 0))).chunk(2, 1)
            y = s(a.tanh() * b.sigmoid())
            x, total = x + y, total + y
        return self.out(total.relu())


class Conformer(nn.Module):
    def __init__(self, d=144, layers=3):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(80, d, 3, 2, 1), nn.ReLU(), nn.Conv1d(d, d, 3, 2, 1), nn.ReLU())

        def feed():
            return nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.SiLU(), nn.Linear(4 * d, d))

        self.layers = nn.ModuleList(nn.ModuleDict({
            "f1": feed(), "n": nn.LayerNorm(d), "a": nn.MultiheadAttention(d, HEADS, batch_first=True),
            "m": nn.LayerNorm(d), "c": nn.Sequential(
                nn.Conv1d(d, 2 * d, 1), nn.GLU(1), nn.Conv1d(d, d, 15, padding=7, groups=d),
                nn.BatchNorm1d(d), nn.SiLU(), nn.Conv1d(d, d, 1)),
            "f2": feed(), "e": nn.LayerNorm(d)}) for _ in range(layers))  # fmt: skip

    def forward(self, x):
        x = self.front(x).transpose(1, 2)
        for f in self.layers:
            x = x + 0.5 * f["f1"](x)
            y = f["n"](x)
            x = x + f["a"](y, y, y, need_weights=False)[0]
            x = x + f["c"](f["m"](x).transpose(1, 2)).transpose(1, 2)
            x = f["e"](x + 0.5 * f["f2"](x))
        return x


class Wave2Vec(nn.Module):
    def __init__(self, c=128, d=192, layers=3):
        super().__init__()
        steps = [(10, 5), (3, 2), (3, 2), (3, 2), (2, 2)]
        self.front, last = nn.Sequential(), 1
        for i, (k, s) in enumerate(steps):
            self.front.extend([nn.Conv1d(last, c, k, s), nn.GroupNorm(c, c) if not i else nn.Identity(), nn.GELU()])
            last = c
        self.into = nn.Sequential(nn.LayerNorm(c), nn.Linear(c, d))
        self.place = nn.Conv1d(d, d, 33, padding=16, groups=16)
        self.body = encoder(d, layers)

    def forward(self, x):
        x = self.into(self.front(x).transpose(1, 2))
        return self.body(x + nn.functional.gelu(self.place(x.transpose(1, 2))).transpose(1, 2))


class Whisper(nn.Module):
    def __init__(self, d=256, layers=3):
        super().__init__()
        self.c1, self.c2 = nn.Conv1d(80, d, 3, 1, 1), nn.Conv1d(d, d, 3, 2, 1)
        self.place, self.body = nn.Parameter(torch.randn(150, d) / 10), encoder(d, layers, first=True)

    def forward(self, x):
        x = nn.functional.gelu(self.c2(nn.functional.gelu(self.c1(x)))).transpose(1, 2)
        return self.body(x + self.place)


# --- Text ---


def encoder(d, layers, first=False, h=HEADS):
    layer = nn.TransformerEncoderLayer(d, h, 4 * d, 0.0, "gelu", batch_first=True, norm_first=first)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)


class Bert(nn.Module):
    def __init__(self, d=256, layers=4, words=2000, most=128):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(words, d), nn.Embedding(most, d), nn.LayerNorm(d)
        self.body, self.pool = encoder(d, layers), nn.Linear(d, d)

    def forward(self, ids, mask):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        x = self.body(x, src_key_padding_mask=mask == 0)
        return x, self.pool(x[:, 0]).tanh()


class Gpt(nn.Module):
    def __init__(self, d=192, layers=4, words=1000, most=64):
        super().__init__()
        self.words, self.places = nn.Embedding(words, d), nn.Embedding(most, d)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "n": nn.LayerNorm(d), "q": nn.Linear(d, 3 * d), "o": nn.Linear(d, d), "m": nn.LayerNorm(d),
            "f": nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))})
            for _ in range(layers))  # fmt: skip
        self.norm = nn.LayerNorm(d)

    def forward(self, ids):
        b, s = ids.shape
        x = self.words(ids) + self.places(torch.arange(s))
        for f in self.layers:
            q, k, v = (t.view(b, s, HEADS, -1).transpose(1, 2) for t in f["q"](f["n"](x)).chunk(3, -1))
            a = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + f["o"](a.transpose(1, 2).reshape(b, s, -1))
            x = x + f["f"](f["m"](x))
        return self.norm(x) @ self.words.weight.t()


class Translator(nn.Module):
    def __init__(self, d=128, words=500):
        super().__init__()
        self.a, self.b = nn.Embedding(words, d), nn.Embedding(words, d)
        self.net = nn.Transformer(d, HEADS, 2, 2, 4 * d, 0.0, batch_first=True)
        self.last = nn.Linear(d, words)

    def forward(self, source, target):
        mask = torch.full((target.shape[1],) * 2, float("-inf")).triu(1)
        return self.last(self.net(self.a(source), self.b(target), tgt_mask=mask))


class Tagger(nn.Module):
    def __init__(self, cell=nn.LSTM, d=96, words=800):
        super().__init__()
        self.words = nn.Embedding(words, d)
        self.rnn, self.last = cell(d, d, 2, batch_first=True, bidirectional=True), nn.Linear(2 * d, 17)

    def forward(self, ids):
        return self.last(self.rnn(self.words(ids))[0]).argmax(-1)


class TextCnn(nn.Module):
    def __init__(self, d=96, words=800):
        super().__init__()
        self.words = nn.Embedding(words, d)
        self.filters = nn.ModuleList(nn.Conv1d(d, 64, k) for k in (3, 4, 5))
        self.last = nn.Linear(192, 4)

    def forward(self, ids):
        x = self.words(ids).transpose(1, 2)
        return self.last(torch.cat([f(x).relu().amax(-1) for f in self.filters], 1)).softmax(-1)


class DeepFm(nn.Module):
    """Recommendation: embeddings of fields, their pairs, a network."""

    def __init__(self, fields=12, d=16, words=400):
        super().__init__()
        self.words, self.line = nn.Embedding(words, d), nn.Embedding(words, 1)
        self.net = nn.Sequential(nn.Linear(fields * d, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, ids):
        e = self.words(ids)
        pairs = 0.5 * (e.sum(1) ** 2 - (e**2).sum(1)).sum(1, keepdim=True)
        return torch.sigmoid(self.line(ids).sum(1) + pairs + self.net(e.flatten(1)))


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(640, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 8), nn.ReLU(),
                                 nn.Linear(8, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 640))  # fmt: skip

    def forward(self, x):
        return self.net(x), ((self.net(x) - x) ** 2).mean(1)


def ids(high, *shape):
    return torch.randint(1, high, shape)


MODELS = {
    "resnet18": vision("resnet18"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "mobilenet_v3_small": vision("mobilenet_v3_small"),
    "squeezenet": vision("squeezenet1_1"),
    "shufflenet": vision("shufflenet_v2_x0_5"),
    "efficientnet_b0": vision("efficientnet_b0"),
    "mnasnet": vision("mnasnet0_5"),
    "densenet121": vision("densenet121", 128),
    "regnet": vision("regnet_y_400mf", 160),
    "googlenet": vision("googlenet", 160, init_weights=False, aux_logits=False),
    "convnext_tiny": vision("convnext_tiny", 96),
    "swin_t": vision("swin_t", 112),
    "vit_small": small_vit,
    "unet": lambda: (Unet(), picture(96, 1)),
    "super_resolution": lambda: (SuperResolution(), picture(64, 1)),
    "lraspp": segmenter("lraspp_mobilenet_v3_large", 160),
    "deeplab": segmenter("deeplabv3_mobilenet_v3_large", 128),
    "yolo_nms": lambda: (Yolo(), picture(256)),
    "ssdlite_nms": detector("ssdlite320_mobilenet_v3_large", 320),
    "faster_rcnn_nms": detector("fasterrcnn_mobilenet_v3_large_320_fpn", 320, rpn_post_nms_top_n_test=50),
    "speech_lstm_ctc": lambda: (Ctc(), (torch.randn(1, 1, 100, 80),)),
    "speech_gru_ctc": lambda: (Ctc(nn.GRU, False), (torch.randn(1, 1, 100, 80),)),
    "speech_conformer": lambda: (Conformer(), (torch.randn(1, 80, 200),)),
    "speech_wav2vec": lambda: (Wave2Vec(), (torch.randn(1, 1, 8000),)),
    "speech_whisper": lambda: (Whisper(), (torch.randn(1, 80, 300),)),
    "audio_log_mel": lambda: (Spectrogram(), (torch.randn(1, 16000),)),
    "audio_tasnet": lambda: (ConvTasNet(), (torch.randn(1, 1, 8000),)),
    "audio_demucs": lambda: (Demucs(), (torch.randn(1, 1, 4096),)),
    "audio_wavenet": lambda: (WaveNet(), (torch.randn(1, 1, 2000),)),
    "audio_autoencoder": lambda: (Autoencoder(), (torch.randn(64, 640),)),
    "text_bert": lambda: (Bert(), (ids(2000, 1, 96), (torch.arange(96)[None] < 80).long())),
    "text_gpt": lambda: (Gpt(), (ids(1000, 1, 48),)),
    "text_translator": lambda: (Translator(), (ids(500, 1, 24), ids(500, 1, 20))),
    "text_lstm_tagger": lambda: (Tagger(), (ids(800, 4, 40),)),
    "text_gru_tagger": lambda: (Tagger(nn.GRU), (ids(800, 4, 40),)),
    "text_cnn": lambda: (TextCnn(), (ids(800, 8, 60),)),
    "deepfm": lambda: (DeepFm(), (ids(400, 256, 12),)),
}

# What the other exporter of torch, by torch.export, writes as well.
TRACED = ("resnet18", "mobilenet_v3_small", "vit_small", "text_bert", "text_gpt", "speech_conformer", "audio_wavenet", "unet")


def flat(x):
    return [v for y in x for v in flat(y)] if isinstance(x, (list, tuple)) else [x]


def export(name, path):
    """Writes |path|; the inputs by name."""
    torch.manual_seed(7)
    np.random.seed(7)
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # whose ops have no ONNX
    traced = name.endswith("_dynamo")
    net, args = MODELS[name.removesuffix("_dynamo")]()
    net.eval()
    given = flat(args)
    names = [f"x{i}" for i in range(len(given))]
    with torch.no_grad():
        torch.onnx.export(net, args, path, input_names=names, opset_version=18 if traced else 17, dynamo=traced,
                          **({"external_data": False} if traced else {}))  # fmt: skip
    return {n: v.numpy() for n, v in zip(names, given)}


NAMES = [*MODELS, *(n + "_dynamo" for n in TRACED)]
