// The manual's MatrixTranspose, rewritten: a program that traces itself in every domain, checks the reports, and prints
// them.
//
//   traced_transpose [ITERATIONS=3]
//
// Lines: `call NAME enters exits records`, `hsa NAME enters exits records`, `kernel NAME begin end correlation`,
// `work KIND begin end correlation`, `copy begin end bytes`, `event NAME count`, `mark OPERATION message`, and `done` at
// the end. An error ends it with a message.
#define HIP_PROF_HIP_API_STRING 1
#include <roctracer_hip.h>

#include <roctracer_ext.h>
#include <roctracer_hsa.h>
#include <roctracer_roctx.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#define WRONG(...) (std::printf(__VA_ARGS__), std::printf("\n"), std::fflush(stdout), std::_Exit(1))
#define HIP(call)                                                                    \
  do {                                                                               \
    if (hipError_t e = (call)) WRONG("%s: %s", #call, hipGetErrorString(e));         \
  } while (0)
#define TRACER(call)                                                                 \
  do {                                                                               \
    if (int s = (call)) WRONG("%s: %d, %s", #call, s, roctracer_error_string());     \
  } while (0)

constexpr int side = 256, threads = 16;
constexpr size_t bytes = sizeof(float) * side * side;

__global__ void transpose(float* out, const float* in, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < n && y < n) out[x * n + y] = in[y * n + x];
}

struct Seen {
  unsigned enters = 0, exits = 0, records = 0;
};

static std::mutex guard;
static std::map<std::string, Seen> calls, hsa_calls;
static std::map<std::string, unsigned> events;
static std::map<uint64_t, uint32_t> operations;
static std::set<uint64_t> external;
static std::vector<std::string> marks;
static std::vector<activity_record_t> work, copies;
static std::map<size_t, std::string> kernels;
static std::set<uint64_t> launches;
static unsigned checked_copies, checked_sizes;

static void on_hip(uint32_t domain, uint32_t op, const void* data, void* arg) {
  auto call = static_cast<const hip_api_data_t*>(data);
  if (domain != ACTIVITY_DOMAIN_HIP_API || arg != &calls) WRONG("domain %u, argument %p", domain, arg);
  const char* name = roctracer_op_string(domain, op, 0);
  std::lock_guard<std::mutex> lock(guard);
  Seen& seen = calls[name];
  if (call->phase == ACTIVITY_API_PHASE_ENTER) {
    seen.enters++;
    if (!operations.emplace(call->correlation_id, op).second) WRONG("two calls have id %lu", call->correlation_id);
  } else {
    seen.exits++;
    auto began = operations.find(call->correlation_id);
    if (began == operations.end() || began->second != op) WRONG("%s ends and did not begin", name);
  }
  if (op == HIP_API_ID_hipMemcpy) {
    if (call->args.hipMemcpy.sizeBytes != bytes) WRONG("hipMemcpy of %zu bytes", call->args.hipMemcpy.sizeBytes);
    checked_copies++;
  } else if (op == HIP_API_ID_hipMalloc && call->phase == ACTIVITY_API_PHASE_ENTER) {
    if (call->args.hipMalloc.size != bytes) WRONG("hipMalloc of %zu bytes", call->args.hipMalloc.size);
    checked_sizes++;
  }
  if (op == HIP_API_ID_hipLaunchKernel) launches.insert(call->correlation_id);
}

static unsigned checked_hsa;
// Text arguments and their expected values: programs read them after the call.
static std::vector<std::pair<const char*, std::string>> texts;

static void on_hsa(uint32_t domain, uint32_t op, const void* data, void*) {
  auto call = static_cast<const hsa_api_data_t*>(data);
  const char* name = roctracer_op_string(domain, op, 0);
  std::lock_guard<std::mutex> lock(guard);
  Seen& seen = hsa_calls[name];
  (call->phase == ACTIVITY_API_PHASE_ENTER ? seen.enters : seen.exits)++;
#if ROCTRACER_CHECKS_NUMBERS
  // The program's headers are those of the run-time: numbers and structures are the same.
  switch (op) {
    case HSA_API_ID_hsa_queue_create:
      if (std::strcmp(name, "hsa_queue_create")) WRONG("%s is hsa_queue_create", name);
      if (call->args.hsa_queue_create.size == 0 || !call->args.hsa_queue_create.queue) WRONG("a queue of nothing");
      if (call->phase == ACTIVITY_API_PHASE_EXIT && call->hsa_status_t_retval == HSA_STATUS_SUCCESS &&
          (*call->args.hsa_queue_create.queue)->size != call->args.hsa_queue_create.size)
        WRONG("a queue of another size");
      checked_hsa++;
      break;
    case HSA_API_ID_hsa_amd_memory_pool_allocate:
      if (std::strcmp(name, "hsa_amd_memory_pool_allocate")) WRONG("%s is hsa_amd_memory_pool_allocate", name);
      if (call->args.hsa_amd_memory_pool_allocate.size == 0 || !call->args.hsa_amd_memory_pool_allocate.ptr)
        WRONG("an allocation of nothing");
      checked_hsa++;
      break;
    case HSA_API_ID_hsa_isa_from_name:
      texts.emplace_back(call->args.hsa_isa_from_name.name, call->args.hsa_isa_from_name.name);
      break;
    case HSA_API_ID_hsa_signal_wait_scacquire:
      if (std::strcmp(name, "hsa_signal_wait_scacquire")) WRONG("%s is hsa_signal_wait_scacquire", name);
      break;
    case HSA_API_ID_hsa_amd_signal_async_handler:
      if (!call->args.hsa_amd_signal_async_handler.handler) WRONG("no handler");
      checked_hsa++;
      break;
    default:
      break;
  }
#endif
}

static void on_event(uint32_t, uint32_t op, const void* data, void*) {
  auto event = static_cast<const hsa_evt_data_t*>(data);
  std::lock_guard<std::mutex> lock(guard);
  std::string name = roctracer_op_string(ACTIVITY_DOMAIN_HSA_EVT, op, 0);
  if (op == HSA_EVT_ID_ALLOCATE) {
    if (!event->allocate.ptr && event->allocate.size) WRONG("nothing was allocated");
    if (!event->allocate.size) name = "FREE";
  } else if (op == HSA_EVT_ID_CODEOBJ) {
    if (!event->codeobj.load_base || !event->codeobj.load_size) WRONG("a code object without a place");
    if (std::strlen(event->codeobj.uri) != event->codeobj.uri_length) WRONG("URI %s", event->codeobj.uri);
    if (event->codeobj.unload) name = "UNLOAD";
  } else if (op == HSA_EVT_ID_DEVICE) {
    if (!event->device.agent.handle || !event->device.ptr) WRONG("a device without an agent or memory");
  }
  events[name]++;
}

static void on_mark(uint32_t, uint32_t op, const void* data, void*) {
  auto mark = static_cast<const roctx_api_data_t*>(data);
  std::lock_guard<std::mutex> lock(guard);
  marks.push_back(std::to_string(op) + " " + (mark->args.message ? mark->args.message : "-"));
}

static void on_records(const char* begin, const char* end, void*) {
  std::lock_guard<std::mutex> lock(guard);
  uint64_t waiting = 0;
  for (auto record = reinterpret_cast<const activity_record_t*>(begin);
       record < reinterpret_cast<const activity_record_t*>(end); roctracer_next_record(record, &record)) {
    if (waiting && record->correlation_id != waiting) WRONG("an external id without its call");
    waiting = 0;
    switch (record->domain) {
      case ACTIVITY_DOMAIN_EXT_API:
        external.insert(record->external_id);
        waiting = record->correlation_id;
        break;
      case ACTIVITY_DOMAIN_HIP_API:
      case ACTIVITY_DOMAIN_HSA_API: {
        if (record->end_ns < record->begin_ns || !record->begin_ns) WRONG("a call of %lu to %lu", record->begin_ns, record->end_ns);
        if (record->process_id != (uint32_t)getpid()) WRONG("a call of process %u", record->process_id);
        auto& map = record->domain == ACTIVITY_DOMAIN_HIP_API ? calls : hsa_calls;
        map[roctracer_op_string(record->domain, record->op, 0)].records++;
        break;
      }
      case ACTIVITY_DOMAIN_HIP_OPS:
        if (record->op == HIP_OP_ID_DISPATCH && record->kernel_name) kernels[work.size()] = record->kernel_name;
        work.push_back(*record);
        break;
      case ACTIVITY_DOMAIN_HSA_OPS:
        copies.push_back(*record);
        break;
      default:
        WRONG("a record of domain %u", record->domain);
    }
  }
}

int main(int argc, char** argv) {
  const unsigned iterations = argc > 1 ? std::atoi(argv[1]) : 3;
  roctracer_properties_t properties{};
  properties.buffer_size = 12 * sizeof(activity_record_t);
  properties.buffer_callback_fun = on_records;
  TRACER(roctracer_open_pool(&properties));
  TRACER(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_hip, &calls));
  TRACER(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HSA_API, on_hsa, nullptr));
  TRACER(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HSA_EVT, on_event, nullptr));
  TRACER(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_ROCTX, on_mark, nullptr));
  TRACER(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  TRACER(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_OPS));
  TRACER(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HSA_API));
  TRACER(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HSA_OPS));

  std::vector<float> in(side * side), out(side * side);
  for (size_t i = 0; i < in.size(); i++) in[i] = float(i * 10);
  float *d_in, *d_out;
  HIP(hipMalloc(reinterpret_cast<void**>(&d_in), bytes));
  HIP(hipMalloc(reinterpret_cast<void**>(&d_out), bytes));
  for (unsigned i = 0; i < iterations; i++) {
    TRACER(roctracer_activity_push_external_correlation_id(1000 + i));
    HIP(hipMemcpy(d_in, in.data(), bytes, hipMemcpyHostToDevice));
    roctxMark("before the launch");
    roctxRangePush("launch");
    hipLaunchKernelGGL(transpose, dim3(side / threads, side / threads), dim3(threads, threads), 0, 0, d_out, d_in, side);
    roctxRangePop();
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(out.data(), d_out, bytes, hipMemcpyDeviceToHost));
    TRACER(roctracer_activity_pop_external_correlation_id(nullptr));
  }
  // A text that is invalid after the call.
  char text[] = "no such architecture";
  hsa_isa_t isa;
  reinterpret_cast<hsa_status_t (*)(const char*, hsa_isa_t*)>(dlsym(RTLD_DEFAULT, "hsa_isa_from_name"))(text, &isa);
  std::memset(text, '#', sizeof text - 1);
  HIP(hipFree(d_in));
  HIP(hipFree(d_out));
  // The next flush delivers the records of completed work, not a later one.
  TRACER(roctracer_flush_activity());
  {
    std::lock_guard<std::mutex> lock(guard);
    size_t done = 0;
    for (auto& record : work) done += record.op == HIP_OP_ID_DISPATCH || record.op == HIP_OP_ID_COPY;
    if (done < 3 * iterations) WRONG("%zu records of work after a flush", done);
  }
  TRACER(roctracer_disable_activity());
  TRACER(roctracer_disable_callback());
  TRACER(roctracer_close_pool());

  if (checked_copies != 4 * iterations || checked_sizes != 2) WRONG("%u copies, %u allocations", checked_copies, checked_sizes);
#if ROCTRACER_CHECKS_NUMBERS
  if (!checked_hsa || texts.size() < 2) WRONG("%u HSA calls and %zu texts were looked at", checked_hsa, texts.size());
  for (auto& text : texts)
    if (text.first != text.second) WRONG("%s has become %s", text.second.c_str(), text.first);
#endif
  for (auto& entry : calls)
    std::printf("call %s %u %u %u\n", entry.first.c_str(), entry.second.enters, entry.second.exits, entry.second.records);
  for (auto& entry : hsa_calls)
    std::printf("hsa %s %u %u %u\n", entry.first.c_str(), entry.second.enters, entry.second.exits, entry.second.records);
  for (size_t i = 0; i < work.size(); i++) {
    auto& record = work[i];
    if (record.correlation_id && !operations.count(record.correlation_id)) WRONG("work of call %lu", record.correlation_id);
    if (record.op == HIP_OP_ID_DISPATCH && record.correlation_id && !launches.count(record.correlation_id))
      WRONG("a dispatch of call %u", operations[record.correlation_id]);
    if (record.op == HIP_OP_ID_DISPATCH)
      std::printf("kernel %s %lu %lu %lu\n", kernels.count(i) ? kernels[i].c_str() : "-", record.begin_ns, record.end_ns,
                  record.correlation_id);
    else
      std::printf("work %s %lu %lu %lu\n", roctracer_op_string(record.domain, record.op, record.kind), record.begin_ns,
                  record.end_ns, record.correlation_id);
  }
  for (auto& record : copies) std::printf("copy %lu %lu %zu\n", record.begin_ns, record.end_ns, record.bytes);
  for (auto& entry : events) std::printf("event %s %u\n", entry.first.c_str(), entry.second);
  for (auto& text : marks) std::printf("mark %s\n", text.c_str());
  for (uint64_t id : external) std::printf("external %lu\n", id);
  std::printf("done\n");
  return 0;
}
