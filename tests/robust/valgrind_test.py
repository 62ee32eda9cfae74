#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model through valgrind's memcheck; all of them in `tools/reliability.py`."""

import sys

from build import sanitized

if sanitized():
    print("valgrind and a sanitizer exclude each other")
    sys.exit(77)

import valgrind  # noqa: E402

sys.exit(valgrind.main(["while"]))
