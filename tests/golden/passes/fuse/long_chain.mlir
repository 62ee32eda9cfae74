// RUN: %pestle-opt %s --passes=fuse --round-trip | FileCheck %s
// A kernel reads 48 tensors at most, each of which counts once: 40 ops on two
// tensors are one kernel.
// CHECK:     "pestle.fusion"(%a, %b)
// CHECK-NOT: "pestle.fusion"
func.func @main(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<64xf32>
  %1 = stablehlo.add %0, %b : tensor<64xf32>
  %2 = stablehlo.multiply %1, %b : tensor<64xf32>
  %3 = stablehlo.add %2, %b : tensor<64xf32>
  %4 = stablehlo.multiply %3, %b : tensor<64xf32>
  %5 = stablehlo.add %4, %b : tensor<64xf32>
  %6 = stablehlo.multiply %5, %b : tensor<64xf32>
  %7 = stablehlo.add %6, %b : tensor<64xf32>
  %8 = stablehlo.multiply %7, %b : tensor<64xf32>
  %9 = stablehlo.add %8, %b : tensor<64xf32>
  %10 = stablehlo.multiply %9, %b : tensor<64xf32>
  %11 = stablehlo.add %10, %b : tensor<64xf32>
  %12 = stablehlo.multiply %11, %b : tensor<64xf32>
  %13 = stablehlo.add %12, %b : tensor<64xf32>
  %14 = stablehlo.multiply %13, %b : tensor<64xf32>
  %15 = stablehlo.add %14, %b : tensor<64xf32>
  %16 = stablehlo.multiply %15, %b : tensor<64xf32>
  %17 = stablehlo.add %16, %b : tensor<64xf32>
  %18 = stablehlo.multiply %17, %b : tensor<64xf32>
  %19 = stablehlo.add %18, %b : tensor<64xf32>
  %20 = stablehlo.multiply %19, %b : tensor<64xf32>
  %21 = stablehlo.add %20, %b : tensor<64xf32>
  %22 = stablehlo.multiply %21, %b : tensor<64xf32>
  %23 = stablehlo.add %22, %b : tensor<64xf32>
  %24 = stablehlo.multiply %23, %b : tensor<64xf32>
  %25 = stablehlo.add %24, %b : tensor<64xf32>
  %26 = stablehlo.multiply %25, %b : tensor<64xf32>
  %27 = stablehlo.add %26, %b : tensor<64xf32>
  %28 = stablehlo.multiply %27, %b : tensor<64xf32>
  %29 = stablehlo.add %28, %b : tensor<64xf32>
  %30 = stablehlo.multiply %29, %b : tensor<64xf32>
  %31 = stablehlo.add %30, %b : tensor<64xf32>
  %32 = stablehlo.multiply %31, %b : tensor<64xf32>
  %33 = stablehlo.add %32, %b : tensor<64xf32>
  %34 = stablehlo.multiply %33, %b : tensor<64xf32>
  %35 = stablehlo.add %34, %b : tensor<64xf32>
  %36 = stablehlo.multiply %35, %b : tensor<64xf32>
  %37 = stablehlo.add %36, %b : tensor<64xf32>
  %38 = stablehlo.multiply %37, %b : tensor<64xf32>
  %39 = stablehlo.add %38, %b : tensor<64xf32>
  return %39 : tensor<64xf32>
}
