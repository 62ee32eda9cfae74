# SPDX-License-Identifier: Apache-2.0
from pestle import Array, device

def axpby(x: Array, y: Array, alpha: float, beta: float, *,
          stream: device | None = None) -> Array: ...
