// SPDX-License-Identifier: Apache-2.0
// Backends: which there are, loading them, what their devices have of memory.
#include <stdlib.h>
#include <string.h>

#include "module.h"

// --- Which there are ---

static PyObject* row_of(const pestle_backend_info_t* info) {
  bool is_cpu = info->device_type == PESTLE_DEVICE_CPU;
  return Py_BuildValue("{sssssssssisiss}", "name", info->name, "path",
                       info->path, "reason", info->reason, "device_type",
                       is_cpu ? "cpu" : "gpu", "score", (int)info->score,
                       "device_count", (int)info->device_count, "build_id",
                       info->build_id);
}

static PyObject* list_backends(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  pestle_context_t* context = pestle_py_context();
  if (!context) return NULL;
  size_t count;
  Py_BEGIN_ALLOW_THREADS;
  count = pestle_context_backend_count(context);
  Py_END_ALLOW_THREADS;
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list && i < count; ++i) {
    pestle_backend_info_t info = {.struct_size = sizeof(info)};
    PyObject* row = NULL;
    if (pestle_py_ok(pestle_context_backend_info(context, i, &info))) {
      row = row_of(&info);
    }
    if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyObject* search_paths(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  pestle_context_t* context = pestle_py_context();
  PyObject* list = context ? PyList_New(0) : NULL;
  size_t count = context ? pestle_context_search_path_count(context) : 0;
  for (size_t i = 0; list && i < count; ++i) {
    PyObject* path =
        PyUnicode_DecodeFSDefault(pestle_context_search_path(context, i));
    if (!path || PyList_Append(list, path) < 0) Py_CLEAR(list);
    Py_XDECREF(path);
  }
  return list;
}

// --- Loading ---

// The texts of a sequence, which must outlive them; NULL and an exception.
static const char** texts_of(PyObject* tuple) {
  Py_ssize_t count = PyTuple_Size(tuple);
  const char** texts = malloc(((size_t)count + 1) * sizeof(*texts));
  if (!texts) PyErr_NoMemory();
  for (Py_ssize_t i = 0; texts && i < count; ++i) {
    texts[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
    if (texts[i]) continue;
    free(texts);
    return NULL;
  }
  return texts;
}

static PyObject* set_search_paths(PyObject* self, PyObject* args) {
  (void)self;
  PyObject* paths;
  pestle_context_t* context = pestle_py_context();
  if (!context ||
      !PyArg_ParseTuple(args, "O!:set_search_paths", &PyTuple_Type, &paths)) {
    return NULL;
  }
  const char** texts = texts_of(paths);
  if (!texts) return NULL;
  pestle_status_t status = pestle_context_set_search_paths(
      context, texts, (size_t)PyTuple_Size(paths));
  free(texts);
  if (!pestle_py_ok(status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* load_backend(PyObject* self, PyObject* args) {
  (void)self;
  const char* path;
  int is_name;
  pestle_context_t* context = pestle_py_context();
  if (!context || !PyArg_ParseTuple(args, "sp:load_backend", &path, &is_name)) {
    return NULL;
  }
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = is_name ? pestle_context_load_best(context, path)
                   : pestle_context_load_backend(context, path);
  Py_END_ALLOW_THREADS;
  if (!pestle_py_ok(status)) return NULL;
  Py_RETURN_NONE;
}

// Asks a Python function; an exception leaves the candidate out.
static bool accept(void* user, const pestle_candidate_t* candidate) {
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* result = PyObject_CallFunction(
      user, "ssi", candidate->name, candidate->path, (int)candidate->score);
  int accepted = result ? PyObject_IsTrue(result) : -1;
  Py_XDECREF(result);
  if (accepted < 0) PyErr_WriteUnraisable(user);
  PyGILState_Release(state);
  return accepted > 0;
}

// load_backends(allowed, blocked, filter)
static PyObject* load_backends(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *allowed, *blocked, *filter;
  pestle_context_t* context = pestle_py_context();
  if (!context ||
      !PyArg_ParseTuple(args, "O!O!O:load_backends", &PyTuple_Type, &allowed,
                        &PyTuple_Type, &blocked, &filter)) {
    return NULL;
  }
  const char** first = texts_of(allowed);
  const char** second = first ? texts_of(blocked) : NULL;
  pestle_status_t status = NULL;
  if (second) {
    pestle_backend_filter_t rules = {
        .struct_size = sizeof(rules),
        .allowed = first,
        .allowed_count = (size_t)PyTuple_Size(allowed),
        .blocked = second,
        .blocked_count = (size_t)PyTuple_Size(blocked),
        .accept = filter == Py_None ? NULL : accept,
        .user = filter};
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_context_load_all(context, &rules);
    Py_END_ALLOW_THREADS;
  }
  bool fine = second != NULL;
  free(first);
  free(second);
  if (!pestle_py_ok(status) || !fine) return NULL;
  Py_RETURN_NONE;
}

static PyObject* list_devices(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  static const char* const types[] = {"gpu", "cpu", "software"};
  pestle_context_t* context = pestle_py_context();
  PyObject* list = context ? PyList_New(0) : NULL;
  for (int t = 0; list && t < 3; ++t) {
    int32_t count = pestle_context_device_count(context, types[t]);
    for (int32_t i = 0; list && i < count; ++i) {
      PyObject* spec = PyUnicode_FromFormat("%s:%d", types[t], (int)i);
      pestle_device_t* device;
      PyObject* object = spec && pestle_py_as_device(spec, &device)
                             ? pestle_py_device(device)
                             : NULL;
      if (!object || PyList_Append(list, object) < 0) Py_CLEAR(list);
      Py_XDECREF(spec);
      Py_XDECREF(object);
    }
  }
  return list;
}

// --- Memory ---

static const struct {
  const char* name;
  pestle_memory_t what;
} memories[] = {
    {"active", PESTLE_MEMORY_ACTIVE},
    {"peak", PESTLE_MEMORY_PEAK},
    {"cache", PESTLE_MEMORY_CACHE},
    {"cache_limit", PESTLE_MEMORY_CACHE_LIMIT},
    {"limit", PESTLE_MEMORY_LIMIT},
    {"wired_limit", PESTLE_MEMORY_WIRED_LIMIT},
};

static bool read_memory(const char* name, pestle_memory_t* out_what) {
  for (size_t i = 0; i < sizeof(memories) / sizeof(memories[0]); ++i) {
    if (strcmp(memories[i].name, name)) continue;
    *out_what = memories[i].what;
    return true;
  }
  PyErr_Format(PyExc_ValueError, "there is no memory number '%s'", name);
  return false;
}

// memory(name, device=None, value=None): a number, or what it was before it was set.
// Without a device of all together.
static PyObject* memory(PyObject* self, PyObject* args) {
  (void)self;
  const char* name;
  PyObject *spec = Py_None, *value = Py_None;
  pestle_memory_t what;
  pestle_device_t* device = NULL;
  uint64_t bytes = 0;
  pestle_context_t* context = pestle_py_context();
  if (!context ||
      !PyArg_ParseTuple(args, "s|OO:memory", &name, &spec, &value) ||
      !read_memory(name, &what) ||
      (spec != Py_None && !pestle_py_as_device(spec, &device))) {
    return NULL;
  }
  pestle_status_t status;
  if (value == Py_None) {
    status = device ? pestle_device_memory_get(device, what, &bytes)
                    : pestle_context_memory_get(context, what, &bytes);
  } else {
    uint64_t wanted = PyLong_AsUnsignedLongLong(value);
    if (PyErr_Occurred()) return NULL;
    status = device ? pestle_device_memory_set(device, what, wanted, &bytes)
                    : pestle_context_memory_set(context, what, wanted, &bytes);
  }
  return pestle_py_ok(status) ? PyLong_FromUnsignedLongLong(bytes) : NULL;
}

static PyMethodDef functions[] = {
    {"backend_list", list_backends, METH_NOARGS, NULL},
    {"search_paths", search_paths, METH_NOARGS, NULL},
    {"set_search_paths", set_search_paths, METH_VARARGS, NULL},
    {"load_backend", load_backend, METH_VARARGS, NULL},
    {"load_backends", load_backends, METH_VARARGS, NULL},
    {"device_list", list_devices, METH_NOARGS, NULL},
    {"memory", memory, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

bool pestle_py_add_backends(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0;
}
