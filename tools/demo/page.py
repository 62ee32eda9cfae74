# SPDX-License-Identifier: Apache-2.0
"""A page of text, drawn with a stroke font of our own: cap height 6, x-height
4, descender 2, in lines and arcs."""

import array
import math

SIZE = 640
LINES = [
    (40, 60, 5.2, "Pestle compiles tensor"),
    (40, 150, 5.2, "graphs at run time"),
    (60, 250, 4.2, "One graph, many targets:"),
    (60, 320, 4.2, "AVX2, CUDA, Vulkan, Metal"),
    (60, 420, 3.6, "This page was drawn by"),
    (60, 480, 3.6, "tools/demo/page.py and"),
    (60, 540, 3.6, "read back in 2 models"),
]


def arc(cx, cy, rx, ry, begin, end):
    steps = max(2, abs(end - begin) // 15)
    angles = [begin + (end - begin) * i / steps for i in range(steps + 1)]
    return [
        (
            cx + rx * math.cos(math.radians(a)),
            cy - ry * math.sin(math.radians(a)),
        )
        for a in angles
    ]


BOWL = arc(2, 4, 2, 2, 0, 360)
ARCH = arc(2, 4, 2, 2, 180, 0) + [(4, 6)]

# Character: width, strokes.
GLYPHS = {
    " ": (2.5, []),
    "a": (4, [BOWL, [(4, 2), (4, 6)]]),
    "b": (4, [BOWL, [(0, 0), (0, 6)]]),
    "c": (3.6, [arc(2, 4, 2, 2, 45, 315)]),
    "d": (4, [BOWL, [(4, 0), (4, 6)]]),
    "e": (4, [[(0, 4)] + arc(2, 4, 2, 2, 0, 315)]),
    "g": (4, [BOWL, [(4, 2)] + arc(2, 6.4, 2, 1.6, 0, -150)]),
    "h": (4, [[(0, 0), (0, 6)], ARCH]),
    "i": (0.4, [[(0.2, 2), (0.2, 6)], [(0.2, 0.2), (0.2, 0.4)]]),
    "k": (3.8, [[(0, 0), (0, 6)], [(3.4, 2), (0, 4.6)], [(1.2, 3.7), (3.8, 6)]]),
    "l": (0.4, [[(0.2, 0), (0.2, 6)]]),
    "m": (6, [[(0, 2), (0, 6)], arc(1.5, 3.5, 1.5, 1.5, 180, 0) + [(3, 6)],
              arc(4.5, 3.5, 1.5, 1.5, 180, 0) + [(6, 6)]]),
    "n": (4, [[(0, 2), (0, 6)], ARCH]),
    "o": (4, [BOWL]),
    "p": (4, [BOWL, [(0, 2), (0, 8)]]),
    "r": (2.8, [[(0, 2), (0, 6)], arc(2, 4, 2, 2, 180, 65)]),
    "s": (3.4, [arc(1.7, 3, 1.6, 1, 25, 270) + arc(1.7, 5, 1.6, 1, 90, -155)]),
    "t": (3, [[(1.2, 0.5)] + arc(2.4, 4.9, 1.2, 1.1, 180, 300),
              [(0, 2), (2.9, 2)]]),
    "u": (4, [[(0, 2)] + arc(2, 4, 2, 2, 180, 360), [(4, 2), (4, 6)]]),
    "v": (4, [[(0, 2), (2, 6), (4, 2)]]),
    "w": (5.6, [[(0, 2), (1.4, 6), (2.8, 2), (4.2, 6), (5.6, 2)]]),
    "y": (4, [[(0, 2), (2.1, 6)], [(4, 2), (1.2, 8)]]),
    "A": (4.6, [[(0, 6), (2.3, 0), (4.6, 6)], [(0.8, 4), (3.8, 4)]]),
    "C": (4.2, [arc(2.3, 3, 2.3, 3, 50, 310)]),
    "D": (4.2, [[(0, 6), (0, 0)] + arc(1.6, 3, 2.6, 3, 90, -90) + [(0, 6)]]),
    "M": (5, [[(0, 6), (0, 0), (2.5, 4.5), (5, 0), (5, 6)]]),
    "O": (4.8, [arc(2.4, 3, 2.4, 3, 0, 360)]),
    "P": (4, [[(0, 6), (0, 0)] + arc(2.3, 1.6, 1.7, 1.6, 90, -90) + [(0, 3.2)]]),
    "T": (4.4, [[(0, 0), (4.4, 0)], [(2.2, 0), (2.2, 6)]]),
    "U": (4.2, [[(0, 0)] + arc(2.1, 4, 2.1, 2, 180, 360) + [(4.2, 0)]]),
    "V": (4.4, [[(0, 0), (2.2, 6), (4.4, 0)]]),
    "X": (4.2, [[(0, 0), (4.2, 6)], [(4.2, 0), (0, 6)]]),
    "2": (3.9, [arc(1.9, 1.9, 1.8, 1.9, 165, -35) + [(0.1, 6), (3.9, 6)]]),
    ",": (0.6, [[(0.4, 5.7), (0.4, 6), (0, 7)]]),
    ".": (0.4, [[(0.2, 5.8), (0.2, 6)]]),
    ":": (0.4, [[(0.2, 2.6), (0.2, 2.8)], [(0.2, 5.6), (0.2, 5.8)]]),
    "/": (3, [[(0, 7), (3, -0.4)]]),
}  # fmt: skip


def strokes():
    """(thickness, [(x, y), ...]) of the whole page."""
    for left, top, scale, text in LINES:
        x = left
        for c in text:
            width, lines = GLYPHS[c]
            for line in lines:
                yield 0.85 * scale, [
                    (x + px * scale, top + py * scale) for px, py in line
                ]
            x += (width + 1.9) * scale


def ink(px, py, ax, ay, bx, by, thickness):
    """How much of the pixel at (px, py) a thick line covers."""
    dx, dy = bx - ax, by - ay
    length = dx * dx + dy * dy
    t = ((px - ax) * dx + (py - ay) * dy) / length if length else 0.0
    t = min(1.0, max(0.0, t))
    distance = math.hypot(px - ax - t * dx, py - ay - t * dy)
    return min(1.0, max(0.0, thickness / 2 + 0.5 - distance))


def draw():
    """SIZE x SIZE grey values, 0 black to 1 white."""
    page = array.array("f", [1.0]) * (SIZE * SIZE)
    for thickness, line in strokes():
        reach = thickness / 2 + 1
        for (ax, ay), (bx, by) in zip(line, line[1:]):
            for y in range(
                int(min(ay, by) - reach), int(max(ay, by) + reach) + 2
            ):
                for x in range(
                    int(min(ax, bx) - reach), int(max(ax, bx) + reach) + 2
                ):
                    if 0 <= x < SIZE and 0 <= y < SIZE:
                        grey = 1 - ink(x, y, ax, ay, bx, by, thickness)
                        at = y * SIZE + x
                        if grey < page[at]:
                            page[at] = grey
    return page


def svg(boxes):
    """The page, and boxes: (x0, y0, x1, y1, text)."""
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIZE}" '
        f'height="{SIZE}"><rect width="{SIZE}" height="{SIZE}" fill="#fff"/>'
    ]
    for thickness, line in strokes():
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line)
        out.append(
            f'<polyline points="{points}" fill="none" stroke="#000" '
            f'stroke-width="{thickness:.1f}" stroke-linecap="round"/>'
        )
    for x0, y0, x1, y1, text in boxes:
        out.append(
            f'<rect x="{x0}" y="{y0}" width="{x1 - x0}" height="{y1 - y0}" '
            f'fill="none" stroke="#e45756"/><text x="{x0}" y="{y1 + 12}" '
            f'font-size="12" fill="#e45756">{text}</text>'
        )
    return "\n".join(out + ["</svg>\n"])
