# SPDX-License-Identifier: Apache-2.0
"""Draws a plan: its kernels from top to bottom as they run, who reads what
from whom, and beside them the arena, each buffer from the step that writes it
to the last one that reads it. Reads the text of `pestle dump`."""

import html
import re

ROW, LEFT, BOX, ARCS, WIDTH = 22, 20, 330, 150, 620
COLOURS = [("conv", "#4c78a8"), ("dot", "#f58518"), ("softmax", "#e45756"),
           ("norm", "#b279a2"), ("reduce", "#72b7b2"), ("pool", "#54a24b"),
           ("window", "#54a24b"), ("lstm", "#9d755d"),
           ("gru", "#9d755d")]  # fmt: skip


class Step:
    def __init__(self, kind, name, operands):
        self.kind, self.name, self.operands = kind, name, operands
        self.ops, self.type = [], ""


def read_steps(plan):
    steps = []
    for line in plan.splitlines():
        row = re.match(r"\s+(\d+)\s+(\w+)\s+(.*)$", line)
        if not row or row[2] == "end":
            continue
        operands = [
            (kind, int(begin), int(end))
            for kind, begin, end in re.findall(
                r"([a-z]+\d*)\[(\d+):(\d+)\]", row[3]
            )
        ]
        steps.append(Step(row[2], row[3].split(" ")[0], operands))
    return steps


def read_fusions(fused, steps):
    """Adds to each launch the ops of its fusion: both are in running order."""
    fusions, ops = [], None
    for line in fused.splitlines():
        if '"pestle.fusion"(' in line:
            ops = []
        elif ops is not None and line.strip().startswith("}) :"):
            fusions.append((ops, line.rsplit("-> ", 1)[-1]))
            ops = None
        elif ops is not None:
            found = re.search(r"= \"?(?:\w+)\.(\w+)", line)
            if found and found[1] != "constant":
                ops.append(found[1])
    launches = [s for s in steps if s.kind == "launch"]
    if len(launches) == len(fusions):
        for step, (ops, type_text) in zip(launches, fusions):
            step.ops, step.type = ops, type_text


def find_buffers(steps):
    """[offset, end, first step, last step] of what lies in the arena, and the
    edges (from step, to step). What was not written yet is written there."""
    live, buffers, edges = [], [], set()
    for i, step in enumerate(steps):
        arena = [(b, e) for kind, b, e in step.operands if kind == "arena"]
        for at, (begin, end) in enumerate(arena):
            holds = [b for b in live if b[0] <= begin and end <= b[1]]
            is_last = step.operands[-1] == ("arena", begin, end)
            if holds and not (is_last and at == len(arena) - 1):
                holds[-1][3] = i
                edges.add((holds[-1][2], i))
                continue
            live = [b for b in live if b[1] <= begin or end <= b[0]]
            live.append([begin, end, i, i])
            buffers.append(live[-1])
    return buffers, sorted(edges)


def colour(name):
    return next((c for key, c in COLOURS if key in name), "#8c8c8c")


def draw_steps(steps, edges, out):
    for i, step in enumerate(steps):
        y = 40 + i * ROW
        tip = html.escape(f"{step.name}: {' '.join(step.ops)} -> {step.type}")
        name = step.name if len(step.name) < 46 else step.name[:44] + ".."
        out.append(
            f'<g><title>{tip}</title><rect x="{LEFT}" y="{y}" width="{BOX}" '
            f'height="{ROW - 5}" rx="3" fill="{colour(step.name)}"/>'
            f'<text x="{LEFT + 6}" y="{y + 12}" fill="#fff">{i} '
            f"{html.escape(name)}</text></g>"
        )
    for a, b in edges:
        x, reach = LEFT + BOX, min(ARCS - 20, 8 + 3 * (b - a))
        y, z = 40 + a * ROW + 10, 40 + b * ROW + 6
        out.append(
            f'<path d="M{x} {y} C{x + reach} {y} {x + reach} {z} {x} {z}" '
            f'fill="none" stroke="#999" stroke-width="1"/>'
        )


def draw_memory(steps, buffers, size, out):
    left = LEFT + BOX + ARCS
    scale = WIDTH / max(1, size)
    height = len(steps) * ROW
    out.append(
        f'<rect x="{left}" y="38" width="{WIDTH}" height="{height}" '
        f'fill="#f4f4f4" stroke="#ccc"/>'
    )
    for begin, end, first, last in buffers:
        x, y = left + begin * scale, 40 + first * ROW
        w, h = max(2.0, (end - begin) * scale), (last - first + 1) * ROW - 5
        tip = f"{end - begin} bytes at {begin}, steps {first} to {last}"
        out.append(
            f'<rect x="{x:.1f}" y="{y}" width="{w:.1f}" height="{h}" '
            f'fill="{colour(steps[first].name)}" fill-opacity="0.65" '
            f'stroke="{"#fff" if w > 6 else "none"}"><title>{tip}</title></rect>'
        )


def draw(fused, plan, title, path):
    steps = read_steps(plan)
    read_fusions(fused, steps)
    buffers, edges = find_buffers(steps)
    size = int(re.search(r"arena (\d+) bytes", plan)[1])
    memory = re.search(r"memory: .*", plan)[0]
    width = LEFT + BOX + ARCS + WIDTH + 20
    height = 60 + len(steps) * ROW
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" font-family="monospace" font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{LEFT}" y="24" font-size="13">{html.escape(title)}: '
        f"{len(steps)} steps</text>",
        f'<text x="{LEFT + BOX + ARCS}" y="24" font-size="13">'
        f"arena; {html.escape(memory)}</text>",
    ]
    draw_steps(steps, edges, out)
    draw_memory(steps, buffers, size, out)
    out.append("</svg>\n")
    with open(path, "w") as f:
        f.write("\n".join(out))
    return len(steps), len(buffers), memory
