// SPDX-License-Identifier: Apache-2.0
// Graphs for another compiler of StableHLO: the text with nothing of Pestle's own
// in it, the inputs, and what ir/ref makes of them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/internal.h"
#include "random/random.h"

// --- Pestle's own ops as StableHLO's ---

typedef struct plain_t {
  graph_t* g;
  pestle_builder_t b;
} plain_t;

static pestle_value_t* typed(plain_t* p, pestle_op_t op, pestle_value_t* x,
                             pestle_dtype_t dtype) {
  pestle_type_t type = *x->type;
  type.dtype = dtype;
  pestle_node_spec_t spec = {
      .op = op, .operands = &x, .operand_count = 1, .type = &type};
  pestle_node_t* node;
  expect(p->g, pestle_node_create(&p->b, &spec, &node));
  return &node->results[0];
}

static pestle_value_t* number(plain_t* p, const pestle_value_t* like,
                              double number) {
  uint64_t bits[2] = {splat_bits(like->type->dtype, number), 0};
  pestle_constant_attrs_t attrs = {
      sizeof(attrs),
      {*like->type, bits, pestle_dtype_size(like->type->dtype), true}};
  pestle_value_t* out;
  expect(p->g, pestle_op_constant(&p->b, &attrs, &out));
  return out;
}

static pestle_value_t* make(plain_t* p, pestle_op_t op, pestle_value_t* x,
                            pestle_value_t* y, pestle_value_t* z) {
  return raw(p->g, &p->b, op, x, y, z);
}

// Rounded once, as one op is: in a type that has room for what lies between.
static pestle_value_t* scalar(plain_t* p, const pestle_node_t* node) {
  pestle_value_t* in[3] = {0};
  pestle_dtype_t dtype = node->results[0].type->dtype, wide = dtype;
  for (uint32_t i = 0; i < node->operand_count; ++i)
    in[i] = pestle_node_operand(node, i);
  if (node->op == PESTLE_OP_IS_NAN)
    return make(p, PESTLE_OP_NE, in[0], in[0], NULL);
  if (node->op == PESTLE_OP_TRUNC) {
    pestle_value_t* low = number(p, in[0], 0);
    low = make(p, PESTLE_OP_LT, in[0], low, NULL);
    return make(p, PESTLE_OP_SELECT, low,
                make(p, PESTLE_OP_CEIL, in[0], NULL, NULL),
                make(p, PESTLE_OP_FLOOR, in[0], NULL, NULL));
  }
  if (is_narrow(dtype)) wide = PESTLE_F32;
  if (node->op == PESTLE_OP_FMA && dtype == PESTLE_F32) wide = PESTLE_F64;
  for (uint32_t i = 0; i < node->operand_count && wide != dtype; ++i)
    in[i] = typed(p, PESTLE_OP_CONVERT, in[i], wide);
  pestle_value_t* y;
  if (node->op == PESTLE_OP_FMA) {
    y = make(p, PESTLE_OP_MULTIPLY, in[0], in[1], NULL);
    y = make(p, PESTLE_OP_ADD, y, in[2], NULL);
  } else {  // sinc
    pestle_value_t* zero = number(p, in[0], 0);
    zero = make(p, PESTLE_OP_EQ, in[0], zero, NULL);
    y = make(p, PESTLE_OP_SINE, in[0], NULL, NULL);
    y = make(p, PESTLE_OP_DIVIDE, y, in[0], NULL);
    y = make(p, PESTLE_OP_SELECT, zero, number(p, in[0], 1), y);
  }
  return wide == dtype ? y : typed(p, PESTLE_OP_CONVERT, y, dtype);
}

static bool is_own(const pestle_node_t* node) {
  const pestle_op_info_t* info = pestle_op_info((pestle_op_t)node->op);
  return !strncmp(info->mlir, "pestle.", 7);
}

static void plain_block(graph_t* g, pestle_block_t* block) {
  for (pestle_node_t* n = block->first; n;) {
    for (uint32_t i = 0; i < n->region_count; ++i)
      plain_block(g, pestle_node_body(n, i));
    if (!is_own(n)) {
      n = n->next;
      continue;
    }
    pestle_value_t* results[PESTLE_COMPOSITE_MAX_RESULTS];
    pestle_node_t *before = n->prev, *old = n;
    if (pestle_op_info((pestle_op_t)n->op)->fuse == PESTLE_FUSE_COMPOSITE) {
      expect(g, pestle_decompose(n, results));
    } else {
      plain_t p = {g, pestle_builder_make(g->function)};
      p.b.block = block;
      p.b.before = n;
      results[0] = scalar(&p, n);
    }
    for (uint32_t i = 0; i < old->result_count; ++i)
      pestle_value_replace_all_uses(&old->results[i], results[i]);
    // What it became may hold ops of Pestle's own again.
    pestle_node_erase(old);
    n = before ? before->next : block->first;
  }
}

// --- Files ---

static FILE* open_file(const char* folder, uint64_t seed, const char* end) {
  char path[1024];
  snprintf(path, sizeof(path), "%s/%llu%s", folder, (unsigned long long)seed,
           end);
  FILE* f = fopen(path, "wb");
  if (f) return f;
  fprintf(stderr, "pestle-random: %s cannot be written\n", path);
  exit(2);
}

static void put_value(FILE* text, FILE* data, const char* way,
                      const value_t* v) {
  const pestle_type_t* type = v->value->type;
  const char* op = v->value->node
                       ? pestle_op_info((pestle_op_t)v->value->node->op)->name
                       : "argument";
  fprintf(text, "%s %s ", way, pestle_dtype_info(type->dtype)->name);
  for (int32_t i = 0; i < type->rank; ++i)
    fprintf(text, "%lldx", (long long)type->dims[i]);
  fprintf(text, " %ld %.17g %s\n", ftell(data), v->radius, op);
  fwrite(v->data, 1, pestle_type_bytes(type), data);
}

static void put_ops(FILE* text, const pestle_block_t* block) {
  for (const pestle_node_t* n = block->first; n; n = n->next) {
    const pestle_value_t* of = n->operand_count  ? pestle_node_operand(n, 0)
                               : n->result_count ? &n->results[0]
                                                 : NULL;
    if (of) {
      fprintf(text, "op %s %s\n", pestle_op_info((pestle_op_t)n->op)->name,
              pestle_dtype_info(of->type->dtype)->name);
    }
    for (uint32_t i = 0; i < n->region_count; ++i)
      put_ops(text, pestle_node_body(n, i));
  }
}

void write_for_peer(graph_t* g, const char* folder) {
  FILE* text = open_file(folder, g->seed, ".txt");
  FILE* data = open_file(folder, g->seed, ".bin");
  for (size_t i = 0; i < g->input_count; ++i)
    put_value(text, data, "in", g->inputs[i]);
  for (size_t i = 0; i < g->output_count; ++i)
    put_value(text, data, "out", g->outputs[i]);
  for (pestle_function_t* f = g->module->first; f; f = f->next)
    put_ops(text, f->body->block);
  fclose(data);
  fclose(text);
  for (pestle_function_t* f = g->module->first; f; f = f->next)
    plain_block(g, f->body->block);
  expect(g, pestle_module_verify(g->module));
  char* module;
  size_t size;
  expect(g, pestle_module_print(g->module, 0, &module, &size));
  FILE* file = open_file(folder, g->seed, ".mlir");
  fwrite(module, 1, size, file);
  fclose(file);
  pestle_context_free(g->context, module, size + 1);
}
