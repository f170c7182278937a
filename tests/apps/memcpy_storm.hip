// Copies in every direction, pinned and pageable, synchronous and asynchronous, 1D and 2D, and fills; from one byte to 4 MiB,
// aligned and unaligned, on several threads. Every byte is verified after its round trip.
//
//   memcpy_storm [THREADS=4] [ROUNDS=2] [LINES=64]
//
// LINES: height of the tallest rectangles, which the run-time may copy line by line.
#include "count.hpp"

#include <thread>
#include <vector>

constexpr size_t largest = (4 << 20) + 64;
constexpr size_t sizes[] = {1,    2,    3,     4,     7,     8,     15,      16,          17,     63,     64,
                            65,   255,  1000,  4095,  4096,  4097,  65535,   65536,       65537,  262144, 1 << 20,
                            (1 << 20) + 1, 4 << 20};

static void expect(const void* a, const void* b, size_t n, const char* what) {
  if (!std::memcmp(a, b, n)) return;
  size_t i = 0;
  while (((const char*)a)[i] == ((const char*)b)[i]) i++;
  std::fprintf(stderr, "%s of %zu bytes differs at byte %zu\n", what, n, i);
  app::fail("copy");
}

static void expect_all(const uint8_t* p, uint8_t value, size_t n, const char* what) {
  for (size_t i = 0; i < n; i++)
    if (p[i] != value) {
      std::fprintf(stderr, "%s of %zu bytes: byte %zu is %u, not %u\n", what, n, i, p[i], value);
      app::fail("fill");
    }
}

struct Storm {
  hipStream_t stream;
  uint8_t *a, *b, *pinned;
  std::vector<uint8_t> in = std::vector<uint8_t>(largest), out = std::vector<uint8_t>(largest);
  uint32_t seed;

  explicit Storm(unsigned thread) : seed(thread * 2654435761u + 1) {
    OK(hipSetDevice, 0);
    OK(hipStreamCreate, &stream);
    OK(hipMalloc, &a, largest);
    OK(hipMalloc, &b, largest);
    OK(hipHostMalloc, &pinned, largest, hipHostMallocDefault);
  }

  ~Storm() {
    OK(hipHostFree, pinned);
    OK(hipFree, b);
    OK(hipFree, a);
    OK(hipStreamDestroy, stream);
  }

  void refill(uint8_t* p, size_t n) {
    for (size_t i = 0; i < n; i++) {
      seed = seed * 1664525u + 1013904223u;
      p[i] = uint8_t(seed >> 24);
    }
  }

  // Pageable memory, synchronous: in → a → b → out.
  void pageable(size_t n, size_t shift) {
    refill(in.data(), n);
    OK(hipMemcpy, a + shift, in.data(), n, hipMemcpyHostToDevice);
    OK(hipMemcpy, b, a + shift, n, hipMemcpyDeviceToDevice);
    OK(hipMemcpy, out.data(), b, n, hipMemcpyDefault);
    app::arrived();
    expect(in.data(), out.data(), n, "pageable");
  }

  // Pinned memory, all on the stream, one wait.
  void pinned_async(size_t n, size_t shift) {
    refill(pinned, n);
    std::memcpy(in.data(), pinned, n);
    OK(hipMemcpyAsync, a, pinned, n, hipMemcpyHostToDevice, stream);
    OK(hipMemcpyAsync, b + shift, a, n, hipMemcpyDeviceToDevice, stream);
    OK(hipMemsetAsync, a, 0x5a, n, stream);
    OK(hipMemcpyAsync, pinned, b + shift, n, hipMemcpyDeviceToHost, stream);
    OK(hipStreamSynchronize, stream);
    expect(in.data(), pinned, n, "pinned");
    OK(hipMemcpyAsync, pinned, a, n, hipMemcpyDeviceToHost, stream);
    OK(hipStreamSynchronize, stream);
    expect_all(pinned, 0x5a, n, "hipMemsetAsync");
  }

  // Pageable memory on the stream: the run-time stages these copies itself.
  void pageable_async(size_t n) {
    refill(in.data(), n);
    OK(hipMemcpyAsync, a, in.data(), n, hipMemcpyHostToDevice, stream);
    OK(hipMemcpyWithStream, b, a, n, hipMemcpyDeviceToDevice, stream);
    OK(hipMemcpyAsync, out.data(), b, n, hipMemcpyDeviceToHost, stream);
    OK(hipStreamSynchronize, stream);
    expect(in.data(), out.data(), n, "pageable on a stream");
  }

  // The driver API's names, and host to host.
  void by_direction(size_t n) {
    refill(in.data(), n);
    OK(hipMemcpyHtoD, (hipDeviceptr_t)a, in.data(), n);
    OK(hipMemcpyDtoD, (hipDeviceptr_t)b, (hipDeviceptr_t)a, n);
    OK(hipMemcpyDtoH, out.data(), (hipDeviceptr_t)b, n);
    app::arrived();
    expect(in.data(), out.data(), n, "by direction");
    OK(hipMemcpy, pinned, in.data(), n, hipMemcpyHostToHost);
    app::arrived();
    expect(in.data(), pinned, n, "host to host");
  }

  void fills(size_t n) {
    OK(hipMemset, a, 0xc3, n);
    OK(hipMemcpy, out.data(), a, n, hipMemcpyDeviceToHost);
    app::arrived();
    expect_all(out.data(), 0xc3, n, "hipMemset");
    if (n % 4 == 0) {
      OK(hipMemsetD32Async, (hipDeviceptr_t)b, 0x01010101 * 0x11, n / 4, stream);
      OK(hipStreamSynchronize, stream);
      OK(hipMemcpy, out.data(), b, n, hipMemcpyDeviceToHost);
      app::arrived();
      expect_all(out.data(), 0x11, n, "hipMemsetD32Async");
    }
  }

  // A rectangle of width x height in rows of another pitch on each side.
  void rectangle(size_t width, size_t height, bool async) {
    size_t host = width + 13, dev_a = (width + 255) / 256 * 256, dev_b = dev_a + 256;
    if (dev_b * height > largest || host * height > largest) return;
    refill(in.data(), host * height);
    std::memset(out.data(), 0, host * height);
    if (async) {
      OK(hipMemcpy2DAsync, a, dev_a, in.data(), host, width, height, hipMemcpyHostToDevice, stream);
      OK(hipMemcpy2DAsync, b, dev_b, a, dev_a, width, height, hipMemcpyDeviceToDevice, stream);
      OK(hipMemcpy2DAsync, out.data(), host, b, dev_b, width, height, hipMemcpyDeviceToHost, stream);
      OK(hipStreamSynchronize, stream);
    } else {
      OK(hipMemcpy2D, a, dev_a, in.data(), host, width, height, hipMemcpyHostToDevice);
      OK(hipMemcpy2D, b, dev_b, a, dev_a, width, height, hipMemcpyDeviceToDevice);
      OK(hipMemcpy2D, out.data(), host, b, dev_b, width, height, hipMemcpyDeviceToHost);
      app::arrived();
    }
    for (size_t y = 0; y < height; y++) expect(&in[y * host], &out[y * host], width, "row of a rectangle");
  }

  void round(size_t r, size_t lines) {
    for (size_t n : sizes) {
      pageable(n, r % 5);
      pinned_async(n, r % 3);
      pageable_async(n);
      by_direction(n);
      fills(n);
    }
    for (size_t width : {1, 4, 64, 100, 1024, 4000})
      for (size_t height : {size_t(1), size_t(3), lines}) {
        rectangle(width, height, false);
        rectangle(width, height, true);
      }
  }
};

int main(int argc, char** argv) {
  long threads = app::arg(argc, argv, 1, 4), rounds = app::arg(argc, argv, 2, 2), lines = app::arg(argc, argv, 3, 64);
  std::vector<std::thread> workers;
  for (long t = 0; t < threads; t++)
    workers.emplace_back([=] {
      Storm storm(t);
      for (long r = 0; r < rounds; r++) storm.round(r, lines);
    });
  for (auto& w : workers) w.join();
  std::printf("memcpy_storm: threads %ld, rounds %ld, every byte verified\n", threads, rounds);
  app::finish();
}
