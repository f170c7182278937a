// Queues, signals and copies of HSA without HIP. Prints how many times read from the program's own signals are wrong.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t host, local;
static hsa_queue_t *queue;
static char *memory, *device;
static long wrong;

static void check(hsa_status_t status) {
  if (status == HSA_STATUS_SUCCESS) return;
  printf("status 0x%x\n", status);
  exit(1);
}

static hsa_status_t agent(hsa_agent_t a, void *data) {
  hsa_device_type_t type;
  hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
  *(type == HSA_DEVICE_TYPE_GPU ? &gpu : &cpu) = a;
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

// The kernel is not executed by the emulated GPU: any memory stands for its descriptor.
static void *place(hsa_queue_t *queue, uint64_t index) {
  while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size)
    ;
  void *packet = (char *)queue->base_address + 64 * (index & (queue->size - 1));
  memset((char *)packet + 4, 0, 60);
  return packet;
}

static void put(hsa_queue_t *queue, uint64_t index, hsa_signal_t signal, int groups, int barrier) {
  hsa_kernel_dispatch_packet_t *packet = place(queue, index);
  packet->workgroup_size_x = 64;
  packet->workgroup_size_y = packet->workgroup_size_z = 1;
  packet->grid_size_x = 64 * groups;
  packet->grid_size_y = packet->grid_size_z = 1;
  packet->kernel_object = (uint64_t)memory;
  packet->completion_signal = signal;
  uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH | barrier << 8 | 1 << 9 | 1 << 11 | 1 << 16;
  __atomic_store_n((uint32_t *)packet, header, __ATOMIC_RELEASE);
}

static void submit(hsa_signal_t signal, int groups, int barrier) {
  uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  put(queue, index, signal, groups, barrier);
  hsa_signal_store_screlease(queue->doorbell_signal, index);
}

static void wait_for(hsa_signal_t signal) {
  hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, -1, HSA_WAIT_STATE_BLOCKED);
}

static void judge(uint64_t start, uint64_t end, uint64_t longest) {
  if (end <= start || end - start > longest) wrong++;
}

static void in_place(int count) {
  enum { SIGNALS = 64 };
  hsa_signal_t signals[SIGNALS];
  for (int i = 0; i < SIGNALS; i++) check(hsa_signal_create(1, 0, 0, &signals[i]));
  for (int i = 0; i < count; i++) {
    hsa_signal_t signal = signals[i % SIGNALS];
    if (i >= SIGNALS) {
      wait_for(signal);
      hsa_amd_profiling_dispatch_time_t time = {0, 0};
      check(hsa_amd_profiling_get_dispatch_time(gpu, signal, &time));
      judge(time.start, time.end, 1000000);
      if (i % 3)
        hsa_signal_store_relaxed(signal, 1);
      else
        hsa_signal_silent_store_relaxed(signal, 1);
    }
    submit(signal, i % 7 + 1, 0);
  }
  for (int i = 0; i < SIGNALS; i++) {
    wait_for(signals[i]);
    check(hsa_signal_destroy(signals[i]));
  }
}

static void counting(int rounds) {
  hsa_signal_t signal;
  check(hsa_signal_create(0, 0, 0, &signal));
  for (int i = 0; i < rounds; i++) {
    hsa_signal_store_relaxed(signal, 8);
    for (int k = 0; k < 8; k++) submit(signal, k + 1, 1);
    wait_for(signal);
  }
  check(hsa_signal_destroy(signal));
}

static void none(int count) {
  hsa_signal_t nobody = {0}, signal;
  check(hsa_signal_create(1, 0, 0, &signal));
  for (int i = 0; i < count; i++) submit(nobody, i % 5 + 1, 1);
  submit(signal, 1, 1);
  wait_for(signal);
  check(hsa_signal_destroy(signal));
}

static void copies(int count) {
  hsa_signal_t one, many;
  hsa_amd_profiling_async_copy_time_t time;
  check(hsa_signal_create(1, 0, 0, &one));
  check(hsa_signal_create(1, 0, 0, &many));
  for (int i = 0; i < count; i++) {
    hsa_signal_store_relaxed(one, 1);
    check(hsa_amd_memory_async_copy(device, gpu, memory, cpu, 100 * (i + 1), 0, 0, one));
    wait_for(one);
    check(hsa_amd_profiling_get_async_copy_time(one, &time));
    judge(time.start, time.end, 1000000000);
    hsa_signal_store_relaxed(many, 4);
    for (int k = 0; k < 4; k++)
      check(hsa_amd_memory_async_copy(memory + 4096 * k, cpu, device + 4096 * k, gpu, 33 * (i + 1) + k, 0, 0, many));
    wait_for(many);
    check(hsa_amd_profiling_get_async_copy_time(many, &time));
    judge(time.start, time.end, 1000000000);
  }
  check(hsa_signal_destroy(one));
  check(hsa_signal_destroy(many));
}

// A full queue waits for a signal that this thread stores to after it rang the doorbell.
static void full(int is_counting) {
  hsa_queue_t *small;
  hsa_signal_t start, done, last, nobody = {0};
  check(hsa_signal_create(1, 0, 0, &start));
  check(hsa_signal_create(62, 0, 0, &done));
  check(hsa_signal_create(1, 0, 0, &last));
  check(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, 0, 0, 0, 0, &small));
  uint64_t first = hsa_queue_add_write_index_relaxed(small, small->size);
  hsa_barrier_and_packet_t *packet = place(small, first);
  packet->dep_signal[0] = start;
  uint16_t header = HSA_PACKET_TYPE_BARRIER_AND | 1 << 8 | 1 << 9 | 1 << 11;
  __atomic_store_n((uint16_t *)packet, header, __ATOMIC_RELEASE);
  for (uint32_t i = 1; i < small->size; i++)
    put(small, first + i, i + 1 == small->size ? last : is_counting ? done : nobody, i, 1);
  hsa_signal_store_screlease(small->doorbell_signal, first + small->size - 1);
  hsa_signal_store_screlease(start, 0);
  wait_for(last);
  if (is_counting) wait_for(done);
  check(hsa_queue_destroy(small));
  check(hsa_signal_destroy(start));
  check(hsa_signal_destroy(done));
  check(hsa_signal_destroy(last));
}

// The run-time leaves the signals of empty copies as they are, and refuses copies without a signal.
static void empty_copies(int count) {
  hsa_signal_t one, nobody = {0};
  check(hsa_signal_create(1, 0, 0, &one));
  for (int i = 0; i < count; i++) check(hsa_amd_memory_async_copy(device, gpu, memory, cpu, 0, 0, 0, one));
  if (hsa_signal_load_relaxed(one) != 1) wrong++;
  if (hsa_amd_memory_async_copy(device, gpu, memory, cpu, 64, 0, 0, nobody) == HSA_STATUS_SUCCESS) wrong++;
  check(hsa_signal_destroy(one));
}

// Thousands of copies while one waits for the program.
static void slow_copy(int count) {
  hsa_signal_t start, slow, one;
  check(hsa_signal_create(1, 0, 0, &start));
  check(hsa_signal_create(1, 0, 0, &slow));
  check(hsa_signal_create(1, 0, 0, &one));
  check(hsa_amd_memory_async_copy(device, gpu, memory, cpu, 64, 1, &start, slow));
  for (int i = 0; i < count; i++) {
    hsa_signal_store_relaxed(one, 1);
    check(hsa_amd_memory_async_copy(memory, cpu, device, gpu, 64, 0, 0, one));
    wait_for(one);
  }
  hsa_signal_store_screlease(start, 0);
  wait_for(slow);
  check(hsa_signal_destroy(start));
  check(hsa_signal_destroy(slow));
  check(hsa_signal_destroy(one));
}

// A signal that counted copies, then is that of one: its times are those of the last copy.
static void copy_times(int count) {
  hsa_signal_t signal;
  hsa_amd_profiling_async_copy_time_t time;
  uint64_t newest = 0;
  check(hsa_signal_create(0, 0, 0, &signal));
  for (int i = 0; i < count; i++) {
    int copies = i % 2 ? 1 : 3;
    hsa_signal_store_relaxed(signal, copies);
    for (int k = 0; k < copies; k++) check(hsa_amd_memory_async_copy(device, gpu, memory, cpu, 64, 0, 0, signal));
    wait_for(signal);
    check(hsa_amd_profiling_get_async_copy_time(signal, &time));
    if (time.start <= newest) wrong++;
    newest = time.end;
  }
  check(hsa_signal_destroy(signal));
}

// Copies that nobody waits for: they are under way when the run-time is shut down.
static void open_copies(int count) {
  hsa_signal_t signal;
  for (int i = 0; i < count; i++) {
    check(hsa_signal_create(1, 0, 0, &signal));
    check(hsa_amd_memory_async_copy(device, gpu, memory, cpu, 64, 0, 0, signal));
  }
}

static void run(const char *mode) {
  check(hsa_init());
  check(hsa_iterate_agents(agent, 0));
  check(hsa_amd_agent_iterate_memory_pools(cpu, pool, 0));
  check(hsa_amd_agent_iterate_memory_pools(gpu, pool, (void *)1));
  check(hsa_amd_memory_pool_allocate(host, 1 << 20, 0, (void **)&memory));
  check(hsa_amd_agents_allow_access(1, &gpu, 0, memory));
  check(hsa_amd_memory_pool_allocate(local, 1 << 20, 0, (void **)&device));
  memset(memory, 0, 1 << 20);
  check(hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_MULTI, 0, 0, 0, 0, &queue));
  check(hsa_amd_profiling_set_profiler_enabled(queue, 1));
  check(hsa_amd_profiling_async_copy_enable(1));
  if (!strcmp(mode, "in-place")) in_place(2000);
  if (!strcmp(mode, "counting")) counting(100);
  if (!strcmp(mode, "none")) none(2000);
  if (!strcmp(mode, "copies")) copies(100);
  if (!strcmp(mode, "unprofiled")) check(hsa_amd_profiling_set_profiler_enabled(queue, 0)), none(100);
  if (!strcmp(mode, "full")) full(0);
  if (!strcmp(mode, "full-counting")) full(1);
  if (!strcmp(mode, "empty-copies")) empty_copies(5000), copies(20);
  if (!strcmp(mode, "slow-copy")) slow_copy(5000);
  if (!strcmp(mode, "copy-times")) copy_times(50);
  if (!strcmp(mode, "again")) in_place(200), copies(20);
  if (!strcmp(mode, "open")) in_place(100), copies(5), open_copies(8);
  check(hsa_queue_destroy(queue));
  // What copies still read and write stays.
  if (strcmp(mode, "open")) {
    check(hsa_amd_memory_pool_free(memory));
    check(hsa_amd_memory_pool_free(device));
  }
  check(hsa_shut_down());
}

int main(int argc, char **argv) {
  alarm(100);
  run(argv[1]);
  if (!strcmp(argv[1], "again")) run(argv[1]);
  if (!strcmp(argv[1], "open")) run("again"), run("open"), run("again");
  printf("wrong times %ld\n", wrong);
  return 0;
}
