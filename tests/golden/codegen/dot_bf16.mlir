// bf16 in words of two taps; the right side, an argument that lies along its taps,
// is read by words that are transposed in registers on their way to scratch.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%a: tensor<16x8xbf16>, %b: tensor<8x8xbf16>) -> tensor<16x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : (tensor<16x8xbf16>, tensor<8x8xbf16>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}
