// SPDX-License-Identifier: Apache-2.0
// Functions: what jit() gives. A call flattens its arguments and compares their
// structure, types and static values with those of earlier calls; where none is
// equal it calls the Python function once, with traced arrays.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir.h"
#include "tree.h"

#include <structmember.h>

enum { MOST_ENTRIES = 64 };

// Of a leaf: its dtype, whether it is a number, its rank and extents.
typedef struct guard_t {
  pestle_type_t type;
  uint8_t weak;
} guard_t;

typedef struct entry_t {
  uintptr_t* words;
  size_t word_count;
  guard_t* guards;
  size_t leaf_count;
  PyObject* statics;  // a tuple, or NULL
  pestle_device_t* device;
  pestle_jit_t* jit;
  PyObject* module;
  uintptr_t* out_words;
  size_t out_word_count, out_count;
  int64_t run_ns;  // of the fastest of the first calls
  uint32_t calls;
  // The cache's, and one for each call that runs: a run may let another thread have
  // the interpreter, which forgets the entry.
  uint32_t users;
} entry_t;

// PyVectorcall_* are in the limited API from 3.12 on, the protocol itself is older: a
// member __vectorcalloffset__, this bit of the type's flags, and this signature.
#define HAVE_VECTORCALL (1ul << 11)
#define NARGS(nargsf) \
  ((Py_ssize_t)((nargsf) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))
typedef PyObject* (*vectorcall_t)(PyObject* self, PyObject* const* args,
                                  size_t nargsf, PyObject* names);

// The arguments of a call: |count| by position, then those of |names|, a tuple or
// NULL.
typedef struct given_t {
  PyObject* const* args;
  Py_ssize_t count;
  PyObject* names;
} given_t;

typedef struct jit_t {
  PyObject_HEAD vectorcall_t vectorcall;
  PyObject* function;
  PyObject* statics;       // positions, a tuple of int
  PyObject* static_names;  // a frozenset or NULL
  PyObject* dict;
  int numerics;
  entry_t* entries[MOST_ENTRIES];  // the latest first
  size_t entry_count;
  uint64_t traces;
} jit_t;

// --- Entries ---

static void drop_entry(entry_t* entry) {
  if (!entry || --entry->users) return;
  pestle_tree_free_words(entry->words, entry->word_count);
  pestle_tree_free_words(entry->out_words, entry->out_word_count);
  free(entry->guards);
  Py_XDECREF(entry->statics);
  Py_XDECREF(entry->module);
  pestle_jit_release(entry->jit);
  free(entry);
}

static void keep_entry(jit_t* self, entry_t* entry) {
  if (self->entry_count == MOST_ENTRIES) {
    drop_entry(self->entries[--self->entry_count]);
  }
  memmove(self->entries + 1, self->entries,
          self->entry_count * sizeof(*self->entries));
  self->entries[0] = entry;
  ++self->entry_count;
}

// --- Calls ---

// What a call was given: the leaves of its dynamic arguments as arrays.
typedef struct call_t {
  pestle_tree_t tree;
  pestle_array_t** arrays;  // with a reference each
  guard_t* guards;
  size_t count;
  PyObject* statics;  // a tuple, or NULL
  pestle_device_t* device;
  bool is_traced;
  bool is_late;  // an argument is to be computed or waited for
  pestle_array_t* few_arrays[24];
  guard_t few_guards[24];
} call_t;

static void end_call(call_t* call) {
  for (size_t i = 0; i < call->count; ++i)
    pestle_array_release(call->arrays[i]);
  if (call->arrays != call->few_arrays) free(call->arrays);
  if (call->guards != call->few_guards) free(call->guards);
  Py_XDECREF(call->statics);
  pestle_tree_deinit(&call->tree);
}

static bool read_leaf(call_t* call, PyObject* leaf) {
  guard_t* guard = &call->guards[call->count];
  guard->weak = 0;
  if (pestle_py_is_array(leaf)) {
    pestle_array_t* array = pestle_py_array(leaf);
    pestle_array_retain(array);
    call->arrays[call->count] = array;
    guard->weak = ((pestle_py_array_t*)leaf)->weak;
    pestle_array_state_t state = pestle_array_state(array);
    call->is_traced |= state == PESTLE_ARRAY_TRACED;
    call->is_late |= state != PESTLE_ARRAY_DATA;
  } else {
    unsigned kind = pestle_py_number_kind(leaf);
    bool is_data = kind || PyObject_CheckBuffer(leaf) ||
                   PyObject_HasAttrString(leaf, "__dlpack__");
    if (!is_data || PyBytes_Check(leaf)) {
      PyErr_Format(PyExc_TypeError,
                   "argument %R is neither an array nor a number: name it in "
                   "static_argnums or static_argnames",
                   leaf);
      return false;
    }
    PyObject* made = pestle_py_asarray(leaf, PESTLE_NONE, NULL, -1);
    if (!made) return false;
    call->arrays[call->count] = pestle_py_array(made);
    pestle_array_retain(pestle_py_array(made));
    guard->weak = (uint8_t)kind;
    Py_DECREF(made);
  }
  const pestle_type_t* type = pestle_array_type_of(call->arrays[call->count]);
  guard->type.dtype = type->dtype;
  guard->type.rank = type->rank;
  memcpy(guard->type.dims, type->dims, (size_t)type->rank * sizeof(int64_t));
  if (!call->device && !guard->weak) {
    call->device = pestle_array_device(call->arrays[call->count]);
  }
  ++call->count;
  return true;
}

static bool read_leaves(call_t* call) {
  size_t count = call->tree.leaf_count;
  if (count > sizeof(call->few_arrays) / sizeof(*call->few_arrays)) {
    call->arrays = malloc(count * sizeof(*call->arrays));
    call->guards = malloc(count * sizeof(*call->guards));
    if (!call->arrays || !call->guards) return PyErr_NoMemory() != NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!read_leaf(call, call->tree.leaves[i])) return false;
  }
  return call->device || pestle_py_as_device(NULL, &call->device);
}

static bool is_static(const jit_t* self, Py_ssize_t position,
                      Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(self->statics); ++i) {
    Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(self->statics, i));
    if (at == position || at + count == position) return true;
  }
  return false;
}

// Splits what is given by name.
static bool read_names(const jit_t* self, call_t* call, const given_t* given,
                       PyObject* statics) {
  PyObject* dynamic = PyDict_New();
  bool fine = dynamic != NULL;
  for (Py_ssize_t i = 0; fine && i < PyTuple_Size(given->names); ++i) {
    PyObject* key = PyTuple_GetItem(given->names, i);
    PyObject* value = given->args[given->count + i];
    bool fixed =
        self->static_names && PySequence_Contains(self->static_names, key) > 0;
    fine = fixed ? PyList_Append(statics, key) == 0 &&
                       PyList_Append(statics, value) == 0
                 : PyDict_SetItem(dynamic, key, value) == 0;
  }
  fine = fine && pestle_tree_flatten(&call->tree, dynamic);
  Py_XDECREF(dynamic);
  return fine;
}

static bool has_names(const given_t* given) {
  return given->names && PyTuple_Size(given->names);
}

// Splits arguments into static values, in |call|, and dynamic ones, flattened.
static bool read_arguments(const jit_t* self, call_t* call,
                           const given_t* given) {
  bool all_dynamic = !self->static_names && !PyTuple_Size(self->statics);
  PyObject* list = all_dynamic ? NULL : PyList_New(0);
  bool fine = all_dynamic || list;
  for (Py_ssize_t i = 0; fine && i < given->count; ++i) {
    fine = list && is_static(self, i, given->count)
               ? PyList_Append(list, given->args[i]) == 0
               : pestle_tree_flatten(&call->tree, given->args[i]);
  }
  if (fine && has_names(given)) fine = read_names(self, call, given, list);
  if (list && fine) {
    call->statics = PyList_AsTuple(list);
    fine = call->statics && PyObject_Hash(call->statics) != -1;
  }
  Py_XDECREF(list);
  return fine && read_leaves(call);
}

static bool same_guards(const call_t* call, const entry_t* entry) {
  for (size_t i = 0; i < call->count; ++i) {
    const guard_t *a = &call->guards[i], *b = &entry->guards[i];
    if (a->type.dtype != b->type.dtype || a->type.rank != b->type.rank ||
        a->weak != b->weak) {
      return false;
    }
    for (int32_t d = 0; d < a->type.rank; ++d) {
      if (a->type.dims[d] != b->type.dims[d]) return false;
    }
  }
  return true;
}

// 1: |entry| is of this call's kind; -1: an exception.
static int fits(const call_t* call, const entry_t* entry) {
  if (call->count != entry->leaf_count || call->device != entry->device ||
      !same_guards(call, entry)) {
    return 0;
  }
  int same = pestle_tree_same(call->tree.words, call->tree.word_count,
                              entry->words, entry->word_count);
  if (same <= 0 || !call->statics) return same;
  return PyObject_RichCompareBool(call->statics, entry->statics, Py_EQ);
}

static entry_t* find(jit_t* self, const call_t* call, bool* out_failed) {
  for (size_t i = 0; i < self->entry_count; ++i) {
    int found = fits(call, self->entries[i]);
    if (found < 0) *out_failed = true;
    if (found < 0) return NULL;
    if (!found) continue;
    entry_t* entry = self->entries[i];
    memmove(self->entries + 1, self->entries, i * sizeof(*self->entries));
    self->entries[0] = entry;
    return entry;
  }
  return NULL;
}

// --- Tracing ---

// The arguments of a call with |leaves| in the places of its dynamic ones.
typedef struct trace_t {
  const jit_t* jit;
  const call_t* call;
  const given_t* given;
  pestle_tree_t out;
} trace_t;

// What is given as a tuple and a dict.
static bool to_objects(const given_t* given, PyObject** out_args,
                       PyObject** out_kwargs) {
  *out_args = PyTuple_New(given->count);
  *out_kwargs = has_names(given) ? PyDict_New() : NULL;
  bool fine = *out_args && (*out_kwargs || !has_names(given));
  for (Py_ssize_t i = 0; fine && i < given->count; ++i)
    fine = PyTuple_SetItem(*out_args, i, Py_NewRef(given->args[i])) == 0;
  for (Py_ssize_t i = 0; fine && *out_kwargs && i < PyTuple_Size(given->names);
       ++i) {
    fine = PyDict_SetItem(*out_kwargs, PyTuple_GetItem(given->names, i),
                          given->args[given->count + i]) == 0;
  }
  return fine;
}

static bool rebuild(const trace_t* trace, PyObject* leaves, PyObject** out_args,
                    PyObject** out_kwargs) {
  const given_t* given = trace->given;
  PyObject** items = malloc((trace->call->count + 1) * sizeof(*items));
  if (!items) return PyErr_NoMemory() != NULL;
  for (size_t i = 0; i < trace->call->count; ++i)
    items[i] = PyTuple_GetItem(leaves, (Py_ssize_t)i);
  const uintptr_t* words = trace->call->tree.words;
  PyObject* const* at = items;
  bool fine = to_objects(given, out_args, out_kwargs);
  for (Py_ssize_t i = 0; fine && i < given->count; ++i) {
    if (trace->call->statics && is_static(trace->jit, i, given->count)) {
      continue;
    }
    PyObject* item = pestle_tree_unflatten_next(&words, &at);
    fine = item && PyTuple_SetItem(*out_args, i, item) == 0;
  }
  if (fine && *out_kwargs) {
    PyObject* dynamic = pestle_tree_unflatten_next(&words, &at);
    fine = dynamic && PyDict_Update(*out_kwargs, dynamic) == 0;
    Py_XDECREF(dynamic);
  }
  free(items);
  return fine;
}

// A leaf of a result as an array.
static PyObject* to_array(PyObject* leaf) {
  if (pestle_py_is_array(leaf)) return Py_NewRef(leaf);
  if (!pestle_py_number_kind(leaf) && !PyObject_CheckBuffer(leaf)) {
    PyErr_Format(PyExc_TypeError,
                 "the function returns %R: results are arrays, numbers and "
                 "trees of them",
                 leaf);
    return NULL;
  }
  return pestle_py_asarray(leaf, PESTLE_NONE, NULL, -1);
}

static PyObject* run_trace(PyObject* capsule, PyObject* leaves) {
  trace_t* trace = PyCapsule_GetPointer(capsule, "pestle.trace");
  PyObject *args = NULL, *kwargs = NULL, *result = NULL, *list = NULL;
  if (trace && rebuild(trace, leaves, &args, &kwargs)) {
    result = PyObject_Call(trace->jit->function, args, kwargs);
  }
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  if (result && pestle_tree_flatten(&trace->out, result)) {
    list = PyTuple_New((Py_ssize_t)trace->out.leaf_count);
  }
  Py_XDECREF(result);
  for (size_t i = 0; list && i < trace->out.leaf_count; ++i) {
    PyObject* array = to_array(trace->out.leaves[i]);
    if (!array || PyTuple_SetItem(list, (Py_ssize_t)i, array) < 0) {
      Py_CLEAR(list);
    }
  }
  return list;
}
static PyMethodDef trace_method = {"trace", run_trace, METH_O, NULL};

static bool fill_entry(entry_t* entry, const call_t* call) {
  entry->words =
      pestle_tree_copy_words(call->tree.words, call->tree.word_count);
  entry->word_count = entry->words ? call->tree.word_count : 0;
  entry->guards = malloc((call->count + 1) * sizeof(*entry->guards));
  if (!entry->words || !entry->guards) return false;
  memcpy(entry->guards, call->guards, call->count * sizeof(*entry->guards));
  entry->leaf_count = call->count;
  entry->statics = Py_XNewRef(call->statics);
  entry->device = call->device;
  entry->run_ns = INT64_MAX;
  return true;
}

static bool capture(const jit_t* self, const call_t* call, entry_t* entry,
                    trace_t* trace) {
  PyObject* capsule = PyCapsule_New(trace, "pestle.trace", NULL);
  PyObject* function = capsule ? PyCFunction_New(&trace_method, capsule) : NULL;
  pestle_type_t* types = malloc((call->count + 1) * sizeof(*types));
  uint8_t* weak = malloc(call->count + 1);
  PyObject* results = NULL;
  pestle_module_t* module = NULL;
  pestle_capture_t* captured = NULL;
  bool fine = function && types && weak;
  for (size_t i = 0; fine && i < call->count; ++i) {
    types[i] = call->guards[i].type;
    weak[i] = call->guards[i].weak;
  }
  fine = fine && pestle_py_capture(call->device, types, weak, call->count,
                                   function, &results, &module, &captured);
  if (fine) {
    pestle_compile_options_t options = {
        .struct_size = sizeof(options),
        .numerics = (pestle_numerics_t)self->numerics};
    fine = pestle_py_ok(pestle_jit_create(call->device, module, captured,
                                          &options, &entry->jit));
    entry->module = pestle_py_module(module);
    entry->out_words =
        pestle_tree_copy_words(trace->out.words, trace->out.word_count);
    entry->out_word_count = entry->out_words ? trace->out.word_count : 0;
    entry->out_count = trace->out.leaf_count;
    fine = fine && entry->module && entry->out_words;
  }
  pestle_capture_release(captured);
  Py_XDECREF(results);
  Py_XDECREF(function);
  Py_XDECREF(capsule);
  free(types);
  free(weak);
  return fine;
}

static entry_t* make_entry(jit_t* self, const call_t* call,
                           const given_t* given) {
  trace_t trace = {.jit = self, .call = call, .given = given};
  entry_t* entry = calloc(1, sizeof(*entry));
  if (!entry) {
    PyErr_NoMemory();
    return NULL;
  }
  entry->users = 1;
  pestle_tree_init(&trace.out);
  ++self->traces;
  bool fine = fill_entry(entry, call) && capture(self, call, entry, &trace);
  pestle_tree_deinit(&trace.out);
  if (fine) return entry;
  drop_entry(entry);
  return NULL;
}

// --- Running ---

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// The first calls compile and are timed; those of a long run let others have the
// interpreter.
static pestle_status_t run(entry_t* entry, const call_t* call,
                           pestle_array_t** out) {
  enum { TIMED = 4 };
  if (entry->calls >= TIMED && entry->run_ns < PESTLE_PY_LONG_NS &&
      !call->is_late) {
    return pestle_jit_call(entry->jit, call->arrays, call->count, NULL, out,
                           entry->out_count);
  }
  pestle_status_t status;
  int64_t begin = now_ns(), end;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_jit_call(entry->jit, call->arrays, call->count, NULL, out,
                           entry->out_count);
  end = now_ns();
  Py_END_ALLOW_THREADS;
  if (end - begin < entry->run_ns) entry->run_ns = end - begin;
  ++entry->calls;
  return status;
}

static PyObject* call_entry(entry_t* entry, const call_t* call) {
  enum { FEW = 24 };
  pestle_array_t* few[FEW];
  PyObject* few_objects[FEW];
  size_t count = entry->out_count;
  bool is_small = count <= FEW;
  pestle_array_t** out = is_small ? few : malloc(count * sizeof(*out));
  PyObject** objects =
      is_small ? few_objects : malloc(count * sizeof(*objects));
  PyObject* result = NULL;
  size_t made = 0;
  ++entry->users;
  if (!out || !objects) {
    PyErr_NoMemory();
  } else if (pestle_py_ok(run(entry, call, out))) {
    for (bool fine = true; made < count; ++made) {
      objects[made] = fine ? pestle_py_wrap(out[made]) : NULL;
      if (!fine) pestle_array_release(out[made]);
      fine = objects[made] != NULL;
    }
    bool is_leaf = entry->out_word_count == 1 && count == 1;
    if (is_leaf) {
      result = Py_XNewRef(objects[0]);
    } else if (!PyErr_Occurred()) {
      result = pestle_tree_unflatten(entry->out_words, objects);
    }
  }
  for (size_t i = 0; i < made; ++i)
    Py_XDECREF(objects[i]);
  if (!is_small) {
    free(out);
    free(objects);
  }
  drop_entry(entry);
  return result;
}

static void begin_call(call_t* call) {
  pestle_tree_init(&call->tree);
  call->arrays = call->few_arrays;
  call->guards = call->few_guards;
  call->count = 0;
  call->statics = NULL;
  call->device = NULL;
  call->is_traced = call->is_late = false;
}

// The entry of a call, made where there is none; NULL and an exception.
static entry_t* entry_of(jit_t* self, const call_t* call,
                         const given_t* given) {
  bool failed = false;
  entry_t* entry = find(self, call, &failed);
  if (entry || failed) return entry;
  entry = make_entry(self, call, given);
  if (entry) keep_entry(self, entry);
  return entry;
}

// A function of a function that is traced is a part of it.
static PyObject* call_inline(const jit_t* self, const given_t* given) {
  PyObject *args, *kwargs, *result = NULL;
  if (to_objects(given, &args, &kwargs)) {
    result = PyObject_Call(self->function, args, kwargs);
  }
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

static PyObject* jit_vectorcall(PyObject* object, PyObject* const* args,
                                size_t nargsf, PyObject* names) {
  jit_t* self = (jit_t*)object;
  given_t given = {args, NARGS(nargsf), names};
  call_t call;
  PyObject* result = NULL;
  begin_call(&call);
  if (read_arguments(self, &call, &given)) {
    if (call.is_traced) {
      result = call_inline(self, &given);
    } else {
      entry_t* entry = entry_of(self, &call, &given);
      if (entry) result = call_entry(entry, &call);
    }
  }
  end_call(&call);
  return result;
}

// |args| and |kwargs| as one list of arguments and a tuple of names.
static PyObject** from_objects(PyObject* args, PyObject* kwargs,
                               given_t* given) {
  Py_ssize_t count = PyTuple_Size(args), at = 0, i = count;
  Py_ssize_t named = kwargs ? PyDict_Size(kwargs) : 0;
  PyObject** list = malloc((size_t)(count + named + 1) * sizeof(*list));
  *given = (given_t){list, count, named ? PyTuple_New(named) : NULL};
  if (!list || (named && !given->names)) {
    free(list);
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t k = 0; k < count; ++k)
    list[k] = PyTuple_GetItem(args, k);
  PyObject *key, *value;
  while (named && PyDict_Next(kwargs, &at, &key, &value)) {
    PyTuple_SetItem(given->names, i - count, Py_NewRef(key));
    list[i++] = value;
  }
  return list;
}

static PyObject* jit_call(PyObject* object, PyObject* args, PyObject* kwargs) {
  given_t given;
  PyObject** list = from_objects(args, kwargs, &given);
  if (!list) return NULL;
  PyObject* result =
      jit_vectorcall(object, list, (size_t)given.count, given.names);
  Py_XDECREF(given.names);
  free(list);
  return result;
}

// --- Looking ---

// trace(*args, **kwargs) -> (module, device)
static PyObject* jit_trace(PyObject* object, PyObject* args, PyObject* kwargs) {
  jit_t* self = (jit_t*)object;
  given_t given;
  call_t call;
  PyObject* result = NULL;
  PyObject** list = from_objects(args, kwargs, &given);
  if (!list) return NULL;
  begin_call(&call);
  if (read_arguments(self, &call, &given)) {
    entry_t* entry = entry_of(self, &call, &given);
    if (entry) {
      result =
          Py_BuildValue("(ON)", entry->module, pestle_py_device(entry->device));
    }
  }
  end_call(&call);
  Py_XDECREF(given.names);
  free(list);
  return result;
}

// How |entry|'s guards differ from |other|'s, in words.
static PyObject* difference(const entry_t* entry, const entry_t* other) {
  if (entry->device != other->device) {
    return PyUnicode_FromFormat("the arguments are on %s, were on %s",
                                pestle_device_name(entry->device),
                                pestle_device_name(other->device));
  }
  if (entry->leaf_count != other->leaf_count ||
      pestle_tree_same(entry->words, entry->word_count, other->words,
                       other->word_count) != 1) {
    PyErr_Clear();
    return PyUnicode_FromString("the arguments stand together in another way");
  }
  for (size_t i = 0; i < entry->leaf_count; ++i) {
    const guard_t *a = &entry->guards[i], *b = &other->guards[i];
    if (a->type.dtype != b->type.dtype) {
      return PyUnicode_FromFormat("leaf %zu is of %s, was of %s", i,
                                  pestle_py_dtype_name(a->type.dtype),
                                  pestle_py_dtype_name(b->type.dtype));
    }
    if (a->type.rank != b->type.rank) {
      return PyUnicode_FromFormat("leaf %zu has rank %d, had %d", i,
                                  (int)a->type.rank, (int)b->type.rank);
    }
    for (int32_t d = 0; d < a->type.rank; ++d) {
      if (a->type.dims[d] == b->type.dims[d]) continue;
      return PyUnicode_FromFormat("axis %d of leaf %zu is %lld, was %lld",
                                  (int)d, i, (long long)a->type.dims[d],
                                  (long long)b->type.dims[d]);
    }
    if (a->weak != b->weak) {
      return PyUnicode_FromFormat("leaf %zu is %s, was not", i,
                                  a->weak ? "a number" : "an array");
    }
  }
  return PyUnicode_FromFormat("static arguments are %R, were %R",
                              entry->statics, other->statics);
}

static PyObject* explain(PyObject* object, PyObject* unused) {
  (void)unused;
  jit_t* self = (jit_t*)object;
  PyObject* list = PyList_New(0);
  for (size_t i = self->entry_count; list && i-- > 1;) {
    PyObject* text = difference(self->entries[i - 1], self->entries[i]);
    if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

static PyObject* clear_cache(PyObject* object, PyObject* unused) {
  (void)unused;
  jit_t* self = (jit_t*)object;
  while (self->entry_count)
    drop_entry(self->entries[--self->entry_count]);
  Py_RETURN_NONE;
}

static PyObject* get_traces(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((jit_t*)self)->traces);
}
static PyObject* get_wrapped(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef(((jit_t*)self)->function);
}
static PyObject* get_dict(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef(((jit_t*)self)->dict);
}
static PyObject* jit_getattr(PyObject* self, PyObject* name) {
  PyObject* value = PyObject_GenericGetAttr(self, name);
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return PyObject_GetAttr(((jit_t*)self)->function, name);
}

// As a method, bound.
static PyObject* jit_get(PyObject* self, PyObject* object, PyObject* type) {
  (void)type;
  if (!object || object == Py_None) return Py_NewRef(self);
  return pestle_py_hook("bind", (PyObject*[]){self, object}, 2);
}

static PyObject* jit_repr(PyObject* self) {
  return PyUnicode_FromFormat("<pestle.jit of %R>", ((jit_t*)self)->function);
}

static int traverse(PyObject* self, visitproc visit, void* arg) {
  jit_t* jit = (jit_t*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(jit->function);
  Py_VISIT(jit->dict);
  return 0;
}

static int clear(PyObject* self) {
  jit_t* jit = (jit_t*)self;
  Py_CLEAR(jit->function);
  Py_CLEAR(jit->dict);
  return 0;
}

static void jit_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  jit_t* self = (jit_t*)object;
  PyObject_GC_UnTrack(object);
  while (self->entry_count)
    drop_entry(self->entries[--self->entry_count]);
  clear(object);
  Py_XDECREF(self->statics);
  Py_XDECREF(self->static_names);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

// Jit(function, statics, static_names, numerics)
static PyObject* jit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)kwargs;
  PyObject *function, *statics, *names;
  int numerics;
  if (!PyArg_ParseTuple(args, "OO!Oi:Jit", &function, &PyTuple_Type, &statics,
                        &names, &numerics)) {
    return NULL;
  }
  jit_t* self = (jit_t*)PyType_GenericAlloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = jit_vectorcall;
  self->function = Py_NewRef(function);
  self->statics = Py_NewRef(statics);
  self->static_names = names == Py_None ? NULL : Py_NewRef(names);
  self->numerics = numerics;
  self->dict = PyDict_New();
  return (PyObject*)self;
}

static PyMethodDef methods[] = {
    {"trace", (PyCFunction)(void (*)(void))jit_trace,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"explain_misses", explain, METH_NOARGS,
     "explain_misses()\n--\n\nWhy the function was traced anew, a sentence "
     "each "
     "time: what differed from the\ntrace before."},
    {"clear_cache", clear_cache, METH_NOARGS,
     "clear_cache()\n--\n\nForgets all traces."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef fields[] = {
    {"traces", get_traces, NULL, "How often the function was traced.", NULL},
    {"__wrapped__", get_wrapped, NULL, "The Python function.", NULL},
    {"__dict__", get_dict, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(jit_t, vectorcall), READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc, "A Python function whose calls are one run each."},
    {Py_tp_members, members},
    {Py_tp_new, PESTLE_PY_SLOT(jit_new)},
    {Py_tp_dealloc, PESTLE_PY_SLOT(jit_dealloc)},
    {Py_tp_traverse, PESTLE_PY_SLOT(traverse)},
    {Py_tp_clear, PESTLE_PY_SLOT(clear)},
    {Py_tp_call, PESTLE_PY_SLOT(jit_call)},
    {Py_tp_repr, PESTLE_PY_SLOT(jit_repr)},
    {Py_tp_getattro, PESTLE_PY_SLOT(jit_getattr)},
    {Py_tp_descr_get, PESTLE_PY_SLOT(jit_get)},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};
static PyType_Spec spec = {
    "pestle.Jit", sizeof(jit_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAVE_VECTORCALL, slots};

bool pestle_py_add_jit(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return false;
  pestle_py.jit_type = (PyTypeObject*)type;
  return PyModule_AddObjectRef(module, "Jit", type) == 0;
}
