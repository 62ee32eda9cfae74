// SPDX-License-Identifier: Apache-2.0
// From the last op to the first: what reverse mode reads of an op is kept or computed
// again, and then its operands are needed too. Whether it is worth its bytes is decided
// where it stands: a chain of elementwise ops is computed again from what has the fewest.
#include "transform/remat.h"

#include <math.h>
#include <string.h>

#include "base/custom_attrs.h"

// --- The policy ---

static bool is_name(const pestle_custom_attr_value_t* v, const char* name,
                    pestle_custom_kind_t kind) {
  return !strcmp(v->name, name) && v->kind == (int32_t)kind;
}

static pestle_status_t read_keep(const pestle_node_t* node, const char* text,
                                 pestle_keep_t* out) {
  static const char* const names[] = {"nothing", "everything", "dots", "names",
                                      "min_bytes"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (strcmp(text, names[i])) continue;
    *out = (pestle_keep_t)i;
    return NULL;
  }
  return pestle_node_error(
      node, PESTLE_STATUS_INVALID_ARGUMENT,
      "its policy is '%.40s'; there are 'nothing', 'everything', 'dots', "
      "'names' and 'min_bytes'",
      text);
}

pestle_status_t pestle_policy_read(pestle_arena_t* arena,
                                   const pestle_node_t* node,
                                   pestle_policy_t* out) {
  pestle_custom_attr_value_t* values;
  size_t count;
  bool is_said = false;
  *out = (pestle_policy_t){.names = ""};
  PESTLE_TRY(pestle_custom_attrs_read(
      arena, pestle_str(PESTLE_NODE_STR(node, attributes)), &values, &count));
  for (size_t i = 0; i < count; ++i) {
    const pestle_custom_attr_value_t* v = &values[i];
    if (is_name(v, "policy", PESTLE_CUSTOM_STR)) {
      PESTLE_TRY(read_keep(node, v->as.str, &out->keep));
      is_said = true;
    } else if (is_name(v, "names", PESTLE_CUSTOM_STR)) {
      out->names = v->as.str;
    } else if (is_name(v, "budget_bytes", PESTLE_CUSTOM_I64) &&
               v->as.i64 >= 0) {
      out->budget = v->as.i64;
    } else {
      return pestle_node_error(
          node, PESTLE_STATUS_INVALID_ARGUMENT,
          "it has '%.40s'; a checkpoint has a policy and names, which are "
          "strings, and budget_bytes, an i64 that is not negative",
          v->name);
    }
  }
  // A bound says that something is to be kept.
  if (out->budget && !is_said) out->keep = PESTLE_KEEP_MIN_BYTES;
  return NULL;
}

// Whether |list|, "a,b", has |name|.
static bool lists(const char* list, const char* name) {
  size_t size = strlen(name);
  for (const char* at = list; *at;) {
    size_t n = strcspn(at, ",");
    if (n == size && !memcmp(at, name, size)) return true;
    at += n + (at[n] == ',');
  }
  return false;
}

const char* pestle_remat_name(const pestle_node_t* node) {
  if (node->op != PESTLE_OP_CUSTOM ||
      strcmp(PESTLE_NODE_STR(node, name), PESTLE_CHECKPOINT_NAME)) {
    return NULL;
  }
  const char* text = PESTLE_NODE_STR(node, attributes);
  const char* quote = strchr(text, '"');
  return quote ? quote + 1 : NULL;
}

static bool is_listed(const pestle_policy_t* policy,
                      const pestle_remat_op_t* op) {
  const char* name = op->name ? op->name : pestle_remat_name(op->node);
  char text[64];
  size_t n = name ? strcspn(name, "\"") : 0;
  if (!n || n >= sizeof(text)) return false;
  memcpy(text, name, n);
  text[n] = 0;
  return lists(policy->names, text);
}

// --- Costs ---

static bool is_contraction(const pestle_node_t* node) {
  return node->op == PESTLE_OP_ATTENTION ||
         pestle_op_info((pestle_op_t)node->op)->fuse == PESTLE_FUSE_CONTRACTION;
}

static int64_t bytes_of(const pestle_node_t* node) {
  int64_t bytes = 0;
  for (uint32_t r = 0; r < node->result_count; ++r)
    bytes += (int64_t)pestle_type_bytes(node->results[r].type);
  return bytes;
}

// Multiply-adds of a contraction, elements read of others; what has a region counts as
// one, since its turns are not known.
static double work_of(const pestle_node_t* node) {
  double read = 0, made = (double)pestle_type_count(node->results[0].type);
  for (uint32_t i = 0; i < node->operand_count; ++i)
    read += (double)pestle_type_count(pestle_node_operand(node, i)->type);
  if (!is_contraction(node)) return read + made;
  const pestle_type_t* a = pestle_node_operand(node, 0)->type;
  const pestle_type_t* b = pestle_node_operand(node, 1)->type;
  double all = (double)pestle_type_count(a) * (double)pestle_type_count(b);
  // Of a product of m x k and k x n: sqrt(mk kn mn) = mkn.
  return sqrt(all * made);
}

// --- The choice ---

static bool may_keep(const pestle_remat_op_t* op) {
  // A view, or a constant, is no value of its own.
  pestle_fuse_class_t c =
      (pestle_fuse_class_t)pestle_op_info((pestle_op_t)op->node->op)->fuse;
  return c != PESTLE_FUSE_SOURCE && !op->is_dropped;
}

// Bytes of operands that would be needed besides.
static int64_t bytes_before(const pestle_remat_op_t* ops,
                            const pestle_remat_op_t* op) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < op->node->operand_count; ++i) {
    const pestle_node_t* n = pestle_node_operand(op->node, i)->node;
    if (!n || !n->scratch || ops[n->scratch - 1].node != n) continue;
    const pestle_remat_op_t* from = &ops[n->scratch - 1];
    if (!from->is_needed && may_keep(from)) bytes += bytes_of(n);
  }
  return bytes;
}

static bool keeps(const pestle_policy_t* policy, const pestle_remat_op_t* ops,
                  const pestle_remat_op_t* op) {
  if (!may_keep(op)) return false;
  switch (policy->keep) {
    case PESTLE_KEEP_NOTHING:
      return false;
    case PESTLE_KEEP_EVERYTHING:
      return true;
    case PESTLE_KEEP_DOTS:
      return is_contraction(op->node);
    case PESTLE_KEEP_NAMES:
      return is_listed(policy, op);
    case PESTLE_KEEP_MIN_BYTES:
      return is_contraction(op->node) ||
             bytes_before(ops, op) > bytes_of(op->node);
  }
  return false;
}

// Values that regions of |node| read count as its operands: all of them are in the block.
static void need_operands(pestle_remat_op_t* ops, const pestle_node_t* node) {
  for (uint32_t i = 0; i < node->operand_count; ++i) {
    const pestle_node_t* n = pestle_node_operand(node, i)->node;
    if (n && n->scratch && ops[n->scratch - 1].node == n)
      ops[n->scratch - 1].is_needed = true;
  }
  for (uint32_t r = 0; r < node->region_count; ++r) {
    const pestle_node_t* inside = NULL;
    while ((inside = pestle_region_next(node->regions[r], inside)))
      need_operands(ops, inside);
  }
}

static void choose(const pestle_policy_t* policy, pestle_remat_op_t* ops,
                   size_t count) {
  for (size_t i = count; i-- > 0;) {
    if (!ops[i].is_needed) continue;
    ops[i].is_kept = keeps(policy, ops, &ops[i]);
    if (!ops[i].is_kept) need_operands(ops, ops[i].node);
  }
}

int64_t pestle_remat_bytes(const pestle_remat_op_t* ops, size_t count) {
  int64_t bytes = 0;
  for (size_t i = 0; i < count; ++i)
    bytes += ops[i].is_kept ? bytes_of(ops[i].node) : 0;
  return bytes;
}

// What is kept that takes the least work a byte; NULL: nothing is.
static pestle_remat_op_t* cheapest(pestle_remat_op_t* ops, size_t count) {
  pestle_remat_op_t* best = NULL;
  double least = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!ops[i].is_kept) continue;
    double rate = work_of(ops[i].node) / (double)(bytes_of(ops[i].node) + 1);
    if (best && rate >= least) continue;
    best = &ops[i];
    least = rate;
  }
  return best;
}

static bool fits(const pestle_policy_t* policy, pestle_remat_op_t* ops,
                 size_t count) {
  for (size_t i = 0; i < count; ++i) {
    ops[i].is_needed = ops[i].is_read;
    ops[i].is_kept = false;
  }
  choose(policy, ops, count);
  return !policy->budget || pestle_remat_bytes(ops, count) <= policy->budget;
}

// Drops until the rest fits, then takes back what there is room for.
void pestle_remat_choose(const pestle_policy_t* policy, pestle_remat_op_t* ops,
                         size_t count) {
  bool is_whole = true;
  while (!fits(policy, ops, count)) {
    pestle_remat_op_t* drop = cheapest(ops, count);
    if (!drop) return;
    drop->is_dropped = true;
    is_whole = false;
  }
  for (size_t i = count; !is_whole && i-- > 0;) {
    if (!ops[i].is_dropped) continue;
    ops[i].is_dropped = false;
    ops[i].is_dropped = !fits(policy, ops, count);
  }
  if (!is_whole) (void)fits(policy, ops, count);
}
