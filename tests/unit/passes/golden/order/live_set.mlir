// Each big value is made small before the next big one is made.
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "pestle.fusion"(%x) <{label = "a"}> ({
  ^bb0(%a: tensor<4xf32>):
    %b = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<64x4xf32>
    %t = stablehlo.tanh %b : tensor<64x4xf32>
    stablehlo.return %t : tensor<64x4xf32>
  }) : (tensor<4xf32>) -> tensor<64x4xf32>
  %1 = "pestle.fusion"(%y) <{label = "b"}> ({
  ^bb0(%a: tensor<4xf32>):
    %b = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<64x4xf32>
    %t = stablehlo.negate %b : tensor<64x4xf32>
    stablehlo.return %t : tensor<64x4xf32>
  }) : (tensor<4xf32>) -> tensor<64x4xf32>
  %2 = "pestle.fusion"(%0) <{label = "c"}> ({
  ^bb0(%a: tensor<64x4xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x4xf32>, tensor<f32>) -> tensor<4xf32>
    stablehlo.return %s : tensor<4xf32>
  }) : (tensor<64x4xf32>) -> tensor<4xf32>
  %3 = "pestle.fusion"(%1, %2) <{label = "d"}> ({
  ^bb0(%a: tensor<64x4xf32>, %c: tensor<4xf32>):
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x4xf32>, tensor<f32>) -> tensor<4xf32>
    %t = stablehlo.add %s, %c : tensor<4xf32>
    stablehlo.return %t : tensor<4xf32>
  }) : (tensor<64x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "pestle.fusion"(%x) <{label = "a"}> ({
    ^bb0(%a: tensor<4xf32>):
      %b = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<64x4xf32>
      %t = stablehlo.tanh %b : tensor<64x4xf32>
      stablehlo.return %t : tensor<64x4xf32>
    }) : (tensor<4xf32>) -> tensor<64x4xf32>
    %1 = "pestle.fusion"(%0) <{label = "c"}> ({
    ^bb0(%a: tensor<64x4xf32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x4xf32>, tensor<f32>) -> tensor<4xf32>
      stablehlo.return %s : tensor<4xf32>
    }) : (tensor<64x4xf32>) -> tensor<4xf32>
    %2 = "pestle.fusion"(%y) <{label = "b"}> ({
    ^bb0(%a: tensor<4xf32>):
      %b = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<64x4xf32>
      %t = stablehlo.negate %b : tensor<64x4xf32>
      stablehlo.return %t : tensor<64x4xf32>
    }) : (tensor<4xf32>) -> tensor<64x4xf32>
    %3 = "pestle.fusion"(%2, %1) <{label = "d"}> ({
    ^bb0(%a: tensor<64x4xf32>, %c: tensor<4xf32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : (tensor<64x4xf32>, tensor<f32>) -> tensor<4xf32>
      %t = stablehlo.add %s, %c : tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }) : (tensor<64x4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %3 : tensor<4xf32>
  }
}
