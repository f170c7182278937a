// HSA without HIP: queues shared by threads, portions, also large ones, that cross the end of the ring or fill all of it,
// doorbells that ring late, every way to arm a signal again, barriers, counting signals, thousands of signals at once, copies of all
// three kinds, memory, a queue that is destroyed right after its last kernel. Kernels come from module_kernels.hsaco beside the program.
//
//   raw_hsa [ROUNDS=1]
//   raw_hsa overlap      independent kernels of one queue alone, sixty-four in flight
//   raw_hsa cost         two cheap calls alone, ns per call as launch_loop --csv prints them
//   raw_hsa blocking     copies and fills that return when they are complete
//   raw_hsa copies       a hundred copies alone, no kernel
//   raw_hsa extended     kernels by AMD's extended dispatch packets, in clusters of work-groups
//   raw_hsa counted|batch|described   what ROCr 1.21 adds: counted queues, copies in batches, queues by descriptors
//   raw_hsa batch BYTES  the same with operations of BYTES bytes: the size differs between published headers (default 160)
//   raw_hsa leave US     a signal handler ends the process by _exit(7), after US microseconds of launching kernels and asking
//                        HSA for the times of one again and again
//
// Each call of HSA is counted by its name, but for those inside callbacks (APP_CALL_COUNTS); GPU memory that is held is
// reported call by call, `name bytes held owner` (APP_MEMORY). The program's own kernel times are checked: every kernel takes KERNEL_NS.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct site {
  const char *name;
  atomic_ulong hits;
  struct site *next;
};
static _Atomic(struct site *) sites;

static void hit(struct site *site) {
  if (atomic_fetch_add(&site->hits, 1)) return;
  site->next = atomic_load(&sites);
  while (!atomic_compare_exchange_weak(&sites, &site->next, site))
    ;
}

#define COUNT(text)                   \
  do {                                \
    static struct site site = {text}; \
    hit(&site);                       \
  } while (0)
#define VALUE(f, ...) ({ COUNT(#f); f(__VA_ARGS__); })
#define OK(f, ...) check(VALUE(f, __VA_ARGS__), #f, __LINE__)

static void fail(const char *what, int line) {
  fprintf(stderr, "raw_hsa.c:%d: %s\n", line, what);
  exit(1);
}

static void check(hsa_status_t status, const char *name, int line) {
  if (status == HSA_STATUS_SUCCESS) return;
  fprintf(stderr, "status 0x%x of ", status);
  fail(name, line);
}

static void write_counts(void) {
  const char *path = getenv("APP_CALL_COUNTS");
  FILE *out = path ? fopen(path, "w") : NULL;
  if (!out) return;
  for (struct site *site = sites; site; site = site->next) fprintf(out, "%s %lu\n", site->name, site->hits);
  fclose(out);
}

static FILE *lines;
static unsigned long long held;

static void report_of(const char *name, size_t bytes, const char *whose) {
  if (lines) fprintf(lines, "%s %zu %llu %s\n", name, bytes, held, whose);
}

static void report(const char *name, size_t bytes, long long change) {
  held += change;
  report_of(name, bytes, "gpu");
}

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t host, local;
static hsa_region_t region;
static char *memory, *device;
static hsa_executable_t executable;
static uint64_t kernel[2];
static atomic_long wrong, kernels;
enum { KERNEL_NS = 5000, MEMORY = 1 << 20 };

static hsa_status_t agent(hsa_agent_t a, void *data) {
  hsa_device_type_t type;
  hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_CPU) cpu = a;
  if (type == HSA_DEVICE_TYPE_GPU && !gpu.handle) gpu = a;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t pool(hsa_amd_memory_pool_t p, void *is_gpu) {
  hsa_amd_segment_t segment;
  uint32_t flags = 0;
  hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment);
  if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  if (is_gpu && flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED) local = p;
  if (!is_gpu && flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) host = p;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_region(hsa_region_t r, void *data) {
  hsa_region_segment_t segment;
  uint32_t flags = 0;
  hsa_region_get_info(r, HSA_REGION_INFO_SEGMENT, &segment);
  if (segment != HSA_REGION_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  hsa_region_get_info(r, HSA_REGION_INFO_GLOBAL_FLAGS, &flags);
  // A GPU's regions are its own and those of the host.
  bool is_hosts = false;
  hsa_region_get_info(r, (hsa_region_info_t)HSA_AMD_REGION_INFO_HOST_ACCESSIBLE, &is_hosts);
  if (flags & HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED && !is_hosts) region = r;
  return HSA_STATUS_SUCCESS;
}

static void load(const char *program) {
  char path[4096];
  const char *slash = strrchr(program, '/');
  snprintf(path, sizeof path, "%.*smodule_kernels.hsaco", slash ? (int)(slash + 1 - program) : 0, program);
  static char bundle[1 << 20];
  FILE *file = fopen(path, "r");
  size_t length = file ? fread(bundle, 1, sizeof bundle, file) : 0;
  if (!length) fail(path, __LINE__);
  fclose(file);
  // A bundle: magic, number of entries, and for each its offset, size, and name with its length.
  uint64_t entry[3], count, at = 32, found = 0;
  memcpy(&count, bundle + 24, 8);
  if (memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24)) fail("not a bundle", __LINE__);
  for (; count-- && !found; at += 24 + entry[2]) {
    memcpy(entry, bundle + at, 24);
    if (memmem(bundle + at + 24, entry[2], "gfx906", 6)) found = entry[0];
  }
  if (!found) fail("no code for gfx906", __LINE__);
  hsa_code_object_reader_t reader;
  OK(hsa_code_object_reader_create_from_memory, bundle + found, entry[1], &reader);
  OK(hsa_executable_create_alt, HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable);
  OK(hsa_executable_load_agent_code_object, executable, gpu, reader, NULL, NULL);
  OK(hsa_executable_freeze, executable, NULL);
  OK(hsa_code_object_reader_destroy, reader);
  const char *names[] = {"module_add.kd", "module_empty.kd"};
  for (int i = 0; i < 2; i++) {
    hsa_executable_symbol_t symbol;
    OK(hsa_executable_get_symbol_by_name, executable, names[i], &gpu, &symbol);
    OK(hsa_executable_symbol_get_info, symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel[i]);
  }
}

// Packets are written from the back, so that the first one's header makes the whole portion valid at last.
static void *place(hsa_queue_t *queue, uint64_t index) {
  while (index - VALUE(hsa_queue_load_read_index_scacquire, queue) >= queue->size)
    ;
  return (char *)queue->base_address + 64 * (index & (queue->size - 1));
}

static void publish(void *packet, int type, int barrier, uint16_t setup) {
  uint32_t fences = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  uint32_t header = type | barrier << HSA_PACKET_HEADER_BARRIER | fences | (uint32_t)setup << 16;
  __atomic_store_n((uint32_t *)packet, header, __ATOMIC_RELEASE);
}

static void put_kernel(hsa_queue_t *queue, uint64_t index, hsa_signal_t signal, int groups, int barrier) {
  hsa_kernel_dispatch_packet_t *packet = place(queue, index);
  memset((char *)packet + 4, 0, 60);
  packet->workgroup_size_x = 64;
  packet->workgroup_size_y = packet->workgroup_size_z = 1;
  packet->grid_size_x = 64 * groups;
  packet->grid_size_y = packet->grid_size_z = 1;
  packet->kernel_object = kernel[groups & 1];
  packet->kernarg_address = memory;
  packet->completion_signal = signal;
  publish(packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier, 1);
  atomic_fetch_add(&kernels, 1);
}

static void put_barrier(hsa_queue_t *queue, uint64_t index, int type, hsa_signal_t a, hsa_signal_t b, hsa_signal_t done) {
  hsa_barrier_and_packet_t *packet = place(queue, index);
  memset((char *)packet + 4, 0, 60);
  packet->dep_signal[0] = a;
  packet->dep_signal[1] = b;
  packet->completion_signal = done;
  publish(packet, type, 0, 0);
}

static const hsa_signal_t none = {0};

static void ring(hsa_queue_t *queue, uint64_t index) { VALUE(hsa_signal_store_screlease, queue->doorbell_signal, index); }

static void submit(hsa_queue_t *queue, hsa_signal_t signal, int groups, int barrier) {
  uint64_t index = VALUE(hsa_queue_add_write_index_relaxed, queue, 1);
  put_kernel(queue, index, signal, groups, barrier);
  ring(queue, index);
}

static void wait_for(hsa_signal_t signal) {
  while (VALUE(hsa_signal_wait_scacquire, signal, HSA_SIGNAL_CONDITION_LT, 1, -1, HSA_WAIT_STATE_BLOCKED) >= 1)
    ;
}

static hsa_queue_t *queue_of(uint32_t size, hsa_queue_type32_t type) {
  hsa_queue_t *queue;
  OK(hsa_queue_create, gpu, size, type, NULL, NULL, 0, 0, &queue);
  OK(hsa_amd_profiling_set_profiler_enabled, queue, 1);
  return queue;
}

static hsa_signal_t signal_of(hsa_signal_value_t value) {
  hsa_signal_t signal;
  OK(hsa_signal_create, value, 0, NULL, &signal);
  return signal;
}

// The times that the program reads from its own signal.
static void judge(hsa_signal_t signal) {
  hsa_amd_profiling_dispatch_time_t time = {0, 0};
  OK(hsa_amd_profiling_get_dispatch_time, gpu, signal, &time);
  long long took = time.end - time.start;
  if (took < KERNEL_NS - 200 || took > KERNEL_NS + 200) atomic_fetch_add(&wrong, 1);
}

static void arm(hsa_signal_t signal, int how) {
  volatile hsa_signal_value_t *value;
  switch (how % 7) {
    case 0: VALUE(hsa_signal_store_relaxed, signal, 1); break;
    case 1: VALUE(hsa_signal_silent_store_relaxed, signal, 1); break;
    case 2: VALUE(hsa_signal_exchange_scacq_screl, signal, 1); break;
    case 3: VALUE(hsa_signal_add_screlease, signal, 1); break;
    case 4: VALUE(hsa_signal_cas_scacq_screl, signal, 0, 1); break;
    case 5: VALUE(hsa_signal_subtract_relaxed, signal, -1); break;
    default:
      // Behind all functions, as a kernel or a holder of hsa_amd_signal_value_pointer does.
      value = (volatile hsa_signal_value_t *)(signal.handle + 8);
      __atomic_store_n(value, 1, __ATOMIC_RELEASE);
  }
}

// Rotating signals, several threads on one queue.
struct worker {
  pthread_t thread;
  hsa_queue_t *queue;
  int count, number;
};

static void *rotate(void *data) {
  struct worker *worker = data;
  enum { SIGNALS = 24 };
  hsa_signal_t signals[SIGNALS];
  for (int i = 0; i < SIGNALS; i++) signals[i] = signal_of(1);
  for (int i = 0; i < worker->count; i++) {
    hsa_signal_t signal = signals[i % SIGNALS];
    if (i >= SIGNALS) {
      wait_for(signal);
      judge(signal);
      arm(signal, i / 3 + worker->number);
    }
    submit(worker->queue, signal, i % 7 + 1, 0);
  }
  for (int i = 0; i < SIGNALS; i++) {
    wait_for(signals[i]);
    judge(signals[i]);
    OK(hsa_signal_destroy, signals[i]);
  }
  return NULL;
}

static void rotating(void) {
  hsa_queue_t *queue = queue_of(256, HSA_QUEUE_TYPE_MULTI);
  struct worker workers[4];
  for (int i = 0; i < 4; i++) {
    workers[i] = (struct worker){.queue = queue, .count = 500, .number = i};
    pthread_create(&workers[i].thread, NULL, rotate, &workers[i]);
  }
  for (int i = 0; i < 4; i++) pthread_join(workers[i].thread, NULL);
  OK(hsa_queue_destroy, queue);
}

// Portions of seven packets in a ring of sixty-four: kernels with and without signals, barriers between them, and one
// doorbell for all. Reserved in three ways.
static void portions(void) {
  hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_SINGLE);
  hsa_signal_t first = signal_of(1), done = signal_of(1), zero = signal_of(0);
  for (int i = 0; i < 200; i++) {
    uint64_t index;
    if (i % 3 == 0) {
      index = VALUE(hsa_queue_add_write_index_scacq_screl, queue, 7);
    } else if (i % 3 == 1) {
      index = VALUE(hsa_queue_load_write_index_relaxed, queue);
      VALUE(hsa_queue_store_write_index_screlease, queue, index + 7);
    } else {
      index = VALUE(hsa_queue_load_write_index_scacquire, queue);
      if (VALUE(hsa_queue_cas_write_index_scacq_screl, queue, index, index + 7) != index) fail("cas", __LINE__);
    }
    put_kernel(queue, index + 1, none, 2, 0);
    put_barrier(queue, index + 2, HSA_PACKET_TYPE_BARRIER_AND, first, none, none);
    put_kernel(queue, index + 3, none, 3, 1);
    put_barrier(queue, index + 4, HSA_PACKET_TYPE_BARRIER_OR, zero, first, none);
    put_kernel(queue, index + 5, none, 4, 0);
    put_kernel(queue, index + 6, done, 5, 1);
    put_kernel(queue, index, first, 1, 1);
    ring(queue, index + 6);
    wait_for(done);
    judge(done);
    judge(first);
    arm(first, i);
    arm(done, i + 1);
  }
  OK(hsa_signal_destroy, first);
  OK(hsa_signal_destroy, done);
  OK(hsa_signal_destroy, zero);
  OK(hsa_queue_destroy, queue);
}

// Portions of seven hundred in a ring of a thousand and twenty-four, so that most go past its end: reserved at once, the
// first one written last; or one by one, and the doorbell rung at the end alone.
static void large_portions(void) {
  enum { MANY = 700 };
  hsa_queue_t *queue = queue_of(1024, HSA_QUEUE_TYPE_MULTI);
  hsa_signal_t done = signal_of(1);
  for (int i = 0; i < 16; i++) {
    uint64_t last;
    if (i % 2) {
      uint64_t index = VALUE(hsa_queue_add_write_index_scacq_screl, queue, MANY);
      last = index + MANY - 1;
      for (uint64_t at = index + 1; at < last; at++) put_kernel(queue, at, none, at % 5 + 1, 1);
      put_kernel(queue, last, done, 1, 1);
      put_kernel(queue, index, none, 2, 1);
    } else {
      for (int k = 0; k < MANY; k++) {
        last = VALUE(hsa_queue_add_write_index_relaxed, queue, 1);
        put_kernel(queue, last, k == MANY - 1 ? done : none, k % 5 + 1, 1);
      }
    }
    ring(queue, last);
    wait_for(done);
    judge(done);
    arm(done, i);
  }
  OK(hsa_signal_destroy, done);
  OK(hsa_queue_destroy, queue);
}

// All packets of a portion are reserved, one by one, before the first is written; they are written from the last to the first,
// and the doorbell rings for each. Most go past the ring's end.
static void reserved_first(void) {
  enum { MANY = 800 };
  hsa_queue_t *queue = queue_of(1024, HSA_QUEUE_TYPE_MULTI);
  hsa_signal_t done = signal_of(1);
  uint64_t indices[MANY];
  for (int i = 0; i < 12; i++) {
    for (int k = 0; k < MANY; k++) indices[k] = VALUE(hsa_queue_add_write_index_relaxed, queue, 1);
    for (int k = MANY - 1; k >= 0; k--) put_kernel(queue, indices[k], k == MANY - 1 ? done : none, k % 5 + 1, 1);
    for (int k = 0; k < MANY; k++) ring(queue, indices[k]);
    wait_for(done);
    judge(done);
    arm(done, i);
  }
  OK(hsa_signal_destroy, done);
  OK(hsa_queue_destroy, queue);
}

// The first packet of a whole ring is written last: all come at once, to a queue that is empty, and the doorbell goes on
// ringing.
static void whole_ring(void) {
  enum { SIZE = 64 };
  hsa_queue_t *queue = queue_of(SIZE, HSA_QUEUE_TYPE_MULTI);
  hsa_signal_t done = signal_of(1);
  for (int i = 0; i < 24; i++) {
    uint64_t first = VALUE(hsa_queue_add_write_index_relaxed, queue, 1);
    for (int k = 1; k < SIZE; k++) submit(queue, k == SIZE - 1 ? done : none, k % 5 + 1, k == SIZE - 1 || i % 2);
    put_kernel(queue, first, none, 1, 1);
    for (int k = 0; k < 3; k++) ring(queue, first + k);
    wait_for(done);
    judge(done);
    arm(done, i);
    submit(queue, done, 2, 1);
    wait_for(done);
    arm(done, i);
  }
  OK(hsa_signal_destroy, done);
  OK(hsa_queue_destroy, queue);
}

// One reservation of more packets than the queue holds. Each is written when there is room for it, and the doorbell rings
// for every eighth.
static void oversized(void) {
  enum { SIZE = 64, MANY = 3000 };
  for (int round = 0; round < 3; round++) {
    hsa_queue_t *queue = queue_of(SIZE, HSA_QUEUE_TYPE_MULTI);
    hsa_signal_t done = signal_of(1);
    uint64_t first = VALUE(hsa_queue_add_write_index_scacq_screl, queue, MANY);
    for (int k = 0; k < MANY; k++) {
      while (first + k >= VALUE(hsa_queue_load_read_index_scacquire, queue) + SIZE) usleep(10);
      put_kernel(queue, first + k, k == MANY - 1 ? done : none, k % 5 + 1, 1);
      if (k % 8 == 7) ring(queue, first + k);
    }
    wait_for(done);
    judge(done);
    OK(hsa_signal_destroy, done);
    OK(hsa_queue_destroy, queue);
  }
}

// A queue that is held back by a kernel of another one, and full: its last portion goes past its end. The other queue's
// doorbell rings when this one's has been rung and nothing moves any more.
struct gate {
  pthread_t thread;
  hsa_signal_t signal;
};

static void *open_gate(void *data) {
  struct gate *gate = data;
  hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
  struct timespec nap = {0, 600000000};
  nanosleep(&nap, NULL);
  submit(queue, gate->signal, 1, 0);
  wait_for(gate->signal);
  judge(gate->signal);
  OK(hsa_queue_destroy, queue);
  return NULL;
}

static void held_back(void) {
  enum { COUNTED = 100, FIRST = 722, SECOND = 500 };
  hsa_signal_t counted = signal_of(COUNTED), done = signal_of(1);
  struct gate gate = {.signal = signal_of(1)};
  hsa_queue_t *queue = queue_of(1024, HSA_QUEUE_TYPE_MULTI);
  pthread_create(&gate.thread, NULL, open_gate, &gate);
  uint64_t index = VALUE(hsa_queue_add_write_index_relaxed, queue, 1);
  put_barrier(queue, index, HSA_PACKET_TYPE_BARRIER_AND, gate.signal, none, none);
  ring(queue, index);
  for (int i = 0; i < COUNTED; i++) submit(queue, counted, i % 5 + 1, 1);
  index = VALUE(hsa_queue_add_write_index_scacq_screl, queue, FIRST);
  for (int i = 1; i < FIRST; i++) put_kernel(queue, index + i, none, i % 5 + 1, 1);
  put_kernel(queue, index, none, 1, 1);
  ring(queue, index + FIRST - 1);
  index = VALUE(hsa_queue_add_write_index_scacq_screl, queue, SECOND);
  for (int i = 1; i < SECOND - 1; i++) put_kernel(queue, index + i, none, i % 5 + 1, 1);
  put_kernel(queue, index + SECOND - 1, done, 1, 1);
  put_kernel(queue, index, none, 1, 1);
  ring(queue, index + SECOND - 1);
  wait_for(done);
  judge(done);
  wait_for(counted);
  pthread_join(gate.thread, NULL);
  OK(hsa_signal_destroy, counted);
  OK(hsa_signal_destroy, done);
  OK(hsa_signal_destroy, gate.signal);
  OK(hsa_queue_destroy, queue);
}

// A queue for cooperative launches, whose processor is faster than the doorbell: the second kernel is complete before it is
// rung for.
static void late_doorbell(void) {
  hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_COOPERATIVE);
  hsa_signal_t first = signal_of(1), second = signal_of(1);
  for (int i = 0; i < 20; i++) {
    uint64_t index = VALUE(hsa_queue_add_write_index_relaxed, queue, 2);
    put_kernel(queue, index + 1, second, 2, 1);
    put_kernel(queue, index, first, 1, 1);
    ring(queue, index);
    wait_for(second);
    ring(queue, index + 1);
    judge(first);
    judge(second);
    VALUE(hsa_signal_store_relaxed, first, 1);
    VALUE(hsa_signal_silent_store_relaxed, second, 1);
  }
  OK(hsa_signal_destroy, first);
  OK(hsa_signal_destroy, second);
  OK(hsa_queue_destroy, queue);
}

// Nothing but the signals holds these kernels back.
static void independent(void) {
  enum { SIGNALS = 64 };
  hsa_signal_t signals[SIGNALS];
  hsa_queue_t *queue = queue_of(256, HSA_QUEUE_TYPE_MULTI);
  for (int i = 0; i < SIGNALS; i++) signals[i] = signal_of(1);
  for (int i = 0; i < 64 * 40; i++) {
    hsa_signal_t signal = signals[i % SIGNALS];
    if (i >= SIGNALS) {
      wait_for(signal);
      arm(signal, i % 2);
    }
    submit(queue, signal, 1, 0);
  }
  for (int i = 0; i < SIGNALS; i++) {
    wait_for(signals[i]);
    OK(hsa_signal_destroy, signals[i]);
  }
  OK(hsa_queue_destroy, queue);
}

// One signal counts eight kernels; kernels without signals fill the queue; the last one's end is waited for, and the
// queue destroyed at once.
static void counting_and_none(void) {
  hsa_queue_t *queue = queue_of(128, HSA_QUEUE_TYPE_MULTI);
  hsa_signal_t many = signal_of(0), last = signal_of(1);
  for (int i = 0; i < 50; i++) {
    VALUE(hsa_signal_store_relaxed, many, 8);
    for (int k = 0; k < 8; k++) submit(queue, many, k + 1, 1);
    wait_for(many);
  }
  for (int i = 0; i < 1000; i++) submit(queue, none, i % 5 + 1, i & 1);
  submit(queue, last, 1, 1);
  wait_for(last);
  OK(hsa_queue_destroy, queue);
  OK(hsa_signal_destroy, many);
  OK(hsa_signal_destroy, last);
}

// Three thousand signals at once: the driver has 4096 events for a process.
static void many_signals(void) {
  enum { MANY = 3000 };
  static hsa_signal_t signals[MANY];
  hsa_queue_t *queue = queue_of(4096, HSA_QUEUE_TYPE_MULTI);
  for (int i = 0; i < MANY; i++) signals[i] = signal_of(1);
  for (int i = 0; i < MANY; i++) submit(queue, signals[i], i % 3 + 1, 0);
  for (int i = 0; i < MANY; i++) {
    wait_for(signals[i]);
    judge(signals[i]);
    OK(hsa_signal_destroy, signals[i]);
  }
  OK(hsa_queue_destroy, queue);
}

static void copies(void) {
  hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
  hsa_signal_t one = signal_of(1), two = signal_of(1), many = signal_of(0);
  hsa_amd_profiling_async_copy_time_t time;
  typedef hsa_status_t (*on_engine)(void *, hsa_agent_t, const void *, hsa_agent_t, size_t, uint32_t, const hsa_signal_t *,
                                    hsa_signal_t, int, bool);
  on_engine engine = (on_engine)dlsym(RTLD_DEFAULT, "hsa_amd_memory_async_copy_on_engine");
  for (int i = 0; i < 40; i++) {
    OK(hsa_amd_memory_async_copy, device, gpu, memory, cpu, 100 * (i + 1), 0, NULL, one);
    // A kernel waits for the copy, a copy for the kernel.
    uint64_t index = VALUE(hsa_queue_add_write_index_relaxed, queue, 2);
    put_barrier(queue, index, HSA_PACKET_TYPE_BARRIER_AND, one, none, none);
    put_kernel(queue, index + 1, two, 1, 1);
    ring(queue, index + 1);
    VALUE(hsa_signal_store_relaxed, many, 4);
    for (int k = 0; k < 4; k++)
      OK(hsa_amd_memory_async_copy, memory + 4096 * k, cpu, device + 4096 * k, gpu, 33 * (i + 1) + k, 1, &two, many);
    wait_for(many);
    wait_for(one);
    judge(two);
    OK(hsa_amd_profiling_get_async_copy_time, one, &time);
    if (time.end <= time.start) atomic_fetch_add(&wrong, 1);
    OK(hsa_amd_profiling_get_async_copy_time, many, &time);
    if (time.end <= time.start) atomic_fetch_add(&wrong, 1);
    arm(one, i);
    arm(two, i + 2);
    hsa_pitched_ptr_t to = {device, 256, 4096}, from = {memory, 512, 8192};
    hsa_dim3_t zero = {0, 0, 0}, box = {64, 1, 1};
    OK(hsa_amd_memory_async_copy_rect, &to, &zero, &from, &zero, &box, gpu, hsaHostToDevice, 0, NULL, one);
    wait_for(one);
    arm(one, i + 3);
    if (engine) {
      COUNT("hsa_amd_memory_async_copy_on_engine");
      check(engine(device, gpu, memory, cpu, 1000 + i, 0, NULL, one, 1, true), "on_engine", __LINE__);
      wait_for(one);
      arm(one, i + 4);
    }
  }
  OK(hsa_signal_destroy, one);
  OK(hsa_signal_destroy, two);
  OK(hsa_signal_destroy, many);
  OK(hsa_queue_destroy, queue);
}

// Copies and fills without signals, of memory that HSA knows and that it does not: each call is reported to APP_MEMORY.
static void blocking(void) {
  enum { BYTES = 300000 };
  unsigned *own = malloc(BYTES), *back = malloc(BYTES);
  for (int i = 0; i < BYTES / 4; i++) own[i] = i * 7;
  for (int i = 0; i < 5; i++) {
    size_t bytes = BYTES >> i;
    OK(hsa_memory_copy, device, own, bytes);
    report_of("hsa_memory_copy", bytes, "H2D");
    OK(hsa_memory_copy, device + MEMORY / 2, device, bytes);
    report_of("hsa_memory_copy", bytes, "D2D");
    OK(hsa_memory_copy, back, device + MEMORY / 2, bytes);
    report_of("hsa_memory_copy", bytes, "D2H");
    if (memcmp(own, back, bytes)) fail("what came back is not what was copied", __LINE__);
    OK(hsa_memory_copy, memory, own, bytes);
    report_of("hsa_memory_copy", bytes, "H2H");
    OK(hsa_amd_memory_fill, device, 0x01020304 + i, bytes / 4);
    report_of("hsa_amd_memory_fill", bytes / 4 * 4, "fill");
    OK(hsa_memory_copy, back, device, 4);
    report_of("hsa_memory_copy", 4, "D2H");
    if (*back != 0x01020304u + i) fail("not filled", __LINE__);
  }
  // Nothing to do, and refused: neither copies.
  OK(hsa_memory_copy, device, own, 0);
  if (VALUE(hsa_amd_memory_fill, (char *)device + 1, 0, 1) == HSA_STATUS_SUCCESS) fail("an odd address was filled", __LINE__);
  free(own);
  free(back);
}

static void alone(void) {
  hsa_signal_t done = signal_of(1);
  for (int i = 0; i < 100; i++) {
    OK(hsa_amd_memory_async_copy, device, gpu, memory, cpu, 1000 + i, 0, NULL, done);
    wait_for(done);
    arm(done, 0);
  }
  OK(hsa_signal_destroy, done);
}

static void on_alarm(int number) { _exit(7); }

static void leave(long microseconds) {
  hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
  hsa_signal_t done = signal_of(1);
  for (int i = 0; i < 300; i++) {
    submit(queue, done, i % 5 + 1, 1);
    wait_for(done);
    if (i < 299) arm(done, 0);
  }
  signal(SIGALRM, on_alarm);
  struct itimerval soon = {.it_value = {.tv_usec = microseconds}};
  setitimer(ITIMER_REAL, &soon, NULL);
  hsa_amd_profiling_dispatch_time_t time;
  for (;;) {
    submit(queue, none, 1, 1);
    for (int i = 0; i < 100; i++) hsa_amd_profiling_get_dispatch_time(gpu, done, &time);
  }
}

// Kernels in clusters, by vendor packets of format 3: without a signal, with one, and with one that counts; among plain ones.
struct extended {
  uint16_t header;
  uint8_t format, setup;
  uint16_t workgroup[3], reserved;
  uint32_t clusters_x;
  uint16_t clusters_y, clusters_z;
  uint8_t size[3], hint;
  uint32_t private_size, group_size;
  uint64_t kernel;
  void *arguments;
  hsa_signal_t before, done;
};

static void put_extended(hsa_queue_t *queue, uint64_t index, hsa_signal_t before, hsa_signal_t done, int clusters) {
  struct extended *packet = place(queue, index);
  memset((char *)packet + 4, 0, 60);
  packet->workgroup[0] = 64;
  packet->workgroup[1] = 2;
  packet->workgroup[2] = 1;
  packet->clusters_x = clusters;
  packet->clusters_y = 3;
  packet->clusters_z = clusters % 2 + 1;
  packet->size[0] = 4;
  packet->size[1] = clusters % 3 + 1;
  packet->size[2] = 1;
  packet->group_size = 256;
  packet->kernel = kernel[clusters & 1];
  packet->arguments = memory;
  packet->before = before;
  packet->done = done;
  publish(packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC, 1, 3 | 3 << 8);
  atomic_fetch_add(&kernels, 1);
}

static void extended_in(hsa_queue_type32_t type) {
  hsa_queue_t *queue = queue_of(256, type);
  hsa_signal_t done = signal_of(1), many = signal_of(0);
  // The processor of a cooperative queue may run a packet before the collector reads it, so each has a signal there.
  bool is_observed = type == HSA_QUEUE_TYPE_COOPERATIVE;
  for (int i = 0; i < 60; i++) {
    uint64_t index = VALUE(hsa_queue_add_write_index_relaxed, queue, is_observed ? 1 : 5);
    if (is_observed) {
      put_extended(queue, index, none, done, i % 7 + 1);
      ring(queue, index);
    } else {
      VALUE(hsa_signal_store_relaxed, many, 2);
      put_kernel(queue, index, none, i % 5 + 1, 1);
      put_extended(queue, index + 1, none, none, i % 7 + 1);
      put_extended(queue, index + 2, none, many, i % 7 + 2);
      put_extended(queue, index + 3, none, many, i % 3 + 1);
      put_extended(queue, index + 4, none, done, i % 4 + 1);
      ring(queue, index + 4);
      wait_for(many);
    }
    wait_for(done);
    judge(done);
    arm(done, is_observed ? i % 2 : i);
  }
  OK(hsa_signal_destroy, done);
  OK(hsa_signal_destroy, many);
  OK(hsa_queue_destroy, queue);
}

static void *newer(const char *name) {
  void *function = dlsym(RTLD_DEFAULT, name);
  if (!function) fail(name, __LINE__);
  return function;
}

#define NEWER(name, type, ...) \
  check(({ COUNT(#name); ((hsa_status_t(*) type)newer(#name))(__VA_ARGS__); }), #name, __LINE__)

static void some_kernels(hsa_queue_t *queue, int count) {
  hsa_signal_t done = signal_of(1);
  for (int i = 0; i < count; i++) {
    submit(queue, done, i % 5 + 1, 1);
    wait_for(done);
    judge(done);
    arm(done, i % 2);
  }
  OK(hsa_signal_destroy, done);
}

static void counted(void) {
  typedef void (*callback)(hsa_status_t, hsa_queue_t *, void *);
  hsa_queue_t *queues[3];
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < 3; i++) {
      NEWER(hsa_amd_counted_queue_acquire, (hsa_agent_t, int, int, callback, void *, uint64_t, hsa_queue_t **), gpu,
            HSA_QUEUE_TYPE_MULTI, HSA_AMD_QUEUE_PRIORITY_NORMAL, NULL, NULL, 0, queues + i);
      OK(hsa_amd_profiling_set_profiler_enabled, queues[i], 1);
      some_kernels(queues[i], 20);
    }
    // Two share one queue: the other goes on using it.
    for (int i = 0; i < 3; i++) {
      if (i < 2) some_kernels(queues[2], 10);
      NEWER(hsa_amd_counted_queue_release, (hsa_queue_t *), queues[i]);
    }
  }
}

struct operation {
  uint16_t version, type, entries, traffic_class;
  hsa_signal_t done;
  void *src;
  hsa_agent_t src_agent;
  void *dst_agent;
  void *dst;
  size_t size, more;
  char rest[96];
};

static void batch(long distance) {
  enum { ENTRIES = 24, BYTES = 512 };
  hsa_signal_t done = signal_of(1);
  void *from[ENTRIES], *to[ENTRIES];
  hsa_agent_t agents[ENTRIES];
  size_t sizes[ENTRIES];
  for (int i = 0; i < ENTRIES; i++) {
    from[i] = memory + i * BYTES;
    to[i] = device + i * BYTES;
    agents[i] = gpu;
    sizes[i] = BYTES;
  }
  struct operation list = {.version = 1, .entries = ENTRIES, .done = done, .src = from, .src_agent = cpu, .dst_agent = agents, .dst = to};
  list.size = (size_t)sizes;
  struct operation both[2] = {{.version = 1, .src = device, .src_agent = gpu, .dst = memory, .size = 3000}};
  both[0].dst_agent = (void *)cpu.handle;
  both[1] = both[0];
  both[1].size = 5000;
#define BATCH(operations, count) \
  NEWER(hsa_amd_memory_async_batch_copy, (void *, uint32_t, uint32_t, const hsa_signal_t *), operations, count, 0, NULL)
  for (int i = 0; i < 10; i++) {
    BATCH(&list, 1);
    wait_for(done);
    arm(done, i % 6);
    both[0].done = done;
    BATCH(both, 1);
    wait_for(done);
    arm(done, (i + 1) % 6);
  }
  // Two operations count one signal down.
  hsa_signal_t two = signal_of(2);
  both[0].done = both[1].done = two;
  char room[sizeof both] = {0};
  if (!distance) distance = sizeof *both;
  for (int i = 0; i < 2; i++) memcpy(room + i * distance, &both[i], distance);
  BATCH(room, 2);
  wait_for(two);
  OK(hsa_signal_destroy, two);
  OK(hsa_signal_destroy, done);
}

struct descriptor {
  uint16_t version, flags;
  uint8_t engine, reserved0[3];
  uint32_t bytes, priority;
  void (*callback)(hsa_status_t, hsa_queue_t *, void *);
  void *data;
  hsa_queue_t *queue;
  const uint32_t *mask;
  uint32_t type, scratch, bits, reserved1[3], traffic_class, reserved2[5];
};

static void described(void) {
  uint32_t mask[] = {0x0f};
  struct descriptor all[3] = {
      {.version = 1, .bytes = 256 * 64, .priority = HSA_AMD_QUEUE_PRIORITY_NORMAL, .type = HSA_QUEUE_TYPE_MULTI, .scratch = -1},
      {.version = 1, .bytes = 64 * 64, .priority = HSA_AMD_QUEUE_PRIORITY_HIGH, .type = HSA_QUEUE_TYPE_SINGLE, .scratch = -1},
      // In the device's memory: not one for interception.
      {.version = 1, .flags = 1, .bytes = 64 * 64, .priority = HSA_AMD_QUEUE_PRIORITY_NORMAL, .scratch = -1},
  };
  all[1].mask = mask;
  all[1].bits = 32;
  NEWER(hsa_amd_queue_create, (hsa_agent_t, void *, uint32_t), gpu, all, 3);
  for (int i = 0; i < 3; i++) {
    if (!all[i].queue || all[i].queue->size != all[i].bytes / 64) fail("a queue is another one", __LINE__);
    OK(hsa_amd_profiling_set_profiler_enabled, all[i].queue, 1);
    some_kernels(all[i].queue, i < 2 ? 30 : 0);
    OK(hsa_queue_destroy, all[i].queue);
  }
}

typedef struct {
  uint64_t handle;
} vmem_handle;

// Virtual memory, where there is some: held until it is released and unmapped.
static void virtual_memory(void) {
  hsa_status_t (*reserve)(void **, size_t, uint64_t, uint64_t) = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_address_reserve");
  hsa_status_t (*address_free)(void *, size_t) = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_address_free");
  hsa_status_t (*create)(hsa_amd_memory_pool_t, size_t, int, uint64_t, vmem_handle *) =
      dlsym(RTLD_DEFAULT, "hsa_amd_vmem_handle_create");
  hsa_status_t (*release)(vmem_handle) = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_handle_release");
  hsa_status_t (*map)(void *, size_t, size_t, vmem_handle, uint64_t) = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_map");
  hsa_status_t (*unmap)(void *, size_t) = dlsym(RTLD_DEFAULT, "hsa_amd_vmem_unmap");
  if (!reserve || !address_free || !create || !release || !map || !unmap) return;
  const size_t bytes = 4 << 20;
  vmem_handle handle;
  void *base;
#define BY_NAME(function, name, ...) (COUNT_EXPRESSION(name), check(function(__VA_ARGS__), name, __LINE__))
#define COUNT_EXPRESSION(text) ({ COUNT(text); })
  BY_NAME(reserve, "hsa_amd_vmem_address_reserve", &base, bytes, 0, 0);
  BY_NAME(create, "hsa_amd_vmem_handle_create", local, bytes, 1, 0, &handle);
  report("hsa_amd_vmem_handle_create", bytes, bytes);
  BY_NAME(map, "hsa_amd_vmem_map", base, bytes, 0, handle, 0);
  report("hsa_amd_vmem_map", bytes, 0);
  BY_NAME(release, "hsa_amd_vmem_handle_release", handle);
  report("hsa_amd_vmem_handle_release", bytes, 0);
  BY_NAME(unmap, "hsa_amd_vmem_unmap", base, bytes);
  report("hsa_amd_vmem_unmap", bytes, -(long long)bytes);
  BY_NAME(address_free, "hsa_amd_vmem_address_free", base, bytes);
}

// What two cheap calls cost, ns: the minimum and the median over blocks, as launch_loop prints them.
static int by_size(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

static void cost(void) {
  enum { BLOCKS = 40, CALLS = 1000 };
  hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
  double took[BLOCKS];
  uint64_t ticks = 0;
  printf("what,calls,min_ns,median_ns\n");
  for (int which = 0; which < 2; which++) {
    for (int block = 0; block < BLOCKS; block++) {
      struct timespec from, to;
      clock_gettime(CLOCK_MONOTONIC, &from);
      for (int i = 0; i < CALLS; i++) {
        if (which) hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &ticks);
        else ticks += hsa_queue_load_read_index_relaxed(queue);
      }
      clock_gettime(CLOCK_MONOTONIC, &to);
      took[block] = ((to.tv_sec - from.tv_sec) * 1e9 + (to.tv_nsec - from.tv_nsec)) / CALLS;
    }
    qsort(took, BLOCKS, sizeof *took, by_size);
    const char *name = which ? "hsa_system_get_info" : "hsa_queue_load_read_index";
    printf("%s,%d,%.1f,%.1f\n", name, BLOCKS * CALLS, took[0], took[BLOCKS / 2]);
  }
  OK(hsa_queue_destroy, queue);
}

static void run(const char *program, const char *mode, long microseconds) {
  OK(hsa_init);
  gpu.handle = 0;
  OK(hsa_iterate_agents, agent, NULL);
  OK(hsa_amd_agent_iterate_memory_pools, cpu, pool, NULL);
  OK(hsa_amd_agent_iterate_memory_pools, gpu, pool, (void *)1);
  OK(hsa_agent_iterate_regions, gpu, find_region, NULL);
  OK(hsa_amd_profiling_async_copy_enable, 1);
  OK(hsa_amd_memory_pool_allocate, host, MEMORY, 0, (void **)&memory);
  report_of("hsa_amd_memory_pool_allocate", MEMORY, "cpu");
  OK(hsa_amd_agents_allow_access, 1, &gpu, NULL, memory);
  OK(hsa_amd_memory_pool_allocate, local, MEMORY, 0, (void **)&device);
  report("hsa_amd_memory_pool_allocate", MEMORY, MEMORY);
  void *more;
  OK(hsa_memory_allocate, region, MEMORY / 2, &more);
  report("hsa_memory_allocate", MEMORY / 2, MEMORY / 2);
  memset(memory, 0, MEMORY);
  load(program);
  if (*mode) {
    if (!strcmp(mode, "overlap")) independent();
    else if (!strcmp(mode, "cost")) cost();
    else if (!strcmp(mode, "copies")) alone();
    else if (!strcmp(mode, "leave")) leave(microseconds);
    else if (!strcmp(mode, "oversized")) oversized();
    else if (!strcmp(mode, "extended")) extended_in(HSA_QUEUE_TYPE_MULTI), extended_in(HSA_QUEUE_TYPE_COOPERATIVE);
    else if (!strcmp(mode, "counted")) counted();
    else if (!strcmp(mode, "batch")) batch(microseconds);
    else if (!strcmp(mode, "described")) described();
    else blocking();
    OK(hsa_shut_down);
    return;
  }
  rotating();
  portions();
  large_portions();
  reserved_first();
  whole_ring();
  oversized();
  held_back();
  late_doorbell();
  counting_and_none();
  many_signals();
  copies();
  virtual_memory();
  OK(hsa_executable_destroy, executable);
  OK(hsa_memory_free, more);
  report("hsa_memory_free", MEMORY / 2, -(MEMORY / 2));
  OK(hsa_amd_memory_pool_free, memory);
  report_of("hsa_amd_memory_pool_free", MEMORY, "cpu");
  OK(hsa_amd_memory_pool_free, device);
  report("hsa_amd_memory_pool_free", MEMORY, -MEMORY);
  OK(hsa_shut_down);
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "1";
  bool is_mode = *word < '0' || *word > '9';
  int rounds = is_mode ? 1 : atoi(word);
  const char *path = getenv("APP_MEMORY");
  lines = path ? fopen(path, "w") : NULL;
  for (int i = 0; i < rounds; i++) run(argv[0], is_mode ? word : "", argc > 2 ? atol(argv[2]) : 0);
  if (lines) fclose(lines);
  write_counts();
  printf("raw_hsa: rounds %d, kernels %ld, wrong times %ld\n", rounds, (long)kernels, (long)wrong);
  return 0;
}
