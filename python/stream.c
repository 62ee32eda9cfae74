// SPDX-License-Identifier: Apache-2.0
// pestle.Stream; eval(), async_eval() and synchronize().
#include "stream.h"

#include <stdlib.h>

typedef struct stream_t {
  PyObject_HEAD pestle_stream_t* stream;
  pestle_device_t* device;
} stream_t;

pestle_stream_t* pestle_py_stream_of(PyObject* stream) {
  return ((stream_t*)stream)->stream;
}
pestle_device_t* pestle_py_stream_device(PyObject* stream) {
  return ((stream_t*)stream)->device;
}

// --- The type ---

static PyObject* make(pestle_device_t* device) {
  stream_t* self = (stream_t*)PyType_GenericAlloc(pestle_py.stream_type, 0);
  if (!self) return NULL;
  self->device = device;
  if (pestle_py_ok(pestle_stream_create(device, &self->stream))) {
    return (PyObject*)self;
  }
  Py_DECREF(self);
  return NULL;
}

static PyObject* stream_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  static char* names[] = {"device", NULL};
  (void)type;
  PyObject* spec = NULL;
  pestle_device_t* device;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Stream", names, &spec) ||
      !pestle_py_as_device(spec, &device)) {
    return NULL;
  }
  return make(device);
}

static void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  pestle_stream_t* stream = pestle_py_stream_of(self);
  // It may wait for its work.
  Py_BEGIN_ALLOW_THREADS;
  pestle_stream_release(stream);
  Py_END_ALLOW_THREADS;
  PyObject_Free(self);
  Py_DECREF(type);
}

static bool wait(PyObject* stream) {
  pestle_status_t status;
  Py_INCREF(stream);
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_stream_synchronize(pestle_py_stream_of(stream));
  Py_END_ALLOW_THREADS;
  Py_DECREF(stream);
  return pestle_py_ok(status);
}

static PyObject* synchronize_stream(PyObject* self, PyObject* unused) {
  (void)unused;
  if (!wait(self)) return NULL;
  Py_RETURN_NONE;
}

static PyObject* get_device(PyObject* self, void* unused) {
  (void)unused;
  return pestle_py_device(pestle_py_stream_device(self));
}

static PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat(
      "<pestle.Stream of %s>",
      pestle_device_name(pestle_py_stream_device(self)));
}

// --- The one of a device ---

enum { QUEUES = 64 };
static PyObject* queues[QUEUES];

// The stream of a device that nobody made, borrowed; NULL and an exception.
static PyObject* queue_of(pestle_device_t* device) {
  size_t i = 0;
  while (i < QUEUES && queues[i] &&
         pestle_py_stream_device(queues[i]) != device) {
    ++i;
  }
  if (i == QUEUES) {
    PyErr_Format(PyExc_RuntimeError, "streams of %d devices are open", QUEUES);
    return NULL;
  }
  if (!queues[i]) queues[i] = make(device);
  return queues[i];
}

static PyObject* default_stream(PyObject* self, PyObject* spec) {
  (void)self;
  pestle_device_t* device;
  if (Py_TYPE(spec) == pestle_py.stream_type) return Py_NewRef(spec);
  if (!pestle_py_as_device(spec, &device)) return NULL;
  return Py_XNewRef(queue_of(device));
}

// --- Evaluation ---

// The arrays among the leaves of |args|, with a reference each, which end_arrays()
// gives up.
typedef struct arrays_t {
  pestle_array_t** list;
  size_t count;
  pestle_array_t* few[32];
} arrays_t;

static bool take_arrays(arrays_t* arrays, PyObject* const* args,
                        Py_ssize_t count) {
  pestle_tree_t tree;
  pestle_tree_init(&tree);
  bool fine = true;
  arrays->count = 0;
  arrays->list = arrays->few;
  for (Py_ssize_t i = 0; fine && i < count; ++i)
    fine = pestle_tree_flatten(&tree, args[i]);
  if (fine && tree.leaf_count > sizeof(arrays->few) / sizeof(*arrays->few)) {
    arrays->list = malloc(tree.leaf_count * sizeof(*arrays->list));
    fine = arrays->list || PyErr_NoMemory();
  }
  for (size_t i = 0; fine && i < tree.leaf_count; ++i) {
    if (!pestle_py_is_array(tree.leaves[i])) continue;
    pestle_array_t* array = pestle_py_array(tree.leaves[i]);
    pestle_array_retain(array);
    arrays->list[arrays->count++] = array;
  }
  pestle_tree_deinit(&tree);
  return fine;
}

static void end_arrays(arrays_t* arrays) {
  for (size_t i = 0; i < arrays->count; ++i)
    pestle_py_release(arrays->list[i]);
  if (arrays->list != arrays->few) free(arrays->list);
}

// The one keyword that there is: stream, a stream or a device; NULL: not given.
static bool read_stream(const char* name, PyObject* const* args,
                        Py_ssize_t count, PyObject* names,
                        PyObject** out_stream) {
  *out_stream = NULL;
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* key = PyTuple_GetItem(names, i);
    if (PyUnicode_CompareWithASCIIString(key, "stream") != 0) {
      PyErr_Format(PyExc_TypeError, "%s() has no keyword %R: stream is one",
                   name, key);
      return false;
    }
    if (args[count + i] == Py_None) continue;
    *out_stream = default_stream(NULL, args[count + i]);
    if (!*out_stream) return false;
  }
  return true;
}

static PyObject* eval(PyObject* self, PyObject* const* args, Py_ssize_t count,
                      PyObject* names) {
  (void)self;
  arrays_t arrays;
  PyObject *stream, *result = NULL;
  if (!read_stream("eval", args, count, names, &stream)) return NULL;
  if (take_arrays(&arrays, args, count)) {
    pestle_status_t status = NULL;
    if (stream) {
      Py_BEGIN_ALLOW_THREADS;
      status = pestle_array_eval(arrays.list, arrays.count,
                                 pestle_py_stream_of(stream));
      Py_END_ALLOW_THREADS;
    }
    bool fine = stream ? pestle_py_ok(status)
                       : pestle_py_eval(arrays.list, arrays.count);
    if (fine) result = Py_NewRef(Py_None);
  }
  end_arrays(&arrays);
  Py_XDECREF(stream);
  return result;
}

static bool begin_one(pestle_array_t* array, PyObject* given) {
  PyObject* stream = given ? given : queue_of(pestle_array_device(array));
  if (!stream) return false;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_eval_async(&array, 1, pestle_py_stream_of(stream));
  Py_END_ALLOW_THREADS;
  return pestle_py_ok(status);
}

static PyObject* async_eval(PyObject* self, PyObject* const* args,
                            Py_ssize_t count, PyObject* names) {
  (void)self;
  arrays_t arrays;
  PyObject* stream;
  if (!read_stream("async_eval", args, count, names, &stream)) return NULL;
  bool fine = take_arrays(&arrays, args, count);
  for (size_t i = 0; fine && i < arrays.count; ++i)
    fine = begin_one(arrays.list[i], stream);
  end_arrays(&arrays);
  Py_XDECREF(stream);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

static PyObject* synchronize(PyObject* self, PyObject* const* args,
                             Py_ssize_t count, PyObject* names) {
  (void)self;
  PyObject* stream;
  if (count > 1) {
    PyErr_Format(PyExc_TypeError,
                 "synchronize() takes a stream or nothing, %zd are given",
                 count);
    return NULL;
  }
  if (!read_stream("synchronize", args, count, names, &stream)) return NULL;
  if (count && args[0] != Py_None) {
    Py_XDECREF(stream);
    stream = default_stream(NULL, args[0]);
    if (!stream) return NULL;
  }
  bool fine = !stream || wait(stream);
  for (size_t i = 0; fine && !stream && i < QUEUES && queues[i]; ++i)
    fine = wait(queues[i]);
  Py_XDECREF(stream);
  if (!fine) return NULL;
  Py_RETURN_NONE;
}

// --- Registration ---

static PyMethodDef methods[] = {
    {"synchronize", synchronize_stream, METH_NOARGS,
     "synchronize()\n--\n\nWaits for the work of the stream. Raises what it "
     "failed with."},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef fields[] = {
    {"device", get_device, NULL, "The device whose work it orders.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "Stream(device=None)\n--\n\nA queue of work of a device: what one thread "
     "puts there runs in order, beside\nthat of other streams.\n"
     "\n"
     "device: a device, its name, or None: where new arrays are made. One "
     "thread at a time\n"
     "uses a stream.\n"
     "Raises TypeError for no device, Error for one that is not there.\n"
     "\n"
     ">>> s = pt.Stream()\n"
     ">>> pt.async_eval(pt.ones((2,)) + 1, stream=s)\n"
     ">>> s.synchronize()"},
    {Py_tp_new, PESTLE_PY_SLOT(stream_new)},
    {Py_tp_dealloc, PESTLE_PY_SLOT(dealloc)},
    {Py_tp_repr, PESTLE_PY_SLOT(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};
static PyType_Spec spec = {"pestle.Stream", sizeof(stream_t), 0,
                           Py_TPFLAGS_DEFAULT, slots};

#define FAST_NAMED(function) \
  (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS
static PyMethodDef functions[] = {
    {"default_stream", default_stream, METH_O, NULL},
    {"eval", FAST_NAMED(eval),
     "eval(*trees, stream=None)\n--\n\nComputes the arrays of trees, and "
     "returns "
     "when they are there.\n"
     "\n"
     "trees: arrays of any dtype, shape and device, and trees of them; stream: "
     "a Stream, a\n"
     "device, which has one, or None.\n"
     "Raises what the computation raises, ValueError for traced and deleted "
     "arrays, TypeError\n"
     "for no stream.\n"
     "\n"
     ">>> x = pt.ones((2,)) + 1\n"
     ">>> pt.eval(x, {\"y\": x * 2})\n"
     ">>> x.state\n"
     "'data'"},
    {"async_eval", FAST_NAMED(async_eval),
     "async_eval(*trees, stream=None)\n--\n\nBegins to compute the arrays of "
     "trees, on a stream of their device: what reads\nthem waits, and what "
     "fails "
     "is raised there.\n"
     "\n"
     "trees: arrays of any dtype, shape and device, and trees of them; stream: "
     "a Stream, a\n"
     "device, which has one, or None.\n"
     "Raises ValueError for traced and deleted arrays, TypeError for no "
     "stream.\n"
     "\n"
     ">>> x = pt.ones((2,)) + 1\n"
     ">>> pt.async_eval(x)\n"
     ">>> x.tolist()\n"
     "[2.0, 2.0]"},
    {"synchronize", FAST_NAMED(synchronize),
     "synchronize(stream=None)\n--\n\nWaits for the work of a stream, or for "
     "what async_eval() began.\n"
     "\n"
     "stream: a Stream, a device, which has one, or None. Raises what the "
     "work\n"
     "failed with, TypeError for no stream.\n"
     "\n"
     ">>> pt.synchronize()"},
    {NULL, NULL, 0, NULL},
};

bool pestle_py_add_stream(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return false;
  pestle_py.stream_type = (PyTypeObject*)type;
  return PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "Stream", type) == 0;
}
