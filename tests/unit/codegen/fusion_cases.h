// SPDX-License-Identifier: Apache-2.0
// Fusions as text, for tests of what codegen makes of them. Shapes are chosen
// to meet every tail: odd, prime, one, larger than a tile.
#ifndef PESTLE_TESTS_UNIT_CODEGEN_FUSION_CASES_H_
#define PESTLE_TESTS_UNIT_CODEGEN_FUSION_CASES_H_

#include "base/str.h"

typedef struct case_t {
  const char* name;
  const char* args;  // "a: tensor<4xf32>, b: tensor<4xf32>"
  const char* body;  // uses %a, %b ...; one op a line
  const char* ret;   // "%y : tensor<4xf32>"
  double tolerance;  // relative to the largest element
} case_t;

// The windows of %x reduced by |op| from |init| on, as %y, but for their attributes and
// types.
#define WINDOWS_OF(op, type, init)                               \
  "      %i = stablehlo.constant dense<" init "> : tensor<" type \
  ">\n"                                                          \
  "      %y = \"stablehlo.reduce_window\"(%x, %i) ({\n"          \
  "      ^bb0(%p: tensor<" type ">, %q: tensor<" type            \
  ">):\n"                                                        \
  "        %r = stablehlo." op " %p, %q : tensor<" type          \
  ">\n"                                                          \
  "        stablehlo.return %r : tensor<" type                   \
  ">\n"                                                          \
  "      }) "

// --- From a case to a module with one fusion ---

static void append_types(pestle_strbuf_t* out, const char* list) {
  // Of "a: T, b: U" the types only. Commas inside <> do not occur in types.
  pestle_str_t rest = pestle_str(list), arg;
  bool first = true;
  while (pestle_str_next(&rest, ',', &arg)) {
    size_t colon = pestle_str_find_char(arg, ':');
    if (colon >= arg.size) continue;
    pestle_str_t type =
        pestle_str_trim(pestle_str_slice(arg, colon + 1, arg.size));
    pestle_strbuf_appendf(out, "%s%.*s", first ? "" : ", ",
                          PESTLE_STR_ARG(type));
    first = false;
  }
}

static void append_args(pestle_strbuf_t* out, const char* list, char prefix,
                        bool types) {
  pestle_str_t rest = pestle_str(list), arg;
  bool first = true;
  while (pestle_str_next(&rest, ',', &arg)) {
    size_t colon = pestle_str_find_char(arg, ':');
    pestle_str_t name = pestle_str_trim(pestle_str_slice(arg, 0, colon));
    pestle_str_t type =
        pestle_str_trim(pestle_str_slice(arg, colon + 1, arg.size));
    pestle_strbuf_appendf(out, "%s%%", first ? "" : ", ");
    if (prefix) pestle_strbuf_append_char(out, prefix);
    pestle_strbuf_appendf(out, "%.*s", PESTLE_STR_ARG(name));
    if (types) pestle_strbuf_appendf(out, ": %.*s", PESTLE_STR_ARG(type));
    first = false;
  }
}

static void append_results(pestle_strbuf_t* out, const char* ret, int what) {
  // "%y, %z : T, U": 0 the values, 1 the types.
  pestle_str_t text = pestle_str(ret);
  size_t colon = pestle_str_find_char(text, ':');
  pestle_str_t part = what ? pestle_str_slice(text, colon + 1, text.size)
                           : pestle_str_slice(text, 0, colon);
  pestle_strbuf_append(out, pestle_str_trim(part));
}

static size_t result_count(const char* ret) {
  size_t n = 1;
  for (const char* c = ret; *c && *c != ':'; ++c)
    n += *c == ',';
  return n;
}

static void make_text(const case_t* c, pestle_strbuf_t* out) {
  size_t n = result_count(c->ret);
  pestle_strbuf_append_c(out, "module @m {\n  func.func public @main(");
  append_args(out, c->args, 'o', true);
  pestle_strbuf_append_c(out, ") -> (");
  append_results(out, c->ret, 1);
  pestle_strbuf_appendf(out, ") {\n    %%f:%zu = \"pestle.fusion\"(", n);
  append_args(out, c->args, 'o', false);
  pestle_strbuf_append_c(out, ") ({\n    ^bb0(");
  append_args(out, c->args, 0, true);
  pestle_strbuf_appendf(out,
                        "):\n%s\n      stablehlo.return %s\n    })"
                        " {label = \"%s\"} : (",
                        c->body, c->ret, c->name);
  append_types(out, c->args);
  pestle_strbuf_append_c(out, ") -> (");
  append_results(out, c->ret, 1);
  pestle_strbuf_append_c(out, ")\n    return ");
  for (size_t i = 0; i < n; ++i) {
    pestle_strbuf_appendf(out, "%s%%f#%zu", i ? ", " : "", i);
  }
  pestle_strbuf_append_c(out, " : ");
  append_results(out, c->ret, 1);
  pestle_strbuf_append_c(out, "\n  }\n}\n");
}

// --- Cases ---

// clang-format off
#define SUM(x, init, dims, from, to)                                        \
  "      %zero" x " = stablehlo.constant dense<" init "> : tensor<f32>\n"   \
  "      %" x " = stablehlo.reduce(%" from " init: %zero" x                 \
  ") applies stablehlo.add across dimensions = [" dims "] : " to "\n"

static const case_t cases[] = {
    {"add", "a: tensor<7xf32>, b: tensor<7xf32>",
     "      %y = stablehlo.add %a, %b : tensor<7xf32>", "%y : tensor<7xf32>",
     0},
    {"chain", "a: tensor<3x5x17xf32>, b: tensor<3x5x17xf32>",
     "      %c = stablehlo.multiply %a, %b : tensor<3x5x17xf32>\n"
     "      %d = stablehlo.add %c, %a : tensor<3x5x17xf32>\n"
     "      %y = stablehlo.maximum %d, %b : tensor<3x5x17xf32>",
     "%y : tensor<3x5x17xf32>", 1e-6},
    {"long_chain", "a: tensor<10007xf32>",
     "      %c = stablehlo.exponential %a : tensor<10007xf32>\n"
     "      %y = stablehlo.multiply %c, %a : tensor<10007xf32>",
     "%y : tensor<10007xf32>", 1e-6},
    {"scalar", "a: tensor<f32>",
     "      %y = stablehlo.add %a, %a : tensor<f32>", "%y : tensor<f32>", 0},
    {"broadcast", "a: tensor<5xf32>, b: tensor<6x5xf32>",
     "      %c = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<5xf32>)"
     " -> tensor<6x5xf32>\n"
     "      %y = stablehlo.add %c, %b : tensor<6x5xf32>",
     "%y : tensor<6x5xf32>", 0},
    {"transpose", "a: tensor<19x37xf32>",
     "      %y = stablehlo.transpose %a, dims = [1, 0] : (tensor<19x37xf32>)"
     " -> tensor<37x19xf32>",
     "%y : tensor<37x19xf32>", 0},
    {"reshape", "a: tensor<6x35xf32>",
     "      %b = stablehlo.reshape %a : (tensor<6x35xf32>) -> "
     "tensor<2x3x5x7xf32>\n"
     "      %c = stablehlo.transpose %b, dims = [0, 2, 1, 3] : "
     "(tensor<2x3x5x7xf32>) -> tensor<2x5x3x7xf32>\n"
     "      %y = stablehlo.reshape %c : (tensor<2x5x3x7xf32>) -> "
     "tensor<10x21xf32>",
     "%y : tensor<10x21xf32>", 0},
    {"pad", "a: tensor<4x5xf32>",
     "      %z = stablehlo.constant dense<2.5> : tensor<f32>\n"
     "      %y = stablehlo.pad %a, %z, low = [1, 2], high = [2, 1], "
     "interior = [1, 0] : (tensor<4x5xf32>, tensor<f32>) -> "
     "tensor<10x8xf32>",
     "%y : tensor<10x8xf32>", 0},
    {"concat", "a: tensor<4x5xf32>, b: tensor<4x9xf32>",
     "      %c = stablehlo.negate %b : tensor<4x9xf32>\n"
     "      %y = stablehlo.concatenate %a, %c, dim = 1 : (tensor<4x5xf32>, "
     "tensor<4x9xf32>) -> tensor<4x14xf32>",
     "%y : tensor<4x14xf32>", 0},
    {"concat_inside", "a: tensor<4x5xf32>, b: tensor<4x9xf32>",
     "      %c = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x5xf32>, "
     "tensor<4x9xf32>) -> tensor<4x14xf32>\n"
     "      %y = stablehlo.negate %c : tensor<4x14xf32>",
     "%y : tensor<4x14xf32>", 0},
    {"slice_reverse", "a: tensor<9x33xf32>",
     "      %c = stablehlo.slice %a [1:9:2, 3:30] : (tensor<9x33xf32>) -> "
     "tensor<4x27xf32>\n"
     "      %y = stablehlo.reverse %c, dims = [1] : tensor<4x27xf32>",
     "%y : tensor<4x27xf32>", 0},
    {"iota", "a: tensor<5x21xi32>",
     "      %c = stablehlo.iota dim = 1 : tensor<5x21xi32>\n"
     "      %y = stablehlo.add %a, %c : tensor<5x21xi32>",
     "%y : tensor<5x21xi32>", 0},
    {"select", "a: tensor<21xf32>, b: tensor<21xf32>",
     "      %p = stablehlo.compare LT, %a, %b, FLOAT : (tensor<21xf32>, "
     "tensor<21xf32>) -> tensor<21xi1>\n"
     "      %y = stablehlo.select %p, %a, %b : tensor<21xi1>, tensor<21xf32>",
     "%y, %p : tensor<21xf32>, tensor<21xi1>", 0},
    {"half", "a: tensor<37xf16>, b: tensor<37xf16>",
     "      %c = stablehlo.multiply %a, %b : tensor<37xf16>\n"
     "      %y = stablehlo.add %c, %b : tensor<37xf16>",
     "%y : tensor<37xf16>", 0},
    {"bf16_convert", "a: tensor<37xbf16>",
     "      %c = stablehlo.exponential %a : tensor<37xbf16>\n"
     "      %y = stablehlo.convert %c : (tensor<37xbf16>) -> tensor<37xf32>",
     "%y : tensor<37xf32>", 0},
    {"i8", "a: tensor<45xi8>, b: tensor<45xi8>",
     "      %c = stablehlo.multiply %a, %b : tensor<45xi8>\n"
     "      %y = stablehlo.convert %c : (tensor<45xi8>) -> tensor<45xf32>",
     "%y : tensor<45xf32>", 0},
    {"row_sum", "a: tensor<5x143xf32>",
     SUM("y", "0.0", "1", "a",
         "(tensor<5x143xf32>, tensor<f32>) -> tensor<5xf32>"),
     "%y : tensor<5xf32>", 1e-6},
    {"row_sum_short", "a: tensor<5x3xf32>",
     SUM("y", "1.5", "1", "a",
         "(tensor<5x3xf32>, tensor<f32>) -> tensor<5xf32>"),
     "%y : tensor<5xf32>", 1e-6},
    {"column_sum", "a: tensor<13x45xf32>",
     SUM("y", "0.0", "0", "a",
         "(tensor<13x45xf32>, tensor<f32>) -> tensor<45xf32>"),
     "%y : tensor<45xf32>", 1e-6},
    {"full_sum", "a: tensor<13x45xf32>",
     SUM("y", "0.0", "0, 1", "a",
         "(tensor<13x45xf32>, tensor<f32>) -> tensor<f32>"),
     "%y : tensor<f32>", 1e-5},
    {"middle_sum", "a: tensor<3x7x5x6xf32>",
     SUM("y", "0.0", "1, 2", "a",
         "(tensor<3x7x5x6xf32>, tensor<f32>) -> tensor<3x6xf32>"),
     "%y : tensor<3x6xf32>", 1e-6},
    // Reductions to few columns, whose steps are apart: not as many as are even.
    {"max_few_columns", "a: tensor<3x45x4xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %y = stablehlo.reduce(%a init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<3x45x4xf32>, tensor<f32>) -> "
     "tensor<3x4xf32>",
     "%y : tensor<3x4xf32>", 0},
    {"sum_few_columns", "a: tensor<70x21xf32>",
     SUM("y", "0.0", "0", "a",
         "(tensor<70x21xf32>, tensor<f32>) -> tensor<21xf32>"),
     "%y : tensor<21xf32>", 1e-6},
    {"softmax", "x: tensor<4x53xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<4x53xf32>, tensor<f32>) -> "
     "tensor<4xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<4xf32>)"
     " -> tensor<4x53xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<4x53xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<4x53xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<4x53xf32>, tensor<f32>) -> tensor<4xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<4xf32>)"
     " -> tensor<4x53xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<4x53xf32>",
     "%y : tensor<4x53xf32>", 1e-6},
    // Rows that targets with lanes keep: in registers where lanes share them
    // alike, with and without a last step for some, and in shared memory.
    {"softmax_kept", "x: tensor<3x2048xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<3x2048xf32>, tensor<f32>) -> "
     "tensor<3xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>)"
     " -> tensor<3x2048xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<3x2048xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<3x2048xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<3x2048xf32>, tensor<f32>) -> tensor<3xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>)"
     " -> tensor<3x2048xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<3x2048xf32>",
     "%y : tensor<3x2048xf32>", 1e-6},
    {"softmax_kept_rest", "x: tensor<3x1032xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<3x1032xf32>, tensor<f32>) -> "
     "tensor<3xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>)"
     " -> tensor<3x1032xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<3x1032xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<3x1032xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<3x1032xf32>, tensor<f32>) -> tensor<3xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>)"
     " -> tensor<3x1032xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<3x1032xf32>",
     "%y : tensor<3x1032xf32>", 1e-6},
    {"softmax_kept_odd", "x: tensor<3x1025xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<3x1025xf32>, tensor<f32>) -> "
     "tensor<3xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3xf32>)"
     " -> tensor<3x1025xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<3x1025xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<3x1025xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<3x1025xf32>, tensor<f32>) -> tensor<3xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<3xf32>)"
     " -> tensor<3x1025xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<3x1025xf32>",
     "%y : tensor<3x1025xf32>", 1e-6},
    // Rows that a small cache does not hold, and that are asked for ahead.
    {"softmax_rows", "x: tensor<20x256xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<20x256xf32>, tensor<f32>) -> "
     "tensor<20xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<20xf32>)"
     " -> tensor<20x256xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<20x256xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<20x256xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<20x256xf32>, tensor<f32>) -> tensor<20xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<20xf32>)"
     " -> tensor<20x256xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<20x256xf32>",
     "%y : tensor<20x256xf32>", 1e-6},
    // A reduction along nothing, which is a result and read beside what it reduces.
    {"window_of_one", "a: tensor<5xui16>, i: tensor<ui16>",
     "      %w = \"stablehlo.reduce_window\"(%a, %i) ({\n"
     "        ^bb0(%p: tensor<ui16>, %q: tensor<ui16>):\n"
     "          %s = stablehlo.and %p, %q : tensor<ui16>\n"
     "          stablehlo.return %s : tensor<ui16>\n"
     "      }) {window_dimensions = array<i64: 1>} : (tensor<5xui16>, "
     "tensor<ui16>) -> tensor<5xui16>\n"
     "      %y = stablehlo.add %w, %a : tensor<5xui16>",
     "%w, %y : tensor<5xui16>, tensor<5xui16>", 0},
    // Columns in lanes: several blocks, the last one shorter; a few columns, whose
    // reductions have steps apart, one more than is even; and planes of them.
    {"softmax_columns", "x: tensor<3x9x83xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<3x9x83xf32>, tensor<f32>) -> "
     "tensor<3x83xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 2] : "
     "(tensor<3x83xf32>) -> tensor<3x9x83xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<3x9x83xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<3x9x83xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<3x9x83xf32>, tensor<f32>) -> tensor<3x83xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0, 2] : "
     "(tensor<3x83xf32>) -> tensor<3x9x83xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<3x9x83xf32>",
     "%y : tensor<3x9x83xf32>", 1e-6},
    {"softmax_few_columns", "x: tensor<5x37x3xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<5x37x3xf32>, tensor<f32>) -> "
     "tensor<5x3xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 2] : "
     "(tensor<5x3xf32>) -> tensor<5x37x3xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<5x37x3xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<5x37x3xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<5x37x3xf32>, tensor<f32>) -> tensor<5x3xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0, 2] : "
     "(tensor<5x3xf32>) -> tensor<5x37x3xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<5x37x3xf32>",
     "%y : tensor<5x37x3xf32>", 1e-6},
    {"softmax_planes", "x: tensor<2x11x5x21xf32>",
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%x init: %i) applies stablehlo.maximum "
     "across dimensions = [1] : (tensor<2x11x5x21xf32>, tensor<f32>) -> "
     "tensor<2x5x21xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 2, 3] : "
     "(tensor<2x5x21xf32>) -> tensor<2x11x5x21xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<2x11x5x21xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<2x11x5x21xf32>\n" SUM(
         "s", "0.0", "1", "e",
         "(tensor<2x11x5x21xf32>, tensor<f32>) -> tensor<2x5x21xf32>")
     "      %sb = stablehlo.broadcast_in_dim %s, dims = [0, 2, 3] : "
     "(tensor<2x5x21xf32>) -> tensor<2x11x5x21xf32>\n"
     "      %y = stablehlo.divide %e, %sb : tensor<2x11x5x21xf32>",
     "%y : tensor<2x11x5x21xf32>", 1e-6},
    {"layer_norm", "x: tensor<6x39xf32>, g: tensor<39xf32>",
     "      %n = stablehlo.constant dense<39.0> : tensor<6xf32>\n" SUM(
         "s", "0.0", "1", "x",
         "(tensor<6x39xf32>, tensor<f32>) -> tensor<6xf32>")
     "      %mu = stablehlo.divide %s, %n : tensor<6xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %mu, dims = [0] : "
     "(tensor<6xf32>) -> tensor<6x39xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<6x39xf32>\n"
     "      %d2 = stablehlo.multiply %d, %d : tensor<6x39xf32>\n" SUM(
         "v", "0.0", "1", "d2",
         "(tensor<6x39xf32>, tensor<f32>) -> tensor<6xf32>")
     "      %va = stablehlo.divide %v, %n : tensor<6xf32>\n"
     "      %r = stablehlo.rsqrt %va : tensor<6xf32>\n"
     "      %rb = stablehlo.broadcast_in_dim %r, dims = [0] : (tensor<6xf32>)"
     " -> tensor<6x39xf32>\n"
     "      %gb = stablehlo.broadcast_in_dim %g, dims = [1] : "
     "(tensor<39xf32>) -> tensor<6x39xf32>\n"
     "      %c = stablehlo.multiply %d, %rb : tensor<6x39xf32>\n"
     "      %y = stablehlo.multiply %c, %gb : tensor<6x39xf32>",
     "%y : tensor<6x39xf32>", 1e-5},
    {"column_norm", "x: tensor<2x23x39xf32>",
     "      %n = stablehlo.constant dense<23.0> : tensor<2x39xf32>\n" SUM(
         "s", "0.0", "1", "x",
         "(tensor<2x23x39xf32>, tensor<f32>) -> tensor<2x39xf32>")
     "      %mu = stablehlo.divide %s, %n : tensor<2x39xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %mu, dims = [0, 2] : "
     "(tensor<2x39xf32>) -> tensor<2x23x39xf32>\n"
     "      %d = stablehlo.subtract %x, %mb : tensor<2x23x39xf32>\n"
     "      %d2 = stablehlo.multiply %d, %d : tensor<2x23x39xf32>\n" SUM(
         "v", "0.0", "1", "d2",
         "(tensor<2x23x39xf32>, tensor<f32>) -> tensor<2x39xf32>")
     "      %r = stablehlo.rsqrt %v : tensor<2x39xf32>\n"
     "      %rb = stablehlo.broadcast_in_dim %r, dims = [0, 2] : "
     "(tensor<2x39xf32>) -> tensor<2x23x39xf32>\n"
     "      %y = stablehlo.multiply %d, %rb : tensor<2x23x39xf32>",
     "%y : tensor<2x23x39xf32>", 1e-5},
    {"gemm", "a: tensor<13x29xf32>, b: tensor<29x71xf32>, c: tensor<71xf32>",
     "      %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<13x29xf32>, tensor<29x71xf32>) -> tensor<13x71xf32>\n"
     "      %cb = stablehlo.broadcast_in_dim %c, dims = [1] : "
     "(tensor<71xf32>) -> tensor<13x71xf32>\n"
     "      %e = stablehlo.add %d, %cb : tensor<13x71xf32>\n"
     "      %z = stablehlo.constant dense<0.0> : tensor<13x71xf32>\n"
     "      %y = stablehlo.maximum %e, %z : tensor<13x71xf32>",
     "%y : tensor<13x71xf32>", 1e-6},
    {"gemm_even", "a: tensor<12x16xf32>, b: tensor<16x128xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<12x16xf32>, tensor<16x128xf32>) -> tensor<12x128xf32>",
     "%y : tensor<12x128xf32>", 1e-6},
    {"gemm_parts", "a: tensor<2x12x16xf32>",
     "      %l = stablehlo.slice %a [0:1, 0:12, 0:16] : "
     "(tensor<2x12x16xf32>) -> tensor<1x12x16xf32>\n"
     "      %m = stablehlo.reshape %l : (tensor<1x12x16xf32>) -> "
     "tensor<12x16xf32>\n"
     "      %n = stablehlo.slice %a [1:2, 0:12, 0:16] : "
     "(tensor<2x12x16xf32>) -> tensor<1x12x16xf32>\n"
     "      %o = stablehlo.reshape %n : (tensor<1x12x16xf32>) -> "
     "tensor<12x16xf32>\n"
     "      %y = stablehlo.dot_general %m, %o, contracting_dims = [1] x [1] "
     ": (tensor<12x16xf32>, tensor<12x16xf32>) -> tensor<12x12xf32>",
     "%y : tensor<12x12xf32>", 1e-6},
    {"gemm_panels", "a: tensor<60x64xf32>, b: tensor<64x144xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<60x64xf32>, tensor<64x144xf32>) -> tensor<60x144xf32>",
     "%y : tensor<60x144xf32>", 1e-6},
    {"gemm_rows", "a: tensor<190x16xf32>, b: tensor<16x80xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<190x16xf32>, tensor<16x80xf32>) -> tensor<190x80xf32>",
     "%y : tensor<190x80xf32>", 1e-6},
    {"dot_bytes", "a: tensor<13x30xi8>, b: tensor<71x30xi8>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] "
     ": (tensor<13x30xi8>, tensor<71x30xi8>) -> tensor<13x71xi32>",
     "%y : tensor<13x71xi32>", 0},
    {"dot_mixed", "a: tensor<2x7x16xui8>, b: tensor<2x16x33xi8>",
     "      %y = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [1] : (tensor<2x7x16xui8>, "
     "tensor<2x16x33xi8>) -> tensor<2x7x33xi32>",
     "%y : tensor<2x7x33xi32>", 0},
    {"conv_bytes", "x: tensor<1x6x9x3xui8>, w: tensor<3x3x3x20xi8>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [1, 2]} {batch_group_count "
     "= 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x9x3xui8>, "
     "tensor<3x3x3x20xi8>) -> tensor<1x4x4x20xi32>",
     "%y : tensor<1x4x4x20xi32>", 0},
    {"dot_bf16", "a: tensor<13x29xbf16>, b: tensor<29x71xbf16>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<13x29xbf16>, tensor<29x71xbf16>) -> tensor<13x71xf32>",
     "%y : tensor<13x71xf32>", 1e-6},
    {"gemm_tanh", "a: tensor<13x29xf32>, b: tensor<29x71xf32>",
     "      %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<13x29xf32>, tensor<29x71xf32>) -> tensor<13x71xf32>\n"
     "      %y = stablehlo.tanh %d : tensor<13x71xf32>",
     "%y : tensor<13x71xf32>", 1e-5},
    {"gemm_nt", "a: tensor<2x13x29xf32>, b: tensor<2x71x29xf32>",
     "      %y = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [2] : (tensor<2x13x29xf32>, "
     "tensor<2x71x29xf32>) -> tensor<2x13x71xf32>",
     "%y : tensor<2x13x71xf32>", 1e-6},
    {"gemv", "a: tensor<1x37xf32>, b: tensor<37x50xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<1x37xf32>, tensor<37x50xf32>) -> tensor<1x50xf32>",
     "%y : tensor<1x50xf32>", 1e-6},
    {"matvec_columns", "a: tensor<1x70xf32>, b: tensor<70x4500xf32>",
     "      %y = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [0] : (tensor<1x70xf32>, "
     "tensor<70x4500xf32>) -> tensor<1x4500xf32>",
     "%y : tensor<1x4500xf32>", 1e-6},
    {"matvec_columns_few", "a: tensor<3x67xf32>, b: tensor<67x90xf32>",
     "      %d = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [0] : (tensor<3x67xf32>, "
     "tensor<67x90xf32>) -> tensor<3x90xf32>\n"
     "      %y = stablehlo.tanh %d : tensor<3x90xf32>",
     "%y : tensor<3x90xf32>", 1e-5},
    {"matvec_rows", "a: tensor<1x131xf32>, b: tensor<75x131xf32>",
     "      %y = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [1] : (tensor<1x131xf32>, "
     "tensor<75x131xf32>) -> tensor<1x75xf32>",
     "%y : tensor<1x75xf32>", 1e-6},
    {"matvec_rows_few", "a: tensor<5x131xf32>, b: tensor<75x131xf32>",
     "      %d = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [1] : (tensor<5x131xf32>, "
     "tensor<75x131xf32>) -> tensor<5x75xf32>\n"
     "      %y = stablehlo.abs %d : tensor<5x75xf32>",
     "%y : tensor<5x75xf32>", 1e-6},
    // The plain schedule adds all terms in one accumulator: its own error is
    // some 4e-6 of the result here, and in dot_long.
    {"matvec_rows_long", "a: tensor<2x17000xf32>, b: tensor<11x17000xf32>",
     "      %y = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [1] : (tensor<2x17000xf32>, "
     "tensor<11x17000xf32>) -> tensor<2x11xf32>",
     "%y : tensor<2x11xf32>", 1e-5},
    {"matvec_left", "a: tensor<75x131xf32>, b: tensor<131x1xf32>",
     "      %y = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [0] : (tensor<75x131xf32>, "
     "tensor<131x1xf32>) -> tensor<75x1xf32>",
     "%y : tensor<75x1xf32>", 1e-6},
    {"matvec_batch", "a: tensor<3x1x70xf32>, b: tensor<3x33x70xf32>",
     "      %y = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [2] : (tensor<3x1x70xf32>, "
     "tensor<3x33x70xf32>) -> tensor<3x1x33xf32>",
     "%y : tensor<3x1x33xf32>", 1e-6},
    {"matvec_blocks", "a: tensor<1x3x70xf32>, b: tensor<3x70x33xf32>",
     "      %y = stablehlo.dot_general %a, %b, batching_dims = [1] x [0], "
     "contracting_dims = [2] x [1] : (tensor<1x3x70xf32>, "
     "tensor<3x70x33xf32>) -> tensor<3x1x33xf32>",
     "%y : tensor<3x1x33xf32>", 1e-6},
    {"dot_long", "a: tensor<1x9000xf32>, b: tensor<9000x1xf32>",
     "      %y = stablehlo.dot_general %a, %b, "
     "contracting_dims = [1] x [0] : (tensor<1x9000xf32>, "
     "tensor<9000x1xf32>) -> tensor<1x1xf32>",
     "%y : tensor<1x1xf32>", 1e-5},
    {"sum_of_squares", "a: tensor<5x600xf32>, b: tensor<f32>",
     "      %c = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> "
     "tensor<5x600xf32>\n"
     "      %d = stablehlo.subtract %a, %c : tensor<5x600xf32>\n"
     "      %e = stablehlo.multiply %d, %d : tensor<5x600xf32>\n" SUM(
         "y", "0.0", "1", "e",
         "(tensor<5x600xf32>, tensor<f32>) -> tensor<5xf32>"),
     "%y : tensor<5xf32>", 1e-6},
    {"dot_vector", "a: tensor<37xf32>, b: tensor<37xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] "
     ": (tensor<37xf32>, tensor<37xf32>) -> tensor<f32>",
     "%y : tensor<f32>", 1e-5},
    {"attention",
     "q: tensor<2x37x16xf32>, k: tensor<2x75x16xf32>, v: tensor<2x75x24xf32>",
     "      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [2] : (tensor<2x37x16xf32>, "
     "tensor<2x75x16xf32>) -> tensor<2x37x75xf32>\n"
     "      %c = stablehlo.constant dense<0.25> : tensor<2x37x75xf32>\n"
     "      %sc = stablehlo.multiply %s, %c : tensor<2x37x75xf32>\n"
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%sc init: %i) applies stablehlo.maximum "
     "across dimensions = [2] : (tensor<2x37x75xf32>, tensor<f32>) -> "
     "tensor<2x37xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : "
     "(tensor<2x37xf32>) -> tensor<2x37x75xf32>\n"
     "      %d = stablehlo.subtract %sc, %mb : tensor<2x37x75xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<2x37x75xf32>\n" SUM(
         "l", "0.0", "2", "e",
         "(tensor<2x37x75xf32>, tensor<f32>) -> tensor<2x37xf32>")
     "      %o = stablehlo.dot_general %e, %v, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [1] : (tensor<2x37x75xf32>, "
     "tensor<2x75x24xf32>) -> tensor<2x37x24xf32>\n"
     "      %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : "
     "(tensor<2x37xf32>) -> tensor<2x37x24xf32>\n"
     "      %y = stablehlo.divide %o, %lb : tensor<2x37x24xf32>",
     "%y : tensor<2x37x24xf32>", 1e-6},
    {"attention_long",
     "q: tensor<1x97x16xf32>, k: tensor<1x700x16xf32>, v: tensor<1x700x20xf32>",
     "      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [2] : (tensor<1x97x16xf32>, "
     "tensor<1x700x16xf32>) -> tensor<1x97x700xf32>\n"
     "      %c = stablehlo.constant dense<0.25> : tensor<1x97x700xf32>\n"
     "      %sc = stablehlo.multiply %s, %c : tensor<1x97x700xf32>\n"
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%sc init: %i) applies stablehlo.maximum "
     "across dimensions = [2] : (tensor<1x97x700xf32>, tensor<f32>) -> "
     "tensor<1x97xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : "
     "(tensor<1x97xf32>) -> tensor<1x97x700xf32>\n"
     "      %d = stablehlo.subtract %sc, %mb : tensor<1x97x700xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<1x97x700xf32>\n" SUM(
         "l", "0.0", "2", "e",
         "(tensor<1x97x700xf32>, tensor<f32>) -> tensor<1x97xf32>")
     "      %o = stablehlo.dot_general %e, %v, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [1] : (tensor<1x97x700xf32>, "
     "tensor<1x700x20xf32>) -> tensor<1x97x20xf32>\n"
     "      %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : "
     "(tensor<1x97xf32>) -> tensor<1x97x20xf32>\n"
     "      %y = stablehlo.divide %o, %lb : tensor<1x97x20xf32>",
     "%y : tensor<1x97x20xf32>", 1e-6},
    // The plain schedule adds 20,000 numbers in one accumulator, with an error
    // of some 1e-6 of their sum, and random products cancel: hence 1e-5.
    {"sum_long", "a: tensor<3x20011xf32>", SUM("y", "0.5", "1", "a",
     "(tensor<3x20011xf32>, tensor<f32>) -> tensor<3xf32>"),
     "%y : tensor<3xf32>", 1e-6},
    {"sum_longest", "a: tensor<530001xf32>", SUM("y", "0.0", "0", "a",
     "(tensor<530001xf32>, tensor<f32>) -> tensor<f32>"),
     "%y : tensor<f32>", 1e-6},
    {"sum_columns_long", "a: tensor<20011x5xf32>", SUM("y", "0.0", "0", "a",
     "(tensor<20011x5xf32>, tensor<f32>) -> tensor<5xf32>"),
     "%y : tensor<5xf32>", 1e-5},
    {"sum_planes_long", "a: tensor<2x97x113x3xf32>", SUM("y", "0.0", "1, 2", "a",
     "(tensor<2x97x113x3xf32>, tensor<f32>) -> tensor<2x3xf32>"),
     "%y : tensor<2x3xf32>", 1e-6},
    // In blocks of taps; with small caches in one accumulator, whose own error
    // is 1.1e-6 of the largest result.
    {"gemm_long", "a: tensor<50x2500xf32>, b: tensor<2500x70xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<50x2500xf32>, tensor<2500x70xf32>) -> tensor<50x70xf32>",
     "%y : tensor<50x70xf32>", 2e-6},
    {"gemv_long", "a: tensor<1x20000xf32>, b: tensor<20000x20xf32>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<1x20000xf32>, tensor<20000x20xf32>) -> tensor<1x20xf32>",
     "%y : tensor<1x20xf32>", 1e-5},
    // The last block of columns, 44 of 64, has fewer vectors than the others,
    // and the rows with a negative bias are masked as a whole.
    {"attention_masked",
     "q: tensor<1x97x13xf32>, k: tensor<1x684x13xf32>, v: tensor<1x684x20xf32>, "
     "b: tensor<1x1x684xf32>, r: tensor<1x97x1xf32>",
     "      %z = stablehlo.constant dense<0.0> : tensor<1x1x684xf32>\n"
     "      %n = stablehlo.constant dense<0xFF800000> : tensor<1x1x684xf32>\n"
     "      %zr = stablehlo.constant dense<-0.5> : tensor<1x97x1xf32>\n"
     "      %nr = stablehlo.constant dense<0xFF800000> : tensor<1x97x1xf32>\n"
     "      %bk = stablehlo.compare GE, %b, %z : (tensor<1x1x684xf32>, "
     "tensor<1x1x684xf32>) -> tensor<1x1x684xi1>\n"
     "      %bm = stablehlo.select %bk, %b, %n : tensor<1x1x684xi1>, "
     "tensor<1x1x684xf32>\n"
     "      %rk = stablehlo.compare GE, %r, %zr : (tensor<1x97x1xf32>, "
     "tensor<1x97x1xf32>) -> tensor<1x97x1xi1>\n"
     "      %rm = stablehlo.select %rk, %r, %nr : tensor<1x97x1xi1>, "
     "tensor<1x97x1xf32>\n"
     "      %bb = stablehlo.broadcast_in_dim %bm, dims = [0, 1, 2] : "
     "(tensor<1x1x684xf32>) -> tensor<1x97x684xf32>\n"
     "      %rb = stablehlo.broadcast_in_dim %rm, dims = [0, 1, 2] : "
     "(tensor<1x97x1xf32>) -> tensor<1x97x684xf32>\n"
     "      %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [2] : (tensor<1x97x13xf32>, "
     "tensor<1x684x13xf32>) -> tensor<1x97x684xf32>\n"
     "      %sb = stablehlo.add %s, %bb : tensor<1x97x684xf32>\n"
     "      %sc = stablehlo.add %sb, %rb : tensor<1x97x684xf32>\n"
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %m = stablehlo.reduce(%sc init: %i) applies stablehlo.maximum "
     "across dimensions = [2] : (tensor<1x97x684xf32>, tensor<f32>) -> "
     "tensor<1x97xf32>\n"
     "      %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : "
     "(tensor<1x97xf32>) -> tensor<1x97x684xf32>\n"
     "      %d = stablehlo.subtract %sc, %mb : tensor<1x97x684xf32>\n"
     "      %e = stablehlo.exponential %d : tensor<1x97x684xf32>\n" SUM(
         "l", "0.0", "2", "e",
         "(tensor<1x97x684xf32>, tensor<f32>) -> tensor<1x97xf32>")
     "      %o = stablehlo.dot_general %e, %v, batching_dims = [0] x [0], "
     "contracting_dims = [2] x [1] : (tensor<1x97x684xf32>, "
     "tensor<1x684x20xf32>) -> tensor<1x97x20xf32>\n"
     "      %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : "
     "(tensor<1x97xf32>) -> tensor<1x97x20xf32>\n"
     "      %y = stablehlo.divide %o, %lb : tensor<1x97x20xf32>",
     "%y : tensor<1x97x20xf32>", 1e-6},
    {"gemm_transposed_out", "a: tensor<13x29xf32>, b: tensor<29x40xf32>",
     "      %d = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<13x29xf32>, tensor<29x40xf32>) -> tensor<13x40xf32>\n"
     "      %r = stablehlo.reshape %d : (tensor<13x40xf32>) -> "
     "tensor<13x4x10xf32>\n"
     "      %y = stablehlo.transpose %r, dims = [1, 0, 2] : "
     "(tensor<13x4x10xf32>) -> tensor<4x13x10xf32>",
     "%y : tensor<4x13x10xf32>", 1e-6},
    {"gemm_bf16", "a: tensor<9x17xbf16>, b: tensor<17x33xbf16>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<9x17xbf16>, tensor<17x33xbf16>) -> tensor<9x33xbf16>",
     "%y : tensor<9x33xbf16>", 1e-2},
    {"gemm_i32", "a: tensor<9x17xi8>, b: tensor<17x33xi8>",
     "      %y = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] "
     ": (tensor<9x17xi8>, tensor<17x33xi8>) -> tensor<9x33xi32>",
     "%y : tensor<9x33xi32>", 0},
    {"conv_nhwc", "x: tensor<1x9x11x3xf32>, w: tensor<3x3x3x20xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<1x9x11x3xf32>, "
     "tensor<3x3x3x20xf32>) -> tensor<1x5x11x20xf32>",
     "%y : tensor<1x5x11x20xf32>", 1e-6},
    {"conv_valid", "x: tensor<2x9x11x5xf32>, w: tensor<3x3x5x36xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
     "(tensor<2x9x11x5xf32>, tensor<3x3x5x36xf32>) -> "
     "tensor<2x7x9x36xf32>",
     "%y : tensor<2x7x9x36xf32>", 1e-6},
    {"conv_point", "x: tensor<2x5x7x6xf32>, w: tensor<1x1x6x37xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
     "window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], "
     "rhs_dilate = [1, 1], reverse = [false, false]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
     ": (tensor<2x5x7x6xf32>, tensor<1x1x6x37xf32>) -> tensor<2x5x7x37xf32>",
     "%y : tensor<2x5x7x37xf32>", 1e-5},
    {"conv_point_planes", "x: tensor<2x6x7x11xf32>, w: tensor<5x6x1x1xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
     "window = {stride = [1, 1], pad = [[0, 0], [0, 0]], lhs_dilate = [1, 1], "
     "rhs_dilate = [1, 1], reverse = [false, false]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
     ": (tensor<2x6x7x11xf32>, tensor<5x6x1x1xf32>) -> tensor<2x5x7x11xf32>",
     "%y : tensor<2x5x7x11xf32>", 1e-5},
    {"conv_depthwise_planes", "x: tensor<2x3x9x37xf32>, w: tensor<3x1x3x3xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
     "window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], "
     "rhs_dilate = [1, 1], reverse = [false, false]} "
     "{batch_group_count = 1 : i64, feature_group_count = 3 : i64} "
     ": (tensor<2x3x9x37xf32>, tensor<3x1x3x3xf32>) -> tensor<2x3x9x37xf32>",
     "%y : tensor<2x3x9x37xf32>", 1e-5},
    {"conv_depthwise_planes5", "x: tensor<1x3x17x20xf32>, w: tensor<3x1x5x5xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], "
     "window = {stride = [1, 1], pad = [[3, 0], [0, 1]], lhs_dilate = [1, 1], "
     "rhs_dilate = [1, 1], reverse = [false, false]} "
     "{batch_group_count = 1 : i64, feature_group_count = 3 : i64} "
     ": (tensor<1x3x17x20xf32>, tensor<3x1x5x5xf32>) -> tensor<1x3x16x17xf32>",
     "%y : tensor<1x3x16x17xf32>", 1e-5},
    {"conv_depthwise", "x: tensor<1x9x11x20xf32>, w: tensor<3x3x1x20xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 20 : i64} : (tensor<1x9x11x20xf32>, "
     "tensor<3x3x1x20xf32>) -> tensor<1x5x6x20xf32>",
     "%y : tensor<1x5x6x20xf32>", 1e-6},
    // Followed by a pointwise one, of which it makes a part of a row at a time.
    {"conv_pair",
     "x: tensor<2x19x45x37xf32>, w: tensor<3x3x1x37xf32>, "
     "b: tensor<37xf32>, v: tensor<1x1x37x21xf32>, z: tensor<2x10x23x21xf32>",
     "      %d = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 37 : i64} : (tensor<2x19x45x37xf32>, "
     "tensor<3x3x1x37xf32>) -> tensor<2x10x23x37xf32>\n"
     "      %bb = stablehlo.broadcast_in_dim %b, dims = [3] : "
     "(tensor<37xf32>) -> tensor<2x10x23x37xf32>\n"
     "      %a = stablehlo.add %d, %bb : tensor<2x10x23x37xf32>\n"
     "      %c = stablehlo.constant dense<0.0> : tensor<2x10x23x37xf32>\n"
     "      %r = stablehlo.maximum %a, %c : tensor<2x10x23x37xf32>\n"
     "      %p = stablehlo.convolution(%r, %v) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
     "(tensor<2x10x23x37xf32>, tensor<1x1x37x21xf32>) -> "
     "tensor<2x10x23x21xf32>\n"
     "      %y = stablehlo.add %p, %z : tensor<2x10x23x21xf32>",
     "%y : tensor<2x10x23x21xf32>", 1e-5},
    // Groups of 8 columns: broadcasts; of 12 and 3: vectors begin inside groups.
    {"conv_groups_8", "x: tensor<1x9x11x20xf32>, w: tensor<3x3x4x40xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 5 : i64} : (tensor<1x9x11x20xf32>, "
     "tensor<3x3x4x40xf32>) -> tensor<1x9x11x40xf32>",
     "%y : tensor<1x9x11x40xf32>", 1e-6},
    {"conv_groups_12", "x: tensor<1x9x11x10xf32>, w: tensor<3x3x2x60xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 5 : i64} : (tensor<1x9x11x10xf32>, "
     "tensor<3x3x2x60xf32>) -> tensor<1x9x11x60xf32>",
     "%y : tensor<1x9x11x60xf32>", 1e-6},
    {"conv_groups_3", "x: tensor<1x9x11x21xf32>, w: tensor<3x3x3x21xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 7 : i64} : (tensor<1x9x11x21xf32>, "
     "tensor<3x3x3x21xf32>) -> tensor<1x9x11x21xf32>",
     "%y : tensor<1x9x11x21xf32>", 1e-6},
    // Its weights are copied by panels, its input with a border.
    {"conv_panel", "x: tensor<1x2x112x16xf32>, w: tensor<3x3x16x64xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<1x2x112x16xf32>, "
     "tensor<3x3x16x64xf32>) -> tensor<1x2x112x64xf32>",
     "%y : tensor<1x2x112x64xf32>", 1e-6},
    // Rows of windows share a box: 17 in two of 9 and 8.
    {"conv_depthwise_boxes", "x: tensor<1x17x13x40xf32>, w: tensor<3x3x1x40xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 40 : i64} : (tensor<1x17x13x40xf32>, "
     "tensor<3x3x1x40xf32>) -> tensor<1x17x13x40xf32>",
     "%y : tensor<1x17x13x40xf32>", 1e-6},
    {"conv_nchw_dilated", "x: tensor<1x4x9x11xf32>, w: tensor<6x2x3x2xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 1], "
     "pad = [[2, 2], [1, 0]], lhs_dilate = [2, 1], rhs_dilate = [1, 2]} "
     "{batch_group_count = 1 : i64, feature_group_count = 2 : i64} : "
     "(tensor<1x4x9x11xf32>, tensor<6x2x3x2xf32>) -> "
     "tensor<1x6x19x10xf32>",
     "%y : tensor<1x6x19x10xf32>", 1e-6},
    // Quotients of what runs backwards are rounded down, which machines do not
    // do.
    {"pad_reverse", "x: tensor<5xf32>",
     "      %k = stablehlo.constant dense<0.5> : tensor<f32>\n"
     "      %a = stablehlo.pad %x, %k, low = [-1], high = [-1], interior = [2] "
     ": (tensor<5xf32>, tensor<f32>) -> tensor<11xf32>\n"
     "      %y = stablehlo.reverse %a, dims = [0] : tensor<11xf32>",
     "%y : tensor<11xf32>", 0},
    {"tile_reverse", "x: tensor<3x4xf32>",
     "      %a = stablehlo.broadcast_in_dim %x, dims = [1, 3] : "
     "(tensor<3x4xf32>) -> tensor<2x3x3x4xf32>\n"
     "      %b = stablehlo.reshape %a : (tensor<2x3x3x4xf32>) -> "
     "tensor<6x12xf32>\n"
     "      %c = stablehlo.reverse %b, dims = [0, 1] : tensor<6x12xf32>\n"
     "      %y = stablehlo.slice %c [0:6, 1:12] : (tensor<6x12xf32>) -> "
     "tensor<6x11xf32>",
     "%y : tensor<6x11xf32>", 0},
    {"repeat_reflect", "x: tensor<2x7xf32>",
     "      %a = stablehlo.broadcast_in_dim %x, dims = [0, 1] : "
     "(tensor<2x7xf32>) -> tensor<2x7x2xf32>\n"
     "      %b = stablehlo.reshape %a : (tensor<2x7x2xf32>) -> "
     "tensor<2x14xf32>\n"
     "      %c = stablehlo.slice %b [0:2, 1:4] : (tensor<2x14xf32>) -> "
     "tensor<2x3xf32>\n"
     "      %d = stablehlo.reverse %c, dims = [1] : tensor<2x3xf32>\n"
     "      %y = stablehlo.concatenate %d, %b, dim = 1 : (tensor<2x3xf32>, "
     "tensor<2x14xf32>) -> tensor<2x17xf32>",
     "%y : tensor<2x17xf32>", 0},
    // Both taps of a window lie in its border: nothing is read.
    {"window_outside", "x: tensor<1x16xf32>",
     WINDOWS_OF("minimum", "f32", "3.0") "{window_dimensions = array<i64: 2, 1>, window_strides = "
     "array<i64: 3, 1>, base_dilations = array<i64: 2, 1>, padding = "
     "dense<[[2, 1], [1, 2]]> : tensor<2x2xi64>} : (tensor<1x16xf32>, "
     "tensor<f32>) -> tensor<1x19xf32>",
     "%y : tensor<1x19xf32>", 0},
    {"max_pool", "x: tensor<1x9x11x20xf32>",
     WINDOWS_OF("maximum", "f32", "0xFF800000") "{window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = "
     "array<i64: 1, 2, 2, 1>, padding = dense<[[0, 0], [1, 1], [1, 1], "
     "[0, 0]]> : tensor<4x2xi64>} : (tensor<1x9x11x20xf32>, tensor<f32>) -> "
     "tensor<1x5x6x20xf32>",
     "%y : tensor<1x5x6x20xf32>", 0},
    {"gather", "x: tensor<9x21xf32>, i: tensor<6x1xi32>",
     "      %y = \"stablehlo.gather\"(%x, %i) {dimension_numbers = "
     "#stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], "
     "start_index_map = [0], index_vector_dim = 1>, slice_sizes = "
     "array<i64: 1, 21>, indices_are_sorted = false} : (tensor<9x21xf32>, "
     "tensor<6x1xi32>) -> tensor<6x21xf32>",
     "%y : tensor<6x21xf32>", 0},
    {"dynamic_slice", "x: tensor<9x21xf32>, i: tensor<i32>, j: tensor<i32>",
     "      %y = stablehlo.dynamic_slice %x, %i, %j, sizes = [3, 17] : "
     "(tensor<9x21xf32>, tensor<i32>, tensor<i32>) -> tensor<3x17xf32>",
     "%y : tensor<3x17xf32>", 0},
    {"reduce_no_axis", "x: tensor<5x37xf32>",
     SUM("s", "1.0", "", "x", "(tensor<5x37xf32>, tensor<f32>) -> "
     "tensor<5x37xf32>")
     "      %y = stablehlo.multiply %s, %x : tensor<5x37xf32>",
     "%y : tensor<5x37xf32>", 1e-6},
    {"reduce_narrow_constant", "x: tensor<5x21xi8>",
     "      %z = stablehlo.constant dense<0> : tensor<i8>\n"
     "      %y = stablehlo.reduce(%x init: %z) across dimensions = [1] : "
     "(tensor<5x21xi8>, tensor<i8>) -> tensor<5xi8>\n"
     "       reducer(%p: tensor<i8>, %r: tensor<i8>)  {\n"
     "        %k = stablehlo.constant dense<-3> : tensor<i8>\n"
     "        %m = stablehlo.maximum %r, %k : tensor<i8>\n"
     "        %s = stablehlo.add %p, %m : tensor<i8>\n"
     "        stablehlo.return %s : tensor<i8>\n"
     "      }",
     "%y : tensor<5xi8>", 0},
    {"arg_max", "x: tensor<5x21xf32>",
     "      %k = stablehlo.iota dim = 1 : tensor<5x21xi32>\n"
     "      %i = stablehlo.constant dense<0xFF800000> : tensor<f32>\n"
     "      %z = stablehlo.constant dense<0> : tensor<i32>\n"
     "      %y:2 = stablehlo.reduce(%x init: %i), (%k init: %z) across "
     "dimensions = [1] : (tensor<5x21xf32>, tensor<5x21xi32>, tensor<f32>, "
     "tensor<i32>) -> (tensor<5xf32>, tensor<5xi32>)\n"
     "       reducer(%p: tensor<f32>, %r: tensor<f32>) (%q: tensor<i32>, "
     "%s: tensor<i32>) {\n"
     "        %g = stablehlo.compare GT, %p, %r, FLOAT : (tensor<f32>, "
     "tensor<f32>) -> tensor<i1>\n"
     "        %u = stablehlo.select %g, %p, %r : tensor<i1>, tensor<f32>\n"
     "        %v = stablehlo.select %g, %q, %s : tensor<i1>, tensor<i32>\n"
     "        stablehlo.return %u, %v : tensor<f32>, tensor<i32>\n"
     "      }",
     "%y#0, %y#1 : tensor<5xf32>, tensor<5xi32>", 0},
    // Windows over planes: at the border, at tails, of strides.
    {"max_planes", "x: tensor<2x3x13x39xf32>",
     WINDOWS_OF("maximum", "f32", "0xFF800000") "{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
     "array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, "
     "1]]> : tensor<4x2xi64>} : (tensor<2x3x13x39xf32>, tensor<f32>) -> "
     "tensor<2x3x7x20xf32>",
     "%y : tensor<2x3x7x20xf32>", 0},
    {"max_planes_low", "x: tensor<1x3x9x35xf32>",
     WINDOWS_OF("maximum", "f32", "0xFF800000") "{window_dimensions = array<i64: 1, 1, 2, 3>, window_strides = "
     "array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [0, 1], [0, "
     "2]]> : tensor<4x2xi64>} : (tensor<1x3x9x35xf32>, tensor<f32>) -> "
     "tensor<1x3x5x18xf32>",
     "%y : tensor<1x3x5x18xf32>", 0},
    {"sum_planes", "x: tensor<1x3x17x37xf32>",
     WINDOWS_OF("add", "f32", "0.5") "{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
     "array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, "
     "1]]> : tensor<4x2xi64>} : (tensor<1x3x17x37xf32>, tensor<f32>) -> "
     "tensor<1x3x17x37xf32>",
     "%y : tensor<1x3x17x37xf32>", 1e-6},
    {"sum_planes_f16", "x: tensor<1x2x10x41xf16>",
     WINDOWS_OF("add", "f16", "0.0") "{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
     "array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, "
     "1]]> : tensor<4x2xi64>} : (tensor<1x2x10x41xf16>, tensor<f16>) -> "
     "tensor<1x2x5x21xf16>",
     "%y : tensor<1x2x5x21xf16>", 1e-3},
    {"min_planes_bytes", "x: tensor<1x2x10x41xi8>",
     WINDOWS_OF("minimum", "i8", "127") "{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
     "array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [1, 1], [1, "
     "1]]> : tensor<4x2xi64>} : (tensor<1x2x10x41xi8>, tensor<i8>) -> "
     "tensor<1x2x5x21xi8>",
     "%y : tensor<1x2x5x21xi8>", 0},
    {"max_planes_four", "x: tensor<1x2x8x67xf32>",
     WINDOWS_OF("maximum", "f32", "0xFF800000") "{window_dimensions = array<i64: 1, 1, 4, 4>, window_strides = "
     "array<i64: 1, 1, 4, 4>, padding = dense<[[0, 0], [0, 0], [0, 0], [1, "
     "0]]> : tensor<4x2xi64>} : (tensor<1x2x8x67xf32>, tensor<f32>) -> "
     "tensor<1x2x2x17xf32>",
     "%y : tensor<1x2x2x17xf32>", 0},
    {"max_planes_dilated", "x: tensor<1x2x9x33xf32>",
     WINDOWS_OF("maximum", "f32", "0xFF800000") "{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
     "array<i64: 1, 1, 1, 1>, window_dilations = array<i64: 1, 1, 2, 2>, "
     "padding = dense<[[0, 0], [0, 0], [2, 2], [2, 2]]> : tensor<4x2xi64>} : "
     "(tensor<1x2x9x33xf32>, tensor<f32>) -> tensor<1x2x9x33xf32>",
     "%y : tensor<1x2x9x33xf32>", 0},
    {"max_planes_spread", "x: tensor<1x2x5x13xf32>",
     WINDOWS_OF("maximum", "f32", "0xFF800000") "{window_dimensions = array<i64: 1, 1, 3, 3>, window_strides = "
     "array<i64: 1, 1, 1, 1>, base_dilations = array<i64: 1, 1, 2, 2>, "
     "padding = dense<[[0, 0], [0, 0], [1, 1], [1, 1]]> : tensor<4x2xi64>} : "
     "(tensor<1x2x5x13xf32>, tensor<f32>) -> tensor<1x2x9x25xf32>",
     "%y : tensor<1x2x9x25xf32>", 0},
    // Lanes that lie near each other: three apart, backwards, of a few each.
    {"slice_apart", "a: tensor<5x100xf32>",
     "      %c = stablehlo.slice %a [0:5, 1:99:3] : (tensor<5x100xf32>) -> "
     "tensor<5x33xf32>\n"
     "      %d = stablehlo.slice %a [0:5, 0:99:3] : (tensor<5x100xf32>) -> "
     "tensor<5x33xf32>\n"
     "      %y = stablehlo.add %c, %d : tensor<5x33xf32>",
     "%y : tensor<5x33xf32>", 0},
    {"slice_apart_bytes", "a: tensor<5x100xi8>",
     "      %y = stablehlo.slice %a [0:5, 1:99:2] : (tensor<5x100xi8>) -> "
     "tensor<5x49xi8>",
     "%y : tensor<5x49xi8>", 0},
    {"reverse_apart", "a: tensor<5x100xf32>",
     "      %c = stablehlo.slice %a [0:5, 1:100:2] : (tensor<5x100xf32>) -> "
     "tensor<5x50xf32>\n"
     "      %y = stablehlo.reverse %c, dims = [1] : tensor<5x50xf32>",
     "%y : tensor<5x50xf32>", 0},
    {"sum_of_three", "x: tensor<5x37x3xf32>",
     "      %z = stablehlo.constant dense<0.0> : tensor<f32>\n"
     "      %y = stablehlo.reduce(%x init: %z) applies stablehlo.add across "
     "dimensions = [2] : (tensor<5x37x3xf32>, tensor<f32>) -> tensor<5x37xf32>",
     "%y : tensor<5x37xf32>", 1e-6},
    // Rows of results of padding alone.
    {"conv_rows_outside", "x: tensor<1x3x3x1xf32>, w: tensor<1x1x1x6xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = "
     "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], "
     "pad = [[0, 1], [1, 1]]} {batch_group_count = 1 : i64, "
     "feature_group_count = 1 : i64} : (tensor<1x3x3x1xf32>, "
     "tensor<1x1x1x6xf32>) -> tensor<1x4x5x6xf32>",
     "%y : tensor<1x4x5x6xf32>", 1e-6},
    // Groups of few features.
    {"conv_groups_of_two", "x: tensor<1x6x7x20xf32>, w: tensor<3x3x2x20xf32>",

     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 10 : i64} : "
     "(tensor<1x6x7x20xf32>, tensor<3x3x2x20xf32>) -> tensor<1x3x7x20xf32>",
     "%y : tensor<1x3x7x20xf32>", 1e-5},
    {"conv_groups_of_four", "x: tensor<1x6x7x24xf32>, w: tensor<3x3x4x24xf32>",

     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 6 : i64} : "
     "(tensor<1x6x7x24xf32>, tensor<3x3x4x24xf32>) -> tensor<1x3x7x24xf32>",
     "%y : tensor<1x3x7x24xf32>", 1e-5},
    {"conv_groups_one_to_two",
     "x: tensor<1x6x7x11xf32>, w: tensor<3x3x1x22xf32>",

     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 11 : i64} : "
     "(tensor<1x6x7x11xf32>, tensor<3x3x1x22xf32>) -> tensor<1x3x7x22xf32>",
     "%y : tensor<1x3x7x22xf32>", 1e-5},
    {"conv_groups_four_to_two",
     "x: tensor<1x6x7x40xf32>, w: tensor<3x3x4x20xf32>",

     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 10 : i64} : "
     "(tensor<1x6x7x40xf32>, tensor<3x3x4x20xf32>) -> tensor<1x3x7x20xf32>",
     "%y : tensor<1x3x7x20xf32>", 1e-5},
    // Groups that end within vectors: three vectors of 16 groups, lanes of two and of
    // three groups, one group in two parts, one with a tail; what one reads is infinite.
    {"conv_groups_of_three", "x: tensor<1x6x7x96xf32>, w: tensor<3x3x3x96xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 32 : i64} : "
     "(tensor<1x6x7x96xf32>, tensor<3x3x3x96xf32>) -> tensor<1x3x7x96xf32>",
     "%y : tensor<1x3x7x96xf32>", 1e-5},
    {"conv_groups_of_ten", "x: tensor<1x6x7x160xf32>, w: tensor<3x3x10x160xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 16 : i64} : "
     "(tensor<1x6x7x160xf32>, tensor<3x3x10x160xf32>) -> tensor<1x3x7x160xf32>",
     "%y : tensor<1x3x7x160xf32>", 1e-5},
    {"conv_groups_of_twelve", "x: tensor<1x6x7x32xf32>, w: tensor<3x3x4x96xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : "
     "(tensor<1x6x7x32xf32>, tensor<3x3x4x96xf32>) -> tensor<1x6x7x96xf32>",
     "%y : tensor<1x6x7x96xf32>", 1e-5},
    {"conv_groups_of_twenty", "x: tensor<1x6x7x24xf32>, w: tensor<3x3x3x160xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64} : "
     "(tensor<1x6x7x24xf32>, tensor<3x3x3x160xf32>) -> tensor<1x3x7x160xf32>",
     "%y : tensor<1x3x7x160xf32>", 1e-5},
    {"conv_groups_of_22", "x: tensor<1x6x7x20xf32>, w: tensor<3x3x5x88xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : "
     "(tensor<1x6x7x20xf32>, tensor<3x3x5x88xf32>) -> tensor<1x3x7x88xf32>",
     "%y : tensor<1x3x7x88xf32>", 1e-5},
    {"conv_groups_of_40", "x: tensor<1x6x7x6xf32>, w: tensor<3x3x2x120xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : "
     "(tensor<1x6x7x6xf32>, tensor<3x3x2x120xf32>) -> tensor<1x6x7x120xf32>",
     "%y : tensor<1x6x7x120xf32>", 1e-5},
    {"conv_groups_one_to_three", "x: tensor<1x6x7x17xf32>, w: tensor<3x3x1x51xf32>",
     "      %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 17 : i64} : "
     "(tensor<1x6x7x17xf32>, tensor<3x3x1x51xf32>) -> tensor<1x3x7x51xf32>",
     "%y : tensor<1x3x7x51xf32>", 1e-5},
    {"conv_groups_infinite", "x: tensor<1x6x7x21xf32>, w: tensor<3x3x3x21xf32>",
     "      %s = stablehlo.constant dense<[0x7F800000, 0x7F800000, "
     "0x7F800000, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, "
     "1.0, 1.0, 1.0, 1.0, 1.0, 1.0]> : tensor<21xf32>\n"
     "      %b = stablehlo.broadcast_in_dim %s, dims = [3] : (tensor<21xf32>) "
     "-> tensor<1x6x7x21xf32>\n"
     "      %i = stablehlo.multiply %x, %b : tensor<1x6x7x21xf32>\n"
     "      %y = stablehlo.convolution(%i, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 7 : i64} : "
     "(tensor<1x6x7x21xf32>, tensor<3x3x3x21xf32>) -> tensor<1x6x7x21xf32>",
     "%y : tensor<1x6x7x21xf32>", 1e-5},
    {"conv_groups_infinite_of_20", "x: tensor<1x6x7x8xf32>, w: tensor<3x3x2x80xf32>",
     "      %s = stablehlo.constant dense<[0x7F800000, 0x7F800000, 1.0, 1.0, "
     "1.0, 1.0, 1.0, 1.0]> : tensor<8xf32>\n"
     "      %b = stablehlo.broadcast_in_dim %s, dims = [3] : (tensor<8xf32>) "
     "-> tensor<1x6x7x8xf32>\n"
     "      %i = stablehlo.multiply %x, %b : tensor<1x6x7x8xf32>\n"
     "      %y = stablehlo.convolution(%i, %w) dim_numbers = [b, 0, 1, f]x[0, "
     "1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, "
     "1]]} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : "
     "(tensor<1x6x7x8xf32>, tensor<3x3x2x80xf32>) -> tensor<1x6x7x80xf32>",
     "%y : tensor<1x6x7x80xf32>", 1e-5},
};
// clang-format on

#endif  // PESTLE_TESTS_UNIT_CODEGEN_FUSION_CASES_H_
