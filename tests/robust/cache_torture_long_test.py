#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plan cache that is killed 1,000 times, flipped 10,000, cut everywhere."""

import sys

import cache_torture

sys.exit(cache_torture.main({
    "kills": 1000, "flips": 10000, "truncations": 0,
    "full": [0, 4, 8, 16, 32, 64, 128, 256, 512, 1024]}))
