// Few vectors times a matrix: rows of it in order; whole rows where half of L3
// (8 MiB here) does not hold its columns; tiles where it does.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%a: tensor<4x512xf32>, %r: tensor<256x512xf32>, %c: tensor<512x8192xf32>, %s: tensor<512x256xf32>) -> (tensor<4x256xf32>, tensor<4x8192xf32>, tensor<4x256xf32>) {
  %0 = stablehlo.dot_general %a, %r, contracting_dims = [1] x [1] : (tensor<4x512xf32>, tensor<256x512xf32>) -> tensor<4x256xf32>
  %1 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x8192xf32>) -> tensor<4x8192xf32>
  %2 = stablehlo.dot_general %a, %s, contracting_dims = [1] x [0] : (tensor<4x512xf32>, tensor<512x256xf32>) -> tensor<4x256xf32>
  return %0, %1, %2 : tensor<4x256xf32>, tensor<4x8192xf32>, tensor<4x256xf32>
}
