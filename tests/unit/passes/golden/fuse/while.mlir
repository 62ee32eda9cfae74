// Bodies are fused too; what they capture is an operand of their fusions.
func.func @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %a = stablehlo.multiply %v, %0 : tensor<4xf32>
    %b = stablehlo.add %a, %x : tensor<4xf32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = "pestle.fusion"(%x) <{label = "tanh"}> ({
    ^bb0(%x_0: tensor<4xf32>):
      %1 = stablehlo.tanh %x_0 : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<4xf32>
    cond {
      %c = "pestle.fusion"(%i) <{label = "lt"}> ({
      ^bb0(%i_0: tensor<i32>):
        %four = stablehlo.constant dense<4> : tensor<i32>
        %c_1 = stablehlo.compare LT, %i_0, %four, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c_1 : tensor<i1>
      }) : (tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = "pestle.fusion"(%i) <{label = "add"}> ({
      ^bb0(%i_0: tensor<i32>):
        %one = stablehlo.constant dense<1> : tensor<i32>
        %j_1 = stablehlo.add %i_0, %one : tensor<i32>
        stablehlo.return %j_1 : tensor<i32>
      }) : (tensor<i32>) -> tensor<i32>
      %b = "pestle.fusion"(%v, %0, %x) <{label = "multiply_add"}> ({
      ^bb0(%v_0: tensor<4xf32>, %arg0: tensor<4xf32>, %x_1: tensor<4xf32>):
        %a = stablehlo.multiply %v_0, %arg0 : tensor<4xf32>
        %b_2 = stablehlo.add %a, %x_1 : tensor<4xf32>
        stablehlo.return %b_2 : tensor<4xf32>
      }) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<4xf32>
    }
    return %r#1 : tensor<4xf32>
  }
}
