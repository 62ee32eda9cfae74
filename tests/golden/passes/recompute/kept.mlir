// Nothing is computed again where it would save no bytes: one value instead of another,
// or a value that is a result anyway.
// RUN: %pestle-opt %s --passes=recompute --round-trip --check | FileCheck %s
// CHECK-NOT: stablehlo.optimization_barrier
func.func @main(%x: tensor<256x16xf32>, %w: tensor<16x512xf32>, %v: tensor<512x16xf32>) -> (tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>) {
  // One value for another.
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x512xf32>) -> tensor<256x512xf32>
  %e = stablehlo.exponential %p : tensor<256x512xf32>
  %f = stablehlo.sine %p : tensor<256x512xf32>
  %ef = stablehlo.add %e, %f : tensor<256x512xf32>
  %c = stablehlo.dot_general %ef, %v, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x16xf32>) -> tensor<256x16xf32>
  %d = stablehlo.dot_general %c, %v, contracting_dims = [1] x [1] : (tensor<256x16xf32>, tensor<512x16xf32>) -> tensor<256x512xf32>
  %de = stablehlo.multiply %d, %e : tensor<256x512xf32>
  // A result.
  %q = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x512xf32>) -> tensor<256x512xf32>
  %s = stablehlo.sine %q : tensor<256x512xf32>
  %g = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x16xf32>) -> tensor<256x16xf32>
  %h = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<256x16xf32>, tensor<512x16xf32>) -> tensor<256x512xf32>
  %hs = stablehlo.add %h, %s : tensor<256x512xf32>
  return %de, %s, %hs : tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>
}
