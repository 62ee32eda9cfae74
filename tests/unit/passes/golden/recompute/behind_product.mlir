// Behind the later product one copy for what computes, one for the view.
func.func @main(%x: tensor<256x16xf32>, %w: tensor<16x512xf32>, %b: tensor<512xf32>, %v: tensor<512x16xf32>) -> (tensor<256x512xf32>, tensor<512x16xf32>) {
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x512xf32>) -> tensor<256x512xf32>
  %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<512xf32>) -> tensor<256x512xf32>
  %h = stablehlo.add %p, %bb : tensor<256x512xf32>
  %e = stablehlo.exponential %h : tensor<256x512xf32>
  %s = stablehlo.sine %h : tensor<256x512xf32>
  %c = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x16xf32>) -> tensor<256x16xf32>
  %d = stablehlo.dot_general %c, %v, contracting_dims = [1] x [1] : (tensor<256x16xf32>, tensor<512x16xf32>) -> tensor<256x512xf32>
  %de = stablehlo.multiply %d, %e : tensor<256x512xf32>
  %ds = stablehlo.multiply %de, %s : tensor<256x512xf32>
  %t = stablehlo.transpose %s, dims = [1, 0] : (tensor<256x512xf32>) -> tensor<512x256xf32>
  %g = stablehlo.dot_general %t, %c, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x16xf32>) -> tensor<512x16xf32>
  return %ds, %g : tensor<256x512xf32>, tensor<512x16xf32>
}
// -----
module {
  func.func public @main(%x: tensor<256x16xf32>, %w: tensor<16x512xf32>, %b: tensor<512xf32>, %v: tensor<512x16xf32>) -> (tensor<256x512xf32>, tensor<512x16xf32>) {
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x16xf32>, tensor<16x512xf32>) -> tensor<256x512xf32>
    %bb = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<512xf32>) -> tensor<256x512xf32>
    %h = stablehlo.add %p, %bb : tensor<256x512xf32>
    %s = stablehlo.sine %h : tensor<256x512xf32>
    %c = stablehlo.dot_general %s, %v, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x16xf32>) -> tensor<256x16xf32>
    %d = stablehlo.dot_general %c, %v, contracting_dims = [1] x [1] : (tensor<256x16xf32>, tensor<512x16xf32>) -> tensor<256x512xf32>
    %0 = stablehlo.optimization_barrier %h : tensor<256x512xf32>
    %e = stablehlo.exponential %0 : tensor<256x512xf32>
    %s_0 = stablehlo.sine %0 : tensor<256x512xf32>
    %de = stablehlo.multiply %d, %e : tensor<256x512xf32>
    %ds = stablehlo.multiply %de, %s_0 : tensor<256x512xf32>
    %1 = stablehlo.optimization_barrier %h : tensor<256x512xf32>
    %s_1 = stablehlo.sine %1 : tensor<256x512xf32>
    %t = stablehlo.transpose %s_1, dims = [1, 0] : (tensor<256x512xf32>) -> tensor<512x256xf32>
    %g = stablehlo.dot_general %t, %c, contracting_dims = [1] x [0] : (tensor<512x256xf32>, tensor<256x16xf32>) -> tensor<512x16xf32>
    return %ds, %g : tensor<256x512xf32>, tensor<512x16xf32>
  }
}
