// The exponential and the sine that a later product's epilogue reads are computed again
// from the first product, and once more for the view that the last product reads.
// RUN: %pestle-opt %s --passes=recompute --round-trip --check | FileCheck %s
// CHECK:     [[P:%.*]] = stablehlo.dot_general %x, %w
// CHECK:     [[B:%.*]] = stablehlo.broadcast_in_dim %b
// CHECK:     [[H:%.*]] = stablehlo.add [[P]], [[B]]
// CHECK:     [[S:%.*]] = stablehlo.sine [[H]]
// CHECK:     [[C:%.*]] = stablehlo.dot_general [[S]], %v
// CHECK:     [[D:%.*]] = stablehlo.dot_general [[C]], %v
// CHECK:     [[K:%.*]] = stablehlo.optimization_barrier [[H]]
// CHECK:     [[E2:%.*]] = stablehlo.exponential [[K]]
// CHECK:     [[S2:%.*]] = stablehlo.sine [[K]]
// CHECK-DAG: stablehlo.multiply [[D]], [[E2]]
// CHECK-DAG: stablehlo.multiply {{%.*}}, [[S2]]
// CHECK:     [[L:%.*]] = stablehlo.optimization_barrier [[H]]
// CHECK:     [[S3:%.*]] = stablehlo.sine [[L]]
// CHECK:     [[T:%.*]] = stablehlo.transpose [[S3]]
// CHECK:     stablehlo.dot_general [[T]], [[C]]
func.func @main(%x: tensor<256x16xf32>, %w: tensor<16x512xf32>, %b: tensor<512xf32>, %v: tensor<512x16xf32>) -> (tensor<256x512xf32>, tensor<512x16xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x512xf32>) -> tensor<256x512xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<512xf32>) -> tensor<256x512xf32>
  %h = stablehlo.add %p, %bb : tensor<256x512xf32>
  %e = stablehlo.exponential %h : tensor<256x512xf32>
  %s = stablehlo.sine %h : tensor<256x512xf32>
  %c = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x16xf32>) -> tensor<256x16xf32>
  %d = stablehlo.dot_general %c, %v, contracting_dims = [1] x [1] : (tensor<256x16xf32>, tensor<512x16xf32>) -> tensor<256x512xf32>
  %de = stablehlo.multiply %d, %e : tensor<256x512xf32>
  %ds = stablehlo.multiply %de, %s : tensor<256x512xf32>
  %t = stablehlo.transpose %s, dims = [1, 0] : (tensor<256x512xf32>) -> tensor<512x256xf32>
  %g = stablehlo.dot_general %t, %c, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x16xf32>) -> tensor<512x16xf32>
  return %ds, %g : tensor<256x512xf32>, tensor<512x16xf32>
}
