// SPDX-License-Identifier: Apache-2.0
// Elements that stay in registers while lists of updates change them: a lane has one of one
// place. Some updates are loaded at once, whatever of them is the lane's.
#include "codegen/direct/direct_scatter_lists.h"

enum { AT_A_TIME = 8 };

typedef pestle_scatter_lists_t lists_t;

static pk_t op(lists_t* l, pestle_op_t o, pk_t a, pk_t b) {
  return pestle_direct_op(l->d, o, a, b);
}

static pk_t number(lists_t* l, int64_t value) {
  return pestle_direct_index(l->d, value);
}

bool pestle_scatter_keeps(const lists_t* l, int64_t runs) {
  const pestle_scatter_t* s = l->s;
  return s->map.count == 1 && !s->window.count &&
         s->count <= PESTLE_SCATTER_KEPT && s->range <= l->lanes / l->across &&
         runs <= l->parts;
}

void pestle_scatter_fetch_kept(lists_t* l, pestle_scatter_position_t from) {
  pestle_direct_t* d = l->d;
  pestle_scatter_t* s = l->s;
  int64_t axis = s->map.data[0], places = s->input->dims[axis];
  pk_t x = op(l, PESTLE_OP_REMAINDER, l->t, number(l, l->across));
  pk_t y = op(l, PESTLE_OP_DIVIDE, l->t, number(l, l->across));
  pk_t place = pestle_kir_madi(d->k, s->low, s->range, y);
  l->element = pestle_kir_madi(d->k, l->part, l->across, x);
  l->owns = op(l, PESTLE_OP_LT, l->element, number(l, l->elements));
  l->owns = op(l, PESTLE_OP_AND, l->owns,
               op(l, PESTLE_OP_LT, y, number(l, s->range)));
  l->owns = op(l, PESTLE_OP_AND, l->owns,
               op(l, PESTLE_OP_LT, place, number(l, places)));
  l->element = op(l, PESTLE_OP_MINIMUM, l->element, number(l, l->elements - 1));
  place = op(l, PESTLE_OP_MINIMUM, place, number(l, places - 1));
  l->own = pestle_kir_cast(d->k, place, PESTLE_I32);
  from.input = pestle_kir_madi(d->k, place, s->input_stride[axis], from.input);
  l->input = pestle_scatter_move_all(s, from, &l->inner, l->element).input;
  for (uint32_t c = 0; c < s->count; ++c) {
    pestle_dtype_t dtype = pestle_node_operand(d->node, c)->type->dtype;
    l->kept[c] = pestle_direct_variable(d, "kept", dtype, 1);
    pestle_direct_set(d, l->kept[c],
                      pestle_direct_load(d, s->results[c], l->input));
  }
}

pestle_status_t pestle_scatter_change_kept(lists_t* l, pk_t count) {
  pestle_direct_t* d = l->d;
  const pestle_scatter_t* s = l->s;
  pk_t mine[AT_A_TIME], kept[PESTLE_SCATTER_KEPT];
  pk_t changes[AT_A_TIME][PESTLE_SCATTER_KEPT];
  int64_t most = pestle_scatter_reach(&l->outer, false) +
                 pestle_scatter_reach(&s->batch, false);
  pk_t last = op(l, PESTLE_OP_SUBTRACT, count, number(l, 1));
  last = op(l, PESTLE_OP_MAXIMUM, last, number(l, 0));
  pk_t first = pestle_kir_for(d->k, "i", number(l, 0), count, AT_A_TIME,
                              PESTLE_KIR_SERIAL);
  for (int64_t j = 0; j < AT_A_TIME; ++j) {
    pk_t i = op(l, PESTLE_OP_ADD, first, number(l, j));
    mine[j] = op(l, PESTLE_OP_LT, i, count);
    i = op(l, PESTLE_OP_MINIMUM, i, last);
    pk_t place = pestle_direct_load(d, l->list[2], i);
    mine[j] = op(l, PESTLE_OP_AND, mine[j], op(l, PESTLE_OP_EQ, place, l->own));
    // What is others' is not read: all lanes read one place instead.
    pestle_scatter_position_t at = {
        number(l, 0), pestle_scatter_entry(l, 1, i, most), number(l, 0)};
    at.update = pestle_direct_select(d, mine[j], at.update, number(l, 0));
    at = pestle_scatter_move_all(l->s, at, &l->inner, l->element);
    for (uint32_t c = 0; c < s->count; ++c)
      changes[j][c] = pestle_direct_load(d, s->changes[c], at.update);
  }
  for (uint32_t c = 0; c < s->count; ++c)
    kept[c] = pestle_direct_get(d, l->kept[c]);
  for (int j = 0; j < AT_A_TIME; ++j) {
    pk_t arguments[2 * PESTLE_SCATTER_KEPT], made[PESTLE_SCATTER_KEPT];
    for (uint32_t c = 0; c < s->count; ++c) {
      arguments[c] = kept[c];
      arguments[s->count + c] = changes[j][c];
    }
    PESTLE_TRY(pestle_direct_region(d, 0, arguments, made));
    for (uint32_t c = 0; c < s->count; ++c)
      kept[c] = pestle_direct_select(d, mine[j], made[c], kept[c]);
  }
  for (uint32_t c = 0; c < s->count; ++c)
    pestle_direct_set(d, l->kept[c], kept[c]);
  pestle_kir_end(d->k);
  return NULL;
}

void pestle_scatter_store_kept(lists_t* l) {
  pestle_direct_t* d = l->d;
  pestle_kir_if(d->k, l->owns);
  for (uint32_t c = 0; c < l->s->count; ++c) {
    pestle_direct_store(d, l->s->results[c], l->input,
                        pestle_direct_get(d, l->kept[c]));
  }
  pestle_kir_end(d->k);
}
