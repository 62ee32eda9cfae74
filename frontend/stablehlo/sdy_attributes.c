// SPDX-License-Identifier: Apache-2.0
// Attributes of Shardy's dialect, as the text that MLIR has for them: what they mean
// is read from that (ir/sharding.h).
#include "base/mem.h"
#include "frontend/stablehlo/attributes.h"

typedef pestle_bytecode_decoder_t decoder_t;
typedef pestle_generic_value_t value_t;

enum {
  MANUAL_AXES = 0,
  MESH_AXIS = 1,
  MESH = 2,
  SUB_AXIS = 3,
  AXIS_REF = 4,
  DIMENSION = 5,
  TENSOR = 6,
  PER_VALUE = 7,
  TENSOR_UNREDUCED = 15,
  PER_VALUE_UNREDUCED = 16,
  TENSOR_REDUCED_BY = 17,
};

static const char prefix[] = "#sdy.sharding";

// Other attributes, their texts with a comma between; |skip| bytes of each are left
// out.
static pestle_status_t read_texts(decoder_t* d, pestle_reader_t* r, size_t skip,
                                  pestle_strbuf_t* out, size_t* out_count) {
  size_t count;
  PESTLE_TRY(pestle_reader_count(r, &count));
  for (size_t i = 0; i < count; ++i) {
    const value_t* value;
    PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &value));
    pestle_str_t text =
        value->kind == PESTLE_GENERIC_OPAQUE ? value->whole : value->text;
    if (i) pestle_strbuf_append_c(out, ", ");
    if (value->kind == PESTLE_GENERIC_STRING) {
      pestle_strbuf_append_quoted(out, text);
    } else if (text.size >= skip) {
      pestle_strbuf_append(out, pestle_str_slice(text, skip, text.size));
    }
  }
  if (out_count) *out_count = count;
  return NULL;
}

static pestle_status_t read_name(decoder_t* d, pestle_reader_t* r,
                                 pestle_strbuf_t* out) {
  pestle_str_t name;
  PESTLE_TRY(pestle_bytecode_string(d->file, r, &name));
  pestle_strbuf_append_quoted(out, name);
  return NULL;
}

static pestle_status_t read_mesh_axis(decoder_t* d, pestle_reader_t* r,
                                      pestle_strbuf_t* out) {
  int64_t size;
  PESTLE_TRY(read_name(d, r, out));
  PESTLE_TRY(pestle_reader_signed(r, &size));
  pestle_strbuf_appendf(out, "=%lld", (long long)size);
  return NULL;
}

static pestle_status_t read_mesh(decoder_t* d, pestle_reader_t* r,
                                 pestle_strbuf_t* out) {
  size_t count;
  pestle_strbuf_append_c(out, "#sdy.mesh<[");
  PESTLE_TRY(read_texts(d, r, 0, out, NULL));
  pestle_strbuf_append_char(out, ']');
  PESTLE_TRY(pestle_reader_count(r, &count));
  if (count) pestle_strbuf_append_c(out, ", device_ids=[");
  for (size_t i = 0; i < count; ++i) {
    int64_t id;
    PESTLE_TRY(pestle_reader_signed(r, &id));
    pestle_strbuf_appendf(out, "%s%lld", i ? ", " : "", (long long)id);
  }
  pestle_strbuf_append_c(out, count ? "]>" : ">");
  return NULL;
}

static pestle_status_t read_sub_axis(pestle_reader_t* r, pestle_strbuf_t* out) {
  int64_t before, size;
  PESTLE_TRY(pestle_reader_signed(r, &before));
  PESTLE_TRY(pestle_reader_signed(r, &size));
  pestle_strbuf_appendf(out, ":(%lld)%lld", (long long)before, (long long)size);
  return NULL;
}

static pestle_status_t read_axis_ref(decoder_t* d, pestle_reader_t* r,
                                     pestle_strbuf_t* out) {
  const value_t* part;
  PESTLE_TRY(read_name(d, r, out));
  PESTLE_TRY(pestle_bytecode_read_optional(d, r, &part));
  if (part) pestle_strbuf_append(out, part->whole);
  return NULL;
}

static pestle_status_t read_dimension(decoder_t* d, pestle_reader_t* r,
                                      pestle_strbuf_t* out) {
  size_t count;
  uint8_t closed;
  bool has;
  uint64_t priority;
  pestle_strbuf_append_char(out, '{');
  PESTLE_TRY(read_texts(d, r, 0, out, &count));
  PESTLE_TRY(pestle_reader_byte(r, &closed));
  if (!closed) pestle_strbuf_append_c(out, count ? ", ?" : "?");
  pestle_strbuf_append_char(out, '}');
  // A number that may be missing.
  PESTLE_TRY(pestle_reader_flagged(r, &priority, &has));
  if (!has) return NULL;
  pestle_strbuf_appendf(out, "p%llu", (unsigned long long)priority);
  return NULL;
}

static pestle_status_t read_axes(decoder_t* d, pestle_reader_t* r,
                                 const char* what, pestle_strbuf_t* out) {
  pestle_strbuf_t axes;
  size_t count;
  pestle_strbuf_init(d->arena->allocator, &axes);
  pestle_status_t status = read_texts(d, r, 0, &axes, &count);
  if (!status) status = pestle_strbuf_status(&axes);
  if (!status && count) {
    pestle_strbuf_appendf(out, ", %s={", what);
    pestle_strbuf_append(out, pestle_strbuf_view(&axes));
    pestle_strbuf_append_char(out, '}');
  }
  pestle_strbuf_deinit(&axes);
  return status;
}

static pestle_status_t read_tensor(decoder_t* d, pestle_reader_t* r,
                                   uint64_t code, pestle_strbuf_t* out) {
  const value_t* mesh;
  int64_t reduction;
  PESTLE_TRY(pestle_bytecode_read_attribute(d, r, &mesh));
  pestle_strbuf_append_c(out, prefix);
  pestle_strbuf_append_char(out, '<');
  if (mesh->kind == PESTLE_GENERIC_SYMBOL) {
    pestle_strbuf_append_char(out, '@');
    pestle_strbuf_append_quoted(out, mesh->text);
  } else if (mesh->whole.size > 5) {
    pestle_strbuf_append(out,
                         pestle_str_slice(mesh->whole, 5, mesh->whole.size));
  }
  pestle_strbuf_append_c(out, ", [");
  PESTLE_TRY(read_texts(d, r, 0, out, NULL));
  pestle_strbuf_append_char(out, ']');
  PESTLE_TRY(read_axes(d, r, "replicated", out));
  if (code != TENSOR) PESTLE_TRY(read_axes(d, r, "unreduced", out));
  if (code == TENSOR_REDUCED_BY) {
    PESTLE_TRY(pestle_reader_signed(r, &reduction));
    if (reduction)  // not by sum
      pestle_strbuf_appendf(out, ", reduction=%lld", (long long)reduction);
  }
  pestle_strbuf_append_char(out, '>');
  return NULL;
}

static pestle_status_t read_any(decoder_t* d, pestle_reader_t* r, uint64_t code,
                                pestle_strbuf_t* out) {
  switch (code) {
    case MANUAL_AXES:
      pestle_strbuf_append_c(out, "#sdy<manual_axes{");
      PESTLE_TRY(read_texts(d, r, 0, out, NULL));
      pestle_strbuf_append_c(out, "}>");
      return NULL;
    case MESH_AXIS:
      return read_mesh_axis(d, r, out);
    case MESH:
      return read_mesh(d, r, out);
    case SUB_AXIS:
      return read_sub_axis(r, out);
    case AXIS_REF:
      return read_axis_ref(d, r, out);
    case DIMENSION:
      return read_dimension(d, r, out);
    case TENSOR:
    case TENSOR_UNREDUCED:
    case TENSOR_REDUCED_BY:
      return read_tensor(d, r, code, out);
    case PER_VALUE:
    case PER_VALUE_UNREDUCED:
      pestle_strbuf_append_c(out, "#sdy.sharding_per_value<[");
      PESTLE_TRY(read_texts(d, r, sizeof(prefix) - 1, out, NULL));
      pestle_strbuf_append_c(out, "]>");
      return NULL;
    default:
      r->next = r->end;  // rules of ops, of which nothing here asks
      return NULL;
  }
}

pestle_status_t pestle_bytecode_read_sdy(decoder_t* d, pestle_reader_t* r,
                                         value_t* out) {
  uint64_t code;
  pestle_strbuf_t text;
  PESTLE_TRY(pestle_reader_varint(r, &code));
  pestle_strbuf_init(d->arena->allocator, &text);
  pestle_status_t status = read_any(d, r, code, &text);
  if (!status) status = pestle_strbuf_status(&text);
  if (!status && text.size > (1 << 20)) {
    status = PESTLE_ERROR(RESOURCE_EXHAUSTED,
                          "the text of a sharding is longer than a mebibyte");
  }
  char* kept =
      status ? NULL : pestle_arena_strndup(d->arena, pestle_strbuf_view(&text));
  if (!status && !kept) status = PESTLE_OOM();
  out->kind = PESTLE_GENERIC_OPAQUE;
  out->text = out->whole = pestle_str_make(kept ? kept : "", text.size);
  pestle_strbuf_deinit(&text);
  return status;
}
