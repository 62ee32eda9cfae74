// SPDX-License-Identifier: Apache-2.0
// Products of warpgroups, as CUDA C for sm_90a. To the compiler a product is done
// where it stands, but its sums are made, and tile a is read, up to a wait. So
// registers are named again, by a statement without instructions, before the
// fence of the products that use them and behind the wait for those: no write of
// them moves past the one, no read before the other.
#include "plugins/common/c_printer_internal.h"

static bool is_wgmma(const pestle_kir_inst_t* n) {
  return n->op == PESTLE_KIR_WGMMA || n->op == PESTLE_KIR_WGMMA_RA;
}

// --- Functions ---

// Of its operand, b if |is_b|.
static const char* type_of(uint32_t how, bool is_b) {
  uint32_t bit = is_b ? PESTLE_KIR_WGMMA_B_SIGNED : PESTLE_KIR_WGMMA_A_SIGNED;
  if (how & PESTLE_KIR_WGMMA_BYTES) return how & bit ? "s8" : "u8";
  if (how & PESTLE_KIR_WGMMA_F8) return how & bit ? "e5m2" : "e4m3";
  if (how & PESTLE_KIR_WGMMA_TYPE) return "tf32";
  return how & PESTLE_KIR_WGMMA_F16 ? "f16" : "bf16";
}

// Elements of k that one instruction takes: 32 bytes.
static unsigned depth_of(uint32_t how) {
  if (how & (PESTLE_KIR_WGMMA_BYTES | PESTLE_KIR_WGMMA_F8)) return 32;
  return how & PESTLE_KIR_WGMMA_TYPE ? 8 : 16;
}

static const char* name_of(c_printer_t* p, const pestle_kir_inst_t* n) {
  uint32_t how = n->arg[3];
  return pestle_c_printer_format(
      p, "pestle_wgmma_%s%s_n%u_%s%s%s",
      n->op == PESTLE_KIR_WGMMA_RA          ? "r"
      : how & PESTLE_KIR_WGMMA_A_TRANSPOSED ? "t"
                                            : "n",
      how & PESTLE_KIR_WGMMA_B_TRANSPOSED ? "t" : "n",
      (unsigned)(how & PESTLE_KIR_WGMMA_N), type_of(how, false),
      how & PESTLE_KIR_WGMMA_TYPE ? type_of(how, true) : "",
      how & PESTLE_KIR_WGMMA_ZERO ? "_zero" : "");
}

static void put_function(c_printer_t* p, const pestle_kir_inst_t* n,
                         pestle_plugin_text_t* out) {
  uint32_t how = n->arg[3];
  bool in_registers = n->op == PESTLE_KIR_WGMMA_RA;
  unsigned wide = how & PESTLE_KIR_WGMMA_N, sums = wide / 2;
  bool bytes = how & PESTLE_KIR_WGMMA_BYTES;
  pestle_plugin_text_format(
      out,
      "static __device__ __forceinline__ void %s(\n"
      "    %s (&d)[%u], %s, unsigned long long b) {\n"
      "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n%uk%u.%s.%s.%s \"\n"
      "      \"{",
      name_of(p, n), bytes ? "int" : "float", sums,
      in_registers ? "unsigned int a0, unsigned int a1, unsigned int a2,\n"
                     "    unsigned int a3"
                   : "unsigned long long a",
      wide, depth_of(how), bytes ? "s32" : "f32", type_of(how, false),
      type_of(how, true));
  for (unsigned i = 0; i < sums; ++i)
    pestle_plugin_text_format(out, "%s%%%u", i ? ", " : "", i);
  if (in_registers) {
    pestle_plugin_text_format(out, "}, {%%%u, %%%u, %%%u, %%%u}, %%%u, ", sums,
                              sums + 1, sums + 2, sums + 3, sums + 4);
  } else {
    pestle_plugin_text_format(out, "}, %%%u, %%%u, ", sums, sums + 1);
  }
  pestle_plugin_text_format(out, "%d", how & PESTLE_KIR_WGMMA_ZERO ? 0 : 1);
  // Factors of 1 or -1, and which tiles are transposed.
  bool turns = !(how & PESTLE_KIR_WGMMA_TYPE);
  if (!bytes) pestle_plugin_text_put(out, ", 1, 1");
  if (turns && !in_registers) {
    pestle_plugin_text_format(out, ", %d",
                              how & PESTLE_KIR_WGMMA_A_TRANSPOSED ? 1 : 0);
  }
  if (turns) {
    pestle_plugin_text_format(out, ", %d",
                              how & PESTLE_KIR_WGMMA_B_TRANSPOSED ? 1 : 0);
  }
  pestle_plugin_text_put(out, ";\"\n      : ");
  for (unsigned i = 0; i < sums; ++i)
    pestle_plugin_text_format(out, "%s\"%c%c\"(d[%u])", i ? ", " : "",
                              how & PESTLE_KIR_WGMMA_ZERO ? '=' : '+',
                              bytes ? 'r' : 'f', i);
  pestle_plugin_text_put(
      out, in_registers ? "\n      : \"r\"(a0), \"r\"(a1), \"r\"(a2), "
                          "\"r\"(a3), \"l\"(b));\n}\n"
                        : "\n      : \"l\"(a), \"l\"(b));\n}\n");
}

static const char pins[] =
    "template <int n>\n"
    "static __device__ __forceinline__ void pestle_pin(float (&d)[n]) {\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < n; ++i) asm volatile(\"\" : \"+f\"(d[i]));\n"
    "}\n"
    "template <int n>\n"
    "static __device__ __forceinline__ void pestle_pin(int (&d)[n]) {\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < n; ++i) asm volatile(\"\" : \"+r\"(d[i]));\n"
    "}\n"
    "template <int n>\n"
    "static __device__ __forceinline__ void pestle_pin(unsigned int (&d)[n]) "
    "{\n"
    "#pragma unroll\n"
    "  for (int i = 0; i < n; ++i) asm volatile(\"\" : \"+r\"(d[i]));\n"
    "}\n";

static bool same_function(const pestle_kir_inst_t* a,
                          const pestle_kir_inst_t* b) {
  return is_wgmma(a) && a->op == b->op &&
         (a->arg[3] & ~(uint32_t)PESTLE_KIR_WGMMA_SWIZZLE) ==
             (b->arg[3] & ~(uint32_t)PESTLE_KIR_WGMMA_SWIZZLE);
}

void pestle_c_printer_wgmma_functions(c_printer_t* p,
                                      pestle_plugin_text_t* out) {
  bool any = false;
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    bool known = !is_wgmma(n);
    for (uint32_t j = 0; j < i && !known; ++j)
      known = same_function(c_printer_inst(p, j), n);
    if (known) continue;
    if (!any) pestle_plugin_text_put(out, pins);
    any = true;
    put_function(p, n, out);
  }
}

// --- Which registers products use ---

enum { MOST_PINNED = 16 };

// Whether |buffer| was not among those |seen|, and is now.
static bool hide(uint32_t buffer, uint32_t* seen, uint32_t* count) {
  for (uint32_t i = 0; i < *count; ++i)
    if (seen[i] == buffer) return false;
  if (*count == MOST_PINNED) return false;
  seen[(*count)++] = buffer;
  return true;
}

static void pin(c_printer_t* p, uint32_t buffer, uint32_t* seen,
                uint32_t* count) {
  if (hide(buffer, seen, count))
    pestle_c_printer_line(p, "pestle_pin(%s);", p->name[buffer]);
}

static void pin_registers(c_printer_t* p, const pestle_kir_inst_t* n,
                          uint32_t* seen, uint32_t* count) {
  pin(p, n->arg[0], seen, count);
  if (n->op == PESTLE_KIR_WGMMA_RA)
    pin(p, c_printer_inst(p, n->arg[1])->arg[0], seen, count);
}

// Of the products up to the next commit, but for sums that begin as a product.
static void pin_next(c_printer_t* p, uint32_t id) {
  uint32_t seen[MOST_PINNED], count = 0;
  for (uint32_t i = id + 1; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    if (n->op == PESTLE_KIR_WGMMA_COMMIT) return;
    if (!is_wgmma(n)) continue;
    if (n->arg[3] & PESTLE_KIR_WGMMA_ZERO) hide(n->arg[0], seen, &count);
    pin_registers(p, n, seen, &count);
  }
}

// What stands between two waits is done there: registers of products that an
// earlier wait was for are named before this one, and behind it those of all
// batches but the |most| last ones. What these use is theirs still. A wait for all
// is where the look back ends.
static void wait_for(c_printer_t* p, uint32_t id, uint32_t most) {
  uint32_t seen[MOST_PINNED], count = 0, batches = 0, waited = UINT32_MAX;
  uint32_t done[MOST_PINNED], done_count = 0;
  for (uint32_t i = id; i-- > 0;) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    if (n->op == PESTLE_KIR_WGMMA_WAIT) {
      if (!n->arg[0]) break;
      if (batches + n->arg[0] < waited) waited = batches + n->arg[0];
    }
    if (n->op == PESTLE_KIR_WGMMA_COMMIT) ++batches;
    if (!is_wgmma(n) || !hide(n->arg[0], seen, &count)) continue;
    if (batches > waited) {
      pestle_c_printer_line(p, "pestle_pin(%s);", p->name[n->arg[0]]);
    } else if (batches > most) {
      done[done_count++] = i;
    }
  }
  pestle_c_printer_line(p,
                        "asm volatile(\"wgmma.wait_group.sync.aligned %u;\" "
                        "::: \"memory\");",
                        most);
  count = 0;
  for (uint32_t i = 0; i < done_count; ++i)
    pin_registers(p, c_printer_inst(p, done[i]), seen, &count);
}

// --- Instructions ---

static const char* value(c_printer_t* p, uint32_t id) {
  return pestle_c_printer_bare(p, pestle_c_printer_get(p, id, 0));
}

// Whether |id| says which warpgroup a lane is of, where all lanes of a subgroup are.
static bool is_warpgroup(const c_printer_t* p, uint32_t id) {
  enum { WARPGROUP = 128 };
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  int64_t known;
  if (n->op != PESTLE_KIR_SCALAR_BASE + PESTLE_OP_DIVIDE ||
      n->type != PESTLE_INDEX || n->lanes != 1 || p->lane[1] > 1 ||
      p->lane[2] > 1 || !pestle_c_printer_known(p, n->arg[1], &known) ||
      known != WARPGROUP) {
    return false;
  }
  const pestle_kir_inst_t* lane = c_printer_inst(p, n->arg[0]);
  if (lane->op != PESTLE_KIR_FOR || lane->arg[3] != PESTLE_KIR_LANE_X)
    return false;
  uint32_t open = 0;
  for (uint32_t i = n->arg[0] + 1; i < id; ++i) {
    unsigned op = c_printer_inst(p, i)->op;
    open += op == PESTLE_KIR_FOR || op == PESTLE_KIR_IF;
    open -= op == PESTLE_KIR_END;
  }
  return !open;
}

bool pestle_c_printer_warpgroup(c_printer_t* p, uint32_t id) {
  bool products = false;
  if (!is_warpgroup(p, id)) return false;
  for (uint32_t i = id; i < p->k->inst_count && !products; ++i)
    products = is_wgmma(c_printer_inst(p, i));
  if (!products) return false;
  const char** lane = pestle_c_printer_lanes(p, 1);
  const char* from = pestle_c_printer_get(p, c_printer_inst(p, id)->arg[0], 0);
  lane[0] = pestle_c_printer_format(p, "w_%u", id);
  // So a compiler knows that it is the same for a subgroup, and so what is made of it.
  pestle_c_printer_line(
      p, "const int %s = __shfl_sync(0xffffffffu, (int)%s / 128, 0);", lane[0],
      from);
  pestle_c_printer_alias(p, id, lane, 1);
  return true;
}

// |index| in units of |unit| elements, where each of its terms is a multiple of them;
// else NULL.
static const char* in_units(c_printer_t* p, uint32_t index, int64_t unit) {
  const pestle_kir_inst_t* n = c_printer_inst(p, index);
  int64_t known;
  if (pestle_c_printer_known(p, index, &known)) {
    if (known % unit) return NULL;
    return pestle_c_printer_format(p, "%lld", (long long)(known / unit));
  }
  if (n->op != PESTLE_KIR_MADI) return NULL;
  int64_t times = (int32_t)n->arg[1];
  const char* rest = "0";
  if (n->arg[2] != PESTLE_KIR_NONE) rest = in_units(p, n->arg[2], unit);
  if (!rest) return NULL;
  const char* a = NULL;
  if (times % unit == 0) {
    a = pestle_c_printer_get(p, n->arg[0], 0);
    times /= unit;
  } else {
    a = in_units(p, n->arg[0], unit);
  }
  if (!a) return NULL;
  return pestle_c_printer_format(p, "(%s * %lld + %s)", a, (long long)times,
                                 rest);
}

// What changes from one tile to the next is a term of its own, so that a compiler makes
// the rest once.
static const char* tile(c_printer_t* p, uint32_t at, uint32_t how,
                        bool transposed) {
  enum { CHUNK = 16 };  // bytes
  const pestle_kir_inst_t* n = c_printer_inst(p, at);
  const char *from = value(p, at), *more = NULL;
  unsigned swizzle =
      (how & PESTLE_KIR_WGMMA_SWIZZLE) / (unsigned)PESTLE_KIR_WGMMA_SWIZZLE_64;
  if (n->op == PESTLE_KIR_REF) {
    unsigned dtype = pestle_kir_buffer(p->k, n->arg[0])->dtype;
    size_t size = pestle_dtype_size((pestle_dtype_t)dtype);
    if (size && size <= CHUNK)
      more = in_units(p, n->arg[1], CHUNK / (int64_t)size);
    if (more)
      from =
          pestle_c_printer_format(p, "pestle_address(%s)", p->name[n->arg[0]]);
  }
  // Columns of a transposed tile are 64 rows of 128 bytes apart.
  return pestle_c_printer_format(
      p, "pestle_tile(%s, (unsigned int)(%s), %s, %u, %u)", from,
      more ? more : "0", transposed ? "512" : "1", 64u >> swizzle, swizzle + 1);
}

static void product(c_printer_t* p, const pestle_kir_inst_t* n) {
  uint32_t how = n->arg[3];
  const char* a = "";
  if (n->op == PESTLE_KIR_WGMMA_RA) {
    for (unsigned l = 0; l < 4; ++l) {
      const char* word = pestle_c_printer_get(p, n->arg[1], l);
      a = pestle_c_printer_format(p, "%s%s%s", a, l ? ", " : "",
                                  pestle_c_printer_bare(p, word));
    }
  } else {
    a = tile(p, n->arg[1], how, how & PESTLE_KIR_WGMMA_A_TRANSPOSED);
  }
  pestle_c_printer_line(
      p, "%s(%s, %s, %s);", name_of(p, n), p->name[n->arg[0]], a,
      tile(p, n->arg[2], how, how & PESTLE_KIR_WGMMA_B_TRANSPOSED));
}

void pestle_c_printer_wgmma(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  if (n->op == PESTLE_KIR_WGMMA_FENCE) {
    pin_next(p, id);
    pestle_c_printer_line(
        p, "asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");");
  } else if (n->op == PESTLE_KIR_WGMMA_COMMIT) {
    pestle_c_printer_line(
        p,
        "asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: "
        "\"memory\");");
  } else if (n->op == PESTLE_KIR_WGMMA_WAIT) {
    wait_for(p, id, n->arg[0]);
  } else {
    product(p, n);
  }
}
