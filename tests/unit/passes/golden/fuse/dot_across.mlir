// A matrix that is turned for the left sides of products is read where it lies, by each.
func.func @main(%x: tensor<8x6xf32>, %g: tensor<8x16xf32>, %h: tensor<8x16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
  %1 = stablehlo.dot_general %0, %g, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %2 = stablehlo.dot_general %0, %h, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  return %1, %2 : tensor<6x16xf32>, tensor<6x16xf32>
}
// -----
module {
  func.func public @main(%x: tensor<8x6xf32>, %g: tensor<8x16xf32>, %h: tensor<8x16xf32>) -> (tensor<6x16xf32>, tensor<6x16xf32>) {
    %0 = "pestle.fusion"(%x, %g) <{label = "dot_general_transpose"}> ({
    ^bb0(%x_0: tensor<8x6xf32>, %g_1: tensor<8x16xf32>):
      %2 = stablehlo.transpose %x_0, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
      %3 = stablehlo.dot_general %2, %g_1, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
      stablehlo.return %3 : tensor<6x16xf32>
    }) : (tensor<8x6xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
    %1 = "pestle.fusion"(%x, %h) <{label = "dot_general_transpose"}> ({
    ^bb0(%x_0: tensor<8x6xf32>, %h_1: tensor<8x16xf32>):
      %2 = stablehlo.transpose %x_0, dims = [1, 0] : (tensor<8x6xf32>) -> tensor<6x8xf32>
      %3 = stablehlo.dot_general %2, %h_1, contracting_dims = [1] x [0] : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
      stablehlo.return %3 : tensor<6x16xf32>
    }) : (tensor<8x6xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
    return %0, %1 : tensor<6x16xf32>, tensor<6x16xf32>
  }
}
