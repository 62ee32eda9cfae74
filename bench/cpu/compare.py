#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pestle beside its peers on the CPU: runs cases in turns and prints what
bench/README.md shows, Pestle's time / the best peer's by minimum (by median).

    compare.py OUT.json --cases 'net_|softmax' --peers ort,openvino,dnnl
    compare.py OUT.json --models DIR       the open models of fetch_models.py
    compare.py OUT.json --cold             compiling and the first run instead
    compare.py OUT.json --rounds 0         only prints what OUT.json has

Each peer is a process of its own (peers.py, dnnl_worker, cblas_worker), pinned;
each round goes over all of them. OUT.json keeps the cases of earlier calls. The
exit status is 1 where Pestle failed, or its outputs are not a peer's.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MODELS = ROOT / "tests" / "models"
BLAS = {"blis": "libblis.so.4", "openblas": "libopenblas.so.0"}
PYTHON = ("ort", "openvino", "jax", "iree", "torch_compile")
PEERS = (*PYTHON[:2], "dnnl", *BLAS, *PYTHON[2:])
OURS = ("pestle", "old")


def say(text):
    print(text, file=sys.stderr, flush=True)


def last_line(text):
    return (text.strip().splitlines() or ["without a word"])[-1]


def site_packages(folder):
    version = "{}.{}".format(*sys.version_info)
    return str(folder / "lib" / f"python{version}" / "site-packages")


def environment(folder, options):
    """For programs that use the libraries in |folder|."""
    found = os.environ.get("LD_LIBRARY_PATH")
    libraries = [str(folder), str(options.peers_dir / "lib"), found]
    return {
        "LD_LIBRARY_PATH": ":".join(filter(None, libraries)),
        "PESTLE_BACKEND_PATH": str(folder / "backends"),
    }


def start(command, threads, options, env, **more):
    """A process on as many CPUs as threads."""
    cpus = options.cpus[:threads]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS")
    return subprocess.Popen(
        [str(word) for word in command],
        env=os.environ | dict.fromkeys(names, str(threads)) | env,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        **more,
    )


class Worker:
    """A peer with a number of threads. Its process is started when needed."""

    def __init__(self, name, threads, options):
        self.name, self.threads, self.options = name, threads, options
        self.key, self.child, self.log = f"{name}/{threads}", None, None
        peers = options.peers_dir
        if name in PYTHON:
            site = peers / ("torch" if name == "torch_compile" else "main")
            self.env = {"PYTHONPATH": site_packages(site)}
            self.command = [sys.executable, HERE / "peers.py"]
        elif name in OURS:
            build = options.ours[name]
            self.env = environment(build, options)
            self.command = [build / "bench" / "cpu_worker"]
        else:
            self.env = environment(peers, options)
            kind = "cblas" if name in BLAS else name
            self.command = [peers / "bin" / f"{kind}_worker"]
        self.command += [options.folder, threads, BLAS.get(name, name)]

    def open(self):
        """None, or why there is no such peer."""
        self.log = tempfile.TemporaryFile("w+", errors="replace")
        pipes = {"stdin": subprocess.PIPE, "stderr": self.log}
        args = self.command, self.threads, self.options, self.env
        try:
            self.child = start(*args, **pipes)
        except OSError as error:
            return str(error)
        return self.read(None, 60).get("err")

    def ask(self, **query):
        why = None if self.child else self.open()
        return {"err": why} if why else self.read(query, 600)

    def read(self, query, seconds):
        timer = threading.Timer(seconds, self.kill, [self.child])
        timer.start()
        try:
            if query:
                print(json.dumps(query), file=self.child.stdin, flush=True)
            for line in self.child.stdout:
                if line.startswith("{"):
                    return json.loads(line)
        except (OSError, ValueError):
            pass
        finally:
            late = not timer.is_alive()
            timer.cancel()
        code = self.stop()
        self.log.seek(0)
        why = f"{seconds} s" if late else last_line(self.log.read())
        return {"err": f"its process ended, exit status {code}: {why}"}

    @staticmethod
    def kill(child):
        """With what it started, which may hold its end of the pipe too."""
        os.killpg(child.pid, signal.SIGKILL)

    def stop(self):
        child, self.child = self.child, None
        if not child:
            return None
        self.kill(child)
        return child.wait()


# --- Runs ---


def prepare(options):
    """Writes the chosen cases. The group of each."""
    site = site_packages(options.peers_dir / "main")
    command = [sys.executable, HERE / "prepare.py", options.folder]
    done = subprocess.run(
        [*command, options.cases],
        env=os.environ | {"PYTHONPATH": site},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"compare.py: {last_line(done.stderr)} (packages of {site})")
    return json.loads(last_line(done.stdout))


def find_workers(options):
    workers = []
    for name in [*options.ours, *options.peers]:
        made = [Worker(name, t, options) for t in options.threads]
        why = made[0].open()
        if not why:
            workers += made
        elif name in OURS:
            sys.exit(f"compare.py: {made[0].command[0]}: {why}")
        else:
            say(f"{name} is left out, it is not there: {why}")
    if options.peers and all(w.name in OURS for w in workers):
        sys.exit("compare.py: no peer is there: setup_peers.sh installs them")
    return workers


def take_turn(worker, name, row, options):
    if options.cold:
        worker.stop()
        answer = worker.ask(cmd="prep", case=name)
        worker.stop()
        answer["min"] = answer["med"] = answer.get("first_ms", 0) * 1e3
    else:
        answer = worker.ask(cmd="run", ms=options.ms)
    if "err" in answer:
        row["err"] = answer["err"]
        return
    for key in ("min", "med", "compile_ms", "lower_ms"):
        if key in answer:
            row.setdefault(f"all_{key}", []).append(answer[key])


def run_case(workers, name, options):
    rows = {w.key: w.ask(cmd="prep", case=name) for w in workers}
    for number in range(options.rounds):
        for worker in workers[:: -1 if number % 2 else 1]:
            if "err" not in rows[worker.key]:
                take_turn(worker, name, rows[worker.key], options)
                time.sleep(0.006)
    for row in rows.values():
        if "err" not in row:
            row["min"] = min(row["all_min"])
            row["med"] = statistics.median(row["all_med"])
    return rows


def run_cases(options):
    """Each chosen case, when it has been run."""
    groups = prepare(options)
    workers = find_workers(options)
    for name, group in groups.items():
        about = options.folder / "inputs" / name / "case.json"
        elements = json.loads(about.read_text())["elements"]
        rows = run_case(workers, name, options)
        yield name, {"group": group, "elements": elements, "rows": rows}
    for worker in workers:
        worker.stop()


def run_models(options):
    listed = json.loads((MODELS / "models.json").read_text())
    names = [m["name"] for m in listed if m["set"] == "open"]
    chosen = [n for n in names if re.search(options.cases, n)]
    if not chosen:
        sys.exit(f"compare.py: no model matches, there are: {', '.join(names)}")
    for name in chosen:
        rows = {}
        for threads in options.threads:
            rows |= run_model(name, threads, options)
        yield name, {"group": "open models", "rows": rows}


def run_model(name, threads, options):
    """Rows of run_models.py, which compares outputs with ONNX Runtime's."""
    define = {"ort": "make_ort", "openvino": "make_ov"}
    for peer in list(define):
        define[peer] = f"run_models:{define[peer]}:{threads}"
        if peer not in options.peers:
            del define[peer]
    with tempfile.TemporaryDirectory() as folder:
        for who, build in options.ours.items():
            env = environment(build, options).items()
            define[who] = (
                f"exe:env {' '.join(f'{k}={v}' for k, v in env)} "
                f"{build}/pestle run {{model}} --inputs {{inputs}} "
                f"--outputs {{outputs}} --bench {{iters}} --threads {threads} "
                f"--cache-dir {folder}/{who} {options.run_args}"
            )
        out = pathlib.Path(folder) / "out.json"
        command = [sys.executable, MODELS / "run_models.py", "--only", name]
        command += ["--dir", options.models, "--rounds", options.rounds]
        command += ["--batch-ms", options.ms, "--json", out]
        command += ["--peers", ",".join(define)]
        for who, spec in define.items():
            command += ["--define", f"{who}={spec}"]
        env = {"PYTHONPATH": site_packages(options.peers_dir / "main")}
        child = start(command, threads, options, env, stderr=subprocess.STDOUT)
        why, found = last_line(child.communicate()[0]), {}
        if out.exists():
            found = json.loads(out.read_text())["results"][name]["peers"]
    rows = {}
    for who in define:
        row = rows[f"{who}/{threads}"] = found.get(who, {"error": why})
        if "error" in row:
            row["err"] = row["error"]
        elif not row["check"]["ok"]:
            row["err"] = f"outputs are not the reference's: {row['check']}"
        else:
            row["min"], row["med"] = row["min_ms"] * 1e3, row["median_ms"] * 1e3
    return rows


# --- What came of it ---


def agree(a, b, elements):
    """To 1e-3; sums to that of the sum of sizes, as their terms may cancel."""
    size = 1e-3 * abs(b[1])
    return abs(a[1] - b[1]) <= size and abs(a[0] - b[0]) <= size * elements


def report(name, case):
    """Says times, errors and outputs that differ. Whether Pestle failed."""
    rows, wrong = case["rows"], False
    for key, row in rows.items():
        if "min" in row:
            parts = [p for p in ("compile_ms", "lower_ms") if f"all_{p}" in row]
            parts = [f", {p} {min(row[f'all_{p}']):.1f}" for p in parts]
            say(f"{name}: {key}: {row['min']:.1f} us{''.join(parts)}")
        who, threads = key.split("/")
        if "err" in row and "not for this peer" not in row["err"]:
            say(f"{name}: {key}: {' '.join(row['err'].split())}")
            wrong |= who in OURS
        chk = rows.get(f"pestle/{threads}", {}).get("chk")
        if chk and "chk" in row:
            if not agree(chk, row["chk"], case["elements"]):
                say(f"{name}: chk of pestle is {chk}, of {key} {row['chk']}")
                wrong = True
    return wrong


def ratio(rows, who, threads):
    """By minimum and by median, and the best peer's name. None: unknown."""
    times = {
        key.split("/")[0]: row
        for key, row in rows.items()
        if key.endswith(f"/{threads}") and "min" in row
    }
    peers = [n for n in times if n not in OURS]
    if who not in times or not peers:
        return None
    mine, best = times[who], min(peers, key=lambda n: times[n]["min"])
    median = min(times[n]["med"] for n in peers)
    return mine["min"] / times[best]["min"], mine["med"] / median, best


def print_table(cases):
    keys = {key for case in cases.values() for key in case["rows"]}
    threads = sorted({int(key.split("/")[1]) for key in keys})
    columns = [(w, t) for w in OURS for t in threads if f"{w}/{t}" in keys]

    def line(label, cells):
        print("|", " | ".join([label, *[cell or "-" for cell in cells]]), "|")

    print("|", *[f"| {w}, threads: {t}" for w, t in columns], "|")
    print("|---" * (len(columns) + 1) + "|")
    for group in dict.fromkeys(case["group"] for case in cases.values()):
        found = {
            name: [ratio(case["rows"], *column) for column in columns]
            for name, case in cases.items()
            if case["group"] == group
        }
        for name, all_of in found.items():
            line(name, [r and "%.2f (%.2f) %s" % r for r in all_of])
        means = []
        for column in zip(*found.values()):
            known = [r for r in column if r]
            pair = [statistics.geometric_mean(x) for x in list(zip(*known))[:2]]
            text = pair and f"{pair[0]:.2f} ({pair[1]:.2f})"
            if 0 < len(known) < len(column):
                text += f" of {len(known)}"
            means.append(text)
        if len(found) > 1:
            line(f"{group}, geometric mean of {len(found)}", means)


# --- The command ---


def numbers(text):
    return [int(number) for number in text.split(",")]


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add, path = parser.add_argument, pathlib.Path
    add("out", type=path, metavar="OUT.json")
    add("--build", type=path, default=ROOT / "build" / "release")
    add("--old", type=path, help="an older build, in the same turns")
    add("--peers-dir", type=path, default=ROOT / "build" / "peers")
    add("--peers", default=",".join(PEERS), help="default: %(default)s")
    add("--cases", default="", metavar="REGEX")
    add("--models", type=path, help="the folder of fetch_models.py")
    add("--run-args", default="", help="for pestle run, with --models")
    add("--cold", action="store_true")
    add("--threads", type=numbers, default=[1, 2], help="default: 1,2")
    add("--cpus", type=numbers, help="those of N threads are the first N")
    add("--rounds", type=int, default=5)
    add("--ms", type=float, default=50, help="of a turn")
    options = parser.parse_args()
    # The first CPU is often busy with interrupts.
    allowed = sorted(os.sched_getaffinity(0), reverse=True)
    options.cpus = options.cpus or allowed
    options.peers = [peer for peer in options.peers.split(",") if peer]
    unknown = ", ".join(set(options.peers) - set(PEERS))
    if unknown:
        parser.error(f"there is no peer {unknown}, but {', '.join(PEERS)}")
    if not set(options.cpus) <= set(allowed):
        parser.error(f"--cpus: this process may run on {allowed}")
    if min(options.threads) < 1 or max(options.threads) > len(options.cpus):
        parser.error(f"--threads: 1 to {len(options.cpus)}, the --cpus")
    try:
        re.compile(options.cases)
    except re.error as error:
        parser.error(f"--cases: {error}")
    ours = {"pestle": options.build, "old": options.old}
    options.ours = {n: b.resolve() for n, b in ours.items() if b}
    options.peers_dir = options.peers_dir.resolve()
    options.folder = options.ours["pestle"] / "bench" / "cases"
    for build in options.ours.values() if options.rounds else ():
        if not (build / "bench" / "cpu_worker").exists():
            parser.error(f"{build} is no build: it has no bench/cpu_worker")
    return options


def save(out, cases):
    part = out.with_name(out.name + ".part")
    part.write_text(json.dumps({"cases": cases}))
    part.replace(out)


def main():
    options, cases, wrong = parse(), {}, False
    try:
        if options.out.exists():
            cases = json.loads(options.out.read_text())["cases"]
        save(options.out, cases)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"compare.py: {options.out} is no results' file: {error!r}")
    if options.rounds:
        run = run_models if options.models else run_cases
        for name, cases[name] in run(options):
            save(options.out, cases)
            wrong |= report(name, cases[name])
    print_table(cases)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
