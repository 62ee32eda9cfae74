// Rows that are more than the L2 holds: each tile asks for the next one's. Those of
// the third product, which the L2 holds, are not asked for.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<3136x576xf32>, %w: tensor<576x64xf32>, %y: tensor<12544x96xf32>, %v: tensor<96x64xf32>, %z: tensor<196x576xf32>) -> (tensor<3136x64xf32>, tensor<12544x64xf32>, tensor<196x64xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3136x576xf32>, tensor<576x64xf32>) -> tensor<3136x64xf32>
  %1 = stablehlo.dot_general %y, %v, contracting_dims = [1] x [0] : (tensor<12544x96xf32>, tensor<96x64xf32>) -> tensor<12544x64xf32>
  %2 = stablehlo.dot_general %z, %w, contracting_dims = [1] x [0] : (tensor<196x576xf32>, tensor<576x64xf32>) -> tensor<196x64xf32>
  return %0, %1, %2 : tensor<3136x64xf32>, tensor<12544x64xf32>, tensor<196x64xf32>
}
