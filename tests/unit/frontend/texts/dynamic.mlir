module @dynamic {
  func.func public @main(%x: tensor<?x3xf32>, %k: tensor<i32>) -> (tensor<?x6xf32>, tensor<?x3xf32>) {
    %rows = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x3xf32>) -> tensor<i32>
    %rows1 = stablehlo.reshape %rows : (tensor<i32>) -> tensor<1xi32>
    %six = stablehlo.constant dense<6> : tensor<1xi32>
    %shape = stablehlo.concatenate %rows1, %six, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<2xi32>) -> tensor<?x6xf32>
    %1 = func.call @twice(%x, %shape) : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    %2 = stablehlo.add %0, %1 : tensor<?x6xf32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %3:2 = stablehlo.while(%i = %zero, %y = %2) : tensor<i32>, tensor<?x6xf32>
     cond {
      %10 = stablehlo.compare LT, %i, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %10 = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %10, %y : tensor<i32>, tensor<?x6xf32>
    }
    %k1 = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
    %three = stablehlo.constant dense<3> : tensor<1xi32>
    %wide = stablehlo.concatenate %k1, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %4 = stablehlo.dynamic_iota %wide, dim = 1 : (tensor<2xi32>) -> tensor<?x3xf32>
    %5 = stablehlo.composite "my.same" %4 {decomposition = @same} : (tensor<?x3xf32>) -> tensor<?x3xf32>
    return %3#1, %5 : tensor<?x6xf32>, tensor<?x3xf32>
  }
  func.func private @twice(%x: tensor<?x3xf32>, %shape: tensor<2xi32>) -> tensor<?x6xf32> {
    %0 = stablehlo.concatenate %x, %x, dim = 1 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x6xf32>
    %1 = stablehlo.dynamic_reshape %0, %shape : (tensor<?x6xf32>, tensor<2xi32>) -> tensor<?x6xf32>
    return %1 : tensor<?x6xf32>
  }
  "func.func"() <{function_type = (tensor<?x3xf32>) -> tensor<?x3xf32>, sym_name = "same", sym_visibility = "private"}> ({
  ^bb0(%v: tensor<?x3xf32>):
    %0 = stablehlo.add %v, %v : tensor<?x3xf32>
    "func.return"(%0) : (tensor<?x3xf32>) -> ()
  }) {my.note = 1 : i64} : () -> ()
}
