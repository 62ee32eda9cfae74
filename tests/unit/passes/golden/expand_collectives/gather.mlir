// Parts lie along a first axis; pairs of complex numbers are real ones.
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func @main(%x: tensor<3x5xf32>, %y: tensor<4xcomplex<f32>>) -> (tensor<3x10xf32>, tensor<8xcomplex<f32>>) {
    %0 = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<3x5xf32>) -> tensor<3x10xf32>
    %1 = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4xcomplex<f32>>) -> tensor<8xcomplex<f32>>
    return %0, %1 : tensor<3x10xf32>, tensor<8xcomplex<f32>>
  }
}
// -----
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%x: tensor<3x5xf32>, %y: tensor<4xcomplex<f32>>) -> (tensor<3x10xf32>, tensor<8xcomplex<f32>>) {
    %0 = stablehlo.reshape %x : (tensor<3x5xf32>) -> tensor<1x3x5xf32>
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<1x3x5xf32>) -> tensor<2x3x5xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0, 2] : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
    %3 = stablehlo.reshape %2 : (tensor<3x2x5xf32>) -> tensor<3x10xf32>
    %4 = stablehlo.real %y : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %5 = stablehlo.reshape %4 : (tensor<4xf32>) -> tensor<1x4xf32>
    %6 = "stablehlo.all_gather"(%5) <{all_gather_dim = 0 : i64, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<1x4xf32>) -> tensor<2x4xf32>
    %7 = stablehlo.imag %y : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
    %8 = stablehlo.reshape %7 : (tensor<4xf32>) -> tensor<1x4xf32>
    %9 = "stablehlo.all_gather"(%8) <{all_gather_dim = 0 : i64, replica_groups = dense<[[1, 0]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<1x4xf32>) -> tensor<2x4xf32>
    %10 = stablehlo.complex %6, %9 : tensor<2x4xcomplex<f32>>
    %11 = stablehlo.reshape %10 : (tensor<2x4xcomplex<f32>>) -> tensor<8xcomplex<f32>>
    return %3, %11 : tensor<3x10xf32>, tensor<8xcomplex<f32>>
  }
}
