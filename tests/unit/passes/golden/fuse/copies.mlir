// A broadcast and a cheap op are copied into their users, exp is stored.
func.func @main(%x: tensor<8xf32>, %y: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.exponential %x : tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
  %2 = stablehlo.add %y, %1 : tensor<4x8xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %4 = stablehlo.multiply %3, %1 : tensor<4x8xf32>
  %5 = stablehlo.subtract %4, %2 : tensor<4x8xf32>
  return %4, %5 : tensor<4x8xf32>, tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<8xf32>, %y: tensor<4x8xf32>, %w: tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = "pestle.fusion"(%x) <{label = "exponential"}> ({
    ^bb0(%x_0: tensor<8xf32>):
      %3 = stablehlo.exponential %x_0 : tensor<8xf32>
      stablehlo.return %3 : tensor<8xf32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = "pestle.fusion"(%0, %y) <{label = "add"}> ({
    ^bb0(%arg0: tensor<8xf32>, %y_0: tensor<4x8xf32>):
      %3 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %4 = stablehlo.add %y_0, %3 : tensor<4x8xf32>
      stablehlo.return %4 : tensor<4x8xf32>
    }) : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2:2 = "pestle.fusion"(%0, %1, %w) <{label = "dot_general_multiply_subtract"}> ({
    ^bb0(%arg0: tensor<8xf32>, %arg1: tensor<4x8xf32>, %w_0: tensor<8x8xf32>):
      %3 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
      %4 = stablehlo.dot_general %arg1, %w_0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %5 = stablehlo.multiply %4, %3 : tensor<4x8xf32>
      %6 = stablehlo.subtract %5, %arg1 : tensor<4x8xf32>
      stablehlo.return %5, %6 : tensor<4x8xf32>, tensor<4x8xf32>
    }) : (tensor<8xf32>, tensor<4x8xf32>, tensor<8x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
    return %2#0, %2#1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}
