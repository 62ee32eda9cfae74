// SPDX-License-Identifier: Apache-2.0
// Trees: nested tuples, lists, dicts and registered types, as leaves and words that
// say how they stand together. Two values of equal words have one structure.
//
//   LEAF | NONE | LIST n | TUPLE n | DICT n key... | NAMED type n | NODE type aux n
//
// Keys of dicts are sorted where they can be compared, so that order says nothing.
#ifndef PESTLE_PYTHON_TREE_H_
#define PESTLE_PYTHON_TREE_H_

#include "module.h"

enum {
  PESTLE_TREE_LEAF = 1,
  PESTLE_TREE_NONE,
  PESTLE_TREE_LIST,
  PESTLE_TREE_TUPLE,
  PESTLE_TREE_DICT,
  PESTLE_TREE_NAMED,
  PESTLE_TREE_NODE,
};

typedef struct pestle_tree_t {
  PyObject** leaves;  // with a reference each
  uintptr_t* words;
  size_t leaf_count, leaf_room, word_count, word_room;
  PyObject* few_leaves[24];
  uintptr_t few_words[48];
} pestle_tree_t;

void pestle_tree_init(pestle_tree_t* tree);
void pestle_tree_deinit(pestle_tree_t* tree);
// Appends |object|. What words point to has a reference too.
bool pestle_tree_flatten(pestle_tree_t* tree, PyObject* object);
// Whether words are of one structure: 1, 0, or -1 and an exception.
int pestle_tree_same(const uintptr_t* a, size_t a_count, const uintptr_t* b,
                     size_t b_count);
// A copy of |count| words with references of its own, to be freed.
uintptr_t* pestle_tree_copy_words(const uintptr_t* words, size_t count);
void pestle_tree_free_words(uintptr_t* words, size_t count);
// The value whose leaves are |leaves|, which are borrowed.
PyObject* pestle_tree_unflatten(const uintptr_t* words,
                                PyObject* const* leaves);
// The same of the first of several values; moves both behind it.
PyObject* pestle_tree_unflatten_next(const uintptr_t** words,
                                     PyObject* const** leaves);

#endif  // PESTLE_PYTHON_TREE_H_
