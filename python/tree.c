// SPDX-License-Identifier: Apache-2.0
// Flattening and unflattening of trees, and pestle.tree.Structure.
#include "tree.h"

#include <stdlib.h>
#include <string.h>

void pestle_tree_init(pestle_tree_t* tree) {
  tree->leaves = tree->few_leaves;
  tree->words = tree->few_words;
  tree->leaf_count = tree->word_count = 0;
  tree->leaf_room = sizeof(tree->few_leaves) / sizeof(*tree->few_leaves);
  tree->word_room = sizeof(tree->few_words) / sizeof(*tree->few_words);
}

// --- Words ---

// How many of the words at |at| belong together, and which of them are references:
// from |*out_first| on |*out_count|.
static size_t entry(const uintptr_t* at, size_t* out_first, size_t* out_count) {
  *out_first = 2;
  *out_count = 0;
  switch (*at) {
    case PESTLE_TREE_LEAF:
    case PESTLE_TREE_NONE:
      return 1;
    case PESTLE_TREE_DICT:
      *out_count = at[1];
      return 2 + at[1];
    case PESTLE_TREE_NAMED:
      *out_count = 1;
      return 3;
    case PESTLE_TREE_NODE:
      *out_count = 2;
      return 4;
    default:
      return 2;
  }
}

static void hold_words(const uintptr_t* words, size_t count, bool holds) {
  size_t first, references;
  for (size_t at = 0; at < count;) {
    size_t size = entry(words + at, &first, &references);
    for (size_t i = 0; i < references; ++i) {
      PyObject* object = (PyObject*)words[at + first + i];
      if (holds) {
        Py_INCREF(object);
      } else {
        Py_DECREF(object);
      }
    }
    at += size;
  }
}

uintptr_t* pestle_tree_copy_words(const uintptr_t* words, size_t count) {
  uintptr_t* copy = malloc((count + 1) * sizeof(*copy));
  if (!copy) {
    PyErr_NoMemory();
    return NULL;
  }
  memcpy(copy, words, count * sizeof(*copy));
  hold_words(copy, count, true);
  return copy;
}

void pestle_tree_free_words(uintptr_t* words, size_t count) {
  if (words) hold_words(words, count, false);
  free(words);
}

int pestle_tree_same(const uintptr_t* a, size_t a_count, const uintptr_t* b,
                     size_t b_count) {
  if (a_count != b_count) return 0;
  if (!memcmp(a, b, a_count * sizeof(*a))) return 1;
  size_t first, count;
  for (size_t at = 0; at < a_count;) {
    size_t size = entry(a + at, &first, &count);
    for (size_t i = 0; i < size; ++i) {
      uintptr_t x = a[at + i], y = b[at + i];
      if (x == y) continue;
      if (i < first || i >= first + count || a[at] != b[at]) return 0;
      int equal = PyObject_RichCompareBool((PyObject*)x, (PyObject*)y, Py_EQ);
      if (equal <= 0) return equal;
    }
    at += size;
  }
  return 1;
}

void pestle_tree_deinit(pestle_tree_t* tree) {
  for (size_t i = 0; i < tree->leaf_count; ++i)
    Py_DECREF(tree->leaves[i]);
  hold_words(tree->words, tree->word_count, false);
  if (tree->leaves != tree->few_leaves) free(tree->leaves);
  if (tree->words != tree->few_words) free(tree->words);
}

// --- Flattening ---

static bool put(pestle_tree_t* tree, uintptr_t word) {
  if (tree->word_count == tree->word_room) {
    size_t room = 2 * tree->word_room;
    uintptr_t* old = tree->words == tree->few_words ? NULL : tree->words;
    uintptr_t* words = realloc(old, room * sizeof(*words));
    if (!words) return PyErr_NoMemory() != NULL;
    if (!old) memcpy(words, tree->few_words, sizeof(tree->few_words));
    tree->words = words;
    tree->word_room = room;
  }
  tree->words[tree->word_count++] = word;
  return true;
}

static bool put_leaf(pestle_tree_t* tree, PyObject* leaf) {
  if (tree->leaf_count == tree->leaf_room) {
    size_t room = 2 * tree->leaf_room;
    PyObject** old = tree->leaves == tree->few_leaves ? NULL : tree->leaves;
    PyObject** leaves = realloc(old, room * sizeof(*leaves));
    if (!leaves) return PyErr_NoMemory() != NULL;
    if (!old) memcpy(leaves, tree->few_leaves, sizeof(tree->few_leaves));
    tree->leaves = leaves;
    tree->leaf_room = room;
  }
  if (!put(tree, PESTLE_TREE_LEAF)) return false;
  tree->leaves[tree->leaf_count++] = Py_NewRef(leaf);
  return true;
}

static bool flatten(pestle_tree_t* tree, PyObject* object);

static bool flatten_items(pestle_tree_t* tree, PyObject* items, bool is_list) {
  Py_ssize_t count = is_list ? PyList_Size(items) : PyTuple_Size(items);
  if (!put(tree, is_list ? PESTLE_TREE_LIST : PESTLE_TREE_TUPLE)) return false;
  if (!put(tree, (uintptr_t)count)) {
    --tree->word_count;  // an entry is whole, or not there
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = Py_XNewRef(is_list ? PyList_GetItem(items, i)
                                        : PyTuple_GetItem(items, i));
    bool fine = item && flatten(tree, item);
    Py_XDECREF(item);
    if (!fine) return false;
  }
  return true;
}

// The words first: the entry of a dict must be whole when it is left.
static bool put_keys(pestle_tree_t* tree, PyObject* keys) {
  Py_ssize_t count = PyList_Size(keys);
  size_t begin = tree->word_count;
  bool fine = put(tree, PESTLE_TREE_DICT) && put(tree, (uintptr_t)count);
  for (Py_ssize_t i = 0; fine && i < count; ++i)
    fine = put(tree, (uintptr_t)PyList_GetItem(keys, i));
  if (!fine) {
    tree->word_count = begin;
    return false;
  }
  for (Py_ssize_t i = 0; i < count; ++i)
    Py_INCREF(PyList_GetItem(keys, i));
  return true;
}

static bool flatten_dict(pestle_tree_t* tree, PyObject* dict) {
  PyObject* keys = PyDict_Keys(dict);
  if (!keys) return false;
  if (PyList_Sort(keys) < 0) PyErr_Clear();  // keys without an order
  bool fine = put_keys(tree, keys);
  for (Py_ssize_t i = 0; fine && i < PyList_Size(keys); ++i) {
    PyObject* item = PyDict_GetItemWithError(dict, PyList_GetItem(keys, i));
    Py_XINCREF(item);
    fine = item && flatten(tree, item);
    Py_XDECREF(item);
  }
  Py_DECREF(keys);
  return fine;
}

static bool put_typed(pestle_tree_t* tree, uintptr_t kind, PyObject* type,
                      PyObject* aux, Py_ssize_t count) {
  size_t begin = tree->word_count;
  bool fine = put(tree, kind) && put(tree, (uintptr_t)count) &&
              put(tree, (uintptr_t)type) && (!aux || put(tree, (uintptr_t)aux));
  if (!fine) {
    tree->word_count = begin;
    return false;
  }
  Py_INCREF(type);
  Py_XINCREF(aux);
  return true;
}

static bool flatten_children(pestle_tree_t* tree, PyObject* children) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(children); ++i) {
    if (!flatten(tree, PyTuple_GetItem(children, i))) return false;
  }
  return true;
}

// What a registered type gave: (children, what else there is).
static bool put_node(pestle_tree_t* tree, PyObject* object, PyObject* pair) {
  bool fine = PyTuple_Check(pair) && PyTuple_Size(pair) == 2;
  if (!fine) {
    PyErr_SetString(PyExc_TypeError,
                    "a registered type flattens to (children, aux)");
  }
  PyObject* children = fine ? PySequence_Tuple(PyTuple_GetItem(pair, 0)) : NULL;
  fine = children &&
         put_typed(tree, PESTLE_TREE_NODE, (PyObject*)Py_TYPE(object),
                   PyTuple_GetItem(pair, 1), PyTuple_Size(children)) &&
         flatten_children(tree, children);
  Py_XDECREF(children);
  return fine;
}

static bool flatten_node(pestle_tree_t* tree, PyObject* object,
                         PyObject* functions) {
  PyObject* pair =
      PyObject_CallFunctionObjArgs(PyTuple_GetItem(functions, 0), object, NULL);
  bool fine = pair && put_node(tree, object, pair);
  Py_XDECREF(pair);
  return fine;
}

// Whether jax.tree_util may know the type of |object|: where jax is loaded, and for
// what is no leaf by its type. It is asked once for each type.
static bool is_of_jax(PyObject* object) {
  if (pestle_py_number_kind(object) || PyUnicode_Check(object) ||
      PyObject_CheckBuffer(object) || PyCallable_Check(object)) {
    return false;
  }
  PyObject* modules = PyImport_GetModuleDict();
  return modules && PyDict_GetItemString(modules, "jax.tree_util");
}

// The functions of a registered type, borrowed; NULL, and perhaps an exception. Those of
// collections are registered when the first dict comes that is no dict by its type.
static PyObject* functions_of(PyObject* object) {
  static bool has_dicts;
  PyObject* type = (PyObject*)Py_TYPE(object);
  if (!has_dicts && PyDict_Check(object)) {
    PyObject* done = pestle_py_hook("dict_nodes", NULL, 0);
    if (!done) return NULL;
    Py_DECREF(done);
    has_dicts = true;
  }
  return PyDict_GetItemWithError(pestle_py.nodes, type);
}

static bool flatten_other(pestle_tree_t* tree, PyObject* object) {
  PyObject* functions = functions_of(object);
  if (functions) return flatten_node(tree, object, functions);
  if (PyErr_Occurred()) return false;
  if (is_of_jax(object)) {
    PyObject* pair = pestle_py_hook("jax_node", &object, 1);
    if (!pair) return false;
    bool is_node = pair != Py_None;
    bool fine = is_node && put_node(tree, object, pair);
    Py_DECREF(pair);
    if (is_node) return fine;
  }
  if (PyTuple_Check(object) && PyObject_HasAttrString(object, "_fields")) {
    return put_typed(tree, PESTLE_TREE_NAMED, (PyObject*)Py_TYPE(object), NULL,
                     PyTuple_Size(object)) &&
           flatten_children(tree, object);
  }
  return put_leaf(tree, object);
}

static bool flatten(pestle_tree_t* tree, PyObject* object) {
  if (pestle_py_is_array(object)) return put_leaf(tree, object);
  if (object == Py_None) return put(tree, PESTLE_TREE_NONE);
  if (Py_EnterRecursiveCall(" in a tree")) return false;
  bool fine;
  if (Py_TYPE(object) == &PyTuple_Type) {
    fine = flatten_items(tree, object, false);
  } else if (Py_TYPE(object) == &PyList_Type) {
    fine = flatten_items(tree, object, true);
  } else if (Py_TYPE(object) == &PyDict_Type) {
    fine = flatten_dict(tree, object);
  } else {
    fine = flatten_other(tree, object);
  }
  Py_LeaveRecursiveCall();
  return fine;
}

bool pestle_tree_flatten(pestle_tree_t* tree, PyObject* object) {
  return flatten(tree, object);
}

// --- Unflattening ---

typedef struct cursor_t {
  const uintptr_t* words;
  PyObject* const* leaves;
} cursor_t;

static PyObject* build(cursor_t* at);

static PyObject* build_tuple(cursor_t* at, size_t count) {
  PyObject* tuple = PyTuple_New((Py_ssize_t)count);
  for (size_t i = 0; tuple && i < count; ++i) {
    PyObject* item = build(at);
    if (!item || PyTuple_SetItem(tuple, (Py_ssize_t)i, item) < 0) {
      Py_CLEAR(tuple);
    }
  }
  return tuple;
}

static PyObject* build_list(cursor_t* at, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; ++i) {
    PyObject* item = build(at);
    if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) {
      Py_CLEAR(list);
    }
  }
  return list;
}

static PyObject* build_dict(cursor_t* at, const uintptr_t* keys, size_t count) {
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < count; ++i) {
    PyObject* item = build(at);
    if (!item || PyDict_SetItem(dict, (PyObject*)keys[i], item) < 0) {
      Py_CLEAR(dict);
    }
    Py_XDECREF(item);
  }
  return dict;
}

static PyObject* build_named(cursor_t* at, size_t count, PyObject* type) {
  PyObject* items = build_tuple(at, count);
  PyObject* result = items ? PyObject_Call(type, items, NULL) : NULL;
  Py_XDECREF(items);
  return result;
}

static PyObject* build_node(cursor_t* at, size_t count, PyObject* type,
                            PyObject* aux) {
  PyObject* functions = PyDict_GetItemWithError(pestle_py.nodes, type);
  PyObject* items =
      functions || !PyErr_Occurred() ? build_tuple(at, count) : NULL;
  if (items && !functions) {
    PyObject* made =
        pestle_py_hook("jax_value", (PyObject*[]){type, aux, items}, 3);
    Py_DECREF(items);
    return made;
  }
  PyObject* result = items
                         ? PyObject_CallFunctionObjArgs(
                               PyTuple_GetItem(functions, 1), aux, items, NULL)
                         : NULL;
  Py_XDECREF(items);
  return result;
}

static PyObject* build(cursor_t* at) {
  const uintptr_t* words = at->words;
  size_t first, references;
  at->words += entry(words, &first, &references);
  switch (*words) {
    case PESTLE_TREE_LEAF:
      return Py_NewRef(*at->leaves++);
    case PESTLE_TREE_NONE:
      Py_RETURN_NONE;
    case PESTLE_TREE_LIST:
      return build_list(at, words[1]);
    case PESTLE_TREE_TUPLE:
      return build_tuple(at, words[1]);
    case PESTLE_TREE_DICT:
      return build_dict(at, words + 2, words[1]);
    case PESTLE_TREE_NAMED:
      return build_named(at, words[1], (PyObject*)words[2]);
    default:
      return build_node(at, words[1], (PyObject*)words[2], (PyObject*)words[3]);
  }
}

PyObject* pestle_tree_unflatten(const uintptr_t* words,
                                PyObject* const* leaves) {
  cursor_t at = {words, leaves};
  return build(&at);
}

PyObject* pestle_tree_unflatten_next(const uintptr_t** words,
                                     PyObject* const** leaves) {
  cursor_t at = {*words, *leaves};
  PyObject* result = build(&at);
  *words = at.words;
  *leaves = at.leaves;
  return result;
}

// --- Structures as objects ---

typedef struct structure_t {
  PyObject_HEAD uintptr_t* words;
  size_t word_count, leaf_count;
} structure_t;

static void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  structure_t* s = (structure_t*)self;
  pestle_tree_free_words(s->words, s->word_count);
  PyObject_Free(self);
  Py_DECREF(type);
}

static PyObject* compare(PyObject* self, PyObject* other, int op) {
  if (Py_TYPE(other) != Py_TYPE(self) || (op != Py_EQ && op != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  structure_t *a = (structure_t*)self, *b = (structure_t*)other;
  int same = pestle_tree_same(a->words, a->word_count, b->words, b->word_count);
  return same < 0 ? NULL : PyBool_FromLong(same == (op == Py_EQ));
}

static Py_hash_t hash(PyObject* self) {
  const structure_t* s = (structure_t*)self;
  return (Py_hash_t)(s->word_count * 31 + s->leaf_count);
}

// The value with "*" where leaves are.
static PyObject* repr(PyObject* self) {
  const structure_t* s = (structure_t*)self;
  PyObject* star = PyUnicode_FromString("*");
  PyObject** leaves = malloc((s->leaf_count + 1) * sizeof(*leaves));
  PyObject *value = NULL, *text = NULL;
  for (size_t i = 0; leaves && i < s->leaf_count; ++i)
    leaves[i] = star;
  if (leaves && star) value = pestle_tree_unflatten(s->words, leaves);
  if (value) text = PyUnicode_FromFormat("structure(%R)", value);
  Py_XDECREF(value);
  Py_XDECREF(star);
  free(leaves);
  return text;
}

static PyObject* get_leaf_count(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromSize_t(((structure_t*)self)->leaf_count);
}

static PyObject* unflatten(PyObject* self, PyObject* list) {
  const structure_t* s = (structure_t*)self;
  PyObject* tuple = PySequence_Tuple(list);
  if (!tuple) return NULL;
  if ((size_t)PyTuple_Size(tuple) != s->leaf_count) {
    PyErr_Format(PyExc_ValueError, "the structure has %zu leaves, not %zd",
                 s->leaf_count, PyTuple_Size(tuple));
    Py_DECREF(tuple);
    return NULL;
  }
  PyObject** leaves = malloc((s->leaf_count + 1) * sizeof(*leaves));
  PyObject* result = NULL;
  for (size_t i = 0; leaves && i < s->leaf_count; ++i)
    leaves[i] = PyTuple_GetItem(tuple, (Py_ssize_t)i);
  if (leaves) result = pestle_tree_unflatten(s->words, leaves);
  free(leaves);
  Py_DECREF(tuple);
  return result;
}

static PyObject* flatten_value(PyObject* self, PyObject* object) {
  (void)self;
  pestle_tree_t tree;
  pestle_tree_init(&tree);
  PyObject *list = NULL, *result = NULL;
  structure_t* s = NULL;
  if (pestle_tree_flatten(&tree, object)) {
    list = PyList_New((Py_ssize_t)tree.leaf_count);
    s = (structure_t*)PyType_GenericAlloc(pestle_py.tree_type, 0);
  }
  for (size_t i = 0; list && i < tree.leaf_count; ++i)
    PyList_SetItem(list, (Py_ssize_t)i, Py_NewRef(tree.leaves[i]));
  if (list && s) {
    s->words = pestle_tree_copy_words(tree.words, tree.word_count);
    s->word_count = s->words ? tree.word_count : 0;
    s->leaf_count = tree.leaf_count;
    if (s->words) result = PyTuple_Pack(2, list, (PyObject*)s);
  }
  Py_XDECREF(list);
  Py_XDECREF((PyObject*)s);
  pestle_tree_deinit(&tree);
  return result;
}

static PyObject* register_type(PyObject* self, PyObject* args) {
  (void)self;
  PyObject *type, *flattens, *unflattens;
  if (!PyArg_ParseTuple(args, "OOO:register", &type, &flattens, &unflattens)) {
    return NULL;
  }
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "register() takes a type");
    return NULL;
  }
  PyObject* pair = PyTuple_Pack(2, flattens, unflattens);
  int failed = pair ? PyDict_SetItem(pestle_py.nodes, type, pair) : -1;
  Py_XDECREF(pair);
  return failed ? NULL : Py_NewRef(type);
}

static PyMethodDef methods[] = {
    {"unflatten", unflatten, METH_O,
     "unflatten(leaves, /)\n--\n\nThe value of this structure with these "
     "leaves.\n"
     "\n"
     "Raises ValueError for another count of leaves.\n"
     "\n"
     ">>> pt.tree.structure([0, (0,)]).unflatten([1, 2])\n"
     "[1, (2,)]"},
    {NULL, NULL, 0, NULL},
};
static PyGetSetDef fields[] = {
    {"num_leaves", get_leaf_count, NULL, "How many leaves there are.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_doc,
     "How the leaves of a tree stand together.\n"
     "\n"
     ">>> pt.tree.structure({\"a\": 1, \"b\": (2, 3)}).num_leaves\n"
     "3"},
    {Py_tp_dealloc, PESTLE_PY_SLOT(dealloc)},
    {Py_tp_richcompare, PESTLE_PY_SLOT(compare)},
    {Py_tp_hash, PESTLE_PY_SLOT(hash)},
    {Py_tp_repr, PESTLE_PY_SLOT(repr)},
    {Py_tp_methods, methods},
    {Py_tp_getset, fields},
    {0, NULL},
};
static PyType_Spec spec = {
    "pestle.tree.Structure", sizeof(structure_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

static PyMethodDef functions[] = {
    {"tree_flatten", flatten_value, METH_O,
     "tree_flatten(tree, /)\n--\n\nThe leaves of tree, a list, and its "
     "structure.\n"
     "\n"
     "Leaves are what is no tuple, list, dict, None, or value of a registered "
     "type. Keys of\n"
     "dicts are in order. Raises TypeError for a registered type that does not "
     "flatten to a\n"
     "pair, RecursionError for a tree that has itself as a part.\n"
     "\n"
     ">>> pt.tree.flatten({\"b\": 2, \"a\": [1, None]})[0]\n"
     "[1, 2]"},
    {"tree_register", register_type, METH_VARARGS,
     "tree_register(type, flatten, unflatten, /)\n--\n\nMakes values of type "
     "trees: "
     "flatten(x) gives (children, aux), unflatten(aux,\nchildren) the value.\n"
     "\n"
     "Raises TypeError for what is no type.\n"
     "\n"
     ">>> class Pair:\n"
     "...     def __init__(self, a, b):\n"
     "...         self.a, self.b = a, b\n"
     ">>> _ = pt.tree.register(Pair, lambda p: ((p.a, p.b), None),\n"
     "...                      lambda aux, parts: Pair(*parts))\n"
     ">>> pt.tree.leaves([Pair(1, 2), 3])\n"
     "[1, 2, 3]"},
    {NULL, NULL, 0, NULL},
};

bool pestle_py_add_tree(PyObject* module) {
  PyObject* type = PyType_FromSpec(&spec);
  if (!type) return false;
  pestle_py.tree_type = (PyTypeObject*)type;
  return PyModule_AddFunctions(module, functions) == 0 &&
         PyModule_AddObjectRef(module, "Structure", type) == 0;
}
