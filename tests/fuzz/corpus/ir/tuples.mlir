!pair = tuple<tensor<2xf32>, tuple<tensor<i32>, !stablehlo.token>>
!mat = tensor<2xf32>
module @tuples {
  func.func public @main(%t: !pair, %a: !mat) -> (tuple<tensor<2xf32>>, !stablehlo.token) {
    %0 = stablehlo.get_tuple_element %t[0] : (!pair) -> tensor<2xf32>
    %1 = "stablehlo.get_tuple_element"(%t) <{index = 1 : i32}> : (!pair) -> tuple<tensor<i32>, !stablehlo.token>
    %2 = stablehlo.get_tuple_element %1[0] : (tuple<tensor<i32>, !stablehlo.token>) -> tensor<i32>
    %3 = "stablehlo.get_tuple_element"(%1) {index = 1 : i32} : (tuple<tensor<i32>, !stablehlo.token>) -> !stablehlo.token
    %4 = stablehlo.after_all %3, %3 : !stablehlo.token
    %5 = "stablehlo.create_token"() : () -> !stablehlo.token
    %6 = stablehlo.tuple %0, %1 {my.note} : !pair
    %7:2 = stablehlo.while(%p = %6, %n = %2) : !pair, tensor<i32> attributes {my.note = 1 : i64}
     cond {
      %c = stablehlo.constant dense<3> : tensor<i32>
      %10 = stablehlo.compare LT, %n, %c, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %10 : tensor<i1>
    } do {
      %11 = stablehlo.add %n, %n : tensor<i32>
      stablehlo.return %p, %11 : !pair, tensor<i32>
    }
    %8 = stablehlo.get_tuple_element %7#0[0] : (!pair) -> tensor<2xf32>
    %9 = stablehlo.add %8, %a : !mat
    %e = stablehlo.tuple %9 : tuple<tensor<2xf32>>
    %none = "stablehlo.tuple"() : () -> tuple<>
    %o:2 = stablehlo.optimization_barrier %e, %5 : tuple<tensor<2xf32>>, !stablehlo.token
    return %o#0, %4 : tuple<tensor<2xf32>>, !stablehlo.token
  }
}
