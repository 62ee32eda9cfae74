// SPDX-License-Identifier: Apache-2.0
#include "runtime/job.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/thread.h"
#include "runtime/context.h"
#include "runtime/platform.h"

enum { FIRST_PORT = 20000, PORTS = 12000, MOST_RANKS = 65536 };

// --- Variables ---

static const char* variable(const char* name) {
  return pestle_platform_env(name);
}

static pestle_status_t read_number(const char* name, int64_t least,
                                   int64_t most, int64_t* out) {
  const char* text = variable(name);
  if (!text) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "environment variable %s is not set; expected a whole "
                        "number from %lld to %lld",
                        name, (long long)least, (long long)most);
  }
  if (pestle_str_parse_i64(pestle_str(text), out) && *out >= least &&
      *out <= most) {
    return NULL;
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "environment variable %s is '%s'; expected a whole "
                      "number from %lld to %lld",
                      name, text, (long long)least, (long long)most);
}

static pestle_status_t read_rank(const char* rank_name, const char* size_name,
                                 pestle_job_t* job) {
  int64_t rank, size;
  PESTLE_TRY(read_number(size_name, 1, MOST_RANKS, &size));
  PESTLE_TRY(read_number(rank_name, 0, size - 1, &rank));
  job->rank = (int32_t)rank;
  job->size = (int32_t)size;
  return NULL;
}

static pestle_status_t set_host(const char* name, const char* text, size_t size,
                                pestle_job_t* job) {
  if (!size || size >= sizeof(job->host)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s names no host: '%.*s'; expected at most 255 bytes",
                        name, size > 300 ? 300 : (int)size, text);
  }
  memcpy(job->host, text, size);
  job->host[size] = '\0';
  return NULL;
}

pestle_status_t pestle_job_read_address(const char* text, const char* from,
                                        pestle_job_t* job) {
  pestle_str_t all = pestle_str(text);
  size_t colon = pestle_str_rfind_char(all, ':');
  int64_t port;
  if (!pestle_str_starts_with(all, PESTLE_STR("tcp://")) || colon < 6 ||
      colon == SIZE_MAX ||
      !pestle_str_parse_i64(pestle_str_slice(all, colon + 1, all.size),
                            &port) ||
      port < 1 || port > 65535) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s is '%s'; expected tcp://HOST:PORT, where rank 0 is "
                        "to listen: tcp://127.0.0.1:29400",
                        from, text);
  }
  pestle_str_t host = pestle_str_slice(all, 6, colon);
  if (host.size > 2 && host.data[0] == '[' && host.data[host.size - 1] == ']')
    host = pestle_str_slice(host, 1, host.size - 1);  // IPv6
  job->port = (uint16_t)port;
  return set_host(from, host.data, host.size, job);
}

// A port that the ranks of a job find by themselves.
static void derive_port(const char* job_name, pestle_job_t* job) {
  uint64_t hash = pestle_hash64(job_name, strlen(job_name));
  job->port = (uint16_t)(FIRST_PORT + hash % PORTS);
}

static void set_loopback(pestle_job_t* job) {
  (void)snprintf(job->host, sizeof(job->host), "127.0.0.1");
}

// --- Launchers ---

static pestle_status_t several_hosts(const char* launcher) {
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%s has started ranks on several hosts and does not say "
                      "where rank 0 is: set PESTLE_WORLD=tcp://HOST:PORT, with "
                      "the host of rank 0, for all ranks",
                      launcher);
}

// Whether |local|, the number of ranks on this host, is there and is not all of them.
static bool spans_hosts(const char* local, const pestle_job_t* job) {
  int64_t here;
  const char* text = variable(local);
  return text && pestle_str_parse_i64(pestle_str(text), &here) &&
         here != job->size;
}

static void name_by_parent(const char* launcher, pestle_job_t* job) {
  char name[64];
  (void)snprintf(name, sizeof(name), "%s %lld", launcher,
                 (long long)pestle_parent_process_id());
  derive_port(name, job);
}

static pestle_status_t read_ompi(pestle_job_t* job) {
  static const char* const names[] = {
      "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_ess_jobid"};
  PESTLE_TRY(read_rank("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", job));
  if (spans_hosts("OMPI_COMM_WORLD_LOCAL_SIZE", job))
    return several_hosts("mpirun (OMPI_COMM_WORLD_LOCAL_SIZE)");
  set_loopback(job);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (!variable(names[i])) continue;
    derive_port(variable(names[i]), job);
    return NULL;
  }
  name_by_parent("ompi", job);
  return NULL;
}

static pestle_status_t read_pmi(pestle_job_t* job) {
  PESTLE_TRY(read_rank("PMI_RANK", "PMI_SIZE", job));
  if (spans_hosts("MPI_LOCALNRANKS", job))
    return several_hosts("mpiexec (MPI_LOCALNRANKS)");
  set_loopback(job);
  if (variable("PMI_JOBID")) {
    derive_port(variable("PMI_JOBID"), job);
  } else {
    name_by_parent("pmi", job);  // all ranks of a host have one proxy
  }
  return NULL;
}

// PMIx tells the size by calls alone.
static pestle_status_t read_pmix(pestle_job_t* job) {
  PESTLE_TRY(read_rank("PMIX_RANK", "WORLD_SIZE", job));
  if (!variable("PMIX_NAMESPACE"))
    return several_hosts("PMIx without PMIX_NAMESPACE");
  set_loopback(job);
  derive_port(variable("PMIX_NAMESPACE"), job);
  return NULL;
}

// The first of "node[03-07,9],other": node03.
static pestle_status_t first_node(const char* list, pestle_job_t* job) {
  char name[PESTLE_HOST_SIZE];
  size_t head = strcspn(list, "[,"), size = head;
  const char* inside = list + head + 1;
  size_t digits = list[head] == '[' ? strcspn(inside, "-,]") : 0;
  if (list[head] == '[' && digits) {
    size_t close = strcspn(list, "]");
    const char* tail = list[close] ? list + close + 1 : "";
    int n = snprintf(name, sizeof(name), "%.*s%.*s%.*s", (int)head, list,
                     (int)digits, inside, (int)strcspn(tail, ",["), tail);
    return set_host("SLURM_JOB_NODELIST", name, n > 0 ? (size_t)n : 0, job);
  }
  return set_host("SLURM_JOB_NODELIST", list, size, job);
}

static pestle_status_t read_slurm(pestle_job_t* job) {
  char name[128];
  const char* nodes = variable("SLURM_STEP_NODELIST");
  const char* count = variable("SLURM_STEP_NUM_NODES");
  const char* id = variable("SLURM_JOB_ID");
  const char* step = variable("SLURM_STEP_ID");
  bool of_step = variable("SLURM_STEP_NUM_TASKS") != NULL;
  PESTLE_TRY(read_rank("SLURM_PROCID",
                       of_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", job));
  if (!nodes) nodes = variable("SLURM_JOB_NODELIST");
  if (!count) count = variable("SLURM_NNODES");
  if (!id) id = variable("SLURM_JOBID");
  if (!id) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "SLURM_PROCID is set and SLURM_JOB_ID is not: that is "
                        "no job of Slurm's; set PESTLE_WORLD=tcp://HOST:PORT");
  }
  (void)snprintf(name, sizeof(name), "slurm %.50s %.50s", id, step ? step : "");
  derive_port(name, job);
  set_loopback(job);
  if (!nodes || (count && !strcmp(count, "1"))) return NULL;
  return first_node(nodes, job);
}

// The launcher's own store is at MASTER_PORT: ours is beside it.
static pestle_status_t read_torchrun(pestle_job_t* job) {
  int64_t port;
  const char* host = variable("MASTER_ADDR");
  PESTLE_TRY(read_rank("RANK", "WORLD_SIZE", job));
  PESTLE_TRY(read_number("MASTER_PORT", 1, 65535, &port));
  if (!host) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "RANK and MASTER_PORT are set and MASTER_ADDR is not; "
                        "expected the host of rank 0");
  }
  job->port = (uint16_t)(port < 65535 ? port + 1 : port - 1);
  return set_host("MASTER_ADDR", host, strlen(host), job);
}

typedef struct launcher_t {
  const char* sign;  // the variable that shows it
  pestle_status_t (*read)(pestle_job_t* job);
} launcher_t;

// torchrun comes first: under srun it starts several ranks of one SLURM_PROCID.
static const launcher_t launchers[] = {
    {"TORCHELASTIC_RUN_ID", read_torchrun},
    {"OMPI_COMM_WORLD_RANK", read_ompi},
    {"PMI_RANK", read_pmi},
    {"PMIX_RANK", read_pmix},
    {"SLURM_PROCID", read_slurm},
    {"MASTER_ADDR", read_torchrun},
};
enum { LAUNCHERS = sizeof(launchers) / sizeof(launchers[0]) };

// With an address of the user's the launcher only has to tell the rank.
static pestle_status_t read_rank_alone(pestle_job_t* job) {
  static const char* const names[][2] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      {"PMI_RANK", "PMI_SIZE"},
      {"SLURM_PROCID", "SLURM_NTASKS"},
  };
  if (variable("RANK")) return read_rank("RANK", "WORLD_SIZE", job);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
    if (variable(names[i][0])) return read_rank(names[i][0], names[i][1], job);
  }
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "PESTLE_WORLD is set, and nothing says which rank this "
                      "process is: set RANK and WORLD_SIZE");
}

pestle_status_t pestle_job_read(pestle_job_t* job) {
  const char* address = variable("PESTLE_WORLD");
  *job = (pestle_job_t){.size = 0};
  if (address) {
    PESTLE_TRY(pestle_job_read_address(address, "PESTLE_WORLD", job));
    return read_rank_alone(job);
  }
  for (int i = 0; i < LAUNCHERS; ++i) {
    if (variable(launchers[i].sign)) return launchers[i].read(job);
  }
  return PESTLE_ERROR(NOT_FOUND,
                      "this process is no rank of a world: set "
                      "PESTLE_WORLD=tcp://HOST:PORT, RANK and WORLD_SIZE, or "
                      "start it by mpirun, srun or torchrun");
}

// --- The secret ---

static pestle_status_t read_digits(const char* text, const char* from,
                                   unsigned char out[32]) {
  bool ok = strlen(text) == 64;
  for (int i = 0; ok && i < 32; ++i) {
    int high = pestle_hex_digit(text[2 * i]);
    int low = pestle_hex_digit(text[2 * i + 1]);
    ok = high >= 0 && low >= 0;
    out[i] = (unsigned char)((unsigned)high << 4 | (unsigned)low);
  }
  if (ok) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT,
                      "%s is no secret: expected 64 hexadecimal digits, the "
                      "same for all ranks: openssl rand -hex 32",
                      from);
}

static pestle_status_t read_file(const char* path, unsigned char out[32]) {
  char* text;
  size_t size;
  pestle_file_info_t info;
  const char* why = pestle_platform_distrust(path, false);
  PESTLE_TRY(pestle_file_stat(path, false, &info));
  if (why || !info.is_private) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s is no file that this user alone can read; remove "
                        "it, or set PESTLE_WORLD_SECRET",
                        path);
  }
  pestle_allocator_t system = pestle_allocator_system();
  PESTLE_TRY(pestle_file_read(path, 4096, system, &text, &size));
  pestle_status_t status = read_digits(text, path, out);
  pestle_dealloc(system, text, size + 1);
  return status;
}

static pestle_status_t make_file(const char* path, unsigned char out[32]) {
  char text[65];
  PESTLE_TRY(pestle_random_bytes(out, 32));
  for (int i = 0; i < 32; ++i)
    (void)snprintf(text + 2 * i, 3, "%02x", out[i]);
  pestle_str_t whole = pestle_str_make(text, 64);
  return pestle_file_write_atomic(path, &whole, 1);
}

static pestle_status_t use_folder(const char* folder, pestle_arena_t* arena,
                                  unsigned char out[32]) {
  pestle_file_lock_t lock;
  char* path = pestle_path_join(arena, folder, "world-secret");
  char* lock_path = pestle_path_join(arena, folder, "world-secret.lock");
  if (!path || !lock_path) return PESTLE_OOM();
  if (pestle_file_exists(path)) return read_file(path, out);
  PESTLE_TRY(pestle_folder_make(folder));
  PESTLE_TRY(pestle_file_lock(lock_path, true, &lock));
  pestle_status_t status =
      pestle_file_exists(path) ? read_file(path, out) : make_file(path, out);
  pestle_file_unlock(&lock);
  return status;
}

static pestle_status_t use_file(pestle_context_t* context,
                                unsigned char out[32]) {
  pestle_arena_t arena;
  pestle_allocator_t allocator = context->core.allocator;
  char* other = NULL;
  pestle_status_t status = NULL;
  if (!context->cache_dir)
    status = pestle_context_default_cache_dir(allocator, &other);
  const char* folder = context->cache_dir ? context->cache_dir : other;
  pestle_arena_init(allocator, &arena);
  if (!status && !folder) {
    status = PESTLE_ERROR(
        NOT_FOUND,
        "the ranks of a world know each other by a secret, and there is no "
        "home to keep one in: set PESTLE_WORLD_SECRET to 64 hexadecimal "
        "digits, the same for all ranks");
  }
  if (!status) status = use_folder(folder, &arena, out);
  pestle_arena_deinit(&arena);
  pestle_free_str(allocator, other);
  return status;
}

pestle_status_t pestle_job_secret(pestle_context_t* context, const char* given,
                                  const pestle_job_t* job,
                                  unsigned char out[32]) {
  unsigned char key[32];
  const char* text = variable("PESTLE_WORLD_SECRET");
  if (given) {
    PESTLE_TRY(read_digits(given, "pestle_world_options_t.secret", key));
  } else if (text) {
    PESTLE_TRY(read_digits(text, "PESTLE_WORLD_SECRET", key));
  } else {
    PESTLE_TRY(use_file(context, key));
  }
  char name[64];
  pestle_hmac_t mac;
  (void)snprintf(name, sizeof(name), "pestle world %u %d", (unsigned)job->port,
                 (int)job->size);
  pestle_hmac_init(key, sizeof(key), &mac);
  pestle_hmac_update(&mac, name, strlen(name));
  pestle_hmac_finish(&mac, out);
  return NULL;
}
