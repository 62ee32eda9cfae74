#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each call to the system that concerns cache, plan files or loader fails in turn, in each way
that it may."""

import sys

from build import sanitized

if sanitized():
    print("a sanitizer's runtime has to be loaded before a preloaded library")
    sys.exit(77)

import io_faults  # noqa: E402

sys.exit(io_faults.main())
