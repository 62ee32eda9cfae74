// SPDX-License-Identifier: Apache-2.0
// What pestle.Decoder (_decode.py) is made of: a decoder of the library. Whoever calls holds
// a lock of the decoder's, so that one thread is in it at a time.
#include <stdlib.h>
#include <string.h>

#include "module.h"
#include "pestle/decode.h"

typedef struct decoder_t {
  PyObject_HEAD pestle_decoder_t* decoder;
} decoder_t;

static pestle_decoder_t* of(PyObject* self) {
  return ((decoder_t*)self)->decoder;
}

// As O& of PyArg_ParseTuple().
static int as_slot(PyObject* object, void* out_slot) {
  Py_ssize_t slot = PyNumber_AsSsize_t(object, PyExc_ValueError);
  if (slot == -1 && PyErr_Occurred()) return 0;
  if (slot < 0) PyErr_Format(PyExc_ValueError, "there is no slot %zd", slot);
  *(size_t*)out_slot = (size_t)slot;
  return slot >= 0;
}

// An integer that passes 64 bits is a number out of range like others.
static void say_range(PyObject* object) {
  if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return;
  PyErr_Clear();
  PyErr_Format(PyExc_ValueError, "%R is out of range", object);
}

// As O& of PyArg_ParseTuple(), as as_seed().
static int as_i64(PyObject* object, void* out_number) {
  PyObject* index = PyNumber_Index(object);
  if (!index) return 0;
  *(int64_t*)out_number = PyLong_AsLongLong(index);
  if (PyErr_Occurred()) say_range(index);
  Py_DECREF(index);
  return !PyErr_Occurred();
}

static int as_seed(PyObject* object, void* out_seed) {
  PyObject* index = PyNumber_Index(object);
  if (!index) return 0;
  *(uint64_t*)out_seed = PyLong_AsUnsignedLongLong(index);
  if (PyErr_Occurred()) say_range(index);
  Py_DECREF(index);
  return !PyErr_Occurred();
}

// --- Life ---

static bool create(decoder_t* self, PyObject* args) {
  PyObject *path, *where, *encoder, *bytes = NULL, *more = NULL;
  int64_t most, room, slots;
  int threads;
  const char* numerics;
  pestle_compile_options_t compile = {.struct_size = sizeof(compile)};
  pestle_decoder_options_t o = {.struct_size = sizeof(o), .compile = &compile};
  if (!PyArg_ParseTuple(args, "OO&O&O&OisO", &path, as_i64, &most, as_i64,
                        &room, as_i64, &slots, &where, &threads, &numerics,
                        &encoder) ||
      !pestle_py_context() || !pestle_py_as_device(where, &o.device) ||
      (encoder != Py_None && !PyUnicode_FSConverter(encoder, &more))) {
    return false;
  }
  if (!PyUnicode_FSConverter(path, &bytes)) {
    Py_XDECREF(more);
    return false;
  }
  if (most < 0 || room < 0 || slots < 0) {
    PyErr_Format(PyExc_ValueError,
                 "most is %lld, room is %lld and slots is %lld",
                 (long long)most, (long long)room, (long long)slots);
    Py_DECREF(bytes);
    Py_XDECREF(more);
    return false;
  }
  o.most = most;
  o.room = room;
  o.slots = (size_t)slots;
  o.threads = threads;
  compile.numerics = !strcmp(numerics, "strict") ? PESTLE_NUMERICS_STRICT
                     : !strcmp(numerics, "fast") ? PESTLE_NUMERICS_FAST
                                                 : PESTLE_NUMERICS_DEFAULT;
  const char* name = PyBytes_AsString(bytes);
  if (more) o.encoder = PyBytes_AsString(more);
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_decoder_create(pestle_py.context, name, &o, &self->decoder);
  Py_END_ALLOW_THREADS;
  Py_DECREF(bytes);
  Py_XDECREF(more);
  return pestle_py_ok(status);
}

static PyObject* decoder_new(PyTypeObject* type, PyObject* args,
                             PyObject* kwargs) {
  (void)kwargs;
  decoder_t* self = (decoder_t*)PyType_GenericAlloc(type, 0);
  if (self && !create(self, args)) Py_CLEAR(self);
  return (PyObject*)self;
}

static void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  pestle_decoder_t* decoder = of(self);
  Py_BEGIN_ALLOW_THREADS;
  pestle_decoder_release(decoder);
  Py_END_ALLOW_THREADS;
  PyObject_Free(self);
  Py_DECREF(type);
}

// --- Tokens ---

// |*out_ids| is freed by the caller.
static bool read_ids(PyObject* list, int64_t** out_ids, size_t* out_count) {
  Py_ssize_t count = PyList_Size(list);
  *out_ids = NULL;
  *out_count = 0;
  if (count < 0) return false;
  int64_t* ids = malloc(((size_t)count + 1) * sizeof(*ids));
  if (!ids) return PyErr_NoMemory() != NULL;
  *out_ids = ids;
  *out_count = (size_t)count;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!as_i64(PyList_GetItem(list, i), &ids[i])) return false;
  }
  return true;
}

static PyObject* feed(PyObject* self, PyObject* args) {
  PyObject* list;
  size_t slot;
  int64_t* ids;
  size_t count;
  if (!PyArg_ParseTuple(args, "O!O&:feed", &PyList_Type, &list, as_slot, &slot))
    return NULL;
  bool fine = read_ids(list, &ids, &count);
  if (fine) {
    pestle_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_decoder_feed(of(self), slot, ids, count);
    Py_END_ALLOW_THREADS;
    fine = pestle_py_ok(status);
  }
  free(ids);
  return fine ? Py_NewRef(Py_None) : NULL;
}

static bool read_slots(PyObject* list, size_t count, size_t** out_slots) {
  size_t* slots = malloc((count + 1) * sizeof(*slots));
  *out_slots = slots;
  if (!slots) return PyErr_NoMemory() != NULL;
  for (size_t i = 0; i < count; ++i) {
    if (!as_slot(PyList_GetItem(list, (Py_ssize_t)i), &slots[i])) return false;
  }
  return true;
}

static PyObject* feed_each(PyObject* self, PyObject* args) {
  PyObject *list, *where;
  size_t *slots = NULL, count;
  int64_t* ids;
  if (!PyArg_ParseTuple(args, "O!O!:feed_each", &PyList_Type, &where,
                        &PyList_Type, &list)) {
    return NULL;
  }
  bool fine = read_ids(list, &ids, &count) && read_slots(where, count, &slots);
  if (fine) {
    pestle_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_decoder_feed_each(of(self), slots, ids, count);
    Py_END_ALLOW_THREADS;
    fine = pestle_py_ok(status);
  }
  free(slots);
  free(ids);
  return fine ? Py_NewRef(Py_None) : NULL;
}

// Features as what the encoder takes, in memory of their own.
static PyObject* encode(PyObject* self, PyObject* args) {
  PyObject* object;
  size_t slot;
  pestle_device_t* host;
  pestle_tensor_t tensor;
  pestle_decoder_info_t info = {.struct_size = sizeof(info)};
  if (!PyArg_ParseTuple(args, "OO&:encode", &object, as_slot, &slot) ||
      !pestle_py_ok(pestle_decoder_info(of(self), &info)) ||
      !pestle_py_ok(pestle_context_device(pestle_py.context, "cpu", &host))) {
    return NULL;
  }
  PyObject* features = pestle_py_asarray(object, info.feature_dtype, host, 1);
  if (!features) return NULL;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_data(pestle_py_array(features), &tensor);
  if (!status) status = pestle_decoder_encode(of(self), slot, &tensor);
  Py_END_ALLOW_THREADS;
  Py_DECREF(features);
  return pestle_py_ok(status) ? Py_NewRef(Py_None) : NULL;
}

// A copy, so that it stays what it was.
static PyObject* logits(PyObject* self, PyObject* args) {
  size_t slot;
  pestle_decoder_info_t info = {.struct_size = sizeof(info)};
  if (!PyArg_ParseTuple(args, "O&:logits", as_slot, &slot) ||
      !pestle_py_ok(pestle_decoder_info(of(self), &info))) {
    return NULL;
  }
  const float* data = pestle_decoder_logits(of(self), slot);
  if (!data) {
    PyErr_Format(PyExc_ValueError,
                 "slot %zu has no logits: feed it a token first", slot);
    return NULL;
  }
  pestle_type_t type = {.dtype = PESTLE_F32, .rank = 1, .dims = {info.words}};
  pestle_device_t* host;
  pestle_array_t* array = NULL;
  pestle_status_t status =
      pestle_context_device(pestle_py.context, "cpu", &host);
  if (!status) status = pestle_array_from_data(host, &type, data, &array);
  return pestle_py_result(status, &array);
}

static PyObject* choose(PyObject* self, PyObject* args) {
  size_t slot;
  pestle_sampling_t s = {.struct_size = sizeof(s)};
  int64_t id;
  if (!PyArg_ParseTuple(args, "O&dO&dO&:choose", as_slot, &slot, &s.temperature,
                        as_i64, &s.top_k, &s.top_p, as_seed, &s.seed)) {
    return NULL;
  }
  pestle_status_t status = pestle_decoder_choose(of(self), slot, &s, &id);
  return pestle_py_ok(status) ? PyLong_FromLongLong(id) : NULL;
}

// --- Slots ---

static PyObject* length(PyObject* self, PyObject* args) {
  size_t slot;
  if (!PyArg_ParseTuple(args, "O&:length", as_slot, &slot)) return NULL;
  int64_t tokens = pestle_decoder_length(of(self), slot);
  if (tokens >= 0) return PyLong_FromLongLong(tokens);
  PyErr_Format(PyExc_ValueError, "there is no slot %zu", slot);
  return NULL;
}

static PyObject* cut(PyObject* self, PyObject* args) {
  size_t slot;
  int64_t tokens;
  if (!PyArg_ParseTuple(args, "O&O&:cut", as_slot, &slot, as_i64, &tokens))
    return NULL;
  bool fine = pestle_py_ok(pestle_decoder_cut(of(self), slot, tokens));
  return fine ? Py_NewRef(Py_None) : NULL;
}

static PyObject* fork_slot(PyObject* self, PyObject* args) {
  size_t from, to;
  if (!PyArg_ParseTuple(args, "O&O&:fork", as_slot, &from, as_slot, &to))
    return NULL;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_decoder_fork(of(self), from, to);
  Py_END_ALLOW_THREADS;
  return pestle_py_ok(status) ? Py_NewRef(Py_None) : NULL;
}

static PyObject* use_file(PyObject* self, PyObject* args, bool saves) {
  size_t slot;
  PyObject *path, *bytes = NULL;
  if (!PyArg_ParseTuple(args, "O&O", as_slot, &slot, &path) ||
      !PyUnicode_FSConverter(path, &bytes)) {
    return NULL;
  }
  const char* name = PyBytes_AsString(bytes);
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = saves ? pestle_decoder_save(of(self), slot, name)
                 : pestle_decoder_load(of(self), slot, name);
  Py_END_ALLOW_THREADS;
  Py_DECREF(bytes);
  return pestle_py_ok(status) ? Py_NewRef(Py_None) : NULL;
}

static PyObject* save(PyObject* self, PyObject* args) {
  return use_file(self, args, true);
}

static PyObject* load(PyObject* self, PyObject* args) {
  return use_file(self, args, false);
}

// --- What it says ---

static PyObject* ends_of(const pestle_decoder_info_t* info) {
  PyObject* ends = PyTuple_New((Py_ssize_t)info->end_count);
  for (size_t i = 0; ends && i < info->end_count; ++i) {
    PyObject* id = PyLong_FromLongLong(info->end_ids[i]);
    if (!id || PyTuple_SetItem(ends, (Py_ssize_t)i, id) < 0) Py_CLEAR(ends);
  }
  return ends;
}

static PyObject* id_or_none(int64_t id) {
  return id < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(id);
}

// (1, mels, frames), or None.
static PyObject* features_of(const pestle_decoder_info_t* info) {
  if (!info->feature_dtype) return Py_NewRef(Py_None);
  PyObject* dims = PyTuple_New(info->feature_rank);
  for (int32_t i = 0; dims && i < info->feature_rank; ++i) {
    PyObject* dim = PyLong_FromLongLong(info->feature_dims[i]);
    if (!dim || PyTuple_SetItem(dims, i, dim) < 0) Py_CLEAR(dims);
  }
  return dims;
}

static PyObject* info_of(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_decoder_info_t i = {.struct_size = sizeof(i)};
  if (!pestle_py_ok(pestle_decoder_info(of(self), &i))) return NULL;
  typedef unsigned long long u64;
  return Py_BuildValue(
      "{s:L,s:L,s:L,s:n,s:n,s:n,s:n,s:K,s:K,s:K,s:K,s:L,s:K,s:L,s:N,s:N,s:N,s:"
      "N,s:K,s:K,s:K}",
      "words", (long long)i.words, "most", (long long)i.most, "room",
      (long long)i.room, "caches_bounded", (Py_ssize_t)i.caches_bounded,
      "slots", (Py_ssize_t)i.slots, "caches", (Py_ssize_t)i.caches,
      "caches_in_place", (Py_ssize_t)i.caches_in_place, "cache_bytes",
      (u64)i.cache_bytes, "token_bytes", (u64)i.token_bytes, "weight_bytes",
      (u64)i.weight_bytes, "compiles", (u64)i.compiles, "compile_ns",
      (long long)i.compile_ns, "batches", (u64)i.batches, "context",
      (long long)i.context, "begin_id", id_or_none(i.begin_id), "pad_id",
      id_or_none(i.pad_id), "end_ids", ends_of(&i), "features", features_of(&i),
      "encoder_bytes", (u64)i.encoder_bytes, "compiles_ahead",
      (u64)i.compiles_ahead, "waits", (u64)i.waits);
}

static PyObject* sampling_of(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_sampling_t s = {.struct_size = sizeof(s)};
  if (!pestle_py_ok(pestle_decoder_sampling(of(self), &s))) return NULL;
  return Py_BuildValue("(dLd)", s.temperature, (long long)s.top_k, s.top_p);
}

// --- Registration ---

static PyMethodDef methods[] = {{"feed", feed, METH_VARARGS, NULL},
                                {"feed_each", feed_each, METH_VARARGS, NULL},
                                {"encode", encode, METH_VARARGS, NULL},
                                {"logits", logits, METH_VARARGS, NULL},
                                {"choose", choose, METH_VARARGS, NULL},
                                {"length", length, METH_VARARGS, NULL},
                                {"cut", cut, METH_VARARGS, NULL},
                                {"fork", fork_slot, METH_VARARGS, NULL},
                                {"save", save, METH_VARARGS, NULL},
                                {"load", load, METH_VARARGS, NULL},
                                {"info", info_of, METH_NOARGS, NULL},
                                {"sampling", sampling_of, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_new, PESTLE_PY_SLOT(decoder_new)},
                              {Py_tp_dealloc, PESTLE_PY_SLOT(dealloc)},
                              {Py_tp_methods, methods},
                              {0, NULL}};
static PyType_Spec spec = {"pestle._pestle.RawDecoder", sizeof(decoder_t), 0,
                           Py_TPFLAGS_DEFAULT, slots};

bool pestle_py_add_decoder(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  bool fine = type && PyModule_AddObjectRef(module, "RawDecoder", type) == 0;
  Py_XDECREF(type);
  return fine;
}
