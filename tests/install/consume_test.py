#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs the build, moves the tree elsewhere and uses it as a stranger would:
a CMake project in C and C++, pkg-config from C and C++, the pestle command, and
a plugin of another compiler's in a host with Pestle beside or in itself."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])


def run(*command, **environment):
    """Runs a command without the variables that the test suite sets."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("PESTLE_")}
    result = subprocess.run([str(c) for c in command], capture_output=True,
                            text=True, env={**clean, **environment},
                            check=False)
    if result.returncode:
        print(" ".join(map(str, command)))
        print(result.stdout + result.stderr)
        sys.exit(1)
    return result.stdout


def cache_entry(name):
    for line in (BUILD / "CMakeCache.txt").read_text().splitlines():
        if line.startswith(name + ":"):
            return line.split("=", 1)[1]
    return ""


def library_dir(prefix):
    return next(prefix.rglob("libpestle.so")).parent


def has_compiler():
    return cache_entry("PESTLE_RUNTIME_ONLY") != "ON"


def check_cmake(prefix, work, flags):
    out = work / "cmake"
    compiler = cache_entry("CMAKE_C_COMPILER")
    run("cmake", "-S", HERE / "cmake", "-B", out,
        f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_FLAGS={flags}",
        f"-DCMAKE_CXX_FLAGS={flags}",
        f"-DCMAKE_C_COMPILER={compiler}", f"-DPESTLE_HOSTS={has_compiler()}",
        # A sanitizer's runtime must be that of the library's compiler.
        *([f"-DCMAKE_CXX_COMPILER={compiler.replace('clang', 'clang++')}"]
          if flags and "clang" in compiler else []))
    run("cmake", "--build", out)
    for program in ("consumer", "consumer-cxx"):
        if program == "consumer" or (out / program).exists():
            text = run(out / program)
            assert text.startswith("pestle "), text
    plugin = out / "backends" / "libpestle-empty-test.so"
    assert plugin.exists(), "pestle_add_plugin() made no plugin"


def other_compiler(flags):
    """Not the one that built Pestle, but with sanitizers, whose runtimes must
    be the same."""
    own = cache_entry("CMAKE_C_COMPILER")
    if flags:
        return own
    others = ("gcc", "cc") if "clang" in own else ("clang-19", "clang")
    return next((found for found in map(shutil.which, others) if found), None)


def check_third_party(prefix, work, flags):
    """plugins/example, as a stranger would build and ship it who has the install."""
    compiler = other_compiler(flags)
    if not has_compiler() or not compiler:
        print("no third party: no compiler in this build, or no other one here")
        return
    source = prefix / "share/doc/pestle/plugins/example"
    out = work / "example-build"
    # With a sanitizer's checks GCC warns of paths that only those have.
    flags = flags or "-Wall -Wextra -Werror"
    run("cmake", "-S", source, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compiler}", "-DCMAKE_BUILD_TYPE=Release",
        f"-DCMAKE_C_FLAGS={flags}")
    run("cmake", "--build", out)
    plugin = out / "backends" / "libpestle-example.so"
    needed = run("readelf", "-d", plugin)
    assert "libpestle" not in needed.replace("libpestle-example", ""), needed
    exported = [line.split()[-1]
                for line in run("nm", "-D", "--defined-only",
                                plugin).splitlines()]
    assert sorted(exported) == ["pestle_backend_abi_info", "pestle_backend_init",
                                "pestle_backend_score"], exported
    for host in ("host", "host-static"):
        text = run(work / "cmake" / host, plugin, "example")
        assert text == "right on example\n", text
    check_kit(prefix, work, plugin)


def check_kit(prefix, work, plugin):
    """The stranger holds the plugin against the reference."""
    text = run(prefix / "bin" / "pestle", "plugins", "--why", "--backend-path",
               plugin.parent)
    assert "used: score 1" in text, text
    text = run(prefix / "bin" / "pestle", "plugins", "test", plugin, "--ops",
               "add,exponential,transpose")
    assert "WRONG 0" in text, text


def try_to_load(work, host, path):
    """What the program says of an extension that it cannot load."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("PESTLE_")}
    result = subprocess.run([str(work / "cmake" / host), str(path)],
                            capture_output=True, text=True, env=clean,
                            check=False)
    assert result.returncode == 1, result
    return result.stderr


def check_extension(prefix, work, flags):
    """examples/axpby, as a stranger would build and ship it who has the install."""
    compiler = other_compiler(flags)
    if not has_compiler() or not compiler:
        print("no extension: no compiler in this build, or no other one here")
        return
    source = prefix / "share/doc/pestle/examples/axpby"
    out = work / "axpby-build"
    flags = flags or "-Wall -Wextra -Werror"
    run("cmake", "-S", source, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS={flags}")
    run("cmake", "--build", out)
    library = out / "libaxpby.so"
    needed = run("readelf", "-d", library)
    assert "[libpestle.so.0]" in needed, needed
    exported = [line.split()[-1]
                for line in run("nm", "-D", "--defined-only",
                                library).splitlines()]
    assert exported == ["pestle_extension_init"], exported
    assert run(work / "cmake" / "use-axpby", library) == "right\n"
    # Rules and evals against the body, over dtypes, shapes, attributes, devices.
    text = run(prefix / "bin" / "pestle", "op-test", library)
    counts = dict(zip(("right", "refused", "WRONG"),
                      map(int, re.findall(r"[a-zA-Z]+ (\d+)", text.splitlines()[-1]))))
    assert counts["WRONG"] == 0 and counts["right"] >= 2000, text
    check_wrong_rule(prefix, work, source, compiler, flags)
    check_setup_py(prefix, work, source)
    # Of two copies of Pestle in a process each would have contexts of its own.
    said = try_to_load(work, "use-axpby-static", library)
    assert "let both have the same" in said, said
    check_trust(work, library)


SETUP = """
from setuptools import setup
from pestle import extension
setup(name="pestle-axpby", version="0.1.0", packages=["pestle_axpby"],
      ext_modules=[extension.CMakeExtension("pestle_axpby._ops")],
      cmdclass={"build_ext": extension.CMakeBuild}, zip_safe=False)
"""
USE = """
import pathlib
import pestle as pt, pestle_axpby as a
x = pt.ones((3,))
assert a.axpby(x, x, 4.0, 2.0).tolist() == [6, 6, 6]
assert pt.grad(lambda x: pt.sum(a.axpby(x, x * x, 4.0, 2.0)))(x).tolist() == [8, 8, 8]
assert list(pathlib.Path(a.__file__).parent.glob("libaxpby.so")), a.__file__
"""


def check_setup_py(prefix, work, source):
    """The example as a package of setuptools', from pip install ., out of tree."""
    home = library_dir(prefix) / "pestle/python"
    probe = subprocess.run([sys.executable, "-c", "import pip, setuptools, wheel"],
                           capture_output=True, check=False)
    if probe.returncode or not (home / "pestle/_pestle.abi3.so").exists():
        print("no setup.py: no pip, setuptools and wheel, or no package in this build")
        return
    folder, site = work / "axpby-setup", work / "axpby-site"
    shutil.copytree(source, folder)
    (folder / "pyproject.toml").unlink()
    (folder / "setup.py").write_text(SETUP, encoding="utf-8")
    python = {"PYTHONPATH": str(home)}
    run(sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps",
        "--no-index", "--target", site, folder, **python)
    run(sys.executable, "-c", USE, PYTHONPATH=f"{home}:{site}")


def check_wrong_rule(prefix, work, source, compiler, flags):
    """An op whose tangent of one operand alone takes the other's factor is found."""
    text = (source / "axpby.c").read_text(encoding="utf-8")
    right = 'tangents[0] ? "alpha" : "beta"'
    assert text.count(right) == 1
    wrong = work / "axpby-wrong"
    shutil.copytree(source, wrong)
    (wrong / "axpby.c").write_text(text.replace(right, 'tangents[0] ? "beta" : "alpha"'),
                                   encoding="utf-8")
    out = work / "axpby-wrong-build"
    run("cmake", "-S", wrong, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS={flags}")
    run("cmake", "--build", out)
    done = subprocess.run([prefix / "bin" / "pestle", "op-test", out / "libaxpby.so"],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "jvp of operand 0" in done.stdout, done
    assert "body of" not in done.stdout and "vmap" not in done.stdout, done


def check_trust(work, library):
    """What others may write is not opened; nor is what is no extension."""
    open_folder = work / "open"
    open_folder.mkdir()
    shutil.copy(library, open_folder)
    open_folder.chmod(0o777)
    said = try_to_load(work, "use-axpby", open_folder / library.name)
    assert "written by others" in said, said
    said = try_to_load(work, "use-axpby", work / "none.so")
    assert "leads to no file" in said, said
    text = work / "text.so"
    text.write_text("no library", encoding="utf-8")
    said = try_to_load(work, "use-axpby", text)
    assert "text.so" in said, said
    plugin = work / "example-build" / "backends" / "libpestle-example.so"
    said = try_to_load(work, "use-axpby", plugin)
    assert "no function pestle_extension_init" in said, said


def check_pkg_config(prefix, work, flags):
    libdir = library_dir(prefix)
    pkg = {"PKG_CONFIG_PATH": str(libdir / "pkgconfig")}
    own = cache_entry("CMAKE_C_COMPILER") if flags else "cc"
    compilers = [(own, "-std=c11", "-xc")]
    if not flags and shutil.which("c++"):
        compilers.append(("c++", "-std=c++17", "-xc++"))
    options = run("pkg-config", "--cflags", "--libs", "pestle", **pkg).split()
    assert run("pkg-config", "--variable=backenddir", "pestle", **pkg).strip()
    for compiler in compilers:
        program = work / f"consumer{compiler[-1]}"
        run(*compiler, *flags.split(), "-Wall", "-Wextra", "-Werror",
            HERE / "c" / "consumer.c", "-o", program, *options)
        text = run(program, LD_LIBRARY_PATH=str(libdir))
        assert text.startswith("pestle "), text


def check_command(prefix, work):
    command = prefix / "bin" / "pestle"
    if not command.exists():
        return
    assert "pestle" in run(command, "--version")
    listed = run(command, "plugins")
    assert "ref" in listed, listed
    if list((BUILD / "backends").glob("libpestle-llvm-*.so")):
        assert "llvm" in listed, listed
    if cache_entry("PESTLE_RUNTIME_ONLY") == "ON":
        return
    module = work / "add.mlir"
    module.write_text("func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
                      "  %0 = stablehlo.add %x, %x : tensor<3xf32>\n"
                      "  return %0 : tensor<3xf32>\n}\n", encoding="utf-8")
    run(command, "run", module, "--input", "0=3xf32=1.5", "--no-cache",
        "--strict", "--outputs", work / "outputs")
    assert list((work / "outputs").iterdir()), "pestle run wrote no output"


def main():
    if not shutil.which("pkg-config"):
        print("pkg-config is not installed")
        return 77
    sanitize = cache_entry("PESTLE_SANITIZE")
    flags = f"-fsanitize={sanitize}" if sanitize else ""
    with tempfile.TemporaryDirectory(prefix="pestle-install-") as folder:
        work = pathlib.Path(folder)
        run("cmake", "--install", BUILD, "--prefix", work / "first")
        # What was installed must not know where.
        prefix = work / "moved"
        (work / "first").rename(prefix)
        check_cmake(prefix, work, flags)
        check_pkg_config(prefix, work, flags)
        check_third_party(prefix, work, flags)
        check_extension(prefix, work, flags)
        check_command(prefix, work)
    return 0


if __name__ == "__main__":
    sys.exit(main())
