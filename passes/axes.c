// SPDX-License-Identifier: Apache-2.0
#include "passes/axes.h"

enum { MOST_VIEWS = 32 };  // that one trace goes through

// --- Atoms ---

static uint8_t new_atom(pestle_axes_t* t, int64_t extent, bool fixed) {
  if (t->count + 1 >= PESTLE_AXES_ATOMS || extent < 1) t->full = true;
  if (t->full) return 0;
  uint8_t atom = ++t->count;
  t->atoms[atom].extent = extent;
  t->atoms[atom].fixed = fixed;
  return atom;
}

static void push(pestle_axes_t* t, pestle_axis_t* axis, uint8_t atom) {
  if (axis->count == PESTLE_AXES_LIST) t->full = true;
  if (!t->full) axis->atoms[axis->count++] = atom;
}

pestle_axis_t pestle_axes_new(pestle_axes_t* t, int64_t extent, bool fixed) {
  pestle_axis_t axis = {.count = 0};
  if (extent != 1) push(t, &axis, new_atom(t, extent, fixed));
  return axis;
}

void pestle_axes_of(pestle_axes_t* t, const pestle_type_t* type, bool fixed,
                    pestle_axes_list_t* out) {
  out->rank = type->rank;
  for (int32_t i = 0; i < type->rank; ++i) {
    out->axis[i] = pestle_axes_new(t, type->dims[i], fixed);
  }
}

static uint8_t find(const pestle_axes_t* t, uint8_t atom) {
  while (t->atoms[atom].same)
    atom = t->atoms[atom].same;
  return atom;
}

static void push_whole(pestle_axes_t* t, pestle_axis_t* axis, uint8_t atom) {
  atom = find(t, atom);
  if (!t->atoms[atom].outer) {
    push(t, axis, atom);
    return;
  }
  push_whole(t, axis, t->atoms[atom].outer);
  push_whole(t, axis, t->atoms[atom].inner);
}

void pestle_axes_append(pestle_axes_t* t, pestle_axis_t* axis,
                        const pestle_axis_t* more) {
  for (uint8_t i = 0; i < more->count; ++i)
    push_whole(t, axis, more->atoms[i]);
}

void pestle_axes_expand(pestle_axes_t* t, pestle_axis_t* axis) {
  pestle_axis_t whole = {.count = 0};
  pestle_axes_append(t, &whole, axis);
  *axis = whole;
}

int64_t pestle_axes_extent(const pestle_axes_t* t, const pestle_axis_t* axis) {
  int64_t extent = 1;
  for (uint8_t i = 0; i < axis->count; ++i)
    extent *= t->atoms[axis->atoms[i]].extent;
  return extent;
}

static int index_of(const pestle_axis_t* axis, uint8_t atom) {
  for (uint8_t i = 0; i < axis->count; ++i) {
    if (axis->atoms[i] == atom) return i;
  }
  return -1;
}

size_t pestle_axes_common(pestle_axes_t* t, pestle_axis_t* axis,
                          pestle_axis_t* of) {
  size_t count = 0;
  pestle_axes_expand(t, axis);
  pestle_axes_expand(t, of);
  for (uint8_t i = 0; i < axis->count; ++i)
    count += index_of(of, axis->atoms[i]) >= 0;
  return count;
}

// --- Equations ---

// The innermost whole atom, or 0.
static uint8_t innermost(pestle_axes_t* t, pestle_axis_t* axis) {
  while (axis->count && !t->full) {
    uint8_t* last = &axis->atoms[axis->count - 1];
    *last = find(t, *last);
    uint8_t inner = t->atoms[*last].inner;
    if (!inner) return *last;
    *last = t->atoms[*last].outer;
    push(t, axis, inner);
  }
  return 0;
}

static bool split(pestle_axes_t* t, uint8_t atom, int64_t inner) {
  int64_t extent = t->atoms[atom].extent;
  if (extent % inner) return false;
  uint8_t outer = new_atom(t, extent / inner, t->atoms[atom].fixed);
  uint8_t last = new_atom(t, inner, t->atoms[atom].fixed);
  if (t->full) return false;
  t->atoms[atom].outer = outer;
  t->atoms[atom].inner = last;
  return true;
}

bool pestle_axes_equate(pestle_axes_t* t, pestle_axis_t a, pestle_axis_t b) {
  for (;;) {
    uint8_t x = innermost(t, &a), y = innermost(t, &b);
    if (!x || !y) return !x && !y && !t->full;
    int64_t left = t->atoms[x].extent, right = t->atoms[y].extent;
    if (left > right) {
      if (!split(t, x, right)) return false;
    } else if (left < right) {
      if (!split(t, y, left)) return false;
    } else {
      bool fixed = t->atoms[x].fixed;
      if (x != y && fixed && t->atoms[y].fixed) return false;
      if (x != y) t->atoms[fixed ? y : x].same = fixed ? x : y;
      --a.count, --b.count;
    }
  }
}

// --- Views ---

static bool step_reshape(pestle_axes_t* t, const pestle_type_t* from,
                         pestle_axes_list_t* axes) {
  pestle_axes_t before = *t;
  pestle_axes_list_t list;
  pestle_axis_t left = {.count = 0}, right = {.count = 0};
  pestle_axes_of(t, from, false, &list);
  for (int32_t i = 0; i < list.rank; ++i)
    pestle_axes_append(t, &left, &list.axis[i]);
  for (int32_t i = 0; i < axes->rank; ++i)
    pestle_axes_append(t, &right, &axes->axis[i]);
  if (!pestle_axes_equate(t, left, right)) {
    *t = before;
    return false;
  }
  *axes = list;
  return true;
}

bool pestle_axes_step(pestle_axes_t* t, bool spread, bool alone,
                      pestle_value_t** value, pestle_axes_list_t* axes) {
  const pestle_node_t* n = (*value)->node;
  if (!n || (alone && (*value)->use_count != 1)) return false;
  bool moves = n->op == PESTLE_OP_TRANSPOSE;
  bool repeats = n->op == PESTLE_OP_BROADCAST_IN_DIM;
  if (!moves && !repeats && n->op != PESTLE_OP_RESHAPE) return false;
  pestle_value_t* x = pestle_node_operand(n, 0);
  const pestle_type_t* from = x->type;
  if (!pestle_type_is_static(from)) return false;
  if (repeats && !spread &&
      pestle_type_count(from) != pestle_type_count((*value)->type)) {
    return false;
  }
  if (!moves && !repeats) {
    if (!step_reshape(t, from, axes)) return false;
  } else {
    pestle_axes_list_t list = {.rank = from->rank};
    pestle_i64s_t map = moves ? PESTLE_NODE_I64S(n, permutation)
                              : PESTLE_NODE_I64S(n, broadcast_dimensions);
    for (int32_t i = 0; i < from->rank; ++i) {
      if (moves) {
        list.axis[map.data[i]] = axes->axis[i];
      } else if (from->dims[i] != 1) {
        list.axis[i] = axes->axis[map.data[i]];
      }
    }
    *axes = list;
  }
  *value = x;
  return true;
}

void pestle_axes_trace(pestle_axes_t* t, bool spread, bool alone,
                       pestle_value_t** value, pestle_axes_list_t* axes) {
  for (int i = 0; i < MOST_VIEWS; ++i) {
    if (!pestle_axes_step(t, spread, alone, value, axes)) return;
  }
}

// --- Making views ---

// One axis an atom.
static pestle_type_t type_of_atoms(const pestle_axes_t* t,
                                   const pestle_axis_t* atoms) {
  pestle_type_t type = {.rank = atoms->count};
  for (uint8_t i = 0; i < atoms->count; ++i)
    type.dims[i] = t->atoms[atoms->atoms[i]].extent;
  return type;
}

// A value's way from its axes to others: reshape, transpose, broadcast,
// reshape.
typedef struct way_t {
  pestle_axis_t have, order;  // as it lies, and as it is wanted
  pestle_axis_t wanted;       // with what is repeated
  int64_t perm[PESTLE_AXES_LIST], place[PESTLE_AXES_LIST];
  pestle_type_t type;
  bool moves;
} way_t;

static void plan_way(pestle_axes_t* t, const pestle_axes_list_t* axes,
                     const pestle_axes_list_t* to, bool spread, way_t* w) {
  *w = (way_t){.type.rank = to->rank};
  for (int32_t i = 0; i < axes->rank; ++i)
    pestle_axes_append(t, &w->have, &axes->axis[i]);
  for (int32_t i = 0; i < to->rank; ++i) {
    pestle_axis_t axis = to->axis[i];
    pestle_axes_expand(t, &axis);
    bool none = !spread && !pestle_axes_common(t, &axis, &w->have);
    w->type.dims[i] = none ? 1 : pestle_axes_extent(t, &axis);
    for (uint8_t j = 0; j < axis.count && !none; ++j) {
      int at = index_of(&w->have, axis.atoms[j]);
      if (at >= 0) {
        w->moves |= at != w->order.count;
        w->perm[w->order.count] = at;
        w->place[w->order.count] = w->wanted.count;
        push(t, &w->order, axis.atoms[j]);
      }
      push(t, &w->wanted, axis.atoms[j]);
    }
  }
}

// Where elements move anyway, axes of one element that both sides have first or
// last stay there.
static void pair_ones(pestle_axes_t* t, const way_t* w,
                      pestle_axes_list_t* axes, pestle_axes_list_t* to) {
  int32_t left = axes->rank < to->rank ? axes->rank : to->rank;
  for (int end = 0; end < 2; ++end) {
    for (int32_t k = 0; left > 0; ++k, --left) {
      int32_t i = end ? axes->rank - 1 - k : k;
      int32_t j = end ? to->rank - 1 - k : k;
      if (axes->axis[i].count || w->type.dims[j] != 1) break;
      pestle_axis_t one = {{new_atom(t, 1, true)}, 1};
      axes->axis[i] = to->axis[j] = one;
    }
  }
}

pestle_value_t* pestle_axes_arrange(pestle_axes_t* t, pestle_formula_t* f,
                                    pestle_value_t* value,
                                    const pestle_axes_list_t* axes,
                                    const pestle_axes_list_t* to, bool spread) {
  way_t w;
  plan_way(t, axes, to, spread, &w);
  if (w.moves) {
    pestle_axes_list_t from = *axes, with = *to;
    pair_ones(t, &w, &from, &with);
    plan_way(t, &from, &with, spread, &w);
  }
  if (t->full || w.order.count != w.have.count ||
      w.wanted.count > PESTLE_MAX_RANK) {
    return NULL;
  }
  pestle_type_t atoms = type_of_atoms(t, &w.have);
  pestle_type_t all = type_of_atoms(t, &w.wanted);
  value = pestle_f_reshape_to(f, value, &atoms);
  value = pestle_f_transpose(f, value, w.perm);
  value = pestle_f_broadcast_to(f, value, &all, w.place);
  return pestle_f_reshape_to(f, value, &w.type);
}
