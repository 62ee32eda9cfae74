# SPDX-License-Identifier: Apache-2.0
"""alpha x + beta y: axpby(x, y, alpha, beta)."""

import pestle

axpby = pestle.extension(__name__).axpby
