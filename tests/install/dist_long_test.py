#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `make dist` packs, in a root of Debian without compilers (tests/bare_root.py): from
the tarball to the first right result of a model of one's own by the commands of README's
first screen, in 60 s; the .deb; and the bill of materials against what is packed. Skips
where no such root can be made."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "cli")]
import bare_root  # noqa: E402
from first_screen import RIGHT, ROWS, commands  # noqa: E402
from stranger import BUILD, SOURCE, model_bytes, npy  # noqa: E402

SECONDS = 60


def check_screen(root, tarball):
    home = root / "srv/mine"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    shutil.copy(tarball, home)
    (home / "model.onnx").write_bytes(model_bytes())
    (home / "x.npy").write_bytes(npy(ROWS))
    begin = time.monotonic()
    done = bare_root.inside(root, "bash", "-ec", f"cd /srv/mine\n{commands()}")
    seconds = time.monotonic() - begin
    print(done.stdout + done.stderr)
    assert done.returncode == 0, f"README's commands end with {done.returncode}"
    assert re.search(r"^ok +cpu:0 \(llvm\)", done.stdout, re.M), "no code for this CPU"
    for backend, needs in (("vulkan", "libvulkan1"), ("opencl", "ocl-icd-libopencl1"),
                           ("cuda", "NVIDIA's driver"), ("lapack", "liblapack3")):
        assert re.search(rf"^note +{backend}: .*{needs}", done.stdout, re.M), backend
    assert RIGHT in done.stdout, f"no {RIGHT}"
    assert seconds < SECONDS, f"{seconds:.1f} s"
    print(f"from the tarball to the first right result: {seconds:.1f} s")
    shutil.rmtree(home)


def check_deb(root, deb):
    shutil.copy(deb, root / "srv/pestle.deb")
    for words in (["dpkg", "-i", "/srv/pestle.deb"], ["dpkg", "-V", "pestle"]):
        done = bare_root.inside(root, *words)
        assert (done.returncode, "pestle" in done.stderr) == (0, False), done
    done = bare_root.inside(root, "pestle", "doctor")
    assert done.returncode == 0 and "ok     cpu:0 (llvm)" in done.stdout, done
    for name in ("man/man1/pestle.1", "doc/pestle/copyright", "doc/pestle/docs/hands.md",
                 "bash-completion/completions/pestle", "zsh/vendor-completions/_pestle"):
        assert (root / "usr/share" / name).is_file(), name
    if (root / "usr/bin/python3").exists():
        done = bare_root.inside(root, "python3", "-c", "import pestle as p; "
                                "print((p.asarray([1., 2.]) + 1).tolist(), p.device())")
        assert done.stdout.startswith("[2.0, 3.0] "), done
    done = bare_root.inside(root, "dpkg", "-P", "pestle")
    assert done.returncode == 0 and not (root / "usr/lib/pestle").exists(), done


def check_bill(tarball, bill):
    """Every file of the tarball is in the bill with its hash, and what is linked in."""
    rows = {f["fileName"]: f["checksums"][1]["checksumValue"] for f in bill["files"]}
    with tarfile.open(tarball) as tar:
        members = tar.getmembers()
        assert len({m.mtime for m in members}) == 1 and not any(m.uid for m in members)
        names = [m.name for m in members]
        assert names == sorted(names, key=lambda n: pathlib.Path(n).parts), "an order"
        found = {"./" + m.name.split("/", 1)[1]:
                 hashlib.sha256(tar.extractfile(m).read()).hexdigest()
                 for m in members if m.isfile()}
    del found["./share/doc/pestle/spdx.json"]
    assert found == rows, set(found.items()) ^ set(rows.items())
    packages = {p["name"]: p.get("versionInfo", "") for p in bill["packages"]}
    for name in ("LLVM", "zlib", "Zstandard", "libstdc++", "xxHash"):
        assert re.match(r"(1:)?\d", packages[name]), packages
    assert packages["LLVM"].startswith("1:19."), packages


def main():
    bare_root.check_can()
    with tempfile.TemporaryDirectory(prefix="pestle-dist-") as scratch:
        folder = pathlib.Path(scratch)
        subprocess.run([sys.executable, SOURCE / "tools/dist.py", BUILD, folder / "dist"],
                       check=True)
        tarball, = (folder / "dist").glob("*.tar.gz")
        deb, = (folder / "dist").glob("*.deb")
        bill, = (folder / "dist").glob("*.spdx.json")
        check_bill(tarball, json.loads(bill.read_text(encoding="utf-8")))
        for root in bare_root.roots(folder):
            bare_root.check_bare(root)
            with bare_root.with_proc(root):
                check_screen(root, tarball)
                check_deb(root, deb)
            print(f"{root.name}: right")


main()
