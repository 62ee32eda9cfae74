# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes that a test starts, and ends, by their numbers."""
import os
import pathlib
import signal
import socket
import subprocess
import time

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
RANK = BUILD / "tests" / "bin" / "world_rank"
PESTLE = BUILD / "pestle"
SECRET = "00112233445566778899aabbccddeeff" * 2

HEAD = """module @{name} attributes {{mhlo.num_partitions = {n} : i32, \
mhlo.num_replicas = 1 : i32}} {{
func.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> {{
"""
REDUCE = """  %{to} = "stablehlo.all_reduce"(%{of}) <{{channel_handle = \
#stablehlo.channel_handle<handle = {channel}, type = 1>, replica_groups = \
dense<[{group}]> : tensor<1x{n}xi64>, use_global_device_ids}}> ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) : (tensor<{size}xf32>) -> tensor<{size}xf32>
"""


def model(n, size, scale=0.3, name="step"):
    """|n| processes sum, scale, and sum once more."""
    group = list(range(n))
    return (HEAD.format(name=name, n=n, size=size) +
            REDUCE.format(to="b", of="a", channel=1, group=group, n=n, size=size) +
            f"  %k = stablehlo.constant dense<{scale}> : tensor<{size}xf32>\n"
            f"  %c = stablehlo.multiply %b, %k : tensor<{size}xf32>\n" +
            REDUCE.format(to="d", of="c", channel=2, group=group, n=n, size=size) +
            f"  %e = stablehlo.multiply %d, %k : tensor<{size}xf32>\n"
            f"  return %e : tensor<{size}xf32>\n}}\n}}\n")


# The sum of %t needs nothing of %d and %u, and its reader both; %d would fit where %t lies.
BESIDE = """  %k = stablehlo.constant dense<0.3> : tensor<{size}xf32>
  %t = stablehlo.multiply %a, %k : tensor<{size}xf32>
{reduce}  %c = stablehlo.multiply %b, %k : tensor<{size}xf32>
  %m = stablehlo.reshape %a : (tensor<{size}xf32>) -> tensor<{rows}x50xf32>
  %d = stablehlo.dot_general %m, %m, contracting_dims = [1] x [1] : (tensor<{rows}x50xf32>, \
tensor<{rows}x50xf32>) -> tensor<{rows}x{rows}xf32>
  %u = stablehlo.dot_general %d, %m, contracting_dims = [1] x [0] : (tensor<{rows}x{rows}xf32>, \
tensor<{rows}x50xf32>) -> tensor<{rows}x50xf32>
  %v = stablehlo.reshape %u : (tensor<{rows}x50xf32>) -> tensor<{size}xf32>
  %z = stablehlo.constant dense<1.0e-4> : tensor<{size}xf32>
  %w = stablehlo.multiply %v, %z : tensor<{size}xf32>
  %h = stablehlo.tanh %w : tensor<{size}xf32>
  %e = stablehlo.add %c, %h : tensor<{size}xf32>
{again}  %i = stablehlo.multiply %o, %k : tensor<{size}xf32>
  return %i : tensor<{size}xf32>
}}
}}
"""


def beside(n, rows):
    """A model of |rows| x 50 elements with kernels that may run beside its sum."""
    size = 50 * rows
    sums = [REDUCE.format(to=to, of=of, channel=channel, group=list(range(n)), n=n, size=size)
            for to, of, channel in (("b", "t", 1), ("o", "e", 2))]
    return HEAD.format(name="step", n=n, size=size) + BESIDE.format(
        size=size, rows=rows, reduce=sums[0], again=sums[1])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def environment(rank, size, port, **more):
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("OMPI_", "PMI", "SLURM_"))}
    env |= {"PESTLE_WORLD": f"tcp://127.0.0.1:{port}", "RANK": str(rank),
            "WORLD_SIZE": str(size), "PESTLE_WORLD_SECRET": SECRET,
            "PESTLE_THREADS": "1"}
    return env | {k: str(v) for k, v in more.items()}


class World:
    """Processes of |commands|, one a rank; none is left when it ends."""

    def __init__(self, commands, **more):
        self.port = free_port()
        self.begun = {}  # what ranks have said that never joined
        self.ranks = [
            subprocess.Popen([str(word) for word in command], bufsize=0,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env=environment(i, len(commands), self.port, **more))
            for i, command in enumerate(commands)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            if rank.poll() is None:
                rank.send_signal(signal.SIGCONT)
                rank.kill()
            rank.wait()
            rank.stdout.close()

    def wait_ready(self):
        """Until all have joined, or have ended: a rank may fail sooner than others
        have seen that it came."""
        for i, rank in enumerate(self.ranks):
            line = rank.stdout.readline()  # unbuffered: the rest stays
            if line != b"ready\n":
                self.begun[i] = line

    def signal(self, rank, number):
        os.kill(self.ranks[rank].pid, number)

    def ends(self, but=(), limit=60):
        """(exit code, text, seconds) of each rank but some, until |limit|."""
        begin = time.monotonic()
        results = {}
        for i, rank in enumerate(self.ranks):
            if i in but:
                continue
            try:
                text, _ = rank.communicate(
                    timeout=max(0.01, begin + limit - time.monotonic()))
            except subprocess.TimeoutExpired as late:
                raise AssertionError(
                    f"rank {i} has not ended for {limit} s") from late
            results[i] = (rank.returncode,
                          (self.begun.get(i, b"") + text).decode(),
                          time.monotonic() - begin)
        return results
