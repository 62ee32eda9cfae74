// SPDX-License-Identifier: Apache-2.0
// Short dot products by a function of the dialect; matrix units of a subgroup and what feeds
// them, as CUDA C since sm_80 (PTX
// ISA: mma.sync.m16n8k16, ldmatrix, cp.async), and products of 8 x 8 by a
// function of the dialect. With PESTLE_SHIM defined a CPU runs the CUDA C, by
// functions of its own (tests/shim).
#include "plugins/common/c_printer_internal.h"

static const char address[] =
    "#ifndef PESTLE_SHIM\n"
    "static __device__ __forceinline__ unsigned int pestle_shared_at(\n"
    "    const void* at) {\n"
    "  unsigned long long wide;\n"
    "  asm(\"cvta.to.shared.u64 %0, %1;\" : \"=l\"(wide) : \"l\"(at));\n"
    "  return (unsigned int)wide;\n"
    "}\n"
    "#endif\n";

static const char load_matrices[] =
    "#ifndef PESTLE_SHIM\n"
    "static __device__ __forceinline__ void pestle_ldmatrix(\n"
    "    unsigned int (&d)[4], const void* at) {\n"
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.shared.b16 \"\n"
    "      \"{%0, %1, %2, %3}, [%4];\" : \"=r\"(d[0]), \"=r\"(d[1]),\n"
    "      \"=r\"(d[2]), \"=r\"(d[3]) : \"r\"(pestle_shared_at(at))\n"
    "      : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_ldmatrix_trans(\n"
    "    unsigned int (&d)[4], const void* at) {\n"
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 \"\n"
    "      \"{%0, %1, %2, %3}, [%4];\" : \"=r\"(d[0]), \"=r\"(d[1]),\n"
    "      \"=r\"(d[2]), \"=r\"(d[3]) : \"r\"(pestle_shared_at(at))\n"
    "      : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_ldmatrix(\n"
    "    unsigned int (&d)[2], const void* at) {\n"
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.shared.b16 \"\n"
    "      \"{%0, %1}, [%2];\" : \"=r\"(d[0]), \"=r\"(d[1])\n"
    "      : \"r\"(pestle_shared_at(at)) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_ldmatrix_trans(\n"
    "    unsigned int (&d)[2], const void* at) {\n"
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 \"\n"
    "      \"{%0, %1}, [%2];\" : \"=r\"(d[0]), \"=r\"(d[1])\n"
    "      : \"r\"(pestle_shared_at(at)) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_ldmatrix(\n"
    "    unsigned int (&d)[1], const void* at) {\n"
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];\"\n"
    "      : \"=r\"(d[0]) : \"r\"(pestle_shared_at(at)) : \"memory\");\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_ldmatrix_trans(\n"
    "    unsigned int (&d)[1], const void* at) {\n"
    "  asm volatile(\"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, \"\n"
    "      \"[%1];\" : \"=r\"(d[0]) : \"r\"(pestle_shared_at(at)) : "
    "\"memory\");\n"
    "}\n"
    "#endif\n";

// |from| is what may be read where nothing is: the hardware then reads none.
static const char copies[] =
    "#ifndef PESTLE_SHIM\n"
    "template <int bytes>\n"
    "static __device__ __forceinline__ void pestle_copy_async(\n"
    "    void* to, const void* from, bool reads) {\n"
    "  int size = reads ? bytes : 0;\n"
    "  if (bytes == 16) {\n"
    "    asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\"\n"
    "        :: \"r\"(pestle_shared_at(to)), \"l\"(from), \"r\"(size)\n"
    "        : \"memory\");\n"
    "  } else {\n"
    "    asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\"\n"
    "        :: \"r\"(pestle_shared_at(to)), \"l\"(from), \"n\"(bytes), "
    "\"r\"(size)\n"
    "        : \"memory\");\n"
    "  }\n"
    "}\n"
    "static __device__ __forceinline__ void pestle_copy_commit() {\n"
    "  asm volatile(\"cp.async.commit_group;\" ::: \"memory\");\n"
    "}\n"
    "template <int batches>\n"
    "static __device__ __forceinline__ void pestle_copy_wait() {\n"
    "  asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(batches) : "
    "\"memory\");\n"
    "}\n"
    "#endif\n";

// Of each product its name, operands and k.
typedef struct mma_t {
  const char *name, *a, *b;
  int k;
} mma_t;

static const mma_t mmas[PESTLE_KIR_MMA_KINDS] = {
    [PESTLE_KIR_MMA_BF16] = {"bf16", "bf16", "bf16", 16},
    [PESTLE_KIR_MMA_F16] = {"f16", "f16", "f16", 16},
    [PESTLE_KIR_MMA_F32_8X8] = {"8x8", "f32", "f32", 8},
    [PESTLE_KIR_MMA_TF32] = {"tf32", "tf32", "tf32", 8},
    [PESTLE_KIR_MMA_BYTES] = {"u8u8", "u8", "u8", 32},
    {"s8u8", "s8", "u8", 32},
    {"u8s8", "u8", "s8", 32},
    {"s8s8", "s8", "s8", 32},
    [PESTLE_KIR_MMA_F8] = {"e4m3e4m3", "e4m3", "e4m3", 32},
    {"e5m2e4m3", "e5m2", "e4m3", 32},
    {"e4m3e5m2", "e4m3", "e5m2", 32},
    {"e5m2e5m2", "e5m2", "e5m2", 32},
};

static bool multiplies_bytes(uint32_t how) {
  return how >= PESTLE_KIR_MMA_BYTES && how < PESTLE_KIR_MMA_F8;
}

static void put_mma(uint32_t how, pestle_plugin_text_t* out) {
  bool bytes = multiplies_bytes(how);
  const mma_t* m = &mmas[how];
  const char* sums = bytes ? "s32" : "f32";
  const char* type = bytes ? "int" : "float";
  const char letter = bytes ? 'r' : 'f';
  pestle_plugin_text_format(
      out,
      "#ifndef PESTLE_SHIM\n"
      "static __device__ __forceinline__ void pestle_mma_%s(\n"
      "    %s (&d)[4], unsigned int a0, unsigned int a1, unsigned int a2,\n"
      "    unsigned int a3, unsigned int b0, unsigned int b1) {\n"
      "  asm volatile(\"mma.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s \"\n"
      "      \"{%%0, %%1, %%2, %%3}, {%%4, %%5, %%6, %%7}, {%%8, %%9}, \"\n"
      "      \"{%%0, %%1, %%2, %%3};\"\n"
      "      : \"+%c\"(d[0]), \"+%c\"(d[1]), \"+%c\"(d[2]), \"+%c\"(d[3])\n"
      "      : \"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3), \"r\"(b0), "
      "\"r\"(b1));\n"
      "}\n"
      "#endif\n",
      m->name, type, m->k, sums, m->a, m->b, sums, letter, letter, letter,
      letter);
}

void pestle_c_printer_unit_functions(c_printer_t* p,
                                     pestle_plugin_text_t* out) {
  bool matrices = false, copied = false, units = false;
  bool mma[PESTLE_KIR_MMA_KINDS] = {false};
  bool dots = false;
  for (uint32_t i = 0; i < p->k->inst_count; ++i) {
    const pestle_kir_inst_t* n = c_printer_inst(p, i);
    matrices = matrices || n->op == PESTLE_KIR_LDMATRIX;
    copied = copied || n->op == PESTLE_KIR_COPY_ASYNC;
    dots = dots || n->op == PESTLE_KIR_DOT4;
    if (n->op != PESTLE_KIR_MMA) continue;
    mma[n->arg[3] % PESTLE_KIR_MMA_KINDS] = units = true;
  }
  if (dots && p->d->dot4) pestle_plugin_text_put(out, p->d->dot4);
  if (matrices || copied) pestle_plugin_text_put(out, address);
  if (matrices) pestle_plugin_text_put(out, load_matrices);
  if (copied) pestle_plugin_text_put(out, copies);
  for (uint32_t i = 0; i < sizeof mma / sizeof *mma; ++i) {
    if (mma[i] && i != PESTLE_KIR_MMA_F32_8X8) put_mma(i, out);
  }
  if (mma[PESTLE_KIR_MMA_F32_8X8] && p->d->mma8)
    pestle_plugin_text_put(out, p->d->mma8);
  if (matrices || copied || units) pestle_plugin_text_put(out, "\n");
}

// --- Instructions ---

static const char* value(c_printer_t* p, uint32_t id) {
  return pestle_c_printer_bare(p, pestle_c_printer_get(p, id, 0));
}

// Its lanes are elements of an array.
static const char* name_array(c_printer_t* p, uint32_t id, const char* type) {
  unsigned count = c_printer_inst(p, id)->lanes;
  const char* name = pestle_c_printer_format(p, "f_%u", id);
  const char** lane = pestle_c_printer_lanes(p, count);
  for (unsigned l = 0; l < count; ++l)
    lane[l] = pestle_c_printer_format(p, "%s[%u]", name, l);
  pestle_c_printer_line(p, "%s %s[%u];", type, name, count);
  pestle_c_printer_alias(p, id, lane, count);
  return name;
}

static void mma(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* sum[4];
  const char* list = "";
  for (unsigned l = 0; l < 4; ++l)
    sum[l] = pestle_c_printer_bare(p, pestle_c_printer_get(p, n->arg[2], l));
  for (unsigned l = 0; l < 6; ++l) {
    const char* x = l < 4 ? pestle_c_printer_get(p, n->arg[0], l)
                          : pestle_c_printer_get(p, n->arg[1], l - 4);
    list =
        pestle_c_printer_format(p, "%s, %s", list, pestle_c_printer_bare(p, x));
  }
  const char* name =
      name_array(p, id,
                 pestle_c_printer_type(p, multiplies_bytes(n->arg[3])
                                              ? PESTLE_C_PRINTER_I32
                                              : PESTLE_C_PRINTER_F32));
  for (unsigned l = 0; l < 4; ++l)
    pestle_c_printer_line(p, "%s[%u] = %s;", name, l, sum[l]);
  pestle_c_printer_line(p, "pestle_mma_%s(%s%s);",
                        mmas[n->arg[3] % PESTLE_KIR_MMA_KINDS].name, name,
                        list);
}

static void mma8(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* list = "";
  for (unsigned l = 0; l < 6; ++l) {
    const char* x = pestle_c_printer_get(p, n->arg[l / 2], l % 2);
    list = pestle_c_printer_format(p, "%s%s%s", list, l ? ", " : "",
                                   pestle_c_printer_bare(p, x));
  }
  const char* name = pestle_c_printer_format(p, "f_%u", id);
  const char** lane = pestle_c_printer_lanes(p, 2);
  lane[0] = pestle_c_printer_format(p, "%s.x", name);
  lane[1] = pestle_c_printer_format(p, "%s.y", name);
  pestle_c_printer_line(p, "%s %s = pestle_mma8(%s);",
                        p->d->vector2[PESTLE_C_PRINTER_M_F32], name, list);
  pestle_c_printer_alias(p, id, lane, 2);
}

static void ldmatrix(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char* at = value(p, n->arg[1]);
  const char* name =
      name_array(p, id, pestle_c_printer_type(p, PESTLE_C_PRINTER_U32));
  pestle_c_printer_line(p, "pestle_ldmatrix%s(%s, &%s[%s]);",
                        n->arg[2] ? "_trans" : "", name, p->name[n->arg[0]],
                        at);
}

static void copy_async(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const pestle_kir_buffer_t* u = pestle_kir_buffer(p->k, n->arg[0]);
  const pestle_kir_inst_t* from = c_printer_inst(p, n->arg[3]);
  unsigned bytes = n->lanes * pestle_dtype_size((pestle_dtype_t)u->dtype);
  const char *at = value(p, n->arg[3]), *reads = "true";
  // A choice that is below 0 where nothing is read says so itself.
  if (from->op != PESTLE_KIR_MADI && from->op != PESTLE_KIR_CONST) {
    at = pestle_c_printer_atom(p, pestle_c_printer_class(p, PESTLE_INDEX),
                               pestle_c_printer_get(p, n->arg[3], 0));
    reads = pestle_c_printer_format(p, "%s >= 0", at);
    at = pestle_c_printer_format(p, "%s < 0 ? 0 : %s", at, at);
  }
  pestle_c_printer_line(p, "pestle_copy_async<%u>(&%s[%s], &%s[%s], %s);",
                        bytes, p->name[n->arg[0]], value(p, n->arg[1]),
                        p->name[n->arg[2]], at, reads);
}

// Letters say what the bytes of a and of b are: u, s.
static void dot4(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  const char** lane = pestle_c_printer_lanes(p, n->lanes);
  for (unsigned l = 0; l < n->lanes; ++l) {
    const char* list = "";
    for (unsigned a = 0; a < 3; ++a) {
      const char* x = pestle_c_printer_get(p, n->arg[a], l);
      list = pestle_c_printer_format(p, "%s%s%s", list, a ? ", " : "",
                                     pestle_c_printer_bare(p, x));
    }
    lane[l] = pestle_c_printer_format(
        p, "pestle_dot4_%c%c(%s)",
        n->arg[3] & PESTLE_KIR_DOT4_A_SIGNED ? 's' : 'u',
        n->arg[3] & PESTLE_KIR_DOT4_B_SIGNED ? 's' : 'u', list);
  }
  pestle_c_printer_define_named(p, id, lane, n->lanes);
}

bool pestle_c_printer_unit(c_printer_t* p, uint32_t id) {
  const pestle_kir_inst_t* n = c_printer_inst(p, id);
  if (n->op == PESTLE_KIR_DOT4 || n->op == PESTLE_KIR_LOAD_WORDS) {
    if (!p->d->dot4) {
      pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                            "the device has no dot products of bytes");
    } else if (n->op == PESTLE_KIR_DOT4) {
      dot4(p, id);
    } else {
      pestle_c_printer_load_words(p, id);
    }
    return true;
  }
  if (n->op < PESTLE_KIR_MMA || n->op > PESTLE_KIR_COPY_WAIT) return false;
  bool small = n->op == PESTLE_KIR_MMA && n->arg[3] == PESTLE_KIR_MMA_F32_8X8;
  unsigned needs = small ? PESTLE_C_PRINTER_HAS_MMA8 : PESTLE_C_PRINTER_HAS_MMA;
  if (!(p->target->features & needs)) {
    pestle_c_printer_fail(p, PESTLE_STATUS_UNSUPPORTED,
                          "the device has no such units");
  } else if (small) {
    mma8(p, id);
  } else if (n->op == PESTLE_KIR_MMA) {
    mma(p, id);
  } else if (n->op == PESTLE_KIR_LDMATRIX) {
    ldmatrix(p, id);
  } else if (n->op == PESTLE_KIR_COPY_ASYNC) {
    copy_async(p, id);
  } else if (n->op == PESTLE_KIR_COPY_COMMIT) {
    pestle_c_printer_line(p, "pestle_copy_commit();");
  } else {
    pestle_c_printer_line(p, "pestle_copy_wait<%u>();", n->arg[0]);
  }
  return true;
}
