// SPDX-License-Identifier: Apache-2.0
// "batch=1,2,4..32;seq=128": which shapes a session has from the beginning.
#include <stdlib.h>
#include <string.h>

#include "base/closest.h"
#include "base/mem.h"
#include "session/internal.h"

// Of one dim, and of all together.
enum { MOST_EXTENTS = 256, MOST_DIMS = 16, MOST_SHAPES = 1024 };

typedef struct dim_t {
  pestle_str_t name;
  int64_t extents[MOST_EXTENTS];
  size_t count, at;
} dim_t;

typedef struct declaration_t {
  pestle_session_t* session;
  dim_t* dims;
  size_t count;
  int64_t* key;  // the extents of the shape that is made
} declaration_t;

static pestle_status_t add_extent(dim_t* dim, int64_t extent) {
  for (size_t i = 0; i < dim->count; ++i) {
    if (dim->extents[i] == extent) return NULL;
  }
  if (dim->count == MOST_EXTENTS) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "more than %d extents are declared for dim '%.*s'",
                        MOST_EXTENTS, PESTLE_STR_ARG(dim->name));
  }
  dim->extents[dim->count++] = extent;
  return NULL;
}

static bool read_extent(pestle_str_t text, int64_t* out) {
  return pestle_str_parse_i64(text, out) && *out > 0;
}

// "4..32": 4, 8, 16 and 32.
static pestle_status_t read_part(dim_t* dim, pestle_str_t part) {
  int64_t first, last;
  size_t dots = pestle_str_find(part, PESTLE_STR(".."));
  pestle_str_t begin = pestle_str_slice(part, 0, dots);
  bool is_range = dots != SIZE_MAX;
  if (!is_range) begin = part;
  bool is_read = read_extent(begin, &first);
  last = first;
  if (is_read && is_range) {
    is_read = read_extent(pestle_str_slice(part, dots + 2, part.size), &last) &&
              last >= first;
  }
  if (!is_read) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%.*s' of dim '%.*s' is no extent and no range; "
                        "expected numbers from 1 on, as 1,2,4..32",
                        PESTLE_STR_ARG(part), PESTLE_STR_ARG(dim->name));
  }
  while (first < last) {
    PESTLE_TRY(add_extent(dim, first));
    first = first > last / 2 ? last : 2 * first;
  }
  return add_extent(dim, last);
}

static pestle_status_t unknown_dim(const pestle_session_t* s,
                                   pestle_str_t name) {
  pestle_closest_t closest = pestle_closest_to(name);
  char hint[PESTLE_HINT];
  pestle_strbuf_t text;
  pestle_strbuf_init(s->allocator, &text);
  for (size_t i = 0; i < s->input_count; ++i) {
    for (int32_t d = 0; d < s->inputs[i].rank; ++d) {
      const char* own = s->inputs[i].dim_names[d];
      if (!own[0]) continue;
      pestle_closest_offer(&closest, pestle_str(own));
      pestle_strbuf_append_listed(&text, own);
    }
  }
  pestle_status_t status = PESTLE_ERROR(
      NOT_FOUND, "no input has a dim named '%.*s'; they have %s%s",
      PESTLE_STR_ARG(name), text.size ? pestle_strbuf_cstr(&text) : "none",
      pestle_closest_hint(&closest, hint));
  pestle_strbuf_deinit(&text);
  return status;
}

static bool has_dim(const pestle_session_t* s, pestle_str_t name) {
  for (size_t i = 0; i < s->input_count; ++i) {
    for (int32_t d = 0; d < s->inputs[i].rank; ++d) {
      if (pestle_str_equal_c(name, s->inputs[i].dim_names[d])) return true;
    }
  }
  return false;
}

static int largest_first(const void* a, const void* b) {
  const int64_t *x = a, *y = b;
  return *x > *y ? -1 : *x < *y;
}

static pestle_status_t read_dim(declaration_t* d, pestle_str_t text) {
  pestle_str_t name, list, part;
  if (!pestle_str_split(text, '=', &name, &list) || !name.size || !list.size) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "'%.*s' declares no shapes; expected DIM=1,2,4..32",
                        PESTLE_STR_ARG(text));
  }
  if (!has_dim(d->session, name)) return unknown_dim(d->session, name);
  for (size_t i = 0; i < d->count; ++i) {
    if (!pestle_str_equal(d->dims[i].name, name)) continue;
    return PESTLE_ERROR(INVALID_ARGUMENT, "dim '%.*s' is declared twice",
                        PESTLE_STR_ARG(name));
  }
  if (d->count == MOST_DIMS)
    return PESTLE_ERROR(INVALID_ARGUMENT, "more than %d dims", MOST_DIMS);
  dim_t* dim = &d->dims[d->count++];
  *dim = (dim_t){.name = name};
  while (pestle_str_next(&list, ',', &part))
    PESTLE_TRY(read_part(dim, pestle_str_trim(part)));
  qsort(dim->extents, dim->count, sizeof(dim->extents[0]), largest_first);
  return NULL;
}

static int64_t extent_of(const declaration_t* d, const char* name) {
  for (size_t i = 0; i < d->count && name[0]; ++i) {
    if (pestle_str_equal_c(d->dims[i].name, name))
      return d->dims[i].extents[d->dims[i].at];
  }
  return PESTLE_DIM_DYNAMIC;
}

static pestle_status_t add_shape(declaration_t* d) {
  pestle_session_t* s = d->session;
  for (size_t i = 0; i < s->input_count; ++i) {
    const session_input_t* input = &s->inputs[i];
    for (int32_t k = 0; k < input->rank; ++k) {
      int64_t extent = input->dims[k];
      if (extent == PESTLE_DIM_DYNAMIC)
        extent = extent_of(d, input->dim_names[k]);
      if (extent == PESTLE_DIM_DYNAMIC) {
        return PESTLE_ERROR(
            INVALID_ARGUMENT,
            "shapes are declared, but nothing says how large dim %d ('%s') of "
            "input '%s' is; declare it too, or fix it where the model is "
            "imported",
            (int)k, input->dim_names[k], input->name);
      }
      d->key[input->first + (size_t)k] = extent;
    }
  }
  session_shape_t* shape;
  // A shape's key ends with a byte: see make_key() of run.c.
  size_t bytes = s->extent_count * sizeof(int64_t);
  ((char*)d->key)[bytes] = 0;
  PESTLE_TRY(pestle_session_shape(s, (const char*)d->key, bytes + 1, &shape));
  shape->is_declared = true;
  return pestle_session_queue(s, shape);
}

// All combinations, the last dim the fastest.
static pestle_status_t add_shapes(declaration_t* d) {
  size_t total = 1;
  for (size_t i = 0; i < d->count; ++i)
    total = total > MOST_SHAPES ? total : total * d->dims[i].count;
  if (total > MOST_SHAPES) {
    return PESTLE_ERROR(INVALID_ARGUMENT, "more than %d shapes are declared",
                        MOST_SHAPES);
  }
  for (size_t n = 0; n < total; ++n) {
    PESTLE_TRY(add_shape(d));
    for (size_t i = d->count; i-- > 0;) {
      if (++d->dims[i].at < d->dims[i].count) break;
      d->dims[i].at = 0;
    }
  }
  return NULL;
}

pestle_status_t pestle_session_declare(pestle_session_t* s, const char* text) {
  declaration_t d = {.session = s};
  size_t key = (s->extent_count + 1) * sizeof(int64_t);
  size_t bytes = MOST_DIMS * sizeof(dim_t) + key;
  d.dims = pestle_alloc(s->allocator, bytes);
  if (!d.dims) return PESTLE_OOM();
  d.key = (int64_t*)(void*)(d.dims + MOST_DIMS);
  pestle_str_t rest = pestle_str(text), one;
  pestle_status_t status = NULL;
  while (!status && pestle_str_next(&rest, ';', &one))
    status = read_dim(&d, pestle_str_trim(one));
  pestle_mutex_lock(&s->mutex);
  if (!status) status = add_shapes(&d);
  pestle_mutex_unlock(&s->mutex);
  pestle_dealloc(s->allocator, d.dims, bytes);
  s->has_declared = true;
  return pestle_status_annotate(status, "while reading the shapes '%s'", text);
}
