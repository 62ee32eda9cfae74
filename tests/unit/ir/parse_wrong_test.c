// SPDX-License-Identifier: Apache-2.0
// Texts that are wrong in one way each, with the place and the sentence that each is
// refused by; and some that are odd, but right.
#include "text_test.h"

typedef struct row_t {
  const char* text;
  pestle_status_code_t code;
  const char* sentence;  // from the file's name on
} row_t;

#define BAD PESTLE_STATUS_MALFORMED
#define NOT_YET PESTLE_STATUS_UNSUPPORTED

#define NAME_60 "a12345678901234567890123456789012345678901234567890123456789"
#define LONG_NAME NAME_60 "and_more"
#define F(arguments, body) "func.func @f(" arguments ") {\n" body "\nreturn }"
// Of two devices.
#define SPREAD(arguments, body)                                         \
  "module attributes {mhlo.num_partitions = 2 : i32} {\nsdy.mesh @m = " \
  "<[\"d\"=2]>\n" F(arguments, body) "\n}"
#define X "%x: tensor<4xf32>"
#define V "%x: tensor<4xf32>, %i: tensor<i32>"

static const row_t rows[] = {
    // Functions and modules.
    {"func.func @\"\"() { return }", BAD, "1:11: a function needs a name"},
    {"func.func f() { return }", BAD,
     "1:11: expected a name that starts with '@', found 'f'"},
    {"func.func @" LONG_NAME "() { return }\nfunc.func @" LONG_NAME
     "() { return }",
     BAD, "2:11: function '" NAME_60 "' is defined twice"},
    {"func.func @f() attributes 3 { return }", BAD,
     "1:27: expected '{', found '3'"},
    {"func.func @f(%x: tensor<f32>", BAD,
     "1:29: expected ')', found the end of the text"},
    {"func.func @f(tensor<f32>) { return }", BAD,
     "1:14: expected an argument such as %arg0, found 'tensor'"},
    {"func.func @f() -> (tensor<f32> { return }", BAD,
     "1:42: expected ')', found the end of the text"},
    {"\"func.func\"() <{sym_name = \"f\"}> ({ return }) : () -> ()", BAD,
     "1:1: expected attributes 'sym_name' and 'function_type'"},
    {"\"func.func\"() <{function_type = () -> (), sym_name = 3}> ({ return }) "
     ": "
     "() -> ()",
     BAD, "1:1: expected attributes 'sym_name' and 'function_type'"},
    {"\"func.func\"() <{function_type = 3, sym_name = \"f\"}> ({ return }) : "
     "() "
     "-> ()",
     BAD, "1:1: expected attributes 'sym_name' and 'function_type'"},
    {"\"func.func\"() <3> ({ return }) : () -> ()", BAD,
     "1:16: expected '{', found '3'"},
    {"\"func.func\"() <{function_type = () -> (), sym_name = \"f\"}> (3) : () "
     "-> "
     "()",
     BAD, "1:61: expected '{', found '3'"},
    {"sdy.mesh @m <[]>", BAD, "1:13: expected '=', found '<'"},
    {"sdy.mesh @m = 3", BAD, "1:15: expected '<', found '3'"},
    {"\"sdy.mesh\"() 3 : () -> ()", BAD, "1:14: expected '{', found '3'"},
    {"module @m {\nsdy.mesh @m = <[\"x\"=2]>\nsdy.mesh @m = <[\"y\"=2]>\n}",
     BAD, "3:10: the mesh 'm' is declared twice"},
    {"module @m {\nsdy.mesh @\"m\\22\" = <[\"x\"=2]>\n}", BAD,
     "2:10: the mesh 'm\"' has quotes in its name"},
    {"module @m {\n  other.op\n}", NOT_YET,
     "2:3: 'other.op' is not supported at module level"},
    {"func.func @\"f() { return }", BAD,
     "1:11: a string does not end on its line"},
    // Values.
    {F(X, "%" LONG_NAME " = stablehlo.add %" LONG_NAME ", %x : tensor<4xf32>"),
     BAD, "2:" /* its use */},
    {F(X, "%" LONG_NAME " = stablehlo.negate %x : tensor<4xf32>\n%" LONG_NAME
          " = stablehlo.negate %x : tensor<4xf32>"),
     BAD, "3:1: %" NAME_60 " is defined twice"},
    {F(X, "%y:2, %x = stablehlo.negate %x : tensor<4xf32>"), BAD, "2:"},
    {F(X, "%y:0 = stablehlo.negate %x : tensor<4xf32>"), BAD,
     "has 1 results, not as many as are named"},
    {F(X, "%y = stablehlo.negate %x#1 : tensor<4xf32>"), BAD, "2:23: %x"},
    {F(X, "%y = stablehlo.negate %x#99999999999999999999 : tensor<4xf32>"), BAD,
     "2:23: expected"},
    {F(X, "%y = 3"), BAD, "2:6: expected an operation, found '3'"},
    {F(X, "%y, = stablehlo.negate %x : tensor<4xf32>"), BAD,
     "2:5: expected a value such as %0, found '='"},
    {F(X, "%y = stablehlo." LONG_NAME LONG_NAME " %x : tensor<4xf32>"), NOT_YET,
     "2:6: operation 'stablehlo." NAME_60},
    {F(X, "%y = stablehlo.negate %x : tensor<4xf32>, tensor<4xf32>"), BAD,
     "2:6: 'stablehlo.negate' has one type or a function's after ':'"},
    // Numbers and strings.
    {F("", "%c = stablehlo.constant dense<0xFFFFFFFFF> : tensor<f32>"), BAD,
     "2:31: 0xFFFFFFFFF is no value of type f32"},
    {F("", "%c = stablehlo.constant dense<0x1FFFF> : tensor<f16>"), BAD,
     "2:31: 0x1FFFF is no value of type f16"},
    {F("", "%c = stablehlo.constant dense<0x1FFFFFFFFFFFFFFFF> : tensor<f64>"),
     BAD, "2:31: 0x1FFFFFFFFFFFFFFFF is no value of type f64"},
    {F("",
       "%c = stablehlo.constant "
       "dense<0x11111111111111111111111111111111111111111111> : "
       "tensor<f64>"),
     BAD,
     "2:31: 0x11111111111111111111111111111111111111 is no value of type f64"},
    {F("", "%c = stablehlo.constant dense<-129> : tensor<i8>"), BAD,
     "2:31: -129 is no value of type i8"},
    {F("",
       "%c = stablehlo.constant dense<-9223372036854775808> : "
       "tensor<ui64>"),
     BAD, "2:31: -9223372036854775808 is no value of type ui64"},
    {F("", "%c = stablehlo.constant dense<maybe> : tensor<i1>"), BAD,
     "2:31: expected true or false, found 'maybe'"},
    {F("", "%c = stablehlo.constant dense<[1, x]> : tensor<2xf32>"), BAD,
     "2:35: expected a number, found 'x'"},
    {F("", "%c = stablehlo.constant dense<[1 2]> : tensor<2xf32>"), BAD,
     "2:34: expected ',', found '2'"},
    {F("", "%c = stablehlo.constant dense<> : tensor<2xf32>"), BAD,
     "2:31: expected the elements, found '>'"},
    {F("", "%c = stablehlo.constant dense<1.0> : tensor<complex<f32>>"), BAD,
     "2:31: expected '(', found '1.0'"},
    {F("", "%c = stablehlo.constant dense<\"zz\"> : tensor<i8>"), BAD,
     "2:31: expected \"0x\" and 2 hexadecimal digits, found 2 characters"},
    {F("", "%c = stablehlo.constant dense<\"0x011\"> : tensor<i8>"), BAD,
     "2:31: expected \"0x\" and 2 hexadecimal digits, found 5 characters"},
    {F("", "%c = stablehlo.constant dense 3 : tensor<i8>"), BAD,
     "2:31: expected '<', found '3'"},
    {F("", "%c = stablehlo.constant 3 : i8"), BAD, "2:25: expected dense<..>"},
    {F("", "%c = stablehlo.constant sparse<3> : tensor<i8>"), NOT_YET,
     "2:25: 'sparse' holds no data in the text"},
    {F("", "%c = stablehlo.constant dense_elided<..> : tensor<i8>"), NOT_YET,
     "2:25: 'dense_elided' holds no data in the text"},
    {F("", "%c = stablehlo.constant {a = 1.0e999999} dense<3> : tensor<i8>"),
     BAD, "2:30: a number does not fit into f64"},
    {F("",
       "%c = stablehlo.constant {a = 99999999999999999999999999999999999999"
       "999999} dense<3> : tensor<i8>"),
     BAD,
     "2:30: 9999999999999999999999999999999999999999 does not fit into 64 "
     "bits"},
    {F("", "%c = stablehlo.constant {a = \"\\"), BAD,
     "2:30: a string does not end on its line"},
    {F("", "%c = stablehlo.constant {a = \"b} dense<3> : tensor<i8>"), BAD,
     "2:30: a string does not end on its line"},
    {F("", "%c = stablehlo.constant {a = 1 : 3} dense<3> : tensor<i8>"), BAD,
     "2:34: expected a type, found '3'"},
    {F("", "%c = stablehlo.constant {a = (2)x} dense<3> : tensor<i8>"), BAD,
     "2:33: expected an integer, found 'x'"},
    {F("", "%c = stablehlo.constant {a = array<3>} dense<3> : tensor<i8>"), BAD,
     "2:36: expected an element type, found '3'"},
    {F("", "%c = stablehlo.constant {3 = 1} dense<3> : tensor<i8>"), BAD,
     "2:26: expected an attribute's name, found '3'"},
    {F("", "%c = stablehlo.constant {a = %x} dense<3> : tensor<i8>"), BAD,
     "2:30: expected an attribute value, found '%x'"},
    {F("", "%c = stablehlo.constant {a = \x7f} dense<3> : tensor<i8>"), BAD,
     "2:30: expected an attribute value, found the byte 0x7f"},
    // Types.
    {F("%x: tensor<4xa_type_of_more_than_forty_characters_in_its_name>", ""),
     NOT_YET,
     "1:27: element type 'a_type_of_more_than_forty_characters_in_' is not"},
    {F("%x: tensor<4xcomplex<f16>>", ""), NOT_YET,
     "1:27: element type 'complex<f16>' is not supported"},
    {F("%x: tensor<4xcomplex<f16", ""), NOT_YET, "1:27: element type"},
    {F("%x: memref<4xf32>", ""), NOT_YET, "1:18: type 'memref' is not"},
    {F("%x: !my.type", ""), NOT_YET, "1:18: type '!my.type' is not supported"},
    {F("%x: tensor 4", ""), BAD, "1:25: expected '<', found '4'"},
    {F("%x: tensor<4yf32>", ""), BAD,
     "1:26: expected 'x' and an element type after an extent"},
    {F("%x: tensor<4xf32, #a<1>", ""), BAD, "1:37: expected '>', found ')'"},
    {F("%x: tensor<4xf32, #a<1", ""), BAD, "1:38: expected '>', found '{'"},
    {F("%x: tensor<4x!quant.any<i8>>", ""), NOT_YET,
     "1:28: of quantised types only !quant.uniform<..> is supported"},
    {F("%x: tensor<4x!quant.uniform<i8:f32, 0.1", ""), NOT_YET,
     "1:28: of quantised types only !quant.uniform<..> is supported"},
    {F("%x: tensor<4x!quant.uniform<i8:f32>>", ""), BAD,
     "1:27: '!quant.uniform<i8:f32>' is no quantised type such as"},
    {F("%x: tuple<tensor<4xf32>", ""), BAD, "1:37: expected '>', found ')'"},
    {"!t = !t2\n!t2 = !t\n" F("%x: !t", ""), NOT_YET,
     "1:6: type '!t2' is not supported"},
    // Locations.
    {F(X, "%y = stablehlo.negate %x : tensor<4xf32> loc(\"a\":-1:2)"), BAD,
     "2:50: "},
    {F(X, "%y = stablehlo.negate %x : tensor<4xf32> loc(\"a\":9999999999:2)"),
     BAD, "2:50: "},
    {F(X, "%y = stablehlo.negate %x : tensor<4xf32> loc(\"a\":1 2)"), BAD,
     "2:52: expected ')', found '2'"},
    {F(X, "%y = stablehlo.negate %x : tensor<4xf32> loc(fused[3])"), BAD,
     "2:52: expected a location, found '3'"},
    {F(X, "%y = stablehlo.negate %x : tensor<4xf32> loc(3)"), BAD,
     "2:46: expected "},
    // Forms of one op.
    {F(X,
       "%y = stablehlo.slice %x [0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, "
       "0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1, 0:1] : (tensor<4xf32>) -> "
       "tensor<4xf32>"),
     BAD, "expected ']', found '0'"},
    {F(X, "%y = stablehlo.reduce_precision %x, format = e5 : tensor<4xf32>"),
     BAD, "2:46: expected a format such as e5m10, found 'e5'"},
    {F(X, "%y = stablehlo.reduce_precision %x, format = e5x1 : tensor<4xf32>"),
     BAD, "2:46: expected a format such as e5m10, found 'e5x1'"},
    {F(X,
       "%y = stablehlo.reduce_precision %x, format = e5m1.5 : "
       "tensor<4xf32>"),
     BAD, "2:46: expected a format such as e5m10, found 'e5m1.5'"},
    {F(X,
       "%y = stablehlo.reduce_precision %x, format = e99999m1 : "
       "tensor<4xf32>"),
     BAD, "2:46: expected a format such as e5m10, found 'e99999m1'"},
    {F(X, "%y = stablehlo.reduce_precision %x, format = f5m1 : tensor<4xf32>"),
     BAD, "2:46: expected a format such as e5m10, found 'f5m1'"},
    {F(X,
       "%y = stablehlo.reduce(%x init: %x), (%x init: %x) applies "
       "stablehlo.add across dimensions = [0] : (tensor<4xf32>, "
       "tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<f32>"),
     BAD, "2:59: 'applies' needs a reduction of one input"},
    {F(X, "%y = stablehlo.reduce(%x init: %x) applies 3"), BAD,
     "2:44: expected an operation, found '3'"},
    {F(X,
       "%y = stablehlo.reduce(%x init: %x) applies chlo.erf_inv across "
       "dimensions = [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>"),
     BAD, "2:44: 'chlo.erf_inv': 2 operands are given, the op takes 1"},
    {F(V,
       "%y = stablehlo.while(%a = %i) : tuple<tensor<i32>>\n cond { "
       "stablehlo.return %i : tensor<i32> } do { stablehlo.return %i : "
       "tensor<i32> }"),
     BAD, "2:6: expected the type of each of the 1 values"},
    {F(V, "%y = stablehlo.while(%a = %i) : tensor<i32> attributes 3"), BAD,
     "2:56: expected '{', found '3'"},
    {F(V, "%y = stablehlo.while(3)"), BAD,
     "2:22: expected an argument such as %iterArg, found '3'"},
    {F(X, "%y = chlo.ragged_dot %x, %x : tensor<4xf32>"), BAD,
     "2:22: expected its generic form, in quotes, found '%x'"},
    {F(X, "%y:2 = \"chlo.top_k\"(%x) 3"), BAD, "2:25: expected '{', found '3'"},
    {F(X,
       "%y:2 = \"chlo.top_k\"(%x) <{k = \"2\"}> : (tensor<4xf32>) -> "
       "(tensor<2xf32>, tensor<2xi32>)"),
     BAD, "2:37: expected attribute 'k' before, found ':'"},
    {F(X,
       "%y:2 = chlo.top_k(%x, k = 2) : tensor<4x!quant.uniform<i8:f32, "
       "0.1>> -> (tensor<2xf32>, tensor<2xi32>)"),
     BAD, "expected a type that is not quantised before"},
    {F(X, "%y, %z = stablehlo.tuple %x : tuple<tensor<4xf32>>"), BAD,
     "2:26: expected one result, found '%x'"},
    {F(X, "%y:2 = stablehlo.tuple %x : tuple<tensor<4xf32>>"), BAD,
     "2:24: expected one result, found '%x'"},
    {F(X, "%y = stablehlo.tuple %x : tensor<4xf32>"), BAD,
     "2:6: 'stablehlo.tuple' has other operands or another result than its"},
    {F(X, "%y = stablehlo.tuple %x : tuple<tensor<5xf32>>"), BAD,
     "2:6: 'stablehlo.tuple' has other operands or another result than its"},
    {F(X, "%y = stablehlo.tuple %x, %x : tuple<tensor<4xf32>>"), BAD,
     "2:6: 'stablehlo.tuple' has other operands or another result than its"},
    {F(X,
       "%y = stablehlo.get_tuple_element %x[0] : (tensor<4xf32>) -> "
       "tensor<4xf32>"),
     BAD, "2:6: 'stablehlo.get_tuple_element' has other operands"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y = stablehlo.get_tuple_element %t[1] : (tuple<tensor<4xf32>>) -> "
       "tensor<4xf32>"),
     BAD, "2:6: the tuple has no element 1"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y = stablehlo.get_tuple_element %t[-1] : (tuple<tensor<4xf32>>) -> "
       "tensor<4xf32>"),
     BAD, "2:6: 'stablehlo.get_tuple_element' has other operands"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4xf32>>) -> "
       "tuple<>"),
     BAD, "2:6: 'stablehlo.get_tuple_element' has other operands"},
    {F(X, "%y = stablehlo.create_token : tensor<4xf32>"), BAD,
     "2:6: 'stablehlo.create_token' has other operands"},
    {F(X, "%y = stablehlo.after_all : tuple<tensor<4xf32>>"), BAD,
     "2:6: 'stablehlo.after_all' has other operands"},
    {F(X,
       "%y = \"stablehlo.convolution\"(%x, %x) <{dimension_numbers = "
       "#stablehlo.conv<[b, f, 16]x[i, o]->[b, f]>}> : (tensor<4xf32>, "
       "tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "spatial dimension 16 is out of range or named twice"},
    {F(X,
       "%y = \"stablehlo.convolution\"(%x, %x) <{dimension_numbers = "
       "#stablehlo.conv<[b, 0, 2]x[i, o]->[b, f]>}> : (tensor<4xf32>, "
       "tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "expected 'b', 'f' and each spatial dimension once"},
    {F(X,
       "%r:2 = sdy.manual_computation(%x, %x) in_shardings=[] "
       "out_shardings=[] manual_axes={} (%a: tensor<4xf32>) { sdy.return %a "
       ": tensor<4xf32> } : (tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "2:8: 'sdy.manual_computation'"},
    {F(X,
       "%r = sdy.named_computation<\"f\">(%x) (%a: tensor<4xf32>) { "
       "sdy.return %a : tensor<4xf32> } : (tensor<4xf32>) -> "
       "tensor<5xf32>"),
     BAD, "'sdy.named_computation' returns other values than its types say"},
    // What an attribute is refused for is at the attribute.
    {F(X,
       "%y = \"stablehlo.transpose\"(%x) <{\n    permutation = \"x\"}> : "
       "(tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "3:19: "},
    {"module attributes {mhlo.num_partitions = 2 : i32} {\n" F(
         "%x: tensor<4xf32>",
         "%y = \"stablehlo.all_gather\"(%x) <{all_gather_dim = 0 : i64, "
         "channel_handle = \"one\", replica_groups = dense<[[0, 1]]> : "
         "tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<8xf32>") "\n}",
     BAD,
     "3:6: 'stablehlo.all_gather': 'channel_handle' must be a handle of a"},
    {"func.func @f(" X ") -> tensor<4xf32> { return }", BAD,
     "returns 0 values from a function of 1 results"},
    {"func.func @f(" X
     ") {\n %y:2 = stablehlo.optimization_barrier %x : tuple<tensor<4xf32>>\n "
     "return }",
     BAD, "2:9: "},
    {"func.func @f() attributes {a = \"\\", BAD,
     "1:32: a string does not end on its line"},
    {"func.func @f() -> \"a\x7f\" {", BAD,
     "1:19: expected a tensor type, found '\"a?\"'"},
    {"func.func @f(%x: tensor<4x!quant.uniform<i8:f32, 0.1", NOT_YET,
     "1:28: of quantised types only !quant.uniform<..> is supported"},
    {F("", "%c = stablehlo.constant dense<\"0x010203\"> : tensor<9xi1>"), BAD,
     "2:31: expected \"0x\" and 18 hexadecimal digits, found 8 characters"},
    {F("", "%c = stablehlo.constant {a = 1.x} dense<3> : tensor<i8>"), BAD,
     "2:31: expected ',', found '.'"},
    {F("", "%c = stablehlo.constant dense<3> : tuple<tensor<i8>>"), NOT_YET,
     "2:36: type 'tuple' is not supported"},
    {F(X,
       "%y = stablehlo.reduce_precision %x, format = e5m1m2 : "
       "tensor<4xf32>"),
     BAD, "2:46: expected a format such as e5m10, found 'e5m1m2'"},
    {F(X, "%y = stablehlo.select %x, %x, %x : tuple<>"), BAD,
     "2:6: 'stablehlo.select' has one type or a function's after ':'"},
    {F(X,
       "%y = stablehlo.reduce(%x init: %x) applies chlo.broadcast_add across "
       "dimensions = [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>"),
     NOT_YET, "2:44: operation 'chlo.broadcast_add' is not supported"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y:0 = stablehlo.optimization_barrier %t : tuple<tensor<4xf32>>"),
     BAD,
     "2:8: 'stablehlo.optimization_barrier' has 1 results, not as many as are "
     "named"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y = stablehlo.while(%a = %t) : tuple<tuple<tensor<4xf32>>>\n cond { "
       "} do { }"),
     BAD, "2:6: expected the type of each of the 1 values"},
    {F(V,
       "%y = stablehlo.reduce(%x init: %i) across dimensions = [0] : "
       "(tensor<4xf32>, tensor<i32>) -> tensor<f32> reducer(%a: "
       "tuple<tensor<f32>>, %b: tensor<f32>) { stablehlo.return %b : "
       "tensor<f32> }"),
     BAD, "expected a pair of arguments for each input, found '{'"},
    {F(X,
       "%r = sdy.named_computation<\"f\">(%x) (%a: tuple<tensor<4xf32>>) { "
       "sdy.return %a : tuple<tensor<4xf32>> } : (tensor<4xf32>) -> "
       "tensor<4xf32>"),
     BAD,
     "2:6: 'sdy.named_computation' has 1 operands, and its region takes 1 "
     "values"},
    {F(X, "%y:2 = \"chlo.top_k\"(%x) {} : (tensor<4xf32>) -> tensor<2xf32>"),
     BAD, "2:28: expected attribute 'k' before, found ':'"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y = \"stablehlo.get_tuple_element\"(%t) <{index = \"0\"}> : "
       "(tuple<tensor<4xf32>>) -> tensor<4xf32>"),
     BAD, "2:6: 'stablehlo.get_tuple_element' has other operands"},
    {F("%t: tuple<tensor<4xf32>>",
       "%y = stablehlo.get_tuple_element %t[2] : (tuple<tensor<4xf32>>) -> "
       "tensor<4xf32>"),
     BAD, "2:6: the tuple has no element 2"},
    {F("%t: tuple<tuple<!stablehlo.token, tensor<4xf32>>>",
       "%y = stablehlo.get_tuple_element %t[0] : "
       "(tuple<tuple<!stablehlo.token, tensor<4xf32>>>) -> "
       "tuple<tensor<4xf32>, !stablehlo.token>"),
     BAD, "2:6: 'stablehlo.get_tuple_element' has other operands"},
    {F(X, "%y = stablehlo.after_all %x : !stablehlo.token"), BAD,
     "2:6: 'stablehlo.after_all' has other operands"},
    // An op that gives the numbers as they are, but not two of them.
    {F("%q: tensor<4x!quant.uniform<i8:f32, 0.1>>, %s: "
       "tensor<!quant.uniform<i8:f32, 0.1>>",
       "%y = stablehlo.reduce(%q init: %s) applies stablehlo.concatenate "
       "across dimensions = [0] : (tensor<4x!quant.uniform<i8:f32, 0.1>>, "
       "tensor<!quant.uniform<i8:f32, 0.1>>) -> tensor<!quant.uniform<i8:f32, "
       "0.1>>"),
     BAD, "2:44: 'stablehlo.concatenate'"},
    // What would be kept of a mesh or a sharding is no attribute.
    {SPREAD(X,
            "%r = sdy.manual_computation(%x) in_shardings=[<@m, [{}]>] "
            "out_shardings=[<@m<4xf32>] manual_axes={\"d\"} (%a: "
            "tensor<4xf32>) { sdy.return %a : tensor<4xf32> } : "
            "(tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "4:6: <attribute>:1:58: expected ',', found the end of the text"},
    {SPREAD(X,
            "%r = sdy.manual_computation(%x) in_shardings=[<@m, [{\"a>b\"}]>] "
            "out_shardings=[<@m, [{}]>] manual_axes={\"d\"} (%a: "
            "tensor<4xf32>) { sdy.return %a : tensor<4xf32> } : "
            "(tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "4:110: <attribute>:1:54: a string does not end on its line"},
    {SPREAD(X,
            "%r = \"sdy.sharding_constraint\"(%x) <{sharding = \"x<y\"}> : "
            "(tensor<4xf32>) -> tensor<4xf32>"),
     BAD, "4:6: <attribute>:1:22: a string does not end"},
    {"module attributes {mhlo.num_partitions = 2 : i32} {\n\"sdy.mesh\"() "
     "<{sym_name = \"m\", mesh = \"a<b\"}> : () -> ()\n}",
     BAD, "2:1: <attribute>:1:12: a string does not end on its line"},
};

// What a sentence says of a place is of the text: "t.mlir:2:31: ..".
static void refuses(void** state) {
  (void)state;
  bool all = true;
  for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); ++i) {
    pestle_context_t* context = text_context();
    pestle_module_t* module = NULL;
    pestle_status_t status = pestle_module_parse(
        context, rows[i].text, strlen(rows[i].text), "t.mlir", &module);
    const char* message = pestle_status_message(status);
    bool right = pestle_status_code(status) == rows[i].code && !module &&
                 !strncmp(message, "t.mlir:", 7) &&
                 strstr(message, rows[i].sentence);
    // A sentence that begins with a place is the whole beginning.
    if (right && rows[i].sentence[0] >= '1' && rows[i].sentence[0] <= '9')
      right = strstr(message, rows[i].sentence) == message + 7;
    if (!right)
      print_error("row %zu: %s '%s', expected '%s'\n", i,
                  pestle_status_code_name(pestle_status_code(status)), message,
                  rows[i].sentence);
    all &= right;
    pestle_status_release(status);
    pestle_module_release(module);
    pestle_context_release(context);
  }
  assert_true(all);
}

// More unknown ops than are listed: the first of each, and that there are more.
static void lists_fifty(void** state) {
  (void)state;
  static char text[8192];
  size_t size = (size_t)snprintf(text, sizeof(text), "func.func @f() {\n");
  for (int i = 0; i < 60; ++i) {
    size += (size_t)snprintf(text + size, sizeof(text) - size,
                             "some.op%d\n\"some.op%d\"() : () -> ()\n", i, i);
  }
  snprintf(text + size, sizeof(text) - size, "\"some.end\" ()\n}");
  pestle_context_t* context = text_context();
  pestle_module_t* module;
  pestle_status_t status =
      pestle_module_parse(context, text, strlen(text), "t.mlir", &module);
  char all[8192];
  pestle_status_format(status, all, sizeof(all));
  assert_int_equal(pestle_status_code(status), PESTLE_STATUS_UNSUPPORTED);
  assert_non_null(strstr(all, "'some.op49' (100:1), and more"));
  assert_null(strstr(all, "'some.op50'"));
  // Once each, and none that no parenthesis follows.
  assert_null(strstr(strstr(all, "'some.op7' (") + 1, "'some.op7' ("));
  assert_null(strstr(all, "some.end"));
  pestle_status_release(status);
  // Nor one that the text ends with, of which nothing behind it is read.
  static const char last[] = "other.op\n\"some.end\"";
  char* copy = malloc(sizeof(last) - 1);
  memcpy(copy, last, sizeof(last) - 1);
  status =
      pestle_module_parse(context, copy, sizeof(last) - 1, "t.mlir", &module);
  free(copy);
  pestle_status_format(status, all, sizeof(all));
  assert_non_null(strstr(all, "'other.op' (1:1)"));
  assert_null(strstr(all, "some.end"));
  pestle_status_release(status);
  pestle_context_release(context);
}

// A byte order mark, names in quotes, escapes, and what nobody has to say.
static void reads_the_odd(void** state) {
  (void)state;
  static const char* const texts[] = {
      "\xef\xbb\xbf"
      "func.func @f() { return }",
      "func.func @\"a b\\22\\n\\t\\q\\ag\"() { return }",
      "func.func @f(%0: tensor<f32>, %named: tensor<f32>) { return }",
      "func.func @f() { return } loc(fused[])",
      "func.func @f() -> () { return }",
      "module attributes {} { func.func @f() { return } }",
      "func.func @f(%x: tensor< 4x f32 >) { return }",
      "func.func @f(%x: tensor<4xf32, #stablehlo.bounds<4>>) { return }",
      "func.func @f(%x: tensor<4xf32, unit>) { return }",
      "func.func @f(%x: tensor<\t4xf32>) { return }",
      // Results that have no name.
      F(X, "stablehlo.negate %x : tensor<4xf32>"),
      F(X, "stablehlo.tuple %x : tuple<tensor<4xf32>>"),
      F(X,
        "chlo.broadcast_add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> "
        "tensor<4xf32>"),
      F(X, "%y = stablehlo.reduce_precision %x, format = e5m2 : tensor<4xf32>"),
      F("",
        "%c = stablehlo.constant dense<-9223372036854775808> : tensor<i64>"),
      F("", "%c = stablehlo.constant dense<0xFFFFFFFFFFFFFFFF> : tensor<ui64>"),
      F("", "%c = stablehlo.constant dense<\"0x02\"> : tensor<i1>"),
      F("", "%c = stablehlo.constant dense<\"0x7F01\"> : tensor<9xi1>"),
      F("",
        "%c = stablehlo.constant {a = 1., b = 1.e5, c = 1.5E+3} dense<3> : "
        "tensor<i8>"),
      // Extents that follow from constants alone.
      "func.func @f() -> tensor<?xf32> {\n%s = stablehlo.constant dense<3> : "
      "tensor<1xi32>\n%d = stablehlo.dynamic_iota %s, dim = 0 : "
      "(tensor<1xi32>) -> tensor<?xf32>\nreturn %d : tensor<?xf32>\n}",
      "func.func @f(%x: tensor<f32>) -> tensor<?xf32> {\n%s = "
      "stablehlo.constant dense<3> : tensor<1xi32>\n%d = "
      "stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [] : (tensor<f32>, "
      "tensor<1xi32>) -> tensor<?xf32>\nreturn %d : tensor<?xf32>\n}",
      F(X,
        "%y:2 = chlo.top_k(%x, k = 2) : tensor<4xf32> -> (tensor<2xf32>, "
        "tensor<2xi32>)\n%z = stablehlo.add %y#1, %y#1 : tensor<2xi32>"),
      F(X,
        "%y = chlo.broadcast_add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> "
        "tensor<4xf32>"),
      F(X,
        "%t = stablehlo.tuple %x, %x : tuple<tensor<4xf32>, tensor<4xf32>>\n"
        "%u = stablehlo.tuple %t, %x : tuple<tuple<tensor<4xf32>, "
        "tensor<4xf32>>, tensor<4xf32>>\n"
        "%y = stablehlo.get_tuple_element %u[1] : (tuple<tuple<tensor<4xf32>, "
        "tensor<4xf32>>, tensor<4xf32>>) -> tensor<4xf32>"),
      F(X,
        "%t = stablehlo.tuple %x, %x : tuple<tensor<4xf32>, tensor<4xf32>>\n"
        "%o = stablehlo.optimization_barrier %t : tuple<tensor<4xf32>, "
        "tensor<4xf32>>\n%y = stablehlo.get_tuple_element %o[1] : "
        "(tuple<tensor<4xf32>, tensor<4xf32>>) -> tensor<4xf32>"),
      "!t = tensor<4xf32>\nfunc.func @f(%a: tuple<tensor<4xf32>>, %b: !t) -> "
      "(tuple<tensor<4xf32>>, !t) {\n%o:2 = stablehlo.optimization_barrier %a, "
      "%b : tuple<tensor<4xf32>>, !t\nreturn %o#0, %o#1 : "
      "tuple<tensor<4xf32>>, !t }",
      F(X,
        "%y = stablehlo.while(%a = %x) : tensor<4xf32>\n cond { %c = "
        "stablehlo.constant dense<true> : tensor<i1>\n stablehlo.return %c "
        ": tensor<i1> } do { stablehlo.return %a : tensor<4xf32> }"),
  };
  for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); ++i) {
    pestle_context_t* context = text_context();
    pestle_module_t* module;
    pestle_status_t status =
        pestle_module_parse(context, texts[i], strlen(texts[i]), NULL, &module);
    if (status) print_error("text %zu\n", i);
    assert_ok(status);
    pestle_module_release(module);
    pestle_context_release(context);
  }
  pestle_context_t* context = text_context();
  pestle_module_t* module;
  assert_ok(
      pestle_module_parse(context, texts[1], strlen(texts[1]), NULL, &module));
  assert_non_null(pestle_module_find_function(module, "a b\"\n\tqag"));
  pestle_module_release(module);
  // Arguments keep their names, where they have one and the body is read later too.
  assert_ok(
      pestle_module_parse(context, texts[2], strlen(texts[2]), NULL, &module));
  pestle_function_t* f = pestle_module_entry(module);
  assert_null(pestle_function_argument(f, 0)->name);
  assert_string_equal(pestle_function_argument(f, 1)->name, "named");
  pestle_module_release(module);
  static const char open_text[] =
      "func.func @f(%first: tensor<?xf32>, %1: tensor<i32>, %third: "
      "tensor<1xi32>) -> tensor<?xf32> {\n %0 = stablehlo.dynamic_iota "
      "%third, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>\n return %0 : "
      "tensor<?xf32> }";
  assert_ok(pestle_module_parse(context, open_text, strlen(open_text), NULL,
                                &module));
  f = pestle_module_entry(module);
  assert_string_equal(pestle_function_argument(f, 0)->name, "first");
  assert_null(pestle_function_argument(f, 1)->name);
  assert_string_equal(pestle_function_argument(f, 2)->name, "third");
  pestle_module_release(module);
  // Of a tuple there is one name, and no argument has it.
  static const char tuple_text[] =
      "func.func @f(%t: tuple<tensor<?xf32>, tensor<1xi32>>) -> "
      "tensor<?xf32> {\n%n = stablehlo.get_tuple_element %t[1] : "
      "(tuple<tensor<?xf32>, tensor<1xi32>>) -> tensor<1xi32>\n%d = "
      "stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi32>) -> "
      "tensor<?xf32>\nreturn %d : tensor<?xf32>\n}";
  assert_ok(pestle_module_parse(context, tuple_text, strlen(tuple_text), NULL,
                                &module));
  f = pestle_module_entry(module);
  assert_int_equal(pestle_function_argument_count(f), 2);
  assert_null(pestle_function_argument(f, 0)->name);
  assert_null(pestle_function_argument(f, 1)->name);
  pestle_module_release(module);
  // A module's name that is no string is none.
  static const char unnamed[] =
      "\"builtin.module\"() <{sym_name = 3}> ({\nfunc.func @f() { return "
      "}\n}) : () -> ()";
  assert_ok(
      pestle_module_parse(context, unnamed, strlen(unnamed), NULL, &module));
  assert_string_equal(module->name, "");
  pestle_module_release(module);
  // Callers that give nothing.
  assert_code(pestle_module_parse(NULL, "", 0, NULL, &module),
              INVALID_ARGUMENT);
  assert_null(module);
  assert_code(pestle_module_parse(context, NULL, 1, NULL, &module),
              INVALID_ARGUMENT);
  assert_code(pestle_module_parse(context, "", 0, NULL, NULL),
              INVALID_ARGUMENT);
  assert_error(pestle_module_parse(context, NULL, 0, NULL, &module), MALFORMED,
               "<text>:1:1: expected a module");
  pestle_context_release(context);
}

// --- Read again ---

// A symbolic text whose one open extent is 3 must be refused then.
static void refuses_again(void** state) {
  (void)state;
#define OPEN(arguments, body)                                               \
  "func.func @main(%x: tensor<?xf32>" arguments                             \
  ") -> tensor<?xf32> {\n %n = stablehlo.get_dimension_size %x, dim = 0 : " \
  "(tensor<?xf32>) -> tensor<i32>\n %s = stablehlo.reshape %n : "           \
  "(tensor<i32>) -> tensor<1xi32>\n %d = stablehlo.dynamic_iota %s, dim = " \
  "0 : (tensor<1xi32>) -> tensor<?xf32>\n" body "}"
#define RETURN_D " return %d : tensor<?xf32>\n"
// What a sort calls is read behind what has it.
#define SORTED(of)                                                         \
  OPEN("",                                                                 \
       " %l = stablehlo.constant dense<0.0> : tensor<f32>\n %t = "         \
       "stablehlo.custom_call @ApproxTopK(%d, %l) {called_computations = " \
       "[@greater], mhlo.backend_config = {reduction_dim = 0 : i64}} : "   \
       "(tensor<?xf32>, tensor<f32>) -> tensor<2xf32>\n" RETURN_D)         \
  "\nfunc.func private @greater(%a: tensor<f32>, %b: tensor<f32>) -> "     \
  "tensor<i1> {\n %c = stablehlo.compare GT, %a, %" of                     \
  " : (tensor<f32>, tensor<f32>) -> tensor<i1>\n return %c : tensor<i1>\n}"
  static const row_t again[] = {
      {OPEN("", RETURN_D), PESTLE_STATUS_OK, ""},
      {SORTED("b"), PESTLE_STATUS_OK, ""},
      {SORTED("e"), BAD, "%e is not defined before its use"},
      {OPEN("",
            " %c = func.call @g(%d, %d) : (tensor<?xf32>, tensor<?xf32>) "
            "-> tensor<?xf32>\n" RETURN_D) "\nfunc.func @g(%a: "
                                           "tensor<?xf32>) -> tensor<?xf32> { "
                                           "return %a : tensor<?xf32> }",
       BAD, "'g' takes 1 arguments and is given 2"},
      {OPEN("",
            " %c = func.call @h(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D),
       BAD, "there is no function 'h'"},
      {OPEN("",
            " %c = func.call @g(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D) "\nfunc.func @g(%a: "
                                        "tensor<?xf32>) -> tensor<?xf32> { "
                                        "return }",
       BAD, "returns 0 values from a function of 1 results"},
      {OPEN("",
            " %c = func.call @g(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D) "\nfunc.func @g(%a: "
                                        "tensor<?xf32>) -> tensor<?xf32> { "
                                        "return %a : tensor<?xf32>\n return "
                                        "%a : tensor<?xf32> }",
       BAD, "expected '}' after the return"},
      {OPEN("",
            " %c:2 = func.call @g(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D) "\nfunc.func @g(%a: "
                                        "tensor<?xf32>) -> tensor<?xf32> { "
                                        "return %a : tensor<?xf32> }",
       BAD, "has 1 results, not as many as are named"},
      {OPEN("",
            " %c = func.call @g(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D) "\nfunc.func @g(%a: "
                                        "tensor<?xf32>) -> tensor<?xf32> { %r "
                                        "= func.call @g(%a) : "
                                        "(tensor<?xf32>) -> tensor<?xf32>\n "
                                        "return %r : tensor<?xf32> }",
       BAD, "nested more than 100 deep"},
      {OPEN("",
            " %c = func.call @g(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D) "\nfunc.func @g(%a: "
                                        "tuple<tensor<?xf32>>) -> "
                                        "tensor<?xf32> { %r = "
                                        "stablehlo.get_tuple_element %a[0] : "
                                        "(tuple<tensor<?xf32>>) -> "
                                        "tensor<?xf32>\n return %r : "
                                        "tensor<?xf32> }",
       NOT_YET, "a function of tuples or tokens is not read"},
      {OPEN("",
            " %c = func.call @main(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D),
       BAD, "there is no function 'main'"},
      {OPEN("",
            " %c = \"func.call\"(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D),
       BAD, "callee"},
      {OPEN("",
            " %c = \"stablehlo.sort\"(%d) ({\n^bb0(%a: tensor<f32>, %b: "
            "tensor<f32>):\n%l = stablehlo.compare LT, %a, %b : (tensor<f32>, "
            "tensor<f32>) -> tensor<i1>\nstablehlo.return %l : tensor<i1>}) "
            ": (tensor<?xf32>) -> tensor<?xf32>\n" RETURN_D),
       PESTLE_STATUS_OK, ""},
      {OPEN("",
            " %c = stablehlo.custom_call @f(%d) : (tensor<?xf32>) -> "
            "tensor<?xf32>\n" RETURN_D),
       NOT_YET, "the shape of result 0 does not follow from the shapes"},
  };
  for (size_t i = 0; i < sizeof(again) / sizeof(*again); ++i) {
    pestle_context_t* context = text_context();
    pestle_module_t *module, *made = NULL;
    const pestle_type_t type = {PESTLE_F32, 1, {3}};
    pestle_status_t status = pestle_module_parse(
        context, again[i].text, strlen(again[i].text), "t.mlir", &module);
    if (!status) status = pestle_module_specialize(module, &type, 1, &made);
    const char* message = pestle_status_message(status);
    bool right = pestle_status_code(status) == again[i].code &&
                 strstr(message, again[i].sentence) && !made == !!status;
    if (!right)
      print_error("text %zu: %s '%s', expected '%s'\n", i,
                  pestle_status_code_name(pestle_status_code(status)), message,
                  again[i].sentence);
    assert_true(right);
    pestle_status_release(status);
    pestle_module_release(made);
    pestle_module_release(module);
    pestle_context_release(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(refuses),
      cmocka_unit_test(lists_fifty),
      cmocka_unit_test(reads_the_odd),
      cmocka_unit_test(refuses_again),
  };
  return cmocka_run_group_tests_name("parse_wrong", tests, NULL, NULL);
}
