// SPDX-License-Identifier: Apache-2.0
// Functions: what jit() gives. A call flattens its arguments and compares their
// structure, types and static values with those of earlier calls; where none is
// equal it calls the Python function once, with traced arrays.
#include "jit.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/status_copy.h"
#include "ir.h"

#include <structmember.h>

// The protocol of vectorcall is older than the limited API has it: a member
// __vectorcalloffset__, this bit of the type's flags, and a signature.
#define HAVE_VECTORCALL (1ul << 11)
#define NARGS(nargsf) \
  ((Py_ssize_t)((nargsf) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))

// --- Running ---

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

// The first calls compile and are timed; those of a long run let others have the
// interpreter.
static pestle_status_t run(pestle_py_entry_t* entry, pestle_py_call_t* call,
                           pestle_array_t** out) {
  enum { TIMED = 4 };
  pestle_stream_t* stream =
      pestle_py.is_tuned ? pestle_py_stream_on(entry->device) : NULL;
  if (entry->calls >= TIMED && entry->run_ns < PESTLE_PY_LONG_NS &&
      !call->is_late) {
    return pestle_jit_call(entry->jit, call->arrays, call->count, stream, out,
                           entry->out_count);
  }
  pestle_status_t status;
  int64_t begin = now_ns(), end;
  pestle_py_call_own(call);
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_jit_call(entry->jit, call->arrays, call->count, stream, out,
                           entry->out_count);
  end = now_ns();
  Py_END_ALLOW_THREADS;
  if (end - begin < entry->run_ns) entry->run_ns = end - begin;
  ++entry->calls;
  return status;
}

// --- Giving away ---

// In the place of each array that the call gives away stands one that says so. The
// call's reference is the only one then, if the object had the only other.
static bool give(const pestle_py_entry_t* entry, const pestle_py_call_t* call) {
  for (size_t i = 0; i < call->count; ++i) {
    PyObject* leaf = call->tree.leaves[i];
    if (!call->guards[i].is_donated || !pestle_py_is_array(leaf)) continue;
    pestle_py_array_t* object = (pestle_py_array_t*)leaf;
    if (object->deleted && object->array == call->arrays[i]) continue;
    pestle_array_t* gone;
    if (!pestle_py_ok(pestle_array_failed(entry->device, &call->guards[i].type,
                                          pestle_status_retain(entry->donated),
                                          &gone))) {
      return false;
    }
    pestle_array_t* old = object->array;
    pestle_py_linger(old);
    object->array = gone;
    object->deleted = true;
    pestle_py_release(old);
  }
  return true;
}

// After a call that failed: the objects have their arrays again.
static void take_back(const pestle_py_call_t* call) {
  for (size_t i = call->count; i-- > 0;) {
    PyObject* leaf = call->tree.leaves[i];
    if (!call->guards[i].is_donated || !pestle_py_is_array(leaf)) continue;
    pestle_py_array_t* object = (pestle_py_array_t*)leaf;
    if (object->array == call->arrays[i]) continue;
    pestle_array_t* gone = object->array;
    pestle_array_retain(call->arrays[i]);
    object->array = call->arrays[i];
    object->deleted = false;
    pestle_py_release(gone);
  }
}

// The results of a run that a stream does may fail later, somewhere else.
static void note_call(const pestle_py_jit_t* self,
                      const pestle_py_entry_t* entry, pestle_array_t** out) {
  if (!pestle_py.is_tuned || !pestle_py_stream_on(entry->device)) return;
  PyObject* name = PyObject_GetAttrString(self->function, "__qualname__");
  const char* text = name && PyUnicode_Check(name)
                         ? PyUnicode_AsUTF8AndSize(name, NULL)
                         : NULL;
  for (size_t i = 0; i < entry->out_count; ++i)
    pestle_py_set_site(out[i], text ? text : "a function of jit()");
  PyErr_Clear();
  Py_XDECREF(name);
}

static bool run_giving(pestle_py_entry_t* entry, pestle_py_call_t* call,
                       pestle_array_t** out) {
  if (!call->donated_count) return pestle_py_ok(run(entry, call, out));
  pestle_py_call_own(call);
  if (give(entry, call) && pestle_py_ok(run(entry, call, out))) {
    for (size_t i = 0; i < call->count; ++i) {
      if (call->guards[i].is_donated) call->arrays[i] = NULL;
    }
    return true;
  }
  take_back(call);
  return false;
}

// |array| as what |foreign| is.
static PyObject* as_foreign(PyObject* array, PyObject* foreign) {
  PyObject* result =
      array ? pestle_py_hook("like", (PyObject*[]){array, foreign}, 2) : NULL;
  Py_XDECREF(array);
  return result;
}

static PyObject* call_entry(const pestle_py_jit_t* self,
                            pestle_py_entry_t* entry, pestle_py_call_t* call) {
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
  } else if (run_giving(entry, call, out)) {
    note_call(self, entry, out);
    for (bool fine = true; made < count; ++made) {
      objects[made] = fine ? pestle_py_wrap(out[made]) : NULL;
      if (!fine) pestle_array_release(out[made]);
      if (fine && self->like && call->foreign) {
        objects[made] = as_foreign(objects[made], call->foreign);
      }
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
  pestle_py_entry_drop(entry);
  return result;
}

// The trace of a call, made where there is none; NULL and an exception.
static pestle_py_entry_t* entry_of(pestle_py_jit_t* self,
                                   pestle_py_call_t* call,
                                   const pestle_py_given_t* given) {
  pestle_py_entry_t* entry = pestle_py_find(self, call);
  if (entry || PyErr_Occurred()) return entry;
  pestle_py_call_own(call);
  return pestle_py_trace(self, call, given);
}

// The leaves of a call, those of other libraries as arrays.
static PyObject* leaves_of(const pestle_py_call_t* call) {
  PyObject* leaves = PyTuple_New((Py_ssize_t)call->count);
  for (size_t i = 0; leaves && i < call->count; ++i) {
    PyObject* leaf = call->tree.leaves[i];
    bool is_own = pestle_py_is_array(leaf) || call->guards[i].weak;
    if (!is_own) pestle_array_retain(call->arrays[i]);
    PyObject* item = is_own ? Py_NewRef(leaf) : pestle_py_wrap(call->arrays[i]);
    if (!item || PyTuple_SetItem(leaves, (Py_ssize_t)i, item) < 0) {
      Py_CLEAR(leaves);
    }
  }
  return leaves;
}

// A function of a function that is traced is a part of it. |call| may be NULL: it was
// not read to its end.
static PyObject* call_inline(const pestle_py_jit_t* self,
                             const pestle_py_call_t* call,
                             const pestle_py_given_t* given) {
  PyObject *args = NULL, *kwargs = NULL, *result = NULL, *leaves = NULL;
  bool is_foreign = call && call->foreign;
  if (is_foreign) leaves = leaves_of(call);
  bool fine = is_foreign ? leaves && pestle_py_rebuild(self, call, given,
                                                       leaves, &args, &kwargs)
                         : pestle_py_to_objects(given, &args, &kwargs);
  if (fine) result = PyObject_Call(self->function, args, kwargs);
  Py_XDECREF(leaves);
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

// What takes arguments of any kind, as transforms do: others than arrays are static.
static PyObject* call_any(PyObject* self, const pestle_py_given_t* given) {
  PyObject *args, *kwargs, *result = NULL;
  PyErr_Clear();
  if (pestle_py_to_objects(given, &args, &kwargs)) {
    result = pestle_py_hook(
        "any", (PyObject*[]){self, args, kwargs ? kwargs : Py_None}, 3);
  }
  Py_XDECREF(args);
  Py_XDECREF(kwargs);
  return result;
}

static PyObject* jit_vectorcall(PyObject* object, PyObject* const* args,
                                size_t nargsf, PyObject* names) {
  pestle_py_jit_t* self = (pestle_py_jit_t*)object;
  pestle_py_given_t given = {args, NARGS(nargsf), names};
  pestle_py_call_t call;
  PyObject* result = NULL;
  pestle_py_call_begin(&call);
  if (pestle_py_call_read(self, &call, &given)) {
    // What it reads from around it may be traced too.
    if (call.is_traced || pestle_py_is_capturing()) {
      pestle_py_call_own(&call);
      result = call_inline(self, &call, &given);
    } else {
      pestle_py_entry_t* entry = entry_of(self, &call, &given);
      if (entry) result = call_entry(self, entry, &call);
    }
  } else if (call.has_other && pestle_py_is_capturing()) {
    // Static to the function that is traced, and so to those that it calls.
    PyErr_Clear();
    result = call_inline(self, NULL, &given);
  } else if (call.has_other && PyDict_GetItemString(self->dict, "_any")) {
    result = call_any(object, &given);
  }
  pestle_py_call_end(&call);
  return result;
}

// |args| and |kwargs| as one list of arguments and a tuple of names.
static PyObject** from_objects(PyObject* args, PyObject* kwargs,
                               pestle_py_given_t* given) {
  Py_ssize_t count = PyTuple_Size(args), at = 0, i = count;
  Py_ssize_t named = kwargs ? PyDict_Size(kwargs) : 0;
  PyObject** list = malloc((size_t)(count + named + 1) * sizeof(*list));
  *given = (pestle_py_given_t){list, count, named ? PyTuple_New(named) : NULL};
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
  pestle_py_given_t given;
  PyObject** list = from_objects(args, kwargs, &given);
  if (!list) return NULL;
  PyObject* result =
      jit_vectorcall(object, list, (size_t)given.count, given.names);
  Py_XDECREF(given.names);
  free(list);
  return result;
}

// --- Looking ---

// trace(*args, **kwargs) -> (module, device, hidden)
static PyObject* jit_trace(PyObject* object, PyObject* args, PyObject* kwargs) {
  pestle_py_jit_t* self = (pestle_py_jit_t*)object;
  pestle_py_given_t given;
  pestle_py_call_t call;
  PyObject* result = NULL;
  PyObject** list = from_objects(args, kwargs, &given);
  if (!list) return NULL;
  pestle_py_call_begin(&call);
  if (pestle_py_call_read(self, &call, &given)) {
    pestle_py_entry_t* entry = entry_of(self, &call, &given);
    if (entry) {
      result = Py_BuildValue("(ONO)", entry->module,
                             pestle_py_device(entry->device), entry->hidden);
    }
  }
  pestle_py_call_end(&call);
  Py_XDECREF(given.names);
  free(list);
  return result;
}

static PyObject* explain(PyObject* object, PyObject* unused) {
  (void)unused;
  pestle_py_jit_t* self = (pestle_py_jit_t*)object;
  return PyList_GetSlice(self->misses, 0, PyList_Size(self->misses));
}

static PyObject* clear_cache(PyObject* object, PyObject* unused) {
  (void)unused;
  pestle_py_jit_t* self = (pestle_py_jit_t*)object;
  while (self->entry_count)
    pestle_py_entry_drop(self->entries[--self->entry_count]);
  Py_RETURN_NONE;
}

static PyObject* get_traces(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(((pestle_py_jit_t*)self)->traces);
}
static PyObject* get_wrapped(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef(((pestle_py_jit_t*)self)->function);
}
static PyObject* get_dict(PyObject* self, void* unused) {
  (void)unused;
  return Py_NewRef(((pestle_py_jit_t*)self)->dict);
}
static PyObject* jit_getattr(PyObject* self, PyObject* name) {
  // The type has these too.
  bool is_own = PyUnicode_CompareWithASCIIString(name, "__module__") &&
                PyUnicode_CompareWithASCIIString(name, "__doc__");
  PyObject* value = is_own ? PyObject_GenericGetAttr(self, name) : NULL;
  if (!is_own) {
    return PyObject_GetAttr(((pestle_py_jit_t*)self)->function, name);
  }
  if (value || !PyErr_ExceptionMatches(PyExc_AttributeError)) return value;
  PyErr_Clear();
  return PyObject_GetAttr(((pestle_py_jit_t*)self)->function, name);
}

// As a method, bound.
static PyObject* jit_get(PyObject* self, PyObject* object, PyObject* type) {
  (void)type;
  if (!object || object == Py_None) return Py_NewRef(self);
  return pestle_py_hook("bind", (PyObject*[]){self, object}, 2);
}

static PyObject* jit_repr(PyObject* self) {
  return PyUnicode_FromFormat("<pestle.jit of %R>",
                              ((pestle_py_jit_t*)self)->function);
}

static int traverse(PyObject* self, visitproc visit, void* arg) {
  pestle_py_jit_t* jit = (pestle_py_jit_t*)self;
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(jit->function);
  Py_VISIT(jit->dict);
  Py_VISIT(jit->misses);
  return 0;
}

static int clear(PyObject* self) {
  pestle_py_jit_t* jit = (pestle_py_jit_t*)self;
  Py_CLEAR(jit->function);
  Py_CLEAR(jit->dict);
  Py_CLEAR(jit->misses);
  return 0;
}

static void jit_dealloc(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  pestle_py_jit_t* self = (pestle_py_jit_t*)object;
  PyObject_GC_UnTrack(object);
  if (self->weak_refs) PyObject_ClearWeakRefs(object);
  while (self->entry_count)
    pestle_py_entry_drop(self->entries[--self->entry_count]);
  clear(object);
  Py_XDECREF(self->statics);
  Py_XDECREF(self->static_names);
  Py_XDECREF(self->donated);
  Py_XDECREF(self->donated_names);
  PyObject_GC_Del(object);
  Py_DECREF(type);
}

// Jit(function, statics, static_names, donated, donated_names, numerics, device, like)
static PyObject* jit_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  (void)kwargs;
  PyObject *function, *statics, *names, *donated, *donated_names, *spec;
  int numerics, like;
  pestle_device_t* device = NULL;
  if (!PyArg_ParseTuple(args, "OO!OO!OiOp:Jit", &function, &PyTuple_Type,
                        &statics, &names, &PyTuple_Type, &donated,
                        &donated_names, &numerics, &spec, &like) ||
      (spec != Py_None && !pestle_py_as_device(spec, &device))) {
    return NULL;
  }
  pestle_py_jit_t* self = (pestle_py_jit_t*)PyType_GenericAlloc(type, 0);
  if (!self) return NULL;
  self->vectorcall = jit_vectorcall;
  self->function = Py_NewRef(function);
  self->statics = Py_NewRef(statics);
  self->static_names = names == Py_None ? NULL : Py_NewRef(names);
  self->donated = Py_NewRef(donated);
  self->donated_names =
      donated_names == Py_None ? NULL : Py_NewRef(donated_names);
  self->numerics = numerics;
  self->device = device;
  self->like = like;
  self->dict = PyDict_New();
  self->misses = PyList_New(0);
  if (self->dict && self->misses) return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static PyMethodDef methods[] = {
    {"trace", (PyCFunction)(void (*)(void))jit_trace,
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"explain_misses", explain, METH_NOARGS,
     "explain_misses()\n--\n\nWhy the function was traced anew, a sentence "
     "each time, the latest 64: what\ndiffered from the trace that differs "
     "least.\n"
     "\n"
     ">>> f = pt.jit(lambda x: x + 1)\n"
     ">>> _ = f(pt.ones((2,))), f(pt.ones((3,)))\n"
     ">>> f.explain_misses()\n"
     "['axis 0 of leaf 0 is 3, was 2']"},
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
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(pestle_py_jit_t, vectorcall),
     READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pestle_py_jit_t, weak_refs),
     READONLY, NULL},
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
    "pestle.Jit", sizeof(pestle_py_jit_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | HAVE_VECTORCALL, slots};

bool pestle_py_add_jit(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return false;
  pestle_py.jit_type = (PyTypeObject*)type;
  return PyModule_AddObjectRef(module, "Jit", type) == 0;
}
