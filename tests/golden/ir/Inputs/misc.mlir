module @jit_misc attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4x6xf32>, %arg1: tensor<4x6xf32>, %arg2: tensor<2xi32>) -> (tensor<4xi32> {jax.result_info = "result[0]"}, tensor<4x2xf32> {jax.result_info = "result[1]"}, tensor<2x6xf32> {jax.result_info = "result[2]"}, tensor<2x6xf32> {jax.result_info = "result[3]"}, tensor<1x2xf32> {jax.result_info = "result[4]"}, tensor<4x6xf32> {jax.result_info = "result[5]"}, tensor<7x6xf32> {jax.result_info = "result[6]"}, tensor<8x6xf32> {jax.result_info = "result[7]"}, tensor<6x4xf32> {jax.result_info = "result[8]"}, tensor<4x6xf32> {jax.result_info = "result[9]"}, tensor<4x6xf32> {jax.result_info = "result[10]"}, tensor<5xi32> {jax.result_info = "result[11]"}, tensor<4x6xbf16> {jax.result_info = "result[12]"}, tensor<4x6xi32> {jax.result_info = "result[13]"}, tensor<4x6xf32> {jax.result_info = "result[14]"}, tensor<4x6xf32> {jax.result_info = "result[15]"}, tensor<4x6xf32> {jax.result_info = "result[16]"}, tensor<4x6xf32> {jax.result_info = "result[17]"}, tensor<4x6xf32> {jax.result_info = "result[18]"}, tensor<4x6xf32> {jax.result_info = "result[19]"}, tensor<4x6xi1> {jax.result_info = "result[20]"}, tensor<4x6xf32> {jax.result_info = "result[21]"}, tensor<4x6xf32> {jax.result_info = "result[22]"}, tensor<4x6xf32> {jax.result_info = "result[23]"}, tensor<4x6xf32> {jax.result_info = "result[24]"}, tensor<2xi32> {jax.result_info = "result[25]"}, tensor<2xi32> {jax.result_info = "result[26]"}, tensor<2xi32> {jax.result_info = "result[27]"}, tensor<3x4xf32> {jax.result_info = "result[28]"}, tensor<2xi1> {jax.result_info = "result[29]"}, tensor<3xi8> {jax.result_info = "result[30]"}, tensor<4x6xf32> {jax.result_info = "result[31]"}, tensor<3xf32> {jax.result_info = "result[32]"}, tensor<2xf32> {jax.result_info = "result[33]"}, tensor<0x3xf32> {jax.result_info = "result[34]"}, tensor<4x6xi1> {jax.result_info = "result[35]"}, tensor<4x6xf32> {jax.result_info = "result[36]"}, tensor<4x6xf32> {jax.result_info = "result[37]"}) {
    %cst = stablehlo.constant dense<[[0.000000e+00, 1.000000e+00, 2.000000e+00, 3.000000e+00], [4.000000e+00, 5.000000e+00, 6.000000e+00, 7.000000e+00], [8.000000e+00, 9.000000e+00, 1.000000e+01, 1.100000e+01]]> : tensor<3x4xf32>
    %c = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %c_0 = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi8>
    %0 = call @argmax(%arg0) : (tensor<4x6xf32>) -> tensor<4xi32>
    %1 = stablehlo.slice %arg0 [0:4, 1:3] : (tensor<4x6xf32>) -> tensor<4x2xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.compare LT, %arg2, %2, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_2 = stablehlo.constant dense<4> : tensor<i32>
    %4 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %5 = stablehlo.add %arg2, %4 : tensor<2xi32>
    %6 = stablehlo.select %3, %5, %arg2 : tensor<2xi1>, tensor<2xi32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %8 = "stablehlo.gather"(%arg0, %7) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<2x1xi32>) -> tensor<2x6xf32>
    %9 = call @_take(%arg0, %arg2) : (tensor<4x6xf32>, tensor<2xi32>) -> tensor<2x6xf32>
    %10 = stablehlo.slice %arg2 [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %11 = stablehlo.reshape %10 : (tensor<1xi32>) -> tensor<i32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %12 = stablehlo.compare LT, %11, %c_3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_4 = stablehlo.constant dense<4> : tensor<i32>
    %13 = stablehlo.add %11, %c_4 : tensor<i32>
    %14 = stablehlo.select %12, %13, %11 : tensor<i1>, tensor<i32>
    %c_5 = stablehlo.constant dense<0> : tensor<i32>
    %15 = stablehlo.dynamic_slice %arg0, %14, %c_5, sizes = [1, 2] : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %16 = stablehlo.slice %arg1 [0:1, 0:2] : (tensor<4x6xf32>) -> tensor<1x2xf32>
    %17 = stablehlo.slice %arg2 [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %18 = stablehlo.reshape %17 : (tensor<1xi32>) -> tensor<i32>
    %c_6 = stablehlo.constant dense<0> : tensor<i32>
    %19 = stablehlo.compare LT, %18, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %c_7 = stablehlo.constant dense<4> : tensor<i32>
    %20 = stablehlo.add %18, %c_7 : tensor<i32>
    %21 = stablehlo.select %19, %20, %18 : tensor<i1>, tensor<i32>
    %c_8 = stablehlo.constant dense<0> : tensor<i32>
    %22 = stablehlo.dynamic_update_slice %arg0, %16, %21, %c_8 : (tensor<4x6xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    %c_9 = stablehlo.constant dense<0> : tensor<i32>
    %23 = call @_pad(%arg0, %c_9) : (tensor<4x6xf32>, tensor<i32>) -> tensor<7x6xf32>
    %24 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %25 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %26 = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %27 = call @_where_0(%26, %arg0, %arg1) : (tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
    %c_10 = stablehlo.constant dense<0> : tensor<i32>
    %c_11 = stablehlo.constant dense<1> : tensor<i32>
    %28 = call @clip(%arg0, %c_10, %c_11) : (tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x6xf32>
    %29 = stablehlo.iota dim = 0 : tensor<5xi32>
    %30 = stablehlo.convert %arg0 : (tensor<4x6xf32>) -> tensor<4x6xbf16>
    %31 = stablehlo.bitcast_convert %arg0 : (tensor<4x6xf32>) -> tensor<4x6xi32>
    %32 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<4x6xf32>
    %33 = chlo.erf %arg0 : tensor<4x6xf32> -> tensor<4x6xf32>
    %34 = stablehlo.tan %arg0 : tensor<4x6xf32>
    %35 = stablehlo.multiply %arg0, %arg0 : tensor<4x6xf32>
    %36 = stablehlo.multiply %35, %arg0 : tensor<4x6xf32>
    %cst_12 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
    %37 = stablehlo.broadcast_in_dim %cst_12, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %38 = stablehlo.multiply %37, %36 : tensor<4x6xf32>
    %39 = stablehlo.add %arg0, %38 : tensor<4x6xf32>
    %cst_13 = stablehlo.constant dense<0.797884583> : tensor<f32>
    %40 = stablehlo.broadcast_in_dim %cst_13, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %41 = stablehlo.multiply %40, %39 : tensor<4x6xf32>
    %42 = stablehlo.tanh %41 : tensor<4x6xf32>
    %cst_14 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %43 = stablehlo.broadcast_in_dim %cst_14, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %44 = stablehlo.add %43, %42 : tensor<4x6xf32>
    %cst_15 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %45 = stablehlo.broadcast_in_dim %cst_15, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %46 = stablehlo.multiply %45, %44 : tensor<4x6xf32>
    %47 = stablehlo.multiply %arg0, %46 : tensor<4x6xf32>
    %48 = stablehlo.cbrt %arg0 : tensor<4x6xf32>
    %cst_16 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %49 = stablehlo.broadcast_in_dim %cst_16, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %50 = stablehlo.power %arg0, %49 : tensor<4x6xf32>
    %51 = stablehlo.is_finite %arg0 : (tensor<4x6xf32>) -> tensor<4x6xi1>
    %52 = call @cumsum(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %53 = stablehlo.sign %arg0 : tensor<4x6xf32>
    %54 = call @round(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %55 = stablehlo.round_nearest_afz %arg0 : tensor<4x6xf32>
    %c_17 = stablehlo.constant dense<1> : tensor<i32>
    %56 = stablehlo.broadcast_in_dim %c_17, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %57 = stablehlo.shift_right_arithmetic %arg2, %56 : tensor<2xi32>
    %58 = stablehlo.popcnt %arg2 : tensor<2xi32>
    %59 = stablehlo.count_leading_zeros %arg2 : tensor<2xi32>
    %60 = stablehlo.slice %arg0 [0:3, 0:4] : (tensor<4x6xf32>) -> tensor<3x4xf32>
    %61 = stablehlo.add %cst, %60 : tensor<3x4xf32>
    %62 = stablehlo.optimization_barrier %arg0 : tensor<4x6xf32>
    %cst_18 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %63 = stablehlo.broadcast_in_dim %cst_18, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %cst_19 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %64 = stablehlo.broadcast_in_dim %cst_19, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %cst_20 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %65 = stablehlo.broadcast_in_dim %cst_20, dims = [] : (tensor<f32>) -> tensor<0x3xf32>
    %66 = stablehlo.compare GT, %arg0, %arg1, FLOAT : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xi1>
    %67 = stablehlo.not %66 : tensor<4x6xi1>
    %68 = stablehlo.remainder %arg0, %arg1 : tensor<4x6xf32>
    %69 = stablehlo.atan2 %arg0, %arg1 : tensor<4x6xf32>
    return %0, %1, %8, %9, %15, %22, %23, %24, %25, %27, %28, %29, %30, %31, %32, %33, %34, %47, %48, %50, %51, %52, %53, %54, %55, %57, %58, %59, %61, %c, %c_0, %62, %63, %64, %65, %67, %68, %69 : tensor<4xi32>, tensor<4x2xf32>, tensor<2x6xf32>, tensor<2x6xf32>, tensor<1x2xf32>, tensor<4x6xf32>, tensor<7x6xf32>, tensor<8x6xf32>, tensor<6x4xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<5xi32>, tensor<4x6xbf16>, tensor<4x6xi32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<3x4xf32>, tensor<2xi1>, tensor<3xi8>, tensor<4x6xf32>, tensor<3xf32>, tensor<2xf32>, tensor<0x3xf32>, tensor<4x6xi1>, tensor<4x6xf32>, tensor<4x6xf32>
  }
  func.func private @argmax(%arg0: tensor<4x6xf32>) -> tensor<4xi32> {
    %0 = stablehlo.iota dim = 1 : tensor<4x6xi32>
    %cst = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.reduce(%arg0 init: %cst), (%0 init: %c) across dimensions = [1] : (tensor<4x6xf32>, tensor<4x6xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>)  {
      %2 = stablehlo.compare GT, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %3 = stablehlo.compare NE, %arg1, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %4 = stablehlo.or %2, %3 : tensor<i1>
      %5 = stablehlo.compare EQ, %arg1, %arg3, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %6 = stablehlo.compare LT, %arg2, %arg4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %7 = stablehlo.and %5, %6 : tensor<i1>
      %8 = stablehlo.or %4, %7 : tensor<i1>
      %9 = stablehlo.select %4, %arg1, %arg3 : tensor<i1>, tensor<f32>
      %10 = stablehlo.select %8, %arg2, %arg4 : tensor<i1>, tensor<i32>
      stablehlo.return %9, %10 : tensor<f32>, tensor<i32>
    }
    return %1#1 : tensor<4xi32>
  }
  func.func private @_take(%arg0: tensor<4x6xf32>, %arg1: tensor<2xi32>) -> tensor<2x6xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %1 = stablehlo.compare LT, %arg1, %0, SIGNED : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %2 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i32>) -> tensor<2xi32>
    %3 = stablehlo.add %arg1, %2 : tensor<2xi32>
    %4 = call @_where(%1, %3, %arg1) : (tensor<2xi1>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<2xi32>) -> tensor<2x1xi32>
    %c_1 = stablehlo.constant dense<3> : tensor<1xi32>
    %c_2 = stablehlo.constant dense<0> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<2x1xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x1xi1>
    %8 = stablehlo.broadcast_in_dim %c_1, dims = [1] : (tensor<1xi32>) -> tensor<1x1xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<1x1xi32>) -> tensor<2x1xi32>
    %10 = stablehlo.compare LE, %5, %9, SIGNED : (tensor<2x1xi32>, tensor<2x1xi32>) -> tensor<2x1xi1>
    %11 = stablehlo.and %7, %10 : tensor<2x1xi1>
    %c_3 = stablehlo.constant dense<true> : tensor<i1>
    %12 = stablehlo.reduce(%11 init: %c_3) applies stablehlo.and across dimensions = [1] : (tensor<2x1xi1>, tensor<i1>) -> tensor<2xi1>
    %13 = "stablehlo.gather"(%arg0, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 6>}> : (tensor<4x6xf32>, tensor<2x1xi32>) -> tensor<2x6xf32>
    %14 = stablehlo.broadcast_in_dim %12, dims = [0] : (tensor<2xi1>) -> tensor<2x6xi1>
    %cst = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x6xf32>
    %16 = stablehlo.select %14, %13, %15 : tensor<2x6xi1>, tensor<2x6xf32>
    return %16 : tensor<2x6xf32>
  }
  func.func private @_where(%arg0: tensor<2xi1>, %arg1: tensor<2xi32>, %arg2: tensor<2xi32>) -> tensor<2xi32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<2xi1>, tensor<2xi32>
    return %0 : tensor<2xi32>
  }
  func.func private @_pad(%arg0: tensor<4x6xf32>, %arg1: tensor<i32>) -> tensor<7x6xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.pad %arg0, %0, low = [1, 0], high = [2, 0], interior = [0, 0] : (tensor<4x6xf32>, tensor<f32>) -> tensor<7x6xf32>
    return %1 : tensor<7x6xf32>
  }
  func.func private @_where_0(%arg0: tensor<4x6xi1>, %arg1: tensor<4x6xf32>, %arg2: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.select %arg0, %arg1, %arg2 : tensor<4x6xi1>, tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
  func.func private @clip(%arg0: tensor<4x6xf32>, %arg1: tensor<i32>, %arg2: tensor<i32>) -> tensor<4x6xf32> {
    %0 = stablehlo.convert %arg1 : (tensor<i32>) -> tensor<f32>
    %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %2 = stablehlo.maximum %1, %arg0 : tensor<4x6xf32>
    %3 = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<f32>
    %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %5 = stablehlo.minimum %4, %2 : tensor<4x6xf32>
    return %5 : tensor<4x6xf32>
  }
  func.func private @cumsum(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = call @cumsum_1(%arg0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
  func.func private @cumsum_1(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<f32>
    %1 = "stablehlo.reduce_window"(%arg0, %0) <{base_dilations = array<i64: 1, 1>, padding = dense<[[3, 0], [0, 0]]> : tensor<2x2xi64>, window_dilations = array<i64: 1, 1>, window_dimensions = array<i64: 4, 1>, window_strides = array<i64: 1, 1>}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %2 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
    return %1 : tensor<4x6xf32>
  }
  func.func private @round(%arg0: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = stablehlo.round_nearest_even %arg0 : tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  }
}
