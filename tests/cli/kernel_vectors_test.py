#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CUDA text of an op that treats each element by itself takes four elements a thread: the
text that the target gets, compiled as C++ for this machine, thread by thread, for memory that
is aligned and that is not, and counts that four does not divide. Exits 77 without a C++
compiler or the cuda backend."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("PESTLE_BUILD_DIR", "")
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXTENSION = """
#include "pestle/custom_op.h"
static const char* const in[] = {"x", "y"};
static const char* const out[] = {"z"};
static const pestle_source_t text = {
    .struct_size = sizeof(text), .language = "cuda",
    .body = "z[i] = 4.0f * x[i] + 2.0f * y[i];", .inputs = in, .input_count = 2,
    .outputs = out, .output_count = 1, .grid = {"z.size"}};
static const pestle_custom_eval_t eval = {
    .struct_size = sizeof(eval), .target = "*", .kind = PESTLE_EVAL_SOURCE,
    .source = &text};
static const pestle_custom_eval_t* const evals[] = {&eval};
static pestle_status_t infer(void* user, const pestle_custom_node_t* node,
                             pestle_type_t* types, size_t* count) {
  (void)user;
  types[0] = node->operand_types[0];
  *count = 1;
  return NULL;
}
PESTLE_EXTENSION_INIT(pestle_context_t* context, uint32_t abi) {
  const pestle_custom_op_t op = {
      .struct_size = sizeof(op), .name = "test.axpby", .version = 1, .infer = infer,
      .evals = evals, .eval_count = 1, .elementwise = true};
  (void)abi;
  return pestle_context_register_op(context, &op);
}
"""
PREFIX = """
#include <cstdio>
#include <cstdlib>
#define __device__
static struct { long long x; } blockIdx, threadIdx, blockDim = {256};
template <class E> struct alignas(4 * sizeof(E)) pestle_four {
  E v[4];
};
template <class E> struct pestle_part {
  pestle_four<E> f;
  long long at;
  E& operator[](long long k) { return k - at < 4 && k >= at ? f.v[k - at] : (abort(), f.v[0]); }
};
"""
MAIN = """
static void kernel(const float* argAA, const float* argAB, float* argAC) {
%s
}
int main() {
  const long long n = %d;
  float* memory = (float*)aligned_alloc(64, 3 * 4 * (n + 64) / 64 * 64 + 4096);
  for (int shift = 0; shift < 5; ++shift) {
    float *x = memory + shift, *y = memory + n + 16 + shift - (n + shift) %% 4 * (shift != 4),
          *z = y + n + 16;
    for (long long i = 0; i < n; ++i) x[i] = i, y[i] = 2 * i + 1, z[i] = -1;
    z[n] = -2;
    for (blockIdx.x = 0; blockIdx.x * 1024 < n; ++blockIdx.x)
      for (threadIdx.x = 0; threadIdx.x < 256; ++threadIdx.x) kernel(x, y, z);
    for (long long i = 0; i < n; ++i)
      if (z[i] != 4 * x[i] + 2 * y[i]) return printf("%%d: element %%lld\\n", shift, i), 1;
    if (z[n] != -2) return printf("%%d: behind the end\\n", shift), 1;
  }
}
"""


def module(n):
    t = f"tensor<{n}xf32>"
    return (
        f"func.func @main(%x: {t}, %y: {t}) -> {t} {{\n"
        '  %0 = "stablehlo.custom_call"(%x, %y) {call_target_name = "test.axpby", '
        'api_version = 4 : i32, "pestle.version" = 1 : i64} : '
        f"({t}, {t}) -> {t}\n  return %0 : {t}\n}}\n")


def build(folder, compiler):
    (folder / "ext.c").write_text(EXTENSION)
    includes = [f"-I{ROOT}/include", f"-I{BUILD}/include"]
    subprocess.run([compiler, "-shared", "-fPIC", *includes, str(folder / "ext.c"), "-o",
                    str(folder / "ext.so"), f"-L{BUILD}", "-lpestle",
                    f"-Wl,-rpath,{BUILD}"], check=True)


def source(n, folder):
    path = folder / "m.mlir"
    path.write_text(module(n))
    done = subprocess.run(
        [f"{BUILD}/pestle", "dump", str(path), "--no-cache", "--extension", str(folder / "ext.so"),
         "--target", "cuda:sm_90a", "--stage", "source"],
        capture_output=True, text=True, check=False)
    return done.stdout, done.stderr


def main():
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    library = pathlib.Path(BUILD) / "libpestle.so"
    if not compiler or not shutil.which("cc") or not library.exists():
        print("skipped: no compiler, or no shared library")
        return 77
    failed = False
    # Where others may write none is loaded.
    with tempfile.TemporaryDirectory(dir=BUILD) as name:
        folder = pathlib.Path(name)
        build(folder, "cc")
        for n in 4096, 1003, 5:
            text, message = source(n, folder)
            if "pestle_part" not in text:
                print(f"{n} elements: {text}{message}")
                if "no backend" in message or "NVRTC" in message:
                    return 77
                failed = True
                continue
            path = folder / f"{n}.cpp"
            path.write_text(PREFIX + MAIN % (text, n))
            program = folder / f"p{n}"
            subprocess.run([compiler, "-std=c++17", "-O1", "-w", str(path), "-o",
                            str(program)], check=True)
            done = subprocess.run([str(program)], capture_output=True, text=True,
                                  check=False)
            if done.returncode:
                failed = True
                print(f"{n} elements: {done.stdout}{done.stderr}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
