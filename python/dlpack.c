// SPDX-License-Identifier: Apache-2.0
// Tensors of other libraries in Python: capsules both ways, what producers are asked
// for, the exchange table both ways (docs/dlpack.md). What a tensor may be is decided
// in the library; here are the names, the keywords and the exceptions.
#include <string.h>

#include "base/dlpack_abi.h"
#include "base/dynlib.h"
#include "module.h"

typedef struct DLManagedTensorVersioned versioned_t;
typedef struct DLManagedTensor legacy_t;

// --- Exceptions ---

// What memory cannot be, or is not, is a BufferError, but for no memory at all.
static bool ok(pestle_status_t status) {
  if (!status) return true;
  if (pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY) {
    return pestle_py_ok(status);
  }
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  PyErr_SetString(PyExc_BufferError, text);
  pestle_status_release(status);
  return false;
}

static bool refuse_traced(const pestle_array_t* array) {
  if (pestle_array_state(array) != PESTLE_ARRAY_TRACED) return true;
  PyErr_SetString(PyExc_TypeError,
                  "an array that is being traced has no memory; return it, or "
                  "use pestle.kernel / pure_callback");
  return false;
}

// None, False, True: as needed, never, always.
static bool read_copy(PyObject* object, int32_t* out_copy) {
  *out_copy = PESTLE_COPY_IF_NEEDED;
  if (!object || object == Py_None) return true;
  int truth = PyObject_IsTrue(object);
  *out_copy = truth ? PESTLE_COPY_ALWAYS : PESTLE_COPY_NEVER;
  return truth >= 0;
}

static bool read_pair(PyObject* object, const char* name, long out[2]) {
  if (!PyTuple_Check(object) || PyTuple_Size(object) != 2) {
    PyErr_Format(PyExc_TypeError, "%s is %R, not a tuple of two integers", name,
                 object);
    return false;
  }
  for (Py_ssize_t i = 0; i < 2; ++i) {
    out[i] = PyLong_AsLong(PyTuple_GetItem(object, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  return true;
}

// --- Producer ---

// What a stream of the consumer's means on devices of |type|.
static bool read_stream(PyObject* object, int32_t type,
                        pestle_dlpack_export_options_t* options) {
  bool none = !object || object == Py_None;
  options->order = PESTLE_DLPACK_HOST;
  if (type == PESTLE_DL_CPU) {
    if (none) return true;
    PyErr_Format(PyExc_ValueError,
                 "stream is %R: memory of a CPU has no streams", object);
    return false;
  }
  if (none) {
    if (type != PESTLE_DL_CUDA) return true;
    options->order = PESTLE_DLPACK_STREAM;
    options->native_stream = (void*)1;  // the legacy default stream
    return true;
  }
  if (!PyLong_Check(object) || PyBool_Check(object)) {
    PyErr_Format(PyExc_TypeError, "stream is %R, not None or an integer",
                 object);
    return false;
  }
  long long number = PyLong_AsLongLong(object);
  if (number == -1 && PyErr_Occurred()) return false;
  if (number == -1) {
    options->order = PESTLE_DLPACK_NONE;
    return true;
  }
  if (number <= 0) {
    PyErr_Format(PyExc_ValueError,
                 number ? "stream is %R, which is none"
                        : "stream is %R, which is ambiguous: 1 is the legacy "
                          "default stream, 2 that of the thread, -1 none",
                 object);
    return false;
  }
  enum { LEAST_ADDRESS = 4096 };
  if (type == PESTLE_DL_OPENCL && number < LEAST_ADDRESS) {
    PyErr_Format(PyExc_ValueError,
                 "stream is %R, which is no address of a cl_command_queue",
                 object);
    return false;
  }
  if (type == PESTLE_DL_VULKAN) {
    PyErr_SetString(PyExc_ValueError,
                    "Vulkan has no streams that others can be told: pass None");
    return false;
  }
  options->order = PESTLE_DLPACK_STREAM;
  options->native_stream = (void*)(uintptr_t)number;
  return true;
}

// The device that the consumer wants, where that is another than the array's.
static bool read_device(PyObject* object, const pestle_array_t* array,
                        pestle_device_t** out_device) {
  *out_device = NULL;
  long pair[2];
  if (!object || object == Py_None) return true;
  if (!read_pair(object, "dl_device", pair)) return false;
  pestle_device_t* own = pestle_array_device(array);
  pestle_dl_device_t dl = pestle_dlpack_device(own);
  pestle_dl_device_t wanted = {(int32_t)pair[0], (int32_t)pair[1]};
  if (dl.device_type == wanted.device_type &&
      dl.device_id == wanted.device_id) {
    return true;
  }
  bool host = wanted.device_type == PESTLE_DL_CUDA_HOST && !wanted.device_id;
  if (host && dl.device_type == PESTLE_DL_CPU) return true;
  return ok(pestle_dlpack_find_device(pestle_device_context(own), wanted,
                                      out_device));
}

typedef struct keywords_t {
  PyObject *stream, *max_version, *dl_device, *copy;
} keywords_t;

static bool read_keywords(PyObject* const* args, Py_ssize_t count,
                          PyObject* names, keywords_t* out) {
  *out = (keywords_t){NULL, NULL, NULL, NULL};
  if (count) {
    PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keywords alone");
    return false;
  }
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GetItem(names, i);
    PyObject** place =
        !PyUnicode_CompareWithASCIIString(name, "stream") ? &out->stream
        : !PyUnicode_CompareWithASCIIString(name, "max_version")
            ? &out->max_version
        : !PyUnicode_CompareWithASCIIString(name, "dl_device") ? &out->dl_device
        : !PyUnicode_CompareWithASCIIString(name, "copy")      ? &out->copy
                                                               : NULL;
    if (!place) {
      PyErr_Format(PyExc_TypeError, "__dlpack__() has no keyword %R", name);
      return false;
    }
    *place = args[i];
  }
  return true;
}

static void end_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, PESTLE_DL_CAPSULE_VERSIONED)) return;
  versioned_t* m = PyCapsule_GetPointer(capsule, PESTLE_DL_CAPSULE_VERSIONED);
  if (m->deleter) m->deleter(m);
}

static void end_legacy(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, PESTLE_DL_CAPSULE)) return;
  legacy_t* m = PyCapsule_GetPointer(capsule, PESTLE_DL_CAPSULE);
  if (m->deleter) m->deleter(m);
}

// Launched or done; a failure of the evaluation is no matter of the protocol.
static bool evaluate(pestle_array_t* array) {
  if (pestle_array_state(array) == PESTLE_ARRAY_DATA) return true;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_eval_async(&array, 1, NULL);
  Py_END_ALLOW_THREADS;
  return pestle_py_ok(status);
}

static PyObject* export_versioned(pestle_array_t* array,
                                  const pestle_dlpack_export_options_t* o) {
  versioned_t* m;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_export(array, o, &m);
  Py_END_ALLOW_THREADS;
  if (!ok(status)) return NULL;
  PyObject* capsule =
      PyCapsule_New(m, PESTLE_DL_CAPSULE_VERSIONED, end_versioned);
  if (!capsule) m->deleter(m);
  return capsule;
}

static PyObject* export_legacy(pestle_array_t* array,
                               const pestle_dlpack_export_options_t* o) {
  legacy_t* m;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_export_legacy(array, o, &m);
  Py_END_ALLOW_THREADS;
  if (!ok(status)) return NULL;
  PyObject* capsule = PyCapsule_New(m, PESTLE_DL_CAPSULE, end_legacy);
  if (!capsule) m->deleter(m);
  return capsule;
}

PyObject* pestle_py_dlpack(PyObject* self, PyObject* const* args,
                           Py_ssize_t count, PyObject* names) {
  pestle_array_t* array = pestle_py_array(self);
  pestle_dlpack_export_options_t options = {.struct_size = sizeof(options)};
  keywords_t k;
  long version[2] = {0, 0};
  if (!read_keywords(args, count, names, &k) || !refuse_traced(array) ||
      !read_copy(k.copy, &options.copy) ||
      !read_device(k.dl_device, array, &options.device)) {
    return NULL;
  }
  if (k.max_version && k.max_version != Py_None &&
      !read_pair(k.max_version, "max_version", version)) {
    return NULL;
  }
  if (version[0] < 0 || version[1] < 0) {
    PyErr_Format(PyExc_ValueError, "max_version is %R", k.max_version);
    return NULL;
  }
  pestle_device_t* device =
      options.device ? options.device : pestle_array_device(array);
  if (!read_stream(k.stream, pestle_dlpack_device(device).device_type,
                   &options) ||
      !evaluate(array)) {
    return NULL;
  }
  options.max_major = version[0] > 1 ? 1 : (uint32_t)version[0];
  options.max_minor = version[0] > 1 ? 3 : (uint32_t)version[1];
  return version[0] ? export_versioned(array, &options)
                    : export_legacy(array, &options);
}

PyObject* pestle_py_dlpack_device(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_dl_device_t dl =
      pestle_dlpack_device(pestle_array_device(pestle_py_array(self)));
  return Py_BuildValue("(ii)", (int)dl.device_type, (int)dl.device_id);
}

// --- Consumer: a tensor ---

static bool is_of_host(int32_t type) {
  return type == PESTLE_DL_CPU || type == PESTLE_DL_CUDA_HOST ||
         type == PESTLE_DL_ROCM_HOST;
}

typedef struct import_t {
  pestle_dlpack_import_options_t options;
  bool slow;  // others may run meanwhile
} import_t;

// Memory of the host becomes that of the CPU device where new arrays are made.
static void look_at(import_t* in, const pestle_tensor_t* t) {
  bool is_host = is_of_host(t->device.device_type);
  if (!in->options.device && is_host &&
      pestle_device_dl(pestle_py_here()).device_type == PESTLE_DEVICE_CPU) {
    in->options.device = pestle_py_here();
    in->slow = in->options.copy == PESTLE_COPY_ALWAYS || t->dtype.bits < 32;
    return;
  }
  in->slow = in->options.copy == PESTLE_COPY_ALWAYS || in->options.device ||
             t->device.device_type != PESTLE_DL_CPU || t->dtype.bits < 32;
}

static PyObject* import_versioned(import_t* in, versioned_t* m) {
  pestle_array_t* array = NULL;
  pestle_status_t status;
  pestle_context_t* context = pestle_py_context();
  if (!context) return NULL;
  if (m->version.major == PESTLE_DL_MAJOR) look_at(in, &m->dl_tensor);
  if (in->slow) {
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_array_import(context, m, &in->options, &array);
    Py_END_ALLOW_THREADS;
  } else {
    status = pestle_array_import(context, m, &in->options, &array);
  }
  return ok(status) ? pestle_py_wrap(array) : NULL;
}

static PyObject* import_legacy(import_t* in, legacy_t* m) {
  pestle_array_t* array = NULL;
  pestle_status_t status;
  pestle_context_t* context = pestle_py_context();
  if (!context) return NULL;
  look_at(in, &m->dl_tensor);
  if (in->slow) {
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_array_import_legacy(context, m, &in->options, &array);
    Py_END_ALLOW_THREADS;
  } else {
    status = pestle_array_import_legacy(context, m, &in->options, &array);
  }
  return ok(status) ? pestle_py_wrap(array) : NULL;
}

// --- Consumer: a capsule ---

// The capsule's name decides what is in it. It is renamed after success alone: until
// then it stays its owner's, who may know another consumer.
static PyObject* import_capsule(import_t* in, PyObject* capsule) {
  PyObject* result;
  const char* used;
  const char* name = PyCapsule_GetName(capsule);
  if (!name && PyErr_Occurred()) return NULL;
  if (name && !strcmp(name, PESTLE_DL_CAPSULE_VERSIONED)) {
    result = import_versioned(in, PyCapsule_GetPointer(capsule, name));
    used = PESTLE_DL_CAPSULE_VERSIONED_USED;
  } else if (name && !strcmp(name, PESTLE_DL_CAPSULE)) {
    result = import_legacy(in, PyCapsule_GetPointer(capsule, name));
    used = PESTLE_DL_CAPSULE_USED;
  } else if (name && (!strcmp(name, PESTLE_DL_CAPSULE_USED) ||
                      !strcmp(name, PESTLE_DL_CAPSULE_VERSIONED_USED))) {
    PyErr_Format(PyExc_ValueError,
                 "the capsule '%s' is already consumed: ask its producer for "
                 "another one",
                 name);
    return NULL;
  } else {
    PyErr_Format(PyExc_ValueError,
                 "a capsule of the name '%s' is no tensor: that is 'dltensor' "
                 "or 'dltensor_versioned'",
                 name ? name : "(none)");
    return NULL;
  }
  if (!result) return NULL;
  if (PyCapsule_SetName(capsule, used) < 0) Py_CLEAR(result);
  return result;
}

// Lets go of a capsule that we asked for and could not use: what it holds is ended
// by its destructor, or by us where it has none.
static void drop_capsule(PyObject* capsule) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  bool ends = PyCapsule_GetDestructor(capsule) != NULL;
  PyErr_Clear();
  if (!ends && PyCapsule_IsValid(capsule, PESTLE_DL_CAPSULE_VERSIONED)) {
    versioned_t* m = PyCapsule_GetPointer(capsule, PESTLE_DL_CAPSULE_VERSIONED);
    (void)PyCapsule_SetName(capsule, PESTLE_DL_CAPSULE_VERSIONED_USED);
    if (m->deleter) m->deleter(m);
  } else if (!ends && PyCapsule_IsValid(capsule, PESTLE_DL_CAPSULE)) {
    legacy_t* m = PyCapsule_GetPointer(capsule, PESTLE_DL_CAPSULE);
    (void)PyCapsule_SetName(capsule, PESTLE_DL_CAPSULE_USED);
    if (m->deleter) m->deleter(m);
  }
  Py_DECREF(capsule);
  PyErr_Restore(type, value, trace);
}

// --- Consumer: __dlpack__ ---

// What the call is made with; NULL: left out.
typedef struct call_t {
  PyObject* object;
  bool versions;        // max_version
  bool wishes;          // copy and dl_device
  int32_t copy;         // pestle_copy_t
  bool to_host;         // dl_device
  int32_t device_type;  // of the producer
} call_t;

static bool put(PyObject* kwargs, const char* name, PyObject* value) {
  bool fine = value && PyDict_SetItemString(kwargs, name, value) == 0;
  Py_XDECREF(value);
  return fine;
}

// A method of an object by its name, without a bound method in between. The limited
// API names it from 3.12 on; every CPython since 3.9 has it.
typedef PyObject* (*call_method_t)(PyObject* name, PyObject* const* args,
                                   size_t nargsf, PyObject* names);

// What producers are called with, made with the module.
static struct {
  PyObject *dlpack, *dlpack_device;  // names of methods
  PyObject *is_neg, *is_conj;
  PyObject *version, *names;  // (1, 3) and ("max_version",)
  call_method_t call_method;  // NULL where the interpreter has none
} methods;

static bool make_methods(void) {
  methods.dlpack = PyUnicode_InternFromString("__dlpack__");
  methods.dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
  methods.is_neg = PyUnicode_InternFromString("is_neg");
  methods.is_conj = PyUnicode_InternFromString("is_conj");
  methods.version = Py_BuildValue("(ii)", PESTLE_DL_MAJOR, PESTLE_DL_MINOR);
  PyObject* name = PyUnicode_InternFromString("max_version");
  methods.names = name ? PyTuple_New(1) : NULL;
  if (methods.names) PyTuple_SetItem(methods.names, 0, name);
  methods.call_method = (call_method_t)pestle_dynlib_function(
      pestle_dynlib_process(), "PyObject_VectorcallMethod");
  return methods.dlpack && methods.dlpack_device && methods.is_neg &&
         methods.is_conj && methods.version && methods.names;
}

// |object|.__dlpack__(max_version=(1, 3)), which nearly all calls are.
static PyObject* call_plain(PyObject* object) {
  if (methods.call_method) {
    PyObject* args[] = {object, methods.version};
    return methods.call_method(methods.dlpack, args, 1, methods.names);
  }
  PyObject* function = PyObject_GetAttr(object, methods.dlpack);
  PyObject* args = PyTuple_New(0);
  PyObject* kwargs = PyDict_New();
  PyObject* result = NULL;
  if (function && args && kwargs &&
      PyDict_SetItemString(kwargs, "max_version", methods.version) == 0) {
    result = PyObject_Call(function, args, kwargs);
  }
  Py_XDECREF(function);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

static PyObject* call_with(const call_t* c) {
  if (c->versions && !c->to_host && c->copy == PESTLE_COPY_IF_NEEDED &&
      c->device_type != PESTLE_DL_CUDA) {
    return call_plain(c->object);
  }
  PyObject* function = PyObject_GetAttr(c->object, methods.dlpack);
  PyObject* kwargs = PyDict_New();
  PyObject* args = PyTuple_New(0);
  PyObject* result = NULL;
  bool fine = function && kwargs && args;
  // On CUDA our work waits for the legacy default stream, which waits for theirs.
  if (fine && c->device_type == PESTLE_DL_CUDA) {
    fine = put(kwargs, "stream", PyLong_FromLong(1));
  }
  if (fine && c->versions) {
    fine = put(kwargs, "max_version", Py_NewRef(methods.version));
  }
  if (fine && c->wishes && c->to_host) {
    fine = put(kwargs, "dl_device", Py_BuildValue("(ii)", PESTLE_DL_CPU, 0));
  }
  if (fine && c->wishes && c->copy != PESTLE_COPY_IF_NEEDED) {
    fine = put(kwargs, "copy", PyBool_FromLong(c->copy == PESTLE_COPY_ALWAYS));
  }
  if (fine) result = PyObject_Call(function, args, kwargs);
  Py_XDECREF(function);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

// Whether the call itself refused a keyword: what is raised inside of a producer has
// a traceback from there.
static bool was_refused(void) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  bool outside = !trace;
  PyErr_Restore(type, value, trace);
  return outside;
}

static PyObject* ask(call_t* c) {
  PyObject* capsule = call_with(c);
  bool wishes = c->to_host || c->copy != PESTLE_COPY_IF_NEEDED;
  // One that does not copy is copied here.
  bool cannot_copy = !capsule && c->copy == PESTLE_COPY_ALWAYS && !c->to_host &&
                     PyErr_ExceptionMatches(PyExc_BufferError);
  if (!capsule && wishes && (cannot_copy || was_refused())) {
    PyErr_Clear();
    c->wishes = false;
    capsule = call_with(c);
  }
  if (!capsule && was_refused()) {
    PyErr_Clear();
    c->wishes = c->versions = false;
    capsule = call_with(c);
  }
  if (capsule && !PyCapsule_CheckExact(capsule)) {
    PyErr_Format(PyExc_TypeError, "__dlpack__() returned %R, not a capsule",
                 capsule);
    Py_CLEAR(capsule);
  }
  return capsule;
}

// An enumeration is an integer, or becomes one.
static bool read_number(PyObject* object, int32_t* out) {
  long number;
  if (PyLong_CheckExact(object)) {
    number = PyLong_AsLong(object);
  } else {
    PyObject* integer = PyNumber_Long(object);
    if (!integer) return false;
    number = PyLong_AsLong(integer);
    Py_DECREF(integer);
  }
  *out = (int32_t)number;
  return number != -1 || !PyErr_Occurred();
}

static bool read_their_device(PyObject* object, pestle_dl_device_t* out) {
  PyObject* pair =
      methods.call_method
          ? methods.call_method(methods.dlpack_device, &object, 1, NULL)
          : PyObject_CallMethodObjArgs(object, methods.dlpack_device, NULL);
  if (!pair) return false;
  bool fine = PyTuple_Check(pair) && PyTuple_Size(pair) == 2 &&
              read_number(PyTuple_GetItem(pair, 0), &out->device_type) &&
              read_number(PyTuple_GetItem(pair, 1), &out->device_id);
  if (!fine && !PyErr_Occurred()) {
    PyErr_Format(PyExc_TypeError,
                 "__dlpack_device__() returned %R, not a tuple of two integers",
                 pair);
  }
  Py_DECREF(pair);
  return fine;
}

static PyObject* import_producer(import_t* in, PyObject* object) {
  pestle_dl_device_t at = {PESTLE_DL_CPU, 0};
  const pestle_device_t* wanted = in->options.device;
  call_t c = {.object = object,
              .versions = true,
              .wishes = true,
              .copy = in->options.copy};
  if (!read_their_device(object, &at)) return NULL;
  c.device_type = at.device_type;
  // Only the producer can reach memory of a device that none of ours is.
  c.to_host = wanted && !is_of_host(at.device_type) &&
              pestle_dlpack_device(wanted).device_type == PESTLE_DL_CPU;
  if (c.to_host && c.copy == PESTLE_COPY_NEVER) {
    PyErr_SetString(PyExc_BufferError,
                    "the tensor cannot be used without a copy: another device "
                    "is asked for");
    return NULL;
  }
  PyObject* capsule = ask(&c);
  if (!capsule) return NULL;
  if (at.device_type == PESTLE_DL_CUDA && !(c.to_host && c.wishes)) {
    in->options.has_native_stream = true;
    in->options.native_stream = (void*)1;
  }
  PyObject* result = import_capsule(in, capsule);
  if (result) {
    Py_DECREF(capsule);
  } else {
    drop_capsule(capsule);
  }
  return result;
}

// --- Consumer: the exchange table ---

// Types whose table was looked for; they are kept, so that no other type can have
// the address of one.
enum { KNOWN = 8 };
static struct {
  PyTypeObject* type;
  const pestle_dl_exchange_t* table;  // NULL: it has none
  // Has is_neg() and is_conj(): its values may be others than its memory has.
  bool has_marks;
} known[KNOWN];
static unsigned known_next;

static const pestle_dl_exchange_t* read_table(PyTypeObject* type) {
  PyObject* capsule =
      PyObject_GetAttrString((PyObject*)type, "__dlpack_c_exchange_api__");
  const pestle_dl_exchange_header_t* header = NULL;
  if (capsule && PyCapsule_IsValid(capsule, PESTLE_DL_CAPSULE_EXCHANGE)) {
    header = PyCapsule_GetPointer(capsule, PESTLE_DL_CAPSULE_EXCHANGE);
  }
  Py_XDECREF(capsule);
  PyErr_Clear();
  while (header && header->version.major != PESTLE_DL_MAJOR)
    header = header->previous;
  const pestle_dl_exchange_t* table = (const void*)header;
  return table && table->from_object && table->current_stream ? table : NULL;
}

static const pestle_dl_exchange_t* table_of(PyTypeObject* type,
                                            bool* out_has_marks) {
  for (unsigned i = 0; i < KNOWN; ++i) {
    if (known[i].type != type) continue;
    *out_has_marks = known[i].has_marks;
    return known[i].table;
  }
  *out_has_marks = PyObject_HasAttr((PyObject*)type, methods.is_neg) &&
                   PyObject_HasAttr((PyObject*)type, methods.is_conj);
  const pestle_dl_exchange_t* table = read_table(type);
  PyTypeObject* old = known[known_next].type;
  Py_INCREF((PyObject*)type);
  known[known_next].type = type;
  known[known_next].table = table;
  known[known_next].has_marks = *out_has_marks;
  known_next = (known_next + 1) % KNOWN;
  Py_XDECREF((PyObject*)old);
  return table;
}

// Whether |object| says that its memory has its values, as no struct can say: torch
// negates and conjugates when an element is read.
static bool has_its_values(PyObject* object, bool is_complex) {
  PyObject* const names[] = {methods.is_neg, methods.is_conj};
  for (size_t i = 0; i < (is_complex ? 2 : 1); ++i) {
    PyObject* said = PyObject_CallMethodObjArgs(object, names[i], NULL);
    int other = said ? PyObject_IsTrue(said) : -1;
    Py_XDECREF(said);
    if (!other) continue;
    if (other > 0) {
      PyErr_Format(PyExc_BufferError,
                   "the memory of the tensor has other values than it: %S() is "
                   "true; its resolve_%s() makes one that has its own",
                   names[i], i ? "conj" : "neg");
    }
    return false;
  }
  return true;
}

static PyObject* import_by_table(import_t* in,
                                 const pestle_dl_exchange_t* table,
                                 bool has_marks, PyObject* object) {
  versioned_t* m = NULL;
  // One that says nothing of its failure gives nothing.
  if (table->from_object(object, &m) || !m) {
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_BufferError, "the producer gave no tensor");
    }
    return NULL;
  }
  pestle_dl_device_t at = m->dl_tensor.device;
  bool fine = !has_marks || has_its_values(object, m->dl_tensor.dtype.code ==
                                                       PESTLE_DL_COMPLEX);
  if (fine && !is_of_host(at.device_type)) {
    fine = !table->current_stream(at.device_type, at.device_id,
                                  &in->options.native_stream);
    in->options.has_native_stream = fine;
  }
  PyObject* result = fine ? import_versioned(in, m) : NULL;
  if (!result) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (m->deleter) m->deleter(m);
    PyErr_Restore(type, value, trace);
  }
  return result;
}

// --- from_dlpack ---

static PyObject* no_producer(PyObject* object) {
  bool shows = PyObject_HasAttrString(object, "__array__") ||
               PyObject_CheckBuffer(object);
  PyErr_Format(
      PyExc_TypeError, "%R has no __dlpack__%s", (PyObject*)Py_TYPE(object),
      shows ? "; it shows its memory otherwise: pestle.asarray() takes "
              "that"
            : "; pestle.asarray() takes numbers and lists");
  return NULL;
}

static PyObject* from_own(const import_t* in, PyObject* object) {
  pestle_array_t* array = pestle_py_array(object);
  pestle_device_t* device = in->options.device;
  bool moves = device && device != pestle_array_device(array);
  if (!refuse_traced(array)) return NULL;
  if (moves && in->options.copy == PESTLE_COPY_NEVER) {
    PyErr_SetString(PyExc_BufferError,
                    "the array cannot be used without a copy: another device "
                    "is asked for");
    return NULL;
  }
  if (!moves && in->options.copy != PESTLE_COPY_ALWAYS) {
    pestle_array_retain(array);
    return pestle_py_wrap(array);
  }
  pestle_array_t* copy = NULL;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_copy_to(
      array, device ? device : pestle_array_device(array), &copy);
  Py_END_ALLOW_THREADS;
  return pestle_py_result(status, &copy);
}

static PyObject* from_dlpack(PyObject* module, PyObject* const* args,
                             Py_ssize_t count, PyObject* names) {
  PyObject *device = NULL, *copy = NULL;
  import_t in = {.options = {.struct_size = sizeof(in.options)}};
  (void)module;
  if (count != 1) {
    PyErr_Format(PyExc_TypeError,
                 "from_dlpack() takes one positional argument, %zd are given",
                 count);
    return NULL;
  }
  PyObject* object = args[0];
  Py_ssize_t named = names ? PyTuple_Size(names) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* name = PyTuple_GetItem(names, i);
    bool is_device = !PyUnicode_CompareWithASCIIString(name, "device");
    if (!is_device && PyUnicode_CompareWithASCIIString(name, "copy")) {
      PyErr_Format(PyExc_TypeError, "from_dlpack() has no keyword %R", name);
      return NULL;
    }
    *(is_device ? &device : &copy) = args[count + i];
  }
  if (!read_copy(copy, &in.options.copy) || !pestle_py_context()) return NULL;
  if (device && device != Py_None &&
      !pestle_py_as_device(device, &in.options.device)) {
    return NULL;
  }
  if (pestle_py_is_array(object)) return from_own(&in, object);
  if (PyCapsule_CheckExact(object)) return import_capsule(&in, object);
  bool has_marks;
  const pestle_dl_exchange_t* table = table_of(Py_TYPE(object), &has_marks);
  // A copy for the host of memory that we do not reach is the producer's.
  if (table && !in.options.device && !in.options.copy) {
    PyObject* made = import_by_table(&in, table, has_marks, object);
    // What it cannot give, __dlpack__() says in the protocol's words.
    if (made || !PyErr_ExceptionMatches(PyExc_RuntimeError)) return made;
    PyErr_Clear();
  }
  if (has_marks && !has_its_values(object, true)) return NULL;
  PyObject* result = import_producer(&in, object);
  if (result || !PyErr_ExceptionMatches(PyExc_AttributeError)) return result;
  // Its own, or that it has no such method? Nothing may be asked while it is set.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (PyObject_HasAttrString(object, "__dlpack__")) {
    PyErr_Restore(type, value, trace);
    return NULL;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  return no_producer(object);
}

// --- The table that we offer ---

static int allocate(pestle_tensor_t* prototype, versioned_t** out, void* self,
                    void (*set_error)(void* self, const char* kind,
                                      const char* message)) {
  *out = NULL;
  // Whoever has the table has an array, and so the context is there.
  pestle_status_t status =
      pestle_dlpack_allocate(pestle_py.context, prototype, out);
  if (!status) return 0;
  char text[2048];
  pestle_status_format(status, text, sizeof(text));
  bool memory = pestle_status_code(status) == PESTLE_STATUS_OUT_OF_MEMORY;
  pestle_status_release(status);
  if (set_error) set_error(self, memory ? "MemoryError" : "BufferError", text);
  return -1;
}

static bool check_own(PyObject* object) {
  if (pestle_py_is_array(object)) return refuse_traced(pestle_py_array(object));
  PyErr_Format(PyExc_TypeError, "%R is no pestle.Array",
               (PyObject*)Py_TYPE(object));
  return false;
}

// Without a stream to hand out the work is waited for.
static int from_object(void* object, versioned_t** out) {
  *out = NULL;
  if (!check_own(object)) return -1;
  pestle_array_t* array = pestle_py_array(object);
  if (!evaluate(array)) return -1;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_export(array, NULL, out);
  Py_END_ALLOW_THREADS;
  return ok(status) ? 0 : -1;
}

static int to_object(versioned_t* tensor, void** out_object) {
  import_t in = {.options = {.struct_size = sizeof(in.options)}};
  *out_object = import_versioned(&in, tensor);
  return *out_object ? 0 : -1;
}

static int borrow(void* object, pestle_tensor_t* out) {
  if (!check_own(object)) return -1;
  pestle_array_t* array = pestle_py_array(object);
  if (!evaluate(array)) return -1;
  return ok(pestle_array_borrow(array, out)) ? 0 : -1;
}

static int current_stream(int32_t device_type, int32_t device_id,
                          void** out_stream) {
  (void)device_type;
  (void)device_id;
  *out_stream = NULL;
  return 0;
}

static const pestle_dl_exchange_t exchange = {
    .header = {.version = {PESTLE_DL_MAJOR, PESTLE_DL_MINOR}},
    .allocate = allocate,
    .from_object = from_object,
    .to_object = to_object,
    .borrow = borrow,
    .current_stream = current_stream,
};

// --- Start ---

static PyMethodDef function = {
    "from_dlpack", (PyCFunction)(void (*)(void))from_dlpack,
    METH_FASTCALL | METH_KEYWORDS,
    "from_dlpack(x, /, *, device=None, copy=None)\n--\n\n"
    "An array of the memory that x shows by DLPack: a producer, or a "
    "capsule.\n\n"
    "The shape, dtype and strides are x's, and so is the memory, which must "
    "not\n"
    "change while the array sees it. device: where the array is to be; None: "
    "where\n"
    "x is. copy: True always copies, False raises BufferError where a copy is\n"
    "needed, None copies then.\n\n"
    "TypeError: x is no producer. ValueError: a capsule that is no tensor, or "
    "was\n"
    "consumed before. Raises BufferError for memory that cannot be used, with "
    "the\nreason.\n\n"
    ">>> x = pt.asarray([1, 2])\n"
    ">>> pt.from_dlpack(x).tolist()\n"
    "[1, 2]"};

bool pestle_py_add_dlpack(PyObject* module) {
  PyObject* capsule = PyCapsule_New((void*)(uintptr_t)&exchange,
                                    PESTLE_DL_CAPSULE_EXCHANGE, NULL);
  PyObject* callable = PyCFunction_NewEx(&function, NULL, NULL);
  bool fine =
      capsule && callable && make_methods() &&
      PyObject_SetAttrString((PyObject*)pestle_py.array_type,
                             "__dlpack_c_exchange_api__", capsule) == 0 &&
      PyModule_AddObjectRef(module, "from_dlpack", callable) == 0;
  Py_XDECREF(capsule);
  Py_XDECREF(callable);
  return fine;
}
