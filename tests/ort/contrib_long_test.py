#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Twenty random nodes of each of com.microsoft's ops on llvm and on ref, and what ONNX
Runtime's optimiser and quantiser make of the open models (PESTLE_MODELS names a folder that
tests/models/fetch_models.py filled; else they are fetched into the build folder). Exits 77,
"skipped", when a Python package is missing."""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "models"))


def main():
    try:
        import onnxruntime  # noqa: F401
    except ImportError as e:
        print(f"skipped: {e}; tools/requirements.txt lists what is needed")
        return 77
    import contrib
    import contrib_cases
    import models_test
    import optimised

    bad = 0
    for device in ("llvm", "ref"):
        kinds = contrib.run(20 * len(contrib_cases.NAMES), 1000, device)
        bad += kinds["wrong"] + kinds["refused"] + (kinds["right"] < 600)
    models = list(optimised.small_models()) + list(optimised.open_models(models_test.models_folder()))
    right, wrong = optimised.run(models)
    print(f"{right} models of ONNX Runtime's tools are right, {len(wrong)} are not: {' '.join(wrong)}")
    return 1 if bad or wrong or right < 60 else 0


if __name__ == "__main__":
    sys.exit(main())
