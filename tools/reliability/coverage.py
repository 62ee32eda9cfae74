# SPDX-License-Identifier: Apache-2.0
"""Branches and conditions that tests take in what parses, plans memory, caches and loads:
runs tests of a build by the preset `coverage` and makes the table of docs/reliability.md.

A condition counts as taken where it was seen to decide the outcome both ways (MC/DC)."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reliability.md"
BEGIN = "<!-- table: tools/reliability.py coverage -->"
END = "<!-- end of coverage -->"
READER = ("proto", "model", "tensor", "source", "graph", "function", "scope",
          "order", "import", "inputs", "info", "onnx", "strings", "values",
          "check")
PARTS = {
    "reader of ONNX files": [f"frontend/onnx/{name}.c" for name in READER],
    "importers of ONNX's ops": ["frontend/onnx/*.c"],
    "readers of StableHLO's text and bytecode": ["frontend/stablehlo/*.c"],
    "parser of IR text": ["ir/parse*.c"],
    "memory planner": ["compile/memory_*.c"],
    "cache": ["runtime/plan_cache*.c", "runtime/constant_file.c"],
    "loader of plans": ["runtime/plan.c", "runtime/plan_check.c",
                        "runtime/plan_set.c", "runtime/executable_load.c"],
    "loader of plugins": ["runtime/plugin_*.c"],
}
# Of tests that run these parts. What tests/CMakeLists.txt labels long is left out.
TESTS = (r"^(abi_|test_(ir|frontend|compile|runtime|session|lazy)_|fuzz_|robust_|"
         r"plugin_abi_|models_nodes|ort_|cli_|golden|stablehlo_|pjrt_hostile)")
WITHOUT = (r"^(robust_(planted|soak_.*|valgrind|debuggers|processes)|"
           r"plugin_abi_support|cli_(site|docs|readme|howto))$")
MUTATIONS = 300  # of each file of a fuzz target's corpus, from fixed seeds


def sources(part):
    """Its files; one that an earlier part has is not counted again."""
    earlier = set()
    for name, patterns in PARTS.items():
        files = [path for pattern in patterns
                 for path in sorted(ROOT.glob(pattern)) if path not in earlier]
        if name == part:
            return files
        earlier.update(files)
    return []


def fuzz(build, environment):
    failed = 0
    for program in sorted((build / "fuzz").glob("*_fuzz")):
        corpus = ROOT / "tests/fuzz/corpus" / program.name.removesuffix("_fuzz")
        # A file of its own: profiles of other programs do not merge with it.
        own = {**environment, "LLVM_PROFILE_FILE":
               str(build / f"profiles/{program.name}-%m.profraw")}
        done = subprocess.run([program, "--mutations", str(MUTATIONS), corpus],
                              env=own, check=False,
                              stdout=subprocess.DEVNULL)
        if done.returncode:
            print(f"{program.name}: exit code {done.returncode}",
                  file=sys.stderr)
            failed += 1
    return failed


def run_tests(build, tests, jobs):
    """Runs them; profiles of all lie in a folder afterwards, of each test its own
    (tests/CMakeLists.txt). Whether all passed."""
    code = 0
    if tests != "none":
        code = subprocess.run(
            ["ctest", "--test-dir", build, "-R", tests, "-E", WITHOUT, "-LE",
             "long", "-j", str(jobs), "--output-on-failure", "-Q", "-O",
             build / "coverage.log"], check=False).returncode
    if tests == TESTS:
        code |= fuzz(build, os.environ)
    return code == 0


def merge(build):
    profiles = sorted((build / "profiles").glob("*.profraw"))
    if not profiles:
        sys.exit(f"nothing was counted in {build}/profiles: build by the preset "
                 "`coverage`, then run tools/reliability.py coverage")
    if not shutil.which("llvm-profdata-19"):
        sys.exit("there is no llvm-profdata-19: tools/setup.sh installs LLVM 19")
    subprocess.run(["llvm-profdata-19", "merge", "-sparse", "--failure-mode=all",
                    "-o", build / "coverage.profdata", *profiles], check=True)


def ask(build, command, *words):
    """What llvm-cov says of the profiles that were merged."""
    # It has each function of ours once; programs of tests have the same.
    library = build / "libpestle.so"
    return subprocess.run(
        ["llvm-cov-19", command, f"-instr-profile={build}/coverage.profdata",
         library, *words], check=True, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True).stdout


def export(build, *words):
    merge(build)
    return json.loads(ask(build, "export", *words))["data"][0]["files"]


def share(kind, files):
    count = sum(one[kind]["count"] for one in files)
    covered = sum(one[kind]["covered"] for one in files)
    return count, 100 * covered / max(count, 1)


def table(build):
    summaries = {pathlib.Path(entry["filename"]): entry["summary"]
                 for entry in export(build, "-summary-only")}
    text = ["| Part | Branches | Taken | Conditions (MC/DC) | Taken | "
            "Lines taken |", "|---|---:|---:|---:|---:|---:|"]
    for part in PARTS:
        files = [summaries[path] for path in sources(part) if path in summaries]
        branches, taken = share("branches", files)
        conditions, decided = share("mcdc", files)
        text.append(f"| {part} | {branches:,} | {taken:.1f} % | {conditions:,} | "
                    f"{decided:.1f} % | {share('lines', files)[1]:.1f} % |")
    return "\n".join(text)


def write(text):
    page = PAGE.read_text()
    before, rest = page.split(BEGIN, 1)
    PAGE.write_text(before + BEGIN + "\n\n" + text + "\n\n" + END
                    + rest.split(END, 1)[1])


def missing(build, names):
    """What was never true, or never false, a line each."""
    for entry in export(build):
        path = pathlib.Path(entry["filename"])
        name = (str(path.relative_to(ROOT)) if path.is_relative_to(ROOT)
                else str(path))
        if not any(re.search(pattern, name) for pattern in names):
            continue
        lines = path.read_text().splitlines()
        summed = {}
        # A macro's are told of where it is used.
        found = [(tuple(branch[:4]), branch)
                 for branch in entry.get("branches", [])]
        for one in entry.get("expansions", []):
            found += [(tuple(one["source_region"][:2]) + (0, i), branch)
                      for i, branch in enumerate(one["branches"])]
        for place, branch in found:
            old = summed.get(place, (0, 0))
            summed[place] = (old[0] + branch[4], old[1] + branch[5])
        for place, (true, false) in sorted(summed.items()):
            if true and false:
                continue
            what = ("never met" if not true and not false else
                    "never true" if not true else "never false")
            print(f"{name}:{place[0]}:{place[1]}: {what}: "
                  f"{lines[place[0] - 1].strip()}")


DECISION = re.compile(r"\|---> MC/DC Decision Region \((\d+):(\d+)\)")
CONDITION = re.compile(r"Condition C(\d+) --> \((\d+):(\d+)\)")
VECTOR = re.compile(r"\d+ \{ (.*?) = (.) +\}")
PAIR = re.compile(r"C(\d+)-Pair: not covered")


def conditions(build, names):
    """Conditions that were not seen to decide the outcome both ways, a line each, with
    what was seen of all conditions of that outcome: true, false, or not asked."""
    for entry in export(build, "-summary-only"):
        path = pathlib.Path(entry["filename"])
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        if not any(re.search(pattern, str(name)) for pattern in names):
            continue
        lines = path.read_text().splitlines()
        decision, places, seen = 0, {}, []
        for line in ask(build, "show", "-show-mcdc", path).splitlines():
            if found := DECISION.search(line):
                decision, places, seen = int(found[1]), {}, []
            elif found := CONDITION.search(line):
                places[found[1]] = int(found[2]), int(found[3])
            elif found := VECTOR.search(line):
                seen.append(re.sub(r"[ ,]", "", found[1]) + "=" + found[2])
            elif found := PAIR.search(line):
                row, column = places[found[1]]
                # One that a macro has is told of where the macro is used.
                if row < decision:
                    row, column = decision, 1
                print(f"{name}:{row}:{column}: condition {found[1]} of "
                      f"{len(places)}, seen {' '.join(seen) or 'nothing'}: "
                      f"{lines[row - 1].strip()}")


def main(options):
    build = options.build.resolve()
    if options.missing:
        missing(build, options.missing)
        return 0
    if options.conditions:
        conditions(build, options.conditions)
        return 0
    if options.fresh:
        shutil.rmtree(build / "profiles", ignore_errors=True)
    is_right = run_tests(build, options.tests or TESTS, options.jobs)
    text = table(build)
    print(text)
    if options.write:
        write(text)
    return not is_right
