# SPDX-License-Identifier: Apache-2.0
"""Frames of a camera, whose driver writes into buffers of its own, in a ring: each is
read where it lies, and the running mean is updated in its own memory.

usage: camera.py
"""

import pestle as pt

HEIGHT, WIDTH, FRAMES = 120, 160, 30


class Camera:
    """Stands for a driver: it fills one of three buffers and hands it out."""

    def __init__(self):
        self._ring = [bytearray(HEIGHT * WIDTH) for _ in range(3)]
        self._count = 0

    def grab(self):
        frame = self._ring[self._count % len(self._ring)]
        # A bright square wanders over a grey picture.
        frame[:] = b"\x40" * len(frame)
        left = (self._count * 4) % (WIDTH - 16)
        for row in range(50, 66):
            at = row * WIDTH + left
            frame[at:at + 16] = b"\xff" * 16
        self._count += 1
        return memoryview(frame).cast("B", (HEIGHT, WIDTH))


@pt.jit(donate_argnames="mean")
def step(mean, frame):
    """The new mean, and where the picture moves: one pass over the frame."""
    x = pt.astype(frame, pt.float32) / 255
    away = pt.abs(x - mean)
    moving = away > 0.25
    columns = pt.arange(WIDTH, dtype=pt.float32)
    weight = pt.sum(pt.astype(moving, pt.float32), axis=0)
    total = pt.sum(weight)
    center = pt.sum(weight * columns) / pt.maximum(total, 1.0)
    return mean * 0.9 + x * 0.1, total, center


camera = Camera()
mean = pt.full((HEIGHT, WIDTH), 64 / 255, dtype=pt.float32)
pt.eval(mean)
place = memoryview(mean).obj is mean  # the host sees it without a copy
for i in range(FRAMES):
    # No copy: the array sees the driver's buffer while it is computed with.
    frame = pt.asarray(camera.grab(), copy=False)
    mean, total, center = step(mean, frame)
    count = int(total)  # waits: the buffer may be filled again
    if i % 10 == 9:
        print(f"frame {i}: {count} pixels move around column {float(center):.1f}")
print(f"traces {step.traces}, donations {pt.stats()['donations']}")
assert place and step.traces == 1
