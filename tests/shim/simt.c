// SPDX-License-Identifier: Apache-2.0
#include "shim/simt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 256 << 10, MAX_EXCHANGE = 16, SUBGROUP = 32 };

typedef enum fibre_state_t { RUNS, AT_BARRIER, PASSES, DONE } fibre_state_t;

typedef struct fibre_t {
  ucontext_t context;
  char* stack;
  fibre_state_t state;
  simt_place_t place;
  unsigned char value[MAX_EXCHANGE];
} fibre_t;

// Of the one group that runs.
static struct {
  ucontext_t main;
  fibre_t* fibre;
  uint32_t count, current;
  simt_place_t group;
  void (*body)(void* data);
  void* data;
} g;

static void leave(fibre_state_t state) {
  fibre_t* f = &g.fibre[g.current];
  f->state = state;
  swapcontext(&f->context, &g.main);
}

static void barrier(void) {
  leave(AT_BARRIER);
}

static void exchange(void* value, uint32_t size, uint32_t distance) {
  fibre_t* f = &g.fibre[g.current];
  memcpy(f->value, value, size);
  leave(PASSES);
  uint32_t from = (uint32_t)(f - g.fibre) ^ distance;
  if (from < g.count) memcpy(value, g.fibre[from].value, size);
  leave(PASSES);  // nobody overwrites what others still read
}

static void gather(const void* value, uint32_t size, void* out) {
  fibre_t* f = &g.fibre[g.current];
  uint32_t first = (uint32_t)(f - g.fibre) / SUBGROUP * SUBGROUP;
  memcpy(f->value, value, size);
  leave(PASSES);
  for (uint32_t i = 0; i < SUBGROUP && first + i < g.count; ++i)
    memcpy((char*)out + i * size, g.fibre[first + i].value, size);
  leave(PASSES);
}

static simt_place_t group(void) {
  return g.group;
}
static simt_place_t lane(void) {
  return g.fibre[g.current].place;
}

const simt_t simt_functions = {barrier, exchange, gather, group, lane};

static void enter(void) {
  g.body(g.data);
  leave(DONE);
}

static void start(fibre_t* f) {
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = STACK;
  f->context.uc_link = NULL;
  f->state = RUNS;
  makecontext(&f->context, enter, 0);
}

// All lanes up to where each must wait; false when that differs.
static bool run_round(void) {
  for (g.current = 0; g.current < g.count; ++g.current) {
    swapcontext(&g.main, &g.fibre[g.current].context);
  }
  for (uint32_t i = 1; i < g.count; ++i) {
    if (g.fibre[i].state != g.fibre[0].state) return false;
  }
  return true;
}

static bool run_group(void) {
  for (uint32_t i = 0; i < g.count; ++i)
    start(&g.fibre[i]);
  do {
    if (!run_round()) return false;
  } while (g.fibre[0].state != DONE);
  return true;
}

int simt_run(const uint32_t groups[3], const uint32_t lanes[3],
             void (*body)(void* data), void* data) {
  bool ok = true;
  g.count = lanes[0] * lanes[1] * lanes[2];
  g.body = body;
  g.data = data;
  g.fibre = calloc(g.count, sizeof *g.fibre);
  for (uint32_t i = 0; i < g.count; ++i) {
    g.fibre[i].stack = malloc(STACK);
    g.fibre[i].place.x = i % lanes[0];
    g.fibre[i].place.y = i / lanes[0] % lanes[1];
    g.fibre[i].place.z = i / lanes[0] / lanes[1];
  }
  for (uint32_t z = 0; z < groups[2] && ok; ++z) {
    for (uint32_t y = 0; y < groups[1] && ok; ++y) {
      for (uint32_t x = 0; x < groups[0] && ok; ++x) {
        g.group = (simt_place_t){x, y, z};
        ok = run_group();
      }
    }
  }
  for (uint32_t i = 0; i < g.count; ++i)
    free(g.fibre[i].stack);
  free(g.fibre);
  return ok;
}
