// SPDX-License-Identifier: Apache-2.0
// dnnl_worker FOLDER THREADS: oneDNN as one more program of compare.py; serve.h
// has the protocol. A case is one primitive, in the layouts that it likes best.
// Inputs are the case's where their layout is plain; all else is random, and
// then no chk is told. Threads come from OMP_NUM_THREADS.
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "serve.h"

using dnnl::algorithm;
using dnnl::memory;
using type_t = memory::data_type;

namespace {

const auto INFERENCE = dnnl::prop_kind::forward_inference;

enum { RANDOM = -1, OUTPUT = -2 };

struct operand_t {
  int argument;
  memory::desc desc;
  int input;  // an index, RANDOM or OUTPUT
};

struct convolution_t {
  const char* name;
  memory::dim channels, size, features, window, stride, groups;
};

const convolution_t CONVOLUTIONS[] = {
    {"conv3x3_64_56", 64, 56, 64, 3, 1, 1},
    {"conv3x3_256_14", 256, 14, 256, 3, 1, 1},
    {"convdw3x3_144_56", 144, 56, 144, 3, 1, 144},
    {"conv1x1_64_256_56", 64, 56, 256, 1, 1, 1},
    {"conv7x7s2_3_64_224", 3, 224, 64, 7, 2, 1},
};

struct worker_t {
  const char* folder;
  std::string name;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::primitive primitive;
  std::unordered_map<int, memory> arguments;
  memory output;
  bool own;  // all inputs are the case's
};

memory::desc plain(const memory::dims& dims, type_t type = type_t::f32) {
  memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size() - 1; i > 0; --i)
    strides[i - 1] = strides[i] * dims[i];
  return memory::desc(dims, type, strides);
}

memory::desc any(const memory::dims& dims, type_t type = type_t::f32) {
  return memory::desc(dims, type, memory::format_tag::any);
}

bool set(worker_t* w, const dnnl::primitive& primitive,
         const std::vector<operand_t>& operands) {
  w->primitive = primitive;
  w->arguments.clear();
  w->own = true;
  for (const operand_t& o : operands) {
    memory m(o.desc, w->engine);
    size_t size = o.desc.get_size();
    auto* data = static_cast<float*>(m.get_data_handle());
    if (o.input >= 0) {
      if (!serve_read(w->folder, w->name.c_str(), (size_t)o.input, data, size))
        return false;
    } else if (o.desc.get_data_type() == type_t::f32) {
      for (size_t i = 0; i < size / sizeof(float); ++i)
        data[i] = (float)rand() / 1e9f - 1;
    } else {
      memset(data, 0x3c, size);  // small as bytes and as bf16
    }
    w->own = w->own && o.input != RANDOM;
    if (o.input == OUTPUT) w->output = m;
    w->arguments.insert({o.argument, m});
  }
  return true;
}

bool product(worker_t* w, const memory::desc& a, const memory::desc& b,
             const memory::desc& c, bool gelu = false) {
  dnnl::primitive_attr attr;
  dnnl::post_ops ops;
  memory::desc bias = gelu ? plain({1, c.get_dims()[1]}) : memory::desc();
  if (gelu) ops.append_eltwise(algorithm::eltwise_gelu_erf, 0, 0);
  attr.set_post_ops(ops);
  dnnl::matmul::primitive_desc pd(w->engine, a, b, bias, c, attr);
  bool own = b == plain(b.get_dims(), b.get_data_type());
  std::vector<operand_t> operands = {
      {DNNL_ARG_SRC, a, 0},
      {DNNL_ARG_WEIGHTS, pd.weights_desc(), own ? 1 : RANDOM},
      {DNNL_ARG_DST, c, OUTPUT}};
  if (gelu) operands.push_back({DNNL_ARG_BIAS, bias, RANDOM});
  return set(w, dnnl::matmul(pd), operands);
}

bool convolution(worker_t* w, const convolution_t& c) {
  memory::dim pad = c.window / 2, to = (c.size - 1) / c.stride + 1;
  memory::dims filters = {c.features / c.groups, c.channels / c.groups,
                          c.window, c.window};
  if (c.groups > 1) filters.insert(filters.begin(), c.groups);
  dnnl::convolution_forward::primitive_desc pd(
      w->engine, INFERENCE, algorithm::convolution_direct,
      any({1, c.channels, c.size, c.size}), any(filters), plain({c.features}),
      any({1, c.features, to, to}), {c.stride, c.stride}, {pad, pad},
      {pad, pad});
  return set(w, dnnl::convolution_forward(pd),
             {{DNNL_ARG_SRC, pd.src_desc(), RANDOM},
              {DNNL_ARG_WEIGHTS, pd.weights_desc(), RANDOM},
              {DNNL_ARG_BIAS, pd.bias_desc(), RANDOM},
              {DNNL_ARG_DST, pd.dst_desc(), OUTPUT}});
}

// A primitive of |x| to |y|; |parameters| are what its description takes.
template <typename primitive_t, typename... parameters_t>
bool unary(worker_t* w, const memory::desc& x, const memory::desc& y,
           parameters_t... parameters) {
  typename primitive_t::primitive_desc pd(w->engine, parameters...);
  std::vector<operand_t> operands = {{DNNL_ARG_SRC, x, 0},
                                     {DNNL_ARG_DST, y, OUTPUT}};
  if (std::is_same<primitive_t, dnnl::layer_normalization_forward>::value) {
    for (int scale : {DNNL_ARG_SCALE, DNNL_ARG_SHIFT})
      operands.push_back({scale, plain({x.get_dims()[1]}), RANDOM});
  }
  return set(w, primitive_t(pd), operands);
}

bool build(worker_t* w) {
  memory::dim m, n, k;
  const memory::desc rows = plain({4096, 1024}), square = plain({4096, 4096});
  const memory::desc few = plain({16});
  auto is_product = [&](const std::string& kind) {
    return sscanf(w->name.c_str(), (kind + "_%ld_%ld_%ld").c_str(), &m, &n,
                  &k) == 3;
  };
  for (const convolution_t& c : CONVOLUTIONS) {
    if (w->name == c.name) return convolution(w, c);
  }
  if (is_product("gemm"))
    return product(w, plain({m, k}), plain({k, n}), plain({m, n}));
  if (is_product("gemmw"))
    return product(w, plain({m, k}), any({k, n}), plain({m, n}));
  if (is_product("gemm_bias_gelu"))
    return product(w, plain({m, k}), any({k, n}), plain({m, n}), true);
  if (is_product("gemmbf16")) {
    return product(w, plain({m, k}, type_t::bf16), any({k, n}, type_t::bf16),
                   plain({m, n}, type_t::bf16));
  }
  if (is_product("gemms8")) {
    return product(w, plain({m, k}, type_t::u8), any({k, n}, type_t::s8),
                   plain({m, n}, type_t::s32));
  }
  if (w->name == "softmax_4096_1024") {
    return unary<dnnl::softmax_forward>(
        w, rows, rows, INFERENCE, algorithm::softmax_accurate, rows, rows, 1);
  }
  if (w->name == "layernorm_4096_1024") {
    return unary<dnnl::layer_normalization_forward>(
        w, rows, rows, INFERENCE, rows, rows, 1e-5f,
        dnnl::normalization_flags::use_scale |
            dnnl::normalization_flags::use_shift);
  }
  for (int kept = 0; kept < 3; ++kept) {
    const char* names[] = {"sum_all_4096", "sum_ax1_4096", "sum_ax0_4096"};
    memory::desc to = plain({kept == 1 ? 4096 : 1, kept == 2 ? 4096 : 1});
    if (w->name == names[kept]) {
      return unary<dnnl::reduction>(w, square, to, algorithm::reduction_sum,
                                    square, to, 0.f, 0.f);
    }
  }
  if (w->name == "transpose_4096") {
    memory::desc to({4096, 4096}, type_t::f32, memory::dims{1, 4096});
    return unary<dnnl::reorder>(w, square, to, square, w->engine, to);
  }
  if (w->name == "trivial_16") {
    return unary<dnnl::eltwise_forward>(
        w, few, few, INFERENCE, algorithm::eltwise_linear, few, few, 1.f, 1.f);
  }
  return serve_error("not for this peer");
}

bool run(void* state) {
  auto* w = static_cast<worker_t*>(state);
  w->primitive.execute(w->stream, w->arguments);
  w->stream.wait();
  return true;
}

bool prepare(void* state, const char* name) try {
  auto* w = static_cast<worker_t*>(state);
  double start = serve_now();
  w->name = name;
  if (!build(w)) return false;
  double built = serve_now() - start;
  run(w);
  memory::desc to = w->output.get_desc();
  bool plain_f32 = w->own && to.get_data_type() == type_t::f32;
  serve_ready(serve_now() - start, built, w->output.get_data_handle(),
              plain_f32 ? to.get_size() / sizeof(float) : 0, false);
  return true;
} catch (const dnnl::error& error) {
  return serve_error("oneDNN: %s", error.what());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: dnnl_worker FOLDER THREADS\n");
    return 2;
  }
  worker_t w;
  w.folder = argv[1];
  serve(prepare, run, &w);
  return 0;
}
