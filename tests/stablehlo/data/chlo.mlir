// Every op of CHLO but scan, which is in scan.mlir.
module @chlo {
  func.func public @main(%arg0: tensor<3x4xf32>, %arg1: tensor<3x4xf32>, %arg2: tensor<3x4xcomplex<f32>>, %arg3: tensor<3x4xi32>, %arg4: tensor<4xf32>, %arg5: tensor<4xi32>, %arg6: tensor<3x4xi1>, %arg7: tensor<2x4x5xf32>, %arg8: tensor<2xi32>) -> (tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x5xf32>) {
    %0 = chlo.acos %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %1 = chlo.acosh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = chlo.asin %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %3 = chlo.asinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %4 = chlo.atan %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %5 = chlo.atanh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %6 = chlo.bessel_i1e %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %7 = chlo.cosh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %8 = chlo.digamma %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %9 = chlo.erf %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %10 = chlo.erf_inv %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %11 = chlo.erfc %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %12 = chlo.lgamma %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %13 = chlo.sinh %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %14 = chlo.square %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %15 = chlo.tan %arg0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %16 = chlo.acos %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %17 = chlo.acosh %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %18 = chlo.asin %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %19 = chlo.asinh %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %20 = chlo.atan %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %21 = chlo.atanh %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %22 = chlo.cosh %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %23 = chlo.sinh %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %24 = chlo.square %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %25 = chlo.conj %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %26 = chlo._asin_acos_kernel %arg2 : tensor<3x4xcomplex<f32>> -> tensor<3x4xcomplex<f32>>
    %27 = chlo.is_inf %arg0 : tensor<3x4xf32> -> tensor<3x4xi1>
    %28 = chlo.is_neg_inf %arg0 : tensor<3x4xf32> -> tensor<3x4xi1>
    %29 = chlo.is_pos_inf %arg0 : tensor<3x4xf32> -> tensor<3x4xi1>
    %30 = chlo.next_after %arg0, %arg1 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %31 = chlo.polygamma %arg0, %arg1 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %32 = chlo.zeta %arg0, %arg1 : tensor<3x4xf32>, tensor<3x4xf32> -> tensor<3x4xf32>
    %33 = chlo.mulhi %arg3, %arg3 : tensor<3x4xi32>, tensor<3x4xi32> -> tensor<3x4xi32>
    %34 = chlo.broadcast_add %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %35 = chlo.broadcast_atan2 %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %36 = chlo.broadcast_divide %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %37 = chlo.broadcast_maximum %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %38 = chlo.broadcast_minimum %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %39 = chlo.broadcast_multiply %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %40 = chlo.broadcast_next_after %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %41 = chlo.broadcast_polygamma %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %42 = chlo.broadcast_power %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %43 = chlo.broadcast_remainder %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %44 = chlo.broadcast_subtract %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %45 = chlo.broadcast_zeta %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %46 = chlo.broadcast_and %arg3, %arg5 : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %47 = chlo.broadcast_or %arg3, %arg5 : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %48 = chlo.broadcast_xor %arg3, %arg5 : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %49 = chlo.broadcast_shift_left %arg3, %arg5 : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %50 = chlo.broadcast_shift_right_arithmetic %arg3, %arg5 : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %51 = chlo.broadcast_shift_right_logical %arg3, %arg5 : (tensor<3x4xi32>, tensor<4xi32>) -> tensor<3x4xi32>
    %52 = chlo.broadcast_complex %arg0, %arg4 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xcomplex<f32>>
    %53 = chlo.broadcast_compare %arg0, %arg4 {comparison_direction = #chlo<comparison_direction LT>} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xi1>
    %54 = chlo.broadcast_select %arg6, %arg0, %arg4 : (tensor<3x4xi1>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
    %55 = "chlo.constant_like"(%arg0) <{value = 2.5 : f32}> : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %56 = "chlo.constant"() <{value = dense<1.5> : tensor<3x4xf32>}> : () -> tensor<3x4xf32>
    %top:2 = chlo.top_k(%arg0, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
    %ragged = "chlo.ragged_dot"(%arg0, %arg7, %arg8) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>, precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]}> : (tensor<3x4xf32>, tensor<2x4x5xf32>, tensor<2xi32>) -> tensor<3x5xf32>
    return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %top#0, %top#1, %ragged : tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xi32>, tensor<3x4xcomplex<f32>>, tensor<3x4xi1>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x5xf32>
  }
}
