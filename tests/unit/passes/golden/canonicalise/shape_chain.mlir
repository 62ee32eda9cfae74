// Shape arithmetic as importers leave it folds away, and so does the if on it.
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<6x4xf32> {
  %s = stablehlo.constant dense<[2, 3, 4]> : tensor<3xi64>
  %i = stablehlo.constant dense<0> : tensor<i64>
  %d = stablehlo.dynamic_slice %s, %i, sizes = [1] : (tensor<3xi64>, tensor<i64>) -> tensor<1xi64>
  %n = stablehlo.constant dense<2> : tensor<1xi64>
  %e = stablehlo.compare EQ, %d, %n, SIGNED : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi1>
  %p = stablehlo.reshape %e : (tensor<1xi1>) -> tensor<i1>
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    stablehlo.return %1 : tensor<6x4xf32>
  }, {
    %c = stablehlo.constant dense<0.0> : tensor<6x4xf32>
    stablehlo.return %c : tensor<6x4xf32>
  }) : (tensor<i1>) -> tensor<6x4xf32>
  %2 = stablehlo.negate %0 : tensor<6x4xf32>
  %3 = stablehlo.negate %2 : tensor<6x4xf32>
  return %3 : tensor<6x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<2x3x4xf32>) -> tensor<6x4xf32> {
    %0 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
    return %0 : tensor<6x4xf32>
  }
}
