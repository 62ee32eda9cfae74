// A composite is read as a call of its decomposition, in both syntaxes.
// RUN: %pestle dump %s | FileCheck %s
// CHECK:      func.func public @main
// CHECK-NEXT:   %0 = call @softsign.impl(%x) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   %1 = call @softsign.impl(%0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT:   return %1 : tensor<4xf32>
module {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.composite "my.softsign" %x {composite_attributes = {scale = 1 : i64, name = "s"}, decomposition = @softsign.impl, version = 1 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.composite"(%0) <{composite_attributes = {}, decomposition = @softsign.impl, name = "my.softsign", version = 1 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @softsign.impl(%x: tensor<4xf32>) -> tensor<4xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<4xf32>
    %0 = stablehlo.abs %x : tensor<4xf32>
    %1 = stablehlo.add %0, %one : tensor<4xf32>
    %2 = stablehlo.divide %x, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
