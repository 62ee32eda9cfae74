// SPDX-License-Identifier: Apache-2.0
func.func public @main(%q: tensor<2x4x16x8xf32>, %k: tensor<2x4x16x8xf32>, %v: tensor<2x4x16x8xf32>, %m: tensor<2x4x16x16xi1>, %b: tensor<2x4x16x16xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>,
    tensor<2x4x16x8xf32>) {
  %s = stablehlo.dot_general %q, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x16xf32>
  %neg = stablehlo.constant dense<-1.0e9> : tensor<2x4x16x16xf32>
  %t = stablehlo.select %m, %s, %neg : tensor<2x4x16x16xi1>, tensor<2x4x16x16xf32>
  %u = stablehlo.add %t, %b : tensor<2x4x16x16xf32>
  %p = "pestle.softmax"(%u) <{dimensions = array<i64: 3>}> : (tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x16x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %s2 = stablehlo.dot_general %k, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x16xf32>
  %t2 = stablehlo.tanh %s2 : tensor<2x4x16x16xf32>
  %p2 = "pestle.softmax"(%t2) <{dimensions = array<i64: 3>}> : (tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %o2 = stablehlo.dot_general %p2, %v, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x16x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  %s3 = stablehlo.dot_general %v, %q, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x16xf32>
  %u3 = stablehlo.add %s3, %b : tensor<2x4x16x16xf32>
  %p3 = "pestle.softmax"(%u3) <{dimensions = array<i64: 3>}> : (tensor<2x4x16x16xf32>) -> tensor<2x4x16x16xf32>
  %o3 = stablehlo.dot_general %p3, %k, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2] : (tensor<2x4x16x16xf32>, tensor<2x4x16x8xf32>) -> tensor<2x4x16x8xf32>
  return %o, %o2, %o3 : tensor<2x4x16x8xf32>, tensor<2x4x16x8xf32>,
      tensor<2x4x16x8xf32>
}
