#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The power goes at each moment of a run: what was not synced is lost, in part or whole.

tests/robust/io_fault.c records what a run writes, syncs, names and removes. From that this
script makes the disks that a power loss after each of these calls may leave. POSIX
promises no more than this:

  * bytes of a file last once the file is synced; before, of those that are new there may
    be none, half, all, all as zeros, or all but one sector of zeros;
  * names in a folder (made, renamed, removed) last once the folder is synced; before, any
    of them may have lasted, and others that came before not.

On each disk that is left: a cache gives every run the right result, and the second run
finds its entry; a plan that is saved is the old one or the new, and the new one once the
command has said so. Prints one JSON line of counts.

    power_loss.py [--part I/N] [--stop SECONDS] [--only SCENARIO] [--sample COUNT]
                  [--random SEED]

With --random, disks are chosen until the time is over: any names that were not synced,
and each file cut anywhere or with any sectors of zeros.
"""

import argparse
import itertools
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cache_torture  # noqa: E402
import io_faults  # noqa: E402

SCENARIOS = ("save", "first", "cold", "second", "damaged")
SECTOR = 512
EVERY_SUBSET = 6  # of so many names that are not synced, each subset is a disk


class File:
    """The bytes that last, and those that a process would read."""

    def __init__(self, data=b""):
        self.synced = bytes(data)
        self.now = bytes(data)

    def versions(self):
        """What the disk may have of it."""
        new, size = self.now, len(self.now)
        if new == self.synced:
            return [new]
        middle = size // 2 // SECTOR * SECTOR
        return list(dict.fromkeys([
            new, self.synced, new[:size // 2], bytes(size),
            new[:middle] + bytes(min(SECTOR, size - middle))
            + new[middle + SECTOR:]]))

    def chance_version(self, chance):
        new = self.now
        if new == self.synced or chance.random() < 0.3:
            return new
        if chance.random() < 0.2:
            return self.synced
        data = bytearray(new[:chance.randrange(len(new) + 1)]
                         if chance.random() < 0.5 else new)
        for at in range(0, len(data), SECTOR):
            if chance.random() < 0.1:
                data[at:at + SECTOR] = bytes(len(data[at:at + SECTOR]))
        return bytes(data)


class Disk:
    """Names and files; names that are not synced are a list of changes."""

    def __init__(self, folder):
        self.root = str(folder)
        self.names = {}     # that last: path -> File, or None for a folder
        self.changes = []   # (folder, {path -> File, None or GONE})
        self.now = {}       # as processes see it
        self.open = {}      # number of an open -> path or File
        if folder.exists():
            self.names[self.root] = None
            for path in sorted(folder.rglob("*")):
                self.names[str(path)] = (None if path.is_dir()
                                         else File(path.read_bytes()))
        self.now = dict(self.names)

    def change(self, names):
        """|names|: what each of these paths is from now on; GONE: nothing."""
        folder = os.path.dirname(next(iter(names)))
        self.changes.append((folder, names))
        apply(self.now, names)

    def call(self, what, number, path, other, data):
        if what in ("open", "create", "empty"):
            if what != "open" and path not in self.now:
                self.change({path: File()})
            file = self.now.get(path)
            self.open[number] = path if file is None else file
            if what == "empty" and file:
                file.now = b""
        elif what == "write":
            self.open[number].now += data
        elif what == "fsync" and isinstance(self.open[number], File):
            self.open[number].synced = self.open[number].now
        elif what == "fsync":
            self.sync_folder(self.open[number])
        elif what == "rename":
            self.change({other: self.now[path], path: GONE})
        elif what == "mkdir":
            self.change({path: None})
        else:
            self.change({path: GONE})

    def sync_folder(self, folder):
        for where, names in self.changes:
            if where == folder:
                apply(self.names, names)
        self.changes = [one for one in self.changes if one[0] != folder]

    def namings(self):
        """What names may be there after a power loss."""
        changes = [names for _, names in self.changes]
        count = len(changes)
        if count <= EVERY_SUBSET:
            kept = itertools.product((False, True), repeat=count)
        else:
            kept = [*([i < n for i in range(count)] for n in range(count + 1)),
                    *([i != n for i in range(count)] for n in range(count)),
                    *([i == n for i in range(count)] for n in range(count))]
        for choice in kept:
            names = dict(self.names)
            for one, is_kept in zip(changes, choice):
                if is_kept:
                    apply(names, one)
            yield names

    def chance_state(self, chance):
        names = dict(self.names)
        for _, one in self.changes:
            if chance.random() < 0.7:
                apply(names, one)
        return {path: file and file.chance_version(chance)
                for path, file in names.items()}

    def states(self):
        """All disks that a power loss now may leave: path -> bytes, None: folder."""
        for names in self.namings():
            torn = [path for path, file in names.items()
                    if file and len(file.versions()) > 1]
            whole = {path: file and file.now for path, file in names.items()}
            yield whole
            # All files alike, and each alone.
            for kind in range(1, 5):
                for some in {tuple(torn), *((path,) for path in torn)}:
                    yield {**whole, **{
                        path: names[path].versions()[
                            min(kind, len(names[path].versions()) - 1)]
                        for path in some}}


GONE = object()


def apply(names, changes):
    for path, what in changes.items():
        if what is GONE:
            names.pop(path, None)
        else:
            names[path] = what


def read_record(path):
    """(what, number, path, other, data) for each call."""
    text, at = path.read_bytes() if path.exists() else b"", 0
    while at < len(text):
        end = text.index(b"\n", at)
        what, number, size, name, other = text[at:end].split(b"\0")
        size = int(size)
        yield (what.decode(), int(number), os.fsdecode(name),
               os.fsdecode(other), text[end + 1:end + 1 + size])
        at = end + 1 + size


class Scenario(io_faults.Scenario):
    """One of io_faults.py's: a folder as it is before, and a command."""

    def record(self):
        """The folder as it was, and the calls that changed it."""
        self.restore()
        disk = Disk(self.folder)
        record = self.work / "record"
        self.must(self.run(*self.words(), shim={"PESTLE_IO_RECORD":
                                                str(record)}))
        calls = list(read_record(record))
        record.unlink(missing_ok=True)
        if not any(call[0] == "write" for call in calls):
            raise io_faults.Failure("nothing was recorded")
        return disk, calls

    def disks(self):
        """Each disk once, and whether the command had ended by then."""
        disk, calls = self.record()
        seen = {}
        for i, call in enumerate(calls):
            disk.call(*call)
            for state in disk.states():
                key = tuple(sorted(state.items()))
                # At the end is the strictest: it comes last.
                seen[key] = i == len(calls) - 1
        return [(dict(key), is_end) for key, is_end in seen.items()]

    def chance_disks(self, chance):
        while True:
            disk, calls = self.record()
            end = chance.randrange(1, len(calls) + 1)
            for call in calls[:end]:
                disk.call(*call)
            for _ in range(20):
                yield disk.chance_state(chance), end == len(calls)

    def prepare(self):
        if self.name == "second":  # the plan of another model is there
            self.folder.mkdir()
            self.must(self.run(*self.torture.command(
                1, self.folder, ("--device", "ref"), self.out)[1:]))
        super().prepare()

    def put(self, state):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.out, ignore_errors=True)
        for path, data in sorted(state.items()):
            path = pathlib.Path(path)
            if not path.parent.is_dir():
                continue  # its folder was lost with it
            if data is None:
                path.mkdir(mode=0o700)
            else:
                path.write_bytes(data)
                path.chmod(0o600)

    def check_disk(self, state, is_end):
        self.put(state)
        if self.name not in ("save", "first"):
            self.check_healed([])
            return
        plan = self.folder / "m.plan"
        if not plan.exists():
            if self.name == "save" or is_end:
                raise io_faults.Failure("the plan is lost")
            return
        self.must(self.run("run", str(plan), "--input", "x=4x64xf32=1",
                           "--outputs", str(self.out), "--device", "ref",
                           "--no-cache"))
        result = (self.out / "output_0.npy").read_bytes()[-4 * 64 * 4:]
        allowed = [0] if is_end or self.name == "first" else [0, 1]
        if result not in [self.torture.expected(i) for i in allowed]:
            raise io_faults.Failure("neither the new plan nor the old one")

    def words(self):
        if self.name != "first":
            return super().words()
        return ["compile", str(self.torture.models[0]), "-o",
                str(self.folder / "m.plan"), "--device", "ref", "--no-cache"]


def describe(state, root):
    return ", ".join(f"{os.path.relpath(path, root)} "
                     f"{'folder' if data is None else len(data)}"
                     for path, data in sorted(state.items()))


def chosen(scenario, options):
    if options.random is not None:
        return scenario.chance_disks(random.Random(options.random))
    disks = scenario.disks()
    if options.sample and len(disks) > options.sample:
        disks = random.Random(1).sample(disks, options.sample)
    part, parts = map(int, options.part.split("/"))
    return disks[part - 1::parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--stop", type=float, default=1e9)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--random", type=int)
    options = parser.parse_args()
    names = [name for name in SCENARIOS if options.only in ("", name)]
    counts, failed = {}, []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pestle-power-") as folder:
        for i, name in enumerate(names):
            work = pathlib.Path(folder, name)
            work.mkdir()
            # Each has its share of the time.
            stop = begin + options.stop * (i + 1) / len(names)
            try:
                scenario = Scenario(work, name)
                for state, is_end in chosen(scenario, options):
                    if time.monotonic() > stop:
                        break
                    counts[name] = counts.get(name, 0) + 1
                    try:
                        scenario.check_disk(state, is_end)
                    except (io_faults.Failure, OSError) as failure:
                        failed.append(
                            f"{name}: {describe(state, scenario.folder)}: "
                            f"{failure}")
            except io_faults.Failure as failure:
                failed.append(f"{name}: {failure}")
    for text in failed:
        print(f"FAILED {text}")
    print(json.dumps({"disks": sum(counts.values()), **counts,
                      "failed": len(failed)}))
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
