// Loops that change a row of their state a trip. In the first the state is
// changed where it lies, and no step of a trip copies it; in the second it is
// read once more after the change, which needs a copy.
// RUN: %golden %s.plan -- %pestle dump %s --stage plan --target ref
func.func @main(%x: tensor<9x40xf32>, %u: tensor<1x40xf32>) -> (tensor<9x40xf32>, tensor<9x40xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<9> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<9x40xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %s, %i, %zero, sizes = [1, 40] : (tensor<9x40xf32>, tensor<i32>, tensor<i32>) -> tensor<1x40xf32>
      %new = stablehlo.add %row, %u : tensor<1x40xf32>
      %t = stablehlo.dynamic_update_slice %s, %new, %i, %zero : (tensor<9x40xf32>, tensor<1x40xf32>, tensor<i32>, tensor<i32>) -> tensor<9x40xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t : tensor<i32>, tensor<9x40xf32>
    }
  %q:3 = stablehlo.while(%i = %zero, %s = %x, %a = %x) : tensor<i32>, tensor<9x40xf32>, tensor<9x40xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %t = stablehlo.dynamic_update_slice %s, %u, %i, %zero : (tensor<9x40xf32>, tensor<1x40xf32>, tensor<i32>, tensor<i32>) -> tensor<9x40xf32>
      %d = stablehlo.subtract %t, %s : tensor<9x40xf32>
      %b = stablehlo.add %a, %d : tensor<9x40xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %t, %b : tensor<i32>, tensor<9x40xf32>, tensor<9x40xf32>
    }
  return %r#1, %q#2 : tensor<9x40xf32>, tensor<9x40xf32>
}
