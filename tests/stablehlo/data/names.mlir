// Ops by name, ops of CHLO, tuples, tokens and what a dialect says.
module @names {
  func.func public @main(%x: tensor<3x4xf32>, %a: tensor<2x2xf32>) -> (tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<2x2xf32>, tensor<2x2xf32>) {
    %0 = stablehlo.composite "my.scale" %x {composite_attributes = {by = 2.500000e+00 : f32, how = "all of \22it\22", nested = {axes = [0, 1], big = -3 : i64, flag = true}}, decomposition = @scale, version = 3 : i32} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %1 = chlo.erf_inv %0 : tensor<3x4xf32> -> tensor<3x4xf32>
    %2 = chlo.lgamma %1 : tensor<3x4xf32> -> tensor<3x4xf32>
    %3 = chlo.square %2 : tensor<3x4xf32> -> tensor<3x4xf32>
    %values, %indices = chlo.top_k(%3, k = 2) : tensor<3x4xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
    %token = stablehlo.create_token : !stablehlo.token
    %all = stablehlo.after_all : !stablehlo.token
    %4 = stablehlo.tuple %3, %a : tuple<tensor<3x4xf32>, tensor<2x2xf32>>
    %5 = stablehlo.get_tuple_element %4[1] : (tuple<tensor<3x4xf32>, tensor<2x2xf32>>) -> tensor<2x2xf32>
    %6 = stablehlo.custom_call @my_function(%5) {api_version = 4 : i32, backend_config = {mode = 86 : ui8, scale = 1.250000e-01 : f64}, has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %7 = stablehlo.custom_call @my_other(%5) {backend_config = "text"} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %8 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<3x4xf32>) -> tensor<i32>
    %9 = stablehlo.convert %8 : (tensor<i32>) -> tensor<f32>
    %10 = stablehlo.broadcast_in_dim %9, dims = [] : (tensor<f32>) -> tensor<2x2xf32>
    %11 = stablehlo.add %7, %10 : tensor<2x2xf32>
    return %3, %values, %indices, %6, %11 : tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<2x2xf32>, tensor<2x2xf32>
  }
  func.func private @scale(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = stablehlo.constant dense<2.500000e+00> : tensor<3x4xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<3x4xf32>
    return %1 : tensor<3x4xf32>
  }
}
