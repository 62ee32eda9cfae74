// Attention up to the last key that two new tokens see, of three heads a cache.
// explain: ^kernel \d+: cached_attention_\d+$
// also: ref,cpu=simt90
func.func @main(%q: tensor<1x2x6x32xf32>, %k: tensor<1x2x300x32xf32>, %v: tensor<1x2x300x48xf32>, %past: tensor<1xi64>) -> tensor<1x2x6x48xf32> {
  %c = stablehlo.iota dim = 3 : tensor<1x1x2x300xi64>
  %r = stablehlo.iota dim = 2 : tensor<1x1x2x300xi64>
  %p = stablehlo.broadcast_in_dim %past, dims = [0] : (tensor<1xi64>) -> tensor<1x1x2x300xi64>
  %l = stablehlo.add %r, %p : tensor<1x1x2x300xi64>
  %s = stablehlo.compare LE, %c, %l, SIGNED : (tensor<1x1x2x300xi64>, tensor<1x1x2x300xi64>) -> tensor<1x1x2x300xi1>
  %z = stablehlo.constant dense<0.0> : tensor<1x1x2x300xf32>
  %n = stablehlo.constant dense<0xFF800000> : tensor<1x1x2x300xf32>
  %b = stablehlo.select %s, %z, %n : tensor<1x1x2x300xi1>, tensor<1x1x2x300xf32>
  %w = stablehlo.broadcast_in_dim %b, dims = [0, 1, 2, 3] : (tensor<1x1x2x300xf32>) -> tensor<1x3x2x300xf32>
  %m = stablehlo.reshape %w : (tensor<1x3x2x300xf32>) -> tensor<1x1x6x300xf32>
  %y = "pestle.attention"(%q, %k, %v, %m) {scale = 0.3 : f64} : (tensor<1x2x6x32xf32>, tensor<1x2x300x32xf32>, tensor<1x2x300x48xf32>, tensor<1x1x6x300xf32>) -> tensor<1x2x6x48xf32>
  return %y : tensor<1x2x6x48xf32>
}
