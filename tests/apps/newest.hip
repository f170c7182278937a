// Functions of HIP 7.15 (ROCm 10) and later: batches of copies, execution contexts and their streams, kernel attributes.
//
//   newest batch [ROUNDS=5]     copies of one call to the GPU, back, between host buffers and inside the GPU
//   newest contexts             a green context with a stream and kernels on it
//   newest kernels              attributes of a library's kernels, and a call that fails
//   newest managed              prefetches and discards of managed memory by the batch
//
// On releases before 7.15 the program prints that they have none.
#include "count.hpp"

#include <fstream>
#include <iterator>
#include <vector>

#if HIP_VERSION >= 71500000
__global__ void work(int* p) { p[threadIdx.x] += 1; }
__global__ void other(int* p) { p[threadIdx.x] += 2; }

static constexpr size_t N = 1 << 20;

static void batch(long rounds) {
  // Four each way, and four inside the GPU.
  std::vector<void*> in(4), out(4), a(4), b(4);
  for (int i = 0; i < 4; i++) {
    OK(hipHostMalloc, &in[i], N, hipHostMallocDefault);
    OK(hipHostMalloc, &out[i], N, hipHostMallocDefault);
    OK(hipMalloc, &a[i], N);
    OK(hipMalloc, &b[i], N);
  }
  hipStream_t s;
  OK(hipStreamCreate, &s);
  for (long round = 0; round < rounds; round++) {
    for (int i = 0; i < 4; i++) std::memset(in[i], 16 * (int)round + i + 1, N), std::memset(out[i], 0, N);
    size_t sizes[4] = {N, N / 2, N - 3, 4096}, failed;
    OK(hipMemcpyBatchAsync, a.data(), in.data(), sizes, 4, nullptr, nullptr, 0, &failed, s);
    LAUNCH(work, 1, 64, 0, s, (int*)b[0]);
    OK(hipMemcpyBatchAsync, b.data(), a.data(), sizes, 4, nullptr, nullptr, 0, &failed, s);
    // Both ways in one call: the first two back, the third to the GPU once more.
    void *targets[3] = {out[0], out[1], a[2]}, *sources[3] = {b[0], b[1], in[2]};
    OK(hipMemcpyBatchAsync, targets, sources, sizes, 3, nullptr, nullptr, 0, &failed, s);
    void *rest[2] = {out[2], out[3]}, *from[2] = {b[2], b[3]};
    OK(hipMemcpyBatchAsync, rest, from, sizes + 2, 2, nullptr, nullptr, 0, &failed, s);
    OK(hipStreamSynchronize, s);
    for (int i = 0; i < 4; i++)
      if (std::memcmp(in[i], out[i], sizes[i])) app::fail("a copy of a batch did not arrive");
  }
  OK(hipStreamDestroy, s);
  for (int i = 0; i < 4; i++) {
    OK(hipHostFree, in[i]);
    OK(hipHostFree, out[i]);
    OK(hipFree, a[i]);
    OK(hipFree, b[i]);
  }
}

static void contexts() {
  int* p;
  OK(hipMalloc, (void**)&p, 4096);
  hipDevResource whole, part, rest;
  OK(hipDeviceGetDevResource, 0, &whole, hipDevResourceTypeSm);
  unsigned groups = 1;
  OK(hipDevSmResourceSplitByCount, &part, &groups, &whole, &rest, 0, 8);
  hipDevResourceDesc_t description;
  OK(hipDevResourceGenerateDesc, &description, &part, 1);
  hipExecutionCtx_t context;
  OK(hipGreenCtxCreate, &context, description, 0, 0);
  hipStream_t s;
  OK(hipExecutionCtxStreamCreate, &s, context, hipStreamNonBlocking, 0);
  int device;
  unsigned long long id;
  OK(hipExecutionCtxGetDevice, &device, context);
  OK(hipExecutionCtxGetId, context, &id);
  OK(hipExecutionCtxGetDevResource, context, &part, hipDevResourceTypeSm);
  for (int i = 0; i < 10; i++) {
    LAUNCH(work, 1, 64, 0, s, p);
    LAUNCH(other, 2, 64, 0, nullptr, p);
  }
  OK(hipStreamGetDevResource, s, &part, hipDevResourceTypeSm);
  hipEvent_t event;
  OK(hipEventCreate, &event);
  OK(hipExecutionCtxRecordEvent, context, event);
  OK(hipExecutionCtxWaitEvent, context, event);
  OK(hipExecutionCtxSynchronize, context);
  OK(hipDeviceSynchronize);
  OK(hipEventDestroy, event);
  OK(hipStreamDestroy, s);
  OK(hipExecutionCtxDestroy, context);
  OK(hipFree, p);
}

static void kernels(const char* program) {
  std::string path(program);
  path = path.substr(0, path.rfind('/') + 1) + "module_kernels.hsaco";
  std::ifstream file(path, std::ios::binary);
  std::vector<char> code((std::istreambuf_iterator<char>(file)), {});
  if (code.empty()) app::fail("no module_kernels.hsaco");
  hipLibrary_t library;
  OK(hipLibraryLoadData, &library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  hipKernel_t kernel;
  OK(hipLibraryGetKernel, &kernel, library, "module_add");
  int value;
  OK(hipKernelGetAttribute, &value, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0);
  size_t offset, size;
  OK(hipKernelGetParamInfo, kernel, 0, &offset, &size);
  hipFunction_t function;
  OK(hipKernelGetFunction, &function, kernel);
  void* address;
  if (CALL(hipLibraryGetGlobal, &address, &size, library, "no_such_variable") == hipSuccess) app::fail("a variable that is not there");
  OK(hipLibraryUnload, library);
}

static void managed() {
  void* p[2];
  for (auto& each : p) OK(hipMallocManaged, &each, N, hipMemAttachGlobal);
  std::memset(p[0], 1, N);
  std::memset(p[1], 2, N);
  hipStream_t s;
  OK(hipStreamCreate, &s);
  size_t sizes[2] = {N, N}, which = 0;
  hipMemLocation place = {};
  place.type = hipMemLocationTypeDevice;
  hipError_t e = CALL(hipMemPrefetchBatchAsync, p, sizes, 2, &place, &which, 1, 0, s);
  hipError_t f = CALL(hipMemDiscardBatchAsync, p, sizes, 2, 0, s);
  hipError_t g = CALL(hipMemDiscardAndPrefetchBatchAsync, p, sizes, 2, &place, &which, 1, 0, s);
  std::printf("managed: %d %d %d\n", (int)e, (int)f, (int)g);
  OK(hipStreamSynchronize, s);
  OK(hipStreamDestroy, s);
  for (auto each : p) OK(hipFree, each);
}
#endif

int main(int argc, char** argv) {
  const std::string part = argc > 1 ? argv[1] : "";
#if HIP_VERSION >= 71500000
  if (part == "batch") batch(app::arg(argc, argv, 2, 5));
  else if (part == "contexts") contexts();
  else if (part == "kernels") kernels(argv[0]);
  else if (part == "managed") managed();
  else app::fail("which part?");
  std::printf("newest: %s done\n", part.c_str());
#else
  std::printf("newest: this release has no %s\n", part.c_str());
#endif
  app::finish();
  return 0;
}
