"sdy.mesh"() <{mesh = #sdy.mesh<["d"=1]>, sym_name = "other"}> : () -> ()
sdy.mesh @mesh = <["d"=1]> {my.note = 1 : i64}
module @shardy {
  func.func @main(%a: tensor<4x6xf32>) -> tensor<4x6xf32> {
    %0 = sdy.reshard %a <@mesh, [{"d"}, {}]> : tensor<4x6xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"d"}, {}]>] out_shardings=[<@mesh, [{"d"}, {}]>] manual_axes={"d"} (%x: tensor<4x6xf32>) {
      %s = stablehlo.add %x, %x : tensor<4x6xf32>
      sdy.return %s : tensor<4x6xf32>
    } {my.note = 2 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %2 = "sdy.manual_computation"(%1) <{in_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>, manual_axes = #sdy<manual_axes{"d"}>, out_shardings = #sdy.sharding_per_value<[<@mesh, [{"d"}, {}]>]>}> ({
    ^bb0(%x: tensor<4x6xf32>):
      %s = stablehlo.negate %x : tensor<4x6xf32>
      "sdy.return"(%s) : (tensor<4x6xf32>) -> ()
    }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %3:2 = sdy.named_computation<"f">(%2) in_shardings=[<@mesh, [{"d"}, {}]>] (%x: tensor<4x6xf32>) {
      sdy.return %x, %x : tensor<4x6xf32>, tensor<4x6xf32>
    } : (tensor<4x6xf32>) -> (tensor<4x6xf32>, tensor<4x6xf32>)
    %4 = "sdy.named_computation"() <{name = "g"}> ({
      %c = sdy.constant dense<2.0> : tensor<4x6xf32>
      "sdy.return"(%c) : (tensor<4x6xf32>) -> ()
    }) : () -> tensor<4x6xf32>
    %5 = sdy.all_gather [{"d"}, {}] %3#1 out_sharding=<@mesh, [{"d"}, {}]> : tensor<4x6xf32>
    %6 = sdy.all_reduce {"d"} %5 out_sharding=<@mesh, [{"d"}, {}]> : tensor<4x6xf32>
    %7 = "sdy.all_slice"(%6) <{out_sharding = #sdy.sharding<@mesh, [{"d"}, {}]>, slicing_axes = #sdy<list_of_axis_ref_lists[{"d"}, {}]>}> : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %8 = stablehlo.add %7, %4 : tensor<4x6xf32>
    return %8 : tensor<4x6xf32>
  }
}
