// Calls of functions by name: aliases, layouts, functions that are handed over.
module @calls {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>) {
    %0 = stablehlo.add %x, %y : tensor<2x3xf32>
    %1:2 = stablehlo.custom_call @twist(%0, %y) {called_computations = [@g], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
    %2 = stablehlo.custom_call @one(%1#0) {backend_config = "7", output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %3 = stablehlo.custom_call @lying(%2) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[1, 0]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %1#1, %2, %3 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<3x2xf32>
  }
  func.func private @g(%x: tensor<f32>) -> tensor<f32> {
    %y = func.call @h(%x) : (tensor<f32>) -> tensor<f32>
    %z = stablehlo.negate %y : tensor<f32>
    return %z : tensor<f32>
  }
  func.func private @h(%t: tensor<f32>) -> tensor<f32> {
    %u = stablehlo.sine %t : tensor<f32>
    return %u : tensor<f32>
  }
}
