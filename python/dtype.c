// SPDX-License-Identifier: Apache-2.0
// Dtypes as Python objects, one each, with the names that the standard gives them.
#include <string.h>

#include "module.h"

typedef struct name_t {
  pestle_dtype_t dtype;
  const char* name;
} name_t;

static const name_t names[] = {
    {PESTLE_I1, "bool"},
    {PESTLE_I2, "int2"},
    {PESTLE_I4, "int4"},
    {PESTLE_I8, "int8"},
    {PESTLE_I16, "int16"},
    {PESTLE_I32, "int32"},
    {PESTLE_I64, "int64"},
    {PESTLE_U2, "uint2"},
    {PESTLE_U4, "uint4"},
    {PESTLE_U8, "uint8"},
    {PESTLE_U16, "uint16"},
    {PESTLE_U32, "uint32"},
    {PESTLE_U64, "uint64"},
    {PESTLE_BF16, "bfloat16"},
    {PESTLE_F16, "float16"},
    {PESTLE_F32, "float32"},
    {PESTLE_F64, "float64"},
    {PESTLE_C64, "complex64"},
    {PESTLE_C128, "complex128"},
    {PESTLE_F8E3M4, "float8_e3m4"},
    {PESTLE_F8E4M3, "float8_e4m3"},
    {PESTLE_F8E4M3FN, "float8_e4m3fn"},
    {PESTLE_F8E4M3FNUZ, "float8_e4m3fnuz"},
    {PESTLE_F8E4M3B11FNUZ, "float8_e4m3b11fnuz"},
    {PESTLE_F8E5M2, "float8_e5m2"},
    {PESTLE_F8E5M2FNUZ, "float8_e5m2fnuz"},
    {PESTLE_F8E8M0FNU, "float8_e8m0fnu"},
    {PESTLE_F6E2M3FN, "float6_e2m3fn"},
    {PESTLE_F6E3M2FN, "float6_e3m2fn"},
    {PESTLE_F4E2M1FN, "float4_e2m1fn"},
};
enum { NAMES = sizeof(names) / sizeof(names[0]) };

const char* pestle_py_dtype_name(pestle_dtype_t dtype) {
  for (size_t i = 0; i < NAMES; ++i) {
    if (names[i].dtype == dtype) return names[i].name;
  }
  return "none";
}

PyObject* pestle_py_dtype(pestle_dtype_t dtype) {
  PyObject* object = pestle_py.dtypes[dtype];
  Py_XINCREF(object);
  if (!object) PyErr_SetString(PyExc_TypeError, "there is no such dtype");
  return object;
}

static pestle_dtype_t by_name(PyObject* text) {
  for (size_t i = 0; i < NAMES; ++i) {
    if (PyUnicode_CompareWithASCIIString(text, names[i].name) == 0) {
      return names[i].dtype;
    }
  }
  return PESTLE_NONE;
}

// Of Python's own types the one that a number of it becomes by default.
static pestle_dtype_t by_type(PyObject* object) {
  if (object == (PyObject*)&PyBool_Type) return PESTLE_I1;
  if (object == (PyObject*)&PyLong_Type) return PESTLE_I64;
  pestle_dtype_t real = pestle_py_settings()->default_float;
  if (object == (PyObject*)&PyFloat_Type) return real;
  if (object == (PyObject*)&PyComplex_Type) {
    return real == PESTLE_F64 ? PESTLE_C128 : PESTLE_C64;
  }
  return PESTLE_NONE;
}

// The dtype of an object with a name: NumPy's dtypes have |name|, its scalar types
// |__name__|.
static pestle_dtype_t by_attribute(PyObject* object) {
  static const char* const attributes[] = {"name", "__name__"};
  pestle_dtype_t dtype = PESTLE_NONE;
  for (size_t i = 0; i < 2 && dtype == PESTLE_NONE; ++i) {
    PyObject* name = PyObject_GetAttrString(object, attributes[i]);
    if (name && PyUnicode_Check(name)) dtype = by_name(name);
    Py_XDECREF(name);
    PyErr_Clear();
  }
  return dtype;
}

bool pestle_py_as_dtype(PyObject* object, pestle_dtype_t* out_dtype) {
  if (Py_TYPE(object) == pestle_py.dtype_type) {
    *out_dtype = ((pestle_py_dtype_t*)object)->dtype;
    return true;
  }
  *out_dtype = PyUnicode_Check(object) ? by_name(object) : by_type(object);
  if (*out_dtype == PESTLE_NONE && !PyUnicode_Check(object)) {
    *out_dtype = by_attribute(object);
  }
  if (*out_dtype != PESTLE_NONE) return true;
  PyErr_Format(PyExc_TypeError,
               "%R is no dtype: pestle.float32, \"float32\" and float are",
               object);
  return false;
}

// --- The type ---

static PyObject* dtype_new(PyTypeObject* type, PyObject* args,
                           PyObject* kwargs) {
  (void)type;
  PyObject* object;
  pestle_dtype_t dtype;
  if (kwargs && PyDict_Size(kwargs)) {
    PyErr_SetString(PyExc_TypeError, "dtype() takes no keywords");
    return NULL;
  }
  if (!PyArg_ParseTuple(args, "O:dtype", &object)) return NULL;
  return pestle_py_as_dtype(object, &dtype) ? pestle_py_dtype(dtype) : NULL;
}

static pestle_dtype_t of(PyObject* self) {
  return ((pestle_py_dtype_t*)self)->dtype;
}

static PyObject* dtype_repr(PyObject* self) {
  return PyUnicode_FromFormat("pestle.%s", pestle_py_dtype_name(of(self)));
}
static PyObject* dtype_str(PyObject* self) {
  return PyUnicode_FromString(pestle_py_dtype_name(of(self)));
}
static PyObject* get_name(PyObject* self, void* unused) {
  (void)unused;
  return dtype_str(self);
}
static PyObject* get_itemsize(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromLong((long)pestle_dtype_size(of(self)));
}
static PyObject* get_bits(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromLong(pestle_dtype_info(of(self))->bits);
}
static PyObject* get_mlir(PyObject* self, void* unused) {
  (void)unused;
  return PyUnicode_FromString(pestle_dtype_info(of(self))->name);
}
static PyObject* get_kind(PyObject* self, void* unused) {
  (void)unused;
  switch (pestle_dtype_info(of(self))->kind) {
    case PESTLE_KIND_BOOL:
      return PyUnicode_FromString("b");
    case PESTLE_KIND_SIGNED:
      return PyUnicode_FromString("i");
    case PESTLE_KIND_UNSIGNED:
      return PyUnicode_FromString("u");
    case PESTLE_KIND_COMPLEX:
      return PyUnicode_FromString("c");
    default:
      return PyUnicode_FromString("f");
  }
}
// Equal to what means the same dtype, so that numpy.float32 may be compared.
static PyObject* dtype_compare(PyObject* self, PyObject* other, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  pestle_dtype_t dtype = of(self);
  if (Py_TYPE(other) != pestle_py.dtype_type &&
      !pestle_py_as_dtype(other, &dtype)) {
    PyErr_Clear();
    dtype = PESTLE_NONE;
  } else if (Py_TYPE(other) == pestle_py.dtype_type) {
    dtype = of(other);
  }
  return PyBool_FromLong((dtype == of(self)) == (op == Py_EQ));
}
static Py_hash_t dtype_hash(PyObject* self) {
  return (Py_hash_t)of(self) + 1;
}
static PyObject* dtype_reduce(PyObject* self, PyObject* unused) {
  (void)unused;
  return Py_BuildValue("O(s)", pestle_py.dtype_type,
                       pestle_py_dtype_name(of(self)));
}

static PyGetSetDef dtype_fields[] = {
    {"name", get_name, NULL, "The name, such as 'float32'.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes of an element.", NULL},
    {"bits", get_bits, NULL, "Bits of a value.", NULL},
    {"kind", get_kind, NULL, "'b', 'i', 'u', 'f' or 'c'.", NULL},
    {"mlir", get_mlir, NULL, "The name in StableHLO.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot dtype_slots[] = {
    {Py_tp_doc,
     "dtype(object)\n--\n\nThe type of an array's elements.\n"
     "\n"
     "object: a dtype, its name, bool, int, float, complex, or a dtype of "
     "NumPy's.\n"
     "Raises TypeError for what is no dtype.\n"
     "\n"
     ">>> pt.dtype(\"float32\") == pt.float32\n"
     "True\n"
     ">>> pt.float32.itemsize, pt.float32.kind\n"
     "(4, 'f')"},
    {Py_tp_new, PESTLE_PY_SLOT(dtype_new)},
    {Py_tp_repr, PESTLE_PY_SLOT(dtype_repr)},
    {Py_tp_str, PESTLE_PY_SLOT(dtype_str)},
    {Py_tp_hash, PESTLE_PY_SLOT(dtype_hash)},
    {Py_tp_richcompare, PESTLE_PY_SLOT(dtype_compare)},
    {Py_tp_getset, dtype_fields},
    {Py_tp_methods, dtype_methods},
    {0, NULL},
};
static PyType_Spec dtype_spec = {"pestle.dtype", sizeof(pestle_py_dtype_t), 0,
                                 Py_TPFLAGS_DEFAULT, dtype_slots};

bool pestle_py_add_dtypes(PyObject* module) {
  PyObject* type = PyType_FromSpec(&dtype_spec);
  if (!type) return false;
  pestle_py.dtype_type = (PyTypeObject*)type;
  for (size_t i = 0; i < NAMES; ++i) {
    pestle_py_dtype_t* dtype =
        (pestle_py_dtype_t*)PyType_GenericAlloc((PyTypeObject*)type, 0);
    if (!dtype) return false;
    dtype->dtype = names[i].dtype;
    pestle_py.dtypes[names[i].dtype] = (PyObject*)dtype;
    if (PyModule_AddObjectRef(module, names[i].name, (PyObject*)dtype) < 0) {
      return false;
    }
  }
  return PyModule_AddObjectRef(module, "dtype", type) == 0;
}
