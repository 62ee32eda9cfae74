// A product with a bias row: packed, tiled, the bias added as the tile is stored.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%a: tensor<24x64xf32>, %b: tensor<64x96xf32>, %c: tensor<96xf32>) -> tensor<24x96xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<24x64xf32>, tensor<64x96xf32>) -> tensor<24x96xf32>
  %1 = stablehlo.broadcast_in_dim %c, dims = [1] : (tensor<96xf32>) -> tensor<24x96xf32>
  %2 = stablehlo.add %0, %1 : tensor<24x96xf32>
  return %2 : tensor<24x96xf32>
}
