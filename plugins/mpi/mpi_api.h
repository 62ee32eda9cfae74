// SPDX-License-Identifier: Apache-2.0
// The functions and constants of MPI that are used, of whichever library there is.
//
// Three binary interfaces are known: OpenMPI's, whose handles are addresses of its own
// objects; MPICH's, whose handles are 32-bit numbers; and that of the MPI-5 standard,
// whose handles are pointers with fixed values. A handle is kept as a uintptr_t; the
// calls go through the type that the library has.
#ifndef PESTLE_PLUGINS_MPI_MPI_API_H_
#define PESTLE_PLUGINS_MPI_MPI_API_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pestle/plugin.h"

typedef uintptr_t mpi_handle_t;

typedef enum mpi_abi_t {
  MPI_ABI_OPEN,
  MPI_ABI_MPICH,
  MPI_ABI_STANDARD
} mpi_abi_t;

// Element types, in the order of mpi_types of mpi_api.c.
typedef enum mpi_type_t {
  MPI_TYPE_BYTE,
  MPI_TYPE_F32,
  MPI_TYPE_F64,
  MPI_TYPE_I8,
  MPI_TYPE_I16,
  MPI_TYPE_I32,
  MPI_TYPE_I64,
  MPI_TYPE_U8,
  MPI_TYPE_U16,
  MPI_TYPE_U32,
  MPI_TYPE_U64,
  MPI_TYPES
} mpi_type_t;

typedef enum mpi_op_t {
  MPI_OP_SUM,
  MPI_OP_PROD,
  MPI_OP_MIN,
  MPI_OP_MAX,
  MPI_OPS
} mpi_op_t;

// A function by both types of handles.
typedef union mpi_function_t {
  void* symbol;
  int (*init_thread)(int*, char***, int, int*);
  int (*flag)(int*);  // Initialized, Finalized, Query_thread
  int (*finalize)(void);
  int (*error_string)(int, char*, int*);
  int (*get_i)(int, int*);  // Comm_rank, Comm_size
  int (*get_p)(void*, int*);
  int (*dup_i)(int, int*);
  int (*dup_p)(void*, void**);
  int (*free_i)(int*);
  int (*free_p)(void**);
  int (*set_i)(int, int);  // Comm_set_errhandler
  int (*set_p)(void*, void*);
  int (*send_i)(const void*, int, int, int, int, int, int*);
  int (*send_p)(const void*, int, void*, int, int, void*, void**);
  int (*receive_i)(void*, int, int, int, int, int, int*);
  int (*receive_p)(void*, int, void*, int, int, void*, void**);
  int (*reduce_i)(const void*, void*, int, int, int, int, int*);
  int (*reduce_p)(const void*, void*, int, void*, void*, void*, void**);
  int (*test_i)(int*, int*, void*);
  int (*test_p)(void**, int*, void*);
} mpi_function_t;

typedef struct mpi_api_t {
  mpi_abi_t abi;
  char path[512];
  mpi_function_t init_thread, initialized, finalized, finalize, query_thread,
      error_string, comm_rank, comm_size, comm_dup, comm_free,
      comm_set_errhandler, isend, irecv, iallreduce, test;
  mpi_handle_t world, errors_return, types[MPI_TYPES], ops[MPI_OPS];
  void* status_ignore;
  int serialized, multiple;  // levels of threads
} mpi_api_t;

// Where a library is: named by PESTLE_MPI, in the process already, or that of the
// launcher which has started this process. False: none; |why| says so.
bool pestle_mpi_is_wanted(char* why, size_t capacity);
// Opens it, which starts nothing.
pestle_status_t pestle_mpi_open(const pestle_host_t* host, mpi_api_t* out_api);

// The calls, which give MPI's error, 0 where all is well.
int pestle_mpi_get(const mpi_api_t* api, mpi_function_t function,
                   mpi_handle_t comm, int* out);
int pestle_mpi_dup(const mpi_api_t* api, mpi_handle_t comm, mpi_handle_t* out);
void pestle_mpi_free(const mpi_api_t* api, mpi_handle_t comm);
int pestle_mpi_return_errors(const mpi_api_t* api, mpi_handle_t comm);
int pestle_mpi_send(const mpi_api_t* api, const void* data, int count, int peer,
                    int tag, mpi_handle_t comm, mpi_handle_t* out_request);
int pestle_mpi_receive(const mpi_api_t* api, void* data, int count, int peer,
                       int tag, mpi_handle_t comm, mpi_handle_t* out_request);
int pestle_mpi_all_reduce(const mpi_api_t* api, const void* send, void* receive,
                          int count, mpi_type_t type, mpi_op_t op,
                          mpi_handle_t comm, mpi_handle_t* out_request);
// Whether it is done; a request that is is gone.
int pestle_mpi_test(const mpi_api_t* api, mpi_handle_t* request,
                    bool* out_done);

#endif  // PESTLE_PLUGINS_MPI_MPI_API_H_
