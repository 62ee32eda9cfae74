#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the conformance kit over each backend that docs/support/ has a matrix of
and that works here: nothing may be wrong, and the matrix must be the one in
docs. BLESS=1 writes it.

  support_check.py [NAME...]  all ops; what has no device here is compiled;
                              NAME: these alone, with BLESS=1 new ones too
  support_check.py --sample   a few ops, and all of what is compiled in seconds

A matrix of a machine that is not this one (cuda's is written by tests/h200) is
held against what compiles here: what passed there must compile, what did not
must not. vulkan is also held to its matrix without 64-bit integers."""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["PESTLE_SOURCE_DIR"])
PESTLE = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "pestle"
DOCS = SOURCE / "docs/support"
HEAD = "<!-- SPDX-License-Identifier: Apache-2.0 -->\n"
# What stands above a matrix, where it is not this machine's CPU.
NOTE = {"opencl": "On PoCL, which runs it on the CPU.\n\n",
        "vulkan": "On lavapipe, Mesa's driver for CPUs; as well when nothing "
                  "of 64-bit integers is used\n(`--target-cpu noint64`).\n\n",
        "metal": "C: compiled, without a device and so not run. What runs of "
                 "it on Linux is the text of\nsingle kernels, as C++ "
                 "(tests/shim).\n\n"}  # fmt: skip
# Wide integers in each way that they are used, and reductions.
SAMPLE = "remainder,popcnt,convert,rng_bit_generator,gather,reduce"
# Where a kernel takes a second to compile.
SLOW = {"opencl": "popcnt", "vulkan": "popcnt",
        "cuda": "popcnt,rng_bit_generator"}
# Pairs of 32-bit words instead of 64-bit integers.
NOINT64_SAMPLE = "popcnt,rng_bit_generator"
# Compiled in seconds: these are whole in the sample too.
QUICK = {"metal"}
# A variable that makes it certain which driver answers.
LAVAPIPE = "/usr/share/vulkan/icd.d/lvp_icd.x86_64.json"


def environment():
    values = dict(os.environ)
    if "VK_ICD_FILENAMES" not in values and os.path.exists(LAVAPIPE):
        values["VK_ICD_FILENAMES"] = LAVAPIPE
    return values


def backends():
    """Name to whether it has a device; what is neither that nor compiles is
    left out."""
    text = subprocess.run([PESTLE, "plugins", "--why"], capture_output=True,
                          text=True, check=True, env=environment()).stdout
    found, name = {}, None
    for line in text.splitlines():
        if line[:1].strip() and len(line.split()) > 5:
            name = line.split()[0]
            if " unused " not in line:
                found[name] = True
        elif "compiles all the same" in line:
            found.setdefault(name, False)
    return found


def rows(text):
    """Op to its cells."""
    lines = [line for line in text.splitlines() if line.startswith("| `")]
    return {line.split("`")[1]: line for line in lines}


def kit(name, options, jobs, env):
    return subprocess.run([PESTLE, "plugins", "test", name, "--markdown",
                           "--jobs", str(jobs), *options], capture_output=True,
                          text=True, check=False, env=env)


def total(all_done):
    """The line of counts, as one kit over all ops prints it."""
    lines = [next(line for line in done.stdout.splitlines() if " cells of op " in line)
             for done in all_done if " cells of op " in done.stdout]
    if not lines:
        return ""
    counts = [sum(column) for column in
              zip(*(map(int, re.findall(r"\d+", line)) for line in lines))]
    return "\n" + re.sub(r"\d+", lambda _: str(counts.pop(0)), lines[0]) + "\n\n"


def each_op(name, options):
    """The kit on each op by a process of its own, with a cache of its own: PoCL
    aborts where one process reads a program that another is still writing into
    the cache that they share."""
    # llvm's matrix has a row an op: it is held against what the kit prints.
    ops = list(rows((DOCS / "llvm.md").read_text(encoding="utf-8")))

    def one(op):
        with tempfile.TemporaryDirectory(prefix="pestle-pocl-") as cache:
            return kit(name, ["--ops", op, *options], 1,
                       {**environment(), "POCL_CACHE_DIR": cache})

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        all_done = list(pool.map(one, ops))
    head = all_done[0].stdout.partition("| `")[0]
    lines = [line for done in all_done for line in rows(done.stdout).values()]
    said = "\n".join(done.stdout[done.stdout.rfind("|\n") + 2:].strip()
                     for done in all_done if done.returncode) or total(all_done)
    return subprocess.CompletedProcess(
        (), max(done.returncode for done in all_done),
        head + "\n".join(lines) + "\n" + said,
        "".join(done.stderr for done in all_done))


def run_kit(name, options):
    if name == "opencl" and "--ops" not in options:
        done = each_op(name, options)
    else:
        done = kit(name, options, os.cpu_count(), environment())
    print(name, *options)
    said = done.stdout[done.stdout.rfind("|\n") + 2:].strip()
    print(said if done.returncode else said.partition("\n")[0], done.stderr)
    return done


def compare(path, options, runs):
    """The problem with the matrix at |path|, or None."""
    done = run_kit(path.stem, options)
    if done.returncode:
        return f"{path.stem}: exit code {done.returncode}"
    text = HEAD + NOTE.get(path.stem, "") + done.stdout
    if os.environ.get("BLESS") and not options and (runs or
                                                    path.stem in QUICK):
        path.write_text(text, encoding="utf-8")
        return None
    stored = path.read_text(encoding="utf-8")
    if not options and runs:
        # What stands above the matrix may name the machine that it is of.
        if stored[stored.index("| op |"):] == done.stdout:
            return None
        return f"{path} is not what the kit prints: BLESS=1, gen_op_docs.py"
    want, got = rows(stored), rows(done.stdout)
    if not got:
        return f"{path.stem}: the kit printed no row"
    # Where nothing is run, what passed is only compiled.
    for op, line in got.items():
        has = want.get(op, "").replace(" P ", " C ") if not runs else want.get(op)
        if line != has:
            return f"{path}: {op} is\n{line}\nnot\n{has}"
    return None


def main():
    sample = "--sample" in sys.argv
    ops = ["--ops", SAMPLE] if sample else []
    here, problems = backends(), []
    names = [word for word in sys.argv[1:] if not word.startswith("--")]
    paths = [DOCS / f"{name}.md" for name in names]
    for path in sorted(paths or DOCS.glob("*.md")):
        name = path.stem
        if name not in here:
            print(f"{name}: not here")
            continue
        if sample:
            ops = ["--ops", SLOW.get(name, SAMPLE)]
        whole = not sample or (name in QUICK and not here[name])
        problems.append(compare(path, [] if whole else ops, here[name]))
        if name == "vulkan" and here[name] and not os.environ.get("BLESS"):
            if sample:
                ops = ["--ops", NOINT64_SAMPLE]
            problems.append(compare(path, ops + ["--target-cpu", "noint64"],
                                    True))
    problems = [problem for problem in problems if problem]
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
