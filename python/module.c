// SPDX-License-Identifier: Apache-2.0
// The module: its start, its context, exceptions.
#include "ir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pestle_py_t pestle_py;

// --- Exceptions ---

static PyObject* exception_of(pestle_status_code_t code) {
  switch (code) {
    case PESTLE_STATUS_INVALID_ARGUMENT:
      return PyExc_ValueError;
    case PESTLE_STATUS_WRONG_TYPE:
      return PyExc_TypeError;
    case PESTLE_STATUS_OUT_OF_RANGE:
      return PyExc_IndexError;
    case PESTLE_STATUS_OUT_OF_MEMORY:
      return PyExc_MemoryError;
    case PESTLE_STATUS_UNSUPPORTED:
      return PyExc_NotImplementedError;
    case PESTLE_STATUS_CANCELLED:
      return PyExc_KeyboardInterrupt;
    case PESTLE_STATUS_OK:
    case PESTLE_STATUS_MALFORMED:
    case PESTLE_STATUS_NOT_FOUND:
    case PESTLE_STATUS_RESOURCE_EXHAUSTED:
    case PESTLE_STATUS_IO:
    case PESTLE_STATUS_INCOMPATIBLE:
    case PESTLE_STATUS_UNAVAILABLE:
    case PESTLE_STATUS_DEADLINE_EXCEEDED:
    case PESTLE_STATUS_INTERNAL:
    case PESTLE_STATUS_CODE_COUNT:
      break;
  }
  return pestle_py.error;
}

// The notes of |status| as a list.
static PyObject* notes_of(pestle_status_t status) {
  PyObject* notes = PyList_New(0);
  const char* note;
  for (size_t i = 0; notes && (note = pestle_status_note(status, i)); ++i) {
    PyObject* text =
        PyUnicode_DecodeUTF8(note, (Py_ssize_t)strlen(note), "replace");
    if (!text || PyList_Append(notes, text) < 0) Py_CLEAR(notes);
    Py_XDECREF(text);
  }
  return notes;
}

// Raises |type| with the sentence, the notes behind it, and both as attributes.
static void set_exception(PyObject* type, pestle_status_t status) {
  const char* code = pestle_status_code_name(pestle_status_code(status));
  const char* message = pestle_status_message(status);
  PyObject* notes = notes_of(status);
  PyObject* text =
      PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
  for (Py_ssize_t i = 0; notes && text && i < PyList_Size(notes); ++i) {
    PyObject* longer =
        PyUnicode_FromFormat("%U\n  %U", text, PyList_GetItem(notes, i));
    Py_DECREF(text);
    text = longer;
  }
  PyObject* error =
      text ? PyObject_CallFunctionObjArgs(type, text, NULL) : NULL;
  if (error && notes) {
    PyObject* name = PyUnicode_FromString(code);
    if (name && PyObject_SetAttrString(error, "code", name) == 0 &&
        PyObject_SetAttrString(error, "notes", notes) == 0) {
      PyErr_SetObject(type, error);
    }
    Py_XDECREF(name);
  }
  Py_XDECREF(error);
  Py_XDECREF(text);
  Py_XDECREF(notes);
}

bool pestle_py_ok(pestle_status_t status) {
  if (!status) return true;
  // A callback of ours that failed has set an exception of its own, and so has Python's
  // handler of the signal that cancelled a compilation, unless it is the program's.
  if (pestle_status_code(status) == PESTLE_STATUS_CANCELLED) {
    (void)PyErr_CheckSignals();
  }
  if (!PyErr_Occurred()) {
    set_exception(exception_of(pestle_status_code(status)), status);
  }
  pestle_status_release(status);
  return false;
}

// --- Messages ---
//
// The library logs with locks held and without the interpreter lock: messages wait in
// a list until the interpreter, which is told of them, gives them to Python's logging.

typedef struct message_t {
  struct message_t* next;
  pestle_log_level_t level;
  char text[];
} message_t;
static _Atomic(message_t*) messages;  // the latest first

// What comes of a message that fails is printed, as that of a finaliser is.
static void give_message(PyObject* logger, const message_t* message) {
  static const char* const methods[] = {
      [PESTLE_LOG_ERROR] = "error",
      [PESTLE_LOG_WARN] = "warning",
      [PESTLE_LOG_INFO] = "info",
      [PESTLE_LOG_DEBUG] = "debug",
  };
  PyObject* done = PyObject_CallMethod(logger, methods[message->level], "ss",
                                       "%s", message->text);
  if (!done) PyErr_WriteUnraisable(logger);
  Py_XDECREF(done);
}

void pestle_py_log(void) {
  if (!atomic_load_explicit(&messages, memory_order_relaxed)) return;
  message_t *list = atomic_exchange(&messages, NULL), *first = NULL;
  while (list) {
    message_t* next = list->next;
    list->next = first;
    first = list;
    list = next;
  }
  PyObject *type, *error, *trace;
  PyErr_Fetch(&type, &error, &trace);
  PyObject* logging = first ? PyImport_ImportModule("logging") : NULL;
  PyObject* logger =
      logging ? PyObject_CallMethod(logging, "getLogger", "s", "pestle") : NULL;
  if (first && !logger) PyErr_WriteUnraisable(pestle_py.hooks);
  while (first) {
    message_t* next = first->next;
    if (logger) give_message(logger, first);
    free(first);
    first = next;
  }
  Py_XDECREF(logger);
  Py_XDECREF(logging);
  PyErr_Restore(type, error, trace);
}

static int log_later(void* unused) {
  (void)unused;
  pestle_py_log();
  return 0;
}

// Any thread, with or without the interpreter lock.
static void log_message(void* user, pestle_log_level_t level,
                        const char* text) {
  (void)user;
  size_t size = strlen(text) + 1;
  message_t* message =
      Py_IsInitialized() ? malloc(sizeof(*message) + size) : NULL;
  if (!message) {
    fprintf(stderr, "pestle: %s\n", text);
    return;
  }
  message->level = level;
  memcpy(message->text, text, size);
  message_t* first = atomic_load(&messages);
  do {
    message->next = first;
  } while (!atomic_compare_exchange_weak(&messages, &first, message));
  // Where the queue is full the next call of the package gives them.
  (void)Py_AddPendingCall(log_later, NULL);
}

// --- Context ---

// Backends of other packages, which pestle/_plugins.py knows; the device; Ctrl-C.
static bool begin_context(void) {
  if (PyDict_GetItemString(pestle_py.hooks, "plugins")) {
    PyObject* done = pestle_py_hook("plugins", NULL, 0);
    Py_XDECREF(done);
    if (!done) return false;
  }
  return pestle_py_ok(pestle_context_device(pestle_py.context, NULL,
                                            &pestle_py.device)) &&
         pestle_py_ok(pestle_array_set_control(pestle_py.context,
                                               pestle_py_control, NULL));
}

pestle_context_t* pestle_py_context(void) {
  if (pestle_py.context) return pestle_py.context;
  pestle_context_options_t options = {.struct_size = sizeof(options),
                                      .log = log_message,
                                      .log_level = PESTLE_LOG_WARN,
                                      .use_environment = true};
  if (!pestle_py_ok(pestle_context_create(&options, &pestle_py.context))) {
    return NULL;
  }
  if (!begin_context()) {
    pestle_context_release(pestle_py.context);
    pestle_py.context = NULL;
  }
  return pestle_py.context;
}

PyObject* pestle_py_hook(const char* name, PyObject* const* args,
                         size_t count) {
  PyObject* hook = PyDict_GetItemString(pestle_py.hooks, name);
  if (!hook) {
    PyErr_Format(PyExc_SystemError, "pestle has no hook '%s'", name);
    return NULL;
  }
  PyObject* tuple = PyTuple_New((Py_ssize_t)count);
  if (!tuple) return NULL;
  for (size_t i = 0; i < count; ++i) {
    Py_INCREF(args[i]);
    PyTuple_SetItem(tuple, (Py_ssize_t)i, args[i]);
  }
  PyObject* result = PyObject_Call(hook, tuple, NULL);
  Py_DECREF(tuple);
  return result;
}

// --- Start ---

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "pestle._pestle",
    .m_doc = "The C half of pestle.",
    .m_size = -1,
    .m_methods = pestle_py_functions,
};

static bool add_error(PyObject* module) {
  pestle_py.error = PyErr_NewExceptionWithDoc(
      "pestle.Error",
      "What went wrong that is no wrong argument. code is the name of its\n"
      "status, notes are sentences of where it happened.\n"
      "\n"
      ">>> try:\n"
      "...     pt.device(\"nowhere\")\n"
      "... except pt.Error as error:\n"
      "...     print(error.code)\n"
      "NOT_FOUND",
      PyExc_RuntimeError, NULL);
  return pestle_py.error &&
         PyModule_AddObjectRef(module, "Error", pestle_py.error) == 0;
}

PyMODINIT_FUNC PyInit__pestle(void);
PyMODINIT_FUNC PyInit__pestle(void) {
  if (pestle_py.array_type) {
    PyErr_SetString(PyExc_ImportError,
                    "pestle is in another interpreter of this process: "
                    "subinterpreters are not supported");
    return NULL;
  }
  PyObject* module = PyModule_Create(&definition);
  if (!module) return NULL;
  pestle_py.hooks = PyDict_New();
  pestle_py.nodes = PyDict_New();
  (void)pestle_py_watch();
  bool made = pestle_py.hooks && pestle_py.nodes && add_error(module) &&
              PyModule_AddObjectRef(module, "hooks", pestle_py.hooks) == 0 &&
              pestle_py_add_dtypes(module) && pestle_py_add_device(module) &&
              pestle_py_add_array(module) && pestle_py_add_dlpack(module) &&
              pestle_py_add_function(module) && pestle_py_add_tree(module) &&
              pestle_py_add_ir(module) && pestle_py_add_backends(module) &&
              pestle_py_add_session(module) && pestle_py_add_decoder(module) &&
              pestle_py_add_settings(module) && pestle_py_add_api(module) &&
              pestle_py_add_jit(module) && pestle_py_add_custom(module) &&
              pestle_py_add_transform(module);
  if (made) return module;
  Py_DECREF(module);
  return NULL;
}
