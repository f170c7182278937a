/* The sample of the ROCTracer manual in C, with the call that it names: hipModuleLaunchKernel.
 *
 *   manual_sample_c MODULE KERNEL
 */
#include <roctracer_hip.h>

#include <stdio.h>
#include <string.h>

static unsigned entered, left, recorded;

/* HIP API callback function */
static void hip_api_callback(uint32_t domain, uint32_t cid, const void* callback_data, void* arg) {
  (void)arg;
  (void)domain;
  const hip_api_data_t* data = (const hip_api_data_t*)callback_data;
  fprintf(stdout, "<%s id(%u)\tcorrelation_id(%lu) %s>\n", roctracer_id_string(ACTIVITY_DOMAIN_HIP_API, cid), cid,
          (unsigned long)data->correlation_id, (data->phase == ACTIVITY_API_PHASE_ENTER) ? "on-enter" : "on-exit");
  if (data->phase == ACTIVITY_API_PHASE_ENTER) {
    entered += data->args.hipModuleLaunchKernel.gridDimX == 4;
  } else {
    left++;
  }
}

/* Activity tracing callback */
static void activity_callback(const char* begin, const char* end, void* arg) {
  (void)arg;
  const roctracer_record_t* record = (const roctracer_record_t*)begin;
  const roctracer_record_t* end_record = (const roctracer_record_t*)end;
  fprintf(stdout, "\tActivity records:\n");
  while (record < end_record) {
    const char* name = roctracer_op_string(record->domain, record->activity_id, record->kind);
    fprintf(stdout, "\t%s\tcorrelation_id(%lu) time_ns(%lu:%lu) device_id(%d) stream_id(%lu)\n", name ? name : "-",
            (unsigned long)record->correlation_id, (unsigned long)record->begin_ns, (unsigned long)record->end_ns,
            record->device_id, (unsigned long)record->stream_id);
    recorded++;
    ROCTRACER_CALL(roctracer_next_record(record, &record));
  }
}

int main(int argc, char** argv) {
  hipModule_t module;
  hipFunction_t kernel;
  void* memory;
  if (argc != 3 || hipModuleLoad(&module, argv[1]) || hipModuleGetFunction(&kernel, module, argv[2])) return 2;
  if (hipMalloc(&memory, 4096)) return 2;

  /* Allocating tracing pool */
  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 12;
  properties.buffer_callback_fun = activity_callback;
  ROCTRACER_CALL(roctracer_open_pool(&properties));

  ROCTRACER_CALL(roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, HIP_API_ID_hipModuleLaunchKernel, hip_api_callback,
                                              NULL));
  ROCTRACER_CALL(roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, HIP_API_ID_hipModuleLaunchKernel));
  /* Enable HIP kernel dispatch activity tracing */
  ROCTRACER_CALL(roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, HIP_OP_ID_DISPATCH));

  for (int i = 0; i < 5; i++) {
    void* arguments[] = {&memory, &i};
    if (hipModuleLaunchKernel(kernel, 4, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL)) return 1;
  }
  if (hipDeviceSynchronize() != hipSuccess) return 1;

  /* Disable tracing and close the pool */
  ROCTRACER_CALL(roctracer_disable_callback());
  ROCTRACER_CALL(roctracer_disable_activity());
  ROCTRACER_CALL(roctracer_close_pool());
  printf("entered %u left %u recorded %u\n", entered, left, recorded);
  return !(entered == 5 && left == 5 && recorded == 10);
}
