/* HSA started and ended several times in one process: each time there is a GPU, a queue and a driver that was closed.
 *
 *   restart [TIMES=3]
 */
#include <hsa/hsa.h>
#include <stdio.h>
#include <stdlib.h>

static hsa_agent_t gpu;

static hsa_status_t look(hsa_agent_t agent, void* data) {
  hsa_device_type_t type;
  (void)data;
  const hsa_status_t status = hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU) gpu = agent;
  return status;
}

static void check(int time, const char* what, hsa_status_t status) {
  if (status == HSA_STATUS_SUCCESS) return;
  printf("time %d: %s gives 0x%x\n", time, what, status);
  exit(1);
}

int main(int argc, char** argv) {
  const int times = argc > 1 ? atoi(argv[1]) : 3;
  for (int time = 1; time <= times; time++) {
    hsa_queue_t* queue;
    gpu.handle = 0;
    check(time, "hsa_init", hsa_init());
    check(time, "hsa_iterate_agents", hsa_iterate_agents(look, NULL));
    check(time, "hsa_queue_create",
          hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_SINGLE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    check(time, "hsa_queue_destroy", hsa_queue_destroy(queue));
    check(time, "hsa_shut_down", hsa_shut_down());
  }
  printf("started %d times\n", times);
  return 0;
}
