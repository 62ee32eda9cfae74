// SPDX-License-Identifier: Apache-2.0
// Functions that tests/unit/transform/derivative_test.c differentiates. An argument
// lies between test.low and test.high, -1 and 1 where these are not said.
module {
func.func @add(%a0: tensor<2x3xf64>, %a1: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @subtract(%a0: tensor<2x3xf64>, %a1: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.subtract"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @multiply(%a0: tensor<2x3xf64>, %a1: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.multiply"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @divide(%a0: tensor<2x3xf64> {test.low = -1, test.high = 1}, %a1: tensor<2x3xf64> {test.low = 0.5, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @remainder(%a0: tensor<2x3xf64> {test.low = 3, test.high = 3.4}, %a1: tensor<2x3xf64> {test.low = 1.1, test.high = 1.4}) -> tensor<2x3xf64> {
  %r = "stablehlo.remainder"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @maximum(%a0: tensor<2x3xf64>, %a1: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.maximum"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @minimum(%a0: tensor<2x3xf64>, %a1: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.minimum"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @power(%a0: tensor<2x3xf64> {test.low = 0.5, test.high = 2}, %a1: tensor<2x3xf64> {test.low = -2, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.power"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @atan2(%a0: tensor<2x3xf64> {test.low = 0.3, test.high = 2}, %a1: tensor<2x3xf64> {test.low = -1, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.atan2"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @atan2_small(%a0: tensor<2x3xf64> {test.low = -0.4, test.high = 0.4}, %a1: tensor<2x3xf64> {test.low = 0.5, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.atan2"(%a0, %a1) : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @negate(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.negate"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @abs(%a0: tensor<2x3xf64> {test.low = 0.1, test.high = 1}) -> tensor<2x3xf64> {
  %r = "stablehlo.abs"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @abs_below(%a0: tensor<2x3xf64> {test.low = -1, test.high = -0.1}) -> tensor<2x3xf64> {
  %r = "stablehlo.abs"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @sign(%a0: tensor<2x3xf64> {test.low = 0.1, test.high = 1}) -> tensor<2x3xf64> {
  %r = "stablehlo.sign"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @sqrt(%a0: tensor<2x3xf64> {test.low = 0.5, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.sqrt"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @rsqrt(%a0: tensor<2x3xf64> {test.low = 0.5, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.rsqrt"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @cbrt(%a0: tensor<2x3xf64> {test.low = 0.5, test.high = 2}) -> tensor<2x3xf64> {
  %r = "stablehlo.cbrt"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @cbrt_below(%a0: tensor<2x3xf64> {test.low = -2, test.high = -0.5}) -> tensor<2x3xf64> {
  %r = "stablehlo.cbrt"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @exponential(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.exponential"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @exponential_minus_one(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.exponential_minus_one"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @exp2(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "pestle.exp2"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @logistic(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.logistic"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @tanh(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.tanh"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @sine(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.sine"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @cosine(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.cosine"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @tan(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.tan"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @erf(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "chlo.erf"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @erfc(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "chlo.erfc"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @sinc(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "pestle.sinc"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @sinc_far(%a0: tensor<2x3xf64> {test.low = 1, test.high = 4}) -> tensor<2x3xf64> {
  %r = "pestle.sinc"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @log(%a0: tensor<2x3xf64> {test.low = 0.5, test.high = 3}) -> tensor<2x3xf64> {
  %r = "stablehlo.log"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @log_plus_one(%a0: tensor<2x3xf64> {test.low = -0.5, test.high = 3}) -> tensor<2x3xf64> {
  %r = "stablehlo.log_plus_one"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @erf_inv(%a0: tensor<2x3xf64> {test.low = -0.7, test.high = 0.7}) -> tensor<2x3xf64> {
  %r = "chlo.erf_inv"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @fma(%a0: tensor<2x3xf64>, %a1: tensor<2x3xf64>, %a2: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "pestle.fma"(%a0, %a1, %a2) : (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @select(%a0: tensor<2x3xi1>, %a1: tensor<2x3xf64>, %a2: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = stablehlo.select %a0, %a1, %a2 : tensor<2x3xi1>, tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @select_scalar(%a0: tensor<i1>, %a1: tensor<2x3xf64>, %a2: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = stablehlo.select %a0, %a1, %a2 : tensor<i1>, tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @clamp(%a0: tensor<f64> {test.low = -0.4, test.high = -0.3}, %a1: tensor<8xf64>, %a2: tensor<f64> {test.low = 0.3, test.high = 0.4}) -> tensor<8xf64> {
  %r = stablehlo.clamp %a0, %a1, %a2 : (tensor<f64>, tensor<8xf64>, tensor<f64>) -> tensor<8xf64>
  return %r : tensor<8xf64>
}
func.func @clamp_full(%a0: tensor<8xf64> {test.low = -0.4, test.high = -0.3}, %a1: tensor<8xf64>, %a2: tensor<8xf64> {test.low = 0.3, test.high = 0.4}) -> tensor<8xf64> {
  %r = stablehlo.clamp %a0, %a1, %a2 : tensor<8xf64>
  return %r : tensor<8xf64>
}
func.func @complex_add(%a0: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}, %a1: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.add"(%a0, %a1) : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_subtract(%a0: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}, %a1: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.subtract"(%a0, %a1) : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_multiply(%a0: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}, %a1: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.multiply"(%a0, %a1) : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_divide(%a0: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}, %a1: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.divide"(%a0, %a1) : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_power(%a0: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}, %a1: tensor<4xcomplex<f64>> {test.low = 0.5, test.high = 2}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.power"(%a0, %a1) : (tensor<4xcomplex<f64>>, tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_negate(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.negate"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_sign(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.sign"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_sqrt(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.sqrt"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_rsqrt(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.rsqrt"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_cbrt(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.cbrt"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_exponential(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.exponential"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_exponential_minus_one(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.exponential_minus_one"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_log(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.log"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_log_plus_one(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.log_plus_one"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_logistic(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.logistic"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_tanh(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.tanh"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_sine(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.sine"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_cosine(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.cosine"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_tan(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 0.9}) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.tan"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @complex_abs(%a0: tensor<4xcomplex<f64>> {test.low = 0.3, test.high = 1}) -> tensor<4xf64> {
  %r = "stablehlo.abs"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @real(%a0: tensor<4xcomplex<f64>>) -> tensor<4xf64> {
  %r = "stablehlo.real"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @imag(%a0: tensor<4xcomplex<f64>>) -> tensor<4xf64> {
  %r = "stablehlo.imag"(%a0) : (tensor<4xcomplex<f64>>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @real_of_real(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = "stablehlo.real"(%a0) : (tensor<2x3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @complex(%a0: tensor<4xf64>, %a1: tensor<4xf64>) -> tensor<4xcomplex<f64>> {
  %r = stablehlo.complex %a0, %a1 : tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @convert_complex(%a0: tensor<4xf64>) -> tensor<4xcomplex<f64>> {
  %r = "stablehlo.convert"(%a0) : (tensor<4xf64>) -> tensor<4xcomplex<f64>>
  return %r : tensor<4xcomplex<f64>>
}
func.func @broadcast(%a0: tensor<3xf64>) -> tensor<2x3x4xf64> {
  %r = stablehlo.broadcast_in_dim %a0, dims = [1] : (tensor<3xf64>) -> tensor<2x3x4xf64>
  return %r : tensor<2x3x4xf64>
}
func.func @broadcast_ones(%a0: tensor<3x1xf64>) -> tensor<1x3x4xf64> {
  %r = stablehlo.broadcast_in_dim %a0, dims = [1, 2] : (tensor<3x1xf64>) -> tensor<1x3x4xf64>
  return %r : tensor<1x3x4xf64>
}
func.func @broadcast_order(%a0: tensor<3x2xf64>) -> tensor<2x4x3xf64> {
  %r = stablehlo.broadcast_in_dim %a0, dims = [2, 0] : (tensor<3x2xf64>) -> tensor<2x4x3xf64>
  return %r : tensor<2x4x3xf64>
}
func.func @reshape(%a0: tensor<2x6xf64>) -> tensor<3x4xf64> {
  %r = stablehlo.reshape %a0 : (tensor<2x6xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @transpose(%a0: tensor<2x3x4xf64>) -> tensor<4x2x3xf64> {
  %r = stablehlo.transpose %a0, dims = [2, 0, 1] : (tensor<2x3x4xf64>) -> tensor<4x2x3xf64>
  return %r : tensor<4x2x3xf64>
}
func.func @slice(%a0: tensor<5x7xf64>) -> tensor<2x2xf64> {
  %r = stablehlo.slice %a0 [1:4:2, 2:7:3] : (tensor<5x7xf64>) -> tensor<2x2xf64>
  return %r : tensor<2x2xf64>
}
func.func @slice_empty(%a0: tensor<5xf64>) -> tensor<0xf64> {
  %r = stablehlo.slice %a0 [2:2] : (tensor<5xf64>) -> tensor<0xf64>
  return %r : tensor<0xf64>
}
func.func @reverse(%a0: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %r = stablehlo.reverse %a0, dims = [1] : tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @pad(%a0: tensor<2x3xf64>, %a1: tensor<f64>) -> tensor<6x8xf64> {
  %r = stablehlo.pad %a0, %a1, low = [1, 0], high = [2, 1], interior = [1, 2] : (tensor<2x3xf64>, tensor<f64>) -> tensor<6x8xf64>
  return %r : tensor<6x8xf64>
}
func.func @pad_negative(%a0: tensor<4x5xf64>, %a1: tensor<f64>) -> tensor<7x5xf64> {
  %r = stablehlo.pad %a0, %a1, low = [-1, 2], high = [1, -2], interior = [1, 0] : (tensor<4x5xf64>, tensor<f64>) -> tensor<7x5xf64>
  return %r : tensor<7x5xf64>
}
func.func @concatenate(%a0: tensor<2x1xf64>, %a1: tensor<2x3xf64>, %a2: tensor<2x2xf64>) -> tensor<2x7xf64> {
  %r = stablehlo.concatenate %a0, %a1, %a0, %a2, dim = 1 : (tensor<2x1xf64>, tensor<2x3xf64>, tensor<2x1xf64>, tensor<2x2xf64>) -> tensor<2x7xf64>
  return %r : tensor<2x7xf64>
}
func.func @dynamic_slice(%a0: tensor<4x5xf64>, %a1: tensor<i32> {test.low = 0, test.high = 4}, %a2: tensor<i32> {test.low = 0, test.high = 4}) -> tensor<2x3xf64> {
  %r = stablehlo.dynamic_slice %a0, %a1, %a2, sizes = [2, 3] : (tensor<4x5xf64>, tensor<i32>, tensor<i32>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @dynamic_update_slice(%a0: tensor<4x5xf64>, %a1: tensor<2x3xf64>, %a2: tensor<i32> {test.low = 0, test.high = 4}, %a3: tensor<i32> {test.low = 0, test.high = 4}) -> tensor<4x5xf64> {
  %r = stablehlo.dynamic_update_slice %a0, %a1, %a2, %a3 : (tensor<4x5xf64>, tensor<2x3xf64>, tensor<i32>, tensor<i32>) -> tensor<4x5xf64>
  return %r : tensor<4x5xf64>
}
func.func @reduce_add(%a0: tensor<2x3x4xf64>, %a1: tensor<f64>) -> tensor<3xf64> {
  %r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.add across dimensions = [0, 2] : (tensor<2x3x4xf64>, tensor<f64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @reduce_add_all(%a0: tensor<2x3xf64>) -> tensor<f64> {
  %a1 = stablehlo.constant dense<0.0> : tensor<f64>
  %r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<f64>
  return %r : tensor<f64>
}
func.func @reduce_max(%a0: tensor<2x3x4xf64>) -> tensor<2x4xf64> {
  %a1 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3x4xf64>, tensor<f64>) -> tensor<2x4xf64>
  return %r : tensor<2x4xf64>
}
func.func @reduce_max_initial(%a0: tensor<2x3xf64>, %a1: tensor<f64>) -> tensor<2xf64> {
  %r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.maximum across dimensions = [1] : (tensor<2x3xf64>, tensor<f64>) -> tensor<2xf64>
  return %r : tensor<2xf64>
}
func.func @reduce_min(%a0: tensor<2x3x4xf64>) -> tensor<4xf64> {
  %a1 = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
  %r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.minimum across dimensions = [0, 1] : (tensor<2x3x4xf64>, tensor<f64>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @reduce_multiply(%a0: tensor<2x3x4xf64> {test.low = 0.5, test.high = 1.5}, %a1: tensor<f64>) -> tensor<3xf64> {
  %r = stablehlo.reduce(%a0 init: %a1) applies stablehlo.multiply across dimensions = [0, 2] : (tensor<2x3x4xf64>, tensor<f64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @reduce_multiply_zero(%a0: tensor<4xf64>) -> tensor<f64> {
  %m = stablehlo.constant dense<[1.0, 0.0, 1.0, 1.0]> : tensor<4xf64>
  %x = stablehlo.multiply %a0, %m : tensor<4xf64>
  %i = stablehlo.constant dense<1.0> : tensor<f64>
  %r = stablehlo.reduce(%x init: %i) applies stablehlo.multiply across dimensions = [0] : (tensor<4xf64>, tensor<f64>) -> tensor<f64>
  return %r : tensor<f64>
}
func.func @dot(%a0: tensor<2x3xf64>, %a1: tensor<3x4xf64>) -> tensor<2x4xf64> {
  %r = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<2x3xf64>, tensor<3x4xf64>) -> tensor<2x4xf64>
  return %r : tensor<2x4xf64>
}
func.func @dot_two(%a0: tensor<3x2x4xf64>, %a1: tensor<4x5x3xf64>) -> tensor<2x5xf64> {
  %r = stablehlo.dot_general %a0, %a1, contracting_dims = [0, 2] x [2, 0] : (tensor<3x2x4xf64>, tensor<4x5x3xf64>) -> tensor<2x5xf64>
  return %r : tensor<2x5xf64>
}
func.func @dot_batch(%a0: tensor<2x3x4x2xf64>, %a1: tensor<5x2x4x2xf64>) -> tensor<2x2x3x5xf64> {
  %r = stablehlo.dot_general %a0, %a1, batching_dims = [3, 0] x [3, 1], contracting_dims = [2] x [2] : (tensor<2x3x4x2xf64>, tensor<5x2x4x2xf64>) -> tensor<2x2x3x5xf64>
  return %r : tensor<2x2x3x5xf64>
}
func.func @dot_outer(%a0: tensor<2xf64>, %a1: tensor<3xf64>) -> tensor<2x3xf64> {
  %r = stablehlo.dot_general %a0, %a1, contracting_dims = [] x [] : (tensor<2xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @dot_inner(%a0: tensor<5xf64>, %a1: tensor<5xf64>) -> tensor<f64> {
  %r = stablehlo.dot_general %a0, %a1, contracting_dims = [0] x [0] : (tensor<5xf64>, tensor<5xf64>) -> tensor<f64>
  return %r : tensor<f64>
}
func.func @dot_complex(%a0: tensor<2x3xcomplex<f64>>, %a1: tensor<3x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>> {
  %r = stablehlo.dot_general %a0, %a1, contracting_dims = [1] x [0] : (tensor<2x3xcomplex<f64>>, tensor<3x2xcomplex<f64>>) -> tensor<2x2xcomplex<f64>>
  return %r : tensor<2x2xcomplex<f64>>
}
func.func @dot_square(%a0: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %r = stablehlo.dot_general %a0, %a0, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  return %r : tensor<3x3xf64>
}
func.func @barrier(%a0: tensor<3xf64>, %a1: tensor<3xf64>) -> tensor<3xf64> {
  %s = stablehlo.sine %a0 : tensor<3xf64>
  %b:2 = stablehlo.optimization_barrier %s, %a1 : tensor<3xf64>, tensor<3xf64>
  %r = stablehlo.multiply %b#0, %b#1 : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @no_dependence(%a0: tensor<3xf64>, %a1: tensor<3xi32> {test.low = 0, test.high = 5}) -> (tensor<3xf64>, tensor<3xf64>, tensor<3xi32>) {
  %c = stablehlo.convert %a1 : (tensor<3xi32>) -> tensor<3xf64>
  %r = stablehlo.sine %c : tensor<3xf64>
  return %r, %a0, %a1 : tensor<3xf64>, tensor<3xf64>, tensor<3xi32>
}
func.func @fan_out(%a0: tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %s = stablehlo.sine %a0 : tensor<3xf64>
  %c = stablehlo.multiply %s, %s : tensor<3xf64>
  %d = stablehlo.multiply %c, %s : tensor<3xf64>
  %e = stablehlo.add %d, %s : tensor<3xf64>
  %f = stablehlo.add %e, %a0 : tensor<3xf64>
  return %f, %f : tensor<3xf64>, tensor<3xf64>
}
func.func private @square(%x: tensor<3xf64>) -> tensor<3xf64> {
  %r = stablehlo.multiply %x, %x : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @call(%a0: tensor<3xf64>) -> tensor<3xf64> {
  %s = func.call @square(%a0) : (tensor<3xf64>) -> tensor<3xf64>
  %r = func.call @square(%s) : (tensor<3xf64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @softmax(%a0: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %r = "pestle.softmax"(%a0) {dimensions = array<i64: 1>} : (tensor<3x4xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @log_softmax(%a0: tensor<3x4xf64>) -> tensor<3x4xf64> {
  %r = "pestle.log_softmax"(%a0) {dimensions = array<i64: 1>} : (tensor<3x4xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @logsumexp(%a0: tensor<3x4xf64>) -> tensor<3xf64> {
  %r = "pestle.logsumexp"(%a0) {dimensions = array<i64: 1>} : (tensor<3x4xf64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @layer_norm(%a0: tensor<3x4xf64>, %a1: tensor<4xf64>, %a2: tensor<4xf64>) -> tensor<3x4xf64> {
  %r = "pestle.layer_norm"(%a0, %a1, %a2) {dimensions = array<i64: 1>, epsilon = 0.1 : f64} : (tensor<3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @rms_norm(%a0: tensor<3x4xf64>, %a1: tensor<4xf64>) -> tensor<3x4xf64> {
  %r = "pestle.rms_norm"(%a0, %a1) {dimensions = array<i64: 1>, epsilon = 0.1 : f64} : (tensor<3x4xf64>, tensor<4xf64>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @gelu(%a0: tensor<5xf64>) -> tensor<5xf64> {
  %r = "pestle.gelu"(%a0) {approximate = false} : (tensor<5xf64>) -> tensor<5xf64>
  return %r : tensor<5xf64>
}
func.func @gelu_tanh(%a0: tensor<5xf64>) -> tensor<5xf64> {
  %r = "pestle.gelu"(%a0) {approximate = true} : (tensor<5xf64>) -> tensor<5xf64>
  return %r : tensor<5xf64>
}
func.func @silu(%a0: tensor<5xf64>) -> tensor<5xf64> {
  %r = "pestle.silu"(%a0) {} : (tensor<5xf64>) -> tensor<5xf64>
  return %r : tensor<5xf64>
}
func.func @hard_sigmoid(%a0: tensor<5xf64>) -> tensor<5xf64> {
  %r = "pestle.hard_sigmoid"(%a0) {alpha = 0.2 : f64, beta = 0.5 : f64} : (tensor<5xf64>) -> tensor<5xf64>
  return %r : tensor<5xf64>
}
func.func @attention(%a0: tensor<2x3x4xf64>, %a1: tensor<2x5x4xf64>, %a2: tensor<2x5x4xf64>) -> tensor<2x3x4xf64> {
  %r = "pestle.attention"(%a0, %a1, %a2) {scale = 0.5 : f64} : (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x4xf64>) -> tensor<2x3x4xf64>
  return %r : tensor<2x3x4xf64>
}
func.func @attention_bias(%a0: tensor<2x3x4xf64>, %a1: tensor<2x5x4xf64>, %a2: tensor<2x5x4xf64>, %a3: tensor<1x3x5xf64>) -> tensor<2x3x4xf64> {
  %r = "pestle.attention"(%a0, %a1, %a2, %a3) {scale = 0.5 : f64} : (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x4xf64>, tensor<1x3x5xf64>) -> tensor<2x3x4xf64>
  return %r : tensor<2x3x4xf64>
}
func.func @reduce_other(%a0: tensor<2x5xf64>) -> tensor<2xf64> {
  %i = stablehlo.constant dense<0.0> : tensor<f64>
  %r = stablehlo.reduce(%a0 init: %i) across dimensions = [1] : (tensor<2x5xf64>, tensor<f64>) -> tensor<2xf64>
    reducer(%x: tensor<f64>, %y: tensor<f64>) {
      %p = stablehlo.multiply %x, %y : tensor<f64>
      %s = stablehlo.add %x, %y : tensor<f64>
      %t = stablehlo.add %s, %p : tensor<f64>
      stablehlo.return %t : tensor<f64>
    }
  return %r : tensor<2xf64>
}
func.func @reduce_arg_max(%a0: tensor<2x7xf64>) -> (tensor<2xf64>, tensor<2xi32>) {
  %i = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.iota dim = 1 : tensor<2x7xi32>
  %r:2 = stablehlo.reduce(%a0 init: %i), (%n init: %z) across dimensions = [1] : (tensor<2x7xf64>, tensor<2x7xi32>, tensor<f64>, tensor<i32>) -> (tensor<2xf64>, tensor<2xi32>)
    reducer(%x: tensor<f64>, %y: tensor<f64>) (%k: tensor<i32>, %l: tensor<i32>) {
      %p = stablehlo.compare GT, %x, %y : (tensor<f64>, tensor<f64>) -> tensor<i1>
      %s = stablehlo.select %p, %x, %y : tensor<i1>, tensor<f64>
      %t = stablehlo.select %p, %k, %l : tensor<i1>, tensor<i32>
      stablehlo.return %s, %t : tensor<f64>, tensor<i32>
    }
  return %r#0, %r#1 : tensor<2xf64>, tensor<2xi32>
}
func.func @window_add(%a0: tensor<6x7xf64>, %a1: tensor<f64>) -> tensor<3x3xf64> {
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.add %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 2>} : (tensor<6x7xf64>, tensor<f64>) -> tensor<3x3xf64>
  return %r : tensor<3x3xf64>
}
func.func @window_add_padded(%a0: tensor<4x5xf64>, %a1: tensor<f64>) -> tensor<5x5xf64> {
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.add %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 1, 2>, base_dilations = array<i64: 2, 2>, window_dilations = array<i64: 1, 3>, padding = dense<[[1, -1], [2, 2]]> : tensor<2x2xi64>} : (tensor<4x5xf64>, tensor<f64>) -> tensor<5x5xf64>
  return %r : tensor<5x5xf64>
}
func.func @window_max(%a0: tensor<6x7xf64>) -> tensor<3x3xf64> {
  %a1 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.maximum %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 2, 3>, window_strides = array<i64: 2, 2>} : (tensor<6x7xf64>, tensor<f64>) -> tensor<3x3xf64>
  return %r : tensor<3x3xf64>
}
func.func @window_max_padded(%a0: tensor<5x5xf64>) -> tensor<5x3xf64> {
  %a1 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.maximum %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 1, 2>, padding = dense<[[1, 1], [1, 1]]> : tensor<2x2xi64>} : (tensor<5x5xf64>, tensor<f64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @window_min(%a0: tensor<6xf64>) -> tensor<4xf64> {
  %a1 = stablehlo.constant dense<0x7FF0000000000000> : tensor<f64>
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.minimum %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 3>} : (tensor<6xf64>, tensor<f64>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
func.func @window_max_dilated(%a0: tensor<7x5xf64>) -> tensor<3x5xf64> {
  %a1 = stablehlo.constant dense<0xFFF0000000000000> : tensor<f64>
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.maximum %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 3, 1>, window_dilations = array<i64: 2, 1>} : (tensor<7x5xf64>, tensor<f64>) -> tensor<3x5xf64>
  return %r : tensor<3x5xf64>
}
func.func @window_multiply(%a0: tensor<5xf64>, %a1: tensor<f64>) -> tensor<3xf64> {
  %r = "stablehlo.reduce_window"(%a0, %a1) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.multiply %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {window_dimensions = array<i64: 3>} : (tensor<5xf64>, tensor<f64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @conv(%a0: tensor<2x3x5x6xf64>, %a1: tensor<4x3x2x3xf64>) -> tensor<2x4x4x4xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x5x6xf64>, tensor<4x3x2x3xf64>) -> tensor<2x4x4x4xf64>
  return %r : tensor<2x4x4x4xf64>
}
func.func @conv_strided(%a0: tensor<2x7x8x3xf64>, %a1: tensor<3x2x3x4xf64>) -> tensor<2x4x3x4xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 3], pad = [[1, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x7x8x3xf64>, tensor<3x2x3x4xf64>) -> tensor<2x4x3x4xf64>
  return %r : tensor<2x4x3x4xf64>
}
func.func @conv_dilated(%a0: tensor<2x3x9xf64>, %a1: tensor<4x3x3xf64>) -> tensor<2x4x8xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {stride = [2], pad = [[2, 1]], lhs_dilate = [2], rhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x9xf64>, tensor<4x3x3xf64>) -> tensor<2x4x8xf64>
  return %r : tensor<2x4x8xf64>
}
func.func @conv_negative_padding(%a0: tensor<1x2x9xf64>, %a1: tensor<3x2x3xf64>) -> tensor<1x3x4xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {pad = [[-2, -1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x9xf64>, tensor<3x2x3xf64>) -> tensor<1x3x4xf64>
  return %r : tensor<1x3x4xf64>
}
func.func @conv_reversed(%a0: tensor<2x3x6xf64>, %a1: tensor<4x3x3xf64>) -> tensor<2x4x4xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {reverse = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x3x6xf64>, tensor<4x3x3xf64>) -> tensor<2x4x4xf64>
  return %r : tensor<2x4x4xf64>
}
func.func @conv_groups(%a0: tensor<2x6x5xf64>, %a1: tensor<4x3x2xf64>) -> tensor<2x4x4xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x6x5xf64>, tensor<4x3x2xf64>) -> tensor<2x4x4xf64>
  return %r : tensor<2x4x4xf64>
}
func.func @conv_depthwise(%a0: tensor<2x5x3xf64>, %a1: tensor<2x1x6xf64>) -> tensor<2x4x6xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<2x5x3xf64>, tensor<2x1x6xf64>) -> tensor<2x4x6xf64>
  return %r : tensor<2x4x6xf64>
}
func.func @conv_batch_groups(%a0: tensor<4x3x5xf64>, %a1: tensor<6x3x2xf64>) -> tensor<2x6x4xf64> {
  %r = stablehlo.convolution(%a0, %a1) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 2 : i64, feature_group_count = 1 : i64} : (tensor<4x3x5xf64>, tensor<6x3x2xf64>) -> tensor<2x6x4xf64>
  return %r : tensor<2x6x4xf64>
}
func.func @gather(%a0: tensor<5x4xf64>, %a1: tensor<6xi32> {test.low = -2, test.high = 7}) -> tensor<6x4xf64> {
  %r = "stablehlo.gather"(%a0, %a1) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : (tensor<5x4xf64>, tensor<6xi32>) -> tensor<6x4xf64>
  return %r : tensor<6x4xf64>
}
func.func @gather_windows(%a0: tensor<5x6xf64>, %a1: tensor<3x2xi32> {test.low = -1, test.high = 6}) -> tensor<2x3x3xf64> {
  %r = "stablehlo.gather"(%a0, %a1) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 2], start_index_map = [1, 0], index_vector_dim = 1>, slice_sizes = array<i64: 2, 3>} : (tensor<5x6xf64>, tensor<3x2xi32>) -> tensor<2x3x3xf64>
  return %r : tensor<2x3x3xf64>
}
func.func @gather_batch(%a0: tensor<3x5xf64>, %a1: tensor<3x2xi32> {test.low = 0, test.high = 4}) -> tensor<3x2xf64> {
  %r = "stablehlo.gather"(%a0, %a1) {dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>} : (tensor<3x5xf64>, tensor<3x2xi32>) -> tensor<3x2xf64>
  return %r : tensor<3x2xf64>
}
func.func @scatter_add(%a0: tensor<5x3xf64>, %a1: tensor<4x1xi32> {test.low = -1, test.high = 5}, %a2: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.add %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<5x3xf64>, tensor<4x1xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @scatter_set(%a0: tensor<5x3xf64>, %a1: tensor<4x1xi32> {test.low = -1, test.high = 5}, %a2: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      stablehlo.return %y : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<5x3xf64>, tensor<4x1xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @scatter_set_unique(%a0: tensor<5x3xf64>, %a2: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %a1 = stablehlo.constant dense<[[3], [0], [9], [2]]> : tensor<4x1xi32>
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      stablehlo.return %y : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true} : (tensor<5x3xf64>, tensor<4x1xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @scatter_multiply(%a0: tensor<5x3xf64>, %a2: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %a1 = stablehlo.constant dense<[[3], [0], [9], [2]]> : tensor<4x1xi32>
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.multiply %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true} : (tensor<5x3xf64>, tensor<4x1xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @scatter_max(%a0: tensor<5x3xf64>, %a1: tensor<4x1xi32> {test.low = -1, test.high = 5}, %a2: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.maximum %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<5x3xf64>, tensor<4x1xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @scatter_min(%a0: tensor<5x3xf64>, %a1: tensor<4x1xi32> {test.low = -1, test.high = 5}, %a2: tensor<4x3xf64>) -> tensor<5x3xf64> {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %z = stablehlo.minimum %x, %y : tensor<f64>
      stablehlo.return %z : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<5x3xf64>, tensor<4x1xi32>, tensor<4x3xf64>) -> tensor<5x3xf64>
  return %r : tensor<5x3xf64>
}
func.func @sort(%a0: tensor<3x6xf64>) -> tensor<3x6xf64> {
  %r = "stablehlo.sort"(%a0) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %p = stablehlo.compare LT, %x, %y : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x6xf64>) -> tensor<3x6xf64>
  return %r : tensor<3x6xf64>
}
func.func @sort_pairs(%a0: tensor<6x2xf64>, %a1: tensor<6x2xf64>, %a2: tensor<6x2xi32> {test.high = 9}) -> (tensor<6x2xi32>, tensor<6x2xf64>, tensor<6x2xf64>) {
  %r:3 = "stablehlo.sort"(%a2, %a0, %a1) ({
    ^bb0(%k: tensor<i32>, %l: tensor<i32>, %x: tensor<f64>, %y: tensor<f64>, %u: tensor<f64>, %v: tensor<f64>):
      %p = stablehlo.compare GT, %x, %y : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<6x2xi32>, tensor<6x2xf64>, tensor<6x2xf64>) -> (tensor<6x2xi32>, tensor<6x2xf64>, tensor<6x2xf64>)
  return %r#0, %r#1, %r#2 : tensor<6x2xi32>, tensor<6x2xf64>, tensor<6x2xf64>
}
func.func @sort_first(%a0: tensor<3x6xf64>) -> (tensor<3x2xf64>, tensor<3x2xi32>) {
  %r:2 = "pestle.sort_first"(%a0) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %p = stablehlo.compare GT, %x, %y : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }) {count = 2 : i64, dimension = 1 : i64} : (tensor<3x6xf64>) -> (tensor<3x2xf64>, tensor<3x2xi32>)
  return %r#0, %r#1 : tensor<3x2xf64>, tensor<3x2xi32>
}
func.func @scan_rnn(%h: tensor<3xf64>, %n: tensor<i32> {test.high = 3}, %xs: tensor<5x3xf64>, %w: tensor<3x3xf64>, %u: tensor<3xf64>) -> (tensor<3xf64>, tensor<i32>, tensor<5x3xf64>) {
  %0:3 = "pestle.scan"(%h, %n, %xs, %w, %u) <{length = 5 : i64, carry_count = 2 : i64, xs_count = 1 : i64, reverse = false}> ({
  ^bb0(%c: tensor<3xf64>, %k: tensor<i32>, %x: tensor<3xf64>, %m: tensor<3x3xf64>, %v: tensor<3xf64>):
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %kf = stablehlo.convert %k : (tensor<i32>) -> tensor<f64>
    %kb = stablehlo.broadcast_in_dim %kf, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %d = stablehlo.dot_general %c, %m, contracting_dims = [0] x [0] : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
    %e = stablehlo.multiply %x, %v : tensor<3xf64>
    %f = stablehlo.multiply %e, %kb : tensor<3xf64>
    %g = stablehlo.add %d, %f : tensor<3xf64>
    %h1 = stablehlo.tanh %g : tensor<3xf64>
    %y = stablehlo.multiply %h1, %c : tensor<3xf64>
    stablehlo.return %h1, %k1, %y : tensor<3xf64>, tensor<i32>, tensor<3xf64>
  }) : (tensor<3xf64>, tensor<i32>, tensor<5x3xf64>, tensor<3x3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<i32>, tensor<5x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<3xf64>, tensor<i32>, tensor<5x3xf64>
}
func.func @scan_rnn_reverse(%h: tensor<3xf64>, %n: tensor<i32> {test.high = 3}, %xs: tensor<5x3xf64>, %w: tensor<3x3xf64>, %u: tensor<3xf64>) -> (tensor<3xf64>, tensor<i32>, tensor<5x3xf64>) {
  %0:3 = "pestle.scan"(%h, %n, %xs, %w, %u) <{length = 5 : i64, carry_count = 2 : i64, xs_count = 1 : i64, reverse = true}> ({
  ^bb0(%c: tensor<3xf64>, %k: tensor<i32>, %x: tensor<3xf64>, %m: tensor<3x3xf64>, %v: tensor<3xf64>):
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %kf = stablehlo.convert %k : (tensor<i32>) -> tensor<f64>
    %kb = stablehlo.broadcast_in_dim %kf, dims = [] : (tensor<f64>) -> tensor<3xf64>
    %d = stablehlo.dot_general %c, %m, contracting_dims = [0] x [0] : (tensor<3xf64>, tensor<3x3xf64>) -> tensor<3xf64>
    %e = stablehlo.multiply %x, %v : tensor<3xf64>
    %f = stablehlo.multiply %e, %kb : tensor<3xf64>
    %g = stablehlo.add %d, %f : tensor<3xf64>
    %h1 = stablehlo.tanh %g : tensor<3xf64>
    %y = stablehlo.multiply %h1, %c : tensor<3xf64>
    stablehlo.return %h1, %k1, %y : tensor<3xf64>, tensor<i32>, tensor<3xf64>
  }) : (tensor<3xf64>, tensor<i32>, tensor<5x3xf64>, tensor<3x3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<i32>, tensor<5x3xf64>)
  return %0#0, %0#1, %0#2 : tensor<3xf64>, tensor<i32>, tensor<5x3xf64>
}
func.func @scan_fixpoint(%a: tensor<f64>) -> (tensor<f64>, tensor<f64>) {
  %z = stablehlo.constant dense<0.5> : tensor<f64>
  %0:3 = "pestle.scan"(%a, %z, %z) <{length = 4 : i64, carry_count = 3 : i64, xs_count = 0 : i64}> ({
  ^bb0(%c: tensor<f64>, %d: tensor<f64>, %e: tensor<f64>):
    %c1 = stablehlo.sine %c : tensor<f64>
    %d1 = stablehlo.multiply %c, %d : tensor<f64>
    %e1 = stablehlo.add %d, %e : tensor<f64>
    stablehlo.return %c1, %d1, %e1 : tensor<f64>, tensor<f64>, tensor<f64>
  }) : (tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<f64>, tensor<f64>, tensor<f64>)
  return %0#1, %0#2 : tensor<f64>, tensor<f64>
}
func.func @scan_nested(%a: tensor<2xf64>, %w: tensor<2xf64>) -> tensor<2xf64> {
  %0 = "pestle.scan"(%a, %w) <{length = 3 : i64, carry_count = 1 : i64, xs_count = 0 : i64}> ({
  ^bb0(%c: tensor<2xf64>, %m: tensor<2xf64>):
    %1:2 = "pestle.scan"(%c, %m) <{length = 2 : i64, carry_count = 1 : i64, xs_count = 0 : i64, reverse = true}> ({
    ^bb0(%d: tensor<2xf64>, %n: tensor<2xf64>):
      %e = stablehlo.multiply %d, %n : tensor<2xf64>
      %f = stablehlo.sine %e : tensor<2xf64>
      stablehlo.return %f, %d : tensor<2xf64>, tensor<2xf64>
    }) : (tensor<2xf64>, tensor<2xf64>) -> (tensor<2xf64>, tensor<2x2xf64>)
    %z = stablehlo.constant dense<0.0> : tensor<f64>
    %s = stablehlo.reduce(%1#1 init: %z) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf64>, tensor<f64>) -> tensor<2xf64>
    %g = stablehlo.add %1#0, %s : tensor<2xf64>
    stablehlo.return %g : tensor<2xf64>
  }) : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}
func.func @scan_empty(%a: tensor<2xf64>, %xs: tensor<0x2xf64>) -> (tensor<2xf64>, tensor<0x2xf64>) {
  %0:2 = "pestle.scan"(%a, %xs) <{length = 0 : i64, carry_count = 1 : i64, xs_count = 1 : i64}> ({
  ^bb0(%c: tensor<2xf64>, %m: tensor<2xf64>):
    %e = stablehlo.multiply %c, %m : tensor<2xf64>
    stablehlo.return %e, %e : tensor<2xf64>, tensor<2xf64>
  }) : (tensor<2xf64>, tensor<0x2xf64>) -> (tensor<2xf64>, tensor<0x2xf64>)
  return %0#0, %0#1 : tensor<2xf64>, tensor<0x2xf64>
}
func.func @if_false(%a: tensor<3xf64>, %b: tensor<3xf64>) -> (tensor<3xf64>, tensor<i32>) {
  %p = stablehlo.constant dense<false> : tensor<i1>
  %s = stablehlo.sine %a : tensor<3xf64>
  %0:2 = "stablehlo.if"(%p) ({
    %c = stablehlo.multiply %s, %a : tensor<3xf64>
    %e = stablehlo.exponential %c : tensor<3xf64>
    %f = stablehlo.multiply %e, %b : tensor<3xf64>
    %i = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %f, %i : tensor<3xf64>, tensor<i32>
  }, {
    %c = stablehlo.tanh %b : tensor<3xf64>
    %i = stablehlo.constant dense<2> : tensor<i32>
    stablehlo.return %c, %i : tensor<3xf64>, tensor<i32>
  }) : (tensor<i1>) -> (tensor<3xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<3xf64>, tensor<i32>
}
func.func @if_true(%a: tensor<3xf64>, %b: tensor<3xf64>) -> (tensor<3xf64>, tensor<i32>) {
  %p = stablehlo.constant dense<true> : tensor<i1>
  %s = stablehlo.sine %a : tensor<3xf64>
  %0:2 = "stablehlo.if"(%p) ({
    %c = stablehlo.multiply %s, %a : tensor<3xf64>
    %e = stablehlo.exponential %c : tensor<3xf64>
    %f = stablehlo.multiply %e, %b : tensor<3xf64>
    %i = stablehlo.constant dense<1> : tensor<i32>
    stablehlo.return %f, %i : tensor<3xf64>, tensor<i32>
  }, {
    %c = stablehlo.tanh %b : tensor<3xf64>
    %i = stablehlo.constant dense<2> : tensor<i32>
    stablehlo.return %c, %i : tensor<3xf64>, tensor<i32>
  }) : (tensor<i1>) -> (tensor<3xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<3xf64>, tensor<i32>
}
func.func @case_in_scan(%a: tensor<f64>, %w: tensor<f64>) -> tensor<f64> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = "pestle.scan"(%a, %z, %w) <{length = 4 : i64, carry_count = 2 : i64, xs_count = 0 : i64}> ({
  ^bb0(%c: tensor<f64>, %k: tensor<i32>, %m: tensor<f64>):
    %one = stablehlo.constant dense<1> : tensor<i32>
    %k1 = stablehlo.add %k, %one : tensor<i32>
    %r:2 = "stablehlo.case"(%k) ({
      %x = stablehlo.multiply %c, %m : tensor<f64>
      stablehlo.return %x, %m : tensor<f64>, tensor<f64>
    }, {
      %x = stablehlo.sine %c : tensor<f64>
      %q = stablehlo.constant dense<2.0> : tensor<f64>
      stablehlo.return %x, %q : tensor<f64>, tensor<f64>
    }, {
      %x = stablehlo.divide %m, %c : tensor<f64>
      stablehlo.return %m, %x : tensor<f64>, tensor<f64>
    }) : (tensor<i32>) -> (tensor<f64>, tensor<f64>)
    %n = stablehlo.add %r#0, %r#1 : tensor<f64>
    stablehlo.return %n, %k1 : tensor<f64>, tensor<i32>
  }) : (tensor<f64>, tensor<i32>, tensor<f64>) -> (tensor<f64>, tensor<i32>)
  return %0#0 : tensor<f64>
}
func.func @if_scan(%a: tensor<f64>, %p: tensor<i1>) -> tensor<f64> {
  %r = "stablehlo.if"(%p) ({
    %0 = "pestle.scan"(%a) <{length = 3 : i64, carry_count = 1 : i64, xs_count = 0 : i64}> ({
    ^bb0(%c: tensor<f64>):
      %d = stablehlo.sine %c : tensor<f64>
      %e = stablehlo.multiply %d, %c : tensor<f64>
      stablehlo.return %e : tensor<f64>
    }) : (tensor<f64>) -> tensor<f64>
    stablehlo.return %0 : tensor<f64>
  }, {
    %0 = stablehlo.exponential %a : tensor<f64>
    stablehlo.return %0 : tensor<f64>
  }) : (tensor<i1>) -> tensor<f64>
  return %r : tensor<f64>
}
// Gradients that are one op stay so in the body of a loop and in a branch.
func.func @whole_in_scan(%a: tensor<2x3x4xf64>, %w: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<2x3x4xf64> {
  %0 = "pestle.scan"(%a, %w, %b) <{length = 3 : i64, carry_count = 1 : i64, xs_count = 0 : i64}> ({
  ^bb0(%c: tensor<2x3x4xf64>, %s: tensor<4xf64>, %o: tensor<4xf64>):
    %1 = "pestle.layer_norm"(%c, %s, %o) {dimensions = array<i64: 2>, epsilon = 0.1 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
    %2 = "pestle.attention"(%1, %1, %c) {scale = 0.5 : f64} : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    stablehlo.return %2 : tensor<2x3x4xf64>
  }) : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}
func.func @whole_in_if(%a: tensor<2x3x4xf64>, %w: tensor<4xf64>, %p: tensor<i1>) -> tensor<2x3x4xf64> {
  %r = "stablehlo.if"(%p) ({
    %0 = "pestle.rms_norm"(%a, %w) {dimensions = array<i64: 2>, epsilon = 0.1 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>) -> tensor<2x3x4xf64>
    stablehlo.return %0 : tensor<2x3x4xf64>
  }, {
    %0 = "pestle.attention"(%a, %a, %a) {scale = 0.5 : f64} : (tensor<2x3x4xf64>, tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
    stablehlo.return %0 : tensor<2x3x4xf64>
  }) : (tensor<i1>) -> tensor<2x3x4xf64>
  return %r : tensor<2x3x4xf64>
}
func.func @while_counted(%a: tensor<3xf64>, %w: tensor<3xf64>) -> (tensor<i32>, tensor<3xf64>, tensor<5x3xf64>) {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %f = stablehlo.constant dense<0.0> : tensor<5x3xf64>
  %0:4 = stablehlo.while(%i = %z, %c = %a, %s = %f, %m = %n) : tensor<i32>, tensor<3xf64>, tensor<5x3xf64>, tensor<i32>
  cond {
    %p = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %o = stablehlo.constant dense<0> : tensor<i32>
    %d = stablehlo.multiply %c, %w : tensor<3xf64>
    %e = stablehlo.sine %d : tensor<3xf64>
    %r = stablehlo.reshape %e : (tensor<3xf64>) -> tensor<1x3xf64>
    %u = stablehlo.dynamic_update_slice %s, %r, %i, %o : (tensor<5x3xf64>, tensor<1x3xf64>, tensor<i32>, tensor<i32>) -> tensor<5x3xf64>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %e, %u, %m : tensor<i32>, tensor<3xf64>, tensor<5x3xf64>, tensor<i32>
  }
  return %0#0, %0#1, %0#2 : tensor<i32>, tensor<3xf64>, tensor<5x3xf64>
}
func.func @cholesky(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}) -> tensor<2x3x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.cholesky"(%x) {lower = true} : (tensor<2x3x3xf64>) -> tensor<2x3x3xf64>
  return %r : tensor<2x3x3xf64>
}
func.func @cholesky_upper(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}) -> tensor<2x3x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.cholesky"(%x) {lower = false} : (tensor<2x3x3xf64>) -> tensor<2x3x3xf64>
  return %r : tensor<2x3x3xf64>
}
func.func @triangular_solve_1(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = true, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @triangular_solve_2(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @triangular_solve_3(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @triangular_solve_4(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = true, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @triangular_solve_5(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @triangular_solve_6(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = true, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @triangular_solve_7(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x2x3xf64>) -> tensor<2x2x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = false, lower = true, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  return %r : tensor<2x2x3xf64>
}
func.func @triangular_solve_8(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x2x3xf64>) -> tensor<2x2x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  return %r : tensor<2x2x3xf64>
}
func.func @triangular_solve_9(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x2x3xf64>) -> tensor<2x2x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<2x3x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  return %r : tensor<2x2x3xf64>
}
func.func @triangular_solve_10(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x2x3xf64>) -> tensor<2x2x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = false, lower = false, unit_diagonal = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  return %r : tensor<2x2x3xf64>
}
func.func @triangular_solve_11(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x2x3xf64>) -> tensor<2x2x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x3x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  return %r : tensor<2x2x3xf64>
}
func.func @triangular_solve_12(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x2x3xf64>) -> tensor<2x2x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "stablehlo.triangular_solve"(%x, %b) {left_side = false, lower = false, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<2x3x3xf64>, tensor<2x2x3xf64>) -> tensor<2x2x3xf64>
  return %r : tensor<2x2x3xf64>
}
func.func @lu_3_3(%a: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %r:3 = "pestle.lu"(%a) : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xi32>, tensor<3xi32>)
  return %r#0 : tensor<3x3xf64>
}
func.func @qr_3_3(%a: tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %r:2 = "pestle.qr"(%a) {full = false} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  return %r#0, %r#1 : tensor<3x3xf64>, tensor<3x3xf64>
}
func.func @svd_3_3(%a: tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>) {
  %r:3 = "pestle.svd"(%a) {full = false} : (tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>)
  return %r#0, %r#1, %r#2 : tensor<3x3xf64>, tensor<3xf64>, tensor<3x3xf64>
}
func.func @lu_4_3(%a: tensor<4x3xf64>) -> tensor<4x3xf64> {
  %r:3 = "pestle.lu"(%a) : (tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3xi32>, tensor<4xi32>)
  return %r#0 : tensor<4x3xf64>
}
func.func @qr_4_3(%a: tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3x3xf64>) {
  %r:2 = "pestle.qr"(%a) {full = false} : (tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3x3xf64>)
  return %r#0, %r#1 : tensor<4x3xf64>, tensor<3x3xf64>
}
func.func @svd_4_3(%a: tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3x3xf64>) {
  %r:3 = "pestle.svd"(%a) {full = false} : (tensor<4x3xf64>) -> (tensor<4x3xf64>, tensor<3xf64>, tensor<3x3xf64>)
  return %r#0, %r#1, %r#2 : tensor<4x3xf64>, tensor<3xf64>, tensor<3x3xf64>
}
func.func @lu_3_5(%a: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %r:3 = "pestle.lu"(%a) : (tensor<3x5xf64>) -> (tensor<3x5xf64>, tensor<3xi32>, tensor<3xi32>)
  return %r#0 : tensor<3x5xf64>
}
func.func @qr_3_5(%a: tensor<3x5xf64>) -> (tensor<3x3xf64>, tensor<3x5xf64>) {
  %r:2 = "pestle.qr"(%a) {full = false} : (tensor<3x5xf64>) -> (tensor<3x3xf64>, tensor<3x5xf64>)
  return %r#0, %r#1 : tensor<3x3xf64>, tensor<3x5xf64>
}
func.func @svd_3_5(%a: tensor<3x5xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<3x5xf64>) {
  %r:3 = "pestle.svd"(%a) {full = false} : (tensor<3x5xf64>) -> (tensor<3x3xf64>, tensor<3xf64>, tensor<3x5xf64>)
  return %r#0, %r#1, %r#2 : tensor<3x3xf64>, tensor<3xf64>, tensor<3x5xf64>
}
func.func @eigh(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}) -> (tensor<2x3xf64>, tensor<2x3x3xf64>) {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r:2 = "pestle.eigh"(%x) {lower = true} : (tensor<2x3x3xf64>) -> (tensor<2x3xf64>, tensor<2x3x3xf64>)
  return %r#0, %r#1 : tensor<2x3xf64>, tensor<2x3x3xf64>
}
func.func @eigh_upper(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}) -> (tensor<2x3xf64>, tensor<2x3x3xf64>) {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r:2 = "pestle.eigh"(%x) {lower = false} : (tensor<2x3x3xf64>) -> (tensor<2x3xf64>, tensor<2x3x3xf64>)
  return %r#0, %r#1 : tensor<2x3xf64>, tensor<2x3x3xf64>
}
func.func @solve(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "pestle.solve"(%x, %b) : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %r : tensor<2x3x2xf64>
}
func.func @inverse(%a: tensor<2x3x3xf64> {test.low = -0.5, test.high = 0.5}) -> tensor<2x3x3xf64> {
  %d = stablehlo.constant dense<[[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.5]]> : tensor<3x3xf64>
  %db = stablehlo.broadcast_in_dim %d, dims = [1, 2] : (tensor<3x3xf64>) -> tensor<2x3x3xf64>
  %x = stablehlo.add %a, %db : tensor<2x3x3xf64>
  %r = "pestle.inverse"(%x) : (tensor<2x3x3xf64>) -> tensor<2x3x3xf64>
  return %r : tensor<2x3x3xf64>
}
func.func @fft(%a: tensor<2x6xcomplex<f64>>) -> tensor<2x6xcomplex<f64>> {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 2, 6>} : (tensor<2x6xcomplex<f64>>) -> tensor<2x6xcomplex<f64>>
  return %r : tensor<2x6xcomplex<f64>>
}
func.func @ifft(%a: tensor<2x6xcomplex<f64>>) -> tensor<2x6xcomplex<f64>> {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type IFFT>, fft_length = array<i64: 2, 6>} : (tensor<2x6xcomplex<f64>>) -> tensor<2x6xcomplex<f64>>
  return %r : tensor<2x6xcomplex<f64>>
}
func.func @rfft_5(%a: tensor<2x3x5xf64>) -> tensor<2x3x3xcomplex<f64>> {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 3, 5>} : (tensor<2x3x5xf64>) -> tensor<2x3x3xcomplex<f64>>
  return %r : tensor<2x3x3xcomplex<f64>>
}
func.func @irfft_5(%a: tensor<2x3x3xcomplex<f64>>) -> tensor<2x3x5xf64> {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 3, 5>} : (tensor<2x3x3xcomplex<f64>>) -> tensor<2x3x5xf64>
  return %r : tensor<2x3x5xf64>
}
func.func @rfft_6(%a: tensor<2x3x6xf64>) -> tensor<2x3x4xcomplex<f64>> {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 3, 6>} : (tensor<2x3x6xf64>) -> tensor<2x3x4xcomplex<f64>>
  return %r : tensor<2x3x4xcomplex<f64>>
}
func.func @irfft_6(%a: tensor<2x3x4xcomplex<f64>>) -> tensor<2x3x6xf64> {
  %r = "stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type IRFFT>, fft_length = array<i64: 3, 6>} : (tensor<2x3x4xcomplex<f64>>) -> tensor<2x3x6xf64>
  return %r : tensor<2x3x6xf64>
}
func.func @cumulative_add_false_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "ADD", reverse = false, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_add_true_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "ADD", reverse = true, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_add_false_true(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "ADD", reverse = false, exclusive = true} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_multiply_false_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MULTIPLY", reverse = false, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_multiply_true_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MULTIPLY", reverse = true, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_multiply_false_true(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MULTIPLY", reverse = false, exclusive = true} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_maximum_false_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MAXIMUM", reverse = false, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_maximum_true_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MAXIMUM", reverse = true, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_minimum_false_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MINIMUM", reverse = false, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_minimum_true_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "MINIMUM", reverse = true, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_logsumexp_false_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "LOGSUMEXP", reverse = false, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @cumulative_logsumexp_true_false(%a: tensor<2x7x2xf64>) -> tensor<2x7x2xf64> {
  %r = "pestle.cumulative"(%a) {dimension = 1 : i64, combiner = "LOGSUMEXP", reverse = true, exclusive = false} : (tensor<2x7x2xf64>) -> tensor<2x7x2xf64>
  return %r : tensor<2x7x2xf64>
}
func.func @adaptive_average_pool(%a: tensor<2x5xf64>) -> tensor<2x3xf64> {
  %r = "pestle.adaptive_average_pool"(%a) {dimensions = array<i64: 1>, output_sizes = array<i64: 3>} : (tensor<2x5xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @adaptive_max_pool(%a: tensor<2x5xf64>) -> tensor<2x3xf64> {
  %r = "pestle.adaptive_max_pool"(%a) {dimensions = array<i64: 1>, output_sizes = array<i64: 3>} : (tensor<2x5xf64>) -> tensor<2x3xf64>
  return %r : tensor<2x3xf64>
}
func.func @batch_norm_inference(%a: tensor<2x3x4xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>, %m: tensor<3xf64>, %v: tensor<3xf64> {test.low = 0.5, test.high = 2}) -> tensor<2x3x4xf64> {
  %r = "stablehlo.batch_norm_inference"(%a, %s, %o, %m, %v) {epsilon = 0.125 : f32, feature_index = 1 : i64} : (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> tensor<2x3x4xf64>
  return %r : tensor<2x3x4xf64>
}
func.func @batch_norm_training(%a: tensor<2x3x4xf64>, %s: tensor<3xf64>, %o: tensor<3xf64>) -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>) {
  %r:3 = "stablehlo.batch_norm_training"(%a, %s, %o) {epsilon = 0.125 : f32, feature_index = 1 : i64} : (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>)
  return %r#0, %r#1, %r#2 : tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>
}
func.func @batch_norm_grad(%a: tensor<2x3x4xf64>, %s: tensor<3xf64>, %m: tensor<3xf64>, %v: tensor<3xf64> {test.low = 0.5, test.high = 2}, %g: tensor<2x3x4xf64>) -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>) {
  %r:3 = "stablehlo.batch_norm_grad"(%a, %s, %m, %v, %g) {epsilon = 0.125 : f32, feature_index = 1 : i64} : (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>, tensor<2x3x4xf64>) -> (tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>)
  return %r#0, %r#1, %r#2 : tensor<2x3x4xf64>, tensor<3xf64>, tensor<3xf64>
}
func.func @dequantize(%a: tensor<3x4xi8> {test.low = -9, test.high = 9}, %s: tensor<3xf64>, %z: tensor<3xi8> {test.high = 4}) -> tensor<3x4xf64> {
  %r = "pestle.dequantize_linear"(%a, %s, %z) {axis = 0 : i64} : (tensor<3x4xi8>, tensor<3xf64>, tensor<3xi8>) -> tensor<3x4xf64>
  return %r : tensor<3x4xf64>
}
func.func @map(%a: tensor<3xf64>, %b: tensor<3xf64>) -> tensor<3xf64> {
  %r = "stablehlo.map"(%a, %b) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      %p = stablehlo.multiply %x, %y : tensor<f64>
      %q = stablehlo.sine %p : tensor<f64>
      stablehlo.return %q : tensor<f64>
  }) {dimensions = array<i64: 0>} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @extent(%a: tensor<3xf64>) -> tensor<3xf64> {
  %n = stablehlo.constant dense<2> : tensor<i64>
  %e = "pestle.extent"(%a, %n) {dimension = 0 : i64} : (tensor<3xf64>, tensor<i64>) -> tensor<3xf64>
  %r = stablehlo.sine %e : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @select_and_scatter(%x: tensor<4x6xf64>, %s: tensor<2x3xf64>, %i: tensor<f64>) -> tensor<4x6xf64> {
  %r = "stablehlo.select_and_scatter"(%x, %s, %i) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %p = stablehlo.compare GE, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
  }, {
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %p = stablehlo.add %a, %b : tensor<f64>
      stablehlo.return %p : tensor<f64>
  }) {window_dimensions = array<i64: 3, 2>, window_strides = array<i64: 2, 2>, padding = dense<[[0, 1], [0, 0]]> : tensor<2x2xi64>} : (tensor<4x6xf64>, tensor<2x3xf64>, tensor<f64>) -> tensor<4x6xf64>
  return %r : tensor<4x6xf64>
}
func.func @reduce_precision(%a: tensor<3xf64>) -> tensor<3xf64> {
  %z = stablehlo.constant dense<0.0> : tensor<3xf64>
  %w = stablehlo.reduce_precision %a, format = e11m52 : tensor<3xf64>
  %r = stablehlo.multiply %w, %a : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @attention_mask(%q: tensor<2x3x4xf64>, %k: tensor<2x5x4xf64>, %v: tensor<2x5x6xf64>, %b: tensor<2x3x5xf64>, %m: tensor<1x3x5xi1>) -> tensor<2x3x6xf64> {
  %r = "pestle.attention"(%q, %k, %v, %b, %m) {scale = 0.5 : f64, masked = -3.0 : f64} : (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<2x3x5xf64>, tensor<1x3x5xi1>) -> tensor<2x3x6xf64>
  return %r : tensor<2x3x6xf64>
}

func.func @attention_grad(%q: tensor<2x3x4xf64>, %k: tensor<2x5x4xf64>, %v: tensor<2x5x6xf64>, %y: tensor<2x3x6xf64>, %c: tensor<2x3x6xf64>) -> (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>) {
  %r:3 = "pestle.attention_grad"(%q, %k, %v, %y, %c) {scale = 0.5 : f64} : (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<2x3x6xf64>, tensor<2x3x6xf64>) -> (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>)
  return %r#0, %r#1, %r#2 : tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>
}
func.func @attention_grad_mask(%q: tensor<2x3x4xf64>, %k: tensor<2x5x4xf64>, %v: tensor<2x5x6xf64>, %y: tensor<2x3x6xf64>, %c: tensor<2x3x6xf64>, %b: tensor<1x3x5xf64>, %m: tensor<1x3x5xi1>) -> (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<1x3x5xf64>) {
  %r:4 = "pestle.attention_grad"(%q, %k, %v, %y, %c, %b, %m) {scale = 0.5 : f64, masked = -3.0 : f64, of_bias = true} : (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<2x3x6xf64>, tensor<2x3x6xf64>, tensor<1x3x5xf64>, tensor<1x3x5xi1>) -> (tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<1x3x5xf64>)
  return %r#0, %r#1, %r#2, %r#3 : tensor<2x3x4xf64>, tensor<2x5x4xf64>, tensor<2x5x6xf64>, tensor<1x3x5xf64>
}

func.func @norm_grad(%x: tensor<3x2x4xf64>, %s: tensor<4xf64>, %c: tensor<3x2x4xf64>) -> (tensor<3x2x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>) {
  %r:3 = "pestle.norm_grad"(%x, %s, %c) {dimension = 2 : i64, epsilon = 0.125 : f64, centred = true, blocks = 4 : i64} : (tensor<3x2x4xf64>, tensor<4xf64>, tensor<3x2x4xf64>) -> (tensor<3x2x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>)
  return %r#0, %r#1, %r#2 : tensor<3x2x4xf64>, tensor<4x4xf64>, tensor<4x4xf64>
}
func.func @norm_grad_of_size(%x: tensor<3x2x4xf64>, %s: tensor<2x4xf64>, %c: tensor<3x2x4xf64>) -> (tensor<3x2x4xf64>, tensor<1x2x4xf64>) {
  %r:2 = "pestle.norm_grad"(%x, %s, %c) {dimension = 1 : i64, epsilon = 0.125 : f64, blocks = 1 : i64} : (tensor<3x2x4xf64>, tensor<2x4xf64>, tensor<3x2x4xf64>) -> (tensor<3x2x4xf64>, tensor<1x2x4xf64>)
  return %r#0, %r#1 : tensor<3x2x4xf64>, tensor<1x2x4xf64>
}
// Places that the indices' type cannot name.
func.func @gather_narrow(%a: tensor<130xf64>, %i: tensor<6xi8> {test.low = -20, test.high = 127}) -> tensor<6xf64> {
  %r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<130xf64>, tensor<6xi8>) -> tensor<6xf64>
  return %r : tensor<6xf64>
}
func.func @scatter_narrow(%a0: tensor<130xf64>, %a1: tensor<6x1xi8> {test.low = -20, test.high = 127}, %a2: tensor<6xf64>) -> tensor<130xf64> {
  %r = "stablehlo.scatter"(%a0, %a1, %a2) ({
    ^bb0(%x: tensor<f64>, %y: tensor<f64>):
      stablehlo.return %y : tensor<f64>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false} : (tensor<130xf64>, tensor<6x1xi8>, tensor<6xf64>) -> tensor<130xf64>
  return %r : tensor<130xf64>
}
func.func @block_dot(%x: tensor<2x3x28xf64>, %s: tensor<5x2xf64>, %z: tensor<5x2xf64>) -> tensor<2x3x5xf64> {
  %w = stablehlo.iota dim = 1 : tensor<5x16xui8>
  %n = stablehlo.constant dense<29> : tensor<5x16xui8>
  %p = stablehlo.multiply %w, %n : tensor<5x16xui8>
  %r = "pestle.block_dot"(%x, %p, %s, %z) {bits = 4 : i64, block = 16 : i64} : (tensor<2x3x28xf64>, tensor<5x16xui8>, tensor<5x2xf64>, tensor<5x2xf64>) -> tensor<2x3x5xf64>
  return %r : tensor<2x3x5xf64>
}
// Bounds that are crossed: the upper one is the result.
func.func @clamp_crossed(%a0: tensor<4xf64> {test.low = 0.5, test.high = 1.0}, %a1: tensor<4xf64>, %a2: tensor<4xf64> {test.low = -1.0, test.high = -0.5}) -> tensor<4xf64> {
  %r = stablehlo.clamp %a0, %a1, %a2 : tensor<4xf64>
  return %r : tensor<4xf64>
}
// The loop's tangents are of floats alone: integers made of them have none.
func.func @scan_to_integers(%a0: tensor<4xf64>, %a1: tensor<3xf64>) -> tensor<4xf64> {
  %r = "pestle.scan"(%a0, %a1) <{length = 3 : i64, carry_count = 1 : i64, xs_count = 1 : i64}> ({
  ^bb0(%c: tensor<4xf64>, %x: tensor<f64>):
    %i = stablehlo.convert %c : (tensor<4xf64>) -> tensor<4xui8>
    %f = stablehlo.convert %i : (tensor<4xui8>) -> tensor<4xf64>
    %b = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f64>) -> tensor<4xf64>
    %m = stablehlo.multiply %c, %b : tensor<4xf64>
    %s = stablehlo.add %m, %f : tensor<4xf64>
    stablehlo.return %s : tensor<4xf64>
  }) : (tensor<4xf64>, tensor<3xf64>) -> tensor<4xf64>
  return %r : tensor<4xf64>
}
// Of a branch that is batched in part, the rest is read before the return.
func.func @case_read_on(%i: tensor<i32> {test.low = 0, test.high = 1}, %a0: tensor<3xf64>, %a1: tensor<3xf64>) -> tensor<3xf64> {
  %c:2 = "stablehlo.case"(%i) ({
    stablehlo.return %a0, %a1 : tensor<3xf64>, tensor<3xf64>
  }, {
    %s = stablehlo.sine %a0 : tensor<3xf64>
    stablehlo.return %s, %a1 : tensor<3xf64>, tensor<3xf64>
  }) : (tensor<i32>) -> (tensor<3xf64>, tensor<3xf64>)
  %t = stablehlo.tanh %c#1 : tensor<3xf64>
  %r = stablehlo.multiply %c#0, %t : tensor<3xf64>
  return %r : tensor<3xf64>
}
func.func @pad_of_one(%a0: tensor<f64>, %a1: tensor<f64>) -> tensor<f64> {
  %p = stablehlo.pad %a0, %a1, low = [], high = [], interior = [] : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %s = "stablehlo.slice"(%p) <{start_indices = array<i64>, limit_indices = array<i64>, strides = array<i64>}> : (tensor<f64>) -> tensor<f64>
  %r = stablehlo.sine %s : tensor<f64>
  return %r : tensor<f64>
}
// The initial value is the minimum of some windows, of which no element has a tangent.
func.func @window_min_above(%a0: tensor<12xf64>) -> tensor<12xf64> {
  %i = stablehlo.constant dense<0.1> : tensor<f64>
  %r = "stablehlo.reduce_window"(%a0, %i) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %m = stablehlo.minimum %a, %b : tensor<f64>
      stablehlo.return %m : tensor<f64>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 1>, padding = dense<[[1, 0]]> : tensor<1x2xi64>} : (tensor<12xf64>, tensor<f64>) -> tensor<12xf64>
  return %r : tensor<12xf64>
}
// Computed again in reverse mode, one inside of the other, of which one result is not read.
func.func @checkpoint(%a0: tensor<3x3xf64>, %a1: tensor<3x3xf64>) -> tensor<3x3xf64> {
  %a:2 = stablehlo.composite "pestle.checkpoint" %a0, %a1 {decomposition = @checkpoint_body} : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  %b:2 = stablehlo.composite "pestle.checkpoint" %a#0, %a0 {decomposition = @checkpoint_outer} : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  %r = stablehlo.multiply %b#0, %b#1 : tensor<3x3xf64>
  return %r : tensor<3x3xf64>
}
func.func private @checkpoint_body(%x: tensor<3x3xf64>, %w: tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
  %t = stablehlo.tanh %d : tensor<3x3xf64>
  %s = stablehlo.sine %x : tensor<3x3xf64>
  return %t, %s : tensor<3x3xf64>, tensor<3x3xf64>
}
func.func private @checkpoint_outer(%x: tensor<3x3xf64>, %w: tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>) {
  %a:2 = stablehlo.composite "pestle.checkpoint" %x, %w {decomposition = @checkpoint_body} : (tensor<3x3xf64>, tensor<3x3xf64>) -> (tensor<3x3xf64>, tensor<3x3xf64>)
  %r = stablehlo.multiply %a#0, %a#1 : tensor<3x3xf64>
  return %r, %w : tensor<3x3xf64>, tensor<3x3xf64>
}
}
