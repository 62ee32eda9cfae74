# SPDX-License-Identifier: Apache-2.0
"""A plan cache that is killed, damaged, full, foreign, read-only.

Every run of the command must exit 0 with the right result, whatever lies in the
folder; what is not used must be a miss that names its reason and heals. Prints
one JSON line with the counts of what was tried.
"""

import array
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"])
NOBODY = "65534"
SECONDS = 600

# Two kernels and a constant that is large enough for a file of its own.
SIDE = 64
CONSTANT = b"".join(
    array.array("f", [float((i * 7 + j * 3) % 5 - 2) for j in range(SIDE)])
    .tobytes() for i in range(SIDE))
MODEL = """module @torture {
  func.func @main(%%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
    %%w = stablehlo.constant dense<"0x%s"> : tensor<64x64xf32>
    %%d = stablehlo.dot_general %%x, %%w, contracting_dims = [1] x [0] : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
    %%k = stablehlo.constant dense<%d.0> : tensor<4x64xf32>
    %%y = stablehlo.add %%d, %%k : tensor<4x64xf32>
    return %%y : tensor<4x64xf32>
  }
}
"""
HIT = "hit on disk"


def plans_in(folder):
    """Less constants and what is remembered of plugins."""
    return [p for p in folder.iterdir() if p.name[:2] not in ("c-", "t-")]


class Torture:
    def __init__(self, folder, counts, chance):
        self.folder = pathlib.Path(folder)
        self.folder.chmod(0o755)
        self.cache = self.folder / "cache"
        self.counts = counts
        self.chance = chance
        self.done = {}
        self.device = ()
        # More models than one, so that writers also write different files.
        self.models = []
        for i in range(4):
            path = self.folder / f"m{i}.mlir"
            path.write_text(MODEL % (CONSTANT.hex().upper(), i + 1))
            self.models.append(path)

    def command(self, index=0, cache=None, options=(), out=None):
        out = out or self.folder / "out"
        return [str(BUILD / "pestle"), "run", str(self.models[index]),
                "--input", "x=4x64xf32=1", "--outputs", str(out), "--cache-dir",
                str(cache or self.cache), "--log", "debug", "--threads", "1",
                *self.device, *options]

    def expected(self, index):
        """x is 1, and all sums are small integers: there is one answer."""
        w = array.array("f", CONSTANT)
        row = [sum(w[i * SIDE + j] for i in range(SIDE)) + index + 1
               for j in range(SIDE)]
        return array.array("f", row * 4).tobytes()

    def check(self, done, index, out):
        if done.returncode != 0:
            raise AssertionError(f"exit {done.returncode}: {done.stderr}")
        data = (out / "output_0.npy").read_bytes()
        if data[-4 * SIDE * 4:] != self.expected(index):
            raise AssertionError(f"a wrong result: {done.stderr}")
        (out / "output_0.npy").unlink()

    def run(self, index=0, cache=None, options=(), before=(), env=None,
            out=None):
        """One run; returns why the cache hit or missed, and the whole log."""
        out = out or self.folder / "out"
        done = subprocess.run(
            [*before, *self.command(index, cache, options, out)],
            capture_output=True, text=True, timeout=SECONDS,
            env={**os.environ, **(env or {})}, check=False)
        self.check(done, index, out)
        self.count("runs")
        found = re.search(r"plan cache: (.*hit on disk|not in the cache|.*)",
                          done.stderr)
        return found.group(1) if found else "", done.stderr

    def count(self, what, n=1):
        self.done[what] = self.done.get(what, 0) + n

    def fresh(self):
        shutil.rmtree(self.cache, ignore_errors=True)
        self.run()

    def expect_hit(self, index=0, **how):
        _, log = self.run(index, **how)
        if HIT not in log:
            raise AssertionError(f"no hit: {log}")

    def expect_miss(self, pattern, index=0, **how):
        _, log = self.run(index, **how)
        if HIT in log or not re.search(pattern, log):
            raise AssertionError(f"expected a miss, '{pattern}': {log}")

    # --- Killed writers ---

    def killed(self):
        """8 writers and readers; one of them at a time is killed."""
        outs = [self.folder / f"out{i}" for i in range(8)]
        running = [None] * 8
        kills = completed = 0
        self.fresh()
        while kills < self.counts["kills"]:
            for i, process in enumerate(running):
                if process and process[0].poll() is None:
                    continue
                if process:
                    done = subprocess.CompletedProcess(
                        (), process[0].returncode, "", process[0].stderr.read())
                    process[0].stderr.close()
                    # -9 is our own doing, and no other end is allowed.
                    if done.returncode != -signal.SIGKILL:
                        self.check(done, process[1], outs[i])
                        completed += 1
                index = self.chance.randrange(len(self.models))
                log = ["--log", "warn"]
                running[i] = (subprocess.Popen(
                    self.command(index, options=log, out=outs[i]),
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    text=True), index)
            # So that there is always something to write.
            if self.chance.random() < 0.3 and self.cache.is_dir():
                for path in list(self.cache.iterdir()):
                    if self.chance.random() < 0.5 and ".tmp-" not in path.name:
                        path.unlink(missing_ok=True)
            time.sleep(self.chance.random() * 0.03)
            victim = self.chance.choice(running)[0]
            if victim.poll() is None:
                victim.kill()
                kills += 1
            victim.wait()
        for i, (process, index) in enumerate(running):
            _, text = process.communicate(timeout=SECONDS)
            if process.returncode != -signal.SIGKILL:
                done = subprocess.CompletedProcess(
                    (), process.returncode, "", text)
                self.check(done, index, outs[i])
                completed += 1
        self.count("kills", kills)
        self.count("runs_beside_kills", completed)
        verified = subprocess.run(
            [str(BUILD / "pestle"), "cache", "verify", "--cache-dir",
             str(self.cache)], capture_output=True, text=True, check=False)
        # A constant or plan that we removed is missing; nothing is damaged.
        bad = [line for line in verified.stdout.splitlines()
               if "DAMAGED" in line and "is missing" not in line]
        if bad:
            raise AssertionError(f"a killed writer left {bad}")
        for i in range(len(self.models)):
            self.run(i)
            self.expect_hit(i)

    # --- Damage ---

    def damage(self):
        self.damage_of(self.flip)
        # Tens of thousands of runs: the interpreter's plans lie in the same
        # files, and a miss costs no start of libLLVM.
        self.device = ("--device", "ref")
        self.damage_of(self.truncate_all)
        self.device = ()

    def truncate_all(self, files, plan, constants):
        for name in (plan, constants[0]):
            self.truncate(files, name)
        self.restore(files)
        self.expect_hit()

    def damage_of(self, how):
        self.fresh()
        files = {path.name: path.read_bytes() for path in self.cache.iterdir()}
        plan = next(name for name in files if name[:2] not in ("c-", "t-"))
        constants = [name for name in files if name.startswith("c-")]
        if not constants:
            raise AssertionError(f"no file of a constant in {list(files)}")
        how(files, plan, constants)

    def restore(self, files):
        for name, data in files.items():
            path = self.cache / name
            if not path.exists() or path.read_bytes() != data:
                path.write_bytes(data)
                path.chmod(0o600)

    def damaged_run(self, files, name, data):
        self.restore(files)
        path = self.cache / name
        path.write_bytes(data)
        _, log = self.run()
        if HIT in log or "it is made anew" not in log:
            raise AssertionError(f"{name} is damaged, and the log says: {log}")
        healed = path.read_bytes()
        if len(healed) != len(files[name]):
            raise AssertionError(f"{name} did not heal: {log}")

    def flip(self, files, plan, constants):
        for i in range(self.counts["flips"]):
            # Headers are small: hit them often.
            name = plan if i % 2 else self.chance.choice(constants)
            data = bytearray(files[name])
            at = self.chance.randrange(
                len(data) if i % 4 > 1 else min(256, len(data)))
            data[at] ^= 1 << self.chance.randrange(8)
            self.damaged_run(files, name, bytes(data))
            self.count("flips")
        self.restore(files)
        self.expect_hit()

    def truncate(self, files, name):
        size = len(files[name])
        wanted = self.counts["truncations"]
        lengths = range(size) if not wanted else sorted(
            {0, 1, 23, 24, 63, 64, 65, size - 1}
            | {self.chance.randrange(size) for _ in range(wanted)})
        for length in lengths:
            if length % self.counts["parts"] != self.counts["part"]:
                continue
            self.damaged_run(files, name, files[name][:length])
            self.count("truncations")

    # --- Folders and disks that do not do ---

    def full_disk(self):
        if os.geteuid() != 0:
            return "full disks need root (tmpfs is mounted)"
        if not shutil.which("mount"):
            return "full disks need the command mount"
        mount = self.folder / "small"
        mount.mkdir()
        for kib in self.counts["full"]:
            # A page is the least that tmpfs takes; size=0 is no limit.
            size = f"size={max(kib, 4)}k,mode=700"
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", size, "pestle", str(mount)],
                capture_output=True, text=True, check=False)
            if done.returncode:
                return f"full disks: {done.stderr.strip()}"
            try:
                if not kib:
                    (mount / "fill").write_bytes(bytes(4096))
                for index in range(len(self.models)):
                    self.run(index, cache=mount)
                self.run(cache=mount)
                self.count("full_disks")
            finally:
                subprocess.run(["umount", str(mount)], check=True)
        return ""

    def folders(self):
        """As a user who may not do everything."""
        before, owner = [], os.geteuid()
        if owner == 0:
            if not shutil.which("setpriv"):
                return "folders: setpriv is missing, and root may do anything"
            before = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                      "--clear-groups"]
            owner = int(NOBODY)
        out = self.folder / "nobody"
        out.mkdir(mode=0o777)
        out.chmod(0o777)
        how = {"before": before, "out": out}
        if subprocess.run([*before, str(BUILD / "pestle"), "--version"],
                          capture_output=True, check=False).returncode:
            return "folders: another user cannot run the build"
        cache = out / "read-only"
        self.run(cache=cache, **how)
        self.expect_hit(cache=cache, **how)
        cache.chmod(0o500)
        self.expect_hit(cache=cache, **how)
        self.expect_miss("not kept on disk", 1, cache=cache, **how)
        self.expect_hit(cache=cache, **how)
        cache.chmod(0o700)
        entry = plans_in(cache)[0]
        entry.chmod(0o666)
        self.expect_miss("may be written by group", cache=cache, **how)
        self.expect_hit(cache=cache, **how)
        self.count("folders", 5)
        if os.geteuid() != 0:
            return "foreign owners need root"
        self.run()
        self.cache.chmod(0o755)
        self.expect_miss("belongs to another user", cache=self.cache, **how)
        entry = plans_in(cache)[0]
        os.chown(entry, 0, 0)
        self.expect_miss("belongs to another user", cache=cache, **how)
        self.expect_hit(cache=cache, **how)
        self.count("folders", 3)
        self.cache.chmod(0o700)
        return ""

    # --- Entries of others ---

    def others(self):
        """What another build, CPU or libLLVM wrote, under the name that this
        one looks for: the key in it is compared, not only its hash."""
        self.fresh()
        mine = plans_in(self.cache)[0]
        self.run(1)
        foreign = next(p for p in plans_in(self.cache) if p != mine)
        mine.write_bytes(foreign.read_bytes())
        self.expect_miss("made for another key")
        self.expect_hit()
        self.count("others")
        # These are in the key: what they change finds no entry.
        self.expect_miss("not in the cache",
                         options=("--target-cpu", "haswell"))
        self.expect_hit()
        self.count("others")
        backends = BUILD / "backends"
        if not any(backends.glob("libpestle-llvm-*.so")):
            return "another build, another libLLVM: there is no llvm plugin"
        return self.other_build(backends) or self.other_llvm(mine.read_bytes())

    def other_build(self, backends):
        """The plugin with another build id in it."""
        folder = self.folder / "backends"
        folder.mkdir()
        for path in backends.glob("libpestle-llvm-*.so"):
            data = path.read_bytes()
            found = re.search(rb"plugin=([0-9a-f]{16,})", self.entry_key())
            if not found or found.group(1) not in data:
                return "another build: its id is not in the plugin's file"
            other = found.group(1)[::-1]
            (folder / path.name).write_bytes(data.replace(found.group(1),
                                                          other))
        env = {"PESTLE_BACKEND_PATH": str(folder)}
        self.expect_miss("not in the cache", env=env)
        self.expect_hit(env=env)
        self.expect_hit()
        self.count("others")
        return ""

    def entry_key(self):
        return b"".join(p.read_bytes() for p in plans_in(self.cache))

    def other_llvm(self, key):
        """libLLVM with another build id in it, found before the system's."""
        name = re.search(rb"llvm-\d+ ([0-9a-f]{16,}) ", key)
        maps = subprocess.run(
            ["strace", "-f", "-e", "trace=openat", *self.command(),
             "--no-cache"], capture_output=True, text=True, check=False,
        ) if name and shutil.which("strace") else None
        found = re.search(r'"([^"]*/libLLVM[^"]*)", [^)]*\) = \d',
                          maps.stderr) if maps else None
        if not found:
            return "another libLLVM: strace does not show which is used"
        ident = bytes.fromhex(name.group(1).decode())
        data = pathlib.Path(found.group(1)).read_bytes()
        if ident not in data[:1 << 20]:
            return "another libLLVM: its build id is not where it begins"
        folder = self.folder / "llvm"
        folder.mkdir()
        (folder / pathlib.Path(found.group(1)).name).write_bytes(
            data.replace(ident, ident[::-1], 1))
        env = {"LD_LIBRARY_PATH": str(folder)}
        self.expect_miss("not in the cache", env=env)
        self.expect_hit(env=env)
        self.expect_hit()
        self.count("others")
        return ""


def part_of(counts):
    """The share of the counts that PESTLE_TEST_PART=I/N gives this process."""
    part, _, parts = os.environ.get("PESTLE_TEST_PART", "1/1").partition("/")
    part, parts = int(part), int(parts)
    return {**counts, "part": part - 1, "parts": parts,
            "kills": -(-counts["kills"] // parts),
            "flips": -(-counts["flips"] // parts)}


PARTS = {"others": "others", "flips": "damage", "kills": "killed",
         "full_disks": "full_disk", "folders": "folders"}


def main(counts, only=None):
    """|only|: the one part that counts this."""
    counts = part_of(counts)
    seed = int(os.environ.get("PESTLE_SEED",
                              (time.time_ns() + counts["part"]) % 10**6))
    print(f"PESTLE_SEED={seed}")
    skipped = []
    with tempfile.TemporaryDirectory(prefix="pestle-torture-") as folder:
        torture = Torture(folder, counts, random.Random(seed))
        for name in [PARTS[only]] if only else PARTS.values():
            word = getattr(torture, name)()
            if word:
                skipped.append(word)
                print(f"left out: {word}")
    print(json.dumps({**torture.done, "left_out": skipped}))
    return 0
