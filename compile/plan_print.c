// SPDX-License-Identifier: Apache-2.0
// A plan under construction as text, for `pestle dump --stage plan`.
#include "compile/plan_build.h"

static void print_binding(const pestle_plan_binding_t* b,
                          pestle_strbuf_t* out) {
  static const char* const names[] = {"arena", "input", "output", "constant",
                                      "part"};
  pestle_strbuf_append_c(out, names[b->storage]);
  if (b->storage != PESTLE_PLAN_ARENA) {
    pestle_strbuf_appendf(out, "%u", b->index);
  }
  pestle_strbuf_appendf(out, "[%llu:%llu]", (unsigned long long)b->offset,
                        (unsigned long long)(b->offset + b->size));
}

// " from 3-5,8": locations [first, first + count) of those that steps name.
static void print_from(const pestle_plan_build_t* plan, uint32_t first,
                       uint32_t count, pestle_strbuf_t* out) {
  const uint32_t* ids = plan->location_ids.data + first;
  for (uint32_t i = 0, end; i < count; i = end) {
    for (end = i + 1; end < count && ids[end] == ids[end - 1] + 1; ++end)
      ;
    pestle_strbuf_appendf(out, i ? ",%u" : "  from %u", ids[i]);
    if (end - i > 1) pestle_strbuf_appendf(out, "-%u", ids[end - 1]);
  }
}

static void print_locations(const pestle_plan_build_t* plan,
                            pestle_strbuf_t* out) {
  const char* text = plan->strings.data;
  if (plan->locations.size) pestle_strbuf_append_c(out, "locations:\n");
  for (size_t i = 0; i < plan->locations.size; ++i) {
    const pestle_plan_location_t* l = &plan->locations.data[i];
    pestle_strbuf_appendf(out, "%4zu  %s", i, text + l->op);
    if (l->name) {
      pestle_strbuf_append_c(out, " '");
      pestle_strbuf_append_name(out, text + l->name);
      pestle_strbuf_append_char(out, '\'');
    }
    if (l->file) pestle_strbuf_appendf(out, " %s", text + l->file);
    if (l->line) pestle_strbuf_appendf(out, ":%u:%u", l->line, l->column);
    pestle_strbuf_append_char(out, '\n');
  }
}

void pestle_plan_build_print(const pestle_plan_build_t* plan,
                             pestle_strbuf_t* out) {
  static const char* const kinds[] = {"launch",       "copy",       "jump",
                                      "jump_if_zero", "jump_table", "end",
                                      "call",         "collective", "repeat"};
  pestle_strbuf_appendf(
      out,
      "plan: %zu steps, %zu kernels, arena %lld bytes (lower bound %lld), "
      "constants %llu bytes\n",
      plan->steps.size, plan->kernels.size, (long long)plan->arena_size,
      (long long)plan->lower_bound, (unsigned long long)plan->constant_size);
  for (size_t i = 0; i < plan->steps.size; ++i) {
    const pestle_plan_step_t* s = &plan->steps.data[i];
    pestle_strbuf_appendf(out, "%4zu  %-12s ", i, kinds[s->kind]);
    if (s->kind == PESTLE_PLAN_LAUNCH) {
      pestle_strbuf_appendf(
          out, "%s ", plan->strings.data + plan->kernels.data[s->kernel].name);
    } else if (s->kind == PESTLE_PLAN_CALL) {
      const pestle_plan_call_t* call = &plan->calls.data[s->kernel];
      bool library = call->kind == PESTLE_PLAN_CALL_LIBRARY;
      const char* text = plan->strings.data;
      pestle_strbuf_appendf(out, "%s%s%s ", library ? text + call->version : "",
                            library ? "." : "", text + call->name);
    } else if (s->kind == PESTLE_PLAN_COLLECTIVE) {
      pestle_strbuf_appendf(out, "%s ", plan->strings.data + s->label);
    } else if (s->kind >= PESTLE_PLAN_JUMP && s->kind < PESTLE_PLAN_END) {
      pestle_strbuf_appendf(out, "-> %u ", s->target);
    }
    bool repeats = s->kind == PESTLE_PLAN_REPEAT;
    if (repeats) pestle_strbuf_appendf(out, "-> %u x %u ", s->target, s->count);
    uint32_t n = s->kind == PESTLE_PLAN_JUMP_TABLE ? 1 : repeats ? 0 : s->count;
    for (uint32_t b = 0; b < n; ++b) {
      if (b) pestle_strbuf_append_c(out, ", ");
      print_binding(&plan->bindings.data[s->first + b], out);
    }
    if (s->kind == PESTLE_PLAN_LAUNCH && plan->devices.size > 1) {
      pestle_strbuf_appendf(
          out, "  on %s",
          plan->strings.data + plan->devices.data[s->device].backend);
    }
    print_from(plan, s->first_location, s->location_count, out);
    pestle_strbuf_append_char(out, '\n');
  }
  print_locations(plan, out);
}
