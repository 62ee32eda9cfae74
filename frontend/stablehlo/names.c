// SPDX-License-Identifier: Apache-2.0
// What the names of a file's ops stand for, and all of those at once that stand
// for nothing here.
#include <string.h>

#include "base/mem.h"
#include "frontend/stablehlo/build.h"

// --- Roles ---

typedef struct special_t {
  const char* name;
  pestle_bytecode_role_t role;
} special_t;

static const special_t specials[] = {
    {"builtin.module", PESTLE_BYTECODE_MODULE},
    {"builtin.unrealized_conversion_cast", PESTLE_BYTECODE_FORWARD},
    {"func.func", PESTLE_BYTECODE_FUNC},
    {"stablehlo.tuple", PESTLE_BYTECODE_JOIN},
    {"stablehlo.get_tuple_element", PESTLE_BYTECODE_ELEMENT_OF},
    {"stablehlo.after_all", PESTLE_BYTECODE_TOKENS},
    {"stablehlo.create_token", PESTLE_BYTECODE_TOKENS},
};

// Between numbers and what stands for them: quant.h does the rest.
static bool converts(const char* name) {
  return !strcmp(name, "stablehlo.uniform_quantize") ||
         !strcmp(name, "stablehlo.uniform_dequantize");
}

static void resolve(pestle_bytecode_builder_t* b, pestle_str_t dialect,
                    pestle_str_t op, pestle_bytecode_name_t* out) {
  out->form = pestle_bytecode_find_form(dialect, op);
  if (pestle_str_equal_c(dialect, "sdy")) {
    pestle_bytecode_sdy_name(op, out);
    return;
  }
  if (pestle_str_equal_c(dialect, "chlo")) {
    pestle_bytecode_chlo_name(out->form, op, out);
  }
  if (!out->form || out->role != PESTLE_BYTECODE_UNKNOWN) return;
  for (size_t i = 0; i < sizeof(specials) / sizeof(*specials); ++i) {
    if (strcmp(out->form->name, specials[i].name)) continue;
    out->role = specials[i].role;
    return;
  }
  pestle_generic_t g;
  if (converts(out->form->name)) {
    out->role = PESTLE_BYTECODE_ROW;
    out->op = PESTLE_OP_CONVERT;
    return;
  }
  if (!pestle_generic_begin_name(&b->scratch, pestle_str(out->form->name),
                                 &g)) {
    return;
  }
  out->role = PESTLE_BYTECODE_ROW;
  out->op = g.op;
  out->built = g.built;
}

static pestle_status_t resolve_all(pestle_bytecode_builder_t* b) {
  const pestle_bytecode_t* file = &b->file;
  pestle_bytecode_name_t* names = pestle_arena_alloc_zero(
      &b->kept, (file->op_count + 1) * sizeof(*names), _Alignof(void*));
  if (!names) return PESTLE_OOM();
  for (size_t i = 0; i < file->op_count; ++i) {
    const pestle_bytecode_op_name_t* name = &file->ops[i];
    resolve(b, file->dialects[name->dialect].name, name->name, &names[i]);
  }
  b->names = names;
  return NULL;
}

// --- What is unknown ---

enum { MAX_LISTED = 50 };

// The first op of each name that stands for nothing.
static void find_unknown(const pestle_bytecode_builder_t* b,
                         const pestle_bytecode_region_t* region,
                         const pestle_bytecode_op_t** first) {
  for (const pestle_bytecode_op_t* op = region->ops; op; op = op->next) {
    bool known = b->names[op->name].role != PESTLE_BYTECODE_UNKNOWN;
    if (!known && !first[op->name]) first[op->name] = op;
    const pestle_bytecode_region_t* inner = op->regions;
    for (; inner; inner = inner->next)
      find_unknown(b, inner, first);
  }
}

static pestle_status_t append_unknown(pestle_bytecode_builder_t* b,
                                      const pestle_bytecode_op_t* op,
                                      pestle_strbuf_t* out) {
  const pestle_bytecode_op_name_t* name = &b->file.ops[op->name];
  pestle_loc_t loc;
  PESTLE_TRY(pestle_bytecode_location(&b->decoder, op->location, &loc));
  pestle_strbuf_appendf(out, "%s'%.*s.%.*s'", out->size ? ", " : "",
                        PESTLE_STR_ARG(b->file.dialects[name->dialect].name),
                        PESTLE_STR_ARG(pestle_str_slice(name->name, 0, 100)));
  if (loc.file) {
    pestle_strbuf_appendf(out, " (%.200s:%u:%u)", loc.file, loc.line,
                          loc.column);
  } else if (loc.name) {
    pestle_strbuf_appendf(out, " (%.200s)", loc.name);
  }
  return NULL;
}

static pestle_status_t list_unknown(pestle_bytecode_builder_t* b,
                                    const pestle_bytecode_op_t* const* first,
                                    pestle_strbuf_t* text) {
  size_t listed = 0;
  for (size_t i = 0; i < b->file.op_count; ++i) {
    if (!first[i]) continue;
    if (++listed > MAX_LISTED) continue;
    PESTLE_TRY(append_unknown(b, first[i], text));
  }
  if (!listed) return NULL;
  return PESTLE_ERROR(
      UNSUPPORTED,
      "operations that are not supported in %s, which '%.*s' wrote: %s%s",
      b->name, PESTLE_STR_ARG(pestle_str_slice(b->file.producer, 0, 100)),
      pestle_strbuf_cstr(text), listed > MAX_LISTED ? ", and more" : "");
}

pestle_status_t pestle_bytecode_resolve_names(
    pestle_bytecode_builder_t* b, const pestle_bytecode_region_t* top) {
  PESTLE_TRY(resolve_all(b));
  const pestle_bytecode_op_t** first = pestle_arena_alloc_zero(
      &b->kept, (b->file.op_count + 1) * sizeof(*first), _Alignof(void*));
  if (!first) return PESTLE_OOM();
  find_unknown(b, top, first);
  pestle_strbuf_t text;
  pestle_strbuf_init(b->allocator, &text);
  pestle_status_t status = list_unknown(b, first, &text);
  pestle_strbuf_deinit(&text);
  return status;
}
