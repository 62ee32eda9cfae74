# SPDX-License-Identifier: Apache-2.0
"""A pendulum by Runge and Kutta's method with steps of their own size: a while loop
that is a part of the plan, and ends when the time is reached."""

import pestle as pt


def slope(state):
    angle, speed = state
    return speed, -pt.sin(angle)


def move(state, by, h):
    return tuple(s + h * b for s, b in zip(state, by))


def advance(state, h):
    a = slope(state)
    b = slope(move(state, a, h / 2))
    c = slope(move(state, b, h / 2))
    d = slope(move(state, c, h))
    return tuple(s + h / 6 * (p + 2 * q + 2 * r + t)
                 for s, p, q, r, t in zip(state, a, b, c, d))


def one_step(values):
    t, h, state, end, count = values
    h = pt.minimum(h, end - t)
    whole = advance(state, h)
    halves = advance(advance(state, h / 2), h / 2)
    error = pt.abs(whole[0] - halves[0]) + pt.abs(whole[1] - halves[1])
    good = error < 1e-9
    state = tuple(pt.where(good, new, old) for new, old in zip(halves, state))
    return (pt.where(good, t + h, t), pt.where(good, h * 1.5, h / 2), state, end,
            count + 1)


@pt.jit
def solve(angle, end):
    zero = pt.zeros_like(angle)
    values = (zero, zero + 0.1, (angle, zero), zero + end, pt.asarray(0))
    return pt.while_loop(lambda v: v[0] < v[3], one_step, values)


t, _, (angle, speed), _, count = solve(pt.asarray(1.0, dtype=pt.float64), 10.0)
energy = speed.item()**2 / 2 - pt.cos(angle).item()
print(f"after {t.item()} s: angle {angle.item():.6f}, {count.item()} steps, energy "
      f"off by {abs(energy + pt.cos(pt.asarray(1.0, dtype=pt.float64)).item()):.1e}")
assert abs(energy + 0.5403023058681398) < 1e-6
