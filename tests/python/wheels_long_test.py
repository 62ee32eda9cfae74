#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels of this build in a folder of their own: Python, the command, a C program by the
CMake package and JAX run on them, with one libpestle a process and no libLLVM of the
system's. Skips where PyPI's wheel or LLVM's archives lack."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]).resolve()
MOST_MB = {"pestle": 2.5, "pestle_llvm": 16.5, "jax_pestle": 0.5}  # compressed

PYTHON = """
import sys, time
begin = time.perf_counter()
import pestle as pt
assert "numpy" not in sys.modules
x = pt.asarray([[1., 2.], [3., 4.]])
step = pt.jit(lambda w, x, rate: w - rate * (x.T @ (x @ w)))
got = step(pt.ones(2), x, .1).tolist()
assert all(abs(g - w) < 1e-5 for g, w in zip(got, (-1.4, -2.4))), got
u, s, v = pt.linalg.svd(x)
assert abs(s.tolist()[0] - 5.4649857) < 1e-4
maps = {l.split()[-1] for l in open("/proc/self/maps") if ".so" in l}
assert len([m for m in maps if "libpestle.so" in m]) == 1, maps
assert any("libpestle-llvm-core" in m for m in maps), maps
assert not any("/libLLVM" in m for m in maps), maps
"""

C = """
#include <pestle/pestle.h>
#include <stdio.h>
int main(void) {
  pestle_context_t* context;
  pestle_device_t* device;
  pestle_status_t status = pestle_context_create(NULL, &context);
  if (!status) status = pestle_context_load_backends(context);
  if (!status) status = pestle_context_device(context, "llvm", &device);
  puts(status ? pestle_status_message(status) : "llvm is there");
  pestle_context_release(context);
  return status != NULL;
}
"""

CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
find_package(pestle REQUIRED)
add_executable(user user.c)
target_link_libraries(user PRIVATE pestle::pestle)
"""

JAX = """
import jax, jax.numpy as jnp
assert jax.devices()[0].platform == "pestle", jax.devices()
import pestle as pt
assert jax.jit(lambda x: (x * x).sum())(jnp.arange(4.)) == 14
assert pt.asarray([1., 2.]).sum().item() == 3
maps = {l.split()[-1] for l in open("/proc/self/maps") if "libpestle.so" in l}
assert len(maps) == 1, maps
"""


class Wheels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.mkdtemp(prefix="pestle-wheels-")
        cls.folder = pathlib.Path(cls.scratch)
        cls.site = cls.folder / "site"
        subprocess.run([sys.executable, SOURCE / "tools/wheels.py", BUILD,
                        cls.folder / "wheels", "pestle", "pestle-llvm", "jax-pestle"],
                       check=True)
        cls.wheels = sorted((cls.folder / "wheels").glob("*.whl"))
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index",
                        "--no-deps", "--target", cls.site, *cls.wheels], check=True)
        cls.env = {k: v for k, v in os.environ.items() if not k.startswith("PESTLE_")}
        cls.env.update(PYTHONPATH=str(cls.site), PESTLE_CACHE_DIR=str(cls.folder / "cache"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.scratch)

    def succeed(self, *words, **more):
        done = subprocess.run([str(w) for w in words], check=False, capture_output=True,
                              text=True, env={**self.env, **more.pop("env", {})}, **more)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_sizes(self):
        for path in self.wheels:
            name = path.name.split("-")[0]
            self.assertLessEqual(path.stat().st_size / 1e6, MOST_MB[name], path.name)

    def test_python(self):
        self.succeed(sys.executable, "-c", PYTHON)

    def test_command(self):
        program = self.site / "bin/pestle"
        self.assertIn("llvm", self.succeed(sys.executable, program, "plugins"))

    def test_c(self):
        (self.folder / "user.c").write_text(C, encoding="utf-8")
        (self.folder / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
        where = self.folder / "user-build"
        self.succeed("cmake", "-S", self.folder, "-B", where,
                     f"-Dpestle_DIR={self.site / 'pestle/lib/cmake/pestle'}")
        self.succeed("cmake", "--build", where)
        self.assertIn("llvm is there", self.succeed(where / "user"))

    def test_jax(self):
        python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
        probe = subprocess.run([python, "-c", "import jax"], check=False, capture_output=True)
        if probe.returncode:
            self.skipTest("no JAX here")
        self.succeed(python, "-c", JAX, env={"JAX_PLATFORMS": "pestle"})


def main():
    probe = subprocess.run([sys.executable, "-c", "import wheel"], check=False,
                           capture_output=True)
    if probe.returncode or not pathlib.Path("/usr/lib/llvm-19/lib/libLLVMX86CodeGen.a").exists():
        print("no wheel of PyPI's, or no archives of LLVM 19")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
