// Where the elements of each row would go in order.
func.func @main(%x: tensor<4096x1024xf32>) -> tensor<4096x1024xi32> {
  %i = stablehlo.iota dim = 1 : tensor<4096x1024xi32>
  %0:2 = "stablehlo.sort"(%x, %i) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
    %p = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) : (tensor<4096x1024xf32>, tensor<4096x1024xi32>) -> (tensor<4096x1024xf32>, tensor<4096x1024xi32>)
  return %0#1 : tensor<4096x1024xi32>
}
