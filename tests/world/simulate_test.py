#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pestle world --simulate beside real ranks: the same collectives, in the same order, and
the same bytes, exactly. Times follow the formulas of docs/simulate.md."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile


from ranks import PESTLE, World

PEERS = "rank flops=50G memory=10G launch=1us\nlink wire alpha=3us beta=8G by=peers\n"
RING = "rank flops=50G memory=10G\nlink wire alpha=3us beta=8G\n"
HOSTS = ("# hosts of four\nrank flops=50G memory=10G launch=2us  # and no overlap\n"
         "link inner ranks=4 alpha=1us beta=100G\nlink outer alpha=5us beta=10G\n")

CHANNEL = ("channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
           "replica_groups = dense<{groups}> : tensor<{rows}x{each}xi64>")
ADD = (" ({{\n^bb0(%x: tensor<f32>, %y: tensor<f32>):\n%xy = stablehlo.add %x, %y : "
       "tensor<f32>\nstablehlo.return %xy : tensor<f32>\n}})")
GLOBAL = ", use_global_device_ids"


def op(name, operand, shape, result, n, attrs="", region="", groups=None):
    groups = groups or [list(range(n))]
    text = CHANNEL.format(groups=groups, rows=len(groups), each=len(groups[0]))
    return (f'"stablehlo.{name}"(%{operand}) <{{{text}{attrs}}}>{region} : '
            f"(tensor<{shape}xf32>) -> tensor<{result}xf32>\n")


def every_kind(n, size, groups=None):
    """One of each kind, |size| elements a rank; all_reduces of 200 and of |size|."""
    region, members = ADD.format(), len(groups[0]) if groups else n
    all_of = size * members
    pairs = [[i, (i + 1) % n] for i in range(n - 1)]
    return (
        f"module @kinds attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas "
        f"= 1 : i32}} {{\nfunc.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> "
        "{\n%r = " + op("all_reduce", "a", size, size, n, GLOBAL, region, groups) +
        "%g = " + op("all_gather", "r", size, all_of, n,
                      ", all_gather_dim = 0 : i64" + GLOBAL, "", groups) +
        "%t = " + op("all_to_all", "g", all_of, all_of, n,
                      f", split_dimension = 0 : i64, concat_dimension = 0 : i64, "
                      f"split_count = {members} : i64", "", groups) +
        "%q = " + op("reduce_scatter", "t", all_of, size, n,
                      ", scatter_dimension = 0 : i64" + GLOBAL, region, groups) +
        f"%s = stablehlo.slice %q [0:200] : (tensor<{size}xf32>) -> tensor<200xf32>\n"
        "%u = " + op("all_reduce", "s", 200, 200, n, GLOBAL, region, groups) +
        f'%p = "stablehlo.collective_permute"(%q) <{{channel_handle = '
        f"#stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = "
        f"dense<{pairs}> : tensor<{n - 1}x2xi64>}}> : (tensor<{size}xf32>) -> "
        f"tensor<{size}xf32>\n"
        "%z = stablehlo.constant dense<0> : tensor<i32>\n"
        f"%v = stablehlo.dynamic_update_slice %p, %u, %z : (tensor<{size}xf32>, "
        f"tensor<200xf32>, tensor<i32>) -> tensor<{size}xf32>\n"
        f"return %v : tensor<{size}xf32>\n}}\n}}\n")


def looped(n, size, trips):
    region = ADD.format()
    return (
        f"module @loop attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas "
        f"= 1 : i32}} {{\nfunc.func @main(%a: tensor<{size}xf32>) -> tensor<{size}xf32> "
        f"{{\n%z = stablehlo.constant dense<0> : tensor<i32>\n%w:2 = stablehlo.while(%k = "
        f"%z, %u = %a) : tensor<i32>, tensor<{size}xf32>\ncond {{\n%l = "
        f"stablehlo.constant dense<{trips}> : tensor<i32>\n%t = stablehlo.compare LT, %k, "
        "%l : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %t : tensor<i1>\n"
        "} do {\n%r = " + op("all_reduce", "u", size, size, n, GLOBAL, region) +
        f"%h = stablehlo.constant dense<0.5> : tensor<{size}xf32>\n%m = "
        f"stablehlo.multiply %r, %h : tensor<{size}xf32>\n%i = stablehlo.constant "
        "dense<1> : tensor<i32>\n%j = stablehlo.add %k, %i : tensor<i32>\n"
        f"stablehlo.return %j, %m : tensor<i32>, tensor<{size}xf32>\n}}\n"
        f"return %w#1 : tensor<{size}xf32>\n}}\n}}\n")


class Test:
    def __init__(self, folder):
        self.folder = folder

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def command(self, model, topology, n, *more):
        return [PESTLE, "world", model, "--simulate", n, "--topology",
                self.file("topology", topology), "--no-cache", *more]

    def simulate(self, model, topology, n, *more):
        done = subprocess.run(
            [str(w) for w in self.command(model, topology, n, "--json", *more)],
            capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refuses(self, part, model, topology, n, *more):
        done = subprocess.run(
            [str(w) for w in self.command(model, topology, n, *more)],
            capture_output=True, text=True, check=False)
        assert done.returncode and part in done.stderr, (part, done.stderr)

    def measured(self, model, n, size, **more):
        """Bytes that each rank has sent in one run."""
        line = [PESTLE, "run", model, "--input", f"a={size}xf32=0.5", "--json",
                "--no-cache"]
        with World([line] * n, **more) as world:
            ends = world.ends(limit=120)
        assert all(code == 0 for code, _, _ in ends.values()), ends
        texts = [ends[r][1] for r in range(n)]
        facts = [json.loads(t[t.index("{"):t.rindex("}") + 1])["world"] for t in texts]
        assert [f["rank"] for f in facts] == list(range(n))
        return [f["sent_bytes"] for f in facts]

    def bytes_are_exact(self):
        cases = [(2, 301, None), (2, 20001, None), (3, 301, None), (4, 4003, None),
                 (4, 1001, [[0, 2], [3, 1]])]
        for n, size, groups in cases:
            model = self.file(f"k{n}_{size}.mlir", every_kind(n, size, groups))
            planned = self.simulate(model, PEERS, n)
            kinds = [c["ops"].split()[0].split(",")[0] for c in planned["collectives"]]
            want = ["all_reduce", "all_gather", "all_to_all", "reduce_scatter"]
            assert kinds[:4] == want, kinds
            assert sorted(kinds[4:]) == ["all_reduce", "collective_permute"], kinds
            for shared in (0, 1):
                found = self.measured(model, n, size, PESTLE_WORLD_SHM=shared)
                assert planned["sent_bytes"] == found, (n, size, groups, planned, found)
        n, size, trips = 2, 50001, 7
        model = self.file("loop.mlir", looped(n, size, trips))
        planned = self.simulate(model, PEERS, n)
        assert sum(c["times"] for c in planned["collectives"]) == trips, planned
        assert planned["sent_bytes"] == self.measured(model, n, size)

    def times_follow(self):
        n, size = 8, 1 << 20
        model = self.file("one.mlir", looped(n, size, 1))
        times = self.no_time(model, n)
        bytes_, beta, alpha = size * 4, 8e9, 3e-6
        ring = 2 * (n - 1) * (alpha + bytes_ / n / beta)
        tree = 2 * (math.log2(n) * alpha + bytes_ / beta)
        found = self.simulate(model, RING, n, "--step-times", times)
        assert math.isclose(found["run_us"], min(ring, tree) * 1e6, rel_tol=1e-9)
        assert math.isclose(found["exposed_us"], found["wire_us"], rel_tol=1e-9)
        # Two hosts of four: parts inside, sums between the hosts, parts inside.
        inner = 3 * (1e-6 + bytes_ / 4 / 100e9)
        outer = min(2 * (5e-6 + bytes_ / 4 / 2 / 10e9), 2 * (5e-6 + bytes_ / 4 / 10e9))
        found = self.simulate(model, HOSTS, n, "--step-times", times)
        assert found["collectives"][0]["way"] == "levels"
        assert math.isclose(found["run_us"], (2 * inner + outer) * 1e6, rel_tol=1e-9)
        # Twice the rate, no latency: what is said to change does.
        changes = {c["change"]: c["run_us"] for c in found["with"]}
        assert changes["wires of twice the rate"] < found["run_us"]
        assert changes["no latency"] < found["run_us"]
        # Small things go up and down a tree.
        model = self.file("small.mlir", looped(n, 16, 1))
        times = self.no_time(model, n)
        found = self.simulate(model, RING, n, "--step-times", times)
        assert found["collectives"][0]["way"] == "tree", found["collectives"]

    def no_time(self, model, n):
        """A file by which all steps but collectives take none."""
        count = self.simulate(model, RING, n)["plan_steps"]
        return self.file("zero", "".join(f"{i} 0\n" for i in range(count)))

    def late_ranks(self):
        """Jitter makes ranks wait for each other; a seed says who is late."""
        model = self.file("loop16.mlir", looped(16, 4096, 50))
        late = RING.replace("memory=10G", "memory=10G jitter=0.5 overlap=yes")
        even = self.simulate(model, RING, 16)
        one, two, other = (self.simulate(model, late, 16, "--seed", s)
                           for s in (1, 1, 2))
        assert one == two and one["run_us"] != other["run_us"]
        assert even["run_us"] < one["run_us"] < 1.5 * even["run_us"]
        assert one["exposed_us"] > one["wire_us"]

    def many(self):
        """1,024 ranks, 10,000 collectives and as many kernels."""
        model = self.file("many.mlir", looped(1024, 1024, 10000))
        found = self.simulate(
            model, RING.replace("memory=10G", "memory=10G jitter=0.1 overlap=yes"), 1024)
        assert found["ranks"] == 1024 and found["steps"] >= 20000, found["steps"]
        assert len(found["sent_bytes"]) == 1024

    def overlaps(self):
        """A collective that nobody needs soon goes beside kernels."""
        n, size, region = 4, 1 << 18, ADD.format()
        model = self.file(
            "beside.mlir",
            f"module @b attributes {{mhlo.num_partitions = {n} : i32, mhlo.num_replicas = "
            f"1 : i32}} {{\nfunc.func @main(%a: tensor<{size}xf32>, %m: "
            "tensor<256x256xf32>) -> tensor<256x256xf32> {\n%r = " +
            op("all_reduce", "a", size, size, n, GLOBAL, region) +
            "".join(f"%m{i} = stablehlo.dot_general %m{i - 1 if i else ''}, %m, "
                    "contracting_dims = [1] x [0] : (tensor<256x256xf32>, "
                    "tensor<256x256xf32>) -> tensor<256x256xf32>\n" for i in range(4)) +
            f"%s = stablehlo.slice %r [0:65536] : (tensor<{size}xf32>) -> "
            "tensor<65536xf32>\n%v = stablehlo.reshape %s : (tensor<65536xf32>) -> "
            "tensor<256x256xf32>\n%w = stablehlo.add %v, %m3 : tensor<256x256xf32>\n"
            "return %w : tensor<256x256xf32>\n}\n}\n")
        apart = self.simulate(model, RING, n)
        beside = self.simulate(model, RING.replace("flops", "overlap=yes flops"), n)
        changes = {c["change"]: c["run_us"] for c in apart["with"]}
        assert math.isclose(changes["overlap"], beside["run_us"]), (changes, beside)
        changes = {c["change"]: c["run_us"] for c in beside["with"]}
        assert math.isclose(changes["no overlap"], apart["run_us"])
        assert beside["run_us"] < apart["run_us"]
        assert beside["exposed_us"] < apart["exposed_us"]

    def refusals(self):
        model = self.file("m.mlir", looped(2, 8, 1))
        for text, part in (
                ("", "has no line 'rank'"),
                ("rank flops=1G memory=1G\n", "has no line 'link'"),
                ("rank flops=1G\nlink a beta=1G\n", "has no memory of a rank"),
                ("rank flops=fast\n", "line 1 of topology"),
                ("rank flops=-1\n", "flops wants a number"),
                ("rank colour=1\n", "no 'colour'"),
                ("\nlink beta=1G\n", "a link begins with its name"),
                ("link a alpha=1us\n", "link 'a' has no beta"),
                ("link a beta=1G by=mail\n", "by is ring or peers"),
                ("wheel\n", "begins with 'rank' or 'link'"),
                ("rank flops=1G memory=1G\nlink a beta=1G\nlink b beta=1G\n",
                 "stand from the inside out"),
                ("rank flops=1G memory=1G\nrank flops=1G\n", "all ranks are alike")):
            self.refuses(part, model, text, 2)
        self.refuses("the model is for 2 processes; --mesh data=5", model, RING, 5)
        times = self.file("times", "0 1\nx 2\n")
        self.refuses("line 2 of", model, RING, 2, "--step-times", times)


def main():
    with tempfile.TemporaryDirectory() as folder:
        test = Test(pathlib.Path(folder))
        test.bytes_are_exact()
        test.times_follow()
        test.late_ranks()
        test.overlaps()
        test.many()
        test.refusals()
    return 0


if __name__ == "__main__":
    sys.exit(main())
