// Sums that each read a result of its own of one op are one kernel, through reshapes too;
// one of another shape is not.
func.func @main(%x: tensor<32x8xf32>, %s: tensor<8xf32>, %c: tensor<32x8xf32>) -> (tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0:3 = "pestle.norm_grad"(%x, %s, %c) <{dimension = 1 : i64, epsilon = 0.1 : f64, centred = true, blocks = 2 : i64}> : (tensor<32x8xf32>, tensor<8xf32>, tensor<32x8xf32>) -> (tensor<32x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  %1 = stablehlo.reduce(%0#1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.reshape %1 : (tensor<8xf32>) -> tensor<1x8xf32>
  %3 = stablehlo.reduce(%0#2 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
  %4 = stablehlo.reduce(%0#0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<32x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %2, %3, %4 : tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<32x8xf32>, %s: tensor<8xf32>, %c: tensor<32x8xf32>) -> (tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0:3 = "pestle.fusion"(%x, %s, %c) <{label = "norm_grad"}> ({
    ^bb0(%x_0: tensor<32x8xf32>, %s_1: tensor<8xf32>, %c_2: tensor<32x8xf32>):
      %3 = stablehlo.broadcast_in_dim %s_1, dims = [1] : (tensor<8xf32>) -> tensor<32x8xf32>
      %4 = stablehlo.constant dense<0.0> : tensor<f32>
      %5 = stablehlo.reduce(%x_0 init: %4) applies stablehlo.add across dimensions = [1] : (tensor<32x8xf32>, tensor<f32>) -> tensor<32xf32>
      %6 = stablehlo.constant dense<0.125> : tensor<32xf32>
      %7 = stablehlo.multiply %5, %6 : tensor<32xf32>
      %8 = stablehlo.broadcast_in_dim %7, dims = [0] : (tensor<32xf32>) -> tensor<32x8xf32>
      %9 = stablehlo.subtract %x_0, %8 : tensor<32x8xf32>
      %10 = stablehlo.multiply %9, %9 : tensor<32x8xf32>
      %11 = stablehlo.constant dense<0.0> : tensor<f32>
      %12 = stablehlo.reduce(%10 init: %11) applies stablehlo.add across dimensions = [1] : (tensor<32x8xf32>, tensor<f32>) -> tensor<32xf32>
      %13 = stablehlo.constant dense<0.125> : tensor<32xf32>
      %14 = stablehlo.multiply %12, %13 : tensor<32xf32>
      %15 = stablehlo.constant dense<0.1> : tensor<32xf32>
      %16 = stablehlo.add %14, %15 : tensor<32xf32>
      %17 = stablehlo.rsqrt %16 : tensor<32xf32>
      %18 = stablehlo.broadcast_in_dim %17, dims = [0] : (tensor<32xf32>) -> tensor<32x8xf32>
      %19 = stablehlo.multiply %9, %18 : tensor<32x8xf32>
      %20 = stablehlo.multiply %c_2, %3 : tensor<32x8xf32>
      %21 = stablehlo.multiply %19, %20 : tensor<32x8xf32>
      %22 = stablehlo.constant dense<0.0> : tensor<f32>
      %23 = stablehlo.reduce(%21 init: %22) applies stablehlo.add across dimensions = [1] : (tensor<32x8xf32>, tensor<f32>) -> tensor<32xf32>
      %24 = stablehlo.constant dense<0.125> : tensor<32xf32>
      %25 = stablehlo.multiply %23, %24 : tensor<32xf32>
      %26 = stablehlo.broadcast_in_dim %25, dims = [0] : (tensor<32xf32>) -> tensor<32x8xf32>
      %27 = stablehlo.multiply %19, %26 : tensor<32x8xf32>
      %28 = stablehlo.subtract %20, %27 : tensor<32x8xf32>
      %29 = stablehlo.constant dense<0.0> : tensor<f32>
      %30 = stablehlo.reduce(%20 init: %29) applies stablehlo.add across dimensions = [1] : (tensor<32x8xf32>, tensor<f32>) -> tensor<32xf32>
      %31 = stablehlo.constant dense<0.125> : tensor<32xf32>
      %32 = stablehlo.multiply %30, %31 : tensor<32xf32>
      %33 = stablehlo.broadcast_in_dim %32, dims = [0] : (tensor<32xf32>) -> tensor<32x8xf32>
      %34 = stablehlo.subtract %28, %33 : tensor<32x8xf32>
      %35 = stablehlo.multiply %34, %18 : tensor<32x8xf32>
      %36 = stablehlo.multiply %c_2, %19 : tensor<32x8xf32>
      %37 = stablehlo.reshape %36 : (tensor<32x8xf32>) -> tensor<2x16x8xf32>
      %38 = stablehlo.constant dense<0.0> : tensor<f32>
      %39 = stablehlo.reduce(%37 init: %38) applies stablehlo.add across dimensions = [1] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<2x8xf32>
      %40 = stablehlo.reshape %c_2 : (tensor<32x8xf32>) -> tensor<2x16x8xf32>
      %41 = stablehlo.constant dense<0.0> : tensor<f32>
      %42 = stablehlo.reduce(%40 init: %41) applies stablehlo.add across dimensions = [1] : (tensor<2x16x8xf32>, tensor<f32>) -> tensor<2x8xf32>
      stablehlo.return %35, %39, %42 : tensor<32x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
    }) : (tensor<32x8xf32>, tensor<8xf32>, tensor<32x8xf32>) -> (tensor<32x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
    %1:2 = "pestle.fusion"(%0#1, %0#2) <{label = "reduce_reduce"}> ({
    ^bb0(%arg0: tensor<2x8xf32>, %arg1: tensor<2x8xf32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %3 = stablehlo.reduce(%arg0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
      %4 = stablehlo.reshape %3 : (tensor<8xf32>) -> tensor<1x8xf32>
      %5 = stablehlo.reduce(%arg1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x8xf32>, tensor<f32>) -> tensor<8xf32>
      stablehlo.return %4, %5 : tensor<1x8xf32>, tensor<8xf32>
    }) : (tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<1x8xf32>, tensor<8xf32>)
    %2 = "pestle.fusion"(%0#0) <{label = "reduce"}> ({
    ^bb0(%arg0: tensor<32x8xf32>):
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %3 = stablehlo.reduce(%arg0 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<32x8xf32>, tensor<f32>) -> tensor<8xf32>
      stablehlo.return %3 : tensor<8xf32>
    }) : (tensor<32x8xf32>) -> tensor<8xf32>
    return %1#0, %1#1, %2 : tensor<1x8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
