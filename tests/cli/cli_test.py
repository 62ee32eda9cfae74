#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pestle command from outside: exit codes, what it says, its files."""

import json
import os
import pathlib
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
PESTLE = BUILD / "pestle"

ADD = """\
module @add {
  func.func public @main(%x: tensor<2x3xf32> {pestle.name = "x"},
                         %y: tensor<2x3xf32> {pestle.name = "y"})
      -> (tensor<2x3xf32> {pestle.name = "z"}) {
    %z = stablehlo.add %x, %y : tensor<2x3xf32>
    return %z : tensor<2x3xf32>
  }
}
"""


def read_options():
    """name -> (environment, verbs) of options.def, where a name may have two rows."""
    text = (SOURCE / "tools/pestle/options.def").read_text()
    row = r'^PESTLE_OPTION\(\w+,\s*"([^"]+)",\s*\w+,\s*"[^"]*",\s*"([^"]*)",'
    row += r"\s*([A-Z| ]+),"
    rows = re.findall(row, text, re.M)
    options = {}
    for name, environment, verbs in rows:
        before = options.get(name, ("", []))
        options[name] = (before[0] or environment,
                         before[1] + verbs.replace(" ", "").split("|"))
    return options


def npy_pair(descr, value):
    """A .npy file of two elements of eight bytes."""
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}"
    head = head.ljust(117) + "\n"
    size = len(head).to_bytes(2, "little")
    data = value.to_bytes(8, "little", signed=value < 0) * 2
    return b"\x93NUMPY\x01\x00" + size + head.encode() + data


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pestle-cli-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.write("add.mlir", ADD)

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run_pestle(self, *args, env=None, **options):
        environment = dict(os.environ, PESTLE_CACHE_DIR=f"{self.folder}/cache")
        environment.update(env or {})
        return subprocess.run(
            [PESTLE, *map(str, args)],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
            **options,
        )

    def succeed(self, *args, **options):
        done = self.run_pestle(*args, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def fail_with(self, code, sentence, *args, **options):
        """The command must fail with |code|, |sentence| (a pattern) on stderr
        after "pestle: error: ", and nothing on stdout."""
        done = self.run_pestle(*args, **options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertRegex(done.stderr, r"(?m)^pestle: error: ")
        self.assertRegex(done.stderr, sentence)
        self.assertEqual(done.stdout, "")


class CommandLine(Case):
    def test_help_lists_every_option(self):
        verbs = {"F": "diff", "M": "reduce", "H": "doctor",
                 "T": "op-test", "I": "info", "B": "bench", "G": "generate",
                 "V": "view", "L": "devices",
                 "R": "run", "D": "dump", "P": "plugins", "C": "cache",
                 "O": "opt", "K": "compile", "E": "explain"}  # fmt: skip
        options = read_options()
        self.assertGreater(len(options), 25)
        for bit, verb in verbs.items():
            text = self.succeed(verb, "--help")
            for name, (environment, bits) in options.items():
                dash = "-" if len(name) == 1 else "--"
                listed = re.search(rf"(?m)^  {dash}{name}( |$|\[=)", text)
                self.assertEqual(bool(listed), bit in bits, (verb, name))
                if bit in bits and environment:
                    self.assertIn(environment, text)

    def test_ways_to_ask_for_help(self):
        text = self.succeed("run", "--help")
        for words in (("help", "run"), ("run", "-h"), ("--help", "run")):
            self.assertEqual(self.succeed(*words), text)
        text = self.succeed("--help")
        self.assertEqual(self.succeed("help"), text)
        self.assertEqual(self.succeed("-h"), text)
        for code in range(7):
            self.assertRegex(text, rf"\b{code} [a-zP]")

    def test_completion_completes(self):
        def complete(*words):
            script = self.succeed("completion") + (
                f"COMP_WORDS=({' '.join(words)}); "
                f"COMP_CWORD={len(words) - 1}; _pestle; "
                'printf "%s\\n" "${COMPREPLY[@]}"'
            )
            done = subprocess.run(
                ["bash", "-c", script], capture_output=True, text=True,
                cwd=self.folder,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.split()

        self.assertEqual(complete("pestle", "du"), ["dump"])
        self.assertEqual(complete("pestle", "dump", "--stop"), ["--stop-after"])
        self.assertEqual(complete("pestle", "run", "add"), ["add.mlir"])
        self.assertEqual(complete("pestle", "run", "--stop"), [])

    def test_man_page_is_roff(self):
        if not shutil.which("man"):
            self.skipTest("there is no man")
        self.write("pestle.1", self.succeed("man"))
        done = subprocess.run(
            ["man", "--warnings", "-E", "UTF-8", "-l", "pestle.1"],
            cwd=self.folder, capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("--skip-passes", done.stdout)

    def test_man_and_completion_come_from_the_table(self):
        man = self.succeed("man")
        completion = self.succeed("completion")
        for name, (environment, _) in read_options().items():
            dash = "-" if len(name) == 1 else "--"
            self.assertIn(f"{dash}{name} ", completion)
            self.assertIn(f"{dash}{name}".replace("-", r"\-"), man)
            self.assertIn(environment, man)
        bash = subprocess.run(["bash", "-n"], input=completion, text=True)
        self.assertEqual(bash.returncode, 0)

    def test_usage_errors(self):
        self.fail_with(2, "no verb 'frob'", "frob")
        self.fail_with(2, "what is 'frob'", "help", "frob")
        self.fail_with(2, "takes no argument but --json, not 'x'", "version", "x")
        self.fail_with(2, "takes no argument, not 'x'", "man", "x")
        self.fail_with(2, "a verb is missing")
        self.fail_with(2, "has no option 'frob'", "run", "--frob")
        self.fail_with(2, "--dim wants", "run", "--dim")
        self.fail_with(2, "--bench wants a number", "run", "--bench", "x")
        self.fail_with(2, "--bench wants a number", "run", "--bench=-1")
        self.fail_with(2, "--bench wants at least 1 run, not '0'", "run",
                       "add.mlir", "--bench", "0")  # fmt: skip
        self.fail_with(2, "takes no value", "run", "--no-cache=1", "m.onnx")
        self.fail_with(2, "wants a model or plan", "run")
        self.fail_with(2, "what is 'b'", "run", "a", "b")
        self.fail_with(2, "--stage wants", "dump", "add.mlir", "--stage", "x")
        self.fail_with(2, "--log wants", "plugins", "--log", "loud")
        self.fail_with(2, "--threads wants", "run", "m", "--threads", "0")
        self.fail_with(2, "wants stats, list", "cache", "burn")
        self.fail_with(
            2, "--numerics wants", "dump", "add.mlir", "--numerics", "sloppy"
        )
        self.fail_with(2, "--compat wants ort", "dump", "add.mlir", "--compat", "text")

    def test_unknown_passes(self):
        """At each stage, also at those that no pass comes before."""
        known = "no pass is named 'nope'; there are: .*canonicalise.*fuse"
        for option in ("--passes", "--skip-passes", "--print-after"):
            sentence = f"{option}: {known}"
            for stage in ([], ["--stage", "graph"], ["--stage", "fused"]):
                dump = ["dump", "add.mlir", *stage, option, "nope"]
                self.fail_with(2, sentence, *dump)
                self.fail_with(2, sentence, *dump[:-1], "cse,nope")
        run = ["run", "add.mlir", "--skip-passes", "nope"]
        self.fail_with(2, known, *run)

    def test_graph_is_before_all_passes(self):
        for option in ("--passes=cse", "--skip-passes=cse", "--stop-after=1"):
            dump = ["dump", "add.mlir", option]
            self.fail_with(2, "--stage fused", *dump, "--stage", "graph")
            # Without a stage the options choose one.
            self.succeed(*dump)
        text = self.succeed("dump", "add.mlir", "--stop-after", "2")
        self.assertNotIn("pestle.fusion", text)
        text = self.succeed("dump", "add.mlir", "--passes", "fuse")
        self.assertIn("pestle.fusion", text)

    def test_order_of_complex_numbers(self):
        c = "tensor<4xcomplex<f32>>"
        self.write(
            "c.mlir",
            f"func.func @main(%x: {c}) -> {c} {{\n"
            f"  %0 = stablehlo.maximum %x, %x : {c}\n  return %0 : {c}\n}}\n",
        )
        self.succeed("run", "c.mlir", "--input", "x=random:1")

    def test_unknown_device(self):
        sentence = "no device 'nope'; there are: .*ref"
        self.fail_with(2, sentence, "run", "add.mlir", "--device", "nope")
        dump = ["dump", "add.mlir", "--stage", "plan"]
        self.fail_with(2, sentence, *dump, "--target", "nope")
        self.fail_with(2, "'cpu:x' is not understood", "run", "add.mlir",
                       "--device", "cpu:x")  # fmt: skip

    def test_environment(self):
        for name, value in {
            "PESTLE_THREADS": "four",
            "PESTLE_LOG": "loud",
            "PESTLE_STRICT": "perhaps",
            "PESTLE_NO_CACHE": "perhaps",
            "PESTLE_CACHE_SIZE": "0",
        }.items():
            sentence = rf"{name} is '{value}'; expected"
            self.fail_with(2, sentence, "plugins", env={name: value})
        sentence = "PESTLE_NO_FUSE is 'perhaps'; expected"
        self.fail_with(
            2, sentence, "dump", "add.mlir", env={"PESTLE_NO_FUSE": "perhaps"}
        )
        sentence = "no device 'nope'; there are: .*ref"
        self.fail_with(
            2,
            sentence,
            "run",
            "add.mlir",
            "--input",
            "x=1",
            env={"PESTLE_DEVICE": "nope"},
        )

    def test_sizes_have_suffixes(self):
        run = ["run", "add.mlir", "--input", "x=1", "--input", "y=1"]
        for size in ("4096", "4K", "512M", "2G"):
            self.succeed(*run, "--cache-size", size)
            self.succeed(*run, env={"PESTLE_CACHE_SIZE": size})
            self.succeed("cache", "prune", "--keep", size)
        for size in ("M", "2T", "-1", "1.5G", "99999999999G"):
            self.fail_with(2, f"wants bytes, or .*not '{size}'", *run,
                           "--cache-size", size)  # fmt: skip

    def test_variables_that_are_no_option(self):
        for name in ("PESTLE_PERF_MAP", "PESTLE_GDB"):
            self.assertIn(name, self.succeed("--help"))
            self.assertIn(name, self.succeed("man"))

    def test_plugins(self):
        self.assertRegex(self.succeed("plugins"), r"(?m)^ref .*built in")
        text = self.succeed("plugins", "--backend-path", self.folder)
        self.assertNotIn("llvm", text)
        self.assertRegex(text, r"(?m)^default: ref$")

    def test_plugins_why(self):
        bad = os.path.join(self.folder, "libpestle-bad.so")
        with open(bad, "w") as file:
            file.write("no library")
        text = self.succeed("plugins", "--why", "--backend-path", self.folder)
        self.assertIn(f"searched:\n         {self.folder}", text)
        self.assertIn(f"not loadable: {bad}", text)
        self.assertRegex(text, r"(?m)^ +used: score 1 is above 0, build ref-3$")
        self.assertRegex(text, r"(?m)^ +cpu:0 is ref$")
        self.fail_with(2, "takes list or test", "plugins", "lists")
        self.fail_with(2, "takes no argument, not 'x'", "plugins", "list", "x")

    def test_plugins_of_another_name(self):
        for name in ("mylib.so", "libpestle-x.so.1", "notes.txt"):
            self.write(name, "")
        text = self.succeed("plugins", "--why", "--backend-path", self.folder)
        for name in ("mylib.so", "libpestle-x.so.1"):
            self.assertIn(f"not looked at: {name}; a plugin is called "
                          "libpestle-NAME.so", text)
        self.assertNotIn("notes.txt", text)

    def test_plugins_names(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("libpestle-\x1b[31mred.so", "libpestle-a\nb.so"):
                with open(os.path.join(folder, name), "wb"):
                    pass
            text = self.succeed("plugins", "--why", "--backend-path", folder)
            self.assertNotIn("\x1b", text)
            self.assertIn("\\x1b[31mred.so", text)
            self.assertIn("a\\x0ab.so", text)

    def test_plugins_test(self):
        self.fail_with(2, "wants one plugin", "plugins", "test")
        if not os.path.exists(os.path.join(BUILD, "pestle-conform")):
            self.skipTest("the conformance kit is not built")
        text = self.succeed("plugins", "test", "ref", "--ops", "add,transpose")
        self.assertRegex(text, r"(?m)^add +P +P +P .*P$")
        self.assertRegex(text, r"(?m)^transpose +P .*P$")
        self.assertRegex(text, r"(?m)^60 cells .* pass 60, fallback 0, "
                               "unsupported 0, WRONG 0$")  # fmt: skip
        text = self.succeed("plugins", "test", "ref", "--ops", "add",
                            "--markdown")  # fmt: skip
        self.assertIn("| `add` | P |", text)
        self.fail_with(2, "there is no op 'ad'", "plugins", "test", "ref",
                       "--ops", "ad")  # fmt: skip
        self.fail_with(2, "--ops: names no op", "plugins", "test", "ref",
                       "--ops", "")  # fmt: skip
        self.fail_with(2, "1 to 1024 workers", "plugins", "test", "ref",
                       "--jobs", "0")  # fmt: skip
        self.fail_with(4, r"libpestle-nobody\[-VARIANT\].so", "plugins", "test",
                       "nobody")  # fmt: skip

    def test_closed_stdout(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [PESTLE, "man"], stdout=full, stderr=subprocess.PIPE, text=True
            )
        self.assertEqual(done.returncode, 5)
        self.assertIn("pestle: error: ", done.stderr)


class Run(Case):
    def test_prints_text(self):
        text = self.succeed(
            "run", "add.mlir", "--input", "x=1.5", "--input", "y=2x3xf32=2"
        )
        self.assertIn("output 0 'z': f32 of 2x3", text)
        self.assertIn("min 3.5  max 3.5  mean 3.5", text)

    def test_integers_are_printed_exactly(self):
        for dtype, value in (("i32", "-715827882"), ("i64", "1000000007"),
                             ("i8", "-128"), ("ui32", "4294967295"),
                             ("i64", "-123456789012345679"),
                             ("ui64", "9007199254740993")):  # fmt: skip
            self.write(
                "same.mlir",
                f"func.func @main(%x: tensor<2x{dtype}>) -> tensor<2x{dtype}> "
                "{ return %x : " f"tensor<2x{dtype}> }}",
            )
            if abs(int(value)) < 1 << 53:
                arg = f"x={value}"
            else:  # beyond what a double holds
                self.write("x.npy", npy_pair("<u8" if dtype == "ui64" else "<i8",
                                             int(value)))
                arg = "x=x.npy"
            text = self.succeed("run", "same.mlir", "--input", arg)
            self.assertIn(f"min {value}  max {value} ", text)
            self.assertIn(f"[{value}, {value}]", text)

    def test_inputs_by_number(self):
        self.write(
            "dot.mlir",
            """\
func.func public @main(%x: tensor<2x3xf32>, %w: tensor<3x4xf32>)
    -> tensor<2x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
""",
        )
        text = self.succeed("run", "dot.mlir", "--input", "0=2",
                            "--input", "1=3")  # fmt: skip
        self.assertIn("mean 18", text)

    def test_random_inputs_repeat(self):
        inputs = ["--input", "x=random:7", "--input", "y=random:8"]
        first = self.succeed("run", "add.mlir", *inputs)
        self.assertEqual(first, self.succeed("run", "add.mlir", *inputs))

    def test_files(self):
        inputs = ["--input", "x=2", "--input", "y=3"]
        self.succeed("run", "add.mlir", *inputs, "--outputs", "out")
        io = (self.folder / "out/io.txt").read_text()
        self.assertEqual(io, "output 0 float32 2x3 output_0.npy z\n")
        # An output serves as input, by io.txt and by number.
        os.makedirs(self.folder / "in")
        for i in range(2):
            shutil.copy(
                self.folder / "out/output_0.npy",
                self.folder / f"in/input_{i}.npy",
            )
        text = self.succeed("run", "add.mlir", "--inputs", "in")
        self.assertIn("mean 10", text)
        self.write(
            "in/io.txt",
            "input 0 float32 2x3 input_0.npy y\n"
            "input 1 float32 2x3 input_1.npy x\n"
            "output 0 ? ? sum.npy z\n",
        )
        self.succeed("run", "add.mlir", "--inputs", "in", "--outputs", "o2")
        self.assertTrue((self.folder / "o2/sum.npy").exists())

    def test_bench_prints_one_json_line(self):
        text = self.succeed(
            "run",
            "add.mlir",
            "--input",
            "x=1",
            "--input",
            "y=1",
            "--bench",
            "5",
            "--outputs",
            "o",
        )
        self.assertEqual(text.count("\n"), 1)
        bench = json.loads(text)
        self.assertEqual(len(bench["run_ms"]), 5)
        self.assertGreater(bench["create_ms"], 0)
        self.assertGreater(bench["peak_rss_kb"], 1000)
        self.assertTrue((self.folder / "o/output_0.npy").exists())

    def test_peak_is_not_that_of_the_parent(self):
        args = ["run", "add.mlir", "--input", "x=1", "--input", "y=1",
                "--bench", "1"]  # fmt: skip
        script = (
            "import os, sys; b = bytearray(1 << 30); b[::4096] = b[::4096]; "
            "b = None; os.execv(sys.argv[1], sys.argv[1:])"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, PESTLE, *args], cwd=self.folder,
            capture_output=True, text=True, timeout=600,
            env=dict(os.environ, PESTLE_CACHE_DIR=f"{self.folder}/cache"),
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLess(json.loads(done.stdout)["peak_rss_kb"], 900000)

    def test_compare(self):
        self.succeed(
            "run",
            "add.mlir",
            "--input",
            "x=1",
            "--input",
            "y=1",
            "--outputs",
            "o",
        )
        self.succeed(
            "run",
            "add.mlir",
            "--input",
            "x=2",
            "--input",
            "y=0",
            "--compare",
            "o",
        )
        sentence = (
            r"output 0 'z' differs in 6 of 6 elements .*worst at "
            r"\[0,0\]: 3, expected 2"
        )
        self.fail_with(
            1,
            sentence,
            "run",
            "add.mlir",
            "--input",
            "x=2",
            "--input",
            "y=1",
            "--compare",
            "o",
        )
        self.succeed(
            "run",
            "add.mlir",
            "--input",
            "x=2",
            "--input",
            "y=1",
            "--compare",
            "o",
            "--atol",
            "1",
        )
        self.fail_with(
            4,
            "output_0.npy",
            "run",
            "add.mlir",
            "--input",
            "x=2",
            "--input",
            "y=1",
            "--compare",
            ".",
        )

    def test_wrong_inputs(self):
        run = ["run", "add.mlir", "--input", "y=1"]
        self.fail_with(2, "input 0, 'x' .f32 of 2x3., is not given", *run)
        self.fail_with(
            2, "no input 'w'; it has 'x', 'y'", *run, "--input", "w=1"
        )
        self.fail_with(4, "'x'.* 3x3", *run, "--input", "x=3x3xf32=1")
        self.fail_with(4, "'x'.*i32.*f32", *run, "--input", "x=2x3xi32=1")
        self.fail_with(4, "'x'", *run, "--input", "x=2x3x1xf32=1")
        self.fail_with(2, "is neither a file", *run, "--input", "x=abc")
        self.fail_with(2, "lacks a type", *run, "--input", "x=2x3=1")
        self.fail_with(2, "is no shape", *run, "--input", "x=2xq=1")
        self.fail_with(2, "wants NAME=VALUE", *run, "--input", "x")
        self.fail_with(
            4, "passes 2\\^63", *run, "--input", "x=9000000000x9000000000xf32=1"
        )
        self.fail_with(4, "No such file", *run, "--input", "x=none.npy")
        self.fail_with(4, "No such file", *run, "--inputs", "none")

    def test_damaged_npy(self):
        self.succeed(
            "run",
            "add.mlir",
            "--input",
            "x=1",
            "--input",
            "y=1",
            "--outputs",
            "o",
        )
        good = (self.folder / "o/output_0.npy").read_bytes()
        run = ["run", "add.mlir", "--input", "y=1", "--input", "x=bad.npy"]
        for size in (0, 5, 11, 60, len(good) - 1):
            self.write("bad.npy", good[:size])
            self.fail_with(4, "bad.npy", *run)
        self.write("bad.npy", good.replace(b"<f4", b">f4"))
        self.fail_with(3, "little-endian", *run)
        self.write("bad.npy", good.replace(b"(2, 3)", b"(2, -)"))
        self.fail_with(4, "shape is not a tuple", *run)
        for shape in (b"(-2, 3)", b"(2, -3)", b"(-1,)  "):
            self.write("bad.npy", good.replace(b"(2, 3)", shape))
            self.fail_with(4, "shape has the extent -[123]; extents", *run)
        self.write("bad.npy", good.replace(b": False", b": Maybe"))
        self.fail_with(4, "'fortran_order' is neither", *run)
        self.write("bad.npy", good + b"more")
        self.fail_with(4, "4 bytes follow the 24 bytes of elements.*bad.npy", *run)
        self.write("bad.npy", good.replace(b"(2, 3)", b"(1, 3)"))
        self.fail_with(4, "12 bytes follow the 12 bytes", *run)

    def test_pipes(self):
        """No waiting for who writes to them."""
        os.mkfifo(self.folder / "p.onnx")
        os.mkfifo(self.folder / "p.npy")
        sentence = "it is a device, pipe or socket"
        for verb in ("run", "dump", "opt"):
            self.fail_with(4, f"'p.onnx': {sentence}", verb, "p.onnx")
        self.fail_with(4, f"'p.npy': {sentence}", "run", "add.mlir",
                       "--input", "x=p.npy", "--input", "y=1")  # fmt: skip

    def test_model_from_a_pipe(self):
        words = ["-", "--input", "x=1", "--input", "y=2", "--no-cache"]
        text = self.succeed("run", *words, input=ADD)
        self.assertIn("mean 3", text)
        self.assertIn("stablehlo.add", self.succeed("dump", "-", input=ADD))
        self.fail_with(3, "<stdin>:5:10: operation 'stablehlo.nope'", "dump", "-",
                       input=ADD.replace("stablehlo.add", "stablehlo.nope"))
        self.fail_with(2, "stands for the model alone", "run", "add.mlir", "-",
                       input=ADD)
        self.succeed("compile", "add.mlir", "-o", "a.plan")
        plan = (self.folder / "a.plan").read_bytes()
        done = subprocess.run([PESTLE, "run", *words], input=plan,
                              capture_output=True, cwd=self.folder)
        self.assertIn(b"mean 3", done.stdout)

    def test_options_end(self):
        self.write("--odd.mlir", ADD)
        self.assertIn("stablehlo.add", self.succeed("dump", "--", "--odd.mlir"))
        self.fail_with(4, "cannot open '--help'", "dump", "--", "--help")

    def test_control_bytes_are_escaped(self):
        bad = ADD.replace('@add', '@"\\1B[31m"').replace(
            "stablehlo.add", "stablehlo.nope")
        self.write("bad.mlir", bad)
        self.write("b\x1b\u009b\x07.mlir", bad)
        for name in ("bad.mlir", "b\x1b\u009b\x07.mlir", "\x1bnone"):
            done = self.run_pestle("run", name)
            self.assertNotEqual(done.returncode, 0)
            self.assertNotRegex(done.stderr, "[\x1b\x07\u009b]")
        self.assertIn("\\x1bnone", done.stderr)

    def test_tolerances(self):
        run = ["run", "add.mlir", "--input", "x=1", "--input", "y=2"]
        self.succeed(*run, "--outputs", "o")
        for option in ("--rtol", "--atol"):
            for value in ("x", "", "-1", "nan", "inf"):
                self.fail_with(2, "a tolerance is a finite number", *run,
                               option, value, "--compare", "o")  # fmt: skip
            self.fail_with(2, f"{option} is of --compare DIR", *run, option,
                           "1")  # fmt: skip

    def test_the_model_is_not_overwritten(self):
        sentence = "add.mlir is the model itself"
        for other in ("add.mlir", "./add.mlir", "link"):
            if other == "link":
                os.symlink("add.mlir", self.folder / "link")
                sentence = "link is the model itself"
            self.fail_with(2, sentence, "compile", "add.mlir", "-o", other)
            self.fail_with(2, sentence, "opt", "add.mlir", "-o", other)
            self.fail_with(2, sentence, "run", "add.mlir", "--input", "x=1",
                           "--input", "y=2", "--save-plan", other)  # fmt: skip
        self.assertEqual((self.folder / "add.mlir").read_text(), ADD)

    def test_outputs_stay_in_their_folder(self):
        self.write("keep.npy", "mine")
        os.makedirs(self.folder / "in")
        run = ["run", "add.mlir", "--input", "x=1", "--input", "y=2",
               "--inputs", "in", "--outputs", "out"]  # fmt: skip
        for file in ("../keep.npy", f"{self.folder}/keep.npy", "..",
                     "a/../../keep.npy"):  # fmt: skip
            self.write("in/io.txt", f"output 0 ? ? {file} z\n")
            self.fail_with(4, "leads out of the folder", *run)
        self.assertEqual((self.folder / "keep.npy").read_text(), "mine")
        self.write("in/io.txt", "output 0 ? ? ..z.npy z\n")
        self.succeed(*run)
        self.assertTrue((self.folder / "out/..z.npy").exists())

    def test_compare_sees_all_of_an_element(self):
        import numpy

        def compare(kind, found, expected):
            self.write("same.mlir", f"func.func @main(%x: tensor<1x{kind}>) -> "
                       f"tensor<1x{kind}> {{\n  return %x : tensor<1x{kind}>\n}}")  # fmt: skip
            os.makedirs(self.folder / "e", exist_ok=True)
            numpy.save(self.folder / "x.npy", found)
            numpy.save(self.folder / "e/output_0.npy", expected)
            return self.run_pestle("run", "same.mlir", "--input", "0=x.npy",
                                   "--compare", "e")  # fmt: skip

        for kind, dtype, a, b in (
            ("complex<f32>", numpy.complex64, 1 + 2j, 1 + 3j),
            ("complex<f64>", numpy.complex128, 1 + 2j, 1 + 3j),
            ("i64", numpy.int64, (1 << 62) + 1, 1 << 62),
            ("ui64", numpy.uint64, (1 << 63) + 1, 1 << 63),
        ):
            a, b = numpy.array([a], dtype), numpy.array([b], dtype)
            done = compare(kind, a, a)
            self.assertEqual(done.returncode, 0, (kind, done.stderr))
            done = compare(kind, a, b)
            self.assertEqual(done.returncode, 1, (kind, done.stderr))
            self.assertIn("1 of 1 elements", done.stderr)
            if "complex" in kind:
                self.assertIn("[0]: (1, 2), expected (1, 3)", done.stderr)

    def test_inputs_of_one_name(self):
        self.write("same.mlir", ADD.replace('"y"', '"x"'))
        for values in (["0=1", "1=5"], ["0=2x3xf32=1", "1=5"],
                       ["1=2x3xf32=5", "0=1"]):  # fmt: skip
            words = [w for v in values for w in ("--input", v)]
            self.assertIn("mean 6", self.succeed("run", "same.mlir", *words))

    def test_names_of_two_lines(self):
        self.write("z.mlir", ADD.replace('"z"', r'"z\0Aoutput 1 ? ? evil z"'))
        self.succeed("run", "z.mlir", "--input", "x=1", "--input", "y=2",
                     "--outputs", "o")  # fmt: skip
        self.assertEqual((self.folder / "o/io.txt").read_text(),
                         "output 0 float32 2x3 output_0.npy "
                         "z?output 1 ? ? evil z\n")  # fmt: skip

    def test_limit_on_files(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))

        self.fail_with(5, "output_0.npy.*free some space", "run", "add.mlir",
                       "--input", "x=1", "--input", "y=2", "--no-cache",
                       "--outputs", "o", preexec_fn=limit)  # fmt: skip

    def test_missing_model(self):
        self.fail_with(4, "none.onnx", "run", "none.onnx")

    def test_no_model_at_all(self):
        sentence = "cannot read '/tmp': it is a folder, not a regular file"
        self.fail_with(4, sentence, "run", "/tmp")
        self.fail_with(4, sentence, "dump", "/tmp")
        self.fail_with(4, "'/dev/null': it is a device", "run", "/dev/null")
        for name in ("empty.onnx", "empty.mlir", "empty"):
            self.write(name, b"")
            sentence = f"'{name}' is empty; a model is ONNX, GGUF, Pestle or "
            self.fail_with(4, sentence, "run", name)
            self.fail_with(4, sentence, "dump", name)

    def test_unwritable_outputs(self):
        run = ["run", "add.mlir", "--input", "x=1", "--input", "y=2"]
        where = "choose a folder that exists and that you may write to"
        self.fail_with(5, f"'/proc/no'.*{where}", *run, "--outputs", "/proc/no")
        dump = ["dump", "add.mlir", "-o"]
        self.fail_with(5, f"'/proc/no'.*{where}", *dump, "/proc/no")
        self.fail_with(5, "'add.mlir' exists and is not a folder", *dump,
                       "add.mlir")  # fmt: skip
        # A folder is where an output would go.
        os.makedirs(self.folder / "o/output_0.npy")
        self.fail_with(5, "output_0.npy", *run, "--outputs", "o")

    def test_full_disk(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("there is no /dev/full")
        os.makedirs(self.folder / "o")
        os.symlink("/dev/full", self.folder / "o/output_0.npy")
        run = ["run", "add.mlir", "--input", "x=1", "--input", "y=2"]
        self.fail_with(5, "output_0.npy.*free some space", *run,
                       "--outputs", "o")  # fmt: skip

    def test_shapes_of_unknown_inputs(self):
        sentence = "'zz', but the module has no such input; it has 'x', 'y'"
        for verb in ("run", "dump", "opt"):
            self.fail_with(2, sentence, verb, "add.mlir", "--shape", "zz=2x3")

    def test_shapes_that_do_not_fit(self):
        """The sentence says that the command line is in it."""
        run = ["run", "add.mlir", "--input", "y=1"]
        self.fail_with(4, "command line says: .*--shape x=4x3", *run,
                       "--shape", "x=4x3")  # fmt: skip
        self.write("any.mlir", ADD.replace("2x3xf32", "?x3xf32"))
        dump = ["dump", "any.mlir", "--shape", "x=4x3", "--shape"]
        self.fail_with(4, "says: --shape x=4x3, --shape y=5x3", *dump, "y=5x3")
        # What fails anyhow is not blamed on it.
        self.write("bad.mlir", ADD.replace("stablehlo.add", "stablehlo.ad"))
        done = self.run_pestle("dump", "bad.mlir", "--shape", "x=2x3")
        self.assertEqual(done.returncode, 3)
        self.assertNotIn("command line", done.stderr)

    def test_names_given_twice(self):
        run = ["run", "add.mlir"]
        self.fail_with(2, "--input is given twice for 'x': as 'x=1' and as "
                       "'x=2x3xf32=2'", *run, "--input", "x=1", "--input",
                       "y=1", "--input", "x=2x3xf32=2")  # fmt: skip
        sentence = "--input is given twice for 'x': as 'x=1' and as '0=2'"
        for names in (["x=1", "0=2"], ["0=2", "x=1"]):
            words = [w for n in [*names, "y=1"] for w in ("--input", n)]
            self.fail_with(2, sentence, *run, *words)
        for option, value in (("dim", "n=1"), ("shape", "x=2x3"),
                              ("const", "x=1")):  # fmt: skip
            self.fail_with(
                2, f"--{option} is given twice for '{value[0]}'",
                *run, f"--{option}", value, f"--{option}", value,
            )  # fmt: skip
        # A number that is another input's name stands for that one.
        text = ADD.replace('"x"', '"1"').replace('"y"', '"0"')
        self.write("turned.mlir", text.replace("stablehlo.add",
                                               "stablehlo.subtract"))  # fmt: skip
        text = self.succeed("run", "turned.mlir", "--input", "0=1",
                            "--input", "1=5")  # fmt: skip
        self.assertIn("mean 4", text)

    def test_bad_text(self):
        self.write("bad.mlir", ADD.replace("stablehlo.add", "stablehlo.ad"))
        self.fail_with(3, r"bad.mlir:5.*'stablehlo.ad'", "run", "bad.mlir")
        self.write("bad.mlir", ADD.replace("%x, %y :", "%x, %w :"))
        self.fail_with(4, r"bad.mlir:5.*w", "run", "bad.mlir")


class Plans(Case):
    inputs = ["--input", "x=1", "--input", "y=2"]

    def make(self):
        self.succeed("run", "add.mlir", *self.inputs, "--save-plan", "a.plan")
        return (self.folder / "a.plan").read_bytes()

    def test_saved_plan_runs(self):
        self.make()
        text = self.succeed("run", "a.plan", *self.inputs)
        self.assertIn("mean 3", text)
        self.fail_with(
            2,
            "shapes and constants are fixed",
            "run",
            "a.plan",
            *self.inputs,
            "--dim",
            "n=1",
        )

    def test_damaged_plan(self):
        good = self.make()
        for size in (0, 4, 100, len(good) // 2, len(good) - 1):
            self.write("bad.plan", good[:size])
            self.fail_with(4, "bad.plan", "run", "bad.plan", *self.inputs)
        for at in (0, 8, 40, 200, len(good) // 2, len(good) - 1):
            bad = bytearray(good)
            bad[at] ^= 0x10
            self.write("bad.plan", bytes(bad))
            self.fail_with(4, "bad.plan", "run", "bad.plan", *self.inputs)

    def test_unwritable_plan(self):
        self.fail_with(
            5,
            "cannot write 'none/a.plan': .*choose a folder that exists",
            "run",
            "add.mlir",
            *self.inputs,
            "--save-plan",
            "none/a.plan",
        )

    def test_plan_is_no_model(self):
        self.make()
        shutil.copy(self.folder / "a.plan", self.folder / "a.bin")
        for name in ("a.plan", "a.bin"):
            sentence = f"'{name}' is a compiled plan, which 'pestle run {name}'"
            self.fail_with(4, sentence, "dump", name)
            self.fail_with(4, sentence, "dump", name, "--stage", "plan")
        self.assertIn("mean 3", self.succeed("run", "a.bin", *self.inputs))

    def test_what_a_plan_has_fixed(self):
        self.make()
        run = ["run", "a.plan", *self.inputs]
        for option in ("--numerics=fast", "--skip-passes=cse", "--time-passes",
                       "--print-after=all", "--target-cpu=haswell"):  # fmt: skip
            sentence = f"compiled already: {option.split('=')[0]} goes where"
            self.fail_with(2, sentence, *run, option)


    def test_compile_makes_a_plan(self):
        """The plan needs neither the model nor the cache that it came from."""
        self.assertEqual(self.succeed("compile", "add.mlir", "-o", "a.plan"), "")
        os.remove(self.folder / "add.mlir")
        shutil.rmtree(self.folder / "cache", ignore_errors=True)
        run = ["run", "a.plan", *self.inputs]
        self.assertIn("mean 3", self.succeed(*run))
        self.fail_with(2, "no device 'nope'", *run, "--device", "nope")

    def test_compile_takes_what_makes_the_plan(self):
        self.write("any.mlir", ADD.replace("2x3xf32", "?x3xf32"))
        make = ["compile", "any.mlir", "-o", "a.plan"]
        self.fail_with(2, r"give --shape .*'x', is of \[\?, 3\]", *make)
        self.assertFalse((self.folder / "a.plan").exists())
        self.succeed(*make, "--shape", "x=4x3", "--shape", "y=4x3")
        text = self.succeed("run", "a.plan", *self.inputs)
        self.assertIn("f32 of 4x3", text)
        self.fail_with(4, "'x'.*2x3.*4x3", "run", "a.plan",
                       "--input", "x=2x3xf32=1", "--input", "y=1")  # fmt: skip

    def test_compile_for_a_device(self):
        self.succeed(
            "compile", "add.mlir", "-o", "a.plan", "--device", "ref"
        )
        run = ["run", "a.plan", *self.inputs]
        self.assertIn("mean 3", self.succeed(*run))
        if "llvm " not in self.succeed("plugins"):
            self.skipTest("the llvm backend is not built")
        self.fail_with(4, "plan 'add'.*'ref'", *run, "--device", "llvm")

    def test_compile_for_another_cpu(self):
        """Refused before its code runs, with what the machine lacks."""
        if "llvm " not in self.succeed("plugins"):
            self.skipTest("the llvm backend is not built")
        info = pathlib.Path("/proc/cpuinfo")
        flags = info.read_text().split() if info.exists() else []
        if "avx2" not in flags or "avx_vnni" in flags:
            self.skipTest("the CPU has not AVX2, or has AVX-VNNI too")
        make = ["compile", "add.mlir", "-o", "a.plan", "--target-cpu"]
        self.succeed(*make, "sapphirerapids")
        sentence = r"plan 'add' needs \S*\+avxvnni.* lacks; compile the model"
        self.fail_with(4, sentence, "run", "a.plan", *self.inputs)
        self.succeed(*make, "x86-64-v3")
        self.assertIn("mean 3", self.succeed("run", "a.plan", *self.inputs))

    def test_compile_errors(self):
        self.fail_with(2, "wants -o FILE.plan", "compile", "add.mlir")
        self.fail_with(2, "wants a model", "compile", "-o", "a.plan")
        self.fail_with(5, "cannot write 'none/a.plan'", "compile", "add.mlir",
                       "-o", "none/a.plan")  # fmt: skip
        self.make()
        for verb in (["compile", "-o", "b.plan"], ["opt"]):
            self.fail_with(4, "'a.plan' is a compiled plan", *verb, "a.plan")
        self.assertFalse((self.folder / "b.plan").exists())


class Opt(Case):
    def setUp(self):
        super().setUp()
        self.write("chain.mlir", CHAIN)

    def test_the_passes_named(self):
        text = self.succeed("opt", "chain.mlir", "--passes", "inline")
        self.assertNotIn("call @half", text)
        self.assertIn("stablehlo.multiply", text)
        self.assertNotIn("pestle.fusion", text)
        both = self.succeed(
            "opt", "chain.mlir", "--passes", "inline,canonicalise"
        )
        # One after the other is the same as both.
        self.write("inlined.mlir", text)
        again = self.succeed("opt", "inlined.mlir", "--passes", "canonicalise")
        self.assertEqual(again, both)

    def test_the_pipeline(self):
        """What it prints reads back, compiles, and computes the same."""
        self.assertEqual(self.succeed("opt", "chain.mlir", "-o", "o.mlir"), "")
        text = (self.folder / "o.mlir").read_text()
        self.assertEqual(text, self.succeed("opt", "chain.mlir"))
        self.assertIn("pestle.fusion", text)
        inputs = ["--input", "0=random:1", "--input", "1=random:2"]
        self.succeed("run", "chain.mlir", *inputs, "--outputs", "out")
        self.succeed("run", "o.mlir", *inputs, "--compare", "out")

    def test_what_else_it_shows(self):
        opt = ["opt", "chain.mlir", "--passes", "inline"]
        plain = self.succeed(*opt)
        done = self.run_pestle(*opt, "--print-after", "all", "--time-passes")
        self.assertEqual((done.returncode, done.stdout), (0, plain))
        self.assertIn("// ---- inline", done.stderr)
        self.assertRegex(done.stderr, r"inline +[0-9.]+ ms")

    def test_large_constants(self):
        numbers = ", ".join(["1.5", "2.5"] * 20)
        self.write("c.mlir", "func.func public @main() -> tensor<40xf32> {\n"
                   f"  %c = stablehlo.constant dense<[{numbers}]> : "
                   "tensor<40xf32>\n  return %c : tensor<40xf32>\n}\n")  # fmt: skip
        opt = ["opt", "c.mlir", "--passes", "cse"]
        text = self.succeed(*opt)
        self.assertNotIn("dense_elided", text)
        self.write("again.mlir", text)
        self.assertEqual(self.succeed("opt", "again.mlir", *opt[2:]), text)
        self.assertIn("dense_elided", self.succeed(*opt, "--elide"))

    def test_large_text(self):
        """Also the program of the tests reads all of it."""
        text = ADD.replace("    return", "// filler\n" * (2 << 20) + "    return")
        self.assertGreater(len(text), 20 << 20)
        self.write("large.mlir", text)
        want = self.succeed("opt", "add.mlir", "--passes", "cse")
        self.assertEqual(self.succeed("opt", "large.mlir", "--passes", "cse"),
                         want)  # fmt: skip
        done = subprocess.run(
            [BUILD / "tests/bin/pestle-opt", "large.mlir", "--passes=cse"],
            cwd=self.folder, capture_output=True, text=True,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stdout), (0, want), done.stderr)

    def test_errors(self):
        opt = ["opt", "chain.mlir", "--passes"]
        self.fail_with(2, "no pass is named 'nope'", *opt, "nope")
        self.fail_with(4, "'fuse' requires INLINED: run 'inline' before",
                       *opt, "fuse")  # fmt: skip
        self.fail_with(5, "cannot write 'none/o'", *opt, "cse", "-o", "none/o")


class Cache(Case):
    run_args = ["run", "add.mlir", "--input", "x=1", "--input", "y=2"]

    def test_list_verify_prune_clear(self):
        self.succeed(*self.run_args)
        self.assertRegex(self.succeed("cache", "stats"), r"entries +1\n")
        self.assertEqual(self.succeed("cache", "list").count("\n"), 1)
        self.assertIn("1 sound, 0 damaged", self.succeed("cache", "verify"))
        self.assertIn("removed 0", self.succeed("cache", "prune"))
        self.damage()
        done = self.run_pestle("cache", "verify")
        self.assertEqual(done.returncode, 1)
        self.assertIn("DAMAGED", done.stdout)
        self.assertIn("pestle: error: 1 entries", done.stderr)
        self.assertIn("removed 1", self.succeed("cache", "prune"))
        self.succeed(*self.run_args)
        self.assertIn("removed 1", self.succeed("cache", "clear"))

    def damage(self):
        count = 0
        for path in (self.folder / "cache").rglob("*"):
            if path.is_file() and path.stat().st_size > 1000:
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                path.write_bytes(bytes(data))
                count += 1
        self.assertEqual(count, 1)

    def test_damaged_entry_heals(self):
        text = self.succeed(*self.run_args)
        self.damage()
        self.assertEqual(self.succeed(*self.run_args), text)
        self.assertIn("1 sound, 0 damaged", self.succeed("cache", "verify"))

    def test_folder_in_the_place_of_an_entry(self):
        self.succeed(*self.run_args)
        entry = next(p for p in (self.folder / "cache").iterdir()
                     if re.fullmatch("[0-9a-f]{32}", p.name))
        entry.unlink()
        entry.mkdir()
        self.assertEqual(self.run_pestle("cache", "verify").returncode, 1)
        self.assertIn("removed 1", self.succeed("cache", "prune"))
        self.assertFalse(entry.exists())
        entry.mkdir()
        self.succeed(*self.run_args)
        self.assertIn("1 sound, 0 damaged", self.succeed("cache", "verify"))
        entry.unlink()
        entry.mkdir()
        (entry / "mine").write_text("kept")
        self.assertIn("0 sound, 0 damaged", self.succeed("cache", "verify"))
        self.assertIn("removed 0", self.succeed("cache", "clear"))
        self.succeed(*self.run_args)
        self.assertEqual((entry / "mine").read_text(), "kept")

    def test_no_cache(self):
        self.succeed(*self.run_args, "--no-cache")
        self.assertRegex(self.succeed("cache", "stats"), r"entries +0\n")

    def test_no_cache_to_look_at(self):
        for words in ("stats", "list", "verify", "clear", "prune"):
            sentence = "no cache to look at: .*give --cache-dir"
            self.fail_with(2, sentence, "cache", words, "--cache-dir", "")
            self.fail_with(
                2, sentence, "cache", words, env={"PESTLE_NO_CACHE": "1"}
            )

    def test_keep(self):
        self.succeed(*self.run_args)
        self.succeed(*self.run_args, "--numerics", "strict")
        self.assertIn(
            "removed 0", self.succeed("cache", "prune", "--keep", "1000000")
        )
        self.assertIn("removed 2", self.succeed("cache", "prune", "--keep=9"))

    def test_full_file_system(self):
        """A full tmpfs in a mount namespace of its own."""
        os.makedirs(self.folder / "small")
        script = (
            "mount -t tmpfs -o size=16k tmpfs small && "
            "head -c 16384 /dev/zero > small/all && "
            'exec "$@"'
        )
        space = ["unshare", "-rm", "sh", "-c", script, "sh"]
        try:
            done = subprocess.run([*space, "true"], cwd=self.folder)
        except FileNotFoundError:
            self.skipTest("there is no unshare")
        if done.returncode:
            self.skipTest("no mount namespace can be made here")

        def run(*options):
            return subprocess.run(
                [*space, PESTLE, *self.run_args, *options], cwd=self.folder,
                capture_output=True, text=True, timeout=600,
            )  # fmt: skip

        done = run("--cache-dir", "small/cache")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mean 3", done.stdout)
        self.assertRegex(
            done.stderr,
            "(?s)^pestle: warn: [^\n]*small/cache.*No space left.*free some"
            "[^\n]*\n$",
        )
        done = run("--save-plan", "small/a.plan", "--no-cache")
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertRegex(
            done.stderr, "pestle: error: .*'small/a.plan': No space left.*free"
        )

    def test_unwritable_folder_costs_only_a_warning(self):
        done = self.run_pestle(*self.run_args, "--cache-dir", "/proc/pestle")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mean 3", done.stdout)
        self.assertRegex(done.stderr, "pestle: warn: .*/proc/pestle")

    def test_full_disk_costs_only_a_warning(self):
        def no_bytes():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        # A pipe takes what a file cannot: stdout is not limited.
        done = self.run_pestle(*self.run_args, preexec_fn=no_bytes)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("mean 3", done.stdout)
        self.assertRegex(done.stderr, "pestle: warn: ")


class Dump(Case):
    def test_stages(self):
        for stage, pattern in {
            "graph": r"stablehlo\.add",
            "fused": r"pestle\.fusion",
            "schedule": r"schedule",
            "kernels": r"kernel @",
            "plan": r"planned peak",
        }.items():
            text = self.succeed("dump", "add.mlir", "--stage", stage)
            self.assertRegex(text, pattern)

    def test_graph_reads_back(self):
        text = self.succeed("dump", "add.mlir")
        self.write("again.mlir", text)
        self.assertEqual(self.succeed("dump", "again.mlir"), text)

    def test_large_constants(self):
        numbers = ", ".join(["1.5", "2.5"] * 20)
        self.write("c.mlir", "func.func public @main() -> tensor<40xf32> {\n"
                   f"  %c = stablehlo.constant dense<[{numbers}]> : "
                   "tensor<40xf32>\n  return %c : tensor<40xf32>\n}\n")  # fmt: skip
        text = self.succeed("dump", "c.mlir")
        self.assertRegex(text, r"\A// Large constants .*--full")
        self.assertEqual(text.count("--full"), 1)
        self.assertIn("dense_elided<", text)
        self.succeed("dump", "c.mlir", "-o", "d")
        self.assertEqual((self.folder / "d/graph.mlir").read_text(), text)
        text = self.succeed("dump", "c.mlir", "--full")
        self.assertNotIn("dense_elided", text)
        self.assertNotIn("//", text)
        self.write("again.mlir", text)
        self.assertEqual(self.succeed("dump", "again.mlir", "--full"), text)
        self.assertIn("min 1.5  max 2.5", self.succeed("run", "again.mlir"))
        fused = ["dump", "c.mlir", "--stage", "fused"]
        self.assertRegex(self.succeed(*fused), r"\A// Large .*pestle opt")
        self.fail_with(2, "--full is for --stage graph, not 'fused'.*pestle "
                       "opt", *fused, "--full")  # fmt: skip

    def test_comments_are_lines_for_people(self):
        """Also of a kernel of many ops with long names."""
        body, last = "", "x"
        for i in range(40):
            op = "negate" if i % 2 else "tanh"
            body += (f"  %v{i} = stablehlo.{op} %{last} : tensor<4xf32> "
                     f'loc("the/long/name/of/op/{i}")\n')  # fmt: skip
            last = f"v{i}"
        self.write("long.mlir", "func.func public @main(%x: tensor<4xf32>) -> "
                   "tensor<4xf32> {\n" + body +
                   f"  return %{last} : tensor<4xf32>\n}}\n")  # fmt: skip
        stages = ["kernels"]
        if "llvm " in self.succeed("plugins"):
            stages += ["source", "asm"]
        for stage in stages:
            text = self.succeed("dump", "long.mlir", "--stage", stage)
            lines = re.findall(r"(?m)^(?://|;) .*$", text)
            self.assertIn("the/long/name/of/op/20", "".join(lines))
            self.assertLessEqual(max(map(len, lines)), 100)

    def test_code_says_where_it_came_from(self):
        if "llvm " not in self.succeed("plugins"):
            self.skipTest("the llvm backend is not built")
        self.assertRegex(
            self.succeed("dump", "add.mlir", "--stage", "source"), r"; .*add"
        )
        text = self.succeed(
            "dump", "add.mlir", "--stage", "asm", "--target-cpu", "haswell"
        )
        self.assertIn("vaddps", text)
        self.assertNotIn("zmm", text)

    def test_files(self):
        self.succeed("dump", "add.mlir", "--stage", "kernels", "-o", "d")
        self.assertEqual(len(list((self.folder / "d").iterdir())), 1)
        self.succeed("dump", "add.mlir", "--stage", "plan", "-o", "e",
                     "--print-after", "all", "--time-passes")  # fmt: skip
        names = sorted(p.name for p in (self.folder / "e").iterdir())
        self.assertEqual(names[0], "pass_00_place_custom.mlir")
        self.assertEqual(names[1], "pass_01_inline.mlir")
        self.assertEqual(names[-2:], ["plan.txt", "times.txt"])

    def test_passes(self):
        done = self.run_pestle(
            "dump",
            "add.mlir",
            "--print-after",
            "all",
            "--time-passes",
            "--stage",
            "fused",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("// ---- after canonicalise", done.stdout)
        self.assertRegex(done.stderr, r"canonicalise +[0-9.]+ ms")
        text = self.succeed(
            "dump", "add.mlir", "--stage", "fused", "--skip-passes", "fuse"
        )
        self.assertNotIn("pestle.fusion", text)

    def test_passes_of_a_run(self):
        run = ["run", "add.mlir", "--input", "x=1", "--input", "y=2"]
        plain = self.succeed(*run)
        done = self.run_pestle(*run, "--print-after", "all", "--time-passes")
        self.assertEqual((done.returncode, done.stdout), (0, plain))
        self.assertIn("// ---- canonicalise", done.stderr)
        self.assertRegex(done.stderr, r"canonicalise +[0-9.]+ ms")


CHAIN = """\
func.func private @half(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %c = stablehlo.constant dense<0.5> : tensor<4x6xf32>
  %0 = stablehlo.multiply %x, %c : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
func.func public @main(%x: tensor<4x6xf32>, %w: tensor<6x3xf32>)
    -> tensor<3x2xf32> {
  %0 = call @half(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<4x6xf32>, tensor<6x3xf32>) -> tensor<4x3xf32>
  %2 = "pestle.softmax"(%1) <{dimensions = array<i64: 1>}>
      : (tensor<4x3xf32>) -> tensor<4x3xf32>
  %3 = stablehlo.slice %2 [1:4:2, 0:3] : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %4 = stablehlo.add %3, %3 : tensor<2x3xf32>
  %5 = stablehlo.transpose %4, dims = [1, 0]
      : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %5 : tensor<3x2xf32>
}
"""


class LeftOutPasses(Case):
    """Whatever is left out of the pipeline: the results are the same."""

    run_args = ["run", "chain.mlir", "--input", "0=random:1",
                "--input", "1=random:2"]  # fmt: skip

    def setUp(self):
        super().setUp()
        self.write("chain.mlir", CHAIN)
        self.succeed(*self.run_args, "--outputs", "o")

    def names(self):
        text = (SOURCE / "passes/passes.def").read_text()
        return re.findall(r"^PESTLE_PASS\((\w+), STANDARD", text, re.M)

    def test_each(self):
        names = self.names()
        self.assertIn("fuse", names)
        for skipped in [*names, ",".join(names)]:
            self.succeed(
                *self.run_args, "--compare", "o", "--skip-passes", skipped
            )

    def test_each_op_is_a_kernel(self):
        def launches(*options):
            dump = ["dump", "chain.mlir", "--stage", "kernels"]
            text = self.succeed(*dump, *options)
            return len(re.findall(r"(?m)^kernel @|^(?=.*kernel @)", text))

        alone = launches("--no-fuse")
        self.assertEqual(launches("--skip-passes", "fuse"), alone)
        self.assertGreater(alone, launches())

    def test_stop_after_each(self):
        for n in range(1, len(self.names()) + 1):
            dump = ["dump", "chain.mlir", "--stage", "plan"]
            text = self.succeed(*dump, "--stop-after", str(n))
            self.assertIn("planned peak", text)


BIG = """\
func.func public @main(%x: tensor<1xf32>) -> tensor<1xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0]
      : (tensor<1xf32>) -> tensor<288230376151711744xf32>
  %1 = stablehlo.tanh %0 : tensor<288230376151711744xf32>
  %2 = stablehlo.concatenate %1, %1, dim = 0
      : (tensor<288230376151711744xf32>, tensor<288230376151711744xf32>)
      -> tensor<576460752303423488xf32>
  %3 = stablehlo.reverse %2, dims = [0] : tensor<576460752303423488xf32>
  %4 = stablehlo.slice %3 [0:1]
      : (tensor<576460752303423488xf32>) -> tensor<1xf32>
  return %4 : tensor<1xf32>
}
"""


class Models(Case):
    """ONNX models that are wrong, each in one way."""

    def setUp(self):
        super().setUp()
        try:
            from onnx import TensorProto, helper
        except ImportError:
            self.skipTest("the onnx package is not installed")
        self.helper, self.float = helper, TensorProto.FLOAT

    def save(self, nodes, dims, more=(), result=None):
        """A model of inputs x and |more|, pairs of a name and dims; |result| is
        the type of y where that is not float."""
        h = self.helper
        inputs = [("x", dims), *more]
        inputs = [h.make_tensor_value_info(n, self.float, d) for n, d in inputs]
        y = h.make_tensor_value_info("y", result or self.float, None)
        nodes = [h.make_node(op, i, o, name=n) for op, i, o, n in nodes]
        graph = h.make_graph(nodes, "g", inputs, [y])
        opsets = [h.make_opsetid("", 18)]
        model = h.make_model(graph, opset_imports=opsets, ir_version=9)
        return self.write("m.onnx", model.SerializeToString())

    def test_readme_commands(self):
        """Each command of README.md, over a model of the name that it uses."""
        import numpy
        self.save([("Relu", ["x"], ["y"], "r")], [1, 3, 640, 640])
        os.rename(self.folder / "m.onnx", self.folder / "model.onnx")
        numpy.save(self.folder / "x.npy", numpy.zeros((1, 3, 640, 640), "f4"))
        text = (SOURCE / "README.md").read_text()
        lines = re.findall(r"(?m)^    pestle (.*?)(?: +#.*)?$", text)
        lines += re.findall(r"`pestle (.*?)`", text)
        self.assertGreater(len(lines), 9)
        has_llvm = "llvm " in self.succeed("plugins")
        for line in lines:
            if not has_llvm and re.search("source|asm", line):
                continue
            words = line.split()
            if words[0] == "reduce":  # needs a model that shows a fault
                continue
            text = self.succeed(*words)
            if "-o" in words:
                file = words[words.index("-o") + 1]
                self.assertTrue((self.folder / file).stat().st_size, line)
            else:
                self.assertTrue(text, line)

    def save_test_data(self, arrays, kind):
        from onnx import numpy_helper

        os.makedirs(self.folder / "data", exist_ok=True)
        for i, (name, array) in enumerate(arrays):
            tensor = numpy_helper.from_array(array, name)
            path = self.folder / f"data/{kind}_{i}.pb"
            path.write_bytes(tensor.SerializeToString())

    def test_onnx_test_data(self):
        """Folders as ONNX's own test cases have them: .pb in and out."""
        import numpy

        x = numpy.array([-1, 2], numpy.float32)
        self.save([("Relu", ["x"], ["y"], "r")], [2])
        self.save_test_data([("x", x)], "input")
        self.save_test_data([("y", numpy.maximum(x, 0))], "output")
        run = ["run", "m.onnx", "--inputs-pb", "data"]
        self.assertIn("[0, 2]", self.succeed(*run))
        self.assertEqual(self.succeed(*run, "--compare", "data"), "")
        self.save_test_data([("y", x)], "output")
        self.fail_with(1, r"1 of 2 elements.*\[0\]: 0, expected -1", *run,
                       "--compare", "data")  # fmt: skip
        self.write("data/input_0.pb", b"\x08\x02\x10")
        self.fail_with(4, "while reading 'data/input_0.pb'", *run)
        os.remove(self.folder / "data/input_0.pb")
        self.fail_with(2, "input 0, 'x' .*is not given", *run)
        self.fail_with(4, "No such file", "run", "m.onnx", "--inputs-pb", "no")

    def test_wrong_input_of_a_model(self):
        """A dtype or a shape that the model does not have."""
        self.save([("Relu", ["x"], ["y"], "r")], [2, 3])
        run = ["run", "m.onnx", "--input"]
        self.fail_with(4, "'x'.*3x3.*2x3", *run, "x=3x3xf32=1")
        self.fail_with(4, "'x'.*2x3x1.*2x3", *run, "x=2x3x1xf32=1")
        self.fail_with(4, "'x'.*i64.*f32", *run, "x=2x3xi64=1")
        self.save([("Relu", ["x"], ["y"], "r")], ["n", 3])
        self.fail_with(4, "'x'.*2x4.*[?]x3", *run, "x=2x4xf32=1")
        self.fail_with(4, "'x'.*i64.*f32", *run, "x=2x3xi64=1")

    def test_extents_of_options_that_overflow(self):
        self.save([("Relu", ["x"], ["y"], "r")], ["n", "m"])
        run = ["run", "m.onnx", "--input", "x=random:1"]
        huge = str(1 << 40)
        self.fail_with(4, "2\\^63", *run, "--dim", f"n={huge}",
                       "--dim", f"m={huge}")  # fmt: skip
        self.fail_with(4, "2\\^63", *run, "--shape", f"x={huge}x{huge}")
        self.fail_with(2, "wants an extent", *run, "--dim", f"n={1 << 70}")
        self.fail_with(2, "is no shape", *run, "--shape", f"x={1 << 70}x1")
        # That can be counted, but is more than any machine has.
        self.fail_with(5, "input 'x' takes [0-9]+ bytes.*smaller extents",
                       *run, "--shape", f"x={1 << 30}x{1 << 25}")  # fmt: skip
        self.write("big.mlir", BIG)
        for option in ("--no-fuse", "--verify"):
            self.fail_with(5, "a result of '.*' takes [0-9]+ bytes", "run",
                           "big.mlir", "--input", "0=1", option)  # fmt: skip

    def test_cycle(self):
        self.save(
            [
                ("Add", ["x", "b"], ["a"], "first"),
                ("Relu", ["a"], ["b"], "second"),
                ("Relu", ["b"], ["y"], "third"),
            ],
            [2],
        )
        self.fail_with(4, "cycle.*'first'.*'second'", "dump", "m.onnx")

    def test_unknown_ops_are_listed_at_once(self):
        self.save(
            [("Frob", ["x"], ["a"], "one"), ("Nicate", ["a"], ["y"], "two")],
            [2],
        )
        self.fail_with(3, "Frob.*'one'.*Nicate.*'two'", "dump", "m.onnx")

    def test_extents_that_overflow(self):
        self.save([("Relu", ["x"], ["y"], "r")], [1 << 40, 1 << 40])
        self.fail_with(4, "2\\^63", "dump", "m.onnx")

    def test_symbolic_dimensions(self):
        self.save([("Relu", ["x"], ["y"], "r")], ["n", 3])
        sentence = r"--dim n=N, or --shape x=1x3.*; .*'x', is of \[n, 3\]"
        self.fail_with(2, sentence, "compile", "m.onnx", "-o", "m.plan")
        self.fail_with(2, sentence, "run", "m.onnx")
        for options in (
            ["--dim", "n=2", "--input", "x=random:1"],
            ["--shape", "x=2x3", "--input", "x=random:1"],
            ["--input", "x=2x3xf32=random:1"],
        ):
            self.assertIn("f32 of 2x3", self.succeed("run", "m.onnx", *options))
        self.fail_with(
            2, "named 'k'; they have 'n'", "run", "m.onnx", "--dim", "k=2"
        )
        sentence = "'k', but the model has no such input; it has 'x'"
        self.fail_with(2, sentence, "run", "m.onnx", "--shape", "k=2x3")
        self.fail_with(2, sentence, "run", "m.onnx", "--const", "k=2")
        self.fail_with(
            2, sentence, "run", "m.onnx", "--input", "k=2x3xf32=1"
        )
        self.fail_with(4, "2x4.*3.*says: --shape x=2x4", "run", "m.onnx",
                       "--shape", "x=2x4")  # fmt: skip

    def test_extents_that_no_op_takes(self):
        """The model is sound; what the command line says of it is not."""
        self.save([("MatMul", ["x", "x"], ["y"], "a")], ["n", 3])
        sentence = "'a'.*command line says: --dim n=2; does it fit"
        self.fail_with(4, sentence, "run", "m.onnx", "--dim", "n=2")
        self.fail_with(4, "says: --shape x=2x3", "dump", "m.onnx",
                       "--shape", "x=2x3")  # fmt: skip

    def test_gather_of_nothing(self):
        """An axis of extent 0 has no index; without indices all is well."""
        from onnx import TensorProto

        h = self.helper
        for op, dims, empty in (("Gather", [2], [0]),
                                ("GatherElements", [2, 3], [0, 3]),
                                ("GatherND", [2, 1], [0, 1])):  # fmt: skip
            for of_indices, code in ((dims, 4), (empty, 0)):
                x = h.make_tensor_value_info("x", self.float, [0, 3])
                i = h.make_tensor_value_info("i", TensorProto.INT64, of_indices)
                y = h.make_tensor_value_info("y", self.float, None)
                node = h.make_node(op, ["x", "i"], ["y"], name="g")
                graph = h.make_graph([node], "g", [x, i], [y])
                model = h.make_model(
                    graph, opset_imports=[h.make_opsetid("", 18)], ir_version=9
                )
                self.write("m.onnx", model.SerializeToString())
                done = self.run_pestle("run", "m.onnx", "--input", "x=1",
                                       "--input", "i=0")  # fmt: skip
                self.assertEqual(done.returncode, code, done.stderr)
                if code:
                    self.assertRegex(done.stderr, f"'g' .{op}.*has the extent 0")
                else:
                    self.assertIn("f32 of 0x3\n  []", done.stdout)

    def test_constant_input(self):
        self.save([("Add", ["x", "x"], ["y"], "a")], [2])
        self.write("x.npy", npy([1.0, 2.0]))
        text = self.succeed("run", "m.onnx", "--const", "x=x.npy")
        self.assertIn("[2, 4]", text)
        self.succeed("compile", "m.onnx", "--const", "x=x.npy", "-o", "a.plan")
        self.assertIn("[2, 4]", self.succeed("run", "a.plan"))
        self.fail_with(2, "input 'x': 'FOO' is neither a file", "run", "m.onnx",
                       "--const", "x=FOO")  # fmt: skip

    def test_constant_named_and_by_kind(self):
        """':integers' leaves out what is a constant already."""
        from onnx import TensorProto

        self.float = TensorProto.INT64
        self.save([("Add", ["x", "x"], ["y"], "a")], [2])
        run = ["run", "m.onnx", "--input", "x=2xi64=3", "--const"]
        for named, text in (("x", "[6, 6]"), ("x=5", "[10, 10]")):
            for kind in (":integers", ":numbers"):
                for pair in ([named, kind], [kind, named]):
                    done = self.succeed(*run, pair[0], "--const", pair[1])
                    self.assertIn(text, done)

    def test_constant_numbers(self):
        """':numbers' takes short lists of any dtype and leaves tensors alone."""
        self.save([("Resize", ["x", "", "s"], ["y"], "r")], [1, 2], [("s", [2])])
        run = ["run", "m.onnx", "--input", "x=1x2xf32=3", "--input", "s=2xf32=2"]
        for kind in (":integers", ":numbers"):
            text = self.succeed(*run, "--const", kind)
            self.assertIn("f32 of 2x4", text)

    def save_functions(self, functions, nodes, **attributes):
        """A model of x [2, 3] and y whose nodes call |functions|."""
        from onnx import TensorProto

        h = self.helper
        x = h.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
        y = h.make_tensor_value_info("y", TensorProto.FLOAT, None)
        opsets = [h.make_opsetid("", 18), h.make_opsetid("mine", 1)]
        graph = h.make_graph(nodes, "g", [x], [y])
        model = h.make_model(graph, opset_imports=opsets, ir_version=10,
                             functions=functions)  # fmt: skip
        return self.write("m.onnx", model.SerializeToString())

    def test_functions(self):
        """Functions of the model: attributes that are given, left out and
        handed on, inputs left out, names of their own, another opset."""
        from onnx import AttributeProto, helper as h

        def reference(node, name, source, kind):
            attr = AttributeProto(name=name, ref_attr_name=source, type=kind)
            node.attribute.append(attr)
            return node

        leaky = reference(h.make_node("LeakyRelu", ["a"], ["t"]), "alpha",
                          "slope", AttributeProto.FLOAT)  # fmt: skip
        # Opset 12: the axes of ReduceSum are an attribute.
        total = reference(h.make_node("ReduceSum", ["t"], ["x"]), "axes",
                          "over", AttributeProto.INTS)  # fmt: skip
        clip = h.make_node("Clip", ["x", "", "most"], ["out"])
        inner = h.make_function(
            "mine", "Inner", ["a", "most"], ["out"], [leaky, total, clip],
            [h.make_opsetid("", 12)], ["slope"],
            [h.make_attribute("over", [1])])  # fmt: skip
        call = reference(
            h.make_node("Inner", ["b"], ["x"], domain="mine"),
            "slope", "alpha", AttributeProto.FLOAT)  # fmt: skip
        outer = h.make_function(
            "mine", "Outer", ["b"], ["x"], [call],
            [h.make_opsetid("", 18), h.make_opsetid("mine", 1)],
            ["alpha"])  # fmt: skip
        two = h.make_node("Constant", [], ["two"], value_float=2.0)
        run = ["run", "m.onnx", "--input", "x=x.npy"]
        import numpy

        numpy.save(self.folder / "x.npy",
                   numpy.float32([[1, -2, 3], [-4, -5, 6]]))  # fmt: skip
        for nodes, found in (
            ([h.make_node("Outer", ["x"], ["y"], domain="mine", alpha=0.5)],
             "[3, 1.5]"),
            ([two, h.make_node("Inner", ["x", "two"], ["y"], domain="mine",
                               slope=0.5, over=[0])], "[-1, -3.5, 2]"),
            ([h.make_node("Inner", ["x"], ["y"], domain="mine")],
             "[3.98, 5.91]"),  # LeakyRelu's own 0.01
        ):  # fmt: skip
            self.save_functions([inner, outer], nodes)
            self.assertIn(found, self.succeed(*run))
        for node, code, sentence in (
            (h.make_node("Outer", ["x", "x"], ["y"], domain="mine"), 4,
             "2 inputs and 1 outputs, the function 1 and 1"),
            (h.make_node("Loose", ["x"], ["y"], domain="mine"), 3,
             "mine::Loose"),
        ):  # fmt: skip
            self.save_functions([inner, outer], [node])
            self.fail_with(code, sentence, *run)
        itself = h.make_function(
            "mine", "Self", ["a"], ["b"],
            [h.make_node("Self", ["a"], ["b"], domain="mine")],
            [h.make_opsetid("mine", 1)])  # fmt: skip
        bad = h.make_function(
            "mine", "Bad", ["a"], ["b"],
            [h.make_node("NoSuchOp", ["a"], ["b"])],
            [h.make_opsetid("", 18)])  # fmt: skip
        for function, name, code, sentence in (
            (itself, "Self", 4, "more than 64 deep"),
            (bad, "Bad", 3, "NoSuchOp"),
        ):
            node = h.make_node(name, ["x"], ["y"], domain="mine")
            self.save_functions([function], [node])
            self.fail_with(code, sentence, *run)

    def test_extents_after_a_run(self):
        """An output whose extent depends on elements has its real shape in
        files, text and comparisons."""
        import numpy
        from onnx import TensorProto

        self.save([("NonZero", ["x"], ["y"], "n")], [2, 3],
                  result=TensorProto.INT64)  # fmt: skip
        for ones in ([0, 0, 0, 0, 0, 0], [1, 0, 1, 0, 0, 2], [1] * 6):
            x = numpy.float32(ones).reshape(2, 3)
            numpy.save(self.folder / "x.npy", x)
            wanted = numpy.stack(numpy.nonzero(x))
            run = ["run", "m.onnx", "--input", "x=x.npy"]
            self.assertIn(f"i64 of 2x{wanted.shape[1]}", self.succeed(*run))
            self.succeed(*run, "--outputs", "out")
            found = numpy.load(self.folder / "out/output_0.npy")
            numpy.testing.assert_array_equal(found, wanted)
            self.succeed(*run, "--compare", "out")
            text = self.succeed("diff", "m.onnx", "ref", "ref,no-fuse",
                                "--input", "x=x.npy")  # fmt: skip
            self.assertIn("agree", text)
        numpy.save(self.folder / "out/output_0.npy", wanted[:, :2])
        self.fail_with(1, "is i64 of 2x6, expected i64 of 2x2", *run,
                       "--compare", "out")  # fmt: skip
        self.succeed("compile", "m.onnx", "-o", "a.plan")
        text = self.succeed("run", "a.plan", "--input", "x=x.npy")
        self.assertIn("i64 of 2x6", text)

    def test_values_that_decide_shapes(self):
        """Inputs that shapes follow from: 'run' has them at hand, by name or by
        number, and others must be given them."""
        from onnx import TensorProto

        h = self.helper
        inputs = [h.make_tensor_value_info("k", TensorProto.INT64, [1]),
                  h.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
                  h.make_tensor_value_info("to", TensorProto.INT64, [2])]  # fmt: skip
        y = h.make_tensor_value_info("y", TensorProto.FLOAT, None)
        nodes = [h.make_node("Tile", ["x", "k"], ["t"]),
                 h.make_node("Reshape", ["t", "to"], ["y"])]  # fmt: skip
        model = h.make_model(h.make_graph(nodes, "g", inputs, [y]),
                             opset_imports=[h.make_opsetid("", 18)],
                             ir_version=9)  # fmt: skip
        self.write("m.onnx", model.SerializeToString())
        x, to = "2xf32=1.5", "2xi64=2"
        for given in (["k=1xi64=2", f"x={x}", f"to={to}"],
                      ["0=1xi64=2", f"1={x}", f"2={to}"],
                      [f"to={to}", f"1={x}", "k=1xi64=2"]):  # fmt: skip
            options = [o for text in given for o in ("--input", text)]
            text = self.succeed("run", "m.onnx", *options)
            self.assertIn("f32 of 2x2", text)
            self.assertIn("[1.5, 1.5, 1.5, 1.5]", text)
            text = self.succeed("diff", "m.onnx", "ref", "ref", *options)
            self.assertIn("agree", text)
        options[-1] = "k=1xi64=3"
        self.fail_with(4, "6 elements", "run", "m.onnx", *options)
        options[-1] = "k=1xi64=2"
        self.fail_with(2, "given twice for 'x'", "run", "m.onnx", *options,
                       "--input", f"x={x}")  # fmt: skip
        need = r"'k' \(tensor<1xi64>\), 'to' \(tensor<2xi64>\); give.*--const"
        for verb in (["compile", "-o", "a.plan"], ["dump"], ["explain"],
                     ["opt"], ["run", "--input", f"x={x}"]):  # fmt: skip
            self.fail_with(4, need, verb[0], "m.onnx", *verb[1:], "--shape",
                           "x=2")  # fmt: skip
        const = ["--const", "k=2", "--const", "to=2"]
        self.succeed("compile", "m.onnx", "--shape", "x=2", *const, "-o",
                     "a.plan")  # fmt: skip

    def test_constant_number_is_of_the_input(self):
        """A lone number has the dtype and the shape of the input."""
        from onnx import TensorProto

        def made(name, value, *options):
            self.float = getattr(TensorProto, name)
            self.save([("Add", ["x", "x"], ["y"], "a")], ["n", 2])
            run = ["run", "m.onnx", "--const", f"x={value}", *options]
            return self.run_pestle(*run)

        for name, value, text in (
            ("FLOAT", "0.5", "f32 of 1x2\n.*\n  .1, 1."),
            ("DOUBLE", "0.1", "f64 of 1x2\n.*\n  .0.2, 0.2."),
            ("FLOAT16", "5", "f16 of 1x2\n.*\n  .10, 10."),
            ("INT32", "5", "i32 of 1x2\n.*\n  .10, 10."),
            ("INT8", "-5", "i8 of 1x2\n.*\n  .-10, -10."),
            ("UINT64", "5", "ui64 of 1x2\n.*\n  .10, 10."),
        ):
            done = made(name, value)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertRegex(done.stdout, text)
        done = made("INT64", "5", "--dim", "n=3")
        self.assertIn("[10, 10, 10, 10, 10, 10]", done.stdout)
        for name, value in (("INT8", "300"), ("INT32", "5.5"),
                            ("UINT8", "-1")):  # fmt: skip
            done = made(name, value)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertRegex(
                done.stderr, f"constant {value} for input 'x' .*cannot hold it"
            )
        # A type that is written down is not converted to another shape's.
        done = made("FLOAT", "3xf32=1")
        self.assertEqual(done.returncode, 4, done.stderr)


def npy(values):
    """A file of numpy's with |values| as one axis of f32."""
    text = ("{'descr': '<f4', 'fortran_order': False, "
            f"'shape': ({len(values)},), }}")
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return (b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) +
            text.encode() + struct.pack(f"<{len(values)}f", *values))


class RunOnly(Case):
    def test_says_what_it_lacks(self):
        self.fail_with(3, "PESTLE_RUNTIME_ONLY", "run", "add.mlir")
        self.fail_with(3, "PESTLE_RUNTIME_ONLY", "dump", "add.mlir")


def has_compiler():
    cache = (BUILD / "CMakeCache.txt").read_text()
    return not re.search(r"PESTLE_RUNTIME_ONLY:\w+=(ON|1|TRUE)", cache)


if __name__ == "__main__":
    if not has_compiler():
        suite = unittest.defaultTestLoader.loadTestsFromTestCase(RunOnly)
        done = unittest.TextTestRunner().run(suite)
        sys.exit(not done.wasSuccessful())
    del RunOnly
    unittest.main()
