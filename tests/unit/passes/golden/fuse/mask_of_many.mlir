// What is counted from places alone, a causal mask, is in each of its readers, however many.
func.func @main(%x: tensor<96x4xf32>, %a: tensor<4x96xf32>, %b: tensor<4x96xf32>, %c: tensor<4x96xf32>, %d: tensor<4x96xf32>) -> (tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<96x96xi32>
  %1 = stablehlo.iota dim = 1 : tensor<96x96xi32>
  %2 = stablehlo.compare GE, %0, %1, SIGNED : (tensor<96x96xi32>, tensor<96x96xi32>) -> tensor<96x96xi1>
  %3 = stablehlo.constant dense<-1.0> : tensor<96x96xf32>
  %4 = stablehlo.dot_general %x, %a, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
  %5 = stablehlo.select %2, %4, %3 : tensor<96x96xi1>, tensor<96x96xf32>
  %6 = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
  %7 = stablehlo.select %2, %6, %3 : tensor<96x96xi1>, tensor<96x96xf32>
  %8 = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
  %9 = stablehlo.select %2, %8, %3 : tensor<96x96xi1>, tensor<96x96xf32>
  %10 = stablehlo.dot_general %x, %d, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
  %11 = stablehlo.select %2, %10, %3 : tensor<96x96xi1>, tensor<96x96xf32>
  return %5, %7, %9, %11 : tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>
}
// -----
module {
  func.func public @main(%x: tensor<96x4xf32>, %a: tensor<4x96xf32>, %b: tensor<4x96xf32>, %c: tensor<4x96xf32>, %d: tensor<4x96xf32>) -> (tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>) {
    %0 = "pestle.fusion"(%x, %a) <{label = "dot_general_iota_ge_select"}> ({
    ^bb0(%x_0: tensor<96x4xf32>, %a_1: tensor<4x96xf32>):
      %4 = stablehlo.iota dim = 0 : tensor<96x96xi32>
      %5 = stablehlo.iota dim = 1 : tensor<96x96xi32>
      %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<96x96xi32>, tensor<96x96xi32>) -> tensor<96x96xi1>
      %7 = stablehlo.constant dense<-1.0> : tensor<96x96xf32>
      %8 = stablehlo.dot_general %x_0, %a_1, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
      %9 = stablehlo.select %6, %8, %7 : tensor<96x96xi1>, tensor<96x96xf32>
      stablehlo.return %9 : tensor<96x96xf32>
    }) : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
    %1 = "pestle.fusion"(%x, %b) <{label = "dot_general_iota_ge_select"}> ({
    ^bb0(%x_0: tensor<96x4xf32>, %b_1: tensor<4x96xf32>):
      %4 = stablehlo.iota dim = 0 : tensor<96x96xi32>
      %5 = stablehlo.iota dim = 1 : tensor<96x96xi32>
      %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<96x96xi32>, tensor<96x96xi32>) -> tensor<96x96xi1>
      %7 = stablehlo.constant dense<-1.0> : tensor<96x96xf32>
      %8 = stablehlo.dot_general %x_0, %b_1, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
      %9 = stablehlo.select %6, %8, %7 : tensor<96x96xi1>, tensor<96x96xf32>
      stablehlo.return %9 : tensor<96x96xf32>
    }) : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
    %2 = "pestle.fusion"(%x, %c) <{label = "dot_general_iota_ge_select"}> ({
    ^bb0(%x_0: tensor<96x4xf32>, %c_1: tensor<4x96xf32>):
      %4 = stablehlo.iota dim = 0 : tensor<96x96xi32>
      %5 = stablehlo.iota dim = 1 : tensor<96x96xi32>
      %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<96x96xi32>, tensor<96x96xi32>) -> tensor<96x96xi1>
      %7 = stablehlo.constant dense<-1.0> : tensor<96x96xf32>
      %8 = stablehlo.dot_general %x_0, %c_1, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
      %9 = stablehlo.select %6, %8, %7 : tensor<96x96xi1>, tensor<96x96xf32>
      stablehlo.return %9 : tensor<96x96xf32>
    }) : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
    %3 = "pestle.fusion"(%x, %d) <{label = "dot_general_iota_ge_select"}> ({
    ^bb0(%x_0: tensor<96x4xf32>, %d_1: tensor<4x96xf32>):
      %4 = stablehlo.iota dim = 0 : tensor<96x96xi32>
      %5 = stablehlo.iota dim = 1 : tensor<96x96xi32>
      %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<96x96xi32>, tensor<96x96xi32>) -> tensor<96x96xi1>
      %7 = stablehlo.constant dense<-1.0> : tensor<96x96xf32>
      %8 = stablehlo.dot_general %x_0, %d_1, contracting_dims = [1] x [0] : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
      %9 = stablehlo.select %6, %8, %7 : tensor<96x96xi1>, tensor<96x96xf32>
      stablehlo.return %9 : tensor<96x96xf32>
    }) : (tensor<96x4xf32>, tensor<4x96xf32>) -> tensor<96x96xf32>
    return %0, %1, %2, %3 : tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>, tensor<96x96xf32>
  }
}
