// Every op of the tables at least once, as StableHLO and Pestle write it.
module @every_op {
  func.func public @main(%arg0: tensor<2x3xf32> {pestle.name = "x"}, %arg1: tensor<2x3xf32>, %p: tensor<i1> {pestle.name = "choose", jax.arg_info = "p"}, %i: tensor<i32>) -> (tensor<2x3xf32> {pestle.name = "y"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<2x3xf32>
    %1 = stablehlo.select %p, %0, %arg1 : tensor<i1>, tensor<2x3xf32>
    %2 = "pestle.fma"(%0, %1, %arg0) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = "pestle.is_nan"(%2) : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %4 = stablehlo.is_finite %2 : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %5 = stablehlo.and %3, %4 : tensor<2x3xi1>
    %6 = chlo.erf %2 : tensor<2x3xf32> -> tensor<2x3xf32>
    %7 = chlo.square %6 : tensor<2x3xf32> -> tensor<2x3xf32>
    %lo = stablehlo.constant dense<-1.5> : tensor<f32>
    %hi = stablehlo.constant dense<0x7F800000> : tensor<f32>
    %8 = stablehlo.clamp %lo, %7, %hi : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %9 = "pestle.trunc"(%8) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %10 = "pestle.softmax"(%9) <{dimensions = array<i64: 1>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %11 = "pestle.log_softmax"(%10) {dimensions = dense<[0, 1]> : tensor<2xi64>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %scale = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
    %12 = "pestle.layer_norm"(%11, %scale, %scale) <{dimensions = [1], epsilon = 1.0e-5 : f64}> : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %13 = "pestle.rms_norm"(%12, %scale) <{dimensions = array<i64: 1>, epsilon = 0x3EE4F8B588E368F1 : f64}> : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    %14 = "pestle.gelu"(%13) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %15 = "pestle.gelu"(%14) <{approximate = true}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %16 = "pestle.silu"(%15) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %17 = "pestle.hard_sigmoid"(%16) <{alpha = 0.2 : f64, beta = 0.5 : f64}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %qs = stablehlo.constant dense<0.1> : tensor<f32>
    %qz = stablehlo.constant dense<3> : tensor<ui8>
    %18 = "pestle.quantize_linear"(%17, %qs, %qz) : (tensor<2x3xf32>, tensor<f32>, tensor<ui8>) -> tensor<2x3xui8>
    %19 = "pestle.dequantize_linear"(%18, %qs, %qz) : (tensor<2x3xui8>, tensor<f32>, tensor<ui8>) -> tensor<2x3xf32>
    %20 = "pestle.fusion"(%19, %2) <{label = "add_mul"}> ({
    ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>):
      %s = stablehlo.multiply %a, %b : tensor<2x3xf32>
      stablehlo.return %s : tensor<2x3xf32>
    }) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %21 = stablehlo.slice %20 [0:2:2, 0:3] : (tensor<2x3xf32>) -> tensor<1x3xf32>
    %22 = stablehlo.reverse %20, dims = [0, 1] : tensor<2x3xf32>
    %23 = stablehlo.pad %22, %lo, low = [1, -1], high = [0, 2], interior = [1, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<4x4xf32>
    %24 = stablehlo.concatenate %21, %22, dim = 0 : (tensor<1x3xf32>, tensor<2x3xf32>) -> tensor<3x3xf32>
    %25 = stablehlo.dynamic_slice %24, %i, %i, sizes = [2, 3] : (tensor<3x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    %26 = stablehlo.dynamic_update_slice %24, %21, %i, %i : (tensor<3x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<3x3xf32>
    %27 = stablehlo.iota dim = 1 : tensor<2x3xui4>
    %28 = stablehlo.convert %27 : (tensor<2x3xui4>) -> tensor<2x3xf8E4M3FN>
    %29 = stablehlo.bitcast_convert %28 : (tensor<2x3xf8E4M3FN>) -> tensor<2x3xi8>
    %30 = stablehlo.reshape %29 : (tensor<2x3xi8>) -> tensor<3x2xi8>
    %31 = stablehlo.transpose %30, dims = [1, 0] : (tensor<3x2xi8>) -> tensor<2x3xi8>
    %32 = stablehlo.dot_general %30, %31, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<3x2xi8>, tensor<2x3xi8>) -> tensor<3x3xi32>
    %33 = stablehlo.dot_general %22, %22, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
    %34:2 = stablehlo.optimization_barrier %33, %32 : tensor<2xf32>, tensor<3x3xi32>
    %35 = "stablehlo.if"(%p) ({
      stablehlo.return %25 : tensor<2x3xf32>
    }, {
      %t = stablehlo.negate %25 : tensor<2x3xf32>
      stablehlo.return %t : tensor<2x3xf32>
    }) : (tensor<i1>) -> tensor<2x3xf32>
    %36 = stablehlo.reduce(%35 init: %lo) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<f32>
    %37 = stablehlo.broadcast_in_dim %36, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
    %38 = stablehlo.compare GE, %37, %35 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %39 = chlo.erfc %2 : tensor<2x3xf32> -> tensor<2x3xf32>
    %40 = "chlo.erf_inv"(%39) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %41 = "pestle.adaptive_average_pool"(%40) <{dimensions = array<i64: 1>, output_sizes = array<i64: 2>}> : (tensor<2x3xf32>) -> tensor<2x2xf32>
    %42 = "pestle.adaptive_max_pool"(%41) <{dimensions = array<i64: 0, 1>, output_sizes = array<i64: 1, 5>}> : (tensor<2x2xf32>) -> tensor<1x5xf32>
    return %35 : tensor<2x3xf32>
  }
  func.func @dynamic(%arg0: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}
