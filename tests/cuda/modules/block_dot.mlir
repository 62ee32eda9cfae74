// Weights of 4 bits as they lie, x as bytes: of 3 rows made by each group, of 5 by a kernel in
// front; and of 2 bits with zero points, in f32.
// explain: ^kernel \d+: block_dot_\d+$(?s:.*)^kernel \d+: block_bytes_\d+$(?s:.*)^kernel \d+: block_dots_\d+$(?s:.*)^kernel \d+: block_dot_\d+$
// also: ref,cpu=simt90
// capability: 90
func.func @main(%x: tensor<3x576xf32>, %w: tensor<70x288xui8>, %s: tensor<70x18xf32>, %v: tensor<35x112xui8>, %t: tensor<35x7xf32>, %z: tensor<35x7xf32>, %u: tensor<2x5x430xf32>, %x5: tensor<5x576xf32>) -> (tensor<3x70xf32>, tensor<5x70xf32>, tensor<2x5x35xf32>) {
  %y = "pestle.block_dot"(%x, %w, %s) {bits = 4 : i64, block = 32 : i64, accuracy = 4 : i64} : (tensor<3x576xf32>, tensor<70x288xui8>, tensor<70x18xf32>) -> tensor<3x70xf32>
  %y5 = "pestle.block_dot"(%x5, %w, %s) {bits = 4 : i64, block = 32 : i64, accuracy = 4 : i64} : (tensor<5x576xf32>, tensor<70x288xui8>, tensor<70x18xf32>) -> tensor<5x70xf32>
  %r = "pestle.block_dot"(%u, %v, %t, %z) {bits = 2 : i64, block = 64 : i64} : (tensor<2x5x430xf32>, tensor<35x112xui8>, tensor<35x7xf32>, tensor<35x7xf32>) -> tensor<2x5x35xf32>
  return %y, %y5, %r : tensor<3x70xf32>, tensor<5x70xf32>, tensor<2x5x35xf32>
}
