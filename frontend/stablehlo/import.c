// SPDX-License-Identifier: Apache-2.0
// The entry point: tables, ops, functions by their signatures, then their bodies,
// as the text reader goes.
#include "frontend/stablehlo/import.h"

#include "base/mem.h"
#include "base/require.h"
#include "frontend/stablehlo/build.h"
#include "ir/sharding.h"

static pestle_status_t bind_block(pestle_bytecode_builder_t* b,
                                  const pestle_bytecode_region_t* region,
                                  pestle_bytecode_place_t* place) {
  return pestle_bytecode_bind_arguments(b, region, place->builder.block);
}

// What functions have that is not supported is said of each, once: the others do
// not wait until the first is mended.
enum { MAX_LISTED = 50 };

static pestle_status_t build_bodies(pestle_bytecode_builder_t* b) {
  pestle_status_t all = NULL;
  size_t listed = 0;
  for (size_t i = 0; i < b->bodies.size; ++i) {
    pestle_status_t status =
        pestle_bytecode_build_body(b, &b->bodies.data[i], bind_block);
    if (!status) continue;
    if (pestle_status_code(status) != PESTLE_STATUS_UNSUPPORTED) {
      pestle_status_release(all);
      return status;
    }
    if (!all) {
      all = status;
    } else {
      if (++listed < MAX_LISTED) {
        all = pestle_status_annotate(all, "also: %s",
                                     pestle_status_message(status));
      }
      pestle_status_release(status);
    }
    b->placed = false;
    b->scope = b->values.size = 0;
  }
  return all;
}

static pestle_status_t attach_bodies(pestle_bytecode_builder_t* b) {
  const pestle_generic_composite_t* at;
  pestle_status_t status = pestle_generic_attach_bodies(
      b->module, b->composites.data, b->composites.size, &at);
  if (!at) return status;
  const pestle_bytecode_op_t* op =
      b->composite_ops.data[at - b->composites.data];
  return pestle_bytecode_place_error(b, op, status);
}

static pestle_status_t build(pestle_bytecode_builder_t* b,
                             pestle_context_t* context, const void* data,
                             size_t size, bool signatures_only) {
  pestle_bytecode_region_t top;
  PESTLE_TRY(pestle_bytecode_open(data, size, &b->kept, &b->file));
  PESTLE_TRY(pestle_bytecode_read_ops(&b->file, &b->kept, &top));
  PESTLE_TRY(
      pestle_bytecode_decoder_init(context, &b->file, &b->kept, &b->decoder));
  PESTLE_TRY(pestle_bytecode_resolve_names(b, &top));
  PESTLE_TRY(pestle_bytecode_declare(b, &top));
  if (signatures_only) return NULL;
  if (b->again) {
    PESTLE_TRY(pestle_bytecode_read_again(b));
    PESTLE_TRY(pestle_generic_attach_computations(b->module));
    PESTLE_TRY(pestle_module_settle_meshes(b->module));
    return pestle_module_verify(b->module);
  }
  PESTLE_TRY(build_bodies(b));
  PESTLE_TRY(attach_bodies(b));
  PESTLE_TRY(pestle_generic_attach_computations(b->module));
  PESTLE_TRY(pestle_module_settle_meshes(b->module));
  return pestle_module_verify(b->module);
}

// One reading. On failure |*out_wanted| says whether an op wants extents or values,
// and |marks|, if not NULL, of which arguments.
static pestle_status_t read_once(const pestle_again_source_t* source,
                                 const pestle_again_t* again,
                                 bool signatures_only, bool* marks,
                                 bool* out_wanted,
                                 pestle_module_t** out_module) {
  pestle_allocator_t allocator = pestle_context_allocator(source->context);
  pestle_bytecode_builder_t b = {.name = source->name,
                                 .allocator = allocator,
                                 .again = again,
                                 .shapes.again = again};
  pestle_arena_init(allocator, &b.kept);
  pestle_arena_init(allocator, &b.scratch);
  pestle_vec_init(&b.values, allocator);
  pestle_vec_init(&b.bodies, allocator);
  pestle_vec_init(&b.composites, allocator);
  pestle_vec_init(&b.composite_ops, allocator);
  pestle_status_t status = build(&b, source->context, source->bytes.data,
                                 source->bytes.size, signatures_only);
  bool starved = pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
  *out_wanted = status && !starved && b.shapes.wanted;
  if (*out_wanted && marks) {
    status = pestle_again_mark(status, allocator, b.shapes.wanted, marks);
  }
  if (status) pestle_module_release(b.module);
  *out_module = status ? NULL : b.module;
  pestle_vec_deinit(&b.composite_ops);
  pestle_vec_deinit(&b.composites);
  pestle_vec_deinit(&b.bodies);
  pestle_vec_deinit(&b.values);
  pestle_arena_deinit(&b.scratch);
  pestle_arena_deinit(&b.kept);
  return status;
}

static pestle_status_t read_source(const pestle_again_source_t* source,
                                   const pestle_again_t* again, bool* marks,
                                   pestle_module_t** out_module) {
  bool wanted;
  return read_once(source, again, !again, marks, &wanted, out_module);
}

pestle_status_t pestle_import_stablehlo(pestle_context_t* context,
                                        const void* data, size_t size,
                                        const char* name,
                                        pestle_module_t** out_module) {
  if (out_module) *out_module = NULL;
  PESTLE_REQUIRE(context && (data || !size) && out_module,
                 "a context, bytes and a place for the module");
  pestle_again_source_t source = {context, name ? name : "<bytecode>",
                                  pestle_str_make(data, size), read_source};
  bool wanted;
  pestle_status_t status =
      read_once(&source, NULL, false, NULL, &wanted, out_module);
  return wanted ? pestle_again_read(&source, status, out_module) : status;
}
