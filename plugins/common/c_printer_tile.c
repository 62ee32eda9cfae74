// SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory, as CUDA C for devices that copy them by tensor maps
// and multiply them by warpgroups (PTX ISA: cp.async.bulk.tensor, mbarrier,
// wgmma, setmaxnreg). Addresses are those of the shared window, 32 bits.
#include "plugins/common/c_printer_internal.h"

// A box by a tensor map of |rank| dims: |coords| are those of its first element.
#define COPIES(rank, parameters, coords, last, arguments)                 \
  "static __device__ __forceinline__ void pestle_tile_load(\n"            \
  "    unsigned int to, const pestle_tensor_map* map, " parameters        \
  ",\n    unsigned int arrives) {\n"                                      \
  "  asm volatile(\"cp.async.bulk.tensor." rank                           \
  "d.shared::cluster.global\"\n"                                          \
  "      \".mbarrier::complete_tx::bytes [%0], [%1, " coords "], [%" last \
  "];\"\n      :: \"r\"(to), \"l\"(map), " arguments                      \
  ", \"r\"(arrives)\n      : \"memory\");\n}\n"                           \
  "static __device__ __forceinline__ void pestle_tile_store(\n"           \
  "    unsigned int from, const pestle_tensor_map* map, " parameters      \
  ") {\n"                                                                 \
  "  asm volatile(\"cp.async.bulk.tensor." rank                           \
  "d.global.shared::cta.bulk_group\"\n"                                   \
  "      \" [%1, " coords                                                 \
  "], [%0];\\n\"\n"                                                       \
  "      \"cp.async.bulk.commit_group;\"\n"                               \
  "      :: \"r\"(from), \"l\"(map), " arguments " : \"memory\");\n}\n"

// Pixels of windows by a tensor map of |rank| dims: |coords| of the first window,
// |offsets| within each.
#define WINDOWS(rank, parameters, coords, offsets, last, arguments)       \
  "static __device__ __forceinline__ void pestle_tile_load_window(\n"     \
  "    unsigned int to, const pestle_tensor_map* map, " parameters        \
  ",\n    unsigned int arrives) {\n"                                      \
  "  asm volatile(\"cp.async.bulk.tensor." rank                           \
  "d.shared::cluster.global.im2col\"\n"                                   \
  "      \".mbarrier::complete_tx::bytes [%0], [%1, " coords "], [%" last \
  "], " offsets ";\"\n      :: \"r\"(to), \"l\"(map), " arguments         \
  ", \"r\"(arrives)\n      : \"memory\");\n}\n"

// To the same place of each group of the cluster, and its barrier there.
#define LOADS_TO_ALL(rank, parameters, coords, last, mask, arguments) \
  "static __device__ __forceinline__ void pestle_tile_load_all(\n"    \
  "    unsigned int to, const pestle_tensor_map* map, " parameters    \
  ",\n    unsigned int arrives, unsigned short groups) {\n"           \
  "  asm volatile(\"cp.async.bulk.tensor." rank                       \
  "d.shared::cluster.global\"\n"                                      \
  "      \".mbarrier::complete_tx::bytes.multicast::cluster\"\n"      \
  "      \" [%0], [%1, " coords "], [%" last "], %" mask              \
  ";\"\n      :: \"r\"(to), \"l\"(map), " arguments                   \
  ", \"r\"(arrives), \"h\"(groups)\n      : \"memory\");\n}\n"

#define STMATRIX(name, how)                                                   \
  "static __device__ __forceinline__ void pestle_stmatrix" name               \
  "(\n    unsigned int at, unsigned int a) {\n"                               \
  "  asm volatile(\"stmatrix.sync.aligned.m8n8.x1" how                        \
  ".shared.b16 [%0], {%1};\"\n"                                               \
  "      :: \"r\"(at), \"r\"(a) : \"memory\");\n}\n"                          \
  "static __device__ __forceinline__ void pestle_stmatrix" name               \
  "(\n    unsigned int at, unsigned int a, unsigned int b) {\n"               \
  "  asm volatile(\"stmatrix.sync.aligned.m8n8.x2" how                        \
  ".shared.b16 [%0], {%1, %2};\"\n"                                           \
  "      :: \"r\"(at), \"r\"(a), \"r\"(b) : \"memory\");\n}\n"                \
  "static __device__ __forceinline__ void pestle_stmatrix" name               \
  "(\n    unsigned int at, unsigned int a, unsigned int b, unsigned int c,\n" \
  "    unsigned int d) {\n"                                                   \
  "  asm volatile(\"stmatrix.sync.aligned.m8n8.x4" how                        \
  ".shared.b16 [%0], {%1, %2, %3, %4};\"\n"                                   \
  "      :: \"r\"(at), \"r\"(a), \"r\"(b), \"r\"(c), \"r\"(d) : "             \
  "\"memory\");\n}\n"

// Lanes of a warpgroup start with an even share of the registers; REGISTERS
// below zero gives some back.
static const char functions[] =
    "struct __align__(64) pestle_tensor_map { unsigned long long bits[16]; };\n"
    "\n"
    "static __device__ __forceinline__ unsigned int pestle_address(\n"
    "    const void* at) {\n"
    "  return (unsigned int)__cvta_generic_to_shared(at);\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_mbar_init(\n"
    "    unsigned int at, unsigned int count) {\n"
    "  asm volatile(\"mbarrier.init.shared::cta.b64 [%0], %1;\"\n"
    "               :: \"r\"(at), \"r\"(count) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_mbar_expect(\n"
    "    unsigned int at, unsigned int bytes) {\n"
    "  asm volatile(\"mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], "
    "%1;\"\n"
    "               :: \"r\"(at), \"r\"(bytes) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_mbar_arrive(\n"
    "    unsigned int at) {\n"
    "  asm volatile(\"mbarrier.arrive.shared::cta.b64 _, [%0];\"\n"
    "               :: \"r\"(at) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_mbar_wait(\n"
    "    unsigned int at, unsigned int parity) {\n"
    "  unsigned int done;\n"
    "  do {\n"
    "    asm volatile(\"{\\n.reg .pred p;\\n\"\n"
    "        \"mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\\n\"\n"
    "        \"selp.u32 %0, 1, 0, p;\\n}\"\n"
    "        : \"=r\"(done) : \"r\"(at), \"r\"(parity) : \"memory\");\n"
    "  } while (!done);\n"
    "}\n"
    "// What wgmma takes for a tile |more| behind |at|: |leading| is the "
    "distance of its\n"
    "// columns of rows, |rows| that of eight rows, these in 16 bytes; "
    "|swizzle| 1, 2, 3:\n"
    "// 128, 64, 32 bytes. What does not change is one number.\n"
    "static __device__ __forceinline__ unsigned long long pestle_tile(\n"
    "    unsigned int at, unsigned int more, unsigned int leading,\n"
    "    unsigned int rows, unsigned int swizzle) {\n"
    "  unsigned int low = ((at & 0x3ffff) >> 4) + (leading << 16) + more;\n"
    "  return (unsigned long long)(rows | swizzle << 30) << 32 | low;\n"
    "}\n";

static const char copies[] =
    COPIES("2", "int x, int y", "{%2, %3}", "4", "\"r\"(x), \"r\"(y)")
        COPIES("3", "int x, int y, int z", "{%2, %3, %4}", "5",
               "\"r\"(x), \"r\"(y), \"r\"(z)")
            COPIES("4", "int x, int y, int z, int u", "{%2, %3, %4, %5}", "6",
                   "\"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u)")
                COPIES("5", "int x, int y, int z, int u, int v",
                       "{%2, %3, %4, %5, %6}", "7",
                       "\"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u), \"r\"(v)");

static const char windows[] = WINDOWS("3", "int x, int y, int z, int a",
                                      "{%2, %3, %4}", "{%5}", "6",
                                      "\"r\"(x), \"r\"(y), \"r\"(z),\n"
                                      "         \"h\"((unsigned short)a)")
    WINDOWS("4", "int x, int y, int z, int u, int a, int b", "{%2, %3, %4, %5}",
            "{%6, %7}", "8",
            "\"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u),\n"
            "         \"h\"((unsigned short)a), \"h\"((unsigned short)b)")
        WINDOWS("5", "int x, int y, int z, int u, int v, int a, int b, int c",
                "{%2, %3, %4, %5, %6}", "{%7, %8, %9}", "10",
                "\"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u), \"r\"(v),\n"
                "         \"h\"((unsigned short)a), \"h\"((unsigned "
                "short)b),\n"
                "         \"h\"((unsigned short)c)");

static const char copies_to_all[] = LOADS_TO_ALL(
    "2", "int x, int y", "{%2, %3}", "4", "5", "\"r\"(x), \"r\"(y)")
    LOADS_TO_ALL("3", "int x, int y, int z", "{%2, %3, %4}", "5", "6",
                 "\"r\"(x), \"r\"(y), \"r\"(z)")
        LOADS_TO_ALL("4", "int x, int y, int z, int u", "{%2, %3, %4, %5}", "6",
                     "7", "\"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u)")
            LOADS_TO_ALL("5", "int x, int y, int z, int u, int v",
                         "{%2, %3, %4, %5, %6}", "7", "8",
                         "\"r\"(x), \"r\"(y), \"r\"(z), \"r\"(u), "
                         "\"r\"(v)");

// What groups of a cluster are to each other. What arrives at another group's barrier
// has read tiles alone, which a wait has ended: .release.cluster, which waits for all
// that the lane ever wrote, made each step 0.6 us longer on an H200.
static const char clusters[] =
    "static __device__ __forceinline__ unsigned int pestle_ref_at(\n"
    "    unsigned int at, unsigned int group) {\n"
    "  unsigned int there;\n"
    "  asm(\"mapa.shared::cluster.u32 %0, %1, %2;\"\n"
    "      : \"=r\"(there) : \"r\"(at), \"r\"(group));\n"
    "  return there;\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_mbar_arrive_at(\n"
    "    unsigned int at) {\n"
    "  asm volatile(\"mbarrier.arrive.shared::cluster.b64 _, [%0];\"\n"
    "               :: \"r\"(at) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ float pestle_load_at(unsigned int at) "
    "{\n"
    "  float a;\n"
    "  asm volatile(\"ld.shared::cluster.f32 %0, [%1];\"\n"
    "               : \"=f\"(a) : \"r\"(at) : \"memory\");\n"
    "  return a;\n"
    "}\n"
    "static __device__ __forceinline__ float2 pestle_load2_at(unsigned int "
    "at) {\n"
    "  float2 a;\n"
    "  asm volatile(\"ld.shared::cluster.v2.f32 {%0, %1}, [%2];\"\n"
    "               : \"=f\"(a.x), \"=f\"(a.y) : \"r\"(at) : "
    "\"memory\");\n"
    "  return a;\n"
    "}\n"
    "static __device__ __forceinline__ float4 pestle_load4_at(unsigned int "
    "at) {\n"
    "  float4 a;\n"
    "  asm volatile(\"ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];\"\n"
    "               : \"=f\"(a.x), \"=f\"(a.y), \"=f\"(a.z), "
    "\"=f\"(a.w)\n"
    "               : \"r\"(at) : \"memory\");\n"
    "  return a;\n"
    "}\n";

static const char matrices[] = STMATRIX("", "") STMATRIX("_trans", ".trans");

static bool uses(const c_printer_t* p, unsigned op) {
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    if (c_printer_inst(p, i)->op == op) return true;
  }
  return false;
}

bool pestle_c_printer_has_tiles(const c_printer_t* p) {
  return uses(p, PESTLE_KIR_REF);
}

void pestle_c_printer_tile_functions(c_printer_t* p,
                                     pestle_plugin_text_t* out) {
  if (!pestle_c_printer_has_tiles(p)) return;
  pestle_plugin_text_put(out, functions);
  pestle_plugin_text_put(out, copies);
  if (uses(p, PESTLE_KIR_TILE_LOAD_WINDOW))
    pestle_plugin_text_put(out, windows);
  if (pestle_kir_cluster(p->k) > 1) {
    pestle_plugin_text_put(out, copies_to_all);
    pestle_plugin_text_put(out, clusters);
  }
  pestle_plugin_text_put(out, matrices);
  pestle_c_printer_wgmma_functions(p, out);
  pestle_plugin_text_put(out, "\n");
}

// --- Instructions ---

static const char* value(c_printer_t* p, uint32_t id) {
  return pestle_c_printer_bare(p, pestle_c_printer_get(p, id, 0));
}

static void ref(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* name = pestle_c_printer_format(p, "a_%u", id);
  const char** lane = pestle_c_printer_lanes(p, 1);
  pestle_c_printer_line(p, "const unsigned int %s = pestle_address(&%s[%s]);",
                        name, p->name[n->arg[0]], value(p, n->arg[1]));
  lane[0] = name;
  pestle_c_printer_alias(p, id, lane, 1);
}

// An addr of its own in another group's memory.
static void ref_at(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* name = pestle_c_printer_format(p, "a_%u", id);
  const char** lane = pestle_c_printer_lanes(p, 1);
  const char* at = value(p, n->arg[0]);
  pestle_c_printer_line(
      p, "const unsigned int %s = pestle_ref_at(%s, (unsigned int)(%s));", name,
      at, value(p, n->arg[1]));
  lane[0] = name;
  pestle_c_printer_alias(p, id, lane, 1);
}

static void load_at(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  unsigned lanes = n->lanes;
  const char** lane = pestle_c_printer_lanes(p, lanes);
  const char* at = value(p, n->arg[0]);
  bool whole = n->type == PESTLE_I32;
  if ((n->type != PESTLE_F32 && !whole) || lanes > 4 || lanes == 3) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "from another group's memory one, two or four f32 "
                          "or i32 are loaded at once");
    return;
  }
  const char* name = pestle_c_printer_format(p, "v_%u", id);
  static const char* const types[] = {"float", "float2", "", "float4"};
  static const char* const widths[] = {"", "2", "", "4"};
  pestle_c_printer_line(
      p, "const %s %s = pestle_load%s_at(%s + 4u * (unsigned int)(%s));",
      types[lanes - 1], name, widths[lanes - 1], at, value(p, n->arg[1]));
  for (unsigned l = 0; l < lanes; ++l) {
    lane[l] = lanes == 1 ? name
                         : pestle_c_printer_format(p, "%s.%c", name, "xyzw"[l]);
    // The bits are what was loaded.
    if (whole) {
      lane[l] =
          pestle_c_printer_format(p, "((int)%s(%s))", p->d->bits[0], lane[l]);
    }
  }
  pestle_c_printer_alias(p, id, lane, lanes);
}

static const char* coordinates(c_printer_t* p, uint32_t coord) {
  const char* at = "";
  while (c_printer_inst(p, coord)->op == PESTLE_KIR_COORD) {
    const pestle_kir_inst_t* c = c_printer_inst(p, coord);
    at = pestle_c_printer_format(p, "%s%s, ", at, value(p, c->arg[0]));
    coord = c->arg[1];
  }
  return pestle_c_printer_format(p, "%s%s", at, value(p, coord));
}

static void tile_copy(c_printer_t* p, const pestle_kir_inst_t* n) {
  bool loads = n->op != PESTLE_KIR_TILE_STORE;
  const char* name = n->op == PESTLE_KIR_TILE_LOAD_WINDOW ? "load_window"
                     : loads                              ? "load"
                                                          : "store";
  const char* at = value(p, n->arg[0]);
  const char* to = coordinates(p, n->arg[2]);
  const char* map = p->name[n->arg[1]];
  uint32_t groups = pestle_kir_cluster(p->k);
  if (n->op == PESTLE_KIR_TILE_LOAD_ALL && groups > 1) {
    pestle_c_printer_line(p, "pestle_tile_load_all(%s, &%s, %s, %s, %u);", at,
                          map, to, value(p, n->arg[3]), (1u << groups) - 1);
    return;
  }
  pestle_c_printer_line(p, "pestle_tile_%s(%s, &%s, %s%s%s);", name, at, map,
                        to, loads ? ", " : "",
                        loads ? value(p, n->arg[3]) : "");
}

// The words of a value, as further arguments.
static const char* words(c_printer_t* p, uint32_t id) {
  const char* list = "";
  for (unsigned l = 0; l < c_printer_inst(p, id)->lanes; ++l) {
    const char* word = pestle_c_printer_bare(p, pestle_c_printer_get(p, id, l));
    list = pestle_c_printer_format(p, "%s, %s", list, word);
  }
  return list;
}

static void stmatrix(c_printer_t* p, const pestle_kir_inst_t* n) {
  pestle_c_printer_line(p, "pestle_stmatrix%s(pestle_address(&%s[%s])%s);",
                        n->arg[3] ? "_trans" : "", p->name[n->arg[0]],
                        value(p, n->arg[1]), words(p, n->arg[2]));
}

static void registers(c_printer_t* p, const pestle_kir_inst_t* n) {
  int32_t count = (int32_t)n->arg[0];
  pestle_c_printer_line(
      p, "asm volatile(\"setmaxnreg.%s.sync.aligned.u32 %d;\");",
      count < 0 ? "dec" : "inc", (int)(count < 0 ? -count : count));
}

bool pestle_c_printer_tile(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  bool first = n->op >= PESTLE_KIR_REF && n->op <= PESTLE_KIR_SYNC;
  bool later =
      n->op >= PESTLE_KIR_WGMMA_RA && n->op <= PESTLE_KIR_TILE_LOAD_ALL;
  if (!first && !later) return false;
  if (!(p->target->features & PESTLE_C_PRINTER_HAS_TILES)) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "the device has no such units");
    return true;
  }
  switch (n->op) {
    case PESTLE_KIR_REF:
      ref(p, id);
      break;
    case PESTLE_KIR_MBAR_INIT:
      pestle_c_printer_line(p, "pestle_mbar_init(%s, %u);", value(p, n->arg[0]),
                            n->arg[1]);
      break;
    case PESTLE_KIR_MBAR_EXPECT:
      pestle_c_printer_line(p, "pestle_mbar_expect(%s, %u);",
                            value(p, n->arg[0]), n->arg[1]);
      break;
    case PESTLE_KIR_MBAR_ARRIVE:
      pestle_c_printer_line(
          p, "pestle_mbar_arrive%s(%s);",
          c_printer_inst(p, n->arg[0])->op == PESTLE_KIR_REF_AT ? "_at" : "",
          value(p, n->arg[0]));
      break;
    case PESTLE_KIR_MBAR_WAIT:
      pestle_c_printer_line(p, "pestle_mbar_wait(%s, (unsigned int)(%s));",
                            value(p, n->arg[0]), value(p, n->arg[1]));
      break;
    case PESTLE_KIR_MBAR_FENCE:
      pestle_c_printer_line(
          p,
          "asm volatile(\"fence.mbarrier_init.release.cluster; "
          "fence.proxy.async;\" ::: \"memory\");");
      break;
    case PESTLE_KIR_REF_AT:
      ref_at(p, id);
      break;
    case PESTLE_KIR_LOAD_AT:
      load_at(p, id);
      break;
    case PESTLE_KIR_CLUSTER_SYNC:
      pestle_c_printer_line(p,
                            "asm volatile(\"barrier.cluster.arrive.release;\\n"
                            "barrier.cluster.wait.acquire;\" ::: \"memory\");");
      break;
    case PESTLE_KIR_TILE_LOAD:
    case PESTLE_KIR_TILE_LOAD_WINDOW:
    case PESTLE_KIR_TILE_LOAD_ALL:
    case PESTLE_KIR_TILE_STORE:
      tile_copy(p, n);
      break;
    case PESTLE_KIR_TILE_WAIT:
      pestle_c_printer_line(
          p,
          "asm volatile(\"cp.async.bulk.wait_group.read %u;\" "
          "::: \"memory\");",
          n->arg[0]);
      break;
    case PESTLE_KIR_TILE_FENCE:
      pestle_c_printer_line(
          p,
          "asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");");
      break;
    case PESTLE_KIR_SYNC:
    case PESTLE_KIR_SYNC_ARRIVE:
      pestle_c_printer_line(
          p,
          "asm volatile(\"bar.%s %%0, %u;\" :: \"r\"((unsigned "
          "int)(%s)) : \"memory\");",
          n->op == PESTLE_KIR_SYNC ? "sync" : "arrive", n->arg[1],
          value(p, n->arg[0]));
      break;
    case PESTLE_KIR_WGMMA:
    case PESTLE_KIR_WGMMA_RA:
    case PESTLE_KIR_WGMMA_FENCE:
    case PESTLE_KIR_WGMMA_COMMIT:
    case PESTLE_KIR_WGMMA_WAIT:
      pestle_c_printer_wgmma(p, id);
      break;
    case PESTLE_KIR_STMATRIX:
      stmatrix(p, n);
      break;
    case PESTLE_KIR_REGISTERS:
      registers(p, n);
      break;
    default:  // COORD is read by what takes it
      break;
  }
  return true;
}
