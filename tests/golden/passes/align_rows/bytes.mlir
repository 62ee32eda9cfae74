// Matrix units of warpgroups take bytes along k: the second matrix is turned, and zeros
// fill k and an odd number of columns up to whole runs of 16 bytes.
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt90 --numerics strict | FileCheck %s
// RUN: %pestle dump %s --stage fused --target ref --target-cpu simt | FileCheck %s --check-prefix=PLAIN
// CHECK-LABEL: @main
// CHECK-DAG: stablehlo.pad {{.*}} -> tensor<64x1120xi8>
// CHECK-DAG: stablehlo.pad {{.*}} -> tensor<780x1120xui8>
// CHECK: stablehlo.dot_general {{.*}} contracting_dims = [1] x [1] {{.*}} -> tensor<64x780xi32>
// CHECK: stablehlo.slice {{.*}} -> tensor<64x777xi32>
// PLAIN-NOT: stablehlo.pad
func.func @main(%a: tensor<64x1111xi8>, %b: tensor<1111x777xui8>) -> tensor<64x777xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x1111xi8>, tensor<1111x777xui8>) -> tensor<64x777xi32>
  return %0 : tensor<64x777xi32>
}
