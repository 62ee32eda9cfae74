// Transposes that go through more than the L2: the lines of the next tile's results are
// asked for, in the order of results or, where those are more than the L2 by themselves,
// of the argument; those of several L2s go past the caches in whole lines.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref --no-fuse
func.func @main(%x: tensor<640x400xf32>, %y: tensor<768x784xf32>, %z: tensor<4096x2048xi8>) -> (tensor<400x640xf32>, tensor<784x768xf32>, tensor<2048x4096xi8>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<640x400xf32>) -> tensor<400x640xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<768x784xf32>) -> tensor<784x768xf32>
  %2 = stablehlo.transpose %z, dims = [1, 0] : (tensor<4096x2048xi8>) -> tensor<2048x4096xi8>
  return %0, %1, %2 : tensor<400x640xf32>, tensor<784x768xf32>, tensor<2048x4096xi8>
}
