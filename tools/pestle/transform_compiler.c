// SPDX-License-Identifier: Apache-2.0
// --passes jvp=0,1 and its kin, and --grad: transforms of the module before passes.
#include <string.h>

#include "base/mem.h"
#include "cli.h"

enum { MOST = 1024 };

// "vjp=0,1": its name and numbers. "vmap=8:0,-": the size before the colon, and -1
// where the list has '-'.
typedef struct transform_t {
  pestle_str_t name;
  int64_t size;  // -1: none was given
  int64_t numbers[MOST];
  size_t count;
} transform_t;

static bool is_number(pestle_str_t text, int64_t* out_number) {
  if (pestle_str_equal_c(text, "-")) {
    *out_number = PESTLE_NOT_BATCHED;
    return true;
  }
  return pestle_str_parse_i64(text, out_number);
}

static pestle_status_t add_number(transform_t* t, pestle_str_t text) {
  int64_t number;
  if (!is_number(text, &number) ||
      (number < 0 && !pestle_str_equal_c(t->name, "vmap"))) {
    return CLI_USAGE_ERROR("--passes %.*s wants numbers, not '%.*s'",
                           PESTLE_STR_ARG(t->name), PESTLE_STR_ARG(text));
  }
  if (t->count == MOST) {
    return CLI_USAGE_ERROR("--passes %.*s takes up to %d numbers",
                           PESTLE_STR_ARG(t->name), MOST);
  }
  t->numbers[t->count++] = number;
  return NULL;
}

// What stands behind '=' up to the first comma.
static pestle_status_t begin(pestle_str_t text, transform_t* t) {
  pestle_str_t name, rest = text;
  *t = (transform_t){.size = -1};
  pestle_str_next(&rest, '=', &name);
  t->name = name;
  if (pestle_str_equal_c(name, "vmap")) {
    pestle_str_t size;
    if (!pestle_str_next(&rest, ':', &size) ||
        !pestle_str_parse_i64(size, &t->size) || t->size < 0) {
      return CLI_USAGE_ERROR(
          "--passes vmap wants SIZE:AXIS,.., as in vmap=8:0,-, not '%.*s'",
          PESTLE_STR_ARG(text));
    }
  }
  if (!rest.size || pestle_str_equal_c(rest, "all")) return NULL;
  return add_number(t, rest);
}

static const char* const transforms[] = {"jvp", "vjp", "grad", "vmap", NULL};

static pestle_status_t vmap(const transform_t* t, pestle_module_t* module,
                            pestle_module_t** out_module) {
  pestle_vmap_options_t o = {.struct_size = sizeof(o), .size = t->size};
  if (t->count) {
    o.argument_axes = t->numbers;
    o.argument_axis_count = t->count;
  }
  return pestle_module_vmap(module, &o, out_module);
}

static pestle_status_t apply(const transform_t* t, pestle_module_t* module,
                             pestle_module_t** out_module) {
  uint32_t list[MOST];
  pestle_transform_options_t o = {.struct_size = sizeof(o)};
  *out_module = NULL;
  for (size_t i = 0; i < t->count; ++i)
    list[i] = (uint32_t)t->numbers[i];
  if (t->count) {
    o.arguments = list;
    o.argument_count = t->count;
  }
  if (pestle_str_equal_c(t->name, "vmap")) return vmap(t, module, out_module);
  if (pestle_str_equal_c(t->name, "jvp")) {
    return pestle_module_jvp(module, &o, out_module);
  }
  if (pestle_str_equal_c(t->name, "vjp")) {
    return pestle_module_vjp(module, &o, out_module);
  }
  if (pestle_str_equal_c(t->name, "grad")) {
    return pestle_module_gradient(module, &o, out_module);
  }
  char hint[PESTLE_HINT];
  return CLI_USAGE_ERROR(
      "--passes: no transform is named '%.*s'; there are: "
      "jvp, vjp, grad, vmap%s",
      PESTLE_STR_ARG(t->name), cli_hint(t->name, transforms, hint));
}

static pestle_status_t replace(const transform_t* t, pestle_module_t** module) {
  pestle_module_t* made;
  PESTLE_TRY(apply(t, *module, &made));
  pestle_module_release(*module);
  *module = made;
  return NULL;
}

// A transform and the numbers behind it are taken off |rest|.
static pestle_status_t take(pestle_str_t* rest, pestle_module_t** module) {
  transform_t t;
  pestle_str_t field, before;
  int64_t number;
  pestle_str_next(rest, ',', &field);
  PESTLE_TRY(begin(field, &t));
  for (before = *rest; pestle_str_next(rest, ',', &field); before = *rest) {
    if (!is_number(field, &number)) break;
    PESTLE_TRY(add_number(&t, field));
  }
  *rest = before;
  return module ? replace(&t, module) : NULL;
}

static bool has_transform(pestle_str_t list) {
  pestle_str_t field;
  return pestle_str_next(&list, ',', &field) &&
         memchr(field.data, '=', field.size);
}

// Behind the transforms there are names of passes alone.
static pestle_status_t check_rest(pestle_str_t rest) {
  pestle_str_t field;
  while (pestle_str_next(&rest, ',', &field)) {
    bool is_one = memchr(field.data, '=', field.size) != NULL;
    for (size_t i = 0; transforms[i] && !is_one; ++i)
      is_one = pestle_str_equal_c(field, transforms[i]);
    if (!is_one) continue;
    return CLI_USAGE_ERROR(
        "--passes: '%.*s' is no pass; transforms stand in front of all passes, "
        "with "
        "numbers: jvp=0,1 vjp=0 grad=0 vmap=8:0,-",
        PESTLE_STR_ARG(field));
  }
  return NULL;
}

pestle_status_t cli_split_passes(cli_t* cli, const char** out_passes) {
  const char* text = cli->text[CLI_PASSES];
  *out_passes = text;
  if (!text) return NULL;
  pestle_str_t rest = pestle_str(text);
  while (has_transform(rest))
    PESTLE_TRY(take(&rest, NULL));
  PESTLE_TRY(check_rest(rest));
  *out_passes = rest.size ? rest.data : "";
  return NULL;
}

// What is written as core ops becomes softmax, norms and attention first, whose
// derivatives are shorter than those of their parts.
static pestle_status_t recognise(const cli_t* cli, pestle_module_t* module) {
  pestle_compile_options_t options = {
      .struct_size = sizeof(options),
      .passes = "inline,canonicalise,recognise"};
  return pestle_optimize(cli->context, module, NULL, &options);
}

static pestle_status_t gradient(const cli_t* cli, pestle_module_t** module) {
  transform_t t = {.name = PESTLE_STR("grad")};
  for (size_t i = 0; i < cli->list[CLI_GRAD].size; ++i) {
    const char* text = cli->list[CLI_GRAD].data[i];
    int64_t number;
    if (!pestle_str_parse_i64(pestle_str(text), &number) || number < 0 ||
        t.count == MOST) {
      return CLI_USAGE_ERROR("--grad wants the number of an argument, not '%s'",
                             text);
    }
    t.numbers[t.count++] = number;
  }
  if (!t.count) return NULL;
  PESTLE_TRY(recognise(cli, *module));
  return replace(&t, module);
}

pestle_status_t cli_transform(cli_t* cli, pestle_module_t** module) {
  pestle_str_t rest = cli->text[CLI_PASSES] ? pestle_str(cli->text[CLI_PASSES])
                                            : PESTLE_STR("");
  while (has_transform(rest))
    PESTLE_TRY(take(&rest, module));
  return gradient(cli, module);
}
