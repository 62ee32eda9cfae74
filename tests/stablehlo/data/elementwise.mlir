// Every elementwise op.
module @elementwise {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>, %i: tensor<2x3xi32>, %j: tensor<2x3xi32>, %u: tensor<4xui8>, %p: tensor<4xi1>, %c: tensor<2xcomplex<f32>>, %n: tensor<4xi4>) -> (tensor<2x3xf32>, tensor<2x3xi32>, tensor<4xui8>, tensor<4xi1>, tensor<2xf32>, tensor<4xi4>) {
    %0 = stablehlo.add %x, %y : tensor<2x3xf32>
    %1 = stablehlo.subtract %0, %y : tensor<2x3xf32>
    %2 = stablehlo.multiply %1, %y : tensor<2x3xf32>
    %3 = stablehlo.divide %2, %y : tensor<2x3xf32>
    %4 = stablehlo.maximum %3, %y : tensor<2x3xf32>
    %5 = stablehlo.minimum %4, %y : tensor<2x3xf32>
    %6 = stablehlo.power %5, %y : tensor<2x3xf32>
    %7 = stablehlo.remainder %6, %y : tensor<2x3xf32>
    %8 = stablehlo.atan2 %7, %y : tensor<2x3xf32>
    %9 = stablehlo.abs %8 : tensor<2x3xf32>
    %10 = stablehlo.cbrt %9 : tensor<2x3xf32>
    %11 = stablehlo.ceil %10 : tensor<2x3xf32>
    %12 = stablehlo.cosine %11 : tensor<2x3xf32>
    %13 = stablehlo.exponential %12 : tensor<2x3xf32>
    %14 = stablehlo.exponential_minus_one %13 : tensor<2x3xf32>
    %15 = stablehlo.floor %14 : tensor<2x3xf32>
    %16 = stablehlo.log %15 : tensor<2x3xf32>
    %17 = stablehlo.log_plus_one %16 : tensor<2x3xf32>
    %18 = stablehlo.logistic %17 : tensor<2x3xf32>
    %19 = stablehlo.negate %18 : tensor<2x3xf32>
    %20 = stablehlo.round_nearest_afz %19 : tensor<2x3xf32>
    %21 = stablehlo.round_nearest_even %20 : tensor<2x3xf32>
    %22 = stablehlo.rsqrt %21 : tensor<2x3xf32>
    %23 = stablehlo.sign %22 : tensor<2x3xf32>
    %24 = stablehlo.sine %23 : tensor<2x3xf32>
    %25 = stablehlo.sqrt %24 : tensor<2x3xf32>
    %26 = stablehlo.tanh %25 : tensor<2x3xf32>
    %27 = stablehlo.reduce_precision %26, format = e5m10 : tensor<2x3xf32>
    %28 = stablehlo.and %i, %j : tensor<2x3xi32>
    %29 = stablehlo.or %28, %j : tensor<2x3xi32>
    %30 = stablehlo.xor %29, %j : tensor<2x3xi32>
    %31 = stablehlo.not %30 : tensor<2x3xi32>
    %32 = stablehlo.popcnt %31 : tensor<2x3xi32>
    %33 = stablehlo.count_leading_zeros %32 : tensor<2x3xi32>
    %34 = stablehlo.shift_left %33, %j : tensor<2x3xi32>
    %35 = stablehlo.shift_right_arithmetic %34, %j : tensor<2x3xi32>
    %36 = stablehlo.shift_right_logical %35, %j : tensor<2x3xi32>
    %37 = stablehlo.compare GT, %x, %y, TOTALORDER : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %38 = stablehlo.compare NE, %i, %j, SIGNED : (tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi1>
    %39 = stablehlo.compare LE, %x, %y, FLOAT : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %40 = stablehlo.and %37, %38 : tensor<2x3xi1>
    %41 = stablehlo.and %40, %39 : tensor<2x3xi1>
    %42 = stablehlo.select %41, %27, %x : tensor<2x3xi1>, tensor<2x3xf32>
    %43 = stablehlo.clamp %x, %42, %y : tensor<2x3xf32>
    %44 = stablehlo.is_finite %43 : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %45 = stablehlo.select %44, %43, %y : tensor<2x3xi1>, tensor<2x3xf32>
    %46 = stablehlo.bitcast_convert %36 : (tensor<2x3xi32>) -> tensor<2x3xf32>
    %47 = stablehlo.add %45, %46 : tensor<2x3xf32>
    %48 = stablehlo.constant dense<[1, 2, 250, 255]> : tensor<4xui8>
    %49 = stablehlo.add %u, %48 : tensor<4xui8>
    %50 = stablehlo.constant dense<[true, false, true, true]> : tensor<4xi1>
    %51 = stablehlo.or %p, %50 : tensor<4xi1>
    %52 = stablehlo.real %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %53 = stablehlo.imag %c : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %54 = stablehlo.complex %53, %52 : tensor<2xcomplex<f32>>
    %55 = stablehlo.constant dense<(1.5, -2.0)> : tensor<2xcomplex<f32>>
    %56 = stablehlo.multiply %54, %55 : tensor<2xcomplex<f32>>
    %57 = stablehlo.abs %56 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %58 = stablehlo.constant dense<[-8, 7, -1, 0]> : tensor<4xi4>
    %59 = stablehlo.maximum %n, %58 : tensor<4xi4>
    return %47, %36, %49, %51, %57, %59 : tensor<2x3xf32>, tensor<2x3xi32>, tensor<4xui8>, tensor<4xi1>, tensor<2xf32>, tensor<4xi4>
  }
}
