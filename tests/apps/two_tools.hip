// Shares the run-time's only tracer callback: this program contains a tool, like a program linked to roctracer.
//
//   two_tools before|after|handle
//
// The tool registers before the program's first HIP call, after it, or after it through a symbol looked up in the
// run-time's own handle. It prints what it got: entered and left calls, dispatch and copy records, and how many records
// had the correlation id of one of its calls. On run-times without the callback (5.2) it says so.
#include "count.hpp"

#include <dlfcn.h>
#include <link.h>
#include <vector>

// The structure's tail begins behind the arguments, whose size differs by release.
static size_t tail = 0;
struct Tail {
  uint64_t time, phase_data;
  void (*enter)(uint32_t, void*);
  void (*exit)(uint32_t, void*);
};
struct Record {
  uint32_t domain, kind, op, reserved;
  uint64_t correlation, begin, end;
};
using Callback = int (*)(uint32_t, uint32_t, void*);

static std::atomic<uint64_t> entered{0}, with_arguments{0}, left{0}, dispatches{0}, copies{0}, known{0}, others{0};
static std::atomic<uint64_t> next{1000};

static int callback(uint32_t domain, uint32_t op, void* data) {
  if (domain == 3 && data) {
    entered++;
    auto* words = (Tail*)((char*)data + tail);
    *(uint64_t*)data = next++;
    words->time = 4711;
    words->phase_data = (uint64_t)data;
    words->enter = [](uint32_t, void*) { with_arguments++; };
    words->exit = [](uint32_t, void* data) {
      auto* words = (Tail*)((char*)data + tail);
      if (words->time != 4711 || words->phase_data != (uint64_t)data) app::fail("the tool's own words were changed");
      left++;
    };
    return 0;
  }
  if (domain != 2) return 1;
  if ((uintptr_t)data < 4096) return 0;
  auto* record = (Record*)data;
  (record->op == 0 ? dispatches : record->op == 1 ? copies : others)++;
  if (record->correlation >= 1000 && record->correlation < next) known++;
  return 0;
}

static std::string library() {
  std::string path;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        if (std::strstr(info->dlpi_name, "libamdhip64")) *(std::string*)to = info->dlpi_name;
        return 0;
      },
      &path);
  return path;
}

__global__ void add(float* p, float v) { p[blockIdx.x * blockDim.x + threadIdx.x] += v; }

int main(int argc, char** argv) {
  std::string how = argc > 1 ? argv[1] : "before";
  void* handle = dlopen(library().c_str(), RTLD_NOLOAD | RTLD_NOW);
  auto in_library = (void (*)(Callback))dlsym(handle, "hipRegisterTracerCallback");
  // As a program that is linked to it finds it: by the scope's first definition.
  auto in_scope = (void (*)(Callback))dlsym(RTLD_DEFAULT, "hipRegisterTracerCallback");
  tail = library().find(".so.5") != std::string::npos ? 840 : 1520;
  const char* text = "no tracer callback";
  auto begin = [&] {
    if (!in_library) return;
    (how == "handle" ? in_library : in_scope)(callback);
    text = "tracer callback";
  };
  constexpr size_t count = 1 << 12;
  if (how == "before") begin();
  float* p;
  OK(hipMalloc, &p, count * sizeof(float));
  if (how != "before") begin();

  std::vector<float> data(1 << 20);
  float* large;
  OK(hipMalloc, &large, data.size() * sizeof(float));
  for (int i = 0; i < 100; i++) LAUNCH(add, dim3(count / 64), dim3(64), 0, 0, p, 1.0f);
  OK(hipDeviceSynchronize);
  OK(hipMemcpy, large, data.data(), data.size() * sizeof(float), hipMemcpyHostToDevice);
  // Calls that are not bound by symbol.
  auto direct = (decltype(&::hipGetDevice))dlsym(handle, "hipGetDevice");
  int device = 0;
  for (int i = 0; i < 50; i++) {
    APP_COUNT("hipGetDevice", 1);
    app::check(direct(&device), "hipGetDevice", __FILE__, __LINE__);
  }
  auto versioned = (decltype(&::hipGetDevice))dlvsym(handle, "hipGetDevice", "hip_4.2");
  if (!versioned) app::fail("dlvsym");
  for (int i = 0; i < 10; i++) {
    APP_COUNT("hipGetDevice", 1);
    app::check(versioned(&device), "hipGetDevice", __FILE__, __LINE__);
  }
#if HIP_VERSION_MAJOR >= 7
  void* found = nullptr;
  OK(hipGetProcAddress, "hipGetDevice", &found, HIP_VERSION_MAJOR * 100, 0, nullptr);
  APP_COUNT("hipGetDevice", 1);
  app::check(((decltype(&::hipGetDevice))found)(&device), "hipGetDevice", __FILE__, __LINE__);
#endif
  OK(hipDeviceSynchronize);
  OK(hipFree, p);
  OK(hipFree, large);
  // Records come by another thread.
  for (int i = 0; i < 2000 && in_library && dispatches < 100; i++) usleep(1000);
  std::printf("two_tools: %s: %llu entered, %llu with arguments, %llu left, %llu dispatches, %llu copies, %llu known\n", text,
              (unsigned long long)entered, (unsigned long long)with_arguments, (unsigned long long)left,
              (unsigned long long)dispatches, (unsigned long long)copies, (unsigned long long)known);
  app::finish();
}
