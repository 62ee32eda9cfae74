// Lanes that lie near each other: backwards, three apart, and each element twice. What
// lies between the first and the last of them is loaded, and shuffled.
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<7x60xf32>, %b: tensor<3x10xi8>) -> (tensor<7x60xf32>, tensor<7x20xf32>, tensor<3x20xi8>) {
  %0 = stablehlo.reverse %x, dims = [1] : tensor<7x60xf32>
  %1 = stablehlo.slice %x [0:7, 1:60:3] : (tensor<7x60xf32>) -> tensor<7x20xf32>
  %3 = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<3x10xi8>) -> tensor<3x10x2xi8>
  %4 = stablehlo.reshape %3 : (tensor<3x10x2xi8>) -> tensor<3x20xi8>
  %5 = stablehlo.add %4, %4 : tensor<3x20xi8>
  return %0, %1, %5 : tensor<7x60xf32>, tensor<7x20xf32>, tensor<3x20xi8>
}
