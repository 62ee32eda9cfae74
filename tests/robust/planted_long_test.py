#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""planted_test.py, where the jobs without a fault are whole, too."""

import sys

import planted_test

sys.argv.append("--long")
sys.exit(planted_test.main())
