/* See fake_hip.h. As in HIP 6: the structure of a call has 1520 bytes, followed by the tracer's four words. */
#include "fake_hip.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "roctracer.h"

struct call {
  union {
    struct {
      uint64_t correlation;
      uint32_t phase;
      uint64_t argument;
    };
    struct {
      unsigned char arguments[1512];
      uint64_t* phase_data;
    };
  };
  uint64_t enter_timestamp;
  uint64_t phase_word;
  void (*phase_enter)(uint32_t op, struct call* call);
  void (*phase_exit)(uint32_t op, struct call* call);
};
_Static_assert(offsetof(struct call, enter_timestamp) == 1520, "as HIP 6");

typedef int (*tracer_t)(uint32_t domain, uint32_t op, void* data);
static _Atomic(tracer_t) tracer;
static _Thread_local uint64_t correlation;

void hipRegisterTracerCallback(tracer_t function) { tracer = function; }

const char* hipApiName(uint32_t id) {
  static char names[FAKE_CALLS + 1][16];
  /* The numbers have gaps. */
  if (id == 0 || id > FAKE_CALLS || (id > 10 && id <= 20)) return "unknown";
  snprintf(names[id], sizeof names[id], "hipFake%u", id);
  return names[id];
}

const char* hipGetCmdName(uint32_t kind) { return kind == 0x11f0 ? "KernelExecution" : "CopyHostToDevice"; }

void fake_call(uint32_t op, uint64_t argument, void (*inside)(void)) {
  struct call call;
  memset(&call, 0xaa, sizeof call);
  tracer_t function = tracer;
  const int is_traced = function && function(ACTIVITY_DOMAIN_HIP_API, op, &call) == 0;
  if (is_traced) {
    correlation = call.correlation;
    if (call.phase_enter) {
      call.argument = argument;
      call.phase_enter(op, &call);
    }
  }
  if (inside) inside();
  if (is_traced) {
    if (call.phase_exit) call.phase_exit(op, &call);
    correlation = 0;
  }
}

int fake_work(uint32_t op, uint32_t kind, uint64_t begin, uint64_t end, const char* kernel, size_t bytes) {
  tracer_t function = tracer;
  if (!function || function(ACTIVITY_DOMAIN_HIP_OPS, op, NULL) != 0) return 0;
  function(ACTIVITY_DOMAIN_HIP_OPS, op, (void*)1);
  activity_record_t record;
  memset(&record, 0, sizeof record);
  record.domain = ACTIVITY_DOMAIN_HIP_OPS;
  record.kind = kind;
  record.op = op;
  record.correlation_id = correlation;
  record.begin_ns = begin;
  record.end_ns = end;
  record.device_id = 3;
  record.queue_id = 7;
  /* The run-time's text is invalid after the callback. */
  char* text = kernel ? strdup(kernel) : NULL;
  if (kind == 0x11f0) {
    record.kernel_name = text;
  } else {
    record.bytes = bytes;
  }
  function(ACTIVITY_DOMAIN_HIP_OPS, op, &record);
  if (text) {
    memset(text, '#', strlen(text));
    free(text);
  }
  return 1;
}

int fake_is_registered(void) { return tracer != NULL; }
