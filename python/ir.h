// SPDX-License-Identifier: Apache-2.0
// Modules and captures.
#ifndef PESTLE_PYTHON_IR_H_
#define PESTLE_PYTHON_IR_H_

#include "module.h"

PyObject* pestle_py_module(pestle_module_t* module);  // takes it over
// What |function| makes of a tuple of traced arguments of |types|: its results, a
// tuple, the module, and the capture with its hidden arguments. |weak| may be NULL.
bool pestle_py_capture(pestle_device_t* device, const pestle_type_t* types,
                       const uint8_t* weak, size_t count, PyObject* function,
                       PyObject** out_arrays, pestle_module_t** out_module,
                       pestle_capture_t** out_capture);
// Whether this thread is in a capture.
bool pestle_py_is_capturing(void);
// A tuple of |count| arrays, which are taken over. |weak| may be NULL.
PyObject* pestle_py_wrap_all(pestle_array_t** arrays, const uint8_t* weak,
                             size_t count);
// What the arrays of a tuple hold, borrowed, in memory to be freed; NULL for what is no
// array. NULL and an exception where there is no memory.
pestle_array_t** pestle_py_arrays_of(PyObject* tuple);
// How many values the entry of |module| gives.
size_t pestle_py_result_count(pestle_module_t* module);
// The hidden arguments of a capture as a tuple.
PyObject* pestle_py_hidden(const pestle_capture_t* capture);
// The elements of |array|, which is computed for it, as a constant.
pestle_status_t pestle_py_constant(pestle_builder_t* builder,
                                   pestle_array_t* array,
                                   pestle_value_t** out_value);
// close(module, arrays): the module whose last arguments are the arrays, as constants.
PyObject* pestle_py_close(PyObject* self, PyObject* args);
// Modules as parts of a graph, and what is made of them.
bool pestle_py_add_transform(PyObject* module);

#endif  // PESTLE_PYTHON_IR_H_
