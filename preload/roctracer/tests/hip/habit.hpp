// Shared by the clients that imitate other tools: counts by kind and name, and their file.
//
// The clients are preloaded into unmodified programs. At the end they write lines `kind count name` to the file that
// CLIENT_COUNTS names.
#pragma once
#include <roctracer_ext.h>
#include <roctracer_hip.h>
#include <roctracer_roctx.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

// Kinds of dispatch records.
constexpr uint32_t kernel_kind = 0x11F0, task_kind = 0x11F1;

class Counts {
 public:
  void add(const char* kind, const std::string& name, uint64_t count = 1) {
    std::lock_guard<std::mutex> held(mutex_);
    counts_[{kind, name}] += count;
  }

  // Launch calls and kernel records: each record has the id of a launch.
  void launched(uint64_t correlation) {
    std::lock_guard<std::mutex> held(mutex_);
    launches_.insert(correlation);
  }
  void ran(const roctracer_record_t& record) {
    std::lock_guard<std::mutex> held(mutex_);
    kernels_.insert(record.correlation_id);
    counts_[{"time", "kernels"}] += record.end_ns - record.begin_ns;
  }

  void write() {
    std::lock_guard<std::mutex> held(mutex_);
    const char* path = std::getenv("CLIENT_COUNTS");
    FILE* file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    uint64_t strangers = 0;
    for (uint64_t id : kernels_) strangers += !launches_.count(id);
    for (const auto& [key, count] : counts_)
      std::fprintf(file, "%s %llu %s\n", key.first.c_str(), (unsigned long long)count, key.second.c_str());
    std::fprintf(file, "strangers %llu -\ndone 1 -\n", (unsigned long long)strangers);
    std::fclose(file);
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, uint64_t> counts_;
  std::set<uint64_t> launches_, kernels_;
};

// Never destroyed: run-times report until the process ends.
inline Counts& counts() {
  static Counts* counts = new Counts;
  return *counts;
}

// The kernel of a launch, as the run-time names it; null for calls that launch none.
inline const char* launched_kernel(uint32_t op, const hip_api_data_t* data) {
  switch (op) {
    case HIP_API_ID_hipLaunchKernel:
      return hipKernelNameRefByPtr(data->args.hipLaunchKernel.function_address, data->args.hipLaunchKernel.stream);
    case HIP_API_ID_hipExtLaunchKernel:
      return hipKernelNameRefByPtr(data->args.hipExtLaunchKernel.function_address, data->args.hipExtLaunchKernel.stream);
    case HIP_API_ID_hipLaunchCooperativeKernel:
      return hipKernelNameRefByPtr(data->args.hipLaunchCooperativeKernel.f, data->args.hipLaunchCooperativeKernel.stream);
    case HIP_API_ID_hipModuleLaunchKernel:
      return hipKernelNameRef(data->args.hipModuleLaunchKernel.f);
    case HIP_API_ID_hipExtModuleLaunchKernel:
      return hipKernelNameRef(data->args.hipExtModuleLaunchKernel.f);
    case HIP_API_ID_hipHccModuleLaunchKernel:
      return hipKernelNameRef(data->args.hipHccModuleLaunchKernel.f);
    default:
      return nullptr;
  }
}

inline bool is_launch(uint32_t op, const hip_api_data_t* data) {
  return op == HIP_API_ID_hipGraphLaunch || op == HIP_API_ID_hipExtLaunchMultiKernelMultiDevice ||
         op == HIP_API_ID_hipLaunchCooperativeKernelMultiDevice || launched_kernel(op, data);
}

#define REQUIRE(call)                                                                             \
  do {                                                                                            \
    if ((call) != 0) {                                                                            \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, roctracer_error_string()); \
      std::abort();                                                                               \
    }                                                                                             \
  } while (0)
