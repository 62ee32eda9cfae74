# SPDX-License-Identifier: Apache-2.0
"""Runs cells in processes of their own, and prints what came of them."""

import json
import os
import pathlib
import subprocess
import sys

from .capsules import capsules
from .cells import ABSENT, CRASHED, MARKS, OK, REFUSED, WRONG, Outcome
from .libraries import LIBRARIES, available
from .pairs import pairs, producers
from .tables import tables


def cells():
    """All of them: those of pairs are of a producer and a consumer, the others of one
    library alone."""
    return pairs() + producers() + capsules() + tables()


def _of(block):
    return [c for c in cells() if (c.block == "pairs") == (block == "pairs")]


def work(producer, consumer, block, first):
    """The process of one pair: a line of JSON for each cell."""
    p, c = LIBRARIES[producer](), LIBRARIES[consumer]()
    for i, cell in enumerate(_of(block)):
        if i < first:
            continue
        print(json.dumps({"begin": i}), flush=True)
        outcome = cell.do(p, c)
        print(json.dumps({"end": i, "kind": outcome.kind, "text": outcome.text}),
              flush=True)


def run(producer, consumer, block, timeout=600):
    """[(cell, outcome)] of one pair, whatever it does to its process."""
    todo, done, first = _of(block), {}, 0
    home = str(pathlib.Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    while first < len(todo):
        process = subprocess.Popen(
            [sys.executable, "-m", "pestle.testing.dlpack", "--worker", producer,
             consumer, block, str(first)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": path})
        ended = ""
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            ended = f"the block took more than {timeout} s"
        begun = None
        for line in out.splitlines():
            try:
                said = json.loads(line)
            except ValueError:
                continue  # a library that prints
            if "begin" in said:
                begun = said["begin"]
            elif "end" in said:
                done[said["end"]] = Outcome(said["kind"], said["text"])
                begun, first = None, said["end"] + 1
        if begun is not None:
            done[begun] = Outcome(CRASHED, ended or
                                  f"its process ended with {process.returncode}")
            first = begun + 1
        elif first < len(todo):
            text = err.strip().splitlines()[-1:] or [f"exit {process.returncode}"]
            for i in range(first, len(todo)):
                done[i] = Outcome(ABSENT, text[0][:120])
            break
    return [(todo[i], done[i]) for i in range(len(todo))]


def is_fault(cell, outcome):
    """Whether a library without a fault may not do that."""
    return outcome.kind not in cell.expects + (ABSENT,)


def report(results, title, out=print, every=False):
    """Prints the faults, or every cell; returns how many cells there were of each
    kind, and how many faults."""
    counts = dict.fromkeys((OK, REFUSED, WRONG, CRASHED, ABSENT), 0)
    faults = 0
    for cell, outcome in results:
        counts[outcome.kind] += 1
        bad = is_fault(cell, outcome)
        faults += bad
        if bad or every:
            mark = "FAULT" if bad else "     "
            out(f"{mark} {title}: {cell.block}: {cell.name}: {outcome.kind} "
                f"{outcome.text}")
    return counts, faults


def matrix(columns, out=print):
    """A table of cells by columns [(title, results)] as Markdown."""
    cells_of = [c for c, _ in columns[0][1]]
    out("| " + " | ".join(["cell"] + [title for title, _ in columns]) + " |")
    out("|---" * (len(columns) + 1) + "|")
    for i, cell in enumerate(cells_of):
        row = [results[i][1] for _, results in columns]
        out("| " + " | ".join(
            [f"{cell.block}: {cell.name}"] + [MARKS[o.kind] for o in row]) + " |")


def main(arguments=None):
    import argparse
    parser = argparse.ArgumentParser(prog="pestle.testing.dlpack", description=(
        "Conformance of array libraries to DLPack 1.3."))
    parser.add_argument("--producer", action="append", help="libraries to take from")
    parser.add_argument("--consumer", action="append", help="libraries that take")
    parser.add_argument("--pairs", action="store_true",
                        help="only what is given and taken, no library alone")
    parser.add_argument("--matrix", action="store_true",
                        help="every library that is here, as tables in Markdown")
    parser.add_argument("--all", action="store_true", help="print every cell")
    parser.add_argument("--list", action="store_true", help="print the cells and end")
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        work(*options.worker[:3], int(options.worker[3]))
        return 0
    if options.list:
        for cell in cells():
            print(f"{cell.block}: {cell.name}")
        return 0
    here = available()
    if options.matrix:
        return _matrices(here)
    chosen = options.producer or options.consumer
    alone = set(options.consumer or []) | set(options.producer or [])
    if not chosen:
        alone = {"pestle"}
        couples = [(n, "pestle") for n in here] + [
            ("pestle", n) for n in here if n != "pestle"]
    else:
        couples = [(p, c) for p in options.producer or here
                   for c in options.consumer or here]
    if options.pairs:
        alone = set()
    total, faults = dict.fromkeys((OK, REFUSED, WRONG, CRASHED, ABSENT), 0), 0
    jobs = [(p, c, "pairs") for p, c in couples] + [(n, n, "alone") for n in sorted(alone)]
    for p, c, block in jobs:
        title = f"{p} -> {c}" if block == "pairs" else p
        counts, bad = report(run(p, c, block), title, every=options.all)
        faults += bad
        for kind, count in counts.items():
            total[kind] += count
    print(f"{sum(total.values())} cells: " + ", ".join(
        f"{count} {kind}" for kind, count in total.items()) + f"; {faults} faults")
    return 1 if faults else 0


def _matrices(here):
    print("`+` as the protocol has it, `-` refused, `!` wrong, `x` crashed; empty: the\n"
          "library has nothing that could be looked at.\n")
    print("One library alone:\n")
    matrix([(n, run(n, n, "alone")) for n in here])
    for consumer in here:
        print(f"\nTaken by {consumer} from:\n")
        matrix([(p, run(p, consumer, "pairs")) for p in here])
    return 0
