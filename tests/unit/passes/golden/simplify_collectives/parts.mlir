// Each process' own part of a sum, and of what was gathered; what was scattered, gathered again.
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<3x4xf32>, %y: tensor<3x2xf32>, %z: tensor<4xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<4xi32>, tensor<3x4xf32>) {
    %id = "stablehlo.partition_id"() : () -> tensor<ui32>
    %id32 = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %at = stablehlo.multiply %id32, %two : tensor<i32>
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %own = stablehlo.dynamic_slice %sum, %zero, %at, sizes = [3, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    %all = "stablehlo.all_gather"(%y) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<3x2xf32>) -> tensor<3x4xf32>
    %given = stablehlo.dynamic_slice %all, %zero, %at, sizes = [3, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    %part = "stablehlo.reduce_scatter"(%z) <{scatter_dimension = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %s = stablehlo.maximum %a, %b : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<4xi32>) -> tensor<2xi32>
    %max = "stablehlo.all_gather"(%part) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<2xi32>) -> tensor<4xi32>
    %iota = stablehlo.iota dim = 1 : tensor<3x4xf32>
    %cut = stablehlo.dynamic_slice %iota, %zero, %at, sizes = [3, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    %again = "stablehlo.all_gather"(%cut) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<3x2xf32>) -> tensor<3x4xf32>
    return %own, %given, %max, %again : tensor<3x2xf32>, tensor<3x2xf32>, tensor<4xi32>, tensor<3x4xf32>
  }
}
// -----
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<3x4xf32>, %y: tensor<3x2xf32>, %z: tensor<4xi32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<4xi32>, tensor<3x4xf32>) {
    %id = "stablehlo.partition_id"() : () -> tensor<ui32>
    %id32 = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %at = stablehlo.multiply %id32, %two : tensor<i32>
    %own = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%arg0: tensor<f32>, %arg1: tensor<f32>):
      %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
      stablehlo.return %0 : tensor<f32>
    }) : (tensor<3x4xf32>) -> tensor<3x2xf32>
    %max = "stablehlo.all_reduce"(%z) <{replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%arg0: tensor<i32>, %arg1: tensor<i32>):
      %0 = stablehlo.maximum %arg0, %arg1 : tensor<i32>
      stablehlo.return %0 : tensor<i32>
    }) : (tensor<4xi32>) -> tensor<4xi32>
    %iota = stablehlo.iota dim = 1 : tensor<3x4xf32>
    %cut = stablehlo.dynamic_slice %iota, %zero, %at, sizes = [3, 2] : (tensor<3x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>
    return %own, %y, %max, %iota : tensor<3x2xf32>, tensor<3x2xf32>, tensor<4xi32>, tensor<3x4xf32>
  }
}
