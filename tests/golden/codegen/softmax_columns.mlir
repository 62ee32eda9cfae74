// Softmax down columns: lanes are columns that lie side by side. Exponentials of a
// block of them are kept in scratch; of rows on a page each, more vectors at once; of
// few columns, steps of the reductions apart; of more rows than scratch holds, made anew.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref
func.func @main(%x: tensor<3x33x100xf32>, %p: tensor<64x4096xf32>, %f: tensor<64x30x5xf32>, %l: tensor<2200x17xf32>) -> (tensor<3x33x100xf32>, tensor<64x4096xf32>, tensor<64x30x5xf32>, tensor<2200x17xf32>) {
  %0 = "pestle.softmax"(%x) <{dimensions = array<i64: 1>}> : (tensor<3x33x100xf32>) -> tensor<3x33x100xf32>
  %1 = "pestle.softmax"(%p) <{dimensions = array<i64: 0>}> : (tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %2 = "pestle.softmax"(%f) <{dimensions = array<i64: 1>}> : (tensor<64x30x5xf32>) -> tensor<64x30x5xf32>
  %3 = "pestle.softmax"(%l) <{dimensions = array<i64: 0>}> : (tensor<2200x17xf32>) -> tensor<2200x17xf32>
  return %0, %1, %2, %3 : tensor<3x33x100xf32>, tensor<64x4096xf32>, tensor<64x30x5xf32>, tensor<2200x17xf32>
}
