// Uses the interface as rocmProfileData's tracer does: starts HIP and queries HSA's agents first, enables all calls and
// disables some by name, has an unused default pool and one for HIP's work, is stopped until tracing is wanted, counts a
// call at its return, and makes a string of each kernel's name.
#include "habit.hpp"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

static roctracer_pool_t* pool;
static int first_node = 0x7fffffff;

static void api(uint32_t domain, uint32_t op, const void* callback_data, void*) {
  if (domain != ACTIVITY_DOMAIN_HIP_API) return;
  const auto* data = (const hip_api_data_t*)callback_data;
  thread_local uint64_t begin;
  if (data->phase == ACTIVITY_API_PHASE_ENTER) {
    REQUIRE(roctracer_get_timestamp(&begin));
    return;
  }
  uint64_t end;
  REQUIRE(roctracer_get_timestamp(&end));
  counts().add(begin <= end ? "api" : "backwards", roctracer_op_string(ACTIVITY_DOMAIN_HIP_API, op, 0));
  if (is_launch(op, data)) counts().launched(data->correlation_id);
  if (const char* kernel = launched_kernel(op, data)) counts().add("launch", kernel);
}

static void buffer(const char* begin, const char* end, void*) {
  const auto *record = (const roctracer_record_t*)begin, *last = (const roctracer_record_t*)end;
  while (record < last) {
    const char* name = roctracer_op_string(record->domain, record->op, record->kind);
    if (record->op != HIP_OP_ID_BARRIER) {
      counts().add("op", std::string(name));
      if (record->kind == kernel_kind || record->kind == task_kind) {
        counts().add("kernel", std::string(record->kernel_name));
        counts().ran(*record);
        counts().add("gpu", std::to_string(record->device_id));
      }
    }
    roctracer_next_record(record, &record);
  }
}

static void finish() {
  roctracer_stop();
  roctracer_disable_domain_callback(ACTIVITY_DOMAIN_HIP_API);
  roctracer_disable_domain_activity(ACTIVITY_DOMAIN_HIP_API);
  roctracer_disable_domain_activity(ACTIVITY_DOMAIN_HSA_OPS);
  roctracer_flush_activity();
  roctracer_flush_activity_expl(pool);
  pool = nullptr;
  counts().write();
}

__attribute__((constructor)) static void start() {
  int devices = 0;
  if (hipGetDeviceCount(&devices)) return;
  hsa_iterate_agents(
      [](hsa_agent_t agent, void*) {
        int node = 0, kind = 0;
        hsa_agent_get_info(agent, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_DRIVER_NODE_ID, &node);
        hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind);
        if (kind == HSA_DEVICE_TYPE_GPU && node < first_node) first_node = node;
        return HSA_STATUS_SUCCESS;
      },
      nullptr);

  std::set<uint32_t> ignored;
  for (const char* name :
       {"hipGetDevice", "hipSetDevice", "hipGetLastError", "__hipPushCallConfiguration", "__hipPopCallConfiguration",
        "hipCtxSetCurrent", "hipGetDevicePropertiesR0600", "hipGetDeviceCount", "hipDeviceGetAttribute",
        "hipRuntimeGetVersion", "hipPeekAtLastError", "hipModuleGetFunction"}) {
    uint32_t op = 0;
    if (roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, name, &op, nullptr) == ROCTRACER_STATUS_SUCCESS) ignored.insert(op);
  }
  roctracer_set_properties(ACTIVITY_DOMAIN_HIP_API, nullptr);
  roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, api, nullptr);
  for (uint32_t op : ignored) roctracer_disable_op_callback(ACTIVITY_DOMAIN_HIP_API, op);

  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x1000;
  roctracer_open_pool(&properties);
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x40000;
  properties.buffer_callback_fun = buffer;
  roctracer_open_pool_expl(&properties, &pool);
  roctracer_enable_domain_activity_expl(ACTIVITY_DOMAIN_HCC_OPS, pool);
  roctracer_stop();
  roctracer_start();
  std::atexit(finish);
}
