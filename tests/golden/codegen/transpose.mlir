// A transpose that no kernel takes in: blocks, read by rows, written by rows.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<48x80xf32>) -> tensor<80x48xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<48x80xf32>) -> tensor<80x48xf32>
  return %0 : tensor<80x48xf32>
}
