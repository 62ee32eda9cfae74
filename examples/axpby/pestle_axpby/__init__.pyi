# SPDX-License-Identifier: Apache-2.0
from pestle import Array, Stream, device

def axpby(x: Array, y: Array, alpha: float, beta: float, *,
          stream: device | Stream | None = None) -> Array: ...
