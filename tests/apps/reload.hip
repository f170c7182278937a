// Loads code objects with different kernels at the same address, one after the other, to test kernel names.
//
//   reload [ROUNDS=20]
//
// Modules come from module_kernels.hsaco beside the program; in every other one its kernels have other names.
#include "count.hpp"

#include <fstream>
#include <iterator>

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 20);
  std::string program = argv[0];
  size_t slash = program.rfind('/');
  std::ifstream in((slash == std::string::npos ? "." : program.substr(0, slash)) + "/module_kernels.hsaco", std::ios::binary);
  std::string code((std::istreambuf_iterator<char>(in)), {}), other = code;
  if (code.empty()) app::fail("module_kernels.hsaco is not beside the program");
  for (size_t at = 0; (at = other.find("module_", at)) != std::string::npos; at++) other.replace(at, 7, "second_");

  int* data;
  OK(hipMalloc, &data, 4096);
  for (long i = 0; i < rounds; i++) {
    hipModule_t module;
    hipFunction_t add, empty;
    OK(hipModuleLoadData, &module, (i % 2 ? other : code).data());
    OK(hipModuleGetFunction, &add, module, i % 2 ? "second_add" : "module_add");
    OK(hipModuleGetFunction, &empty, module, i % 2 ? "second_empty" : "module_empty");
    int value = 1;
    void* arguments[] = {&data, &value};
    for (int k = 0; k < 5; k++) {
      OK(hipModuleLaunchKernel, add, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr);
      OK(hipModuleLaunchKernel, empty, 1 + i, 1, 1, 64, 1, 1, 0, nullptr, nullptr, nullptr);
    }
    OK(hipDeviceSynchronize);
    OK(hipModuleUnload, module);
  }
  OK(hipFree, data);
  std::printf("reload: rounds %ld\n", rounds);
  app::finish();
}
