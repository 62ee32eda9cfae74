# SPDX-License-Identifier: Apache-2.0
"""The lines of docs/reliability.md: what one job of each runs, and how its output is
counted. A job is a process that ends by itself after about job.seconds."""

import dataclasses
import os
import pathlib
import re
import subprocess

FUZZ_TARGETS = ("onnx", "stablehlo", "bytecode", "ir", "plan", "dlpack", "gguf")


def git(root, *words):
    done = subprocess.run(["git", *words], cwd=root, capture_output=True,
                          text=True, check=False)
    return done.stdout.strip()


@dataclasses.dataclass
class Place:
    """Where programs lie: the builds of a tree, or an unpacked pack."""

    root: pathlib.Path
    release: pathlib.Path
    fuzz: pathlib.Path
    is_pack: bool

    @staticmethod
    def find(here):
        if (here / "commit").exists():
            return Place(here, here / "release", here / "fuzz", True)
        root = here.parent
        return Place(root,
                     pathlib.Path(os.environ.get("PESTLE_RELEASE",
                                                 root / "build/release")),
                     pathlib.Path(os.environ.get("PESTLE_FUZZ",
                                                 root / "build/fuzz")), False)

    @property
    def models(self):
        return pathlib.Path(os.environ.get("PESTLE_MODELS",
                                           self.root / "models"))

    def commit(self):
        """What was landed last of this tree."""
        if self.is_pack:
            return (self.root / "commit").read_text().strip()
        return (git(self.root, "merge-base", "HEAD", "main")
                or git(self.root, "rev-parse", "HEAD") or "unknown")[:12]


@dataclasses.dataclass
class Job:
    place: Place
    folder: pathlib.Path  # of the line, kept from run to run
    number: int           # no other job of the line has it
    seconds: float
    fault: str            # a planted one, "" for none
    part: str = ""        # of the line's parts, where it has any


class Line:
    """name, goal and unit; |seconds| of a job; how many jobs run at once."""

    seconds = 60
    side_by_side = 1 << 20
    uses_llvm = False

    def environment(self, job):
        return {"PESTLE_BUILD_DIR": str(job.place.release),
                "PESTLE_BACKEND_PATH": str(job.place.release / "backends"),
                "PESTLE_SOURCE_DIR": str(job.place.root),
                "PESTLE_CACHE_DIR": str(job.folder / f"cache-{job.number}"),
                **({"PESTLE_FAULT": job.fault} if job.fault else {})}

    def files(self, place):
        """What a pack of it has besides what needs() names."""
        return []

    def worst_ms(self, text):
        """The longest time that a job tells of, for lines that have parts."""
        return 0.0

    def parts(self, place):
        """Names; a job is of one of them, the one that was counted least."""
        return []


class Fuzz(Line):
    unit = "executions"
    goal = 10 ** 7

    def __init__(self, target):
        self.target = target
        self.name = f"fuzz-{target}"

    def program(self, place):
        return place.fuzz / "fuzz" / f"{self.target}_fuzz"

    def corpus(self, place):
        return place.root / "tests/fuzz/corpus" / self.target

    def needs(self, place):
        return [self.program(place)]

    def files(self, place):
        return [self.corpus(place)]

    def command(self, job):
        own = job.folder / "corpus"
        own.mkdir(exist_ok=True)
        return [str(self.program(job.place)),
                f"-max_total_time={int(job.seconds)}", "-timeout=60",
                "-rss_limit_mb=2048", "-print_final_stats=1",
                f"-seed={job.number + 1}",
                f"-artifact_prefix={job.folder}/{job.number}-", str(own),
                str(self.corpus(job.place))]

    def environment(self, job):
        return {**super().environment(job),
                "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:"
                                "detect_stack_use_after_return=1",
                "UBSAN_OPTIONS": "print_stacktrace=1"}

    def read(self, code, text):
        found = re.search(r"number_of_executed_units: (\d+)", text)
        count = int(found[1]) if found else 0
        if code == 0 and found:
            return count, []
        why = re.search(r"^(fuzz: .*|SUMMARY: .*|.*runtime error.*)$", text,
                        re.M)
        return count, [why[1] if why else f"exit code {code}"]


class Random(Line):
    unit = "graphs on llvm"
    goal = 100000
    name = "random-llvm"
    uses_llvm = True
    SHARD = 250

    def program(self, place):
        return place.release / "tests/bin/pestle-random"

    def needs(self, place):
        return [self.program(place)]

    def files(self, place):
        return sorted((place.release / "backends").glob("libpestle-llvm-*.so"))

    def command(self, job):
        first = job.number * self.SHARD + 1
        return [str(self.program(job.place)), "--device", "llvm", "--seeds",
                f"{first}..{first + self.SHARD - 1}", "--jobs", "1",
                "--timeout", "300"]

    def read(self, code, text):
        found = re.search(r": (\d+) graphs, .*; (\d+) differ, (\d+) crash",
                          text)
        if not found:
            return 0, [f"exit code {code}"]
        return int(found[1]), re.findall(r"^seed \d+ on .*$", text, re.M)


class Torture(Line):
    """tests/robust/cache_torture.py: kills, flips and cuts, full disks, folders of
    others."""

    uses_llvm = True

    def __init__(self, name, unit, goal, key, counts):
        self.name, self.unit, self.goal = name, unit, goal
        self.key, self.counts = key, counts

    def needs(self, place):
        return [place.release / "pestle"]

    def files(self, place):
        return [place.root / "tests/robust/cache_torture.py",
                place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-llvm-*.so"))]

    def command(self, job):
        code = (f"import sys; sys.path.insert(0, "
                f"{str(job.place.root / 'tests/robust')!r}); "
                f"import cache_torture as t; "
                f"t.main({self.counts!r}, {self.key!r})")
        return ["python3", "-c", code]

    def environment(self, job):
        return {**super().environment(job), "PESTLE_SEED": str(job.number),
                "LD_LIBRARY_PATH": str(job.place.release)}

    def read(self, code, text):
        found = re.search(rf'"{self.key}": (\d+)', text)
        last = text.strip().splitlines()[-1:] or [""]
        return int(found[1]) if found else 0, [last[0]] if code else []


class IoFaults(Line):
    """tests/robust/io_faults.py: a job takes an eighth of all."""

    name = "io-faults"
    unit = "failed calls to the system"
    goal = 1000
    PARTS = 8

    def needs(self, place):
        return [place.release / "pestle",
                place.release / "tests/bin/libpestle_io_fault.so"]

    def files(self, place):
        return [place.root / "tests/robust/cache_torture.py",
                place.root / "tests/robust/io_faults.py",
                place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-metal*.so"))]

    def command(self, job):
        return ["python3", str(job.place.root / "tests/robust/io_faults.py"),
                "--part", f"{job.number % self.PARTS + 1}/{self.PARTS}",
                "--stop", str(job.seconds)]

    def read(self, code, text):
        found = re.search(r'"faults": (\d+)', text)
        failed = re.findall(r"^FAILED (.*)$", text, re.M)
        if not found:
            failed.append(f"exit code {code}")
        return int(found[1]) if found else 0, failed


class PowerLoss(Line):
    """tests/robust/power_loss.py: the first jobs take a part of all disks, those behind
    them disks by chance."""

    name = "power-loss"
    unit = "disks after a power loss"
    goal = 10000
    PARTS = 4

    def needs(self, place):
        return [place.release / "pestle",
                place.release / "tests/bin/libpestle_io_fault.so"]

    def files(self, place):
        return [place.root / "tests/robust/cache_torture.py",
                place.root / "tests/robust/io_faults.py",
                place.root / "tests/robust/power_loss.py",
                place.release / "libpestle.so.0"]

    def command(self, job):
        words = (["--part", f"{job.number + 1}/{self.PARTS}"]
                 if job.number < self.PARTS else
                 ["--random", str(job.number), "--stop", str(job.seconds)])
        return ["python3", str(job.place.root / "tests/robust/power_loss.py"),
                *words]

    def read(self, code, text):
        found = re.search(r'"disks": (\d+)', text)
        failed = re.findall(r"^FAILED (.*)$", text, re.M)
        if not found:
            failed.append(f"exit code {code}")
        return int(found[1]) if found else 0, failed


class Allocations(Line):
    """tests/robust/oom.h: a job takes one of its phases."""

    name = "allocations"
    unit = "failed requests for memory"
    goal = 20000
    PHASES = 24
    uses_llvm = True

    def needs(self, place):
        return [place.release / "tests/bin/robust_oom"]

    def files(self, place):
        return [place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-llvm-*.so"))]

    def command(self, job):
        return [str(job.place.release / "tests/bin/robust_oom")]

    def environment(self, job):
        return {**super().environment(job),
                "PESTLE_ROBUST_PHASE": str(job.number % self.PHASES),
                "PESTLE_ROBUST_FIRST": str(job.number // self.PHASES)}

    def read(self, code, text):
        found = re.findall(r": \d+ requests, (\d+) of them failed", text)
        return (sum(map(int, found)),
                [text.strip()[-300:]] if code else [])


class Processes(Line):
    name = "processes"
    unit = "processes, 100 at once"
    goal = 1000
    uses_llvm = True
    side_by_side = 1

    def needs(self, place):
        return [place.release / "pestle"]

    def files(self, place):
        return [place.root / "tests/robust/cache_torture.py",
                place.root / "tests/robust/processes.py",
                place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-llvm-*.so"))]

    def command(self, job):
        return ["python3", str(job.place.root / "tests/robust/processes.py"),
                "100", "llvm"]

    def read(self, code, text):
        found = re.search(r'"processes": (\d+)', text)
        failed = re.findall(r"^FAILED (.*)$", text, re.M)
        if not found:
            failed.append(f"exit code {code}")
        return int(found[1]) if found else 0, failed


class Valgrind(Line):
    name = "valgrind"
    unit = "runs under memcheck, for x86-64-v3"
    goal = 38
    PARTS = 9
    uses_llvm = True

    def needs(self, place):
        return [place.release / "pestle"]

    def files(self, place):
        return [place.root / "tests/robust/valgrind.py",
                place.root / "tests/robust/valgrind.supp",
                place.root / "tests/fuzz/corpus/stablehlo",
                place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-llvm-*.so"))]

    def command(self, job):
        return ["python3", str(job.place.root / "tests/robust/valgrind.py"),
                "--part", f"{job.number % self.PARTS + 1}/{self.PARTS}"]

    def read(self, code, text):
        found = re.search(r'"models": (\d+)', text)
        failed = re.findall(r"^FAILED (.*)$", text, re.M)
        return int(found[1]) if found else 0, failed


class WriteOrRun(Line):
    """tests/robust/wx.py."""

    name = "wx"
    unit = "looks at memory maps"
    goal = 10 ** 5
    uses_llvm = True

    def needs(self, place):
        return [place.release / "tests/bin/pestle-soak"]

    def files(self, place):
        return [place.root / "tests/robust/wx.py",
                place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-llvm-*.so"))]

    def command(self, job):
        return ["python3", str(job.place.root / "tests/robust/wx.py"),
                str(int(job.seconds)), str(job.number)]

    def read(self, code, text):
        found = re.search(r'"samples": (\d+)', text)
        failed = re.findall(r"^FAILED (.*)$", text, re.M)
        if code and not failed:
            failed = [f"exit code {code}"]
        return int(found[1]) if found else 0, failed


class Soak(Line):
    """pestle-soak (tests/robust/soak.c)."""

    def __init__(self, name, unit, goal, mode, device):
        self.name, self.unit, self.goal = name, unit, goal
        self.mode, self.device = mode, device
        self.uses_llvm = device == "llvm"

    def needs(self, place):
        return [place.release / "tests/bin/pestle-soak"]

    def files(self, place):
        return [place.release / "libpestle.so.0",
                *sorted((place.release / "backends").glob(
                    "libpestle-llvm-*.so"))]

    def command(self, job):
        return [str(job.place.release / "tests/bin/pestle-soak"), self.mode,
                str(int(job.seconds)), str(job.number), self.device]

    def read(self, code, text):
        found = re.search(r"^soak: \w+: (\d+) cycles, (.*)$", text, re.M)
        if not found:
            return 0, [f"exit code {code}: {text.strip()[-200:]}"]
        return int(found[1]), [found[2]] if code else []


class SoakModels(Soak):
    """pestle-soak over the ONNX files of PESTLE_MODELS, each of them a part. Counted is
    what was stopped: some compilations end before."""

    seconds = 30

    def needs(self, place):
        return [*super().needs(place), place.models]

    def models(self, place):
        return sorted(place.models.glob("*.onnx"))

    def files(self, place):
        return [*super().files(place), *self.models(place)]

    def parts(self, place):
        return [path.stem for path in self.models(place)]

    def command(self, job):
        return [*super().command(job),
                str(job.place.models / f"{job.part}.onnx")]

    def read(self, code, text):
        _, failures = super().read(code, text)
        found = re.search(r" (\d+) stopped, at most ([\d.]+) ms", text)
        return int(found[1]) if found else 0, failures

    def worst_ms(self, text):
        found = re.search(r" stopped, at most ([\d.]+) ms", text)
        return float(found[1]) if found else 0.0


NONE = {"kills": 0, "flips": 0, "truncations": 1, "full": []}
ALL = [
    *(Fuzz(target) for target in FUZZ_TARGETS),
    Random(),
    Torture("cache-kill", "kills of writers", 1000, "kills",
            {**NONE, "kills": 100}),
    Torture("cache-flip", "flipped bits", 10000, "flips",
            {**NONE, "flips": 200}),
    IoFaults(),
    PowerLoss(),
    Allocations(),
    Processes(),
    Valgrind(),
    WriteOrRun(),
    Soak("cycles-llvm", "compile, run, evict on llvm", 10 ** 5, "evict",
         "llvm"),
    Soak("cycles-hits", "hits in memory, each with a run", 10 ** 6, "hits",
         "llvm"),
    Soak("cancel-llvm", "compilations on llvm, cancelled", 10 ** 4, "cancel",
         "llvm"),
    Soak("deadline-llvm", "compilations on llvm, deadlines", 10 ** 4,
         "deadline", "llvm"),
    SoakModels("cancel-models", "compilations of models, cancelled", 9000,
               "cancel", "llvm"),
    SoakModels("deadline-models", "compilations of models, deadlines", 9000,
               "deadline", "llvm"),
]


def choose(names):
    """By name or by what a name begins with: "fuzz" is all seven."""
    if not names:
        return ALL
    chosen = [line for line in ALL
              if any(line.name == n or line.name.startswith(n + "-")
                     for n in names)]
    unknown = [n for n in names
               if not any(line.name == n or line.name.startswith(n + "-")
                          for line in ALL)]
    if unknown:
        raise SystemExit(f"no such line: {', '.join(unknown)}")
    return chosen
