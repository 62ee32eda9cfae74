// SPDX-License-Identifier: Apache-2.0
// The functions of the module: rows of numeric.def, and every op of array.h in its
// generic form, of which pestle/*.py composes the others.
#include <stdlib.h>
#include <string.h>

#include "numeric_docs.h"
#include "tree.h"

// --- Operands ---

// Which operand says what numbers become: the first array that is no number itself,
// else the first array.
static PyObject* leader_of(PyObject* const* x, size_t count) {
  PyObject* leader = NULL;
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_py_is_array(x[i])) continue;
    if (!((pestle_py_array_t*)x[i])->weak) return x[i];
    if (!leader) leader = x[i];
  }
  return leader;
}

// The dtype that numbers and weak arrays become beside the promoted dtype of the
// others.
static bool lead_dtype(PyObject* const* x, size_t count,
                       pestle_dtype_t* out_dtype) {
  *out_dtype = PESTLE_NONE;
  for (size_t i = 0; i < count; ++i) {
    if (!pestle_py_is_array(x[i]) || ((pestle_py_array_t*)x[i])->weak) continue;
    pestle_dtype_t dtype = pestle_array_type(pestle_py_array(x[i])).dtype;
    if (*out_dtype == PESTLE_NONE) {
      *out_dtype = dtype;
    } else if (!pestle_py_ok(
                   pestle_dtype_promote(*out_dtype, dtype, out_dtype))) {
      return false;
    }
  }
  return true;
}

static pestle_array_t* adapt_weak(PyObject* object, pestle_dtype_t lead) {
  pestle_array_t* array = pestle_py_array(object);
  pestle_dtype_kind_t kind =
      (pestle_dtype_kind_t)((pestle_py_array_t*)object)->weak;
  pestle_dtype_t dtype;
  pestle_array_t* result = NULL;
  if (lead == PESTLE_NONE) {
    pestle_array_retain(array);
    return array;
  }
  if (!pestle_py_dtype_of_number(lead, kind, &dtype)) return NULL;
  return pestle_py_ok(pestle_numeric_cast(array, dtype, &result)) ? result
                                                                  : NULL;
}

static pestle_array_t* adapt_number(PyObject* object, unsigned kind,
                                    PyObject* leader, pestle_dtype_t lead) {
  pestle_array_t* like = pestle_py_array(leader);
  pestle_dtype_t dtype =
      lead != PESTLE_NONE ? lead : pestle_array_type(like).dtype;
  if (!pestle_py_dtype_of_number(dtype, kind, &dtype)) return NULL;
  return pestle_py_number(object, pestle_array_device(like), dtype);
}

static pestle_array_t* operand_of(PyObject* object, PyObject* leader,
                                  pestle_dtype_t lead, bool* out_foreign) {
  if (pestle_py_is_array(object)) {
    if (((pestle_py_array_t*)object)->weak) return adapt_weak(object, lead);
    pestle_array_retain(pestle_py_array(object));
    return pestle_py_array(object);
  }
  unsigned kind = pestle_py_number_kind(object);
  if (kind) return adapt_number(object, kind, leader, lead);
  if (!PyObject_CheckBuffer(object) || PyBytes_Check(object)) {
    *out_foreign = true;
    return NULL;
  }
  PyObject* array = pestle_py_asarray(
      object, PESTLE_NONE, pestle_array_device(pestle_py_array(leader)), -1);
  if (!array) return NULL;
  pestle_array_t* result = pestle_py_array(array);
  pestle_array_retain(result);
  Py_DECREF(array);
  return result;
}

bool pestle_py_operands(PyObject* const* x, size_t count,
                        pestle_array_t** out_arrays, bool* out_foreign) {
  *out_foreign = false;
  PyObject* leader = leader_of(x, count);
  pestle_dtype_t lead;
  if (!leader) {
    *out_foreign = true;
    return false;
  }
  if (!lead_dtype(x, count, &lead)) return false;
  for (size_t i = 0; i < count; ++i) {
    out_arrays[i] = operand_of(x[i], leader, lead, out_foreign);
    if (out_arrays[i]) continue;
    while (i--)
      pestle_array_release(out_arrays[i]);
    return false;
  }
  return true;
}

static bool are_weak(PyObject* const* x, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (pestle_py_is_array(x[i]) ? !((pestle_py_array_t*)x[i])->weak
                                 : !pestle_py_number_kind(x[i])) {
      return false;
    }
  }
  return true;
}

// What a number becomes by an op is one too, of the kind of its dtype.
static PyObject* keep_weak(PyObject* result) {
  if (!result) return NULL;
  pestle_py_array_t* array = (pestle_py_array_t*)result;
  unsigned kind =
      pestle_dtype_info(pestle_array_type(array->array).dtype)->kind;
  array->weak =
      (uint8_t)(kind == PESTLE_KIND_UNSIGNED ? PESTLE_KIND_SIGNED : (int)kind);
  return result;
}

static PyObject* numeric_mixed(pestle_numeric_t fn, PyObject* const* x,
                               size_t count) {
  pestle_array_t* operands[2] = {NULL, NULL};
  pestle_array_t* result;
  bool foreign;
  if (!pestle_py_operands(x, count, operands, &foreign)) {
    if (foreign) Py_RETURN_NOTIMPLEMENTED;
    return NULL;
  }
  pestle_status_t status = pestle_numeric_apply(fn, operands, count, &result);
  pestle_array_release(operands[0]);
  pestle_array_release(operands[1]);
  PyObject* object = pestle_py_result(status, &result);
  return are_weak(x, count) ? keep_weak(object) : object;
}

static const bool is_plane[] = {
#define SAME false
#define PLANE true
#define TRUTH false
#define OWN false
#define PESTLE_NUMERIC(NAME, name, n, TO, KINDS, RULE, means) TO,
#include "pestle/numeric.def"
#undef SAME
#undef PLANE
#undef TRUTH
#undef OWN
};

// Integers become pestle.config's default float, where the library takes float32.
static PyObject* numeric_by_settings(pestle_numeric_t fn, PyObject* const* x,
                                     size_t count) {
  pestle_array_t *operands[2] = {NULL, NULL}, *result;
  bool foreign;
  if (!pestle_py_operands(x, count, operands, &foreign)) {
    if (foreign) Py_RETURN_NOTIMPLEMENTED;
    return NULL;
  }
  bool are_whole = true;
  for (size_t i = 0; i < count; ++i) {
    are_whole &= pestle_dtype_is(pestle_array_type(operands[i]).dtype,
                                 PESTLE_KIND_BOOL | PESTLE_KIND_INT);
  }
  pestle_status_t status = NULL;
  for (size_t i = 0; are_whole && !status && i < count; ++i) {
    pestle_array_t* wide = NULL;
    status = pestle_numeric_cast(operands[i],
                                 pestle_py_settings()->default_float, &wide);
    if (status) break;
    pestle_array_release(operands[i]);
    operands[i] = wide;
  }
  if (!status) status = pestle_numeric_apply(fn, operands, count, &result);
  pestle_array_release(operands[0]);
  pestle_array_release(operands[1]);
  PyObject* object = pestle_py_result(status, &result);
  return are_weak(x, count) ? keep_weak(object) : object;
}

PyObject* pestle_py_numeric(pestle_numeric_t fn, PyObject* const* x,
                            size_t count) {
  if (pestle_py.is_tuned && is_plane[fn] &&
      pestle_py_settings()->default_float != PESTLE_F32) {
    return numeric_by_settings(fn, x, count);
  }
  pestle_array_t* result;
  bool plain = pestle_py_is_array(x[0]) && !((pestle_py_array_t*)x[0])->weak;
  if (count == 1 && plain) {
    pestle_array_t* operand = pestle_py_array(x[0]);
    return pestle_py_result(pestle_numeric_apply(fn, &operand, 1, &result),
                            &result);
  }
  if (count == 2 && plain && pestle_py_is_array(x[1]) &&
      !((pestle_py_array_t*)x[1])->weak) {
    pestle_array_t* operands[] = {pestle_py_array(x[0]), pestle_py_array(x[1])};
    return pestle_py_result(pestle_numeric_apply(fn, operands, 2, &result),
                            &result);
  }
  return numeric_mixed(fn, x, count);
}

// --- Functions of numeric.def ---

// A call with keywords, of which stream is the only one: the same without it, whose work
// is queued there.
static PyObject* call_queued(PyObject* module, const char* name,
                             PyObject* const* args, Py_ssize_t count,
                             PyObject* names) {
  PyObject* key = PyTuple_GetItem(names, 0);
  if (PyTuple_Size(names) != 1 ||
      PyUnicode_CompareWithASCIIString(key, "stream") != 0) {
    PyErr_Format(PyExc_TypeError, "%s() has no keyword %R: stream is one", name,
                 key);
    return NULL;
  }
  PyObject* function = PyObject_GetAttrString(module, name);
  PyObject* given = PyTuple_New(count);
  for (Py_ssize_t i = 0; given && i < count; ++i)
    PyTuple_SetItem(given, i, Py_NewRef(args[i]));
  PyObject* result = NULL;
  if (function && given) {
    result =
        args[count] == Py_None
            ? PyObject_CallObject(function, given)
            : pestle_py_hook("on_stream",
                             (PyObject*[]){function, args[count], given}, 3);
  }
  Py_XDECREF(function);
  Py_XDECREF(given);
  return result;
}

static PyObject* call_numeric(pestle_numeric_t fn, const char* name, size_t n,
                              PyObject* const* args, Py_ssize_t count) {
  if ((size_t)count != n) {
    PyErr_Format(PyExc_TypeError, "%s() takes %zu arrays, %zd are given", name,
                 n, count);
    return NULL;
  }
  PyObject* made[2] = {NULL, NULL};
  // Numbers alone: the first one becomes an array, a number still.
  if (!leader_of(args, n) &&
      (pestle_py_number_kind(args[0]) || PyObject_CheckBuffer(args[0]))) {
    made[0] = pestle_py_asarray(args[0], PESTLE_NONE, NULL, -1);
    if (!made[0]) return NULL;
    made[1] = n == 2 ? args[1] : NULL;
    args = made;
  }
  PyObject* result = pestle_py_numeric(fn, args, n);
  Py_XDECREF(made[0]);
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  for (size_t i = 0; i < n; ++i) {
    if (pestle_py_is_array(args[i]) || pestle_py_number_kind(args[i])) continue;
    PyErr_Format(PyExc_TypeError,
                 "%s() takes arrays and numbers; argument %zu is of %R", name,
                 i, (PyObject*)Py_TYPE(args[i]));
    return NULL;
  }
  PyErr_Format(PyExc_TypeError, "%s() takes arrays and numbers", name);
  return NULL;
}

#define ARGS_1 "x, /, *, stream=None"
#define ARGS_2 "x1, x2, /, *, stream=None"
#define PESTLE_NUMERIC(NAME, name, n, TO, KINDS, RULE, means)                \
  static PyObject* numeric_##name(PyObject* self, PyObject* const* args,     \
                                  Py_ssize_t count, PyObject* names) {       \
    return names && PyTuple_Size(names)                                      \
               ? call_queued(self, #name, args, count, names)                \
               : call_numeric(PESTLE_NUMERIC_##NAME, #name, n, args, count); \
  }
#include "pestle/numeric.def"

static PyObject* where(PyObject* self, PyObject* const* args, Py_ssize_t count,
                       PyObject* names) {
  if (names && PyTuple_Size(names)) {
    return call_queued(self, "where", args, count, names);
  }
  pestle_array_t* values[2] = {NULL, NULL};
  pestle_array_t* result = NULL;
  bool foreign;
  if (count != 3 || !pestle_py_is_array(args[0])) {
    PyErr_SetString(PyExc_TypeError,
                    "where() takes a condition, which is an array of bool, and "
                    "two arrays or numbers");
    return NULL;
  }
  PyObject* made[2] = {args[1], args[2]};
  PyObject* first = NULL;
  if (!leader_of(made, 2)) {
    first = pestle_py_asarray(args[1], PESTLE_NONE, NULL, -1);
    if (!first) return NULL;
    made[0] = first;
  }
  bool fine = pestle_py_operands(made, 2, values, &foreign);
  Py_XDECREF(first);
  if (!fine) {
    if (foreign && !PyErr_Occurred()) {
      PyErr_SetString(PyExc_TypeError, "where() takes arrays and numbers");
    }
    return NULL;
  }
  pestle_status_t status = pestle_numeric_where(pestle_py_array(args[0]),
                                                values[0], values[1], &result);
  pestle_array_release(values[0]);
  pestle_array_release(values[1]);
  return pestle_py_result(status, &result);
}

// --- Attributes of ops ---

typedef enum field_kind_e {
  FIELD_BOOL,
  FIELD_I64,
  FIELD_F64,
  FIELD_STR,
  FIELD_I64S,
  FIELD_TYPE,
  FIELD_ELEMENTS,
} field_kind_t;

typedef struct field_t {
  int op;
  const char* name;
  field_kind_t kind;
  size_t offset;
} field_t;

static const field_t op_fields[] = {
#define PESTLE_OP_ATTR(NAME, op, KIND, attr, ...) \
  {PESTLE_OP_##NAME, #attr, FIELD_##KIND,         \
   offsetof(pestle_##op##_attrs_t, attr)},
#include "pestle/ops.def"
};
enum { FIELDS = sizeof(op_fields) / sizeof(op_fields[0]) };

typedef struct op_size_t {
  int op;
  size_t size;
  bool is_typed;
} op_size_t;
static const op_size_t op_sizes[] = {
#define PESTLE_OP_BEGIN(NAME, op, mlir, OPERANDS, REGIONS, RESULTS, TYPE, ...) \
  {PESTLE_OP_##NAME, sizeof(pestle_##op##_attrs_t),                            \
   PESTLE_RULE_##TYPE == PESTLE_RULE_TYPED},
#include "pestle/ops.def"
};

// Attributes of the largest op, and what its lists lie in.
typedef struct attrs_t {
  union {
    size_t struct_size;
    unsigned char bytes[512];
    double align;
  } u;
  int64_t* lists[24];
  size_t list_count;
} attrs_t;

static int64_t* read_i64s(PyObject* value, size_t* out_count) {
  Py_ssize_t count = PySequence_Size(value);
  if (count < 0) return NULL;
  int64_t* list = malloc(((size_t)count + 1) * sizeof(*list));
  if (!list) {
    PyErr_NoMemory();
    return NULL;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(value, i);
    list[i] = item ? PyLong_AsLongLong(item) : -1;
    Py_XDECREF(item);
    if (list[i] == -1 && PyErr_Occurred()) {
      free(list);
      return NULL;
    }
  }
  *out_count = (size_t)count;
  return list;
}

static bool read_type(PyObject* dtype, PyObject* shape, pestle_type_t* out) {
  size_t count = 0;
  if (!pestle_py_as_dtype(dtype, &out->dtype)) return false;
  int64_t* dims = read_i64s(shape, &count);
  if (!dims) return false;
  bool fits = count <= PESTLE_MAX_RANK;
  if (fits) memcpy(out->dims, dims, count * sizeof(*dims));
  out->rank = (int32_t)count;
  free(dims);
  if (!fits) {
    PyErr_Format(PyExc_ValueError, "an array has at most %d axes, not %zu",
                 PESTLE_MAX_RANK, count);
  }
  return fits;
}

static bool read_field(attrs_t* attrs, const field_t* field, PyObject* value) {
  unsigned char* at = attrs->u.bytes + field->offset;
  switch (field->kind) {
    case FIELD_BOOL:
      *(bool*)(void*)at = PyObject_IsTrue(value) > 0;
      break;
    case FIELD_I64:
      *(int64_t*)(void*)at = PyLong_AsLongLong(value);
      break;
    case FIELD_F64:
      *(double*)(void*)at = PyFloat_AsDouble(value);
      break;
    case FIELD_STR:
      *(const char**)(void*)at = PyUnicode_AsUTF8AndSize(value, NULL);
      break;
    case FIELD_TYPE: {
      PyObject* dtype = PySequence_GetItem(value, 0);
      PyObject* shape = dtype ? PySequence_GetItem(value, 1) : NULL;
      bool fine = shape && read_type(dtype, shape, (pestle_type_t*)(void*)at);
      Py_XDECREF(dtype);
      Py_XDECREF(shape);
      return fine;
    }
    case FIELD_I64S: {
      size_t count = 0;
      int64_t* list = read_i64s(value, &count);
      if (!list) return false;
      attrs->lists[attrs->list_count++] = list;
      *(pestle_i64s_t*)(void*)at = (pestle_i64s_t){list, count};
      break;
    }
    case FIELD_ELEMENTS:
      PyErr_SetString(PyExc_TypeError, "constants are made by full()");
      return false;
  }
  return !PyErr_Occurred();
}

static bool read_attrs(attrs_t* attrs, int op, size_t size, PyObject* dict) {
  PyObject *key, *value;
  Py_ssize_t at = 0;
  memset(&attrs->u, 0, sizeof(attrs->u));
  attrs->u.struct_size = size;
  attrs->list_count = 0;
  while (dict != Py_None && PyDict_Next(dict, &at, &key, &value)) {
    const field_t* field = op_fields;
    const field_t* end = op_fields + FIELDS;
    while (field < end && (field->op != op || PyUnicode_CompareWithASCIIString(
                                                  key, field->name) != 0)) {
      ++field;
    }
    if (field == end) {
      PyErr_Format(PyExc_TypeError, "the op '%s' has no attribute %R",
                   pestle_op_info((pestle_op_t)op)->name, key);
      return false;
    }
    if (!read_field(attrs, field, value)) return false;
  }
  return true;
}

static void free_attrs(attrs_t* attrs) {
  for (size_t i = 0; i < attrs->list_count; ++i)
    free(attrs->lists[i]);
}

// --- Ops ---

typedef struct call_t {
  pestle_array_op_t op;
  attrs_t attrs;
  pestle_type_t type;
  pestle_array_t* operands[64];
  pestle_array_t** many;  // where there are more
  pestle_module_t* bodies[32];
} call_t;

static bool read_operands(call_t* call, PyObject* list) {
  Py_ssize_t count = PySequence_Size(list);
  if (count < 0) return false;
  pestle_array_t** operands = call->operands;
  if (count > 64) {
    operands = call->many = malloc((size_t)count * sizeof(*operands));
    if (!operands) return PyErr_NoMemory() != NULL;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(list, i);
    if (!item || !pestle_py_is_array(item)) {
      if (item) PyErr_Format(PyExc_TypeError, "%R is no array", item);
      Py_XDECREF(item);
      return false;
    }
    operands[i] = pestle_py_array(item);
    Py_DECREF(item);  // |list| keeps it
  }
  call->op.operands = operands;
  call->op.operand_count = (size_t)count;
  return true;
}

static bool read_bodies(call_t* call, PyObject* list) {
  Py_ssize_t count = list == Py_None ? 0 : PySequence_Size(list);
  if (count < 0 || count > 32) {
    if (count > 32) PyErr_SetString(PyExc_ValueError, "too many branches");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_GetItem(list, i);
    bool fine = item && Py_TYPE(item) == pestle_py.module_type;
    if (fine) call->bodies[i] = ((pestle_py_module_t*)item)->module;
    Py_XDECREF(item);
    if (!fine) {
      PyErr_SetString(PyExc_TypeError, "a body is a captured module");
      return false;
    }
  }
  call->op.bodies = call->bodies;
  call->op.body_count = (size_t)count;
  return true;
}

static PyObject* tuple_of(pestle_array_t** arrays, size_t count) {
  PyObject* tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; i < count; ++i) {
    if (!tuple) {
      pestle_array_release(arrays[i]);
      continue;
    }
    PyObject* array = pestle_py_wrap(arrays[i]);
    if (!array || PyTuple_SetItem(tuple, (Py_ssize_t)i, array) < 0) {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

static PyObject* run_op(call_t* call) {
  enum { RESULTS = 256 };
  pestle_array_t* out[RESULTS];
  bool one = pestle_op_info(call->op.op)->results == 1;
  if (!pestle_py_ok(pestle_array_apply(&call->op, out, one ? 1 : RESULTS))) {
    return NULL;
  }
  size_t count = 0;
  while (count < RESULTS && out[count] && !(one && count))
    ++count;
  return one ? pestle_py_wrap(out[0]) : tuple_of(out, count);
}

static bool find_op(PyObject* name, int* out_op) {
  PyObject* number = PyDict_GetItemWithError(pestle_py.ops, name);
  if (!number) {
    if (!PyErr_Occurred()) {
      PyErr_Format(PyExc_ValueError, "there is no op %R", name);
    }
    return false;
  }
  *out_op = (int)PyLong_AsLong(number);
  return true;
}

// apply(op, operands, attrs=None, dtype=None, shape=None, bodies=None, device=None)
static PyObject* apply(PyObject* self, PyObject* const* args,
                       Py_ssize_t count) {
  (void)self;
  PyObject* given[7] = {NULL,    NULL,    Py_None, Py_None,
                        Py_None, Py_None, Py_None};
  int op;
  if (count < 2 || count > 7) {
    PyErr_SetString(PyExc_TypeError, "apply() takes 2 to 7 arguments");
    return NULL;
  }
  memcpy(given, args, (size_t)count * sizeof(*args));
  if (!find_op(given[0], &op)) return NULL;
  call_t call;
  memset(&call.op, 0, sizeof(call.op));
  call.many = NULL;
  call.attrs.list_count = 0;
  call.op.struct_size = sizeof(call.op);
  call.op.op = (pestle_op_t)op;
  size_t size = sizeof(size_t);
  for (size_t i = 0; i < sizeof(op_sizes) / sizeof(op_sizes[0]); ++i) {
    if (op_sizes[i].op == op) size = op_sizes[i].size;
  }
  bool fine =
      read_operands(&call, given[1]) &&
      read_attrs(&call.attrs, op, size, given[2]) &&
      read_bodies(&call, given[5]) &&
      (call.op.operand_count || pestle_py_as_device(given[6], &call.op.device));
  if (fine && !pestle_op_is_scalar((pestle_op_t)op)) {
    call.op.attrs = &call.attrs.u;
  }
  if (fine && given[3] != Py_None) {
    fine = read_type(given[3], given[4], &call.type);
    call.op.type = &call.type;
  }
  PyObject* result = fine ? run_op(&call) : NULL;
  free_attrs(&call.attrs);
  free(call.many);
  return result;
}

// fold(op, x, axes)
static PyObject* fold(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)self;
  int op;
  size_t axes = 0;
  pestle_array_t* result;
  if (count != 3 || !pestle_py_is_array(args[1])) {
    PyErr_SetString(PyExc_TypeError, "fold() takes an op, an array and axes");
    return NULL;
  }
  if (!find_op(args[0], &op)) return NULL;
  int64_t* list = read_i64s(args[2], &axes);
  if (!list) return NULL;
  pestle_status_t status =
      pestle_array_fold((pestle_op_t)op, pestle_py_array(args[1]),
                        (pestle_i64s_t){list, axes}, &result);
  free(list);
  return pestle_py_result(status, &result);
}

// --- Making ---

static PyObject* asarray(PyObject* self, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"", "dtype", "device", "copy", NULL};
  (void)self;
  PyObject *object, *dtype = Py_None, *device = Py_None, *copy = Py_None;
  pestle_dtype_t type = PESTLE_NONE;
  pestle_device_t* at = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOO:asarray", names,
                                   &object, &dtype, &device, &copy)) {
    return NULL;
  }
  if (dtype != Py_None && !pestle_py_as_dtype(dtype, &type)) return NULL;
  if (device != Py_None && !pestle_py_as_device(device, &at)) return NULL;
  int copies = copy == Py_None ? -1 : PyObject_IsTrue(copy);
  return pestle_py_asarray(object, type, at, copies);
}

// full(shape, number, dtype, device)
static PyObject* full(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)self;
  pestle_type_t type = {.rank = 0};
  pestle_device_t* device;
  unsigned char bytes[16];
  pestle_array_t* result;
  if (count != 4) {
    PyErr_SetString(PyExc_TypeError, "full() takes 4 arguments");
    return NULL;
  }
  if (!read_type(args[2], args[0], &type) ||
      !pestle_py_as_device(args[3], &device) ||
      !pestle_py_encode(args[1], type.dtype, bytes)) {
    return NULL;
  }
  return pestle_py_result(pestle_array_full(device, &type, bytes, &result),
                          &result);
}

// empty(shape, dtype, device)
static PyObject* empty(PyObject* self, PyObject* const* args,
                       Py_ssize_t count) {
  (void)self;
  pestle_type_t type = {.rank = 0};
  pestle_device_t* device;
  pestle_array_t* result;
  if (count != 3) {
    PyErr_SetString(PyExc_TypeError, "empty() takes 3 arguments");
    return NULL;
  }
  if (!read_type(args[1], args[0], &type) ||
      !pestle_py_as_device(args[2], &device)) {
    return NULL;
  }
  return pestle_py_result(pestle_array_empty(device, &type, &result), &result);
}

// astype(x, dtype)
static PyObject* astype(PyObject* self, PyObject* const* args,
                        Py_ssize_t count) {
  (void)self;
  pestle_dtype_t dtype;
  pestle_array_t* result;
  if (count != 2 || !pestle_py_is_array(args[0])) {
    PyErr_SetString(PyExc_TypeError, "astype() takes an array and a dtype");
    return NULL;
  }
  if (!pestle_py_as_dtype(args[1], &dtype)) return NULL;
  return pestle_py_result(
      pestle_numeric_cast(pestle_py_array(args[0]), dtype, &result), &result);
}

// promote(dtype, dtype); number_dtype(dtype, number)
static PyObject* promote(PyObject* self, PyObject* const* args,
                         Py_ssize_t count) {
  (void)self;
  pestle_dtype_t a, b, dtype;
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "promote() takes 2 dtypes");
    return NULL;
  }
  unsigned kind = pestle_py_number_kind(args[1]);
  if (!pestle_py_as_dtype(args[0], &a) ||
      (!kind && !pestle_py_as_dtype(args[1], &b))) {
    return NULL;
  }
  bool fine = kind ? pestle_py_dtype_of_number(a, kind, &dtype)
                   : pestle_py_ok(pestle_dtype_promote(a, b, &dtype));
  return fine ? pestle_py_dtype(dtype) : NULL;
}

// number(x, like): a number as an array that is a part of the graph, of |like|'s
// dtype and device.
static PyObject* number(PyObject* self, PyObject* const* args,
                        Py_ssize_t count) {
  (void)self;
  if (count != 2 || !pestle_py_is_array(args[1])) {
    PyErr_SetString(PyExc_TypeError, "number() takes a number and an array");
    return NULL;
  }
  unsigned char bytes[16];
  pestle_array_t *like = pestle_py_array(args[1]), *result;
  pestle_type_t type = {.dtype = pestle_array_type(like).dtype};
  if (!pestle_py_encode(args[0], type.dtype, bytes)) return NULL;
  return pestle_py_result(
      pestle_array_full(pestle_array_device(like), &type, bytes, &result),
      &result);
}

// copy(x, device)
static PyObject* copy(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  (void)self;
  pestle_device_t* device;
  if (count != 2 || !pestle_py_is_array(args[0])) {
    PyErr_SetString(PyExc_TypeError, "copy() takes an array and a device");
    return NULL;
  }
  if (args[1] == Py_None) {
    device = pestle_array_device(pestle_py_array(args[0]));
  } else if (!pestle_py_as_device(args[1], &device)) {
    return NULL;
  }
  return pestle_py_copy(pestle_py_array(args[0]), device);
}

// --- Looking ---

static PyObject* stats(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  pestle_context_t* context = pestle_py_context();
  if (!context) return NULL;
  pestle_array_stats_t s = {.struct_size = sizeof(s)};
  pestle_array_stats(context, &s);
  return Py_BuildValue("{sKsKsKsKsK}", "evaluations",
                       (unsigned long long)s.evaluations, "hits",
                       (unsigned long long)s.hits, "executables",
                       (unsigned long long)s.executables, "donations",
                       (unsigned long long)s.donations, "held_bytes",
                       (unsigned long long)s.held_bytes);
}

// Behind the sentence of a row: what it takes and gives, and an example.
#define DOCS(n, takes, ...) DOCS_(n, takes, __VA_ARGS__)
#define DOCS_(n, takes, gives, shows) \
  "\n\n" OPERANDS_##n takes "." gives RAISES_##n shows

#define FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL
#define FAST_NAMED(function) \
  (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS
static PyObject* flush_log(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  pestle_py_log();
  Py_RETURN_NONE;
}

PyMethodDef pestle_py_functions[] = {
#define PESTLE_NUMERIC(NAME, name, n, TO, KINDS, RULE, means) \
  {#name, FAST_NAMED(numeric_##name),                         \
   #name "(" ARGS_##n ")\n--\n\n" means DOCS(n, TAKES_##KINDS, DOC_##name)},
#include "pestle/numeric.def"
    {"where", FAST_NAMED(where),
     "where(condition, x1, x2, /, *, stream=None)\n--\n\nx1 where condition is "
     "set, else x2.\n"
     "\n"
     "condition: an array of bool; x1, x2: arrays, or one or both numbers. All "
     "three\n"
     "broadcast. The result has the promoted dtype of x1 and x2.\n"
     "Raises TypeError for another condition and dtypes without a common one, "
     "ValueError for\n"
     "shapes that do not broadcast.\n"
     "\n"
     ">>> x = pt.asarray([1, -2, 3])\n"
     ">>> pt.where(x > 0, x, 0).tolist()\n"
     "[1, 0, 3]"},
    {"apply", FAST(apply), NULL},
    {"fold", FAST(fold), NULL},
    {"full", FAST(full), NULL},
    {"empty", FAST(empty), NULL},
    {"number", FAST(number), NULL},
    {"promote", FAST(promote), NULL},
    {"flush_log", flush_log, METH_NOARGS, NULL},
    {"cast", FAST(astype), NULL},
    {"copy", FAST(copy), NULL},
    {"stats", stats, METH_NOARGS,
     "stats()\n--\n\nWhat evaluation did and keeps, as a dict.\n"
     "\n"
     "Raises Error where the library cannot be started.\n"
     "\n"
     ">>> sorted(pt.stats())\n"
     "['donations', 'evaluations', 'executables', 'held_bytes', 'hits']"},
    {"asarray", (PyCFunction)(void (*)(void))asarray,
     METH_VARARGS | METH_KEYWORDS,
     "asarray(obj, /, *, dtype=None, device=None, copy=None)\n--\n\n"
     "An array of a number, nested lists, or memory that another library "
     "shows. "
     "Its\nelements are copied; copy=False sees them where they are, and they "
     "must not\nchange then.\n"
     "\n"
     "obj: a number, nested lists or tuples, or what shows memory by the "
     "buffer protocol or\n"
     "DLPack; dtype: None: its own, int64, config.default_float or complex of "
     "numbers.\n"
     "Raises ValueError for lists of other lengths and for copy=False where a "
     "copy is needed,\n"
     "TypeError for what is no number, OverflowError for one that dtype does "
     "not hold.\n"
     "\n"
     ">>> pt.asarray([[1, 2], [3, 4]]).dtype.name\n"
     "'int64'\n"
     ">>> pt.asarray(bytearray(b\"ab\"), copy=False).tolist()\n"
     "[97, 98]"},
    {NULL, NULL, 0, NULL},
};

bool pestle_py_add_function(PyObject* module) {
  pestle_py.ops = PyDict_New();
  if (!pestle_py.ops) return false;
  for (int op = 0; op < PESTLE_OP_COUNT; ++op) {
    PyObject* value = PyLong_FromLong(op);
    const char* name = pestle_op_info((pestle_op_t)op)->name;
    bool fine = value && PyDict_SetItemString(pestle_py.ops, name, value) == 0;
    Py_XDECREF(value);
    if (!fine) return false;
  }
  return PyModule_AddObjectRef(module, "OPS", pestle_py.ops) == 0;
}
