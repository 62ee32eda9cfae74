#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One tree for machines without compilers, as a tarball and a Debian package.

    dist.py BUILD OUT    (make dist)

The tree is that of the wheels (wheels.py): `cmake --install` of BUILD, and an LLVM for
x86-64 alone beside the llvm plugin, so that no libLLVM of the system is needed. OUT gets

| file | what it is |
|---|---|
| pestle-VERSION-linux-x86_64.tar.gz | the tree, to be unpacked anywhere |
| pestle_VERSION_amd64.deb | the same below /usr |
| pestle-VERSION.spdx.json | what is in it: files, and the libraries linked in, as SPDX 2.3 |
| SHA256SUMS | of these three |

Each ELF file is checked first: it needs Debian 12's C library or a later one, and nothing
else that is not in the tree but what ELSEWHERE allows. Two runs on one commit give
the same bytes (reproduce.sh): times are SOURCE_DATE_EPOCH's or the commit's, names are
sorted, owners and modes are set."""
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile

import wheels

NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
SYSTEM = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2",
          "ld-linux-x86-64.so.2", "libpestle.so.0"}
# Where a Vulkan driver is there is a C++ library; without one the plugin is not used.
ELSEWHERE = {"libpestle-vulkan.so": {"libstdc++.so.6", "libgcc_s.so.1"}}
# What is linked in: Debian's package, its licence, and which file it is in.
PARTS = {
    "llvm-19-dev": ("LLVM", "Apache-2.0 WITH LLVM-exception", "libpestle-llvm-core.so.19"),
    "zlib1g-dev": ("zlib", "Zlib", "libpestle-llvm-core.so.19"),
    "libzstd-dev": ("Zstandard", "BSD-3-Clause", "libpestle-llvm-core.so.19"),
    "libstdc++-12-dev": ("libstdc++", "GPL-3.0-or-later WITH GCC-exception-3.1",
                         "libpestle-llvm-core.so.19"),
    "libxxhash-dev": ("xxHash", "BSD-2-Clause", "libpestle.so.0"),
    "libshaderc-dev": ("shaderc", "Apache-2.0", "libpestle-vulkan.so"),
    "glslang-dev": ("glslang", "BSD-3-Clause AND MIT AND Apache-2.0",
                    "libpestle-vulkan.so"),
    "spirv-tools": ("SPIRV-Tools", "Apache-2.0", "libpestle-vulkan.so"),
}
CONTROL = """Package: pestle
Version: {version}
Architecture: amd64
Maintainer: The authors of Pestle <pestle@invalid>
Installed-Size: {size}
Depends: libc6 (>= {glibc})
Suggests: libstdc++6, liblapack3, python3 (>= 3.11)
Section: devel
Priority: optional
Description: compiler and runtime for tensor graphs
 Pestle takes an ONNX model, StableHLO or a graph built through its C API, and compiles
 it for the CPU or GPU at hand. This package has the command pestle, the C library and its
 headers, backends for CPUs, NVIDIA GPUs, Vulkan and OpenCL, and the Python package. An
 LLVM for x86-64 is inside, so that no compiler is needed.
"""


def fail(text):
    sys.exit(f"dist.py: {text}")


# --- The tree ---


def stage(build, tree):
    subprocess.run(["cmake", "--install", build, "--prefix", tree, "--strip"], check=True,
                   stdout=subprocess.DEVNULL)
    backends = tree / "lib/pestle/backends"
    for path in backends.glob("libpestle-llvm-v*.so"):
        if path.name != "libpestle-llvm-v19.so":
            path.unlink()  # it would want a libLLVM of the system
    if not (backends / "libpestle-llvm-v19.so").exists():
        fail(f"{build} has no plugin for LLVM 19: install llvm-19-dev and build again")
    wheels.add_llvm_core(build, backends)
    licences = tree / "share/doc/pestle/licenses"
    for package, (_, _, file) in PARTS.items():
        text = pathlib.Path("/usr/share/doc") / package / "copyright"
        if text.exists() and any(tree.rglob(file)):
            wheels.copy(text.resolve(), licences / f"{package}.txt")


def version_of(text):
    return tuple(int(n) for n in text.split("."))


def check_elf(path):
    """Fails unless |path| loads on Debian 12; the newest glibc that it names."""
    said = subprocess.run(["readelf", "-dVW", path], check=True, text=True,
                          capture_output=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said))
    strange = needed - SYSTEM - ELSEWHERE.get(path.name, set())
    if strange:
        fail(f"{path.name} needs {', '.join(sorted(strange))}, which a bare Debian 12 may "
             "lack: link it statically, or open it when it is used")
    runpath = re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", said)
    if any(not folder.startswith("$ORIGIN") for r in runpath for folder in r.split(":")):
        fail(f"{path.name} searches {runpath[0]}, a folder of the machine that built it")
    newest = (0,)
    for name, number in re.findall(r"Name: ([A-Z]+)_([0-9.]+) ", said):
        number = version_of(number)
        if number > NEWEST.get(name, number):
            fail(f"{path.name} needs {name}_{'.'.join(map(str, number))}; Debian 12 has "
                 f"{'.'.join(map(str, NEWEST[name]))}")
        newest = max(newest, number if name == "GLIBC" else (0,))
    return newest


def check_tree(tree):
    newest = (0,)
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
            newest = max(newest, check_elf(path))
    return ".".join(map(str, newest))


def settle(tree, epoch):
    """Modes and times that do not tell who built it when."""
    for path in [*tree.rglob("*"), tree]:
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


# --- The bill of materials ---


def hashes_of(tree):
    for path in sorted(tree.rglob("*")):
        if path.is_file() and not path.is_symlink():
            data = path.read_bytes()
            yield (path.relative_to(tree), hashlib.sha1(data).hexdigest(),
                   hashlib.sha256(data).hexdigest())


def debian_version(package):
    done = subprocess.run(["dpkg-query", "-W", "-f", "${source:Package} ${source:Version}",
                           package], check=False, text=True, capture_output=True)
    return done.stdout.split() if done.returncode == 0 else None


def part(package, tree):
    """A library that is linked in, and the files' relation to it."""
    name, licence, file = PARTS[package]
    holder = next((p for p in sorted(tree.rglob(file)) if p.is_file()), None)
    found = debian_version(package)
    if not holder:
        return None, None
    row = {"SPDXID": f"SPDXRef-{package.replace('+', 'p')}", "name": name,
           "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
           "licenseConcluded": licence, "licenseDeclared": licence,
           "copyrightText": "NOASSERTION"}
    if found:
        row["versionInfo"] = found[1]
        row["supplier"] = "Organization: Debian"
        row["externalRefs"] = [{
            "referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
            "referenceLocator": f"pkg:deb/debian/{found[0]}@{found[1].replace('+', '%2B')}"
                                "?arch=source&distro=bookworm"}]
    return row, holder.resolve().relative_to(tree.resolve())


def bill(tree, epoch):
    version = wheels.version()
    files, ids = [], {}
    for i, (name, sha1, sha256) in enumerate(hashes_of(tree)):
        ids[name] = f"SPDXRef-File-{i}"
        files.append({"SPDXID": ids[name], "fileName": f"./{name}",
                      "checksums": [{"algorithm": "SHA1", "checksumValue": sha1},
                                    {"algorithm": "SHA256", "checksumValue": sha256}],
                      "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"})
    sums = sorted(f["checksums"][0]["checksumValue"] for f in files)
    code = hashlib.sha1("".join(sums).encode()).hexdigest()
    package = {"SPDXID": "SPDXRef-pestle", "name": "pestle", "versionInfo": version,
               "downloadLocation": "NOASSERTION", "filesAnalyzed": True,
               "packageVerificationCode": {"packageVerificationCodeValue": code},
               "licenseConcluded": "NOASSERTION", "licenseDeclared": "Apache-2.0",
               "licenseInfoFromFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"}
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-pestle")]
    relations += [("SPDXRef-pestle", "CONTAINS", i) for i in ids.values()]
    packages = [package]
    for name in PARTS:
        row, holder = part(name, tree)
        if row:
            packages.append(row)
            relations.append((ids[holder], "STATIC_LINK", row["SPDXID"]))
    made = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"pestle-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/pestle-{version}-{code}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": [f"Tool: pestle-dist-{version}"]},
        "packages": packages, "files": files,
        "relationships": [{"spdxElementId": a, "relationshipType": kind,
                           "relatedSpdxElement": b} for a, kind, b in relations]}


# --- Archives ---


def pack_tar(tree, out, epoch):
    def plain(info):
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = epoch
        return info

    with open(out, "wb") as raw, \
            gzip.GzipFile("", "wb", 9, raw, mtime=epoch) as packed, \
            tarfile.open(mode="w", fileobj=packed, format=tarfile.GNU_FORMAT) as tar:
        for path in [tree, *sorted(tree.rglob("*"))]:
            tar.add(path, str(path.relative_to(tree.parent)), recursive=False, filter=plain)


def pack_deb(tree, root, out, epoch, glibc):
    """|tree| below /usr, where Debian has things."""
    if not shutil.which("dpkg-deb"):
        print("no .deb: there is no dpkg-deb here")
        return
    usr = root / "usr"
    shutil.copytree(tree, usr, symlinks=True)
    (usr / "share/zsh/site-functions").rename(usr / "share/zsh/vendor-completions")
    documents = usr / "share/doc/pestle"
    parts = "".join(f"\n{name} is linked into {file}; its licence is {licence}, and its text "
                    f"is in licenses/{package}.txt.\n"
                    for package, (name, licence, file) in PARTS.items()
                    if (documents / "licenses" / f"{package}.txt").exists())
    (documents / "copyright").write_text(
        (documents / "LICENSE").read_text(encoding="utf-8") + parts, encoding="utf-8")
    if (usr / "lib/pestle/python/pestle").exists():
        site = usr / "lib/python3/dist-packages"
        site.mkdir(parents=True)
        (site / "pestle").symlink_to("../../pestle/python/pestle")
    paths = [p for p in sorted(usr.rglob("*")) if p.is_file() and not p.is_symlink()]
    control = root / "DEBIAN"
    control.mkdir()
    size = sum((p.stat().st_size + 1023) // 1024 for p in paths)
    (control / "control").write_text(CONTROL.format(version=wheels.version(), size=size,
                                                    glibc=glibc))
    (control / "md5sums").write_text("".join(
        f"{hashlib.md5(p.read_bytes()).hexdigest()}  {p.relative_to(root)}\n" for p in paths))
    (control / "triggers").write_text("activate-noawait ldconfig\n")
    settle(root, epoch)
    # One thread: several cut what they compress, as many as there are.
    subprocess.run(["dpkg-deb", "--root-owner-group", "-Zxz", "--threads-max=1", "--build",
                    root, out], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)})


def main():
    if len(sys.argv) != 3:
        fail("usage: dist.py BUILD OUT")
    build, out = (pathlib.Path(a).resolve() for a in sys.argv[1:])
    epoch = int(wheels.epoch())
    name = f"pestle-{wheels.version()}"
    shutil.rmtree(out, ignore_errors=True)
    work = out / "work"
    tree = work / f"{name}-linux-x86_64"
    tree.mkdir(parents=True)
    stage(build, tree)
    glibc = check_tree(tree)
    text = json.dumps(bill(tree, epoch), indent=1) + "\n"
    (out / f"{name}.spdx.json").write_text(text, encoding="utf-8")
    (tree / "share/doc/pestle/spdx.json").write_text(text, encoding="utf-8")
    settle(tree, epoch)
    pack_tar(tree, out / f"{tree.name}.tar.gz", epoch)
    pack_deb(tree, work / "deb", out / f"pestle_{wheels.version()}_amd64.deb", epoch, glibc)
    shutil.rmtree(work)
    made = sorted(p for p in out.iterdir())
    sums = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.name}\n" for p in made]
    (out / "SHA256SUMS").write_text("".join(sums))
    for path in made:
        print(f"{path.stat().st_size / 1e6:6.2f} MB {path.name}")
    print(f"needs glibc {glibc}, or a later one")


if __name__ == "__main__":
    main()
