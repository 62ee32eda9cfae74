#list = [1, 0]
#one = 1 : i64
#twist = array<i64: 1, 0>
builtin.module @forms attributes {my.list = #list, my.word = unit, my.map = affine_map<(d0) -> (d0)>, my.type = tensor<2x f32>, my.other = !my.type<3>, my.far = #my.attr<[1, <2>]>} {
  func.func nested @main(%a: tensor<3x4xf32> {pestle.name = "a"} loc("a"), %s: tensor<2xi32>, %g: tensor<2x4x5xf32>, %h: tensor<0xi1>) -> (tensor<4x3xf32> {pestle.name = "t"}, tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x5xf32>, tensor<2xi1>, tensor<2xcomplex<f32>>) attributes {my.note = "n\09\n\t\22"} {
    %0 = "stablehlo.transpose"(%a) <{permutation = #twist}> : (tensor<3x4xf32>) -> tensor<4x3xf32> loc(fused<1>[#there, "x.py":3:4, unknown])
    %1:2 = "chlo.top_k"(%a) <{k = 2 : i64}> : (tensor<3x4xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) loc(fused[])
    %2 = "chlo.ragged_dot"(%a, %g, %s) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>, precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]}> {my.note} : (tensor<3x4xf32>, tensor<2x4x5xf32>, tensor<2xi32>) -> tensor<3x5xf32> loc("r"(callsite("in.py":1:2 at #there)))
    %3 = stablehlo.constant dense<"0x01"> : tensor<2xi1>
    %4 = stablehlo.constant dense<"0x0000803F000000C0"> : tensor<2xf32>
    %5 = stablehlo.constant dense<[(0x3F800000, 1.0e+1), (-2.5, 0.0)]> : tensor<2xcomplex<f32>>
    %6 = stablehlo.constant dense<"0x0F03"> : tensor<2xi4>
    %7 = stablehlo.constant dense<true> : tensor<0xi1>
    %8 = stablehlo.constant dense<[]> : tensor<0xf32>
    %9 = stablehlo.constant {my.note = 0x7FF0000000000000 : f64, my.small = 0.1 : f32, my.text = "s" : !my.type, my.sub = (2)4, my.at = @"a b"} dense<7> : tensor<ui64>
    %10 = func.call @"a b"(%3) : (tensor<2xi1>) -> tensor<2xi1>
    %11 = stablehlo.or %10, %3 : tensor<2xi1>
    return %0, %1#0, %1#1, %2, %11, %5 : tensor<4x3xf32>, tensor<3x2xf32>, tensor<3x2xi32>, tensor<3x5xf32>, tensor<2xi1>, tensor<2xcomplex<f32>>
  }
  func.func private @"a b"(%x: tensor<2xi1>) -> (tensor<2xi1>) {
    %0 = stablehlo.select %x, %x, %x : tensor<2xi1>, tensor<2xi1>
    return %0 : tensor<2xi1>
  }
} loc(#there)
#there = loc("model.py":15:6 to :76)
