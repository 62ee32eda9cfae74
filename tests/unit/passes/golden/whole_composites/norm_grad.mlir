// Rows of 20 have a kernel, rows of 8 have none.
func.func public @main(%x: tensor<4x20xf32>, %s: tensor<20xf32>, %z: tensor<4x8xf32>, %t: tensor<8xf32>) -> (tensor<4x20xf32>, tensor<2x20xf32>, tensor<4x8xf32>) {
  %0:3 = "pestle.norm_grad"(%x, %s, %x) {dimension = 1 : i64, epsilon = 0.5 : f64, centred = true, blocks = 2 : i64} : (tensor<4x20xf32>, tensor<20xf32>, tensor<4x20xf32>) -> (tensor<4x20xf32>, tensor<2x20xf32>, tensor<2x20xf32>)
  %1:2 = "pestle.norm_grad"(%z, %t, %z) {dimension = 1 : i64, epsilon = 0.5 : f64, blocks = 2 : i64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>)
  return %0#0, %0#1, %1#0 : tensor<4x20xf32>, tensor<2x20xf32>, tensor<4x8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4x20xf32>, %s: tensor<20xf32>, %z: tensor<4x8xf32>, %t: tensor<8xf32>) -> (tensor<4x20xf32>, tensor<2x20xf32>, tensor<4x8xf32>) {
    %0:3 = "pestle.fusion"(%x, %s, %x) <{label = "norm_grad"}> ({
    ^bb0(%arg0: tensor<4x20xf32>, %arg1: tensor<20xf32>, %arg2: tensor<4x20xf32>):
      %2:3 = "pestle.norm_grad"(%arg0, %arg1, %arg2) <{dimension = 1 : i64, epsilon = 0.5 : f64, centred = true, blocks = 2 : i64}> : (tensor<4x20xf32>, tensor<20xf32>, tensor<4x20xf32>) -> (tensor<4x20xf32>, tensor<2x20xf32>, tensor<2x20xf32>)
      stablehlo.return %2#0, %2#1, %2#2 : tensor<4x20xf32>, tensor<2x20xf32>, tensor<2x20xf32>
    }) : (tensor<4x20xf32>, tensor<20xf32>, tensor<4x20xf32>) -> (tensor<4x20xf32>, tensor<2x20xf32>, tensor<2x20xf32>)
    %1:2 = "pestle.norm_grad"(%z, %t, %z) <{dimension = 1 : i64, epsilon = 0.5 : f64, blocks = 2 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>)
    return %0#0, %0#1, %1#0 : tensor<4x20xf32>, tensor<2x20xf32>, tensor<4x8xf32>
  }
}
