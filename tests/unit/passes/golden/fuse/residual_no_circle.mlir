// %3 cannot join the first contraction: the second stands between them.
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.tanh %0 : tensor<4x4xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.add %1, %2 : tensor<4x4xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %4 : tensor<4x4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = "pestle.fusion"(%x, %w) <{label = "dot_general_tanh"}> ({
    ^bb0(%x_0: tensor<4x4xf32>, %w_1: tensor<4x4xf32>):
      %3 = stablehlo.dot_general %x_0, %w_1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = stablehlo.tanh %3 : tensor<4x4xf32>
      stablehlo.return %4 : tensor<4x4xf32>
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = "pestle.fusion"(%0, %w) <{label = "dot_general_add"}> ({
    ^bb0(%arg0: tensor<4x4xf32>, %w_0: tensor<4x4xf32>):
      %3 = stablehlo.dot_general %arg0, %w_0, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %4 = stablehlo.add %arg0, %3 : tensor<4x4xf32>
      stablehlo.return %4 : tensor<4x4xf32>
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = "pestle.fusion"(%1, %w) <{label = "dot_general"}> ({
    ^bb0(%arg0: tensor<4x4xf32>, %w_0: tensor<4x4xf32>):
      %3 = stablehlo.dot_general %arg0, %w_0, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      stablehlo.return %3 : tensor<4x4xf32>
    }) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}
