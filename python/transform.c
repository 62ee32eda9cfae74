// SPDX-License-Identifier: Apache-2.0
// Modules as parts of a graph that is recorded, and what include/pestle/transform.h
// makes of modules. pestle/_grad.py and its kin have what people call; rules of ops of
// the caller's own run in here, under the interpreter lock.
#include <stdlib.h>

#include "ir.h"

static pestle_module_t* of(PyObject* module) {
  return ((pestle_py_module_t*)module)->module;
}

size_t pestle_py_result_count(pestle_module_t* module) {
  pestle_function_t* entry = pestle_module_entry(module);
  size_t count = 0;
  while (entry && pestle_function_returned_type(entry, count).dtype)
    ++count;
  return count;
}

// --- Parts of a graph ---

// |module| for |arrays|: itself, where all its dimensions are known.
static pestle_status_t specialized(pestle_module_t* module,
                                   pestle_array_t* const* arrays, size_t count,
                                   pestle_module_t** out_module) {
  pestle_function_t* entry = pestle_module_entry(module);
  bool is_open = false;
  for (size_t i = 0; entry && i < count; ++i) {
    pestle_type_t type = pestle_value_type(pestle_function_argument(entry, i));
    for (int32_t d = 0; d < type.rank; ++d)
      is_open |= type.dims[d] == PESTLE_DIM_DYNAMIC;
  }
  if (!is_open || count != pestle_function_argument_count(entry)) {
    pestle_module_retain(module);
    *out_module = module;
    return NULL;
  }
  pestle_type_t* types = malloc((count + 1) * sizeof(*types));
  if (!types) {
    return pestle_status_make(PESTLE_STATUS_OUT_OF_MEMORY, NULL, 0,
                              "no memory for %zu types", count);
  }
  for (size_t i = 0; i < count; ++i)
    types[i] = pestle_array_type(arrays[i]);
  pestle_status_t status =
      pestle_module_specialize(module, types, count, out_module);
  free(types);
  return status;
}

// inline(module, arrays): what the module computes, recorded.
static PyObject* inline_module(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *object, *list, *result = NULL;
  pestle_module_t* module = NULL;
  if (!PyArg_ParseTuple(args, "O!O!:inline", pestle_py.module_type, &object,
                        &PyTuple_Type, &list)) {
    return NULL;
  }
  size_t operands = (size_t)PyTuple_Size(list);
  pestle_array_t** arrays = pestle_py_arrays_of(list);
  if (!arrays ||
      !pestle_py_ok(specialized(of(object), arrays, operands, &module))) {
    free(arrays);
    return NULL;
  }
  size_t count = pestle_py_result_count(module);
  pestle_array_t** out = malloc((count + 1) * sizeof(*out));
  if (!out) {
    PyErr_NoMemory();
  } else if (!count || pestle_py_ok(pestle_array_inline(
                           module, arrays, operands, out, count))) {
    result = pestle_py_wrap_all(out, NULL, count);
  }
  free(arrays);
  free(out);
  pestle_module_release(module);
  return result;
}

// branch(modules, arrays): the one of modules that arrays[0] says, of the others.
static PyObject* branch(PyObject* self, PyObject* args) {
  enum { BRANCHES = 255 };
  (void)self;
  PyObject *list, *operands, *result = NULL;
  pestle_module_t* branches[BRANCHES];
  if (!PyArg_ParseTuple(args, "O!O!:branch", &PyTuple_Type, &list,
                        &PyTuple_Type, &operands)) {
    return NULL;
  }
  Py_ssize_t count = PyTuple_Size(list);
  for (Py_ssize_t i = 0; i < count && i < BRANCHES; ++i) {
    PyObject* item = PyTuple_GetItem(list, i);
    bool fine = Py_TYPE(item) == pestle_py.module_type;
    branches[i] = fine ? of(item) : NULL;
  }
  size_t results =
      count && branches[0] ? pestle_py_result_count(branches[0]) : 0;
  pestle_array_t** arrays = pestle_py_arrays_of(operands);
  pestle_array_t** out = malloc((results + 1) * sizeof(*out));
  if (arrays && out &&
      pestle_py_ok(pestle_array_branch(branches, (size_t)count, arrays,
                                       (size_t)PyTuple_Size(operands), out,
                                       results))) {
    result = pestle_py_wrap_all(out, NULL, results);
  }
  if (!out) PyErr_NoMemory();
  free(arrays);
  free(out);
  return result;
}

static pestle_status_t fill_barrier(pestle_module_t* module,
                                    const pestle_type_t* types,
                                    pestle_value_t** values, size_t count) {
  pestle_function_t* function;
  pestle_status_t status =
      pestle_module_add_function(module, "main", types, NULL, count, &function);
  if (status) return status;
  pestle_builder_t builder = pestle_builder_make(function);
  for (size_t i = 0; i < count; ++i)
    values[i] = pestle_function_argument(function, i);
  status = pestle_op_optimization_barrier(&builder, values, count, NULL, values,
                                          count);
  return status ? status : pestle_op_return(&builder, values, count, NULL);
}

// barrier(arrays): the same arrays, none of which is there before all are, and which no
// pass takes for one another.
static PyObject* barrier(PyObject* self, PyObject* list) {
  (void)self;
  if (!PyTuple_Check(list) || !PyTuple_Size(list)) return Py_NewRef(list);
  size_t count = (size_t)PyTuple_Size(list);
  pestle_array_t** arrays = pestle_py_arrays_of(list);
  pestle_type_t* types = malloc(count * sizeof(*types));
  void** room = malloc(count * sizeof(*room));
  pestle_module_t* module = NULL;
  PyObject* result = NULL;
  for (size_t i = 0; arrays && types && i < count; ++i)
    types[i] = pestle_array_type(arrays[i]);
  if (arrays && types && room &&
      pestle_py_ok(pestle_module_create(pestle_py.context, NULL, &module)) &&
      pestle_py_ok(
          fill_barrier(module, types, (pestle_value_t**)room, count)) &&
      pestle_py_ok(pestle_array_inline(module, arrays, count,
                                       (pestle_array_t**)room, count))) {
    result = pestle_py_wrap_all((pestle_array_t**)room, NULL, count);
  }
  if (!result && !PyErr_Occurred()) PyErr_NoMemory();
  pestle_module_release(module);
  free(arrays);
  free(types);
  free(room);
  return result;
}

// --- Transforms ---

// Integers of a tuple, in memory to be freed.
static int64_t* integers(PyObject* tuple) {
  size_t count = (size_t)PyTuple_Size(tuple);
  int64_t* list = malloc((count + 1) * sizeof(*list));
  if (!list) PyErr_NoMemory();
  for (size_t i = 0; list && i < count; ++i) {
    list[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, (Py_ssize_t)i));
  }
  if (!list || !PyErr_Occurred()) return list;
  free(list);
  return NULL;
}

static uint32_t* positions(PyObject* tuple) {
  int64_t* list = integers(tuple);
  uint32_t* out = (uint32_t*)list;  // which is as long at least
  for (Py_ssize_t i = 0; list && i < PyTuple_Size(tuple); ++i) {
    int64_t place = list[i];
    out[i] = place < 0 || place > UINT32_MAX ? UINT32_MAX : (uint32_t)place;
  }
  return out;
}

// Reads (module, arguments, results[, max_trips]). What |out| points to is to be freed, by
// drop_options().
static bool read_options(PyObject* args, pestle_module_t** out_module,
                         pestle_transform_options_t* out) {
  PyObject *module, *arguments, *results;
  long long trips = 0;
  *out = (pestle_transform_options_t){.struct_size = sizeof(*out)};
  if (!PyArg_ParseTuple(args, "O!O!O!|L", pestle_py.module_type, &module,
                        &PyTuple_Type, &arguments, &PyTuple_Type, &results,
                        &trips)) {
    return false;
  }
  out->max_trips = trips;
  *out_module = of(module);
  out->arguments = positions(arguments);
  out->argument_count = (size_t)PyTuple_Size(arguments);
  out->results = positions(results);
  out->result_count = (size_t)PyTuple_Size(results);
  return out->arguments && out->results;
}

static void drop_options(pestle_transform_options_t* options) {
  free((void*)options->arguments);
  free((void*)options->results);
}

static PyObject* transformed(
    PyObject* args,
    pestle_status_t (*transform)(pestle_module_t*,
                                 const pestle_transform_options_t*,
                                 pestle_module_t**)) {
  pestle_transform_options_t options;
  pestle_module_t *module, *out = NULL;
  bool fine = read_options(args, &module, &options) &&
              pestle_py_ok(transform(module, &options, &out));
  drop_options(&options);
  return fine ? pestle_py_module(out) : NULL;
}

static PyObject* jvp(PyObject* self, PyObject* args) {
  (void)self;
  return transformed(args, pestle_module_jvp);
}

static PyObject* vjp(PyObject* self, PyObject* args) {
  (void)self;
  return transformed(args, pestle_module_vjp);
}

static PyObject* transpose(PyObject* self, PyObject* args) {
  (void)self;
  return transformed(args, pestle_module_transpose);
}

// (forward, linear)
static PyObject* split(PyObject* args, bool reverse) {
  pestle_transform_options_t options;
  pestle_module_t *module, *first = NULL, *second = NULL;
  bool fine = read_options(args, &module, &options);
  options.to_transpose = reverse;
  fine = fine && pestle_py_ok(pestle_module_linearize(module, &options, &first,
                                                      &second));
  drop_options(&options);
  if (!fine) return NULL;
  return Py_BuildValue("(NN)", pestle_py_module(first),
                       pestle_py_module(second));
}

static PyObject* linearize(PyObject* self, PyObject* args) {
  (void)self;
  return split(args, false);
}

// The linear function is one for transpose_linear() alone.
static PyObject* linearize_back(PyObject* self, PyObject* args) {
  (void)self;
  return split(args, true);
}

// checkpoint(module, policy, names, budget): of which reverse mode keeps that.
static PyObject* checkpoint(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* module;
  pestle_module_t* out = NULL;
  long long budget;
  pestle_transform_options_t options = {.struct_size = sizeof(options)};
  if (!PyArg_ParseTuple(args, "O!zzL:checkpoint", pestle_py.module_type,
                        &module, &options.policy, &options.names, &budget)) {
    return NULL;
  }
  options.budget_bytes = budget;
  if (!pestle_py_ok(pestle_module_checkpoint(of(module), &options, &out))) {
    return NULL;
  }
  return pestle_py_module(out);
}

// checkpoint_name(module, name): whose result has that name.
static PyObject* checkpoint_name(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* module;
  const char* name;
  pestle_module_t* out = NULL;
  if (!PyArg_ParseTuple(args, "O!s:checkpoint_name", pestle_py.module_type,
                        &module, &name) ||
      !pestle_py_ok(pestle_module_checkpoint_name(of(module), name, &out))) {
    return NULL;
  }
  return pestle_py_module(out);
}

// vmap(module, size, argument axes, result axes): -1 is none.
static PyObject* vmap(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *module, *arguments, *results;
  long long size;
  pestle_module_t* out = NULL;
  if (!PyArg_ParseTuple(args, "O!LO!O!:vmap", pestle_py.module_type, &module,
                        &size, &PyTuple_Type, &arguments, &PyTuple_Type,
                        &results)) {
    return NULL;
  }
  pestle_vmap_options_t options = {
      .struct_size = sizeof(options),
      .size = size,
      .argument_axes = integers(arguments),
      .argument_axis_count = (size_t)PyTuple_Size(arguments),
      .result_axes = integers(results),
      .result_axis_count = (size_t)PyTuple_Size(results)};
  bool fine = options.argument_axes && options.result_axes &&
              pestle_py_ok(pestle_module_vmap(of(module), &options, &out));
  free((void*)options.argument_axes);
  free((void*)options.result_axes);
  return fine ? pestle_py_module(out) : NULL;
}

// tree_children(value): those of a registered type, None of another.
static PyObject* children(PyObject* self, PyObject* object) {
  (void)self;
  PyObject* functions =
      PyDict_GetItemWithError(pestle_py.nodes, (PyObject*)Py_TYPE(object));
  if (!functions) return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
  PyObject* pair =
      PyObject_CallFunctionObjArgs(PyTuple_GetItem(functions, 0), object, NULL);
  PyObject* first = pair ? PySequence_GetItem(pair, 0) : NULL;
  PyObject* tuple = first ? PySequence_Tuple(first) : NULL;
  Py_XDECREF(pair);
  Py_XDECREF(first);
  return tuple;
}

bool pestle_py_add_transform(PyObject* module) {
  static PyMethodDef methods[] = {
      {"inline", inline_module, METH_VARARGS, NULL},
      {"branch", branch, METH_VARARGS, NULL},
      {"barrier", barrier, METH_O, NULL},
      {"jvp", jvp, METH_VARARGS, NULL},
      {"vjp", vjp, METH_VARARGS, NULL},
      {"transpose_linear", transpose, METH_VARARGS, NULL},
      {"linearize", linearize, METH_VARARGS, NULL},
      {"linearize_back", linearize_back, METH_VARARGS, NULL},
      {"vmap", vmap, METH_VARARGS, NULL},
      {"checkpoint", checkpoint, METH_VARARGS, NULL},
      {"checkpoint_name", checkpoint_name, METH_VARARGS, NULL},
      {"tree_children", children, METH_O, NULL},
      {NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods) == 0;
}
