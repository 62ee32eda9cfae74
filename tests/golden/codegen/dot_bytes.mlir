// Bytes with a sign on both sides: words of four taps, one side moved by 128; the
// weights are packed as words, the last of which is filled up with zeros.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%a: tensor<3x6xi8>) -> tensor<3x2xi32> {
  %b = stablehlo.constant dense<[[1, 2], [-3, 4], [5, -6], [7, 8], [-128, 127], [9, 10]]> : tensor<6x2xi8>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<3x6xi8>, tensor<6x2xi8>) -> tensor<3x2xi32>
  return %0 : tensor<3x2xi32>
}
