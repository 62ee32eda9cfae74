// SPDX-License-Identifier: Apache-2.0
// The text of a flat kernel, which kir_parse.c reads back:
//
//   // what it came from, line by line
//   kernel @scale(
//       @x : global f32[1024] readonly,
//       @y : global f32[1024]) {
//     %0 = const 0 : index
//     %1 = const 64 : index
//     %2 = for %0 to %1 step 1 group.x : index name i {
//       %3 = madi %2, 16, %0 : index
//       %4 = load @x[%3] : f32x16 align 64
//       %5 = multiply %4, %4 : f32x16 contract
//       store @y[%3], %5 align 64
//     }
//   }
#include <math.h>

#include "base/fault.h"
#include "codegen/kir/kir_internal.h"

const char* pestle_kir_axis_name(unsigned axis) {
  static const char* const names[] = {"serial",  "unroll",  "group.x",
                                      "group.y", "group.z", "lane.x",
                                      "lane.y",  "lane.z",  "cluster"};
  return axis < sizeof names / sizeof *names ? names[axis] : "?";
}

const char* pestle_kir_scope_name(unsigned scope) {
  static const char* const names[] = {"global", "shared", "private", "map"};
  return scope < sizeof names / sizeof *names ? names[scope] : "?";
}

const char* pestle_kir_fact_name(unsigned bit) {
  static const char* const names[] = {"contract", "reassoc", "nnan",   "ninf",
                                      "nsz",      "arcp",    "approx", "flush"};
  return bit < sizeof names / sizeof *names ? names[bit] : "?";
}

static bool is_access(unsigned op) {
  return op == PESTLE_KIR_LOAD || op == PESTLE_KIR_STORE ||
         op == PESTLE_KIR_GATHER || op == PESTLE_KIR_SCATTER;
}

static void print_type(unsigned type, unsigned lanes, pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, pestle_dtype_info((pestle_dtype_t)type)->name);
  if (lanes > (PESTLE_FAULT(trust_kir_lanes) ? 16 : 1)) {
    pestle_strbuf_appendf(out, "x%u", lanes);
  }
}

static void print_value(uint32_t id, pestle_strbuf_t* out) {
  if (id == PESTLE_KIR_NONE) {
    pestle_strbuf_append_c(out, "none");
  } else {
    pestle_strbuf_appendf(out, "%%%u", id);
  }
}

static void print_buffer_name(const pestle_kir_t* k, uint32_t id,
                              pestle_strbuf_t* out) {
  if (id < k->buffer_count) {
    pestle_strbuf_appendf(out, "@%s",
                          pestle_kir_string(k, pestle_kir_buffer(k, id)->name));
  } else {
    pestle_strbuf_appendf(out, "@?%u", id);
  }
}

static void print_table(const pestle_kir_t* k, uint32_t id,
                        pestle_strbuf_t* out) {
  pestle_strbuf_append_char(out, '[');
  if (id < k->table_count) {
    pestle_kir_table_t table = k->table[id];
    for (uint32_t i = 0; i < table.count; ++i) {
      uint64_t at = (uint64_t)table.first + i;
      if (at >= k->table_word_count) break;
      pestle_strbuf_appendf(out, i ? ", %u" : "%u", k->table_word[at]);
    }
  }
  pestle_strbuf_append_char(out, ']');
}

static void print_buffer(const pestle_kir_t* k, uint32_t id,
                         pestle_strbuf_t* out) {
  const pestle_kir_buffer_t* buffer = pestle_kir_buffer(k, id);
  print_buffer_name(k, id, out);
  pestle_strbuf_appendf(out, " : %s ", pestle_kir_scope_name(buffer->scope));
  print_type(buffer->dtype, buffer->lanes, out);
  pestle_strbuf_appendf(out, "[%llu]", (unsigned long long)buffer->count);
  if (buffer->flags & PESTLE_KIR_READONLY) {
    pestle_strbuf_append_c(out, " readonly");
  }
  if (buffer->flags & PESTLE_KIR_NONTEMPORAL) {
    pestle_strbuf_append_c(out, " nontemporal");
  }
  if (buffer->align != 64) {
    pestle_strbuf_appendf(out, " align %u", buffer->align);
  }
  if (buffer->alias_set != id) {
    pestle_strbuf_appendf(out, " alias %u", buffer->alias_set);
  }
  if (buffer->scope == PESTLE_KIR_TENSOR_MAP) {
    pestle_strbuf_append_c(out, " tiles ");
    print_table(k, (uint32_t)buffer->layout - 1, out);
  } else if (buffer->layout) {
    pestle_strbuf_appendf(out, " layout %u", buffer->layout);
  }
}

// Bits where no decimal number says them: a NaN has a payload.
static void print_const(const pestle_kir_inst_t* inst, pestle_strbuf_t* out) {
  if (!pestle_dtype_is((pestle_dtype_t)inst->type, PESTLE_KIND_FLOAT)) {
    pestle_strbuf_append_i64(out, pestle_kir_const_int(inst));
  } else if (isnan(pestle_kir_const_float(inst))) {
    pestle_strbuf_appendf(out, "0x%016llx",
                          (unsigned long long)pestle_kir_const_int(inst));
  } else {
    pestle_strbuf_append_f64(out, pestle_kir_const_float(inst));
  }
}

// load @x[%1], mask %2 and its kin: the buffer with its index, then the rest.
static void print_access(const pestle_kir_t* k, const pestle_kir_inst_t* inst,
                         pestle_strbuf_t* out) {
  bool stores = inst->op == PESTLE_KIR_STORE || inst->op == PESTLE_KIR_SCATTER;
  print_buffer_name(k, inst->arg[0], out);
  pestle_strbuf_append_char(out, '[');
  print_value(inst->arg[1], out);
  pestle_strbuf_append_char(out, ']');
  if (stores) {
    pestle_strbuf_append_c(out, ", ");
    print_value(inst->arg[2], out);
  }
  if (inst->op == PESTLE_KIR_PREFETCH) {
    if (inst->arg[2]) pestle_strbuf_append_c(out, ", far");
    return;
  }
  uint32_t mask = inst->arg[stores ? 3 : 2];
  if (mask == PESTLE_KIR_NONE) return;
  pestle_strbuf_append_c(out, ", mask ");
  print_value(mask, out);
}

static void print_plain(const pestle_kir_t* k, const pestle_kir_inst_t* inst,
                        const char* letters, pestle_strbuf_t* out) {
  for (int a = 0; letters[a]; ++a) {
    if (a) pestle_strbuf_append_c(out, ", ");
    if (letters[a] == 'b') {
      print_buffer_name(k, inst->arg[a], out);
    } else if (letters[a] == 'i') {
      pestle_strbuf_append_i64(out, (int32_t)inst->arg[a]);
    } else {
      print_value(inst->arg[a], out);
    }
  }
}

static void print_operands(const pestle_kir_t* k, const pestle_kir_inst_t* inst,
                           pestle_strbuf_t* out) {
  const char* letters = pestle_kir_info(inst->op).operands;
  if (*letters || inst->op == PESTLE_KIR_CONST) {
    pestle_strbuf_append_char(out, ' ');
  }
  if (inst->op == PESTLE_KIR_CONST) {
    print_const(inst, out);
  } else if (inst->op == PESTLE_KIR_FOR) {
    print_value(inst->arg[0], out);
    pestle_strbuf_append_c(out, " to ");
    print_value(inst->arg[1], out);
    pestle_strbuf_appendf(out, " step %d %s", (int)(int32_t)inst->arg[2],
                          pestle_kir_axis_name(inst->arg[3]));
  } else if (inst->op == PESTLE_KIR_REDUCE ||
             inst->op == PESTLE_KIR_SG_REDUCE) {
    unsigned row = pestle_kir_code((pestle_op_t)inst->arg[1]);
    const char* name = inst->arg[1] < (uint32_t)PESTLE_SCALAR_COUNT
                           ? pestle_kir_info(row).mnemonic
                           : "?";
    print_value(inst->arg[0], out);
    pestle_strbuf_appendf(out, ", %s", name);
    if (inst->op == PESTLE_KIR_SG_REDUCE) {
      pestle_strbuf_appendf(out, ", %u", inst->arg[2]);
    }
  } else if (inst->op == PESTLE_KIR_SHUFFLE) {
    print_value(inst->arg[0], out);
    pestle_strbuf_append_c(out, ", ");
    print_value(inst->arg[1], out);
    pestle_strbuf_append_c(out, ", ");
    print_table(k, inst->arg[2], out);
  } else if (is_access(inst->op) || inst->op == PESTLE_KIR_PREFETCH) {
    print_access(k, inst, out);
  } else {
    print_plain(k, inst, letters, out);
    // It has no value whose type would say so.
    if (inst->op == PESTLE_KIR_COPY_ASYNC) {
      pestle_strbuf_appendf(out, ", %u", inst->lanes);
    }
  }
}

void pestle_kir_print_inst(const pestle_kir_t* k, uint32_t id,
                           pestle_strbuf_t* out) {
  const pestle_kir_inst_t* inst = pestle_kir_inst(k, id);
  const char* mnemonic = pestle_kir_info(inst->op).mnemonic;
  if (inst->op == PESTLE_KIR_END) {
    pestle_strbuf_append_char(out, '}');
    return;
  }
  if (inst->op == PESTLE_KIR_ELSE) {
    pestle_strbuf_append_c(out, "} else {");
    return;
  }
  if (inst->type != PESTLE_NONE) pestle_strbuf_appendf(out, "%%%u = ", id);
  if (!mnemonic) {
    pestle_strbuf_appendf(out, "op%u", inst->op);
    return;
  }
  pestle_strbuf_append_c(out, mnemonic);
  print_operands(k, inst, out);
  if (inst->type != PESTLE_NONE) {
    pestle_strbuf_append_c(out, " : ");
    print_type(inst->type, inst->lanes, out);
  }
  for (unsigned bit = 0; bit < 8; ++bit) {
    if (!(inst->facts >> bit & 1)) continue;
    pestle_strbuf_appendf(out, " %s", pestle_kir_fact_name(bit));
  }
  if (is_access(inst->op)) {
    pestle_strbuf_appendf(out, " align %llu", 1ull << (inst->align_log2 & 63));
  }
  if (inst->name) {
    pestle_strbuf_appendf(out, " name %s", pestle_kir_string(k, inst->name));
  }
  if (inst->op == PESTLE_KIR_FOR || inst->op == PESTLE_KIR_IF) {
    pestle_strbuf_append_c(out, " {");
  }
}

// The note as comment lines before the kernel, which the parser keeps.
static void print_note(const char* note, pestle_strbuf_t* out) {
  while (*note) {
    const char* end = strchr(note, '\n');
    size_t size = end ? (size_t)(end - note) : strlen(note);
    pestle_strbuf_append_c(out, size ? "// " : "//");
    pestle_strbuf_append_bytes(out, note, size);
    pestle_strbuf_append_char(out, '\n');
    note += size + (end != NULL);
    if (end && !*note) pestle_strbuf_append_c(out, "//\n");
  }
}

static void print_header(const pestle_kir_t* k, pestle_strbuf_t* out) {
  print_note(pestle_kir_string(k, k->note), out);
  pestle_strbuf_appendf(out, "kernel @%s(", pestle_kir_string(k, k->name));
  for (uint32_t b = 0; b < k->buffer_count; ++b) {
    pestle_strbuf_append_c(out, b ? ",\n    " : "\n    ");
    print_buffer(k, b, out);
  }
  pestle_strbuf_append_c(out, ") {\n");
}

pestle_status_t pestle_kir_print(const pestle_kir_t* kernel,
                                 pestle_strbuf_t* out) {
  print_header(kernel, out);
  size_t depth = 1;
  for (uint32_t i = 0; i < kernel->inst_count; ++i) {
    char klass = pestle_kir_info(pestle_kir_inst(kernel, i)->op).klass;
    if ((klass == 'E' || klass == 'L') && depth) --depth;
    pestle_strbuf_append_fill(out, ' ', 2 * depth);
    pestle_kir_print_inst(kernel, i, out);
    pestle_strbuf_append_char(out, '\n');
    if (klass == 'B' || klass == 'L') ++depth;
  }
  pestle_strbuf_append_c(out, "}\n");
  return pestle_strbuf_status(out);
}
