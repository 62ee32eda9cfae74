// SPDX-License-Identifier: Apache-2.0
// Closing a kernel: constant branches and what nobody uses go, equal pure
// instructions become one where the first is still in an open region, the rest
// moves together, and the totals and the hash are taken.
#include "base/bits.h"
#include "base/hash.h"
#include "codegen/kir/kir_internal.h"

// Working arrays, one element an instruction.
typedef struct finish_t {
  pestle_kir_builder_t* k;
  uint32_t count;
  uint32_t* same;    // the instruction that stands for it; new ids at the end
  uint32_t* next;    // in its bucket
  uint32_t* bucket;  // heads, |bucket_mask| + 1 of them
  uint32_t* stack;
  uint8_t* live;
  uint32_t bucket_mask;
} finish_t;

static char class_of(const pestle_kir_inst_t* inst) {
  return pestle_kir_info(inst->op).klass;
}

// --- Constant branches ---

// Marks as dead (0) what stands in the branch that is never taken, and the IF,
// ELSE and END around the one that always is. Everything else gets 1.
static void drop_branches(finish_t* f) {
  pestle_kir_builder_t* k = f->k;
  uint32_t depth = 0, dead_depth = UINT32_MAX;
  bool dead = false;
  // A frame is the index of FOR or IF, with what is known of the condition.
  enum { KEPT = 0, TAKEN = 1, NOT_TAKEN = 2 };
  for (uint32_t i = 0; i < f->count; ++i) {
    unsigned op = k->inst.data[i].op;
    f->live[i] = !dead;
    if (op == PESTLE_KIR_FOR || op == PESTLE_KIR_IF) {
      int64_t condition;
      uint32_t known = KEPT;
      if (op == PESTLE_KIR_IF && !dead &&
          pestle_kir_is_int(k, k->inst.data[i].arg[0], &condition)) {
        known = condition ? TAKEN : NOT_TAKEN;
        f->live[i] = 0;
      }
      f->stack[depth++] = known;
      if (known == NOT_TAKEN) dead = true, dead_depth = depth;
    } else if (op == PESTLE_KIR_ELSE && depth) {
      uint32_t known = f->stack[depth - 1];
      if (known != KEPT) f->live[i] = 0;
      if (known == NOT_TAKEN) dead = false, dead_depth = UINT32_MAX;
      if (known == TAKEN) dead = true, dead_depth = depth;
    } else if (op == PESTLE_KIR_END && depth) {
      if (f->stack[depth - 1] != KEPT) f->live[i] = 0;
      if (dead && dead_depth == depth) dead = false, dead_depth = UINT32_MAX;
      --depth;
    }
  }
}

// --- Equal instructions ---

static bool is_mergeable(const pestle_kir_inst_t* inst) {
  return class_of(inst) == 'P';
}

static uint32_t hash_inst(const pestle_kir_inst_t* inst) {
  uint64_t h = (uint64_t)inst->op << 32 | (uint64_t)inst->type << 16 |
               (uint64_t)inst->lanes << 8 | inst->facts;
  for (int i = 0; i < 4; ++i) {
    h = (h ^ inst->arg[i]) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 29;
  }
  return (uint32_t)(h >> 16);
}

static bool equal_inst(const pestle_kir_inst_t* a, const pestle_kir_inst_t* b) {
  return a->op == b->op && a->type == b->type && a->lanes == b->lanes &&
         a->facts == b->facts && !memcmp(a->arg, b->arg, sizeof a->arg);
}

static void remap(const finish_t* f, pestle_kir_inst_t* inst) {
  const char* letters = pestle_kir_info(inst->op).operands;
  for (int a = 0; letters[a]; ++a) {
    if (!pestle_kir_is_value(letters[a]) || inst->arg[a] == PESTLE_KIR_NONE)
      continue;
    if (inst->arg[a] < f->count) inst->arg[a] = f->same[inst->arg[a]];
  }
  pestle_op_t op;
  if (pestle_kir_is_scalar(inst->op, &op) &&
      pestle_kir_row(op)->flags & PESTLE_OP_FLAG_COMM &&
      inst->arg[0] > inst->arg[1]) {
    uint32_t swap = inst->arg[0];
    inst->arg[0] = inst->arg[1];
    inst->arg[1] = swap;
  }
}

// Forgets what was entered since |mark|: its region has closed.
static void forget(finish_t* f, uint32_t* entered, uint32_t mark) {
  const pestle_kir_inst_t* inst = f->k->inst.data;
  while (*entered > mark) {
    uint32_t i = f->stack[f->count + --*entered];
    f->bucket[hash_inst(&inst[i]) & f->bucket_mask] = f->next[i];
  }
}

static void merge_equal(finish_t* f) {
  pestle_kir_inst_t* inst = f->k->inst.data;
  uint32_t depth = 0, entered = 0;
  for (uint32_t i = 0; i <= f->bucket_mask; ++i) {
    f->bucket[i] = PESTLE_KIR_NONE;
  }
  for (uint32_t i = 0; i < f->count; ++i) {
    f->same[i] = i;
    if (!f->live[i]) continue;
    remap(f, &inst[i]);
    char klass = class_of(&inst[i]);
    if (klass == 'B') f->stack[depth++] = entered;
    if (klass == 'L' && depth) forget(f, &entered, f->stack[depth - 1]);
    if (klass == 'E' && depth) forget(f, &entered, f->stack[--depth]);
    if (!is_mergeable(&inst[i])) continue;
    uint32_t* head = &f->bucket[hash_inst(&inst[i]) & f->bucket_mask];
    uint32_t at = *head;
    while (at != PESTLE_KIR_NONE && !equal_inst(&inst[at], &inst[i])) {
      at = f->next[at];
    }
    if (at != PESTLE_KIR_NONE) {
      f->same[i] = at;
      f->live[i] = 0;
      continue;
    }
    f->next[i] = *head;
    *head = i;
    f->stack[f->count + entered++] = i;
  }
}

// --- Dead code ---

static void mark_operands(finish_t* f, const pestle_kir_inst_t* inst) {
  const char* letters = pestle_kir_info(inst->op).operands;
  for (int a = 0; letters[a]; ++a) {
    if (pestle_kir_is_value(letters[a]) && inst->arg[a] < f->count) {
      f->live[inst->arg[a]] = 2;
    }
  }
}

// Whether a store to |buffer|, or its alloc, can be seen by anybody.
static bool is_read(const uint8_t* read, uint32_t buffer, size_t count) {
  return buffer >= count || read[buffer];
}

// From the last to the first: 2 is needed. An effect is needed, a region when
// an effect stands in it, a value when something needed reads it.
static void mark_live(finish_t* f, const uint8_t* read) {
  const pestle_kir_builder_t* k = f->k;
  uint32_t depth = 0;
  for (uint32_t i = f->count; i-- > 0;) {
    if (!f->live[i]) continue;
    const pestle_kir_inst_t* inst = &k->inst.data[i];
    char klass = class_of(inst);
    if (klass == 'E') {
      f->stack[2 * depth] = i;
      f->stack[2 * depth++ + 1] = 0;
      continue;
    }
    if (inst->op == PESTLE_KIR_ATOMIC_ADD) klass = 'S';
    if (klass == 'S' &&
        ((inst->op != PESTLE_KIR_STORE && inst->op != PESTLE_KIR_ALLOC) ||
         is_read(read, inst->arg[0], k->buffer.size))) {
      f->live[i] = 2;
      if (depth) f->stack[2 * depth - 1] = 1;
    }
    if (klass == 'L') f->live[i] = 2;
    if (klass == 'B' && depth) {
      --depth;
      bool effect = f->stack[2 * depth + 1] != 0;
      f->live[f->stack[2 * depth]] = effect ? 2 : 0;
      f->live[i] = effect ? 2 : 0;
      if (effect && depth) f->stack[2 * depth - 1] = 1;
      // An ELSE of a region that went away goes with it.
      for (uint32_t j = i; !effect && j < f->stack[2 * depth]; ++j) {
        f->live[j] = 0;
      }
    }
    if (f->live[i] == 2) mark_operands(f, inst);
  }
  for (uint32_t i = 0; i < f->count; ++i)
    f->live[i] = f->live[i] == 2;
}

// Private and shared buffers that some live instruction reads, or takes the
// address of.
static void find_read_buffers(const finish_t* f, uint8_t* read) {
  const pestle_kir_builder_t* k = f->k;
  for (size_t b = 0; b < k->buffer.size; ++b) {
    read[b] = k->buffer.data[b].scope == PESTLE_KIR_GLOBAL;
  }
  for (uint32_t i = 0; i < f->count; ++i) {
    const pestle_kir_inst_t* inst = &k->inst.data[i];
    if (f->live[i] &&
        (inst->op == PESTLE_KIR_LOAD || inst->op == PESTLE_KIR_GATHER ||
         inst->op == PESTLE_KIR_REF || inst->op == PESTLE_KIR_LDMATRIX ||
         inst->op == PESTLE_KIR_ATOMIC_ADD ||
         inst->op == PESTLE_KIR_LOAD_WORDS ||
         inst->op == PESTLE_KIR_MREG_LOAD ||
         inst->op == PESTLE_KIR_MREG_STREAM) &&
        inst->arg[0] < k->buffer.size) {
      read[inst->arg[0]] = 1;
    }
  }
}

static void compact(finish_t* f) {
  pestle_kir_inst_t* inst = f->k->inst.data;
  uint32_t to = 0;
  for (uint32_t i = 0; i < f->count; ++i) {
    if (!f->live[i]) continue;
    pestle_kir_inst_t moved = inst[i];
    const char* letters = pestle_kir_info(moved.op).operands;
    for (int a = 0; letters[a]; ++a) {
      if (pestle_kir_is_value(letters[a]) && moved.arg[a] < f->count) {
        moved.arg[a] = f->same[moved.arg[a]];
      }
    }
    f->same[i] = to;
    inst[to++] = moved;
  }
  f->k->inst.size = to;
}

// --- Totals ---

void pestle_kir_hash(const pestle_kir_builder_t* k, const uint8_t* is_any,
                     uint64_t out_hash[2]) {
  pestle_hasher_t hasher;
  pestle_hasher_init(&hasher);
  pestle_hasher_update_u64(&hasher, k->inst.size);
  for (size_t i = 0; i < k->inst.size; ++i) {
    pestle_kir_inst_t inst = k->inst.data[i];
    inst.name = 0;
    if (is_any && is_any[i]) memset(inst.arg, 0xff, sizeof inst.arg);
    pestle_hasher_update(&hasher, &inst, sizeof inst);
  }
  pestle_hasher_update_u64(&hasher, k->buffer.size);
  for (size_t i = 0; i < k->buffer.size; ++i) {
    pestle_kir_buffer_t buffer = k->buffer.data[i];
    buffer.name = 0;
    pestle_hasher_update(&hasher, &buffer, sizeof buffer);
  }
  pestle_hasher_update_u64(&hasher, k->table.size);
  pestle_hasher_update(&hasher, k->table.data,
                       k->table.size * sizeof *k->table.data);
  pestle_hasher_update_u64(&hasher, k->word.size);
  pestle_hasher_update(&hasher, k->word.data,
                       k->word.size * sizeof *k->word.data);
  pestle_hash128_t hash = pestle_hasher_finish(&hasher);
  out_hash[0] = hash.low;
  out_hash[1] = hash.high;
}

static void take_axis(pestle_kir_builder_t* k, const pestle_kir_inst_t* inst) {
  int64_t hi;
  uint32_t axis = inst->arg[3];
  if (!pestle_kir_is_int(k, inst->arg[1], &hi)) return;
  if (axis >= PESTLE_KIR_GROUP_X && axis <= PESTLE_KIR_GROUP_Z) {
    k->view.group[axis - PESTLE_KIR_GROUP_X] = hi;
  } else if (axis >= PESTLE_KIR_LANE_X && axis <= PESTLE_KIR_LANE_Z) {
    k->view.lane[axis - PESTLE_KIR_LANE_X] = (uint32_t)hi;
  } else if (axis == PESTLE_KIR_CLUSTER) {
    k->view.cluster[0] = (uint32_t)hi;
  }
}

static pestle_status_t take_totals(pestle_kir_builder_t* k) {
  uint64_t shared = 0;
  for (size_t b = 0; b < k->buffer.size; ++b) {
    const pestle_kir_buffer_t* buffer = &k->buffer.data[b];
    k->view.arg_count += buffer->scope == PESTLE_KIR_GLOBAL;
    if (buffer->scope != PESTLE_KIR_SHARED) continue;
    uint64_t bytes;
    unsigned size = pestle_dtype_size((pestle_dtype_t)buffer->dtype);
    if (__builtin_mul_overflow(buffer->count, size, &bytes) ||
        bytes > UINT32_MAX) {
      bytes = UINT32_MAX;
    }
    shared += pestle_align_up(bytes, 64);
    if (shared > UINT32_MAX) {
      return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                          "kernel %s: shared buffers pass 4 GiB",
                          pestle_kir_text(k, k->name));
    }
  }
  k->view.shared_bytes = (uint32_t)shared;
  for (size_t i = 0; i < k->inst.size; ++i) {
    const pestle_kir_inst_t* inst = &k->inst.data[i];
    if (inst->op == PESTLE_KIR_FOR) take_axis(k, inst);
    if (inst->op == PESTLE_KIR_PARAM && inst->arg[0] >= k->view.param_count) {
      k->view.param_count = inst->arg[0] + 1;
    }
  }
  return NULL;
}

static void make_view(pestle_kir_builder_t* k) {
  k->view = (pestle_kir_t){.struct_size = sizeof(pestle_kir_t),
                           .abi_major = PESTLE_KIR_ABI_MAJOR,
                           .inst_size = sizeof(pestle_kir_inst_t),
                           .buffer_size = sizeof(pestle_kir_buffer_t),
                           .inst_count = (uint32_t)k->inst.size,
                           .buffer_count = (uint32_t)k->buffer.size,
                           .table_count = (uint32_t)k->table.size,
                           .table_word_count = (uint32_t)k->word.size,
                           .strings_size = (uint32_t)k->strings.size,
                           .inst = k->inst.data,
                           .buffer = k->buffer.data,
                           .table = k->table.data,
                           .table_word = k->word.data,
                           .strings = k->strings.data,
                           .name = k->name,
                           .note = k->note,
                           .group = {1, 1, 1},
                           .lane = {1, 1, 1},
                           .cluster = {1, 1, 1}};
}

static pestle_status_t clean(pestle_kir_builder_t* k) {
  uint32_t count = (uint32_t)k->inst.size;
  size_t buckets = pestle_next_pow2(count + 1);
  size_t words = (size_t)count * 5 + buckets;
  size_t size = words * sizeof(uint32_t) + count + k->buffer.size;
  uint32_t* memory = pestle_alloc(k->allocator, size);
  if (!memory) return PESTLE_OOM();
  finish_t f = {.k = k,
                .count = count,
                .same = memory,
                .next = memory + count,
                .stack = memory + 2 * (size_t)count,
                .bucket = memory + 5 * (size_t)count,
                .live = (uint8_t*)(memory + words),
                .bucket_mask = (uint32_t)buckets - 1};
  uint8_t* read = f.live + count;
  drop_branches(&f);
  merge_equal(&f);
  find_read_buffers(&f, read);
  mark_live(&f, read);
  compact(&f);
  pestle_dealloc(k->allocator, memory, size);
  return NULL;
}

pestle_status_t pestle_kir_finish(pestle_kir_builder_t* k) {
  if (k->failed || k->strings.failed) return PESTLE_OOM();
  PESTLE_TRY(clean(k));
  return pestle_kir_seal(k);
}

pestle_status_t pestle_kir_seal(pestle_kir_builder_t* k) {
  if (k->failed || k->strings.failed) return PESTLE_OOM();
  make_view(k);
  PESTLE_TRY(take_totals(k));
  pestle_kir_hash(k, NULL, k->view.hash);
  return NULL;
}
