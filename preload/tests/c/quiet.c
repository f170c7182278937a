// A thread that may neither make a system call nor touch the heap nor a lock makes a million traced calls, while others
// keep the collector's slow paths busy. Prints the page faults of each round. "syscall", "heap" and "lock" break the rule
// on purpose.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct { unsigned x, y, z; } Dim3;
int hipGetDevice(int *);
int hipLaunchKernel(const void *, Dim3, Dim3, void **, size_t, void *);
static int (*push)(const char *);
static int (*pop)(void);
static void (*mark)(const char *);

// Everything that the heap and its locks are reached by; the program's own come first in the search for symbols.
static __thread int quiet __attribute__((tls_model("initial-exec")));
static void forbid(void) { if (quiet) __builtin_trap(); }
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);
void *malloc(size_t n) { return forbid(), __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return forbid(), __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return forbid(), __libc_realloc(p, n); }
void *memalign(size_t a, size_t n) { return forbid(), __libc_memalign(a, n); }
void *aligned_alloc(size_t a, size_t n) { return forbid(), __libc_memalign(a, n); }
int posix_memalign(void **p, size_t a, size_t n) { return forbid(), (*p = __libc_memalign(a, n)) ? 0 : ENOMEM; }
void free(void *p) { forbid(), __libc_free(p); }
static int (*next_lock)(pthread_mutex_t *);
int pthread_mutex_lock(pthread_mutex_t *mutex) { return forbid(), next_lock ? next_lock(mutex) : 0; }
__attribute__((constructor)) static void find(void) {
  next_lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
  push = dlsym(RTLD_DEFAULT, "roctxRangePushA");
  pop = dlsym(RTLD_DEFAULT, "roctxRangePop");
  mark = dlsym(RTLD_DEFAULT, "roctxMarkA");
}

enum { ROUNDS = 3, CALLS = 60000, WARM = 20000, EACH = 6 };
static atomic_int step, done;
static atomic_int tid;
static const char *breaks = "";
static void *volatile kept;

static void calls(int count) {
  int device;
  for (int i = 0; i < count; i++) {
    hipGetDevice(&device);
    hipLaunchKernel((void *)1, (Dim3){2, 3, 4}, (Dim3){5, 6, 7}, (void **)8, 9, (void *)0x10);
    push("a range");
    pop();
    mark("a mark");
    hipGetDevice(&device);
  }
}

static void await(int wanted) { while (atomic_load(&step) != wanted) __builtin_ia32_pause(); }

static void *silent(void *unused) {
  (void)unused;
  atomic_store(&tid, (int)syscall(SYS_gettid));
  calls(WARM);
  // Only this thread's end is let through.
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog filter = {sizeof rules / sizeof *rules, rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
    puts("no filter");
    exit(77);
  }
  quiet = 1;
  if (!strcmp(breaks, "syscall")) syscall(SYS_getppid);
  if (!strcmp(breaks, "heap")) kept = malloc(1);
  if (!strcmp(breaks, "lock")) {
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
  }
  for (int round = 0; round < ROUNDS; round++) {
    atomic_store(&done, 2 * round + 1);
    await(2 * round + 1);
    calls(CALLS);
    atomic_store(&done, 2 * round + 2);
    await(2 * round + 2);
  }
  __asm__ volatile("syscall" ::"a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
  return NULL;
}

// Rings claimed and given back, texts kept, without end.
static void *one_call(void *unused) {
  (void)unused;
  calls(1);
  return NULL;
}
static void *noise(void *unused) {
  (void)unused;
  char text[80];
  for (int i = 0; atomic_load(&done) < 2 * ROUNDS; i++) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, one_call, NULL)) pthread_join(thread, NULL);
    snprintf(text, sizeof text, "a text that is too long for a record and is kept as a string: %d", i % 5000);
    mark(text);
  }
  return NULL;
}

static long faults(void) {
  char path[64], text[1024] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(&tid));
  FILE *file = fopen(path, "r");
  if (!file || !fgets(text, sizeof text, file)) return -1;
  fclose(file);
  long minor = -1, major = -1;
  sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %ld %*u %ld", &minor, &major);
  return minor + major;
}

int main(int count, char **words) {
  if (count > 1) breaks = words[1];
  pthread_t thread, other;
  pthread_create(&thread, NULL, silent, NULL);
  pthread_create(&other, NULL, noise, NULL);
  for (int round = 0; round < ROUNDS; round++) {
    while (atomic_load(&done) != 2 * round + 1) usleep(100);
    long before = faults();
    atomic_store(&step, 2 * round + 1);
    while (atomic_load(&done) != 2 * round + 2) usleep(100);
    printf("%ld\n", faults() - before);
    atomic_store(&step, 2 * round + 2);
  }
  pthread_join(thread, NULL);
  pthread_join(other, NULL);
  printf("%d calls\n", ROUNDS * CALLS * EACH);
  return 0;
}
