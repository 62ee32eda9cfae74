// Bodies in bodies and in what is called; a value that a body makes keeps the
// result's name.
func.func @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %four = stablehlo.composite "user.four" %x {decomposition = @four, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.composite "user.same" %four {decomposition = @same, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.if"(%p) ({
    %2 = stablehlo.composite "user.twice" %0 {decomposition = @twice, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }, {
    %2 = stablehlo.negate %0 : tensor<4xf32>
    stablehlo.return %2 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %3 = func.call @called(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %3 : tensor<4xf32>, tensor<4xf32>
}
func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @four(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "user.twice" %a {decomposition = @twice, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "user.twice" %0 {decomposition = @twice, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @same(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
func.func private @called(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "user.twice" %a {decomposition = @twice, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
module {
  func.func public @main(%x: tensor<4xf32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    %four = stablehlo.add %0, %0 : tensor<4xf32>
    %1 = "stablehlo.if"(%p) ({
      %3 = stablehlo.add %four, %four : tensor<4xf32>
      stablehlo.return %3 : tensor<4xf32>
    }, {
      %3 = stablehlo.negate %four : tensor<4xf32>
      stablehlo.return %3 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %2 = call @called(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @called(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
