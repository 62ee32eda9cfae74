// SPDX-License-Identifier: Apache-2.0
// What include/pestle/python.h offers to extensions of others.
#include "module.h"
#include "pestle/python.h"

static int check(PyObject* object) {
  return pestle_py_is_array(object);
}

static pestle_array_t* get(PyObject* object) {
  if (!pestle_py_is_array(object)) {
    PyErr_Format(PyExc_TypeError, "%R is of %R, not a pestle.Array", object,
                 (PyObject*)Py_TYPE(object));
    return NULL;
  }
  pestle_array_retain(pestle_py_array(object));
  return pestle_py_array(object);
}

static pestle_array_t* convert(PyObject* object) {
  PyObject* made = pestle_py_asarray(object, PESTLE_NONE, NULL, -1);
  pestle_array_t* array = made ? get(made) : NULL;
  Py_XDECREF(made);
  return array;
}

static PyObject* wrap(pestle_array_t* array) {
  if (array) return pestle_py_wrap(array);
  if (!PyErr_Occurred()) {
    PyErr_SetString(PyExc_SystemError, "NULL is no array to be wrapped");
  }
  return NULL;
}

static pestle_device_t* device(PyObject* object) {
  pestle_device_t* found = NULL;
  return pestle_py_as_device(object, &found) ? found : NULL;
}

static int ok(pestle_status_t status) {
  return pestle_py_ok(status);
}

static const pestle_python_api_t api = {
    .struct_size = sizeof(api),
    .context = pestle_py_context,
    .check = check,
    .get = get,
    .convert = convert,
    .wrap = wrap,
    .device = device,
    .ok = ok,
};

bool pestle_py_add_api(PyObject* module) {
  PyObject* capsule =
      PyCapsule_New((void*)(uintptr_t)&api, PESTLE_PYTHON_CAPSULE, NULL);
  bool fine = capsule && PyModule_AddObjectRef(module, "api", capsule) == 0;
  Py_XDECREF(capsule);
  return fine;
}
