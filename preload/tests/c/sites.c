// Allocates from known lines, before and after a fork and an exec: `sites [again]`.
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int hipMalloc(void **p, size_t size);
int hipGetDevice(int *device);

static __attribute__((noinline)) void allocate(void) {
  void *p;
  hipMalloc(&p, 64);
  __asm__ volatile("" ::: "memory");
}

// Three sites: one in a loop, two behind it.
static __attribute__((noinline)) void three(void) {
  for (int i = 0; i < 100; i++) {
    allocate();
    __asm__ volatile("" ::: "memory");
  }
  allocate();
  __asm__ volatile("# one" ::: "memory");
  allocate();
  __asm__ volatile("# two" ::: "memory");
}

int main(int argc, char **argv) {
  int device;
  hipGetDevice(&device);
  three();
  if (argc > 1) return 0;
  if (fork() == 0) {
    three();
    three();
    _exit(0);
  }
  wait(0);
  three();
  execl("/proc/self/exe", argv[0], "again", (char *)0);
  return 1;
}
