// chlo.scan by one op, by others, without inputs and without what is carried; StableHLO
// cannot write it as an artifact of a version.
module @scan {
  func.func public @main(%arg0: tensor<5x7xf32>, %arg1: tensor<5xf32>, %arg2: tensor<i32>) -> (tensor<5x7xf32>, tensor<5xf32>, tensor<5x7xf32>, tensor<5x7xi32>, tensor<i32>, tensor<5x3xf32>, tensor<5x7xf32>) {
    %0:2 = chlo.scan(%arg0) inits (%arg1) dimension=1 attributes {is_associative = true, is_reverse = true} {
    ^bb0(%input: tensor<5xf32>, %carry: tensor<5xf32>):
      %1 = stablehlo.maximum %input, %carry : tensor<5xf32>
      stablehlo.return %1, %1 : tensor<5xf32>, tensor<5xf32>
    } : (tensor<5x7xf32>, tensor<5xf32>) -> (tensor<5x7xf32>, tensor<5xf32>)
    %2:4 = chlo.scan(%arg0) inits (%arg1, %arg2) dimension=1 {
    ^bb0(%input: tensor<5xf32>, %carry: tensor<5xf32>, %count: tensor<i32>):
      %c = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.subtract %input, %carry : tensor<5xf32>
      %4 = stablehlo.add %count, %c : tensor<i32>
      %5 = stablehlo.broadcast_in_dim %4, dims = [] : (tensor<i32>) -> tensor<5xi32>
      stablehlo.return %3, %5, %3, %4 : tensor<5xf32>, tensor<5xi32>, tensor<5xf32>, tensor<i32>
    } : (tensor<5x7xf32>, tensor<5xf32>, tensor<i32>) -> (tensor<5x7xf32>, tensor<5x7xi32>, tensor<5xf32>, tensor<i32>)
    %6:2 = chlo.scan() inits (%arg1) dimension=1 attributes {scan_dim_size = 3 : i64} {
    ^bb0(%carry: tensor<5xf32>):
      %7 = stablehlo.add %carry, %carry : tensor<5xf32>
      stablehlo.return %7, %7 : tensor<5xf32>, tensor<5xf32>
    } : (tensor<5xf32>) -> (tensor<5x3xf32>, tensor<5xf32>)
    %8 = chlo.scan(%arg0) inits () dimension=1 {
    ^bb0(%input: tensor<5xf32>):
      %9 = stablehlo.negate %input : tensor<5xf32>
      stablehlo.return %9 : tensor<5xf32>
    } : (tensor<5x7xf32>) -> tensor<5x7xf32>
    return %0#0, %0#1, %2#0, %2#1, %2#3, %6#0, %8 : tensor<5x7xf32>, tensor<5xf32>, tensor<5x7xf32>, tensor<5x7xi32>, tensor<i32>, tensor<5x3xf32>, tensor<5x7xf32>
  }
}
