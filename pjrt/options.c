// SPDX-License-Identifier: Apache-2.0
#include "pjrt/options.h"

#include <string.h>

#include "base/str.h"
#include "pjrt/error.h"
#include "pjrt/slots.h"

#define INVALID(...) \
  pestle_pjrt_error(PJRT_Error_Code_INVALID_ARGUMENT, __VA_ARGS__)

// --- The wire format of protocol buffers ---

typedef struct field_t {
  uint64_t number;
  uint64_t value;      // of a varint, or the bits of a fixed number
  pestle_str_t bytes;  // of a string or message
} field_t;

static bool take_varint(pestle_str_t* rest, uint64_t* out_value) {
  *out_value = 0;
  for (unsigned shift = 0; shift < 64 && rest->size; shift += 7) {
    uint8_t byte = (uint8_t)*rest->data++;
    --rest->size;
    *out_value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return false;
}

static bool take_bytes(pestle_str_t* rest, uint64_t size,
                       pestle_str_t* out_bytes) {
  if (size > rest->size) return false;
  *out_bytes = pestle_str_make(rest->data, (size_t)size);
  rest->data += size;
  rest->size -= (size_t)size;
  return true;
}

// The next field of a message: 1, 0 at its end, -1 for damage.
static int next_field(pestle_str_t* rest, field_t* out_field) {
  uint64_t tag, size;
  *out_field = (field_t){0};
  if (!rest->size) return 0;
  if (!take_varint(rest, &tag)) return -1;
  out_field->number = tag >> 3;
  switch (tag & 7) {
    case 0:
      return take_varint(rest, &out_field->value) ? 1 : -1;
    case 2:
      return take_varint(rest, &size) &&
                     take_bytes(rest, size, &out_field->bytes)
                 ? 1
                 : -1;
    case 1:
    case 5:
      if (!take_bytes(rest, (tag & 7) == 1 ? 8 : 4, &out_field->bytes))
        return -1;
      memcpy(&out_field->value, out_field->bytes.data, out_field->bytes.size);
      return 1;
    default:
      return -1;
  }
}

static PJRT_Error* damaged(void) {
  return INVALID("the compile options are no xla.CompileOptionsProto");
}

// --- Options of one jit ---

// A value of any type; text that is a number or a flag counts as one.
typedef struct value_t {
  pestle_str_t text;  // of a string
  bool is_number;
  int64_t number;
  double real;  // the number, with its fraction
} value_t;

static bool read_value(pestle_str_t bytes, value_t* out_value) {
  field_t field;
  int more;
  *out_value = (value_t){{"", 0}, false, 0, 0};
  while ((more = next_field(&bytes, &field)) > 0) {
    if (field.number == 1) {
      out_value->text = field.bytes;
      out_value->is_number =
          pestle_str_parse_i64(field.bytes, &out_value->number);
      if (pestle_str_equal_c(field.bytes, "true") ||
          pestle_str_equal_c(field.bytes, "false")) {
        out_value->is_number = true;
        out_value->number = field.bytes.size == 4;
      }
    } else if (field.number == 2 || field.number == 3) {
      out_value->is_number = true;
      out_value->number = (int64_t)field.value;
    } else if (field.number == 4) {
      memcpy(&out_value->real, &field.value, sizeof(out_value->real));
    }
  }
  if (out_value->is_number) out_value->real = (double)out_value->number;
  return more == 0;
}

// XLA's options of which none changes what a program means.
typedef struct ignored_t {
  const char* name;
  bool is_flag;
} ignored_t;
static const ignored_t ignored[] = {
    {"xla_embed_ir_in_executable", true},
    {"xla_dump_max_hlo_modules", false},
    {"xla_dump_to", false},
    {"xla_dump_hlo_as_text", true},
    {"xla_dump_disable_metadata", true},
    {"xla_dump_hlo_pass_re", false},
    {"xla_gpu_auto_spmd_partitioning_memory_budget_ratio", false},
    {"xla_backend_optimization_level", false},
    {"xla_llvm_disable_expensive_passes", true},
    {"xla_cpu_enable_fast_math", true},
    {"xla_cpu_enable_fast_min_max", true},
    {"xla_test_all_input_layouts", true},
    {"xla_test_all_output_layouts", true},
    {"xla_detailed_logging", true},
    {"xla_disable_hlo_passes", false},
    {"exec_time_optimization_effort", false},
    {"optimization_level", false},
    {"memory_fitting_level", false},
};

static PJRT_Error* bad_value(const char* name, const char* may_be) {
  return INVALID("compiler option %s may be %s", name, may_be);
}

static PJRT_Error* set_numerics(const value_t* value,
                                pestle_pjrt_options_t* out) {
  static const char* const names[] = {"default", "strict", "fast"};
  for (int i = 0; i < 3; ++i) {
    if (!pestle_str_equal_c(value->text, names[i])) continue;
    out->numerics = (pestle_numerics_t)i;
    return NULL;
  }
  return bad_value("pestle_numerics", "'default', 'strict' or 'fast'");
}

static PJRT_Error* set_option(pestle_str_t name, const value_t* value,
                              pestle_pjrt_options_t* out) {
  if (pestle_str_equal_c(name, "pestle_numerics"))
    return set_numerics(value, out);
  if (pestle_str_equal_c(name, "pestle_threads")) {
    if (!value->is_number || value->number < 0 || value->number > 4096)
      return bad_value("pestle_threads", "0 (all) to 4096");
    out->threads = (int32_t)value->number;
    return NULL;
  }
  if (pestle_str_equal_c(name, "pestle_fuse")) {
    if (!value->is_number) return bad_value("pestle_fuse", "true or false");
    out->no_fuse = !value->number;
    return NULL;
  }
  if (pestle_str_equal_c(name, "pestle_merge")) {
    if (!value->is_number) return bad_value("pestle_merge", "true or false");
    out->no_merge = !value->number;
    return NULL;
  }
  if (pestle_str_equal_c(name, "pestle_tune_seconds")) {
    if (!(value->real >= 0 && value->real <= 1e6))
      return bad_value("pestle_tune_seconds", "0 (off) to a million");
    out->tune_seconds = value->real;
    return NULL;
  }
  if (pestle_str_equal_c(name, "pestle_dump")) {
    if (!value->text.size) return bad_value("pestle_dump", "a folder");
    out->dump = value->text;
    return NULL;
  }
  for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); ++i) {
    if (!pestle_str_equal_c(name, ignored[i].name)) continue;
    if (!ignored[i].is_flag || value->is_number) return NULL;
    return INVALID("compiler option %s: '%.*s' is not a valid bool value.",
                   ignored[i].name, PESTLE_STR_ARG(value->text));
  }
  return INVALID(
      "No such compile option: '%.*s'; there are pestle_numerics, "
      "pestle_threads, pestle_fuse, pestle_merge, pestle_tune_seconds and "
      "pestle_dump",
      PESTLE_STR_ARG(name));
}

static PJRT_Error* read_override(pestle_str_t entry,
                                 pestle_pjrt_options_t* out) {
  pestle_str_t name = {"", 0}, bytes = {"", 0};
  field_t field;
  value_t value;
  int more;
  while ((more = next_field(&entry, &field)) > 0) {
    if (field.number == 1) name = field.bytes;
    if (field.number == 2) bytes = field.bytes;
  }
  if (more < 0 || !read_value(bytes, &value)) return damaged();
  return set_option(name, &value, out);
}

static PJRT_Error* read_build_options(pestle_str_t bytes,
                                      pestle_pjrt_options_t* out) {
  field_t field;
  int more;
  while ((more = next_field(&bytes, &field)) > 0) {
    if (field.number == 4) out->replicas = (int64_t)field.value;
    if (field.number == 5) out->partitions = (int64_t)field.value;
    if (field.number == 1) out->ordinal = (int64_t)field.value;
    if (field.number == 9) {
      out->assignment = field.bytes.data;
      out->assignment_size = field.bytes.size;
    }
  }
  return more < 0 ? damaged() : NULL;
}

PJRT_Error* pestle_pjrt_options_read(const void* data, size_t size,
                                     const pestle_pjrt_settings_t* settings,
                                     pestle_pjrt_options_t* out_options) {
  pestle_str_t rest = pestle_str_make(data, size);
  field_t field;
  int more;
  *out_options = (pestle_pjrt_options_t){.replicas = 1,
                                         .partitions = 1,
                                         .ordinal = -1,
                                         .numerics = settings->numerics,
                                         .no_fuse = settings->no_fuse};
  if (size && !data) return damaged();
  while ((more = next_field(&rest, &field)) > 0) {
    PJRT_Error* error =
        field.number == 3   ? read_build_options(field.bytes, out_options)
        : field.number == 7 ? read_override(field.bytes, out_options)
                            : NULL;
    if (error) return error;
  }
  return more < 0 ? damaged() : NULL;
}

// --- Devices ---

// The ids of one partition, replica by replica: packed, or one by one.
static PJRT_Error* read_partition(pestle_str_t bytes, int64_t partition,
                                  const pestle_pjrt_options_t* o,
                                  int64_t* out_ids, size_t count) {
  field_t field;
  int64_t replica = 0;
  int more;
  while ((more = next_field(&bytes, &field)) > 0) {
    if (field.number != 1) continue;
    bool packed = field.bytes.size != 0;
    do {
      uint64_t id = field.value;
      if (packed && !take_varint(&field.bytes, &id)) return damaged();
      size_t at = (size_t)(replica++ * o->partitions + partition);
      if (at >= count) return damaged();
      out_ids[at] = (int64_t)id;
    } while (packed && field.bytes.size);
  }
  return more < 0 ? damaged() : NULL;
}

PJRT_Error* pestle_pjrt_options_devices(const pestle_pjrt_options_t* o,
                                        int64_t first, int64_t* out_ids,
                                        size_t count) {
  for (size_t i = 0; i < count; ++i)
    out_ids[i] = (int64_t)i;
  if (count == 1) out_ids[0] = first + (o->ordinal >= 0 ? o->ordinal : 0);
  pestle_str_t rest = pestle_str_make(o->assignment, o->assignment_size);
  field_t field;
  int64_t partition = 0;
  int more = 0;
  while (o->assignment_size && (more = next_field(&rest, &field)) > 0) {
    if (field.number != 3) continue;
    PJRT_TRY(read_partition(field.bytes, partition++, o, out_ids, count));
  }
  return more < 0 ? damaged() : NULL;
}
