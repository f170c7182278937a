// Marks and ranges from the main thread, from threads, from a forked child; the functions may be found three ways.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void (*mark)(const char *);
static int (*push)(const char *);
static int (*pop)(void);
static uint64_t (*start)(const char *);
static void (*stop)(uint64_t);

static int find(const char *how) {
  void *handle = !strcmp(how, "default") ? RTLD_DEFAULT : dlopen(how, RTLD_NOW | RTLD_LOCAL);
  if (strcmp(how, "default") && !handle) return 0;
  mark = dlsym(handle, "roctxMarkA");
  push = dlsym(handle, "roctxRangePushA");
  pop = dlsym(handle, "roctxRangePop");
  start = dlsym(handle, "roctxRangeStartA");
  stop = dlsym(handle, "roctxRangeStop");
  return mark && push && pop && start && stop;
}

static volatile sig_atomic_t handled;

static void in_handler(int signal) {
  (void)signal;
  handled++;
  mark("in a handler");
}

static void *thread(void *text) {
  for (int i = 0; i < 1000; i++) {
    push(text);
    pop();
  }
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2 || !find(argv[1])) {
    puts("no ROC-TX");
    return 3;
  }
  for (int i = 2; i < argc; i++) {
    if (!strcmp(argv[i], "levels")) {
      int a = push("outer"), b = push("inner"), c = pop(), d = pop(), e = pop();
      printf("%d %d %d %d %d\n", a, b, c, d, e);
    } else if (!strcmp(argv[i], "mark")) {
      mark("a mark");
    } else if (!strcmp(argv[i], "long")) {
      char text[1000];
      memset(text, 'x', sizeof text - 1);
      text[sizeof text - 1] = 0;
      mark(text);
    } else if (!strcmp(argv[i], "deep")) {
      for (int k = 0; k < 4200; k++) push("deep");
      for (int k = 0; k < 4200; k++) pop();
      for (int k = 0; k < 40; k++) push(k % 2 ? "odd" : "even");
      for (int k = 0; k < 40; k++) pop();
    } else if (!strcmp(argv[i], "many")) {
      static uint64_t ids[1000];
      for (int k = 0; k < 1000; k++) ids[k] = start("one of many");
      for (int k = 999; k >= 0; k--) stop(ids[k]);
    } else if (!strcmp(argv[i], "start")) {
      uint64_t id = start("started");
      stop(id);
      start("left open");
    } else if (!strcmp(argv[i], "misuse")) {
      stop(0);
      uint64_t id = start("stopped once");
      stop(0);
      stop(id);
      stop(id);
      stop(0);
      stop(~0ull);
    } else if (!strcmp(argv[i], "threads")) {
      for (int round = 0; round < 3; round++) {
        pthread_t threads[12];
        for (int k = 0; k < 12; k++) pthread_create(&threads[k], 0, thread, "in a thread");
        for (int k = 0; k < 12; k++) pthread_join(threads[k], 0);
      }
    } else if (!strcmp(argv[i], "fork")) {
      fflush(stdout);
      if (fork() == 0) {
        mark("in the child");
        push("open in the child");
        _exit(0);
      }
      int status;
      wait(&status);
    } else if (!strcmp(argv[i], "exec")) {
      fflush(stdout);
      execl(argv[0], argv[0], argv[1], "mark", (char *)0);
    } else if (!strcmp(argv[i], "signals")) {
      struct sigaction action = {.sa_handler = in_handler};
      struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
      sigaction(SIGALRM, &action, 0);
      setitimer(ITIMER_REAL, &often, 0);
      for (int k = 0; k < 20000; k++) {
        push("interrupted");
        pop();
      }
      setitimer(ITIMER_REAL, &never, 0);
      printf("%d\n", (int)handled);
    } else if (!strcmp(argv[i], "pause")) {
      int (*pause)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, "roctxProfilerPause");
      int (*resume)(uint64_t) = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, "roctxProfilerResume");
      push("around");
      pause(0);
      mark("while paused");
      push("while paused");
      pop();
      resume(0);
      pop();
    } else if (!strcmp(argv[i], "tracer")) {
      void (*start)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "roctracer_start");
      void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "roctracer_stop");
      void *library = dlopen("./libroctracer64.so.4", RTLD_NOW | RTLD_LOCAL);
      int (*switches)(void) = (int (*)(void))dlsym(library, "switches");
      stop();
      mark("while stopped");
      start();
      printf("%d\n", switches());
    } else if (!strcmp(argv[i], "abort")) {
      push("open at the end");
      abort();
    }
  }
  return 0;
}
