// SPDX-License-Identifier: Apache-2.0
// Arrays of the Python package in extensions of others, written in C or C++: an object
// as an array of array.h, an array as an object. docs/python.md has an example, tests/
// python/extension one that is built and run.
//
//   #include <Python.h>
//   #include "pestle/python.h"
//
//   const pestle_python_api_t* api = pestle_python_import();  // NULL: an exception
//   pestle_array_t* x = api->get(object);                     // a reference
//   ...pestle_array_add(x, x, &y)...
//   return api->wrap(y);
//
// The extension is linked to libpestle, of which a process has one. Python.h comes
// first, in its whole or its limited API. All functions are called with the interpreter
// lock held, and fail with NULL or 0 and a Python exception.
#ifndef PESTLE_PYTHON_H_
#define PESTLE_PYTHON_H_

#include <stddef.h>

#include "pestle/array.h"
#include "pestle/context.h"

PESTLE_EXTERN_C_BEGIN

#ifndef Py_PYTHON_H
typedef struct _object PyObject;  // as Python.h has it
#endif

// What the package offers. It grows by appending: |struct_size| says what there is.
typedef struct pestle_python_api_t {
  size_t struct_size;
  // The context that all arrays of the package are of. Borrowed.
  pestle_context_t* (*context)(void);
  // Whether |object| is a pestle.Array.
  int (*check)(PyObject* object);
  // The array that |object|, a pestle.Array, has at this moment, with a reference that
  // is the caller's: x[i] = v gives the object another. TypeError: any other object.
  pestle_array_t* (*get)(PyObject* object);
  // An array made of |object| as pestle.asarray() makes it, with a reference that is
  // the caller's: of a number, lists, memory that another library shows.
  pestle_array_t* (*convert)(PyObject* object);
  // A new pestle.Array. |array|, of the package's context, is taken over, also when
  // this fails; NULL is a failure that has set an exception already.
  PyObject* (*wrap)(pestle_array_t* array);
  // The device that |object| means: a pestle.device, a name, or None, which is where
  // the thread makes new arrays. Borrowed.
  pestle_device_t* (*device)(PyObject* object);
  // 1 for NULL. Else sets the exception that |status|, which is taken over, is in the
  // package, and returns 0.
  int (*ok)(pestle_status_t status);
} pestle_python_api_t;

#define PESTLE_PYTHON_CAPSULE "pestle._pestle.api"

#ifdef Py_PYTHON_H
// The package's functions, which stay to the end of the process; imports the package.
// NULL: an exception. ImportError: the package is older than this header.
static inline const pestle_python_api_t* pestle_python_import(void) {
  const pestle_python_api_t* api =
      (const pestle_python_api_t*)PyCapsule_Import(PESTLE_PYTHON_CAPSULE, 0);
  if (api && api->struct_size < sizeof(*api)) {
    PyErr_SetString(PyExc_ImportError,
                    "the package pestle is older than the pestle/python.h that "
                    "this extension was built with");
    return NULL;
  }
  return api;
}
#endif

PESTLE_EXTERN_C_END

#endif  // PESTLE_PYTHON_H_
