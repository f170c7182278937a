// The sample of the ROCTracer manual, word for word where it matters: one include, a pool of 12 bytes, the manual's names.
// Only its open parts are filled in.
#include <roctracer_hip.h>

#include <stdio.h>

static unsigned entered, left, recorded;

// HIP API callback function
void hip_api_callback(uint32_t domain, uint32_t cid, const void* callback_data, void* arg) {
  (void)arg;
  (void)domain;
  const hip_api_data_t* data = reinterpret_cast<const hip_api_data_t*>(callback_data);
  fprintf(stdout, "<%s id(%u)\tcorrelation_id(%lu) %s>\n", roctracer_id_string(ACTIVITY_DOMAIN_HIP_API, cid), cid,
          data->correlation_id, (data->phase == ACTIVITY_API_PHASE_ENTER) ? "on-enter" : "on-exit");
  (data->phase == ACTIVITY_API_PHASE_ENTER ? entered : left)++;
}

// Activity tracing callback
void activity_callback(const char* begin, const char* end, void* arg) {
  (void)arg;
  const roctracer_record_t* record = reinterpret_cast<const roctracer_record_t*>(begin);
  const roctracer_record_t* end_record = reinterpret_cast<const roctracer_record_t*>(end);
  fprintf(stdout, "\tActivity records:\n");
  while (record < end_record) {
    const char* name = roctracer_op_string(record->domain, record->activity_id, 0);
    fprintf(stdout, "\t%s\tcorrelation_id(%lu) time_ns(%lu:%lu) device_id(%d) stream_id(%lu)\n", name ? name : "-",
            record->correlation_id, record->begin_ns, record->end_ns, record->device_id, record->stream_id);
    recorded++;
    ROCTRACER_CALL(roctracer_next_record(record, &record));
  }
}

__global__ void kernel() {}

int main() {
  // Allocating tracing pool
  roctracer_properties_t properties{};
  properties.buffer_size = 12;
  properties.buffer_callback_fun = activity_callback;
  ROCTRACER_CALL(roctracer_open_pool(&properties));

  // Enable HIP API callbacks. HIP_API_ID_ANY can be used to trace all HIP API calls.
  ROCTRACER_CALL(roctracer_enable_op_callback(ACTIVITY_DOMAIN_HIP_API, HIP_API_ID_hipLaunchKernel, hip_api_callback, NULL));
  ROCTRACER_CALL(roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_API, HIP_API_ID_hipLaunchKernel));
  // Enable HIP kernel dispatch activity tracing
  ROCTRACER_CALL(roctracer_enable_op_activity(ACTIVITY_DOMAIN_HIP_OPS, HIP_OP_ID_DISPATCH));

  for (int i = 0; i < 5; i++) kernel<<<1, 1>>>();
  if (hipDeviceSynchronize() != hipSuccess) return 1;

  // Disable tracing and close the pool
  ROCTRACER_CALL(roctracer_disable_callback());
  ROCTRACER_CALL(roctracer_disable_activity());
  ROCTRACER_CALL(roctracer_close_pool());
  printf("entered %u left %u recorded %u\n", entered, left, recorded);
  return !(entered == 5 && left == 5 && recorded == 10);
}
