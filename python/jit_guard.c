// SPDX-License-Identifier: Apache-2.0
// The arguments of a call of what jit() gave, and the trace that they fit.
#include <stdlib.h>
#include <string.h>

#include "jit.h"

// --- Entries ---

void pestle_py_entry_drop(pestle_py_entry_t* entry) {
  if (!entry || --entry->users) return;
  pestle_tree_free_words(entry->words, entry->word_count);
  pestle_tree_free_words(entry->out_words, entry->out_word_count);
  free(entry->guards);
  Py_XDECREF(entry->statics);
  Py_XDECREF(entry->module);
  Py_XDECREF(entry->hidden);
  pestle_status_release(entry->donated);
  pestle_jit_release(entry->jit);
  free(entry);
}

// --- Calls ---

void pestle_py_call_begin(pestle_py_call_t* call) {
  pestle_tree_init(&call->tree);
  call->arrays = call->few_arrays;
  call->guards = call->few_guards;
  call->count = 0;
  call->statics = NULL;
  call->foreign = NULL;
  call->device = NULL;
  call->config = pestle_py.is_tuned ? pestle_py_config_word() : PESTLE_F32;
  call->is_traced = call->is_late = call->has_other = false;
  call->donated = NULL;
  call->donated_count = 0;
  call->borrows = true;
  ++pestle_py.borrowing;
}

// --- Borrowing ---
//
// A leaf keeps its array, and the call keeps the leaf: references of the call's own would
// be two atomic operations more for each. But x[key] = value and delete() give an object
// another array, at any time that other Python code runs: the one that it had lingers.

typedef struct pestle_py_linger_t {
  struct pestle_py_linger_t* next;
  pestle_array_t* array;
} linger_t;

void pestle_py_linger(pestle_array_t* array) {
  if (!pestle_py.borrowing) return;
  pestle_array_retain(array);
  linger_t* linger = malloc(sizeof(*linger));
  if (!linger) return;  // It stays for ever.
  *linger = (linger_t){pestle_py.lingering, array};
  pestle_py.lingering = linger;
}

static void end_borrowing(pestle_py_call_t* call) {
  if (!call->borrows) return;
  call->borrows = false;
  if (--pestle_py.borrowing) return;
  while (pestle_py.lingering) {
    linger_t* linger = pestle_py.lingering;
    pestle_py.lingering = linger->next;
    pestle_py_release(linger->array);
    free(linger);
  }
}

void pestle_py_call_own(pestle_py_call_t* call) {
  for (size_t i = 0; i < call->count; ++i) {
    if (call->guards[i].is_owned) continue;
    call->guards[i].is_owned = true;
    pestle_array_retain(call->arrays[i]);
  }
  end_borrowing(call);
}

void pestle_py_call_end(pestle_py_call_t* call) {
  for (size_t i = 0; i < call->count; ++i) {
    if (call->guards[i].is_owned) pestle_array_release(call->arrays[i]);
  }
  end_borrowing(call);
  if (call->arrays != call->few_arrays) free(call->arrays);
  if (call->guards != call->few_guards) free(call->guards);
  free(call->donated);
  Py_XDECREF(call->statics);
  pestle_tree_deinit(&call->tree);
}

// A leaf of another library, or a number. Memory that shows itself as a buffer is read
// where it lies: the call has read it when it returns, unless a stream runs it.
static pestle_array_t* read_other(const pestle_py_jit_t* self,
                                  pestle_py_call_t* call, PyObject* leaf,
                                  unsigned kind) {
  bool shows = !kind && PyObject_CheckBuffer(leaf);
  bool is_data = kind || shows || PyObject_HasAttrString(leaf, "__dlpack__");
  if (!is_data || PyBytes_Check(leaf)) {
    call->has_other = true;
    PyErr_Format(PyExc_TypeError,
                 "argument %R is neither an array nor a number: name it in "
                 "static_argnums or static_argnames, or make its type a tree "
                 "by pestle.tree.register()",
                 leaf);
    return NULL;
  }
  if (!kind && !call->foreign) call->foreign = leaf;
  pestle_device_t* device = self->device;
  if (!device && !pestle_py_as_device(NULL, &device)) return NULL;
  bool is_host = pestle_device_dl(device).device_type == PESTLE_DEVICE_CPU;
  int copy = shows && is_host && !pestle_py_stream() ? 0 : -1;
  PyObject* made = pestle_py_asarray(leaf, PESTLE_NONE, self->device, copy);
  if (!made && !copy && !PyErr_ExceptionMatches(PyExc_MemoryError)) {
    PyErr_Clear();
    made = pestle_py_asarray(leaf, PESTLE_NONE, self->device, -1);
  }
  if (!made) return NULL;
  pestle_array_t* array = pestle_py_array(made);
  pestle_array_retain(array);
  Py_DECREF(made);
  return array;
}

static bool read_leaf(const pestle_py_jit_t* self, pestle_py_call_t* call,
                      PyObject* leaf) {
  pestle_py_guard_t* guard = &call->guards[call->count];
  guard->weak = 0;
  guard->is_donated = false;
  guard->is_owned = !call->borrows;
  if (pestle_py_is_array(leaf)) {
    pestle_array_t* array = pestle_py_array(leaf);
    if (guard->is_owned) pestle_array_retain(array);
    call->arrays[call->count] = array;
    guard->weak = ((pestle_py_array_t*)leaf)->weak;
    pestle_array_state_t state = pestle_array_state(array);
    call->is_traced |= state == PESTLE_ARRAY_TRACED;
    call->is_late |= state != PESTLE_ARRAY_DATA;
  } else {
    unsigned kind = pestle_py_number_kind(leaf);
    if (!kind) pestle_py_call_own(call);
    guard->is_owned = true;
    call->arrays[call->count] = read_other(self, call, leaf, kind);
    if (!call->arrays[call->count]) return false;
    guard->weak = (uint8_t)kind;
  }
  const pestle_type_t* type = pestle_array_type_of(call->arrays[call->count]);
  guard->type.dtype = type->dtype;
  guard->type.rank = type->rank;
  memcpy(guard->type.dims, type->dims, (size_t)type->rank * sizeof(int64_t));
  if (!call->device && !guard->weak) {
    call->device = pestle_array_device(call->arrays[call->count]);
  }
  ++call->count;
  return true;
}

static bool read_leaves(const pestle_py_jit_t* self, pestle_py_call_t* call) {
  size_t count = call->tree.leaf_count;
  call->device = self->device;
  if (count > sizeof(call->few_arrays) / sizeof(*call->few_arrays)) {
    call->arrays = malloc(count * sizeof(*call->arrays));
    call->guards = malloc(count * sizeof(*call->guards));
    if (!call->arrays || !call->guards) return PyErr_NoMemory() != NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    if (!read_leaf(self, call, call->tree.leaves[i])) return false;
  }
  for (size_t d = 0; d < call->donated_count; ++d) {
    for (size_t i = call->donated[d][0]; i < call->donated[d][1]; ++i)
      call->guards[i].is_donated = true;
  }
  return call->device || pestle_py_as_device(NULL, &call->device);
}

static bool is_at(PyObject* positions, Py_ssize_t position) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(positions); ++i) {
    if (PyLong_AsSsize_t(PyTuple_GetItem(positions, i)) == position)
      return true;
  }
  return false;
}

// Writes down that the leaves from |first| on are given away.
static bool add_donated(pestle_py_call_t* call, size_t first, size_t last) {
  size_t(*donated)[2] = realloc(
      call->donated, (call->donated_count + 1) * sizeof(*call->donated));
  if (!donated) return PyErr_NoMemory() != NULL;
  donated[call->donated_count][0] = first;
  donated[call->donated_count++][1] = last;
  call->donated = donated;
  return true;
}

// The same for each of |dict|, whose keys are sorted as its leaves are.
static bool add_donated_names(const pestle_py_jit_t* self,
                              pestle_py_call_t* call, PyObject* dict,
                              size_t first) {
  PyObject* keys = PyDict_Keys(dict);
  bool fine = keys && PyList_Sort(keys) == 0;
  for (Py_ssize_t i = 0; fine && i < PyList_Size(keys); ++i) {
    PyObject* key = PyList_GetItem(keys, i);
    pestle_tree_t tree;
    pestle_tree_init(&tree);
    fine = pestle_tree_flatten(&tree, PyDict_GetItemWithError(dict, key));
    size_t last = first + tree.leaf_count;
    if (fine && PySequence_Contains(self->donated_names, key) > 0) {
      fine = add_donated(call, first, last);
    }
    first = last;
    pestle_tree_deinit(&tree);
  }
  Py_XDECREF(keys);
  return fine;
}

bool pestle_py_is_static(const pestle_py_jit_t* self, Py_ssize_t position,
                         Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(self->statics); ++i) {
    Py_ssize_t at = PyLong_AsSsize_t(PyTuple_GetItem(self->statics, i));
    if (at == position || at + count == position) return true;
  }
  return false;
}

// Splits what is given by name.
static bool read_names(const pestle_py_jit_t* self, pestle_py_call_t* call,
                       const pestle_py_given_t* given, PyObject* statics) {
  PyObject* dynamic = PyDict_New();
  bool fine = dynamic != NULL;
  for (Py_ssize_t i = 0; fine && i < PyTuple_Size(given->names); ++i) {
    PyObject* key = PyTuple_GetItem(given->names, i);
    PyObject* value = given->args[given->count + i];
    bool fixed =
        self->static_names && PySequence_Contains(self->static_names, key) > 0;
    fine = fixed ? PyList_Append(statics, key) == 0 &&
                       PyList_Append(statics, value) == 0
                 : PyDict_SetItem(dynamic, key, value) == 0;
  }
  size_t first = call->tree.leaf_count;
  fine = fine && pestle_tree_flatten(&call->tree, dynamic);
  if (fine && self->donated_names) {
    fine = add_donated_names(self, call, dynamic, first);
  }
  Py_XDECREF(dynamic);
  return fine;
}

// Splits arguments into static values, in |call|, and dynamic ones, flattened.
bool pestle_py_call_read(const pestle_py_jit_t* self, pestle_py_call_t* call,
                         const pestle_py_given_t* given) {
  bool all_dynamic = !self->static_names && !PyTuple_Size(self->statics);
  PyObject* list = all_dynamic ? NULL : PyList_New(0);
  bool fine = all_dynamic || list, gives = PyTuple_Size(self->donated);
  for (Py_ssize_t i = 0; fine && i < given->count; ++i) {
    if (list && pestle_py_is_static(self, i, given->count)) {
      fine = PyList_Append(list, given->args[i]) == 0;
      continue;
    }
    size_t first = call->tree.leaf_count;
    fine = pestle_tree_flatten(&call->tree, given->args[i]);
    if (fine && gives && is_at(self->donated, i)) {
      fine = add_donated(call, first, call->tree.leaf_count);
    }
  }
  if (fine && pestle_py_has_names(given))
    fine = read_names(self, call, given, list);
  if (list && fine) {
    call->statics = PyList_AsTuple(list);
    fine = call->statics && PyObject_Hash(call->statics) != -1;
  }
  Py_XDECREF(list);
  return fine && read_leaves(self, call);
}

static bool same_type(const pestle_type_t* a, const pestle_type_t* b) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int32_t d = 0; d < a->rank; ++d) {
    if (a->dims[d] != b->dims[d]) return false;
  }
  return true;
}

static bool same_guards(const pestle_py_call_t* call,
                        const pestle_py_entry_t* entry) {
  for (size_t i = 0; i < call->count; ++i) {
    const pestle_py_guard_t *a = &call->guards[i], *b = &entry->guards[i];
    if (a->weak != b->weak || !same_type(&a->type, &b->type)) return false;
  }
  return true;
}

// 1: |entry| is of this call's kind; -1: an exception.
static int fits(const pestle_py_call_t* call, const pestle_py_entry_t* entry) {
  if (call->count != entry->leaf_count || call->device != entry->device ||
      call->config != entry->config || !same_guards(call, entry)) {
    return 0;
  }
  int same = pestle_tree_same(call->tree.words, call->tree.word_count,
                              entry->words, entry->word_count);
  if (same <= 0 || !call->statics) return same;
  return PyObject_RichCompareBool(call->statics, entry->statics, Py_EQ);
}

pestle_py_entry_t* pestle_py_find(pestle_py_jit_t* self,
                                  const pestle_py_call_t* call) {
  for (size_t i = 0; i < self->entry_count; ++i) {
    int found = fits(call, self->entries[i]);
    if (found < 0) return NULL;
    if (!found) continue;
    pestle_py_entry_t* entry = self->entries[i];
    memmove(self->entries + 1, self->entries, i * sizeof(*self->entries));
    self->entries[0] = entry;
    return entry;
  }
  return NULL;
}

// --- Misses ---

// How |entry|'s guards differ from |other|'s, in words.
static PyObject* difference(const pestle_py_entry_t* entry,
                            const pestle_py_entry_t* other) {
  if (entry->device != other->device) {
    return PyUnicode_FromFormat("the arguments are on %s, were on %s",
                                pestle_device_name(entry->device),
                                pestle_device_name(other->device));
  }
  if (entry->config != other->config) {
    return PyUnicode_FromString("pestle.config is another");
  }
  if (entry->leaf_count != other->leaf_count ||
      pestle_tree_same(entry->words, entry->word_count, other->words,
                       other->word_count) != 1) {
    PyErr_Clear();
    return PyUnicode_FromString("the arguments stand together in another way");
  }
  for (size_t i = 0; i < entry->leaf_count; ++i) {
    const pestle_py_guard_t *a = &entry->guards[i], *b = &other->guards[i];
    if (a->type.dtype != b->type.dtype) {
      return PyUnicode_FromFormat("leaf %zu is of %s, was of %s", i,
                                  pestle_py_dtype_name(a->type.dtype),
                                  pestle_py_dtype_name(b->type.dtype));
    }
    if (a->type.rank != b->type.rank) {
      return PyUnicode_FromFormat("leaf %zu has rank %d, had %d", i,
                                  (int)a->type.rank, (int)b->type.rank);
    }
    for (int32_t d = 0; d < a->type.rank; ++d) {
      if (a->type.dims[d] == b->type.dims[d]) continue;
      return PyUnicode_FromFormat("axis %d of leaf %zu is %lld, was %lld",
                                  (int)d, i, (long long)a->type.dims[d],
                                  (long long)b->type.dims[d]);
    }
    if (a->weak != b->weak) {
      return PyUnicode_FromFormat("leaf %zu is %s, was not", i,
                                  a->weak ? "a number" : "an array");
    }
  }
  return PyUnicode_FromFormat("static arguments are %R, were %R",
                              entry->statics, other->statics);
}

// How many things of |entry| are others than |other| has them.
static size_t distance(const pestle_py_entry_t* entry,
                       const pestle_py_entry_t* other) {
  enum { FAR = 1 << 20 };
  if (entry->leaf_count != other->leaf_count ||
      entry->word_count != other->word_count) {
    return FAR;
  }
  size_t count = entry->device != other->device;
  count += entry->config != other->config;
  for (size_t i = 0; i < entry->leaf_count; ++i) {
    const pestle_py_guard_t *a = &entry->guards[i], *b = &other->guards[i];
    count += a->weak != b->weak || !same_type(&a->type, &b->type);
  }
  return count;
}

// Appends why none of the traces was |entry|: what the nearest has otherwise.
static bool remember_miss(pestle_py_jit_t* self,
                          const pestle_py_entry_t* entry) {
  const pestle_py_entry_t* nearest = NULL;
  size_t least = SIZE_MAX;
  for (size_t i = 0; i < self->entry_count; ++i) {
    size_t count = distance(entry, self->entries[i]);
    if (count >= least) continue;
    least = count;
    nearest = self->entries[i];
  }
  if (!nearest) return true;
  PyObject* text = difference(entry, nearest);
  bool fine = text && PyList_Append(self->misses, text) == 0;
  Py_XDECREF(text);
  if (fine && PyList_Size(self->misses) > PESTLE_PY_MISSES) {
    fine = PyList_SetSlice(self->misses, 0, 1, NULL) == 0;
  }
  return fine;
}

bool pestle_py_entry_keep(pestle_py_jit_t* self, pestle_py_entry_t* entry) {
  if (!remember_miss(self, entry)) return false;
  if (self->entry_count == PESTLE_PY_ENTRIES) {
    pestle_py_entry_drop(self->entries[--self->entry_count]);
  }
  memmove(self->entries + 1, self->entries,
          self->entry_count * sizeof(*self->entries));
  self->entries[0] = entry;
  ++self->entry_count;
  return true;
}
