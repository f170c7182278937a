/* An HSA tool, named by HSA_TOOLS_LIB, that requests HSA's events when HSA starts it. At the end of the program it
 * prints the number of each. */
#include <roctracer_hsa.h>

#include <stdio.h>

static unsigned came[HSA_EVT_ID_NUMBER];

static void called(uint32_t domain, uint32_t op, const void* data, void* argument) {
  (void)domain, (void)data, (void)argument;
  came[op]++;
}

__attribute__((visibility("default"))) _Bool OnLoad(void* table, uint64_t version, uint64_t count, const char* const* names) {
  (void)table, (void)version, (void)count, (void)names;
  printf("status %d\n", roctracer_enable_domain_callback(ACTIVITY_DOMAIN_HSA_EVT, called, NULL));
  return 1;
}

__attribute__((visibility("default"))) void OnUnload(void) {}

__attribute__((destructor)) static void report(void) {
  printf("allocate %u\ndevice %u\ncodeobj %u\n", came[HSA_EVT_ID_ALLOCATE], came[HSA_EVT_ID_DEVICE],
         came[HSA_EVT_ID_CODEOBJ]);
}
