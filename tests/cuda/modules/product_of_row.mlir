// A row times a matrix: while the kernel waits for the one in front of it, it asks for its rows.
// source: ^ +pestle_prefetch\(\(const char\*\)pestle_given_w \+$
// also: ref,cpu=simt90
// capability: 90
func.func @main(%x: tensor<1x1024xbf16>, %w: tensor<1030x1024xbf16>) -> tensor<1x1030xbf16> {
  %y = "stablehlo.dot_general"(%x, %w) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<1x1024xbf16>, tensor<1030x1024xbf16>) -> tensor<1x1030xbf16>
  return %y : tensor<1x1030xbf16>
}
