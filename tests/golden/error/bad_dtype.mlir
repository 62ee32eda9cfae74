// RUN: %golden %s --stderr --exit 3 -- %pestle dump %s
func.func @main(%x: tensor<4xf33>) -> tensor<4xf33> {
  return %x : tensor<4xf33>
}
