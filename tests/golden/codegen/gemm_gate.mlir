// Tiles of accumulators, also where what follows the product uses a costly function
// of another operand twice, and writes two results.
// RUN: %pestle dump %s --stage schedule --target ref | FileCheck %s
// CHECK-LABEL: nest "dot_general_exponential
// CHECK-NOT:   local {{e|s}} :
// CHECK:       inline
// CHECK:       split y{{.*}}.a
// CHECK:       vectorise y{{.*}}.bi
// CHECK:       unroll c.a
// CHECK:       at c, y{{.*}}.a
func.func @main(%x: tensor<96x64xf32>, %w: tensor<64x64xf32>, %a: tensor<96x64xf32>) -> (tensor<96x64xf32>, tensor<96x64xf32>) {
  %m = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<96x64xf32>, tensor<64x64xf32>) -> tensor<96x64xf32>
  %e = stablehlo.exponential %a : tensor<96x64xf32>
  %p = stablehlo.multiply %m, %e : tensor<96x64xf32>
  %y = stablehlo.add %p, %e : tensor<96x64xf32>
  %z = stablehlo.subtract %m, %e : tensor<96x64xf32>
  return %y, %z : tensor<96x64xf32>, tensor<96x64xf32>
}
