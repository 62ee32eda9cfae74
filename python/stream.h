// SPDX-License-Identifier: Apache-2.0
// Streams as Python objects, and evaluation on them.
#ifndef PESTLE_PYTHON_STREAM_H_
#define PESTLE_PYTHON_STREAM_H_

#include "tree.h"

// Of an object of pestle.Stream, which keeps it.
pestle_stream_t* pestle_py_stream_of(PyObject* stream);
pestle_device_t* pestle_py_stream_device(PyObject* stream);
bool pestle_py_add_stream(PyObject* module);

#endif  // PESTLE_PYTHON_STREAM_H_
