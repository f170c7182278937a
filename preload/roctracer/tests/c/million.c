/* A million calls, each with callbacks and a record: none is lost. Prints the cost of a call, ns: with an empty
 * run-time callback; with the library and a program's callback; with a record; with both. */
#include <stdatomic.h>
#include <time.h>

#include "check.h"
#include "fake_hip.h"
#include "roctracer.h"

enum { CALLS = 1000000 };

void hipRegisterTracerCallback(int (*function)(uint32_t domain, uint32_t op, void* data));

static uint64_t called, recorded, last_id, out_of_order;

static void on_call(uint32_t domain, uint32_t op, const void* data, void* arg) {
  (void)domain, (void)op, (void)data, (void)arg;
  called++;
}

static void on_buffer(const char* begin, const char* end, void* arg) {
  (void)arg;
  const activity_record_t* record = (const activity_record_t*)begin;
  while (record < (const activity_record_t*)end) {
    recorded++;
    if (record->correlation_id <= last_id) out_of_order++;
    last_id = record->correlation_id;
    roctracer_next_record(record, &record);
  }
}

/* The least that a tool of the run-time's interface does: it requests the call, and does nothing. */
static int empty(uint32_t domain, uint32_t op, void* data) {
  (void)domain, (void)op;
  uint64_t* tail = (uint64_t*)((char*)data + 1520);
  *(uint64_t*)data = 1;
  tail[2] = tail[3] = 0;
  return 0;
}

static double cost(void) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < CALLS; i++) fake_call(1 + i % 10, 0, NULL);
  clock_gettime(CLOCK_MONOTONIC, &end);
  return ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / CALLS;
}

int main(void) {
  roctracer_properties_t p = {0};
  p.buffer_size = 1 << 20;
  p.buffer_callback_fun = on_buffer;
  const double none = cost();
  hipRegisterTracerCallback(empty);
  const double empty_cost = cost();
  hipRegisterTracerCallback(NULL);
  GIVES(SUCCESS, roctracer_open_pool(&p));
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  const double callback = cost();
  CHECK(called == 2 * CALLS);
  GIVES(SUCCESS, roctracer_disable_domain_callback(ACTIVITY_DOMAIN_HIP_API));
  GIVES(SUCCESS, roctracer_enable_domain_activity(ACTIVITY_DOMAIN_HIP_API));
  const double record = cost();
  GIVES(SUCCESS, roctracer_flush_activity());
  CHECK(recorded == CALLS && out_of_order == 0);
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  const double both = cost();
  GIVES(SUCCESS, roctracer_close_pool());
  CHECK(called == 4 * CALLS && recorded == 2 * CALLS && out_of_order == 0);
  GIVES(SUCCESS, roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HIP_API, on_call, NULL));
  GIVES(SUCCESS, roctracer_disable_callback());
  printf("a call: untraced %.1f ns, empty %.1f ns, callback %.1f ns, record %.1f ns, both %.1f ns\n", none, empty_cost,
         callback, record, both);
  return 0;
}
