/* Registers an HSA operation before HSA starts; then uses HIP.
 *
 *   hsa_first callbacks|callback|events|records|copies
 *
 * Prints the number of callbacks or records. */
#include <roctracer_hip.h>
#include <roctracer_hsa.h>

#include <atomic>
#include <cstdio>
#include <cstring>

#define OK(call)                                                                \
  do {                                                                          \
    int e = (int)(call);                                                        \
    if (e) return fprintf(stderr, "%d: %s gives %d\n", __LINE__, #call, e), 1; \
  } while (0)

static std::atomic<unsigned> came, recorded;

static void called(uint32_t, uint32_t, const void*, void*) { came++; }

static void buffer(const char* begin, const char* end, void*) {
  for (auto* record = (const roctracer_record_t*)begin; (const char*)record < end; roctracer_next_record(record, &record))
    recorded++;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  uint32_t op;
  roctracer_properties_t properties;
  memset(&properties, 0, sizeof properties);
  properties.buffer_size = 0x1000;
  properties.buffer_callback_fun = buffer;
  OK(roctracer_open_pool(&properties));
  if (!strcmp(what, "callbacks")) {
    OK(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HSA_API, called, nullptr));
  } else if (!strcmp(what, "callback")) {
    OK(roctracer_op_code(ACTIVITY_DOMAIN_HSA_API, "hsa_amd_memory_pool_allocate", &op, nullptr));
    OK(roctracer_enable_op_callback(ACTIVITY_DOMAIN_HSA_API, op, called, nullptr));
  } else if (!strcmp(what, "events")) {
    OK(roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HSA_EVT, called, nullptr));
  } else if (!strcmp(what, "records")) {
    OK(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HSA_API));
  } else if (!strcmp(what, "copies")) {
    OK(roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HSA_OPS));
  } else {
    return 2;
  }

  int devices;
  static char bytes[1 << 20];
  void *memory, *pinned;
  OK(hipGetDeviceCount(&devices));
  OK(hipMalloc(&memory, sizeof bytes));
  OK(hipHostMalloc(&pinned, sizeof bytes, 0));
  for (int i = 0; i < 3; i++) OK(hipMemcpy(memory, pinned, sizeof bytes, hipMemcpyHostToDevice));
  OK(hipFree(memory));
  OK(roctracer_close_pool());
  printf("came %u\nrecorded %u\ndone\n", came.load(), recorded.load());
  return 0;
}
