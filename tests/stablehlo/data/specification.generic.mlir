"builtin.module"() ({
  "func.func"() <{function_type = (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi1>, tensor<f32>, tensor<i32>, tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>, tensor<2xf32>, tensor<2x3x3xf32>, tensor<2x1xi32>, tensor<2x4xf32>, tensor<2xui64>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<2xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<4x3xf32>, tensor<3x4xf32>, tensor<2x2xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x3xf32>, tensor<1x4x8x4xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xui64>, tensor<5xui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<ui32>, tensor<ui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<5x4xf32>, tensor<2x4xf32>, tensor<1x4x8x4xf32>, tensor<3x4xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<4xf32>, tensor<3x2xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>), sym_name = "main"}> ({
  ^bb0(%arg1: tensor<3x4xf32>, %arg2: tensor<3x4xf32>, %arg3: tensor<3x4xcomplex<f32>>, %arg4: tensor<3x4xi32>, %arg5: tensor<3x4xi32>, %arg6: tensor<3x4xi1>, %arg7: tensor<f32>, %arg8: tensor<i32>, %arg9: tensor<1x8x8x2xf32>, %arg10: tensor<3x3x2x4xf32>, %arg11: tensor<2xf32>, %arg12: tensor<2x3x3xf32>, %arg13: tensor<2x1xi32>, %arg14: tensor<2x4xf32>, %arg15: tensor<2xui64>, %arg16: tensor<4xf32>):
    %1 = "stablehlo.constant"() <{value = dense<[3, 4]> : tensor<2xi64>}> : () -> tensor<2xi64>
    %2 = "stablehlo.constant"() <{value = dense<[2, 6]> : tensor<2xi64>}> : () -> tensor<2xi64>
    %3 = "stablehlo.constant"() <{value = dense<[1, 0]> : tensor<2xi64>}> : () -> tensor<2xi64>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<2xi64>}> : () -> tensor<2xi64>
    %5 = "stablehlo.constant"() <{value = dense<1> : tensor<2xi64>}> : () -> tensor<2xi64>
    %6 = "stablehlo.constant"() <{value = dense<1> : tensor<2x2xi64>}> : () -> tensor<2x2xi64>
    %7 = "stablehlo.constant"() <{value = dense<[1, 4]> : tensor<2xi64>}> : () -> tensor<2xi64>
    %8 = "stablehlo.constant"() <{value = dense<3> : tensor<i32>}> : () -> tensor<i32>
    %9 = "stablehlo.constant"() <{value = dense<5> : tensor<i32>}> : () -> tensor<i32>
    %10 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> : () -> tensor<i32>
    %11 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
    %12 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %13 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %14 = "stablehlo.constant"() <{value = dense<[2, 0]> : tensor<2xi32>}> : () -> tensor<2xi32>
    %15 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<4xf32>}> : () -> tensor<4xf32>
    %16 = "stablehlo.constant"() <{value = dense<[[5.000000e-01, -1.500000e+00]]> : tensor<1x2xf32>}> : () -> tensor<1x2xf32>
    %17 = "stablehlo.constant"() <{value = dense<[[[4.000000e+00, 0.000000e+00, 0.000000e+00], [1.000000e+00, 3.000000e+00, 0.000000e+00], [5.000000e-01, 2.500000e-01, 2.000000e+00]], [[4.000000e+00, 1.000000e+00, 5.000000e-01], [1.000000e+00, 3.000000e+00, 2.500000e-01], [5.000000e-01, 2.500000e-01, 2.000000e+00]]]> : tensor<2x3x3xf32>}> : () -> tensor<2x3x3xf32>
    %18 = "stablehlo.transpose"(%arg2) <{permutation = array<i64: 1, 0>}> : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %19 = "stablehlo.abs"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %20 = "stablehlo.cbrt"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %21 = "stablehlo.ceil"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %22 = "stablehlo.cosine"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %23 = "stablehlo.exponential"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %24 = "stablehlo.exponential_minus_one"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %25 = "stablehlo.floor"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %26 = "stablehlo.log"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %27 = "stablehlo.log_plus_one"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %28 = "stablehlo.logistic"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %29 = "stablehlo.negate"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %30 = "stablehlo.round_nearest_afz"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %31 = "stablehlo.round_nearest_even"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %32 = "stablehlo.rsqrt"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %33 = "stablehlo.sign"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %34 = "stablehlo.sine"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %35 = "stablehlo.sqrt"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %36 = "stablehlo.tan"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %37 = "stablehlo.tanh"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %38 = "stablehlo.is_finite"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xi1>
    %39 = "stablehlo.count_leading_zeros"(%arg4) : (tensor<3x4xi32>) -> tensor<3x4xi32>
    %40 = "stablehlo.not"(%arg4) : (tensor<3x4xi32>) -> tensor<3x4xi32>
    %41 = "stablehlo.popcnt"(%arg4) : (tensor<3x4xi32>) -> tensor<3x4xi32>
    %42 = "stablehlo.real"(%arg3) : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
    %43 = "stablehlo.imag"(%arg3) : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xf32>
    %44 = "stablehlo.add"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %45 = "stablehlo.atan2"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %46 = "stablehlo.divide"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %47 = "stablehlo.maximum"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %48 = "stablehlo.minimum"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %49 = "stablehlo.multiply"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %50 = "stablehlo.power"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %51 = "stablehlo.remainder"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %52 = "stablehlo.subtract"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %53 = "stablehlo.and"(%arg4, %arg5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %54 = "stablehlo.or"(%arg4, %arg5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %55 = "stablehlo.xor"(%arg4, %arg5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %56 = "stablehlo.shift_left"(%arg4, %arg5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %57 = "stablehlo.shift_right_arithmetic"(%arg4, %arg5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %58 = "stablehlo.shift_right_logical"(%arg4, %arg5) : (tensor<3x4xi32>, tensor<3x4xi32>) -> tensor<3x4xi32>
    %59 = "stablehlo.complex"(%arg1, %arg2) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xcomplex<f32>>
    %60 = "stablehlo.compare"(%arg1, %arg2) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %61 = "stablehlo.compare"(%arg1, %arg2) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>
    %62 = "stablehlo.select"(%arg6, %arg1, %arg2) : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %63 = "stablehlo.clamp"(%arg7, %arg1, %arg2) : (tensor<f32>, tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %64 = "stablehlo.convert"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %65 = "stablehlo.bitcast_convert"(%arg1) : (tensor<3x4xf32>) -> tensor<3x4xi32>
    %66 = "stablehlo.reduce_precision"(%arg1) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %67 = "stablehlo.constant"() <{value = dense<[1.500000e+00, -2.000000e+00]> : tensor<2xf32>}> : () -> tensor<2xf32>
    %68 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<3x4xf32>
    %69 = "stablehlo.broadcast_in_dim"(%arg16) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>) -> tensor<3x4xf32>
    %70 = "stablehlo.reshape"(%arg1) : (tensor<3x4xf32>) -> tensor<2x6xf32>
    %71 = "stablehlo.transpose"(%arg1) <{permutation = array<i64: 1, 0>}> : (tensor<3x4xf32>) -> tensor<4x3xf32>
    %72 = "stablehlo.reverse"(%arg1) <{dimensions = array<i64: 1>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %73 = "stablehlo.slice"(%arg1) <{limit_indices = array<i64: 3, 4>, start_indices = array<i64: 1, 0>, strides = array<i64: 1, 2>}> : (tensor<3x4xf32>) -> tensor<2x2xf32>
    %74 = "stablehlo.pad"(%arg1, %arg7) <{edge_padding_high = array<i64: 0, -1>, edge_padding_low = array<i64: 1, 0>, interior_padding = array<i64: 0, 1>}> : (tensor<3x4xf32>, tensor<f32>) -> tensor<4x6xf32>
    %75 = "stablehlo.concatenate"(%arg1, %arg2) <{dimension = 0 : i64}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
    %76 = "stablehlo.dynamic_slice"(%arg1, %arg8, %arg8) <{slice_sizes = array<i64: 2, 2>}> : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %77 = "stablehlo.dynamic_update_slice"(%arg1, %arg14, %arg8, %arg8) : (tensor<3x4xf32>, tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %78 = "stablehlo.gather"(%arg1, %arg13) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<3x4xf32>, tensor<2x1xi32>) -> tensor<2x4xf32>
    %79 = "stablehlo.scatter"(%arg1, %arg13, %arg14) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
    ^bb0(%arg41: tensor<f32>, %arg42: tensor<f32>):
      %143 = "stablehlo.add"(%arg41, %arg42) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%143) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<2x1xi32>, tensor<2x4xf32>) -> tensor<3x4xf32>
    %80 = "stablehlo.reduce"(%arg1, %arg7) <{dimensions = array<i64: 1>}> ({
    ^bb0(%arg39: tensor<f32>, %arg40: tensor<f32>):
      %142 = "stablehlo.add"(%arg39, %arg40) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%142) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
    %81 = "stablehlo.reduce"(%arg1, %arg7) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg37: tensor<f32>, %arg38: tensor<f32>):
      %140 = "stablehlo.multiply"(%arg37, %arg38) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %141 = "stablehlo.negate"(%140) : (tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%141) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
    %82 = "stablehlo.reduce_window"(%arg1, %arg7) <{padding = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg35: tensor<f32>, %arg36: tensor<f32>):
      %139 = "stablehlo.add"(%arg35, %arg36) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%139) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<f32>) -> tensor<3x3xf32>
    %83 = "stablehlo.map"(%arg1, %arg2) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg33: tensor<f32>, %arg34: tensor<f32>):
      %137 = "stablehlo.multiply"(%arg33, %arg34) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %138 = "stablehlo.negate"(%137) : (tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%138) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %84 = "stablehlo.select_and_scatter"(%arg1, %16, %arg7) <{window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>}> ({
    ^bb0(%arg31: tensor<f32>, %arg32: tensor<f32>):
      %136 = "stablehlo.compare"(%arg31, %arg32) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%136) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg29: tensor<f32>, %arg30: tensor<f32>):
      %135 = "stablehlo.add"(%arg29, %arg30) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%135) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>, tensor<1x2xf32>, tensor<f32>) -> tensor<3x4xf32>
    %85:2 = "stablehlo.sort"(%arg1, %arg4) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%arg25: tensor<f32>, %arg26: tensor<f32>, %arg27: tensor<i32>, %arg28: tensor<i32>):
      %134 = "stablehlo.compare"(%arg25, %arg26) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%134) : (tensor<i1>) -> ()
    }) : (tensor<3x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
    %86 = "stablehlo.dot_general"(%arg1, %arg2) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
    %87 = "stablehlo.convolution"(%arg9, %arg10) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, padding = dense<1> : tensor<2x2xi64>, window_strides = array<i64: 2, 1>}> : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>) -> tensor<1x4x8x4xf32>
    %88 = "stablehlo.cholesky"(%17) <{lower = true}> : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %89 = "stablehlo.triangular_solve"(%17, %arg12) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
    %90 = "stablehlo.fft"(%arg3) <{fft_length = array<i64: 4>, fft_type = #stablehlo<fft_type FFT>}> : (tensor<3x4xcomplex<f32>>) -> tensor<3x4xcomplex<f32>>
    %91 = "stablehlo.batch_norm_inference"(%arg1, %arg16, %arg16, %arg16, %arg16) <{epsilon = 9.000000e+00 : f32, feature_index = 1 : i64}> : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %92:3 = "stablehlo.batch_norm_training"(%arg1, %arg16, %arg16) <{epsilon = 1.000000e-01 : f32, feature_index = 1 : i64}> : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
    %93:3 = "stablehlo.batch_norm_grad"(%arg1, %arg16, %arg16, %15, %arg2) <{epsilon = 1.000000e-01 : f32, feature_index = 1 : i64}> : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>)
    %94:2 = "stablehlo.rng_bit_generator"(%arg15) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<5xui32>)
    %95 = "stablehlo.rng"(%12, %13, %1) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<3x4xf32>
    %96:2 = "stablehlo.optimization_barrier"(%arg1, %arg4) : (tensor<3x4xf32>, tensor<3x4xi32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
    %97 = "stablehlo.if"(%11) ({
      "stablehlo.return"(%arg1) : (tensor<3x4xf32>) -> ()
    }, {
      "stablehlo.return"(%arg2) : (tensor<3x4xf32>) -> ()
    }) : (tensor<i1>) -> tensor<3x4xf32>
    %98 = "stablehlo.case"(%arg8) ({
      "stablehlo.return"(%arg1) : (tensor<3x4xf32>) -> ()
    }, {
      "stablehlo.return"(%arg2) : (tensor<3x4xf32>) -> ()
    }) : (tensor<i32>) -> tensor<3x4xf32>
    %99:2 = "stablehlo.while"(%arg8, %arg1) ({
    ^bb0(%arg23: tensor<i32>, %arg24: tensor<3x4xf32>):
      %133 = "stablehlo.compare"(%arg23, %9) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%133) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg21: tensor<i32>, %arg22: tensor<3x4xf32>):
      %131 = "stablehlo.add"(%arg21, %10) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %132 = "stablehlo.add"(%arg22, %arg22) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
      "stablehlo.return"(%131, %132) : (tensor<i32>, tensor<3x4xf32>) -> ()
    }) : (tensor<i32>, tensor<3x4xf32>) -> (tensor<i32>, tensor<3x4xf32>)
    %100 = "stablehlo.custom_call"(%arg1) <{backend_config = "", call_target_name = "Sharding"}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %101 = "stablehlo.composite"(%arg1) <{composite_attributes = {a = 1 : i32}, decomposition = @twice, name = "my.twice", version = 1 : i32}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %102 = "stablehlo.tuple"(%arg1, %arg4) : (tensor<3x4xf32>, tensor<3x4xi32>) -> tuple<tensor<3x4xf32>, tensor<3x4xi32>>
    %103 = "stablehlo.get_tuple_element"(%102) <{index = 1 : i32}> : (tuple<tensor<3x4xf32>, tensor<3x4xi32>>) -> tensor<3x4xi32>
    %104 = "stablehlo.after_all"() : () -> !stablehlo.token
    %105 = "stablehlo.partition_id"() : () -> tensor<ui32>
    %106 = "stablehlo.replica_id"() : () -> tensor<ui32>
    %107 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %108 = "stablehlo.all_reduce"(%arg1) <{replica_groups = dense<0> : tensor<1x1xi64>}> ({
    ^bb0(%arg19: tensor<f32>, %arg20: tensor<f32>):
      %130 = "stablehlo.add"(%arg19, %arg20) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%130) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %109 = "stablehlo.all_to_all"(%arg1) <{concat_dimension = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>, split_count = 1 : i64, split_dimension = 0 : i64}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %110 = "stablehlo.reduce_scatter"(%arg1) <{replica_groups = dense<0> : tensor<1x1xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%arg17: tensor<f32>, %arg18: tensor<f32>):
      %129 = "stablehlo.add"(%arg17, %arg18) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%129) : (tensor<f32>) -> ()
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %111 = "stablehlo.collective_broadcast"(%arg1) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %112 = "stablehlo.collective_permute"(%arg1) <{source_target_pairs = dense<0> : tensor<1x2xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %113 = "stablehlo.get_dimension_size"(%arg1) <{dimension = 1 : i64}> : (tensor<3x4xf32>) -> tensor<i32>
    %114 = "stablehlo.dynamic_broadcast_in_dim"(%arg16, %1) <{broadcast_dimensions = array<i64: 1>}> : (tensor<4xf32>, tensor<2xi64>) -> tensor<3x4xf32>
    %115 = "stablehlo.dynamic_iota"(%1) <{iota_dimension = 0 : i64}> : (tensor<2xi64>) -> tensor<3x4xf32>
    %116 = "stablehlo.dynamic_reshape"(%arg1, %2) : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<2x6xf32>
    %117 = "stablehlo.dynamic_pad"(%arg1, %arg7, %3, %3, %4) : (tensor<3x4xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<5x4xf32>
    %118 = "stablehlo.dynamic_gather"(%arg1, %arg13, %7) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<3x4xf32>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<2x4xf32>
    %119 = "stablehlo.dynamic_conv"(%arg9, %arg10, %6) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, window_strides = array<i64: 2, 1>}> : (tensor<1x8x8x2xf32>, tensor<3x3x2x4xf32>, tensor<2x2xi64>) -> tensor<1x4x8x4xf32>
    %120 = "stablehlo.broadcast"(%arg16) <{broadcast_sizes = array<i64: 3>}> : (tensor<4xf32>) -> tensor<3x4xf32>
    %121 = "stablehlo.create_token"() : () -> !stablehlo.token
    %122 = "stablehlo.dot"(%arg1, %18) : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
    %123 = "stablehlo.einsum"(%arg1, %arg2) <{einsum_config = "ij,kj->ki"}> : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
    %124 = "stablehlo.unary_einsum"(%arg1) <{einsum_config = "ij->j"}> : (tensor<3x4xf32>) -> tensor<4xf32>
    %125 = "stablehlo.torch_index_select"(%arg1, %14) <{batch_dims = 0 : i64, dim = 1 : i64}> : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<3x2xf32>
    %126 = "stablehlo.real_dynamic_slice"(%arg1, %3, %1, %5) : (tensor<3x4xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<2x4xf32>
    %127 = "stablehlo.set_dimension_size"(%arg1, %8) <{dimension = 0 : i64}> : (tensor<3x4xf32>, tensor<i32>) -> tensor<3x4xf32>
    %128 = "stablehlo.cross-replica-sum"(%arg1) <{replica_groups = dense<0> : tensor<1x1xi64>}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85#0, %85#1, %86, %87, %88, %89, %90, %91, %92#0, %92#1, %92#2, %93#0, %93#1, %93#2, %94#0, %94#1, %95, %96#0, %96#1, %97, %98, %99#0, %99#1, %100, %101, %103, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %122, %123, %124, %125, %126, %127, %128) : (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi1>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<2xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<4x3xf32>, tensor<3x4xf32>, tensor<2x2xf32>, tensor<4x6xf32>, tensor<6x4xf32>, tensor<2x2xf32>, tensor<3x4xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3x3xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x3xf32>, tensor<1x4x8x4xf32>, tensor<2x3x3xf32>, tensor<2x3x3xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2xui64>, tensor<5xui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<ui32>, tensor<ui32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<i32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<2x6xf32>, tensor<5x4xf32>, tensor<2x4xf32>, tensor<1x4x8x4xf32>, tensor<3x4xf32>, tensor<3x3xf32>, tensor<3x3xf32>, tensor<4xf32>, tensor<3x2xf32>, tensor<2x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x4xf32>) -> tensor<3x4xf32>, sym_name = "twice", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<3x4xf32>):
    %0 = "stablehlo.add"(%arg0, %arg0) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    "func.return"(%0) : (tensor<3x4xf32>) -> ()
  }) : () -> ()
}) : () -> ()
