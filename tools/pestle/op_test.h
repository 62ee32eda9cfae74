// SPDX-License-Identifier: Apache-2.0
// What the files of pestle op-test share.
#ifndef PESTLE_TOOLS_OP_TEST_H_
#define PESTLE_TOOLS_OP_TEST_H_

#include "cli.h"

enum {
  OP_TEST_ATTRS = 32,
  OP_TEST_DEVICES = 8,
  OP_TEST_OPERANDS = 4,
  OP_TEST_SAMPLES = 4,  // of attributes
  OP_TEST_ARGUMENTS = OP_TEST_OPERANDS + OP_TEST_ATTRS,
};

// The op under a name by which one way of computing it is asked for.
typedef struct op_test_variant_t {
  const char *name, *question;
  const char* language;  // of a text; NULL: a function, or the body
  bool must_call, in_place;
} op_test_variant_t;

typedef struct op_test_t {
  cli_t* cli;
  const pestle_custom_op_t* op;
  size_t operands;
  pestle_custom_attr_value_t attrs[OP_TEST_ATTRS];
  bool as_values;  // dynamic attributes are arguments of the function
  uint64_t seed;
  pestle_device_t *ref, *devices[OP_TEST_DEVICES];
  size_t device_count, cpu_count;
  PESTLE_VEC(op_test_variant_t) variants;
  const char* bare;  // the op's name without its rules
  size_t right, refused, wrong;
} op_test_t;

// Sample |k| of each attribute: numbers, words and lists.
void op_test_sample(op_test_t* t, int k);
void op_test_print_attrs(const op_test_t* t);
// How many attributes are dynamic, and how many arguments functions of one op have.
size_t op_test_dynamic(const op_test_t* t);
size_t op_test_arguments(const op_test_t* t);
// Cells of the op on arrays, with its dynamic attributes as arrays.
void op_test_arrays(op_test_t* t, const pestle_type_t* type);
// main(x, ...) = the op |name| of operands of |type|, and with |as_values| of dynamic
// attributes behind them; |wrapped|: between negations.
PESTLE_NODISCARD pestle_status_t op_test_module(const op_test_t* t,
                                                const char* name,
                                                const pestle_type_t* type,
                                                bool wrapped,
                                                pestle_module_t** out_module);
// Runs |module| on random inputs. |*out_called|: a step of its plan is a call.
PESTLE_NODISCARD pestle_status_t op_test_run(const op_test_t* t,
                                             pestle_module_t* module,
                                             pestle_device_t* device,
                                             bool strict, cli_arrays_t* out,
                                             bool* out_called);
void op_test_free(cli_arrays_t* arrays);
// Whether |got| is |want| but for rounding.
bool op_test_same(const op_test_t* t, const cli_arrays_t* got,
                  const cli_arrays_t* want, double* out_worst);
// Counts one cell and prints it where it is wrong. Takes |status| over.
void op_test_count(op_test_t* t, const pestle_type_t* type,
                   const char* question, const char* device,
                   pestle_status_t status, bool same, double worst);

// Cells of derivatives and batching, for operands of |type|.
void op_test_rules(op_test_t* t, const pestle_type_t* type);

#endif  // PESTLE_TOOLS_OP_TEST_H_
