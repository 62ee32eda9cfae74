// RUN: %golden %s --stderr --exit 4 -- %pestle dump %s
func.func @main(%x: tensor<4294967296x4294967296x2xf32>) -> tensor<4294967296x4294967296x2xf32> {
  return %x : tensor<4294967296x4294967296x2xf32>
}
