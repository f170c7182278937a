/* The installed headers, included under both paths. */
#include <roctracer/roctracer.h>
#include <roctracer/roctracer_ext.h>
#include <roctracer_roctx.h>
#include <roctx.h>

#include <stdio.h>

int main(void) {
  roctxMark("installed");
  roctracer_start();
  printf("%u.%u\n", roctracer_version_major(), roctx_version_minor());
  return 0;
}
