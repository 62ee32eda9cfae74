// Attention of rows too long for the caches: blocks of columns in one pass. The copy of
// the queries belongs to a block of rows, and is read by what runs under two loops.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
// RUN: %pestle dump %s --stage kernels --target ref | FileCheck %s
// A block's maximum joins the one so far, and both are taken off exponents alone: which
// zero it is does not matter.
// CHECK: maximum {{.*}} : f32x16 contract nsz
func.func @main(%q: tensor<12x1024x64xf32>, %k: tensor<12x1024x64xf32>, %v: tensor<12x1024x64xf32>) -> tensor<12x1024x64xf32> {
  %0 = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<12x1024x64xf32>, tensor<12x1024x64xf32>) -> tensor<12x1024x1024xf32>
  %ninf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %ninf) applies stablehlo.maximum across dimensions = [2] : (tensor<12x1024x1024xf32>, tensor<f32>) -> tensor<12x1024xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<12x1024xf32>) -> tensor<12x1024x1024xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<12x1024x1024xf32>
  %4 = stablehlo.exponential %3 : tensor<12x1024x1024xf32>
  %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<12x1024x1024xf32>, tensor<f32>) -> tensor<12x1024xf32>
  %6 = stablehlo.broadcast_in_dim %5, dims = [0, 1] : (tensor<12x1024xf32>) -> tensor<12x1024x1024xf32>
  %7 = stablehlo.divide %4, %6 : tensor<12x1024x1024xf32>
  %8 = stablehlo.dot_general %7, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<12x1024x1024xf32>, tensor<12x1024x64xf32>) -> tensor<12x1024x64xf32>
  return %8 : tensor<12x1024x64xf32>
}
