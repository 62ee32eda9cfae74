#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each call to the system that concerns the cache, a plan file or the loader's folder
fails in turn, by tests/robust/io_fault.c: EIO, ENOSPC, EINTR, ENOMEM, short counts.

Whatever fails: no signal; a run that uses the cache succeeds with the right result; one
that saves or loads a plan succeeds, or ends with a sentence and leaves the file that was
there; no temporary file stays, but where removing it is what failed; and the second run
after it finds its entry again. Where a plan is saved, the file is synced before it gets
its name and the folder behind it. Prints one JSON line of counts.

    io_faults.py [--part I/N] [--stop SECONDS] [--only SCENARIO]
"""

import argparse
import errno
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import cache_torture  # noqa: E402

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
PROGRAM = os.environ.get("PESTLE_PROGRAM", str(BUILD / "pestle"))
SHIM = str(BUILD / "tests/bin/libpestle_io_fault.so")
HOWS = {
    "open": ("EIO", "EINTR", "EMFILE", "EACCES"),
    "create": ("EIO", "EINTR", "ENOSPC", "EROFS"),
    "read": ("EIO", "EINTR", "short"),
    "write": ("EIO", "EINTR", "ENOSPC", "short"),
    "fsync": ("EIO", "ENOSPC"),
    "close": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "mmap": ("ENOMEM", "EIO"),
    "flock": ("EIO", "EINTR", "ENOLCK"),
    "fstat": ("EIO",),
    "utimensat": ("EIO",),
    "opendir": ("EIO", "EMFILE"),
}


class Failure(Exception):
    pass


class Scenario:
    """A folder as it is before, a command that works in it, and what must hold."""

    def __init__(self, work, name):
        self.name, self.work = name, work
        self.folder = work / "now"
        self.before = work / f"before-{name}"
        self.out = work / "out"
        self.torture = cache_torture.Torture(work, {}, None)
        self.prepare()

    def run(self, *words, shim=None):
        env = {**os.environ, "PESTLE_BACKEND_PATH": self.backends()}
        if shim is not None:
            env.update({"LD_PRELOAD": SHIM, "PESTLE_IO_FOLDER":
                        str(self.folder), **shim})
        return subprocess.run([PROGRAM, *words], capture_output=True,
                              text=True, env=env, check=False, timeout=600,
                              errors="replace")

    def backends(self):
        if self.name == "loader":
            return str(self.folder)
        return os.environ.get("PESTLE_BACKEND_PATH", str(BUILD / "backends"))

    def words(self):
        """The command that meets the fault."""
        model = str(self.torture.models[0])
        plan = str(self.folder / "m.plan")
        if self.name == "save":
            return ["compile", model, "-o", plan, "--device", "ref",
                    "--no-cache"]
        what = plan if self.name == "load" else model
        cache = (["--no-cache"] if self.name in ("load", "loader") else
                 ["--cache-dir", str(self.folder)])
        return ["run", what, "--input", "x=4x64xf32=1", "--outputs",
                str(self.out), "--log", "debug", "--threads", "1", "--device",
                "ref", *cache]

    def prepare(self):
        self.folder.mkdir(exist_ok=True)
        if self.name in ("warm", "damaged", "load"):
            if self.name == "load":
                self.must(self.run("compile", str(self.torture.models[0]),
                                   "-o", str(self.folder / "m.plan"),
                                   "--device", "ref", "--no-cache"))
            else:
                self.must(self.run(*self.words()))
        if self.name == "damaged":
            for path in cache_torture.plans_in(self.folder):
                data = bytearray(path.read_bytes())
                data[-1] ^= 1
                path.write_bytes(data)
        if self.name == "save":  # an older plan is there
            self.must(self.run("compile", str(self.torture.models[1]), "-o",
                               str(self.folder / "m.plan"), "--device", "ref",
                               "--no-cache"))
        if self.name == "loader":
            for path in (BUILD / "backends").glob("libpestle-metal*.so"):
                shutil.copy(path, self.folder)
        if self.name == "cold":
            self.folder.rmdir()
        else:
            shutil.copytree(self.folder, self.before, copy_function=os.link)

    def restore(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.out, ignore_errors=True)
        if self.before.exists():
            shutil.copytree(self.before, self.folder)
            self.folder.chmod(0o700)

    def must(self, done):
        if done.returncode:
            raise Failure(f"exit code {done.returncode}: {done.stderr}")

    def calls(self):
        """What the command asks of the system, in order, and its paths."""
        self.restore()
        trace = self.work / "trace"
        trace.unlink(missing_ok=True)
        self.must(self.run(*self.words(), shim={"PESTLE_IO_TRACE": str(trace)}))
        text = trace.read_text() if trace.exists() else ""
        calls = [line.split(" ", 1) for line in text.splitlines()]
        if self.name == "save":
            self.check_order(calls)
        return calls

    def check_order(self, calls):
        """Synced, named, and the folder synced: a crash loses no plan."""
        named = next(i for i, (op, _) in enumerate(calls) if op == "rename")
        if not any(op == "fsync" and ".tmp-" in path
                   for op, path in calls[:named]):
            raise Failure("a plan gets its name before it is synced")
        if not any(op == "fsync" for op, _ in calls[named:]):
            raise Failure("the folder of a plan is not synced")

    def check_result(self, index=0):
        path = self.out / "output_0.npy"
        data = path.read_bytes()
        if data[-4 * 64 * 4:] != self.torture.expected(index):
            raise Failure("a wrong result")
        path.unlink()

    def check(self, done, op):
        if done.returncode < 0:
            raise Failure(f"signal {-done.returncode}")
        uses_cache = self.name in ("cold", "warm", "damaged")
        if done.returncode and uses_cache:
            raise Failure(f"exit code {done.returncode}: {done.stderr[-400:]}")
        if done.returncode and "pestle: error: " not in done.stderr:
            raise Failure(f"no sentence: {done.stderr[-400:]}")
        if not done.returncode and self.name != "save":
            self.check_result()
        left = [p.name for p in self.folder.glob("*.tmp-*")]
        if left and op != "unlink":
            raise Failure(f"left over: {left}")
        if self.name == "save":
            self.check_saved(done)
        if uses_cache:
            self.check_healed(left)

    def check_saved(self, done):
        again = self.run("run", str(self.folder / "m.plan"), "--input",
                         "x=4x64xf32=1", "--outputs", str(self.out),
                         "--device", "ref", "--no-cache")
        self.must(again)
        self.check_result(1 if done.returncode else 0)

    def check_healed(self, left):
        self.must(self.run(*self.words()))
        self.check_result()
        done = self.run(*self.words())
        self.must(done)
        self.check_result()
        if cache_torture.HIT not in done.stderr:
            raise Failure(f"the entry is lost: {done.stderr[-600:]}")
        if not left:
            return
        # What could not be removed is found by who looks after the cache.
        self.must(self.run("cache", "prune", "--cache-dir", str(self.folder)))
        if list(self.folder.glob("*.tmp-*")):
            raise Failure("a temporary file is not found again")


def one_way(faults):
    """Of each call one of its faults: of the calls of one kind each takes the next."""
    seen, calls = {}, {}
    for number, op, how in faults:
        calls.setdefault((number, op), []).append(how)
    for (number, op), hows in calls.items():
        at = seen[op] = seen.get(op, -1) + 1
        yield number, op, hows[at % len(hows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--stop", type=float, default=1e9)
    parser.add_argument("--only", default="")
    parser.add_argument("--one-way", action="store_true",
                        help="each call fails in one way, of its kind in turn")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    begin, counts, failed = time.monotonic(), {}, []
    with tempfile.TemporaryDirectory(prefix="pestle-io-") as folder:
        for name in ("cold", "warm", "damaged", "save", "load", "loader"):
            if options.only not in ("", name):
                continue
            work = pathlib.Path(folder, name)
            work.mkdir()
            try:
                scenario = Scenario(work, name)
                calls = scenario.calls()
            except Failure as failure:
                failed.append(f"{name}: {failure}")
                continue
            faults = [(i + 1, op, how) for i, (op, _) in enumerate(calls)
                      for how in HOWS[op]]
            if options.one_way:
                faults = one_way(faults)
            for at, (number, op, how) in enumerate(faults):
                if at % parts != part - 1:
                    continue
                if time.monotonic() - begin > options.stop:
                    break
                scenario.restore()
                value = how if how == "short" else getattr(errno, how)
                done = scenario.run(*scenario.words(), shim={
                    "PESTLE_IO_FAULT": f"{number}:{value}"})
                counts[name] = counts.get(name, 0) + 1
                try:
                    scenario.check(done, op)
                except (Failure, OSError) as failure:
                    failed.append(f"{name}: call {number}, {op}, {how}: "
                                  f"{failure}")
    for text in failed:
        print(f"FAILED {text}")
    print(json.dumps({"faults": sum(counts.values()), **counts,
                      "failed": len(failed)}))
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
