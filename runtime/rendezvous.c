// SPDX-License-Identifier: Apache-2.0
#include "runtime/rendezvous.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/thread.h"
#include "runtime/platform.h"

// Host, port, machine and secret, a line each, behind this line.
static const char first_line[] = "pestle world 1";
enum { TEXT = 2 * PESTLE_HOST_SIZE + 128, LINES = 5 };

static bool has_secret(const pestle_world_options_t* options) {
  return options->secret || pestle_platform_env("PESTLE_WORLD_SECRET");
}

static pestle_status_t make_secret(char out[65]) {
  unsigned char bytes[32];
  PESTLE_TRY(pestle_random_bytes(bytes, sizeof(bytes)));
  for (int i = 0; i < 32; ++i)
    (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
  return NULL;
}

// Rank 0's server listens on |port|.
static pestle_status_t tell(void* user, uint16_t port) {
  const pestle_rendezvous_t* meeting = user;
  char text[TEXT], identity[PESTLE_HOST_SIZE];
  pestle_host_identity(identity);
  int size = snprintf(text, sizeof(text), "%s\n%s\n%u\n%s\n%s", first_line,
                      meeting->host, (unsigned)port, identity, meeting->secret);
  if (size < 0 || (size_t)size >= sizeof(text)) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "the name of host '%.64s' is too long", meeting->host);
  }
  return pestle_status_annotate(
      meeting->store->put(meeting->store->user, meeting->key, text),
      "rank 0 tells others of its world under '%s'", meeting->key);
}

// Cuts |text| into its lines.
static bool split(char* text, char* lines[LINES]) {
  for (int i = 0; i < LINES; ++i) {
    lines[i] = text;
    text = strchr(text, '\n');
    if (!text) return i == LINES - 1;
    *text++ = '\0';
  }
  return false;
}

static pestle_status_t not_understood(const pestle_rendezvous_t* meeting) {
  return PESTLE_ERROR(INCOMPATIBLE,
                      "what rank 0 tells of itself under '%s' is not "
                      "understood; all ranks need the same Pestle",
                      meeting->key);
}

static bool is_loopback(const char* host) {
  return !strncmp(host, "127.", 4) || !strcmp(host, "::1") ||
         !strcmp(host, "localhost");
}

static pestle_status_t read_text(pestle_rendezvous_t* meeting, char* text,
                                 pestle_store_options_t* out) {
  char* lines[LINES];
  char identity[PESTLE_HOST_SIZE];
  int64_t port;
  if (!split(text, lines) || strcmp(lines[0], first_line) != 0 ||
      strlen(lines[1]) >= sizeof(meeting->host) ||
      !pestle_str_parse_i64(pestle_str(lines[2]), &port) || port < 1 ||
      port > 65535 || strlen(lines[4]) >= sizeof(meeting->secret)) {
    return not_understood(meeting);
  }
  pestle_host_identity(identity);
  if (is_loopback(lines[1]) && strcmp(identity, lines[3]) != 0) {
    return PESTLE_ERROR(
        INVALID_ARGUMENT,
        "rank %d is not on the machine of rank 0 (or of another user, or in "
        "another container), which listens on %s: set "
        "PESTLE_WORLD=tcp://HOST:PORT, with the host of rank 0, for all ranks",
        (int)out->rank, lines[1]);
  }
  (void)snprintf(meeting->host, sizeof(meeting->host), "%s", lines[1]);
  (void)snprintf(meeting->secret, sizeof(meeting->secret), "%s", lines[4]);
  out->port = (uint16_t)port;
  return NULL;
}

// Waits for what rank 0 tells.
static pestle_status_t find(pestle_rendezvous_t* meeting, int64_t deadline_ns,
                            pestle_store_options_t* out) {
  char text[TEXT];
  int64_t ms = (deadline_ns - pestle_clock_ns()) / 1000000;
  pestle_status_t status = meeting->store->get(
      meeting->store->user, meeting->key, ms > 1 ? ms : 1, text, sizeof(text));
  if (pestle_status_code(status) == PESTLE_STATUS_DEADLINE_EXCEEDED) {
    return pestle_status_annotate(
        status, "rank %d waits for rank 0 to come to its world ('%s')",
        (int)out->rank, meeting->key);
  }
  if (!status) status = read_text(meeting, text, out);
  return status;
}

pestle_status_t pestle_rendezvous_begin(pestle_context_t* context,
                                        const pestle_world_options_t* options,
                                        const pestle_job_t* job,
                                        int64_t deadline_ns,
                                        pestle_rendezvous_t* meeting,
                                        pestle_store_options_t* out) {
  // The port is not known yet, and so no part of what the secret is made of.
  pestle_job_t nameless = {.rank = job->rank, .size = job->size};
  memset(meeting, 0, sizeof(*meeting));
  meeting->store = options->store;
  (void)snprintf(meeting->key, sizeof(meeting->key), "pestle/world/%.128s",
                 options->name ? options->name : "");
  (void)snprintf(meeting->host, sizeof(meeting->host), "%s", job->host);
  if (out->rank) {
    PESTLE_TRY(find(meeting, deadline_ns, out));
  } else if (!has_secret(options)) {
    PESTLE_TRY(make_secret(meeting->secret));
  }
  out->host = meeting->host;
  if (!out->rank) {
    out->port = 0;
    out->listening = tell;
    out->listening_user = meeting;
  }
  return pestle_job_secret(context,
                           *meeting->secret ? meeting->secret : options->secret,
                           &nameless, out->secret);
}
