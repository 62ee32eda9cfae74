#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hundred processes make the same plan at once."""

import sys

import processes

sys.exit(processes.main(100, "ref"))
