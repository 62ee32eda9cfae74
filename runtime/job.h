// SPDX-License-Identifier: Apache-2.0
// What launchers say of a rank, by variables of the environment, and the secret by
// which the ranks of a job know each other.
#ifndef PESTLE_RUNTIME_JOB_H_
#define PESTLE_RUNTIME_JOB_H_

#include "pestle/context.h"
#include "runtime/socket.h"

typedef struct pestle_job_t {
  int32_t rank, size;
  char host[PESTLE_HOST_SIZE];  // where rank 0 listens
  uint16_t port;
} pestle_job_t;

// Reads, first come first served: PESTLE_WORLD=tcp://HOST:PORT with RANK and WORLD_SIZE
// or the ranks of one of the following; torchrun's variables; OMPI_COMM_WORLD_*;
// PMI_RANK; PMIX_RANK; SLURM_PROCID; MASTER_ADDR. NOT_FOUND: none of them is there;
// INVALID_ARGUMENT names the variable that is wrong or missing.
PESTLE_NODISCARD pestle_status_t pestle_job_read(pestle_job_t* out_job);
// "tcp://HOST:PORT".
PESTLE_NODISCARD pestle_status_t pestle_job_read_address(const char* text,
                                                         const char* from,
                                                         pestle_job_t* out_job);

// The secret of |job|: made of |given|, 64 hexadecimal digits, or else of
// PESTLE_WORLD_SECRET, or else of a file in the cache folder that the user alone can
// read, and that is made where it is not there.
PESTLE_NODISCARD pestle_status_t pestle_job_secret(pestle_context_t* context,
                                                   const char* given,
                                                   const pestle_job_t* job,
                                                   unsigned char out[32]);

#endif  // PESTLE_RUNTIME_JOB_H_
