# SPDX-License-Identifier: Apache-2.0
"""Worlds whose ranks run on GPUs, threads of one process and processes, by the driver, the
NVRTC and the NCCL of tests/cuda/fake: the bits of CPUs where the order is given, and who
fails, hangs, dies or stops is named by all others in time."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

DRIVER, NVRTC, NCCL = sys.argv[1:4]
LONG = "--long" in sys.argv
os.environ["PESTLE_BUILD_DIR"] = os.environ.get("PESTLE_BUILD_DIR", ".")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "world"))
import failures  # noqa: E402
import ranks  # noqa: E402
import weights_test  # noqa: E402
from ranks import HEAD, PESTLE, RANK, REDUCE, World, model  # noqa: E402

FAKE = {"LD_LIBRARY_PATH": f"{DRIVER}:{NVRTC}:{NCCL}", "FAKE_CUDA_DEVICES": "4",
        "WORLD_RANK_DEVICE": "cuda"}
N = 4
LATE = 2.0  # the deadline of what fails
SLACK = float(os.environ.get("PESTLE_WORLD_SLACK", 2 if LONG else 50))


class Plans:
    def __init__(self, folder):
        self.folder = folder

    def get(self, n, size, backend="cuda", strict=False):
        path = self.folder / f"{backend}-{n}-{size}-{int(strict)}.plan"
        if not path.exists():
            source = self.folder / f"m{n}-{size}.mlir"
            source.write_text(model(n, size))
            line = [PESTLE, "compile", source, "-o", path, "--device", backend]
            line += ["--numerics", "strict"] if strict else []
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL,
                           env=os.environ | FAKE)
        return path


def processes(plan, n, steps=3, **more):
    """The lines that ranks say at the end."""
    with World([[RANK, plan, steps]] * n, **(FAKE | more)) as world:
        ends = world.ends(limit=60)
    return [(ends[i][0], ends[i][1].replace("ready\n", "").strip(), ends[i][2]) for i in range(n)]


def threads(plan, n, steps=3, **more):
    env = os.environ | FAKE | {"WORLD_RANK_THREADS": str(n), "PESTLE_THREADS": "1"}
    env |= {k: str(v) for k, v in more.items()}
    begin = time.monotonic()
    run = subprocess.run([RANK, plan, str(steps)], env=env, text=True, capture_output=True,
                         timeout=60, check=False)
    seconds = time.monotonic() - begin
    lines = run.stdout.strip().split("\n")
    assert len(lines) == n, (run.returncode, run.stdout, run.stderr)
    return [(run.returncode, line, seconds) for line in lines]


def bits(ends):
    texts = {text for code, text, _ in ends}
    assert all(code == 0 for code, _, _ in ends) and len(texts) == 1, ends
    return texts.pop()


def same_bits(plans):
    """A sum of two is the same in either order; of four it is where the order is given."""
    for n, size in ((2, 3000), (4, 1), (4, 70000)) if LONG else ((2, 3000), (4, 3000)):
        cpu = {"LD_LIBRARY_PATH": "", "WORLD_RANK_DEVICE": "llvm:0"}
        for strict in (False, True):
            host = bits(processes(plans.get(n, size, "llvm", strict), n, **cpu))
            plan = plans.get(n, size, strict=strict)
            own = [bits(form(plan, n)) for form in (processes, threads) * (2 if LONG else 1)]
            assert len(set(own)) == 1, own
            # The fake sums the last rank first.
            assert (own[0] == host) == (n == 2 or strict or size == 1), (n, size, strict, own, host)
            for form in (processes, threads):
                assert bits(form(plan, n, PESTLE_WORLD_TRANSPORT="host")) == host
                assert bits(form(plan, n, PESTLE_WORLD_ORDERED=1)) == host


def says(ends, code, words, but=(), limit=LATE + SLACK + 2):
    for i, (rc, text, seconds) in enumerate(ends):
        if i in but:
            continue
        # Who is still leaving the meeting in which all found it hears of it from others.
        assert rc == 1 and (f"error {code}: " in text or "has ended its world" in text), ends
        assert re.search(words, text), (i, text)
        assert seconds < limit, (i, seconds, text)


def faults(plans):
    plan = plans.get(N, 3000)
    late = {"PESTLE_WORLD_DEADLINE_MS": int(LATE * 1000),
            "PESTLE_WORLD_CREATE_MS": int(LATE * 1000)}
    for form in (processes, threads) if LONG else (threads,):
        says(form(plan, N, FAKE_NCCL="2:hang:3", **late), "DEADLINE_EXCEEDED",
             r"all ranks have come to collective \d \(all_reduce of step 0\), and on rank \d's "
             r"device it has not ended for 2\.0 s")
        # What NCCL itself finds waits for a name from the ranks' own transport.
        says(form(plan, N, FAKE_NCCL="1:async:2"), "UNAVAILABLE",
             r"rank 1 has ended its world: nccl: .*remote process exited")
        says(form(plan, N, FAKE_NCCL="3:init:0", **late), "DEADLINE_EXCEEDED",
             "not all ranks have come to the making of a communicator for 2.0 s")
        says(form(plan, N, PESTLE_NCCL="/nowhere/libnccl.so.2"), "UNAVAILABLE",
             "rank 0 on device cuda:0: GPUs meet by NCCL, which cannot be used: PESTLE_NCCL: "
             "/nowhere/libnccl.so.2.*PESTLE_WORLD_TRANSPORT=host")
        says(form(plan, N, FAKE_NCCL_VERSION="21703"), "UNAVAILABLE",
             r"is NCCL 2\.17\.3; 2\.19 or later is needed")
        says(form(plan, N, WORLD_RANK_DEVICE="cuda:1"), "INVALID_ARGUMENT",
             r"ranks 0 and 1 both run on the device with uuid 0101.*\(cuda:1, cuda:1\)")


def recordings(plans):
    """From the third run on a plan with collectives is one launch: the same bits, and what
    hangs in one is named as ever."""
    late = {"PESTLE_WORLD_DEADLINE_MS": int(LATE * 1000)}
    for n, size in ((2, 3000), (4, 3000)):
        plan = plans.get(n, size)
        for form in (processes, threads) if LONG else ((processes,) if n == 2 else (threads,)):
            alone = {"FAKE_CUDA_FAIL": "cuGraphInstantiateWithFlags:2:1"}
            once = bits(form(plan, n, steps=12, **alone))
            assert bits(form(plan, n, steps=12)) == once
            says(form(plan, n, steps=12, FAKE_CUDA_FAIL="cuGraphLaunch:2:1"), "UNAVAILABLE",
                 r"rank \d has ended its world: cuda: cuGraphLaunch on device \d")
            for more in ({"FAKE_CUDA_NO_RECORDED_WRITES": "1"}, {"PESTLE_WORLD_CHECK": "1"}):
                assert bits(form(plan, n, steps=12, **more)) == once, more
    plan = plans.get(N, 3000)
    for form in (processes, threads) if LONG else (threads,):
        for more in ({}, {"FAKE_CUDA_NO_RECORDED_WRITES": "1"}) if LONG else ({},):
            # Two collectives a step, the third step on by a recording: number 10 of the
            # transport is the second one of the fifth.
            says(form(plan, N, steps=12, FAKE_NCCL="2:hang:10", **late, **more),
                 "DEADLINE_EXCEEDED",
                 r"all ranks have come to collective \d+ \(all_reduce of step 2\), and on rank "
                 r"\d's device it has not ended for 2\.0 s")
        says(form(plan, N, steps=12, FAKE_NCCL="1:async:9"), "UNAVAILABLE",
             r"rank 1 has ended its world: nccl: .*remote process exited")


# Two gradients, each of which is used at once; together they are above 8 MiB.
GRADIENT = """  %{g} = stablehlo.dot_general %p, %{of}, contracting_dims = [0] x [0] : \
(tensor<64x1536xf32>, tensor<64x{n}xf32>) -> tensor<1536x{n}xf32>
{reduce}  %u{g} = stablehlo.multiply %r{g}, %w{n} : tensor<1536x{n}xf32>
"""
ORDER = """module @step attributes {{mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32}} {{
func.func @main(%p: tensor<64x1536xf32>, %q: tensor<64x1024xf32>, %w1024: tensor<1536x1024xf32>, \
%w1536: tensor<1536x1536xf32>) -> (tensor<1536x1024xf32>, tensor<1536x1536xf32>) {{
{first}{second}  return %ug, %uh : tensor<1536x1024xf32>, tensor<1536x1536xf32>
}}
}}
"""


def gradient(name, of, n, channel):
    reduce = REDUCE.format(to="r" + name, of=name, channel=channel, group=[0, 1], n=2,
                           size=f"1536x{n}")
    return GRADIENT.format(g=name, of=of, n=n, reduce=reduce)


def order(plans):
    """A collective begins when its operands are there; what reads it comes late."""
    source = plans.folder / "order.mlir"
    source.write_text(ORDER.format(first=gradient("g", "q", 1024, 1),
                                   second=gradient("h", "p", 1536, 2)))
    text = subprocess.run([PESTLE, "dump", source, "--stage", "plan", "--device", "cuda"],
                          check=True, text=True, stdout=subprocess.PIPE,
                          env=os.environ | FAKE).stdout
    kinds = re.findall(r"^ +\d+  (launch|collective|copy) +(\w+)", text, re.M)
    names = "".join("c" if kind == "collective" else "u" if "multiply" in name else "g"
                    for kind, name in kinds)
    assert re.fullmatch("g+cg+cu+", names), text


# A product beside the sum of another one.
UNITS = HEAD.replace("tensor<{size}xf32>", "tensor<{size}xbf16>") + """\
  %g = stablehlo.dot_general %a, %a, contracting_dims = [0] x [0] : (tensor<{size}xbf16>, \
tensor<{size}xbf16>) -> tensor<{size}xbf16>
""" + REDUCE.replace("xf32>", "xbf16>").replace("<f32>", "<bf16>") + """\
  %h = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<{size}xbf16>, \
tensor<{size}xbf16>) -> tensor<{size}xbf16>
  %i = stablehlo.dot_general %b, %h, contracting_dims = [1] x [0] : (tensor<{size}xbf16>, \
tensor<{size}xbf16>) -> tensor<{size}xbf16>
  return %i : tensor<{size}xbf16>
}}
}}
"""


def units(plans):
    """Of a product that may run beside a collective more groups share the tiles."""
    source = plans.folder / "units.mlir"
    source.write_text(UNITS.format(name="step", n=2, size="4096x4096", to="b", of="g", channel=1,
                                   group=[0, 1]))
    # The stand-in of NVRTC does not compile them, which comes behind the schedules.
    text = subprocess.run([PESTLE, "dump", source, "--stage", "schedule", "--device", "cuda"],
                          check=False, text=True, capture_output=True,
                          env=os.environ | FAKE | {"FAKE_CUDA_CAPABILITY": "90"}).stdout
    groups = [int(n) for n in re.findall(r"^ +tensorise c \d+ \d+ (\d+) ", text, re.M)]
    assert len(groups) == 3 and groups[1] == 4 * groups[0] and groups[2] == groups[0], text


def beside(plans):
    """Collectives run beside kernels, step by step and in recordings; the bits are the same."""
    plan = plans.folder / "beside.plan"
    source = plans.folder / "beside.mlir"
    source.write_text(ranks.beside(2, 60))
    subprocess.run([PESTLE, "compile", source, "-o", plan, "--device", "cuda"], check=True,
                   stdout=subprocess.DEVNULL, env=os.environ | FAKE)
    seen = set()
    for overlap, recorded in (("0", "1"), ("1", "0"), ("1", "1")):
        for again in range(3 if LONG else 1):
            file = plans.folder / f"counts{overlap}{recorded}{again}"
            seen.add(bits(processes(plan, 2, steps=9, FAKE_NCCL_SLOW=20, FAKE_CUDA_BESIDE=file,
                                    PESTLE_WORLD_OVERLAP=overlap,
                                    PESTLE_WORLD_RECORDINGS=recorded)))
            counts = [int(line) for line in file.read_text().split()]
            assert len(counts) == 2, counts
            assert all(count == 0 for count in counts) if overlap == "0" else \
                all(count > 0 for count in counts), (overlap, recorded, counts)
        seen.add(bits(threads(plan, 2, steps=9, PESTLE_WORLD_OVERLAP=overlap,
                              PESTLE_WORLD_RECORDINGS=recorded)))
    assert len(seen) == 1, seen
    late = {"PESTLE_WORLD_DEADLINE_MS": int(LATE * 1000)}
    for recorded in "01":
        says(threads(plan, 2, steps=12, FAKE_NCCL="1:hang:7", PESTLE_WORLD_RECORDINGS=recorded,
                     **late), "DEADLINE_EXCEEDED",
             r"all ranks have come to collective \d+ \(all_reduce of step 1\), and on rank "
             r"\d's device it has not ended for 2\.0 s")


def stuck(plans):
    """An abort of NCCL's that hangs: the device is lost, and the run ends all the same."""
    ends = processes(plans.get(N, 3000), N, FAKE_NCCL="2:stuck:3",
                     PESTLE_WORLD_DEADLINE_MS=int(LATE * 1000))
    says(ends, "DEADLINE_EXCEEDED", r"all ranks have come to collective \d", limit=25)


def kill_and_stop(plans):
    line = [RANK, plans.get(N, 3000), 1000000]
    for number, words in ((signal.SIGKILL, "rank 1 has (died|gone)"),
                          (signal.SIGSTOP, "rank 1 has (not come|come to, but not done)")):
        for shared in (0, 1) if LONG else (1,):
            with World([line] * N, PESTLE_WORLD_SHM=shared,
                       PESTLE_WORLD_DEADLINE_MS=int(LATE * 1000), **FAKE) as world:
                world.wait_ready()
                time.sleep(1.0)  # in the midst of it
                world.signal(1, number)
                ends = world.ends({1}, 30)
                for i, (code, text, seconds) in ends.items():
                    assert code == 1 and re.search(words, text), (number, i, text)
                    assert seconds < LATE + SLACK + 2, (number, i, seconds, text)


def other_counts(plans):
    """Threads load what they like: before the first run the plans are compared."""
    both = f"{plans.get(2, 3000)},{plans.get(2, 1)}"
    says(threads(both, 2), "INCOMPATIBLE",
         r"run different programs: collective 2 is plan 'step' \([0-9a-f]{16}\)")
    assert bits(threads(plans.get(2, 3000), 2, PESTLE_WORLD_CHECK=1)) == \
        bits(threads(plans.get(2, 3000), 2))


class GpuCase(failures.Case):
    """tests/world's failures, of ranks on GPUs."""

    def program(self, file, text):
        plan = self.folder / (file + ".plan")
        if not plan.exists():
            source = super().program(file, text)
            subprocess.run([PESTLE, "compile", source, "-o", plan, "--device", "cuda"],
                           check=True, stdout=subprocess.DEVNULL, env=os.environ | FAKE)
        return plan

    def run(self, fault):
        os.environ.update(FAKE)
        super().run(fault)


def mixed(plans):
    plan = plans.get(2, 1)
    with World([[RANK, plan, 3]] * 2, **FAKE) as world:
        world.ends(limit=60)
    commands = [["env", f"PESTLE_WORLD_TRANSPORT={way}", RANK, plan, 3] for way in ("nccl", "host")]
    with World(commands, **FAKE) as world:
        ends = world.ends(limit=60)
    for code, text, _ in ends.values():
        assert code == 1 and "rank 0 (cuda:0) meets others by cuda and rank 1 (cuda:1) by host" \
            in text, text


DOT = """module @m {
func.func @main(%x: tensor<8x16xf32> {pestle.name = "x"}, \
%w: tensor<16x12xf32> {pestle.name = "w"}) -> tensor<8x12xf32> {
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, \
tensor<16x12xf32>) -> tensor<8x12xf32>
  return %y : tensor<8x12xf32>
}
}
"""


def command(folder):
    """--mesh gives each process a GPU; --device takes {rank}."""
    model_file = folder / "dot.mlir"
    model_file.write_text(DOT)

    def run(*words, **more):
        env = os.environ | FAKE | more
        return subprocess.run([str(w) for w in (PESTLE, "run", *words)], env=env, text=True,
                              capture_output=True, timeout=100, check=False)
    inputs = ("--input", "x=random:1", "--input", "w=random:2")
    one = run(model_file, *inputs, "--device", "cpu", "--outputs", folder / "one")
    assert one.returncode == 0, one.stderr
    mesh = (model_file, *inputs, "--device", "cuda", "--mesh", "model=2", "--shard", "w=model,-",
            "--compare", folder / "one")
    for more in ({}, {"FAKE_CUDA_DEVICES": "1", "PESTLE_WORLD_TRANSPORT": "host"}):
        r = run(*mesh, **more)
        assert r.returncode == 0, (more, r.stdout, r.stderr)
    r = run(*mesh, FAKE_CUDA_DEVICES="1")
    assert r.returncode and "for process 1 of the mesh: each has a device of its own" in r.stderr, \
        r.stderr


def weights(folder):
    """Each GPU gets its parts of weights; from the third run on all is one launch, since no
    step asks for the process' number."""
    text = folder / "weights.mlir"
    plan = folder / "weights.plan"
    text.write_text(weights_test.text_of(8, 64, 512))
    weights_test.call("run", text, "--input", "0=random:1", "--outputs", folder / "alone")
    rules = weights_test.rules(2)
    for more in ({}, {"FAKE_CUDA_DEVICES": "1", "PESTLE_WORLD_TRANSPORT": "host"}):
        weights_test.call("run", text, "--input", "0=random:1", *rules, "--device", "cuda",
                          "--compare", folder / "alone", **(FAKE | more))
    weights_test.call("compile", text, *rules, "--device", "cuda", "-o", plan, **FAKE)
    alone = {"FAKE_CUDA_FAIL": "cuGraphInstantiateWithFlags:2:1"}
    once = bits(processes(plan, 2, steps=6, **alone))
    for form in (processes, threads):
        assert bits(form(plan, 2, steps=6)) == once
        says(form(plan, 2, steps=6, FAKE_CUDA_FAIL="cuGraphLaunch:2:1"), "UNAVAILABLE",
             r"rank \d has ended its world: cuda: cuGraphLaunch on device \d")
    one = {"WORLD_RANK_DEVICE": "cuda:0", "PESTLE_WORLD_TRANSPORT": "host"}
    assert bits(threads(plan, 2, steps=6, **one)) == once


def main():
    with tempfile.TemporaryDirectory() as folder:
        plans = Plans(pathlib.Path(folder))
        same_bits(plans)
        faults(plans)
        recordings(plans)
        order(plans)
        units(plans)
        beside(plans)
        mixed(plans)
        other_counts(plans)
        command(plans.folder)
        weights(plans.folder)
        kill_and_stop(plans)
        if LONG:
            stuck(plans)
            failures.run(60, 5000, kind=GpuCase)
    left = [p.name for p in pathlib.Path("/dev/shm").glob("pestle-fake-nccl-*")]
    for name in left:
        if not pathlib.Path("/proc", name.split("-")[3]).exists():
            pathlib.Path("/dev/shm", name).unlink()  # of ranks that were killed
    return 0


if __name__ == "__main__":
    sys.exit(main())
