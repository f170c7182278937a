/* ROC-TX alone: levels, ids, versions, and the callback that libroctracer64 registers. */
#include <pthread.h>
#include <stdint.h>

#include "check.h"
#include "roctracer_roctx.h"

typedef int (*tracer_t)(uint32_t domain, uint32_t op, void* data);
void roctxRegisterTracerCallback(tracer_t tracer);

static struct {
  uint32_t domain, op;
  char message[32];
  roctx_range_id_t id;
} seen[16];
static int count;

static int tracer(uint32_t domain, uint32_t op, void* data) {
  const roctx_api_data_t* call = data;
  CHECK(count < 16);
  seen[count].domain = domain;
  seen[count].op = op;
  seen[count].id = call->args.id;
  snprintf(seen[count].message, sizeof seen[count].message, "%s", call->args.message ? call->args.message : "NULL");
  count++;
  return 0;
}

static int was(int at, uint32_t op, const char* message, roctx_range_id_t id) {
  return seen[at].domain == 6 && seen[at].op == op && seen[at].id == id && strcmp(seen[at].message, message) == 0;
}

static void* another_thread(void* arg) {
  CHECK(roctxRangePop() == -1);
  CHECK(roctxRangePush("separate") == 0);
  roctxRangeStop(*(roctx_range_id_t*)arg);
  return NULL;
}

int main(void) {
  CHECK(roctx_version_major() == ROCTX_VERSION_MAJOR && roctx_version_minor() == ROCTX_VERSION_MINOR);
  /* Without a callback. */
  roctxMark("unheard");
  roctxMark(NULL);
  CHECK(roctxRangePop() == -1 && roctxRangePop() == -1);
  CHECK(roctxRangePush("outer") == 0 && roctxRangePush("inner") == 1 && roctxRangePush(NULL) == 2);
  CHECK(roctxRangePop() == 2 && roctxRangePop() == 1 && roctxRangePop() == 0 && roctxRangePop() == -1);
  roctx_range_id_t first = roctxRangeStart("first"), second = roctxRangeStart("second");
  CHECK(first != 0 && second != 0 && first != second);
  roctxRangeStop(second);

  roctxRegisterTracerCallback(tracer);
  roctxMark("mark");
  CHECK(roctxRangePush("push") == 0 && roctxRangePop() == 0);
  roctx_range_id_t third = roctxRangeStart("start");
  pthread_t thread;
  pthread_create(&thread, NULL, another_thread, &third);
  pthread_join(thread, NULL);
  CHECK(count == 7);
  CHECK(was(0, ROCTX_API_ID_roctxMarkA, "mark", 0));
  CHECK(was(1, ROCTX_API_ID_roctxRangePushA, "push", 0));
  CHECK(was(2, ROCTX_API_ID_roctxRangePop, "NULL", 0));
  CHECK(was(3, ROCTX_API_ID_roctxRangeStartA, "start", third));
  CHECK(was(4, ROCTX_API_ID_roctxRangePop, "NULL", 0));
  CHECK(was(5, ROCTX_API_ID_roctxRangePushA, "separate", 0));
  CHECK(was(6, ROCTX_API_ID_roctxRangeStop, "NULL", third));
  roctxRegisterTracerCallback(NULL);
  roctxMark("unheard again");
  CHECK(count == 7);
  printf("ok\n");
  return 0;
}
