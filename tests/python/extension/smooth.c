// SPDX-License-Identifier: Apache-2.0
// An extension of somebody else: pestle's arrays in, pestle's arrays out, and memory of
// its own that an array sees.
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdlib.h>

#include "pestle/pestle.h"
#include "pestle/python.h"

static const pestle_python_api_t* api;
static int freed;

// smooth(x) -> x + (x reversed), recorded.
static PyObject* smooth(PyObject* self, PyObject* object) {
  (void)self;
  pestle_array_t *x = api->get(object), *back = NULL, *y = NULL;
  if (!x) return NULL;
  int64_t axis = 0;
  pestle_reverse_attrs_t attrs = {sizeof(attrs), {&axis, 1}};
  pestle_status_t status = pestle_array_reverse(x, &attrs, &back);
  if (!status) status = pestle_array_add(x, back, &y);
  pestle_array_release(back);
  pestle_array_release(x);
  return api->ok(status) ? api->wrap(y) : NULL;
}

// total(object) -> the sum of what asarray() makes of object, read in C.
static PyObject* total(PyObject* self, PyObject* object) {
  (void)self;
  pestle_array_t *x = api->convert(object), *f = NULL;
  if (!x) return NULL;
  double sum = 0;
  pestle_tensor_t t;
  pestle_type_t type = pestle_array_type(x);
  type.dtype = PESTLE_F64;
  pestle_status_t status = pestle_array_convert(x, NULL, type, &f);
  if (!status) status = pestle_array_data(f, &t);
  if (!status) {
    const double* data =
        (const double*)(const void*)((const char*)t.data + t.byte_offset);
    int64_t count = 1;
    for (int32_t i = 0; i < t.ndim; ++i)
      count *= t.shape[i];
    for (int64_t i = 0; i < count; ++i)
      sum += data[i];
  }
  pestle_array_release(f);
  pestle_array_release(x);
  return api->ok(status) ? PyFloat_FromDouble(sum) : NULL;
}

static void give_back(void* self) {
  free(self);
  ++freed;
}

// squares(n, device) -> 0, 1, 4, ... in memory of this extension.
static PyObject* squares(PyObject* self, PyObject* args) {
  (void)self;
  long long n;
  PyObject* spec = NULL;
  if (!PyArg_ParseTuple(args, "L|O", &n, &spec)) return NULL;
  pestle_device_t* device = api->device(spec);
  float* data = device ? malloc((size_t)n * sizeof(float)) : NULL;
  if (!device) return NULL;
  if (!data) return PyErr_NoMemory();
  for (long long i = 0; i < n; ++i)
    data[i] = (float)(i * i);
  int64_t dims[] = {n};
  pestle_tensor_t tensor = {.data = data,
                            .device = {PESTLE_DEVICE_CPU, 0},
                            .ndim = 1,
                            .dtype = pestle_dtype_to_dlpack(PESTLE_F32),
                            .shape = dims};
  pestle_buffer_wrap_options_t options = {.struct_size = sizeof(options),
                                          .release = give_back,
                                          .release_self = data};
  pestle_array_t* array = NULL;
  pestle_status_t status = pestle_array_wrap(device, &tensor, &options, &array);
  if (status) free(data);
  return api->ok(status) ? api->wrap(array) : NULL;
}

static PyObject* is_array(PyObject* self, PyObject* object) {
  (void)self;
  return PyBool_FromLong(api->check(object));
}

static PyObject* count_freed(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return PyLong_FromLong(freed);
}

static PyMethodDef functions[] = {
    {"smooth", smooth, METH_O, NULL},
    {"total", total, METH_O, NULL},
    {"squares", squares, METH_VARARGS, NULL},
    {"is_array", is_array, METH_O, NULL},
    {"freed", count_freed, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        .m_name = "smooth", .m_size = -1,
                                        .m_methods = functions};

PyMODINIT_FUNC PyInit_smooth(void);
PyMODINIT_FUNC PyInit_smooth(void) {
  api = pestle_python_import();
  return api ? PyModule_Create(&definition) : NULL;
}
