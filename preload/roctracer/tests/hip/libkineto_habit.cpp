// Uses the interface as PyTorch's Kineto does: small buffers, arguments kept by the kind of the call, and at the end a wait
// for the GPU and flushes until the record of the last launch arrives.
#include "habit.hpp"

#include <atomic>
#include <unistd.h>

static roctracer_pool_t* pool;
static std::set<uint32_t>* ignored;
static std::atomic<uint64_t> last_launch, last_record;

static void raise_to(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t before = value;
  while (before < to && !value.compare_exchange_weak(before, to)) {
  }
}

static void finish() {
  if (hipDeviceSynchronize() != hipSuccess) counts().add("failed", "hipDeviceSynchronize");
  roctracer_flush_activity_expl(pool);
  for (int patience = 50; last_record < last_launch && --patience;) {
    roctracer_flush_activity_expl(pool);
    usleep(1000);
  }
  if (last_record < last_launch) counts().add("failed", "flush");
  roctracer_stop();
  roctracer_disable_domain_callback(ACTIVITY_DOMAIN_HIP_API);
  roctracer_disable_domain_activity(ACTIVITY_DOMAIN_HCC_OPS);
  roctracer_close_pool_expl(pool);
  counts().write();
}

static void api(uint32_t domain, uint32_t op, const void* callback_data, void*) {
  static bool once = (std::atexit(finish), true);
  if (domain != ACTIVITY_DOMAIN_HIP_API || ignored->count(op) || !once) return;
  const auto* data = (const hip_api_data_t*)callback_data;
  if (data->phase == ACTIVITY_API_PHASE_ENTER) return;
  counts().add("api", roctracer_op_string(domain, op, 0));
  if (is_launch(op, data)) {
    counts().launched(data->correlation_id);
    raise_to(last_launch, data->correlation_id);
  }
  if (const char* kernel = launched_kernel(op, data)) counts().add("launch", kernel);
  switch (op) {
    case HIP_API_ID_hipMalloc:
      counts().add("bytes", data->args.hipMalloc.ptr__val ? "hipMalloc" : "hipMalloc of null", data->args.hipMalloc.size);
      break;
    case HIP_API_ID_hipMemcpy:
      counts().add("bytes", "hipMemcpy", data->args.hipMemcpy.sizeBytes);
      break;
    default:
      break;
  }
}

static void buffer(const char* begin, const char* end, void*) {
  const auto *record = (const roctracer_record_t*)begin, *last = (const roctracer_record_t*)end;
  while (record < last) {
    raise_to(last_record, record->correlation_id);
    counts().add("op", roctracer_op_string(record->domain, record->op, record->kind));
    if (record->kind == kernel_kind || record->kind == task_kind) {
      counts().add("kernel", std::string(record->kernel_name));
      counts().ran(*record);
    }
    roctracer_next_record(record, &record);
  }
}

__attribute__((constructor)) static void start() {
  roctracer_set_properties(ACTIVITY_DOMAIN_HIP_API, nullptr);
  ignored = new std::set<uint32_t>;
  for (const char* name :
       {"hipGetDevice", "hipSetDevice", "hipGetLastError", "__hipPushCallConfiguration", "__hipPopCallConfiguration",
        "hipCtxSetCurrent", "hipEventRecord", "hipEventQuery", "hipGetDeviceProperties", "hipPeekAtLastError",
        "hipModuleGetFunction", "hipEventCreateWithFlags", "hipGetDeviceCount", "hipDevicePrimaryCtxGetState"}) {
    uint32_t op = 0;
    if (roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, name, &op, nullptr) == ROCTRACER_STATUS_SUCCESS) ignored->insert(op);
  }
  roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, api, nullptr);
  for (uint32_t op : *ignored) roctracer_disable_op_callback(ACTIVITY_DOMAIN_HIP_API, op);

  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x1000;
  roctracer_open_pool(&properties);
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x4000;
  properties.buffer_callback_fun = buffer;
  roctracer_open_pool_expl(&properties, &pool);
  roctracer_enable_domain_activity_expl(ACTIVITY_DOMAIN_HCC_OPS, pool);

  // Kineto of 2021 stores its ids in the library.
  activity_correlation_id_t last = 0;
  roctracer_activity_push_external_correlation_id(5);
  roctracer_activity_push_external_correlation_id(7);
  roctracer_activity_pop_external_correlation_id(&last);
  if (last != 7) counts().add("failed", "external id");
  roctracer_activity_pop_external_correlation_id(nullptr);
  roctracer_start();
}
