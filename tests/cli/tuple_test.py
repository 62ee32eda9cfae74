#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tuples, tokens and get_dimension_size of StableHLO, which are resolved as text is
read: what runs gives what it should, and what is wrong is refused. Exits 77
without numpy.

    tuple_test.py
"""

import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

PESTLE = os.path.join(os.environ["PESTLE_BUILD_DIR"], "pestle")
A, B = "tensor<2xf32>", "tensor<3xi32>"
PAIR = f"tuple<{A}, {B}>"
DEEP = f"tuple<{PAIR}, !stablehlo.token, {B}>"
X, Y = np.array([1.5, -2], np.float32), np.array([3, 4, 5], np.int32)
TOKEN = "!stablehlo.token"

# Text to what it gives for %a = X and %b = Y.
RIGHT = {
    "pretty": (f"""func.func @main(%a: {A}, %b: {B}) -> ({B}, {A}) {{
  %t = stablehlo.tuple %a, %b : {PAIR}
  %0 = stablehlo.get_tuple_element %t[1] : ({PAIR}) -> {B}
  %1 = stablehlo.get_tuple_element %t[0] : ({PAIR}) -> {A}
  return %0, %1 : {B}, {A}
}}""", [Y, X]),
    "generic, nested, a token among them": (
        f"""func.func @main(%a: {A}, %b: {B}) -> ({B}, {A}) {{
  %p = "stablehlo.tuple"(%a, %b) : ({A}, {B}) -> {PAIR}
  %k = "stablehlo.create_token"() : () -> {TOKEN}
  %t = "stablehlo.tuple"(%p, %k, %b) : ({PAIR}, {TOKEN}, {B}) -> {DEEP}
  %q = "stablehlo.get_tuple_element"(%t) <{{index = 0 : i32}}> : ({DEEP}) -> {PAIR}
  %0 = "stablehlo.get_tuple_element"(%t) {{index = 2 : i32}} : ({DEEP}) -> {B}
  %1 = stablehlo.get_tuple_element %q[0] : ({PAIR}) -> {A}
  return %0, %1 : {B}, {A}
}}""", [Y, X]),
    "arguments and results": (
        f"""func.func @main(%t: {PAIR}, %k: {TOKEN}) -> ({PAIR}, {TOKEN}) {{
  %0, %1 = func.call @swap(%t, %k) : ({PAIR}, {TOKEN}) -> (tuple<{B}, {A}>, {TOKEN})
  %2 = stablehlo.get_tuple_element %0[1] : (tuple<{B}, {A}>) -> {A}
  %3 = stablehlo.get_tuple_element %0[0] : (tuple<{B}, {A}>) -> {B}
  %4 = stablehlo.tuple %2, %3 : {PAIR}
  return %4, %1 : {PAIR}, {TOKEN}
}}
func.func private @swap(%t: {PAIR}, %k: {TOKEN}) -> (tuple<{B}, {A}>, {TOKEN}) {{
  %0 = stablehlo.get_tuple_element %t[0] : ({PAIR}) -> {A}
  %1 = stablehlo.get_tuple_element %t[1] : ({PAIR}) -> {B}
  %2 = stablehlo.tuple %1, %0 : tuple<{B}, {A}>
  return %2, %k : tuple<{B}, {A}>, {TOKEN}
}}""", [X, Y]),
    "barriers with tokens": (f"""func.func @main(%a: {A}, %b: {B}) -> ({B}, {A}) {{
  %k = stablehlo.create_token : {TOKEN}
  %l = stablehlo.after_all %k, %k : {TOKEN}
  %e = stablehlo.after_all : {TOKEN}
  %0:3 = stablehlo.optimization_barrier %a, %l, %b : {A}, {TOKEN}, {B}
  %m = "stablehlo.after_all"(%0#1, %e) : ({TOKEN}, {TOKEN}) -> {TOKEN}
  %1, %2 = stablehlo.optimization_barrier %m, %0#2 : {TOKEN}, {B}
  return %2, %0#0 : {B}, {A}
}}""", [Y, X]),
    "a branch": (f"""func.func @main(%a: {A}, %b: {B}) -> ({B}, {A}) {{
  %c = stablehlo.constant dense<true> : tensor<i1>
  %0 = "stablehlo.if"(%c) ({{
    %t = stablehlo.tuple %a, %b : {PAIR}
    stablehlo.return %t : {PAIR}
  }}, {{
    %n = stablehlo.negate %a : {A}
    %t = stablehlo.tuple %n, %b : {PAIR}
    stablehlo.return %t : {PAIR}
  }}) : (tensor<i1>) -> {PAIR}
  %1 = stablehlo.get_tuple_element %0[0] : ({PAIR}) -> {A}
  %2 = stablehlo.get_tuple_element %0[1] : ({PAIR}) -> {B}
  return %2, %1 : {B}, {A}
}}""", [Y, X]),
    "a while of a tuple, a token and a tensor": (
        f"""func.func @main(%a: {A}, %b: {B}) -> ({B}, {A}) {{
  %t = stablehlo.tuple %a, %b : {PAIR}
  %k = stablehlo.create_token : {TOKEN}
  %n = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%u = %t, %l = %k, %i = %n) : {PAIR}, {TOKEN}, tensor<i32>
  cond {{
    %c = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %c = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %c : tensor<i32>
    %2 = stablehlo.get_tuple_element %u[0] : ({PAIR}) -> {A}
    %3 = stablehlo.get_tuple_element %u[1] : ({PAIR}) -> {B}
    %4 = stablehlo.add %2, %2 : {A}
    %5 = stablehlo.tuple %4, %3 : {PAIR}
    %6 = stablehlo.after_all %l : {TOKEN}
    stablehlo.return %5, %6, %1 : {PAIR}, {TOKEN}, tensor<i32>
  }}
  %7 = stablehlo.get_tuple_element %0#0[0] : ({PAIR}) -> {A}
  %8 = stablehlo.get_tuple_element %0#0[1] : ({PAIR}) -> {B}
  return %8, %7 : {B}, {A}
}}""", [Y, 8 * X]),
    "a while of one tuple, generic": (
        f"""func.func @main(%a: {A}, %b: {B}) -> ({B}, {A}) {{
  %t = "stablehlo.tuple"(%a, %b) : ({A}, {B}) -> {PAIR}
  %0 = "stablehlo.while"(%t) ({{
  ^bb0(%u: {PAIR}):
    %1 = "stablehlo.get_tuple_element"(%u) <{{index = 1 : i32}}> : ({PAIR}) -> {B}
    %2 = stablehlo.slice %1 [0:1] : ({B}) -> tensor<1xi32>
    %3 = stablehlo.reshape %2 : (tensor<1xi32>) -> tensor<i32>
    %c = stablehlo.constant dense<20> : tensor<i32>
    %4 = stablehlo.compare LT, %3, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%4) : (tensor<i1>) -> ()
  }}, {{
  ^bb0(%u: {PAIR}):
    %1 = stablehlo.get_tuple_element %u[0] : ({PAIR}) -> {A}
    %2 = stablehlo.get_tuple_element %u[1] : ({PAIR}) -> {B}
    %3 = stablehlo.add %2, %2 : {B}
    %4 = stablehlo.tuple %1, %3 : {PAIR}
    "stablehlo.return"(%4) : ({PAIR}) -> ()
  }}) : ({PAIR}) -> {PAIR}
  %7 = stablehlo.get_tuple_element %0[0] : ({PAIR}) -> {A}
  %8 = stablehlo.get_tuple_element %0[1] : ({PAIR}) -> {B}
  return %8, %7 : {B}, {A}
}}""", [8 * Y, X]),
    "an extent": (f"""func.func @main(%a: {A}, %b: {B}) -> (tensor<i32>, tensor<i32>) {{
  %0 = stablehlo.get_dimension_size %b, dim = 0 : ({B}) -> tensor<i32>
  %1 = "stablehlo.get_dimension_size"(%a) <{{dimension = 0 : i64}}> : ({A}) -> tensor<i32>
  return %0, %1 : tensor<i32>, tensor<i32>
}}""", [np.int32(3), np.int32(2)]),
}  # fmt: skip
HEAD = f"func.func @main(%a: {A}, %b: {B}) -> {A} {{\n"
TAIL = f"\n  return %a : {A}\n}}"
WRONG = [
    f"%t = stablehlo.tuple %a : {PAIR}",
    f"%t = stablehlo.tuple %b, %a : {PAIR}",
    f"%t = stablehlo.tuple %a, %b : tuple<tuple<{A}>, {B}>",
    f"%t = stablehlo.tuple %a, %b : {PAIR}\n"
    f"  %0 = stablehlo.get_tuple_element %t[2] : ({PAIR}) -> {A}",
    f"%t = stablehlo.tuple %a, %b : {PAIR}\n"
    f"  %0 = stablehlo.get_tuple_element %t[1] : ({PAIR}) -> {A}",
    f"%t = stablehlo.tuple %a, %b : {PAIR}\n  %0 = stablehlo.negate %t : {A}",
    f"%0 = stablehlo.get_tuple_element %a[0] : ({A}) -> {A}",
    f"%k = stablehlo.after_all %a : {TOKEN}",
    f"%k = stablehlo.create_token : {A}",
    f"%0 = stablehlo.get_dimension_size %b, dim = 1 : ({B}) -> tensor<i32>",
    f"%0 = stablehlo.get_dimension_size %b, dim = 0 : ({B}) -> tensor<i64>",
    f"%t = stablehlo.tuple %a : tuple<{A}",
    f"%t:2 = stablehlo.tuple %a, %b : {PAIR}",
    f"%t = stablehlo.tuple %a, %b : {PAIR}\n"
    f"  %0 = stablehlo.while(%i = %t) : {PAIR}\n"
    f"  cond {{ stablehlo.return %a : {A} }} do {{ stablehlo.return %i : {PAIR} }}",
    f"%t = stablehlo.tuple %a, %b : {PAIR}\n"
    f"  %c = stablehlo.constant dense<false> : tensor<i1>\n"
    f"  %0 = stablehlo.while(%i = %t) : tuple<{B}, {A}>\n"
    f"  cond {{ stablehlo.return %c : tensor<i1> }}"
    f" do {{ stablehlo.return %i : {PAIR} }}",
    f"%t = stablehlo.tuple %a, %b : {PAIR}\n"
    f"  %c = stablehlo.constant dense<false> : tensor<i1>\n"
    f"  %0:2 = stablehlo.while(%i = %t) : {A}, {B}\n"
    f"  cond {{ stablehlo.return %c : tensor<i1> }}"
    f" do {{ stablehlo.return %i : {PAIR} }}",
]  # fmt: skip


def run(text, folder, more=()):
    with open(f"{folder}/m.mlir", "w", encoding="utf-8") as file:
        file.write(text)
    return subprocess.run(
        [PESTLE, "run", f"{folder}/m.mlir", "--device", "ref", "--no-cache", *more],
        capture_output=True, text=True, check=False)  # fmt: skip


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", X)
        np.save(f"{folder}/y.npy", Y)
        inputs = ["--input", f"0={folder}/x.npy", "--input", f"1={folder}/y.npy",
                  "--outputs", f"{folder}/out"]  # fmt: skip
        for what, (text, want) in RIGHT.items():
            r = run(text, folder, inputs)
            got = [] if r.returncode else [
                np.load(f"{folder}/out/output_{i}.npy") for i in range(len(want))]  # fmt: skip
            if len(got) != len(want) or not all(map(np.array_equal, got, want)):
                print(f"{what}: {got}, not {want}\n{r.stderr}")
                bad += 1
        for line in WRONG:
            r = run(f"{HEAD}  {line}{TAIL}", folder)
            if r.returncode not in (3, 4) or "m.mlir:" not in r.stderr:
                print(f"{line}: exit code {r.returncode}, {r.stderr}")
                bad += 1
    print(f"{bad} are wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
