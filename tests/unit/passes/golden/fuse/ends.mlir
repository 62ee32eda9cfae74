// Ends go forward, but not through a mask, and back to what nobody else reads.
func.func @main(%x: tensor<8x4xf32>, %n: tensor<i64>, %w: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<4xf32>) {
  %0 = stablehlo.tanh %x : tensor<8x4xf32>
  %1 = "pestle.extent"(%0, %n) <{dimension = 0 : i64}> : (tensor<8x4xf32>, tensor<i64>) -> tensor<8x4xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %3 = stablehlo.iota dim = 0 : tensor<8x4xi64>
  %4 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i64>) -> tensor<8x4xi64>
  %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<8x4xi64>, tensor<8x4xi64>) -> tensor<8x4xi1>
  %6 = stablehlo.constant dense<-0.0> : tensor<8x4xf32>
  %7 = stablehlo.select %5, %1, %6 : tensor<8x4xi1>, tensor<8x4xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %8 = stablehlo.reduce(%7 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %2, %8 : tensor<8x6xf32>, tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<8x4xf32>, %n: tensor<i64>, %w: tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<4xf32>) {
    %0 = "pestle.fusion"(%x, %n) <{label = "tanh", ends = array<i64: 0, 0, 1, 1>}> ({
    ^bb0(%x_0: tensor<8x4xf32>, %n_1: tensor<i64>):
      %3 = stablehlo.tanh %x_0 : tensor<8x4xf32>
      stablehlo.return %3 : tensor<8x4xf32>
    }) : (tensor<8x4xf32>, tensor<i64>) -> tensor<8x4xf32>
    %1 = "pestle.fusion"(%0, %w, %n) <{label = "dot_general", ends = array<i64: 0, 0, 2, 1>}> ({
    ^bb0(%arg0: tensor<8x4xf32>, %w_0: tensor<4x6xf32>, %n_1: tensor<i64>):
      %3 = stablehlo.dot_general %arg0, %w_0, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      stablehlo.return %3 : tensor<8x6xf32>
    }) : (tensor<8x4xf32>, tensor<4x6xf32>, tensor<i64>) -> tensor<8x6xf32>
    %2 = "pestle.fusion"(%n, %0) <{label = "reduce_iota_lt_select"}> ({
    ^bb0(%n_0: tensor<i64>, %arg0: tensor<8x4xf32>):
      %3 = stablehlo.constant dense<[[0, 0, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2], [3, 3, 3, 3], [4, 4, 4, 4], [5, 5, 5, 5], [6, 6, 6, 6], [7, 7, 7, 7]]> : tensor<8x4xi64>
      %4 = stablehlo.broadcast_in_dim %n_0, dims = [] : (tensor<i64>) -> tensor<8x4xi64>
      %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<8x4xi64>, tensor<8x4xi64>) -> tensor<8x4xi1>
      %6 = stablehlo.constant dense<-0.0> : tensor<8x4xf32>
      %7 = stablehlo.select %5, %arg0, %6 : tensor<8x4xi1>, tensor<8x4xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %8 = stablehlo.reduce(%7 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
      stablehlo.return %8 : tensor<4xf32>
    }) : (tensor<i64>, tensor<8x4xf32>) -> tensor<4xf32>
    return %1, %2 : tensor<8x6xf32>, tensor<4xf32>
  }
}
