# SPDX-License-Identifier: Apache-2.0
# lit's configuration. ctest calls it; by hand:
#   lit -v -DPESTLE_BUILD_DIR=build/release tests/golden
# In a RUN line: %pestle is the command, %pestle-opt the program of tests/opt
# (passes over a module), FileCheck is FileCheck, and
# `%golden FILE -- COMMAND` compares a whole output with FILE.expected
# (tools/golden.py; BLESS=1 rewrites it).
import os
import shlex
import shutil
import sys

import lit.formats

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(here))
build = os.path.abspath(
    lit_config.params.get("PESTLE_BUILD_DIR")
    or os.environ.get("PESTLE_BUILD_DIR")
    or os.path.join(root, "build", "release"))
filecheck = (lit_config.params.get("FILECHECK")
             or shutil.which("FileCheck-19")
             or "/usr/lib/llvm-19/bin/FileCheck")

config.name = "pestle"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".pestle", ".mlir", ".kir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = here
config.test_exec_root = os.path.join(build, "tests", "golden")

golden = os.path.join(root, "tools", "golden.py")
# The longer name first: each is replaced in the whole line before the next.
config.substitutions += [
    ("%pestle-opt",
     shlex.quote(os.path.join(build, "tests", "bin", "pestle-opt"))),
    ("%pestle", shlex.quote(os.path.join(build, "pestle"))),
    ("%golden", f"{shlex.quote(sys.executable)} {shlex.quote(golden)}"),
    (r"\bFileCheck\b", f"{shlex.quote(filecheck)} --dump-input-filter=error"),
    ("%python", shlex.quote(sys.executable)),
]

# Every test is by itself: no cache of the user's, no settings of theirs.
config.environment.update({
    "PESTLE_BUILD_DIR": build,
    "PESTLE_CACHE_DIR": os.path.join(build, "test-cache", "golden"),
    "PESTLE_BACKEND_PATH": os.path.join(build, "backends"),
    "PESTLE_NO_CACHE": "1",
    "LC_ALL": "C",
})
for name in ("BLESS", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
