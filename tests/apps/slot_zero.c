// HSA without HIP. The program relies on the standard's state of a new queue: both indices are 0, so it writes its first packet
// to slot 0 and rings its first doorbell with 0. Nothing else writes packets.
//
//   slot_zero [QUEUES=4]
//
// Prints for each queue its initial indices, and whether its packets completed in order.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PACKETS = 100 };

static hsa_agent_t gpu;

static hsa_status_t agent(hsa_agent_t a, void *data) {
  hsa_device_type_t type;
  (void)data;
  hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU && !gpu.handle) gpu = a;
  return HSA_STATUS_SUCCESS;
}

static void check(hsa_status_t status, const char *what) {
  if (status == HSA_STATUS_SUCCESS) return;
  fprintf(stderr, "%s: status 0x%x\n", what, status);
  exit(1);
}

// A packet without work, at a place that was counted here, not asked for.
static void submit(hsa_queue_t *queue, uint64_t index, hsa_signal_t done) {
  hsa_barrier_and_packet_t *packet = (hsa_barrier_and_packet_t *)queue->base_address + index % queue->size;
  memset((char *)packet + 4, 0, sizeof *packet - 4);
  packet->completion_signal = done;
  uint16_t header = HSA_PACKET_TYPE_BARRIER_AND | 1 << HSA_PACKET_HEADER_BARRIER |
                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  __atomic_store_n((uint32_t *)packet, header, __ATOMIC_RELEASE);
  hsa_queue_store_write_index_screlease(queue, index + 1);
  hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

int main(int argc, char **argv) {
  int queues = argc > 1 ? atoi(argv[1]) : 4;
  check(hsa_init(), "hsa_init");
  check(hsa_iterate_agents(agent, NULL), "hsa_iterate_agents");
  for (int i = 0; i < queues; i++) {
    hsa_queue_t *queue;
    hsa_signal_t done;
    check(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue), "hsa_queue_create");
    check(hsa_signal_create(PACKETS, 0, NULL, &done), "hsa_signal_create");
    printf("queue %d: write index %lu, read index %lu", i, (unsigned long)hsa_queue_load_write_index_scacquire(queue),
           (unsigned long)hsa_queue_load_read_index_scacquire(queue));
    for (uint64_t index = 0; index < PACKETS; index++) {
      // Room: all packets but the last 63 are complete.
      while (hsa_queue_load_read_index_scacquire(queue) + queue->size <= index)
        ;
      submit(queue, index, done);
    }
    hsa_signal_value_t left = hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_EQ, 0, 30000000000, HSA_WAIT_STATE_BLOCKED);
    printf(", %ld of %d packets incomplete\n", (long)left, PACKETS);
    check(hsa_signal_destroy(done), "hsa_signal_destroy");
    check(hsa_queue_destroy(queue), "hsa_queue_destroy");
  }
  check(hsa_shut_down(), "hsa_shut_down");
  return 0;
}
