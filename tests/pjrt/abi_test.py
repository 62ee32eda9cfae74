# SPDX-License-Identifier: Apache-2.0
"""Holds pjrt/abi.h against abi_facts.txt: the size of each struct, the offset and size
of each field, the value of each enum constant, as static assertions."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
SOURCE = pathlib.Path(os.environ.get("PESTLE_SOURCE_DIR", HERE.parent.parent))


def assertions(text):
    struct = None
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        if line.startswith("="):
            name, value = line[1:].split()
            yield f'_Static_assert((int){name} == {value}, "{name}");'
        elif not line.startswith(" "):
            struct, size = line.split()
            yield f'_Static_assert(sizeof({struct}) == {size}, "{struct}");'
        else:
            for fact in line.split():
                field, place = fact.split("@")
                offset, size = place.split(":")
                yield (f"_Static_assert(offsetof({struct}, {field}) == {offset}"
                       f' && sizeof((({struct}*)0)->{field}) == {size}, '
                       f'"{struct}.{field}");')


def main():
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if not compiler or sys.maxsize < 2**32:
        return 77
    lines = list(assertions((HERE / "abi_facts.txt").read_text()))
    if len(lines) < 1000:
        print(f"only {len(lines)} facts were read")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "facts.c")
        path.write_text('#include "pjrt/abi.h"\n' + "\n".join(lines) + "\n")
        done = subprocess.run(
            [compiler, "-std=c11", "-fsyntax-only", f"-I{SOURCE}", str(path)],
            check=False)
    print(f"{len(lines)} facts")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
