#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many random graphs on one device, in shards of seeds that run side by side, each
with a log of its own; sums up what they counted. A shard whose log is whole is
not run again, so that a run which was cut off goes on where it was. Needs
pestle-random, the backends and Python alone.

    many.py PESTLE_RANDOM --device llvm --seeds 1..100000 --jobs 16 --logs DIR
            [--shard 1000] [--least 50] [--timeout 300] [--counts]

Exit code 1: a graph differs or crashes, or an op met a dtype less than --least
times.
"""
import argparse
import collections
import concurrent.futures
import pathlib
import re
import subprocess
import sys
import time

TOTAL = re.compile(
    r"^\S+: seeds \d+ to \d+: (\d+) graphs, median \d+ ops, (\d+) with 50 or "
    r"more, (\d+) ops; (\d+) differ, (\d+) crash$", re.M)


def shards(text, size):
    first, last = (int(n) for n in text.split(".."))
    while first <= last:
        yield first, min(first + size - 1, last)
        first += size


def run(options, first, last):
    """The text of one shard: from its log where that is whole."""
    log = options.logs / f"{options.device}-{first}-{last}.log"
    if log.exists() and TOTAL.search(log.read_text()):
        return log.read_text()
    command = [options.program, "--device", options.device, "--seeds",
               f"{first}..{last}", "--jobs", "1", "--counts", "--sizes",
               "--timeout", str(options.timeout)]
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    log.write_text(done.stdout)
    return done.stdout


class Sum:
    def __init__(self):
        self.pairs, self.sizes = collections.Counter(), collections.Counter()
        self.numbers, self.broken = [0] * 5, 0

    def add(self, text):
        total = TOTAL.search(text)
        if not total:
            self.broken += 1
            print(f"a shard did not end:\n{text[-800:]}", flush=True)
            return
        self.numbers = [a + int(b)
                        for a, b in zip(self.numbers, total.groups())]
        for line in text.splitlines():
            if line.startswith("seed "):
                print(line, flush=True)
            fields = line.split()
            if line.startswith("sizes:"):
                for field in fields[1:]:
                    size, n = field.split(":")
                    self.sizes[int(size)] += int(n)
            elif fields[1:] and all(re.fullmatch(r"[\w<>]+:\d+", f)
                                    for f in fields[1:]):
                for field in fields[1:]:
                    dtype, n = field.rsplit(":", 1)
                    self.pairs[fields[0], dtype] += int(n)

    def median(self):
        seen, half = 0, sum(self.sizes.values()) / 2
        for size in sorted(self.sizes):
            seen += self.sizes[size]
            if seen >= half:
                return size
        return 0


def report(options, total, seconds):
    graphs, long, ops, differ, crash = total.numbers
    if options.counts:
        rows = collections.defaultdict(list)
        for (op, dtype), n in total.pairs.items():
            rows[op].append(f"{dtype}:{n}")
        for op, fields in rows.items():
            print(f"{op:24} {' '.join(fields)}")
    rare = [(n, *pair) for pair, n in total.pairs.items() if n < options.least]
    for n, op, dtype in sorted(rare)[:40]:
        print(f"too rare: {op} on {dtype}, {n} times")
    fewest = min(total.pairs.values(), default=0)
    print(f"{len(total.pairs)} pairs of op and dtype, each at least {fewest} "
          "times")
    print(f"{options.device}: seeds {options.seeds}: {graphs} graphs, median "
          f"{total.median()} ops, {long} with 50 or more, {ops} ops; {differ} "
          f"differ, {crash} crash, {total.broken} shards did not end; "
          f"{seconds:.0f} s")
    return 1 if differ or crash or total.broken or rare else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--device", default="llvm")
    parser.add_argument("--seeds", default="1..100000")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--logs", type=pathlib.Path, required=True)
    parser.add_argument("--shard", type=int, default=1000)
    parser.add_argument("--least", type=int, default=0)
    parser.add_argument("--timeout", type=int, default=300)
    parser.add_argument("--counts", action="store_true")
    options = parser.parse_args()
    options.logs.mkdir(parents=True, exist_ok=True)
    total, begin = Sum(), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(run, options, *shard)
                for shard in shards(options.seeds, options.shard)]
        for job in jobs:
            total.add(job.result())
    return report(options, total, time.monotonic() - begin)


if __name__ == "__main__":
    sys.exit(main())
