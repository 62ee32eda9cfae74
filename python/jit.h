// SPDX-License-Identifier: Apache-2.0
// What jit() gives, in three parts: jit_guard.c reads the arguments of a call and
// finds the trace that has their structure and types, jit_trace.c makes one, jit.c
// runs it.
#ifndef PESTLE_PYTHON_JIT_H_
#define PESTLE_PYTHON_JIT_H_

#include "tree.h"

enum {
  PESTLE_PY_ENTRIES = 64,  // traces that a function keeps
  PESTLE_PY_MISSES = 64,   // sentences that it keeps
};

// Of a leaf: its dtype, rank and extents, and whether it is a number.
typedef struct pestle_py_guard_t {
  pestle_type_t type;
  uint8_t weak;
  // Not compared: what its place says, and whether the call has a reference of its own.
  bool is_donated, is_owned;
} pestle_py_guard_t;

// A trace.
typedef struct pestle_py_entry_t {
  uintptr_t* words;
  size_t word_count;
  pestle_py_guard_t* guards;
  size_t leaf_count;
  PyObject* statics;  // a tuple, or NULL
  pestle_device_t* device;
  uint32_t config;  // pestle_py_config_word()
  pestle_jit_t* jit;
  PyObject* module;
  PyObject* hidden;         // arrays that it reads besides its arguments
  pestle_status_t donated;  // what arrays say that were given away, or NULL
  uintptr_t* out_words;
  size_t out_word_count, out_count;
  int64_t run_ns;  // of the fastest of the first calls
  uint32_t calls;
  // The cache's, and one for each call that runs: a run may let another thread have
  // the interpreter, which forgets the entry.
  uint32_t users;
} pestle_py_entry_t;

// The arguments of a call: |count| by position, then those of |names|, a tuple or
// NULL.
typedef struct pestle_py_given_t {
  PyObject* const* args;
  Py_ssize_t count;
  PyObject* names;
} pestle_py_given_t;

// As PyVectorcall_* have it, which are in the limited API from 3.12 on.
typedef PyObject* (*pestle_py_vectorcall_t)(PyObject* self,
                                            PyObject* const* args,
                                            size_t nargsf, PyObject* names);

typedef struct pestle_py_jit_t {
  PyObject_HEAD pestle_py_vectorcall_t vectorcall;
  PyObject* function;
  PyObject* statics;       // positions, a tuple of int
  PyObject* static_names;  // a frozenset or NULL
  PyObject* donated;       // as statics, not counted from the end
  PyObject* donated_names;
  PyObject* dict;
  PyObject* misses;         // sentences, a list
  pestle_device_t* device;  // where it runs, or NULL: where its arguments are
  int numerics;
  bool like;  // results are of the type of the first foreign argument
  pestle_py_entry_t* entries[PESTLE_PY_ENTRIES];  // the latest first
  size_t entry_count;
  uint64_t traces;
  PyObject* weak_refs;  // what has weak references to it, or NULL
} pestle_py_jit_t;

// What a call was given: the leaves of its dynamic arguments as arrays.
typedef struct pestle_py_call_t {
  pestle_tree_t tree;
  pestle_array_t** arrays;  // of the leaves, or the call's own
  pestle_py_guard_t* guards;
  size_t count;
  PyObject* statics;  // a tuple, or NULL
  PyObject* foreign;  // the first leaf of another library, or NULL; borrowed
  pestle_device_t* device;
  uint32_t config;
  bool borrows;  // counted in pestle_py.borrowing
  bool is_traced;
  bool has_other;        // an argument is neither an array nor a number
  bool is_late;          // an argument is to be computed or waited for
  size_t (*donated)[2];  // leaves from .. up to .., or NULL
  size_t donated_count;
  pestle_array_t* few_arrays[24];
  pestle_py_guard_t few_guards[24];
} pestle_py_call_t;

static inline bool pestle_py_has_names(const pestle_py_given_t* given) {
  return given->names && PyTuple_Size(given->names);
}

// --- jit_guard.c ---

void pestle_py_call_begin(pestle_py_call_t* call);
void pestle_py_call_end(pestle_py_call_t* call);
// Takes references of what is borrowed: before anything that lets others have the
// interpreter for long.
void pestle_py_call_own(pestle_py_call_t* call);
// Splits arguments into static values and dynamic ones, as leaves.
bool pestle_py_call_read(const pestle_py_jit_t* self, pestle_py_call_t* call,
                         const pestle_py_given_t* given);
bool pestle_py_is_static(const pestle_py_jit_t* self, Py_ssize_t position,
                         Py_ssize_t count);
// The trace of such calls; NULL where there is none, or an exception.
pestle_py_entry_t* pestle_py_find(pestle_py_jit_t* self,
                                  const pestle_py_call_t* call);
void pestle_py_entry_drop(pestle_py_entry_t* entry);
// Puts |entry| first, and writes down why the others were not it.
bool pestle_py_entry_keep(pestle_py_jit_t* self, pestle_py_entry_t* entry);

// --- jit_trace.c ---

// A new trace, in the cache; NULL and an exception.
pestle_py_entry_t* pestle_py_trace(pestle_py_jit_t* self,
                                   const pestle_py_call_t* call,
                                   const pestle_py_given_t* given);
// The arguments of |call|, which |given| are, with |leaves|, a tuple, in the places of
// its dynamic ones.
bool pestle_py_rebuild(const pestle_py_jit_t* jit, const pestle_py_call_t* call,
                       const pestle_py_given_t* given, PyObject* leaves,
                       PyObject** out_args, PyObject** out_kwargs);
// What is given as a tuple and a dict.
bool pestle_py_to_objects(const pestle_py_given_t* given, PyObject** out_args,
                          PyObject** out_kwargs);

#endif  // PESTLE_PYTHON_JIT_H_
