// SPDX-License-Identifier: Apache-2.0
// The type Array: operators, fields, and what the interpreter asks of it. Methods that
// are compositions are put on it by pestle/_methods.py.
#include "module.h"

#include <structmember.h>

static pestle_array_t* of(PyObject* self) {
  return pestle_py_array(self);
}

PyObject* pestle_py_wrap(pestle_array_t* array) {
  pestle_py_array_t* self =
      (pestle_py_array_t*)PyType_GenericAlloc(pestle_py.array_type, 0);
  if (!self) {
    pestle_array_release(array);
    return NULL;
  }
  self->array = array;
  if (pestle_py.is_tuned && pestle_py_settings()->eager &&
      pestle_array_state(array) == PESTLE_ARRAY_LAZY &&
      !pestle_py_eval(&array, 1)) {
    Py_CLEAR(self);
  }
  return (PyObject*)self;
}

PyObject* pestle_py_result(pestle_status_t status, pestle_array_t** array) {
  return pestle_py_ok(status) ? pestle_py_wrap(*array) : NULL;
}

// The stream of this thread, where it is one of the arrays' device.
static pestle_stream_t* stream_for(pestle_array_t* const* arrays,
                                   size_t count) {
  pestle_stream_t* stream = pestle_py.is_tuned ? pestle_py_stream() : NULL;
  for (size_t i = 0; stream && i < count; ++i)
    stream = pestle_py_stream_on(pestle_array_device(arrays[i]));
  return stream;
}

bool pestle_py_eval(pestle_array_t* const* arrays, size_t count) {
  pestle_stream_t* stream = stream_for(arrays, count);
  bool done = false;
  pestle_status_t status =
      stream ? NULL
             : pestle_array_eval_quick(arrays, count, PESTLE_PY_LONG_NS, &done);
  if (status || done) return pestle_py_ok(status);
  // Without the lock another thread may give the objects other arrays.
  for (size_t i = 0; i < count; ++i)
    pestle_array_retain(arrays[i]);
  Py_BEGIN_ALLOW_THREADS;
  status = pestle_array_eval(arrays, count, stream);
  Py_END_ALLOW_THREADS;
  for (size_t i = 0; i < count; ++i)
    pestle_py_release(arrays[i]);
  pestle_py_log();
  return pestle_py_ok(status);
}

static void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (((pestle_py_array_t*)self)->weak_refs) PyObject_ClearWeakRefs(self);
  pestle_py_release(of(self));
  PyObject_Free(self);
  Py_DECREF(type);
  pestle_py_drain();
}

// --- Operators ---

static PyObject* two(pestle_numeric_t fn, PyObject* a, PyObject* b) {
  return pestle_py_numeric(fn, (PyObject*[]){a, b}, 2);
}

#define BINARY(slot, NAME)                          \
  static PyObject* slot(PyObject* a, PyObject* b) { \
    return two(PESTLE_NUMERIC_##NAME, a, b);        \
  }
#define UNARY(slot, NAME)                                                 \
  static PyObject* slot(PyObject* a) {                                    \
    return pestle_py_numeric(PESTLE_NUMERIC_##NAME, (PyObject*[]){a}, 1); \
  }
BINARY(add, ADD)
BINARY(subtract, SUBTRACT)
BINARY(multiply, MULTIPLY)
BINARY(divide, DIVIDE)
BINARY(floor_divide, FLOOR_DIVIDE)
BINARY(remainder_of, REMAINDER)
BINARY(and_of, BITWISE_AND)
BINARY(or_of, BITWISE_OR)
BINARY(xor_of, BITWISE_XOR)
BINARY(left_shift, BITWISE_LEFT_SHIFT)
BINARY(right_shift, BITWISE_RIGHT_SHIFT)
UNARY(negative, NEGATIVE)
UNARY(positive, POSITIVE)
UNARY(invert, BITWISE_INVERT)
UNARY(absolute, ABS)

static PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return two(PESTLE_NUMERIC_POW, a, b);
}

static PyObject* matmul(PyObject* a, PyObject* b) {
  return pestle_py_hook("matmul", (PyObject*[]){a, b}, 2);
}

static PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT:
      return two(PESTLE_NUMERIC_LESS, a, b);
    case Py_LE:
      return two(PESTLE_NUMERIC_LESS_EQUAL, a, b);
    case Py_EQ:
      return two(PESTLE_NUMERIC_EQUAL, a, b);
    case Py_NE:
      return two(PESTLE_NUMERIC_NOT_EQUAL, a, b);
    case Py_GT:
      return two(PESTLE_NUMERIC_GREATER, a, b);
    default:
      return two(PESTLE_NUMERIC_GREATER_EQUAL, a, b);
  }
}

// --- Numbers ---

bool pestle_py_has_value(const pestle_array_t* array, const char* what) {
  if (pestle_array_state(array) != PESTLE_ARRAY_TRACED) return true;
  PyErr_Format(PyExc_ValueError,
               "%s needs the value of a traced array, which there is not while "
               "jit() and its kin trace: pestle.where() and pestle.cond() "
               "choose by one, pestle.while_loop() repeats, and static_argnums "
               "makes an argument a part of the function",
               what);
  return false;
}

// The one element of |self| as a Python number.
static PyObject* number_of(PyObject* self, const char* what) {
  pestle_type_t type = pestle_array_type(of(self));
  if (type.rank) {
    PyErr_Format(PyExc_TypeError, "%s needs an array of rank 0, not of rank %d",
                 what, (int)type.rank);
    return NULL;
  }
  return pestle_py_has_value(of(self), what) ? pestle_py_item(self, NULL)
                                             : NULL;
}

static int as_bool(PyObject* self) {
  PyObject* number = number_of(self, "bool()");
  int truth = number ? PyObject_IsTrue(number) : -1;
  Py_XDECREF(number);
  return truth;
}

static PyObject* as_int(PyObject* self) {
  PyObject* number = number_of(self, "int()");
  PyObject* result = number ? PyNumber_Long(number) : NULL;
  Py_XDECREF(number);
  return result;
}

static PyObject* as_float(PyObject* self) {
  PyObject* number = number_of(self, "float()");
  PyObject* result = number ? PyNumber_Float(number) : NULL;
  Py_XDECREF(number);
  return result;
}

static PyObject* as_index(PyObject* self) {
  pestle_dtype_t dtype = pestle_array_type(of(self)).dtype;
  if (!pestle_dtype_is(dtype, PESTLE_KIND_INT)) {
    PyErr_Format(PyExc_TypeError, "an array of %s is no index: integers are",
                 pestle_py_dtype_name(dtype));
    return NULL;
  }
  return number_of(self, "an index");
}

static PyObject* as_complex(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* number = number_of(self, "complex()");
  PyObject* result = number ? PyObject_CallFunctionObjArgs(
                                  (PyObject*)&PyComplex_Type, number, NULL)
                            : NULL;
  Py_XDECREF(number);
  return result;
}

// --- Fields ---

static PyObject* get_shape(PyObject* self, void* unused) {
  (void)unused;
  pestle_type_t type = pestle_array_type(of(self));
  PyObject* shape = PyTuple_New(type.rank);
  for (int32_t i = 0; shape && i < type.rank; ++i) {
    PyObject* dim = PyLong_FromLongLong(type.dims[i]);
    if (!dim || PyTuple_SetItem(shape, i, dim) < 0) Py_CLEAR(shape);
  }
  return shape;
}

static int64_t count_of(const pestle_type_t* type) {
  int64_t count = 1;
  for (int32_t i = 0; i < type->rank; ++i)
    count *= type->dims[i];
  return count;
}

static PyObject* get_size(PyObject* self, void* unused) {
  (void)unused;
  pestle_type_t type = pestle_array_type(of(self));
  return PyLong_FromLongLong(count_of(&type));
}
static PyObject* get_nbytes(PyObject* self, void* unused) {
  (void)unused;
  pestle_type_t type = pestle_array_type(of(self));
  return PyLong_FromLongLong(count_of(&type) *
                             (int64_t)pestle_dtype_size(type.dtype));
}
static PyObject* get_itemsize(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromLong(
      (long)pestle_dtype_size(pestle_array_type(of(self)).dtype));
}
static PyObject* get_ndim(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromLong(pestle_array_type(of(self)).rank);
}
static PyObject* get_dtype(PyObject* self, void* unused) {
  (void)unused;
  return pestle_py_dtype(pestle_array_type(of(self)).dtype);
}
static PyObject* get_device(PyObject* self, void* unused) {
  (void)unused;
  return pestle_py_device(pestle_array_device(of(self)));
}
static PyObject* get_state(PyObject* self, void* unused) {
  static const char* const states[] = {"data", "pending", "lazy", "traced",
                                       "failed"};
  (void)unused;
  return PyUnicode_FromString(states[pestle_array_state(of(self))]);
}
static PyObject* get_weak(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((pestle_py_array_t*)self)->weak != 0);
}
static PyObject* get_id(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromVoidPtr(of(self));
}
static PyObject* get_is_view(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(pestle_array_is_view(of(self)));
}

static PyObject* is_deleted(PyObject* self, PyObject* unused) {
  (void)unused;
  return PyBool_FromLong(((pestle_py_array_t*)self)->deleted);
}

// delete(): the object's hold on its memory ends.
static PyObject* delete_array(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_py_array_t* object = (pestle_py_array_t*)self;
  if (object->deleted) Py_RETURN_NONE;
  pestle_type_t type = pestle_array_type(object->array);
  pestle_array_t *old = object->array, *gone;
  pestle_status_t why =
      PESTLE_ERROR(INVALID_ARGUMENT, "the array was deleted by delete()");
  if (!pestle_py_ok(
          pestle_array_failed(pestle_array_device(old), &type, why, &gone))) {
    return NULL;
  }
  pestle_py_linger(old);
  object->array = gone;
  object->deleted = true;
  pestle_py_release(old);
  pestle_py_drain();
  Py_RETURN_NONE;
}

static Py_ssize_t length(PyObject* self) {
  pestle_type_t type = pestle_array_type(of(self));
  if (type.rank) return (Py_ssize_t)type.dims[0];
  PyErr_SetString(PyExc_TypeError, "an array of rank 0 has no length");
  return -1;
}

static PyObject* repr(PyObject* self) {
  return pestle_py_hook("repr", &self, 1);
}
static PyObject* str(PyObject* self) {
  return pestle_py_hook("str", &self, 1);
}
static PyObject* iter(PyObject* self) {
  return pestle_py_hook("iter", &self, 1);
}

// |self| becomes what |key| set to |value| gives.
static int set_item(PyObject* self, PyObject* key, PyObject* value) {
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
    return -1;
  }
  PyObject* result =
      pestle_py_hook("setitem", (PyObject*[]){self, key, value}, 3);
  if (!result) return -1;
  pestle_array_t* old = of(self);
  pestle_py_linger(old);
  ((pestle_py_array_t*)self)->deleted = false;
  ((pestle_py_array_t*)self)->array = of(result);
  ((pestle_py_array_t*)result)->array = old;
  Py_DECREF(result);
  return 0;
}

// Values never change: another name for the same one.
static PyObject* copy_array(PyObject* self, PyObject* unused) {
  (void)unused;
  pestle_array_retain(of(self));
  PyObject* result = pestle_py_wrap(of(self));
  if (!result) return NULL;
  ((pestle_py_array_t*)result)->weak = ((pestle_py_array_t*)self)->weak;
  ((pestle_py_array_t*)result)->deleted = ((pestle_py_array_t*)self)->deleted;
  return result;
}

static PyObject* array_new(PyTypeObject* type, PyObject* args,
                           PyObject* kwargs) {
  (void)type;
  (void)args;
  (void)kwargs;
  PyErr_SetString(PyExc_TypeError,
                  "arrays are made by pestle.asarray() and others");
  return NULL;
}

static PyGetSetDef fields[] = {
    {"shape", get_shape, NULL, "The extents, outermost first.", NULL},
    {"ndim", get_ndim, NULL, "How many axes there are.", NULL},
    {"size", get_size, NULL, "How many elements there are.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"dtype", get_dtype, NULL, "The type of the elements.", NULL},
    {"device", get_device, NULL, "Where the elements lie.", NULL},
    {"state", get_state, NULL,
     "'data', 'pending', 'lazy', 'traced' or 'failed', at this moment.", NULL},
    {"weak_type", get_weak, NULL,
     "Whether it is a number whose dtype others settle.", NULL},
    {"_id", get_id, NULL, NULL, NULL},
    {"is_view", get_is_view, NULL,
     "Whether it shares its memory with what it is a part of.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef methods[] = {
    {"item", pestle_py_item, METH_NOARGS,
     "item()\n--\n\nThe one element as a Python number. Evaluates.\n"
     "\n"
     "Raises ValueError for another count of elements, and for a traced or "
     "deleted array.\n"
     "\n"
     ">>> pt.asarray([[3]]).item()\n"
     "3"},
    {"tolist", pestle_py_tolist, METH_NOARGS,
     "tolist()\n--\n\nThe elements as nested lists. Evaluates.\n"
     "\n"
     "Raises ValueError for a traced or deleted array.\n"
     "\n"
     ">>> pt.asarray([[1, 2], [3, 4]]).tolist()\n"
     "[[1, 2], [3, 4]]"},
    {"is_deleted", is_deleted, METH_NOARGS,
     "is_deleted()\n--\n\nWhether its memory was given away, by a donation or "
     "by delete().\n"
     "\n"
     ">>> x = pt.ones((2,))\n"
     ">>> x.is_deleted()\n"
     "False"},
    {"delete", delete_array, METH_NOARGS,
     "delete()\n--\n\nGives its memory back now, where no other array sees it. "
     "Every later use\nraises ValueError.\n"
     "\n"
     ">>> x = pt.ones((2,))\n"
     ">>> x.delete()\n"
     ">>> x.is_deleted()\n"
     "True"},
    {"__complex__", as_complex, METH_NOARGS, NULL},
    {"__copy__", copy_array, METH_NOARGS, NULL},
    {"__dlpack__", (PyCFunction)(void (*)(void))pestle_py_dlpack,
     METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n"
     "--\n\nA capsule of the elements, for another library. Evaluates."},
    {"__dlpack_device__", pestle_py_dlpack_device, METH_NOARGS,
     "__dlpack_device__()\n--\n\nDLPack's device type and number."},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pestle_py_array_t, weak_refs),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_members, members},
    {Py_tp_doc,
     "An immutable value of elements of one dtype that is computed when "
     "somebody\n"
     "needs it: print(), item(), bool(), NumPy, or pestle.eval().\n"
     "\n"
     ">>> x = pt.asarray([1.0, 2.0])\n"
     ">>> y = x * 2 + 1\n"
     ">>> y.shape, y.dtype.name, y.state\n"
     "((2,), 'float32', 'lazy')\n"
     ">>> y.tolist()\n"
     "[3.0, 5.0]"},
    {Py_tp_new, PESTLE_PY_SLOT(array_new)},
    {Py_tp_dealloc, PESTLE_PY_SLOT(dealloc)},
    {Py_tp_repr, PESTLE_PY_SLOT(repr)},
    {Py_tp_str, PESTLE_PY_SLOT(str)},
    {Py_tp_iter, PESTLE_PY_SLOT(iter)},
    {Py_tp_hash, PESTLE_PY_SLOT(PyObject_HashNotImplemented)},
    {Py_tp_richcompare, PESTLE_PY_SLOT(compare)},
    {Py_tp_getset, fields},
    {Py_tp_methods, methods},
    {Py_mp_length, PESTLE_PY_SLOT(length)},
    {Py_mp_subscript, PESTLE_PY_SLOT(pestle_py_getitem)},
    {Py_mp_ass_subscript, PESTLE_PY_SLOT(set_item)},
    {Py_nb_add, PESTLE_PY_SLOT(add)},
    {Py_nb_subtract, PESTLE_PY_SLOT(subtract)},
    {Py_nb_multiply, PESTLE_PY_SLOT(multiply)},
    {Py_nb_true_divide, PESTLE_PY_SLOT(divide)},
    {Py_nb_floor_divide, PESTLE_PY_SLOT(floor_divide)},
    {Py_nb_remainder, PESTLE_PY_SLOT(remainder_of)},
    {Py_nb_power, PESTLE_PY_SLOT(power)},
    {Py_nb_matrix_multiply, PESTLE_PY_SLOT(matmul)},
    {Py_nb_and, PESTLE_PY_SLOT(and_of)},
    {Py_nb_or, PESTLE_PY_SLOT(or_of)},
    {Py_nb_xor, PESTLE_PY_SLOT(xor_of)},
    {Py_nb_lshift, PESTLE_PY_SLOT(left_shift)},
    {Py_nb_rshift, PESTLE_PY_SLOT(right_shift)},
    {Py_nb_negative, PESTLE_PY_SLOT(negative)},
    {Py_nb_positive, PESTLE_PY_SLOT(positive)},
    {Py_nb_invert, PESTLE_PY_SLOT(invert)},
    {Py_nb_absolute, PESTLE_PY_SLOT(absolute)},
    {Py_nb_bool, PESTLE_PY_SLOT(as_bool)},
    {Py_nb_int, PESTLE_PY_SLOT(as_int)},
    {Py_nb_float, PESTLE_PY_SLOT(as_float)},
    {Py_nb_index, PESTLE_PY_SLOT(as_index)},
    {Py_bf_getbuffer, PESTLE_PY_SLOT(pestle_py_get_buffer)},
    {Py_bf_releasebuffer, PESTLE_PY_SLOT(pestle_py_release_buffer)},
    {0, NULL},
};
static PyType_Spec spec = {"pestle.Array", sizeof(pestle_py_array_t), 0,
                           Py_TPFLAGS_DEFAULT, slots};

bool pestle_py_add_array(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return false;
  pestle_py.array_type = (PyTypeObject*)type;
  // NumPy leaves operators with an array of ours to us.
  return PyObject_SetAttrString(type, "__array_ufunc__", Py_None) == 0 &&
         PyModule_AddObjectRef(module, "Array", type) == 0;
}
