#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sixty damaged models; damage_long_test.py tries a thousand."""

import sys

import damage

sys.exit(damage.main(60))
