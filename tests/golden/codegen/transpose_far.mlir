// Transposes that go through more than the L2. One of 2 MiB and less asks for its
// next tile and the lines of its results; one of many goes along the argument's rows,
// whole lines of results at a time, which go past the caches.
// RUN: %golden %s.schedule -- %pestle dump %s --stage schedule --target ref --no-fuse
func.func @main(%x: tensor<640x400xf32>, %y: tensor<1024x1040xf32>, %z: tensor<2048x2048xi8>) -> (tensor<400x640xf32>, tensor<1040x1024xf32>, tensor<2048x2048xi8>) {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<640x400xf32>) -> tensor<400x640xf32>
  %1 = stablehlo.transpose %y, dims = [1, 0] : (tensor<1024x1040xf32>) -> tensor<1040x1024xf32>
  %2 = stablehlo.transpose %z, dims = [1, 0] : (tensor<2048x2048xi8>) -> tensor<2048x2048xi8>
  return %0, %1, %2 : tensor<400x640xf32>, tensor<1040x1024xf32>, tensor<2048x2048xi8>
}
