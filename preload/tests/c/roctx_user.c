// Calls ROC-TX from threads at once (the first call among them) and says what it gave: as linked with it, or as a plugin
// with the same text that is opened with RTLD_LOCAL, with RTLD_DEEPBIND too (it has the library's own functions then), or
// with functions that it looks up in the library (LIBRARY is its name).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef LIBRARY
static void (*roctxMarkA)(const char *), (*roctxRangeStop)(uint64_t);
static int (*roctxRangePushA)(const char *), (*roctxRangePop)(void), (*roctxGetThreadId)(uint64_t *), (*roctxProfilerPause)(uint64_t),
    (*roctxProfilerResume)(uint64_t), (*roctxNameOsThread)(const char *), (*roctxNameHipStream)(const char *, const void *), (*roctx_reached)(void);
static uint64_t (*roctxRangeStartA)(const char *);
static void find(void) {
  void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
#define FIND(name) (name = (void *)dlsym(library, #name))
  FIND(roctxMarkA), FIND(roctxRangeStop), FIND(roctxRangePushA), FIND(roctxRangePop), FIND(roctxGetThreadId), FIND(roctxProfilerPause);
  FIND(roctxProfilerResume), FIND(roctxNameOsThread), FIND(roctxNameHipStream), FIND(roctx_reached), FIND(roctxRangeStartA);
}
#elif defined USER
static void find(void) {}
void roctxMarkA(const char *);
int roctxRangePushA(const char *), roctxRangePop(void);
uint64_t roctxRangeStartA(const char *);
void roctxRangeStop(uint64_t);
int roctxGetThreadId(uint64_t *), roctxProfilerPause(uint64_t), roctxProfilerResume(uint64_t);
int roctxNameOsThread(const char *), roctxNameHipStream(const char *, const void *);
int roctx_reached(void);
#endif

#ifdef USER
static pthread_barrier_t barrier;

static void *thread(void *text) {
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 100; i++) roctxMarkA(text);
  return 0;
}

int use(void) {
  find();
  pthread_t threads[4];
  pthread_barrier_init(&barrier, 0, 4);
  for (int k = 0; k < 4; k++) pthread_create(&threads[k], 0, thread, "at once");
  for (int k = 0; k < 4; k++) pthread_join(threads[k], 0);
  int a = roctxRangePushA("outer"), b = roctxRangePushA("inner"), c = roctxRangePop(), d = roctxRangePop(), e = roctxRangePop();
  uint64_t first = roctxRangeStartA("first"), second = roctxRangeStartA("second"), tid = 0;
  roctxRangeStop(second), roctxRangeStop(first);
  roctxProfilerPause(0);
  roctxMarkA("while paused");
  roctxProfilerResume(0);
  roctxGetThreadId(&tid);
  roctxNameOsThread("the first");
  roctxNameHipStream("a stream", (void *)0x50);
  return printf("%d %d %d %d %d %d %d %d %d\n", a, b, c, d, e, (int)first, (int)second, tid != 0, roctx_reached()) < 0;
}
#else
int use(void);
#endif

#ifdef MAIN
int main(int argc, char **argv) {
#ifdef USER
  return use();
#endif
  void *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL | (argc > 2 ? RTLD_DEEPBIND : 0));
  int (*found)(void) = plugin ? (int (*)(void))dlsym(plugin, "use") : 0;
  if (!found) return puts(dlerror()), 3;
  return found();
}
#endif
