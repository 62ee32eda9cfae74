// SPDX-License-Identifier: Apache-2.0
// Rows from 4 n on are nobody's, nor are matrices of the batch from m on.
// schedule: shared_tile .* units async$
// also: ref,cpu=simt
func.func @main(%a: tensor<600x256xbf16>, %b: tensor<256x192xbf16>, %c: tensor<6x70x64xbf16>, %d: tensor<6x64x72xbf16>, %i: tensor<i8>) -> (tensor<600x192xbf16>, tensor<6x70x72xbf16>) {
  %w = stablehlo.convert %i : (tensor<i8>) -> tensor<i64>
  %m = stablehlo.abs %w : tensor<i64>
  %four = stablehlo.constant dense<4> : tensor<i64>
  %n = stablehlo.multiply %m, %four : tensor<i64>
  %0 = "pestle.extent"(%a, %n) <{dimension = 0 : i64}> : (tensor<600x256xbf16>, tensor<i64>) -> tensor<600x256xbf16>
  %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0] : (tensor<600x256xbf16>, tensor<256x192xbf16>) -> tensor<600x192xbf16>
  %2 = stablehlo.iota dim = 0 : tensor<600x192xi64>
  %3 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<i64>) -> tensor<600x192xi64>
  %4 = stablehlo.compare LT, %2, %3 : (tensor<600x192xi64>, tensor<600x192xi64>) -> tensor<600x192xi1>
  %z = stablehlo.constant dense<0.0> : tensor<600x192xbf16>
  %5 = stablehlo.select %4, %1, %z : tensor<600x192xi1>, tensor<600x192xbf16>
  %six = stablehlo.constant dense<16> : tensor<i64>
  %k = stablehlo.divide %m, %six : tensor<i64>
  %6 = "pestle.extent"(%c, %k) <{dimension = 0 : i64}> : (tensor<6x70x64xbf16>, tensor<i64>) -> tensor<6x70x64xbf16>
  %7 = stablehlo.dot_general %6, %d, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<6x70x64xbf16>, tensor<6x64x72xbf16>) -> tensor<6x70x72xbf16>
  %8 = stablehlo.iota dim = 0 : tensor<6x70x72xi64>
  %9 = stablehlo.broadcast_in_dim %k, dims = [] : (tensor<i64>) -> tensor<6x70x72xi64>
  %10 = stablehlo.compare LT, %8, %9 : (tensor<6x70x72xi64>, tensor<6x70x72xi64>) -> tensor<6x70x72xi1>
  %zz = stablehlo.constant dense<0.0> : tensor<6x70x72xbf16>
  %11 = stablehlo.select %10, %7, %zz : tensor<6x70x72xi1>, tensor<6x70x72xbf16>
  return %5, %11 : tensor<600x192xbf16>, tensor<6x70x72xbf16>
}
