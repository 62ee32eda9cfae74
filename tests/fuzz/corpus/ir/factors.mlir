// The factors of matrices: attributes that are false are left out.
//
// RUN: %pestle dump %s > %t.1
// RUN: %pestle dump %t.1 | diff %t.1 -
// RUN: %pestle-opt %s --round-trip --quiet
// RUN: FileCheck %s < %t.1
func.func public @main(%a: tensor<2x4x4xf64>, %b: tensor<5x3xf32>) -> (tensor<5x5xf32>, tensor<5x3xf32>, tensor<2x4xf64>, tensor<2x4x4xf64>, tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>) {
  // CHECK: "pestle.qr"(%b) <{full = true}> : (tensor<5x3xf32>) -> (tensor<5x5xf32>, tensor<5x3xf32>)
  %q:2 = "pestle.qr"(%b) <{full = true}> : (tensor<5x3xf32>) -> (tensor<5x5xf32>, tensor<5x3xf32>)
  // CHECK: "pestle.eigh"(%a) <{lower = true}> : (tensor<2x4x4xf64>) -> (tensor<2x4xf64>, tensor<2x4x4xf64>)
  %e:2 = "pestle.eigh"(%a) <{lower = true}> : (tensor<2x4x4xf64>) -> (tensor<2x4xf64>, tensor<2x4x4xf64>)
  // CHECK: "pestle.svd"(%b) : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>)
  %s:3 = "pestle.svd"(%b) <{full = false}> : (tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>)
  return %q#0, %q#1, %e#0, %e#1, %s#0, %s#1, %s#2 : tensor<5x5xf32>, tensor<5x3xf32>, tensor<2x4xf64>, tensor<2x4x4xf64>, tensor<5x3xf32>, tensor<3xf32>, tensor<3x3xf32>
}
