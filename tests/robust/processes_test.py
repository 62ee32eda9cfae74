#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dozen processes make the same plan at once; 100 in processes_long."""

import sys

import processes

sys.exit(processes.main(12, "ref"))
