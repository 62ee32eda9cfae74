// gelu in both forms, silu from 1 / (1 + exp(-x)), hard_sigmoid.
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %half = stablehlo.constant dense<0.5> : tensor<8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %root = stablehlo.constant dense<1.4142135> : tensor<8xf32>
  %c = stablehlo.constant dense<0.7978846> : tensor<8xf32>
  %k = stablehlo.constant dense<0.044715> : tensor<8xf32>
  %0 = stablehlo.divide %x, %root : tensor<8xf32>
  %1 = chlo.erf %0 : tensor<8xf32> -> tensor<8xf32>
  %2 = stablehlo.add %1, %one : tensor<8xf32>
  %3 = stablehlo.multiply %x, %2 : tensor<8xf32>
  %4 = stablehlo.multiply %3, %half : tensor<8xf32>
  %5 = stablehlo.multiply %x, %x : tensor<8xf32>
  %6 = stablehlo.multiply %5, %x : tensor<8xf32>
  %7 = stablehlo.multiply %6, %k : tensor<8xf32>
  %8 = stablehlo.add %x, %7 : tensor<8xf32>
  %9 = stablehlo.multiply %8, %c : tensor<8xf32>
  %10 = stablehlo.tanh %9 : tensor<8xf32>
  %11 = stablehlo.add %10, %one : tensor<8xf32>
  %12 = stablehlo.multiply %x, %half : tensor<8xf32>
  %13 = stablehlo.multiply %12, %11 : tensor<8xf32>
  %14 = stablehlo.negate %x : tensor<8xf32>
  %15 = stablehlo.exponential %14 : tensor<8xf32>
  %16 = stablehlo.add %15, %one : tensor<8xf32>
  %17 = stablehlo.divide %one, %16 : tensor<8xf32>
  %18 = stablehlo.multiply %x, %17 : tensor<8xf32>
  %a = stablehlo.constant dense<0.2> : tensor<8xf32>
  %lo = stablehlo.constant dense<0.0> : tensor<f32>
  %hi = stablehlo.constant dense<1.0> : tensor<f32>
  %19 = stablehlo.multiply %x, %a : tensor<8xf32>
  %20 = stablehlo.add %19, %half : tensor<8xf32>
  %21 = stablehlo.clamp %lo, %20, %hi : (tensor<f32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %4, %13, %18, %21 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
// -----
module {
  func.func public @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
    %0 = "pestle.gelu"(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = "pestle.gelu"(%x) <{approximate = true}> : (tensor<8xf32>) -> tensor<8xf32>
    %2 = "pestle.silu"(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = "pestle.hard_sigmoid"(%x) <{alpha = 0.20000000298023224 : f64, beta = 0.5 : f64}> : (tensor<8xf32>) -> tensor<8xf32>
    return %0, %1, %2, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
}
