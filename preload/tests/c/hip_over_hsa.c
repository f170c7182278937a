// A program of two HIP functions and, as a library with -DLIBRARY, the HIP that makes them of HSA calls.
#ifdef LIBRARY
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <string.h>

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t host;
static hsa_queue_t *queue;
static hsa_signal_t done;
static char *memory;

static hsa_status_t agent(hsa_agent_t a, void *data) {
  hsa_device_type_t type;
  hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
  *(type == HSA_DEVICE_TYPE_GPU ? &gpu : &cpu) = a;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t pool(hsa_amd_memory_pool_t p, void *data) {
  uint32_t flags = 0;
  hsa_amd_memory_pool_get_info(p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags);
  if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED) host = p;
  return HSA_STATUS_SUCCESS;
}

static void start(void) {
  if (queue) return;
  hsa_init();
  hsa_iterate_agents(agent, 0);
  hsa_amd_agent_iterate_memory_pools(cpu, pool, 0);
  hsa_amd_memory_pool_allocate(host, 1 << 16, 0, (void **)&memory);
  hsa_amd_agents_allow_access(1, &gpu, 0, memory);
  hsa_signal_create(1, 0, 0, &done);
  hsa_queue_create(gpu, 256, HSA_QUEUE_TYPE_MULTI, 0, 0, 0, 0, &queue);
}

static int finish(void) {
  return hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, -1, HSA_WAIT_STATE_BLOCKED) != 0;
}

int hipMemcpy(void *dst, const void *src, size_t size, int kind) {
  start();
  hsa_signal_store_relaxed(done, 1);
  if (hsa_amd_memory_async_copy(memory, cpu, memory + 4096, gpu, size, 0, 0, done)) return 1;
  return finish();
}

int hipLaunchKernel(const void *f, uint64_t a, uint64_t b, uint64_t c, uint64_t d, void **args, size_t shared, void *s) {
  start();
  hsa_signal_store_relaxed(done, 1);
  uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  hsa_kernel_dispatch_packet_t *packet = (hsa_kernel_dispatch_packet_t *)queue->base_address + (index & (queue->size - 1));
  memset((char *)packet + 4, 0, 60);
  packet->workgroup_size_x = packet->workgroup_size_y = packet->workgroup_size_z = 1;
  packet->grid_size_x = packet->grid_size_y = packet->grid_size_z = 1;
  packet->kernel_object = (uint64_t)memory;
  packet->completion_signal = done;
  uint32_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << 9 | 1 << 11 | 1 << 16;
  __atomic_store_n((uint32_t *)packet, header, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, index);
  return finish();
}
#else
#include <stdio.h>
int hipMemcpy(void *dst, const void *src, unsigned long size, int kind);
int hipLaunchKernel(const void *f, ...);

int main(void) {
  int wrong = 0;
  for (int i = 0; i < 3; i++) wrong += hipMemcpy(0, 0, 256 << i, 0);
  for (int i = 0; i < 5; i++) wrong += hipLaunchKernel(main, 1UL, 1UL, 1UL, 1UL, (void *)0, 0UL, (void *)0);
  printf("wrong %d\n", wrong);
  return 0;
}
#endif
