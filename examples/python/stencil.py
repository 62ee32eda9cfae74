# SPDX-License-Identifier: Apache-2.0
"""Heat in a plate: a stencil of slices, a thousand times, as one plan."""

import pestle as pt


def step(_, u):
    inner = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    return u.at[1:-1, 1:-1].set(inner)


@pt.jit
def run(u, steps):
    return pt.fori_loop(0, steps, step, u)


plate = pt.zeros((34, 34))
plate[0] = 100.0
plate = run(plate, 1000)
print(f"the middle has {plate[17, 17].item():.2f} degrees")
# Opposite and neighbouring edges of the square together make 100: a quarter each.
assert abs(plate[16:18, 16:18].mean().item() - 25) < 1
