#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand damaged models."""

import sys

import damage

sys.exit(damage.main(1000))
