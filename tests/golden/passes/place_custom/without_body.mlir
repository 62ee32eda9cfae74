// RUN: %pestle-opt %s --passes=place_custom --round-trip | FileCheck %s
// RUN: not %pestle dump %s --stage plan 2>&1 | FileCheck %s --check-prefix=PLAN
// What has no body stays, and is no plan.
// CHECK: %0 = stablehlo.custom_call @user.other(%x) {api_version = 4 : i32, pestle.version = 2 : i64}
// PLAN: 'stablehlo.composite' {{.*}}: 'user.other' has no body; give it a decomposition
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @user.other(%x) {pestle.version = 2 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
