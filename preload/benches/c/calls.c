// Times loops of calls in interleaved rounds; prints `case ns` for every round. What it is run under decides what a call is.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

int hipGetDevice(int *);
int stub_plain(int *);
__attribute__((weak)) int stub_asked(int *);
__attribute__((weak)) void hipRegisterTracerCallback(int (*)(uint32_t, uint32_t, void *));

enum { BATCH = 20000, APART = 20 };
static void (*pair)(uint64_t);
static volatile uint64_t *control;
static uint64_t sink, work_steps = 1000;

// Time on a processor, not on the wall: others run here too.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static void two_reads(void) {
  for (int i = 0; i < BATCH; i++) sink += __rdtsc(), sink -= __rdtsc();
}
static void plain(void) { for (int i = 0, d; i < BATCH; i++) stub_plain(&d); }
static void call(void) { for (int i = 0, d; i < BATCH; i++) hipGetDevice(&d); }
static void asked(void) { for (int i = 0, d; i < BATCH; i++) stub_asked(&d); }
static void peer(void) { for (uint64_t i = 0; i < BATCH; i++) pair(i); }

__attribute__((noinline)) static void work(void) {
  uint64_t x = sink | 1;
  for (uint64_t i = 0; i < work_steps; i++) x = x * 6364136223846793005u + i;
  sink = x;
}
static void work_plain(void) { for (int i = 0, d; i < APART; i++) work(), stub_plain(&d); }
static void work_call(void) { for (int i = 0, d; i < APART; i++) work(), hipGetDevice(&d); }

static double timed(void (*body)(void), int count) {
  double begin = now();
  body();
  return (now() - begin) / count;
}
static void show(const char *name, double ns) { printf("%s %.4f\n", name, ns); }

static int empty_exit_count;
static void empty_exit(uint32_t op, void *data) { (void)op, (void)data, empty_exit_count++; }
static int empty_callback(uint32_t domain, uint32_t op, void *data) {
  (void)op;
  if (domain != 3) return 1;
  void **words = (void **)((char *)data + 1520);
  words[2] = NULL, words[3] = (void *)empty_exit;
  return 0;
}

struct Lane { pthread_barrier_t *gate; void (*body)(void); double ns; };
static void *lane(void *argument) {
  struct Lane *lane = argument;
  lane->body();
  pthread_barrier_wait(lane->gate);
  double begin = now();
  for (int i = 0; i < 10; i++) lane->body();
  lane->ns = (now() - begin) / 10 / BATCH;
  return NULL;
}
// The slowest thread's time a call.
static double lanes(int count, void (*body)(void)) {
  pthread_barrier_t gate;
  pthread_barrier_init(&gate, NULL, count);
  pthread_t threads[count];
  struct Lane all[count];
  double worst = 0;
  for (int i = 0; i < count; i++) {
    all[i] = (struct Lane){&gate, body, 0};
    pthread_create(&threads[i], NULL, lane, &all[i]);
  }
  for (int i = 0; i < count; i++) {
    pthread_join(threads[i], NULL);
    if (all[i].ns > worst) worst = all[i].ns;
  }
  return worst;
}

int main(int count, char **words) {
  int rounds = count > 1 ? atoi(words[1]) : 20;
  const char *mode = count > 2 ? words[2] : "gate", *path = getenv("BENCH_CONTROL"), *library = getenv("BENCH_PEER");
  if (path) {
    int fd = open(path, O_RDWR);
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || control == MAP_FAILED) return perror(path), 1;
  }
  if (library) {
    void *handle = dlopen(library, RTLD_NOW);
    int (*is_on)(void) = handle ? (int (*)(void))dlsym(handle, "peer_is_on") : NULL;
    for (int i = 0; is_on && !is_on() && i < 200; i++) usleep(10000);
    if (is_on && is_on()) pair = (void (*)(uint64_t))dlsym(handle, "peer_pair");
    else fprintf(stderr, "no session of the peer has these events enabled\n");
  }
  for (int i = 0; i < 20; i++) call();
  work_steps = 1000 * 5000 / timed(work, 1);
  for (int i = 0; i < 20; i++) work_steps = work_steps * 5000 / timed(work, 1);
  for (int round = 0; round < rounds; round++) {
    show("floor", timed(two_reads, BATCH));
    show("plain", timed(plain, BATCH));
    show("call", timed(call, BATCH));
    if (!strcmp(mode, "tracer")) {
      show("asked", timed(asked, BATCH));
      continue;
    }
    if (!strcmp(mode, "empty")) {
      // After the collector's own, which was registered at the first call.
      hipRegisterTracerCallback(empty_callback);
      show("asked", timed(asked, BATCH));
      continue;
    }
    if (pair) show("pair", timed(peer, BATCH));
    if (control) {
      control[0] = 0;
      show("paused", timed(call, BATCH));
      control[0] = 1;
    }
    // Blocks in turn, each at the other's side: the difference of neighbours is what a call adds.
    for (int i = 0; i < 40; i++) {
      double before = timed(work_plain, APART), with = timed(work_call, APART), after = timed(work_plain, APART);
      show("apart", before);
      show("added", with - (before + after) / 2);
    }
    if (round % 4 == 0 && !strcmp(mode, "gate")) {
      int cores = sysconf(_SC_NPROCESSORS_ONLN);
      show("call_alone", lanes(1, call));
      show("floor_alone", lanes(1, two_reads));
      show("call_all", lanes(cores, call));
      show("floor_all", lanes(cores, two_reads));
    }
  }
  return 0;
}
