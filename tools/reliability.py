#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trust, in figures: runs what docs/reliability.md states and counts it.

    tools/reliability.py run [LINE..] --minutes 9 --workers 2 --out runs.json
    tools/reliability.py pack [LINE..] -o trust.tar.xz     for another machine
    tools/reliability.py merge runs.json ..                keeps the counts
    tools/reliability.py report                            writes the page's table
    tools/reliability.py coverage --write                  branches that tests take
    tools/reliability.py mutate --count 60 --out m.json    mutants that tests kill
    tools/reliability.py list

A line is one promise: what is counted, and how many are asked for. `run` gives
workers jobs of a minute or so of the line that is furthest from its count, keeps in
--state what was done (a second call goes on behind the first, with other seeds), and
prints one JSON of counts. Its exit code is 1 when anything failed; what failed lies in
--state. --goal LINE=COUNT asks for another count, --first N gives the first job of a
state another seed. PESTLE_RELEASE and PESTLE_FUZZ name the builds (build/release, build/fuzz),
PESTLE_MODELS a folder of ONNX files (models); in an unpacked pack they are found beside
this file. Needs Python alone.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import platform
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "reliability"))
import lines  # noqa: E402
import page  # noqa: E402


def cpu_name():
    for text in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            return " ".join(text.split(":", 1)[1].split())
    return platform.machine()


class Work:
    """The jobs that are done and those that run, and what they counted."""

    def __init__(self, place, chosen, options):
        self.place, self.options = place, options
        self.lock = threading.Lock()
        self.end = time.monotonic() + options.minutes * 60
        self.path = options.state / "progress.json"
        self.past = (json.loads(self.path.read_text())
                     if self.path.exists() else {})
        self.lines = chosen
        self.now = {line.name: {"count": 0, "failures": 0, "seconds": 0.0,
                                "jobs": 0} for line in chosen}
        self.running = {line.name: 0 for line in chosen}
        self.parts = {line.name: line.parts(place) for line in chosen}
        self.running_parts = collections.Counter()
        self.goals = {line.name: line.goal for line in chosen}
        self.goals.update(options.goal)

    def progress(self, line):
        """How far it is, running jobs counted as what jobs gave so far."""
        past = self.past.get(line.name, {"count": 0, "jobs": 0})
        jobs = max(past["jobs"] - self.running[line.name], 0)
        each = past["count"] / jobs if jobs else 0
        return ((past["count"] + each * self.running[line.name])
                / self.goals[line.name], self.running[line.name])

    def next_part(self, line, past):
        """The part that is furthest behind, running jobs counted as above; or ""."""
        def so_far(part):
            done = past.get("parts", {}).get(part, {"count": 0, "jobs": 0})
            running = self.running_parts[line.name, part]
            each = done["count"] / done["jobs"] if done["jobs"] else 0
            return done["count"] + each * running, running
        return min(self.parts[line.name], key=so_far, default="")

    def next(self):
        """A line and its next job; or None."""
        with self.lock:
            left = self.end - time.monotonic()
            open_lines = [line for line in self.lines
                          if self.running[line.name] < line.side_by_side]
            if left < 5 or not open_lines:
                return None
            line = min(open_lines, key=self.progress)
            self.running[line.name] += 1
            past = self.past.setdefault(line.name, {"count": 0, "jobs": 0})
            past["jobs"] += 1
            part = self.next_part(line, past)
            self.running_parts[line.name, part] += 1
            return line, lines.Job(
                self.place, self.options.state / line.name,
                self.options.first + past["jobs"] - 1, min(left, line.seconds),
                self.options.fault, part)

    def keep(self, line, job, count, failures, worst, seconds):
        past, now = self.past[line.name], self.now[line.name]
        self.running[line.name] -= 1
        past["count"] += count
        now["count"] += count
        now["failures"] += failures
        now["jobs"] += 1
        now["seconds"] = round(now["seconds"] + seconds, 1)
        if not job.part:
            return
        self.running_parts[line.name, job.part] -= 1
        done = past.setdefault("parts", {}).setdefault(
            job.part, {"count": 0, "jobs": 0})
        done["count"] += count
        done["jobs"] += 1
        mine = now.setdefault("parts", {}).setdefault(
            job.part, {"count": 0, "worst_ms": 0.0})
        mine["count"] += count
        mine["worst_ms"] = max(mine["worst_ms"], worst)

    def one(self, line, job):
        folder, seconds = job.folder, job.seconds
        folder.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        try:
            done = subprocess.run(
                line.command(job), env={**os.environ, **line.environment(job)},
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                cwd=folder, errors="replace", text=True,
                timeout=seconds * 4 + 900)
            count, failures = line.read(done.returncode, done.stdout)
            text = done.stdout
        except subprocess.TimeoutExpired as late:
            count, failures = 0, ["the job did not end"]
            text = str(late.stdout)
        if failures:
            log = folder / f"failed-{job.number}.log"
            log.write_text(text)
            print(f"{line.name}: {'; '.join(failures)}: {log}",
                  file=sys.stderr, flush=True)
        with self.lock:
            self.keep(line, job, count, len(failures), line.worst_ms(text),
                      time.monotonic() - begin)
            temporary = self.path.with_suffix(".new")
            temporary.write_text(json.dumps(self.past))
            temporary.rename(self.path)

    def worker(self):
        while True:
            got = self.next()
            if not got:
                return
            self.one(*got)

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(
                self.options.workers) as pool:
            jobs = [pool.submit(self.worker)
                    for _ in range(self.options.workers)]
            for job in jobs:
                job.result()
        return {name: counts for name, counts in self.now.items()
                if counts["jobs"]}


def run(options):
    place = lines.Place.find(HERE)
    chosen = lines.choose(options.lines)
    missing = [f"{line.name}: {path}" for line in chosen
               for path in line.needs(place) if not path.exists()]
    if missing:
        sys.exit("not built: " + "; ".join(missing))
    options.state = options.state.resolve()
    options.state.mkdir(parents=True, exist_ok=True)
    counts = Work(place, chosen, options).run()
    result = {"commit": place.commit(), "cpu": cpu_name(),
              "cores": os.cpu_count(), "workers": options.workers,
              "lines": counts}
    text = json.dumps(result)
    if options.out:
        old = (json.loads(options.out.read_text())
               if options.out.exists() else [])
        options.out.write_text(json.dumps([*old, result], indent=1) + "\n")
    print(text)
    return any(line["failures"] for line in counts.values())


def goal(text):
    name, _, count = text.partition("=")
    if name not in [line.name for line in lines.ALL]:
        raise argparse.ArgumentTypeError(f"no such line: {name}")
    return name, int(count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="what", required=True)
    one = commands.add_parser("run")
    one.add_argument("lines", nargs="*")
    one.add_argument("--minutes", type=float, default=9)
    one.add_argument("--workers", type=int, default=1)
    one.add_argument("--state", type=pathlib.Path,
                     default=pathlib.Path("reliability-state"))
    one.add_argument("--out", type=pathlib.Path)
    one.add_argument("--fault", default="")
    one.add_argument("--first", type=int, default=0)
    one.add_argument("--goal", type=goal, action="append", default=[],
                     metavar="LINE=COUNT")
    one = commands.add_parser("pack")
    one.add_argument("lines", nargs="*")
    one.add_argument("-o", "--out", type=pathlib.Path, required=True)
    one = commands.add_parser("merge")
    one.add_argument("files", nargs="+", type=pathlib.Path)
    commands.add_parser("report")
    one = commands.add_parser("coverage")
    one.add_argument("--build", type=pathlib.Path,
                     default=HERE.parent / "build/coverage",
                     help="a build by the preset of that name")
    one.add_argument("--tests", default="",
                     help="of these names alone; none: what was counted before")
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    one.add_argument("--fresh", action="store_true",
                     help="forgets what was counted before")
    one.add_argument("--write", action="store_true",
                     help="writes the page's table")
    one.add_argument("--missing", nargs="+", metavar="FILE",
                     help="branches of these files that were not taken")
    one.add_argument("--conditions", nargs="+", metavar="FILE",
                     help="conditions of these files that were not seen to decide")
    one = commands.add_parser("mutate")
    one.add_argument("files", nargs="*", help="patterns, or names of parts")
    one.add_argument("--build", type=pathlib.Path,
                     default=HERE.parent / "build/release")
    one.add_argument("--count", type=int, default=60, help="of each part")
    one.add_argument("--seed", type=int, default=1)
    one.add_argument("--jobs", type=int, default=os.cpu_count())
    one.add_argument("--out", type=pathlib.Path,
                     help="a row each; what it has is not done again")
    commands.add_parser("list")
    options = parser.parse_args()
    if options.what == "run":
        return run(options)
    if options.what == "pack":
        import pack
        return pack.make(options, lines.Place.find(HERE))
    if options.what == "merge":
        return page.merge(options.files)
    if options.what == "report":
        return page.write()
    if options.what == "mutate":
        import mutate
        return mutate.main(options)
    if options.what == "coverage":
        import coverage
        return coverage.main(options)
    for line in lines.ALL:
        print(f"{line.name:20} {line.goal:>12,} {line.unit}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
