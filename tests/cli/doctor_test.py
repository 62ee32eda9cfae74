#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`pestle doctor --jax` says what is wrong in words: each case breaks one thing, and wants
the sentence that names it. JAX is a stand-in of a few lines in most cases, so that its
versions and failures can be had; the last cases take the real one, where there is one."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PESTLE = BUILD / "pestle"
PLUGIN = BUILD / "pjrt_plugin_pestle.so"
COMPILER = shutil.which("cc")

JAX = """
__version__ = "{jax}"
class Device:
    device_kind = "cpu"
    def __str__(self):
        return "PestleDevice(id=0)"
def devices(name):
    {devices}
def default_backend():
    return "{default}"
def default_device(device):
    import contextlib
    return contextlib.nullcontext()
def jit(f):
    return lambda x: {value}
"""
PLUGIN_SOURCE = """
#include <stddef.h>
struct { size_t size; void* extension; size_t version_size; void* more; int major, minor; }
    api = {64, 0, 24, 0, MAJOR, MINOR};
void* GetPjrtApi(void) { EXTRA return &api; }
"""


class Doctor(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = self.folder / "path"
        self.path.mkdir()
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("PESTLE_", "JAX_", "PJRT_", "LD_"))}
        self.env.update(PYTHONPATH=str(self.path), PYTHONDONTWRITEBYTECODE="1",
                        HOME=str(self.folder), PESTLE_BACKEND_PATH=str(self.folder))

    # --- Stand-ins ---

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def make_jax(self, jax="0.10.2", jaxlib=None, devices="return [Device()]",
                 default="pestle", value="64.0"):
        self.write("jax/__init__.py", JAX.format(jax=jax, devices=devices,
                                                 default=default, value=value))
        self.write("jax/numpy.py", "def ones(shape):\n    return None\n")
        self.write("jaxlib/__init__.py", f'__version__ = "{jaxlib or jax}"\n')

    def make_side(self, tested='("0.10",)'):
        self.write("jax_plugins/pestle/__init__.py", "")
        self.write("jax_plugins/pestle/versions.py", f"TESTED = {tested}\n")

    def make_plugin(self, major=0, minor=110, extra=""):
        if not COMPILER:
            self.skipTest("there is no C compiler")
        source = self.folder / "plugin.c"
        source.write_text(PLUGIN_SOURCE.replace("EXTRA", extra)
                          .replace("MAJOR", str(major)).replace("MINOR", str(minor)))
        plugin = self.folder / "plugin.so"
        subprocess.run([COMPILER, "-w", "-shared", "-fPIC", "-o", plugin, source],
                       check=True)
        self.env["PESTLE_PJRT_LIBRARY"] = str(plugin)
        return plugin

    # --- What it says ---

    def ask(self, *arguments, python=sys.executable):
        done = subprocess.run([PESTLE, "doctor", "--jax", "--python", python, *arguments],
                              env=self.env, cwd=self.folder, check=False,
                              capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def finds(self, *sentences):
        """It ends with 1 and says each of the sentences, and nothing else is wrong."""
        code, text = self.ask()
        self.assertEqual(code, 1, text)
        for sentence in sentences:
            self.assertIn(sentence, text)
        self.assertEqual(text.count("\nwrong  "), 1, text)

    def is_fine(self, *sentences):
        code, text = self.ask()
        self.assertEqual(code, 0, text)
        self.assertIn("JAX finds Pestle", text)
        for sentence in sentences:
            self.assertIn(sentence, text)

    # --- Cases ---

    def test_without_jax_it_lists_backends(self):
        done = subprocess.run([PESTLE, "doctor"], env=self.env, check=False,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("(ref)", done.stdout)

    def test_no_python(self):
        code, text = self.ask(python="/nowhere/python")
        self.assertEqual(code, 4)
        self.assertIn("cannot run '/nowhere/python'", text)
        self.assertIn("--python PYTHON says", text)

    def test_no_jax(self):
        self.write("sitecustomize.py", "import sys\n"
                   "class No:\n    def find_spec(self, name, path=None, target=None):\n"
                   "        if name.split('.')[0] == 'jax':\n"
                   "            raise ModuleNotFoundError(name)\n"
                   "class Hide:\n    pass\n"
                   "import importlib.util\n"
                   "real = importlib.util.find_spec\n"
                   "importlib.util.find_spec = lambda name, *a: "
                   "None if name == 'jax' else real(name, *a)\n")
        self.finds("this Python has no jax", "pip install jax", "--python PYTHON")

    def test_broken_jax(self):
        self.write("jax/__init__.py", "raise ImportError('no jaxlib')")
        self.finds("cannot be imported: ImportError: no jaxlib")

    def test_old_jax(self):
        self.make_jax("0.4.30")
        self.make_side('("0.4",)')
        self.make_plugin()
        self.finds("this is JAX 0.4.30; Pestle needs 0.5 or newer")

    def test_two_releases(self):
        self.make_jax("0.10.2", "0.9.1")
        self.make_side()
        self.make_plugin()
        self.finds("JAX 0.10.2 and jaxlib 0.9.1", "pip install jaxlib==0.10.2")

    def test_untested_jax(self):
        self.make_jax("0.13.0")
        self.make_side()
        self.make_plugin()
        self.is_fine("note   Pestle is tested with JAX 0.10; this is 0.13.0")

    def test_no_plugin(self):
        self.make_jax()
        self.finds("JAX finds no plugin called pestle", "pip install jax-pestle")

    def test_hidden_plugins(self):
        self.make_jax()
        self.make_side()
        self.make_plugin()
        self.write("jax_plugins/__init__.py", "")
        code, text = self.ask()
        self.assertEqual(code, 1)
        self.assertIn("__init__.py hides the plugins of other folders", text)

    def test_missing_library(self):
        self.make_jax()
        self.make_side()
        self.env["PESTLE_PJRT_LIBRARY"] = "/nowhere/p.so"
        self.finds("PESTLE_PJRT_LIBRARY names /nowhere/p.so, which is not there")

    def test_library_is_not_beside(self):
        self.make_jax()
        self.make_side()
        self.finds("pjrt_plugin_pestle.so is neither in", "install jax-pestle anew")

    def test_folder(self):
        self.make_jax()
        self.make_side()
        self.env["PESTLE_PJRT_LIBRARY"] = str(self.path)
        self.finds("which is a folder")

    def test_no_library_at_all(self):
        self.make_jax()
        self.make_side()
        self.env["PESTLE_PJRT_LIBRARY"] = str(self.write("p.so", "text"))
        self.finds("is no shared library of this machine")

    def test_no_plugin_in_library(self):
        self.make_jax()
        self.make_side()
        plugin = self.make_plugin()
        source = self.folder / "empty.c"
        source.write_text("int nothing;\n")
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", plugin, source], check=True)
        self.finds("has no GetPjrtApi: it is no PJRT plugin")

    def test_another_interface(self):
        self.make_jax()
        self.make_side()
        self.make_plugin(major=1, minor=2)
        self.finds("speaks version 1.2 of the PJRT C API; JAX needs 0.29")

    def test_old_interface(self):
        self.make_jax()
        self.make_side()
        self.make_plugin(minor=28)
        self.finds("speaks version 0.28 of the PJRT C API")

    def test_older_libpestle(self):
        self.make_jax()
        self.make_side()
        self.make_plugin(extra="extern void pestle_of_tomorrow(void); "
                         "pestle_of_tomorrow();")
        self.finds("needs pestle_of_tomorrow, which the libpestle.so.0",
                   "install pestle and jax-pestle of one version")

    def test_platforms_leave_it_out(self):
        self.make_jax()
        self.make_side()
        self.make_plugin()
        self.env["JAX_PLATFORMS"] = "cpu"
        self.finds("JAX_PLATFORMS is 'cpu', which leaves Pestle out")

    def test_platforms_misspell_it(self):
        self.make_jax()
        self.make_side()
        self.make_plugin()
        self.env["JAX_PLATFORMS"] = "pestel,cpu"
        self.finds("JAX_PLATFORMS has 'pestel'", "JAX_PLATFORMS=pestle,cpu")

    def test_damaged_names_and_paths(self):
        self.make_jax()
        self.env["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"pestle:{self.make_plugin()},x"
        self.env.pop("PESTLE_PJRT_LIBRARY")
        self.finds("PJRT_NAMES_AND_LIBRARY_PATHS has 'x', which JAX drops")

    def test_missing_name_and_path(self):
        self.make_jax()
        self.env["PJRT_NAMES_AND_LIBRARY_PATHS"] = "pestle:/nowhere/p.so"
        self.finds("PJRT_NAMES_AND_LIBRARY_PATHS names /nowhere/p.so")

    def test_registered_twice(self):
        self.make_jax()
        self.make_side()
        self.env["PJRT_NAMES_AND_LIBRARY_PATHS"] = f"pestle:{self.make_plugin()}"
        self.finds("the plugin is registered twice", "unset PJRT_NAMES_AND_LIBRARY_PATHS")

    def test_named_otherwise(self):
        self.make_jax()
        self.make_side()
        self.make_plugin()
        self.env["PJRT_NAMES_AND_LIBRARY_PATHS"] = "mine:/x/pjrt_plugin_pestle.so"
        self.finds("calls pjrt_plugin_pestle.so 'mine'")

    def test_unknown_variable(self):
        self.make_jax()
        self.make_side()
        self.make_plugin()
        self.env["PESTLE_PJRT_DEVISE"] = "cuda"
        self.finds("nobody reads PESTLE_PJRT_DEVISE", "did you mean PESTLE_PJRT_DEVICE?")

    def test_damaged_options(self):
        self.make_jax()
        self.make_side()
        self.make_plugin()
        self.env["JAX_PJRT_CLIENT_CREATE_OPTIONS"] = "device"
        self.finds("JAX_PJRT_CLIENT_CREATE_OPTIONS has 'device'")

    def test_no_client(self):
        self.make_jax(devices="raise RuntimeError('Unable to initialize backend')")
        self.make_side()
        self.make_plugin()
        self.env["PESTLE_PJRT_DEVICE"] = "cuda"
        self.finds("JAX makes no client of Pestle: RuntimeError: Unable to initialize",
                   "PESTLE_PJRT_DEVICE=cuda asks for it")

    def test_ends_the_process(self):
        self.make_jax(devices="import os; os.abort()")
        self.make_side()
        self.make_plugin()
        self.finds("JAX with Pestle ends the process: the process was ended by signal 6")

    def test_wrong_value(self):
        self.make_jax(value="63.0")
        self.make_side()
        self.make_plugin()
        self.finds("a first program gives 63.0 instead of 64")

    def test_fine(self):
        self.make_jax(default="cpu")
        self.make_side()
        self.make_plugin()
        self.is_fine("a program runs on PestleDevice(id=0)", "note   JAX's default is cpu")

    # --- The plugin itself ---

    def need_plugin(self):
        if not PLUGIN.exists():
            self.skipTest("the plugin is not built")

    # Python has no sanitizer's runtime, without which such a library ends it.
    def need_loadable_plugin(self):
        self.need_plugin()
        cache = (BUILD / "CMakeCache.txt").read_text()
        if re.search(r"^PESTLE_SANITIZE:\w+=\S", cache, re.M):
            self.skipTest("the library has a sanitizer, and Python has not")

    def test_no_libpestle(self):
        self.need_plugin()
        self.make_jax()
        self.make_side()
        alone = self.folder / "alone" / PLUGIN.name
        alone.parent.mkdir()
        shutil.copy(PLUGIN, alone)
        self.env["PESTLE_PJRT_LIBRARY"] = str(alone)
        self.finds("finds no libpestle.so.0", "pip install pestle")

    def test_two_libpestles(self):
        self.need_loadable_plugin()
        self.make_jax()
        self.make_side()
        other = self.folder / "other" / "libpestle.so.0"
        other.parent.mkdir()
        shutil.copy(BUILD / "libpestle.so.0", other)
        self.write("pestle/__init__.py", f"import ctypes\nctypes.CDLL('{other}')\n")
        self.env["PESTLE_PJRT_LIBRARY"] = str(PLUGIN)
        self.finds("libpestle is in the process twice", str(other))

    def test_package_of_another_version(self):
        self.need_loadable_plugin()
        self.make_jax()
        self.make_side()
        self.write("pestle/__init__.py", "__version__ = '0.0.9'\n")
        self.env["PESTLE_PJRT_LIBRARY"] = str(PLUGIN)
        self.finds("the package pestle is 0.0.9, the library that the plugin uses")

    # --- JAX itself ---

    def need_jax(self):
        self.need_loadable_plugin()
        python = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
        if subprocess.run([python, "-c", "import jax"], check=False,
                          capture_output=True).returncode:
            self.skipTest("there is no JAX here")
        self.env.pop("PESTLE_BACKEND_PATH")
        self.env.update(PYTHONPATH=str(SOURCE / "python"), PESTLE_PJRT_DEVICE="cpu",
                        PESTLE_PJRT_LIBRARY=str(PLUGIN))
        return python

    def test_real_jax(self):
        code, text = self.ask(python=self.need_jax())
        self.assertEqual(code, 0, text)
        self.assertIn("a program runs on", text)

    def test_real_jax_without_backend(self):
        python = self.need_jax()
        self.env["PESTLE_PJRT_DEVICE"] = "nonsense"
        code, text = self.ask(python=python)
        self.assertEqual(code, 1, text)
        self.assertIn("JAX makes no client of Pestle", text)
        self.assertIn("nonsense", text)


if __name__ == "__main__":
    unittest.main()
