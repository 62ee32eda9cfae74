#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that die, hang, fail, come late or run another plan: two of each."""
import sys

import failures

if __name__ == "__main__":
    sys.exit(failures.run(12))
