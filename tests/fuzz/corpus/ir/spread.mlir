module @spread attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d"=2]>
  func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>) -> tensor<4xf32> {
    %0:2 = "sdy.manual_computation"(%a, %b) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}]>, <@mesh, [{}]>]>, manual_axes = #sdy<manual_axes{"d"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}]>, <@mesh, [{}]>]>}> ({
    ^bb0(%x: tensor<2xf32>, %y: tensor<2xf32>):
      %s = stablehlo.add %x, %y : tensor<2xf32>
      "sdy.return"(%s, %y) : (tensor<2xf32>, tensor<2xf32>) -> ()
    }) : (tensor<4xf32>, tensor<2xf32>) -> (tensor<4xf32>, tensor<2xf32>)
    return %0#0 : tensor<4xf32>
  }
}
