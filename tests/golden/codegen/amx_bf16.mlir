// Products of bf16 by matrix registers: whole tiles are loaded from and stored where
// they lie, the last rows are copied, columns are packed word by word.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref --target-cpu matrix
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref --target-cpu matrix
func.func @main(%a: tensor<40x32xbf16>, %b: tensor<32x32xbf16>) -> tensor<40x32xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<40x32xbf16>, tensor<32x32xbf16>) -> tensor<40x32xf32>
  return %0 : tensor<40x32xf32>
}
