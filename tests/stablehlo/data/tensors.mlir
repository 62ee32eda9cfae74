// Ops with attributes.
module @tensors attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%x: tensor<2x3x4xf32> {tf.aliasing_output = 1 : i32}, %k: tensor<1x2x3x3xf32> {mhlo.sharding = "{replicated}"}, %image: tensor<1x2x8x8xf32>, %at: tensor<2x1xi32>, %i: tensor<i32>, %m: tensor<3x3xf32> {jax.buffer_donor = true}, %state: tensor<2xui64>) -> (tensor<2x4x3xf32> {jax.result_info = "result[0]"}, tensor<2x3x4xf32>, tensor<2x2x2xf32>, tensor<1x1x4x8xf32>, tensor<3x3xf32>, tensor<4xf32>, tensor<2xui64>, tensor<3xui32>, tensor<2x3x3xcomplex<f32>>, tensor<3x3xf32>) {
    %0 = stablehlo.transpose %x, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
    %1 = stablehlo.reverse %x, dims = [1] : tensor<2x3x4xf32>
    %2 = stablehlo.slice %1 [0:2, 0:3:2, 1:3] : (tensor<2x3x4xf32>) -> tensor<2x2x2xf32>
    %3 = stablehlo.reshape %2 : (tensor<2x2x2xf32>) -> tensor<8xf32>
    %4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.pad %3, %4, low = [1], high = [2], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<18xf32>
    %6 = stablehlo.dynamic_slice %5, %i, sizes = [4] : (tensor<18xf32>, tensor<i32>) -> tensor<4xf32>
    %7 = stablehlo.broadcast_in_dim %6, dims = [2] : (tensor<4xf32>) -> tensor<2x3x4xf32>
    %8 = stablehlo.concatenate %7, %1, dim = 0 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<4x3x4xf32>
    %9 = stablehlo.slice %8 [1:3, 0:3, 0:4] : (tensor<4x3x4xf32>) -> tensor<2x3x4xf32>
    %10 = stablehlo.constant dense<0> : tensor<i32>
    %11 = stablehlo.dynamic_update_slice %9, %x, %10, %i, %10 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3x4xf32>
    %12 = stablehlo.dot_general %11, %0, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x4x3xf32>) -> tensor<2x3x3xf32>
    %13 = stablehlo.convolution(%image, %k) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [2, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x8x8xf32>, tensor<1x2x3x3xf32>) -> tensor<1x1x4x8xf32>
    %14 = "stablehlo.gather"(%x, %at) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 2, 1, 2>}> : (tensor<2x3x4xf32>, tensor<2x1xi32>) -> tensor<2x2x2xf32>
    %15 = stablehlo.iota dim = 1 : tensor<3x3xi32>
    %16 = stablehlo.convert %15 : (tensor<3x3xi32>) -> tensor<3x3xf32>
    %17 = stablehlo.add %m, %16 : tensor<3x3xf32>
    %18 = stablehlo.cholesky %17, lower = true : tensor<3x3xf32>
    %19 = "stablehlo.triangular_solve"(%18, %m) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %20, %21 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<3xui32>)
    %22 = stablehlo.fft %x, type = RFFT, length = [4] : (tensor<2x3x4xf32>) -> tensor<2x3x3xcomplex<f32>>
    %23 = stablehlo.optimization_barrier %12 : tensor<2x3x3xf32>
    %24 = stablehlo.slice %23 [0:1, 0:3, 0:3] : (tensor<2x3x3xf32>) -> tensor<1x3x3xf32>
    %25 = stablehlo.reshape %24 : (tensor<1x3x3xf32>) -> tensor<3x3xf32>
    %26 = call @halve(%25) : (tensor<3x3xf32>) -> tensor<3x3xf32>
    return %0, %11, %14, %13, %19, %6, %20, %21, %22, %26 : tensor<2x4x3xf32>, tensor<2x3x4xf32>, tensor<2x2x2xf32>, tensor<1x1x4x8xf32>, tensor<3x3xf32>, tensor<4xf32>, tensor<2xui64>, tensor<3xui32>, tensor<2x3x3xcomplex<f32>>, tensor<3x3xf32>
  }
  func.func private @halve(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
    %0 = stablehlo.constant dense<[[0.5, 0.25, 1.0], [1.5, -2.0, 4.0], [0.125, 3.0, 8.0]]> : tensor<3x3xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<3x3xf32>
    return %1 : tensor<3x3xf32>
  }
}
