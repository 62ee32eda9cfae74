// A reduction by one op stays; another one is made of all parts, in their order.
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %0 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<6xf32>) -> tensor<6xf32>
    %1 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.multiply %a, %b : tensor<f32>
      %r = stablehlo.subtract %p, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<6xf32>) -> tensor<6xf32>
    return %0, %1 : tensor<6xf32>, tensor<6xf32>
  }
}
// -----
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
    %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<6xf32>) -> tensor<6xf32>
    %1 = stablehlo.reshape %x : (tensor<6xf32>) -> tensor<1x6xf32>
    %2 = "stablehlo.all_gather"(%1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<1x6xf32>) -> tensor<2x6xf32>
    %3 = stablehlo.slice %2 [0:1, 0:6] : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %4 = stablehlo.reshape %3 : (tensor<1x6xf32>) -> tensor<6xf32>
    %5 = stablehlo.slice %2 [1:2, 0:6] : (tensor<2x6xf32>) -> tensor<1x6xf32>
    %6 = stablehlo.reshape %5 : (tensor<1x6xf32>) -> tensor<6xf32>
    %7 = "stablehlo.map"(%4, %6) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.multiply %a, %b : tensor<f32>
      %r = stablehlo.subtract %p, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
    }) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    return %0, %7 : tensor<6xf32>, tensor<6xf32>
  }
}
