// Stands in for librocprofiler-sdk-roctx.so.1 as it is built with rocprofiler-register: exported functions that jump
// through three tables, which the first call of any of them builds and hands over (to the register where it is found, else
// as the register does). It does what the real one does of itself: it counts levels by thread and ids of ranges, and
// here the calls that reach it as well.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static __thread int level;
static uint64_t ids = FIRST_ID;
static int reached;
#define REACHED __atomic_fetch_add(&reached, 1, __ATOMIC_RELAXED)

static void real_mark(const char *message) { (void)message, REACHED; }
static int real_push(const char *message) { return (void)message, REACHED, level++; }
static int real_pop(void) { return REACHED, level ? --level : -1; }
static uint64_t real_start(const char *message) { return (void)message, REACHED, __atomic_fetch_add(&ids, 1, __ATOMIC_RELAXED); }
static void real_stop(uint64_t id) { (void)id, REACHED; }
static int real_thread_id(uint64_t *id) { return REACHED, *id = (uint64_t)syscall(SYS_gettid), 0; }
static int real_switch(uint64_t id) { return (void)id, REACHED, 0; }
static int real_name(const char *name) { return (void)name, REACHED, 0; }
static int real_name_thing(const char *name, const void *thing) { return (void)name, (void)thing, REACHED, 0; }
static int real_name_device(const char *name, int device) { return (void)name, (void)device, REACHED, 0; }

static struct { uint64_t size; void (*mark)(const char *); int (*push)(const char *); int (*pop)(void); uint64_t (*start)(const char *); void (*stop)(uint64_t); int (*thread_id)(uint64_t *); } core;
static struct { uint64_t size; int (*pause)(uint64_t), (*resume)(uint64_t); } control;
static struct { uint64_t size; int (*thread)(const char *), (*agent)(const char *, const void *), (*device)(const char *, int), (*stream)(const char *, const void *); } name;

uint32_t rocprofiler_register_import_roctx(void) { return 40100; }

static void build(void) {
  core.size = sizeof core, core.mark = real_mark, core.push = real_push, core.pop = real_pop, core.start = real_start, core.stop = real_stop, core.thread_id = real_thread_id;
  control.size = sizeof control, control.pause = control.resume = real_switch;
  name.size = sizeof name, name.thread = real_name, name.agent = name.stream = real_name_thing, name.device = real_name_device;
  void *tables[] = {&core, &control, &name}, *library = dlopen("librocprofiler-register.so.0", RTLD_NOW | RTLD_LOCAL);
  uint64_t id = 0;
  int (*hand)(const char *, void *, uint32_t, void **, uint64_t, uint64_t *) = library ? (void *)dlsym(library, "rocprofiler_register_library_api_table") : 0;
  int (*set)(const char *, uint64_t, uint64_t, void **, uint64_t) = (void *)dlsym(RTLD_DEFAULT, "rocprofiler_set_api_table");
  if (hand) hand("roctx", (void *)rocprofiler_register_import_roctx, 40100, tables, 3, &id);
  else if (set) set("roctx", 40100, 0, tables, 3);
}
static void ready(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, build);
}

int roctx_reached(void) { return reached; }
void roctxMarkA(const char *message) { ready(), core.mark(message); }
int roctxRangePushA(const char *message) { return ready(), core.push(message); }
int roctxRangePop(void) { return ready(), core.pop(); }
uint64_t roctxRangeStartA(const char *message) { return ready(), core.start(message); }
void roctxRangeStop(uint64_t id) { ready(), core.stop(id); }
int roctxGetThreadId(uint64_t *id) { return ready(), core.thread_id(id); }
int roctxProfilerPause(uint64_t id) { return ready(), control.pause(id); }
int roctxProfilerResume(uint64_t id) { return ready(), control.resume(id); }
int roctxNameOsThread(const char *text) { return ready(), name.thread(text); }
int roctxNameHsaAgent(const char *text, const void *agent) { return ready(), name.agent(text, agent); }
int roctxNameHipDevice(const char *text, int device) { return ready(), name.device(text, device); }
int roctxNameHipStream(const char *text, const void *stream) { return ready(), name.stream(text, stream); }
