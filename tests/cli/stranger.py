# SPDX-License-Identifier: Apache-2.0
"""A folder as a user has one: a model.onnx with an open batch, an input, and the command
in the path."""
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from onnx_bytes import data, declared, node, number, stored  # noqa: E402

BUILD = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parents[2]


def matrix(name, rows, columns, values):
    return (number(1, rows) + number(1, columns) + number(2, 1) + data(8, name)
            + data(9, struct.pack(f"<{len(values)}f", *values)))


def model_bytes():
    """y [batch, 2] = relu(x [batch, 3] times w, plus b), as ONNX."""
    nodes = [node("MatMul", ["x", "w"], "p"), node("Add", ["p", "b"], "s"),
             node("Relu", ["s"], "y")]
    graph = b"".join(nodes) + data(2, "small")
    graph += data(5, matrix("w", 3, 2, [1, -1, 2, 0.5, 0.25, 3]))
    graph += data(5, stored("b", [0.5, -1]))
    graph += data(11, declared("x", ["batch", 3])) + data(12, declared("y", ["batch", 2]))
    return (number(1, 8) + data(2, "by-hand") + data(7, graph) + data(8, number(2, 18)))


def npy(rows):
    head = ("{'descr': '<f4', 'fortran_order': False, 'shape': "
            f"({len(rows)}, {len(rows[0])}), }}").ljust(117) + "\n"
    flat = [v for row in rows for v in row]
    return (b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()
            + struct.pack(f"<{len(flat)}f", *flat))


def has_compiler():
    cache = (BUILD / "CMakeCache.txt").read_text()
    return "PESTLE_RUNTIME_ONLY:BOOL=ON" not in cache and any(
        (BUILD / "backends").glob("libpestle-llvm*.so"))


class Folder(unittest.TestCase):
    def setUp(self):
        if not has_compiler():
            self.skipTest("the llvm backend is not built")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pestle-stranger-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "model.onnx").write_bytes(model_bytes())
        (self.folder / "x.npy").write_bytes(npy([[1, 2, 3], [4, 5, 6]]))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PESTLE_")
                    or k in ("PESTLE_BUILD_DIR", "PESTLE_SOURCE_DIR")}
        self.env.update(PATH=f"{BUILD}:{os.environ['PATH']}",
                        PESTLE_CACHE_DIR=str(self.folder / "cache"),
                        PESTLE_BACKEND_PATH=str(BUILD / "backends"),
                        COLUMNS="80")

    def shell(self, command, **options):
        """What bash makes of it: exit code, stdout, stderr."""
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.env,
                              capture_output=True, text=True, check=False, timeout=600,
                              **options)
        return done.returncode, done.stdout, done.stderr
