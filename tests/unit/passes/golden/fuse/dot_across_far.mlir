// One of many rows is turned first: each tile of results would step over all of them.
func.func @main(%x: tensor<300x6xf32>, %g: tensor<300x16xf32>) -> tensor<6x16xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<300x6xf32>) -> tensor<6x300xf32>
  %1 = stablehlo.dot_general %0, %g, contracting_dims = [1] x [0] : (tensor<6x300xf32>, tensor<300x16xf32>) -> tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}
// -----
module {
  func.func public @main(%x: tensor<300x6xf32>, %g: tensor<300x16xf32>) -> tensor<6x16xf32> {
    %0 = "pestle.fusion"(%x) <{label = "transpose"}> ({
    ^bb0(%x_0: tensor<300x6xf32>):
      %2 = stablehlo.transpose %x_0, dims = [1, 0] : (tensor<300x6xf32>) -> tensor<6x300xf32>
      stablehlo.return %2 : tensor<6x300xf32>
    }) : (tensor<300x6xf32>) -> tensor<6x300xf32>
    %1 = "pestle.fusion"(%0, %g) <{label = "dot_general"}> ({
    ^bb0(%arg0: tensor<6x300xf32>, %g_0: tensor<300x16xf32>):
      %2 = stablehlo.dot_general %arg0, %g_0, contracting_dims = [1] x [0] : (tensor<6x300xf32>, tensor<300x16xf32>) -> tensor<6x16xf32>
      stablehlo.return %2 : tensor<6x16xf32>
    }) : (tensor<6x300xf32>, tensor<300x16xf32>) -> tensor<6x16xf32>
    return %1 : tensor<6x16xf32>
  }
}
