// What the body hands on, and what nobody needs, leave the loop; so does what is
// made of them anew each time.
func.func @main(%w: tensor<4x4xf32>, %x: tensor<4x4xf32>, %n: tensor<i32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %half = stablehlo.constant dense<5.0e-1> : tensor<f32>
  %r:4 = stablehlo.while(%a = %w, %b = %x, %unused = %x, %i = %zero) : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>
  cond {
    %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %p = stablehlo.dot_general %b, %t, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %h = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %q = stablehlo.multiply %p, %h : tensor<4x4xf32>
    %s = stablehlo.sine %unused : tensor<4x4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %a, %q, %s, %j : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>
  }
  return %r#1, %r#0 : tensor<4x4xf32>, tensor<4x4xf32>
}
// -----
module {
  func.func public @main(%w: tensor<4x4xf32>, %x: tensor<4x4xf32>, %n: tensor<i32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %half = stablehlo.constant dense<0.5> : tensor<f32>
    %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %s = stablehlo.sine %x : tensor<4x4xf32>
    %0:2 = stablehlo.while(%b = %x, %i = %zero) : tensor<4x4xf32>, tensor<i32>
    cond {
      %c = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %p = stablehlo.dot_general %b, %t, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
      %h = stablehlo.broadcast_in_dim %half, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
      %q = stablehlo.multiply %p, %h : tensor<4x4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %q, %j : tensor<4x4xf32>, tensor<i32>
    }
    return %0#0, %w : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
