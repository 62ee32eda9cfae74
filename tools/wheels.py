#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wheels from one installed tree.

    wheels.py BUILD OUT [NAME ...]    (make wheels)

`cmake --install` stages BUILD; each wheel takes its part of that tree:

| wheel | what it has |
|---|---|
| pestle | the Python package, libpestle.so.0, headers, CMake package, the command, lapack |
| pestle-llvm | the llvm plugin and an LLVM for x86-64 alone, so that no system library is needed |
| pestle-cuda, pestle-vulkan, pestle-opencl | a plugin each |
| jax-pestle | the PJRT plugin and its Python side; uses the library of `pestle` |

Plugins lie in the folder that libpestle searches, pestle/lib/pestle/backends, whichever
wheel brings them (docs/adr/029). Wheels are packed by PyPI's `wheel`, of the Python that
runs this; times in them are SOURCE_DATE_EPOCH's, or the last commit's."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLATFORM = "manylinux_2_36_x86_64"  # Debian 12's C library
BACKENDS = "pestle/lib/pestle/backends"
# Each wheel: tags, what it depends on, a line about it.
WHEELS = {
    "pestle": ("cp311-abi3", ["pestle-llvm=={v}"],
               "Tensor graphs compiled for the CPU or GPU at hand"),
    "pestle-llvm": ("py3-none", [], "Code for x86-64 CPUs by LLVM, for pestle"),
    "pestle-cuda": ("py3-none", ["pestle=={v}", "nvidia-cuda-nvrtc>=13"],
                    "Code for NVIDIA GPUs, for pestle"),
    "pestle-vulkan": ("py3-none", ["pestle=={v}"], "Vulkan devices, for pestle"),
    "pestle-opencl": ("py3-none", ["pestle=={v}"], "OpenCL devices, for pestle"),
    "jax-pestle": ("py3-none", ["pestle=={v}", "jax>=0.10"], "JAX on pestle"),
}
FOREIGN = {  # licences of what is linked in, by wheel: Debian's copyright files
    "pestle-llvm": ["llvm-19-dev", "zlib1g-dev", "libzstd-dev", "libstdc++-12-dev"],
    "pestle-vulkan": ["libshaderc-dev"],
}


def version():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"project\(pestle VERSION ([0-9.]+)", text).group(1)


def copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)


def fill_pestle(stage, tree, build):
    del build
    lib = stage / "lib"
    copy(lib / "pestle/python/pestle", tree / "pestle")
    copy((lib / "libpestle.so.0").resolve(), tree / "pestle/lib/libpestle.so.0")
    # A wheel holds no links; the linker takes this in place of one.
    (tree / "pestle/lib/libpestle.so").write_text("INPUT(libpestle.so.0)\n")
    copy(stage / "include/pestle", tree / "pestle/include/pestle")
    copy(lib / "cmake/pestle", tree / "pestle/lib/cmake/pestle")
    for path in (tree / "pestle/lib/cmake/pestle").glob("pestleTargets*.cmake"):
        text = path.read_text(encoding="utf-8")
        text = re.sub(r"libpestle\.so\.0\.[0-9.]+[0-9]", "libpestle.so.0", text)
        # The archive stays at home: nobody who has a wheel links it.
        text = re.sub(r'# Import target "pestle::static".*?(?=\n# )', "", text,
                      flags=re.S)
        path.write_text(text, encoding="utf-8")
    copy(stage / "bin/pestle", tree / "pestle/bin/pestle")
    copy(lib / "pestle/backends/libpestle-lapack.so", tree / BACKENDS / "libpestle-lapack.so")


def epoch():
    """SOURCE_DATE_EPOCH, or the time of the last commit."""
    return os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "-C", ROOT, "log", "-1", "--format=%ct"], check=True, text=True,
        capture_output=True).stdout.strip()


def add_llvm_core(build, folder):
    """The LLVM for x86-64 alone, into the folder of the llvm plugin."""
    core = "libpestle-llvm-core.so.19"
    subprocess.run(["cmake", "--build", build, "--target", "pestle_llvm_core"], check=True)
    copy(build / "plugins/llvm" / core, folder / core)


def fill_llvm(stage, tree, build):
    name = "libpestle-llvm-v19.so"
    copy(stage / "lib/pestle/backends" / name, tree / BACKENDS / name)
    add_llvm_core(build, tree / BACKENDS)


def fill_plugin(name):
    def fill(stage, tree, build):
        del build
        file = f"libpestle-{name}.so"
        copy(stage / "lib/pestle/backends" / file, tree / BACKENDS / file)
    return fill


def fill_jax(stage, tree, build):
    del build
    copy(stage / "lib/pestle/python/jax_plugins/pestle", tree / "jax_plugins/pestle")
    copy(stage / "lib/pjrt_plugin_pestle.so",
         tree / "jax_plugins/pestle/pjrt_plugin_pestle.so")


FILL = {"pestle": fill_pestle, "pestle-llvm": fill_llvm, "jax-pestle": fill_jax,
        **{f"pestle-{n}": fill_plugin(n) for n in ("cuda", "vulkan", "opencl")}}


def describe(name, tree):
    """The .dist-info of |name|, but for RECORD, which `wheel pack` writes."""
    tags, needs, summary = WHEELS[name]
    info = tree / f"{name.replace('-', '_')}-{version()}.dist-info"
    (info / "licenses").mkdir(parents=True)
    needs = "".join(f"Requires-Dist: {n.format(v=version())}\n" for n in needs)
    readme = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: {name}\nVersion: {version()}\nSummary: {summary}\n"
        f"License-Expression: Apache-2.0\nLicense-File: LICENSE\nRequires-Python: >=3.11\n"
        f"{needs}Description-Content-Type: text/markdown\n\n"
        + (readme if name == "pestle" else f"{summary}.\n"), encoding="utf-8")
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: pestle tools/wheels.py\n"
                                f"Root-Is-Purelib: false\nTag: {tags}-{PLATFORM}\n")
    copy(ROOT / "LICENSE", info / "licenses/LICENSE")
    for package in FOREIGN.get(name, []):
        text = pathlib.Path("/usr/share/doc") / package / "copyright"
        if text.exists():
            copy(text.resolve(), info / "licenses" / f"{package}.txt")
    if name == "pestle":
        (info / "entry_points.txt").write_text(
            "[console_scripts]\npestle = pestle._command:main\n")


def main():
    build, out = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    work = out / "tree"
    shutil.rmtree(out, ignore_errors=True)
    stage = work / "stage"
    subprocess.run(["cmake", "--install", build, "--prefix", stage, "--strip"], check=True,
                   stdout=subprocess.DEVNULL)
    env = {**os.environ, "SOURCE_DATE_EPOCH": epoch()}
    for name in sys.argv[3:] or WHEELS:
        plugin = stage / "lib/pestle/backends" / f"libpestle-{name.split('-')[-1]}.so"
        if name in ("pestle-cuda", "pestle-vulkan", "pestle-opencl") and not plugin.exists():
            print(f"{name}: left out, its plugin is not built")
            continue
        tree = work / name
        FILL[name](stage, tree, build)
        describe(name, tree)
        subprocess.run([sys.executable, "-m", "wheel", "pack", tree, "-d", out], check=True,
                       env=env, stdout=subprocess.DEVNULL)
    shutil.rmtree(work)
    for path in sorted(out.glob("*.whl")):
        print(f"{path.stat().st_size / 1e6:6.2f} MB {path.name}")


if __name__ == "__main__":
    main()
