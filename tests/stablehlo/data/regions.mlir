// Ops with regions, some of which use what is outside of them.
module @regions {
  func.func public @main(%x: tensor<4x6xf32>, %at: tensor<2x1xi32>, %u: tensor<2x6xf32>, %n: tensor<i32>, %p: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<f32>, tensor<4x6xf32>) {
    %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %none = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    %places = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %1:2 = stablehlo.reduce(%x init: %zero), (%places init: %none) across dimensions = [1] : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%a: tensor<f32>, %c: tensor<f32>) (%b: tensor<i32>, %d: tensor<i32>)  {
      %10 = stablehlo.compare GE, %a, %c, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %11 = stablehlo.select %10, %a, %c : tensor<i1>, tensor<f32>
      %12 = stablehlo.select %10, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %11, %12 : tensor<f32>, tensor<i32>
    }
    %2 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %10 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<2x3xf32>
    %3 = "stablehlo.scatter"(%x, %at, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %10 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<2x1xi32>, tensor<2x6xf32>) -> tensor<4x6xf32>
    %4 = "stablehlo.select_and_scatter"(%3, %2, %zero) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %10 = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %10 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<2x3xf32>, tensor<f32>) -> tensor<4x6xf32>
    %5:2 = "stablehlo.sort"(%x, %places) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %10 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    }) : (tensor<4x6xf32>, tensor<4x6xi32>) -> (tensor<4x6xf32>, tensor<4x6xi32>)
    %6:2 = stablehlo.while(%i = %none, %y = %x) : tensor<i32>, tensor<4x6xf32>
     cond {
      %10 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %10 = stablehlo.add %i, %one : tensor<i32>
      %11 = stablehlo.add %y, %x : tensor<4x6xf32>
      stablehlo.return %10, %11 : tensor<i32>, tensor<4x6xf32>
    }
    %7 = "stablehlo.case"(%n) ({
      %10 = stablehlo.negate %zero : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }, {
      %10 = "stablehlo.if"(%p) ({
        stablehlo.return %zero : tensor<f32>
      }, {
        %11 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
        stablehlo.return %11 : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %8 = "stablehlo.map"(%x, %4) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %10 = stablehlo.multiply %a, %b : tensor<f32>
      stablehlo.return %10 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    return %0, %1#0, %1#1, %2, %3, %4, %5#0, %5#1, %6#1, %7, %8 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>, tensor<2x3xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<f32>, tensor<4x6xf32>
  }
}
