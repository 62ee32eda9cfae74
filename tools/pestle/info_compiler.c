// SPDX-License-Identifier: Apache-2.0
// pestle info of a model: what the file says, and what a run of it costs where
// its shapes are fixed.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli.h"
#include "pestle/model_info.h"

// --- JSON ---

static pestle_model_kind_t kind_of(const pestle_model_kind_t* kinds, size_t i) {
  return kinds ? kinds[i] : PESTLE_MODEL_NUMBERS;
}

static const char* type_of(const pestle_model_value_t* value,
                           pestle_model_kind_t kind) {
  return cli_info_type(value->dtype, kind == PESTLE_MODEL_STRINGS);
}

static void write_values(const pestle_model_value_t* values,
                         const pestle_model_kind_t* kinds, size_t count,
                         bool are_inputs, pestle_json_t* json) {
  pestle_json_key(json, are_inputs ? "inputs" : "outputs");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < count; ++i) {
    const pestle_model_value_t* v = &values[i];
    pestle_model_kind_t kind = kind_of(kinds, i);
    cli_info_json_value(json, v->name, type_of(v, kind), v->rank, v->dims,
                        v->dim_names);
    if (kind == PESTLE_MODEL_LIST) {
      pestle_json_key(json, "is_list");
      pestle_json_bool(json, true);
    }
    if (are_inputs) {
      pestle_json_key(json, "has_default");
      pestle_json_bool(json, v->has_default);
      pestle_json_key(json, "decides_shapes");
      pestle_json_bool(json, v->decides_shapes);
    }
    pestle_json_end_object(json);
  }
  pestle_json_end_array(json);
}

static void write_model(const pestle_model_info_t* info, pestle_json_t* json) {
  pestle_json_key(json, "format");
  pestle_json_cstr(json, info->format);
  pestle_json_key(json, "producer");
  pestle_json_cstr(json, info->producer);
  pestle_json_key(json, "ir_version");
  pestle_json_i64(json, info->ir_version);
  pestle_json_key(json, "opsets");
  pestle_json_begin_object(json);
  for (size_t i = 0; i < info->opset_count; ++i) {
    pestle_json_key(json, info->opsets[i].domain);
    pestle_json_i64(json, info->opsets[i].version);
  }
  pestle_json_end_object(json);
  write_values(info->inputs, info->input_kinds, info->input_count, true, json);
  write_values(info->outputs, info->output_kinds, info->output_count, false,
               json);
  pestle_json_key(json, "texts");
  pestle_json_begin_object(json);
  for (size_t i = 0; i < info->text_count; ++i) {
    pestle_json_key(json, info->texts[i].key);
    pestle_json_cstr(json, info->texts[i].value);
  }
  pestle_json_end_object(json);
  pestle_json_key(json, "dims");
  pestle_json_begin_array(json);
  for (size_t i = 0; i < info->dim_count; ++i)
    pestle_json_cstr(json, info->dims[i]);
  pestle_json_end_array(json);
  pestle_json_key(json, "ops");
  pestle_json_begin_object(json);
  for (size_t i = 0; i < info->op_count; ++i) {
    pestle_json_key(json, info->ops[i].name);
    pestle_json_u64(json, info->ops[i].count);
  }
  pestle_json_end_object(json);
  pestle_json_key(json, "weights");
  pestle_json_u64(json, info->weight_count);
  pestle_json_key(json, "weight_bytes");
  pestle_json_u64(json, info->weight_bytes);
  pestle_json_key(json, "unsupported");
  if (info->unsupported) {
    pestle_json_cstr(json, info->unsupported);
  } else {
    pestle_json_null(json);
  }
}

// --- For people ---

static void print_values(const pestle_model_value_t* values,
                         const pestle_model_kind_t* kinds, size_t count,
                         const char* title) {
  int width = 1;
  for (size_t i = 0; i < count; ++i) {
    int size = (int)strlen(values[i].name);
    if (size > width) width = size;
  }
  printf("%s\n", title);
  for (size_t i = 0; i < count; ++i) {
    const pestle_model_value_t* v = &values[i];
    pestle_model_kind_t kind = kind_of(kinds, i);
    const char* note = kind == PESTLE_MODEL_LIST ? "a list of such tensors"
                       : v->has_default          ? "has a default"
                       : v->decides_shapes       ? "its value decides shapes"
                                                 : "";
    cli_info_value(i, v->name, width, type_of(v, kind), v->rank, v->dims,
                   v->dim_names, note);
  }
}

static void print_ops(const pestle_model_info_t* info) {
  if (!info->op_count) return;
  printf("ops\n  %llu of %zu kinds:", (unsigned long long)info->node_count,
         info->op_count);
  int column = 20;
  for (size_t i = 0; i < info->op_count; ++i) {
    char item[200];
    int size = snprintf(item, sizeof(item), " %s %llu%s", info->ops[i].name,
                        (unsigned long long)info->ops[i].count,
                        i + 1 < info->op_count ? "," : "");
    if (column + size > 78) {
      fputs("\n   ", stdout);
      column = 3;
    }
    fputs(item, stdout);
    column += size;
  }
  fputc('\n', stdout);
}

// Each on a line, of long ones the beginning.
static void print_texts(cli_t* cli, const pestle_model_info_t* info) {
  enum { SHOWN = 60 };
  if (info->text_count) puts("texts");
  for (size_t i = 0; i < info->text_count; ++i) {
    const char* value = info->texts[i].value;
    size_t size = strcspn(value, "\r\n");
    bool is_cut = value[size] || size > SHOWN;
    if (size > SHOWN) size = SHOWN;
    const char* begin = cli_copy(cli, pestle_str_make(value, size));
    printf("  %s: %s%s\n", cli_shown(cli, info->texts[i].key),
           begin ? cli_shown(cli, begin) : "(out of memory)",
           is_cut ? " .." : "");
  }
}

static void print_model(cli_t* cli, const char* path,
                        const pestle_model_info_t* info) {
  char bytes[32];
  printf("%s: %s", path, info->format);
  if (info->ir_version)
    printf(", IR version %lld", (long long)info->ir_version);
  for (size_t i = 0; i < info->opset_count; ++i) {
    printf("%s%s %lld", i ? ", " : ", opset ", info->opsets[i].domain,
           (long long)info->opsets[i].version);
  }
  printf("%s%s\n", info->producer[0] ? ", written by " : "", info->producer);
  print_values(info->inputs, info->input_kinds, info->input_count, "inputs");
  print_values(info->outputs, info->output_kinds, info->output_count,
               "outputs");
  if (info->dim_count) {
    fputs("dims that are not fixed\n ", stdout);
    for (size_t i = 0; i < info->dim_count; ++i)
      printf("%s %s", i ? "," : "", info->dims[i]);
    fputc('\n', stdout);
  }
  print_texts(cli, info);
  print_ops(info);
  printf("weights\n  %llu elements in %s\n",
         (unsigned long long)info->weight_count,
         cli_info_bytes(info->weight_bytes, bytes, sizeof(bytes)));
  if (info->unsupported) printf("not supported\n  %s\n", info->unsupported);
}

// --- What a run costs ---

static bool is_static(const pestle_model_info_t* info) {
  for (size_t i = 0; i < info->input_count; ++i) {
    const pestle_model_value_t* v = &info->inputs[i];
    if (v->has_default) continue;
    if (v->rank < 0 || v->decides_shapes) return false;
    for (int32_t d = 0; d < v->rank; ++d) {
      if (v->dims[d] == PESTLE_DIM_DYNAMIC) return false;
    }
  }
  return true;
}

// What a user types to fix what is not fixed.
static void print_advice(const pestle_model_info_t* info) {
  printf("a run\n  give its shapes to see what it costs:");
  for (size_t i = 0; i < info->dim_count; ++i)
    printf(" --dim %s=N", info->dims[i]);
  for (size_t i = 0; i < info->input_count; ++i) {
    const pestle_model_value_t* v = &info->inputs[i];
    bool is_open = v->rank < 0;
    for (int32_t d = 0; d < v->rank; ++d)
      is_open =
          is_open || (v->dims[d] == PESTLE_DIM_DYNAMIC && !v->dim_names[d][0]);
    if (is_open && !v->has_default) printf(" --shape %s=1x3x224x224", v->name);
    if (v->decides_shapes) printf(" --const %s=FILE.npy", v->name);
  }
  fputc('\n', stdout);
}

static pestle_status_t tell_cost(cli_t* cli, const char* path,
                                 pestle_json_t* json) {
  pestle_device_t* device;
  pestle_plan_t* plan;
  PESTLE_TRY(cli_device(cli, &device));
  PESTLE_TRY(cli_compile_plan(cli, path, NULL, device, &plan));
  pestle_status_t status = cli_info_cost(plan, json);
  pestle_plan_release(plan);
  return status;
}

pestle_status_t cli_info_model(cli_t* cli, const char* path,
                               pestle_json_t* json) {
  const pestle_model_info_t* info;
  PESTLE_TRY(cli_describe_model(cli, path, &info));
  if (json) {
    write_model(info, json);
  } else {
    print_model(cli, path, info);
  }
  pestle_status_t status = NULL;
  bool runs = !info->unsupported && is_static(info);
  if (runs) status = tell_cost(cli, path, json);
  if (!runs && json) {
    pestle_json_key(json, "run");
    pestle_json_null(json);
  }
  if (!runs && !json && !info->unsupported) print_advice(info);
  pestle_model_info_release(info);
  return status;
}
