# SPDX-License-Identifier: Apache-2.0
"""What the tests of the package share: its folder on the path, checks that print."""

import os
import pathlib
import sys

HOME = pathlib.Path(os.environ["PESTLE_BUILD_DIR"]) / "python"
if not (HOME / "pestle" / "_pestle.abi3.so").exists():
    print("skipped: the Python package is not built (python3-dev)")
    sys.exit(77)
sys.path.insert(0, str(HOME))
# A sanitizer's runtime keeps what is freed for a while: memory tells nothing there.
SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")


def raises(kind, function, *words):
    """function() raises kind, with words in its sentence."""
    try:
        function()
    except kind as error:
        text = str(error)
        for word in words:
            assert word in text, f"no {word!r} in {text!r}"
        assert type(error) is kind, f"{type(error).__name__}, not {kind.__name__}"
        return
    raise AssertionError(f"no {kind.__name__} with {words}")


def run(names):
    """Calls each test_*() of a module."""
    failed = 0
    for name, function in list(names.items()):
        if not name.startswith("test_"):
            continue
        try:
            function()
        except Exception:  # pylint: disable=broad-except
            import traceback
            traceback.print_exc()
            failed += 1
            print(f"FAILED {name}")
    sys.exit(1 if failed else 0)
