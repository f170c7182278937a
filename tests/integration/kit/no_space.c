// A library whose fallocate always fails, as some that test programs for full disks do: the collector does not call it.
#define _GNU_SOURCE
#include <errno.h>
#include <sys/types.h>

int fallocate(int file, int mode, off_t offset, off_t length) {
  (void)file, (void)mode, (void)offset, (void)length;
  errno = EOPNOTSUPP;
  return -1;
}

int posix_fallocate(int file, off_t offset, off_t length) {
  (void)file, (void)offset, (void)length;
  return EOPNOTSUPP;
}

int fallocate64(int, int, off_t, off_t) __attribute__((alias("fallocate")));
int posix_fallocate64(int, off_t, off_t) __attribute__((alias("posix_fallocate")));
