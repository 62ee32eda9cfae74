// SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory, as CUDA C for devices that copy them by tensor maps
// and multiply them by warpgroups (PTX ISA: cp.async.bulk.tensor, mbarrier,
// wgmma, setmaxnreg). Addresses are those of the shared window, 32 bits.
#include "plugins/common/c_printer_internal.h"

// Lanes of a warpgroup start with an even share of the registers; REGISTERS
// below zero gives some back.
static const char functions[] =
    "struct __align__(64) pestle_tensor_map { unsigned long long bits[16]; };\n"
    "\n"
    "static __device__ __forceinline__ unsigned int pestle_address(\n"
    "    const void* at) {\n"
    "  unsigned long long wide;\n"
    "  asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(wide) : \"l\"(at));\n"
    "  return (unsigned int)wide;\n"
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
    "static __device__ __forceinline__ void pestle_tile_load(\n"
    "    unsigned int to, const pestle_tensor_map* map, int x, int y,\n"
    "    unsigned int arrives) {\n"
    "  asm volatile(\"cp.async.bulk.tensor.2d.shared::cluster.global\"\n"
    "      \".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\"\n"
    "      :: \"r\"(to), \"l\"(map), \"r\"(x), \"r\"(y), \"r\"(arrives)\n"
    "      : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_tile_load(\n"
    "    unsigned int to, const pestle_tensor_map* map, int x, int y, int z,\n"
    "    unsigned int arrives) {\n"
    "  asm volatile(\"cp.async.bulk.tensor.3d.shared::cluster.global\"\n"
    "      \".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];\"\n"
    "      :: \"r\"(to), \"l\"(map), \"r\"(x), \"r\"(y), \"r\"(z), "
    "\"r\"(arrives)\n"
    "      : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_tile_store(\n"
    "    unsigned int from, const pestle_tensor_map* map, int x, int y) {\n"
    "  asm volatile(\"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group\"\n"
    "      \" [%0, {%1, %2}], [%3];\\n\"\n"
    "      \"cp.async.bulk.commit_group;\"\n"
    "      :: \"l\"(map), \"r\"(x), \"r\"(y), \"r\"(from) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_tile_store(\n"
    "    unsigned int from, const pestle_tensor_map* map, int x, int y, int z) "
    "{\n"
    "  asm volatile(\"cp.async.bulk.tensor.3d.global.shared::cta.bulk_group\"\n"
    "      \" [%0, {%1, %2, %3}], [%4];\\n\"\n"
    "      \"cp.async.bulk.commit_group;\"\n"
    "      :: \"l\"(map), \"r\"(x), \"r\"(y), \"r\"(z), \"r\"(from)\n"
    "      : \"memory\");\n"
    "}\n"
    "// What wgmma takes for a tile with rows of 128 bytes, swizzled: "
    "|leading|\n"
    "// is the distance of its columns of rows, in 16 bytes.\n"
    "static __device__ __forceinline__ unsigned long long pestle_tile(\n"
    "    unsigned int at, unsigned long long leading) {\n"
    "  return (unsigned long long)((at & 0x3ffff) >> 4) | leading << 16 |\n"
    "         64ull << 32 | 1ull << 62;\n"
    "}\n";

static const char* wgmma_name(c_printer_t* p, uint32_t how) {
  return pestle_c_printer_format(
      p, "pestle_wgmma_%s%s_n%u_%s",
      how & PESTLE_KIR_WGMMA_A_TRANSPOSED ? "t" : "n",
      how & PESTLE_KIR_WGMMA_B_TRANSPOSED ? "t" : "n",
      (unsigned)(how & PESTLE_KIR_WGMMA_N),
      how & PESTLE_KIR_WGMMA_F16 ? "f16" : "bf16");
}

static void put_wgmma(c_printer_t* p, uint32_t how, pestle_plugin_text_t* out) {
  unsigned n = how & PESTLE_KIR_WGMMA_N, sums = n / 2;
  const char* type = how & PESTLE_KIR_WGMMA_F16 ? "f16" : "bf16";
  pestle_plugin_text_format(
      out,
      "static __device__ __forceinline__ void %s(\n"
      "    float (&d)[%u], unsigned long long a, unsigned long long b) {\n"
      "  asm volatile(\"wgmma.mma_async.sync.aligned.m64n%uk16.f32.%s.%s \"\n"
      "      \"{",
      wgmma_name(p, how), sums, n, type, type);
  for (unsigned i = 0; i < sums; ++i) {
    pestle_plugin_text_format(out, "%s%%%u", i ? ", " : "", i);
  }
  pestle_plugin_text_format(
      out, "}, %%%u, %%%u, 1, 1, 1, %d, %d;\"\n      : ", sums, sums + 1,
      how & PESTLE_KIR_WGMMA_A_TRANSPOSED ? 1 : 0,
      how & PESTLE_KIR_WGMMA_B_TRANSPOSED ? 1 : 0);
  for (unsigned i = 0; i < sums; ++i) {
    pestle_plugin_text_format(out, "%s\"+f\"(d[%u])", i ? ", " : "", i);
  }
  pestle_plugin_text_put(out, "\n      : \"l\"(a), \"l\"(b));\n}\n");
}

bool pestle_c_printer_has_tiles(const c_printer_t* p) {
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    if (c_printer_inst(p, i)->op == PESTLE_KIR_REF) return true;
  }
  return false;
}

void pestle_c_printer_tile_functions(c_printer_t* p,
                                     pestle_plugin_text_t* out) {
  uint32_t seen[4], count = 0;
  if (!pestle_c_printer_has_tiles(p)) return;
  pestle_plugin_text_put(out, functions);
  for (uint32_t i = 0; i < p->k->inst_count && count < 4; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    bool known = n->op != PESTLE_KIR_WGMMA;
    for (uint32_t s = 0; s < count; ++s)
      known = known || seen[s] == n->arg[3];
    if (known) continue;
    seen[count++] = n->arg[3];
    put_wgmma(p, n->arg[3], out);
  }
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
  bool loads = n->op == PESTLE_KIR_TILE_LOAD;
  const char* at = value(p, n->arg[0]);
  const char* to = coordinates(p, n->arg[2]);
  pestle_c_printer_line(p, "pestle_tile_%s(%s, &%s, %s%s%s);",
                        loads ? "load" : "store", at, p->name[n->arg[1]], to,
                        loads ? ", " : "", loads ? value(p, n->arg[3]) : "");
}

static void wgmma(c_printer_t* p, const pestle_kir_inst_t* n) {
  // Columns of a transposed tile are 64 rows of 128 bytes apart.
  const char* a = n->arg[3] & PESTLE_KIR_WGMMA_A_TRANSPOSED ? "512" : "1";
  const char* b = n->arg[3] & PESTLE_KIR_WGMMA_B_TRANSPOSED ? "512" : "1";
  pestle_c_printer_line(p, "%s(%s, pestle_tile(%s, %s), pestle_tile(%s, %s));",
                        wgmma_name(p, n->arg[3]), p->name[n->arg[0]],
                        value(p, n->arg[1]), a, value(p, n->arg[2]), b);
}

static void registers(c_printer_t* p, const pestle_kir_inst_t* n) {
  int32_t count = (int32_t)n->arg[0];
  pestle_c_printer_line(
      p, "asm volatile(\"setmaxnreg.%s.sync.aligned.u32 %d;\");",
      count < 0 ? "dec" : "inc", (int)(count < 0 ? -count : count));
}

bool pestle_c_printer_tile(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  if (n->op < PESTLE_KIR_REF || n->op > PESTLE_KIR_SYNC) return false;
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
      pestle_c_printer_line(p, "pestle_mbar_arrive(%s);", value(p, n->arg[0]));
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
    case PESTLE_KIR_TILE_LOAD:
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
      pestle_c_printer_line(
          p,
          "asm volatile(\"bar.sync %%0, %u;\" :: \"r\"((unsigned "
          "int)(%s)) : \"memory\");",
          n->arg[1], value(p, n->arg[0]));
      break;
    case PESTLE_KIR_WGMMA:
      wgmma(p, n);
      break;
    case PESTLE_KIR_WGMMA_FENCE:
      pestle_c_printer_line(
          p, "asm volatile(\"wgmma.fence.sync.aligned;\" ::: \"memory\");");
      break;
    case PESTLE_KIR_WGMMA_COMMIT:
      pestle_c_printer_line(
          p,
          "asm volatile(\"wgmma.commit_group.sync.aligned;\" ::: "
          "\"memory\");");
      break;
    case PESTLE_KIR_WGMMA_WAIT:
      pestle_c_printer_line(
          p,
          "asm volatile(\"wgmma.wait_group.sync.aligned %u;\" "
          "::: \"memory\");",
          n->arg[0]);
      break;
    case PESTLE_KIR_REGISTERS:
      registers(p, n);
      break;
    default:  // COORD is read by what takes it
      break;
  }
  return true;
}
