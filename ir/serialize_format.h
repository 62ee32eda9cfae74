// SPDX-License-Identifier: Apache-2.0
// The binary form: header, graph, constants. Integers are little-endian.
//
//   0   magic "PSTLGRPH"    8   u64 version        16  u64 total size
//   24  u64 graph offset    32  u64 graph size     40  u64 data offset
//   48  u64 data size       56  u64 zero
//
// graph: strings (count, texts; 0 in an index stands for none), op names
// ("stablehlo.compare LT"), types, constants (type, splat, offset in data,
// size, 128-bit hash), module name, its dialect attributes, function signatures
// with theirs, function bodies. Each
// constant lies at a multiple of 64 bytes from the start. Values are numbered
// in the order of definition; the end of a region takes its numbers back.
#ifndef PESTLE_IR_SERIALIZE_FORMAT_H_
#define PESTLE_IR_SERIALIZE_FORMAT_H_

#define PESTLE_BINARY_MAGIC "PSTLGRPH"
#define PESTLE_BINARY_VERSION 3
#define PESTLE_BINARY_HEADER 64
#define PESTLE_BINARY_ALIGNMENT 64
// Regions nested deeper than this are refused on both sides.
#define PESTLE_BINARY_MAX_DEPTH 100

#endif  // PESTLE_IR_SERIALIZE_FORMAT_H_
