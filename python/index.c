// SPDX-License-Identifier: Apache-2.0
// x[key] of integers, slices, None and ...: a slice, a reversal and a reshape, which
// are views of data. Keys with arrays in them are pestle/_index.py's.
#include "module.h"

// What a key says of an array of |type|.
typedef struct plan_t {
  pestle_type_t type;
  int64_t starts[PESTLE_MAX_RANK], limits[PESTLE_MAX_RANK],
      steps[PESTLE_MAX_RANK];
  int64_t reversed[PESTLE_MAX_RANK];
  size_t reversed_count;
  pestle_type_t result;
  int32_t axis;  // the next one that is indexed
  bool slices, reshapes;
} plan_t;

static bool push(plan_t* plan, int64_t dim) {
  if (plan->result.rank < PESTLE_MAX_RANK) {
    plan->result.dims[plan->result.rank++] = dim;
    return true;
  }
  PyErr_Format(PyExc_ValueError, "an array has at most %d axes",
               PESTLE_MAX_RANK);
  return false;
}

static bool whole_axis(plan_t* plan) {
  int32_t axis = plan->axis++;
  plan->starts[axis] = 0;
  plan->limits[axis] = plan->type.dims[axis];
  plan->steps[axis] = 1;
  return push(plan, plan->type.dims[axis]);
}

static bool one_of_axis(plan_t* plan, PyObject* item) {
  int32_t axis = plan->axis++;
  int64_t dim = plan->type.dims[axis];
  Py_ssize_t at = PyNumber_AsSsize_t(item, PyExc_IndexError);
  if (at == -1 && PyErr_Occurred()) return false;
  if (at < -dim || at >= dim) {
    PyErr_Format(PyExc_IndexError,
                 "index %zd is outside of axis %d, which has %lld elements", at,
                 (int)axis, (long long)dim);
    return false;
  }
  plan->starts[axis] = at < 0 ? at + dim : at;
  plan->limits[axis] = plan->starts[axis] + 1;
  plan->steps[axis] = 1;
  plan->slices |= dim != 1;
  plan->reshapes = true;
  return true;
}

static bool range_of_axis(plan_t* plan, PyObject* item) {
  int32_t axis = plan->axis++;
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(item, &start, &stop, &step) < 0) return false;
  Py_ssize_t count = PySlice_AdjustIndices((Py_ssize_t)plan->type.dims[axis],
                                           &start, &stop, step);
  int64_t first = start, size = step < 0 ? -(int64_t)step : step;
  if (count && step < 0) first = start + (count - 1) * (int64_t)step;
  plan->starts[axis] = count ? first : 0;
  plan->limits[axis] = count ? first + (count - 1) * size + 1 : 0;
  plan->steps[axis] = count > 1 ? size : 1;
  if (step < 0 && count > 1) {
    plan->reversed[plan->reversed_count++] = axis;
  }
  plan->slices |= count != plan->type.dims[axis];
  return push(plan, count);
}

// 1: done; 0: a key that is not for here; -1: an exception.
static int take_item(plan_t* plan, PyObject* item, int32_t rest) {
  if (item == Py_None) {
    plan->reshapes = true;
    return push(plan, 1) ? 1 : -1;
  }
  if (item == Py_Ellipsis) {
    while (plan->axis < plan->type.rank - rest) {
      if (!whole_axis(plan)) return -1;
    }
    return 1;
  }
  if (plan->axis >= plan->type.rank) {
    PyErr_Format(PyExc_IndexError, "the array has %d axes, more are indexed",
                 plan->type.rank);
    return -1;
  }
  if (PySlice_Check(item)) return range_of_axis(plan, item) ? 1 : -1;
  return one_of_axis(plan, item) ? 1 : -1;
}

// Whether |item| is for here: no bool, and of arrays none.
static bool is_basic(PyObject* item) {
  return item == Py_None || item == Py_Ellipsis || PySlice_Check(item) ||
         (PyLong_Check(item) && !PyBool_Check(item));
}

static bool is_basic_key(PyObject* key) {
  if (!PyTuple_Check(key)) return is_basic(key);
  for (Py_ssize_t i = 0; i < PyTuple_Size(key); ++i) {
    if (!is_basic(PyTuple_GetItem(key, i))) return false;
  }
  return true;
}

static bool read_key(plan_t* plan, PyObject* key) {
  bool is_tuple = PyTuple_Check(key);
  Py_ssize_t count = is_tuple ? PyTuple_Size(key) : 1;
  int32_t rest = 0, ellipses = 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = is_tuple ? PyTuple_GetItem(key, i) : key;
    ellipses += item == Py_Ellipsis;
    rest += item != Py_None && item != Py_Ellipsis;
  }
  if (ellipses > 1) {
    PyErr_SetString(PyExc_IndexError, "an index has at most one ellipsis");
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = is_tuple ? PyTuple_GetItem(key, i) : key;
    if (take_item(plan, item, rest) < 0) return false;
    rest -= item != Py_None && item != Py_Ellipsis && rest > 0;
  }
  while (plan->axis < plan->type.rank) {
    if (!whole_axis(plan)) return false;
  }
  return true;
}

static pestle_status_t take(const plan_t* plan, pestle_array_t* array,
                            pestle_array_t** out) {
  size_t rank = (size_t)plan->type.rank;
  pestle_array_retain(array);
  pestle_status_t status = NULL;
  if (plan->slices) {
    pestle_slice_attrs_t attrs = {sizeof(attrs),
                                  {plan->starts, rank},
                                  {plan->limits, rank},
                                  {plan->steps, rank}};
    pestle_array_t* part = NULL;
    status = pestle_array_slice(array, &attrs, &part);
    pestle_array_release(array);
    array = part;
  }
  if (!status && plan->reversed_count) {
    pestle_reverse_attrs_t attrs = {sizeof(attrs),
                                    {plan->reversed, plan->reversed_count}};
    pestle_array_t* part = NULL;
    status = pestle_array_reverse(array, &attrs, &part);
    pestle_array_release(array);
    array = part;
  }
  if (!status && plan->reshapes) {
    pestle_array_t* part = NULL;
    status = pestle_array_reshape(array, NULL, plan->result, &part);
    pestle_array_release(array);
    array = part;
  }
  *out = array;
  return status;
}

PyObject* pestle_py_getitem(PyObject* self, PyObject* key) {
  if (!is_basic_key(key)) {
    return pestle_py_hook("getitem", (PyObject*[]){self, key}, 2);
  }
  plan_t plan = {.type = pestle_array_type(pestle_py_array(self))};
  plan.result.dtype = plan.type.dtype;
  if (!read_key(&plan, key)) return NULL;
  pestle_array_t* result;
  return pestle_py_result(take(&plan, pestle_py_array(self), &result), &result);
}
