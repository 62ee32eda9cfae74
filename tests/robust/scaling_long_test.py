#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Graphs that grow: what an op costs in time and memory stays what it was.

    scaling_long_test.py [--long] [SHAPE ...]

Each shape of graph (chains, fans, functions, regions, outputs, operands ...) is read,
and compiled and run on ref, at sizes up to 50,000 ops; --long goes to a million. From
one size to the next an op may cost twice as much CPU and memory: whatever is
quadratic costs five to ten times as much. A whole compilation takes at most 4 KB an
op.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile

from build import BUILD, sanitized

PESTLE = BUILD / "pestle"
T = "tensor<4xf32>"


def function(name, body, result, results=1, private=False):
    types = ", ".join([T] * results)
    out = f"({types})" if results != 1 else T
    ends = f"return {result} : {types}" if results else "return"
    return (f"func.func {'private ' if private else ''}@{name}(%x: {T}) -> {out} "
            f"{{\n{body}\n{ends}\n}}\n")


def chain(n):
    """Each op reads the one before."""
    ops = ["negate", "tanh"]
    lines = [f"%v{i} = stablehlo.{ops[i % 2]} %{f'v{i - 1}' if i else 'x'} : {T}"
             for i in range(n)]
    return function("main", "\n".join(lines), f"%v{n - 1}")


def ladder(n):
    """Two values that each read the other's last: written out as trees, they grow as
    Fibonacci's numbers do. Of 1 they stay small integers, which are exact."""
    lines, a, b = [f"%v = stablehlo.multiply %x, %x : {T}"], "%x", "%v"
    for i in range(n // 2):
        lines.append(f"%a{i} = stablehlo.subtract {a}, {b} : {T}")
        lines.append(f"%b{i} = stablehlo.maximum {b}, %a{i} : {T}")
        a, b = f"%a{i}", f"%b{i}"
    return function("main", "\n".join(lines), a)


def products(n):
    """A chain of small matrix products: each is a kernel."""
    m = "tensor<4x4xf32>"
    lines = [f"%c = stablehlo.constant dense<0.25> : {m}",
             f"%v = stablehlo.reshape %x : ({T}) -> tensor<1x4xf32>"]
    last = "%v"
    for i in range(n):
        lines.append(f"%v{i} = stablehlo.dot_general {last}, %c, contracting_dims = "
                     f"[1] x [0] : (tensor<1x4xf32>, {m}) -> tensor<1x4xf32>")
        last = f"%v{i}"
    lines.append(f"%r = stablehlo.reshape {last} : (tensor<1x4xf32>) -> {T}")
    return function("main", "\n".join(lines), "%r")


def fan_out(n):
    """Many readers of one value, summed as a tree."""
    lines = [f"%v{i} = stablehlo.sine %x : {T}" if i % 2 else
             f"%v{i} = stablehlo.cosine %x : {T}" for i in range(n // 2)]
    names = [f"%v{i}" for i in range(n // 2)]
    count = 0
    while len(names) > 1:
        reduced = []
        for a, b in zip(names[::2], names[1::2]):
            lines.append(f"%s{count} = stablehlo.add {a}, {b} : {T}")
            reduced.append(f"%s{count}")
            count += 1
        names = reduced + (names[-1:] if len(names) % 2 else [])
    return function("main", "\n".join(lines), names[0])


def functions(n):
    """Functions that main calls one after the other."""
    head = "".join(function(f"f{i}", f"%r = stablehlo.negate %x : {T}", "%r",
                            private=True) for i in range(n // 2))
    lines = [f"%v{i} = func.call @f{i}(%{f'v{i - 1}' if i else 'x'}) : ({T}) -> {T}"
             for i in range(n // 2)]
    return head + function("main", "\n".join(lines), f"%v{n // 2 - 1}")


def calls(n):
    """Functions that each call the one before."""
    head = function("f0", f"%r = stablehlo.negate %x : {T}", "%r", private=True)
    for i in range(1, n // 2):
        head += function(f"f{i}", f"%c = func.call @f{i - 1}(%x) : ({T}) -> {T}\n"
                         f"%r = stablehlo.tanh %c : {T}", "%r", private=True)
    return head + function("main", f"%r = func.call @f{n // 2 - 1}(%x) : ({T}) -> {T}",
                           "%r")


def regions(n):
    """Ifs one after the other."""
    lines = ["%z = stablehlo.constant dense<0.0> : tensor<f32>",
             f"%s = stablehlo.slice %x [0:1] : ({T}) -> tensor<1xf32>",
             "%t = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>",
             "%c = stablehlo.compare GT, %t, %z : (tensor<f32>, tensor<f32>) -> "
             "tensor<i1>"]
    last = "%x"
    for i in range(n // 5):
        lines.append(f'%v{i} = "stablehlo.if"(%c) ({{\n%a{i} = stablehlo.tanh {last} '
                     f': {T}\nstablehlo.return %a{i} : {T}\n}}, {{\n%b{i} = '
                     f'stablehlo.sine {last} : {T}\nstablehlo.return %b{i} : {T}\n}}) '
                     f': (tensor<i1>) -> {T}')
        last = f"%v{i}"
    return function("main", "\n".join(lines), last)


def outputs(n):
    """As many results as ops."""
    lines = [f"%v{i} = stablehlo.{('sine', 'cosine', 'tanh')[i % 3]} %x : {T}"
             for i in range(n)]
    return function("main", "\n".join(lines), ", ".join(f"%v{i}" for i in range(n)),
                    results=n)


def operands(n):
    """One concatenation of all."""
    lines = []
    for i in range(n // 2):
        lines.append(f"%c{i} = stablehlo.constant dense<{i}.0> : {T}")
        lines.append(f"%v{i} = stablehlo.multiply %x, %c{i} : {T}")
    wide = f"tensor<{4 * (n // 2)}xf32>"
    lines.append("%all = stablehlo.concatenate " +
                 ", ".join(f"%v{i}" for i in range(n // 2)) + ", dim = 0 : (" +
                 ", ".join([T] * (n // 2)) + f") -> {wide}")
    lines.append(f"%r = stablehlo.slice %all [4:8] : ({wide}) -> {T}")
    lines.append(f"%z = stablehlo.constant dense<0.0> : tensor<f32>")
    lines.append(f"%s = stablehlo.reduce(%all init: %z) applies stablehlo.add across "
                 f"dimensions = [0] : ({wide}, tensor<f32>) -> tensor<f32>")
    lines.append(f"%w = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> {T}")
    lines.append(f"%q = stablehlo.add %r, %w : {T}")
    return function("main", "\n".join(lines), "%q")


SHAPES = {f.__name__: f for f in (chain, ladder, products, fan_out, functions, calls,
                                  regions, outputs, operands)}


def measure(shape, n, verb):
    """CPU seconds and MiB of resident memory; an error's sentence in their place."""
    with tempfile.TemporaryDirectory() as folder:
        # What a process takes is at least what its parent took: the text is made
        # by another.
        subprocess.run([sys.executable, __file__, "--write", f"{folder}/m.mlir",
                        "--sizes", str(n), shape], check=True)
        words = {"run": ["run", "m.mlir", "--input", "x=1", "--no-cache", "--device",
                         "ref", "--bench", "1"],
                 "dump": ["dump", "m.mlir"]}[verb]
        with open(f"{folder}/err", "wb+") as err:
            child = subprocess.Popen([PESTLE] + words, cwd=folder, stderr=err,
                                     stdout=subprocess.DEVNULL)
            _, state, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(state)
            err.seek(0)
            said = err.read().decode("utf-8", "replace").strip()
    if child.returncode:
        return None, None, f"exit {child.returncode}: {said[:200]}"
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, ""


def judge(shape, verb, sizes):
    """What the ops from one size to the next cost each, against those before."""
    bad, done = 0, [(10, *measure(shape, 10, verb)[:2])]
    for n in sizes:
        cpu, mib, fault = measure(shape, n, verb)
        if fault:
            print(f"FAIL {shape} {verb} {n}: {fault}", flush=True)
            return bad + 1
        done.append((n, cpu, mib))
    before = None
    for (n, cpu, mib), (last_n, last_cpu, last_mib) in zip(done[1:], done):
        us = (cpu - last_cpu) / (n - last_n) * 1e6
        kb = (mib - last_mib) * 1024 / (n - last_n)
        why = []
        # Two and a half: a machine is busy now and then. What took less than a tenth
        # of a second is the start of the process, which says nothing of ops.
        if before and us > 2.5 * max(before[0], 2):
            why.append("time")
        if before and kb > 2.5 * max(before[1], 2):
            why.append("memory")
        # Sanitizers add to each block of memory: only growth can be judged then.
        if kb > 4 and mib > 100 and not sanitized():
            why.append("over 4 KB an op")
        print(f"{'FAIL' if why else 'ok  '} {shape} {verb} {n}: {us:.1f} us, {kb:.2f} "
              f"KB an op ({cpu:.2f} s, {mib:.0f} MiB) {' and '.join(why)}", flush=True)
        bad += bool(why)
        before = (us if cpu - last_cpu > 0.1 else max(us, 1e5 / (n - last_n)), kb)
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--verbs", default="dump,run")
    parser.add_argument("--sizes")
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--write")
    o = parser.parse_args()
    if o.write:
        with open(o.write, "w", encoding="utf-8") as file:
            file.write(SHAPES[o.shapes[0]](int(o.sizes)))
        return 0
    sizes = [int(s) for s in o.sizes.split(",")] if o.sizes else (
        [1000, 10000, 100000, 1000000] if o.long else [1000, 10000, 50000])
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, 8 << 20))
    bad = 0
    for shape in o.shapes or SHAPES:
        for verb in o.verbs.split(","):
            bad += judge(shape, verb, sizes)
    print(f"{bad} of them cost more and more")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
