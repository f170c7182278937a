// Launches, copies and allocates for programs in other languages.
#include "count.hpp"

__global__ void empty() {}

namespace {
int* device = nullptr;
char pinned[256];
}  // namespace

extern "C" {

void launch_kernel() { LAUNCH(empty, 1, 64, 0, 0); }

void allocate() { OK(hipMalloc, &device, 256); }

void launch_copy() { OK(hipMemcpyAsync, pinned, device, 64, hipMemcpyDeviceToHost, nullptr); }

// The caller's function decides what is launched.
void call_back(void (*function)()) { function(); }

void wait_for_all() { OK(hipDeviceSynchronize); }

}
