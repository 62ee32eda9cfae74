// A region takes and returns two values for one; a comparator of sort takes each
// part in pairs.
func.func @main(%x: tensor<4xcomplex<f32>>, %i: tensor<4xi32>) -> (tensor<4xcomplex<f32>>, tensor<4xi32>, tensor<complex<f32>>) {
  %r:2 = "stablehlo.sort"(%x, %i) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<complex<f32>>, %b: tensor<complex<f32>>, %c: tensor<i32>, %d: tensor<i32>):
    %3 = stablehlo.imag %a : (tensor<complex<f32>>) -> tensor<f32>
    %4 = stablehlo.imag %b : (tensor<complex<f32>>) -> tensor<f32>
    %5 = stablehlo.compare LT, %3, %4, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  }) : (tensor<4xcomplex<f32>>, tensor<4xi32>) -> (tensor<4xcomplex<f32>>, tensor<4xi32>)
  %o = stablehlo.constant dense<(1.0, 0.0)> : tensor<complex<f32>>
  %p = stablehlo.reduce(%x init: %o) applies stablehlo.multiply across dimensions = [0] : (tensor<4xcomplex<f32>>, tensor<complex<f32>>) -> tensor<complex<f32>>
  return %r#0, %r#1, %p : tensor<4xcomplex<f32>>, tensor<4xi32>, tensor<complex<f32>>
}
// -----
module {
  func.func public @main(%x: tensor<4xcomplex<f32>>, %i: tensor<4xi32>) -> (tensor<4xcomplex<f32>>, tensor<4xi32>, tensor<complex<f32>>) {
    %0 = stablehlo.bitcast_convert %x : (tensor<4xcomplex<f32>>) -> tensor<4x2xf32>
    %1 = stablehlo.slice %0 [0:4, 0:1] : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %2 = stablehlo.reshape %1 : (tensor<4x1xf32>) -> tensor<4xf32>
    %3 = stablehlo.slice %0 [0:4, 1:2] : (tensor<4x2xf32>) -> tensor<4x1xf32>
    %4 = stablehlo.reshape %3 : (tensor<4x1xf32>) -> tensor<4xf32>
    %5:3 = "stablehlo.sort"(%2, %4, %i) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>, %arg0: tensor<f32>, %arg1: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>):
      %15 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %15 : tensor<i1>
    }) : (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>)
    %6 = stablehlo.constant dense<1.0> : tensor<f32>
    %7 = stablehlo.constant dense<0.0> : tensor<f32>
    %8:2 = stablehlo.reduce(%2 init: %6), (%4 init: %7) across dimensions = [0] : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
     reducer(%arg0: tensor<f32>, %arg2: tensor<f32>) (%arg1: tensor<f32>, %arg3: tensor<f32>)  {
      %15 = stablehlo.multiply %arg0, %arg2 : tensor<f32>
      %16 = stablehlo.multiply %arg1, %arg3 : tensor<f32>
      %17 = stablehlo.multiply %arg0, %arg3 : tensor<f32>
      %18 = stablehlo.multiply %arg1, %arg2 : tensor<f32>
      %19 = stablehlo.subtract %15, %16 : tensor<f32>
      %20 = stablehlo.add %17, %18 : tensor<f32>
      stablehlo.return %19, %20 : tensor<f32>, tensor<f32>
    }
    %9 = stablehlo.reshape %5#0 : (tensor<4xf32>) -> tensor<4x1xf32>
    %10 = stablehlo.reshape %5#1 : (tensor<4xf32>) -> tensor<4x1xf32>
    %11 = stablehlo.concatenate %9, %10, dim = 1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x2xf32>
    %r = stablehlo.bitcast_convert %11 : (tensor<4x2xf32>) -> tensor<4xcomplex<f32>>
    %12 = stablehlo.reshape %8#0 : (tensor<f32>) -> tensor<1xf32>
    %13 = stablehlo.reshape %8#1 : (tensor<f32>) -> tensor<1xf32>
    %14 = stablehlo.concatenate %12, %13, dim = 0 : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
    %p = stablehlo.bitcast_convert %14 : (tensor<2xf32>) -> tensor<complex<f32>>
    return %r, %5#2, %p : tensor<4xcomplex<f32>>, tensor<4xi32>, tensor<complex<f32>>
  }
}
