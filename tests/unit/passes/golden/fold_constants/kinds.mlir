// Data is computed, splats stay splats, a float row that is repeated stays one.
func.func @main() -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<1000x1000xf32>, tensor<64x64xf32>, tensor<64xi64>) {
  %a = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
  %b = stablehlo.constant dense<10.0> : tensor<2x3xf32>
  %0 = stablehlo.multiply %a, %b : tensor<2x3xf32>
  %1 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %c = stablehlo.constant dense<4.0> : tensor<f32>
  %2 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<1000x1000xf32>
  %3 = stablehlo.sqrt %2 : tensor<1000x1000xf32>
  %i = stablehlo.iota dim = 0 : tensor<64xi64>
  %j = stablehlo.add %i, %i : tensor<64xi64>
  %k = stablehlo.convert %j : (tensor<64xi64>) -> tensor<64xf32>
  %4 = stablehlo.broadcast_in_dim %k, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  return %0, %1, %3, %4, %j : tensor<2x3xf32>, tensor<3x2xf32>, tensor<1000x1000xf32>, tensor<64x64xf32>, tensor<64xi64>
}
// -----
module {
  func.func public @main() -> (tensor<2x3xf32>, tensor<3x2xf32>, tensor<1000x1000xf32>, tensor<64x64xf32>, tensor<64xi64>) {
    %a = stablehlo.constant dense<[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]> : tensor<2x3xf32>
    %b = stablehlo.constant dense<10.0> : tensor<2x3xf32>
    %0 = stablehlo.constant dense<[[10.0, 20.0, 30.0], [40.0, 50.0, 60.0]]> : tensor<2x3xf32>
    %1 = stablehlo.constant dense<[[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]> : tensor<3x2xf32>
    %c = stablehlo.constant dense<4.0> : tensor<f32>
    %2 = stablehlo.constant dense<4.0> : tensor<1000x1000xf32>
    %3 = stablehlo.constant dense<2.0> : tensor<1000x1000xf32>
    %i = stablehlo.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]> : tensor<64xi64>
    %j = stablehlo.constant dense<[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122, 124, 126]> : tensor<64xi64>
    %k = stablehlo.constant dense<[0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 32.0, 34.0, 36.0, 38.0, 40.0, 42.0, 44.0, 46.0, 48.0, 50.0, 52.0, 54.0, 56.0, 58.0, 60.0, 62.0, 64.0, 66.0, 68.0, 70.0, 72.0, 74.0, 76.0, 78.0, 80.0, 82.0, 84.0, 86.0, 88.0, 90.0, 92.0, 94.0, 96.0, 98.0, 100.0, 102.0, 104.0, 106.0, 108.0, 110.0, 112.0, 114.0, 116.0, 118.0, 120.0, 122.0, 124.0, 126.0]> : tensor<64xf32>
    %4 = stablehlo.broadcast_in_dim %k, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
    return %0, %1, %3, %4, %j : tensor<2x3xf32>, tensor<3x2xf32>, tensor<1000x1000xf32>, tensor<64x64xf32>, tensor<64xi64>
  }
}
