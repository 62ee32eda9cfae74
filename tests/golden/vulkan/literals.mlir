// A literal of f32 is written so that it is the same number in f64 too, as which
// glslang takes it where it folds.
// RUN: %pestle dump %s --stage source --target vulkan | FileCheck %s
// CHECK: double(-45.88373565673828f)
func.func @main(%x: tensor<24xf32>) -> tensor<24xf32> {
  %0 = stablehlo.constant dense<-45.883736> : tensor<24xf32>
  %1 = stablehlo.power %x, %0 : tensor<24xf32>
  return %1 : tensor<24xf32>
}
