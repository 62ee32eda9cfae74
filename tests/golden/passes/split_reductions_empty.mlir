// RUN: %pestle-opt %s --passes=split_reductions --round-trip --check | FileCheck %s
// Products of no batch or no rows stay as they are.
// CHECK-LABEL: @main
// CHECK:     stablehlo.dot_general
// CHECK:     stablehlo.dot_general
func.func @main(%v: tensor<0x1x4096xf32>, %m: tensor<0x64x4096xf32>, %n: tensor<0x4096xf32>, %w: tensor<4096x0xf32>) -> (tensor<0x1x64xf32>, tensor<0x0xf32>) {
  %a = stablehlo.dot_general %v, %m, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<0x1x4096xf32>, tensor<0x64x4096xf32>) -> tensor<0x1x64xf32>
  %b = stablehlo.dot_general %n, %w, contracting_dims = [1] x [0] : (tensor<0x4096xf32>, tensor<4096x0xf32>) -> tensor<0x0xf32>
  return %a, %b : tensor<0x1x64xf32>, tensor<0x0xf32>
}
