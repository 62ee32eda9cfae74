// SPDX-License-Identifier: Apache-2.0
// A session of what was compiled before: a plan, or a set of plans for several
// shapes. It has these shapes and no others.
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "pestle/plan_set.h"
#include "session/internal.h"

static const char* keep(pestle_session_t* s, const char* text) {
  return pestle_arena_strndup(&s->arena, pestle_str(text));
}

// Inputs and outputs are those of the first plan.
static pestle_status_t take_first(pestle_session_t* s, pestle_executable_t* e) {
  s->first = e;
  pestle_executable_retain(e);
  s->input_count = pestle_executable_input_count(e);
  s->output_count = pestle_executable_output_count(e);
  s->inputs =
      PESTLE_ARENA_ARRAY(&s->arena, session_input_t, s->input_count + 1);
  s->output_names =
      PESTLE_ARENA_ARRAY(&s->arena, const char*, s->output_count + 1);
  if (!s->inputs || !s->output_names) return PESTLE_OOM();
  for (size_t i = 0; i < s->input_count; ++i) {
    pestle_io_info_t info = pestle_executable_input(e, i);
    size_t rank = (size_t)info.rank;
    session_input_t* input = &s->inputs[i];
    *input = (session_input_t){.name = keep(s, info.name),
                               .dtype = info.dtype,
                               .rank = info.rank,
                               .first = s->extent_count};
    input->dims = pestle_arena_copy(&s->arena, info.dims,
                                    rank * sizeof(int64_t) + (rank ? 0 : 1),
                                    _Alignof(int64_t));
    input->dim_names = PESTLE_ARENA_ARRAY(&s->arena, const char*, rank + 1);
    if (!input->name || !input->dims || !input->dim_names) return PESTLE_OOM();
    for (size_t d = 0; d < rank; ++d)
      input->dim_names[d] = "";
    s->extent_count += rank;
  }
  for (size_t i = 0; i < s->output_count; ++i) {
    s->output_names[i] = keep(s, pestle_executable_output(e, i).name);
    if (!s->output_names[i]) return PESTLE_OOM();
  }
  return NULL;
}

static pestle_status_t check_alike(pestle_session_t* s,
                                   const pestle_executable_t* e) {
  bool fits = pestle_executable_input_count(e) == s->input_count &&
              pestle_executable_output_count(e) == s->output_count;
  for (size_t i = 0; i < s->input_count && fits; ++i) {
    pestle_io_info_t info = pestle_executable_input(e, i);
    session_input_t* input = &s->inputs[i];
    fits = !strcmp(info.name, input->name) && info.dtype == input->dtype &&
           info.rank == input->rank;
    for (int32_t d = 0; d < info.rank && fits; ++d) {
      if (info.dims[d] != input->dims[d]) input->dims[d] = PESTLE_DIM_DYNAMIC;
    }
  }
  if (fits) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the plans of the set are not of one model: their inputs "
                      "or outputs differ by more than extents");
}

static pestle_status_t add(pestle_session_t* s, pestle_executable_t* e) {
  if (!s->inputs) PESTLE_TRY(take_first(s, e));
  PESTLE_TRY(check_alike(s, e));
  size_t size = s->extent_count * sizeof(int64_t) + 1;
  char* key = pestle_alloc_zero(s->allocator, size);
  if (!key) return PESTLE_OOM();
  for (size_t i = 0; i < s->input_count; ++i) {
    pestle_io_info_t info = pestle_executable_input(e, i);
    if (!info.rank) continue;
    memcpy(key + s->inputs[i].first * sizeof(int64_t), info.dims,
           (size_t)info.rank * sizeof(int64_t));
  }
  session_shape_t* shape;
  session_route_t* route;
  pestle_status_t status = pestle_session_shape(s, key, size, &shape);
  pestle_dealloc(s->allocator, key, size);
  if (status) return status;
  PESTLE_TRY(pestle_session_route_create(s, e, 1, 1, NULL, NULL, &route));
  shape->is_declared = true;
  pestle_session_adopt(s, shape, route);
  return NULL;
}

static pestle_status_t add_plan(pestle_session_t* s, pestle_plan_t* plan) {
  pestle_executable_t* executable;
  PESTLE_TRY(
      pestle_executable_create(s->context, plan, s->device, &executable));
  pestle_executable_share_arenas(executable, s->arenas);
  pestle_status_t status = add(s, executable);
  pestle_executable_release(executable);
  return status;
}

static pestle_status_t open_set(pestle_session_t* s, const char* path) {
  pestle_plan_set_t* set;
  PESTLE_TRY(pestle_plan_set_load(s->context, path, &set));
  pestle_status_t status = NULL;
  for (size_t i = 0; i < pestle_plan_set_count(set) && !status; ++i)
    status = add_plan(s, pestle_plan_set_plan(set, i));
  pestle_plan_set_release(set);
  return status;
}

pestle_status_t pestle_session_open_plans(pestle_session_t* s,
                                          const char* path) {
  pestle_mapping_t mapping;
  PESTLE_TRY(pestle_file_map(path, &mapping));
  bool is_set =
      mapping.size >= 8 && !memcmp(mapping.data, PESTLE_PLAN_SET_MAGIC, 8);
  pestle_file_unmap(&mapping);
  if (is_set) return open_set(s, path);
  pestle_plan_t* plan;
  PESTLE_TRY(pestle_plan_load(s->context, path, &plan));
  pestle_status_t status = add_plan(s, plan);
  pestle_plan_release(plan);
  return status;
}
