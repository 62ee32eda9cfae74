// A mask comes across.
func.func public @main(%q: tensor<4x20x8xf32>, %k: tensor<4x24x8xf32>, %y: tensor<4x20x8xf32>, %m: tensor<1x20x24xi1>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>) {
  %0:3 = "pestle.attention_grad"(%q, %k, %k, %y, %y, %m) {scale = 0.5 : f64, masked = -2.0 : f64} : (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x20x8xf32>, tensor<4x20x8xf32>, tensor<1x20x24xi1>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>)
  return %0#0, %0#1, %0#2 : tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>
}
// -----
module {
  func.func public @main(%q: tensor<4x20x8xf32>, %k: tensor<4x24x8xf32>, %y: tensor<4x20x8xf32>, %m: tensor<1x20x24xi1>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>) {
    %0 = stablehlo.transpose %m, dims = [0, 2, 1] : (tensor<1x20x24xi1>) -> tensor<1x24x20xi1>
    %1:3 = "pestle.fusion"(%q, %k, %k, %y, %y, %0) <{label = "attention_grad"}> ({
    ^bb0(%arg0: tensor<4x20x8xf32>, %arg1: tensor<4x24x8xf32>, %arg2: tensor<4x24x8xf32>, %arg3: tensor<4x20x8xf32>, %arg4: tensor<4x20x8xf32>, %arg5: tensor<1x24x20xi1>):
      %2 = stablehlo.transpose %arg5, dims = [0, 2, 1] : (tensor<1x24x20xi1>) -> tensor<1x20x24xi1>
      %3:3 = "pestle.attention_grad"(%arg0, %arg1, %arg2, %arg3, %arg4, %2) <{scale = 0.5 : f64, masked = -2.0 : f64}> : (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x20x8xf32>, tensor<4x20x8xf32>, tensor<1x20x24xi1>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>)
      stablehlo.return %3#0, %3#1, %3#2 : tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>
    }) : (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x20x8xf32>, tensor<4x20x8xf32>, tensor<1x24x20xi1>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>)
    return %1#0, %1#1, %1#2 : tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>
  }
}
