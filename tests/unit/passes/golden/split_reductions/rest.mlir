// No divisor gives whole cache lines: the last block is padded. The outermost
// folded dim that is long enough is cut.
func.func @main(%x: tensor<200003xi32>, %y: tensor<3x211x1000xf32>) -> (tensor<i32>, tensor<f32>) {
  %0 = stablehlo.constant dense<7> : tensor<i32>
  %1 = stablehlo.reduce(%x init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<200003xi32>, tensor<i32>) -> tensor<i32>
  %2 = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %3 = stablehlo.reduce(%y init: %2) applies stablehlo.maximum across dimensions = [0, 1, 2] : (tensor<3x211x1000xf32>, tensor<f32>) -> tensor<f32>
  return %1, %3 : tensor<i32>, tensor<f32>
}
// -----
module {
  func.func public @main(%x: tensor<200003xi32>, %y: tensor<3x211x1000xf32>) -> (tensor<i32>, tensor<f32>) {
    %0 = stablehlo.constant dense<7> : tensor<i32>
    %1 = stablehlo.constant dense<-2147483648> : tensor<i32>
    %2 = stablehlo.pad %x, %1, low = [0], high = [445], interior = [0] : (tensor<200003xi32>, tensor<i32>) -> tensor<200448xi32>
    %3 = stablehlo.reshape %2 : (tensor<200448xi32>) -> tensor<12x16704xi32>
    %4 = stablehlo.reduce(%3 init: %1) applies stablehlo.maximum across dimensions = [1] : (tensor<12x16704xi32>, tensor<i32>) -> tensor<12xi32>
    %5 = stablehlo.reduce(%4 init: %0) applies stablehlo.maximum across dimensions = [0] : (tensor<12xi32>, tensor<i32>) -> tensor<i32>
    %6 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %7 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %8 = stablehlo.pad %y, %7, low = [0, 0, 0], high = [0, 5, 0], interior = [0, 0, 0] : (tensor<3x211x1000xf32>, tensor<f32>) -> tensor<3x216x1000xf32>
    %9 = stablehlo.reshape %8 : (tensor<3x216x1000xf32>) -> tensor<3x36x6x1000xf32>
    %10 = stablehlo.reduce(%9 init: %7) applies stablehlo.maximum across dimensions = [0, 2, 3] : (tensor<3x36x6x1000xf32>, tensor<f32>) -> tensor<36xf32>
    %11 = stablehlo.reduce(%10 init: %6) applies stablehlo.maximum across dimensions = [0] : (tensor<36xf32>, tensor<f32>) -> tensor<f32>
    return %5, %11 : tensor<i32>, tensor<f32>
  }
}
