// Another tool of HSA, as HSA_TOOLS_LIB names one: it makes proxies for the program's queues, and gives each kernel a
// signal. Where a kernel has one already, a barrier packet after it completes the program's signal.
// What it saw is in the file named by OTHER_TOOL: `queues N`, `kernels N`, `completed N`.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Entries by number, as the AMD table moved: 5.2 to 5.4 have 48, 5.6 and later 55 or more.
typedef struct {
  uint32_t major, size, step, reserved;
  void *entry[];
} table;
typedef struct {
  uint32_t version[4];
  table *core, *amd;
} tables;

typedef void (*writer)(const void *, uint64_t);
typedef void (*handler)(const void *, uint64_t, uint64_t, void *, writer);
typedef hsa_status_t (*create)(hsa_agent_t, uint32_t, hsa_queue_type32_t, void (*)(hsa_status_t, hsa_queue_t *, void *), void *,
                               uint32_t, uint32_t, hsa_queue_t **);

static create plain, proxy;
static hsa_status_t (*add_handler)(hsa_queue_t *, handler, void *);
static hsa_status_t (*signal_create)(hsa_signal_value_t, uint32_t, const hsa_agent_t *, hsa_signal_t *);
static hsa_status_t (*signal_destroy)(hsa_signal_t);
static hsa_status_t (*async_handler)(hsa_signal_t, hsa_signal_condition_t, hsa_signal_value_t,
                                     bool (*)(hsa_signal_value_t, void *), void *);
static atomic_ulong queues, kernels, completed;

static bool over(hsa_signal_value_t value, void *data) {
  hsa_signal_t signal = {(uint64_t)data};
  atomic_fetch_add(&completed, 1);
  signal_destroy(signal);
  return false;
}

static void packets(const void *from, uint64_t count, uint64_t index, void *data, writer out) {
  char *all = malloc(128 * count);
  uint64_t used = 0;
  for (uint64_t i = 0; i < count; i++) {
    hsa_kernel_dispatch_packet_t *copy = (hsa_kernel_dispatch_packet_t *)(all + 64 * used++);
    memcpy(copy, (const char *)from + 64 * i, 64);
    hsa_signal_t own, theirs = copy->completion_signal;
    if ((copy->header & 0xff) != HSA_PACKET_TYPE_KERNEL_DISPATCH) continue;
    atomic_fetch_add(&kernels, 1);
    if (signal_create(1, 0, NULL, &own) != HSA_STATUS_SUCCESS) continue;
    copy->completion_signal = own;
    async_handler(own, HSA_SIGNAL_CONDITION_LT, 1, over, (void *)own.handle);
    if (theirs.handle) {
      hsa_barrier_and_packet_t *barrier = (hsa_barrier_and_packet_t *)(all + 64 * used++);
      memset(barrier, 0, 64);
      barrier->header = HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER |
                        HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
      barrier->completion_signal = theirs;
    }
  }
  out(all, used);
  free(all);
}

static hsa_status_t queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                                 void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_size,
                                 uint32_t group_size, hsa_queue_t **queue) {
  // The agent's shared queue cannot be intercepted.
  if (type == HSA_QUEUE_TYPE_COOPERATIVE) return plain(agent, size, type, callback, data, private_size, group_size, queue);
  hsa_status_t status = proxy(agent, size, type, callback, data, private_size, group_size, queue);
  if (status != HSA_STATUS_SUCCESS) return status;
  atomic_fetch_add(&queues, 1);
  return add_handler(*queue, packets, NULL);
}

__attribute__((visibility("default"))) bool OnLoad(tables *root, uint64_t version, uint64_t count, const char *const *names) {
  int moved = root->amd->size < 456 ? 35 : 37;
  plain = (create)root->core->entry[7];
  proxy = (create)root->amd->entry[moved];
  *(void **)&add_handler = root->amd->entry[moved + 1];
  *(void **)&signal_create = root->core->entry[37];
  *(void **)&signal_destroy = root->core->entry[38];
  *(void **)&async_handler = root->amd->entry[7];
  root->core->entry[7] = (void *)queue_create;
  return true;
}

__attribute__((visibility("default"))) void OnUnload(void) {}

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("OTHER_TOOL");
  if (!path || !queues) return;
  FILE *out = fopen(path, "w");
  if (!out) return;
  fprintf(out, "queues %lu\nkernels %lu\ncompleted %lu\n", queues, kernels, completed);
  fclose(out);
}
