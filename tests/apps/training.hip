// A rank of a training program: steps of work on the host, a copy in, three kernels, and a copy out.
//
//   training [STEPS=40] [WORK=100]
//
// Each step is a range `step N`. Its range `prepare` computes WORK thousand numbers on the host, so its duration is that of
// the host; the durations of kernels and copies are the emulated GPU's to choose. The first step computes ten times as much.
// With WORLD_SIZE the ranks begin each step together, as a collective would have them: each adds a byte to the file that
// TOGETHER names, and sleeps until the file has those of all.
#include "count.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

extern "C" __global__ void gemm(int* p) {
  if (p) p[threadIdx.x]++;
}

extern "C" __global__ void softmax(int* p) {
  if (p) p[threadIdx.x]--;
}

extern "C" __global__ void norm(int* p) {
  if (p) p[threadIdx.x] ^= 1;
}

constexpr size_t BYTES = 1 << 20;

// Waits until all ranks are at this step.
static void together(long step) {
  const char *size = std::getenv("WORLD_SIZE"), *path = std::getenv("TOGETHER");
  if (!size || !path) return;
  static int file = open(path, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
  if (write(file, ".", 1) != 1) app::fail("the file of all ranks");
  struct stat found = {};
  while (fstat(file, &found) == 0 && found.st_size < std::atol(size) * (step + 1)) usleep(100);
}

int main(int argc, char** argv) {
  long steps = app::arg(argc, argv, 1, 40), work = app::arg(argc, argv, 2, 100);
  auto push = (int (*)(const char*))dlsym(RTLD_DEFAULT, "roctxRangePushA");
  auto pop = (int (*)())dlsym(RTLD_DEFAULT, "roctxRangePop");
  auto begin = [&](const char* text) { push && push(text); };
  auto end = [&] { pop && pop(); };

  hipStream_t stream;
  int *data, *host;
  OK(hipStreamCreate, &stream);
  OK(hipMalloc, &data, BYTES);
  OK(hipHostMalloc, (void**)&host, BYTES, hipHostMallocDefault);
  for (size_t i = 0; i < BYTES / sizeof *host; i++) host[i] = int(i);
  uint64_t state = 54;
  for (long step = 0; step < steps; step++) {
    char text[32];
    std::snprintf(text, sizeof text, "step %ld", step);
    together(step);
    begin(text);
    begin("prepare");
    for (long i = (step ? 1000 : 10000) * work; i > 0; i--) state = state * 6364136223846793005u + 1442695040888963407u;
    host[0] = int(state >> 33);
    end();
    OK(hipMemcpyAsync, data, host, BYTES, hipMemcpyHostToDevice, stream);
    for (int layer = 0; layer < 4; layer++) {
      LAUNCH(gemm, 8, 64, 0, stream, data);
      LAUNCH(softmax, 8, 64, 0, stream, data);
      LAUNCH(norm, 8, 64, 0, stream, data);
    }
    OK(hipMemcpyAsync, host, data, BYTES, hipMemcpyDeviceToHost, stream);
    OK(hipStreamSynchronize, stream);
    end();
  }
  std::printf("training: %ld steps, %d\n", steps, host[0]);
  OK(hipHostFree, host);
  OK(hipFree, data);
  OK(hipStreamDestroy, stream);
  app::finish();
}
