// What follows from which partition a process is, is known for each of them.
// RUN: %pestle-opt %s --passes=fold_constants,dce --round-trip | FileCheck %s
// RUN: %pestle-opt %s --passes=fold_constants,dce,decompose --round-trip | FileCheck %s --check-prefix=BACK
module @parts attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<i32>, tensor<1x2xf32>) {
    %p = stablehlo.partition_id : tensor<ui32>
    %t = stablehlo.constant dense<[0, 2, 0, 2]> : tensor<4xi32>
    %s = stablehlo.dynamic_slice %t, %p, sizes = [1] : (tensor<4xi32>, tensor<ui32>) -> tensor<1xi32>
    %o = stablehlo.reshape %s : (tensor<1xi32>) -> tensor<i32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %w = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<4x2xf32>
    %r = stablehlo.dynamic_slice %w, %o, %z, sizes = [2, 2] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    %q = stablehlo.transpose %r, dims = [1, 0] : (tensor<2x2xf32>) -> tensor<2x2xf32>
    // CHECK-DAG: %[[Q:.*]] = "pestle.constant_part"() <{value = dense<{{\[\[\[}}1.0, 3.0], [2.0, 4.0]], {{\[\[}}5.0, 7.0], [6.0, 8.0]]]> : tensor<2x2x2xf32>, parts = array<i64: 0, 1, 0, 1>}> : () -> tensor<2x2xf32>
    %a = stablehlo.add %x, %q : tensor<2x2xf32>
    // What all have alike is a constant.
    %v = stablehlo.constant dense<[[1.0, 2.0], [9.0, 9.0], [1.0, 2.0], [9.0, 9.0]]> : tensor<4x2xf32>
    %e = stablehlo.dynamic_slice %v, %o, %z, sizes = [1, 2] : (tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    // CHECK-DAG: %[[E:.*]] = stablehlo.constant dense<{{\[\[}}1.0, 2.0]]> : tensor<1x2xf32>
    // Of what a run brings each process takes its part by a number that it has.
    %b = stablehlo.dynamic_slice %x, %o, %z, sizes = [2, 2] : (tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
    // CHECK-DAG: %[[O:.*]] = "pestle.constant_part"() <{value = dense<[0, 2]> : tensor<2xi32>, parts = array<i64: 0, 1, 0, 1>}> : () -> tensor<i32>
    %k = stablehlo.multiply %o, %o : tensor<i32>
    // CHECK-DAG: %[[K:.*]] = "pestle.constant_part"() <{value = dense<[0, 4]> : tensor<2xi32>, parts = array<i64: 0, 1, 0, 1>}> : () -> tensor<i32>
    // CHECK-NOT: partition_id
    // BACK-NOT: constant_part
    // BACK: stablehlo.partition_id
    // BACK-COUNT-4: stablehlo.dynamic_slice
    // CHECK: return %{{.*}}, %{{.*}}, %[[K]], %[[E]]
    return %a, %b, %k, %e : tensor<2x2xf32>, tensor<2x2xf32>, tensor<i32>, tensor<1x2xf32>
  }
}
