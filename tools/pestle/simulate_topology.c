// SPDX-License-Identifier: Apache-2.0
// The file that says what machines there are (docs/simulate.md):
//
//   rank flops=60T half=700T memory=2.8T launch=3us overlap=yes jitter=0.02
//   link nvlink ranks=8 alpha=3us beta=370G
//   link ndr alpha=5us beta=46G
#include <math.h>

#include "base/file.h"
#include "base/mem.h"
#include "simulate.h"

typedef struct reader_t {
  cli_t* cli;
  const char* path;
  int line;
  cli_topology_t* t;
  bool has_rank;
} reader_t;

#define WRONG(r, ...)                                          \
  pestle_status_annotate(PESTLE_ERROR(MALFORMED, __VA_ARGS__), \
                         "in line %d of topology '%s'", (r)->line, (r)->path)

// "370G", "3us", "0.02": a number and what it is times.
static bool parse_number(pestle_str_t text, double* out) {
  static const struct {
    const char* unit;
    double scale;
  } units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"ns", 1e-9}, {"s", 1},   {"K", 1e3},
               {"M", 1e6},   {"G", 1e9},   {"T", 1e12},  {"P", 1e15}};
  double scale = 1;
  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); ++i) {
    pestle_str_t unit = pestle_str(units[i].unit);
    if (!pestle_str_ends_with(text, unit)) continue;
    scale = units[i].scale;
    text.size -= unit.size;
    break;
  }
  double value;
  if (!pestle_str_parse_f64(text, &value) || !isfinite(value) || value < 0)
    return false;
  *out = value * scale;
  return isfinite(*out);
}

static pestle_status_t number(const reader_t* r, pestle_str_t key,
                              pestle_str_t text, double* out) {
  if (parse_number(text, out)) return NULL;
  return WRONG(r,
               "%.*s wants a number that is not below 0, such as 370G or 3us, "
               "not '%.*s'",
               PESTLE_STR_ARG(key), PESTLE_STR_ARG(text));
}

static pestle_status_t flag(const reader_t* r, pestle_str_t key,
                            pestle_str_t text, bool* out) {
  *out = pestle_str_equal_c(text, "yes");
  if (*out || pestle_str_equal_c(text, "no")) return NULL;
  return WRONG(r, "%.*s is yes or no, not '%.*s'", PESTLE_STR_ARG(key),
               PESTLE_STR_ARG(text));
}

static pestle_status_t rank_word(reader_t* r, pestle_str_t key,
                                 pestle_str_t value) {
  cli_topology_t* t = r->t;
  const struct {
    const char* key;
    double* to;
  } numbers[] = {{"flops", &t->flops},   {"half", &t->half},
                 {"byte", &t->byte},     {"memory", &t->memory},
                 {"launch", &t->launch}, {"jitter", &t->jitter}};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    if (pestle_str_equal_c(key, numbers[i].key))
      return number(r, key, value, numbers[i].to);
  }
  if (pestle_str_equal_c(key, "overlap"))
    return flag(r, key, value, &t->overlaps);
  return WRONG(r,
               "a rank has flops, half, byte, memory, launch, jitter and "
               "overlap, no '%.*s'",
               PESTLE_STR_ARG(key));
}

static pestle_status_t link_word(reader_t* r, cli_link_t* l, pestle_str_t key,
                                 pestle_str_t value) {
  if (pestle_str_equal_c(key, "alpha"))
    return number(r, key, value, &l->wire.alpha);
  if (pestle_str_equal_c(key, "beta"))
    return number(r, key, value, &l->wire.beta);
  if (pestle_str_equal_c(key, "fold"))
    return number(r, key, value, &l->wire.fold);
  if (pestle_str_equal_c(key, "ranks")) {
    if (pestle_str_parse_i64(value, &l->ranks) && l->ranks > 0) return NULL;
    return WRONG(r, "ranks is how many one such link joins, not '%.*s'",
                 PESTLE_STR_ARG(value));
  }
  if (pestle_str_equal_c(key, "by")) {
    l->wire.peers = pestle_str_equal_c(value, "peers");
    if (l->wire.peers || pestle_str_equal_c(value, "ring")) return NULL;
    return WRONG(r, "by is ring or peers, not '%.*s'", PESTLE_STR_ARG(value));
  }
  return WRONG(r, "a link has ranks, alpha, beta, fold and by, no '%.*s'",
               PESTLE_STR_ARG(key));
}

static bool next_word(pestle_str_t* rest, pestle_str_t* out) {
  *rest = pestle_str_trim(*rest);
  size_t n = 0;
  while (n < rest->size && rest->data[n] != ' ' && rest->data[n] != '\t')
    ++n;
  *out = pestle_str_make(rest->data, n);
  *rest = pestle_str_slice(*rest, n, rest->size);
  return n > 0;
}

static pestle_status_t begin_link(reader_t* r, pestle_str_t* rest,
                                  cli_link_t** out_link) {
  cli_topology_t* t = r->t;
  pestle_str_t name;
  if (t->link_count == CLI_LINKS)
    return WRONG(r, "there are more than %d links", CLI_LINKS);
  if (!next_word(rest, &name) || pestle_str_find_char(name, '=') != SIZE_MAX) {
    return WRONG(r, "a link begins with its name: link nvlink ranks=8 ..");
  }
  cli_link_t* l = &t->links[t->link_count++];
  *l = (cli_link_t){.name = cli_copy(r->cli, name)};
  *out_link = l;
  return l->name ? NULL : PESTLE_OOM();
}

static pestle_status_t read_line(reader_t* r, pestle_str_t line) {
  pestle_str_t word, key, value;
  cli_link_t* link = NULL;
  size_t comment = pestle_str_find_char(line, '#');
  if (comment != SIZE_MAX) line = pestle_str_slice(line, 0, comment);
  if (!next_word(&line, &word)) return NULL;
  if (pestle_str_equal_c(word, "link")) {
    PESTLE_TRY(begin_link(r, &line, &link));
  } else if (!pestle_str_equal_c(word, "rank")) {
    return WRONG(r, "a line begins with 'rank' or 'link', not '%.*s'",
                 PESTLE_STR_ARG(word));
  } else if (r->has_rank) {
    return WRONG(r, "there is a line 'rank' already: all ranks are alike");
  } else {
    r->has_rank = true;
  }
  while (next_word(&line, &word)) {
    if (!pestle_str_split(word, '=', &key, &value))
      return WRONG(r, "'%.*s' is not NAME=VALUE", PESTLE_STR_ARG(word));
    PESTLE_TRY(link ? link_word(r, link, key, value)
                    : rank_word(r, key, value));
  }
  if (!link || link->wire.beta > 0) return NULL;
  return WRONG(r, "link '%s' has no beta, its bytes a second", link->name);
}

static pestle_status_t check(const reader_t* r) {
  const cli_topology_t* t = r->t;
  const char* missing = !r->has_rank       ? "line 'rank'"
                        : !t->link_count   ? "line 'link'"
                        : !(t->flops > 0)  ? "flops of a rank"
                        : !(t->memory > 0) ? "memory of a rank"
                                           : NULL;
  if (missing) {
    return PESTLE_ERROR(MALFORMED, "topology '%s' has no %s", r->path, missing);
  }
  for (size_t i = 0; i + 1 < t->link_count; ++i) {
    const cli_link_t *l = &t->links[i], *next = &t->links[i + 1];
    bool last = i + 2 == t->link_count;
    if (l->ranks > 0 &&
        (last || (next->ranks > l->ranks && !(next->ranks % l->ranks))))
      continue;
    return PESTLE_ERROR(MALFORMED,
                        "link '%s' of topology '%s' joins %lld ranks: links "
                        "stand from the inside out, and each but the last says "
                        "ranks=, a multiple of those of the one before it",
                        l->name, r->path, (long long)l->ranks);
  }
  return NULL;
}

pestle_status_t cli_topology_read(cli_t* cli, const char* path,
                                  cli_topology_t* out_topology) {
  pestle_allocator_t allocator = pestle_allocator_system();
  char* data;
  size_t size;
  reader_t r = {.cli = cli, .path = path, .t = out_topology};
  *out_topology = (cli_topology_t){.flops = 0};
  PESTLE_TRY(pestle_file_read(path, 1 << 20, allocator, &data, &size));
  pestle_str_t rest = pestle_str_make(data, size), line;
  pestle_status_t status = NULL;
  while (!status && pestle_str_next(&rest, '\n', &line)) {
    ++r.line;
    status = read_line(&r, pestle_str_trim(line));
  }
  if (!status) status = check(&r);
  pestle_dealloc(allocator, data, size + 1);
  cli_topology_t* t = out_topology;
  if (!(t->half > 0)) t->half = t->flops;
  if (!(t->byte > 0)) t->byte = t->half;
  return status;
}

size_t cli_topology_link(const cli_topology_t* t, int32_t a, int32_t b) {
  size_t i = 0;
  while (i + 1 < t->link_count &&
         a / t->links[i].ranks != b / t->links[i].ranks)
    ++i;
  return i;
}
