// SPDX-License-Identifier: Apache-2.0
// Where in the program something is: the innermost line that is none of the package's.
#include "module.h"

// Whether |code| is of a file of the package.
static bool is_own(PyObject* code) {
  PyObject* home = PyDict_GetItemString(pestle_py.hooks, "home");
  PyObject* file = PyObject_GetAttrString(code, "co_filename");
  bool own = home && file && PyUnicode_Check(file) &&
             PyUnicode_Tailmatch(file, home, 0, PY_SSIZE_T_MAX, -1) == 1;
  Py_XDECREF(file);
  return own;
}

// "FILE:LINE, in FUNCTION" of |line| in |code|.
static PyObject* site_text(PyObject* code, PyObject* line) {
  PyObject* file = PyObject_GetAttrString(code, "co_filename");
  PyObject* name = PyObject_GetAttrString(code, "co_qualname");
  if (!name) {
    PyErr_Clear();
    name = PyObject_GetAttrString(code, "co_name");
  }
  PyObject* text = file && name
                       ? PyUnicode_FromFormat("%S:%S, in %S", file, line, name)
                       : NULL;
  Py_XDECREF(file);
  Py_XDECREF(name);
  return text;
}

// The same of |frame|, or NULL of one of the package's.
static PyObject* text_of_frame(PyObject* frame) {
  PyObject* code = PyObject_GetAttrString(frame, "f_code");
  PyObject* line =
      code && !is_own(code) ? PyObject_GetAttrString(frame, "f_lineno") : NULL;
  PyObject* text = line ? site_text(code, line) : NULL;
  Py_XDECREF(code);
  Py_XDECREF(line);
  return text;
}

static PyObject* here(void) {
  PyObject* frame = Py_XNewRef((PyObject*)PyEval_GetFrame());
  while (frame && frame != Py_None) {
    PyObject* text = text_of_frame(frame);
    PyObject* back = text ? NULL : PyObject_GetAttrString(frame, "f_back");
    Py_DECREF(frame);
    if (text) return text;
    frame = back;
  }
  Py_XDECREF(frame);
  return NULL;
}

void pestle_py_set_site(pestle_array_t* array, const char* what) {
  PyObject* place = here();
  PyObject* text = place ? PyUnicode_FromFormat("%U: %s", place, what) : NULL;
  const char* words = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (words) pestle_status_release(pestle_array_set_site(array, words));
  PyErr_Clear();
  Py_XDECREF(place);
  Py_XDECREF(text);
}

PyObject* pestle_py_site_of_traceback(PyObject* trace) {
  PyObject* text = NULL;
  PyObject* at = Py_XNewRef(trace);
  while (at && at != Py_None) {
    PyObject* frame = PyObject_GetAttrString(at, "tb_frame");
    PyObject* line = PyObject_GetAttrString(at, "tb_lineno");
    PyObject* code = frame ? PyObject_GetAttrString(frame, "f_code") : NULL;
    if (code && line && !is_own(code)) {
      Py_XDECREF(text);
      text = site_text(code, line);
    }
    Py_XDECREF(frame);
    Py_XDECREF(line);
    Py_XDECREF(code);
    PyObject* next = PyObject_GetAttrString(at, "tb_next");
    Py_DECREF(at);
    at = next;
  }
  Py_XDECREF(at);
  PyErr_Clear();
  PyObject* result =
      text ? PyUnicode_FromFormat(" (%U)", text) : PyUnicode_FromString("");
  Py_XDECREF(text);
  return result;
}
