module {
  func.func @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x4xf32>, %arg2: tensor<3x4xcomplex<f32>>, %arg3: tensor<3x4xi32>, %arg4: tensor<3x4xi32>, %arg5: tensor<3x4xi1>, %arg6: tensor<f32>, %arg7: tensor<i32>, %arg8: tensor<1x8x8x2xf32>, %arg9: tensor<3x3x2x4xf32>, %arg10: tensor<2xf32>, %arg11: tensor<2x3x3xf32>, %arg12: tensor<2x1xi32>, %arg13: tensor<2x4xf32>, %arg14: tensor<2xui64>, %arg15: tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<2xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<4x3xf32>, tensor<3x4xf32>, tensor<2x2xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x3xf32>, tensor<1x4x8x4xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xui64>, tensor<5xui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<ui32>, tensor<ui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<5x4xf32>, tensor<2x4xf32>, tensor<1x4x8x4xf32>, tensor<3x4xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<4xf32>, tensor<3x2xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) {
    %c = stablehlo.constant dense<[3, 4]> : tensor<2xi64>
    %c_0 = stablehlo.constant dense<[2, 6]> : tensor<2xi64>
    %c_1 = stablehlo.constant dense<[1, 0]> : tensor<2xi64>
    %c_2 = stablehlo.constant dense<0> : tensor<2xi64>
    %c_3 = stablehlo.constant dense<1> : tensor<2xi64>
    %c_4 = stablehlo.constant dense<1> : tensor<2x2xi64>
    %c_5 = stablehlo.constant dense<[1, 4]> : tensor<2xi64>
    %c_6 = stablehlo.constant dense<3> : tensor<i32>
    %c_7 = stablehlo.constant dense<5> : tensor<i32>
    %c_8 = stablehlo.constant dense<1> : tensor<i32>
    %c_9 = stablehlo.constant dense<true> : tensor<i1>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %cst_10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c_11 = stablehlo.constant dense<[2, 0]> : tensor<2xi32>
    %cst_12 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
    %cst_13 = stablehlo.constant dense<[[5.000000e-01, -1.500000e+00]]> : tensor<1x2xf32>
    %cst_14 = stablehlo.constant dense<[[[4.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 3.000000e+00, 0.000000e+00], [5.000000e-01, 2.500000e-01, 2.000000e+00]], [[4.000000e+00, 1.000000e+00, 5.000000e-01], [1.000000e+00, 3.000000e+00, 2.500000e-01], [5.000000e-01, 2.500000e-01, 2.000000e+00]]]> : tensor<2x3x3xf32>
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.abs %arg0 : tensor<3x4xf32>
    %2 = stablehlo.cbrt %arg0 : tensor<3x4xf32>
    %3 = stablehlo.ceil %arg0 : tensor<3x4xf32>
    %4 = stablehlo.cosine %arg0 : tensor<3x4xf32>
    %5 = stablehlo.exponential %arg0 : tensor<3x4xf32>
    %6 = stablehlo.exponential_minus_one %arg0 : tensor<3x4xf32>
    %7 = stablehlo.floor %arg0 : tensor<3x4xf32>
    %8 = stablehlo.log %arg0 : tensor<3x4xf32>
    %9 = stablehlo.log_plus_one %arg0 : tensor<3x4xf32>
    %10 = stablehlo.logistic %arg0 : tensor<3x4xf32>
    %11 = stablehlo.negate %arg0 : tensor<3x4xf32>
    %12 = stablehlo.round_nearest_afz %arg0 : tensor<3x4xf32>
    %13 = stablehlo.round_nearest_even %arg0 : tensor<3x4xf32>
    %14 = stablehlo.rsqrt %arg0 : tensor<3x4xf32>
    %15 = stablehlo.sign %arg0 : tensor<3x4xf32>
    %16 = stablehlo.sine %arg0 : tensor<3x4xf32>
    %17 = stablehlo.sqrt %arg0 : tensor<3x4xf32>
    %18 = stablehlo.tan %arg0 : tensor<3x4xf32>
    %19 = stablehlo.tanh %arg0 : tensor<3x4xf32>
    %20 = stablehlo.is_finite %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi1>
    %21 = stablehlo.count_leading_zeros %arg3 : tensor<3x4xi32>
    %22 = stablehlo.not %arg3 : tensor<3x4xi32>
    %23 = stablehlo.popcnt %arg3 : tensor<3x4xi32>
    %24 = stablehlo.real %arg2 : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
    %25 = stablehlo.imag %arg2 : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
    %26 = stablehlo.add %arg0, %arg1 : tensor<3x4xf32>
    %27 = stablehlo.atan2 %arg0, %arg1 : tensor<3x4xf32>
    %28 = stablehlo.divide %arg0, %arg1 : tensor<3x4xf32>
    %29 = stablehlo.maximum %arg0, %arg1 : tensor<3x4xf32>
    %30 = stablehlo.minimum %arg0, %arg1 : tensor<3x4xf32>
    %31 = stablehlo.multiply %arg0, %arg1 : tensor<3x4xf32>
    %32 = stablehlo.power %arg0, %arg1 : tensor<3x4xf32>
    %33 = stablehlo.remainder %arg0, %arg1 : tensor<3x4xf32>
    %34 = stablehlo.subtract %arg0, %arg1 : tensor<3x4xf32>
    %35 = stablehlo.and %arg3, %arg4 : tensor<3x4xi32>
    %36 = stablehlo.or %arg3, %arg4 : tensor<3x4xi32>
    %37 = stablehlo.xor %arg3, %arg4 : tensor<3x4xi32>
    %38 = stablehlo.shift_left %arg3, %arg4 : tensor<3x4xi32>
    %39 = stablehlo.shift_right_arithmetic %arg3, %arg4 : tensor<3x4xi32>
    %40 = stablehlo.shift_right_logical %arg3, %arg4 : tensor<3x4xi32>
    %41 = stablehlo.complex %arg0, %arg1 : tensor<3x4xcomplex<f32>>
    %42 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %43 = stablehlo.compare GE, %arg0, %arg1, TOTALORDER : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %44 = stablehlo.select %arg5, %arg0, %arg1 : tensor<3x4xi1>, tensor<3x4xf32>
    %45 = stablehlo.clamp %arg6, %arg0, %arg1 : (tensor<f32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %46 = stablehlo.convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %47 = stablehlo.bitcast_convert %arg0 : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %48 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<3x4xf32>
    %cst_15 = stablehlo.constant dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>
    %49 = stablehlo.iota dim = 1 : tensor<3x4xf32>
    %50 = stablehlo.broadcast_in_dim %arg15, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>
    %51 = stablehlo.reshape %arg0 : (tensor<3x4xf32>) -> tensor<2x6xf32>
    %52 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %53 = stablehlo.reverse %arg0, dims = [1] : tensor<3x4xf32>
    %54 = stablehlo.slice %arg0 [1:3, 0:4:2] : (tensor<3x4xf32>) -> tensor<2x2xf32>
    %55 = stablehlo.pad %arg0, %arg6, low = [1, 0], high = [0, -1], interior = [0, 1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x6xf32>
    %56 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
    %57 = stablehlo.dynamic_slice %arg0, %arg7, %arg7, sizes = [2, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %58 = stablehlo.dynamic_update_slice %arg0, %arg13, %arg7, %arg7 : (tensor<3x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %59 = "stablehlo.gather"(%arg0, %arg12) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
    %60 = "stablehlo.scatter"(%arg0, %arg12, %arg13) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.add %arg16, %arg17 : tensor<f32>
      stablehlo.return %107 : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %61 = stablehlo.reduce(%arg0 init: %arg6) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %62 = stablehlo.reduce(%arg0 init: %arg6) across dimensions = [0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
     reducer(%arg16: tensor<f32>, %arg17: tensor<f32>)  {
      %107 = stablehlo.multiply %arg16, %arg17 : tensor<f32>
      %108 = stablehlo.negate %107 : tensor<f32>
      stablehlo.return %108 : tensor<f32>
    }
    %63 = "stablehlo.reduce_window"(%arg0, %arg6) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.add %arg16, %arg17 : tensor<f32>
      stablehlo.return %107 : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x3xf32>
    %64 = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.multiply %arg16, %arg17 : tensor<f32>
      %108 = stablehlo.negate %107 : tensor<f32>
      stablehlo.return %108 : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %65 = "stablehlo.select_and_scatter"(%arg0, %cst_13, %arg6) <{window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.compare GE, %arg16, %arg17 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %107 : tensor<i1>
    }, {
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.add %arg16, %arg17 : tensor<f32>
      stablehlo.return %107 : tensor<f32>
    }) : (tensor<3x4xf32>, tensor<1x2xf32>, tensor<f32>) -> tensor<3x4xf32>
    %66:2 = "stablehlo.sort"(%arg0, %arg3) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>, %arg18: tensor<i32>, %arg19: tensor<i32>):
      %107 = stablehlo.compare LT, %arg16, %arg17 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %107 : tensor<i1>
    }) : (tensor<3x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
    %67 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1], precision = [DEFAULT, HIGHEST] : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
    %68 = stablehlo.convolution(%arg8, %arg9) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>
    %69 = stablehlo.cholesky %cst_14, lower = true : tensor<2x3x3xf32>
    %70 = "stablehlo.triangular_solve"(%cst_14, %arg11) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %71 = stablehlo.fft %arg2, type = FFT, length = [4] : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xcomplex<f32>>
    %72 = "stablehlo.batch_norm_inference"(%arg0, %arg15, %arg15, %arg15, %arg15) <{epsilon = 9.000000e+00 : f32, feature_index = 1 : i64}> : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %output, %batch_mean, %batch_var = "stablehlo.batch_norm_training"(%arg0, %arg15, %arg15) <{epsilon = 1.000000e-01 : f32, feature_index = 1 : i64}> : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
    %grad_operand, %grad_scale, %grad_offset = "stablehlo.batch_norm_grad"(%arg0, %arg15, %arg15, %cst_12, %arg1) <{epsilon = 1.000000e-01 : f32, feature_index = 1 : i64}> : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
    %output_state, %output_16 = stablehlo.rng_bit_generator %arg14, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %73 = stablehlo.rng %cst, %cst_10, %c, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>
    %74:2 = stablehlo.optimization_barrier %arg0, %arg3 : tensor<3x4xf32>, tensor<3x4xi32>
    %75 = "stablehlo.if"(%c_9) ({
      stablehlo.return %arg0 : tensor<3x4xf32>
    }, {
      stablehlo.return %arg1 : tensor<3x4xf32>
    }) : (tensor<i1>) -> tensor<3x4xf32>
    %76 = "stablehlo.case"(%arg7) ({
      stablehlo.return %arg0 : tensor<3x4xf32>
    }, {
      stablehlo.return %arg1 : tensor<3x4xf32>
    }) : (tensor<i32>) -> tensor<3x4xf32>
    %77:2 = stablehlo.while(%iterArg = %arg7, %iterArg_17 = %arg0) : tensor<i32>, tensor<3x4xf32>
    cond {
      %107 = stablehlo.compare LT, %iterArg, %c_7 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %107 : tensor<i1>
    } do {
      %107 = stablehlo.add %iterArg, %c_8 : tensor<i32>
      %108 = stablehlo.add %iterArg_17, %iterArg_17 : tensor<3x4xf32>
      stablehlo.return %107, %108 : tensor<i32>, tensor<3x4xf32>
    }
    %78 = stablehlo.custom_call @Sharding(%arg0) {backend_config = ""} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %79 = stablehlo.composite "my.twice" %arg0 {composite_attributes = {a = 1 : i32}, decomposition = @twice, version = 1 : i32} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %80 = stablehlo.tuple %arg0, %arg3 : tuple<tensor<3x4xf32>, tensor<3x4xi32>>
    %81 = stablehlo.get_tuple_element %80[1] : (tuple<tensor<3x4xf32>, tensor<3x4xi32>>) -> tensor<3x4xi32>
    %82 = stablehlo.after_all  : !stablehlo.token
    %83 = stablehlo.partition_id : tensor<ui32>
    %84 = stablehlo.replica_id : tensor<ui32>
    %85 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %86 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.add %arg16, %arg17 : tensor<f32>
      stablehlo.return %107 : tensor<f32>
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %87 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>, split_count = 1 : i64, split_dimension = 0 : i64}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %88 = "stablehlo.reduce_scatter"(%arg0) <{replica_groups = dense<0> : tensor<1x1xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %107 = stablehlo.add %arg16, %arg17 : tensor<f32>
      stablehlo.return %107 : tensor<f32>
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %89 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %90 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %91 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<3x4xf32>) -> tensor<i32>
    %92 = stablehlo.dynamic_broadcast_in_dim %arg15, %c, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
    %93 = stablehlo.dynamic_iota %c, dim = 0 : (tensor<2xi64>) -> tensor<3x4xf32>
    %94 = stablehlo.dynamic_reshape %arg0, %c_0 : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<2x6xf32>
    %95 = stablehlo.dynamic_pad %arg0, %arg6, %c_1, %c_1, %c_2 : (tensor<3x4xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<5x4xf32>
    %96 = "stablehlo.dynamic_gather"(%arg0, %arg12, %c_5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<3x4xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x4xf32>
    %97 = "stablehlo.dynamic_conv"(%arg8, %arg9, %c_4) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 2, 1>}> : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>, tensor<2x2xi64>) -> tensor<1x4x8x4xf32>
    %98 = stablehlo.broadcast %arg15, sizes = [3] : (tensor<4xf32>) -> tensor<3x4xf32>
    %99 = stablehlo.create_token : !stablehlo.token
    %100 = stablehlo.dot %arg0, %0 : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %101 = stablehlo.einsum %arg0, %arg1, config = "ij,kj->ki" : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
    %102 = stablehlo.unary_einsum %arg0, config = "ij->j" : (tensor<3x4xf32>) -> tensor<4xf32>
    %103 = "stablehlo.torch_index_select"(%arg0, %c_11) <{batch_dims = 0 : i64, dim = 1 : i64}> : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<3x2xf32>
    %104 = stablehlo.real_dynamic_slice %arg0, %c_1, %c, %c_3 : (tensor<3x4xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x4xf32>
    %105 = stablehlo.set_dimension_size %arg0, %c_6, dim = 0 : (tensor<3x4xf32>, tensor<i32>) -> tensor<3x4xf32>
    %106 = "stablehlo.cross-replica-sum"(%arg0) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    return %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %cst_15, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66#0, %66#1, %67, %68, %69, %70, %71, %72, %output, %batch_mean, %batch_var, %grad_operand, %grad_scale, %grad_offset, %output_state, %output_16, %73, %74#0, %74#1, %75, %76, %77#0, %77#1, %78, %79, %81, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %100, %101, %102, %103, %104, %105, %106 : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<2xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<4x3xf32>, tensor<3x4xf32>, tensor<2x2xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x3xf32>, tensor<1x4x8x4xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xui64>, tensor<5xui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<ui32>, tensor<ui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<5x4xf32>, tensor<2x4xf32>, tensor<1x4x8x4xf32>, tensor<3x4xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<4xf32>, tensor<3x2xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  }
  func.func private @twice(%arg0: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.add %arg0, %arg0 : tensor<3x4xf32>
    return %0 : tensor<3x4xf32>
  }
}
