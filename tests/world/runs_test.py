#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans on several processes: right results, the same bits by sockets, by shared memory
and each time, by the command and by the library."""
import json
import pathlib
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    sys.exit(77)

from ranks import PESTLE, RANK, World, beside, model


def expected(n, size, steps, scale=np.float32(0.3)):
    """In the order of the ranks, rounded after each addition."""
    values = [((np.arange(size) % 97 - 48).astype(np.float32) /
               np.float32(3 + rank)) for rank in range(n)]

    def fold(parts):
        out = parts[0]
        for part in parts[1:]:
            out = out + part
        return out * scale
    for _ in range(steps):
        first = fold(values)
        values = [fold([first] * n)] * n
    return values[0]


def fnv(data):
    value = 14695981039346656037
    for byte in data:
        value = ((value ^ byte) * 1099511628211) % 2**64
    return value


def runs(folder, n, size, steps, **more):
    path = folder / f"m{n}_{size}.mlir"
    path.write_text(model(n, size))
    with World([[RANK, path, steps]] * n, **more) as world:
        world.wait_ready()
        ends = world.ends()
    want = f"done {fnv(expected(n, size, steps).tobytes()):016x}\n"
    for i, (code, text, _) in ends.items():
        assert (code, text) == (0, want), (n, size, more, i, code, text, want)


def same_bits(folder):
    # Below and above what one round does, with parts of unequal sizes.
    for n, size in ((2, 5), (2, 40001), (3, 1000), (4, 7), (4, 30011), (8, 517)):
        for shared in (0, 1):
            runs(folder, n, size, 3, PESTLE_WORLD_SHM=shared)


def twenty_runs(folder):
    for i in range(20):
        runs(folder, 4, 3001, 2, PESTLE_WORLD_SHM=i % 2)


def has_thread(rank):
    names = pathlib.Path(f"/proc/{rank.pid}/task").glob("*/comm")
    return any(name.read_text().strip() == "pestle progress" for name in names)


def beside_kernels(folder):
    """A thread does sums while kernels run: the same bits, and each time."""
    seen = set()
    for n, rows in ((2, 600), (3, 400)):
        path = folder / f"beside{n}.mlir"
        path.write_text(beside(n, rows))
        seen = set()
        for i in range(20):
            with World([[RANK, path, 4]] * n, PESTLE_WORLD_SHM=i % 2,
                       PESTLE_WORLD_OVERLAP=int(i > 3)) as world:
                ends = world.ends()
            assert all(code == 0 for code, _, _ in ends.values()), ends
            seen |= {text.replace("ready\n", "") for _, text, _ in ends.values()}
        assert len(seen) == 1, (n, seen)
    for overlap in (0, 1):
        with World([[RANK, path, 1000000]] * n, PESTLE_WORLD_OVERLAP=overlap) as world:
            world.wait_ready()
            while overlap and not all(has_thread(rank) for rank in world.ranks):
                time.sleep(0.01)
            assert overlap or not any(has_thread(rank) for rank in world.ranks)


def command(folder):
    """Each rank reads its own input and writes its own output."""
    n, size = 4, 1000
    path = folder / "command.mlir"
    path.write_text(model(n, size))
    values = [np.random.default_rng(i).standard_normal(size, np.float32)
              for i in range(n)]
    for i, value in enumerate(values):
        np.save(folder / f"in{i}.npy", value)
        (folder / f"out{i}").mkdir()
    line = [PESTLE, "run", path, "--input", f"a={folder}/in{{rank}}.npy",
            "--outputs", f"{folder}/out{{rank}}"]
    with World([line] * n) as world:
        for i, (code, text, _) in world.ends().items():
            assert code == 0, (i, text)
    k = np.float32(0.3)
    first = (((values[0] + values[1]) + values[2]) + values[3]) * k
    want = (((first + first) + first) + first) * k
    for i in range(n):
        got = np.load(folder / f"out{i}" / "output_0.npy")
        assert np.array_equal(got, want), i
    # Each has the model in a folder of its own.
    own = []
    for i in range(n):
        copy = folder / f"out{i}" / f"model{i}.mlir"
        copy.write_text(path.read_text())
        own.append([*line[:2], copy, *line[3:]])
    with World(own) as world:
        for i, (code, text, _) in world.ends().items():
            assert code == 0, (i, text)
    # A rank's trace has what it ran.
    traced = [[*line, "--trace", folder / f"trace{i}.json"] for i in range(n)]
    with World(traced) as world:
        assert all(code == 0 for code, _, _ in world.ends().values())
    for i in range(n):
        events = json.loads((folder / f"trace{i}.json").read_text())["traceEvents"]
        assert sum(e.get("cat") == "collective" for e in events) == 2, (i, len(events))
    # Alone it says what it lacks; in a world of another size too.
    with World([line[:4] + ["a=1000xf32=1"]] * 2) as world:
        for code, text, _ in world.ends().values():
            assert code and "is for 4 processes, and the world" in text, text


def main():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        same_bits(folder)
        twenty_runs(folder)
        beside_kernels(folder)
        command(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
