#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the built libraries export, import, need and how large they are.

usage: check_symbols.py SOURCE_DIR BUILD_DIR
With BLESS=1 the list of exported symbols is written anew.
"""

import os
import pathlib
import re
import subprocess
import sys

# docs/adr/030: derivatives and batching came on top of 2.95 MB; 3.42 with them, own ops,
# collectives and the kernels of Hopper; 3.53 with sessions, two tiers, clusters and
# policies of checkpoints; 3.70 with ONNX's domains beside the standard and strings; 3.90 with
# language models and worlds, and the kernels of their layers on top; 4.00 with letters of
# strings, maps and collectives between GPUs; 4.13 with attention's gradient, products of bytes
# and decoders on Hopper, and worlds whose collectives run beside kernels; 4.24 with GGUF files,
# speech models, rooms, parts of constants, and products of 8-bit floats and tf32.
MAX_STRIPPED_SIZE = 4_260_000
# A library never ends the process and never prints.
FORBIDDEN = {
    "abort", "exit", "_exit", "_Exit", "quick_exit", "__assert_fail",
    "printf", "puts", "putchar", "perror", "stdout", "stderr",
    "__printf_chk", "vprintf",
}
# Ends children that it made itself, and nothing else.
MAY_EXIT = "runtime/plugin_child_posix.c"
PLUGIN_EXPORTS = {
    "pestle_backend_abi_info", "pestle_backend_score", "pestle_backend_init",
    # GDB looks for these two names.
    "__jit_debug_descriptor", "__jit_debug_register_code",
}
# Only these may be needed; libm and libc are split on some systems.
NEEDED = re.compile(r"^(libc|libm|libdl|libpthread|ld-linux-x86-64|libgcc_s)"
                    r"\.so")

# Plugins that a toolchain is linked into, whose own calls these are: shaderc,
# glslang and SPIRV-Tools, in C++, stop where they find themselves broken.
WITH_TOOLCHAIN = {"libpestle-vulkan.so"}
TOOLCHAIN_NEEDS = re.compile(r"^libstdc\+\+\.so")

# Of the C start-up code, and what libgcc finds out about the CPU.
# Of the library one: exit() is the process's, and has to find the threads that compile
# (session/decode_ahead.c).
STARTUP = {"pestle_decode_running", "completed.0", "__dso_handle", "__TMC_END__", "__cpu_model",
           "__cpu_features2"}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def symbols(path, *options):
    """(type, name) of each dynamic symbol, without its version."""
    rows = [line.split() for line in
            run("nm", "-D", *options, str(path)).splitlines()]
    return [(row[-2], row[-1].split("@")[0]) for row in rows if len(row) >= 2]


def needed(path):
    return re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", str(path)))


def soname(path):
    found = re.search(r"SONAME.*\[(.*)\]", run("readelf", "-d", str(path)))
    return found.group(1) if found else ""


def mutable_globals(path):
    """Names of the variables that stay writable once the library is loaded;
    tables of constant pointers (.data.rel.ro) do not."""
    names = set()
    for line in run("objdump", "-t", str(path)).splitlines():
        match = re.match(r"^\w+ .{7} (\.\S+|\*COM\*)\s+\w+\s+(?:\.hidden )?"
                         r"(\S+)$", line)
        if not match or match.group(2).startswith("."):
            continue
        if re.match(r"^(\.t?data|\.t?bss|\*COM\*)$", match.group(1)):
            names.add(match.group(2))
    return names - STARTUP


def declared(source, build):
    """The functions that the public headers mark with PESTLE_API."""
    names = [path.name for root in (source, build)
             for path in (root / "include/pestle").glob("*.h")]
    unit = "".join(
        ['#include "pestle/export.h"\n', "#undef PESTLE_NODISCARD\n",
         "#define PESTLE_NODISCARD\n", "#undef PESTLE_PRINTF\n",
         "#define PESTLE_PRINTF(f, a)\n", "#undef PESTLE_API\n",
         "#define PESTLE_API exported_function\n"] +
        [f'#include "pestle/{name}"\n' for name in sorted(names)])
    text = subprocess.run(
        ["cc", "-E", "-P", f"-I{source / 'include'}", f"-I{build / 'include'}",
         "-"], input=unit, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\bexported_function\b[^;(]*?(\w+)\s*\(", text))


def check_exports(source, build, exported, run_only, problems):
    path = source / "tests" / "abi" / "exported_symbols.txt"
    if os.environ.get("BLESS") == "1" and not run_only:
        path.write_text("".join(f"{name}\n" for name in sorted(exported)),
                        encoding="utf-8")
    listed = set(path.read_text(encoding="utf-8").split())
    in_headers = declared(source, build)
    for name in sorted(listed - in_headers):
        problems.append(f"{path} lists {name}, which no header declares")
    for name in sorted(in_headers - listed):
        problems.append(f"a header declares {name}, which {path} lacks")
    for name in sorted(exported - listed):
        problems.append(f"libpestle.so exports {name}, which {path} lacks")
    # A run-only build has no compiler in it.
    for name in sorted(listed - exported) if not run_only else []:
        problems.append(f"libpestle.so does not export {name} of {path}")


def exits(source):
    """The library's files that call _exit(), but for the one that may."""
    for folder in ("base", "ir", "frontend", "transform", "passes", "codegen", "runtime"):
        for path in sorted((source / folder).rglob("*.c")):
            name = path.relative_to(source).as_posix()
            text = path.read_text(encoding="utf-8")
            if name != MAY_EXIT and re.search(r"\b_exit\(", text):
                yield f"{name} calls _exit"


def check_library(source, build, problems):
    library = build / "libpestle.so"
    if soname(library) != "libpestle.so.0":
        problems.append(f"the SONAME is {soname(library)!r}")
    defined = {name for kind, name in symbols(library, "--defined-only")
               if kind != "A"}
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    run_only = "PESTLE_RUNTIME_ONLY:BOOL=ON" in cache
    check_exports(source, build, defined, run_only, problems)
    for _, name in symbols(library, "--undefined-only"):
        if name in FORBIDDEN - {"_exit"}:
            problems.append(f"libpestle.so calls {name}")
    problems += exits(source)
    for name in needed(library):
        if not NEEDED.match(name):
            problems.append(f"libpestle.so needs {name}")
    for name in sorted(mutable_globals(library)):
        problems.append(f"libpestle.so has a mutable global: {name}")
    if "CMAKE_BUILD_TYPE:STRING=Release" in cache:
        stripped = build / "libpestle-stripped.so"
        run("strip", "-o", str(stripped), str(library))
        size = stripped.stat().st_size
        print(f"libpestle.so stripped: {size} bytes")
        if size >= MAX_STRIPPED_SIZE:
            problems.append(f"libpestle.so has {size} bytes when stripped, "
                            f"allowed are {MAX_STRIPPED_SIZE}")
        stripped.unlink()


def check_plugin(path, problems):
    for kind, name in symbols(path, "--defined-only"):
        if kind != "A" and name not in PLUGIN_EXPORTS:
            problems.append(f"{path.name} exports {name}")
    exported = {name for _, name in symbols(path, "--defined-only")}
    for name in ("pestle_backend_abi_info", "pestle_backend_init"):
        if name not in exported:
            problems.append(f"{path.name} does not export {name}")
    for _, name in symbols(path, "--undefined-only"):
        if name in FORBIDDEN and path.name not in WITH_TOOLCHAIN:
            problems.append(f"{path.name} calls {name}")
        if name.startswith("pestle_"):
            problems.append(f"{path.name} links against the host: {name}")
    for name in needed(path):
        toolchain = path.name in WITH_TOOLCHAIN and TOOLCHAIN_NEEDS.match(name)
        if not NEEDED.match(name) and not toolchain:
            problems.append(f"{path.name} needs {name}")


def main():
    source, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    problems = []
    check_library(source, build, problems)
    for plugin in sorted((build / "backends").glob("libpestle-*.so")):
        check_plugin(plugin, problems)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
