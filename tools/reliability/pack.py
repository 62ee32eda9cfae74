# SPDX-License-Identifier: Apache-2.0
"""What lines need on a machine that has Python and nothing else of ours: programs
without debug information, corpora, the libraries that they are linked to, and these
scripts, as one .tar.xz."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import hollow
import lines

# Of the C library: every machine has its own, and a program may not mix two.
SYSTEM = re.compile(r"^(libc|libm|libdl|libpthread|librt|libresolv|ld-linux.*)"
                    r"\.so")
RUNNER = """#!/bin/sh
# Runs what lies here: ./run.sh [LINE..] --workers 26 --minutes 9
here=$(cd "$(dirname "$0")" && pwd)
[ ! -d "$here/models" ] || python3 "$here/reliability/hollow.py" "$here/models"
export LD_LIBRARY_PATH="$here/lib:$here/release:$LD_LIBRARY_PATH"
exec python3 "$here/reliability.py" run --state "$here/state" "$@"
"""


def libraries(program):
    """Paths of what |program| is linked to, less the system's."""
    done = subprocess.run(["ldd", str(program)], capture_output=True,
                          text=True, check=False)
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", done.stdout, re.M):
        if not SYSTEM.match(name):
            yield name, pathlib.Path(path)


def add_llvm(place, folder):
    """The LLVM for x86-64 alone, which the backend opens where it lies beside it."""
    core = place.release / "plugins/llvm/libpestle-llvm-core.so.19"
    if not core.exists():
        subprocess.run(["cmake", "--build", str(place.release), "--target",
                        "pestle_llvm_core"], check=True)
    put(core, folder / "release/backends" / core.name, strip=True)
    for name, library in libraries(core):
        put(library, folder / "lib" / name, strip=True)


def put(source, target, strip):
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
        return
    shutil.copy(source, target)
    if strip:
        subprocess.run(["strip", "--strip-debug", str(target)], check=False,
                       stderr=subprocess.DEVNULL)


def put_model(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_suffix(".hollow").write_bytes(hollow.pack(source.read_bytes()))


def where(place, path):
    """Its place in a pack."""
    for name, base in (("release", place.release), ("fuzz", place.fuzz),
                       ("models", place.models)):
        if path.is_relative_to(base):
            return pathlib.Path(name) / path.relative_to(base)
    return path.relative_to(place.root)


def fill(folder, place, chosen):
    for line in chosen:
        for path in [*line.needs(place), *line.files(place)]:
            target = folder / where(place, path)
            if target.exists() or path == place.models:
                continue
            if path.parent == place.models:
                put_model(path, target)
                continue
            put(path, target, strip=True)
            if not path.is_dir() and os.access(path, os.X_OK):
                for name, library in libraries(path):
                    if not library.is_relative_to(place.release):
                        put(library, folder / "lib" / name, strip=True)
    if any(line.uses_llvm for line in chosen):
        add_llvm(place, folder)
    here = pathlib.Path(__file__).resolve().parent
    shutil.copy(here.parent / "reliability.py", folder)
    (folder / "reliability").mkdir()
    for path in here.glob("*.py"):
        shutil.copy(path, folder / "reliability")
    (folder / "commit").write_text(place.commit() + "\n")
    (folder / "run.sh").write_text(RUNNER)
    (folder / "run.sh").chmod(0o755)


def make(options, place):
    chosen = lines.choose(options.lines)
    with tempfile.TemporaryDirectory() as folder:
        whole = pathlib.Path(folder, "trust")
        whole.mkdir()
        fill(whole, place, chosen)
        subprocess.run(["tar", "-C", folder, "-cf", str(options.out.resolve()),
                        "--use-compress-program=xz -T2 -6", "trust"],
                       check=True)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB, "
          f"{', '.join(line.name for line in chosen)}")
    return 0
