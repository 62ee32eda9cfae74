// A token of a layer: angles, a row of each cache, and attention, in one kernel.
// explain: ^kernel 0: cached_step_\d+$
// also: ref,cpu=simt90
func.func @main(%q: tensor<1x1x192xf32>, %k: tensor<1x1x64xf32>, %v: tensor<1x1x64xf32>, %cos: tensor<16xf32>, %sin: tensor<16xf32>, %keys: tensor<1x2x300x32xf32>, %values: tensor<1x2x300x32xf32>, %past: tensor<1xi64>) -> (tensor<1x2x300x32xf32>, tensor<1x2x300x32xf32>, tensor<1x2x3x32xf32>) {
  %n0 = stablehlo.reshape %k : (tensor<1x1x64xf32>) -> tensor<1x2x1x32xf32>
  %n1 = stablehlo.slice %n0 [0:1, 0:2, 0:1, 0:16] : (tensor<1x2x1x32xf32>) -> tensor<1x2x1x16xf32>
  %n2 = stablehlo.slice %n0 [0:1, 0:2, 0:1, 16:32] : (tensor<1x2x1x32xf32>) -> tensor<1x2x1x16xf32>
  %n3 = stablehlo.broadcast_in_dim %cos, dims = [3] : (tensor<16xf32>) -> tensor<1x2x1x16xf32>
  %n4 = stablehlo.broadcast_in_dim %sin, dims = [3] : (tensor<16xf32>) -> tensor<1x2x1x16xf32>
  %n5 = stablehlo.multiply %n1, %n3 : tensor<1x2x1x16xf32>
  %n6 = stablehlo.multiply %n2, %n4 : tensor<1x2x1x16xf32>
  %n7 = stablehlo.multiply %n1, %n4 : tensor<1x2x1x16xf32>
  %n8 = stablehlo.multiply %n2, %n3 : tensor<1x2x1x16xf32>
  %n9 = stablehlo.subtract %n5, %n6 : tensor<1x2x1x16xf32>
  %n10 = stablehlo.add %n7, %n8 : tensor<1x2x1x16xf32>
  %n11 = stablehlo.concatenate %n9, %n10, dim = 3 : (tensor<1x2x1x16xf32>, tensor<1x2x1x16xf32>) -> tensor<1x2x1x32xf32>
  %n12 = stablehlo.reshape %v : (tensor<1x1x64xf32>) -> tensor<1x2x1x32xf32>
  %n13 = stablehlo.constant dense<0> : tensor<i64>
  %n14 = stablehlo.reshape %past : (tensor<1xi64>) -> tensor<i64>
  %n15 = stablehlo.reshape %past : (tensor<1xi64>) -> tensor<1x1xi64>
  %n16 = "stablehlo.scatter"(%keys, %n15, %n11) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 3], inserted_window_dims = [2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2], index_vector_dim = 2>}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 stablehlo.return %b : tensor<f32>
}) : (tensor<1x2x300x32xf32>, tensor<1x1xi64>, tensor<1x2x1x32xf32>) -> tensor<1x2x300x32xf32>
  %n17 = "stablehlo.scatter"(%values, %n15, %n12) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 3], inserted_window_dims = [2], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [2], index_vector_dim = 2>}> ({
^bb0(%a: tensor<f32>, %b: tensor<f32>):
 stablehlo.return %b : tensor<f32>
}) : (tensor<1x2x300x32xf32>, tensor<1x1xi64>, tensor<1x2x1x32xf32>) -> tensor<1x2x300x32xf32>
  %n18 = stablehlo.iota dim = 3 : tensor<1x1x1x300xi64>
  %n19 = stablehlo.broadcast_in_dim %past, dims = [0] : (tensor<1xi64>) -> tensor<1x1x1x300xi64>
  %n20 = stablehlo.compare LE, %n18, %n19, SIGNED : (tensor<1x1x1x300xi64>, tensor<1x1x1x300xi64>) -> tensor<1x1x1x300xi1>
  %n21 = stablehlo.constant dense<0.0> : tensor<1x1x1x300xf32>
  %n22 = stablehlo.constant dense<0xFF800000> : tensor<1x1x1x300xf32>
  %n23 = stablehlo.select %n20, %n21, %n22 : tensor<1x1x1x300xi1>, tensor<1x1x1x300xf32>
  %n24 = stablehlo.reshape %q : (tensor<1x1x192xf32>) -> tensor<1x6x1x32xf32>
  %n25 = stablehlo.slice %n24 [0:1, 0:6, 0:1, 0:16] : (tensor<1x6x1x32xf32>) -> tensor<1x6x1x16xf32>
  %n26 = stablehlo.slice %n24 [0:1, 0:6, 0:1, 16:32] : (tensor<1x6x1x32xf32>) -> tensor<1x6x1x16xf32>
  %n27 = stablehlo.broadcast_in_dim %cos, dims = [3] : (tensor<16xf32>) -> tensor<1x6x1x16xf32>
  %n28 = stablehlo.broadcast_in_dim %sin, dims = [3] : (tensor<16xf32>) -> tensor<1x6x1x16xf32>
  %n29 = stablehlo.multiply %n25, %n27 : tensor<1x6x1x16xf32>
  %n30 = stablehlo.multiply %n26, %n28 : tensor<1x6x1x16xf32>
  %n31 = stablehlo.multiply %n25, %n28 : tensor<1x6x1x16xf32>
  %n32 = stablehlo.multiply %n26, %n27 : tensor<1x6x1x16xf32>
  %n33 = stablehlo.subtract %n29, %n30 : tensor<1x6x1x16xf32>
  %n34 = stablehlo.add %n31, %n32 : tensor<1x6x1x16xf32>
  %n35 = stablehlo.concatenate %n33, %n34, dim = 3 : (tensor<1x6x1x16xf32>, tensor<1x6x1x16xf32>) -> tensor<1x6x1x32xf32>
  %n36 = stablehlo.reshape %n35 : (tensor<1x6x1x32xf32>) -> tensor<1x2x3x32xf32>
  %y = "pestle.attention"(%n36, %n16, %n17, %n23) {scale = 0.3 : f64} : (tensor<1x2x3x32xf32>, tensor<1x2x300x32xf32>, tensor<1x2x300x32xf32>, tensor<1x1x1x300xf32>) -> tensor<1x2x3x32xf32>
  return %n16, %n17, %y : tensor<1x2x300x32xf32>, tensor<1x2x300x32xf32>, tensor<1x2x3x32xf32>
}
