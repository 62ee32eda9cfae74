// SPDX-License-Identifier: Apache-2.0
// Why a plan is not in the cache: which lines of the key differ from those of
// the nearest plan of the same module.
#include <string.h>

#include "compile/custom.h"
#include "compile/dump.h"
#include "compile/explain.h"
#include "pestle/runtime.h"

typedef struct look_t {
  pestle_str_t key;
  size_t head_size;
  size_t entries;  // on disk
  bool is_there;
  size_t best;           // words that the nearest one has otherwise
  pestle_str_t rest;     // the line of the key about all but ops by name; or ""
  pestle_str_t ops;      // the lines before it, about ops by name
  bool has_ops;          // some plan has the same ones
  pestle_strbuf_t near;  // its head
} look_t;

static pestle_str_t head_of(const look_t* look) {
  return pestle_str_make(look->key.data, look->head_size);
}

// How many words of a line |a| are not in the same place of |b|.
static size_t count_words(pestle_str_t a, pestle_str_t b) {
  pestle_str_t x, y;
  size_t count = 0;
  while (pestle_str_next(&a, ' ', &x)) {
    bool there = pestle_str_next(&b, ' ', &y);
    count += !there || !pestle_str_equal(x, y);
  }
  return count + (b.size != 0);
}

// The same of all lines.
static size_t count_differences(pestle_str_t a, pestle_str_t b) {
  pestle_str_t x, y;
  size_t count = 0;
  while (pestle_str_next(&a, '\n', &x)) {
    if (!pestle_str_next(&b, '\n', &y)) y = (pestle_str_t){0};
    count += count_words(x, y);
  }
  return count;
}

// The head of an entry whose module is the same, or differs in what ops by name do;
// empty for others. A key ends with its module, whose bytes are the same then; or
// its head ends with the same line about the rest.
static pestle_str_t find_head(const look_t* look, pestle_str_t key) {
  size_t tail = look->key.size - look->head_size;
  if (key.size > tail && !memcmp(key.data + key.size - tail,
                                 look->key.data + look->head_size, tail)) {
    return pestle_str_make(key.data, key.size - tail);
  }
  size_t at = look->rest.size ? pestle_str_find(key, look->rest) : SIZE_MAX;
  return at == SIZE_MAX ? PESTLE_STR("")
                        : pestle_str_make(key.data, at + look->rest.size);
}

// The last line of our head, if it is about the rest of a module with ops by name.
static pestle_str_t rest_of(const look_t* look) {
  pestle_str_t head = head_of(look), line, last = PESTLE_STR("");
  while (pestle_str_next(&head, '\n', &line)) {
    if (line.size) last = line;
  }
  if (!pestle_str_starts_with(last, PESTLE_STR(PESTLE_KEY_REST))) {
    return PESTLE_STR("");
  }
  return pestle_str_make(last.data, last.size + 1);  // with its end
}

// The lines of our head about ops by name, which stand before the one about the rest.
static pestle_str_t ops_of(const look_t* look) {
  pestle_str_t head = head_of(look), line;
  const char *first = NULL, *end = NULL;
  while (pestle_str_next(&head, '\n', &line)) {
    if (!pestle_str_starts_with(line, PESTLE_STR("op "))) continue;
    if (!first) first = line.data;
    end = line.data + line.size + 1;
  }
  return first ? pestle_str_make(first, (size_t)(end - first)) : PESTLE_STR("");
}

static void look_at(void* user, const void* data, size_t size) {
  look_t* look = user;
  pestle_str_t key = pestle_str_make(data, size);
  ++look->entries;
  look->is_there = look->is_there || pestle_str_equal(key, look->key);
  look->has_ops =
      look->has_ops ||
      (look->ops.size && pestle_str_find(key, look->ops) != SIZE_MAX);
  pestle_str_t head = find_head(look, key);
  if (!head.size) return;
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

// "user.axpby version 1 attributes H body H evals H" of both: the fields that are not
// the same.
static bool print_op(pestle_str_t mine, pestle_str_t yours,
                     pestle_strbuf_t* out) {
  pestle_str_t name, other, word, x, y;
  pestle_str_split(mine, ' ', &name, &mine);
  pestle_str_split(yours, ' ', &other, &yours);
  const char* before = "  differs: ";
  if (!pestle_str_equal(name, other)) return false;
  while (mine.size) {
    pestle_str_split(mine, ' ', &word, &mine);
    pestle_str_split(yours, ' ', &other, &yours);
    pestle_str_split(mine, ' ', &x, &mine);
    pestle_str_split(yours, ' ', &y, &yours);
    if (pestle_str_equal(x, y)) continue;
    pestle_strbuf_appendf(out, "%s%.*s", before, PESTLE_STR_ARG(word));
    before = ", ";
  }
  pestle_strbuf_appendf(out, " of op '%.*s'\n", PESTLE_STR_ARG(name));
  return true;
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
    if (pestle_str_equal_c(word, "op") && print_op(mine, yours, out)) continue;
    pestle_strbuf_append_c(out, "  differs: ");
    append_what(word, out);
    pestle_strbuf_appendf(out, ": '%.*s' here, '%.*s' there\n",
                          PESTLE_STR_ARG(mine), PESTLE_STR_ARG(yours));
  }
}

// A derivative is ops like others when the key is made: what it was one of is not seen,
// but the op itself is.
static void print_around(const look_t* look, pestle_strbuf_t* out) {
  pestle_str_t ops = look->ops, line, word, name;
  pestle_strbuf_append_c(out,
                         "  the plan is not in the cache; the nearest plan has "
                         "the same ops by name\n");
  while (pestle_str_next(&ops, '\n', &line)) {
    pestle_str_split(line, ' ', &word, &line);
    pestle_str_split(line, ' ', &name, &line);
    if (!name.size) continue;
    pestle_strbuf_appendf(out,
                          "  differs: a derivative of op '%.*s', or what is "
                          "around it\n",
                          PESTLE_STR_ARG(name));
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
  } else if (!look->near.size && look->has_ops) {
    print_around(look, out);
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
  look.rest = rest_of(&look);
  look.ops = ops_of(&look);
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
