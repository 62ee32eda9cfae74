# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's side of 'pestle bench --beside ort': one line in, one line out.

open THREADS CONCURRENCY FOLDER MODEL   inputs: FOLDER/input_I.npy, names in names.txt
run SECONDS                             -> runs SECONDS MS MS MS ...
"""

import os
import sys
import threading
import time


def say(*words):
    print(*[str(w).replace("\n", " ") for w in words], flush=True)


try:
    import numpy as np
    import onnxruntime as ort
except Exception as e:  # whatever an import may raise
    say("missing", f"{type(e).__name__}: {e}")
    sys.exit(0)
say("here", ort.__version__)


def open_model(threads, folder, path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = ort.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )
    with open(os.path.join(folder, "names.txt"), encoding="utf-8") as f:
        names = f.read().split("\n")[:-1]
    feeds = {
        name: np.load(os.path.join(folder, f"input_{i}.npy"))
        for i, name in enumerate(names)
    }
    for i, output in enumerate(session.run(None, feeds)):
        np.save(os.path.join(folder, f"output_{i}.npy"), output)
    return session, feeds


def run_until(session, feeds, deadline, out):
    # A clock that stood still says no less than one of its ticks.
    tick = time.get_clock_info("perf_counter").resolution
    while time.monotonic() < deadline:
        begin = time.perf_counter()
        session.run(None, feeds)
        out.append(max(time.perf_counter() - begin, tick) * 1e3)


def run(session, feeds, seconds, concurrency):
    begin = time.monotonic()
    lists = [[] for _ in range(concurrency)]
    args = [(session, feeds, begin + seconds, out) for out in lists]
    threads = [threading.Thread(target=run_until, args=a) for a in args[1:]]
    for t in threads:
        t.start()
    run_until(*args[0])
    for t in threads:
        t.join()
    spent = time.monotonic() - begin
    say("runs", f"{spent:.9f}", *[f"{ms:.6f}" for out in lists for ms in out])


def main():
    session = feeds = None
    concurrency = 1
    for line in sys.stdin:
        words = line.rstrip("\n").split(" ")
        try:
            if words[0] == "open":
                concurrency = int(words[2])
                folder, path = " ".join(words[3:]).split("\t")
                session, feeds = open_model(int(words[1]), folder, path)
                say("opened")
            elif words[0] == "run":
                run(session, feeds, float(words[1]), concurrency)
        except Exception as e:
            say("failed", f"{type(e).__name__}: {e}")


main()
