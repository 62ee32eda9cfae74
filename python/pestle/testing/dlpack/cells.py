# SPDX-License-Identifier: Apache-2.0
"""What a cell is, and what may come of it."""

import dataclasses
import gc

OK, REFUSED, WRONG, CRASHED, ABSENT = "ok", "refused", "wrong", "crashed", "absent"
MARKS = {OK: "+", REFUSED: "-", WRONG: "!", CRASHED: "x", ABSENT: " "}


@dataclasses.dataclass
class Outcome:
    kind: str
    text: str = ""


class Wrong(Exception):
    """What a cell found that may not be."""


class Absent(Exception):
    """A library has nothing that the cell could look at."""


@dataclasses.dataclass
class Cell:
    """run(producer, consumer) returns nothing, raises what the consumer raised, or
    Wrong, or Absent. expects: what a library without a fault may do: ok, refused."""
    block: str
    name: str
    run: object
    expects: tuple = (OK,)
    only: str = ""  # of this library alone

    def do(self, producer, consumer):
        gc.collect()
        try:
            self.run(producer, consumer)
        except Absent as reason:
            return Outcome(ABSENT, str(reason))
        except Wrong as reason:
            return Outcome(WRONG, str(reason))
        except (Exception, KeyboardInterrupt) as reason:  # noqa: a library's own
            line = str(reason).split("\n", 1)[0][:120]
            return Outcome(REFUSED, f"{type(reason).__name__}: {line}")
        return Outcome(OK)


def need(condition, text):
    if not condition:
        raise Wrong(text)


def same(found, wanted, what="values"):
    found, wanted = list(found), list(wanted)
    need(len(found) == len(wanted) and all(
        a == b or (a != a and b != b) for a, b in zip(found, wanted)),
         f"{what} {found[:6]}, expected {wanted[:6]}")
