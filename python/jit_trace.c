// SPDX-License-Identifier: Apache-2.0
// Tracing: the Python function is called with arrays that stand for its arguments,
// and what it does with them becomes a module.
#include <stdlib.h>
#include <string.h>

#include "ir.h"
#include "jit.h"

// --- Tracing ---

// The arguments of a call with |leaves| in the places of its dynamic ones.
typedef struct trace_t {
  const pestle_py_jit_t* jit;
  const pestle_py_call_t* call;
  const pestle_py_given_t* given;
  pestle_tree_t out;
} trace_t;

// What is given as a tuple and a dict.
bool pestle_py_to_objects(const pestle_py_given_t* given, PyObject** out_args,
                          PyObject** out_kwargs) {
  *out_args = PyTuple_New(given->count);
  *out_kwargs = pestle_py_has_names(given) ? PyDict_New() : NULL;
  bool fine = *out_args && (*out_kwargs || !pestle_py_has_names(given));
  for (Py_ssize_t i = 0; fine && i < given->count; ++i)
    fine = PyTuple_SetItem(*out_args, i, Py_NewRef(given->args[i])) == 0;
  for (Py_ssize_t i = 0; fine && *out_kwargs && i < PyTuple_Size(given->names);
       ++i) {
    fine = PyDict_SetItem(*out_kwargs, PyTuple_GetItem(given->names, i),
                          given->args[given->count + i]) == 0;
  }
  return fine;
}

bool pestle_py_rebuild(const pestle_py_jit_t* jit, const pestle_py_call_t* call,
                       const pestle_py_given_t* given, PyObject* leaves,
                       PyObject** out_args, PyObject** out_kwargs) {
  PyObject** items = malloc((call->count + 1) * sizeof(*items));
  if (!items) return PyErr_NoMemory() != NULL;
  for (size_t i = 0; i < call->count; ++i)
    items[i] = PyTuple_GetItem(leaves, (Py_ssize_t)i);
  const uintptr_t* words = call->tree.words;
  PyObject* const* at = items;
  bool fine = pestle_py_to_objects(given, out_args, out_kwargs);
  for (Py_ssize_t i = 0; fine && i < given->count; ++i) {
    if (call->statics && pestle_py_is_static(jit, i, given->count)) continue;
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
                 "trees of them, which pestle.tree.register() makes of types",
                 leaf);
    return NULL;
  }
  return pestle_py_asarray(leaf, PESTLE_NONE, NULL, -1);
}

static PyObject* run_trace(PyObject* capsule, PyObject* leaves) {
  trace_t* trace = PyCapsule_GetPointer(capsule, "pestle.trace");
  PyObject *args = NULL, *kwargs = NULL, *result = NULL, *list = NULL;
  if (trace && pestle_py_rebuild(trace->jit, trace->call, trace->given, leaves,
                                 &args, &kwargs)) {
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

static bool fill_entry(pestle_py_entry_t* entry, const pestle_py_call_t* call) {
  entry->words =
      pestle_tree_copy_words(call->tree.words, call->tree.word_count);
  entry->word_count = entry->words ? call->tree.word_count : 0;
  entry->guards = malloc((call->count + 1) * sizeof(*entry->guards));
  if (!entry->words || !entry->guards) return false;
  memcpy(entry->guards, call->guards, call->count * sizeof(*entry->guards));
  entry->leaf_count = call->count;
  entry->statics = Py_XNewRef(call->statics);
  entry->device = call->device;
  entry->config = call->config;
  entry->run_ns = INT64_MAX;
  return true;
}

// What an array says that was given away: who took it.
static pestle_status_t gone(PyObject* function) {
  PyObject* name = PyObject_GetAttrString(function, "__qualname__");
  const char* text = name && PyUnicode_Check(name)
                         ? PyUnicode_AsUTF8AndSize(name, NULL)
                         : NULL;
  PyErr_Clear();
  pestle_status_t status = PESTLE_ERROR(
      INVALID_ARGUMENT,
      "the array was donated to %s(), which gave its memory away: use what the "
      "call returned, or donate a copy",
      text ? text : "a function");
  Py_XDECREF(name);
  return status;
}

// Tells the library which leaves calls give away.
static bool donate(const pestle_py_jit_t* self, const pestle_py_call_t* call,
                   pestle_py_entry_t* entry) {
  if (!call->donated_count) return true;
  uint32_t* indices = malloc((call->count + 1) * sizeof(*indices));
  size_t count = 0;
  if (!indices) return PyErr_NoMemory() != NULL;
  for (size_t i = 0; i < call->count; ++i) {
    if (call->guards[i].is_donated) indices[count++] = (uint32_t)i;
  }
  bool fine = pestle_py_ok(pestle_jit_donate(entry->jit, indices, count));
  free(indices);
  entry->donated = gone(self->function);
  return fine;
}

static bool capture(const pestle_py_jit_t* self, const pestle_py_call_t* call,
                    pestle_py_entry_t* entry, trace_t* trace) {
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
    fine = fine && donate(self, call, entry);
    entry->module = pestle_py_module(module);
    entry->hidden = pestle_py_hidden(captured);
    entry->out_words =
        pestle_tree_copy_words(trace->out.words, trace->out.word_count);
    entry->out_word_count = entry->out_words ? trace->out.word_count : 0;
    entry->out_count = trace->out.leaf_count;
    fine = fine && entry->module && entry->hidden && entry->out_words;
  }
  pestle_capture_release(captured);
  Py_XDECREF(results);
  Py_XDECREF(function);
  Py_XDECREF(capsule);
  free(types);
  free(weak);
  return fine;
}

pestle_py_entry_t* pestle_py_trace(pestle_py_jit_t* self,
                                   const pestle_py_call_t* call,
                                   const pestle_py_given_t* given) {
  trace_t trace = {.jit = self, .call = call, .given = given};
  pestle_py_entry_t* entry = calloc(1, sizeof(*entry));
  if (!entry) {
    PyErr_NoMemory();
    return NULL;
  }
  entry->users = 1;
  pestle_tree_init(&trace.out);
  ++self->traces;
  bool fine = fill_entry(entry, call) && capture(self, call, entry, &trace) &&
              pestle_py_entry_keep(self, entry);
  pestle_tree_deinit(&trace.out);
  if (fine) return entry;
  pestle_py_entry_drop(entry);
  return NULL;
}
