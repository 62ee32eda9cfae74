module @jit_control attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> (tensor<4xf32> {jax.result_info = "result[0]"}, tensor<f32> {jax.result_info = "result[1]"}, tensor<4xf32> {jax.result_info = "result[2]"}, tensor<f32> {jax.result_info = "result[3][0]"}, tensor<4xf32> {jax.result_info = "result[3][1]"}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:3 = stablehlo.while(%iterArg = %c, %iterArg_4 = %arg1, %iterArg_5 = %arg0) : tensor<i32>, tensor<i32>, tensor<4xf32>
    cond {
      %11 = stablehlo.compare LT, %iterArg, %iterArg_4, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %c_6 = stablehlo.constant dense<1> : tensor<i32>
      %11 = stablehlo.add %iterArg, %c_6 : tensor<i32>
      %cst_7 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %12 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %13 = stablehlo.multiply %iterArg_5, %12 : tensor<4xf32>
      %cst_8 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %14 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %15 = stablehlo.add %13, %14 : tensor<4xf32>
      stablehlo.return %11, %iterArg_4, %15 : tensor<i32>, tensor<i32>, tensor<4xf32>
    }
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %1 = stablehlo.compare GT, %arg1, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.convert %1 : (tensor<i1>) -> tensor<i32>
    %3 = "stablehlo.case"(%2) ({
      %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %12 = stablehlo.subtract %0#2, %11 : tensor<4xf32>
      stablehlo.return %12 : tensor<4xf32>
    }, {
      %cst_4 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %12 = stablehlo.add %0#2, %11 : tensor<4xf32>
      stablehlo.return %12 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %c_2 = stablehlo.constant dense<2> : tensor<i32>
    %4 = stablehlo.clamp %c_1, %arg1, %c_2 : tensor<i32>
    %5 = "stablehlo.case"(%4) ({
      stablehlo.return %3 : tensor<4xf32>
    }, {
      %cst_4 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %12 = stablehlo.multiply %3, %11 : tensor<4xf32>
      stablehlo.return %12 : tensor<4xf32>
    }, {
      %cst_4 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %12 = stablehlo.multiply %3, %11 : tensor<4xf32>
      stablehlo.return %12 : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>
    %6 = stablehlo.slice %arg0 [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %7 = stablehlo.reshape %6 : (tensor<1xf32>) -> tensor<f32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %8 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %c_3 = stablehlo.constant dense<0> : tensor<i32>
    %9:4 = stablehlo.while(%iterArg = %arg0, %iterArg_4 = %c_3, %iterArg_5 = %7, %iterArg_6 = %8) : tensor<4xf32>, tensor<i32>, tensor<f32>, tensor<4xf32>
    cond {
      %c_7 = stablehlo.constant dense<4> : tensor<i32>
      %11 = stablehlo.compare LT, %iterArg_4, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %11 = func.call @dynamic_index_in_dim(%iterArg, %iterArg_4) : (tensor<4xf32>, tensor<i32>) -> tensor<f32>
      %12:2 = func.call @closed_call(%iterArg_5, %11) : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %13 = func.call @dynamic_update_index_in_dim(%iterArg_6, %12#1, %iterArg_4) : (tensor<4xf32>, tensor<f32>, tensor<i32>) -> tensor<4xf32>
      %c_7 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.add %iterArg_4, %c_7 : tensor<i32>
      stablehlo.return %iterArg, %14, %12#0, %13 : tensor<4xf32>, tensor<i32>, tensor<f32>, tensor<4xf32>
    }
    %10:2 = stablehlo.while(%iterArg = %9#2, %iterArg_4 = %5) : tensor<f32>, tensor<4xf32>
    cond {
      %cst_5 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
      %11 = stablehlo.compare LT, %iterArg, %cst_5, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %11 : tensor<i1>
    } do {
      %cst_5 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %11 = stablehlo.add %iterArg, %cst_5 : tensor<f32>
      %cst_6 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %12 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %13 = stablehlo.multiply %iterArg_4, %12 : tensor<4xf32>
      stablehlo.return %11, %13 : tensor<f32>, tensor<4xf32>
    }
    return %5, %9#2, %9#3, %10#0, %10#1 : tensor<4xf32>, tensor<f32>, tensor<4xf32>, tensor<f32>, tensor<4xf32>
  }
  func.func private @dynamic_index_in_dim(%arg0: tensor<4xf32>, %arg1: tensor<i32>) -> tensor<f32> {
    %0 = stablehlo.dynamic_slice %arg0, %arg1, sizes = [1] : (tensor<4xf32>, tensor<i32>) -> tensor<1xf32>
    %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
    return %1 : tensor<f32>
  }
  func.func private @closed_call(%arg0: tensor<f32>, %arg1: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<f32>
    %1 = stablehlo.multiply %arg0, %arg1 : tensor<f32>
    return %0, %1 : tensor<f32>, tensor<f32>
  }
  func.func private @dynamic_update_index_in_dim(%arg0: tensor<4xf32>, %arg1: tensor<f32>, %arg2: tensor<i32>) -> tensor<4xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1xf32>
    %1 = stablehlo.dynamic_update_slice %arg0, %0, %arg2 : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
