// SPDX-License-Identifier: Apache-2.0
// The ops of the caller's own that a context has. The list only grows, at its head
// and by one exchange, so that who looks needs no lock; nor does a child of fork().
#include "pestle/custom_op.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/custom_attrs.h"
#include "base/mem.h"
#include "base/require.h"
#include "runtime/context.h"
#include "runtime/custom_eval.h"

enum { NAME_BYTES = 256, MOST_ROWS = 256 };

struct pestle_op_entry_t {
  struct pestle_op_entry_t* next;
  pestle_arena_t arena;
  pestle_custom_op_t op;
  atomic_bool used;
};

// --- Checks ---

static pestle_status_t refuse(const char* name, const char* what) {
  return PESTLE_ERROR(INVALID_ARGUMENT, "op '%.80s' %s", name, what);
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Words with dots between, two at least.
static bool is_dotted(const char* name) {
  bool begins = true, dotted = false;
  for (; *name; ++name) {
    bool digit = *name >= '0' && *name <= '9';
    if (*name == '.' && !begins) {
      begins = dotted = true;
    } else if (is_letter(*name) || (digit && !begins)) {
      begins = false;
    } else {
      return false;
    }
  }
  return dotted && !begins;
}

static pestle_status_t check_name(const char* name) {
  static const char* const reserved[] = {"pestle.", "stablehlo.", "chlo.",
                                         "mhlo."};
  if (strlen(name) >= NAME_BYTES || !is_dotted(name)) {
    return refuse(name,
                  "has a name that is not two or more words of letters, digits "
                  "and '_' with dots between, such as user.axpby");
  }
  for (size_t i = 0; i < sizeof(reserved) / sizeof(*reserved); ++i) {
    if (!strncmp(name, reserved[i], strlen(reserved[i]))) {
      return refuse(name,
                    "has a name that begins as those of a dialect do; choose "
                    "another one, such as user.axpby");
    }
  }
  return NULL;
}

static pestle_status_t check_attr(const pestle_custom_op_t* op, size_t index) {
  const pestle_custom_attr_t* a = op->attrs[index];
  if (!a || a->struct_size < sizeof(size_t) || !a->name || !*a->name ||
      (uint32_t)a->kind > PESTLE_CUSTOM_F64S) {
    return refuse(op->name,
                  "has a row of attributes without struct_size, name or kind");
  }
  for (const char* c = a->name; *c; ++c) {
    if (is_letter(*c) || (c > a->name && *c >= '0' && *c <= '9')) continue;
    return refuse(op->name,
                  "has an attribute whose name is no word of letters, digits "
                  "and '_'");
  }
  for (size_t i = 0; i < index; ++i) {
    if (strcmp(op->attrs[i]->name, a->name) != 0) continue;
    return refuse(op->name, "has two attributes of one name");
  }
  bool has_dynamic = a->struct_size >= sizeof(*a);
  if (has_dynamic && a->dynamic && a->kind != PESTLE_CUSTOM_F64) {
    return refuse(op->name, "has a dynamic attribute that is no F64");
  }
  if (!a->otherwise || a->otherwise->kind == a->kind) return NULL;
  return refuse(op->name, "has an attribute whose default is of another kind");
}

static bool is_function(const pestle_custom_eval_t* e) {
  return e->kind == PESTLE_EVAL_HOST_FUNCTION ||
         e->kind == PESTLE_EVAL_DEVICE_FUNCTION;
}

static bool is_word(const char* text) {
  if (!text || !is_letter(*text)) return false;
  while (is_letter(*text) || (*text >= '0' && *text <= '9'))
    ++text;
  return !*text;
}

static bool are_words(const char* const* names, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!names || !is_word(names[i])) return false;
  }
  return true;
}

static pestle_status_t check_source(const pestle_custom_op_t* op,
                                    const pestle_source_t* s) {
  bool fits = s->struct_size >= sizeof(size_t) && s->language && s->body &&
              (s->whole ? is_word(s->entry) : true) &&
              are_words(s->inputs, s->input_count) &&
              are_words(s->outputs, s->output_count) &&
              (s->templates || !s->template_count);
  for (size_t i = 0; fits && i < s->template_count; ++i)
    fits = is_word(s->templates[i].name);
  if (!fits) {
    return refuse(op->name,
                  "has a source without struct_size, language or body, or with "
                  "names that are no words of letters, digits and '_'");
  }
  if (!strcmp(s->language, "kir") || s->grid[0]) return NULL;
  return refuse(op->name,
                "has a source without a grid; say how many threads there are, "
                "such as \"x.size\"");
}

static pestle_status_t check_eval(const pestle_custom_op_t* op, size_t index) {
  const pestle_custom_eval_t* e = op->evals[index];
  if (!e || e->struct_size < sizeof(size_t) ||
      (uint32_t)e->kind > PESTLE_EVAL_KERNEL_IR) {
    return refuse(op->name, "has an eval without struct_size or kind");
  }
  if ((is_function(e) && !e->function) ||
      (e->kind == PESTLE_EVAL_SOURCE && !e->source) ||
      (e->kind == PESTLE_EVAL_KERNEL_IR && !e->kernel)) {
    return refuse(op->name,
                  "has an eval without the function, source or kernel that its "
                  "kind says");
  }
  if (e->kind == PESTLE_EVAL_SOURCE) return check_source(op, e->source);
  if (!is_function(e)) return NULL;
  bool inlined = op->body && op->prefer == PESTLE_CUSTOM_INLINE;
  if ((!e->id || !*e->id) && !inlined) {
    return refuse(op->name,
                  "has a function as eval without an id, by which plans tell "
                  "its versions; give it one, such as \"1\"");
  }
  for (size_t i = 0; i < index; ++i) {
    const pestle_custom_eval_t* other = op->evals[i];
    if (!is_function(other) || !other->id || !e->id) continue;
    if (strcmp(other->id, e->id) != 0) continue;
    return refuse(op->name, "has two functions as evals of one id");
  }
  return NULL;
}

static pestle_status_t check_op(const pestle_custom_op_t* op) {
  PESTLE_TRY(check_name(op->name));
  if (op->attr_count > MOST_ROWS || op->eval_count > MOST_ROWS ||
      (op->attr_count && !op->attrs) || (op->eval_count && !op->evals)) {
    return refuse(op->name,
                  "has a list of attributes or evals that is not "
                  "there, or more than 256 of them");
  }
  if ((uint32_t)op->prefer > PESTLE_CUSTOM_EVAL || op->version < 0 ||
      op->version > INT32_MAX) {
    return refuse(op->name, "has a version or 'prefer' out of range");
  }
  if (!op->body && !op->eval_count) {
    return refuse(op->name,
                  "has neither a body nor an eval: nothing computes "
                  "it; give it one of them");
  }
  for (size_t i = 0; i < op->attr_count; ++i)
    PESTLE_TRY(check_attr(op, i));
  for (size_t i = 0; i < op->eval_count; ++i)
    PESTLE_TRY(check_eval(op, i));
  return NULL;
}

// --- Copies ---

// |struct_size| bytes of |from|, at most |size|, in a struct that is all there.
static void* copy_struct(pestle_arena_t* arena, const void* from, size_t size) {
  void* to = pestle_arena_alloc_zero(arena, size, _Alignof(max_align_t));
  size_t given;
  memcpy(&given, from, sizeof(given));
  if (to) memcpy(to, from, given < size ? given : size);
  return to;
}

static bool copy_text(pestle_arena_t* arena, const char** text) {
  if (!*text) *text = "";
  *text = pestle_arena_strdup(arena, *text);
  return *text != NULL;
}

static pestle_status_t copy_attr(pestle_arena_t* arena,
                                 const pestle_custom_attr_t* from,
                                 const pestle_custom_attr_t** out) {
  pestle_custom_attr_t* a = copy_struct(arena, from, sizeof(*a));
  *out = a;
  if (!a || !copy_text(arena, &a->name)) return PESTLE_OOM();
  if (!a->otherwise) return NULL;
  pestle_custom_attr_value_t* value = pestle_arena_copy(
      arena, a->otherwise, sizeof(*value), _Alignof(max_align_t));
  a->otherwise = value;
  if (!value) return PESTLE_OOM();
  value->name = a->name;
  return pestle_custom_value_copy(arena, value);
}

static bool copy_names(pestle_arena_t* arena, const char* const** names,
                       size_t count) {
  const char** own = PESTLE_ARENA_ARRAY(arena, const char*, count + 1);
  for (size_t i = 0; own && i < count; ++i) {
    own[i] = pestle_arena_strdup(arena, (*names)[i]);
    if (!own[i]) return false;
  }
  *names = own;
  return own != NULL;
}

static bool copy_templates(pestle_arena_t* arena, pestle_source_t* s) {
  pestle_source_template_t* own = PESTLE_ARENA_ARRAY(
      arena, pestle_source_template_t, s->template_count + 1);
  for (size_t i = 0; own && i < s->template_count; ++i) {
    own[i] = s->templates[i];
    if (!copy_text(arena, &own[i].name)) return false;
  }
  s->templates = own;
  return own != NULL;
}

static pestle_status_t copy_source(pestle_arena_t* arena,
                                   const pestle_source_t** source) {
  pestle_source_t* s = copy_struct(arena, *source, sizeof(*s));
  *source = s;
  bool ok = s && copy_text(arena, &s->language) && copy_text(arena, &s->body) &&
            copy_text(arena, &s->header) && copy_text(arena, &s->entry) &&
            copy_text(arena, &s->flags) &&
            copy_names(arena, &s->inputs, s->input_count) &&
            copy_names(arena, &s->outputs, s->output_count) &&
            copy_templates(arena, s);
  for (int a = 0; ok && a < 3; ++a)
    ok = copy_text(arena, &s->grid[a]) && copy_text(arena, &s->group[a]);
  return ok ? NULL : PESTLE_OOM();
}

static pestle_status_t copy_eval(pestle_arena_t* arena,
                                 const pestle_custom_eval_t* from,
                                 const pestle_custom_eval_t** out) {
  pestle_custom_eval_t* e = copy_struct(arena, from, sizeof(*e));
  *out = e;
  if (!e) return PESTLE_OOM();
  if (!e->target) e->target = "*";
  if (!copy_text(arena, &e->target) || !copy_text(arena, &e->id)) {
    return PESTLE_OOM();
  }
  return e->kind == PESTLE_EVAL_SOURCE ? copy_source(arena, &e->source) : NULL;
}

// What |op| points at becomes the arena's.
static pestle_status_t copy_op(pestle_arena_t* arena, pestle_custom_op_t* op) {
  const pestle_custom_attr_t** attrs = PESTLE_ARENA_ARRAY(
      arena, const pestle_custom_attr_t*, op->attr_count + 1);
  const pestle_custom_eval_t** evals = PESTLE_ARENA_ARRAY(
      arena, const pestle_custom_eval_t*, op->eval_count + 1);
  if (!attrs || !evals || !copy_text(arena, &op->name)) return PESTLE_OOM();
  for (size_t i = 0; i < op->attr_count; ++i)
    PESTLE_TRY(copy_attr(arena, op->attrs[i], &attrs[i]));
  for (size_t i = 0; i < op->eval_count; ++i)
    PESTLE_TRY(copy_eval(arena, op->evals[i], &evals[i]));
  op->attrs = attrs;
  op->evals = evals;
  return NULL;
}

// --- The list ---

static pestle_op_entry_t* find(pestle_op_entry_t* from, const char* name) {
  while (from && strcmp(from->op.name, name) != 0)
    from = from->next;
  return from;
}

// Equal but for memory that each holds by itself.
static bool same_attr(const pestle_custom_attr_t* a,
                      const pestle_custom_attr_t* b) {
  const pestle_custom_attr_value_t *x = a->otherwise, *y = b->otherwise;
  if (a->kind != b->kind || strcmp(a->name, b->name) != 0 || !x != !y) {
    return false;
  }
  if (!x) return true;
  pestle_strbuf_t texts[2];
  const pestle_custom_attrs_t sides[] = {{x, 1}, {y, 1}};
  for (int i = 0; i < 2; ++i) {
    pestle_strbuf_init(pestle_allocator_system(), &texts[i]);
    pestle_custom_attrs_print(&sides[i], &texts[i]);
  }
  bool same =
      !texts[0].failed && pestle_str_equal(pestle_strbuf_view(&texts[0]),
                                           pestle_strbuf_view(&texts[1]));
  pestle_strbuf_deinit(&texts[0]);
  pestle_strbuf_deinit(&texts[1]);
  return same;
}

// By their texts; that the rest differs without them is not looked for.
static bool same_source(const pestle_source_t* a, const pestle_source_t* b) {
  if (!a || !b) return a == b;
  return !strcmp(a->language, b->language) && !strcmp(a->body, b->body) &&
         !strcmp(a->header, b->header) && !strcmp(a->flags, b->flags) &&
         !strcmp(a->grid[0], b->grid[0]) && !strcmp(a->group[0], b->group[0]);
}

static bool same_eval(const pestle_custom_eval_t* a,
                      const pestle_custom_eval_t* b) {
  return a->kind == b->kind && a->takes == b->takes &&
         a->function == b->function && same_source(a->source, b->source) &&
         a->kernel == b->kernel && a->dense == b->dense &&
         a->in_place == b->in_place && a->transient == b->transient &&
         !strcmp(a->target, b->target) && !strcmp(a->id, b->id);
}

static bool same_op(const pestle_custom_op_t* a, const pestle_custom_op_t* b) {
  bool same = a->version == b->version && a->user == b->user &&
              a->infer == b->infer && a->body == b->body && a->vjp == b->vjp &&
              a->jvp == b->jvp && a->transpose == b->transpose &&
              a->vmap == b->vmap && a->equivalent == b->equivalent &&
              a->cost == b->cost && a->prefer == b->prefer &&
              a->release == b->release && a->elementwise == b->elementwise &&
              a->accuracy == b->accuracy && a->front == b->front &&
              a->attr_count == b->attr_count && a->eval_count == b->eval_count;
  for (size_t i = 0; same && i < a->attr_count; ++i)
    same = same_attr(a->attrs[i], b->attrs[i]);
  for (size_t i = 0; same && i < a->eval_count; ++i)
    same = same_eval(a->evals[i], b->evals[i]);
  return same;
}

// Puts |entry| at the head; |*out_same|: it is there already.
static pestle_status_t push(pestle_context_t* context, pestle_op_entry_t* entry,
                            bool* out_same) {
  pestle_op_entry_t* head = atomic_load(&context->custom_ops);
  do {
    const pestle_op_entry_t* other = find(head, entry->op.name);
    *out_same = other && same_op(&other->op, &entry->op);
    if (*out_same) return NULL;
    if (other && atomic_load(&other->used)) {
      return PESTLE_ERROR(INVALID_ARGUMENT,
                          "the context has an op '%s' with other contents, "
                          "which was used already; choose another name",
                          entry->op.name);
    }
    entry->next = head;
  } while (!atomic_compare_exchange_weak(&context->custom_ops, &head, entry));
  return NULL;
}

static void drop(pestle_allocator_t allocator, pestle_op_entry_t* entry) {
  pestle_arena_deinit(&entry->arena);
  pestle_dealloc(allocator, entry, sizeof(*entry));
}

pestle_status_t pestle_context_register_op(pestle_context_t* context,
                                           const pestle_custom_op_t* op) {
  PESTLE_REQUIRE(context && op && op->struct_size >= sizeof(size_t),
                 "a context and an op with its struct_size set");
  pestle_allocator_t allocator = context->core.allocator;
  pestle_op_entry_t* entry = pestle_alloc_zero(allocator, sizeof(*entry));
  if (!entry) return PESTLE_OOM();
  size_t n = op->struct_size;
  memcpy(&entry->op, op, n < sizeof(*op) ? n : sizeof(*op));
  entry->op.struct_size = sizeof(*op);
  atomic_init(&entry->used, false);
  pestle_arena_init(allocator, &entry->arena);
  bool same = false;
  pestle_status_t status =
      entry->op.name ? check_op(&entry->op)
                     : PESTLE_ERROR(INVALID_ARGUMENT, "the op has no name");
  if (!status) status = copy_op(&entry->arena, &entry->op);
  if (!status) status = push(context, entry, &same);
  if (status || same) drop(allocator, entry);
  return status;
}

const pestle_custom_op_t* pestle_custom_ops_find(
    const pestle_context_t* context, const char* name) {
  pestle_op_entry_t* entry = find(atomic_load(&context->custom_ops), name);
  if (!entry) return NULL;
  if (!atomic_load(&entry->used)) atomic_store(&entry->used, true);
  return &entry->op;
}

// Whether an entry before |entry| has its name, which is then the one that counts.
static bool is_replaced(const pestle_op_entry_t* head,
                        const pestle_op_entry_t* entry) {
  while (strcmp(head->op.name, entry->op.name) != 0)
    head = head->next;
  return head != entry;
}

const char* pestle_context_op_name(const pestle_context_t* context,
                                   size_t index) {
  if (!context) return NULL;
  const pestle_op_entry_t* head = atomic_load(&context->custom_ops);
  for (const pestle_op_entry_t* e = head; e; e = e->next) {
    if (is_replaced(head, e)) continue;
    if (!index--) return e->op.name;
  }
  return NULL;
}

// --- For plans ---

static const pestle_custom_eval_t* eval_of(const pestle_custom_op_t* op,
                                           const char* id) {
  for (size_t i = 0; op && i < op->eval_count; ++i) {
    const pestle_custom_eval_t* e = op->evals[i];
    if (is_function(e) && !strcmp(e->id, id)) return e;
  }
  return NULL;
}

pestle_status_t pestle_eval_find(const pestle_context_t* context,
                                 pestle_arena_t* arena,
                                 const pestle_eval_ask_t* ask,
                                 pestle_eval_found_t* out_found) {
  const pestle_custom_op_t* op = pestle_context_find_op(context, ask->name);
  const pestle_custom_eval_t* eval = eval_of(op, ask->id);
  char version[24];
  if (!eval) {
    return PESTLE_ERROR(NOT_FOUND,
                        "plan '%s' has op '%s' done by eval '%s', which the "
                        "context has not; register the op, or load the "
                        "extension that does, before the plan",
                        ask->plan, ask->name, ask->id);
  }
  (void)snprintf(version, sizeof(version), "%lld", (long long)op->version);
  if (strcmp(version, ask->version) != 0) {
    return PESTLE_ERROR(INCOMPATIBLE,
                        "plan '%s' was compiled for op '%s' of version %s, the "
                        "context has %s; compile the model again",
                        ask->plan, ask->name, ask->version, version);
  }
  *out_found = (pestle_eval_found_t){
      .function = eval->function,
      .user = op->user,
      .device_memory = eval->kind == PESTLE_EVAL_DEVICE_FUNCTION};
  return pestle_custom_attrs_of_text(arena, op, ask->attributes,
                                     &out_found->attrs);
}

void pestle_custom_ops_deinit(pestle_context_t* context) {
  pestle_op_entry_t* entry = atomic_exchange(&context->custom_ops, NULL);
  while (entry) {
    pestle_op_entry_t* next = entry->next;
    if (entry->op.release) entry->op.release(entry->op.user);
    drop(context->core.allocator, entry);
    entry = next;
  }
}
