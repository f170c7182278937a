// A tool of HSA that answers for the run-time. Preloaded, and named in HSA_TOOLS_LIB, it gets the tables before the collector does.
//
//   HSA_ANSWERS_COUNTER=HERTZ   the declared frequency of a GPU's counter, which 5.2.3 does not report
//   HSA_ANSWERS_BUILD=TEXT      the run-time's build; with `-` there is none
//   HSA_ANSWERS_NAME=TEXT       the name of the GPUs
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SYSTEM_GET_INFO = 2, AGENT_GET_INFO = 6, BUILD = 0x200, COUNTER_FREQUENCY = 0xa016 };

struct table {
  uint32_t major, size, step, reserved;
  void *entries[];
};
struct root {
  uint32_t major, size, step, reserved;
  struct table *core;
};

// In front of the collector, whose priority is 25.
const uint32_t HSA_AMD_TOOL_PRIORITY = 1;

static hsa_status_t (*system_get_info)(int, void *);
static hsa_status_t (*agent_get_info)(hsa_agent_t, int, void *);

static hsa_status_t answer_system(int attribute, void *value) {
  const char *build = getenv("HSA_ANSWERS_BUILD");
  if (attribute != BUILD || !build) return system_get_info(attribute, value);
  if (!strcmp(build, "-")) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *(const char **)value = build;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t answer_agent(hsa_agent_t agent, int attribute, void *value) {
  const char *counter = getenv("HSA_ANSWERS_COUNTER"), *name = getenv("HSA_ANSWERS_NAME");
  hsa_device_type_t type = HSA_DEVICE_TYPE_CPU;
  agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU && attribute == COUNTER_FREQUENCY && counter) {
    *(uint64_t *)value = strtoull(counter, NULL, 10);
    return HSA_STATUS_SUCCESS;
  }
  if (type == HSA_DEVICE_TYPE_GPU && attribute == HSA_AGENT_INFO_NAME && name) {
    strncpy(value, name, 63);
    return HSA_STATUS_SUCCESS;
  }
  return agent_get_info(agent, attribute, value);
}

static void *next(const char *name) {
  static char own;
  Dl_info here, there;
  void *found = dlsym(RTLD_NEXT, name);
  return found && dladdr(&own, &here) && dladdr(found, &there) && here.dli_fbase != there.dli_fbase ? found : NULL;
}

bool OnLoad(struct root *root, uint64_t version, uint64_t failed, const char *const *names) {
  system_get_info = root->core->entries[SYSTEM_GET_INFO];
  agent_get_info = root->core->entries[AGENT_GET_INFO];
  root->core->entries[SYSTEM_GET_INFO] = answer_system;
  root->core->entries[AGENT_GET_INFO] = answer_agent;
  bool (*collector)(void *, uint64_t, uint64_t, const char *const *) = next("OnLoad");
  return !collector || collector(root, version, failed, names);
}

void OnUnload(void) {
  void (*collector)(void) = next("OnUnload");
  if (collector) collector();
}

// Tools that HSA_TOOLS_LIB names come first: this one alone.
__attribute__((constructor)) static void begin(void) {
  Dl_info own;
  if (dladdr((void *)OnLoad, &own)) setenv("HSA_TOOLS_LIB", own.dli_fname, 1);
}
