// SPDX-License-Identifier: Apache-2.0
#include "codegen/nest/nest.h"

#include <stdio.h>
#include <string.h>

void pestle_nest_init(pestle_allocator_t allocator, pestle_arena_t* arena,
                      const char* name, pestle_nest_t* out_nest) {
  memset(out_nest, 0, sizeof(*out_nest));
  out_nest->arena = arena;
  out_nest->allocator = allocator;
  out_nest->name = name;
  out_nest->ops = "";
  pestle_vec_init(&out_nest->tensors, allocator);
  pestle_vec_init(&out_nest->axes, allocator);
  pestle_vec_init(&out_nest->stages, allocator);
  pestle_vec_init(&out_nest->prefetches, allocator);
  pestle_vec_init(&out_nest->atoms, allocator);
  pestle_vec_init(&out_nest->primitives, allocator);
  pestle_vec_init(&out_nest->choices, allocator);
}

void pestle_nest_deinit(pestle_nest_t* nest) {
  pestle_vec_deinit(&nest->tensors);
  pestle_vec_deinit(&nest->axes);
  pestle_vec_deinit(&nest->stages);
  pestle_vec_deinit(&nest->prefetches);
  pestle_vec_deinit(&nest->atoms);
  pestle_vec_deinit(&nest->primitives);
  pestle_vec_deinit(&nest->choices);
  pestle_status_release(nest->failed);
  nest->failed = NULL;
}

void pestle_nest_fail(pestle_nest_t* nest, pestle_status_t why) {
  if (nest->failed) {
    pestle_status_release(why);
  } else {
    nest->failed = why;
  }
}

void pestle_nest_fail_memory(pestle_nest_t* nest) {
  if (nest->failed) return;
  nest->failed =
      PESTLE_ERROR(OUT_OF_MEMORY,
                   "out of host memory in the nest of kernel '%s'", nest->name);
}

pestle_status_t pestle_nest_status(const pestle_nest_t* nest) {
  if (!nest->failed) return NULL;
  return pestle_status_make(pestle_status_code(nest->failed),
                            pestle_status_file(nest->failed),
                            pestle_status_line(nest->failed), "%s",
                            pestle_status_message(nest->failed));
}

// --- Expressions ---

pestle_expr_t* pestle_expr_make(pestle_nest_t* nest, pestle_expr_kind_t kind,
                                pestle_dtype_t dtype) {
  pestle_expr_t* e = PESTLE_ARENA_NEW(nest->arena, pestle_expr_t);
  if (!e) {
    pestle_nest_fail_memory(nest);
    nest->broken = (pestle_expr_t){.dtype = PESTLE_F32};
    return &nest->broken;
  }
  e->id = nest->expr_count++;
  e->kind = (uint8_t)kind;
  e->dtype = (uint8_t)dtype;
  return e;
}

const pestle_expr_t* pestle_expr_const(pestle_nest_t* nest,
                                       pestle_dtype_t dtype, double f,
                                       int64_t i) {
  pestle_expr_t* e = pestle_expr_make(nest, PESTLE_EXPR_CONST, dtype);
  e->f = f;
  e->i = i;
  return e;
}

const pestle_expr_t* pestle_expr_op(pestle_nest_t* nest, pestle_op_t op,
                                    pestle_dtype_t dtype,
                                    const pestle_expr_t* a,
                                    const pestle_expr_t* b,
                                    const pestle_expr_t* c) {
  pestle_expr_t* e = pestle_expr_make(nest, PESTLE_EXPR_OP, dtype);
  e->op = (uint16_t)op;
  e->args[0] = a;
  e->args[1] = b;
  e->args[2] = c;
  return e;
}

const pestle_expr_t* pestle_expr_cast(pestle_nest_t* nest,
                                      const pestle_expr_t* a,
                                      pestle_dtype_t dtype) {
  if (a->dtype == dtype) return a;
  pestle_expr_t* e = pestle_expr_make(nest, PESTLE_EXPR_CAST, dtype);
  e->args[0] = a;
  return e;
}

const pestle_expr_t* pestle_expr_inside(pestle_nest_t* nest,
                                        const pestle_affine_t* affine,
                                        int64_t lo, int64_t hi) {
  pestle_range_t range = pestle_affine_range(nest, affine);
  if (range.lo >= lo && range.hi < hi) {
    return pestle_expr_const(nest, PESTLE_I1, 1, 1);
  }
  pestle_expr_t* e = pestle_expr_make(nest, PESTLE_EXPR_INSIDE, PESTLE_I1);
  e->affine = affine;
  e->lo = lo;
  e->hi = hi;
  return e;
}

const pestle_expr_t* pestle_expr_read(pestle_nest_t* nest, uint32_t tensor,
                                      const pestle_affine_t* const* index,
                                      const pestle_expr_t* guard) {
  if (nest->failed) {  // |tensor| and |index| may not be there
    nest->broken = (pestle_expr_t){.dtype = PESTLE_F32};
    return &nest->broken;
  }
  const pestle_nest_tensor_t* t = &nest->tensors.data[tensor];
  pestle_expr_t* e = pestle_expr_make(nest, PESTLE_EXPR_READ, t->type.dtype);
  if (e == &nest->broken) return e;
  bool flat = t->kind == PESTLE_TENSOR_INPUT;
  uint32_t count = flat ? 1 : (uint32_t)t->type.rank;
  const pestle_affine_t** copy = PESTLE_ARENA_ARRAY(
      nest->arena, const pestle_affine_t*, count ? count : 1);
  if (!copy) {
    pestle_nest_fail_memory(nest);
    return e;
  }
  if (flat) {
    copy[0] = pestle_affine_flatten(nest, &t->type, index);
  } else if (count) {
    memcpy(copy, index, count * sizeof(*copy));
  }
  e->i = tensor;
  e->index = copy;
  e->index_count = count;
  if (guard && !(guard->kind == PESTLE_EXPR_CONST && guard->i)) {
    e->guard = guard;
  }
  return e;
}

const pestle_expr_t* pestle_expr_dot(pestle_nest_t* nest, pestle_dtype_t dtype,
                                     unsigned kinds, const pestle_expr_t* a,
                                     const pestle_expr_t* b) {
  pestle_expr_t* e = pestle_expr_make(nest, PESTLE_EXPR_DOT, dtype);
  e->i = kinds;
  e->args[0] = a;
  e->args[1] = b;
  return e;
}

void pestle_substitution_init(pestle_nest_t* nest,
                              const pestle_affine_t* const* map,
                              pestle_substitution_t* out_how) {
  *out_how = (pestle_substitution_t){.map = map};
  out_how->memo_count = nest->expr_count;
}

// The slot of |e|, or the free one where it belongs; NULL: there are no slots.
static pestle_substituted_t* memo_slot(const pestle_substitution_t* how,
                                       const pestle_expr_t* e) {
  uint32_t mask = how->memo_slots - 1;
  if (!how->memo_slots) return NULL;
  for (uint32_t i = e->id * UINT32_C(0x9e3779b1) >> 7;; ++i) {
    pestle_substituted_t* slot = &how->memo[i & mask];
    if (!slot->from || slot->from == e) return slot;
  }
}

static bool grow_memo(pestle_nest_t* nest, pestle_substitution_t* how) {
  pestle_substitution_t old = *how;
  how->memo_slots = old.memo_slots ? 2 * old.memo_slots : 16;
  how->memo =
      pestle_arena_alloc_zero(nest->arena, how->memo_slots * sizeof(*how->memo),
                              _Alignof(pestle_substituted_t));
  if (!how->memo) {
    pestle_nest_fail_memory(nest);
    *how = old;
    return false;
  }
  for (uint32_t i = 0; i < old.memo_slots; ++i) {
    if (old.memo[i].from) *memo_slot(how, old.memo[i].from) = old.memo[i];
  }
  return true;
}

static void memoise(pestle_nest_t* nest, pestle_substitution_t* how,
                    const pestle_expr_t* from, const pestle_expr_t* to) {
  if (2 * (how->memo_used + 1) > how->memo_slots && !grow_memo(nest, how))
    return;
  *memo_slot(how, from) = (pestle_substituted_t){from, to};
  ++how->memo_used;
}

static const pestle_expr_t* substitute(pestle_nest_t* nest,
                                       pestle_substitution_t* how,
                                       const pestle_expr_t* e) {
  pestle_expr_t* copy = pestle_expr_make(nest, (pestle_expr_kind_t)e->kind,
                                         (pestle_dtype_t)e->dtype);
  if (copy == &nest->broken) return copy;
  uint32_t id = copy->id;
  *copy = *e;
  copy->id = id;
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) {
      copy->args[i] = pestle_expr_substitute(nest, how, e->args[i]);
    }
  }
  if (e->affine) copy->affine = pestle_affine_substitute(nest, how, e->affine);
  if (e->guard) copy->guard = pestle_expr_substitute(nest, how, e->guard);
  if (e->kind == PESTLE_EXPR_READ && how->guard) {
    copy->guard = copy->guard ? pestle_expr_op(nest, PESTLE_OP_AND, PESTLE_I1,
                                               copy->guard, how->guard, NULL)
                              : how->guard;
  }
  if (e->index_count) {
    const pestle_affine_t** index =
        PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t*, e->index_count);
    if (!index) {
      pestle_nest_fail_memory(nest);
      return copy;
    }
    for (uint32_t i = 0; i < e->index_count; ++i) {
      index[i] = pestle_affine_substitute(nest, how, e->index[i]);
    }
    copy->index = index;
  }
  if (e->kind == PESTLE_EXPR_INSIDE) {
    return pestle_expr_inside(nest, copy->affine, e->lo, e->hi);
  }
  if (e->kind == PESTLE_EXPR_READ && how->read) {
    const pestle_expr_t* other = how->read(how->user, copy);
    if (other) return other;
  }
  return copy;
}

const pestle_expr_t* pestle_expr_substitute(pestle_nest_t* nest,
                                            pestle_substitution_t* how,
                                            const pestle_expr_t* e) {
  if (e->kind == PESTLE_EXPR_CONST || nest->failed) return e;
  const pestle_substituted_t* known =
      e->id < how->memo_count ? memo_slot(how, e) : NULL;
  if (known && known->from) return known->to;
  const pestle_expr_t* made = substitute(nest, how, e);
  if (e->id < how->memo_count) memoise(nest, how, e, made);
  return made;
}

typedef struct visitor_t {
  uint8_t* seen;
  void (*visit)(void* user, const pestle_expr_t* e);
  void* user;
} visitor_t;

static void visit_expr(visitor_t* v, const pestle_expr_t* e);

static void visit_affine(visitor_t* v, const pestle_affine_t* a) {
  for (uint32_t i = 0; i < a->count; ++i) {
    if (a->terms[i].atom->affine) visit_affine(v, a->terms[i].atom->affine);
    if (a->terms[i].atom->value) visit_expr(v, a->terms[i].atom->value);
  }
}

static void visit_expr(visitor_t* v, const pestle_expr_t* e) {
  if (v->seen[e->id]) return;
  v->seen[e->id] = 1;
  for (int i = 0; i < 3; ++i) {
    if (e->args[i]) visit_expr(v, e->args[i]);
  }
  if (e->affine) visit_affine(v, e->affine);
  if (e->guard) visit_expr(v, e->guard);
  for (uint32_t i = 0; i < e->index_count; ++i)
    visit_affine(v, e->index[i]);
  if (e->kind == PESTLE_EXPR_READ) v->visit(v->user, e);
}

pestle_status_t pestle_expr_visit_reads(
    pestle_nest_t* nest, const pestle_expr_t* e,
    void (*visit)(void* user, const pestle_expr_t* e), void* user) {
  pestle_arena_mark_t mark = pestle_arena_mark(nest->arena);
  visitor_t v = {.visit = visit, .user = user};
  v.seen = pestle_arena_alloc_zero(nest->arena, nest->expr_count + 1, 1);
  if (!v.seen) return PESTLE_ERROR(OUT_OF_MEMORY, "visiting a kernel's reads");
  visit_expr(&v, e);
  pestle_arena_rewind(nest->arena, mark);
  return NULL;
}

void pestle_nest_visit_values(pestle_nest_t* nest, const pestle_nest_stage_t* s,
                              void (*visit)(void* user, const pestle_expr_t* e),
                              void* user) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_status_t status =
        pestle_expr_visit_reads(nest, s->values[v], visit, user);
    if (status) pestle_nest_fail(nest, status);
  }
}

void pestle_expr_visit_with(pestle_nest_t* nest, uint8_t* seen,
                            const pestle_expr_t* e,
                            void (*visit)(void* user, const pestle_expr_t* e),
                            void* user) {
  (void)nest;
  visitor_t v = {.seen = seen, .visit = visit, .user = user};
  visit_expr(&v, e);
}

void pestle_nest_visit_stage(pestle_nest_t* nest, uint8_t* seen,
                             const pestle_nest_stage_t* s,
                             void (*visit)(void* user, const pestle_expr_t* e),
                             void* user) {
  for (uint32_t v = 0; v < s->value_count; ++v) {
    pestle_expr_visit_with(nest, seen, s->values[v], visit, user);
    if (!s->is_reduction) continue;
    pestle_expr_visit_with(nest, seen, s->inits[v], visit, user);
    if (!s->combine) continue;
    pestle_expr_visit_with(nest, seen, s->combine[v], visit, user);
  }
}

static void mark_tensor(void* user, const pestle_expr_t* e) {
  ((uint8_t*)user)[e->i] = 1;
}

void pestle_expr_mark_tensors(pestle_nest_t* nest, uint8_t* seen,
                              const pestle_expr_t* e, uint8_t* out_used) {
  pestle_expr_visit_with(nest, seen, e, mark_tensor, out_used);
}

// --- Names ---

typedef bool (*taken_fn_t)(const pestle_nest_t* nest, const char* name,
                           int32_t scope);

static bool stage_taken(const pestle_nest_t* nest, const char* name,
                        int32_t scope) {
  (void)scope;
  return pestle_nest_find_stage(nest, name) >= 0;
}

static bool axis_taken(const pestle_nest_t* nest, const char* name,
                       int32_t scope) {
  return scope >= 0 && pestle_nest_find_axis(nest, (uint32_t)scope, name) >= 0;
}

static bool tensor_taken(const pestle_nest_t* nest, const char* name,
                         int32_t scope) {
  (void)scope;
  return pestle_nest_find_tensor(nest, name) >= 0;
}

static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

enum { LONGEST_NAME = 64 };

static bool is_identifier(const char* name) {
  if (!*name || (*name >= '0' && *name <= '9')) return false;
  size_t n = 0;
  while (name_char(name[n]))
    ++n;
  return !name[n] && n <= LONGEST_NAME;
}

// |wish| as it is when it can be, else an identifier made from it.
static const char* unique_name(pestle_nest_t* nest, const char* wish,
                               taken_fn_t taken, int32_t scope) {
  enum { SUFFIX = 12 };
  if (is_identifier(wish) && !taken(nest, wish, scope)) return wish;
  char* name = pestle_arena_alloc(nest->arena, LONGEST_NAME + SUFFIX + 2, 1);
  if (!name) {
    pestle_nest_fail_memory(nest);
    return "";
  }
  size_t n = 0;
  if (!*wish || (*wish >= '0' && *wish <= '9')) name[n++] = '_';
  for (; *wish && n < LONGEST_NAME; ++wish)
    name[n++] = name_char(*wish) ? *wish : '_';
  name[n] = '\0';
  for (unsigned i = 2; taken(nest, name, scope); ++i) {
    snprintf(name + n, SUFFIX, "_%u", i);
  }
  return name;
}

int32_t pestle_nest_find_stage(const pestle_nest_t* nest, const char* name) {
  for (size_t i = 0; i < nest->stages.size; ++i) {
    if (!strcmp(nest->stages.data[i].name, name)) return (int32_t)i;
  }
  return -1;
}

int32_t pestle_nest_find_axis(const pestle_nest_t* nest, uint32_t stage,
                              const char* name) {
  for (size_t i = nest->axes.size; i-- > 0;) {
    const pestle_nest_axis_t* a = &nest->axes.data[i];
    if (a->stage == (int32_t)stage && !strcmp(a->name, name)) {
      return (int32_t)i;
    }
  }
  return -1;
}

int32_t pestle_nest_find_tensor(const pestle_nest_t* nest, const char* name) {
  for (size_t i = 0; i < nest->tensors.size; ++i) {
    if (!strcmp(nest->tensors.data[i].name, name)) return (int32_t)i;
  }
  return -1;
}

// --- Tensors, axes, stages ---

uint32_t pestle_nest_add_tensor(pestle_nest_t* nest, const char* name,
                                pestle_tensor_kind_t kind, uint32_t slot,
                                const pestle_type_t* type) {
  pestle_nest_tensor_t t = {.name = unique_name(nest, name, tensor_taken, 0),
                            .type = *type,
                            .kind = (uint8_t)kind,
                            .slot = slot,
                            .stage = -1,
                            .alias = -1};
  t.scope =
      kind == PESTLE_TENSOR_STAGE ? PESTLE_SCOPE_NONE : PESTLE_SCOPE_GLOBAL;
  if (!pestle_vec_push(&nest->tensors, t)) {
    pestle_nest_fail_memory(nest);
    return 0;
  }
  return (uint32_t)nest->tensors.size - 1;
}

uint32_t pestle_nest_add_axis(pestle_nest_t* nest, const char* name,
                              int32_t stage, bool reduce, int64_t extent) {
  pestle_nest_axis_t a = {.name = unique_name(nest, name, axis_taken, stage),
                          .stage = stage,
                          .reduce = reduce,
                          .extent = extent,
                          .full_extent = extent,
                          .parent = -1,
                          .block_axis = -1,
                          .outer = -1,
                          .inner = -1};
  if (!pestle_vec_push(&nest->axes, a)) {
    pestle_nest_fail_memory(nest);
    return 0;
  }
  return (uint32_t)nest->axes.size - 1;
}

uint32_t pestle_nest_add_stage(pestle_nest_t* nest, const char* name,
                               const pestle_type_t* domain) {
  static const char* const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  name = unique_name(nest, name, stage_taken, 0);
  pestle_nest_stage_t s = {.name = name,
                           .reduce = PESTLE_OP_COUNT,
                           .at_stage = -1,
                           .at_axis = -1,
                           .value_count = 1};
  int32_t id = (int32_t)nest->stages.size;
  for (int32_t d = 0; d < domain->rank; ++d) {
    s.roots[s.root_count++] =
        pestle_nest_add_axis(nest, names[d & 7], id, false, domain->dims[d]);
  }
  s.map_count = s.root_count;
  memcpy(s.order, s.roots, sizeof(s.order));
  s.order_count = s.root_count;
  s.values = PESTLE_ARENA_ARRAY(nest->arena, const pestle_expr_t*, 1);
  s.tensors = PESTLE_ARENA_ARRAY(nest->arena, uint32_t, 1);
  s.write_index =
      PESTLE_ARENA_ARRAY(nest->arena, const pestle_affine_t* const*, 1);
  if (!s.values || !s.tensors || !s.write_index ||
      !pestle_vec_push(&nest->stages, s)) {
    pestle_nest_fail_memory(nest);
    return 0;
  }
  s.write_index[0] = NULL;
  s.tensors[0] =
      pestle_nest_add_tensor(nest, name, PESTLE_TENSOR_STAGE, 0, domain);
  if (!nest->failed) nest->tensors.data[s.tensors[0]].stage = id;
  return (uint32_t)id;
}
