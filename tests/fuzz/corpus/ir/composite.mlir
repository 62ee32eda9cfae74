// A composite keeps its name, version and attributes; its decomposition is its body.
// RUN: %pestle dump %s > %t && %pestle dump %t | diff %t - && FileCheck %s < %t
// RUN: %pestle-opt %s --passes=place_custom --round-trip | FileCheck %s --check-prefix=INLINE
// CHECK:      func.func public @main
// CHECK-NEXT:   %0 = stablehlo.composite "my.softsign" %x {composite_attributes = {scale = 1 : i64, name = "s"}, decomposition = @my.softsign.impl, version = 1 : i32}
// CHECK-NEXT:   %1 = stablehlo.composite "my.softsign" %0 {decomposition = @my.softsign.impl, version = 1 : i32}
// CHECK-NEXT:   return %1 : tensor<4xf32>
// CHECK:      func.func private @my.softsign.impl(%x: tensor<4xf32>)
// CHECK-NOT:  func.func
// INLINE-NOT: composite
// INLINE-COUNT-2: stablehlo.divide
// INLINE-NOT: func.func private
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
