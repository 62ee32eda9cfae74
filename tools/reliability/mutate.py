# SPDX-License-Identifier: Apache-2.0
"""Mutation testing of what parses, plans memory, caches and loads: one small fault at a
time is put into a source, and the tests of that part must fail.

A mutant is one object, compiled with AddressSanitizer and UndefinedBehaviorSanitizer and
linked before the archives that have the file's own object: no mutant costs a build. It is
killed by a test that fails, hangs or is told of by a sanitizer; one whose code at -O2 is
that of the source itself is the same program and not counted. Mutants are a sample of all
places, which a seed chooses."""

import concurrent.futures
import fnmatch
import json
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
import tempfile
import threading
import time

import coverage

ROOT = coverage.ROOT
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Of the loader, which compares the sanitizers of a plugin with its own.
UNDEFINED = ["-fsanitize=undefined", "-fno-sanitize-recover=all"]
# Programs that are linked with the mutant, the quickest first; then tests of the whole
# library, which load a libpestle.so that has the mutant.
TESTS = {
    "reader of ONNX files": (
        ["test_frontend_onnx_tensor", "test_frontend_onnx_import",
         "test_frontend_onnx_hostile", "test_frontend_onnx_node",
         "test_frontend_onnx_inputs", "test_frontend_onnx_loop",
         "test_frontend_onnx_ops", "test_frontend_onnx_refuse",
         "test_frontend_import_file", "onnx_fuzz", "test_frontend_onnx_damage"],
        ["cli_onnx_inputs", "cli_info"]),
    "importers of ONNX's ops": (
        ["test_frontend_onnx_refuse", "test_frontend_onnx_bounded",
         "test_frontend_onnx_ops", "test_frontend_onnx_node",
         "test_frontend_onnx_loop", "test_frontend_onnx_rows", "onnx_fuzz",
         "test_frontend_onnx_import", "test_frontend_onnx_wrong"],
        ["ort_compat", "ort_strings"]),
    "readers of StableHLO's text and bytecode": (
        ["test_frontend_bytecode", "test_frontend_bytecode_wrong",
         "test_frontend_foreign", "test_frontend_import_file",
         "stablehlo_fuzz", "bytecode_fuzz", "test_frontend_corpus_oom"],
        ["stablehlo_artifacts"]),
    "parser of IR text": (
        ["test_ir_parse_wrong", "test_ir_parse", "test_ir_generic", "test_ir_print",
         "test_ir_composite", "test_ir_dialect_attrs", "test_ir_custom",
         "test_ir_verify", "test_ir_build", "test_frontend_foreign",
         "ir_fuzz", "stablehlo_fuzz", "test_frontend_corpus_oom"],
        []),
    "memory planner": (
        ["test_compile_memory_plan", "test_compile_memory_gaps",
         "test_compile_memory_plan_random", "test_compile_donation",
         "test_compile_copies", "test_compile_steps",
         "test_compile_input_alignment", "test_compile_collective"],
        []),
    "cache": (
        ["test_runtime_store", "test_runtime_cache", "test_runtime_constant",
         "test_runtime_context", "test_runtime_oom"],
        ["robust_constants"]),
    "loader of plans": (
        ["test_runtime_plan", "test_runtime_store", "test_runtime_run",
         "test_runtime_cache", "test_runtime_part", "test_runtime_constant",
         "test_runtime_oom", "plan_fuzz"],
        []),
    "loader of plugins": (
        ["plugin_abi_tables", "plugin_abi_image", "plugin_abi_registry",
         "plugin_abi_load", "test_runtime_context", "plugin_abi_starve",
         "plugin_abi_child", "plugin_abi_elevated", "plugin_abi_zoo"],
        ["plugin_abi_versions", "plugin_abi_tried"]),
}
TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<name>[A-Za-z_]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<op>->|\+\+|--|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.X | re.S | re.M)
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=",
               "!=": "=="}
KEYWORDS = {"return", "if", "else", "for", "while", "do", "switch", "case",
            "default", "break", "continue", "goto", "static", "const",
            "struct", "enum", "typedef", "sizeof", "_Static_assert",
            "PESTLE_REQUIRE", "bool", "char", "int", "void", "size_t"}


def sanitize(part):
    return UNDEFINED if part == "loader of plugins" else SANITIZE


class Token:
    def __init__(self, found):
        self.kind, self.text = found.lastgroup, found.group()
        self.begin, self.end = found.span()


def tokens_of(text):
    return [Token(found) for found in TOKEN.finditer(text)
            if found.lastgroup != "skip"]


def closing(tokens, i):
    """The index of the parenthesis that closes tokens[i]."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j].text in "([{") - (tokens[j].text in ")]}")
        if depth == 0:
            return j
    return len(tokens) - 1


def statement_end(tokens, i):
    """Of a call or an assignment that begins at tokens[i], the index of its end; 0 for
    anything else."""
    first = tokens[i]
    if first.text not in ("++", "--", "*") and (
            first.kind != "name" or first.text in KEYWORDS
            or tokens[i + 1].text not in ("(", "=", "->", ".", "[", "++", "--",
                                          "+=", "-=", "|=", "&=", "*=")):
        return 0
    depth = 0
    for j in range(i, min(i + 200, len(tokens))):
        depth += (tokens[j].text in "([") - (tokens[j].text in ")]")
        if tokens[j].text in "{}":
            return 0
        if depth == 0 and tokens[j].text == ";":
            return j
    return 0


def places(text):
    """(kind, begin, end, replacement) of each mutant of a source."""
    tokens = tokens_of(text)
    depth = 0
    for i, token in enumerate(tokens[:-2]):
        before = tokens[i - 1] if i else token
        depth += (token.text == "{") - (token.text == "}")
        if depth == 0:
            continue  # outside of functions are types and tables
        follows_value = (before.kind in ("name", "number")
                         and before.text not in KEYWORDS
                         or before.text in ")]")
        if token.kind == "op" and token.text in COMPARISONS and follows_value:
            yield ("comparison", token.begin, token.end,
                   COMPARISONS[token.text])
        if token.text in ("&&", "||"):
            yield ("and, or", token.begin, token.end,
                   "||" if token.text == "&&" else "&&")
        if token.text in ("+", "-") and token.kind == "op" and follows_value:
            yield ("plus, minus", token.begin, token.end,
                   "-" if token.text == "+" else "+")
        if token.text in ("++", "--"):
            yield ("plus, minus", token.begin, token.end,
                   "--" if token.text == "++" else "++")
        if token.kind == "number" and re.fullmatch(r"\d+u?", token.text):
            value = int(token.text.rstrip("u"))
            yield ("off by one", token.begin, token.end, str(value + 1))
        if token.text == "!" and token.kind == "op":
            yield ("not", token.begin, token.end, "")
        if token.text == "if" and tokens[i + 1].text == "(":
            j = closing(tokens, i + 1)
            inner = text[tokens[i + 1].end:tokens[j].begin]
            yield ("check removed", tokens[i + 1].begin, tokens[j].end,
                   f"(0 && ({inner}))")
        if before.text in (";", "{", "}", ")", "else"):
            j = statement_end(tokens, i)
            if j:
                yield ("statement removed", token.begin, tokens[j].end, ";")


class Mutant:
    def __init__(self, part, path, text, place):
        self.part, self.path = part, path
        self.kind, begin, end, replacement = place
        self.line = text.count("\n", 0, begin) + 1
        # Lines stay where they are.
        lost = text.count("\n", begin, end) - replacement.count("\n")
        self.text = text[:begin] + replacement + "\n" * lost + text[end:]
        self.before = " ".join(text[begin:end].split())
        self.after = " ".join(replacement.split())
        self.source = " ".join(
            text.splitlines()[self.line - 1].split())

    def skipped(self):
        return "PESTLE_FAULT" in self.source

    def row(self, state, by):
        return {"part": self.part, "file": str(self.path.relative_to(ROOT)),
                "line": self.line, "kind": self.kind, "source": self.source,
                "before": self.before[:100], "after": self.after[:100],
                "state": state, "by": by}


def choose(patterns, count, seed):
    """|count| mutants of each part."""
    chosen = []
    for part in TESTS:
        paths = [path for path in coverage.sources(part)
                 if not patterns or any(
                     fnmatch.fnmatch(str(path.relative_to(ROOT)), pattern)
                     or pattern == part for pattern in patterns)]
        mutants = []
        for path in paths:
            text = path.read_text()
            mutants += [Mutant(part, path, text, place)
                        for place in places(text)]
        mutants = [one for one in mutants if not one.skipped()]
        chance = random.Random(f"{seed} {part}")
        chosen.append((part, len(mutants),
                       chance.sample(mutants, min(count, len(mutants)))))
    if not any(found for _, found, _ in chosen):
        raise SystemExit(f"no such part or file: {', '.join(patterns)}; "
                         f"parts are: {', '.join(TESTS)}")
    return chosen


class Build:
    """A build that is there, and how its files are compiled and linked."""

    def __init__(self, folder):
        self.folder = folder
        try:
            text = (folder / "compile_commands.json").read_text()
        except OSError as e:
            sys.exit(f"{e.filename}: {e.strerror}; --build is a folder that cmake "
                     "made")
        entries = json.loads(text)
        self.commands = {pathlib.Path(entry["file"]): entry["command"]
                         for entry in entries
                         if "-DPESTLE_FAULTS" not in entry["command"]}
        self.links, self.ctests = {}, {}
        self.lock = threading.Lock()
        # A test with everything as it is must pass; this long it takes.
        self.seconds = {}

    def environment(self):
        return {**os.environ, "PESTLE_BUILD_DIR": str(self.folder),
                "PESTLE_SOURCE_DIR": str(ROOT),
                "PESTLE_BACKEND_PATH": str(self.folder / "backends"),
                "ASAN_OPTIONS": "allocator_may_return_null=1:"
                                "detect_stack_use_after_return=0:"
                                "hard_rss_limit_mb=3000",
                "LSAN_OPTIONS": f"suppressions={ROOT}/tests/lsan.supp",
                "UBSAN_OPTIONS": "print_stacktrace=0"}

    def compile(self, path, source, output, options):
        words = [word for word in shlex.split(self.commands[path])
                 if word not in ("-Werror", str(path))]
        words = [word for word in words if not re.match(r"-O\w$|-g\d?$", word)]
        words[words.index("-o") + 1] = str(output)
        done = subprocess.run(
            [*words, "-w", "-iquote", str(path.parent), *options, str(source)],
            cwd=self.folder, check=False, capture_output=True, timeout=120)
        return done.returncode == 0

    def program(self, test):
        return f"fuzz/{test}" if test.endswith("_fuzz") else f"tests/bin/{test}"

    def link_command(self, target):
        with self.lock:
            if target not in self.links:
                done = subprocess.run(["ninja", "-t", "commands", "-s", target],
                                      cwd=self.folder, check=True,
                                      capture_output=True, text=True)
                self.links[target] = done.stdout.strip().splitlines()[-1]
            return self.links[target]

    def link(self, target, objects, output, options):
        """|objects| first: what an archive has of them is not taken then."""
        command = self.link_command(target)
        command = re.sub(r"-o \S+", " ".join(
            [f"-o {output}", *map(str, objects), *options]), command, count=1)
        done = subprocess.run(command, shell=True, cwd=self.folder,
                              check=False, capture_output=True, text=True)
        return done.returncode == 0

    def test_words(self, test, program):
        if not test.endswith("_fuzz"):
            return [str(program)]
        return [str(program), "--mutations", "20",
                str(ROOT / "tests/fuzz/corpus" / test.removesuffix("_fuzz"))]

    def ctest_words(self, test):
        with self.lock:
            if not self.ctests:
                done = subprocess.run(
                    ["ctest", "--show-only=json-v1"], cwd=self.folder,
                    check=True, capture_output=True, text=True)
                self.ctests = {one["name"]: one.get("command")
                               for one in json.loads(done.stdout)["tests"]}
        return self.ctests.get(test)


class Runner:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder

    def run(self, words, seconds, extra=None, cwd=None):
        """"", or why it fails."""
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            os.chmod(place, 0o755)  # tests look at files as other users
            env = {**self.build.environment(), "PESTLE_CACHE_DIR":
                   f"{place}/cache", "TMPDIR": place, **(extra or {})}
            process = subprocess.Popen(
                words, env=env, cwd=cwd or place, stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, text=True, errors="replace",
                start_new_session=True)
            try:
                _, text = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.communicate()
                return "time"
        self.took = time.monotonic() - begin
        if process.returncode == 0:
            return ""
        return "sanitizer" if "Sanitizer" in text or "runtime error" in text \
            else "signal" if process.returncode < 0 else "test"

    def linked(self, part, objects, output):
        """Why a program that is linked with |objects| fails, and which."""
        for test in TESTS[part][0]:
            if self.build.seconds.get((part, test)) == 0:
                continue
            if not self.build.link(self.build.program(test), objects, output,
                                   sanitize(part)):
                return "link", test
            why = self.run(self.build.test_words(test, output),
                           self.build.seconds.get((part, test), 300))
            if why:
                return why, test
        return "", ""

    def whole(self, part, plain):
        """The same with tests that load the library."""
        library = self.folder / "lib/libpestle.so.0"
        library.parent.mkdir(exist_ok=True)
        tests = [test for test in TESTS[part][1]
                 if self.build.seconds.get((part, test)) != 0]
        if not tests:
            return "", ""
        if not self.build.link("libpestle.so.0.3.0", [plain], library,
                               ["-Wl,--allow-multiple-definition"]):
            return "link", "libpestle.so"
        for test in tests:
            why = self.run(self.build.ctest_words(test),
                           self.build.seconds.get((part, test), 300),
                           {"LD_LIBRARY_PATH": str(library.parent)},
                           self.build.folder)
            if why:
                return why, test
        return "", ""

    def baseline(self, part):
        """Each test with all sources of the part as they are, and the sanitizers."""
        objects = []
        for path in coverage.sources(part):
            output = self.folder / f"base-{len(objects)}.o"
            if not self.build.compile(path, path, output, ["-O1", *sanitize(part)]):
                raise SystemExit(f"{path} does not compile")
            objects.append(output)
        output = self.folder / "base"
        for test in TESTS[part][0]:
            if self.build.link(self.build.program(test), objects, output,
                               sanitize(part)):
                why = self.run(self.build.test_words(test, output), 600)
            else:
                why = "link"
            self.build.seconds[part, test] = 0 if why else self.took * 4 + 8
            if why:
                print(f"{test} fails without a mutant ({why}): left out",
                      flush=True)
        for test in TESTS[part][1]:
            words = self.build.ctest_words(test)
            why = self.run(words, 600, None, self.build.folder) if words \
                else "not built"
            self.build.seconds[part, test] = 0 if why else self.took * 4 + 8
            if why:
                print(f"{test} fails without a mutant ({why}): left out",
                      flush=True)

    def try_one(self, mutant):
        source, sane = self.folder / "m.c", self.folder / "m.o"
        source.write_text(f'#line 1 "{mutant.path}"\n{mutant.text}')
        compile_ = self.build.compile
        if not compile_(mutant.path, source, sane, ["-O1", *sanitize(mutant.part)]):
            return mutant.row("not built", "")
        why, test = self.linked(mutant.part, [sane], self.folder / "program")
        if why:
            return mutant.row("killed", f"{why}: {test}")
        mine, other = self.folder / "m.s", self.folder / "o.s"
        source_as_it_is = self.folder / "o.c"
        source_as_it_is.write_text(f'#line 1 "{mutant.path}"\n'
                                   + mutant.path.read_text())
        compile_(mutant.path, source, mine, ["-O2", "-S"])
        compile_(mutant.path, source_as_it_is, other, ["-O2", "-S"])
        if strip(mine) == strip(other):
            return mutant.row("same code", "")
        compile_(mutant.path, source, sane, ["-O2"])
        why, test = self.whole(mutant.part, sane)
        if why:
            return mutant.row("killed", f"{why}: {test}")
        return mutant.row("survived", "")


def strip(path):
    return [line for line in path.read_text().splitlines()
            if not line.startswith("\t.file")]


def main(options):
    build = Build(options.build.resolve())
    old = (json.loads(options.out.read_text())
           if options.out and options.out.exists() else [])
    done = {(row["file"], row["line"], row["kind"], row["before"], row["after"])
            for row in old}
    rows = list(old)
    with tempfile.TemporaryDirectory(prefix="pestle-mutants-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        free = []
        for i in range(options.jobs):
            (folder / str(i)).mkdir()
            free.append(Runner(build, folder / str(i)))
        for part, count, mutants in choose(options.files, options.count,
                                           options.seed):
            mutants = [one for one in mutants if (
                lambda row: (row["file"], row["line"], row["kind"],
                             row["before"], row["after"]))(one.row("", ""))
                not in done]
            if not mutants:
                continue
            free[0].baseline(part)

            def one(mutant):
                runner = free.pop()
                try:
                    return runner.try_one(mutant)
                finally:
                    free.append(runner)

            with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
                for row in pool.map(one, mutants):
                    rows.append(row)
                    print(f"{row['state']:10} {row['file']}:{row['line']}: "
                          f"{row['kind']}: {row['before'][:60]} -> "
                          f"{row['after'][:40]}  {row['by']}", flush=True)
                    if options.out:
                        options.out.write_text(
                            "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
            print(f"{part}: {len(mutants)} of {count} places")
    print(summary(rows))
    return 0


def summary(rows):
    text = ["| Part | Mutants | Killed | Survived | Share killed |",
            "|---|---:|---:|---:|---:|"]
    for part in TESTS:
        mine = [row for row in rows if row["part"] == part]
        killed = sum(row["state"] == "killed" for row in mine)
        survived = sum(row["state"] == "survived" for row in mine)
        counted = killed + survived
        text.append(f"| {part} | {counted} | {killed} | {survived} | "
                    f"{100 * killed / max(counted, 1):.0f} % |")
    return "\n".join(text)
