// A tmpfs that fills while a program runs: after FULL_AFTER requests no more pages are made (MADV_POPULATE_WRITE), as the
// kernel answers where an access would raise SIGBUS.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POPULATE_WRITE 23

int madvise(void *address, size_t length, int advice) {
  static atomic_int requests;
  const char *most = getenv("FULL_AFTER");
  if (advice == POPULATE_WRITE && most && atomic_fetch_add(&requests, 1) >= atoi(most)) {
    errno = EFAULT;
    return -1;
  }
  return (int)syscall(SYS_madvise, address, length, advice);
}
