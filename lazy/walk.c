// SPDX-License-Identifier: Apache-2.0
// The walk behind the arrays that an evaluation is for: it claims their nodes, and
// writes the graph down as a key. Two graphs with one key are one computation:
// the key holds ops, attributes, types of leaves, and which nodes are wanted, but
// neither addresses nor who made it. A walk that meets a node of another evaluation
// claims nothing.
//
// Each value of a key has a number, in the order in which they stand there:
//   LEAF     kind | donated, type
//   NODE     kind | op << 8, operands, words, the operands' numbers, the words
//   GET      kind, the number of the op, which of its results
//   OUTPUTS  kind, how many, their numbers
#include "base/status_copy.h"
#include "lazy/lazy.h"

// --- Walks ---

pestle_walk_t* pestle_walk_take(pestle_lazy_t* lazy) {
  pestle_walk_t* walk = lazy->spare;
  if (walk) {
    lazy->spare = walk->next;
    return walk;
  }
  walk = pestle_alloc_zero(lazy->allocator, sizeof(*walk));
  if (!walk) return NULL;
  walk->lazy = lazy;
  pestle_vec_init(&walk->stack, lazy->allocator);
  pestle_vec_init(&walk->nodes, lazy->allocator);
  pestle_vec_init(&walk->leaves, lazy->allocator);
  pestle_vec_init(&walk->outputs, lazy->allocator);
  pestle_vec_init(&walk->key, lazy->allocator);
  pestle_vec_init(&walk->leaf_at, lazy->allocator);
  pestle_vec_init(&walk->dense, lazy->allocator);
  pestle_vec_init(&walk->donated, lazy->allocator);
  pestle_vec_init(&walk->dropped, lazy->allocator);
  pestle_vec_init(&walk->views, lazy->allocator);
  pestle_vec_init(&walk->results, lazy->allocator);
  return walk;
}

// A walk of so many words is not kept: a graph of that size is made anew each time
// for other reasons.
enum { MOST_WORDS_KEPT = 1 << 18 };

void pestle_walk_give(pestle_walk_t* walk) {
  if (walk->key.capacity > MOST_WORDS_KEPT) {
    pestle_walk_destroy(walk);
    return;
  }
  walk->next = walk->lazy->spare;
  walk->lazy->spare = walk;
}

void pestle_walk_destroy(pestle_walk_t* walk) {
  pestle_vec_deinit(&walk->stack);
  pestle_vec_deinit(&walk->nodes);
  pestle_vec_deinit(&walk->leaves);
  pestle_vec_deinit(&walk->outputs);
  pestle_vec_deinit(&walk->key);
  pestle_vec_deinit(&walk->leaf_at);
  pestle_vec_deinit(&walk->dense);
  pestle_vec_deinit(&walk->donated);
  pestle_vec_deinit(&walk->dropped);
  pestle_vec_deinit(&walk->views);
  pestle_vec_deinit(&walk->results);
  pestle_dealloc(walk->lazy->allocator, walk, sizeof(*walk));
}

static void clear(pestle_walk_t* walk) {
  pestle_vec_clear(&walk->stack);
  pestle_vec_clear(&walk->nodes);
  pestle_vec_clear(&walk->leaves);
  pestle_vec_clear(&walk->outputs);
  pestle_vec_clear(&walk->key);
  pestle_vec_clear(&walk->leaf_at);
  pestle_vec_clear(&walk->dense);
  pestle_vec_clear(&walk->donated);
  pestle_vec_clear(&walk->dropped);
  walk->values = 0;
  walk->operand_count = 0;
  walk->busy = NULL;
}

// --- Writing ---

static bool put(pestle_walk_t* walk, uint32_t word) {
  return pestle_vec_push(&walk->key, word);
}

// An argument of |type| whose elements are |leaf|'s.
static bool write_argument(pestle_walk_t* walk, pestle_array_t* leaf,
                           const pestle_type_t* type, bool is_dense) {
  leaf->number = walk->values++;
  return pestle_vec_push(&walk->leaf_at, walk->key.size) &&
         pestle_vec_push(&walk->leaves, leaf) &&
         pestle_vec_push(&walk->dense, is_dense) &&
         put(walk, PESTLE_KEY_LEAF) && pestle_words_put_type(&walk->key, type);
}

// Whether |view|'s elements lie one behind the other, once axes that repeat are left
// out and the others are put into the order of their strides: the dims that they lie
// in, and which axis of the view each is.
static bool find_dense(const pestle_array_t* view, pestle_type_t* out_type,
                       int64_t* out_axes) {
  *out_type = (pestle_type_t){.dtype = view->type.dtype};
  for (int32_t i = 0; i < view->type.rank; ++i) {
    if (!view->strides[i] || view->type.dims[i] == 1) continue;
    int32_t at = out_type->rank++;
    for (; at && view->strides[out_axes[at - 1]] < view->strides[i]; --at)
      out_axes[at] = out_axes[at - 1];
    out_axes[at] = i;
  }
  int64_t stride = 1;
  for (int32_t i = out_type->rank - 1; i >= 0; --i) {
    out_type->dims[i] = view->type.dims[out_axes[i]];
    if (view->strides[out_axes[i]] != stride) return false;
    stride *= out_type->dims[i];
  }
  return true;
}

// A transpose or a broadcast of dense data is an op on it, which fuses: the run would
// copy what has strides.
static bool write_dense(pestle_walk_t* walk, pestle_array_t* leaf,
                        const pestle_type_t* type, const int64_t* axes) {
  if (!write_argument(walk, leaf, type, true)) return false;
  uint32_t argument = leaf->number;
  leaf->number = walk->values++;
  pestle_attr_t attr = {PESTLE_ATTR_broadcast_dimensions,
                        PESTLE_ATTR_KIND_I64S,
                        {.i64s = {axes, (size_t)type->rank}}};
  if (!put(walk, PESTLE_KEY_NODE | (uint32_t)PESTLE_OP_BROADCAST_IN_DIM << 8) ||
      !put(walk, 1) || !put(walk, 0) || !put(walk, argument)) {
    return false;
  }
  size_t at = walk->key.size;
  pestle_node_parts_t parts = {
      .attrs = &attr, .attr_count = 1, .type = &leaf->type};
  if (!pestle_spec_write(&walk->key, &parts)) return false;
  walk->key.data[at - 2] = (uint32_t)(walk->key.size - at);
  return true;
}

static bool write_leaf(pestle_walk_t* walk, pestle_array_t* leaf) {
  pestle_type_t type;
  int64_t axes[PESTLE_MAX_RANK];
  // A capture's arguments have the types that its caller sees.
  if (!walk->traces && leaf->strides && find_dense(leaf, &type, axes)) {
    return write_dense(walk, leaf, &type, axes);
  }
  return write_argument(walk, leaf, &leaf->type, false);
}

static bool write_node(pestle_walk_t* walk, pestle_array_t* node) {
  node->number = walk->values++;
  if (node->op == PESTLE_LAZY_GET) {
    return put(walk, PESTLE_KEY_GET) && put(walk, node->operands[0]->number) &&
           put(walk, node->spec[0]);
  }
  size_t operands = node->operand_count, words = node->spec_words;
  size_t size = 3 + operands + words;
  if (!pestle_vec_reserve(&walk->key, size)) return false;
  uint32_t* at = walk->key.data + walk->key.size;
  at[0] = PESTLE_KEY_NODE | (uint32_t)node->op << 8;
  at[1] = node->operand_count;
  at[2] = node->spec_words;
  for (size_t i = 0; i < operands; ++i)
    at[3 + i] = node->operands[i]->number;
  if (words) memcpy(at + 3 + operands, node->spec, words * sizeof(*at));
  walk->key.size += size;
  return true;
}

// --- Walking ---

// A result of an op that another evaluation made, while nobody asked for it.
static void settle_get(pestle_array_t* get) {
  pestle_array_t* tuple = get->operands[0];
  uint32_t index = get->spec[0];
  get->buffer = tuple->parts[index];
  tuple->parts[index] = NULL;
  pestle_array_set_state(get, PESTLE_NODE_DATA);
}

// A number, as a node without operands.
static bool write_constant(pestle_walk_t* walk, pestle_array_t* number) {
  pestle_elements_t value = {.type = number->type,
                             .data = pestle_buffer_host_data(number->buffer),
                             .size = pestle_type_bytes(&number->type),
                             .splat = true};
  pestle_attr_t attr = {
      PESTLE_ATTR_value, PESTLE_ATTR_KIND_ELEMENTS, {.elements = &value}};
  number->number = walk->values++;
  if (!put(walk, PESTLE_KEY_NODE | (uint32_t)PESTLE_OP_CONSTANT << 8) ||
      !put(walk, 0) || !put(walk, 0)) {
    return false;
  }
  size_t at = walk->key.size;
  pestle_node_parts_t parts = {.attrs = &attr, .attr_count = 1};
  if (!pestle_spec_write(&walk->key, &parts)) return false;
  walk->key.data[at - 1] = (uint32_t)(walk->key.size - at);
  return true;
}

static bool is_number(const pestle_array_t* array) {
  return pestle_array_flags(array) & PESTLE_NODE_WEAK && !array->type.rank &&
         !array->byte_offset && pestle_buffer_is_ready(array->buffer) &&
         pestle_buffer_host_data(array->buffer);
}

// In a capture nodes that are made of its arguments, of constants or of numbers are
// written; all else is data, or will be, or a value of the capture around it.
static pestle_status_t visit_traced(pestle_walk_t* walk,
                                    pestle_array_t* array) {
  pestle_node_state_t state = pestle_array_node_state(array);
  if (state == PESTLE_NODE_FAILED) return pestle_status_retain(array->failure);
  if (state == PESTLE_NODE_TRACED && array->capture > walk->traces) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "a traced array of a later capture is read");
  }
  bool written = true;
  if ((state == PESTLE_NODE_TRACED && array->capture == walk->traces) ||
      (state != PESTLE_NODE_DATA && state != PESTLE_NODE_TRACED &&
       pestle_array_flags(array) & (PESTLE_NODE_PURE | PESTLE_NODE_WEAK))) {
    written = pestle_vec_push(&walk->stack, (pestle_walk_frame_t){array, 0});
  } else if (state == PESTLE_NODE_DATA && is_number(array)) {
    written = write_constant(walk, array);
  } else {
    written = write_leaf(walk, array);
  }
  return written ? NULL : PESTLE_OOM();
}

static pestle_status_t cut_off(const char* what) {
  return PESTLE_ERROR(UNAVAILABLE,
                      "%s by a thread of the parent when fork() was called; "
                      "make the array anew in the child",
                      what);
}

// A node that another evaluation has. One of the parent of a fork() never ends: it
// begins anew here, unless the fork came while nodes were being changed.
static pestle_status_t visit_claimed(pestle_walk_t* walk,
                                     pestle_array_t* array) {
  const pestle_lazy_t* lazy = walk->lazy;
  if (array->walk > lazy->parent_walks) {
    walk->busy = array;
    return NULL;
  }
  if (lazy->is_torn) return cut_off("the array was being evaluated");
  pestle_array_set_state(array, PESTLE_NODE_LAZY);
  return NULL;
}

// Meets |array|: a leaf is written, a node goes on the stack.
static pestle_status_t visit(pestle_walk_t* walk, pestle_array_t* array) {
  pestle_node_state_t state = pestle_array_node_state(array);
  if (state == PESTLE_NODE_CLAIMED && !walk->traces) {
    PESTLE_TRY(visit_claimed(walk, array));
    if (walk->busy) return NULL;
    state = pestle_array_node_state(array);
  }
  if (pestle_array_flags(array) & PESTLE_DATA_GIVEN &&
      array->walk <= walk->lazy->parent_walks) {
    return cut_off("the array's memory was being overwritten");
  }
  array->walk = walk->lazy->walks;
  array->readers = 0;
  if (array->op == PESTLE_LAZY_GET && state == PESTLE_NODE_LAZY &&
      pestle_array_node_state(array->operands[0]) == PESTLE_NODE_DATA) {
    settle_get(array);
    state = PESTLE_NODE_DATA;
  }
  if (walk->traces) return visit_traced(walk, array);
  switch (state) {
    case PESTLE_NODE_DATA:
      return write_leaf(walk, array) ? NULL : PESTLE_OOM();
    case PESTLE_NODE_LAZY:
      pestle_array_set_state(array, PESTLE_NODE_CLAIMED);
      // On the list at once, so that unclaiming finds it; its place there is of no
      // matter until it is written.
      if (!pestle_vec_push(&walk->stack, (pestle_walk_frame_t){array, 0})) {
        pestle_array_set_state(array, PESTLE_NODE_LAZY);
        return PESTLE_OOM();
      }
      return NULL;
    case PESTLE_NODE_CLAIMED:
      break;
    case PESTLE_NODE_TRACED:
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "a traced array stands for a value of a capture and "
                          "has no elements");
    case PESTLE_NODE_FAILED:
      break;
  }
  return array->failure ? pestle_status_retain(array->failure)
                        : cut_off("the array was being evaluated");
}

// Writes the graph below |root|, operands before what reads them.
static pestle_status_t walk_from(pestle_walk_t* walk, pestle_array_t* root) {
  if (root->walk != walk->lazy->walks) PESTLE_TRY(visit(walk, root));
  uint64_t number = walk->lazy->walks;
  while (!walk->busy && walk->stack.size) {
    pestle_walk_frame_t* top = &pestle_vec_last(&walk->stack);
    pestle_array_t* node = top->node;
    // Those that were met before are done at once.
    uint32_t i = top->operand, count = node->operand_count;
    while (i < count && node->operands[i]->walk == number)
      ++node->operands[i++]->readers;
    if (i < count) {
      pestle_array_t* operand = node->operands[i];
      top->operand = i + 1;
      PESTLE_TRY(visit(walk, operand));
      ++operand->readers;
      continue;
    }
    if (!pestle_vec_push(&walk->nodes, node)) return PESTLE_OOM();
    (void)pestle_vec_pop(&walk->stack);
    walk->operand_count += count;
    if (!write_node(walk, node)) return PESTLE_OOM();
  }
  return NULL;
}

void pestle_walk_unclaim(pestle_walk_t* walk) {
  for (size_t i = 0; i < walk->donated.size; ++i) {
    atomic_fetch_and_explicit(&walk->leaves.data[walk->donated.data[i]]->flags,
                              ~(unsigned)PESTLE_DATA_GIVEN,
                              memory_order_relaxed);
  }
  for (size_t i = 0; i < walk->nodes.size; ++i)
    pestle_array_set_state(walk->nodes.data[i], PESTLE_NODE_LAZY);
  for (size_t i = 0; i < walk->stack.size; ++i)
    pestle_array_set_state(walk->stack.data[i].node, PESTLE_NODE_LAZY);
  pestle_vec_clear(&walk->nodes);
  pestle_vec_clear(&walk->stack);
}

// --- What is kept, what is given ---

// Whether anything but this walk's nodes refers to |array|.
static bool is_wanted(const pestle_array_t* array) {
  uint64_t refs = atomic_load_explicit(&array->refs, memory_order_acquire);
  return refs != array->readers * PESTLE_REF_NODE;
}

// A node that somebody else refers to becomes data: nothing is computed twice.
static bool write_outputs(pestle_walk_t* walk) {
  for (size_t i = 0; i < walk->nodes.size; ++i) {
    pestle_array_t* node = walk->nodes.data[i];
    if (is_wanted(node) && !pestle_vec_push(&walk->outputs, node)) return false;
  }
  if (!put(walk, PESTLE_KEY_OUTPUTS) ||
      !put(walk, (uint32_t)walk->outputs.size)) {
    return false;
  }
  for (size_t i = 0; i < walk->outputs.size; ++i) {
    if (!put(walk, walk->outputs.data[i]->number)) return false;
  }
  return true;
}

// Whether a run may be given the memory of |leaf|, which nothing outlives.
static bool is_dying(const pestle_walk_t* walk, const pestle_array_t* leaf) {
  uint32_t flags = pestle_buffer_flags(leaf->buffer);
  if (is_wanted(leaf) || leaf->strides || leaf->byte_offset ||
      pestle_buffer_device(leaf->buffer) != walk->device ||
      flags & PESTLE_BUFFER_READ_ONLY ||
      (flags & PESTLE_BUFFER_WRAPPED && !(flags & PESTLE_BUFFER_EXCLUSIVE)) ||
      !pestle_type_count(&leaf->type) ||
      pestle_buffer_size(leaf->buffer) != pestle_type_bytes(&leaf->type)) {
    return false;
  }
  for (size_t i = 0; i < walk->leaves.size; ++i) {
    const pestle_array_t* other = walk->leaves.data[i];
    if (other != leaf && other->buffer == leaf->buffer) return false;
  }
  return true;
}

// Gives each output's memory to be that of a leaf of its type, as far as there are
// such leaves. A walk of many leaves would look at each beside each.
static bool choose_donated(pestle_walk_t* walk) {
  enum { MOST = 64 };
  bool taken[MOST] = {false};
  if (walk->leaves.size > MOST || walk->outputs.size > MOST) return true;
  for (size_t i = 0; i < walk->leaves.size; ++i) {
    const pestle_array_t* leaf = walk->leaves.data[i];
    for (size_t o = 0; o < walk->outputs.size; ++o) {
      const pestle_array_t* output = walk->outputs.data[o];
      if (taken[o] || pestle_array_flags(output) & PESTLE_NODE_TUPLE ||
          !pestle_type_equal(&leaf->type, &output->type) ||
          !is_dying(walk, leaf)) {
        continue;
      }
      if (!pestle_vec_push(&walk->donated, (uint32_t)i)) return false;
      atomic_fetch_or_explicit(&walk->leaves.data[i]->flags, PESTLE_DATA_GIVEN,
                               memory_order_relaxed);
      walk->key.data[walk->leaf_at.data[i]] |= PESTLE_LEAF_DONATED;
      taken[o] = true;
      break;
    }
  }
  return true;
}

static bool write_device(pestle_walk_t* walk, pestle_device_t* device) {
  uint64_t address = (uint64_t)(uintptr_t)device;
  walk->device = device;
  return put(walk, (uint32_t)address) && put(walk, (uint32_t)(address >> 32));
}

static pestle_status_t claim(pestle_walk_t* walk, pestle_array_t* const* arrays,
                             size_t count) {
  if (!write_device(walk, arrays[0]->device)) return PESTLE_OOM();
  for (size_t i = 0; i < count && !walk->busy; ++i) {
    if (arrays[i]->device != walk->device ||
        pestle_array_node_state(arrays[i]) == PESTLE_NODE_DATA) {
      continue;
    }
    PESTLE_TRY(walk_from(walk, arrays[i]));
  }
  if (walk->busy || !walk->nodes.size) return NULL;
  if (!pestle_vec_reserve(&walk->dropped, walk->operand_count)) {
    return PESTLE_OOM();
  }
  return write_outputs(walk) && choose_donated(walk) ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_walk_claim(pestle_walk_t* walk,
                                  pestle_array_t* const* arrays, size_t count) {
  clear(walk);
  ++walk->lazy->walks;
  pestle_status_t status = claim(walk, arrays, count);
  if (status || walk->busy) pestle_walk_unclaim(walk);
  return status;
}

static pestle_status_t trace(pestle_walk_t* walk, pestle_device_t* device,
                             pestle_array_t* const* arguments,
                             size_t argument_count,
                             pestle_array_t* const* results, size_t count) {
  bool written = write_device(walk, device);
  for (size_t i = 0; written && i < argument_count; ++i) {
    arguments[i]->walk = walk->lazy->walks;
    written = write_leaf(walk, arguments[i]);
  }
  if (!written) return PESTLE_OOM();
  for (size_t i = 0; i < count; ++i)
    PESTLE_TRY(walk_from(walk, results[i]));
  written = put(walk, PESTLE_KEY_OUTPUTS) && put(walk, (uint32_t)count);
  for (size_t i = 0; written && i < count; ++i)
    written = put(walk, results[i]->number);
  return written ? NULL : PESTLE_OOM();
}

pestle_status_t pestle_walk_trace(pestle_walk_t* walk, uint32_t capture,
                                  pestle_device_t* device,
                                  pestle_array_t* const* arguments,
                                  size_t argument_count,
                                  pestle_array_t* const* results,
                                  size_t count) {
  clear(walk);
  ++walk->lazy->walks;
  walk->traces = capture;
  pestle_status_t status =
      trace(walk, device, arguments, argument_count, results, count);
  walk->traces = 0;
  pestle_vec_clear(&walk->stack);
  pestle_vec_clear(&walk->nodes);
  return status;
}
