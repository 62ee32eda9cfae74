#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/hands.md "A stranger is served" that are said to stand: the command
of each is run and what one sees is looked for; a test that a row names is there."""
import re
import unittest

from stranger import SOURCE, Folder


def rows():
    text = (SOURCE / "docs/hands.md").read_text(encoding="utf-8")
    table = text.split("## A stranger is served")[1].split("\n## ")[0]
    for line in table.splitlines():
        cells = [c.strip().replace(r"\|", "|") for c in
                 re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if len(cells) == 4 and cells[0] != "Clause" and not cells[0].startswith("--"):
            yield cells


def pattern(seen):
    return ".*?".join(re.escape(part.strip()) for part in seen.split(".."))


class Hands(Folder):
    def test_rows(self):
        ran = 0
        for clause, command, sees, state in rows():
            with self.subTest(clause=clause):
                self.assertRegex(state, r"^(open|stands|not done)")
                named = re.search(r"\((.*_(?:test|long|doc)\.\w+)\)", state)
                if named:
                    found = [SOURCE / "tests" / n for n in named[1].split(", ")]
                    self.assertTrue(all(f.exists() for f in found), found)
                elif state.startswith("stands"):
                    ran += 1
                    _, out, err = self.shell(re.search("`(.*)`", command)[1])
                    wanted = re.findall("`([^`]+)`", sees)
                    self.assertTrue(wanted, "nothing is to be seen")
                    for seen in wanted:
                        self.assertRegex(out + err, re.compile(pattern(seen), re.S))
        self.assertGreater(ran, 5)

    def test_table(self):
        self.assertLessEqual(len(list(rows())), 30)


if __name__ == "__main__":
    unittest.main()
