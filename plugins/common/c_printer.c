// SPDX-License-Identifier: Apache-2.0
// The walk: regions, loops, and the frame around the statements.
#include "plugins/common/c_printer.h"

#include <stdarg.h>

#include "plugins/common/c_printer_internal.h"
#include "plugins/common/error.h"

// --- Texts ---

const char* pestle_c_printer_fail(c_printer_t* p, pestle_status_code_t code,
                                  const char* format, ...) {
  char why[256];
  va_list args;
  va_start(args, format);
  vsnprintf(why, sizeof why, format, args);
  va_end(args);
  if (p->status) return "0";
  const char* op = NULL;
  if (p->id < p->k->inst_count) {
    op = pestle_kir_op_info(c_printer_inst(p, p->id)->op).mnemonic;
  }
  p->status = pestle_plugin_error(
      p->host, code, __FILE__, __LINE__, "kernel %s, instruction %u (%s): %s",
      pestle_kir_string(p->k, p->k->name), p->id, op ? op : "none", why);
  return "0";
}

const char* pestle_c_printer_format(c_printer_t* p, const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int size = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char* text = pestle_plugin_arena_alloc(&p->arena, (size_t)size + 1, 1);
  if (text) vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  if (text) return text;
  return pestle_c_printer_fail(p, PESTLE_STATUS_OUT_OF_MEMORY,
                               "no memory to print");
}

// The longest key that begins at |at|, as an index of |pairs|; -1: none.
static int key_at(const char* const* pairs, const char* at) {
  int best = -1;
  size_t longest = 0;
  for (int i = 0; pairs[i]; i += 2) {
    size_t size = strlen(pairs[i]);
    if (size > longest && !strncmp(pairs[i], at, size)) {
      best = i;
      longest = size;
    }
  }
  return best;
}

const char* pestle_c_printer_expand(c_printer_t* p, const char* pattern,
                                    const char* const* pairs) {
  const char* text = "";
  while (*pattern) {
    size_t plain = strcspn(pattern, "$");
    text = pestle_c_printer_format(p, "%s%.*s", text, (int)plain, pattern);
    pattern += plain;
    if (!*pattern) break;
    int key = key_at(pairs, ++pattern);
    if (key < 0) continue;
    text = pestle_c_printer_format(p, "%s%s", text, pairs[key + 1]);
    pattern += strlen(pairs[key]);
  }
  return text;
}

void pestle_c_printer_line(c_printer_t* p, const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int size = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char* text = pestle_plugin_arena_alloc(&p->arena, (size_t)size + 1, 1);
  if (text) vsnprintf(text, (size_t)size + 1, format, again);
  va_end(again);
  pestle_plugin_text_format(&p->out, "%*s%s\n", 2 * p->depth, "",
                            text ? text : "");
  if (!text) p->out.failed = true;
}

// --- What is known before the walk ---

// How often each value is asked for. One that is used in an inner region, or
// lane by lane in another place, counts as asked for twice.
static void count_uses(c_printer_t* p) {
  uint32_t stack[CTEXT_MAX_DEPTH] = {0}, top = 0;
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    pestle_kir_op_info_t info = pestle_kir_op_info(n->op);
    p->scope[i] = stack[top];
    bool moves = n->op == PESTLE_KIR_SHUFFLE || n->op == PESTLE_KIR_SPLAT ||
                 n->op == PESTLE_KIR_EXTRACT || n->op == PESTLE_KIR_INSERT;
    for (int a = 0; info.operands[a]; ++a) {
      bool value = info.operands[a] == 'v' || info.operands[a] == 'o';
      uint32_t from = n->arg[a];
      if (!value || from >= i) continue;
      bool here = p->scope[from] == p->scope[i] && !moves;
      // A loop looks at its end each time; what is wide is taken by lanes.
      if (n->op == PESTLE_KIR_FOR || n->op == PESTLE_KIR_MASK) here = false;
      p->uses[from] += here ? 1 : 2;
    }
    if (info.klass == 'B' && top + 1 < CTEXT_MAX_DEPTH) stack[++top] = i + 1;
    if (info.klass == 'L') stack[top] = i + 1;
    if (info.klass == 'E' && top) --top;
  }
}

// Multiplies that the one add that uses them swallows, both contracting.
static void find_fused(c_printer_t* p) {
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    p->fused[i] = PESTLE_KIR_NONE;
    unsigned fma = n->type == PESTLE_F64 ? PESTLE_C_PRINTER_HAS_FMA64
                                         : PESTLE_C_PRINTER_HAS_FMA;
    if ((n->op != PESTLE_KIR_ADD && n->op != PESTLE_KIR_SUBTRACT) ||
        !c_printer_is_float(n->type) || !(n->facts & PESTLE_KIR_CONTRACT) ||
        !(p->target->features & fma)) {
      continue;
    }
    for (int a = 0; a < 2; ++a) {
      uint32_t from = n->arg[a];
      const pestle_kir_inst_t* mul = c_printer_inst(p, from);
      if (mul->op != PESTLE_KIR_MULTIPLY || p->uses[from] != 1 ||
          !(mul->facts & PESTLE_KIR_CONTRACT) || p->swallowed[from]) {
        continue;
      }
      p->fused[i] = from;
      p->swallowed[from] = true;
      break;
    }
  }
}

static void measure(c_printer_t* p) {
  for (int a = 0; a < 3; ++a) {
    p->lane[a] = 1;
    int64_t groups = p->k->group[a];
    if (!a) groups *= pestle_kir_cluster(p->k);
    p->groups[a] = groups > UINT32_MAX ? UINT32_MAX : (uint32_t)groups;
  }
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    int64_t extent;
    if (n->op != PESTLE_KIR_FOR || n->arg[3] < PESTLE_KIR_LANE_X ||
        n->arg[3] > PESTLE_KIR_LANE_Z ||
        !pestle_c_printer_known(p, n->arg[1], &extent)) {
      continue;
    }
    p->has_lanes = true;
    uint32_t* lanes = &p->lane[n->arg[3] - PESTLE_KIR_LANE_X];
    if (extent > *lanes) *lanes = (uint32_t)extent;
  }
  if (p->source) {
    p->has_lanes = true;
    memcpy(p->lane, p->k->lane, sizeof p->lane);
  }
  uint64_t lanes_of_group = (uint64_t)p->lane[0] * p->lane[1] * p->lane[2];
  // Whole subgroups that share nothing but memory have more registers on units of their own.
  bool apart = !p->source && !p->k->shared_bytes && p->d->wide_barrier &&
               p->groups[2] <= 1 && pestle_kir_cluster(p->k) <= 1 &&
               p->lane[0] * p->lane[1] % 32 == 0 &&
               p->lane[2] <= PESTLE_WIDE_GROUP;
  p->wide = p->target->group_lanes && p->lane[2] > 1 &&
            (apart || lanes_of_group > p->target->group_lanes);
  p->launch_wide = p->wide && p->lane[2] > PESTLE_WIDE_GROUP;
  bool alone = p->groups[0] == 1 && p->groups[1] == 1 && p->d->launch_barrier;
  if (p->wide &&
      (!p->d->wide_barrier || p->groups[2] > 1 || p->k->shared_bytes ||
       p->source || (p->launch_wide && !alone))) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "a group has more lanes than an execution unit");
  }
  if (!p->has_lanes) {
    uint32_t lanes = p->target->thread_lanes, count = p->groups[0];
    while (lanes > 1 && lanes / 2 >= count)
      lanes /= 2;
    p->lane[0] = lanes;
    p->groups[0] = (uint32_t)(((uint64_t)count + lanes - 1) / lanes);
  }
}

// --- Names of buffers ---

static bool is_taken(const char* name) {
  static const char* const words[] = {
      "in",        "out",        "inout",     "sample",    "buffer",
      "shared",    "kernel",     "device",    "thread",    "float",
      "double",    "int",        "uint",      "half",      "bool",
      "long",      "short",      "char",      "void",      "const",
      "input",     "output",     "filter",    "image",     "sampler",
      "texture",   "vec",        "mat",       "main",      "global",
      "local",     "private",    "constant",  "if",        "else",
      "for",       "while",      "do",        "return",    "switch",
      "case",      "default",    "break",     "struct",    "union",
      "enum",      "typedef",    "static",    "extern",    "signed",
      "register",  "volatile",   "restrict",  "inline",    "goto",
      "auto",      "sizeof",     "template",  "class",     "this",
      "new",       "delete",     "operator",  "public",    "protected",
      "friend",    "virtual",    "namespace", "using",     "try",
      "catch",     "throw",      "uniform",   "varying",   "attribute",
      "layout",    "precise",    "flat",      "smooth",    "common",
      "partition", "active",     "asm",       "external",  "interface",
      "fixed",     "unsigned",   "superp",    "resource",  "subroutine",
      "patch",     "coherent",   "readonly",  "writeonly", "vertex",
      "fragment",  "pipe",       "event",     "group",     "lane",
      "uchar",     "ushort",     "ulong",     "max",       "min",
      "abs",       "exp",        "log",       "sin",       "cos",
      "tan",       "dot",        "step",      "mix",       "sign",
      "floor",     "ceil",       "sqrt",      "pow",       "fma",
      "length",    "select",     "as_type",   "table",     "y0",
      "y1",        "j0",         "j1",        "gamma",     "signal",
      "true",      "false",      "not",       "and",       "or",
      "xor",       "threadgroup"};
  for (size_t i = 0; i < sizeof words / sizeof *words; ++i) {
    if (!strcmp(words[i], name)) return true;
  }
  // Values without a name of their own, temporaries and parameters.
  bool lettered = name[0] == 'v' || name[0] == 't' || name[0] == 'p';
  return lettered && name[1] && name[1 + strspn(name + 1, "0123456789")] == 0;
}

// Names of values end in an underscore and a number: buffers' must not.
static void drop_number(char* name) {
  char* last = strrchr(name, '_');
  if (!last || !last[1] || last[1 + strspn(last + 1, "0123456789")]) return;
  memmove(last, last + 1, strlen(last));
}

static const char* identifier(c_printer_t* p, const char* given) {
  char name[48];
  size_t size = 0;
  for (; *given && size + 1 < sizeof name; ++given) {
    bool letter = (*given >= 'a' && *given <= 'z') ||
                  (*given >= 'A' && *given <= 'Z') ||
                  (size && *given >= '0' && *given <= '9');
    if (letter) name[size++] = *given;
    if (!letter && size && name[size - 1] != '_') name[size++] = '_';
  }
  while (size && name[size - 1] == '_')
    --size;
  name[size] = 0;
  drop_number(name);
  return pestle_c_printer_format(p, "%s", size ? name : "b");
}

static void name_buffers(c_printer_t* p) {
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    const char* name = identifier(p, pestle_kir_string(p->k, u->name));
    bool taken = is_taken(name) || !strncmp(name, "pestle", 6);
    for (uint32_t c = 0; c < b && !taken; ++c) {
      taken = !strcmp(name, p->name[c]);
    }
    if (taken) name = pestle_c_printer_format(p, "%s_buffer%u", name, b);
    bool global = u->scope == PESTLE_KIR_GLOBAL;
    p->name[b] = name;
    p->base[b] = name;
    if (global && p->d->blocks)
      p->base[b] = pestle_c_printer_format(p, "%s.v", name);
  }
}

// Before a wait memory is seen as it is given, behind it as the openings name it.
static void name_given(c_printer_t* p, bool is_given) {
  static const char given[] = "pestle_given_";
  if (!p->d->wait || !p->waits) return;
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    if (pestle_kir_buffer(p->k, b)->scope != PESTLE_KIR_GLOBAL) continue;
    p->name[b] = is_given
                     ? pestle_c_printer_format(p, "%s%s", given, p->name[b])
                     : p->name[b] + sizeof given - 1;
    p->base[b] = p->name[b];
  }
}

void pestle_c_printer_name(const pestle_kir_t* kernel, char* name,
                           size_t capacity) {
  snprintf(name, capacity, "pestle_%s",
           pestle_kir_string(kernel, kernel->name));
  for (char* c = name; *c; ++c) {
    bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
                  (*c >= '0' && *c <= '9');
    if (!letter) *c = '_';
  }
}

// --- Loops ---

static void open_region(c_printer_t* p, uint32_t id, const char* end) {
  if (p->region_count == CTEXT_MAX_DEPTH) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "regions are nested more than %d deep",
                          CTEXT_MAX_DEPTH);
    return;
  }
  p->region[p->region_count++] = (c_printer_region_t){id, end};
  ++p->depth;
}

static void close_region(c_printer_t* p) {
  if (!p->region_count) return;
  const c_printer_region_t* region = &p->region[--p->region_count];
  if (!region->end) return;
  if (*region->end) pestle_c_printer_line(p, "%s;", region->end);
  --p->depth;
  pestle_c_printer_line(p, "}");
}

static const char* loop_name(c_printer_t* p, uint32_t id) {
  const char* given = pestle_kir_string(p->k, c_printer_inst(p, id)->name);
  return pestle_c_printer_format(p, "%s_%u",
                                 identifier(p, *given ? given : "i"), id);
}

static void set_name(c_printer_t* p, uint32_t id, const char* name) {
  const char** lane = pestle_c_printer_lanes(p, 1);
  lane[0] = name;
  pestle_c_printer_alias(p, id, lane, 1);
}

// What moves the variable of a loop on.
static const char* advanced(c_printer_t* p, pestle_c_printer_class_t c,
                            const char* name, int64_t step) {
  if (p->pairs && c == PESTLE_C_PRINTER_I64) {
    return pestle_c_printer_format(
        p, "%s = %s", name,
        pestle_c_printer_sum(p, c, name, pestle_c_printer_int(p, c, step)));
  }
  return pestle_c_printer_format(p, "%s += %lld", name, (long long)step);
}

// A loop over what the device runs side by side: from |first| on, |step| apart
// where that does not reach all of |extent|.
static void bound_loop(c_printer_t* p, uint32_t id, const char* first,
                       int64_t step, bool guarded, const char* end) {
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  const char* type = pestle_c_printer_type(p, c);
  const char* name = loop_name(p, id);
  const char* extent =
      pestle_c_printer_get(p, c_printer_inst(p, id)->arg[1], 0);
  set_name(p, id, name);
  if (p->region_count == CTEXT_MAX_DEPTH) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED, "too many loops");
    return;
  }
  if (step) {
    pestle_c_printer_line(p, "for (%s %s = %s; %s; %s) {", type, name,
                          pestle_c_printer_bare(p, first),
                          pestle_c_printer_less(p, c, name, extent),
                          advanced(p, c, name, step));
  } else {
    pestle_c_printer_line(p, "%s %s = %s;", type, name,
                          pestle_c_printer_bare(p, first));
    if (!guarded) {
      // Names are unique: no block is needed to hold this one.
      p->region[p->region_count++] = (c_printer_region_t){id, NULL};
      return;
    }
    pestle_c_printer_line(p, "if (%s) {",
                          pestle_c_printer_less(p, c, name, extent));
  }
  open_region(p, id, end);
}

static void group_loop(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  unsigned axis = n->arg[3] - PESTLE_KIR_GROUP_X;
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  const char* group = pestle_c_printer_id(p, c, p->d->group[axis]);
  uint32_t most = p->target->max_groups[axis], lanes = 1;
  bool threads = !p->has_lanes && axis == 0;
  if (threads) {
    lanes = p->lane[0];
    group = pestle_c_printer_product(p, c, group,
                                     pestle_c_printer_int(p, c, lanes));
    group = pestle_c_printer_sum(p, c, group,
                                 pestle_c_printer_id(p, c, p->d->lane[0]));
  }
  int64_t step = 0;
  uint32_t cluster = axis ? 1 : pestle_kir_cluster(p->k);
  if (cluster > 1) {
    if (p->groups[axis] > most) {
      pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                            "a launch has at most %u groups", most);
      return;
    }
    bound_loop(p, id, pestle_c_printer_format(p, "(%s / %u)", group, cluster),
               0, false, "");
    return;
  }
  if (p->groups[axis] > most) {
    p->groups[axis] = most;
    step = (int64_t)most * lanes;
  }
  bool exact = (int64_t)p->groups[axis] * lanes == p->k->group[axis];
  // Lanes that are still in one round must not meet the next one's memory.
  bool shares = step && p->has_lanes && p->k->shared_bytes;
  bound_loop(p, id, group, step, threads && !exact,
             shares ? p->d->barrier : "");
}

// A group's number in its cluster; clusters are groups that follow each other.
static void cluster_loop(c_printer_t* p, uint32_t id) {
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  uint32_t cluster = pestle_kir_cluster(p->k);
  const char* group = pestle_c_printer_id(p, c, p->d->group[0]);
  if (!(p->target->features & PESTLE_C_PRINTER_HAS_TILES)) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "the device has no clusters of groups");
    return;
  }
  bound_loop(p, id, pestle_c_printer_format(p, "(%s %% %u)", group, cluster), 0,
             false, "");
}

static void lane_loop(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  bool unit = p->wide && n->arg[3] == PESTLE_KIR_LANE_Z;
  const char* lane =
      unit ? p->d->group[2] : p->d->lane[n->arg[3] - PESTLE_KIR_LANE_X];
  bound_loop(p, id, pestle_c_printer_id(p, c, lane), 0, false, "");
}

static void serial_loop(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* name = loop_name(p, id);
  pestle_c_printer_class_t c = pestle_c_printer_class(p, PESTLE_INDEX);
  const char* type = pestle_c_printer_type(p, c);
  bool plain = !p->pairs || c != PESTLE_C_PRINTER_I64;
  const char* lo =
      pestle_c_printer_bare(p, pestle_c_printer_get(p, n->arg[0], 0));
  const char* hi = pestle_c_printer_get(p, n->arg[1], 0);
  set_name(p, id, name);
  if (n->arg[3] == PESTLE_KIR_UNROLL && *p->d->unroll) {
    pestle_c_printer_line(p, "%s", p->d->unroll);
  }
  const char* step = n->arg[2] == 1 && plain
                         ? pestle_c_printer_format(p, "++%s", name)
                         : advanced(p, c, name, (int32_t)n->arg[2]);
  pestle_c_printer_line(p, "for (%s %s = %s; %s; %s) {", type, name, lo,
                        pestle_c_printer_less(p, c, name, hi), step);
  open_region(p, id, "");
}

// --- Reductions over a subgroup ---

// Where the language has none: through memory that the group shares.
static const char* exchange(c_printer_t* p, const char* place,
                            pestle_c_printer_class_t c, unsigned distance) {
  const char* type = pestle_c_printer_type(p, c);
  const char* own = "pestle_lane";
  p->uses_shuffle = true;
  const char* array =
      pestle_c_printer_format(p, "pestle_shared_transpose_%u", c);
  pestle_c_printer_line(p, "%s[%s] = %s;", array, own, place);
  pestle_c_printer_line(p, "%s;", p->d->barrier);
  const char* name = pestle_c_printer_format(p, "t%u", p->temporaries++);
  pestle_c_printer_line(p, "%s %s = %s[%s ^ %u];", type, name, array, own,
                        distance);
  pestle_c_printer_line(p, "%s;", p->d->barrier);
  return name;
}

// |own| of the lane whose number differs in the bits of |distance|.
static const char* passed(c_printer_t* p, pestle_c_printer_class_t c,
                          const char* own, unsigned distance) {
  const char* type = pestle_c_printer_type(p, c);
  bool wide =
      (c == PESTLE_C_PRINTER_I64 || c == PESTLE_C_PRINTER_U64) && !p->pairs;
  unsigned needs =
      wide ? PESTLE_C_PRINTER_HAS_SUBGROUP64 : PESTLE_C_PRINTER_HAS_SUBGROUP;
  if (!p->d->shuffle_xor || !(p->target->features & needs)) {
    p->exchanges |= 1u << c;
    return exchange(p, own, c, distance);
  }
  const char* far = pestle_c_printer_format(p, "%u", distance);
  const char* pairs[] = {"v", pestle_c_printer_bare(p, own), "m", far, NULL};
  const char* name = pestle_c_printer_format(p, "t%u", p->temporaries++);
  p->uses_shuffle = true;
  pestle_c_printer_line(p, "%s %s = %s;", type, name,
                        pestle_c_printer_expand(p, p->d->shuffle_xor, pairs));
  return name;
}

static const char* reduced(c_printer_t* p, const pestle_kir_inst_t* n,
                           const char* x) {
  pestle_c_printer_class_t c = pestle_c_printer_class(p, n->type);
  bool is_bool = c == PESTLE_C_PRINTER_BOOL;
  for (unsigned m = n->arg[2] / 2; m; m /= 2) {
    x = pestle_c_printer_atom(p, c, x);
    const char* own = x;
    if (is_bool) own = pestle_c_printer_format(p, "(%s ? 1 : 0)", x);
    const char* other = passed(p, is_bool ? PESTLE_C_PRINTER_I32 : c, own, m);
    if (is_bool) other = pestle_c_printer_format(p, "(%s != 0)", other);
    const char* pair[3] = {x, other, "0"};
    x = pestle_c_printer_row(p, n->arg[1], n->type, pair, NULL);
  }
  return x;
}

static void reduce_lanes(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  for (unsigned l = 0; l < n->lanes; ++l) {
    lane[l] = pestle_c_printer_get(p, n->arg[0], l);
    // Where a group is one thread, it has no others.
    if (p->has_lanes) lane[l] = reduced(p, n, lane[l]);
  }
  pestle_c_printer_define_named(p, id, lane, n->lanes);
}

// --- What lanes do to one place ---

static void ballot(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, 1);
  const char* on = pestle_c_printer_get(p, n->arg[0], 0);
  const char* pairs[] = {"v", pestle_c_printer_bare(p, on), NULL};
  if (!p->d->ballot || !p->has_lanes) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "the device has no ballots of a subgroup");
    return;
  }
  lane[0] = pestle_c_printer_expand(p, p->d->ballot, pairs);
  pestle_c_printer_define_named(p, id, lane, 1);
}

static void atomic_add(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, 1);
  const char* at = pestle_c_printer_get(p, n->arg[1], 0);
  const char* v = pestle_c_printer_get(p, n->arg[2], 0);
  const char* pairs[] = {
      "name", p->name[n->arg[0]],          "at", pestle_c_printer_bare(p, at),
      "v",    pestle_c_printer_bare(p, v), NULL};
  if (!p->d->atomic_add) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "the device has no atomic sums");
    return;
  }
  lane[0] = pestle_c_printer_expand(p, p->d->atomic_add, pairs);
  pestle_c_printer_define_named(p, id, lane, 1);
}

// --- Instructions ---

static void put_openings(c_printer_t* p, pestle_plugin_text_t* out);

// What kernels ask for that say where they wait: of others it is made for CPUs.
static void prefetch(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  if (!p->d->prefetch || !p->waits) return;
  const char* at = pestle_c_printer_get(p, n->arg[1], 0);
  const char* pairs[] = {"name", p->name[n->arg[0]], "at",
                         pestle_c_printer_bare(p, at), NULL};
  pestle_c_printer_line(p, "%s;",
                        pestle_c_printer_expand(p, p->d->prefetch, pairs));
}

static void instruction(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  p->id = id;
  if (pestle_c_printer_tile(p, id) || pestle_c_printer_unit(p, id)) return;
  switch (n->op) {
    case PESTLE_KIR_FOR:
      if (n->arg[3] == PESTLE_KIR_CLUSTER) {
        cluster_loop(p, id);
      } else if (n->arg[3] >= PESTLE_KIR_LANE_X) {
        lane_loop(p, id);
      } else if (n->arg[3] >= PESTLE_KIR_GROUP_X) {
        group_loop(p, id);
      } else {
        serial_loop(p, id);
      }
      return;
    case PESTLE_KIR_IF:
      pestle_c_printer_line(
          p, "if (%s) {",
          pestle_c_printer_bare(p, pestle_c_printer_get(p, n->arg[0], 0)));
      open_region(p, id, "");
      return;
    case PESTLE_KIR_ELSE:
      --p->depth;
      pestle_c_printer_line(p, "} else {");
      ++p->depth;
      return;
    case PESTLE_KIR_END:
      close_region(p);
      return;
    case PESTLE_KIR_BARRIER:
      if (p->has_lanes)
        pestle_c_printer_line(p, "%s;",
                              p->launch_wide ? "pestle_launch_barrier()"
                              : p->wide      ? p->d->wide_barrier
                                             : p->d->barrier);
      return;
    case PESTLE_KIR_SG_REDUCE:
      reduce_lanes(p, id);
      return;
    case PESTLE_KIR_SG_BALLOT:
      ballot(p, id);
      return;
    case PESTLE_KIR_ATOMIC_ADD:
      atomic_add(p, id);
      return;
    case PESTLE_KIR_ALLOC:
      return;
    case PESTLE_KIR_PREFETCH:
      prefetch(p, id);
      return;
    case PESTLE_KIR_GRID_WAIT:
      name_given(p, false);
      if (p->d->wait) put_openings(p, &p->out);
      return;
    case PESTLE_KIR_TRAP_IF:
      pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                            "a GPU's launch has no traps");
      return;
    case PESTLE_KIR_LOAD:
    case PESTLE_KIR_STORE:
    case PESTLE_KIR_GATHER:
    case PESTLE_KIR_SCATTER:
      pestle_c_printer_access(p, id);
      return;
    default:
      pestle_c_printer_value(p, id);
      return;
  }
}

// --- The frame ---

static const pestle_kir_buffer_t* buffer_of_slot(const c_printer_t* p,
                                                 uint32_t slot,
                                                 uint32_t* out_buffer) {
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    if (u->scope != PESTLE_KIR_GLOBAL || u->arg_slot != slot) continue;
    *out_buffer = b;
    return u;
  }
  return NULL;
}

static bool shares_alias(const c_printer_t* p, uint32_t buffer) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, buffer);
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* other = pestle_kir_buffer(p->k, b);
    if (b != buffer && other->scope == PESTLE_KIR_GLOBAL &&
        other->alias_set == u->alias_set) {
      return true;
    }
  }
  return false;
}

// Arguments in slot order, then parameters, |between| them.
static unsigned put_arguments(c_printer_t* p, pestle_plugin_text_t* out,
                              const char* between) {
  unsigned n = 0;
  for (uint32_t s = 0; s < p->k->arg_count + p->k->param_count; ++s) {
    char number[16];
    uint32_t b;
    const char* name = NULL;
    const char* pattern = p->d->parameter;
    const char *type = "", *limit = "";
    snprintf(number, sizeof number, "%u", n);
    if (s < p->k->arg_count) {
      const pestle_kir_buffer_t* u = buffer_of_slot(p, s, &b);
      bool reads = u && (u->flags & PESTLE_KIR_READONLY);
      pattern = reads ? p->d->argument_in : p->d->argument;
      name = u ? p->name[b] : pestle_c_printer_format(p, "unused_%u_", s);
      type = pestle_c_printer_memory_type(
          p, u ? pestle_c_printer_memory(p, u->dtype) : PESTLE_C_PRINTER_M_U32);
      if (!u || !shares_alias(p, b)) limit = p->d->restricted;
    } else {
      name = pestle_c_printer_format(p, "p%u", s - p->k->arg_count);
      type = pestle_c_printer_type(p, PESTLE_C_PRINTER_I64);
    }
    const char* pairs[] = {"type", type,       "name", name, "n",
                           number, "restrict", limit,  NULL};
    pestle_plugin_text_put(out, n ? between : "");
    pestle_plugin_text_put(out, pestle_c_printer_expand(p, pattern, pairs));
    ++n;
  }
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    if (pestle_kir_buffer(p->k, b)->scope != PESTLE_KIR_TENSOR_MAP) continue;
    pestle_plugin_text_put(out, n++ ? between : "");
    pestle_plugin_text_put(
        out,
        pestle_c_printer_format(
            p, "const __grid_constant__ pestle_tensor_map %s", p->name[b]));
  }
  return n;
}

// The argument that a kernel reads much of, and makes little of, or buffer_count.
static uint32_t much_read(const c_printer_t* p, uint64_t* out_bytes) {
  enum { LEAST_BYTES = 1 << 20, LEAST_RATIO = 16 };
  uint32_t best = p->k->buffer_count;
  uint64_t most = 0, made = 0;
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    uint64_t bytes =
        (uint64_t)u->count * pestle_dtype_size((pestle_dtype_t)u->dtype);
    if (!(u->flags & PESTLE_KIR_READONLY)) {
      made += bytes;
    } else if (bytes > most) {
      most = bytes;
      best = b;
    }
  }
  *out_bytes = most;
  return most >= LEAST_BYTES && made * LEAST_RATIO <= most ? best
                                                           : p->k->buffer_count;
}

// While such a kernel waits for the one in front of it, groups that may run by then ask for the
// beginning of their share: where rows are products of one vector, that is their matrix. What is
// asked for is only a hint, whoever writes it.
static void put_share(c_printer_t* p, pestle_plugin_text_t* out) {
  enum { LINE = 128, FIRST_LANES = 1 << 18 };
  uint64_t bytes, lanes = p->lane[0];
  uint32_t b = much_read(p, &bytes);
  if (!p->d->prefetch || b == p->k->buffer_count || !p->has_lanes || p->wide ||
      p->lane[1] * p->lane[2] != 1 || p->groups[1] * p->groups[2] != 1 ||
      !p->groups[0] || pestle_kir_cluster(p->k) > 1)
    return;
  uint64_t share = bytes / p->groups[0] / LINE * LINE;
  if (!share) return;
  if (lanes > share / LINE) lanes = share / LINE;
  const char *group = p->d->group[0], *lane = p->d->lane[0];
  pestle_plugin_text_format(
      out,
      "  if (%s < %uu && %s < %uu)\n"
      "    pestle_prefetch((const char*)pestle_given_%s +\n"
      "                    (%s * %lluull + %s * %uu));\n",
      group, (unsigned)(FIRST_LANES / p->lane[0]), lane, (unsigned)lanes,
      p->name[b], group, (unsigned long long)share, lane, (unsigned)LINE);
}

// Buffers that are read where another one says, of which a kernel reads as much as it makes.
static bool* find_picked(c_printer_t* p) {
  const pestle_kir_t* k = p->k;
  bool* found = pestle_plugin_arena_alloc(
      &p->arena, (size_t)k->inst_count + k->buffer_count + 1, sizeof(bool));
  bool* picked = found ? found + k->inst_count : NULL;
  for (uint32_t i = 0; i < k->inst_count && found; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    const char* operands = pestle_kir_op_info(n->op).operands;
    bool reads = n->op == PESTLE_KIR_LOAD || n->op == PESTLE_KIR_GATHER;
    for (int a = 0; operands[a]; ++a) {
      bool value = operands[a] == 'v' || operands[a] == 'o';
      found[i] = found[i] || (value && n->arg[a] < i && found[n->arg[a]]);
    }
    if (!reads) continue;
    if (n->arg[1] < i && found[n->arg[1]]) picked[n->arg[0]] = true;
    found[i] = pestle_kir_buffer(k, n->arg[0])->scope == PESTLE_KIR_GLOBAL;
  }
  return picked;
}

// Bytes of buffer |b| if it is a global one that is read alone, or one that is written.
static double bytes_of(const c_printer_t* p, uint32_t b, bool read_only) {
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
  bool counts = u->scope == PESTLE_KIR_GLOBAL &&
                read_only == ((u->flags & PESTLE_KIR_READONLY) != 0);
  return counts ? (double)u->count * pestle_dtype_size((pestle_dtype_t)u->dtype)
                : 0;
}

// Whether the kernel lets the next one begin before all of its groups have ended, which is
// worth a fifth of a microsecond. Measured on an H200: groups that say so begin every
// 1.35 ns at best, others every 0.73. Of many small groups that would be the kernel's time,
// not what it moves: 12,960 of 128 lanes that turn rows took 17.1 us, and 9.4.
static bool lets_begin(c_printer_t* p) {
  const double group = 1.35, start = 1400, bytes_a_ns = 3500;
  const bool* picked = find_picked(p);
  double made = 0;
  for (uint32_t b = 0; b < p->k->buffer_count; ++b)
    made += bytes_of(p, b, false);
  double bytes = made;
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    double all = bytes_of(p, b, true);
    bytes += picked && picked[b] && all > made ? made : all;
  }
  double groups = (double)p->groups[0] * p->groups[1] * p->groups[2];
  return p->waits || groups * group <= start + bytes / bytes_a_ns;
}

// What stands in the kernel for each argument, where the language cannot pass
// a pointer as it is, or memory is seen from a wait on.
static void put_openings(c_printer_t* p, pestle_plugin_text_t* out) {
  if (p->d->wait && !p->waits) put_share(p, out);
  if (p->d->wait) {
    pestle_plugin_text_format(
        out, "  const long long pestle_seen = pestle_grid_wait(%d);\n",
        lets_begin(p));
  }
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    if (u->scope != PESTLE_KIR_GLOBAL || !p->d->opening) continue;
    bool reads = u->flags & PESTLE_KIR_READONLY;
    const char* pairs[] = {
        "type",
        pestle_c_printer_memory_type(p, pestle_c_printer_memory(p, u->dtype)),
        "name",
        p->name[b],
        "const",
        reads ? "const " : "",
        "restrict",
        shares_alias(p, b) ? "" : p->d->restricted,
        NULL};
    pestle_plugin_text_format(out, "  %s\n",
                              pestle_c_printer_expand(p, p->d->opening, pairs));
  }
}

// Private buffers, and shared ones where a group is one thread.
static void put_registers(c_printer_t* p, pestle_plugin_text_t* out) {
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    bool tile = u->scope == PESTLE_KIR_PRIVATE;
    if (u->scope == PESTLE_KIR_TENSOR_MAP) continue;
    if (!tile && (u->scope != PESTLE_KIR_SHARED || p->has_lanes)) continue;
    pestle_c_printer_class_t c = pestle_c_printer_class(p, u->dtype);
    const char* type = tile ? pestle_c_printer_type(p, c)
                            : pestle_c_printer_memory_type(
                                  p, pestle_c_printer_memory(p, u->dtype));
    unsigned long long count =
        (unsigned long long)u->count * (tile ? u->lanes : 1);
    const char* exact = tile && c_printer_is_float(u->dtype) ? p->d->exact : "";
    pestle_plugin_text_format(
        out, tile && count == 1 ? "  %s%s %s;\n" : "  %s%s %s[%llu];\n", exact,
        type, p->name[b], count);
  }
}

static void put_shared_array(c_printer_t* p, pestle_plugin_text_t* out,
                             const char* type, const char* name,
                             unsigned long long count, unsigned size) {
  char number[32], at[32];
  snprintf(number, sizeof number, "%llu", count);
  snprintf(at, sizeof at, "%llu", (unsigned long long)p->shared_bytes);
  p->shared_bytes += (count * size + 63) / 64 * 64;
  const char* pairs[] = {"type", type, "name", name, "count",
                         number, "at", at,     NULL};
  pestle_plugin_text_format(out, "%s%s\n", p->d->shared_outside ? "" : "  ",
                            pestle_c_printer_expand(p, p->d->shared, pairs));
}

static void put_shared(c_printer_t* p, pestle_plugin_text_t* out) {
  if (!p->has_lanes) return;
  unsigned lanes = p->lane[0] * p->lane[1] * p->lane[2];
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    if (u->scope != PESTLE_KIR_SHARED) continue;
    put_shared_array(
        p, out,
        pestle_c_printer_memory_type(p, pestle_c_printer_memory(p, u->dtype)),
        p->name[b], u->count, pestle_dtype_size((pestle_dtype_t)u->dtype));
  }
  for (unsigned c = 0; c < PESTLE_C_PRINTER_CLASSES; ++c) {
    if (!(p->exchanges >> c & 1)) continue;
    const char* type = pestle_c_printer_type(p, (pestle_c_printer_class_t)c);
    bool wide = c == PESTLE_C_PRINTER_I64 || c == PESTLE_C_PRINTER_U64 ||
                c == PESTLE_C_PRINTER_F64;
    put_shared_array(
        p, out, type,
        pestle_c_printer_format(p, "pestle_shared_transpose_%u", c), lanes,
        wide ? 8 : 4);
  }
}

static void put_lane_number(c_printer_t* p, pestle_plugin_text_t* out) {
  if (!p->exchanges) return;
  const char* id[3];
  for (int a = 0; a < 3; ++a)
    id[a] = pestle_c_printer_cast(p, PESTLE_C_PRINTER_I32, p->d->lane[a]);
  pestle_plugin_text_format(out,
                            "  %s pestle_lane = (%s * %u + %s) * %u + %s;\n",
                            pestle_c_printer_type(p, PESTLE_C_PRINTER_I32),
                            id[2], p->lane[1], id[1], p->lane[0], id[0]);
}

static void put_head(c_printer_t* p, pestle_plugin_text_t* out,
                     const char* const* pairs) {
  const char* note = pestle_kir_string(p->k, p->k->note);
  pestle_plugin_text_put(out, pestle_c_printer_expand(p, p->d->prelude, pairs));
  pestle_plugin_text_format(out, "// Kernel %s\n",
                            pestle_kir_string(p->k, p->k->name));
  pestle_plugin_text_comment(out, "// ", note);
  pestle_plugin_text_put(out, "\n");
  if (p->source) {
    pestle_plugin_text_put(out, p->source->head);
    pestle_plugin_text_put(out, "\n");
  }
}

// A block for elements of |type|, unless the same was printed before: two words
// are an integer of 64 bits or a vector of two.
static void put_block(c_printer_t* p, pestle_plugin_text_t* out,
                      const char* type, unsigned align, bool reads,
                      const char** seen) {
  const char* name =
      pestle_c_printer_format(p, "pestle_%s%s", type, reads ? "_in" : "");
  for (; *seen; ++seen) {
    if (!strcmp(*seen, name)) return;
  }
  *seen = name;
  pestle_plugin_text_format(
      out,
      "layout(buffer_reference, std430, buffer_reference_align = %u) "
      "%sbuffer %s { %s v[]; };\n",
      align, reads ? "readonly " : "", name, type);
}

// The blocks of GLSL: one type an element's, and the members.
static void put_blocks(c_printer_t* p, pestle_plugin_text_t* out) {
  const char* seen[2 * 3 * PESTLE_C_PRINTER_MEMORIES + 1] = {NULL};
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    bool reads = u->flags & PESTLE_KIR_READONLY;
    pestle_c_printer_memory_t m = pestle_c_printer_memory(p, u->dtype);
    unsigned size = pestle_dtype_size((pestle_dtype_t)u->dtype);
    for (unsigned run = 1; run <= 4; run *= 2) {
      if (run > 1 && !(p->runs[b] & run)) continue;
      const char* type = run == 1   ? pestle_c_printer_memory_type(p, m)
                         : run == 2 ? p->d->vector2[m]
                                    : p->d->vector4[m];
      put_block(p, out, type, size * run, reads, seen);
    }
  }
  const char* open = p->table
                         ? "layout(buffer_reference, std430) readonly buffer "
                           "pestle_table {\n"
                         : "layout(push_constant, std430) uniform "
                           "pestle_arguments {\n";
  if (p->k->arg_count + p->k->param_count == 0) return;
  pestle_plugin_text_put(out, open);
  put_arguments(p, out, "");
  pestle_plugin_text_put(out, "};\n");
  if (p->table) {
    pestle_plugin_text_put(
        out,
        "layout(push_constant, std430) uniform pestle_arguments { "
        "pestle_table pestle_at; };\n");
  }
}

// References to the same memory as vectors; those that come through a table.
static void put_references(c_printer_t* p, pestle_plugin_text_t* out) {
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, b);
    if (u->scope != PESTLE_KIR_GLOBAL) continue;
    bool reads = u->flags & PESTLE_KIR_READONLY;
    const char* end = reads ? "_in" : "";
    pestle_c_printer_memory_t m = pestle_c_printer_memory(p, u->dtype);
    if (p->table) {
      pestle_plugin_text_format(out, "  pestle_%s%s %s = pestle_at.%s;\n",
                                pestle_c_printer_memory_type(p, m), end,
                                p->name[b], p->name[b]);
    }
    for (unsigned run = 2; run <= 4; run *= 2) {
      if (!(p->runs[b] & run)) continue;
      const char* type = run == 2 ? p->d->vector2[m] : p->d->vector4[m];
      pestle_plugin_text_format(
          out, "  pestle_%s%s %s_v%u = pestle_%s%s(%s);\n", type, end,
          p->name[b], run, type, end, p->name[b]);
    }
  }
  for (uint32_t i = 0; p->table && i < p->k->param_count; ++i) {
    pestle_plugin_text_format(out, "  %s p%u = pestle_at.p%u;\n",
                              pestle_c_printer_type(p, PESTLE_C_PRINTER_I64), i,
                              i);
  }
}

// Whether registers are what lanes hold through a loop in which they wait for each other,
// and no unit has a second group: then the compiler may spend all it has, and lets loads and
// chains of arithmetic overlap, which a guess at more groups would forbid.
static bool keeps_registers(const c_printer_t* p) {
  enum { MOST_BUFFERS = 512, LEAST_WORDS = 32 };
  uint64_t groups = (uint64_t)p->groups[0] * p->groups[1] * p->groups[2];
  uint64_t written[MOST_BUFFERS / 64] = {0}, loops = 0, words = 0;
  bool waits = false;
  if (p->wide) return true;
  if (groups > p->target->units || p->k->buffer_count > MOST_BUFFERS)
    return false;
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    char kind = pestle_kir_op_info(n->op).klass;
    if (kind == 'B') {
      bool turns = n->op == PESTLE_KIR_FOR && n->arg[3] == PESTLE_KIR_SERIAL;
      loops = loops << 1 | turns;
    } else if (kind == 'E') {
      loops >>= 1;
    } else if (n->op == PESTLE_KIR_STORE && loops) {
      written[n->arg[0] / 64] |= UINT64_C(1) << n->arg[0] % 64;
    }
    waits |= n->op == PESTLE_KIR_BARRIER && loops;
  }
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    const pestle_kir_buffer_t* buffer = pestle_kir_buffer(p->k, b);
    if (buffer->scope == PESTLE_KIR_PRIVATE && !(written[b / 64] >> b % 64 & 1))
      words += buffer->count * buffer->lanes;
  }
  return waits && words >= LEAST_WORDS;
}

static void put_kernel(c_printer_t* p, pestle_plugin_text_t* out) {
  char name[256], count[16], numbers[4][16];
  pestle_c_printer_name(p->k, name, sizeof name);
  for (int a = 0; a < 3; ++a)
    snprintf(numbers[a], sizeof numbers[a], "%u", p->lane[a]);
  snprintf(numbers[3], sizeof numbers[3], "%u",
           p->lane[0] * p->lane[1] * (p->wide ? 1 : p->lane[2]));
  char wide[64] = "";
  if (p->wide && !p->launch_wide)
    snprintf(wide, sizeof wide, "%s(1, 1, %u) ", p->d->wide_kernel, p->lane[2]);
  pestle_plugin_text_t arguments = {.host = p->host};
  unsigned n = 0;
  if (!p->d->blocks) n = put_arguments(p, &arguments, ",\n    ");
  snprintf(count, sizeof count, "%u", n);
  // With the number of groups a unit holds the compiler knows how many registers
  // roles begin with; else it may leave out what they ask for.
  const char* roles =
      pestle_c_printer_has_tiles(p) || keeps_registers(p) ? ", 1" : "";
  uint32_t groups = pestle_kir_cluster(p->k);
  const char* cluster =
      groups > 1 ? pestle_c_printer_format(p, " __cluster_dims__(%u, 1, 1)",
                                           (unsigned)groups)
                 : "";
  const char* pairs[] = {
      "name",     name,    "x",        numbers[0], "y",   numbers[1], "z",
      numbers[2], "lanes", numbers[3], "n",        count, "roles",    roles,
      "wide",     wide,    "cluster",  cluster,    NULL};
  put_head(p, out, pairs);
  if (p->d->wait) pestle_plugin_text_put(out, p->d->wait);
  if (p->launch_wide) pestle_plugin_text_put(out, p->d->launch_barrier);
  pestle_c_printer_helpers(p, out);
  pestle_c_printer_tile_functions(p, out);
  pestle_c_printer_unit_functions(p, out);
  if (p->d->blocks) put_blocks(p, out);
  if (p->d->shared_outside) put_shared(p, out);
  pestle_plugin_text_put(out, pestle_c_printer_expand(p, p->d->kernel, pairs));
  pestle_plugin_text_append(out, arguments.data, arguments.size);
  if (arguments.failed) out->failed = true;
  pestle_plugin_text_deinit(&arguments);
  pestle_plugin_text_put(out,
                         pestle_c_printer_expand(p, p->d->kernel_end, pairs));
  if (!p->d->wait || !p->waits) put_openings(p, out);
  if (p->d->blocks) put_references(p, out);
  if (!p->d->shared_outside) put_shared(p, out);
  put_registers(p, out);
  put_lane_number(p, out);
  pestle_c_printer_put_zeros(p, out);
  pestle_plugin_text_append(out, p->out.data, p->out.size);
  if (p->out.failed) out->failed = true;
  pestle_plugin_text_put(out, "}\n");
}

// --- All of it ---

static bool prepare(c_printer_t* p) {
  size_t count = (size_t)p->k->inst_count + 1, buffers = p->k->buffer_count + 1;
  p->value = pestle_plugin_arena_alloc(&p->arena, count, sizeof *p->value);
  p->uses = pestle_plugin_arena_alloc(&p->arena, count, sizeof *p->uses);
  p->scope = pestle_plugin_arena_alloc(&p->arena, count, sizeof *p->scope);
  p->fused = pestle_plugin_arena_alloc(&p->arena, count, sizeof *p->fused);
  p->swallowed = pestle_plugin_arena_alloc(&p->arena, count, sizeof(bool));
  p->base = pestle_plugin_arena_alloc(&p->arena, buffers, sizeof *p->base);
  p->name = pestle_plugin_arena_alloc(&p->arena, buffers, sizeof *p->name);
  p->runs = pestle_plugin_arena_alloc(&p->arena, buffers, sizeof *p->runs);
  bool fit = false;
  bool ok = p->value && p->uses && p->scope && p->fused && p->swallowed &&
            p->base && p->name && p->runs &&
            pestle_c_printer_indices_fit(p->host, p->k, &fit);
  p->wide_index = !fit;
  return ok;
}

static void check_features(c_printer_t* p) {
  unsigned has = p->target->features;
  const char* missing = NULL;
  for (uint32_t b = 0; p->pairs && b < p->k->buffer_count; ++b) {
    if (pestle_kir_buffer(p->k, b)->count > INT32_MAX)
      missing = "64-bit integers, and a buffer more than 32 bits count";
  }
  if (p->uses_i64 && !(has & PESTLE_C_PRINTER_HAS_INT64))
    missing = "64-bit integers";
  if (p->uses_f64 && !(has & PESTLE_C_PRINTER_HAS_F64)) missing = "f64";
  for (uint32_t b = 0; b < p->k->buffer_count; ++b) {
    unsigned size =
        pestle_dtype_size((pestle_dtype_t)pestle_kir_buffer(p->k, b)->dtype);
    if (size == 1 && !(has & PESTLE_C_PRINTER_HAS_STORAGE8))
      missing = "8-bit buffers";
    if (size == 2 && !(has & PESTLE_C_PRINTER_HAS_STORAGE16)) {
      missing = "16-bit buffers";
    }
  }
  p->id = p->k->inst_count;
  if (missing) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED, "the device has no %s",
                          missing);
  }
}

static pestle_status_t print_all(c_printer_t* p,
                                 pestle_c_printer_kernel_t* out) {
  if (!prepare(p)) {
    return PESTLE_PLUGIN_ERROR(p->host, OUT_OF_MEMORY,
                               "no memory to print a kernel");
  }
  count_uses(p);
  find_fused(p);
  measure(p);
  p->table = p->d->blocks &&
             p->k->arg_count + p->k->param_count > p->target->argument_limit;
  name_buffers(p);
  p->depth = 1;
  for (uint32_t i = 0; i < p->k->inst_count; ++i)
    p->waits |= c_printer_inst(p, i)->op == PESTLE_KIR_GRID_WAIT;
  name_given(p, true);
  for (uint32_t i = 0; i < p->k->inst_count && !p->status; ++i)
    instruction(p, i);
  if (p->source) {
    pestle_plugin_text_put(&p->out, p->source->body);
    pestle_plugin_text_put(&p->out, "\n");
  }
  pestle_plugin_text_t text = {.host = p->host};
  if (!p->status) put_kernel(p, &text);
  if (!p->status) check_features(p);
  if (!p->status && p->shared_bytes > UINT32_MAX) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "its group shares more than 4 GiB");
  }
  if (p->status) {
    pestle_plugin_text_deinit(&text);
    return p->status;
  }
  memcpy(out->group, p->groups, sizeof out->group);
  memcpy(out->lane, p->lane, sizeof out->lane);
  if (p->wide) {
    // A unit is a work-group: there are as many along z.
    out->group[2] = p->lane[2];
    out->lane[2] = 1;
    out->is_wide_launch = p->launch_wide;
  }
  out->table = p->table;
  out->shared_bytes = (uint32_t)p->shared_bytes;
  return pestle_plugin_text_take(&text, &out->text);
}

pestle_status_t pestle_c_printer_print_source(
    const pestle_host_t* host, const pestle_c_printer_target_t* target,
    const pestle_kir_t* signature, const pestle_source_text_t* source,
    pestle_c_printer_kernel_t* out_kernel) {
  *out_kernel =
      (pestle_c_printer_kernel_t){{NULL, 0}, {0}, {0}, false, 0, false};
  if (source && source->whole) {
    for (int a = 0; a < 3; ++a) {
      out_kernel->group[a] = (uint32_t)signature->group[a];
      out_kernel->lane[a] = signature->lane[a];
    }
    pestle_plugin_text_t text = {.host = host};
    pestle_plugin_text_put(&text, source->body);
    return pestle_plugin_text_take(&text, &out_kernel->text);
  }
  pestle_plugin_arena_t arena = {.host = host};
  c_printer_t* p = pestle_plugin_arena_alloc(&arena, 1, sizeof *p);
  if (!p) {
    return PESTLE_PLUGIN_ERROR(host, OUT_OF_MEMORY,
                               "no memory to print a kernel");
  }
  p->host = host;
  p->target = target;
  p->d = target->dialect;
  p->pairs = p->d->pair && !(target->features & PESTLE_C_PRINTER_HAS_INT64);
  p->k = signature;
  p->source = source;
  p->arena.host = host;
  p->out.host = host;
  pestle_status_t status = print_all(p, out_kernel);
  pestle_plugin_text_deinit(&p->out);
  pestle_plugin_arena_deinit(&p->arena);
  pestle_plugin_arena_deinit(&arena);
  return status;
}

pestle_status_t pestle_c_printer_print(const pestle_host_t* host,
                                       const pestle_c_printer_target_t* target,
                                       const pestle_kir_t* kernel,
                                       pestle_c_printer_kernel_t* out_kernel) {
  return pestle_c_printer_print_source(host, target, kernel, NULL, out_kernel);
}
