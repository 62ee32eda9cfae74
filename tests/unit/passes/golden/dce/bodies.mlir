// Dead chains go, in bodies too; what has an effect stays.
func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %0 = stablehlo.exponential %x : tensor<4xf32>
  %1 = stablehlo.tanh %0 : tensor<4xf32>
  %2 = stablehlo.optimization_barrier %x : tensor<4xf32>
  %3 = "stablehlo.if"(%p) ({
    %4 = stablehlo.add %1, %x : tensor<4xf32>
    stablehlo.return %x : tensor<4xf32>
  }, {
    %5 = stablehlo.negate %x : tensor<4xf32>
    stablehlo.return %5 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
    %0 = stablehlo.optimization_barrier %x : tensor<4xf32>
    %1 = "stablehlo.if"(%p) ({
      stablehlo.return %x : tensor<4xf32>
    }, {
      %2 = stablehlo.negate %x : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
