#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds calls two arguments of which append to a graph or a kernel. C fixes no order
for them, so that builds of two compilers would make different code: each but one is to
be a statement of its own (docs/style.md).

usage: tools/check_order.py SOURCE_DIR
"""

import pathlib
import re
import sys

FOLDERS = ("lazy", "ir", "passes", "codegen", "compile", "frontend", "transform")
# A function that is given what it appends to, by name, and so is a macro that calls one.
TAKES = re.compile(r"\b(\w+)\((?:pestle_formula_t|pestle_kb_t|pestle_emit_t)\s*\*\s*\w+")
MACRO = re.compile(r"#define (\w+)\([^\n]*?\) (?:[^\n]*\\\n)*[^\n]*pestle_f_\w+\(")
# They read, and append nothing.
READS = {"pestle_f_value", "pestle_f_finish", "pestle_formula_make", "pestle_f_status"}
CASES = re.compile(r"\?[^;]*?:")


def arguments(text, at):
    """The arguments of the call whose parenthesis is at |at|."""
    depth, start, out = 0, at + 1, []
    for i in range(at, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if not depth:
                return out + [text[start:i]]
        elif text[i] == "," and depth == 1:
            out.append(text[start:i])
            start = i + 1
    return out


def names_of(text):
    found = set(TAKES.findall(text)) | set(MACRO.findall(text))
    return found | set(re.findall(r"\bpestle_f_\w+(?=\()", text))


def plain(text):
    """The text without comments and strings, as long as it was."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())
    text = re.sub(r"//[^\n]*|/\*.*?\*/", blank, text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', blank, text)


def check(path, shared):
    text = plain(path.read_text(encoding="utf-8"))
    names = (names_of(text) | shared) - READS
    if not names:
        return []
    call = re.compile(r"\b(" + "|".join(sorted(map(re.escape, names))) + r")\(")
    # Calls of any function, since which argument is read first is open there too.
    bad = []
    for match in re.finditer(r"\b([A-Za-z_]\w*)\(", text):
        if match.group(1) in ("if", "while", "for", "switch", "return", "sizeof"):
            continue
        line = text.rfind("\n", 0, match.start()) + 1
        if text[line:match.start()].lstrip().startswith("#"):
            continue
        several = [a for a in arguments(text, match.end() - 1) if call.search(a)]
        if len(several) > 1:
            row = text.count("\n", 0, match.start()) + 1
            bad.append(f"{path}:{row}: {match.group(1)}() has {len(several)} arguments "
                       "that append")
    return bad


def main(root):
    files = [p for f in FOLDERS for p in sorted((root / f).rglob("*.[ch]"))]
    shared = set()
    for path in files:
        if path.suffix == ".h":
            shared |= names_of(plain(path.read_text(encoding="utf-8")))
    bad = [line for p in files if p.suffix == ".c" for line in check(p, shared)]
    print("\n".join(bad) if bad else f"{len(files)} files")
    return 1 if bad else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
