// Uses the interface as TAU does: one default pool, callbacks of HIP and ROC-TX, a kernel's name from its launch, looked up
// when its record arrives, and the end of the program on any status other than 0.
#include "habit.hpp"

static std::mutex mutex;
static std::map<uint64_t, std::string>* names;

static void finish() {
  REQUIRE(roctracer_disable_domain_callback(ACTIVITY_DOMAIN_HIP_API));
  REQUIRE(roctracer_disable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
  REQUIRE(roctracer_flush_activity());
  counts().write();
}

static bool first() {
  uint64_t now = 0;
  REQUIRE(roctracer_get_timestamp(&now));
  if (now == 0) counts().add("failed", "roctracer_get_timestamp");
  std::atexit(finish);
  return true;
}

static void api(uint32_t, uint32_t op, const void* callback_data, void*) {
  static bool is_first = first();
  const auto* data = (const hip_api_data_t*)callback_data;
  const char* name = roctracer_op_string(ACTIVITY_DOMAIN_HIP_API, op, 0);
  if (data->phase == ACTIVITY_API_PHASE_EXIT) return counts().add(is_first ? "api" : "-", name);
  counts().add("entered", name);
  if (is_launch(op, data)) counts().launched(data->correlation_id);
  if (const char* kernel = launched_kernel(op, data)) {
    counts().add("launch", kernel);
    std::lock_guard<std::mutex> held(mutex);
    names->emplace(data->correlation_id, kernel);
  }
}

static void marks(uint32_t domain, uint32_t op, const void* callback_data, void*) {
  if (domain != ACTIVITY_DOMAIN_ROCTX) return;
  const auto* data = (const roctx_api_data_t*)callback_data;
  if (op == ROCTX_API_ID_roctxRangePushA || op == ROCTX_API_ID_roctxRangeStartA) counts().add("range", data->args.message);
}

static void buffer(const char* begin, const char* end, void*) {
  const auto *record = (const roctracer_record_t*)begin, *last = (const roctracer_record_t*)end;
  while (record < last) {
    if (record->domain != ACTIVITY_DOMAIN_HIP_OPS) std::abort();
    counts().add("op", std::string(roctracer_op_string(record->domain, record->op, record->kind)));
    if (record->op == HIP_OP_ID_DISPATCH) {
      counts().ran(*record);
      std::lock_guard<std::mutex> held(mutex);
      auto name = names->find(record->correlation_id);
      counts().add("kernel", name == names->end() ? "-" : name->second);
    }
    REQUIRE(roctracer_next_record(record, &record));
  }
}

__attribute__((constructor)) static void start() {
  names = new std::map<uint64_t, std::string>;
  roctracer_set_properties(ACTIVITY_DOMAIN_HIP_API, nullptr);
  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 65536;
  properties.buffer_callback_fun = buffer;
  REQUIRE(roctracer_open_pool(&properties));
  REQUIRE(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, api, nullptr));
  REQUIRE(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_ROCTX, marks, nullptr));
  REQUIRE(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
}
