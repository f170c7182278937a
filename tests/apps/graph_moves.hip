// Graphs with fills and copies from many lines, and notes of which one of which launch comes from which.
//
//   graph_moves [ROUNDS=3] [PAGEABLE=0]
//
// In a launch each fill and each copy has its own number of bytes, by which it is recognised: the more bytes, the more groups
// its kernel has; copies by engines have their bytes in their records. Copies with the host never have as many as others.
// With PAGEABLE 1 the memory of the host is not pinned. APP_GRAPHS names the file that gets a line `launch LINE` for each
// launch of a graph, in order, and behind it a line `fill BYTES LINE` or `copy BYTES LINE` for each of its fills and copies,
// with LINE 0 where nothing shows the node.
#include "count.hpp"

#include <vector>

__global__ void first(int* p) { p[threadIdx.x] += 1; }
__global__ void second(int* p) { p[threadIdx.x] += 2; }

#define NOINLINE __attribute__((noinline))

struct Node {
  const char* kind;
  size_t bytes;
  int line;
};
using Nodes = std::vector<Node>;
using Kernel = void (*)(int*);

// The run-time copies and fills with 16 groups at most, 8 KiB each.
constexpr size_t UNIT = 8192;
static char* device;
static char* host;
static hipStream_t stream;
static size_t fills = 0, copies = 0, of_host = 0;
static std::FILE* out;

static size_t bytes_of_fill() { return UNIT * ++fills; }
static size_t bytes_of_copy(bool is_with_host) {
  size_t units = is_with_host ? 10 + of_host++ : 1 + copies++;
  if (copies > 9 || units > 16) app::fail("too many copies");
  return UNIT * units;
}

// Functions with the line in their name, so that it is known without debug information. The last statement keeps their frames.
template <int LINE>
static NOINLINE void kernel(Kernel kernel) {
  static void* arguments[] = {&device};
  OK(hipLaunchKernel, (const void*)kernel, dim3(1), dim3(64), arguments, 0, stream);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void fill(Nodes& nodes, int line) {
  nodes.push_back({"fill", bytes_of_fill(), line});
  OK(hipMemsetAsync, device, 0, nodes.back().bytes, stream);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void copy(Nodes& nodes, int line, void* to, const void* from) {
  nodes.push_back({"copy", bytes_of_copy(to == host || from == host), line});
  OK(hipMemcpyAsync, to, from, nodes.back().bytes, hipMemcpyDefault, stream);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void add_kernel(hipGraphNode_t* node, hipGraph_t graph, std::vector<hipGraphNode_t> behind, Kernel kernel) {
  static void* arguments[] = {&device};
  hipKernelNodeParams params = {};
  params.func = (void*)kernel;
  params.gridDim = dim3(1);
  params.blockDim = dim3(64);
  params.kernelParams = arguments;
  OK(hipGraphAddKernelNode, node, graph, behind.data(), behind.size(), &params);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void add_fill(Nodes& nodes, int line, hipGraphNode_t* node, hipGraph_t graph,
                              std::vector<hipGraphNode_t> behind) {
  nodes.push_back({"fill", bytes_of_fill(), line});
  hipMemsetParams params = {};
  params.dst = device;
  params.elementSize = 1;
  params.width = nodes.back().bytes;
  params.height = 1;
  OK(hipGraphAddMemsetNode, node, graph, behind.data(), behind.size(), &params);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void add_copy(Nodes& nodes, int line, hipGraphNode_t* node, hipGraph_t graph,
                              std::vector<hipGraphNode_t> behind, void* to, const void* from) {
  nodes.push_back({"copy", bytes_of_copy(to == host || from == host), line});
  OK(hipGraphAddMemcpyNode1D, node, graph, behind.data(), behind.size(), to, from, nodes.back().bytes, hipMemcpyDefault);
  asm volatile("" ::"i"(LINE));
}

template <int LINE>
static NOINLINE void play(hipGraphExec_t executable, const Nodes& nodes) {
  if (out) {
    std::fprintf(out, "launch %d\n", LINE);
    for (const Node& node : nodes) std::fprintf(out, "%s %zu %d\n", node.kind, node.bytes, node.line);
  }
  OK(hipGraphLaunch, executable, stream);
  OK(hipStreamSynchronize, stream);
  asm volatile("" ::"i"(LINE));
}

#define KERNEL(...) kernel<__LINE__>(__VA_ARGS__)
#define FILL(nodes) fill<__LINE__>(nodes, __LINE__)
#define COPY(nodes) copy<__LINE__>(nodes, __LINE__, device + (1 << 20), device)
#define IN(nodes) copy<__LINE__>(nodes, __LINE__, device, host)
#define OUT(nodes) copy<__LINE__>(nodes, __LINE__, host, device)
// Between the same kernels as another one.
#define OPEN_FILL(nodes) fill<__LINE__>(nodes, 0)
#define OPEN_COPY(nodes) copy<__LINE__>(nodes, 0, device + (1 << 20), device)
#define OPEN_OUT(nodes) copy<__LINE__>(nodes, 0, host, device)
#define ADD_KERNEL(...) add_kernel<__LINE__>(__VA_ARGS__)
#define ADD_FILL(nodes, ...) add_fill<__LINE__>(nodes, __LINE__, __VA_ARGS__)
#define ADD_COPY(nodes, ...) add_copy<__LINE__>(nodes, __LINE__, __VA_ARGS__, device + (1 << 20), device)
#define ADD_OUT(nodes, ...) add_copy<__LINE__>(nodes, __LINE__, __VA_ARGS__, host, device)
#define ADD_OPEN_COPY(nodes, ...) add_copy<__LINE__>(nodes, 0, __VA_ARGS__, device + (1 << 20), device)
#define PLAY(executable, nodes) play<__LINE__>(executable, nodes)

static NOINLINE hipGraphExec_t instance(hipGraph_t graph) {
  hipGraphExec_t executable;
  OK(hipGraphInstantiate, &executable, graph, nullptr, nullptr, 0);
  return executable;
}

static NOINLINE void step(Nodes& nodes) {
  FILL(nodes);
  KERNEL(first);
  COPY(nodes);
  KERNEL(first);
}

// One chain: between two kernels there is one fill at most, and one copy.
static NOINLINE hipGraph_t captured(Nodes& nodes) {
  hipGraph_t graph;
  OK(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
  IN(nodes);
  KERNEL(second);
  step(nodes);
  FILL(nodes);
  OUT(nodes);
  KERNEL(first);
  COPY(nodes);
  FILL(nodes);
  KERNEL(second);
  step(nodes);
  OUT(nodes);
  OK(hipStreamEndCapture, stream, &graph);
  return graph;
}

// Several in one place.
static NOINLINE hipGraph_t captured_in_groups(Nodes& nodes) {
  hipGraph_t graph;
  OK(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
  for (int i = 0; i < 2; i++) COPY(nodes);
  FILL(nodes);
  KERNEL(first);
  OPEN_COPY(nodes);
  OPEN_OUT(nodes);
  KERNEL(first);
  OPEN_FILL(nodes);
  OPEN_FILL(nodes);
  KERNEL(second);
  for (int i = 0; i < 2; i++) OUT(nodes);
  OK(hipStreamEndCapture, stream, &graph);
  return graph;
}

// All copies from one line, all fills from one, and no kernel.
static NOINLINE hipGraph_t captured_alone(Nodes& nodes) {
  hipGraph_t graph;
  OK(hipStreamBeginCapture, stream, hipStreamCaptureModeThreadLocal);
  for (int i = 0; i < 3; i++) {
    FILL(nodes);
    COPY(nodes);
  }
  OK(hipStreamEndCapture, stream, &graph);
  return graph;
}

// A chain around another graph, and copies beside each other.
static NOINLINE void by_hand(long rounds) {
  Nodes inner, nodes, open;
  hipGraph_t inside, graph, beside;
  hipGraphNode_t a, b, c, d, e, f, whole, last;
  OK(hipGraphCreate, &inside, 0);
  ADD_FILL(inner, &a, inside, {});
  ADD_KERNEL(&b, inside, {a}, first);
  ADD_COPY(inner, &c, inside, {b});

  OK(hipGraphCreate, &graph, 0);
  ADD_OUT(nodes, &d, graph, {});
  ADD_KERNEL(&e, graph, {d}, first);
  OK(hipGraphAddChildGraphNode, &whole, graph, &e, 1, inside);
  nodes.insert(nodes.end(), inner.begin(), inner.end());
  ADD_KERNEL(&f, graph, {whole}, second);
  ADD_FILL(nodes, &last, graph, {f});
  hipGraphExec_t executable = instance(graph);

  OK(hipGraphCreate, &beside, 0);
  ADD_KERNEL(&a, beside, {}, first);
  ADD_OPEN_COPY(open, &b, beside, {a});
  ADD_OPEN_COPY(open, &c, beside, {a});
  ADD_KERNEL(&d, beside, {b, c}, second);
  ADD_FILL(open, &e, beside, {d});
  hipGraphExec_t executable_beside = instance(beside);
  for (long round = 0; round < rounds; round++) {
    PLAY(executable, nodes);
    PLAY(executable_beside, open);
  }
  for (hipGraphExec_t each : {executable, executable_beside}) OK(hipGraphExecDestroy, each);
  for (hipGraph_t each : {graph, inside, beside}) OK(hipGraphDestroy, each);
}

int main(int argc, char** argv) {
  long rounds = app::arg(argc, argv, 1, 3);
  if (const char* path = std::getenv("APP_GRAPHS")) out = std::fopen(path, "w");
  OK(hipMalloc, (void**)&device, 2 << 20);
  if (app::arg(argc, argv, 2, 0))
    host = (char*)std::malloc(1 << 20);
  else
    OK(hipHostMalloc, (void**)&host, 1 << 20, 0);
  OK(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking);
  for (long round = 0; round < rounds; round++) {
    fills = copies = of_host = 0;
    for (auto make : {captured, captured_in_groups, captured_alone}) {
      Nodes nodes;
      hipGraph_t graph = make(nodes);
      hipGraphExec_t executable = instance(graph);
      PLAY(executable, nodes);
      PLAY(executable, nodes);
      hipGraph_t clone;
      OK(hipGraphClone, &clone, graph);
      hipGraphExec_t of_clone = instance(clone);
      PLAY(of_clone, nodes);
      for (hipGraphExec_t each : {executable, of_clone}) OK(hipGraphExecDestroy, each);
      for (hipGraph_t each : {graph, clone}) OK(hipGraphDestroy, each);
    }
  }
  fills = copies = of_host = 0;
  by_hand(rounds);
  OK(hipDeviceSynchronize);
  if (out) std::fclose(out);
  std::puts("graph_moves: done");
  app::finish();
}
