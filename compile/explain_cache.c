// SPDX-License-Identifier: Apache-2.0
// Why a plan is not in the cache: which lines of the key differ from those of
// the nearest plan of the same module.
#include <string.h>

#include "compile/dump.h"
#include "compile/explain.h"
#include "pestle/runtime.h"

typedef struct look_t {
  pestle_str_t key;
  size_t head_size;
  size_t entries;  // on disk
  bool is_there;
  size_t best;           // lines that the nearest one has otherwise
  pestle_strbuf_t near;  // its head
} look_t;

static pestle_str_t head_of(const look_t* look) {
  return pestle_str_make(look->key.data, look->head_size);
}

// How many lines of |a| are not in the same place of |b|, where both have as
// many; else all of them.
static size_t count_differences(pestle_str_t a, pestle_str_t b) {
  pestle_str_t x, y;
  size_t count = 0;
  while (pestle_str_next(&a, '\n', &x)) {
    bool there = pestle_str_next(&b, '\n', &y);
    count += !there || !pestle_str_equal(x, y);
  }
  return count;
}

// The entry's own head: a key ends with its module, whose bytes are the same.
static void look_at(void* user, const void* data, size_t size) {
  look_t* look = user;
  pestle_str_t key = pestle_str_make(data, size);
  size_t tail = look->key.size - look->head_size;
  ++look->entries;
  look->is_there = look->is_there || pestle_str_equal(key, look->key);
  if (size <= tail || memcmp(key.data + size - tail,
                             look->key.data + look->head_size, tail) != 0) {
    return;
  }
  pestle_str_t head = pestle_str_make(key.data, size - tail);
  size_t differences = count_differences(head_of(look), head);
  if (look->near.size && differences >= look->best) return;
  look->best = differences;
  pestle_strbuf_clear(&look->near);
  pestle_strbuf_append(&look->near, head);
}

// "build", where the key's own word tells less.
static void append_what(pestle_str_t word, pestle_strbuf_t* out) {
  static const struct {
    const char* word;
    const char* what;
  } names[] = {{"pestle", "build of Pestle"},
               {"backend", "backend and its build"},
               {"toolchain", "compiler of the backend"},
               {"cpu", "CPU"},
               {"features", "features of the CPU"},
               {"caches", "sizes of the caches"},
               {"fallback", "fallback backend"},
               {"fuse", "fusion"},
               {"skip", "passes left out"},
               {"stop", "passes run"},
               {"fold", "limit of folded constants"}};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (!pestle_str_equal_c(word, names[i].word)) continue;
    pestle_strbuf_append_c(out, names[i].what);
    return;
  }
  pestle_strbuf_append(out, word);
}

static void print_differences(const look_t* look, pestle_strbuf_t* out) {
  pestle_str_t ours = head_of(look), theirs = pestle_strbuf_view(&look->near);
  pestle_str_t x, y, word, mine, yours;
  while (pestle_str_next(&ours, '\n', &x)) {
    if (!pestle_str_next(&theirs, '\n', &y)) y = (pestle_str_t){0};
    if (pestle_str_equal(x, y)) continue;
    pestle_str_split(x, ' ', &word, &mine);
    pestle_str_split(y, ' ', &word, &yours);
    pestle_str_split(x, ' ', &word, &mine);
    pestle_strbuf_append_c(out, "  differs: ");
    append_what(word, out);
    pestle_strbuf_appendf(out, ": '%.*s' here, '%.*s' there\n",
                          PESTLE_STR_ARG(mine), PESTLE_STR_ARG(yours));
  }
}

static void print_look(const char* folder, const look_t* look,
                       pestle_strbuf_t* out) {
  pestle_strbuf_append_c(out, "cache\n");
  if (!folder) {
    pestle_strbuf_append_c(out, "  there is no cache on disk\n");
  } else if (look->is_there) {
    pestle_strbuf_append_c(out,
                           "  the plan is in the cache: a run takes it from "
                           "there and compiles nothing\n");
  } else if (!look->near.size) {
    pestle_strbuf_appendf(out,
                          "  the plan is not in the cache: none of its %zu "
                          "plans is of this module with these shapes\n",
                          look->entries);
  } else {
    pestle_strbuf_append_c(out,
                           "  the plan is not in the cache; the nearest plan "
                           "of this module was made otherwise\n");
    print_differences(look, out);
  }
}

pestle_status_t pestle_explain_cache(pestle_context_t* context,
                                     const pestle_compile_options_t* options,
                                     pestle_str_t key, size_t head_size) {
  pestle_allocator_t allocator = pestle_context_allocator(context);
  const char* folder = pestle_context_cache_dir(context);
  look_t look = {.key = key, .head_size = head_size};
  pestle_strbuf_t out;
  pestle_strbuf_init(allocator, &look.near);
  pestle_strbuf_init(allocator, &out);
  pestle_status_t status = pestle_cache_visit_keys(context, look_at, &look);
  print_look(folder, &look, &out);
  if (!status) status = pestle_strbuf_status(&look.near);
  if (!status) status = pestle_strbuf_status(&out);
  if (!status) {
    pestle_dump(options, PESTLE_STAGE_EXPLAIN, "cache",
                pestle_strbuf_cstr(&out), out.size);
  }
  pestle_strbuf_deinit(&out);
  pestle_strbuf_deinit(&look.near);
  return status;
}
