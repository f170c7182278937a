// A graph of kernels alone, launched on a separate stream: HIP 10 reserves all packets of a graph at once, so a graph with
// more kernels than its queue holds (16384, or ROC_AQL_QUEUE_SIZE) waits inside its launch for the queue to take packets.
//
//   large_graph KERNELS [ROUNDS=1] [BEFORE=0]
//
// BEFORE plain launches come before each launch of the graph, so that it begins elsewhere in the ring.
#include "count.hpp"

__global__ void chained(int* p) { p[threadIdx.x] += 1; }
__global__ void before_it(int* p) { p[threadIdx.x] += 2; }

int main(int argc, char** argv) {
  const long kernels = app::arg(argc, argv, 1, 1000), rounds = app::arg(argc, argv, 2, 1), before = app::arg(argc, argv, 3, 0);
  int* p;
  OK(hipMalloc, (void**)&p, 4096);
  hipGraph_t graph;
  OK(hipGraphCreate, &graph, 0);
  void* arguments[] = {&p};
  hipKernelNodeParams params = {};
  params.func = (void*)chained;
  params.gridDim = dim3(1);
  params.blockDim = dim3(64);
  params.kernelParams = arguments;
  hipGraphNode_t last = nullptr;
  for (long i = 0; i < kernels; i++) {
    hipGraphNode_t node;
    OK(hipGraphAddKernelNode, &node, graph, last ? &last : nullptr, last ? 1 : 0, &params);
    last = node;
  }
  hipGraphExec_t exec;
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  hipStream_t s;
  OK(hipStreamCreate, &s);
  for (long round = 0; round < rounds; round++) {
    for (long i = 0; i < before; i++) LAUNCH(before_it, 1, 64, 0, s, p);
    OK(hipGraphLaunch, exec, s);
  }
  OK(hipStreamSynchronize, s);
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphDestroy, graph);
  OK(hipStreamDestroy, s);
  OK(hipFree, p);
  std::printf("large_graph: %ld kernels, %ld rounds\n", kernels, rounds);
  app::finish();
  return 0;
}
