// SPDX-License-Identifier: Apache-2.0
// Lanes as fibres: each runs until a barrier or an exchange, where the next one
// takes over. x86-64 alone; address sanitizers are told of each switch.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/common_interface_defs.h>
#define SANITIZED 1
#endif
#endif

void fake_switch(void** save, void* to);
__asm__(
    ".text\n"
    ".globl fake_switch\n"
    ".hidden fake_switch\n"
    ".type fake_switch,@function\n"
    "fake_switch:\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n"
    "  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp,(%rdi)\n"
    "  movq %rsi,%rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n"
    "  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n"
    ".size fake_switch,.-fake_switch\n");

enum { STACK = 128 << 10, MOST_LANES = 1024, SUBGROUP = 32 };
typedef enum state_t { READY, AT_BARRIER, AT_EXCHANGE, DONE } state_t;

enum { MOST_WORDS = 8, MOST_COPIES = 256 };

typedef struct copy_t {
  void* to;
  const void* from;
  unsigned bytes, batch;
} copy_t;

typedef struct fibre_t {
  void* stack_pointer;
  char* stack;
  state_t state;
  uint64_t value;  // that it gives in an exchange
  unsigned words[MOST_WORDS];
  copy_t copies[MOST_COPIES];  // that are under way
  unsigned copy_count, batch;
} fibre_t;

static struct {
  fibre_t fibre[MOST_LANES];
  char* stacks;
  unsigned count, current;
  void* main_pointer;
  const void* main_stack;
  size_t main_size;
  fake_shim_t shim;
  fake_entry_t entry;
  void** arguments;
} g;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// ThreadSanitizer counts the functions that a thread is in by its entries and
// exits. What a lane enters it leaves in its own time, so the sum is right, but
// for functions that a lane ends within: those are not counted.
#define UNCOUNTED __attribute__((no_sanitize("thread")))

// Back to the scheduler.
UNCOUNTED static void leave(state_t state) {
  fibre_t* f = &g.fibre[g.current];
  f->state = state;
#ifdef SANITIZED
  void* fake;
  __sanitizer_start_switch_fiber(state == DONE ? NULL : &fake, g.main_stack,
                                 g.main_size);
#endif
  fake_switch(&f->stack_pointer, g.main_pointer);
#ifdef SANITIZED
  __sanitizer_finish_switch_fiber(fake, &g.main_stack, &g.main_size);
#endif
}

UNCOUNTED static void fibre_main(void) {
#ifdef SANITIZED
  __sanitizer_finish_switch_fiber(NULL, &g.main_stack, &g.main_size);
#endif
  g.entry(&g.shim, g.arguments);
  leave(DONE);
  abort();
}

static void enter(unsigned index) {
  fibre_t* f = &g.fibre[index];
  fake_dim_t n = g.shim.group_size;
  g.current = index;
  g.shim.thread =
      (fake_dim_t){index % n.x, index / n.x % n.y, index / (n.x * n.y)};
#ifdef SANITIZED
  void* fake;
  __sanitizer_start_switch_fiber(&fake, f->stack, STACK);
#endif
  fake_switch(&g.main_pointer, f->stack_pointer);
#ifdef SANITIZED
  __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#endif
}

// What a lane sees of itself is set anew after each switch.
static void come_back(void) {
  fake_dim_t n = g.shim.group_size;
  g.shim.thread = (fake_dim_t){g.current % n.x, g.current / n.x % n.y,
                               g.current / (n.x * n.y)};
}

static void barrier(void) {
  leave(AT_BARRIER);
  come_back();
}

static uint64_t shuffle_xor(uint64_t value, unsigned mask) {
  unsigned own = g.current, other = own ^ mask;
  g.fibre[own].value = value;
  leave(AT_EXCHANGE);
  uint64_t result = other < g.count ? g.fibre[other].value : value;
  leave(AT_EXCHANGE);  // nobody overwrites what another has yet to read
  come_back();
  return result;
}

static void share(const unsigned* words, unsigned count, unsigned* all) {
  unsigned own = g.current, first = own / SUBGROUP * SUBGROUP;
  if (count > MOST_WORDS) abort();
  memcpy(g.fibre[own].words, words, count * sizeof *words);
  leave(AT_EXCHANGE);
  for (unsigned i = 0; i < SUBGROUP; ++i) {
    const fibre_t* f = &g.fibre[first + i < g.count ? first + i : own];
    memcpy(all + i * count, f->words, count * sizeof *words);
  }
  leave(AT_EXCHANGE);  // nobody overwrites what another has yet to read
  come_back();
}

static void copy(void* to, const void* from, unsigned bytes) {
  fibre_t* f = &g.fibre[g.current];
  if (f->copy_count == MOST_COPIES) abort();
  f->copies[f->copy_count++] = (copy_t){to, from, bytes, f->batch};
}

static void copy_commit(void) {
  ++g.fibre[g.current].batch;
}

static void copy_wait(unsigned batches) {
  fibre_t* f = &g.fibre[g.current];
  unsigned kept = 0;
  for (unsigned i = 0; i < f->copy_count; ++i) {
    const copy_t* c = &f->copies[i];
    if (c->batch + batches >= f->batch) {
      f->copies[kept++] = *c;
    } else if (c->from) {
      memcpy(c->to, c->from, c->bytes);
    } else {
      memset(c->to, 0, c->bytes);
    }
  }
  f->copy_count = kept;
}

static void start_fibre(unsigned index) {
  fibre_t* f = &g.fibre[index];
  f->copy_count = f->batch = 0;
  f->stack = g.stacks + (size_t)index * STACK;
  f->state = READY;
  // Stacks that begin at equal offsets would share a set of the cache.
  void** at = (void**)(void*)(f->stack + STACK - (size_t)(index % 61) * 192);
  *--at = NULL;
  void (*entry)(void) = fibre_main;
  memcpy(--at, &entry, sizeof entry);
  for (int i = 0; i < 6; ++i)
    *--at = NULL;
  f->stack_pointer = at;
}

static unsigned count_state(unsigned begin, unsigned end, state_t state) {
  unsigned count = 0;
  for (unsigned i = begin; i < end; ++i)
    count += g.fibre[i].state == state;
  return count;
}

static void make_ready(unsigned begin, unsigned end, state_t state) {
  for (unsigned i = begin; i < end; ++i) {
    if (g.fibre[i].state == state) g.fibre[i].state = READY;
  }
}

// One round over the lanes of a subgroup. False: they do not meet.
static int run_subgroup(unsigned begin, unsigned end) {
  for (;;) {
    for (unsigned i = begin; i < end; ++i) {
      if (g.fibre[i].state == READY) enter(i);
    }
    unsigned exchange = count_state(begin, end, AT_EXCHANGE);
    unsigned done = count_state(begin, end, DONE);
    if (!exchange) return 1;
    if (exchange + done != end - begin) return 0;
    make_ready(begin, end, AT_EXCHANGE);
  }
}

static int run_group(void) {
  for (unsigned i = 0; i < g.count; ++i)
    start_fibre(i);
  for (;;) {
    for (unsigned w = 0; w < g.count; w += SUBGROUP) {
      unsigned end = w + SUBGROUP < g.count ? w + SUBGROUP : g.count;
      if (!run_subgroup(w, end)) return 0;
    }
    unsigned waiting = count_state(0, g.count, AT_BARRIER);
    if (!waiting) return 1;
    if (waiting != g.count) return 0;
    make_ready(0, g.count, AT_BARRIER);
  }
}

enum { GUARD = 64 };

// What no lane wrote is no number that would pass for one.
static void fill_shared(const fake_launch_t* launch) {
  if (!launch->shared) return;
  memset(launch->shared, 0xcd, launch->shared_bytes);
  memset(launch->shared + launch->shared_bytes, 0xa5, GUARD);
}

static int shared_is_sound(const fake_launch_t* launch) {
  for (int i = 0; launch->shared && i < GUARD; ++i) {
    if (launch->shared[launch->shared_bytes + (uint32_t)i] != 0xa5) return 0;
  }
  return 1;
}

static int run_all(const fake_launch_t* launch) {
  fake_dim_t n = launch->grid;
  for (unsigned z = 0; z < n.z; ++z) {
    for (unsigned y = 0; y < n.y; ++y) {
      for (unsigned x = 0; x < n.x; ++x) {
        g.shim.block = (fake_dim_t){x, y, z};
        fill_shared(launch);
        int met = run_group();
        if (met && shared_is_sound(launch)) continue;
        fprintf(stderr, "fake CUDA: lanes of group %u %u %u %s\n", x, y, z,
                met ? "write beyond what they share" : "do not meet");
        return 0;
      }
    }
  }
  return 1;
}

int fake_run(const fake_launch_t* launch) {
  pthread_mutex_lock(&lock);
  if (!g.stacks) {
    g.stacks = mmap(NULL, (size_t)STACK * MOST_LANES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  g.count = launch->group.x * launch->group.y * launch->group.z;
  g.entry = launch->entry;
  g.arguments = launch->arguments;
  g.shim = (fake_shim_t){.group_size = launch->group,
                         .grid = launch->grid,
                         .barrier = barrier,
                         .shuffle_xor = shuffle_xor,
                         .share = share,
                         .copy = copy,
                         .copy_commit = copy_commit,
                         .copy_wait = copy_wait};
  int ok = run_all(launch);
  pthread_mutex_unlock(&lock);
  return ok;
}
