// SPDX-License-Identifier: Apache-2.0
// Everything an application needs. Plugins include pestle/plugin.h instead.
//
// include/pestle/ is all that applications, bindings and plugins see.
// include/pestle/ knows nothing of what is behind it: each header stands alone
// in C11 and C++17.
//
// What holds for every function of these headers, unless it says otherwise:
//
// - A function that can fail returns a pestle_status_t: NULL, or a status that
//   the caller releases. The out_ parameter of what it makes is set to NULL
//   first, so it holds nothing after a failure.
// - NULL where something is needed is INVALID_ARGUMENT; a function without a
//   status then does nothing and returns 0, NULL, "" or false. Parameters that
//   may be NULL say so. OUT_OF_MEMORY can come from whatever makes something
//   and is not repeated.
// - What *_create(), *_load(), *_import*(), *_parse(), *_specialize() and
//   pestle_compile() return has one reference, which the caller ends with the
//   type's *_release(); *_retain() adds one. Retain and release are
//   thread-safe; releasing NULL does nothing. A thing keeps alive what it was
//   made from: a buffer its device's context, an executable its plan.
// - Everything else that is returned is borrowed: it lives as long as the thing
//   that was asked, and is not freed. Exceptions name their free.
// - What is passed in is borrowed during the call: it is copied when it is
//   needed longer.
// - Sizes and offsets are in bytes, extents and strides in elements, times in
//   nanoseconds. Shapes are outermost first.
// - Functions are thread-safe, and several threads may use one context, device,
//   plan or executable at once. Modules that are being built, buffers, streams
//   and events need outside order. Structs that begin with struct_size are
//   zero-initialised and have it set to their size; a shorter one, of an older
//   header, is read as far as it goes.
//
// Contents, a header each:
// - status.h, allocator.h, context.h: failures, memory, and what all else is made from
// - types.h, tensor.h, dlpack.h: element types, views of memory, tensors of others
// - import.h, model_info.h: models from files, and what a file says of itself
// - strings.h: strings as the numbers that graphs have of them
// - graph.h, op.h: graphs built, read and written; the tables of ops
// - helpers.h: types, attributes, tensors and layers in one line each
// - transform.h: derivatives and batches of graphs
// - compile.h: from a graph to a plan
// - runtime.h, plan_set.h: devices, buffers, streams; plans loaded and run
// - session.h: a model in any shape, from any thread, by names
// - decode.h: language models token by token
// - array.h, numeric.h: arrays that are computed when they are needed
// - custom_op.h, custom_call.h: ops and calls of one's own
// - world.h, collective.h: several processes
// - python.h: for extensions of the Python package; not included here
// - plugin.h, kir.h, plan_format.h: for backends and tools; not included here
#ifndef PESTLE_PESTLE_H_
#define PESTLE_PESTLE_H_

#include "pestle/allocator.h"
#include "pestle/array.h"
#include "pestle/compile.h"
#include "pestle/context.h"
#include "pestle/custom_call.h"
#include "pestle/custom_op.h"
#include "pestle/decode.h"
#include "pestle/dlpack.h"
#include "pestle/graph.h"
#include "pestle/helpers.h"
#include "pestle/import.h"
#include "pestle/model_info.h"
#include "pestle/numeric.h"
#include "pestle/partition.h"
#include "pestle/plan_set.h"
#include "pestle/runtime.h"
#include "pestle/session.h"
#include "pestle/status.h"
#include "pestle/strings.h"
#include "pestle/tensor.h"
#include "pestle/transform.h"
#include "pestle/types.h"
#include "pestle/world.h"

#endif  // PESTLE_PESTLE_H_
