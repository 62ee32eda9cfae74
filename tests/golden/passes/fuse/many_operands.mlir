// RUN: %pestle-opt %s --passes=fuse --round-trip | FileCheck %s
// The 49th tensor is left to a second kernel.
// CHECK-COUNT-2: "pestle.fusion"(
// CHECK-NOT: "pestle.fusion"
func.func @main(%a0: tensor<64xf32>, %a1: tensor<64xf32>, %a2: tensor<64xf32>, %a3: tensor<64xf32>, %a4: tensor<64xf32>, %a5: tensor<64xf32>, %a6: tensor<64xf32>, %a7: tensor<64xf32>, %a8: tensor<64xf32>, %a9: tensor<64xf32>, %a10: tensor<64xf32>, %a11: tensor<64xf32>, %a12: tensor<64xf32>, %a13: tensor<64xf32>, %a14: tensor<64xf32>, %a15: tensor<64xf32>, %a16: tensor<64xf32>, %a17: tensor<64xf32>, %a18: tensor<64xf32>, %a19: tensor<64xf32>, %a20: tensor<64xf32>, %a21: tensor<64xf32>, %a22: tensor<64xf32>, %a23: tensor<64xf32>, %a24: tensor<64xf32>, %a25: tensor<64xf32>, %a26: tensor<64xf32>, %a27: tensor<64xf32>, %a28: tensor<64xf32>, %a29: tensor<64xf32>, %a30: tensor<64xf32>, %a31: tensor<64xf32>, %a32: tensor<64xf32>, %a33: tensor<64xf32>, %a34: tensor<64xf32>, %a35: tensor<64xf32>, %a36: tensor<64xf32>, %a37: tensor<64xf32>, %a38: tensor<64xf32>, %a39: tensor<64xf32>, %a40: tensor<64xf32>, %a41: tensor<64xf32>, %a42: tensor<64xf32>, %a43: tensor<64xf32>, %a44: tensor<64xf32>, %a45: tensor<64xf32>, %a46: tensor<64xf32>, %a47: tensor<64xf32>, %a48: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.add %a0, %a1 : tensor<64xf32>
  %1 = stablehlo.add %0, %a2 : tensor<64xf32>
  %2 = stablehlo.add %1, %a3 : tensor<64xf32>
  %3 = stablehlo.add %2, %a4 : tensor<64xf32>
  %4 = stablehlo.add %3, %a5 : tensor<64xf32>
  %5 = stablehlo.add %4, %a6 : tensor<64xf32>
  %6 = stablehlo.add %5, %a7 : tensor<64xf32>
  %7 = stablehlo.add %6, %a8 : tensor<64xf32>
  %8 = stablehlo.add %7, %a9 : tensor<64xf32>
  %9 = stablehlo.add %8, %a10 : tensor<64xf32>
  %10 = stablehlo.add %9, %a11 : tensor<64xf32>
  %11 = stablehlo.add %10, %a12 : tensor<64xf32>
  %12 = stablehlo.add %11, %a13 : tensor<64xf32>
  %13 = stablehlo.add %12, %a14 : tensor<64xf32>
  %14 = stablehlo.add %13, %a15 : tensor<64xf32>
  %15 = stablehlo.add %14, %a16 : tensor<64xf32>
  %16 = stablehlo.add %15, %a17 : tensor<64xf32>
  %17 = stablehlo.add %16, %a18 : tensor<64xf32>
  %18 = stablehlo.add %17, %a19 : tensor<64xf32>
  %19 = stablehlo.add %18, %a20 : tensor<64xf32>
  %20 = stablehlo.add %19, %a21 : tensor<64xf32>
  %21 = stablehlo.add %20, %a22 : tensor<64xf32>
  %22 = stablehlo.add %21, %a23 : tensor<64xf32>
  %23 = stablehlo.add %22, %a24 : tensor<64xf32>
  %24 = stablehlo.add %23, %a25 : tensor<64xf32>
  %25 = stablehlo.add %24, %a26 : tensor<64xf32>
  %26 = stablehlo.add %25, %a27 : tensor<64xf32>
  %27 = stablehlo.add %26, %a28 : tensor<64xf32>
  %28 = stablehlo.add %27, %a29 : tensor<64xf32>
  %29 = stablehlo.add %28, %a30 : tensor<64xf32>
  %30 = stablehlo.add %29, %a31 : tensor<64xf32>
  %31 = stablehlo.add %30, %a32 : tensor<64xf32>
  %32 = stablehlo.add %31, %a33 : tensor<64xf32>
  %33 = stablehlo.add %32, %a34 : tensor<64xf32>
  %34 = stablehlo.add %33, %a35 : tensor<64xf32>
  %35 = stablehlo.add %34, %a36 : tensor<64xf32>
  %36 = stablehlo.add %35, %a37 : tensor<64xf32>
  %37 = stablehlo.add %36, %a38 : tensor<64xf32>
  %38 = stablehlo.add %37, %a39 : tensor<64xf32>
  %39 = stablehlo.add %38, %a40 : tensor<64xf32>
  %40 = stablehlo.add %39, %a41 : tensor<64xf32>
  %41 = stablehlo.add %40, %a42 : tensor<64xf32>
  %42 = stablehlo.add %41, %a43 : tensor<64xf32>
  %43 = stablehlo.add %42, %a44 : tensor<64xf32>
  %44 = stablehlo.add %43, %a45 : tensor<64xf32>
  %45 = stablehlo.add %44, %a46 : tensor<64xf32>
  %46 = stablehlo.add %45, %a47 : tensor<64xf32>
  %47 = stablehlo.add %46, %a48 : tensor<64xf32>
  return %47 : tensor<64xf32>
}
