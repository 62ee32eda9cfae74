// Rows of x by data, columns of up and rows of down by model: one sum of both.
module @m attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=2]>
  func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}, %up: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %down: tensor<6x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = stablehlo.tanh %0 : tensor<8x6xf32>
    %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
// -----
module @m attributes {mhlo.num_partitions = 4 : i32} {
  func.func public @main(%x: tensor<4x4xf32> {spmd.sharding = "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"}, %up: tensor<4x3xf32> {spmd.sharding = "{devices=[1,2,2]0,2,1,3 last_tile_dim_replicate}"}, %down: tensor<3x4xf32> {spmd.sharding = "{devices=[2,1,2]0,2,1,3 last_tile_dim_replicate}"}) -> (tensor<4x4xf32> {spmd.sharding = "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"}) {
    %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.tanh %0 : tensor<4x3xf32>
    %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<4x3xf32>, tensor<3x4xf32>) -> tensor<4x4xf32>
    %3 = "stablehlo.all_reduce"(%2) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %4 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %4 : tensor<f32>
    }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return %3 : tensor<4x4xf32>
  }
}
