// Threads and children that come and go, each making the same few traced calls and numbered marks.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

int hipGetDevice(int *);
static void (*mark)(const char *);

// What every thread and every child does: 40 calls and 10 marks.
static void work(void) {
  char text[32];
  int device, me = (int)syscall(SYS_gettid);
  for (int i = 0; i < 10; i++) {
    for (int j = 0; j < 4; j++) hipGetDevice(&device);
    snprintf(text, sizeof text, "%d:%d", me, i);
    if (mark) mark(text);
  }
}

static pthread_barrier_t all;
static void *together(void *barrier) {
  work();
  if (barrier) pthread_barrier_wait(barrier);
  return NULL;
}

// Starts `live` threads at once, `times` times; the stacks are small.
static void threads(int live, int times) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 128 * 1024);
  pthread_t *made = calloc(live, sizeof *made);
  pthread_barrier_init(&all, NULL, live);
  for (int time = 0; time < times; time++) {
    for (int i = 0; i < live; i++)
      if (pthread_create(&made[i], &small, together, &all)) exit(78);
    for (int i = 0; i < live; i++) pthread_join(made[i], NULL);
  }
}

// Children of children, some of them detached; each ends in another way. Waits for all by the end of a pipe.
static void forks(int count, const char *self) {
  int ends[2];
  if (pipe(ends)) exit(1);
  for (int i = 0; i < count; i++) {
    if (fork() == 0) {
      close(ends[0]);
      if (i % 2) work();
      if (i % 3 == 0 && fork() == 0) {
        setsid();
        work();
        exit(0);
      }
      switch (i % 5) {
        case 0: exit(0);
        case 1: _exit(0);
        case 2: kill(getpid(), SIGKILL); break;
        case 3: signal(SIGABRT, SIG_DFL), abort();
        default: execl(self, self, "work", NULL);
      }
    }
    if (i % 16 == 15) while (waitpid(-1, NULL, WNOHANG) > 0) {}
  }
  close(ends[1]);
  char byte;
  while (read(ends[0], &byte, 1) > 0) {}
  while (wait(NULL) > 0) {}
}

// Private memory in use, KiB.
static long anonymous(void) {
  char line[256];
  long found = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "RssAnon: %ld", &found);
  if (file) fclose(file);
  return found;
}

// Threads that come and go, and texts that never come again; says at the half and at the end how much memory is in use.
static void memory(int count) {
  char text[96];
  for (int i = 0; i < count; i++) {
    if (i == count / 2) printf("%ld\n", anonymous());
    pthread_t thread;
    if (!pthread_create(&thread, NULL, together, NULL)) pthread_join(thread, NULL);
    snprintf(text, sizeof text, "%d:%d a text that is too long for a record and is kept as a string", getpid(), i);
    mark(text);
  }
  printf("%ld\n", anonymous());
}

static void *endless(void *unused) {
  (void)unused;
  for (;;) {
    pthread_t thread;
    if (!pthread_create(&thread, NULL, together, NULL)) pthread_join(thread, NULL);
  }
}
static void *aborting(void *late) {
  usleep((uintptr_t)late);
  abort();
}
static volatile sig_atomic_t handled, last = 1 << 30;
static void handler(int signal) {
  (void)signal;
  int device;
  hipGetDevice(&device);
  if (++handled >= last) *(volatile int *)8 = 1;
  hipGetDevice(&device);
}

int main(int count, char **words) {
  mark = (void (*)(const char *))dlsym(RTLD_DEFAULT, "roctxMarkA");
  const char *what = count > 1 ? words[1] : "work";
  int first = count > 2 ? atoi(words[2]) : 0, second = count > 3 ? atoi(words[3]) : 1;
  work();
  if (!strcmp(what, "threads")) threads(first, second);
  if (!strcmp(what, "forks")) forks(first, words[0]);
  if (!strcmp(what, "memory")) memory(first);
  if (!strcmp(what, "sleep")) puts("ready"), fflush(stdout), usleep(first), work();
  if (!strcmp(what, "endless")) {
    puts("ready"), fflush(stdout);
    pthread_t thread;
    for (int i = 0; i < 2; i++) pthread_create(&thread, NULL, endless, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (first == SIGABRT) pthread_create(&thread, NULL, aborting, (void *)(uintptr_t)second);
    if (first == SIGSEGV) {
      last = second;
      sigaction(SIGALRM, &action, NULL);
      setitimer(ITIMER_REAL, &(struct itimerval){{0, 50}, {0, 50}}, NULL);
    }
    for (;;) {
      if (first == SIGKILL) {
        int child = fork();
        if (child == 0) work(), _exit(0);
        if (child > 0) waitpid(child, NULL, 0);
      } else {
        work();
      }
    }
  }
  return 0;
}
