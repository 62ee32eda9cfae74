# SPDX-License-Identifier: Apache-2.0
"""One rank of four fails, in one of six ways: all others end with a sentence that says
which one and why, soon, and nobody is left."""
import os
import pathlib
import random
import signal
import sys
import tempfile
import time

from ranks import RANK, World, model

N = 4
STEPS = 1000000  # nobody comes so far
DEADLINE = 2.0
SLACK = float(os.environ.get("PESTLE_WORLD_SLACK", 2))
# Seconds from the fault until all others have ended with their error; the last two are
# for a rank 0 that lingers and for the processes' own end.
SOON, LATE = 1.0, DEADLINE + SLACK
END = 2.0


class Case:
    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.folder = folder
        self.seed = seed
        self.bad = self.random.randrange(N)
        self.step = self.random.choice([0, 1, 2, 3, 10, 100, 500])
        self.shared = self.random.randrange(2)
        self.size = self.random.choice([1, 60, 3000, 70000])
        if self.size > 3000:
            self.step = min(self.step, 10)

    def program(self, file, text):
        """What ranks run of a model."""
        path = self.folder / file
        if not path.exists():
            path.write_text(text)
        return path

    def run(self, fault):
        line = [RANK, self.program(f"m{self.size}.mlir", model(N, self.size)), STEPS]
        lines = [list(line) for _ in range(N)]
        settings = {"PESTLE_WORLD_SHM": self.shared,
                    "PESTLE_WORLD_DEADLINE_MS": int(DEADLINE * 1000),
                    "PESTLE_WORLD_CREATE_MS": 60000}
        getattr(self, fault)(lines, settings)

    def check(self, ends, words, limit, codes=(1,)):
        """|words|: one of these groups stands in each sentence as a whole."""
        for i, (code, text, seconds) in ends.items():
            where = f"seed {self.seed}, rank {i}, bad {self.bad}, step {self.step}, " \
                    f"shm {self.shared}: {seconds:.2f} s: {text}"
            assert code in codes, where
            assert any(all(w in text for w in group) for group in words), where
            assert seconds <= limit, where

    def world(self, lines, settings, words, limit, but=None):
        with World(lines, **settings) as world:
            world.wait_ready()
            but = {self.bad} if but is None else but
            ends = world.ends(but, 30)
            self.check(ends, words, limit)

    # --- The faults ---

    def kill(self, lines, settings):
        if self.random.randrange(2):  # by itself, before a step
            lines[self.bad] += ["kill", self.step]
        with World(lines, **settings) as world:
            world.wait_ready()
            if len(lines[self.bad]) == 3:  # by the test, anywhere
                time.sleep(self.random.random() * 0.2)
                world.signal(self.bad, signal.SIGKILL)
            ends = world.ends({self.bad}, 30)
            self.check(ends, [[f"rank {self.bad} has died"],
                              [f"rank {self.bad} has gone"],
                              [f"rank {self.bad} does not answer"]], SOON + END)

    def stop(self, lines, settings):
        # Before the first step ranks wait for longer: others may still compile.
        create = 10
        settings["PESTLE_WORLD_CREATE_MS"] = create * 1000
        if self.random.randrange(2):
            lines[self.bad] += ["stop", self.step]
        with World(lines, **settings) as world:
            world.wait_ready()
            if len(lines[self.bad]) == 3:
                time.sleep(self.random.random() * 0.2)
                world.signal(self.bad, signal.SIGSTOP)
            ends = world.ends({self.bad}, 30)
            first = any("first run" in text for _, text, _ in ends.values())
            self.check(ends, [["DEADLINE_EXCEEDED", f"rank {self.bad} has not come"],
                              ["DEADLINE_EXCEEDED", f"rank {self.bad} has come to"],
                              ["DEADLINE_EXCEEDED",
                               f"rank {self.bad} does not answer"]],
                       LATE + END + (create if first else 0))

    def close(self, lines, settings):
        lines[self.bad] += ["close", self.step]
        words = [[f"rank {self.bad} has died"], [f"rank {self.bad} has gone"]]
        if not self.bad:
            # Its store lives on without connections: which end of one has failed
            # it cannot know, and names both.
            words += [["has died: its connection to rank 0 has ended"]]
        self.world(lines, settings, words, SOON + END)

    def disk(self, lines, settings):
        lines[self.bad] += ["disk", self.step]
        words = [["UNAVAILABLE", f"rank {self.bad} has ended its world: cannot "
                  "write the checkpoint: No space left"],
                 ["RESOURCE_EXHAUSTED", "cannot write the checkpoint"]]
        self.world(lines, settings, words, SOON + END, but=set())

    def late(self, lines, settings):
        """Later than the deadline at one step; or later than all at the start, which
        is no fault."""
        if self.random.randrange(2):
            settings["PESTLE_WORLD_DEADLINE_MS"] = 300
            lines[self.bad] += ["late", max(1, self.step)]
            words = [["DEADLINE_EXCEEDED", f"rank {self.bad} has not come to"]]
            self.world(lines, settings, words, LATE + END, but=set())
            return
        for line in lines:
            line[2] = 3
        lines[self.bad] = ["sh", "-c", 'sleep 0.5; exec "$@"', "sh",
                           *lines[self.bad]]
        with World(lines, **settings) as world:
            for i, (code, text, _) in world.ends(limit=30).items():
                assert code == 0 and "done" in text, (self.seed, i, text)

    def plan(self, lines, settings):
        lines[self.bad][1] = self.program(
            f"other{self.size}.mlir", model(N, self.size, scale=0.5, name="another"))
        with World(lines, **settings) as world:
            ends = world.ends(limit=30)
            self.check(ends, [["INCOMPATIBLE", f"rank {self.bad} came with plan",
                               "'another'", "'step'"],
                              ["INCOMPATIBLE", "ranks 1, 2, 3 came with plan 'step'",
                               "rank 0 with plan 'another'"]], 30)


FAULTS = ["kill", "stop", "close", "disk", "late", "plan"]


def run(count, first=0, faults=FAULTS, kind=Case):
    done = {}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(count):
            fault = faults[i % len(faults)]
            case = kind(pathlib.Path(folder), first + i)
            try:
                case.run(fault)
            except AssertionError:
                print(f"seed {case.seed}: {fault} of rank {case.bad}, step "
                      f"{case.step}, shm {case.shared}, size {case.size}")
                raise
            done[fault] = done.get(fault, 0) + 1
    print(", ".join(f"{n} {fault}" for fault, n in done.items()))
    return 0


if __name__ == "__main__":
    sys.exit(run(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or FAULTS))
