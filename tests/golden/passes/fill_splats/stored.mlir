// What a loop begins with and what is returned; what a kernel reads stays.
// RUN: %pestle-opt %s --passes=fill_splats --round-trip | FileCheck %s
// CHECK:     [[A:%.*]] = stablehlo.broadcast_in_dim {{.*}} -> tensor<100x64xf32>
// CHECK:     stablehlo.while({{.*}} = [[A]])
// CHECK:     stablehlo.add {{%.*}}, %z
// CHECK:     [[B:%.*]] = stablehlo.broadcast_in_dim {{.*}} -> tensor<100x64xf32>
// CHECK:     return {{.*}}, [[B]] :
func.func @main(%x: tensor<64xf32>, %n: tensor<i32>) -> (tensor<64xf32>, tensor<100x64xf32>, tensor<100x64xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<100x64xf32>
  %r:3 = stablehlo.while(%i = %zero, %s = %x, %t = %z) : tensor<i32>, tensor<64xf32>, tensor<100x64xf32>
  cond {
    %c = stablehlo.compare LT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %q = stablehlo.add %t, %z : tensor<100x64xf32>
    stablehlo.return %j, %s, %q : tensor<i32>, tensor<64xf32>, tensor<100x64xf32>
  }
  return %r#1, %r#2, %z : tensor<64xf32>, tensor<100x64xf32>, tensor<100x64xf32>
}
