// RUN: %pestle-opt %s --passes=fold_constants --round-trip | FileCheck %s
// CHECK:     dense<[4.0, 6.0]>
// CHECK-NOT: stablehlo.add
func.func @main() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %1 = stablehlo.constant dense<[3.0, 4.0]> : tensor<2xf32>
  %2 = stablehlo.add %0, %1 : tensor<2xf32>
  return %2 : tensor<2xf32>
}
