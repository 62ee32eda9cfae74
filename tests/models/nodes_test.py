#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ONNX backend cases of LISTS through `pestle run`, on each of DEVICES: all
of them must run and be right. llvm, which compiles each, gets every second case of a
list, and all in nodes_long_test.py. Exits 77, "skipped", when a Python package is
missing."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BUILD = os.environ["PESTLE_BUILD_DIR"]
# Each list with how many cases must pass, and where it runs: the
# interpreter would take minutes for a network of 'light'.
LISTS = (
    ("node_tests.txt", 1175, ("ref", "llvm")),
    ("node_tests_control.txt", 59, ("ref", "llvm")),
    ("node_tests_more.txt", 519, ("ref", "llvm")),
    ("node_tests_ml.txt", 30, ("ref", "llvm")),
    ("node_tests_sequence.txt", 25, ("ref", "llvm")),
    ("old_tests.txt", 132, ("ref", "llvm")),
    ("light/*", 9, ("llvm",)),
)

# Results of f16 sums, whose order is ours to choose: 2 units in the last place.
LOOSER = {"node/test_attention_4d_causal_fp16_expanded": 1e-3}

# Where the exact result is 0, the expected one is what NumPy's sums in f32 left
# of terms that cancel: 2e-7, more than the 1e-7 that the cases allow.
NOISE = {
    "node/test_dft_inverse": 1e-6,
    "node/test_dft_inverse_opset19": 1e-6,
}


def write_data(folder):
    path = os.path.join(folder, "tolerances.json")
    if os.path.exists(path):
        return
    command = [sys.executable, "-W", "ignore", str(HERE / "gen_node_data.py")]
    subprocess.run(command + [folder], check=True)
    with open(path) as f:
        tolerances = json.load(f)
    for name, rtol in LOOSER.items():
        tolerances[name]["rtol"] = max(rtol, 2 * tolerances[name]["rtol"])
    with open(path, "w") as f:
        json.dump(tolerances, f, indent=0)


def allow_noise(folder):
    """Data that an older version of this test wrote is without it."""
    path = os.path.join(folder, "tolerances.json")
    with open(path) as f:
        tolerances = json.load(f)
    for name, atol in NOISE.items():
        tolerances[name]["atol"] = max(atol, tolerances[name]["atol"])
    with open(path, "w") as f:
        json.dump(tolerances, f, indent=0)


def backends_of(device, folder):
    """A folder with the backend of |device| alone: nearly 4,000 processes need not try all."""
    found = sorted(pathlib.Path(BUILD, "backends").glob(f"libpestle-{device}*"), reverse=True)
    for path in found[:1]:  # of variants the newest
        (folder / path.name).symlink_to(path)
    return str(folder)


def run_cases(data, names, device):
    """The names of the cases that passed, failed and were skipped; |names| is a
    list beside this file or a pattern."""
    if (HERE / names).exists():
        names = HERE / names
    report = os.path.join(BUILD, "node-report.json")
    exe = f"{BUILD}/pestle run {{model}} --inputs {{inputs}} --device {device}"
    exe += " --outputs {outputs} --threads 1 --no-cache"
    command = [sys.executable, str(HERE / "run_node_tests.py"), "--data", data]
    command += ["--exe", exe, "--json", report, "--timeout", "250"]
    command += ["--include", str(names), "--show-failed", "40"]
    command += ["--jobs", str(os.cpu_count() or 1)]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(command + sys.argv[1:], env={
            **os.environ, "PESTLE_BACKEND_PATH": backends_of(device, pathlib.Path(folder))})
    with open(report) as f:
        results = json.load(f)["results"]
    return [
        [n for n, r in sorted(results.items()) if r["status"] == status]
        for status in ("passed", "failed", "skipped")
    ]


def has_device(device):
    done = subprocess.run(
        [f"{BUILD}/pestle", "plugins"], capture_output=True, text=True
    )
    return device in done.stdout.split()


def share_of(names, every, folder):
    """|names|, or of a list every so-many-th case; and how many are left out."""
    path = HERE / names
    if every == 1 or not path.exists():
        return names, 0
    cases = [line for line in path.read_text().splitlines() if line.split("#")[0].strip()]
    part = folder / names
    part.write_text("\n".join(cases[::every]) + "\n")
    return part, len(cases) - len(cases[::every])


def main(every=2):
    try:
        import numpy, onnx, ml_dtypes  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        sys.exit(77)
    data = os.path.join(BUILD, "node-data")
    write_data(data)
    allow_noise(data)
    good = True
    for names, must_pass, devices in LISTS:
        for device in filter(has_device, devices):
            with tempfile.TemporaryDirectory() as folder:
                part, left_out = share_of(
                    names, every if device == "llvm" else 1, pathlib.Path(folder))
                passed, failed, skipped = run_cases(data, part, device)
            print(f"{names} on {device}: {len(passed)} passed, "
                  f"{len(failed)} failed: {' '.join(failed)}, "
                  f"{len(skipped)} unsupported: {' '.join(skipped)}")  # fmt: skip
            good = good and len(passed) >= must_pass - left_out and not failed
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
