// Random work by seed: streams, events, copies of all kinds, fills, all kinds of launches, graphs, host functions,
// allocations and errors, on all GPUs, from several threads. It compares every byte that was moved.
//
//   random_walk [SEED=1] [STEPS=200] [THREADS=3]
//
// Kernels write nothing that is checked: the emulated GPU does not execute them.
#include "count.hpp"

#include <hip/hip_ext.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

__global__ void touch(char* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += 0;
}
template <typename T>
__global__ void scale(T* p, T by, int n) {
  int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= by;
}
__global__ void nothing() {}

namespace {

struct Dice {
  uint64_t state;
  explicit Dice(uint64_t seed) : state(seed * 0x9e3779b97f4a7c15u + 0x1234567) {
    for (int i = 0; i < 8; i++) below(2);
  }
  uint64_t below(uint64_t most) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % most;
  }
  bool once_in(uint64_t times) { return below(times) == 0; }
};

int devices = 1;
// A thread that captures a stream holds this alone: no other may use the default stream meanwhile.
std::shared_mutex capturing;

// A piece of memory of a GPU and two of the host. All that happens to it happens in its stream; `known` is what the GPU's has
// when that is done.
struct Piece {
  int device;
  size_t size;
  hipStream_t stream;
  hipEvent_t event;
  char* there = nullptr;
  char* pinned = nullptr;
  std::vector<char> plain, known;

  Piece(Dice& dice, size_t most) : device((int)dice.below(devices)), size(1 + dice.below(dice.once_in(4) ? most : 5000)) {
    OK(hipSetDevice, device);
    switch (dice.below(3)) {
      case 0: OK(hipStreamCreate, &stream); break;
      case 1: OK(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking); break;
      default: {
        int least, greatest;
        OK(hipDeviceGetStreamPriorityRange, &least, &greatest);
        OK(hipStreamCreateWithPriority, &stream, hipStreamNonBlocking, dice.once_in(2) ? least : greatest);
      }
    }
    OK(hipEventCreateWithFlags, &event, dice.once_in(2) ? hipEventDefault : hipEventDisableTiming);
    OK(hipMalloc, (void**)&there, size);
    OK(hipHostMalloc, (void**)&pinned, size, hipHostMallocDefault);
    plain.resize(size);
    known.assign(size, (char)dice.below(256));
    OK(hipMemset, there, known[0], size);
    OK(hipDeviceSynchronize);
  }
  ~Piece() {
    OK(hipSetDevice, device);
    OK(hipStreamDestroy, stream);
    OK(hipEventDestroy, event);
    OK(hipFree, there);
    OK(hipHostFree, pinned);
  }
  Piece(const Piece&) = delete;
  Piece& operator=(const Piece&) = delete;

  void wait() { OK(hipStreamSynchronize, stream); }

  void compare(const char* with, size_t from, size_t count, const char* what) const {
    if (std::memcmp(with, known.data() + from, count) != 0) app::fail(what);
  }
};

struct Part {
  size_t from, count;
  Part(Dice& dice, size_t size) : from(dice.below(size)), count(1 + dice.below(size - from)) {}
};

void write(Piece& piece, Dice& dice) {
  Part part(dice, piece.size);
  piece.wait();
  bool is_pinned = dice.once_in(2);
  char* source = is_pinned ? piece.pinned : piece.plain.data();
  for (size_t i = 0; i < part.count; i++) source[part.from + i] = (char)(dice.state >> (i % 50));
  std::copy_n(source + part.from, part.count, piece.known.begin() + part.from);
  if (dice.once_in(3))
    OK(hipMemcpy, piece.there + part.from, source + part.from, part.count, hipMemcpyHostToDevice);
  else
    OK(hipMemcpyAsync, piece.there + part.from, source + part.from, part.count,
       dice.once_in(2) ? hipMemcpyHostToDevice : hipMemcpyDefault, piece.stream);
}

void read(Piece& piece, Dice& dice) {
  Part part(dice, piece.size);
  char* target = dice.once_in(2) ? piece.pinned : piece.plain.data();
  if (dice.once_in(3)) {
    piece.wait();
    OK(hipMemcpy, target + part.from, piece.there + part.from, part.count, hipMemcpyDeviceToHost);
  } else {
    OK(hipMemcpyAsync, target + part.from, piece.there + part.from, part.count, hipMemcpyDeviceToHost, piece.stream);
    if (dice.once_in(3)) {
      OK(hipEventRecord, piece.event, piece.stream);
      OK(hipEventSynchronize, piece.event);
    } else {
      piece.wait();
    }
  }
  piece.compare(target + part.from, part.from, part.count, "what was read back");
}

void fill(Piece& piece, Dice& dice) {
  Part part(dice, piece.size);
  // On 5.2.3 a fill shorter than the distance to the next multiple of eight bytes never ends.
  part.count += part.from % 8;
  part.from -= part.from % 8;
  int value = (int)dice.below(256);
  switch (dice.below(4)) {
    case 0:
      OK(hipMemsetAsync, piece.there + part.from, value, part.count, piece.stream);
      break;
    case 1:
      OK(hipMemsetD8Async, (hipDeviceptr_t)(piece.there + part.from), (unsigned char)value, part.count, piece.stream);
      break;
    case 2: {
      size_t words = part.count / 4, from = part.from / 4 * 4;
      if (words == 0 || from + words * 4 > piece.size) return;
      OK(hipMemsetD32Async, (hipDeviceptr_t)(piece.there + from), value * 0x01010101, words, piece.stream);
      std::fill_n(piece.known.begin() + from, words * 4, (char)value);
      return;
    }
    default:
      piece.wait();
      OK(hipMemset, piece.there + part.from, value, part.count);
  }
  std::fill_n(piece.known.begin() + part.from, part.count, (char)value);
}

// Copies one piece into another; each has a separate stream.
void move(Piece& from, Piece& to, Dice& dice) {
  if (&from == &to) return;
  Part part(dice, std::min(from.size, to.size));
  OK(hipSetDevice, from.device);
  OK(hipEventRecord, from.event, from.stream);
  OK(hipSetDevice, to.device);
  OK(hipStreamWaitEvent, to.stream, from.event, 0);
  char *source = from.there + part.from, *target = to.there + part.from;
  if (from.device != to.device)
    OK(hipMemcpyPeerAsync, target, to.device, source, from.device, part.count, to.stream);
  else
    OK(hipMemcpyAsync, target, source, part.count, hipMemcpyDeviceToDevice, to.stream);
  std::copy_n(from.known.begin() + part.from, part.count, to.known.begin() + part.from);
  // What changes the source later waits for this.
  OK(hipEventRecord, to.event, to.stream);
  OK(hipSetDevice, from.device);
  OK(hipStreamWaitEvent, from.stream, to.event, 0);
}

// Rows of a picture.
void picture(Piece& piece, Dice& dice) {
  size_t pitch = 16 + dice.below(200), width = 1 + dice.below(pitch);
  size_t rows = std::min<size_t>(piece.size / pitch, 3000);
  if (rows == 0) return;
  piece.wait();
  for (size_t i = 0; i < width * rows; i++) piece.pinned[i] = (char)(i * 7 + width);
  OK(hipMemcpy2DAsync, piece.there, pitch, piece.pinned, width, width, rows, hipMemcpyHostToDevice, piece.stream);
  for (size_t row = 0; row < rows; row++)
    std::copy_n(piece.pinned + row * width, width, piece.known.begin() + row * pitch);
  piece.wait();
}

void launch(Piece& piece, Dice& dice) {
  dim3 grid(1 + (unsigned)dice.below(200), dice.once_in(4) ? 3 : 1, dice.once_in(8) ? 2 : 1);
  dim3 block(64 << dice.below(3), dice.once_in(4) ? 2 : 1);
  unsigned lds = dice.once_in(3) ? (unsigned)dice.below(16) * 1024 : 0;
  int n = 0;
  char* p = piece.there;
  void* arguments[] = {&p, &n};
  switch (dice.below(7)) {
    case 0: LAUNCH(nothing, grid, block, lds, piece.stream); break;
    case 1: LAUNCH(scale<float>, grid, block, lds, piece.stream, (float*)nullptr, 2.0f, 0); break;
    case 2: LAUNCH(scale<double>, grid, block, lds, piece.stream, (double*)nullptr, 2.0, 0); break;
    case 3: OK(hipLaunchKernel, (const void*)touch, grid, block, arguments, lds, piece.stream); break;
    case 4:
      OK(hipExtLaunchKernel, (const void*)touch, grid, block, arguments, lds, piece.stream, nullptr,
         dice.once_in(2) ? piece.event : nullptr, dice.once_in(3) ? 1 : 0);
      break;
    case 5:
      for (uint64_t i = dice.below(40); i > 0; i--) LAUNCH(touch, grid, block, 0, piece.stream, p, 0);
      break;
    default: LAUNCH(touch, grid, block, lds, piece.stream, p, 0);
  }
}

void graph(Piece& piece, Dice& dice) {
  hipGraph_t graph;
  hipGraphExec_t ready;
  uint64_t kernels = 1 + dice.below(6), times = 1 + dice.below(4);
  int value = (int)dice.below(256);
  piece.wait();
  std::unique_lock alone(capturing);
  OK(hipStreamBeginCapture, piece.stream, hipStreamCaptureModeThreadLocal);
  for (uint64_t i = 0; i < kernels; i++) LAUNCH(touch, dim3(1 + (unsigned)i), dim3(64), 0, piece.stream, piece.there, 0);
  OK(hipMemsetAsync, piece.there, value, piece.size, piece.stream);
  OK(hipMemcpyAsync, piece.pinned, piece.there, piece.size, hipMemcpyDeviceToHost, piece.stream);
  LAUNCH(nothing, dim3(3), dim3(64), 0, piece.stream);
  OK(hipStreamEndCapture, piece.stream, &graph);
  alone.unlock();
  OK(hipGraphInstantiate, &ready, graph, nullptr, nullptr, 0);
  for (uint64_t i = 0; i < times; i++) OK(hipGraphLaunch, ready, piece.stream);
  std::fill(piece.known.begin(), piece.known.end(), (char)value);
  piece.wait();
  piece.compare(piece.pinned, 0, piece.size, "what a graph read back");
  OK(hipGraphExecDestroy, ready);
  OK(hipGraphDestroy, graph);
}

void host_function(Piece& piece, Dice& dice) {
  std::atomic<int> calls{0};
  int wanted = 1 + (int)dice.below(4);
  for (int i = 0; i < wanted; i++) {
    LAUNCH(nothing, dim3(1), dim3(64), 0, piece.stream);
    OK(hipStreamAddCallback, piece.stream, [](hipStream_t, hipError_t, void* c) { ++*(std::atomic<int>*)c; }, &calls, 0u);
  }
  piece.wait();
  if (calls != wanted) app::fail("host functions");
}

void query(Piece& piece, Dice& dice) {
  hipError_t answer = hipSuccess;
  switch (dice.below(5)) {
    case 0: answer = CALL(hipStreamQuery, piece.stream); break;
    case 1: answer = CALL(hipEventQuery, piece.event); break;
    case 2: CALL(hipFree, (void*)0x1234); break;
    case 3: CALL(hipMemcpy, nullptr, nullptr, 8, hipMemcpyHostToDevice); break;
    default: OK(hipDeviceSynchronize);
  }
  if (answer != hipSuccess && answer != hipErrorNotReady) app::fail("a query");
  CALL(hipGetLastError);
}

void walk(uint64_t seed, long steps) {
  Dice dice(seed);
  std::vector<std::unique_ptr<Piece>> pieces;
  for (long step = 0; step < steps; step++) {
    std::shared_lock shared(capturing);
    if (pieces.size() < 2 || (pieces.size() < 8 && dice.once_in(12))) {
      pieces.push_back(std::make_unique<Piece>(dice, 3u << 20));
    } else if (dice.once_in(20)) {
      size_t at = dice.below(pieces.size());
      // Work that has to do with it may be under way in other streams.
      for (auto& piece : pieces) piece->wait();
      pieces.erase(pieces.begin() + (long)at);
      continue;
    }
    Piece& piece = *pieces[dice.below(pieces.size())];
    OK(hipSetDevice, piece.device);
    switch (dice.below(13)) {
      case 0: case 1: write(piece, dice); break;
      case 2: case 3: read(piece, dice); break;
      case 4: fill(piece, dice); break;
      case 5: move(*pieces[dice.below(pieces.size())], piece, dice); break;
      case 6: picture(piece, dice); break;
      case 7: case 8: case 9: launch(piece, dice); break;
      case 10:
        shared.unlock();
        graph(piece, dice);
        break;
      case 11: host_function(piece, dice); break;
      default: query(piece, dice);
    }
  }
  std::shared_lock shared(capturing);
  for (auto& piece : pieces) {
    piece->wait();
    OK(hipMemcpy, piece->plain.data(), piece->there, piece->size, hipMemcpyDeviceToHost);
    piece->compare(piece->plain.data(), 0, piece->size, "what was there at the end");
  }
  pieces.clear();
}

}  // namespace

int main(int argc, char** argv) {
  long seed = app::arg(argc, argv, 1, 1), steps = app::arg(argc, argv, 2, 200), count = app::arg(argc, argv, 3, 3);
  OK(hipGetDeviceCount, &devices);
  std::vector<std::thread> threads;
  for (long i = 0; i < count; i++) threads.emplace_back(walk, (uint64_t)(seed * 1000 + i), steps);
  walk((uint64_t)(seed * 1000 + 999), steps);
  for (auto& thread : threads) thread.join();
  app::finish();
  std::printf("random_walk: seed %ld, every byte verified\n", seed);
  return 0;
}
