// Allocates from known lines, before and after a fork and an exec: `sites [again]`. `sites remains`: over random return
// addresses on the stack.
#include <stdint.h>
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

static uint64_t addresses[8];
static int count;
static __attribute__((noinline)) void keep(void) {
  addresses[count++] = (uint64_t)__builtin_return_address(0);
  __asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void over_remains(uint64_t random) {
  volatile uint64_t hole[12];
  for (int i = 0; i < 12; i++) hole[i] = addresses[random >> 5 * i & 7];
  void *p;
  hipMalloc(&p, 64);
  hole[0] = 0;
}

static void remains(void) {
  keep(); keep(); keep(); keep(); keep(); keep(); keep(); keep();
  uint64_t random = 88172645463325252ull;
  for (int i = 0; i < 12000; i++) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    over_remains(random);
  }
}

int main(int argc, char **argv) {
  int device;
  hipGetDevice(&device);
  if (argc > 1 && !strcmp(argv[1], "remains")) {
    remains();
    return 0;
  }
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
