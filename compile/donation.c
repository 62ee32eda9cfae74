// SPDX-License-Identifier: Apache-2.0
#include "compile/donation.h"

#include <inttypes.h>
#include <stdlib.h>

#include "compile/steps.h"

void pestle_donations_init(pestle_allocator_t allocator,
                           pestle_donations_t* out_donations) {
  pestle_vec_init(&out_donations->list, allocator);
}

void pestle_donations_deinit(pestle_donations_t* donations) {
  pestle_vec_deinit(&donations->list);
}

// --- Checks ---

// How many results a caller sees: extents of bounded ones stand behind them.
static uint32_t result_count(const pestle_function_t* f) {
  uint32_t count = 0, all = f->body->block->last->operand_count;
  for (uint32_t i = 0; i < all; ++i)
    count += pestle_function_shape_of(f, i) < 0;
  return count;
}

bool pestle_donation_is_bounded(const pestle_function_t* f, uint32_t result) {
  uint32_t all = f->body->block->last->operand_count;
  for (uint32_t i = 0; i < all; ++i) {
    if (pestle_function_shape_of(f, i) == (int64_t)result) return true;
  }
  return false;
}

static pestle_status_t wrong(const pestle_function_t* f,
                             const pestle_alias_t* alias, const char* what) {
  char name[256];
  pestle_steps_input_name(f, alias->input, name, sizeof(name));
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "input %" PRIu32
                      " ('%s') cannot be overwritten by result %" PRId32 ": %s",
                      alias->input, name, alias->output, what);
}

static pestle_status_t check(const pestle_function_t* f,
                             const pestle_alias_t* alias) {
  const pestle_block_t* block = f->body->block;
  if (alias->input >= block->argument_count) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "input %" PRIu32
                        " cannot be overwritten: there are %" PRIu32,
                        alias->input, block->argument_count);
  }
  if (alias->output == PESTLE_ALIAS_ANY) return NULL;
  if (alias->output < 0 || (uint32_t)alias->output >= result_count(f)) {
    return wrong(f, alias, "there is no such result");
  }
  uint32_t output = (uint32_t)alias->output;
  if (pestle_donation_is_bounded(f, output)) {
    return wrong(f, alias, "its extents are known after a run only");
  }
  if (!pestle_type_equal(block->arguments[alias->input]->type,
                         pestle_node_operand(block->last, output)->type)) {
    return wrong(f, alias, "their types differ");
  }
  return NULL;
}

static pestle_status_t check_once(const pestle_function_t* f,
                                  const pestle_donations_t* donations) {
  for (size_t i = 0; i < donations->list.size; ++i) {
    const pestle_alias_t* a = &donations->list.data[i];
    for (size_t j = 0; j < i; ++j) {
      const pestle_alias_t* b = &donations->list.data[j];
      if (a->input == b->input) return wrong(f, a, "the input is named twice");
      if (a->output == b->output && a->output != PESTLE_ALIAS_ANY) {
        return wrong(f, a, "the result is named twice");
      }
    }
  }
  return NULL;
}

// --- Collecting ---

static int by_input(const void* a, const void* b) {
  const pestle_alias_t *x = a, *y = b;
  return (x->input > y->input) - (x->input < y->input);
}

static bool is_named(const pestle_donations_t* donations,
                     const pestle_alias_t* alias) {
  for (size_t i = 0; i < donations->list.size; ++i) {
    const pestle_alias_t* other = &donations->list.data[i];
    if (other->input == alias->input) return true;
    if (alias->output >= 0 && other->output == alias->output) return true;
  }
  return false;
}

// What the module says itself, of inputs and results that no option names. The
// verifier has checked it.
static pestle_status_t collect_attributes(const pestle_function_t* f,
                                          pestle_donations_t* donations) {
  for (uint32_t i = 0; i < f->body->block->argument_count; ++i) {
    pestle_alias_t alias = {i, (int32_t)pestle_function_aliased_result(f, i)};
    bool donor = pestle_function_argument_is_donor(f, i);
    if (alias.output < 0 && !donor) continue;
    if (alias.output < 0) alias.output = PESTLE_ALIAS_ANY;
    bool bounded = alias.output >= 0 &&
                   pestle_donation_is_bounded(f, (uint32_t)alias.output);
    if (bounded || is_named(donations, &alias)) continue;
    if (!pestle_vec_push(&donations->list, alias)) return PESTLE_OOM();
  }
  return NULL;
}

pestle_status_t pestle_donations_collect(
    const pestle_compile_options_t* options, const pestle_function_t* function,
    pestle_donations_t* out_donations) {
  if (options->alias_count && !options->aliases) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "pestle_compile_options_t counts aliases that are "
                        "NULL");
  }
  for (size_t i = 0; i < options->alias_count; ++i) {
    PESTLE_TRY(check(function, &options->aliases[i]));
    if (!pestle_vec_push(&out_donations->list, options->aliases[i])) {
      return PESTLE_OOM();
    }
  }
  PESTLE_TRY(check_once(function, out_donations));
  PESTLE_TRY(collect_attributes(function, out_donations));
  if (out_donations->list.size > 1) {
    qsort(out_donations->list.data, out_donations->list.size,
          sizeof(pestle_alias_t), by_input);
  }
  return NULL;
}

void pestle_donations_key(const pestle_donations_t* donations,
                          pestle_strbuf_t* key) {
  for (size_t i = 0; i < donations->list.size; ++i) {
    const pestle_alias_t* a = &donations->list.data[i];
    pestle_strbuf_appendf(key, "alias %" PRIu32 " %" PRId32 "\n", a->input,
                          a->output);
  }
}
