// Planes that are padded while features go innermost: blocks that turn, read as
// far as the padding lets them.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %golden %s.kernels -- %pestle dump %s --stage kernels --target ref
func.func @main(%x: tensor<1x32x28x28xui8>) -> tensor<1x30x30x32xui8> {
  %0 = stablehlo.constant dense<100> : tensor<ui8>
  %1 = stablehlo.pad %x, %0, low = [0, 0, 1, 1], high = [0, 0, 1, 1], interior = [0, 0, 0, 0] : (tensor<1x32x28x28xui8>, tensor<ui8>) -> tensor<1x32x30x30xui8>
  %2 = stablehlo.transpose %1, dims = [0, 2, 3, 1] : (tensor<1x32x30x30xui8>) -> tensor<1x30x30x32xui8>
  return %2 : tensor<1x30x30x32xui8>
}
