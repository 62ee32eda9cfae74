// Left as they are: a short one, a sum that begins with 1, one of which that is
// not known, a window that slides, one with steps, one over two axes, one with
// gaps, one by no single op.
func.func @main(%s: tensor<16xf32>, %x: tensor<64xf32>, %u: tensor<f32>, %m: tensor<40x40xf32>) -> (tensor<16xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<32xf32>, tensor<40x40xf32>, tensor<64xf32>, tensor<64xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%s, %z) <{window_dimensions = array<i64: 16>, padding = dense<[[15, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  %1 = "stablehlo.reduce_window"(%x, %one) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = "stablehlo.reduce_window"(%x, %u) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %3 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 33>, padding = dense<[[32, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %4 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 2>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<32xf32>
  %5 = "stablehlo.reduce_window"(%m, %z) <{window_dimensions = array<i64: 40, 40>, padding = dense<[[39, 0], [39, 0]]> : tensor<2x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<40x40xf32>, tensor<f32>) -> tensor<40x40xf32>
  %6 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, window_dilations = array<i64: 2>, padding = dense<[[63, 63]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %7 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %r = stablehlo.subtract %a, %b : tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<16xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<32xf32>, tensor<40x40xf32>, tensor<64xf32>, tensor<64xf32>
}
// -----
module {
  func.func public @main(%s: tensor<16xf32>, %x: tensor<64xf32>, %u: tensor<f32>, %m: tensor<40x40xf32>) -> (tensor<16xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<32xf32>, tensor<40x40xf32>, tensor<64xf32>, tensor<64xf32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%s, %z) <{window_dimensions = array<i64: 16>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[15, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
    %1 = "stablehlo.reduce_window"(%x, %one) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %2 = "stablehlo.reduce_window"(%x, %u) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %3 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 33>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[32, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %4 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 2>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<32xf32>
    %5 = "stablehlo.reduce_window"(%m, %z) <{window_dimensions = array<i64: 40, 40>, window_strides = array<i64: 1, 1>, base_dilations = array<i64: 1, 1>, window_dilations = array<i64: 1, 1>, padding = dense<[[39, 0], [39, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<40x40xf32>, tensor<f32>) -> tensor<40x40xf32>
    %6 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 2>, padding = dense<[[63, 63]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    %7 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 64>, window_strides = array<i64: 1>, base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<[[63, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.subtract %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7 : tensor<16xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<32xf32>, tensor<40x40xf32>, tensor<64xf32>, tensor<64xf32>
  }
}
