// SPDX-License-Identifier: Apache-2.0
#ifndef _GNU_SOURCE
#define _GNU_SOURCE  // memfd_create, accept4
#endif
#include "runtime/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread.h"

_Static_assert(sizeof(pestle_poll_t) == sizeof(struct pollfd) &&
                   offsetof(pestle_poll_t, ready) ==
                       offsetof(struct pollfd, revents) &&
                   PESTLE_POLL_READ == POLLIN && PESTLE_POLL_WRITE == POLLOUT,
               "a pestle_poll_t is a pollfd");

// --- Addresses ---

static pestle_status_t find_host(const char* host, uint16_t port,
                                 struct addrinfo** out) {
  char service[8];
  struct addrinfo hints = {.ai_family = AF_UNSPEC,
                           .ai_socktype = SOCK_STREAM,
                           .ai_flags = AI_NUMERICSERV};
  (void)snprintf(service, sizeof(service), "%u", (unsigned)port);
  int error = getaddrinfo(host, service, &hints, out);
  if (!error) return NULL;
  return PESTLE_ERROR(INVALID_ARGUMENT, "no host '%s' is known: %s", host,
                      gai_strerror(error));
}

static void set_up(int fd) {
  int one = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
#ifdef SO_NOSIGPIPE
  (void)setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &one, sizeof(one));
#endif
}

pestle_status_t pestle_socket_listen(const char* host, uint16_t port,
                                     pestle_socket_t* out) {
  struct addrinfo* found;
  *out = -1;
  PESTLE_TRY(find_host(host, port, &found));
  int fd = socket(found->ai_family, SOCK_STREAM, 0), one = 1, error = errno;
  if (fd >= 0) {
    set_up(fd);
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1024)) {
      error = errno;
      (void)close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  *out = fd;
  if (fd >= 0) return NULL;
  if (error == EADDRNOTAVAIL) {
    return PESTLE_ERROR(INVALID_ARGUMENT,
                        "%s is no address of this machine; rank 0 has to run "
                        "on the host that the world's address names",
                        host);
  }
  return PESTLE_ERROR(UNAVAILABLE, "cannot listen on %s, port %u: %s", host,
                      (unsigned)port, strerror(error));
}

static int until(int64_t deadline_ns) {
  int64_t left = (deadline_ns - pestle_clock_ns() + 999999) / 1000000;
  return left < 0 ? 0 : left > 1000000000 ? 1000000000 : (int)left;
}

// 0, or what went wrong.
static int connect_to(const struct addrinfo* to, int64_t deadline_ns,
                      int* out_fd) {
  int fd = socket(to->ai_family, SOCK_STREAM, 0), error = errno;
  *out_fd = fd;
  if (fd < 0) return error;
  set_up(fd);
  error = connect(fd, to->ai_addr, to->ai_addrlen) ? errno : 0;
  if (error == EINPROGRESS || error == EINTR) {
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    socklen_t size = sizeof(error);
    error = ETIMEDOUT;
    if (poll(&one, 1, until(deadline_ns)) > 0)
      (void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (!error) return 0;
  (void)close(fd);
  *out_fd = -1;
  return error;
}

pestle_status_t pestle_socket_connect(const char* host, uint16_t port,
                                      int64_t deadline_ns,
                                      pestle_socket_t* out) {
  struct addrinfo* found;
  int error = EADDRNOTAVAIL;
  *out = -1;
  PESTLE_TRY(find_host(host, port, &found));
  for (struct addrinfo* at = found; at && error; at = at->ai_next)
    error = connect_to(at, deadline_ns, out);
  freeaddrinfo(found);
  if (!error) return NULL;
  return PESTLE_ERROR(UNAVAILABLE, "cannot connect to %s, port %u: %s", host,
                      (unsigned)port, strerror(error));
}

pestle_socket_t pestle_socket_accept(pestle_socket_t listening) {
  int fd = accept(listening, NULL, NULL);
  if (fd >= 0) set_up(fd);
  return fd;
}

void pestle_socket_close(pestle_socket_t fd) {
  if (fd >= 0) (void)close(fd);
}

void pestle_socket_end(pestle_socket_t fd) {
  if (fd >= 0) (void)shutdown(fd, SHUT_WR);
}

void pestle_socket_local(pestle_socket_t fd, char host[PESTLE_HOST_SIZE],
                         uint16_t* port) {
  union {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage room;
  } at;
  socklen_t size = sizeof(at);
  memset(&at, 0, sizeof(at));
  (void)snprintf(host, PESTLE_HOST_SIZE, "127.0.0.1");
  *port = 0;
  if (getsockname(fd, &at.any, &size)) return;
  if (at.any.sa_family == AF_INET6) {
    (void)inet_ntop(AF_INET6, &at.v6.sin6_addr, host, PESTLE_HOST_SIZE);
    *port = ntohs(at.v6.sin6_port);
  } else {
    (void)inet_ntop(AF_INET, &at.v4.sin_addr, host, PESTLE_HOST_SIZE);
    *port = ntohs(at.v4.sin_port);
  }
}

// --- Bytes ---

#ifndef MSG_NOSIGNAL
#define MSG_NOSIGNAL 0
#endif

int64_t pestle_socket_send(pestle_socket_t fd, const void* data, size_t size) {
  ssize_t sent;
  do {
    sent = send(fd, data, size, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS ? 0 : -1;
}

int64_t pestle_socket_receive(pestle_socket_t fd, void* data, size_t size) {
  ssize_t got;
  do {
    got = recv(fd, data, size, 0);
  } while (got < 0 && errno == EINTR);
  if (got > 0) return got;
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? 0 : -1;
}

int pestle_poll(pestle_poll_t* sockets, size_t count, int64_t milliseconds) {
  struct pollfd* all = (struct pollfd*)(void*)sockets;
  int ready =
      poll(all, (nfds_t)count,
           milliseconds < 0
               ? -1
               : (int)(milliseconds > 1000000000 ? 1000000000 : milliseconds));
  if (ready >= 0) return ready;
  for (size_t i = 0; i < count; ++i)
    sockets[i].ready = 0;
  return 0;
}

static bool wait_for(pestle_socket_t fd, short wanted, int64_t deadline_ns,
                     pestle_socket_t wake) {
  pestle_poll_t both[2] = {{fd, wanted, 0}, {wake, PESTLE_POLL_READ, 0}};
  while (!pestle_poll(both, 2, until(deadline_ns))) {
    if (pestle_clock_ns() >= deadline_ns) return false;
  }
  return !both[1].ready;
}

bool pestle_socket_send_all(pestle_socket_t fd, const void* data, size_t size,
                            int64_t deadline_ns, pestle_socket_t wake) {
  const char* from = data;
  while (size) {
    int64_t sent = pestle_socket_send(fd, from, size);
    if (sent < 0) return false;
    from += sent;
    size -= (size_t)sent;
    if (!sent && !wait_for(fd, PESTLE_POLL_WRITE, deadline_ns, wake))
      return false;
  }
  return true;
}

bool pestle_socket_receive_all(pestle_socket_t fd, void* data, size_t size,
                               int64_t deadline_ns, pestle_socket_t wake) {
  char* to = data;
  while (size) {
    int64_t got = pestle_socket_receive(fd, to, size);
    if (got < 0) return false;
    to += got;
    size -= (size_t)got;
    if (!got && !wait_for(fd, PESTLE_POLL_READ, deadline_ns, wake))
      return false;
  }
  return true;
}

pestle_status_t pestle_wake_create(pestle_socket_t ends[2]) {
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) {
    ends[0] = ends[1] = -1;
    return PESTLE_ERROR(RESOURCE_EXHAUSTED, "cannot make a pair of sockets: %s",
                        strerror(errno));
  }
  set_up(ends[0]);
  set_up(ends[1]);
  return NULL;
}

void pestle_wake(pestle_socket_t end) {
  (void)pestle_socket_send(end, "!", 1);
}

int64_t pestle_parent_process_id(void) {
  return getppid();
}

pestle_status_t pestle_random_bytes(void* out, size_t size) {
  int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  char* to = out;
  while (fd >= 0 && size) {
    ssize_t got = read(fd, to, size);
    if (got <= 0 && errno != EINTR) break;
    if (got > 0) {
      to += got;
      size -= (size_t)got;
    }
  }
  if (fd >= 0) (void)close(fd);
  return size
             ? PESTLE_ERROR(IO, "cannot read /dev/urandom: %s", strerror(errno))
             : NULL;
}

// --- Shared memory ---

static void read_line(const char* path, char* out, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd >= 0 ? read(fd, out, size - 1) : 0;
  if (fd >= 0) (void)close(fd);
  out[got > 0 ? got : 0] = '\0';
  out[strcspn(out, "\n")] = '\0';
}

void pestle_host_identity(char out[PESTLE_HOST_SIZE]) {
  char boot[64];
  struct stat space;
  read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
  if (stat("/proc/self/ns/pid", &space)) memset(&space, 0, sizeof(space));
  (void)snprintf(out, PESTLE_HOST_SIZE, "%s %llu %u", boot,
                 (unsigned long long)space.st_ino, (unsigned)geteuid());
}

static pestle_status_t map(int fd, size_t size, pestle_shared_memory_t* out) {
  void* data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) {
    return PESTLE_ERROR(RESOURCE_EXHAUSTED,
                        "cannot map %zu bytes of shared memory: %s", size,
                        strerror(errno));
  }
  out->data = data;
  out->size = size;
  return NULL;
}

pestle_status_t pestle_shared_memory_create(size_t size,
                                            pestle_shared_memory_t* out) {
  *out = (pestle_shared_memory_t){.handle = -1};
#ifdef __linux__
  int fd = memfd_create("pestle", MFD_CLOEXEC);
  // All of it now: a page that is not to be had later is a signal.
  int error = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);
  pestle_status_t status =
      error ? PESTLE_ERROR(RESOURCE_EXHAUSTED,
                           "the system has no %zu bytes of shared memory: %s",
                           size, strerror(error))
            : map(fd, size, out);
  if (!status) {
    out->handle = fd;
  } else if (fd >= 0) {
    (void)close(fd);
  }
  return status;
#else
  return PESTLE_ERROR(UNSUPPORTED,
                      "%zu bytes of shared memory without a name: this system "
                      "has none",
                      size);
#endif
}

pestle_status_t pestle_shared_memory_open(int64_t process, int32_t handle,
                                          size_t size,
                                          pestle_shared_memory_t* out) {
  char path[64];
  struct stat info;
  *out = (pestle_shared_memory_t){.handle = -1};
  (void)snprintf(path, sizeof(path), "/proc/%lld/fd/%d", (long long)process,
                 (int)handle);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return PESTLE_ERROR(UNAVAILABLE, "cannot open %s: %s", path,
                        strerror(errno));
  }
  pestle_status_t status =
      fstat(fd, &info) || info.st_size != (off_t)size
          ? PESTLE_ERROR(UNAVAILABLE, "%s is not what it should be", path)
          : map(fd, size, out);
  (void)close(fd);
  return status;
}

void pestle_shared_memory_seal(pestle_shared_memory_t* memory) {
  if (memory->handle >= 0) (void)close(memory->handle);
  memory->handle = -1;
}

void pestle_shared_memory_close(pestle_shared_memory_t* memory) {
  pestle_shared_memory_seal(memory);
  if (memory->data) (void)munmap(memory->data, memory->size);
  *memory = (pestle_shared_memory_t){.handle = -1};
}
