// SPDX-License-Identifier: Apache-2.0
// What pestle.Session (_session.py) is made of: a session of the library. Inputs are
// arrays on the host, outputs see the session's memory and give it back when they go.
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "module.h"

typedef struct session_t {
  PyObject_HEAD pestle_session_t* session;
} session_t;

static pestle_session_t* of(PyObject* self) {
  return ((session_t*)self)->session;
}

// --- Life ---

// {name: extent} as dims of an import; |*out_dims| is freed by the caller.
static bool read_dims(PyObject* object, pestle_dim_binding_t** out_dims,
                      size_t* out_count) {
  *out_dims = NULL;
  *out_count = 0;
  if (object == Py_None) return true;
  PyObject *key, *value;
  if (!PyDict_Check(object)) {
    PyErr_Format(PyExc_TypeError, "dims is %R, not a dict of names to extents",
                 object);
    return false;
  }
  Py_ssize_t at = 0, size = PyDict_Size(object);
  *out_dims = calloc((size_t)size + 1, sizeof(**out_dims));
  if (!*out_dims) return PyErr_NoMemory() != NULL;
  while (PyDict_Next(object, &at, &key, &value)) {
    pestle_dim_binding_t* dim = &(*out_dims)[(*out_count)++];
    dim->name = PyUnicode_AsUTF8AndSize(key, NULL);
    dim->extent = dim->name ? PyLong_AsLongLong(value) : 0;
    if (PyErr_Occurred()) return false;
  }
  return true;
}

static bool create(session_t* self, PyObject* args) {
  PyObject *path, *dims, *bytes = NULL, *where;
  int as_ort, exact, waiting, quick;
  Py_ssize_t most;
  const char* numerics;
  pestle_import_options_t import = {.struct_size = sizeof(import)};
  pestle_compile_options_t compile = {.struct_size = sizeof(compile)};
  pestle_session_options_t o = {.struct_size = sizeof(o)};
  if (!PyArg_ParseTuple(args, "OzOOpnppps", &path, &o.shapes, &where, &dims,
                        &as_ort, &most, &exact, &waiting, &quick, &numerics) ||
      !pestle_py_context() || !pestle_py_as_device(where, &o.device)) {
    return false;
  }
  if (most < 0) {
    PyErr_Format(PyExc_ValueError, "most_executables is %zd", most);
    return false;
  }
  o.most_executables = (size_t)most;
  o.exact = exact;
  o.waiting = waiting;
  o.quick = quick;
  if (as_ort) import.onnx_compat = PESTLE_ONNX_COMPAT_ORT;
  compile.numerics = !strcmp(numerics, "strict") ? PESTLE_NUMERICS_STRICT
                     : !strcmp(numerics, "fast") ? PESTLE_NUMERICS_FAST
                                                 : PESTLE_NUMERICS_DEFAULT;
  pestle_dim_binding_t* list;
  bool fine = read_dims(dims, &list, &import.dim_count) &&
              PyUnicode_FSConverter(path, &bytes);
  import.dims = list;
  if (import.dim_count || as_ort) o.import = &import;
  if (compile.numerics != PESTLE_NUMERICS_DEFAULT) o.compile = &compile;
  pestle_status_t status = NULL;
  if (fine) {
    const char* name = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_session_create(pestle_py.context, name, &o, &self->session);
    Py_END_ALLOW_THREADS;
  }
  Py_XDECREF(bytes);
  free(list);
  return fine && pestle_py_ok(status);
}

static PyObject* session_new(PyTypeObject* type, PyObject* args,
                             PyObject* kwargs) {
  (void)kwargs;
  session_t* self = (session_t*)PyType_GenericAlloc(type, 0);
  if (self && !create(self, args)) Py_CLEAR(self);
  return (PyObject*)self;
}

static void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  pestle_session_t* session = of(self);
  // It may wait for its thread.
  Py_BEGIN_ALLOW_THREADS;
  pestle_session_release(session);
  Py_END_ALLOW_THREADS;
  PyObject_Free(self);
  Py_DECREF(type);
}

// --- Inputs and outputs ---

static PyObject* dims_of(const pestle_io_info_t* info) {
  PyObject* dims = PyTuple_New(info->rank);
  for (int32_t d = 0; dims && d < info->rank; ++d) {
    PyObject* dim = info->dims[d] == PESTLE_DIM_DYNAMIC
                        ? Py_NewRef(Py_None)
                        : PyLong_FromLongLong(info->dims[d]);
    if (!dim || PyTuple_SetItem(dims, d, dim) < 0) Py_CLEAR(dims);
  }
  return dims;
}

static PyObject* inputs_of(PyObject* self, void* unused) {
  (void)unused;
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < pestle_session_input_count(of(self)); ++i) {
    pestle_io_info_t info = pestle_session_input(of(self), i);
    PyObject* dtype = pestle_py_dtype(info.dtype);
    PyObject* dims = dtype ? dims_of(&info) : NULL;
    PyObject* row =
        dims ? Py_BuildValue("(sOO)", info.name, dtype, dims) : NULL;
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
    Py_XDECREF(dims);
    Py_XDECREF(dtype);
  }
  return list;
}

static PyObject* outputs_of(PyObject* self, void* unused) {
  (void)unused;
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < pestle_session_output_count(of(self)); ++i) {
    PyObject* name =
        PyUnicode_FromString(pestle_session_output_name(of(self), i));
    if (!name || PyList_Append(list, name) < 0) Py_CLEAR(list);
    Py_XDECREF(name);
  }
  return list;
}

// --- Runs ---

// An output's memory until nobody sees it.
typedef struct output_t {
  pestle_session_t* session;
  pestle_tensor_t tensor;
} output_t;

static void release_output(void* self) {
  output_t* output = self;
  pestle_session_tensor_release(output->session, &output->tensor);
  pestle_session_release(output->session);
  free(output);
}

// Takes |tensor| over; NULL and an exception.
static PyObject* wrap_output(pestle_session_t* session,
                             pestle_tensor_t* tensor) {
  output_t* output = malloc(sizeof(*output));
  pestle_device_t* host = NULL;
  pestle_array_t* array = NULL;
  pestle_status_t status = NULL;
  if (output) {
    *output = (output_t){session, *tensor};
    pestle_session_retain(session);
    pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                            .release = release_output,
                                            .release_self = output};
    status = pestle_context_device(pestle_py.context, "cpu", &host);
    if (!status) status = pestle_array_wrap(host, tensor, &options, &array);
    if (!status) return pestle_py_wrap(array);
    pestle_session_release(session);
    free(output);
  }
  pestle_session_tensor_release(session, tensor);
  if (!status) return PyErr_NoMemory();
  (void)pestle_py_ok(status);
  return NULL;
}

typedef struct call_t {
  pestle_named_tensor_t *inputs, *outputs;
  pestle_array_t** arrays;
  size_t input_count, output_count;
} call_t;

static void end_call(call_t* call) {
  for (size_t i = 0; i < call->input_count; ++i)
    pestle_py_release(call->arrays[i]);
  free(call->inputs);
  free(call->outputs);
  free(call->arrays);
}

// |arrays|: a list of arrays by place; |wanted|: a list of names.
static bool read_call(PyObject* arrays, PyObject* wanted, call_t* call) {
  Py_ssize_t inputs = PyList_Size(arrays), outputs = PyList_Size(wanted);
  if (inputs < 0 || outputs < 0) return false;
  call->inputs = calloc((size_t)inputs + 1, sizeof(*call->inputs));
  call->outputs = calloc((size_t)outputs + 1, sizeof(*call->outputs));
  call->arrays = calloc((size_t)inputs + 1, sizeof(pestle_array_t*));
  if (!call->inputs || !call->outputs || !call->arrays) {
    PyErr_NoMemory();
    return false;
  }
  for (Py_ssize_t i = 0; i < inputs; ++i) {
    PyObject* object = PyList_GetItem(arrays, i);
    if (!pestle_py_is_array(object)) {
      PyErr_Format(PyExc_TypeError, "input %zd is no array", i);
      return false;
    }
    if (!pestle_py_has_value(pestle_py_array(object), "a session"))
      return false;
    call->arrays[i] = pestle_py_array(object);
    pestle_array_retain(call->arrays[i]);
    ++call->input_count;
  }
  for (Py_ssize_t i = 0; i < outputs; ++i) {
    const char* name = PyUnicode_AsUTF8AndSize(PyList_GetItem(wanted, i), NULL);
    if (!name) return false;
    call->outputs[i].name = name;
    ++call->output_count;
  }
  return true;
}

// Those of a run whose inputs have the numbers of |words|, a list of str, behind the
// model's own; false with an exception.
static bool make_strings(pestle_session_t* session, PyObject* words,
                         pestle_strings_t** out) {
  if (!pestle_py_ok(pestle_session_strings_create(session, out))) return false;
  for (Py_ssize_t i = 0; i < PyList_Size(words); ++i) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(PyList_GetItem(words, i), &size);
    pestle_string_t word = {text, (size_t)size};
    int32_t id;
    if (!text || !pestle_py_ok(pestle_strings_encode(*out, &word, 1, &id)))
      return false;
  }
  return true;
}

// Adds to |words| what the run made, from number |first| on.
static bool take_strings(const pestle_strings_t* strings, size_t first,
                         PyObject* words) {
  for (size_t i = first; i < pestle_strings_count(strings); ++i) {
    int32_t id = (int32_t)i;
    pestle_string_t word;
    PyObject* text = NULL;
    if (pestle_py_ok(pestle_strings_decode(strings, &id, 1, &word)))
      text = PyUnicode_DecodeUTF8(word.data, (Py_ssize_t)word.size, NULL);
    bool fine = text && PyList_Append(words, text) == 0;
    Py_XDECREF(text);
    if (!fine) return false;
  }
  return true;
}

static pestle_status_t do_call(pestle_session_t* session, call_t* call,
                               pestle_strings_t* strings) {
  pestle_run_options_t options = {.struct_size = sizeof(options),
                                  .strings = strings};
  for (size_t i = 0; i < call->input_count; ++i)
    PESTLE_TRY(pestle_array_data(call->arrays[i], &call->inputs[i].tensor));
  return pestle_session_run(session, call->inputs, call->input_count,
                            call->outputs, call->output_count, &options);
}

static PyObject* wrap_outputs(pestle_session_t* session, call_t* call) {
  PyObject* list = PyList_New((Py_ssize_t)call->output_count);
  for (size_t i = 0; i < call->output_count; ++i) {
    pestle_tensor_t* tensor = &call->outputs[i].tensor;
    PyObject* array = list ? wrap_output(session, tensor) : NULL;
    if (array && PyList_SetItem(list, (Py_ssize_t)i, array) == 0) continue;
    if (!list) pestle_session_tensor_release(session, tensor);
    Py_CLEAR(list);
  }
  return list;
}

static PyObject* run(PyObject* self, PyObject* args) {
  PyObject *arrays, *wanted, *words = NULL, *list = NULL;
  pestle_strings_t* strings = NULL;
  call_t call = {.inputs = NULL};
  if (!PyArg_ParseTuple(args, "O!O!|O!:run", &PyList_Type, &arrays,
                        &PyList_Type, &wanted, &PyList_Type, &words)) {
    return NULL;
  }
  if (read_call(arrays, wanted, &call) &&
      (!words || make_strings(of(self), words, &strings))) {
    pestle_status_t status;
    size_t given = pestle_strings_count(strings);
    Py_BEGIN_ALLOW_THREADS;
    status = do_call(of(self), &call, strings);
    Py_END_ALLOW_THREADS;
    if (pestle_py_ok(status)) list = wrap_outputs(of(self), &call);
    if (list && words && !take_strings(strings, given, words)) Py_CLEAR(list);
  }
  pestle_strings_release(strings);
  end_call(&call);
  return list;
}

static PyObject* wait(PyObject* self, PyObject* seconds) {
  double most = seconds == Py_None ? 0 : PyFloat_AsDouble(seconds);
  if (PyErr_Occurred()) return NULL;
  int64_t end = pestle_clock_ns() + (int64_t)(most * 1e9);
  for (;;) {
    // Ctrl-C is looked at ten times a second.
    enum { TURN_NS = 100000000 };
    int64_t next = pestle_clock_ns() + TURN_NS;
    bool is_last = seconds != Py_None && next >= end;
    pestle_control_t control = {.struct_size = sizeof(control),
                                .deadline_ns = is_last ? end : next};
    pestle_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_session_wait(of(self), &control);
    Py_END_ALLOW_THREADS;
    if (!status) Py_RETURN_NONE;
    bool goes_on = !is_last && pestle_status_code(status) ==
                                   PESTLE_STATUS_DEADLINE_EXCEEDED;
    if (!goes_on) {
      (void)pestle_py_ok(status);
      return NULL;
    }
    pestle_status_release(status);
    if (PyErr_CheckSignals() < 0) return NULL;
  }
}

// --- What it says ---

static PyObject* stats(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_session_stats_t s = {.struct_size = sizeof(s)};
  if (!pestle_py_ok(pestle_session_stats(of(self), &s))) return NULL;
  const struct {
    const char* name;
    uint64_t value;
  } rows[] = {{"runs", s.runs},
              {"padded_runs", s.padded_runs},
              {"failed_runs", s.failed_runs},
              {"rows", s.rows},
              {"padding", s.padding},
              {"compiles", s.compiles},
              {"failed_compiles", s.failed_compiles},
              {"waits", s.waits},
              {"evictions", s.evictions},
              {"compile_ns", (uint64_t)s.compile_ns},
              {"executables", s.executables},
              {"shapes", s.shapes},
              {"queued", s.queued},
              {"buffer_bytes", s.buffer_bytes},
              {"quick", s.quick},
              {"quick_compiles", s.quick_compiles},
              {"replaced", s.replaced},
              {"arena_bytes", s.arena_bytes}};
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < sizeof(rows) / sizeof(*rows); ++i) {
    PyObject* value = PyLong_FromUnsignedLongLong(rows[i].value);
    if (!value || PyDict_SetItemString(dict, rows[i].name, value) < 0)
      Py_CLEAR(dict);
    Py_XDECREF(value);
  }
  return dict;
}

// Rows of C while the session's lock is held, when nothing of Python may run.
typedef struct shape_row_t {
  struct shape_row_t* next;
  char *text, *note;
  pestle_session_shape_t shape;
} shape_row_t;

typedef struct shape_rows_t {
  shape_row_t *first, **last;
  bool lacks_memory;
} shape_rows_t;

static void keep_shape(void* user, const pestle_session_shape_t* shape) {
  shape_rows_t* rows = user;
  shape_row_t* row = calloc(1, sizeof(*row));
  if (row) {
    *rows->last = row;
    rows->last = &row->next;
    row->shape = *shape;
    row->text = strdup(shape->text);
    row->note = strdup(shape->note);
  }
  rows->lacks_memory |= !row || !row->text || !row->note;
}

static PyObject* shape_of(const shape_row_t* row) {
  static const char* const states[] = {"ready", "padded", "queued", "failed",
                                       "quick"};
  int32_t state = row->shape.state;
  const char* name =
      state >= 0 && state <= PESTLE_SESSION_QUICK ? states[state] : "unknown";
  return Py_BuildValue("{s:s,s:s,s:O,s:K,s:s}", "shape", row->text, "state",
                       name, "declared",
                       row->shape.declared ? Py_True : Py_False, "runs",
                       (unsigned long long)row->shape.runs, "note", row->note);
}

static PyObject* shapes(PyObject* self, PyObject* unused) {
  (void)unused;
  shape_rows_t rows = {.first = NULL};
  rows.last = &rows.first;
  bool fine = pestle_py_ok(pestle_session_visit(of(self), keep_shape, &rows));
  if (fine && rows.lacks_memory) fine = PyErr_NoMemory() != NULL;
  PyObject* list = fine ? PyList_New(0) : NULL;
  while (rows.first) {
    shape_row_t* row = rows.first;
    PyObject* made = list ? shape_of(row) : NULL;
    if (list && (!made || PyList_Append(list, made) < 0)) Py_CLEAR(list);
    Py_XDECREF(made);
    rows.first = row->next;
    free(row->text);
    free(row->note);
    free(row);
  }
  return list;
}

// --- Registration ---

static PyMethodDef methods[] = {{"run", run, METH_VARARGS, NULL},
                                {"wait", wait, METH_O, NULL},
                                {"stats", stats, METH_NOARGS, NULL},
                                {"shapes", shapes, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static PyGetSetDef fields[] = {{"inputs", inputs_of, NULL, NULL, NULL},
                               {"outputs", outputs_of, NULL, NULL, NULL},
                               {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {{Py_tp_new, PESTLE_PY_SLOT(session_new)},
                              {Py_tp_dealloc, PESTLE_PY_SLOT(dealloc)},
                              {Py_tp_methods, methods},
                              {Py_tp_getset, fields},
                              {0, NULL}};
static PyType_Spec spec = {"pestle._pestle.RawSession", sizeof(session_t), 0,
                           Py_TPFLAGS_DEFAULT, slots};

bool pestle_py_add_session(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  bool fine = type && PyModule_AddObjectRef(module, "RawSession", type) == 0;
  Py_XDECREF(type);
  return fine;
}
