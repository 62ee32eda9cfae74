// SPDX-License-Identifier: Apache-2.0
// The Python module pestle._pestle: objects around what include/pestle has.
//
// python/ makes Python's values into arrays and back, keeps references, turns
// statuses into exceptions. python/ knows nothing of how arrays are promoted, placed
// or computed: each rule is in the library. It is written in the limited API of 3.11,
// so that one file serves that and every later version.
//
// The interpreter lock is held wherever it is not said otherwise, and released around
// whatever may compile, wait or run.
#ifndef PESTLE_PYTHON_MODULE_H_
#define PESTLE_PYTHON_MODULE_H_

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "pestle/numeric.h"
#include "pestle/pestle.h"

// A run that takes longer lets other threads have the interpreter: to let go of it
// and take it again costs 25 ns alone, and up to 5 ms where others want it.
#define PESTLE_PY_LONG_NS 20000

// A function as PyType_Slot has it.
#define PESTLE_PY_SLOT(function) ((void*)(uintptr_t)(function))

// --- Objects ---

typedef struct pestle_py_array_t {
  PyObject_HEAD pestle_array_t* array;
  // Of a number that a function was called with: what it becomes is settled by
  // the array that it meets. A pestle_dtype_kind_t, or 0.
  uint8_t weak;
  bool deleted;         // |array| has FAILED, since its memory was given away
  PyObject* weak_refs;  // what has weak references to it, or NULL
} pestle_py_array_t;

typedef struct pestle_py_dtype_t {
  PyObject_HEAD pestle_dtype_t dtype;
} pestle_py_dtype_t;

typedef struct pestle_py_device_t {
  PyObject_HEAD pestle_device_t* device;
} pestle_py_device_t;

typedef struct pestle_py_module_t {
  PyObject_HEAD pestle_module_t* module;
} pestle_py_module_t;

// What the module has, once a process (a second interpreter is refused).
typedef struct pestle_py_t {
  pestle_context_t* context;  // made when it is first needed, never released
  // Where new arrays are made on threads that say nothing else.
  pestle_device_t* device;
  PyTypeObject *array_type, *dtype_type, *device_type, *module_type, *jit_type,
      *tree_type, *stream_type;
  PyObject* error;                       // pestle.Error
  PyObject* dtypes[PESTLE_DTYPE_COUNT];  // pestle_py_dtype_t
  PyObject* ops;                         // names of ops to their numbers
  PyObject* hooks;                       // what pestle/*.py does for an array
  PyObject* nodes;                       // registered types of trees
  // Whether some thread has settings or a stream of its own, or the process other
  // settings than it began with: until then nobody looks for them.
  bool is_tuned;
  // Calls of jit() that look at arrays which only the objects keep. What an object lets
  // go of meanwhile lingers until there are none (jit_guard.c).
  size_t borrowing;
  struct pestle_py_linger_t* lingering;
} pestle_py_t;
extern pestle_py_t pestle_py;

static inline bool pestle_py_is_array(PyObject* object) {
  return Py_TYPE(object) == pestle_py.array_type;
}
static inline pestle_array_t* pestle_py_array(PyObject* object) {
  return ((pestle_py_array_t*)object)->array;
}

// --- module.c ---

// Sets the exception that |status| is, and releases it: false. NULL: true.
bool pestle_py_ok(pestle_status_t status);
// Gives messages of the library that wait to Python's logging.
void pestle_py_log(void);
// The context; NULL and an exception.
pestle_context_t* pestle_py_context(void);
// Calls |hook| of pestle/*.py; a new reference.
PyObject* pestle_py_hook(const char* hook, PyObject* const* args, size_t count);

// --- settings.c: what holds for the process, or for a thread ---

typedef struct pestle_py_settings_t {
  bool eager;  // each op is evaluated when it is recorded
  pestle_dtype_t default_float;
} pestle_py_settings_t;
const pestle_py_settings_t* pestle_py_settings(void);
// A number that is equal where settings are that a trace depends on.
uint32_t pestle_py_config_word(void);
// Where this thread makes new arrays. The context is there.
pestle_device_t* pestle_py_here(void);
// Makes it |device| for this thread, NULL: no other than for all. Returns what it was.
pestle_device_t* pestle_py_set_here(pestle_device_t* device);
// The stream that this thread evaluates on, or NULL; that of |device|, or NULL.
pestle_stream_t* pestle_py_stream(void);
pestle_stream_t* pestle_py_stream_on(pestle_device_t* device);
// What a number of |kind| becomes beside |dtype|, as settings have it.
bool pestle_py_dtype_of_number(pestle_dtype_t dtype, unsigned kind,
                               pestle_dtype_t* out_dtype);
bool pestle_py_add_settings(PyObject* module);

// --- interrupt_posix.c ---

// What a compilation of this thread looks at: whether Ctrl-C was pressed, on the main
// thread; NULL on others.
const pestle_control_t* pestle_py_control(void* unused);
// Notes which thread is the main one, at its next chance.
bool pestle_py_watch(void);

// --- dtype.c ---

PyObject* pestle_py_dtype(pestle_dtype_t dtype);  // a new reference
// The dtype that an object means: a dtype, its name, bool, int, float, complex, or
// what has such a name (NumPy's). False and an exception.
bool pestle_py_as_dtype(PyObject* object, pestle_dtype_t* out_dtype);
const char* pestle_py_dtype_name(pestle_dtype_t dtype);

// --- device.c ---

PyObject* pestle_py_device(pestle_device_t* device);  // a new reference
// The device that an object means; None or NULL: where new arrays are made.
bool pestle_py_as_device(PyObject* object, pestle_device_t** out_device);

// --- array.c ---

// Takes |array| over; NULL and an exception when there is no memory.
PyObject* pestle_py_wrap(pestle_array_t* array);
// The same of what |status| says came of making |*array|, an address since C fixes
// no order in which arguments are read.
PyObject* pestle_py_result(pestle_status_t status, pestle_array_t** array);
// Whether |array| is no traced one, whose value |what| needs; an exception.
bool pestle_py_has_value(const pestle_array_t* array, const char* what);
// Evaluates, without the interpreter lock.
bool pestle_py_eval(pestle_array_t* const* arrays, size_t count);

// --- convert.c ---

// The kind of a Python number, 0 of what is none.
unsigned pestle_py_number_kind(PyObject* object);
// A new array of what |object| is. |dtype| NONE: its own. |copy|: 1 always, 0 never,
// -1 where it must be. |device| may be NULL.
PyObject* pestle_py_asarray(PyObject* object, pestle_dtype_t dtype,
                            pestle_device_t* device, int copy);
// A number beside |like|, or one of |dtype| where that is not NONE.
pestle_array_t* pestle_py_number(PyObject* object, pestle_device_t* device,
                                 pestle_dtype_t dtype);
// One element of |dtype| written to |bytes|, of which there are 16.
bool pestle_py_encode(PyObject* object, pestle_dtype_t dtype,
                      unsigned char* bytes);
PyObject* pestle_py_decode(const unsigned char* bytes, pestle_dtype_t dtype);
PyObject* pestle_py_tolist(PyObject* self, PyObject* unused);
PyObject* pestle_py_item(PyObject* self, PyObject* unused);
// A copy on |device|, made without the interpreter lock.
PyObject* pestle_py_copy(pestle_array_t* array, pestle_device_t* device);
// The buffer protocol.
int pestle_py_get_buffer(PyObject* self, Py_buffer* view, int flags);
void pestle_py_release_buffer(PyObject* self, Py_buffer* view);
// Releases an array, which may give back buffers at once.
void pestle_py_release(pestle_array_t* array);
// Gives back buffers that arrays no longer see.
void pestle_py_drain(void);

// --- site.c ---

// Notes where the program is that records |array|, the result of |what|.
void pestle_py_set_site(pestle_array_t* array, const char* what);
// " (FILE:LINE, in FUNCTION)" of the innermost place of a traceback that is none of the
// package's; without one, "". A new reference.
PyObject* pestle_py_site_of_traceback(PyObject* trace);

// --- function.c ---

// Row |fn| of Python operands, at least one of which is an array.
PyObject* pestle_py_numeric(pestle_numeric_t fn, PyObject* const* x,
                            size_t count);
// Arrays of operands, numbers among which become what the others are; new
// references in |out_arrays|. False and an exception; or |out_arrays| NULL, where an
// operand is nothing that can be an array.
bool pestle_py_operands(PyObject* const* x, size_t count,
                        pestle_array_t** out_arrays, bool* out_foreign);
extern PyMethodDef pestle_py_functions[];

// --- index.c ---

PyObject* pestle_py_getitem(PyObject* self, PyObject* key);

// --- dlpack.c ---

PyObject* pestle_py_dlpack(PyObject* self, PyObject* const* args,
                           Py_ssize_t count, PyObject* names);
PyObject* pestle_py_dlpack_device(PyObject* self, PyObject* unused);

// --- jit_guard.c ---

// An object lets go of |array|, which a call may borrow from it: call this before.
void pestle_py_linger(pestle_array_t* array);

// --- jit.c, tree.c ---

bool pestle_py_add_dtypes(PyObject* module);
bool pestle_py_add_device(PyObject* module);
bool pestle_py_add_array(PyObject* module);
bool pestle_py_add_function(PyObject* module);
bool pestle_py_add_jit(PyObject* module);
bool pestle_py_add_api(PyObject* module);
bool pestle_py_add_ir(PyObject* module);
bool pestle_py_add_backends(PyObject* module);
bool pestle_py_add_session(PyObject* module);
bool pestle_py_add_decoder(PyObject* module);
bool pestle_py_add_tree(PyObject* module);
bool pestle_py_add_dlpack(PyObject* module);
bool pestle_py_add_custom(PyObject* module);

#endif  // PESTLE_PYTHON_MODULE_H_
