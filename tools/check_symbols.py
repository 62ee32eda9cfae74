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

MAX_STRIPPED_SIZE = 3_000_000
# A library never ends the process and never prints.
FORBIDDEN = {
    "abort", "exit", "_exit", "_Exit", "quick_exit", "__assert_fail",
    "printf", "puts", "putchar", "perror", "stdout", "stderr",
    "__printf_chk", "vprintf",
}
PLUGIN_EXPORTS = {
    "pestle_backend_abi_info", "pestle_backend_score", "pestle_backend_init",
}
# Only these may be needed; libm and libc are split on some systems.
NEEDED = re.compile(r"^(libc|libm|libdl|libpthread|ld-linux-x86-64|libgcc_s)"
                    r"\.so")


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


def writable_objects(path):
    """Names of the mutable variables in a library with a symbol table."""
    names = set()
    for line in run("nm", "--defined-only", str(path)).splitlines():
        _, kind, name = line.split(maxsplit=2)
        if kind in "bBD" or (kind == "d" and not name.startswith("_")):
            names.add(name)
    # The start-up code's own, one byte and a few pointers.
    return {n for n in names if not re.match(
        r"^(completed|completed\.\d+|_\w+|\.?TMC_END.*|dtor_.*)$", n)}


def relocated_only(path, names):
    """Drops tables of constant pointers: the loader makes them read-only."""
    sections = {}
    for line in run("objdump", "-t", str(path)).splitlines():
        parts = line.split()
        if len(parts) >= 5 and parts[-1] in names:
            sections[parts[-1]] = line
    return {n for n in names if ".data.rel.ro" not in sections.get(n, "")}


def check_exports(source, exported, run_only, problems):
    path = source / "tests" / "abi" / "exported_symbols.txt"
    if os.environ.get("BLESS") == "1" and not run_only:
        path.write_text("".join(f"{name}\n" for name in sorted(exported)),
                        encoding="utf-8")
    listed = set(path.read_text(encoding="utf-8").split())
    for name in sorted(exported - listed):
        problems.append(f"libpestle.so exports {name}, which {path} lacks")
    # A run-only build has no compiler in it.
    for name in sorted(listed - exported) if not run_only else []:
        problems.append(f"libpestle.so does not export {name} of {path}")


def check_library(source, build, problems):
    library = build / "libpestle.so"
    if soname(library) != "libpestle.so.0":
        problems.append(f"the SONAME is {soname(library)!r}")
    defined = {name for kind, name in symbols(library, "--defined-only")
               if kind != "A"}
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    run_only = "PESTLE_RUNTIME_ONLY:BOOL=ON" in cache
    check_exports(source, defined, run_only, problems)
    for _, name in symbols(library, "--undefined-only"):
        if name in FORBIDDEN:
            problems.append(f"libpestle.so calls {name}")
    for name in needed(library):
        if not NEEDED.match(name):
            problems.append(f"libpestle.so needs {name}")
    for name in sorted(relocated_only(library, writable_objects(library))):
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
        if name in FORBIDDEN:
            problems.append(f"{path.name} calls {name}")
        if name.startswith("pestle_"):
            problems.append(f"{path.name} links against the host: {name}")
    for name in needed(path):
        if not NEEDED.match(name):
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
