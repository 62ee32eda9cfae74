// SPDX-License-Identifier: Apache-2.0
// Arrays as things that are counted: making, references, freeing, getters.
#include "lazy/lazy.h"

#include "base/status_copy.h"
#include "runtime/owned.h"

// --- Making ---

pestle_array_t* pestle_array_make(pestle_lazy_t* lazy, pestle_device_t* device,
                                  pestle_node_state_t state, size_t extra) {
  size_t size = sizeof(pestle_array_t) + extra;
  pestle_array_t* array = pestle_alloc(lazy->allocator, size);
  if (!array) return NULL;
  memset(array, 0, offsetof(pestle_array_t, type));
  atomic_init(&array->refs, PESTLE_REF_HANDLE);
  atomic_init(&array->state, (uint32_t)state);
  array->lazy = lazy;
  array->device = device;
  array->block_size = size;
  array->op = PESTLE_LAZY_NONE;
  return array;
}

void pestle_array_keep_context(pestle_array_t* array) {
  if (pestle_array_flags(array) & PESTLE_NODE_KEEPS) return;
  pestle_context_retain(array->lazy->context);
  atomic_fetch_or_explicit(&array->flags, PESTLE_NODE_KEEPS,
                           memory_order_relaxed);
}

pestle_status_t pestle_array_make_data(
    pestle_lazy_t* lazy, const pestle_type_t* type, pestle_buffer_t* buffer,
    uint64_t byte_offset, const int64_t* strides, pestle_array_t** out_array) {
  size_t extra = strides ? (size_t)type->rank * sizeof(int64_t) : 0;
  pestle_array_t* array = pestle_array_make(lazy, pestle_buffer_device(buffer),
                                            PESTLE_NODE_DATA, extra);
  if (!array) return PESTLE_OOM();
  pestle_type_assign(&array->type, type);
  array->buffer = buffer;
  array->byte_offset = byte_offset;
  if (extra) {
    array->strides = (int64_t*)(void*)(array + 1);
    memcpy(array->strides, strides, extra);
  }
  *out_array = array;
  return NULL;
}

// --- Freeing ---
//
// A chain of nodes may be long: what is to be freed waits in a list, not on the
// stack.

static void free_array(pestle_array_t* array, pestle_array_t** list);

// Ends |ref| of |array|, which goes to |*list| with the last. Who has the only
// reference need not tell anybody.
static void drop(pestle_array_t* array, uint64_t ref, pestle_array_t** list) {
  if (atomic_load_explicit(&array->refs, memory_order_acquire) != ref &&
      atomic_fetch_sub_explicit(&array->refs, ref, memory_order_acq_rel) !=
          ref) {
    return;
  }
  array->next = *list;
  *list = array;
}

static void free_list(pestle_array_t* list) {
  while (list) {
    pestle_array_t* array = list;
    list = array->next;
    free_array(array, &list);
  }
}

static void drop_all(pestle_array_t* const* operands, uint32_t count,
                     pestle_array_t** list) {
  for (uint32_t i = 0; i < count; ++i)
    drop(operands[i], PESTLE_REF_NODE, list);
}

// Operands and buffer come last: with them the context may end, unless |array| keeps it
// too.
static void free_array(pestle_array_t* array, pestle_array_t** list) {
  enum { FEW = 4 };
  pestle_array_t* few[FEW];
  pestle_lazy_t* lazy = array->lazy;
  uint32_t count = array->operand_count;
  bool is_small = count <= FEW;
  if (!is_small) {
    pestle_array_keep_context(array);
    drop_all(array->operands, count, list);
  } else if (count) {
    memcpy(few, array->operands, count * sizeof(*few));
  }
  uint32_t flags = pestle_array_flags(array);
  if (flags & PESTLE_NODE_HELD) atomic_fetch_sub(&lazy->held_nodes, 1);
  if (flags & PESTLE_DATA_HELD) {
    atomic_fetch_sub(&lazy->held_bytes,
                     (int64_t)pestle_type_bytes(&array->type));
  }
  if (array->parts) {
    for (uint32_t i = 0; i < array->part_count; ++i)
      pestle_buffer_release(array->parts[i]);
    pestle_dealloc(lazy->allocator, array->parts,
                   array->part_count * sizeof(*array->parts));
  }
  int64_t* lent = atomic_load_explicit(&array->lent, memory_order_relaxed);
  if (lent) {
    pestle_dealloc(lazy->allocator, lent,
                   (size_t)array->type.rank * sizeof(*lent));
  }
  pestle_status_release(array->failure);
  pestle_buffer_t* buffer = array->buffer;
  pestle_context_t* context = flags & PESTLE_NODE_KEEPS ? lazy->context : NULL;
  pestle_dealloc(lazy->allocator, array, array->block_size);
  if (is_small) drop_all(few, count, list);
  pestle_buffer_release(buffer);
  pestle_context_release(context);
}

void pestle_array_hold(pestle_array_t* array) {
  atomic_fetch_add_explicit(&array->refs, PESTLE_REF_NODE,
                            memory_order_relaxed);
}

void pestle_array_unhold(pestle_array_t* array) {
  pestle_array_t* list = NULL;
  drop(array, PESTLE_REF_NODE, &list);
  free_list(list);
}

void pestle_array_drop_operands(pestle_array_t** operands, uint32_t count) {
  pestle_array_t* list = NULL;
  drop_all(operands, count, &list);
  free_list(list);
}

void pestle_array_retain(pestle_array_t* array) {
  if (!array) return;
  atomic_fetch_add_explicit(&array->refs, PESTLE_REF_HANDLE,
                            memory_order_relaxed);
}

// The last handle goes while nodes read it: it is held for them alone from now on,
// which is counted before the handle is gone, since then another thread may free
// it. What a capture is made of is no work that waits, and constants and numbers are its
// parts too.
static void count_held(pestle_array_t* array) {
  uint32_t flag = PESTLE_NODE_HELD;
  pestle_node_state_t state = pestle_array_node_state(array);
  if (state == PESTLE_NODE_TRACED ||
      (state != PESTLE_NODE_DATA &&
       pestle_array_flags(array) & (PESTLE_NODE_PURE | PESTLE_NODE_WEAK))) {
    return;
  }
  if (state == PESTLE_NODE_DATA) {
    flag = PESTLE_DATA_HELD;
    atomic_fetch_add(&array->lazy->held_bytes,
                     (int64_t)pestle_type_bytes(&array->type));
  } else {
    atomic_fetch_add(&array->lazy->held_nodes, 1);
  }
  atomic_fetch_or_explicit(&array->flags, flag, memory_order_relaxed);
}

void pestle_array_release(pestle_array_t* array) {
  if (!array) return;
  uint64_t refs = atomic_load_explicit(&array->refs, memory_order_relaxed);
  if ((uint32_t)refs == 1 && refs >= PESTLE_REF_NODE) count_held(array);
  pestle_array_t* list = NULL;
  drop(array, PESTLE_REF_HANDLE, &list);
  free_list(list);
}

// --- Looking ---

pestle_type_t pestle_array_type(const pestle_array_t* array) {
  return array ? array->type : (pestle_type_t){.dtype = PESTLE_NONE};
}

const pestle_type_t* pestle_array_type_of(const pestle_array_t* array) {
  return array ? &array->type : NULL;
}

pestle_device_t* pestle_array_device(const pestle_array_t* array) {
  if (!array) return NULL;
  // A number that adapts may lie where it was first used.
  return pestle_array_node_state(array) == PESTLE_NODE_DATA
             ? pestle_buffer_device(array->buffer)
             : array->device;
}

static pestle_array_state_t state_of_data(const pestle_array_t* array) {
  if (array->buffer && pestle_buffer_is_made(array->buffer)) {
    return PESTLE_ARRAY_DATA;
  }
  if (!pestle_buffer_is_ready(array->buffer)) return PESTLE_ARRAY_PENDING;
  pestle_status_t status = pestle_buffer_wait(array->buffer);  // does not wait
  pestle_array_state_t state = status ? PESTLE_ARRAY_FAILED : PESTLE_ARRAY_DATA;
  pestle_status_release(status);
  return state;
}

pestle_array_state_t pestle_array_state(const pestle_array_t* array) {
  if (!array) return PESTLE_ARRAY_FAILED;
  switch (pestle_array_node_state(array)) {
    case PESTLE_NODE_DATA:
      return state_of_data(array);
    case PESTLE_NODE_LAZY:
      return PESTLE_ARRAY_LAZY;
    case PESTLE_NODE_CLAIMED:
      return PESTLE_ARRAY_PENDING;
    case PESTLE_NODE_TRACED:
      return PESTLE_ARRAY_TRACED;
    case PESTLE_NODE_FAILED:
      break;
  }
  return PESTLE_ARRAY_FAILED;
}

bool pestle_array_is_ready(const pestle_array_t* array) {
  pestle_array_state_t state = pestle_array_state(array);
  return array && (state == PESTLE_ARRAY_DATA || state == PESTLE_ARRAY_FAILED);
}

bool pestle_array_is_view(const pestle_array_t* array) {
  if (!array || pestle_array_node_state(array) != PESTLE_NODE_DATA) {
    return false;
  }
  return array->strides || array->byte_offset ||
         pestle_buffer_size(array->buffer) != pestle_type_bytes(&array->type);
}

pestle_buffer_t* pestle_array_storage(const pestle_array_t* array) {
  if (!array || pestle_array_node_state(array) != PESTLE_NODE_DATA) return NULL;
  return array->buffer;
}
