#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A thousand damaged models: see damage.py."""

import damage

damage.main(1000)
