func.func public @main(%x: tensor<4x5xf32>, %xs: tensor<3x4x5xf32>) -> (tensor<4x5xf32>, tensor<3x4x5xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %any = stablehlo.constant dense<0.0> : tensor<3x4x5xf32>
  %1:3 = stablehlo.while(%a = %x, %i = %zero, %y = %any) : tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>
  cond {
    %n = stablehlo.constant dense<3> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.dynamic_slice %xs, %i, %none, %none, sizes = [1, 4, 5] : (tensor<3x4x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x5xf32>
    %3 = stablehlo.reshape %2 : (tensor<1x4x5xf32>) -> tensor<4x5xf32>
    %4 = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
    %6 = stablehlo.multiply %a, %5 : tensor<4x5xf32>
    %7 = stablehlo.add %6, %3 : tensor<4x5xf32>
    %8 = stablehlo.reshape %7 : (tensor<4x5xf32>) -> tensor<1x4x5xf32>
    %9 = stablehlo.dynamic_update_slice %y, %8, %i, %none, %none : (tensor<3x4x5xf32>, tensor<1x4x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x4x5xf32>
    %10 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %7, %10, %9 : tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>
  }
  return %1#0, %1#2 : tensor<4x5xf32>, tensor<3x4x5xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x5xf32>, %xs: tensor<3x4x5xf32>) -> (tensor<4x5xf32>, tensor<3x4x5xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = "pestle.fusion"(%x, %zero, %xs) <{label = "scan"}> ({
    ^bb0(%arg0: tensor<4x5xf32>, %arg1: tensor<i32>, %arg2: tensor<3x4x5xf32>):
      %1:3 = "pestle.scan"(%arg0, %arg1, %arg2) <{length = 3 : i64, carry_count = 2 : i64, xs_count = 1 : i64}> ({
      ^bb0(%arg3: tensor<4x5xf32>, %arg4: tensor<i32>, %arg5: tensor<4x5xf32>):
        %one = stablehlo.constant dense<1> : tensor<i32>
        %2 = stablehlo.convert %arg4 : (tensor<i32>) -> tensor<f32>
        %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<4x5xf32>
        %4 = stablehlo.multiply %arg3, %3 : tensor<4x5xf32>
        %5 = stablehlo.add %4, %arg5 : tensor<4x5xf32>
        %6 = stablehlo.add %arg4, %one : tensor<i32>
        stablehlo.return %5, %6, %5 : tensor<4x5xf32>, tensor<i32>, tensor<4x5xf32>
      }) : (tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>) -> (tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>)
      stablehlo.return %1#0, %1#1, %1#2 : tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>
    }) : (tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>) -> (tensor<4x5xf32>, tensor<i32>, tensor<3x4x5xf32>)
    return %0#0, %0#2 : tensor<4x5xf32>, tensor<3x4x5xf32>
  }
}
