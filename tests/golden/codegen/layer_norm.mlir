// Layer norm with a residual in front, in one kernel.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<8x48xf32>, %r: tensor<8x48xf32>, %g: tensor<48xf32>, %b: tensor<48xf32>) -> tensor<8x48xf32> {
  %0 = stablehlo.add %x, %r : tensor<8x48xf32>
  %1 = "pestle.layer_norm"(%0, %g, %b) <{dimensions = array<i64: 1>, epsilon = 1.0e-5 : f64}> : (tensor<8x48xf32>, tensor<48xf32>, tensor<48xf32>) -> tensor<8x48xf32>
  return %1 : tensor<8x48xf32>
}
