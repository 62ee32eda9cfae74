// Rows of whole runs of 16 bytes, where a target multiplies by warpgroups. The second
// matrix lies transposed, and its result has an odd number of columns.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt | FileCheck %s --check-prefix=PLAIN
// CHECK: stablehlo.pad {{.*}}low = [0, 0], high = [0, 1]{{.*}} -> tensor<64x1112xbf16>
// CHECK: stablehlo.pad {{.*}}low = [0, 0], high = [7, 1]{{.*}} -> tensor<784x1112xbf16>
// CHECK: label = "dot_general_slice"
// CHECK: stablehlo.slice {{.*}} -> tensor<64x1111xbf16>
// CHECK: stablehlo.slice {{.*}} -> tensor<784x1111xbf16>
// CHECK: stablehlo.dot_general {{.*}} -> tensor<64x784xbf16>
// CHECK: stablehlo.slice {{.*}} -> tensor<64x777xbf16>
// PLAIN-NOT: stablehlo.pad
func.func @main(%a: tensor<64x1111xbf16>, %b: tensor<777x1111xbf16>) -> tensor<64x777xbf16> {
  %t = stablehlo.transpose %b, dims = [1, 0] : (tensor<777x1111xbf16>) -> tensor<1111x777xbf16>
  %0 = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] : (tensor<64x1111xbf16>, tensor<1111x777xbf16>) -> tensor<64x777xbf16>
  return %0 : tensor<64x777xbf16>
}
