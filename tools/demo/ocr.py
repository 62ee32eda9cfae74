# SPDX-License-Identifier: Apache-2.0
"""Reads the page of page.py: a detector finds where text is, a recogniser
reads each piece. The models of the PyPI package rapidocr-onnxruntime
(PP-OCRv4, Apache-2.0)."""

import array
import html

import common
import page

PACKAGE = "rapidocr-onnxruntime==1.4.4"
FOLDER = "rapidocr_onnxruntime/models/"
DETECTOR = "ch_PP-OCRv4_det_infer.onnx"
DETECTOR_HASH = (
    "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9"
)
RECOGNISER = "ch_PP-OCRv4_rec_infer.onnx"
RECOGNISER_HASH = (
    "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b"
)
SIZE = page.SIZE
HEIGHT = 48  # of a line, as the recogniser wants it


# --- The alphabet, from the model's metadata ---


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """The (number, bytes) of a protobuf message's length-delimited fields."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == 0:
            _, at = varint(data, at)
        else:
            at += 8 if key & 7 == 1 else 4


def alphabet(path):
    with open(path, "rb") as f:
        model = memoryview(f.read())
    for number, entry in fields(model):
        if number != 14:  # metadata_props
            continue
        parts = dict(fields(entry))
        if bytes(parts[1]) == b"character":
            text = bytes(parts[2]).decode().split("\n")
            return [""] + text + [" "]  # the first is CTC's blank
    raise SystemExit("pestle: error: the recogniser has no alphabet")


# --- Where text is ---


def planes(grey):
    """Three equal channels, from [0, 1] to [-1, 1]."""
    plane = array.array("f", [2 * x - 1 for x in grey])
    return plane + plane + plane


def find_boxes(chance):
    """Boxes around connected spots of probability above 0.3."""
    wanted = bytearray(1 if p > 0.3 else 0 for p in chance)
    boxes = []
    for start in range(SIZE * SIZE):
        if not wanted[start]:
            continue
        wanted[start] = 0
        spot = [start]
        for at in spot:
            for near in (at - 1, at + 1, at - SIZE, at + SIZE):
                if 0 <= near < SIZE * SIZE and wanted[near]:
                    wanted[near] = 0
                    spot.append(near)
        xs, ys = [at % SIZE for at in spot], [at // SIZE for at in spot]
        box = (min(xs), min(ys), max(xs) + 1, max(ys) + 1)
        if len(spot) > 60:
            boxes.append(grow(*box))
    return sorted(boxes, key=lambda b: (b[1] // 20, b[0]))


def grow(x0, y0, x1, y1):
    """The model marks the core of a line: this is the line around it."""
    w, h = x1 - x0, y1 - y0
    by = round(1.6 * w * h / (2 * (w + h)))
    return (
        max(0, x0 - by),
        max(0, y0 - by),
        min(SIZE, x1 + by),
        min(SIZE, y1 + by),
    )


# --- What it says ---


def sample(grey, x, y):
    """Bilinear."""
    x, y = min(SIZE - 2.0, max(0.0, x)), min(SIZE - 2.0, max(0.0, y))
    i, j = int(x), int(y)
    u, v, at = x - i, y - j, int(y) * SIZE + int(x)
    top = grey[at] * (1 - u) + grey[at + 1] * u
    low = grey[at + SIZE] * (1 - u) + grey[at + SIZE + 1] * u
    return top * (1 - v) + low * v


def cut_line(grey, box, width):
    """A line of HEIGHT x width; what is right of the text stays 0."""
    x0, y0, x1, y1 = box
    scale = (y1 - y0) / HEIGHT
    used = min(width, round((x1 - x0) / scale))
    across = (x1 - x0) / used
    plane = array.array("f", [0.0]) * (HEIGHT * width)
    for row in range(HEIGHT):
        for column in range(used):
            x = x0 + (column + 0.5) * across - 0.5
            y = y0 + (row + 0.5) * scale - 0.5
            plane[row * width + column] = 2 * sample(grey, x, y) - 1
    return plane + plane + plane


def read_line(shape, scores, letters):
    """The best letter of each column; repeats and blanks vanish (CTC)."""
    _, steps, classes = shape
    text, last, sure = [], 0, []
    for step in range(steps):
        row = scores[step * classes : (step + 1) * classes]
        best = max(row)
        letter = row.index(best)
        if letter and letter != last:
            text.append(letters[letter])
            sure.append(best)
        last = letter
    return "".join(text), sum(sure) / len(sure) if sure else 0.0


def add(total, times):
    for key in ("import_ms", "compile_ms", "load_ms", "run", "passes"):
        total[key] = total.get(key, 0) + times[key]


def detect(demo, detector, grey, options=()):
    inputs = [("x", "float32", (1, 3, SIZE, SIZE), planes(grey))]
    outputs, times = demo.run_model(detector, inputs, "det", options)
    return find_boxes(outputs[0][1]), times


def recognise(demo, recogniser, grey, boxes, letters):
    """[(box, text, how sure, times)], all lines in one width."""
    widest = max(HEIGHT * (b[2] - b[0]) / (b[3] - b[1]) for b in boxes)
    width = min(1280, (round(widest) + 31) // 32 * 32)
    found = []
    for box in boxes:
        line = cut_line(grey, box, width)
        inputs = [("x", "float32", (1, 3, HEIGHT, width), line)]
        outputs, times = demo.run_model(recogniser, inputs, "rec")
        found.append((box, *read_line(*outputs[0], letters), times))
    return found


def get(demo, file, sha256):
    return common.fetch(demo.models, PACKAGE, FOLDER + file, sha256)


def show(demo):
    detector = get(demo, DETECTOR, DETECTOR_HASH)
    recogniser = get(demo, RECOGNISER, RECOGNISER_HASH)
    letters = alphabet(recogniser)
    grey = page.draw()
    print("\nText of a page that tools/demo/page.py draws (PP-OCRv4)")
    demo.clear_cache()
    _, cold = detect(demo, detector, grey)
    cold["passes"] = detect(demo, detector, grey, ["--time-passes"])[1][
        "passes"
    ]
    boxes, warm = detect(demo, detector, grey)
    found = recognise(demo, recogniser, grey, boxes, letters)
    for box, text, sure, times in found:
        print(
            f"  {str(box):22} {text:30} {100 * sure:3.0f} %  "
            f"{times['run']:6.2f} ms"
        )
    drawn = [text for *_, text in page.LINES]
    right = sum(text in drawn for _, text, *_ in found)
    print(f"  {right} of {len(drawn)} lines are read as they were drawn")
    marked = [(*box, html.escape(text)) for box, text, *_ in found]
    with open(demo.path("page.svg"), "w") as f:
        f.write(page.svg(marked))
    common.print_times("Times of the detector", cold, warm)
    return detector, ["--shape", f"x=1x3x{SIZE}x{SIZE}"]
