// Too few rows, a bias of its own gradient, another type: none has a kernel.
func.func public @main(%q: tensor<4x3x8xf32>, %k: tensor<4x24x8xf32>, %r: tensor<4x20x8xf32>, %b: tensor<1x20x24xf32>, %h: tensor<4x20x8xf64>) -> (tensor<4x3x8xf32>, tensor<1x20x24xf32>, tensor<4x20x8xf64>) {
  %0:3 = "pestle.attention_grad"(%q, %k, %k, %q, %q) {scale = 0.5 : f64} : (tensor<4x3x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>)
  %1:4 = "pestle.attention_grad"(%r, %k, %k, %r, %r, %b) {scale = 0.5 : f64, of_bias = true} : (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x20x8xf32>, tensor<4x20x8xf32>, tensor<1x20x24xf32>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<1x20x24xf32>)
  %2:3 = "pestle.attention_grad"(%h, %h, %h, %h, %h) {scale = 0.5 : f64} : (tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>) -> (tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>)
  return %0#0, %1#3, %2#1 : tensor<4x3x8xf32>, tensor<1x20x24xf32>, tensor<4x20x8xf64>
}
// -----
module {
  func.func public @main(%q: tensor<4x3x8xf32>, %k: tensor<4x24x8xf32>, %r: tensor<4x20x8xf32>, %b: tensor<1x20x24xf32>, %h: tensor<4x20x8xf64>) -> (tensor<4x3x8xf32>, tensor<1x20x24xf32>, tensor<4x20x8xf64>) {
    %0:3 = "pestle.attention_grad"(%q, %k, %k, %q, %q) <{scale = 0.5 : f64}> : (tensor<4x3x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x3x8xf32>, tensor<4x3x8xf32>) -> (tensor<4x3x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>)
    %1:4 = "pestle.attention_grad"(%r, %k, %k, %r, %r, %b) <{scale = 0.5 : f64, of_bias = true}> : (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<4x20x8xf32>, tensor<4x20x8xf32>, tensor<1x20x24xf32>) -> (tensor<4x20x8xf32>, tensor<4x24x8xf32>, tensor<4x24x8xf32>, tensor<1x20x24xf32>)
    %2:3 = "pestle.attention_grad"(%h, %h, %h, %h, %h) <{scale = 0.5 : f64}> : (tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>) -> (tensor<4x20x8xf64>, tensor<4x20x8xf64>, tensor<4x20x8xf64>)
    return %0#0, %1#3, %2#1 : tensor<4x3x8xf32>, tensor<1x20x24xf32>, tensor<4x20x8xf64>
  }
}
