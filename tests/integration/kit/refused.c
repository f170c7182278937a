// A run-time that refuses to make queues for interception, as HSA did on an MI250 (status 4103, rocprofiler issue 119). Preloaded
// and named in HSA_TOOLS_LIB, it gets HSA's tables before all other tools and puts its answer into the one entry; everything else
// is the real run-time's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { INVALID_QUEUE = 4103 };

struct table {
  uint32_t major, size, step, reserved;
  void *entries[];
};
struct root {
  uint32_t major, size, step, reserved;
  struct table *core, *amd;
};

// In front of the collector, whose priority is 25.
const uint32_t HSA_AMD_TOOL_PRIORITY = 1;

static int refuse(void) { return INVALID_QUEUE; }

bool OnLoad(struct root *root, uint64_t version, uint64_t failed, const char *const *names) {
  (void)version, (void)failed, (void)names;
  // hsa_amd_queue_intercept_create: the 38th function since 5.6, whose tables have 456 bytes and more; two before it are newer.
  root->amd->entries[root->amd->size >= 456 ? 37 : 35] = (void *)refuse;
  return true;
}

void OnUnload(void) {}

__attribute__((constructor)) static void begin(void) {
  Dl_info own;
  char *tools, *others = getenv("HSA_TOOLS_LIB");
  if (!others || !dladdr((void *)OnLoad, &own) || asprintf(&tools, "%s %s", own.dli_fname, others) < 0) return;
  setenv("HSA_TOOLS_LIB", tools, 1);
}
