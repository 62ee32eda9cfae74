// SPDX-License-Identifier: Apache-2.0
// What holds for the process or for a thread: pestle.config, where new arrays are made,
// the stream that work goes to.
#include <stdlib.h>

#include "stream.h"

static pestle_py_settings_t common = {false, PESTLE_F32};

// Of a thread that says something else than the process.
static _Thread_local struct {
  pestle_py_settings_t settings;
  bool has_settings;
  pestle_device_t* device;
  PyObject* stream;  // a reference, or NULL
} here;

const pestle_py_settings_t* pestle_py_settings(void) {
  return here.has_settings ? &here.settings : &common;
}

uint32_t pestle_py_config_word(void) {
  // An eager function is traced as any other is.
  return (uint32_t)pestle_py_settings()->default_float;
}

pestle_device_t* pestle_py_here(void) {
  return here.device ? here.device : pestle_py.device;
}

pestle_device_t* pestle_py_set_here(pestle_device_t* device) {
  pestle_device_t* before = here.device;
  here.device = device;
  return before;
}

pestle_stream_t* pestle_py_stream(void) {
  return here.stream ? pestle_py_stream_of(here.stream) : NULL;
}

pestle_stream_t* pestle_py_stream_on(pestle_device_t* device) {
  if (!here.stream || pestle_py_stream_device(here.stream) != device)
    return NULL;
  return pestle_py_stream_of(here.stream);
}

bool pestle_py_dtype_of_number(pestle_dtype_t dtype, unsigned kind,
                               pestle_dtype_t* out_dtype) {
  if (!pestle_py_ok(pestle_dtype_of_number(dtype, (pestle_dtype_kind_t)kind,
                                           out_dtype))) {
    return false;
  }
  bool is_whole = pestle_dtype_is(dtype, PESTLE_KIND_BOOL | PESTLE_KIND_INT);
  pestle_dtype_t real = pestle_py_settings()->default_float;
  if (is_whole && kind == PESTLE_KIND_FLOAT) *out_dtype = real;
  if (is_whole && kind == PESTLE_KIND_COMPLEX && real == PESTLE_F64) {
    *out_dtype = PESTLE_C128;
  }
  return true;
}

// --- As functions ---

static PyObject* pack(const pestle_py_settings_t* settings) {
  return Py_BuildValue("(ON)", settings->eager ? Py_True : Py_False,
                       pestle_py_dtype(settings->default_float));
}

// get_settings() -> (eager, default_float)
static PyObject* get_settings(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  return pack(pestle_py_settings());
}

// set_settings(eager, default_float, of_thread) -> what this thread had, or None.
// |eager| None: this thread has none of its own from now on.
static PyObject* set_settings(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *eager, *dtype;
  int of_thread;
  if (!PyArg_ParseTuple(args, "OOp:set_settings", &eager, &dtype, &of_thread)) {
    return NULL;
  }
  pestle_py_settings_t settings = *pestle_py_settings();
  if (eager != Py_None) {
    int truth = PyObject_IsTrue(eager);
    if (truth < 0 || !pestle_py_as_dtype(dtype, &settings.default_float)) {
      return NULL;
    }
    settings.eager = truth;
    if (settings.default_float != PESTLE_F32 &&
        settings.default_float != PESTLE_F64) {
      PyErr_Format(PyExc_ValueError,
                   "default_float is %R: float32 and float64 are known", dtype);
      return NULL;
    }
  }
  PyObject* before =
      here.has_settings ? pack(&here.settings) : Py_NewRef(Py_None);
  if (!before) return NULL;
  pestle_py.is_tuned = true;
  if (!of_thread) {
    common = settings;
  } else {
    here.has_settings = eager != Py_None;
    here.settings = settings;
  }
  return before;
}

static PyObject* set_default(PyObject* self, PyObject* spec) {
  (void)self;
  pestle_device_t* device;
  if (!pestle_py_as_device(spec, &device)) return NULL;
  PyObject* before = pestle_py_device(pestle_py.device);
  if (before) pestle_py.device = device;
  return before;
}

// set_here(device or None) -> what this thread had, or None.
static PyObject* set_here(PyObject* self, PyObject* spec) {
  (void)self;
  pestle_device_t* device = NULL;
  if (spec != Py_None && !pestle_py_as_device(spec, &device)) return NULL;
  PyObject* before =
      here.device ? pestle_py_device(here.device) : Py_NewRef(Py_None);
  if (before) here.device = device;
  return before;
}

// set_stream(stream or None) -> what this thread had, or None.
static PyObject* set_stream(PyObject* self, PyObject* stream) {
  (void)self;
  if (stream != Py_None && Py_TYPE(stream) != pestle_py.stream_type) {
    PyErr_Format(PyExc_TypeError, "%R is no stream: pestle.Stream() makes one",
                 stream);
    return NULL;
  }
  PyObject* before = here.stream ? here.stream : Py_NewRef(Py_None);
  pestle_py.is_tuned = true;
  here.stream = stream == Py_None ? NULL : Py_NewRef(stream);
  return before;
}

static PyMethodDef functions[] = {
    {"get_settings", get_settings, METH_NOARGS, NULL},
    {"set_settings", set_settings, METH_VARARGS, NULL},
    {"set_here", set_here, METH_O, NULL},
    {"set_stream", set_stream, METH_O, NULL},
    {"set_default_device", set_default, METH_O,
     "set_default_device(device, /)\n--\n\nMakes new arrays be made on device "
     "from now on. Returns the one before.\n"
     "\n"
     "device: a device or its name. Threads that are in a block of "
     "default_device() have\n"
     "their own.\n"
     "Raises TypeError for no device, Error for one that is not there.\n"
     "\n"
     ">>> before = pt.set_default_device(\"cpu\")\n"
     ">>> _ = pt.set_default_device(before)"},
    {NULL, NULL, 0, NULL},
};

bool pestle_py_add_settings(PyObject* module) {
  return PyModule_AddFunctions(module, functions) == 0 &&
         pestle_py_add_stream(module);
}
