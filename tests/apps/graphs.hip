// Graphs in every shape: built by hand from all kinds of nodes with a graph inside, captured over forked streams, cloned, updated and
// changed between launches, launched again before the last launch ends, uploaded, and destroyed while they run.
//
//   graphs [ROUNDS=3]
//
// Kernels change no bytes: the result is the same whether a GPU executes them or not. Moved bytes are compared, and host functions
// counted.
#include "count.hpp"

#include <atomic>
#include <vector>

__global__ void first(int* p, int n) {
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += 0;
}
__global__ void second(int* p, float f, int n) {
  if (threadIdx.x < (unsigned)n) p[threadIdx.x] += 0 * (int)f;
}
__global__ void inner(int* p) { p[threadIdx.x] += 0; }

static constexpr size_t N = 100000;
static std::atomic<int> calls{0};
// 5.2.3 uses memory that it has freed when there is a host function in a graph, and does not capture fills of forked streams;
// 6.4.3 looks behind the end of its list of streams when such a graph is launched. Both without roctop too.
static bool is_older, has_forks;

static hipKernelNodeParams kernel(void* function, unsigned groups, void** arguments) {
  hipKernelNodeParams params = {};
  params.func = function;
  params.gridDim = dim3(groups);
  params.blockDim = dim3(64);
  params.kernelParams = arguments;
  return params;
}

static hipMemsetParams fill(void* target, unsigned value, size_t bytes) {
  hipMemsetParams params = {};
  params.dst = target;
  params.value = value;
  params.elementSize = 1;
  params.width = bytes;
  params.height = 1;
  return params;
}

static void count(void* by) { calls += *(int*)by; }

static void by_hand(long rounds) {
  unsigned char *in, *out, *a, *b;
  OK(hipHostMalloc, (void**)&in, N, hipHostMallocDefault);
  OK(hipHostMalloc, (void**)&out, N, hipHostMallocDefault);
  OK(hipMalloc, (void**)&a, N);
  OK(hipMalloc, (void**)&b, N);
  hipStream_t s;
  OK(hipStreamCreate, &s);
  int n = 64;
  float f = 2;
  int one = 1;
  void* two_arguments[] = {&a, &n};
  void* three_arguments[] = {&a, &f, &n};
  void* one_argument[] = {&b};

  // The graph inside: a fill, and a kernel behind it.
  hipGraph_t inside, graph;
  hipGraphNode_t node_fill, node_inner, to, whole, from, host, k1, k2, nothing;
  OK(hipGraphCreate, &inside, 0);
  hipMemsetParams filled = fill(b, 0x3c, N);
  OK(hipGraphAddMemsetNode, &node_fill, inside, nullptr, 0, &filled);
  hipKernelNodeParams inner_params = kernel((void*)inner, 2, one_argument);
  OK(hipGraphAddKernelNode, &node_inner, inside, &node_fill, 1, &inner_params);

  // Copy in, two kernels side by side, the graph inside, a copy over part of it, a host function, copy out.
  OK(hipGraphCreate, &graph, 0);
  OK(hipGraphAddMemcpyNode1D, &to, graph, nullptr, 0, a, in, N, hipMemcpyHostToDevice);
  hipKernelNodeParams p1 = kernel((void*)first, 3, two_arguments), p2 = kernel((void*)second, 5, three_arguments);
  OK(hipGraphAddKernelNode, &k1, graph, &to, 1, &p1);
  OK(hipGraphAddKernelNode, &k2, graph, &to, 1, &p2);
  OK(hipGraphAddEmptyNode, &nothing, graph, nullptr, 0);
  hipGraphNode_t both[] = {k1, k2, nothing};
  OK(hipGraphAddChildGraphNode, &whole, graph, both, 3, inside);
  hipGraphNode_t over;
  OK(hipGraphAddMemcpyNode1D, &over, graph, &whole, 1, b, a, N / 2, hipMemcpyDeviceToDevice);
  hipHostNodeParams host_params = {};
  host_params.fn = count;
  host_params.userData = &one;
  if (is_older) OK(hipGraphAddEmptyNode, &host, graph, &over, 1);
  else OK(hipGraphAddHostNode, &host, graph, &over, 1, &host_params);
  OK(hipGraphAddMemcpyNode1D, &from, graph, &host, 1, out, b, N, hipMemcpyDeviceToHost);

  size_t nodes = 0, edges = 0;
  OK(hipGraphGetNodes, graph, nullptr, &nodes);
  OK(hipGraphGetEdges, graph, nullptr, nullptr, &edges);
  if (nodes != 8 || edges != 8) app::fail("nodes and edges");
  hipGraph_t copy;
  OK(hipGraphClone, &copy, graph);
  hipGraphExec_t exec, other;
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  OK(hipGraphInstantiate, &other, copy, nullptr, nullptr, 0);
  for (long round = 0; round < rounds; round++)
    for (hipGraphExec_t each : {exec, other}) {
      for (size_t i = 0; i < N; i++) in[i] = (unsigned char)(i * 7 + round);
      std::memset(out, 0, N);
      calls = 0;
      OK(hipGraphLaunch, each, s);
      OK(hipStreamSynchronize, s);
      for (size_t i = 0; i < N; i++)
        if (out[i] != (i < N / 2 ? in[i] : 0x3c)) app::fail("bytes of a graph");
      if (calls != (is_older ? 0 : 1)) app::fail("host function of a graph");
    }
  // Other arguments and shapes for the same graph.
  p1.gridDim = dim3(7, 2);
  OK(hipGraphExecKernelNodeSetParams, exec, k1, &p1);
  OK(hipGraphLaunch, exec, s);
  OK(hipGraphLaunch, exec, s);
  OK(hipStreamSynchronize, s);
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphExecDestroy, other);
  OK(hipGraphDestroy, graph);
  OK(hipGraphDestroy, copy);
  OK(hipGraphDestroy, inside);
  OK(hipStreamDestroy, s);
  OK(hipFree, a);
  OK(hipFree, b);
  OK(hipHostFree, in);
  OK(hipHostFree, out);
}

static hipGraph_t captured(hipStream_t s, hipStream_t t, hipEvent_t fork, hipEvent_t join, unsigned groups, int* a, int* b) {
  hipGraph_t graph;
  OK(hipStreamBeginCapture, s, hipStreamCaptureModeThreadLocal);
  LAUNCH(first, groups, 64, 0, s, a, 64);
  OK(hipEventRecord, fork, s);
  OK(hipStreamWaitEvent, t, fork, 0);
  LAUNCH(second, groups + 1, 64, 128, t, b, 1.0f, 64);
  OK(hipMemsetAsync, b, 0, 4096, t);
  LAUNCH(inner, groups + 2, 64, 0, s, a);
  OK(hipEventRecord, join, t);
  OK(hipStreamWaitEvent, s, join, 0);
  LAUNCH(inner, 1, 64, 0, s, b);
  OK(hipStreamEndCapture, s, &graph);
  return graph;
}

static void over_streams(long rounds) {
  int *a, *b;
  OK(hipMalloc, (void**)&a, 4096);
  OK(hipMalloc, (void**)&b, 4096);
  hipStream_t s, t;
  OK(hipStreamCreateWithFlags, &s, hipStreamNonBlocking);
  OK(hipStreamCreateWithFlags, &t, hipStreamNonBlocking);
  hipEvent_t fork, join;
  OK(hipEventCreateWithFlags, &fork, hipEventDisableTiming);
  OK(hipEventCreateWithFlags, &join, hipEventDisableTiming);
  hipGraph_t graph = captured(s, t, fork, join, 2, a, b);
  hipGraphExec_t exec;
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  for (long round = 0; round < 4 * rounds; round++) {
    // Again before the last launch ends, sometimes from another stream.
    OK(hipGraphLaunch, exec, round % 3 == 2 ? t : s);
    if (round % 5 == 4) OK(hipDeviceSynchronize);
  }
  OK(hipDeviceSynchronize);
  hipGraph_t newer = captured(s, t, fork, join, 9, a, b);
  hipGraphNode_t bad;
  hipGraphExecUpdateResult result;
  OK(hipGraphExecUpdate, exec, newer, &bad, &result);
  if (result != hipGraphExecUpdateSuccess) app::fail("update of a graph");
  for (long round = 0; round < rounds; round++) OK(hipGraphLaunch, exec, s);
  // Destroyed while it runs.
  OK(hipGraphDestroy, graph);
  OK(hipGraphDestroy, newer);
  OK(hipStreamSynchronize, s);
  OK(hipGraphExecDestroy, exec);
  // A new graph for every launch.
  for (long round = 0; round < 5 * rounds; round++) {
    hipGraph_t each = captured(s, t, fork, join, 1 + round, a, b);
    OK(hipGraphInstantiate, &exec, each, nullptr, nullptr, 0);
    OK(hipGraphLaunch, exec, s);
    OK(hipStreamSynchronize, s);
    OK(hipGraphExecDestroy, exec);
    OK(hipGraphDestroy, each);
  }
  OK(hipEventDestroy, fork);
  OK(hipEventDestroy, join);
  OK(hipStreamDestroy, s);
  OK(hipStreamDestroy, t);
  OK(hipFree, a);
  OK(hipFree, b);
}

// Many small kernels in one graph, as frameworks do.
static void long_chain(long rounds) {
  int* a;
  OK(hipMalloc, (void**)&a, 4096);
  hipStream_t s;
  OK(hipStreamCreate, &s);
  hipGraph_t graph;
  hipGraphExec_t exec;
  OK(hipStreamBeginCapture, s, hipStreamCaptureModeRelaxed);
  for (int i = 0; i < 500; i++) {
    if (i % 3) LAUNCH(first, 1 + i % 11, 64, 0, s, a, 64);
    else LAUNCH(inner, 1 + i % 7, 64, 0, s, a);
  }
  OK(hipStreamEndCapture, s, &graph);
  OK(hipGraphInstantiate, &exec, graph, nullptr, nullptr, 0);
  for (long round = 0; round < 3 * rounds; round++) OK(hipGraphLaunch, exec, s);
  OK(hipStreamSynchronize, s);
  OK(hipGraphExecDestroy, exec);
  OK(hipGraphDestroy, graph);
  OK(hipStreamDestroy, s);
  OK(hipFree, a);
}

int main(int argc, char** argv) {
  int version = 0;
  OK(hipRuntimeGetVersion, &version);
  is_older = version < 50300000;
  has_forks = !is_older && version / 10000000 != 6;
  long rounds = app::arg(argc, argv, 1, 3);
  by_hand(rounds);
  if (has_forks) over_streams(rounds);
  long_chain(rounds);
  std::puts("graphs: done");
  app::finish();
}
