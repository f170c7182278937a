/* A program that registers first and loads HIP later, as Python does. It is not linked to HIP.
 *
 *   late LIBRARY
 *
 * Prints the number of callbacks of each domain. */
#include <roctracer.h>

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static unsigned came[ACTIVITY_DOMAIN_NUMBER];

static void called(uint32_t domain, uint32_t op, const void* data, void* argument) {
  (void)op, (void)data, (void)argument;
  came[domain]++;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  uint32_t op = 0, kind = 7;
  int status = roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipMalloc", &op, &kind);
  const char* name = roctracer_op_string(ACTIVITY_DOMAIN_HIP_API, op, 0);
  printf("before %d %u %u %s\n", status, op, kind, name ? name : "-");
  status = roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipNothing", &op, NULL);
  name = roctracer_op_string(ACTIVITY_DOMAIN_HIP_API, 100000, 0);
  printf("none %d %s\n", status, name ? name : "-");

  const uint32_t domains[] = {ACTIVITY_DOMAIN_HIP_API, ACTIVITY_DOMAIN_HSA_API, ACTIVITY_DOMAIN_HSA_EVT};
  for (unsigned i = 0; i < sizeof domains / sizeof *domains; i++) {
    if (roctracer_enable_domain_callback(domains[i], called, NULL)) return 1;
  }

  void* hip = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!hip) return fprintf(stderr, "%s\n", dlerror()), 1;
  int (*allocate)(void**, size_t) = (int (*)(void**, size_t))dlsym(hip, "hipMalloc");
  int (*release)(void*) = (int (*)(void*))dlsym(hip, "hipFree");
  if (!allocate || !release) return 1;
  for (int i = 0; i < 10; i++) {
    void* memory;
    if (allocate(&memory, 4096) || release(memory)) return 1;
  }
  status = roctracer_op_code(ACTIVITY_DOMAIN_HIP_API, "hipMalloc", &op, NULL);
  name = roctracer_op_string(ACTIVITY_DOMAIN_HIP_API, op, 0);
  printf("after %d %u %s\n", status, op, name ? name : "-");
  printf("hip %u\nhsa %u\nevents %u\ndone\n", came[ACTIVITY_DOMAIN_HIP_API], came[ACTIVITY_DOMAIN_HSA_API],
         came[ACTIVITY_DOMAIN_HSA_EVT]);
  return 0;
}
