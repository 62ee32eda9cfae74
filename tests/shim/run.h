// SPDX-License-Identifier: Apache-2.0
// After a kernel's text: a function that calls it with an array of buffers.
#pragma once

struct pestle_any_t {
  void* data;
  template <class T>
  operator T*() const {
    return (T*)data;
  }
};

struct pestle_block_t {
  const void* data;
  template <class T>
  operator const T&() const {
    return *(const T*)data;
  }
};

struct pestle_call_t {
  void* const* buffers;
  const int64_t* params;
};

extern "C" __attribute__((visibility("default"))) void pestle_shim_init(
    const simt_t* functions) {
  simt = functions;
}
