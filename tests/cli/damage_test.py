#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hundred damaged models; damage_long_test.py has a thousand."""

import damage

damage.main(100)
