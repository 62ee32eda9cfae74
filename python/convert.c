// SPDX-License-Identifier: Apache-2.0
// Between Python's values and arrays: numbers, nested lists, buffers.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"
#include "ir.h"
#include "module.h"

// --- Numbers ---

unsigned pestle_py_number_kind(PyObject* object) {
  if (PyBool_Check(object)) return PESTLE_KIND_BOOL;
  if (PyLong_Check(object)) return PESTLE_KIND_SIGNED;
  if (PyFloat_Check(object)) return PESTLE_KIND_FLOAT;
  if (PyComplex_Check(object)) return PESTLE_KIND_COMPLEX;
  return 0;
}

static bool encode_integer(PyObject* object, pestle_dtype_t dtype,
                           unsigned char* bytes) {
  unsigned bits = pestle_dtype_info(dtype)->bits;
  bool is_signed = pestle_dtype_is(dtype, PESTLE_KIND_SIGNED);
  PyObject* whole = PyNumber_Long(object);
  if (!whole) return false;
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(whole, &overflow);
  uint64_t number = (uint64_t)value;
  bool fits = !overflow;
  if (!is_signed && bits == 64 && overflow > 0) {
    number = PyLong_AsUnsignedLongLong(whole);
    fits = !PyErr_Occurred();
    PyErr_Clear();
  } else if (is_signed && bits < 64) {
    long long limit = 1LL << (bits - 1);
    fits = fits && value < limit && value >= -limit;
  } else if (!is_signed) {
    fits = fits && value >= 0 && (bits == 64 || value < (1LL << bits));
  }
  if (!fits) {
    PyErr_Format(PyExc_OverflowError, "%S is no number of %s", whole,
                 pestle_py_dtype_name(dtype));
  }
  Py_DECREF(whole);
  memcpy(bytes, &number, 8);
  return fits;
}

static bool encode_part(double value, pestle_dtype_t dtype,
                        unsigned char* bytes) {
  uint64_t encoded = pestle_float_encode(dtype, value);
  memcpy(bytes, &encoded, 8);
  return true;
}

bool pestle_py_encode(PyObject* object, pestle_dtype_t dtype,
                      unsigned char* bytes) {
  memset(bytes, 0, 16);
  switch (pestle_dtype_info(dtype)->kind) {
    case PESTLE_KIND_BOOL: {
      int truth = PyObject_IsTrue(object);
      bytes[0] = truth > 0;
      return truth >= 0;
    }
    case PESTLE_KIND_SIGNED:
    case PESTLE_KIND_UNSIGNED:
      return encode_integer(object, dtype, bytes);
    case PESTLE_KIND_FLOAT: {
      double value = PyFloat_AsDouble(object);
      if (value == -1 && PyErr_Occurred()) return false;
      return encode_part(value, dtype, bytes);
    }
    default: {
      bool single = dtype == PESTLE_C64;
      pestle_dtype_t part = single ? PESTLE_F32 : PESTLE_F64;
      double real = PyComplex_RealAsDouble(object);
      if (real == -1 && PyErr_Occurred()) return false;
      encode_part(real, part, bytes);
      return encode_part(PyComplex_ImagAsDouble(object), part,
                         bytes + (single ? 4 : 8));
    }
  }
}

static double read_float(const unsigned char* bytes, pestle_dtype_t dtype) {
  uint64_t bits = 0;
  memcpy(&bits, bytes, pestle_dtype_size(dtype));
  return pestle_float_decode(dtype, bits);
}

PyObject* pestle_py_decode(const unsigned char* bytes, pestle_dtype_t dtype) {
  uint64_t bits = 0;
  unsigned size = pestle_dtype_size(dtype);
  memcpy(&bits, bytes, size < 8 ? size : 8);
  switch (pestle_dtype_info(dtype)->kind) {
    case PESTLE_KIND_BOOL:
      return PyBool_FromLong(bits != 0);
    case PESTLE_KIND_UNSIGNED:
      return PyLong_FromUnsignedLongLong(bits);
    case PESTLE_KIND_SIGNED: {
      unsigned shift = 64 - 8 * size;
      return PyLong_FromLongLong((long long)(bits << shift) >> shift);
    }
    case PESTLE_KIND_FLOAT:
      return PyFloat_FromDouble(read_float(bytes, dtype));
    default: {
      pestle_dtype_t part = dtype == PESTLE_C64 ? PESTLE_F32 : PESTLE_F64;
      return PyComplex_FromDoubles(read_float(bytes, part),
                                   read_float(bytes + size / 2, part));
    }
  }
}

// An integer that a double does not hold, or a complex number, is a part of the
// graph.
static bool is_exact(PyObject* object, pestle_dtype_t dtype, double* out) {
  if (pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX)) return false;
  if (!PyLong_Check(object)) {
    *out = PyFloat_AsDouble(object);
    return !PyErr_Occurred();
  }
  int overflow;
  long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  *out = (double)value;
  return !overflow && value < (1LL << 53) && value > -(1LL << 53);
}

static pestle_device_t* host_for(pestle_device_t* device);

pestle_array_t* pestle_py_number(PyObject* object, pestle_device_t* device,
                                 pestle_dtype_t dtype) {
  double value = 0;
  pestle_array_t* array = NULL;
  bool is_float = pestle_dtype_is(dtype, PESTLE_KIND_FLOAT);
  if (is_exact(object, dtype, &value) && (is_float || value == floor(value))) {
    // A trace has it as a constant, whose value is read here. It adapts to any device.
    if (pestle_py_is_capturing() && !(device = host_for(device))) return NULL;
    if (pestle_py_ok(pestle_array_scalar(device, dtype, value, &array))) {
      return array;
    }
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_SetObject(type == PyExc_ValueError ? PyExc_OverflowError : type,
                    error);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return NULL;
  }
  if (PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
    PyErr_Clear();
  }
  unsigned char bytes[16];
  pestle_type_t type = {.dtype = dtype};
  if (!pestle_py_encode(object, dtype, bytes)) return NULL;
  return pestle_py_ok(pestle_array_full(device, &type, bytes, &array)) ? array
                                                                       : NULL;
}

// --- Nested lists ---

typedef struct nest_t {
  pestle_type_t type;
  unsigned kinds;        // of the numbers
  pestle_dtype_t dtype;  // of arrays of rank 0 among them, or NONE
  size_t size;           // bytes of an element
  unsigned char* data;   // where the next one goes
  bool stacks;           // arrays among them are to be stacked
} nest_t;

static bool is_sequence(PyObject* object) {
  return PyList_Check(object) || PyTuple_Check(object);
}

static bool ragged(void) {
  PyErr_SetString(PyExc_ValueError, "lists of different lengths make no array");
  return false;
}

// A list that has become shorter meanwhile has other lengths too.
static PyObject* item_of(PyObject* list, Py_ssize_t i) {
  PyObject* item = PySequence_GetItem(list, i);
  if (!item && PyErr_ExceptionMatches(PyExc_IndexError)) ragged();
  return item;
}

static bool join_dtype(nest_t* nest, pestle_dtype_t dtype) {
  if (nest->dtype != PESTLE_NONE) {
    return pestle_py_ok(pestle_dtype_promote(nest->dtype, dtype, &nest->dtype));
  }
  nest->dtype = dtype;
  return true;
}

// Whether |object| is a number of NumPy's, or an array of rank 0 of another library,
// of a dtype that is known.
static bool is_foreign_scalar(PyObject* object, pestle_dtype_t* out_dtype) {
  PyObject* shape = PyObject_GetAttrString(object, "shape");
  PyObject* dtype = PyObject_GetAttrString(object, "dtype");
  bool fine = shape && dtype && PyTuple_Check(shape) && !PyTuple_Size(shape) &&
              pestle_py_as_dtype(dtype, out_dtype);
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  PyErr_Clear();
  return fine;
}

// An element as a number that is encoded: of an array its only one.
static PyObject* number_of(PyObject* object, pestle_dtype_t dtype) {
  if (pestle_py_is_array(object)) return pestle_py_item(object, NULL);
  bool is_own = pestle_py_number_kind(object) ||
                !pestle_dtype_is(dtype, PESTLE_KIND_COMPLEX);
  return is_own ? Py_NewRef(object)
                : PyObject_CallFunctionObjArgs((PyObject*)&PyComplex_Type,
                                               object, NULL);
}

static bool look_at_leaf(nest_t* nest, PyObject* object) {
  unsigned kind = pestle_py_number_kind(object);
  if (!kind && pestle_py_is_array(object)) {
    pestle_array_t* array = pestle_py_array(object);
    pestle_dtype_t dtype = pestle_array_type(array).dtype;
    nest->stacks = pestle_array_type(array).rank ||
                   pestle_array_state(array) == PESTLE_ARRAY_TRACED;
    return !nest->stacks && join_dtype(nest, dtype);
  }
  nest->kinds |= kind;
  if (kind) return true;
  if (PyObject_HasAttrString(object, "__array__") ||
      PyObject_HasAttrString(object, "__dlpack__")) {
    pestle_dtype_t dtype;
    nest->stacks = !is_foreign_scalar(object, &dtype);
    return !nest->stacks && join_dtype(nest, dtype);
  }
  if (PyIndex_Check(object)) {
    nest->kinds |= PESTLE_KIND_SIGNED;
    return true;
  }
  PyErr_Format(PyExc_TypeError, "%R is no number", object);
  return false;
}

static bool look_at(nest_t* nest, PyObject* object, int32_t depth) {
  if (!is_sequence(object)) {
    int32_t rank = nest->type.rank;
    if (rank < 0) nest->type.rank = depth;
    return rank >= 0 && rank != depth ? ragged() : look_at_leaf(nest, object);
  }
  if (depth >= PESTLE_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "lists in lists, more than %d deep",
                 PESTLE_MAX_RANK);
    return false;
  }
  if (nest->type.rank >= 0 && depth >= nest->type.rank) return ragged();
  Py_ssize_t count = PySequence_Size(object);
  if (nest->type.dims[depth] < 0) nest->type.dims[depth] = count;
  if (nest->type.dims[depth] != count) return ragged();
  if (!count && nest->type.rank < 0) nest->type.rank = depth + 1;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = item_of(object, i);
    bool fine = item && look_at(nest, item, depth + 1);
    Py_XDECREF(item);
    if (!fine) return false;
  }
  return true;
}

// Other threads may change the lists while an array among them is computed, so that
// their lengths are looked at once more.
static bool write_nest(nest_t* nest, PyObject* object, int32_t depth) {
  if (is_sequence(object) != (depth < nest->type.rank)) return ragged();
  if (!is_sequence(object)) {
    unsigned char bytes[16];
    PyObject* item = number_of(object, nest->type.dtype);
    if (!item) return false;
    bool fine = pestle_py_encode(item, nest->type.dtype, bytes);
    Py_DECREF(item);
    memcpy(nest->data, bytes, nest->size);
    nest->data += nest->size;
    return fine;
  }
  Py_ssize_t count = PySequence_Size(object);
  if (count != nest->type.dims[depth]) return ragged();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = item_of(object, i);
    bool fine = item && write_nest(nest, item, depth + 1);
    Py_XDECREF(item);
    if (!fine) return false;
  }
  return true;
}

// The dtype of numbers of |kinds|; floats where there is none.
static pestle_dtype_t default_of(unsigned kinds) {
  pestle_dtype_t real = pestle_py_settings()->default_float;
  if (kinds & PESTLE_KIND_COMPLEX) {
    return real == PESTLE_F64 ? PESTLE_C128 : PESTLE_C64;
  }
  if (kinds & PESTLE_KIND_FLOAT) return real;
  if (kinds & PESTLE_KIND_SIGNED) return PESTLE_I64;
  return kinds ? PESTLE_I1 : real;
}

static bool choose_dtype(nest_t* nest, pestle_dtype_t dtype) {
  nest->type.dtype = dtype;
  if (dtype != PESTLE_NONE) return true;
  if (nest->dtype == PESTLE_NONE) {
    nest->type.dtype = default_of(nest->kinds);
    return true;
  }
  nest->type.dtype = nest->dtype;
  for (unsigned kind = PESTLE_KIND_BOOL; kind <= PESTLE_KIND_COMPLEX;
       kind <<= 1) {
    if (nest->kinds & kind &&
        !pestle_py_dtype_of_number(nest->type.dtype, kind, &nest->type.dtype)) {
      return false;
    }
  }
  return true;
}

static PyObject* cast(PyObject* object, pestle_dtype_t dtype, int copy) {
  pestle_array_t* array = object ? pestle_py_array(object) : NULL;
  if (!array) return NULL;
  pestle_dtype_t own = pestle_array_type(array).dtype;
  if (dtype == PESTLE_NONE || dtype == own) return object;
  pestle_array_t* result;
  if (copy == 0) {
    PyErr_Format(PyExc_ValueError,
                 "an array of %s becomes one of %s by a copy alone",
                 pestle_py_dtype_name(own), pestle_py_dtype_name(dtype));
    Py_DECREF(object);
    return NULL;
  }
  pestle_status_t status = pestle_numeric_cast(array, dtype, &result);
  Py_DECREF(object);
  return pestle_py_result(status, &result);
}

static PyObject* from_nest(PyObject* object, pestle_dtype_t dtype,
                           pestle_device_t* device) {
  nest_t nest = {.type = {.rank = -1}, .dtype = PESTLE_NONE};
  for (size_t i = 0; i < PESTLE_MAX_RANK; ++i)
    nest.type.dims[i] = -1;
  if (!look_at(&nest, object, 0)) {
    return nest.stacks
               ? cast(pestle_py_hook("stack_nested", &object, 1), dtype, -1)
               : NULL;
  }
  if (!choose_dtype(&nest, dtype)) return NULL;
  size_t count = 1;
  for (int32_t i = 0; i < nest.type.rank; ++i)
    count *= (size_t)nest.type.dims[i];
  nest.size = pestle_dtype_size(nest.type.dtype);
  unsigned char* data = malloc(count * nest.size + 1);
  if (!data) return PyErr_NoMemory();
  nest.data = data;
  PyObject* result = NULL;
  pestle_array_t* array;
  if (write_nest(&nest, object, 0)) {
    pestle_status_t status;
    Py_BEGIN_ALLOW_THREADS;
    status = pestle_array_from_data(device, &nest.type, data, &array);
    Py_END_ALLOW_THREADS;
    result = pestle_py_result(status, &array);
  }
  free(data);
  return result;
}

// --- Buffers ---

// The dtype of a format of the struct module with one item; NONE: none.
static pestle_dtype_t dtype_of_format(const char* format, Py_ssize_t size) {
  if (!format) return PESTLE_U8;
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  bool is_complex = *format == 'Z';
  format += is_complex;
  if (!*format || format[1]) return PESTLE_NONE;
  if (is_complex) {
    return *format == 'f'   ? PESTLE_C64
           : *format == 'd' ? PESTLE_C128
                            : PESTLE_NONE;
  }
  if (*format == '?') return PESTLE_I1;
  if (strchr("bhilqn", *format)) {
    return size == 1   ? PESTLE_I8
           : size == 2 ? PESTLE_I16
           : size == 4 ? PESTLE_I32
                       : PESTLE_I64;
  }
  if (strchr("cBHILQN", *format)) {
    return pestle_dtype_unsigned((unsigned)size * 8);
  }
  return *format == 'e'   ? PESTLE_F16
         : *format == 'f' ? PESTLE_F32
         : *format == 'd' ? PESTLE_F64
                          : PESTLE_NONE;
}

// A buffer that an array sees, or did: then in the list of those to be given back.
typedef struct hold_t {
  Py_buffer view;
  struct hold_t* next;
} hold_t;
static _Atomic(hold_t*) dropped;

void pestle_py_drain(void) {
  if (!atomic_load_explicit(&dropped, memory_order_relaxed)) return;
  hold_t* hold = atomic_exchange(&dropped, NULL);
  while (hold) {
    hold_t* next = hold->next;
    PyBuffer_Release(&hold->view);
    free(hold);
    hold = next;
  }
}

static int drain_later(void* unused) {
  (void)unused;
  pestle_py_drain();
  return 0;
}

// Set while this thread lets go of an array and has the interpreter lock.
static _Thread_local bool has_lock;

void pestle_py_release(pestle_array_t* array) {
  bool had_lock = has_lock;
  has_lock = true;
  pestle_array_release(array);
  has_lock = had_lock;
}

// Any thread, with or without the interpreter lock.
static void drop(void* self) {
  hold_t* hold = self;
  if (has_lock) {
    PyBuffer_Release(&hold->view);
    free(hold);
    return;
  }
  hold_t* first = atomic_load(&dropped);
  do {
    hold->next = first;
  } while (!atomic_compare_exchange_weak(&dropped, &first, hold));
  // Where the queue is full somebody else's call, or the next array, sees to it.
  (void)Py_AddPendingCall(drain_later, NULL);
}

// Bytes from an element to the next one along |axis|. Some who are asked for strides
// give none (ctypes): theirs are row-major.
static Py_ssize_t step_of(const Py_buffer* view, int axis) {
  Py_ssize_t step = view->itemsize;
  if (view->strides) return view->strides[axis];
  for (int i = view->ndim - 1; i > axis; --i)
    step *= view->shape[i];
  return step;
}

static bool describe(const Py_buffer* view, pestle_tensor_t* tensor,
                     int64_t* dims, int64_t* strides) {
  pestle_dtype_t dtype = dtype_of_format(view->format, view->itemsize);
  if (dtype == PESTLE_NONE ||
      (Py_ssize_t)pestle_dtype_size(dtype) != view->itemsize) {
    PyErr_Format(PyExc_TypeError,
                 "a buffer of format '%s' has no dtype of pestle's",
                 view->format ? view->format : "B");
    return false;
  }
  if (view->ndim > PESTLE_MAX_RANK) {
    PyErr_Format(PyExc_ValueError, "the buffer has %d axes, arrays have %d",
                 view->ndim, PESTLE_MAX_RANK);
    return false;
  }
  *tensor = (pestle_tensor_t){.data = view->buf,
                              .device = {PESTLE_DEVICE_CPU, 0},
                              .ndim = view->ndim,
                              .dtype = pestle_dtype_to_dlpack(dtype),
                              .shape = dims,
                              .strides = strides};
  bool whole = true;
  for (int i = 0; i < view->ndim; ++i) {
    dims[i] = view->shape[i];
    Py_ssize_t step = step_of(view, i);
    strides[i] = step / view->itemsize;
    whole &= step % view->itemsize == 0 || view->shape[i] < 2;
  }
  if (!whole) {
    PyErr_SetString(PyExc_ValueError,
                    "the buffer's strides are no multiple of its elements");
  }
  return whole;
}

// A CPU device for memory of the host that |device| cannot see.
static pestle_device_t* host_for(pestle_device_t* device) {
  if (pestle_device_dl(device).device_type == PESTLE_DEVICE_CPU) return device;
  pestle_device_t* host = NULL;
  pestle_context_t* context = pestle_device_context(device);
  return pestle_py_ok(pestle_context_device(context, "cpu", &host)) ? host
                                                                    : NULL;
}

static PyObject* copy_out(pestle_array_t* array, pestle_device_t* device) {
  pestle_array_t* copy;
  pestle_status_t status;
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_copy_to(array, device, &copy);
  Py_END_ALLOW_THREADS;
  pestle_py_release(array);
  return pestle_py_result(status, &copy);
}

static PyObject* from_buffer(PyObject* object, pestle_device_t* device,
                             int copy) {
  int64_t dims[PESTLE_MAX_RANK], strides[PESTLE_MAX_RANK];
  pestle_tensor_t tensor;
  hold_t* hold = malloc(sizeof(*hold));
  pestle_device_t* host = host_for(device);
  if (!hold) return PyErr_NoMemory();
  if (host && host != device && copy == 0) {
    free(hold);
    PyErr_Format(PyExc_ValueError,
                 "memory of the host becomes an array on %s by a copy alone; "
                 "device=pestle.cpu sees it where it is",
                 pestle_device_name(device));
    return NULL;
  }
  if (!host || PyObject_GetBuffer(object, &hold->view, PyBUF_RECORDS_RO) < 0) {
    free(hold);
    return NULL;
  }
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .flags = PESTLE_BUFFER_READ_ONLY,
                                          .release = drop,
                                          .release_self = hold};
  pestle_array_t* array = NULL;
  if (!describe(&hold->view, &tensor, dims, strides) ||
      !pestle_py_ok(pestle_array_wrap(host, &tensor, &options, &array))) {
    PyBuffer_Release(&hold->view);
    free(hold);
    return NULL;
  }
  if (copy == 0 && host == device) return pestle_py_wrap(array);
  PyObject* result = copy_out(array, device);
  pestle_py_drain();
  return result;
}

// --- asarray ---

PyObject* pestle_py_copy(pestle_array_t* array, pestle_device_t* device) {
  pestle_array_t* result;
  pestle_status_t status;
  pestle_array_retain(array);
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_copy_to(array, device, &result);
  Py_END_ALLOW_THREADS;
  pestle_py_release(array);
  return pestle_py_result(status, &result);
}

static PyObject* from_array(PyObject* object, pestle_device_t* device,
                            int copy) {
  pestle_array_t* array = pestle_py_array(object);
  bool traced = pestle_array_state(array) == PESTLE_ARRAY_TRACED;
  bool moves = device && device != pestle_array_device(array) && !traced;
  if (moves && copy == 0) {
    PyErr_SetString(PyExc_ValueError,
                    "an array goes to another device by a copy alone");
    return NULL;
  }
  // Values never change: a copy is needed where memory is to be another alone.
  if (!moves && (copy != 1 || traced)) {
    // The object itself, so that x[key] = value is seen by all who have it.
    return Py_NewRef(object);
  }
  return pestle_py_copy(array, device ? device : pestle_array_device(array));
}

// Of a buffer that from_buffer() raised an exception for: in another order of bytes,
// of a dtype that the buffer protocol has no letter for. The first exception stays
// where pestle/*.py knows no way.
static PyObject* from_odd_buffer(PyObject* object, pestle_device_t* device) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError) &&
      !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_BufferError)) {
    return NULL;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* made = pestle_py_hook("odd_buffer", &object, 1);
  if (made && !pestle_py_is_array(made)) {
    Py_DECREF(made);
    PyErr_Restore(type, value, trace);
    return NULL;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(trace);
  if (!made) return NULL;
  PyObject* there = from_array(made, device, -1);
  Py_DECREF(made);
  return there;
}

PyObject* pestle_py_asarray(PyObject* object, pestle_dtype_t dtype,
                            pestle_device_t* device, int copy) {
  if (pestle_py_is_array(object)) {
    return cast(from_array(object, device, copy), dtype, copy);
  }
  // Where memory lies of which that is not said.
  pestle_device_t* asked = device;
  if (!device && !pestle_py_as_device(NULL, &device)) return NULL;
  // NumPy's scalars are Python's too, but say their dtype.
  bool is_plain = is_sequence(object) || (pestle_py_number_kind(object) &&
                                          !PyObject_CheckBuffer(object));
  if (!is_plain && PyObject_CheckBuffer(object)) {
    PyObject* made = from_buffer(object, device, copy);
    if (!made && copy) made = from_odd_buffer(object, asked);
    return cast(made, dtype, copy);
  }
  if (copy == 0) {
    PyErr_SetString(PyExc_ValueError,
                    "numbers and lists become an array by a copy alone");
    return NULL;
  }
  if (is_plain) {
    return from_nest(object, dtype, device);
  }
  PyObject* other = pestle_py_hook("asarray", &object, 1);
  if (!other) return NULL;
  PyObject* result = pestle_py_is_array(other)
                         ? cast(from_array(other, asked, -1), dtype, -1)
                         : pestle_py_asarray(other, dtype, asked, copy);
  Py_DECREF(other);
  return result;
}

// --- Out ---

// Without the lock another thread may give the object of |array| another one.
static pestle_status_t read_array(pestle_array_t* array, void* data,
                                  size_t size) {
  pestle_status_t status;
  pestle_array_retain(array);
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_read(array, data, size);
  Py_END_ALLOW_THREADS;
  pestle_py_release(array);
  return status;
}

PyObject* pestle_py_item(PyObject* self, PyObject* unused) {
  (void)unused;
  unsigned char bytes[16] = {0};
  pestle_array_t* array = pestle_py_array(self);
  pestle_type_t type = pestle_array_type(array);
  for (int32_t i = 0; i < type.rank; ++i) {
    if (type.dims[i] == 1) continue;
    PyErr_SetString(PyExc_ValueError, "item() needs an array of one element");
    return NULL;
  }
  if (!pestle_py_has_value(array, "item()")) return NULL;
  pestle_status_t status =
      read_array(array, bytes, pestle_dtype_size(type.dtype));
  return pestle_py_ok(status) ? pestle_py_decode(bytes, type.dtype) : NULL;
}

static PyObject* list_of(const pestle_type_t* type, int32_t axis,
                         const unsigned char** data) {
  if (axis == type->rank) {
    PyObject* item = pestle_py_decode(*data, type->dtype);
    *data += pestle_dtype_size(type->dtype);
    return item;
  }
  PyObject* list = PyList_New((Py_ssize_t)type->dims[axis]);
  for (int64_t i = 0; list && i < type->dims[axis]; ++i) {
    PyObject* item = list_of(type, axis + 1, data);
    if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
      Py_CLEAR(list);
    }
  }
  return list;
}

PyObject* pestle_py_tolist(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_array_t* array = pestle_py_array(self);
  pestle_type_t type = pestle_array_type(array);
  size_t size = pestle_dtype_size(type.dtype);
  if (!pestle_py_has_value(array, "tolist()")) return NULL;
  for (int32_t i = 0; i < type.rank; ++i)
    size *= (size_t)type.dims[i];
  unsigned char* data = malloc(size + 1);
  if (!data) return PyErr_NoMemory();
  pestle_status_t status = read_array(array, data, size);
  const unsigned char* at = data;
  PyObject* list = pestle_py_ok(status) ? list_of(&type, 0, &at) : NULL;
  free(data);
  return list;
}

// --- The buffer protocol ---

static const char* format_of(pestle_dtype_t dtype) {
  switch ((int)dtype) {
    case PESTLE_I1:
      return "?";
    case PESTLE_I8:
      return "b";
    case PESTLE_I16:
      return "h";
    case PESTLE_I32:
      return "i";
    case PESTLE_I64:
      return "q";
    case PESTLE_U8:
      return "B";
    case PESTLE_U16:
      return "H";
    case PESTLE_U32:
      return "I";
    case PESTLE_U64:
      return "Q";
    case PESTLE_F16:
      return "e";
    case PESTLE_F32:
      return "f";
    case PESTLE_F64:
      return "d";
    case PESTLE_C64:
      return "Zf";
    case PESTLE_C128:
      return "Zd";
    default:
      return NULL;
  }
}

// What a view needs: an array that stays alive, its shape and strides in bytes.
typedef struct shown_t {
  pestle_array_t* array;
  Py_ssize_t shape[PESTLE_MAX_RANK], strides[PESTLE_MAX_RANK];
} shown_t;

static pestle_status_t show(pestle_array_t* array, shown_t* shown,
                            pestle_tensor_t* tensor) {
  PESTLE_TRY(pestle_array_data(array, tensor));
  pestle_type_t type = pestle_array_type(array);
  Py_ssize_t step = (Py_ssize_t)pestle_dtype_size(type.dtype);
  for (int32_t i = type.rank; i--;) {
    shown->shape[i] = (Py_ssize_t)type.dims[i];
    shown->strides[i] = tensor->strides
                            ? (Py_ssize_t)tensor->strides[i] *
                                  (Py_ssize_t)pestle_dtype_size(type.dtype)
                            : step;
    step *= shown->shape[i] ? shown->shape[i] : 1;
  }
  if (pestle_device_dl(pestle_array_device(array)).device_type ==
      PESTLE_DEVICE_CPU) {
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "the array is on %s, which the host does not read: "
                      "pestle.asnumpy() and pestle.copy(x, \"cpu\") copy it",
                      pestle_device_name(pestle_array_device(array)));
}

int pestle_py_get_buffer(PyObject* self, Py_buffer* view, int flags) {
  pestle_array_t* array = pestle_py_array(self);
  pestle_type_t type = pestle_array_type(array);
  const char* format = format_of(type.dtype);
  pestle_tensor_t tensor = {.data = NULL};
  view->obj = NULL;
  if (!pestle_py_has_value(array, "the buffer protocol")) return -1;
  if (!format || (flags & PyBUF_WRITABLE)) {
    PyErr_Format(
        PyExc_BufferError,
        format ? "arrays are read-only" : "an array of %s has no buffer",
        pestle_py_dtype_name(type.dtype));
    return -1;
  }
  shown_t* shown = malloc(sizeof(*shown));
  if (!shown) {
    PyErr_NoMemory();
    return -1;
  }
  pestle_status_t status;
  pestle_array_retain(array);
  Py_BEGIN_ALLOW_THREADS;
  status = show(array, shown, &tensor);
  Py_END_ALLOW_THREADS;
  bool simple = !(flags & PyBUF_STRIDES) ||
                (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
  if (!status && simple && tensor.strides) {
    status = PESTLE_ERROR(INVALID_ARGUMENT, "the array has strides");
  }
  if (!pestle_py_ok(status)) {
    pestle_py_release(array);
    free(shown);
    return -1;
  }
  shown->array = array;
  Py_ssize_t size = (Py_ssize_t)pestle_dtype_size(type.dtype);
  *view = (Py_buffer){
      .buf =
          tensor.data ? (char*)tensor.data + tensor.byte_offset : (char*)shown,
      .obj = Py_NewRef(self),
      .itemsize = size,
      .readonly = 1,
      .ndim = type.rank,
      .format = flags & PyBUF_FORMAT ? (char*)(uintptr_t)format : NULL,
      .shape = flags & PyBUF_ND ? shown->shape : NULL,
      .strides = flags & PyBUF_STRIDES ? shown->strides : NULL,
      .len = size,
      .internal = shown};
  for (int32_t i = 0; i < type.rank; ++i)
    view->len *= shown->shape[i];
  return 0;
}

void pestle_py_release_buffer(PyObject* self, Py_buffer* view) {
  (void)self;
  shown_t* shown = view->internal;
  pestle_array_release(shown->array);
  free(shown);
}
