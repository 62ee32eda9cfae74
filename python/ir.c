// SPDX-License-Identifier: Apache-2.0
// Modules as Python objects: captured, imported, shown at each stage.
#include "ir.h"

#include <stdlib.h>
#include <string.h>

PyObject* pestle_py_module(pestle_module_t* module) {
  pestle_py_module_t* self =
      (pestle_py_module_t*)PyType_GenericAlloc(pestle_py.module_type, 0);
  if (!self) {
    pestle_module_release(module);
    return NULL;
  }
  self->module = module;
  return (PyObject*)self;
}

static pestle_module_t* of(PyObject* self) {
  return ((pestle_py_module_t*)self)->module;
}

static void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  pestle_module_release(of(self));
  PyObject_Free(self);
  Py_DECREF(type);
}

// --- Text ---

static PyObject* text_of(PyObject* self) {
  char* text;
  size_t size;
  if (!pestle_py_ok(pestle_module_print(of(self), 0, &text, &size))) {
    return NULL;
  }
  PyObject* result = PyUnicode_DecodeUTF8(text, (Py_ssize_t)size, "replace");
  pestle_context_free(pestle_py.context, text, size + 1);
  return result;
}

static const char* const stage_names[] = {
    "graph",  "pass", "fused", "schedule", "kernels",
    "source", "asm",  "plan",  "times",    "explain"};

typedef struct dump_t {
  char* text;
  size_t size;
  bool failed;
} dump_t;

static void append(dump_t* dump, const char* text, size_t size) {
  char* longer = realloc(dump->text, dump->size + size + 1);
  if (!longer) {
    dump->failed = true;
    return;
  }
  memcpy(longer + dump->size, text, size);
  dump->text = longer;
  dump->size += size;
}

static void on_dump(void* user, pestle_stage_t stage, const char* name,
                    const char* text, size_t size) {
  dump_t* dump = user;
  (void)stage;
  if (name && *name) {
    append(dump, "// ", 3);
    append(dump, name, strlen(name));
    append(dump, "\n", 1);
  }
  append(dump, text, size);
  append(dump, "\n", 1);
}

// dump(stage, device): what pestle_compile() tells of one stage.
static PyObject* dump_stage(PyObject* self, PyObject* args) {
  const char* name;
  PyObject* spec = NULL;
  pestle_device_t* device;
  int stage = 0;
  if (!PyArg_ParseTuple(args, "s|O:dump", &name, &spec) ||
      !pestle_py_as_device(spec, &device)) {
    return NULL;
  }
  while (stage < PESTLE_STAGE_COUNT && strcmp(stage_names[stage], name))
    ++stage;
  if (stage == PESTLE_STAGE_COUNT) {
    PyErr_Format(PyExc_ValueError,
                 "there is no stage '%s': graph, fused, schedule, kernels, "
                 "source, asm, plan, times and explain are",
                 name);
    return NULL;
  }
  dump_t dump = {NULL, 0, false};
  pestle_compile_options_t options = {.struct_size = sizeof(options),
                                      .no_cache = true,
                                      .dump_stages = 1u << stage,
                                      .dump = on_dump,
                                      .dump_user = &dump,
                                      .control = pestle_py_control(NULL)};
  pestle_plan_t* plan = NULL;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_compile(pestle_py.context, of(self), device, &options, &plan);
  Py_END_ALLOW_THREADS;
  pestle_plan_release(plan);
  PyObject* text = NULL;
  if (pestle_py_ok(status)) {
    text = dump.failed ? PyErr_NoMemory()
                       : PyUnicode_DecodeUTF8(dump.text ? dump.text : "",
                                              (Py_ssize_t)dump.size, "replace");
  }
  free(dump.text);
  return text;
}

// --- Bytes ---

static PyObject* serialize(PyObject* self, PyObject* unused) {
  void* data;
  size_t size;
  (void)unused;
  if (!pestle_py_ok(pestle_module_serialize(of(self), &data, &size))) {
    return NULL;
  }
  PyObject* bytes = PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
  pestle_context_free(pestle_py.context, data, size);
  return bytes;
}

// save_plan(path, device): compiles, and writes what runs.
static PyObject* save_plan(PyObject* self, PyObject* args) {
  const char* path;
  PyObject* spec = NULL;
  pestle_device_t* device;
  pestle_plan_t* plan = NULL;
  if (!PyArg_ParseTuple(args, "s|O:save_plan", &path, &spec) ||
      !pestle_py_as_device(spec, &device)) {
    return NULL;
  }
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_compile(pestle_py.context, of(self), device, NULL, &plan);
  if (!status) status = pestle_plan_save(plan, path);
  Py_END_ALLOW_THREADS;
  pestle_plan_release(plan);
  if (!pestle_py_ok(status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* inputs_of(PyObject* self, void* unused) {
  (void)unused;
  pestle_function_t* entry = pestle_module_entry(of(self));
  size_t count = pestle_function_argument_count(entry);
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; ++i) {
    pestle_type_t type = pestle_value_type(pestle_function_argument(entry, i));
    const char* name = pestle_function_argument_name(entry, i);
    PyObject* dims = PyTuple_New(type.rank);
    for (int32_t d = 0; dims && d < type.rank; ++d) {
      PyObject* dim = type.dims[d] == PESTLE_DIM_DYNAMIC
                          ? Py_NewRef(Py_None)
                          : PyLong_FromLongLong(type.dims[d]);
      PyTuple_SetItem(dims, d, dim);
    }
    PyObject* row =
        Py_BuildValue("(zNN)", name, pestle_py_dtype(type.dtype), dims);
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

// The numbers of those inputs or outputs that are strings. A module that is
// specialised later has no results to count yet.
static PyObject* of_strings(const pestle_module_t* module, size_t count,
                            bool (*is)(const pestle_module_t*, size_t)) {
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; ++i) {
    if (!is(module, i)) continue;
    PyObject* number = PyLong_FromSize_t(i);
    if (!number || PyList_Append(list, number) < 0) Py_CLEAR(list);
    Py_XDECREF(number);
  }
  return list;
}

static PyObject* words_of(const pestle_strings_t* strings) {
  size_t count = pestle_strings_count(strings);
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; ++i) {
    int32_t id = (int32_t)i;
    pestle_string_t word;
    PyObject* text = NULL;
    if (pestle_py_ok(pestle_strings_decode(strings, &id, 1, &word))) {
      text = PyUnicode_DecodeUTF8(word.data, (Py_ssize_t)word.size, NULL);
    }
    if (!text || PyList_Append(list, text) < 0) Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

static PyObject* strings_of(PyObject* self, void* unused) {
  enum { MOST_OUTPUTS = 1024 };
  (void)unused;
  pestle_module_t* module = of(self);
  size_t count = pestle_function_argument_count(pestle_module_entry(module));
  pestle_strings_t* strings;
  if (!pestle_py_ok(pestle_module_strings_create(module, &strings)))
    return NULL;
  PyObject* words = words_of(strings);
  PyObject* in = of_strings(module, count, pestle_module_input_is_strings);
  PyObject* out =
      of_strings(module, MOST_OUTPUTS, pestle_module_output_is_strings);
  pestle_strings_release(strings);
  if (words && in && out) return Py_BuildValue("(NNN)", words, in, out);
  Py_XDECREF(words);
  Py_XDECREF(in);
  Py_XDECREF(out);
  return NULL;
}

static pestle_import_options_t import_options(int as_ort) {
  return (pestle_import_options_t){
      .struct_size = sizeof(pestle_import_options_t),
      .onnx_compat = as_ort ? PESTLE_ONNX_COMPAT_ORT : PESTLE_ONNX_COMPAT_TEXT};
}

static PyObject* import_file(PyObject* self, PyObject* args) {
  (void)self;
  pestle_module_t* module = NULL;
  PyObject *path, *bytes = NULL;
  int as_ort = 0;
  if (!PyArg_ParseTuple(args, "O|p:import_file", &path, &as_ort) ||
      !pestle_py_context() || !PyUnicode_FSConverter(path, &bytes)) {
    return NULL;
  }
  const pestle_import_options_t options = import_options(as_ort);
  pestle_status_t status;
  const char* name = PyBytes_AsString(bytes);
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_import_file(pestle_py.context, name, &options, &module);
  Py_END_ALLOW_THREADS;
  Py_DECREF(bytes);
  return pestle_py_ok(status) ? pestle_py_module(module) : NULL;
}

static PyObject* import_bytes(PyObject* self, PyObject* args) {
  (void)self;
  Py_buffer data;
  const char* name = NULL;
  pestle_module_t* module = NULL;
  int as_ort = 0;
  if (!PyArg_ParseTuple(args, "s*|zp:import_bytes", &data, &name, &as_ort))
    return NULL;
  const pestle_import_options_t options = import_options(as_ort);
  pestle_status_t status = NULL;
  bool ready = pestle_py_context() != NULL;
  if (ready) {
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_import_bytes(pestle_py.context, data.buf, (size_t)data.len,
                                 name, &options, &module);
    Py_END_ALLOW_THREADS;
  }
  PyBuffer_Release(&data);
  return ready && pestle_py_ok(status) ? pestle_py_module(module) : NULL;
}

// --- Captures ---

static bool read_spec(PyObject* spec, pestle_type_t* out_type) {
  if (!pestle_py_is_array(spec)) {
    PyErr_Format(PyExc_TypeError, "%R is no array to take a type from", spec);
    return false;
  }
  *out_type = pestle_array_type(pestle_py_array(spec));
  return true;
}

PyObject* pestle_py_wrap_all(pestle_array_t** arrays, const uint8_t* weak,
                             size_t count) {
  PyObject* tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; i < count; ++i) {
    PyObject* array = tuple ? pestle_py_wrap(arrays[i]) : NULL;
    if (!tuple) {
      pestle_array_release(arrays[i]);
      continue;
    }
    if (array && weak) ((pestle_py_array_t*)array)->weak = weak[i];
    if (!array || PyTuple_SetItem(tuple, (Py_ssize_t)i, array) < 0) {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

static _Thread_local int capturing;

bool pestle_py_is_capturing(void) {
  return capturing > 0;
}

bool pestle_py_capture(pestle_device_t* device, const pestle_type_t* types,
                       const uint8_t* weak, size_t count, PyObject* function,
                       PyObject** out_arrays, pestle_module_t** out_module,
                       pestle_capture_t** out_capture) {
  pestle_array_t** arguments = malloc((count + 1) * sizeof(*arguments));
  *out_module = NULL;
  *out_arrays = NULL;
  if (!arguments) return PyErr_NoMemory() != NULL;
  if (!pestle_py_ok(
          pestle_capture_begin(device, types, count, out_capture, arguments))) {
    free(arguments);
    return false;
  }
  PyObject* tuple = pestle_py_wrap_all(arguments, weak, count);
  free(arguments);
  ++capturing;
  // What the function makes lies where it runs.
  pestle_device_t* here = pestle_py_set_here(device);
  PyObject* results =
      tuple ? PyObject_CallFunctionObjArgs(function, tuple, NULL) : NULL;
  pestle_py_set_here(here);
  --capturing;
  Py_XDECREF(tuple);
  PyObject* list = results ? PySequence_Tuple(results) : NULL;
  Py_XDECREF(results);
  Py_ssize_t n = list ? PyTuple_Size(list) : 0;
  pestle_array_t** arrays = malloc(((size_t)n + 1) * sizeof(*arrays));
  bool fine = list && arrays;
  for (Py_ssize_t i = 0; fine && i < n; ++i) {
    PyObject* item = PyTuple_GetItem(list, i);
    fine = pestle_py_is_array(item);
    if (fine) {
      arrays[i] = pestle_py_array(item);
    } else {
      PyErr_Format(PyExc_TypeError, "result %zd is %R, no array", i, item);
    }
  }
  fine = fine && pestle_py_ok(pestle_capture_end(*out_capture, arrays,
                                                 (size_t)n, out_module));
  free(arrays);
  if (fine) {
    *out_arrays = list;
    return true;
  }
  Py_XDECREF(list);
  pestle_capture_release(*out_capture);
  *out_capture = NULL;
  return false;
}

PyObject* pestle_py_hidden(const pestle_capture_t* captured) {
  size_t count = pestle_capture_hidden_count(captured);
  PyObject* hidden = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; hidden && i < count; ++i) {
    pestle_array_t* array = pestle_capture_hidden(captured, i);
    pestle_array_retain(array);
    PyObject* wrapped = pestle_py_wrap(array);
    if (!wrapped || PyTuple_SetItem(hidden, (Py_ssize_t)i, wrapped) < 0) {
      Py_CLEAR(hidden);
    }
  }
  return hidden;
}

static void release_capture(PyObject* capsule) {
  pestle_capture_release(PyCapsule_GetPointer(capsule, "pestle.capture"));
}

// capture(function, specs, device) -> (module, hidden, results, capture). function
// takes a tuple of arrays and gives one.
static PyObject* capture(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *function, *specs, *spec = NULL, *results = NULL;
  pestle_device_t* device;
  pestle_module_t* module;
  pestle_capture_t* captured = NULL;
  if (!PyArg_ParseTuple(args, "OO!|O:capture", &function, &PyTuple_Type, &specs,
                        &spec) ||
      !pestle_py_as_device(spec, &device)) {
    return NULL;
  }
  size_t count = (size_t)PyTuple_Size(specs);
  pestle_type_t* types = malloc((count + 1) * sizeof(*types));
  uint8_t* weak = malloc(count + 1);
  bool fine = types && weak;
  for (size_t i = 0; fine && i < count; ++i) {
    PyObject* item = PyTuple_GetItem(specs, (Py_ssize_t)i);
    fine = read_spec(item, &types[i]);
    if (fine) weak[i] = ((pestle_py_array_t*)item)->weak;
  }
  fine = fine && pestle_py_capture(device, types, weak, count, function,
                                   &results, &module, &captured);
  free(types);
  free(weak);
  if (!fine) return NULL;
  PyObject* capsule =
      PyCapsule_New(captured, "pestle.capture", release_capture);
  if (!capsule) pestle_capture_release(captured);
  PyObject* hidden = capsule ? pestle_py_hidden(captured) : NULL;
  PyObject* object = pestle_py_module(module);
  if (object && hidden) {
    return Py_BuildValue("(NNNN)", object, hidden, results, capsule);
  }
  Py_XDECREF(object);
  Py_XDECREF(hidden);
  Py_XDECREF(capsule);
  Py_DECREF(results);
  return NULL;
}

pestle_array_t** pestle_py_arrays_of(PyObject* tuple) {
  Py_ssize_t count = PyTuple_Size(tuple);
  pestle_array_t** arrays = malloc(((size_t)count + 1) * sizeof(*arrays));
  if (!arrays) PyErr_NoMemory();
  for (Py_ssize_t i = 0; arrays && i < count; ++i) {
    PyObject* item = PyTuple_GetItem(tuple, i);
    arrays[i] = pestle_py_is_array(item) ? pestle_py_array(item) : NULL;
  }
  return arrays;
}

// rebind(capture, arrays, results) -> (module, hidden): the same capture with arrays
// as arguments behind its own.
static PyObject* rebind(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *capsule, *bound, *results;
  pestle_module_t* module = NULL;
  if (!PyArg_ParseTuple(args, "OO!O!:rebind", &capsule, &PyTuple_Type, &bound,
                        &PyTuple_Type, &results)) {
    return NULL;
  }
  pestle_capture_t* captured = PyCapsule_GetPointer(capsule, "pestle.capture");
  if (!captured) return NULL;
  pestle_array_t **first = pestle_py_arrays_of(bound),
                 **second = pestle_py_arrays_of(results);
  bool fine = first && second &&
              pestle_py_ok(pestle_capture_bind(captured, first,
                                               (size_t)PyTuple_Size(bound))) &&
              pestle_py_ok(pestle_capture_end(
                  captured, second, (size_t)PyTuple_Size(results), &module));
  free(first);
  free(second);
  PyObject* object = fine ? pestle_py_module(module) : NULL;
  PyObject* hidden = object ? pestle_py_hidden(captured) : NULL;
  if (hidden) return Py_BuildValue("(NN)", object, hidden);
  Py_XDECREF(object);
  return NULL;
}

// --- Programs: modules that are called ---

typedef struct program_t {
  PyObject_HEAD pestle_jit_t* jit;
  size_t result_count;
} program_t;

static PyObject* program_new(PyTypeObject* type, PyObject* args,
                             PyObject* kwargs) {
  (void)kwargs;
  PyObject *module, *spec = NULL;
  pestle_device_t* device;
  if (!PyArg_ParseTuple(args, "O!|O:Program", pestle_py.module_type, &module,
                        &spec) ||
      !pestle_py_as_device(spec, &device)) {
    return NULL;
  }
  program_t* self = (program_t*)PyType_GenericAlloc(type, 0);
  if (self && !pestle_py_ok(pestle_jit_create(device, of(module), NULL, NULL,
                                              &self->jit))) {
    Py_CLEAR(self);
  }
  return (PyObject*)self;
}

static void program_dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  pestle_jit_release(((program_t*)self)->jit);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject* program_call(PyObject* self, PyObject* args,
                              PyObject* kwargs) {
  enum { RESULTS = 512 };
  (void)kwargs;
  PyObject* list;
  if (!PyArg_ParseTuple(args, "O:Program", &list)) return NULL;
  PyObject* tuple = PySequence_Tuple(list);
  pestle_array_t** arrays = tuple ? pestle_py_arrays_of(tuple) : NULL;
  pestle_array_t* out[RESULTS];
  pestle_status_t status = NULL;
  PyObject* result = NULL;
  if (arrays) {
    size_t count = (size_t)PyTuple_Size(tuple), made = 0;
    pestle_jit_t* jit = ((program_t*)self)->jit;
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_jit_call(jit, arrays, count, NULL, out, RESULTS);
    Py_END_ALLOW_THREADS;
    if (pestle_py_ok(status)) {
      while (made < RESULTS && out[made])
        ++made;
      result = pestle_py_wrap_all(out, NULL, made);
    }
  }
  free(arrays);
  Py_XDECREF(tuple);
  return result;
}

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "A module that is called with a list of arrays."},
    {Py_tp_new, PESTLE_PY_SLOT(program_new)},
    {Py_tp_dealloc, PESTLE_PY_SLOT(program_dealloc)},
    {Py_tp_call, PESTLE_PY_SLOT(program_call)},
    {0, NULL},
};
static PyType_Spec program_spec = {"pestle.Program", sizeof(program_t), 0,
                                   Py_TPFLAGS_DEFAULT, program_slots};

static PyMethodDef methods[] = {
    {"dump", dump_stage, METH_VARARGS,
     "dump(stage, device=None, /)\n--\n\nThe text of a stage of compiling the "
     "module for device: graph, fused, schedule,\nkernels, source, asm, plan, "
     "times or explain."},
    {"serialize", serialize, METH_NOARGS,
     "serialize()\n--\n\nThe module as bytes, for pestle.load()."},
    {"save_plan", save_plan, METH_VARARGS,
     "save_plan(path, device=None, /)\n--\n\nCompiles for device and writes "
     "what runs there."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef fields[] = {
    {"inputs", inputs_of, NULL,
     "(name, dtype, shape) of each argument; None where an extent is open.",
     NULL},
    {"strings", strings_of, NULL,
     "The strings of an ONNX model, and which arguments and results are their "
     "numbers.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "A graph; str() gives its StableHLO text.\n"
     "\n"
     ">>> str(pt.lower(lambda x: -x, "
     "pt.ones((2,))).module).count(\"stablehlo.negate\")\n"
     "1"},
    {Py_tp_dealloc, PESTLE_PY_SLOT(dealloc)},
    {Py_tp_str, PESTLE_PY_SLOT(text_of)},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};
static PyType_Spec spec_of_module = {
    "pestle.Module", sizeof(pestle_py_module_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

static PyMethodDef functions[] = {
    {"capture", capture, METH_VARARGS, NULL},
    {"rebind", rebind, METH_VARARGS, NULL},
    {"close", pestle_py_close, METH_VARARGS, NULL},
    {"import_file", import_file, METH_VARARGS, NULL},
    {"import_bytes", import_bytes, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

bool pestle_py_add_ir(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec_of_module);
  if (!type) return false;
  pestle_py.module_type = (PyTypeObject*)type;
  PyObject* program = PyType_FromSpec(&program_spec);
  if (!program || PyModule_AddObjectRef(module, "Program", program) < 0) {
    return false;
  }
  return PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "Module", type) == 0;
}
