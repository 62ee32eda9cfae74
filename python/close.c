// SPDX-License-Identifier: Apache-2.0
// Arrays that a traced function reads besides its arguments, as constants of its module.
#include <stdlib.h>

#include "ir.h"

pestle_status_t pestle_py_constant(pestle_builder_t* builder,
                                   pestle_array_t* array,
                                   pestle_value_t** out) {
  pestle_type_t type = pestle_array_type(array);
  int64_t size = pestle_dtype_size(type.dtype);
  for (int32_t d = 0; d < type.rank; ++d)
    size *= type.dims[d];
  void* data = malloc((size_t)size + 1);
  if (!data) {
    return pestle_status_make(PESTLE_STATUS_OUT_OF_MEMORY, NULL, 0,
                              "no memory for a constant of %lld bytes",
                              (long long)size);
  }
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_read(array, data, (size_t)size);
  Py_END_ALLOW_THREADS;
  if (!status) {
    pestle_constant_attrs_t attrs = {
        .struct_size = sizeof(attrs),
        .value = {type, data, (size_t)size, false}};
    status = pestle_op_constant(builder, &attrs, out);
  }
  free(data);
  return status;
}

// A function without arguments that gives |arrays|.
static pestle_status_t fill_constants(pestle_module_t* module,
                                      pestle_array_t** arrays,
                                      pestle_value_t** values, size_t count) {
  pestle_function_t* function;
  pestle_status_t status =
      pestle_module_add_function(module, "main", NULL, NULL, 0, &function);
  if (status) return status;
  pestle_builder_t builder = pestle_builder_make(function);
  for (size_t i = 0; i < count && !status; ++i) {
    if (!arrays[i] || pestle_array_state(arrays[i]) == PESTLE_ARRAY_TRACED) {
      return pestle_status_make(
          PESTLE_STATUS_INVALID_ARGUMENT, NULL, 0,
          "the function reads an array of a trace that it is called in, which "
          "has no value yet; make it an argument");
    }
    status = pestle_py_constant(&builder, arrays[i], &values[i]);
  }
  return status ? status : pestle_op_return(&builder, values, count, NULL);
}

// |module| behind |constants|, whose |hidden| results are its last arguments.
static pestle_status_t put_behind(pestle_module_t* module,
                                  pestle_module_t* constants, size_t count,
                                  size_t hidden, size_t results,
                                  pestle_link_source_t* sources,
                                  pestle_module_t** out) {
  for (size_t i = 0; i < count; ++i) {
    bool is_given = i < count - hidden;
    sources[i].part = is_given ? PESTLE_LINK_ARGUMENT : 0;
    sources[i].index = (uint32_t)(is_given ? i : i - (count - hidden));
  }
  for (size_t i = 0; i < results; ++i)
    sources[count + i] = (pestle_link_source_t){1, (uint32_t)i};
  pestle_link_part_t parts[] = {
      {.module = constants},
      {.module = module, .arguments = sources, .argument_count = count}};
  return pestle_module_link(parts, 2, sources + count, results, out);
}

PyObject* pestle_py_close(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *object, *tuple, *result = NULL;
  pestle_module_t *constants = NULL, *made = NULL;
  if (!PyArg_ParseTuple(args, "O!O!:close", pestle_py.module_type, &object,
                        &PyTuple_Type, &tuple)) {
    return NULL;
  }
  pestle_module_t* module = ((pestle_py_module_t*)object)->module;
  pestle_function_t* entry = pestle_module_entry(module);
  size_t hidden = (size_t)PyTuple_Size(tuple);
  size_t count = entry ? pestle_function_argument_count(entry) : 0;
  size_t results = pestle_py_result_count(module);
  if (!hidden) return Py_NewRef(object);
  if (hidden > count) {
    PyErr_SetString(PyExc_ValueError, "more arrays than arguments");
    return NULL;
  }
  pestle_array_t** arrays = pestle_py_arrays_of(tuple);
  pestle_value_t** values = malloc(hidden * sizeof(*values));
  pestle_link_source_t* sources = malloc((count + results) * sizeof(*sources));
  if (!values || !sources) PyErr_NoMemory();
  bool fine =
      arrays && values && sources &&
      pestle_py_ok(pestle_module_create(pestle_py.context, NULL, &constants)) &&
      pestle_py_ok(fill_constants(constants, arrays, values, hidden)) &&
      pestle_py_ok(put_behind(module, constants, count, hidden, results,
                              sources, &made));
  if (fine) result = pestle_py_module(made);
  pestle_module_release(constants);
  free(arrays);
  free(values);
  free(sources);
  return result;
}
