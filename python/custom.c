// SPDX-License-Identifier: Apache-2.0
// Ops of the caller's own: rules that are Python functions, called by the library from
// whatever thread needs them, and evals that see its memory. pestle/_custom.py has what
// people write; here a registered op's |user| is the object `rules` that it made, which
// lives as long as the process.
#include <stdlib.h>
#include <string.h>

#include "ir.h"

enum {
  MOST_EVALS = 8,
  MOST_ATTRS = 64,
  MOST_RESULTS = 64,
  MOST_OPERANDS = 4095
};

// --- Attributes ---

static PyObject* value_of(const pestle_custom_attr_value_t* a) {
  switch ((pestle_custom_kind_t)a->kind) {
    case PESTLE_CUSTOM_BOOL:
      return PyBool_FromLong(a->as.b);
    case PESTLE_CUSTOM_I64:
      return PyLong_FromLongLong(a->as.i64);
    case PESTLE_CUSTOM_F64:
      return PyFloat_FromDouble(a->as.f64);
    case PESTLE_CUSTOM_STR:
      return PyUnicode_FromString(a->as.str);
    case PESTLE_CUSTOM_I64S:
    case PESTLE_CUSTOM_F64S:
      break;
  }
  bool real = a->kind == PESTLE_CUSTOM_F64S;
  size_t count = real ? a->as.f64s.count : a->as.i64s.count;
  PyObject* tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple && i < count; ++i) {
    PyObject* item = real ? PyFloat_FromDouble(a->as.f64s.data[i])
                          : PyLong_FromLongLong(a->as.i64s.data[i]);
    if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

static PyObject* attrs_of(const pestle_custom_attrs_t* attrs) {
  PyObject* dict = PyDict_New();
  const pestle_custom_attr_value_t* a;
  for (size_t i = 0; dict && (a = pestle_custom_attr_at(attrs, i)); ++i) {
    PyObject* value = value_of(a);
    if (!value || PyDict_SetItemString(dict, a->name, value) < 0) {
      Py_CLEAR(dict);
    }
    Py_XDECREF(value);
  }
  return dict;
}

// Numbers of a sequence, in memory that |out_memory| owns.
static bool read_list(PyObject* object, bool real,
                      pestle_custom_attr_value_t* out, void** out_memory) {
  PyObject* tuple = PySequence_Tuple(object);
  if (!tuple) return false;
  size_t count = (size_t)PyTuple_Size(tuple);
  int64_t* whole = *out_memory = malloc((count + 1) * 8);
  double* reals = *out_memory;
  for (size_t i = 0; whole && i < count; ++i) {
    PyObject* item = PyTuple_GetItem(tuple, (Py_ssize_t)i);
    if (real) {
      reals[i] = PyFloat_AsDouble(item);
    } else {
      whole[i] = PyLong_AsLongLong(item);
    }
  }
  Py_DECREF(tuple);
  if (!whole) PyErr_NoMemory();
  if (PyErr_Occurred()) return false;
  if (real) {
    out->as.f64s = (pestle_f64s_t){reals, count};
  } else {
    out->as.i64s = (pestle_i64s_t){whole, count};
  }
  return true;
}

static bool read_value(PyObject* object, int32_t kind,
                       pestle_custom_attr_value_t* out, void** out_memory) {
  out->kind = kind;
  if (kind == PESTLE_CUSTOM_F64 && pestle_py_is_array(object)) {
    out->kind = PESTLE_CUSTOM_ARRAY;
    out->as.array = pestle_py_array(object);
    return true;
  }
  switch ((pestle_custom_kind_t)kind) {
    case PESTLE_CUSTOM_BOOL:
      out->as.b = PyObject_IsTrue(object) > 0;
      break;
    case PESTLE_CUSTOM_I64:
      out->as.i64 = PyLong_AsLongLong(object);
      break;
    case PESTLE_CUSTOM_F64:
      out->as.f64 = PyFloat_AsDouble(object);
      break;
    case PESTLE_CUSTOM_STR:
      out->as.str = PyUnicode_AsUTF8AndSize(object, NULL);
      break;
    case PESTLE_CUSTOM_I64S:
    case PESTLE_CUSTOM_F64S:
      return read_list(object, kind == PESTLE_CUSTOM_F64S, out, out_memory);
  }
  return !PyErr_Occurred();
}

// --- Rules ---

// What a Python call failed with. The exception stays where this thread has others'
// frames, which raise it; a thread of the library's has none.
static pestle_status_t failed(const char* what) {
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyErr_NormalizeException(&type, &error, &trace);
  PyObject* place = pestle_py_site_of_traceback(trace);
  PyObject* name = error ? PyType_GetName(Py_TYPE(error)) : NULL;
  PyObject* text = name && place
                       ? PyUnicode_FromFormat("%U: %S%U", name, error, place)
                       : NULL;
  Py_XDECREF(name);
  Py_XDECREF(place);
  const char* words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (!words) PyErr_Clear();
  pestle_status_t status =
      pestle_status_make(PESTLE_STATUS_INVALID_ARGUMENT, NULL, 0, "%s: %s",
                         what, words ? words : "an exception of Python's");
  Py_XDECREF(text);
  PyErr_Restore(type, error, trace);
  return status;
}

// Calls rules.|name|(attrs, |format| ...); a new reference.
static PyObject* call_rule(void* user, const char* name,
                           const pestle_custom_attrs_t* attrs, PyObject* more) {
  PyObject* dict = attrs_of(attrs);
  PyObject* method = PyObject_GetAttrString(user, name);
  PyObject* result = dict && method && more ? PyObject_CallFunctionObjArgs(
                                                  method, dict, more, NULL)
                                            : NULL;
  Py_XDECREF(dict);
  Py_XDECREF(method);
  Py_XDECREF(more);
  return result;
}

// |array|, which a rule reads from around it, as a constant.
static pestle_status_t add_constant(pestle_builder_t* builder,
                                    pestle_array_t* array,
                                    pestle_value_t** out) {
  enum { MOST_BYTES = 1 << 20 };
  pestle_type_t type = pestle_array_type(array);
  int64_t size = pestle_dtype_size(type.dtype);
  for (int32_t d = 0; d < type.rank; ++d)
    size *= type.dims[d];
  if (pestle_array_state(array) == PESTLE_ARRAY_TRACED) {
    return pestle_status_make(
        PESTLE_STATUS_INVALID_ARGUMENT, NULL, 0,
        "a rule reads a traced array that is no argument of it; make it one");
  }
  if (size > MOST_BYTES) {
    return pestle_status_make(
        PESTLE_STATUS_INVALID_ARGUMENT, NULL, 0,
        "a rule reads an array of %lld bytes that is no argument of it; make "
        "it one, since those of more than 1 MiB are no constants",
        (long long)size);
  }
  return pestle_py_constant(builder, array, out);
}

// Builds what |module| does of |values|, and of what it reads beside them.
static pestle_status_t build(pestle_builder_t* builder, pestle_module_t* module,
                             const pestle_capture_t* capture,
                             pestle_value_t* const* values, size_t count,
                             pestle_value_t** out, size_t capacity) {
  size_t hidden = pestle_capture_hidden_count(capture);
  pestle_value_t** all = malloc((count + hidden + 1) * sizeof(*all));
  pestle_status_t status =
      all ? NULL
          : pestle_status_make(PESTLE_STATUS_OUT_OF_MEMORY, NULL, 0,
                               "no memory for %zu operands", count);
  for (size_t i = 0; all && i < count; ++i)
    all[i] = values[i];
  for (size_t i = 0; i < hidden && !status; ++i) {
    status = add_constant(builder, pestle_capture_hidden(capture, i),
                          &all[count + i]);
  }
  if (!status) {
    status = pestle_builder_inline(builder, module, all, count + hidden, out,
                                   capacity);
  }
  free(all);
  return status;
}

// Traces |function| of arrays for |values|, and builds what it did. Takes |function|
// over.
static pestle_status_t splice(pestle_builder_t* builder, PyObject* function,
                              pestle_value_t* const* values, size_t count,
                              pestle_value_t** out, size_t capacity) {
  pestle_type_t* types = malloc((count + 1) * sizeof(*types));
  pestle_module_t* module = NULL;
  pestle_capture_t* capture = NULL;
  PyObject* arrays = NULL;
  for (size_t i = 0; types && i < count; ++i)
    types[i] = pestle_value_type(values[i]);
  bool traced = function && types &&
                pestle_py_capture(pestle_py.device, types, NULL, count,
                                  function, &arrays, &module, &capture);
  pestle_status_t status =
      traced ? build(builder, module, capture, values, count, out, capacity)
             : failed("tracing a rule");
  Py_XDECREF(arrays);
  Py_XDECREF(function);
  pestle_capture_release(capture);
  pestle_module_release(module);
  free(types);
  return status;
}

static pestle_status_t body(void* user, pestle_builder_t* builder,
                            const pestle_custom_node_t* node,
                            pestle_value_t** out) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* function = call_rule(user, "body", node->attrs,
                                 PyLong_FromSize_t(node->operand_count));
  pestle_status_t status = splice(builder, function, node->operands,
                                  node->operand_count, out, MOST_RESULTS);
  PyGILState_Release(state);
  return status;
}

static PyObject* types_of(const pestle_type_t* types, size_t count) {
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; ++i) {
    PyObject* dims = PyTuple_New(types[i].rank);
    for (int32_t d = 0; dims && d < types[i].rank; ++d) {
      PyTuple_SetItem(dims, d, PyLong_FromLongLong(types[i].dims[d]));
    }
    PyObject* row =
        dims ? Py_BuildValue("(NN)", dims, pestle_py_dtype(types[i].dtype))
             : NULL;
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static bool read_type(PyObject* row, pestle_type_t* out) {
  PyObject *dims, *dtype;
  if (!PyArg_ParseTuple(row, "O!O", &PyTuple_Type, &dims, &dtype) ||
      !pestle_py_as_dtype(dtype, &out->dtype)) {
    return false;
  }
  Py_ssize_t rank = PyTuple_Size(dims);
  if (rank > PESTLE_MAX_RANK) {
    PyErr_SetString(PyExc_ValueError, "a result has too many axes");
    return false;
  }
  out->rank = (int32_t)rank;
  for (Py_ssize_t d = 0; d < rank; ++d)
    out->dims[d] = PyLong_AsLongLong(PyTuple_GetItem(dims, d));
  return !PyErr_Occurred();
}

static pestle_status_t infer(void* user, const pestle_custom_node_t* node,
                             pestle_type_t* out_types, size_t* inout_count) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* rows =
      call_rule(user, "infer", node->attrs,
                types_of(node->operand_types, node->operand_count));
  PyObject* tuple = rows ? PySequence_Tuple(rows) : NULL;
  size_t count = tuple ? (size_t)PyTuple_Size(tuple) : 0;
  bool fine = tuple && count <= *inout_count;
  for (size_t i = 0; fine && i < count; ++i)
    fine = read_type(PyTuple_GetItem(tuple, (Py_ssize_t)i), &out_types[i]);
  *inout_count = count;
  pestle_status_t status = fine ? NULL : failed("the type rule");
  Py_XDECREF(rows);
  Py_XDECREF(tuple);
  PyGILState_Release(state);
  return status;
}

// Values that are there of |all|, |count| of them, and which those are.
static PyObject* pick(pestle_value_t* const* all, size_t count,
                      pestle_value_t** values, size_t* inout_size) {
  PyObject* there = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; there && i < count; ++i) {
    if (all[i]) values[(*inout_size)++] = all[i];
    PyTuple_SetItem(there, (Py_ssize_t)i, PyBool_FromLong(all[i] != NULL));
  }
  return there;
}

// Puts what |function| made, which its `where` says the places of, into |out|.
static pestle_status_t place(PyObject* function, pestle_value_t** made,
                             pestle_value_t** out, size_t count) {
  PyObject* where = PyObject_GetAttrString(function, "where");
  PyObject* tuple = where ? PySequence_Tuple(where) : NULL;
  Py_ssize_t n = tuple ? PyTuple_Size(tuple) : 0;
  for (size_t i = 0; i < count; ++i)
    out[i] = NULL;
  for (Py_ssize_t i = 0; i < n; ++i) {
    size_t at = PyLong_AsSize_t(PyTuple_GetItem(tuple, i));
    if (at < count) out[at] = made[i];
  }
  pestle_status_t status = tuple ? NULL : failed("a rule");
  Py_XDECREF(where);
  Py_XDECREF(tuple);
  return status;
}

// A derivative: rules.|name|(attrs, (operands, results, there, needed)) is a function
// of operands, results and those of |others| that are there.
static pestle_status_t derive(const char* name, void* user,
                              pestle_builder_t* builder,
                              const pestle_custom_node_t* node,
                              pestle_value_t* const* others, size_t count,
                              const bool* needed, pestle_value_t** out,
                              size_t out_count) {
  pestle_value_t* values[MOST_OPERANDS + 2 * MOST_RESULTS];
  pestle_value_t* made[MOST_OPERANDS] = {NULL};
  size_t size = 0, n = node->operand_count, m = node->result_count;
  if (n + count + m > MOST_OPERANDS) {
    return pestle_status_make(PESTLE_STATUS_UNSUPPORTED, NULL, 0,
                              "op '%s' has too many operands", node->name);
  }
  memcpy(values, node->operands, n * sizeof(*values));
  memcpy(values + n, node->results, m * sizeof(*values));
  size = n + m;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* there = pick(others, count, values, &size);
  PyObject* wanted = PyTuple_New((Py_ssize_t)n);
  for (size_t i = 0; wanted && i < n; ++i) {
    PyTuple_SetItem(wanted, (Py_ssize_t)i,
                    PyBool_FromLong(!needed || needed[i]));
  }
  PyObject* function =
      there && wanted ? call_rule(user, name, node->attrs,
                                  Py_BuildValue("(nnNN)", (Py_ssize_t)n,
                                                (Py_ssize_t)m, there, wanted))
                      : NULL;
  Py_XINCREF(function);
  pestle_status_t status =
      splice(builder, function, values, size, made, MOST_OPERANDS);
  if (!status) status = place(function, made, out, out_count);
  Py_XDECREF(function);
  PyGILState_Release(state);
  return status;
}

static pestle_status_t vjp(void* user, pestle_builder_t* builder,
                           const pestle_custom_node_t* node,
                           pestle_value_t* const* cotangents,
                           const bool* needed, pestle_value_t** out) {
  return derive("vjp", user, builder, node, cotangents, node->result_count,
                needed, out, node->operand_count);
}

static pestle_status_t jvp(void* user, pestle_builder_t* builder,
                           const pestle_custom_node_t* node,
                           pestle_value_t* const* tangents,
                           pestle_value_t** out) {
  return derive("jvp", user, builder, node, tangents, node->operand_count, NULL,
                out, node->result_count);
}

static pestle_status_t vmap(void* user, pestle_builder_t* builder,
                            const pestle_custom_node_t* node,
                            const int64_t* axes, int64_t size,
                            pestle_value_t** out, int64_t* out_axes) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* list = PyTuple_New((Py_ssize_t)node->operand_count);
  for (size_t i = 0; list && i < node->operand_count; ++i) {
    PyTuple_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(axes[i]));
  }
  PyObject* function =
      call_rule(user, "vmap", node->attrs,
                list ? Py_BuildValue("(LN)", (long long)size, list) : NULL);
  Py_XINCREF(function);
  pestle_status_t status = splice(builder, function, node->operands,
                                  node->operand_count, out, MOST_RESULTS);
  PyObject* where = status ? NULL : PyObject_GetAttrString(function, "where");
  PyObject* tuple = where ? PySequence_Tuple(where) : NULL;
  for (Py_ssize_t i = 0; tuple && i < PyTuple_Size(tuple); ++i)
    out_axes[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
  if (!status && (!tuple || PyErr_Occurred())) status = failed("a rule");
  Py_XDECREF(where);
  Py_XDECREF(tuple);
  Py_XDECREF(function);
  PyGILState_Release(state);
  return status;
}

// --- Evals ---

// (address, bytes, dtype, shape) of each of |count| tensors.
static PyObject* tensors_of(const pestle_tensor_t* tensors, size_t count) {
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; ++i) {
    const pestle_tensor_t* t = &tensors[i];
    pestle_dtype_t dtype = pestle_dtype_from_dlpack(t->dtype);
    long long bytes = pestle_dtype_size(dtype);
    PyObject* dims = PyTuple_New(t->ndim);
    for (int32_t d = 0; dims && d < t->ndim; ++d) {
      PyTuple_SetItem(dims, d, PyLong_FromLongLong(t->shape[d]));
      bytes *= t->shape[d];
    }
    PyObject* row = dims ? Py_BuildValue("(NLNN)", PyLong_FromVoidPtr(t->data),
                                         bytes, pestle_py_dtype(dtype), dims)
                         : NULL;
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static pestle_status_t eval(void* user, const pestle_custom_call_t* call,
                            int index) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* in = tensors_of(call->inputs, call->input_count);
  PyObject* out = tensors_of(call->outputs, call->output_count);
  PyObject* result = in && out
                         ? call_rule(user, "run", call->attrs,
                                     Py_BuildValue("(iNN)", index, in, out))
                         : NULL;
  pestle_status_t status = NULL;
  if (!result) {
    status = failed("a function of Python's");
    PyErr_Clear();
  }
  Py_XDECREF(result);
  PyGILState_Release(state);
  return status;
}

#define EVAL(i)                                                       \
  static pestle_status_t eval_##i(void* user,                         \
                                  const pestle_custom_call_t* call) { \
    return eval(user, call, i);                                       \
  }
EVAL(0)
EVAL(1)
EVAL(2)
EVAL(3)
EVAL(4)
EVAL(5)
EVAL(6)
EVAL(7)
#undef EVAL
static const pestle_custom_call_fn_t eval_functions[MOST_EVALS] = {
    eval_0, eval_1, eval_2, eval_3, eval_4, eval_5, eval_6, eval_7};

// --- Registering ---

// What is to be freed when the op is registered, which copies it.
typedef struct given_t {
  pestle_custom_op_t op;
  pestle_custom_attr_t attrs[MOST_ATTRS];
  pestle_custom_attr_value_t defaults[MOST_ATTRS];
  void* lists[MOST_ATTRS];
  const pestle_custom_attr_t* attr_list[MOST_ATTRS];
  pestle_custom_eval_t evals[MOST_EVALS];
  const pestle_custom_eval_t* eval_list[MOST_EVALS];
  pestle_source_t sources[MOST_EVALS];
  const char* names[MOST_EVALS][2][MOST_RESULTS];
  pestle_source_template_t templates[MOST_EVALS][MOST_ATTRS];
} given_t;

// (name, kind, default or None, whether it is dynamic)
static bool read_attrs(PyObject* rows, given_t* g) {
  Py_ssize_t count = PyTuple_Size(rows);
  if (count > MOST_ATTRS) {
    PyErr_SetString(PyExc_ValueError, "an op has at most 64 attributes");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* otherwise;
    int dynamic;
    pestle_custom_attr_t* a = &g->attrs[i];
    a->struct_size = sizeof(*a);
    if (!PyArg_ParseTuple(PyTuple_GetItem(rows, i), "siOp", &a->name, &a->kind,
                          &otherwise, &dynamic)) {
      return false;
    }
    a->dynamic = dynamic;
    if (otherwise != Py_None) {
      if (!read_value(otherwise, a->kind, &g->defaults[i], &g->lists[i])) {
        return false;
      }
      a->otherwise = &g->defaults[i];
    }
    g->attr_list[i] = a;
  }
  g->op.attr_count = (size_t)count;
  g->op.attrs = g->attr_list;
  return true;
}

static bool read_names(PyObject* tuple, const char** out, size_t* out_count) {
  Py_ssize_t count = PyTuple_Size(tuple);
  if (count < 0 || count > MOST_RESULTS) {
    PyErr_SetString(PyExc_ValueError, "a kernel has at most 64 names");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    out[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
    if (!out[i]) return false;
  }
  *out_count = (size_t)count;
  return true;
}

static bool read_threads(PyObject* tuple, const char* out[3]) {
  const char* texts[MOST_RESULTS];
  size_t count;
  if (!read_names(tuple, texts, &count)) return false;
  for (size_t a = 0; a < 3 && a < count; ++a)
    out[a] = texts[a];
  return true;
}

// (language, body, header, whole, entry, inputs, outputs, templates, grid, group,
//  shared bytes, initial value or None, flags)
static bool read_source(PyObject* row, given_t* g, Py_ssize_t i) {
  pestle_source_t* s = &g->sources[i];
  PyObject *inputs, *outputs, *templates, *grid, *group, *init;
  int whole;
  unsigned shared;
  s->struct_size = sizeof(*s);
  if (!PyArg_ParseTuple(row, "sszpzO!O!O!O!O!IOz", &s->language, &s->body,
                        &s->header, &whole, &s->entry, &PyTuple_Type, &inputs,
                        &PyTuple_Type, &outputs, &PyTuple_Type, &templates,
                        &PyTuple_Type, &grid, &PyTuple_Type, &group, &shared,
                        &init, &s->flags)) {
    return false;
  }
  s->whole = whole;
  s->shared_bytes = shared;
  s->has_init = init != Py_None;
  if (s->has_init) s->init_value = PyFloat_AsDouble(init);
  s->inputs = g->names[i][0];
  s->outputs = g->names[i][1];
  s->templates = g->templates[i];
  if (PyErr_Occurred() ||
      !read_names(inputs, g->names[i][0], &s->input_count) ||
      !read_names(outputs, g->names[i][1], &s->output_count) ||
      !read_threads(grid, s->grid) || !read_threads(group, s->group)) {
    return false;
  }
  for (Py_ssize_t t = 0; t < PyTuple_Size(templates) && t < MOST_ATTRS; ++t) {
    pestle_source_template_t* to = &g->templates[i][t];
    PyObject *value, *pair = PyTuple_GetItem(templates, t);
    pestle_dtype_t dtype = PESTLE_NONE;
    if (!PyArg_ParseTuple(pair, "sO", &to->name, &value)) return false;
    if (PyLong_Check(value)) {
      to->value = PyLong_AsLongLong(value);
    } else if (!pestle_py_as_dtype(value, &dtype)) {
      return false;
    }
    to->dtype = (int32_t)dtype;
    s->template_count = (size_t)t + 1;
  }
  return !PyErr_Occurred();
}

// (target, id, what): what is None for a function of Python's, an address, or a
// source.
static bool read_evals(PyObject* rows, given_t* g) {
  Py_ssize_t count = PyTuple_Size(rows);
  if (count > MOST_EVALS) {
    PyErr_SetString(PyExc_ValueError, "an op has at most 8 evals");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    pestle_custom_eval_t* e = &g->evals[i];
    PyObject* what;
    e->struct_size = sizeof(*e);
    if (!PyArg_ParseTuple(PyTuple_GetItem(rows, i), "szO", &e->target, &e->id,
                          &what)) {
      return false;
    }
    e->kind = PESTLE_EVAL_HOST_FUNCTION;
    if (what == Py_None) {
      e->function = eval_functions[i];
      e->transient = true;
    } else if (PyLong_Check(what)) {
      void* address = PyLong_AsVoidPtr(what);
      memcpy(&e->function, &address, sizeof(address));
      e->transient = true;
    } else {
      e->kind = PESTLE_EVAL_SOURCE;
      e->source = &g->sources[i];
      if (!read_source(what, g, i)) return false;
    }
    if (PyErr_Occurred()) return false;
    g->eval_list[i] = e;
  }
  g->op.eval_count = (size_t)count;
  g->op.evals = g->eval_list;
  return true;
}

// register_op(name, version, rules, attrs, evals, prefer, front, elementwise, has,
// hidden): |has| are the names of the rules that |rules| has.
static PyObject* register_op(PyObject* self, PyObject* args) {
  PyObject *rules, *attrs, *evals, *has;
  int elementwise, hidden;
  long long version;
  (void)self;
  if (!pestle_py_context()) return NULL;
  given_t* g = calloc(1, sizeof(*g));
  if (!g) return PyErr_NoMemory();
  pestle_custom_op_t* op = &g->op;
  op->struct_size = sizeof(*op);
  bool fine =
      PyArg_ParseTuple(args, "sLOO!O!iIpOi:register_op", &op->name, &version,
                       &rules, &PyTuple_Type, &attrs, &PyTuple_Type, &evals,
                       &op->prefer, &op->front, &elementwise, &has, &hidden) &&
      read_attrs(attrs, g) && read_evals(evals, g);
  if (fine) {
    op->version = version;
    op->elementwise = elementwise;
    op->hidden_results = (size_t)hidden;
    op->user = rules;
    PyObject* key;
#define TAKE(rule)                                               \
  key = PyUnicode_FromString(#rule);                             \
  if (key && PySequence_Contains(has, key) > 0) op->rule = rule; \
  Py_XDECREF(key);
    TAKE(infer)
    TAKE(body)
    TAKE(vjp)
    TAKE(jvp)
    TAKE(vmap)
#undef TAKE
    fine = pestle_py_ok(pestle_context_register_op(pestle_py.context, op));
    if (fine) Py_INCREF(rules);  // the context's, for good
  }
  for (int i = 0; i < MOST_ATTRS; ++i)
    free(g->lists[i]);
  free(g);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

// --- Use ---

// custom(name, arrays, attrs): attrs are (name, kind, value).
static PyObject* custom(PyObject* self, PyObject* args) {
  const char* name;
  PyObject *arrays, *rows;
  pestle_array_t *operands[MOST_OPERANDS], *out[MOST_RESULTS];
  pestle_custom_attr_value_t attrs[MOST_ATTRS];
  void* lists[MOST_ATTRS] = {NULL};
  (void)self;
  if (!pestle_py_context() ||
      !PyArg_ParseTuple(args, "sO!O!:custom", &name, &PyTuple_Type, &arrays,
                        &PyTuple_Type, &rows)) {
    return NULL;
  }
  Py_ssize_t count = PyTuple_Size(arrays), n = PyTuple_Size(rows);
  bool fine = count <= MOST_OPERANDS && n <= MOST_ATTRS;
  if (!fine) PyErr_SetString(PyExc_ValueError, "too many operands");
  for (Py_ssize_t i = 0; fine && i < count; ++i) {
    PyObject* item = PyTuple_GetItem(arrays, i);
    fine = pestle_py_is_array(item);
    if (fine) {
      operands[i] = pestle_py_array(item);
    } else {
      PyErr_Format(PyExc_TypeError, "operand %zd is %R, no array", i, item);
    }
  }
  for (Py_ssize_t i = 0; fine && i < n; ++i) {
    int kind;
    PyObject* value;
    fine = PyArg_ParseTuple(PyTuple_GetItem(rows, i), "siO", &attrs[i].name,
                            &kind, &value) &&
           read_value(value, kind, &attrs[i], &lists[i]);
  }
  PyObject* result = NULL;
  if (fine && pestle_py_ok(pestle_array_custom(pestle_py.context, name,
                                               operands, (size_t)count, attrs,
                                               (size_t)n, out, MOST_RESULTS))) {
    size_t made = 0;
    while (made < MOST_RESULTS && out[made])
      pestle_py_set_site(out[made++], name);
    result = PyTuple_New((Py_ssize_t)made);
    for (size_t i = 0; i < made; ++i) {
      PyObject* array = pestle_py_wrap(out[i]);
      if (!result || !array ||
          PyTuple_SetItem(result, (Py_ssize_t)i, array) < 0) {
        Py_CLEAR(result);
      }
    }
  }
  for (int i = 0; i < MOST_ATTRS; ++i)
    free(lists[i]);
  return result;
}

static PyObject* load_extension(PyObject* self, PyObject* path) {
  PyObject* bytes = NULL;
  (void)self;
  if (!pestle_py_context() || !PyUnicode_FSConverter(path, &bytes)) return NULL;
  bool fine = pestle_py_ok(pestle_context_load_extension(
      pestle_py.context, PyBytes_AsString(bytes)));
  Py_DECREF(bytes);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

// op_table(name) -> ((attribute, kind, default or None), ...), or None.
static PyObject* op_table(PyObject* self, PyObject* object) {
  const char* name = PyUnicode_AsUTF8AndSize(object, NULL);
  (void)self;
  if (!name || !pestle_py_context()) return NULL;
  const pestle_custom_op_t* op =
      pestle_context_find_op(pestle_py.context, name);
  if (!op) Py_RETURN_NONE;
  PyObject* rows = PyTuple_New((Py_ssize_t)op->attr_count);
  for (size_t i = 0; rows && i < op->attr_count; ++i) {
    const pestle_custom_attr_t* a = op->attrs[i];
    PyObject* otherwise =
        a->otherwise ? value_of(a->otherwise) : Py_NewRef(Py_None);
    PyObject* row =
        otherwise ? Py_BuildValue("(siN)", a->name, a->kind, otherwise) : NULL;
    if (!row || PyTuple_SetItem(rows, (Py_ssize_t)i, row) < 0) Py_CLEAR(rows);
  }
  return rows;
}

static PyObject* op_names(PyObject* self, PyObject* unused) {
  (void)self, (void)unused;
  if (!pestle_py_context()) return NULL;
  PyObject* list = PyList_New(0);
  const char* name;
  for (size_t i = 0;
       list && (name = pestle_context_op_name(pestle_py.context, i)); ++i) {
    PyObject* text = PyUnicode_FromString(name);
    if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

bool pestle_py_add_custom(PyObject* module) {
  static PyMethodDef methods[] = {
      {"register_op", register_op, METH_VARARGS, NULL},
      {"custom", custom, METH_VARARGS, NULL},
      {"load_extension", load_extension, METH_O, NULL},
      {"op_table", op_table, METH_O, NULL},
      {"op_names", op_names, METH_NOARGS, NULL},
      {NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, methods) == 0;
}
