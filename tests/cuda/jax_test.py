# SPDX-License-Identifier: Apache-2.0
"""JAX on two GPUs of one client, and with --long on two processes with a GPU each, by the
driver, the NVRTC and the NCCL of tests/cuda/fake: what tests/h200/jax_gpus.py and
tests/pjrt/processes_test.py ask. Skips where JAX cannot be imported (PESTLE_JAX_PYTHON names
a Python that can)."""
import os
import pathlib
import subprocess
import sys
import tempfile

FAKES = sys.argv[1:4]
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARY = pathlib.Path(os.environ.get("PESTLE_BUILD_DIR", ".")).resolve() / "pjrt_plugin_pestle.so"
PYTHON = os.environ.get("PESTLE_JAX_PYTHON", sys.executable)
FAKE = {"LD_LIBRARY_PATH": ":".join(FAKES), "FAKE_CUDA_DEVICES": "2",
        "PESTLE_PJRT_LIBRARY": str(LIBRARY), "PYTHONDONTWRITEBYTECODE": "1"}
SCRIPT = SOURCE / "tests" / "h200" / "jax_gpus.py"


def script(*arguments, **more):
    with tempfile.TemporaryDirectory() as out:
        env = os.environ | FAKE | {"PESTLE_PJRT_DEVICE": "cuda", "OUT": out} | more
        env.pop("PJRT_NAMES_AND_LIBRARY_PATHS", None)
        return subprocess.run([PYTHON, SCRIPT, "--small", *arguments], env=env, check=False,
                              capture_output=True, text=True)


def one_process():
    done = script()
    assert done.returncode == 0 and done.stdout.count('"good": true') > 15, \
        done.stdout[-3000:] + done.stderr[-3000:]
    # NCCL is what they meet by, and a name with a number is one GPU.
    done = script("--only", "collectives", PESTLE_NCCL="/nowhere")
    assert done.returncode == 1 and "rank 0 on device cuda:0: GPUs meet by NCCL" in done.stdout, \
        done.stdout[-3000:]
    done = script(PESTLE_PJRT_DEVICE="cuda:1")
    assert done.returncode == 1 and '["pestle:0 (cuda:1)"]' in done.stdout, done.stdout[-3000:]


def two_processes():
    sys.path.insert(0, str(SOURCE / "tests" / "pjrt"))
    import processes_test as processes
    processes.LIBRARY = LIBRARY
    processes.cases(PYTHON, 1, PESTLE_PJRT_DEVICE="cuda:{i}", **FAKE)


def main():
    probe = subprocess.run([PYTHON, "-c", "import jax"], check=False, capture_output=True)
    if probe.returncode or not LIBRARY.exists():
        print("no JAX here")
        return 77
    one_process()
    if "--long" in sys.argv:
        two_processes()
    return 0


if __name__ == "__main__":
    sys.exit(main())
