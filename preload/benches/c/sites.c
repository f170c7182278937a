// Times a call that has a site, with sites on and off in turns: prints `case ns` for every round. As a program, from C at
// several depths; as a library, from whatever Python code calls `measure`.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int hipMalloc(void **, size_t);
int hipGetDevice(int *);

enum { BATCH = 4000, WANTED = 1, SITES = 1 << 18 };
static volatile uint64_t *control;

static int open_control(void) {
  const char *path = getenv("BENCH_CONTROL");
  int fd = path ? open(path, O_RDWR) : -1;
  control = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return control != MAP_FAILED;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static void one_line(void) {
  void *p;
  for (int i = 0; i < BATCH; i++) hipMalloc(&p, 64);
}

// Forty lines that share one wrapper: the calls differ in a word further up the stack.
__attribute__((noinline)) static void wrapper(void) {
  void *p;
  hipMalloc(&p, 64);
  __asm__ volatile("" ::: "memory");
}
#define LINE wrapper();
#define TEN LINE LINE LINE LINE LINE LINE LINE LINE LINE LINE
static void many_lines(void) {
  for (int i = 0; i < BATCH / 40; i++) { TEN TEN TEN TEN }
}

static void other(void) {
  int d;
  for (int i = 0; i < BATCH; i++) hipGetDevice(&d);
}

static double timed(void (*body)(void), int is_on) {
  control[WANTED] = is_on ? control[WANTED] | SITES : control[WANTED] & ~(uint64_t)SITES;
  body();
  double begin = now();
  body();
  return (now() - begin) / BATCH;
}

static void compare(const char *name, void (*body)(void), int rounds) {
  for (int i = 0; i < rounds; i++) {
    double off = timed(body, 0), on = timed(body, 1);
    printf("%s_off %.3f\n%s_on %.3f\n", name, off, name, on);
  }
}

__attribute__((noinline)) static int deep(int depth, const char *name, void (*body)(void), int rounds) {
  volatile char room[48];
  room[0] = (char)depth;
  if (depth > 1) return deep(depth - 1, name, body, rounds) + room[0];
  compare(name, body, rounds);
  return room[0];
}

// Called from Python.
int measure(const char *name, int rounds) {
  if (!control && !open_control()) return 1;
  compare(name, one_line, rounds);
  fflush(stdout);
  return 0;
}

int main(int count, char **words) {
  int rounds = count > 1 ? atoi(words[1]) : 100;
  if (!open_control()) return perror("control"), 1;
  for (int part = 0; part < 4; part++) {
    compare("main", one_line, rounds / 4);
    deep(8, "deep8", one_line, rounds / 4);
    deep(16, "deep16", one_line, rounds / 4);
    deep(30, "deep30", one_line, rounds / 4);
    compare("lines40", many_lines, rounds / 4);
    compare("other", other, rounds / 4);
  }
  return 0;
}
