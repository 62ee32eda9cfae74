#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plan cache that is killed, damaged, full, foreign: a few of each."""

import sys

import cache_torture

sys.exit(cache_torture.main({
    "kills": 20, "flips": 40, "truncations": 12, "full": [0, 8, 64]}))
