// SPDX-License-Identifier: Apache-2.0
#include "compile/lockfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

enum {
  MOST_BYTES = 64 << 20,
  FIELDS = 6,       // before the choices
  SHOWN = 60,       // bytes of a line that an error quotes
  MOST_FIELD = 40,  // of a name in a choice
};

// The number is that of the choices' and their options' names, too: it grows when one
// is renamed.
static const char head[] = "pestle.lock 2";
_Static_assert(PESTLE_LOCKFILE_KEY == PESTLE_HASH128_HEX_SIZE,
               "a key is a hash");

void pestle_lockfile_init(pestle_allocator_t allocator,
                          pestle_lockfile_t* out_lock) {
  memset(out_lock, 0, sizeof(*out_lock));
  pestle_arena_init(allocator, &out_lock->arena);
  pestle_vec_init(&out_lock->lines, allocator);
}

void pestle_lockfile_deinit(pestle_lockfile_t* lock) {
  pestle_vec_deinit(&lock->lines);
  pestle_arena_deinit(&lock->arena);
}

// --- Order ---

static int compare(const pestle_lockfile_line_t* a,
                   const pestle_lockfile_line_t* b) {
  int order = strcmp(a->key, b->key);
  if (!order) order = strcmp(a->target, b->target);
  if (!order) order = strcmp(a->cpu, b->cpu);
  if (!order) order = (a->threads > b->threads) - (a->threads < b->threads);
  return order;
}

// Where |line| is or would be.
static size_t place_of(const pestle_lockfile_t* lock,
                       const pestle_lockfile_line_t* line) {
  size_t low = 0, high = lock->lines.size;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (compare(&lock->lines.data[middle], line) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool is_at(const pestle_lockfile_t* lock, size_t place,
                  const pestle_lockfile_line_t* line) {
  return place < lock->lines.size && !compare(&lock->lines.data[place], line);
}

const pestle_lockfile_line_t* pestle_lockfile_find(
    const pestle_lockfile_t* lock, const char* key, const char* target,
    const char* cpu, int64_t threads) {
  pestle_lockfile_line_t like = {
      .key = key, .target = target, .cpu = cpu, .threads = threads};
  size_t place = place_of(lock, &like);
  return is_at(lock, place, &like) ? &lock->lines.data[place] : NULL;
}

// --- Reading ---

typedef struct reader_t {
  pestle_lockfile_t* lock;
  const char* name;
  int64_t number;
  pestle_str_t line;
} reader_t;

static pestle_status_t bad(const reader_t* r, const char* what) {
  char shown[SHOWN + 1];
  size_t size = r->line.size < SHOWN ? r->line.size : SHOWN;
  for (size_t i = 0; i < size; ++i) {
    unsigned char c = (unsigned char)r->line.data[i];
    shown[i] = c >= ' ' && c < 127 ? (char)c : '?';
  }
  shown[size] = 0;
  return PESTLE_ERROR(MALFORMED,
                      "%s:%" PRId64
                      ": %s: '%s%s'; mend the line or delete it, and 'pestle "
                      "compile --tune SECONDS' measures its kernel anew",
                      r->name, r->number, what, shown,
                      r->line.size > SHOWN ? "..." : "");
}

static bool is_plain(pestle_str_t text) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] < ' ' || text.data[i] > '~') return false;
  }
  return true;
}

static bool are_choices(pestle_str_t text) {
  pestle_str_t field, kind, value;
  size_t count = 0;
  while (pestle_str_next(&text, ' ', &field)) {
    if (!pestle_str_split(field, '=', &kind, &value) || !kind.size ||
        !value.size || kind.size > MOST_FIELD || value.size > MOST_FIELD) {
      return false;
    }
    ++count;
  }
  return count > 0;
}

static pestle_status_t read_line(reader_t* r) {
  pestle_str_t rest = r->line, field[FIELDS];
  pestle_hash128_t hash;
  const char* text[FIELDS];
  pestle_lockfile_line_t line = {0};
  if (!is_plain(rest)) return bad(r, "a byte that no text has");
  for (int i = 0; i < FIELDS; ++i) {
    if (!pestle_str_split(rest, ' ', &field[i], &rest) || !field[i].size) {
      return bad(r,
                 "expected KEY TARGET CPU THREADS VERSION MEASURED "
                 "KIND=NAME ..., with one blank between them");
    }
    text[i] = pestle_arena_strndup(&r->lock->arena, field[i]);
    if (!text[i]) return PESTLE_OOM();
  }
  char hex[PESTLE_HASH128_HEX_SIZE] = "";
  if (pestle_hash128_from_hex(field[0], &hash)) {
    pestle_hash128_to_hex(hash, hex);
  }
  if (strcmp(hex, text[0])) return bad(r, "expected a key of 32 hex digits");
  if (!pestle_str_parse_i64(field[3], &line.threads) || line.threads < 1) {
    return bad(r, "expected a number of threads as the fourth field");
  }
  if (!are_choices(rest)) {
    return bad(r, "expected choices KIND=NAME behind the sixth field");
  }
  line.key = text[0];
  line.target = text[1];
  line.cpu = text[2];
  line.version = text[4];
  line.measured = text[5];
  line.chosen = pestle_arena_strndup(&r->lock->arena, rest);
  if (!line.chosen) return PESTLE_OOM();
  return pestle_vec_push(&r->lock->lines, line) ? NULL : PESTLE_OOM();
}

static int by_order(const void* a, const void* b) {
  return compare(a, b);
}

static pestle_status_t check_twins(const reader_t* r) {
  pestle_lockfile_t* lock = r->lock;
  if (lock->lines.size) {
    qsort(lock->lines.data, lock->lines.size, sizeof(*lock->lines.data),
          by_order);
  }
  for (size_t i = 1; i < lock->lines.size; ++i) {
    const pestle_lockfile_line_t* line = &lock->lines.data[i];
    if (compare(line - 1, line)) continue;
    return PESTLE_ERROR(MALFORMED,
                        "%s: two lines begin '%s %s %s %" PRId64
                        "'; which one is meant? Delete the other",
                        r->name, line->key, line->target, line->cpu,
                        line->threads);
  }
  return NULL;
}

static pestle_status_t check_head(const reader_t* r) {
  if (pestle_str_equal_c(r->line, head)) return NULL;
  bool other = pestle_str_starts_with(r->line, pestle_str("pestle.lock "));
  return PESTLE_ERROR(MALFORMED,
                      "%s:1: expected '%s' as the first line: %s; delete it, "
                      "and 'pestle compile --tune SECONDS' makes a new one",
                      r->name, head,
                      other ? "another version of Pestle wrote this file, "
                              "whose kernels and choices have other names"
                            : "this is no such file");
}

pestle_status_t pestle_lockfile_parse(const char* name, pestle_str_t text,
                                      pestle_lockfile_t* lock) {
  reader_t r = {.lock = lock, .name = name};
  bool begun = false;
  while (pestle_str_next(&text, '\n', &r.line)) {
    ++r.number;
    bool ends = r.line.size && r.line.data[r.line.size - 1] == '\r';
    if (ends) --r.line.size;
    if (!begun) PESTLE_TRY(check_head(&r));
    bool skipped = !begun || !r.line.size || r.line.data[0] == '#';
    begun = true;
    if (!skipped) PESTLE_TRY(read_line(&r));
  }
  if (!begun) {
    return PESTLE_ERROR(MALFORMED,
                        "%s is empty; expected '%s' as its first line: delete "
                        "it, and 'pestle compile --tune SECONDS' makes a new "
                        "one",
                        name, head);
  }
  return check_twins(&r);
}

pestle_status_t pestle_lockfile_read(const char* path,
                                     pestle_lockfile_t* lock) {
  char* data;
  size_t size;
  pestle_allocator_t allocator = lock->lines.allocator;
  PESTLE_TRY(pestle_file_read(path, MOST_BYTES, allocator, &data, &size));
  pestle_status_t status =
      pestle_lockfile_parse(path, pestle_str_make(data, size), lock);
  pestle_dealloc(allocator, data, size + 1);
  return status;
}

// --- Writing ---

void pestle_lockfile_print(const pestle_lockfile_t* lock,
                           pestle_strbuf_t* out) {
  pestle_strbuf_appendf(out, "%s\n", head);
  for (size_t i = 0; i < lock->lines.size; ++i) {
    const pestle_lockfile_line_t* l = &lock->lines.data[i];
    pestle_strbuf_appendf(out, "%s %s %s %" PRId64 " %s %s %s\n", l->key,
                          l->target, l->cpu, l->threads, l->version,
                          l->measured, l->chosen);
  }
}

pestle_status_t pestle_lockfile_write(const pestle_lockfile_t* lock,
                                      const char* path) {
  pestle_strbuf_t text;
  pestle_strbuf_init(lock->lines.allocator, &text);
  pestle_lockfile_print(lock, &text);
  pestle_status_t status = pestle_strbuf_status(&text);
  pestle_str_t part = pestle_strbuf_view(&text);
  if (!status) status = pestle_file_write_atomic(path, &part, 1);
  pestle_strbuf_deinit(&text);
  return status;
}

void pestle_lockfile_field(const char* text, char* out, size_t capacity) {
  size_t n = 0;
  for (; text[n] && n + 1 < capacity; ++n) {
    out[n] = text[n] > ' ' && text[n] <= '~' ? text[n] : '_';
  }
  if (!n && capacity > 1) out[n++] = '-';
  out[n] = 0;
}

pestle_status_t pestle_lockfile_put(pestle_lockfile_t* lock,
                                    const pestle_lockfile_line_t* line) {
  pestle_arena_t* arena = &lock->arena;
  pestle_lockfile_line_t copy = {
      .key = pestle_arena_strdup(arena, line->key),
      .target = pestle_arena_strdup(arena, line->target),
      .cpu = pestle_arena_strdup(arena, line->cpu),
      .threads = line->threads,
      .version = pestle_arena_strdup(arena, line->version),
      .measured = pestle_arena_strdup(arena, line->measured),
      .chosen = pestle_arena_strdup(arena, line->chosen)};
  if (!copy.key || !copy.target || !copy.cpu || !copy.version ||
      !copy.measured || !copy.chosen) {
    return PESTLE_OOM();
  }
  size_t place = place_of(lock, &copy);
  lock->changed = true;
  if (is_at(lock, place, &copy)) {
    lock->lines.data[place] = copy;
    return NULL;
  }
  if (!pestle_vec_push(&lock->lines, copy)) return PESTLE_OOM();
  pestle_lockfile_line_t* data = lock->lines.data;
  memmove(data + place + 1, data + place,
          (lock->lines.size - 1 - place) * sizeof(*data));
  data[place] = copy;
  return NULL;
}

void pestle_lockfile_append_key(const pestle_lockfile_t* lock,
                                const char* target, const char* cpu,
                                int64_t threads, pestle_strbuf_t* key) {
  pestle_hasher_t h;
  pestle_hasher_init(&h);
  for (size_t i = 0; i < lock->lines.size; ++i) {
    const pestle_lockfile_line_t* l = &lock->lines.data[i];
    if (l->threads != threads || strcmp(l->target, target) ||
        strcmp(l->cpu, cpu)) {
      continue;
    }
    pestle_hasher_update_str(&h, pestle_str(l->key));
    pestle_hasher_update_str(&h, pestle_str(l->chosen));
  }
  char hex[PESTLE_HASH128_HEX_SIZE];
  pestle_hash128_to_hex(pestle_hasher_finish(&h), hex);
  pestle_strbuf_appendf(key, "lock %.32s\n", hex);
}

// --- Keys ---

// Names by number, for printing.
typedef struct names_t {
  const char **tensors, **axes, **stages;
} names_t;

static void swap_names(pestle_nest_t* nest, names_t* n) {
  for (size_t i = 0; i < nest->tensors.size; ++i) {
    const char* name = nest->tensors.data[i].name;
    nest->tensors.data[i].name = n->tensors[i];
    n->tensors[i] = name;
  }
  for (size_t i = 0; i < nest->axes.size; ++i) {
    const char* name = nest->axes.data[i].name;
    nest->axes.data[i].name = n->axes[i];
    n->axes[i] = name;
  }
  for (size_t i = 0; i < nest->stages.size; ++i) {
    const char* name = nest->stages.data[i].name;
    nest->stages.data[i].name = n->stages[i];
    n->stages[i] = name;
  }
}

static const char** number_names(pestle_arena_t* arena, size_t count,
                                 char letter) {
  const char** names = PESTLE_ARENA_ARRAY(arena, const char*, count + 1);
  for (size_t i = 0; names && i < count; ++i) {
    char text[24];
    (void)snprintf(text, sizeof(text), "%c%zu", letter, i);
    names[i] = pestle_arena_strdup(arena, text);
    if (!names[i]) return NULL;
  }
  return names;
}

pestle_status_t pestle_nest_key(pestle_nest_t* nest, int numerics,
                                char out_key[PESTLE_LOCKFILE_KEY]) {
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  names_t n = {.tensors = number_names(nest->arena, nest->tensors.size, 't'),
               .axes = number_names(nest->arena, nest->axes.size, 'a'),
               .stages = number_names(nest->arena, nest->stages.size, 's')};
  if (!n.tensors || !n.axes || !n.stages) return PESTLE_OOM();
  pestle_strbuf_t text;
  pestle_strbuf_init(nest->allocator, &text);
  const char *name = nest->name, *ops = nest->ops;
  swap_names(nest, &n);
  nest->name = nest->ops = "";
  pestle_status_t status = pestle_nest_print(nest, &text);
  nest->name = name;
  nest->ops = ops;
  swap_names(nest, &n);
  pestle_strbuf_appendf(&text, "numerics %d\n", numerics);
  if (!status) status = pestle_strbuf_status(&text);
  if (!status) {
    char hex[PESTLE_HASH128_HEX_SIZE];
    pestle_hash128_to_hex(pestle_hash128(text.data, text.size), hex);
    memcpy(out_key, hex, PESTLE_LOCKFILE_KEY);
  }
  pestle_strbuf_deinit(&text);
  pestle_arena_rewind(nest->arena, mark);
  return status;
}

// --- For a compilation ---

pestle_status_t pestle_lockfile_load(const char* path, bool create,
                                     pestle_lockfile_t* lock) {
  pestle_status_t status = pestle_lockfile_read(path, lock);
  if (create && pestle_status_code(status) == PESTLE_STATUS_NOT_FOUND) {
    pestle_status_release(status);
    lock->changed = true;  // also if there is nothing to choose
    return NULL;
  }
  return pestle_status_annotate(status, "while reading the lock '%s'", path);
}

pestle_status_t pestle_lockfile_save(const pestle_lockfile_t* lock,
                                     const char* path) {
  if (!lock->changed) return NULL;
  return pestle_status_annotate(pestle_lockfile_write(lock, path),
                                "while writing the lock '%s'", path);
}
