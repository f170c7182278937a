// Graphs whose kernels come from many lines, and notes of which kernel of which launch comes from which.
//
//   graph_sites [ROUNDS=3]
//
// Each node has its own number of groups, by which a dispatch is recognised. APP_GRAPHS names the file that gets a line
// `launch LINE` for each launch of a graph, in order, and behind it a line for each of its kernels: `node GROUPS LINE`
// where the edges or the kernel alone show which node a dispatch is of, and `open GROUPS LINE` where nothing does.
#include "count.hpp"

#include <vector>

__global__ void first(int* p) { p[threadIdx.x] += 1; }
__global__ void second(int* p) { p[threadIdx.x] += 2; }
__global__ void third(int* p) { p[threadIdx.x] += 3; }

#define NOINLINE __attribute__((noinline))

struct Node {
  int groups, line;
  bool is_open;
};
using Nodes = std::vector<Node>;
using Kernel = void (*)(int*);

static int* device;
static hipStream_t stream;
static int groups = 0;
static std::FILE* out;

static hipKernelNodeParams params;
static void* arguments[] = {&device};
static void fill_in(Kernel kernel) {
  params = {};
  params.func = (void*)kernel;
  params.gridDim = dim3(groups);
  params.blockDim = dim3(64);
  params.kernelParams = arguments;
}

// Functions with the line in their name, so that it is known without debug information. The last statement keeps their frames.
template <int LINE>
static NOINLINE void launch(Nodes& nodes, Kernel kernel) {
  nodes.push_back({++groups, LINE, false});
  OK(hipLaunchKernel, (const void*)kernel, dim3(groups), dim3(64), arguments, 0, stream);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void add(Nodes& nodes, hipGraphNode_t* node, hipGraph_t graph, const hipGraphNode_t* behind, size_t count,
                         Kernel kernel, bool is_open) {
  nodes.push_back({++groups, LINE, is_open});
  fill_in(kernel);
  OK(hipGraphAddKernelNode, node, graph, behind, count, &params);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void play(hipGraphExec_t executable, const Nodes& nodes) {
  if (out) {
    std::fprintf(out, "launch %d\n", LINE);
    for (const Node& node : nodes) std::fprintf(out, "%s %d %d\n", node.is_open ? "open" : "node", node.groups, node.line);
  }
  OK(hipGraphLaunch, executable, stream);
  asm volatile("" ::"i"(LINE));
}

#define NODE(nodes, kernel) launch<__LINE__>(nodes, kernel)
#define ADD(...) add<__LINE__>(__VA_ARGS__)
#define PLAY(executable, nodes) play<__LINE__>(executable, nodes)

static NOINLINE void attention(Nodes& nodes) {
  NODE(nodes, first);
  NODE(nodes, second);
  NODE(nodes, first);
}

static NOINLINE void linear(Nodes& nodes, int times) {
  for (int i = 0; i < times; i++) NODE(nodes, first);
  NODE(nodes, third);
}

// One chain through several functions, with a fill and a copy in it.
static NOINLINE hipGraph_t captured(Nodes& nodes) {
  hipGraph_t graph;
  OK(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
  NODE(nodes, second);
  attention(nodes);
  OK(hipMemsetAsync, device, 0, 4096, stream);
  linear(nodes, 2);
  OK(hipMemcpyAsync, device + 1024, device, 4096, hipMemcpyDeviceToDevice, stream);
  attention(nodes);
  OK(hipStreamEndCapture, stream, &graph);
  return graph;
}

// The same from other lines.
static NOINLINE hipGraph_t captured_again(Nodes& nodes) {
  hipGraph_t graph;
  OK(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
  NODE(nodes, second);
  NODE(nodes, first);
  NODE(nodes, second);
  NODE(nodes, first);
  OK(hipMemsetAsync, device, 0, 4096, stream);
  linear(nodes, 2);
  OK(hipMemcpyAsync, device + 1024, device, 4096, hipMemcpyDeviceToDevice, stream);
  NODE(nodes, first);
  NODE(nodes, second);
  NODE(nodes, first);
  OK(hipStreamEndCapture, stream, &graph);
  return graph;
}

static NOINLINE hipGraphExec_t instance(hipGraph_t graph) {
  hipGraphExec_t executable;
  OK(hipGraphInstantiate, &executable, graph, nullptr, nullptr, 0);
  return executable;
}

static NOINLINE void captures(long rounds) {
  Nodes nodes, others;
  hipGraph_t graph = captured(nodes);
  hipGraphExec_t one = instance(graph), two = instance(graph);
  for (long round = 0; round < rounds; round++) {
    PLAY(one, nodes);
    PLAY(two, nodes);
    PLAY(one, nodes);
  }
  OK(hipStreamSynchronize, stream);
  hipGraph_t copy;
  OK(hipGraphClone, &copy, graph);
  hipGraphExec_t of_copy = instance(copy);
  PLAY(of_copy, nodes);
  // The same kernels with the parameters of another graph.
  hipGraph_t newer = captured_again(others);
  hipGraphNode_t bad;
  hipGraphExecUpdateResult result;
  OK(hipGraphExecUpdate, two, newer, &bad, &result);
  if (result != hipGraphExecUpdateSuccess) app::fail("update of a graph");
  for (long round = 0; round < rounds; round++) {
    PLAY(two, others);
    PLAY(one, nodes);
  }
  OK(hipStreamSynchronize, stream);
  for (hipGraphExec_t each : {one, two, of_copy}) OK(hipGraphExecDestroy, each);
  for (hipGraph_t each : {graph, copy, newer}) OK(hipGraphDestroy, each);
  // A new graph for each launch: handles are used again.
  for (long round = 0; round < 4 * rounds; round++) {
    Nodes own;
    graph = round % 2 ? captured(own) : captured_again(own);
    hipGraphExec_t executable = instance(graph);
    PLAY(executable, own);
    OK(hipStreamSynchronize, stream);
    OK(hipGraphExecDestroy, executable);
    OK(hipGraphDestroy, graph);
  }
}

// Built by hand: a chain of one kernel around a graph that has it too, and two nodes beside each other.
static NOINLINE void by_hand(long rounds) {
  Nodes inner, nodes;
  hipGraph_t inside, graph;
  hipGraphNode_t a, b, c, whole, d, e, f;
  OK(hipGraphCreate, &inside, 0);
  ADD(inner, &a, inside, nullptr, 0, first, false);
  ADD(inner, &b, inside, &a, 1, first, false);

  OK(hipGraphCreate, &graph, 0);
  ADD(nodes, &c, graph, nullptr, 0, first, false);
  OK(hipGraphAddChildGraphNode, &whole, graph, &c, 1, inside);
  nodes.insert(nodes.end(), inner.begin(), inner.end());
  ADD(nodes, &d, graph, &whole, 1, first, false);
  ADD(nodes, &e, graph, &d, 1, second, true);
  ADD(nodes, &f, graph, &d, 1, second, true);
  hipGraphNode_t both[] = {e, f}, last;
  ADD(nodes, &last, graph, both, 2, third, false);
  hipGraphExec_t executable = instance(graph);
  for (long round = 0; round < rounds; round++) {
    PLAY(executable, nodes);
    OK(hipStreamSynchronize, stream);
  }
  // Another kernel in place of one of them.
  OK(hipGraphExecDestroy, executable);
  nodes.back().groups = ++groups;
  fill_in(second);
  OK(hipGraphKernelNodeSetParams, last, &params);
  for (Node& node : nodes)
    if (&node == &nodes.back()) node.is_open = true;
  executable = instance(graph);
  for (long round = 0; round < rounds; round++) {
    PLAY(executable, nodes);
    OK(hipStreamSynchronize, stream);
  }
  OK(hipGraphExecDestroy, executable);
  OK(hipGraphDestroy, graph);
  OK(hipGraphDestroy, inside);
}

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 3);
  if (const char* path = std::getenv("APP_GRAPHS")) out = std::fopen(path, "w");
  OK(hipMalloc, (void**)&device, 1 << 16);
  OK(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking);
  captures(rounds);
  by_hand(rounds);
  OK(hipDeviceSynchronize);
  if (out) std::fclose(out);
  std::puts("graph_sites: done");
  app::finish();
}
