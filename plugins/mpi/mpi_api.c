// SPDX-License-Identifier: Apache-2.0
#include "plugins/mpi/mpi_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/common/error.h"

// --- Constants ---

static const char* const open_types[MPI_TYPES] = {
    "ompi_mpi_byte",     "ompi_mpi_float",   "ompi_mpi_double",
    "ompi_mpi_int8_t",   "ompi_mpi_int16_t", "ompi_mpi_int32_t",
    "ompi_mpi_int64_t",  "ompi_mpi_uint8_t", "ompi_mpi_uint16_t",
    "ompi_mpi_uint32_t", "ompi_mpi_uint64_t"};
static const char* const open_ops[MPI_OPS] = {
    "ompi_mpi_op_sum", "ompi_mpi_op_prod", "ompi_mpi_op_min",
    "ompi_mpi_op_max"};

static const uint32_t mpich_types[MPI_TYPES] = {
    0x4c00010d, 0x4c00040a, 0x4c00080b, 0x4c000137, 0x4c000238, 0x4c000439,
    0x4c00083a, 0x4c00013b, 0x4c00023c, 0x4c00043d, 0x4c00083e};
static const uint32_t mpich_ops[MPI_OPS] = {0x58000003, 0x58000004, 0x58000002,
                                            0x58000001};

static const uint32_t standard_types[MPI_TYPES] = {0x247, 0x210, 0x214, 0x240,
                                                   0x248, 0x250, 0x258, 0x241,
                                                   0x249, 0x251, 0x259};
static const uint32_t standard_ops[MPI_OPS] = {0x21, 0x24, 0x22, 0x23};

static void set_numbers(mpi_api_t* api, const uint32_t* types,
                        const uint32_t* ops, uint32_t world, uint32_t errors) {
  for (int i = 0; i < MPI_TYPES; ++i)
    api->types[i] = types[i];
  for (int i = 0; i < MPI_OPS; ++i)
    api->ops[i] = ops[i];
  api->world = world;
  api->errors_return = errors;
}

// The first name that the library lacks, or NULL.
static const char* set_symbols(void* library, mpi_api_t* api) {
  struct {
    const char* name;
    mpi_handle_t* to;
  } rows[MPI_TYPES + MPI_OPS + 2];
  int count = 0;
  for (int i = 0; i < MPI_TYPES; ++i, ++count) {
    rows[count].name = open_types[i];
    rows[count].to = &api->types[i];
  }
  for (int i = 0; i < MPI_OPS; ++i, ++count) {
    rows[count].name = open_ops[i];
    rows[count].to = &api->ops[i];
  }
  rows[count].name = "ompi_mpi_comm_world";
  rows[count++].to = &api->world;
  rows[count].name = "ompi_mpi_errors_return";
  rows[count++].to = &api->errors_return;
  for (int i = 0; i < count; ++i) {
    *rows[i].to = (mpi_handle_t)dlsym(library, rows[i].name);
    if (!*rows[i].to) return rows[i].name;
  }
  return NULL;
}

static const char* set_constants(void* library, mpi_api_t* api) {
  api->serialized = 2;
  api->multiple = 3;
  switch (api->abi) {
    case MPI_ABI_OPEN:
      return set_symbols(library, api);
    case MPI_ABI_MPICH:
      set_numbers(api, mpich_types, mpich_ops, 0x44000000, 0x54000001);
      api->status_ignore = (void*)(uintptr_t)1;
      return NULL;
    case MPI_ABI_STANDARD:
      set_numbers(api, standard_types, standard_ops, 0x101, 0x143);
      api->serialized = 2048;
      api->multiple = 4096;
      return NULL;
  }
  return NULL;
}

static const char* set_functions(void* library, mpi_api_t* api) {
  const struct {
    const char* name;
    mpi_function_t* to;
  } rows[] = {{"MPI_Init_thread", &api->init_thread},
              {"MPI_Initialized", &api->initialized},
              {"MPI_Finalized", &api->finalized},
              {"MPI_Finalize", &api->finalize},
              {"MPI_Query_thread", &api->query_thread},
              {"MPI_Error_string", &api->error_string},
              {"MPI_Comm_rank", &api->comm_rank},
              {"MPI_Comm_size", &api->comm_size},
              {"MPI_Comm_dup", &api->comm_dup},
              {"MPI_Comm_free", &api->comm_free},
              {"MPI_Comm_set_errhandler", &api->comm_set_errhandler},
              {"MPI_Isend", &api->isend},
              {"MPI_Irecv", &api->irecv},
              {"MPI_Iallreduce", &api->iallreduce},
              {"MPI_Test", &api->test}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    rows[i].to->symbol = dlsym(library, rows[i].name);
    if (!rows[i].to->symbol) return rows[i].name;
  }
  return NULL;
}

// --- Looking ---

typedef struct known_t {
  const char* soname;
  mpi_abi_t abi;
} known_t;

// As they are opened: Debian names MPICH's libmpich.so.12.
static const known_t known[] = {{"libmpi.so.40", MPI_ABI_OPEN},
                                {"libmpi_abi.so.1", MPI_ABI_STANDARD},
                                {"libmpi_abi.so.0", MPI_ABI_STANDARD},
                                {"libmpi.so.12", MPI_ABI_MPICH},
                                {"libmpich.so.12", MPI_ABI_MPICH}};
enum { KNOWN = sizeof known / sizeof *known };

static const char* variable(const char* name) {
  const char* text = getenv(name);
  return text && *text ? text : NULL;
}

static bool is_open_launcher(void) {
  return variable("OMPI_COMM_WORLD_RANK") != NULL;
}
static bool is_mpich_launcher(void) {
  return variable("PMI_RANK") || variable("MPI_LOCALRANKID");
}

static const known_t* find_loaded(void) {
  for (int i = 0; i < KNOWN; ++i) {
    if (dlopen(known[i].soname, RTLD_LAZY | RTLD_NOLOAD)) return &known[i];
  }
  return NULL;
}

bool pestle_mpi_is_wanted(char* why, size_t capacity) {
  if (variable("PESTLE_MPI") || is_open_launcher() || is_mpich_launcher() ||
      find_loaded()) {
    return true;
  }
  (void)snprintf(why, capacity,
                 "no MPI is in the process, and it was not started by mpirun "
                 "or mpiexec (PESTLE_MPI names a library)");
  return false;
}

// OpenMPI opens parts of itself, which look for its symbols among all there are.
static void* open_one(const char* path) {
  return dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static mpi_abi_t abi_of(const char* path, void* library) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  if (dlsym(library, "ompi_mpi_comm_world")) return MPI_ABI_OPEN;
  return strstr(name, "abi") ? MPI_ABI_STANDARD : MPI_ABI_MPICH;
}

static void* find_library(mpi_api_t* api) {
  const char* path = variable("PESTLE_MPI");
  void* library = NULL;
  if (path) {
    (void)snprintf(api->path, sizeof api->path, "%s", path);
    library = open_one(path);
    if (library) api->abi = abi_of(path, library);
    return library;
  }
  const known_t* loaded = find_loaded();
  for (int i = 0; i < KNOWN && !library; ++i) {
    bool is_open = known[i].abi == MPI_ABI_OPEN;
    if (loaded ? loaded != &known[i] : is_open != is_open_launcher()) continue;
    library = open_one(known[i].soname);
    api->abi = known[i].abi;
    (void)snprintf(api->path, sizeof api->path, "%s", known[i].soname);
  }
  return library;
}

pestle_status_t pestle_mpi_open(const pestle_host_t* host, mpi_api_t* api) {
  *api = (mpi_api_t){.abi = MPI_ABI_OPEN};
  void* library = find_library(api);
  if (!library) {
    return PESTLE_PLUGIN_ERROR(
        host, UNAVAILABLE,
        "no MPI library can be opened (libmpi.so.40, libmpi_abi.so.1, "
        "libmpi.so.12, or what PESTLE_MPI names): %s",
        dlerror());
  }
  const char* lacks = set_functions(library, api);
  if (!lacks) lacks = set_constants(library, api);
  if (!lacks) return NULL;
  return PESTLE_PLUGIN_ERROR(host, INCOMPATIBLE, "%s has no %s: it is no MPI",
                             api->path, lacks);
}

// --- Calls ---

#define P(handle) ((void*)(handle))

static bool by_number(const mpi_api_t* api) {
  return api->abi == MPI_ABI_MPICH;
}

int pestle_mpi_get(const mpi_api_t* api, mpi_function_t f, mpi_handle_t comm,
                   int* out) {
  return by_number(api) ? f.get_i((int)comm, out) : f.get_p(P(comm), out);
}

int pestle_mpi_dup(const mpi_api_t* api, mpi_handle_t comm, mpi_handle_t* out) {
  void* pointer = NULL;
  int number = 0;
  int error = by_number(api) ? api->comm_dup.dup_i((int)comm, &number)
                             : api->comm_dup.dup_p(P(comm), &pointer);
  *out = by_number(api) ? (uint32_t)number : (mpi_handle_t)pointer;
  return error;
}

void pestle_mpi_free(const mpi_api_t* api, mpi_handle_t comm) {
  void* pointer = P(comm);
  int number = (int)comm;
  if (by_number(api)) {
    (void)api->comm_free.free_i(&number);
  } else {
    (void)api->comm_free.free_p(&pointer);
  }
}

int pestle_mpi_return_errors(const mpi_api_t* api, mpi_handle_t comm) {
  return by_number(api)
             ? api->comm_set_errhandler.set_i((int)comm,
                                              (int)api->errors_return)
             : api->comm_set_errhandler.set_p(P(comm), P(api->errors_return));
}

int pestle_mpi_send(const mpi_api_t* api, const void* data, int count, int peer,
                    int tag, mpi_handle_t comm, mpi_handle_t* request) {
  void* pointer = NULL;
  int number = 0;
  mpi_handle_t type = api->types[MPI_TYPE_BYTE];
  int error = by_number(api) ? api->isend.send_i(data, count, (int)type, peer,
                                                 tag, (int)comm, &number)
                             : api->isend.send_p(data, count, P(type), peer,
                                                 tag, P(comm), &pointer);
  *request = by_number(api) ? (uint32_t)number : (mpi_handle_t)pointer;
  return error;
}

int pestle_mpi_receive(const mpi_api_t* api, void* data, int count, int peer,
                       int tag, mpi_handle_t comm, mpi_handle_t* request) {
  void* pointer = NULL;
  int number = 0;
  mpi_handle_t type = api->types[MPI_TYPE_BYTE];
  int error = by_number(api)
                  ? api->irecv.receive_i(data, count, (int)type, peer, tag,
                                         (int)comm, &number)
                  : api->irecv.receive_p(data, count, P(type), peer, tag,
                                         P(comm), &pointer);
  *request = by_number(api) ? (uint32_t)number : (mpi_handle_t)pointer;
  return error;
}

int pestle_mpi_all_reduce(const mpi_api_t* api, const void* send, void* receive,
                          int count, mpi_type_t type, mpi_op_t op,
                          mpi_handle_t comm, mpi_handle_t* request) {
  void* pointer = NULL;
  int number = 0;
  int error =
      by_number(api)
          ? api->iallreduce.reduce_i(send, receive, count,
                                     (int)api->types[type], (int)api->ops[op],
                                     (int)comm, &number)
          : api->iallreduce.reduce_p(send, receive, count, P(api->types[type]),
                                     P(api->ops[op]), P(comm), &pointer);
  *request = by_number(api) ? (uint32_t)number : (mpi_handle_t)pointer;
  return error;
}

int pestle_mpi_test(const mpi_api_t* api, mpi_handle_t* request, bool* done) {
  void* pointer = P(*request);
  int number = (int)*request, flag = 0;
  int error = by_number(api)
                  ? api->test.test_i(&number, &flag, api->status_ignore)
                  : api->test.test_p(&pointer, &flag, api->status_ignore);
  *request = by_number(api) ? (uint32_t)number : (mpi_handle_t)pointer;
  *done = flag != 0;
  return error;
}
