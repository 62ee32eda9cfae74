// Other ops, from the end and without the own element; the initial value of a
// maximum may be any, and part of the results is a running fold too.
func.func @main(%x: tensor<70xf32>, %y: tensor<70xf32>, %i: tensor<40xi64>, %m: tensor<f32>) -> (tensor<70xf32>, tensor<70xf32>, tensor<70xf32>, tensor<40xi64>, tensor<40xi64>, tensor<45xi64>, tensor<39xi64>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %o = stablehlo.constant dense<1> : tensor<i64>
  %n = stablehlo.constant dense<0> : tensor<i64>
  %0 = "stablehlo.reduce_window"(%x, %m) <{window_dimensions = array<i64: 70>, padding = dense<[[69, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<70xf32>, tensor<f32>) -> tensor<70xf32>
  %1 = "stablehlo.reduce_window"(%x, %m) <{window_dimensions = array<i64: 70>, padding = dense<[[0, 69]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.minimum %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<70xf32>, tensor<f32>) -> tensor<70xf32>
  %2 = "stablehlo.reduce_window"(%y, %one) <{window_dimensions = array<i64: 70>, padding = dense<[[70, -1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.multiply %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<70xf32>, tensor<f32>) -> tensor<70xf32>
  %3 = "stablehlo.reduce_window"(%i, %n) <{window_dimensions = array<i64: 40>, padding = dense<[[39, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %r = stablehlo.xor %a, %b : tensor<i64>
    stablehlo.return %r : tensor<i64>
  }) : (tensor<40xi64>, tensor<i64>) -> tensor<40xi64>
  %4 = "stablehlo.reduce_window"(%i, %o) <{window_dimensions = array<i64: 40>, padding = dense<[[0, 39]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %r = stablehlo.or %a, %b : tensor<i64>
    stablehlo.return %r : tensor<i64>
  }) : (tensor<40xi64>, tensor<i64>) -> tensor<40xi64>
  %5 = "stablehlo.reduce_window"(%i, %n) <{window_dimensions = array<i64: 64>, padding = dense<[[65, 3]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %r = stablehlo.add %a, %b : tensor<i64>
    stablehlo.return %r : tensor<i64>
  }) : (tensor<40xi64>, tensor<i64>) -> tensor<45xi64>
  %6 = "stablehlo.reduce_window"(%i, %n) <{window_dimensions = array<i64: 64>, padding = dense<[[-2, 64]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<i64>, %b: tensor<i64>):
    %r = stablehlo.add %a, %b : tensor<i64>
    stablehlo.return %r : tensor<i64>
  }) : (tensor<40xi64>, tensor<i64>) -> tensor<39xi64>
  return %0, %1, %2, %3, %4, %5, %6 : tensor<70xf32>, tensor<70xf32>, tensor<70xf32>, tensor<40xi64>, tensor<40xi64>, tensor<45xi64>, tensor<39xi64>
}
// -----
module {
  func.func public @main(%x: tensor<70xf32>, %y: tensor<70xf32>, %i: tensor<40xi64>, %m: tensor<f32>) -> (tensor<70xf32>, tensor<70xf32>, tensor<70xf32>, tensor<40xi64>, tensor<40xi64>, tensor<45xi64>, tensor<39xi64>) {
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %o = stablehlo.constant dense<1> : tensor<i64>
    %n = stablehlo.constant dense<0> : tensor<i64>
    %0 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %1 = stablehlo.pad %x, %0, low = [0], high = [2], interior = [0] : (tensor<70xf32>, tensor<f32>) -> tensor<72xf32>
    %2 = stablehlo.reshape %1 : (tensor<72xf32>) -> tensor<9x8xf32>
    %3 = stablehlo.reduce(%2 init: %0) applies stablehlo.maximum across dimensions = [1] : (tensor<9x8xf32>, tensor<f32>) -> tensor<9xf32>
    %4 = "stablehlo.reduce_window"(%3, %m) <{window_dimensions = array<i64: 9>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[9, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %69 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %69 : tensor<f32>
    }) : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<9xf32>) -> tensor<9x8xf32>
    %6 = "stablehlo.reduce_window"(%2, %0) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %69 = stablehlo.maximum %arg0, %arg1 : tensor<f32>
      stablehlo.return %69 : tensor<f32>
    }) : (tensor<9x8xf32>, tensor<f32>) -> tensor<9x8xf32>
    %7 = stablehlo.maximum %5, %6 : tensor<9x8xf32>
    %8 = stablehlo.reshape %7 : (tensor<9x8xf32>) -> tensor<72xf32>
    %9 = stablehlo.slice %8 [0:70] : (tensor<72xf32>) -> tensor<70xf32>
    %10 = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %11 = stablehlo.pad %x, %10, low = [0], high = [2], interior = [0] : (tensor<70xf32>, tensor<f32>) -> tensor<72xf32>
    %12 = stablehlo.reshape %11 : (tensor<72xf32>) -> tensor<9x8xf32>
    %13 = stablehlo.reduce(%12 init: %10) applies stablehlo.minimum across dimensions = [1] : (tensor<9x8xf32>, tensor<f32>) -> tensor<9xf32>
    %14 = "stablehlo.reduce_window"(%13, %m) <{window_dimensions = array<i64: 9>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[-1, 9]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %69 = stablehlo.minimum %arg0, %arg1 : tensor<f32>
      stablehlo.return %69 : tensor<f32>
    }) : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [0] : (tensor<9xf32>) -> tensor<9x8xf32>
    %16 = "stablehlo.reduce_window"(%12, %10) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 7]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %69 = stablehlo.minimum %arg0, %arg1 : tensor<f32>
      stablehlo.return %69 : tensor<f32>
    }) : (tensor<9x8xf32>, tensor<f32>) -> tensor<9x8xf32>
    %17 = stablehlo.minimum %15, %16 : tensor<9x8xf32>
    %18 = stablehlo.reshape %17 : (tensor<9x8xf32>) -> tensor<72xf32>
    %19 = stablehlo.slice %18 [0:70] : (tensor<72xf32>) -> tensor<70xf32>
    %20 = stablehlo.pad %y, %one, low = [1], high = [-1], interior = [0] : (tensor<70xf32>, tensor<f32>) -> tensor<70xf32>
    %21 = stablehlo.constant dense<1.0> : tensor<f32>
    %22 = stablehlo.pad %20, %21, low = [0], high = [2], interior = [0] : (tensor<70xf32>, tensor<f32>) -> tensor<72xf32>
    %23 = stablehlo.reshape %22 : (tensor<72xf32>) -> tensor<9x8xf32>
    %24 = stablehlo.reduce(%23 init: %21) applies stablehlo.multiply across dimensions = [1] : (tensor<9x8xf32>, tensor<f32>) -> tensor<9xf32>
    %25 = "stablehlo.reduce_window"(%24, %one) <{window_dimensions = array<i64: 9>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[9, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %69 = stablehlo.multiply %arg0, %arg1 : tensor<f32>
      stablehlo.return %69 : tensor<f32>
    }) : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
    %26 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<9xf32>) -> tensor<9x8xf32>
    %27 = "stablehlo.reduce_window"(%23, %21) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %69 = stablehlo.multiply %arg0, %arg1 : tensor<f32>
      stablehlo.return %69 : tensor<f32>
    }) : (tensor<9x8xf32>, tensor<f32>) -> tensor<9x8xf32>
    %28 = stablehlo.multiply %26, %27 : tensor<9x8xf32>
    %29 = stablehlo.reshape %28 : (tensor<9x8xf32>) -> tensor<72xf32>
    %30 = stablehlo.slice %29 [0:70] : (tensor<72xf32>) -> tensor<70xf32>
    %31 = stablehlo.constant dense<0> : tensor<i64>
    %32 = stablehlo.reshape %i : (tensor<40xi64>) -> tensor<5x8xi64>
    %33 = stablehlo.reduce(%32 init: %31) applies stablehlo.xor across dimensions = [1] : (tensor<5x8xi64>, tensor<i64>) -> tensor<5xi64>
    %34 = "stablehlo.reduce_window"(%33, %n) <{window_dimensions = array<i64: 5>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[5, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.xor %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
    %35 = stablehlo.broadcast_in_dim %34, dims = [0] : (tensor<5xi64>) -> tensor<5x8xi64>
    %36 = "stablehlo.reduce_window"(%32, %31) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.xor %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<5x8xi64>, tensor<i64>) -> tensor<5x8xi64>
    %37 = stablehlo.xor %35, %36 : tensor<5x8xi64>
    %38 = stablehlo.reshape %37 : (tensor<5x8xi64>) -> tensor<40xi64>
    %39 = stablehlo.constant dense<0> : tensor<i64>
    %40 = stablehlo.reshape %i : (tensor<40xi64>) -> tensor<5x8xi64>
    %41 = stablehlo.reduce(%40 init: %39) applies stablehlo.or across dimensions = [1] : (tensor<5x8xi64>, tensor<i64>) -> tensor<5xi64>
    %42 = "stablehlo.reduce_window"(%41, %o) <{window_dimensions = array<i64: 5>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[-1, 5]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.or %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
    %43 = stablehlo.broadcast_in_dim %42, dims = [0] : (tensor<5xi64>) -> tensor<5x8xi64>
    %44 = "stablehlo.reduce_window"(%40, %39) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 7]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.or %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<5x8xi64>, tensor<i64>) -> tensor<5x8xi64>
    %45 = stablehlo.or %43, %44 : tensor<5x8xi64>
    %46 = stablehlo.reshape %45 : (tensor<5x8xi64>) -> tensor<40xi64>
    %47 = stablehlo.pad %i, %n, low = [2], high = [3], interior = [0] : (tensor<40xi64>, tensor<i64>) -> tensor<45xi64>
    %48 = stablehlo.constant dense<0> : tensor<i64>
    %49 = stablehlo.pad %47, %48, low = [0], high = [3], interior = [0] : (tensor<45xi64>, tensor<i64>) -> tensor<48xi64>
    %50 = stablehlo.reshape %49 : (tensor<48xi64>) -> tensor<6x8xi64>
    %51 = stablehlo.reduce(%50 init: %48) applies stablehlo.add across dimensions = [1] : (tensor<6x8xi64>, tensor<i64>) -> tensor<6xi64>
    %52 = "stablehlo.reduce_window"(%51, %n) <{window_dimensions = array<i64: 6>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[6, -1]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<6xi64>, tensor<i64>) -> tensor<6xi64>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0] : (tensor<6xi64>) -> tensor<6x8xi64>
    %54 = "stablehlo.reduce_window"(%50, %48) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<6x8xi64>, tensor<i64>) -> tensor<6x8xi64>
    %55 = stablehlo.add %53, %54 : tensor<6x8xi64>
    %56 = stablehlo.reshape %55 : (tensor<6x8xi64>) -> tensor<48xi64>
    %57 = stablehlo.slice %56 [0:45] : (tensor<48xi64>) -> tensor<45xi64>
    %58 = stablehlo.pad %i, %n, low = [-2], high = [1], interior = [0] : (tensor<40xi64>, tensor<i64>) -> tensor<39xi64>
    %59 = stablehlo.constant dense<0> : tensor<i64>
    %60 = stablehlo.pad %58, %59, low = [0], high = [1], interior = [0] : (tensor<39xi64>, tensor<i64>) -> tensor<40xi64>
    %61 = stablehlo.reshape %60 : (tensor<40xi64>) -> tensor<5x8xi64>
    %62 = stablehlo.reduce(%61 init: %59) applies stablehlo.add across dimensions = [1] : (tensor<5x8xi64>, tensor<i64>) -> tensor<5xi64>
    %63 = "stablehlo.reduce_window"(%62, %n) <{window_dimensions = array<i64: 5>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[-1, 5]]> : tensor<1x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<5xi64>, tensor<i64>) -> tensor<5xi64>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0] : (tensor<5xi64>) -> tensor<5x8xi64>
    %65 = "stablehlo.reduce_window"(%61, %59) <{window_dimensions = array<i64: 1, 8>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[0, 0], [0, 7]]> : tensor<2x2xi64>}> ({
    ^bb0(%arg0: tensor<i64>, %arg1: tensor<i64>):
      %69 = stablehlo.add %arg0, %arg1 : tensor<i64>
      stablehlo.return %69 : tensor<i64>
    }) : (tensor<5x8xi64>, tensor<i64>) -> tensor<5x8xi64>
    %66 = stablehlo.add %64, %65 : tensor<5x8xi64>
    %67 = stablehlo.reshape %66 : (tensor<5x8xi64>) -> tensor<40xi64>
    %68 = stablehlo.slice %67 [0:39] : (tensor<40xi64>) -> tensor<39xi64>
    return %9, %19, %30, %38, %46, %57, %68 : tensor<70xf32>, tensor<70xf32>, tensor<70xf32>, tensor<40xi64>, tensor<40xi64>, tensor<45xi64>, tensor<39xi64>
  }
}
