// A body sees what is before it outside, branches do not see each other.
func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.exponential %x : tensor<4xf32>
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.exponential %x : tensor<4xf32>
    %3 = stablehlo.tanh %x : tensor<4xf32>
    %4 = stablehlo.add %2, %3 : tensor<4xf32>
    stablehlo.return %4 : tensor<4xf32>
  }, {
    %5 = stablehlo.tanh %x : tensor<4xf32>
    stablehlo.return %5 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.exponential %x : tensor<4xf32>
    %1 = "stablehlo.if"(%p) ({
      %2 = stablehlo.tanh %x : tensor<4xf32>
      %3 = stablehlo.add %0, %2 : tensor<4xf32>
      stablehlo.return %3 : tensor<4xf32>
    }, {
      %2 = stablehlo.tanh %x : tensor<4xf32>
      stablehlo.return %2 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}
