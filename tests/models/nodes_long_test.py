#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nodes_test.py with all cases on all devices."""

import nodes_test

nodes_test.main(every=1)
