// SPDX-License-Identifier: Apache-2.0
// What launchers say of a rank: environments as mpirun, mpiexec, srun and torchrun make
// them, and what is wrong with some.
#include "runtime/job.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/context.h"
#include "test.h"

static const char* const variables[] = {"PESTLE_WORLD",
                                        "PESTLE_WORLD_SECRET",
                                        "RANK",
                                        "WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_RUN_ID",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "OMPI_MCA_ess_base_jobid",
                                        "OMPI_MCA_orte_ess_jobid",
                                        "PMIX_NAMESPACE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMI_JOBID",
                                        "MPI_LOCALNRANKS",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_NNODES",
                                        "SLURM_JOB_ID",
                                        "SLURM_JOBID",
                                        "SLURM_STEP_ID",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_NODES",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_JOB_NODELIST"};

// Sets "A=1 B=2" and nothing else.
static void set(const char* text) {
  char copy[512];
  for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); ++i)
    unsetenv(variables[i]);
  (void)snprintf(copy, sizeof(copy), "%s", text);
  for (char* at = strtok(copy, " "); at; at = strtok(NULL, " ")) {
    char* value = strchr(at, '=');
    *value = '\0';
    assert_int_equal(setenv(at, value + 1, 1), 0);
  }
}

static void reads_launchers(void** state) {
  (void)state;
  static const struct {
    const char* text;
    int rank, size;
    const char* host;
    int port;  // 0: any
  } rows[] = {
      {"PESTLE_WORLD=tcp://10.1.2.3:4000 RANK=2 WORLD_SIZE=5", 2, 5, "10.1.2.3",
       4000},
      {"PESTLE_WORLD=tcp://[::1]:4000 RANK=0 WORLD_SIZE=1", 0, 1, "::1", 4000},
      {"PESTLE_WORLD=tcp://head:77 OMPI_COMM_WORLD_RANK=1 "
       "OMPI_COMM_WORLD_SIZE=3",
       1, 3, "head", 77},
      {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 PMIX_RANK=3 "
       "OMPI_COMM_WORLD_LOCAL_SIZE=4 PMIX_NAMESPACE=1093",
       3, 4, "127.0.0.1", 0},
      {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALNRANKS=2", 1, 2, "127.0.0.1", 0},
      {"PMIX_RANK=1 WORLD_SIZE=2 PMIX_NAMESPACE=prte-1", 1, 2, "127.0.0.1", 0},
      {"SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_JOB_ID=7 SLURM_NNODES=1 "
       "SLURM_JOB_NODELIST=n1",
       2, 4, "127.0.0.1", 0},
      {"SLURM_PROCID=2 SLURM_NTASKS=8 SLURM_STEP_NUM_TASKS=4 SLURM_JOB_ID=7 "
       "SLURM_NNODES=4 SLURM_JOB_NODELIST=gpu[03-07,9],other",
       2, 4, "gpu03", 0},
      {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_NNODES=2 "
       "SLURM_JOB_NODELIST=a1,a2",
       0, 2, "a1", 0},
      {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=7 SLURM_NNODES=2 "
       "SLURM_JOB_NODELIST=r[1-2]-eth",
       0, 2, "r1-eth", 0},
      // torchrun under srun: SLURM_PROCID is the node's.
      {"TORCHELASTIC_RUN_ID=x RANK=5 WORLD_SIZE=8 MASTER_ADDR=h "
       "MASTER_PORT=29500 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=7",
       5, 8, "h", 29501},
      {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=65535", 1, 2,
       "127.0.0.1", 65534},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_job_t job, again;
    set(rows[i].text);
    assert_ok(pestle_job_read(&job));
    assert_int_equal(job.rank, rows[i].rank);
    assert_int_equal(job.size, rows[i].size);
    assert_string_equal(job.host, rows[i].host);
    if (rows[i].port) assert_int_equal(job.port, rows[i].port);
    assert_true(job.port > 0);
    assert_ok(pestle_job_read(&again));  // all ranks find the same port
    assert_int_equal(job.port, again.port);
  }
}

static void says_what_is_wrong(void** state) {
  (void)state;
  static const struct {
    const char* text;
    pestle_status_code_t code;
    const char* message;
  } rows[] = {
      {"", PESTLE_STATUS_NOT_FOUND, "this process is no rank of a world"},
      {"RANK=1", PESTLE_STATUS_NOT_FOUND, "no rank of a world"},
      {"PESTLE_WORLD=tcp://h:1", PESTLE_STATUS_INVALID_ARGUMENT,
       "set RANK and WORLD_SIZE"},
      {"PESTLE_WORLD=tcp://h:1 RANK=1", PESTLE_STATUS_INVALID_ARGUMENT,
       "WORLD_SIZE is not set"},
      {"PESTLE_WORLD=tcp://h:1 RANK=2 WORLD_SIZE=2",
       PESTLE_STATUS_INVALID_ARGUMENT,
       "RANK is '2'; expected a whole number "
       "from 0 to 1"},
      {"PESTLE_WORLD=h:1 RANK=0 WORLD_SIZE=2", PESTLE_STATUS_INVALID_ARGUMENT,
       "expected tcp://HOST:PORT"},
      {"PESTLE_WORLD=tcp://h:0 RANK=0 WORLD_SIZE=2",
       PESTLE_STATUS_INVALID_ARGUMENT, "expected tcp://HOST:PORT"},
      {"PESTLE_WORLD=tcp://:5 RANK=0 WORLD_SIZE=2",
       PESTLE_STATUS_INVALID_ARGUMENT, "names no host"},
      {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 "
       "OMPI_COMM_WORLD_LOCAL_SIZE=2",
       PESTLE_STATUS_INVALID_ARGUMENT, "on several hosts"},
      {"PMIX_RANK=0 PMIX_NAMESPACE=a", PESTLE_STATUS_INVALID_ARGUMENT,
       "WORLD_SIZE is not set"},
      {"SLURM_PROCID=0 SLURM_NTASKS=2", PESTLE_STATUS_INVALID_ARGUMENT,
       "SLURM_JOB_ID is not"},
      {"MASTER_ADDR=h RANK=0 WORLD_SIZE=2", PESTLE_STATUS_INVALID_ARGUMENT,
       "MASTER_PORT is not set"},
      {"MASTER_ADDR=h RANK=0 WORLD_SIZE=two MASTER_PORT=5",
       PESTLE_STATUS_INVALID_ARGUMENT, "WORLD_SIZE is 'two'"},
  };
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); ++i) {
    pestle_job_t job;
    set(rows[i].text);
    pestle_status_t status = pestle_job_read(&job);
    assert_int_equal(pestle_status_code(status), rows[i].code);
    if (!strstr(pestle_status_message(status), rows[i].message))
      fail_msg("'%s' says: %s", rows[i].text, pestle_status_message(status));
    pestle_status_release(status);
  }
}

#define DIGITS \
  "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void keeps_secrets(void** state) {
  (void)state;
  char folder[] = "/tmp/pestle-job-XXXXXX", path[64];
  unsigned char a[32], b[32];
  pestle_job_t job = {.rank = 1, .size = 4, .port = 99};
  assert_non_null(mkdtemp(folder));
  (void)snprintf(path, sizeof(path), "%s/world-secret", folder);
  pestle_context_t* context;
  pestle_context_options_t options = {
      .struct_size = sizeof(options), .cache_dir = folder, .threads = 1};
  assert_ok(pestle_context_create(&options, &context));
  set("");
  assert_ok(pestle_job_secret(context, NULL, &job, a));  // makes the file
  assert_ok(pestle_job_secret(context, NULL, &job, b));
  assert_memory_equal(a, b, 32);
  job.port = 98;  // each job has its own
  assert_ok(pestle_job_secret(context, NULL, &job, b));
  assert_memory_not_equal(a, b, 32);
  assert_ok(pestle_job_secret(context, DIGITS, &job, a));
  set("PESTLE_WORLD_SECRET=" DIGITS);
  assert_ok(pestle_job_secret(context, NULL, &job, b));
  assert_memory_equal(a, b, 32);
  set("PESTLE_WORLD_SECRET=abc");
  assert_error(pestle_job_secret(context, NULL, &job, b), INVALID_ARGUMENT,
               "PESTLE_WORLD_SECRET is no secret: expected 64 hexadecimal");
  set("");
  assert_int_equal(chmod(path, 0644), 0);
  assert_error(pestle_job_secret(context, NULL, &job, b), INVALID_ARGUMENT,
               "no file that this user alone can read");
  pestle_context_release(context);
  char command[128];
  (void)snprintf(command, sizeof(command), "rm -r %s", folder);
  assert_int_equal(system(command), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_launchers),
      cmocka_unit_test(says_what_is_wrong),
      cmocka_unit_test(keeps_secrets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
