#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same at random steps: 800 of them."""
import sys

import failures

if __name__ == "__main__":
    sys.exit(failures.run(800, 1000))
