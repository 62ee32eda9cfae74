// The place of the maximum is cut, as its region keeps the initial values. A
// count that begins at 1 is not: each block would count it again.
func.func @main(%x: tensor<131072xf32>) -> (tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>) {
  %v = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %p = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.iota dim = 0 : tensor<131072xi32>
  %0:2 = "stablehlo.reduce"(%x, %i, %v, %p) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %ai: tensor<i32>, %b: tensor<f32>, %bi: tensor<i32>):
    %1 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %2 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %3 = stablehlo.compare LT, %ai, %bi, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %4 = stablehlo.and %2, %3 : tensor<i1>
    %5 = stablehlo.or %1, %4 : tensor<i1>
    %6 = stablehlo.select %5, %a, %b : tensor<i1>, tensor<f32>
    %7 = stablehlo.select %5, %ai, %bi : tensor<i1>, tensor<i32>
    stablehlo.return %6, %7 : tensor<f32>, tensor<i32>
  }) : (tensor<131072xf32>, tensor<131072xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  %8:2 = "stablehlo.reduce"(%x, %i, %v, %one) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32>, %ai: tensor<i32>, %b: tensor<f32>, %bi: tensor<i32>):
    %9 = stablehlo.maximum %a, %b : tensor<f32>
    %10 = stablehlo.add %ai, %bi : tensor<i32>
    stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
  }) : (tensor<131072xf32>, tensor<131072xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
  return %0#0, %0#1, %8#0, %8#1 : tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>
}
// -----
module {
  func.func public @main(%x: tensor<131072xf32>) -> (tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>) {
    %v = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %p = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %i = stablehlo.iota dim = 0 : tensor<131072xi32>
    %0 = stablehlo.reshape %x : (tensor<131072xf32>) -> tensor<16x8192xf32>
    %1 = stablehlo.reshape %i : (tensor<131072xi32>) -> tensor<16x8192xi32>
    %2:2 = stablehlo.reduce(%0 init: %v), (%1 init: %p) across dimensions = [1] : (tensor<16x8192xf32>, tensor<16x8192xi32>, tensor<f32>, tensor<i32>) -> (tensor<16xf32>, tensor<16xi32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%ai: tensor<i32>, %bi: tensor<i32>)  {
      %5 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = stablehlo.compare LT, %ai, %bi, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %8 = stablehlo.and %6, %7 : tensor<i1>
      %9 = stablehlo.or %5, %8 : tensor<i1>
      %10 = stablehlo.select %9, %a, %b : tensor<i1>, tensor<f32>
      %11 = stablehlo.select %9, %ai, %bi : tensor<i1>, tensor<i32>
      stablehlo.return %10, %11 : tensor<f32>, tensor<i32>
    }
    %3:2 = stablehlo.reduce(%2#0 init: %v), (%2#1 init: %p) across dimensions = [0] : (tensor<16xf32>, tensor<16xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%ai: tensor<i32>, %bi: tensor<i32>)  {
      %5 = stablehlo.compare GT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare EQ, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %7 = stablehlo.compare LT, %ai, %bi, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %8 = stablehlo.and %6, %7 : tensor<i1>
      %9 = stablehlo.or %5, %8 : tensor<i1>
      %10 = stablehlo.select %9, %a, %b : tensor<i1>, tensor<f32>
      %11 = stablehlo.select %9, %ai, %bi : tensor<i1>, tensor<i32>
      stablehlo.return %10, %11 : tensor<f32>, tensor<i32>
    }
    %4:2 = stablehlo.reduce(%x init: %v), (%i init: %one) across dimensions = [0] : (tensor<131072xf32>, tensor<131072xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
     reducer(%a: tensor<f32>, %b: tensor<f32>) (%ai: tensor<i32>, %bi: tensor<i32>)  {
      %5 = stablehlo.maximum %a, %b : tensor<f32>
      %6 = stablehlo.add %ai, %bi : tensor<i32>
      stablehlo.return %5, %6 : tensor<f32>, tensor<i32>
    }
    return %3#0, %3#1, %4#0, %4#1 : tensor<f32>, tensor<i32>, tensor<f32>, tensor<i32>
  }
}
