// SPDX-License-Identifier: Apache-2.0
// Devices, backends and their memory.
#include <string.h>

#include "module.h"

PyObject* pestle_py_device(pestle_device_t* device) {
  pestle_py_device_t* object =
      (pestle_py_device_t*)PyType_GenericAlloc(pestle_py.device_type, 0);
  if (object) object->device = device;
  return (PyObject*)object;
}

static pestle_device_t* of(PyObject* self) {
  return ((pestle_py_device_t*)self)->device;
}

bool pestle_py_as_device(PyObject* object, pestle_device_t** out_device) {
  pestle_context_t* context = pestle_py_context();
  if (!context) return false;
  if (!object || object == Py_None) {
    *out_device = pestle_py_here();
    return true;
  }
  if (Py_TYPE(object) == pestle_py.device_type) {
    *out_device = of(object);
    return true;
  }
  const char* name =
      PyUnicode_Check(object) ? PyUnicode_AsUTF8AndSize(object, NULL) : NULL;
  if (!name) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_TypeError,
                   "%R is no device: \"cpu\", \"gpu:1\" and "
                   "\"cuda\" name one",
                   object);
    }
    return false;
  }
  pestle_status_t status = pestle_context_device(context, name, out_device);
  if (pestle_status_code(status) != PESTLE_STATUS_NOT_FOUND) {
    return pestle_py_ok(status);
  }
  PyObject* found = pestle_py_hook("find_backend", &object, 1);
  int is_found = found ? PyObject_IsTrue(found) : -1;
  Py_XDECREF(found);
  if (is_found == 1) {
    pestle_status_release(status);
    status = pestle_context_device(context, name, out_device);
  }
  // An exception of the search stays; pestle_py_ok() sets none over it.
  return pestle_py_ok(status) && is_found >= 0;
}

static PyObject* device_new(PyTypeObject* type, PyObject* args,
                            PyObject* kwargs) {
  (void)type;
  (void)kwargs;
  PyObject* spec = NULL;
  pestle_device_t* device;
  if (!PyArg_ParseTuple(args, "|O:device", &spec)) return NULL;
  return pestle_py_as_device(spec, &device) ? pestle_py_device(device) : NULL;
}

static PyObject* device_str(PyObject* self) {
  return PyUnicode_FromString(pestle_device_name(of(self)));
}
static PyObject* device_repr(PyObject* self) {
  return PyUnicode_FromFormat("device('%s')", pestle_device_name(of(self)));
}
static PyObject* device_compare(PyObject* self, PyObject* other, int op) {
  if (Py_TYPE(other) != pestle_py.device_type || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  return PyBool_FromLong((of(self) == of(other)) == (op == Py_EQ));
}
static Py_hash_t device_hash(PyObject* self) {
  return (Py_hash_t)((uintptr_t)of(self) >> 4);
}
static PyObject* get_name(PyObject* self, void* unused) {
  (void)unused;
  return device_str(self);
}
static PyObject* get_type(PyObject* self, void* unused) {
  (void)unused;
  return PyUnicode_FromString(pestle_device_type(of(self)));
}
static PyObject* get_index(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromLong(pestle_device_index(of(self)));
}
static PyObject* get_dlpack(PyObject* self, void* unused) {
  (void)unused;
  pestle_dl_device_t dl = pestle_device_dl(of(self));
  return Py_BuildValue("ii", (int)dl.device_type, (int)dl.device_id);
}
static PyObject* get_properties(PyObject* self, void* unused) {
  (void)unused;
  PyObject* dict = PyDict_New();
  for (uint32_t i = 0; dict; ++i) {
    pestle_device_property_t p = {.struct_size = sizeof(p)};
    pestle_status_t status = pestle_device_property(of(self), i, &p);
    if (status) {
      pestle_status_release(status);
      return dict;
    }
    PyObject* value = p.is_text ? PyUnicode_FromString(p.text)
                                : PyLong_FromLongLong(p.integer);
    if (!value || PyDict_SetItemString(dict, p.name, value) < 0) {
      Py_CLEAR(dict);
    }
    Py_XDECREF(value);
  }
  return NULL;
}

static PyGetSetDef device_fields[] = {
    {"name", get_name, NULL, "Backend and number, such as 'cuda:1'.", NULL},
    {"type", get_type, NULL,
     "'cpu', 'gpu' or 'software': a driver that computes on the CPU.", NULL},
    {"index", get_index, NULL, "The number among those of its type.", NULL},
    {"dlpack", get_dlpack, NULL, "DLPack's (device_type, device_id).", NULL},
    {"properties", get_properties, NULL, "What the backend tells of it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot device_slots[] = {
    {Py_tp_doc,
     "device(spec=None)\n--\n\nThe device that a text names: a type ('cpu', "
     "'gpu:1'), best backend first,\nor a backend ('llvm', 'cuda:1').\n"
     "\n"
     "spec: a text, a device, or None: where new arrays are made.\n"
     "Raises TypeError for what is neither, Error for a device that is not "
     "there.\n"
     "\n"
     ">>> pt.device(\"cpu\").type\n"
     "'cpu'"},
    {Py_tp_new, PESTLE_PY_SLOT(device_new)},
    {Py_tp_repr, PESTLE_PY_SLOT(device_repr)},
    {Py_tp_str, PESTLE_PY_SLOT(device_str)},
    {Py_tp_hash, PESTLE_PY_SLOT(device_hash)},
    {Py_tp_richcompare, PESTLE_PY_SLOT(device_compare)},
    {Py_tp_getset, device_fields},
    {0, NULL},
};
static PyType_Spec device_spec = {"pestle.device", sizeof(pestle_py_device_t),
                                  0, Py_TPFLAGS_DEFAULT, device_slots};

bool pestle_py_add_device(PyObject* module) {
  PyObject* type = PyType_FromSpec(&device_spec);
  if (!type) return false;
  pestle_py.device_type = (PyTypeObject*)type;
  return PyModule_AddObjectRef(module, "device", type) == 0;
}
