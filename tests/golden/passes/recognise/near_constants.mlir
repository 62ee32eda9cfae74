// RUN: %pestle-opt %s --passes=canonicalise,recognise --round-trip --check | FileCheck %s
// Constants that are near those of a composite, but not as near as their type tells:
// other functions. In f64 0.79788456 is not sqrt(2 / pi); in f32 it is.

// CHECK-LABEL: @main
// CHECK-NOT: pestle.gelu
// CHECK:     return
func.func @main(%x: tensor<8xf64>) -> tensor<8xf64> {
  %half = stablehlo.constant dense<0.5> : tensor<8xf64>
  %one = stablehlo.constant dense<1.0> : tensor<8xf64>
  %a = stablehlo.constant dense<0.79788456> : tensor<8xf64>
  %b = stablehlo.constant dense<0.044715> : tensor<8xf64>
  %s = stablehlo.multiply %x, %x : tensor<8xf64>
  %c = stablehlo.multiply %s, %x : tensor<8xf64>
  %bc = stablehlo.multiply %b, %c : tensor<8xf64>
  %i = stablehlo.add %x, %bc : tensor<8xf64>
  %ai = stablehlo.multiply %a, %i : tensor<8xf64>
  %t = stablehlo.tanh %ai : tensor<8xf64>
  %p = stablehlo.add %t, %one : tensor<8xf64>
  %h = stablehlo.multiply %half, %x : tensor<8xf64>
  %y = stablehlo.multiply %h, %p : tensor<8xf64>
  return %y : tensor<8xf64>
}

// CHECK-LABEL: @in_f32
// CHECK:     pestle.gelu
func.func @in_f32(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %a = stablehlo.constant dense<0.79788456> : tensor<8xf32>
  %b = stablehlo.constant dense<0.044715> : tensor<8xf32>
  %s = stablehlo.multiply %x, %x : tensor<8xf32>
  %c = stablehlo.multiply %s, %x : tensor<8xf32>
  %bc = stablehlo.multiply %b, %c : tensor<8xf32>
  %i = stablehlo.add %x, %bc : tensor<8xf32>
  %ai = stablehlo.multiply %a, %i : tensor<8xf32>
  %t = stablehlo.tanh %ai : tensor<8xf32>
  %p = stablehlo.add %t, %one : tensor<8xf32>
  %h = stablehlo.multiply %half, %x : tensor<8xf32>
  %y = stablehlo.multiply %h, %p : tensor<8xf32>
  return %y : tensor<8xf32>
}

// CHECK-LABEL: @by_four_digits
// CHECK-NOT: pestle.gelu
// CHECK:     return
func.func @by_four_digits(%x: tensor<8xf32>) -> tensor<8xf32> {
  %half = stablehlo.constant dense<0.5> : tensor<8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %a = stablehlo.constant dense<0.7071> : tensor<8xf32>
  %i = stablehlo.multiply %x, %a : tensor<8xf32>
  %e = chlo.erf %i : tensor<8xf32> -> tensor<8xf32>
  %p = stablehlo.add %e, %one : tensor<8xf32>
  %h = stablehlo.multiply %half, %x : tensor<8xf32>
  %y = stablehlo.multiply %h, %p : tensor<8xf32>
  return %y : tensor<8xf32>
}

// The variance of a sample: by one less than there are elements.
// CHECK-LABEL: @by_one_less
// CHECK-NOT: pestle.layer_norm
// CHECK:     return
func.func @by_one_less(%x: tensor<1x20000xf32>) -> tensor<1x20000xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<20000.0> : tensor<1xf32>
  %less = stablehlo.constant dense<19999.0> : tensor<1xf32>
  %e = stablehlo.constant dense<0.1> : tensor<1xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x20000xf32>, tensor<f32>) -> tensor<1xf32>
  %m = stablehlo.divide %s, %n : tensor<1xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<1xf32>) -> tensor<1x20000xf32>
  %d = stablehlo.subtract %x, %mb : tensor<1x20000xf32>
  %q = stablehlo.multiply %d, %d : tensor<1x20000xf32>
  %qs = stablehlo.reduce(%q init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<1x20000xf32>, tensor<f32>) -> tensor<1xf32>
  %v = stablehlo.divide %qs, %less : tensor<1xf32>
  %ve = stablehlo.add %v, %e : tensor<1xf32>
  %r = stablehlo.rsqrt %ve : tensor<1xf32>
  %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<1xf32>) -> tensor<1x20000xf32>
  %y = stablehlo.multiply %d, %rb : tensor<1x20000xf32>
  return %y : tensor<1x20000xf32>
}
