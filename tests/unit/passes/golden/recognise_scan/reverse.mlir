func.func public @main(%c: tensor<4xf32>, %xs: tensor<7x4xf32>, %any: tensor<7x4xf32>) -> (tensor<4xf32>, tensor<7x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:3 = stablehlo.while(%a = %c, %i = %zero, %y = %any) : tensor<4xf32>, tensor<i32>, tensor<7x4xf32>
  cond {
    %n = stablehlo.constant dense<7> : tensor<i32>
    %2 = stablehlo.compare GT, %n, %i, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %n = stablehlo.constant dense<7> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.subtract %n, %i : tensor<i32>
    %3 = stablehlo.subtract %2, %one : tensor<i32>
    %4 = stablehlo.compare LT, %3, %none, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %5 = stablehlo.add %3, %n : tensor<i32>
    %6 = stablehlo.select %4, %5, %3 : tensor<i1>, tensor<i32>
    %7 = stablehlo.dynamic_slice %xs, %6, %none, sizes = [1, 4] : (tensor<7x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
    %8 = stablehlo.reshape %7 : (tensor<1x4xf32>) -> tensor<4xf32>
    %9 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %11 = stablehlo.multiply %a, %10 : tensor<4xf32>
    %12 = stablehlo.add %11, %8 : tensor<4xf32>
    %13 = stablehlo.reshape %12 : (tensor<4xf32>) -> tensor<1x4xf32>
    %14 = stablehlo.dynamic_update_slice %y, %13, %3, %none : (tensor<7x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<7x4xf32>
    %15 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %12, %15, %14 : tensor<4xf32>, tensor<i32>, tensor<7x4xf32>
  }
  return %1#0, %1#2 : tensor<4xf32>, tensor<7x4xf32>
}
// -----
module {
  func.func public @main(%c: tensor<4xf32>, %xs: tensor<7x4xf32>, %any: tensor<7x4xf32>) -> (tensor<4xf32>, tensor<7x4xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = "pestle.scan"(%c, %zero, %xs) <{length = 7 : i64, reverse = true, carry_count = 2 : i64, xs_count = 1 : i64}> ({
    ^bb0(%arg0: tensor<4xf32>, %arg1: tensor<i32>, %arg2: tensor<4xf32>):
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
      %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %3 = stablehlo.multiply %arg0, %2 : tensor<4xf32>
      %4 = stablehlo.add %3, %arg2 : tensor<4xf32>
      %5 = stablehlo.add %arg1, %one : tensor<i32>
      stablehlo.return %4, %5, %4 : tensor<4xf32>, tensor<i32>, tensor<4xf32>
    }) : (tensor<4xf32>, tensor<i32>, tensor<7x4xf32>) -> (tensor<4xf32>, tensor<i32>, tensor<7x4xf32>)
    return %0#0, %0#2 : tensor<4xf32>, tensor<7x4xf32>
  }
}
