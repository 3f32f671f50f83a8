/* Preloaded into the tools: a disk that is full from the n-th change on, a folder that cannot be written, a
 * clock that runs backwards, a machine that seems quiet. Works without privileges, whatever the file system.
 *   FAULTS_IN=<folder>        what lies in it is concerned (a path without symbolic links)
 *   FAULTS_FULL_AT=<n>        there the n-th change and all later ones fail with ENOSPC
 *   FAULTS_READ_ONLY=1        there every change fails with EROFS
 *   FAULTS_CLOCK=1            the time of day is an hour less at each look
 *   FAULTS_NO_NEW_CODE=1      memory that was written to does not become executable
 *   FAULTS_QUIET=1            nothing says that others use the CPU: a playoff is stable however busy the
 * machine is The first refusal of a change is a line on stderr, so that a test knows that it met one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static long changes, looks;

/* Whether a change in the folder `real` is refused; sets errno. */
static int refuses(const char* real) {
  const char *folder = getenv("FAULTS_IN"), *at = getenv("FAULTS_FULL_AT");
  const size_t length = folder ? strlen(folder) : 0;
  if (!length || strncmp(real, folder, length) != 0 || (real[length] != '/' && real[length] != 0)) return 0;
  const int read_only = getenv("FAULTS_READ_ONLY") != NULL, full = at && ++changes >= atol(at);
  static int told;
  if ((read_only || full) && !told++) dprintf(STDERR_FILENO, "faults: refused\n");
  errno = read_only ? EROFS : full ? ENOSPC : 0;
  return read_only || full;
}

static int refuses_path(const char* path) {
  char folder[PATH_MAX], real[PATH_MAX];
  if (strlen(path) >= sizeof folder) return 0;
  strcpy(folder, path);
  char* slash = strrchr(folder, '/');
  if (slash == folder)
    slash[1] = 0;
  else if (slash)
    *slash = 0;
  else
    strcpy(folder, ".");
  return realpath(folder, real) && refuses(real);
}

static int refuses_descriptor(int fd) {
  struct stat info;
  char link[64], real[PATH_MAX];
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, real, sizeof real - 1);
  if (length < 0) return 0;
  real[length] = 0;
  return refuses(real);
}

static mode_t mode_of(int flags, va_list rest) {
  return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

static int hides(const char* path) {
  if (!getenv("FAULTS_QUIET") ||
      (strcmp(path, "/proc/thread-self/schedstat") != 0 && strcmp(path, "/proc/stat") != 0))
    return 0;
  errno = ENOENT;
  return 1;
}

int getrusage(__rusage_who_t who, struct rusage* usage) {
  const int status = REAL(getrusage)(who, usage);
  if (getenv("FAULTS_QUIET")) usage->ru_nivcsw = 0;
  return status;
}

#define OPEN(name)                                                                                           \
  int name(const char* path, int flags, ...) {                                                               \
    va_list rest;                                                                                            \
    va_start(rest, flags);                                                                                   \
    const mode_t mode = mode_of(flags, rest);                                                                \
    va_end(rest);                                                                                            \
    if ((flags & (O_CREAT | O_TRUNC)) && refuses_path(path)) return -1;                                      \
    if (hides(path)) return -1;                                                                              \
    return REAL(name)(path, flags, mode);                                                                    \
  }
OPEN(open)
OPEN(open64)

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = mode_of(flags, rest);
  va_end(rest);
  if ((flags & (O_CREAT | O_TRUNC)) && (folder == AT_FDCWD || path[0] == '/') && refuses_path(path))
    return -1;
  return REAL(openat)(folder, path, flags, mode);
}

/* A disk that fills up takes the first half. */
ssize_t write(int fd, const void* data, size_t size) {
  static int halved;
  if (!refuses_descriptor(fd)) return REAL(write)(fd, data, size);
  if (errno == ENOSPC && size > 1 && !halved++) return REAL(write)(fd, data, size / 2);
  return -1;
}

ssize_t writev(int fd, const struct iovec* parts, int count) {
  return refuses_descriptor(fd) ? -1 : REAL(writev)(fd, parts, count);
}

int mprotect(void* address, size_t size, int protection) {
  if ((protection & PROT_EXEC) && getenv("FAULTS_NO_NEW_CODE")) return errno = EACCES, -1;
  return REAL(mprotect)(address, size, protection);
}

int fsync(int fd) { return refuses_descriptor(fd) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return refuses_descriptor(fd) ? -1 : REAL(fdatasync)(fd); }
int rename(const char* from, const char* to) { return refuses_path(to) ? -1 : REAL(rename)(from, to); }
int mkdir(const char* path, mode_t mode) { return refuses_path(path) ? -1 : REAL(mkdir)(path, mode); }

int clock_gettime(clockid_t clock, struct timespec* now) {
  const int status = REAL(clock_gettime)(clock, now);
  if (clock == CLOCK_REALTIME && getenv("FAULTS_CLOCK")) now->tv_sec -= 3600 * ++looks;
  return status;
}

time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}

int gettimeofday(struct timeval* now, void* zone) {
  (void)zone;
  struct timespec precise;
  const int status = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec, now->tv_usec = precise.tv_nsec / 1000;
  return status;
}
