// What is needed to count the rows is made whole, before them; what follows ends at them.
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<i64>) {
  %0 = stablehlo.exponential %x : tensor<8xf32>
  %1 = stablehlo.convert %0 : (tensor<8xf32>) -> tensor<8xi64>
  %z = stablehlo.constant dense<0> : tensor<i64>
  %n = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xi64>, tensor<i64>) -> tensor<i64>
  %2 = stablehlo.tanh %0 : tensor<8xf32>
  %3 = "pestle.extent"(%2, %n) <{dimension = 0 : i64}> : (tensor<8xf32>, tensor<i64>) -> tensor<8xf32>
  %4 = stablehlo.reverse %3, dims = [0] : tensor<8xf32>
  %5 = "pestle.extent"(%4, %n) <{dimension = 0 : i64}> : (tensor<8xf32>, tensor<i64>) -> tensor<8xf32>
  return %5, %n : tensor<8xf32>, tensor<i64>
}
// -----
module {
  func.func public @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<i64>) {
    %0 = "pestle.fusion"(%x) <{label = "exponential"}> ({
    ^bb0(%x_0: tensor<8xf32>):
      %2 = stablehlo.exponential %x_0 : tensor<8xf32>
      stablehlo.return %2 : tensor<8xf32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %n = "pestle.fusion"(%0) <{label = "reduce"}> ({
    ^bb0(%arg0: tensor<8xf32>):
      %2 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xi64>
      %z = stablehlo.constant dense<0> : tensor<i64>
      %n_0 = stablehlo.reduce(%2 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8xi64>, tensor<i64>) -> tensor<i64>
      stablehlo.return %n_0 : tensor<i64>
    }) : (tensor<8xf32>) -> tensor<i64>
    %1 = "pestle.fusion"(%0, %n) <{label = "tanh_reverse", ends = array<i64: 0, 0, 1, 1>}> ({
    ^bb0(%arg0: tensor<8xf32>, %n_0: tensor<i64>):
      %2 = stablehlo.tanh %arg0 : tensor<8xf32>
      %3 = stablehlo.reverse %2, dims = [0] : tensor<8xf32>
      stablehlo.return %3 : tensor<8xf32>
    }) : (tensor<8xf32>, tensor<i64>) -> tensor<8xf32>
    return %1, %n : tensor<8xf32>, tensor<i64>
  }
}
