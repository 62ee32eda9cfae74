func.func public @main(%x: tensor<f32>) -> (tensor<f32>, tensor<9xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %any = stablehlo.constant dense<0.0> : tensor<9xf32>
  %1:3 = stablehlo.while(%a = %x, %i = %zero, %y = %any) : tensor<f32>, tensor<i32>, tensor<9xf32>
  cond {
    %n = stablehlo.constant dense<9> : tensor<i32>
    %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3 = stablehlo.sine %a : tensor<f32>
    %4 = stablehlo.reshape %3 : (tensor<f32>) -> tensor<1xf32>
    %5 = stablehlo.dynamic_update_slice %y, %4, %i : (tensor<9xf32>, tensor<1xf32>, tensor<i32>) -> tensor<9xf32>
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %3, %6, %5 : tensor<f32>, tensor<i32>, tensor<9xf32>
  }
  return %1#0, %1#2 : tensor<f32>, tensor<9xf32>
}
// -----
module {
  func.func public @main(%x: tensor<f32>) -> (tensor<f32>, tensor<9xf32>) {
    %0:2 = "pestle.fusion"(%x) <{label = "scan"}> ({
    ^bb0(%arg0: tensor<f32>):
      %1:2 = "pestle.scan"(%arg0) <{length = 9 : i64, carry_count = 1 : i64, xs_count = 0 : i64}> ({
      ^bb0(%arg1: tensor<f32>):
        %2 = stablehlo.sine %arg1 : tensor<f32>
        stablehlo.return %2, %2 : tensor<f32>, tensor<f32>
      }) : (tensor<f32>) -> (tensor<f32>, tensor<9xf32>)
      stablehlo.return %1#0, %1#1 : tensor<f32>, tensor<9xf32>
    }) : (tensor<f32>) -> (tensor<f32>, tensor<9xf32>)
    return %0#0, %0#1 : tensor<f32>, tensor<9xf32>
  }
}
