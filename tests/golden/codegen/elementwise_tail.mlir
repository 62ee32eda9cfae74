// A chain of elementwise ops is one kernel; 111 elements leave a masked tail.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<3x37xf32>, %y: tensor<3x37xf32>) -> tensor<3x37xf32> {
  %0 = stablehlo.multiply %x, %y : tensor<3x37xf32>
  %1 = stablehlo.add %0, %x : tensor<3x37xf32>
  %2 = stablehlo.abs %1 : tensor<3x37xf32>
  return %2 : tensor<3x37xf32>
}
