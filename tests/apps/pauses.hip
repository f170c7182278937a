// Switches the recording off and on by HIP and by ROC-TX, fills a queue meanwhile, and looks up a function while nothing
// is recorded.
//
//   pauses [LAUNCHES=40000]
//
// Calls while the recording is off are not counted. Kernel `hidden` runs only then, `seen` otherwise.
#include "count.hpp"

#include <dlfcn.h>

__global__ void seen(int* p) {
  if (p) p[threadIdx.x]++;
}

__global__ void hidden(int* p) {
  if (p) p[threadIdx.x]--;
}

static int* data;
static hipStream_t stream;

static void work(int count) {
  for (int i = 0; i < count; i++) LAUNCH(seen, dim3(1 + i % 3), dim3(64), 0, stream, data);
  OK(hipStreamSynchronize, stream);
}

static void unseen(long count) {
  for (long i = 0; i < count; i++) hidden<<<dim3(2), dim3(64), 0, stream>>>(data);
  app::check(hipStreamSynchronize(stream), "hipStreamSynchronize", __FILE__, __LINE__);
}

// The function of ROC-TX, if any library has it.
static void call(const char* name) {
  auto function = (int (*)(uint64_t))dlsym(RTLD_DEFAULT, name);
  if (function) function(0);
}

int main(int argc, char** argv) {
  long launches = app::arg(argc, argv, 1, 40000);
  OK(hipMalloc, &data, 4096);
  OK(hipStreamCreate, &stream);
  work(100);

  // The call that switches off is recorded, the one that switches on is not.
  CALL(hipProfilerStop, );
  unseen(launches);
#if HIP_VERSION_MAJOR >= 7
  void* found = nullptr;
  app::check(hipGetProcAddress("hipGetDevice", &found, HIP_VERSION_MAJOR * 100, 0, nullptr), "hipGetProcAddress", __FILE__,
             __LINE__);
#else
  void* found = dlsym(RTLD_DEFAULT, "hipGetDevice");
#endif
  (void)hipProfilerStart();
  int device;
  for (int i = 0; i < 10; i++) {
    APP_COUNT("hipGetDevice", 1);
    app::check(((decltype(&::hipGetDevice))found)(&device), "hipGetDevice", __FILE__, __LINE__);
  }
  work(200);

  call("roctxProfilerPause");
  if (dlsym(RTLD_DEFAULT, "roctxProfilerPause")) unseen(50);
  call("roctxProfilerResume");
  work(300);
  OK(hipStreamDestroy, stream);
  OK(hipFree, data);
  std::printf("pauses: launches %ld\n", launches);
  app::finish();
}
