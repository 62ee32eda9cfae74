"builtin.module"() <{sym_name = "whole"}> ({
  "sdy.mesh"() {mesh = #sdy.mesh<["d"=1]>, sym_name = "m"} : () -> ()
  "func.func"() <{arg_attrs = [{pestle.name = "x"}, {}], function_type = (tensor<2xf32>, tensor<1x4x4x1xf32>) -> (tensor<2xf32>, tensor<1x2x2x1xf32>), res_attrs = [{pestle.name = "y"}, {}], sym_name = "main"}> ({
  ^bb0(%x: tensor<2xf32>, %img: tensor<1x4x4x1xf32>):
    %0 = "stablehlo.constant"() <{value = dense<[1.0, 2.0]> : tensor<2xf32>}> : () -> tensor<2xf32>
    %1 = "stablehlo.add"(%x, %0) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %2 = "stablehlo.constant"() <{value = dense<1.0> : tensor<3x3x1x1xf32>}> : () -> tensor<3x3x1x1xf32>
    %3 = "stablehlo.convolution"(%img, %2) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<raw input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2], kernel_output_feature_dimension = 3, kernel_input_feature_dimension = 2, kernel_spatial_dimensions = [0, 1], output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>, feature_group_count = 1 : i64}> : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x2x2x1xf32>
    "func.return"(%1, %3) : (tensor<2xf32>, tensor<1x2x2x1xf32>) -> ()
  }) : () -> ()
}) {my.note = 1 : i64} : () -> ()
