// A chain of ten ops, tanh and a sigmoid among them, 256M f32.
func.func @main(%x: tensor<268435456xf32>) -> tensor<268435456xf32> {
  %a = stablehlo.constant dense<1.01> : tensor<268435456xf32>
  %b = stablehlo.constant dense<0.1> : tensor<268435456xf32>
  %d = stablehlo.constant dense<0.3> : tensor<268435456xf32>
  %three = stablehlo.constant dense<3.0> : tensor<268435456xf32>
  %c = stablehlo.constant dense<1.7> : tensor<268435456xf32>
  %0 = stablehlo.multiply %x, %a : tensor<268435456xf32>
  %1 = stablehlo.add %0, %b : tensor<268435456xf32>
  %2 = stablehlo.tanh %1 : tensor<268435456xf32>
  %3 = stablehlo.multiply %2, %x : tensor<268435456xf32>
  %4 = stablehlo.subtract %3, %d : tensor<268435456xf32>
  %5 = stablehlo.logistic %4 : tensor<268435456xf32>
  %6 = stablehlo.multiply %5, %c : tensor<268435456xf32>
  %7 = stablehlo.add %6, %x : tensor<268435456xf32>
  %8 = stablehlo.abs %7 : tensor<268435456xf32>
  %9 = stablehlo.minimum %8, %three : tensor<268435456xf32>
  return %9 : tensor<268435456xf32>
}
