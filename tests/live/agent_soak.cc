// agent_soak.cc - a program that never ends: requests with containers, strings, exceptions and a lock, one
// after the other; a thread that does the same from time to time, and others that come and go. How long
// each request took, in nanoseconds, goes to the file that is its argument.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using clock_type = std::chrono::steady_clock;

static std::mutex lock;
static unsigned long sum;

__attribute__((noinline)) static void fail(int depth)
{
	if (depth)
		fail(depth - 1);
	throw std::runtime_error("deep inside");
}

__attribute__((noinline)) static void compute(unsigned long seed)
{
	std::map<std::string, std::vector<int>> words;

	for (int i = 0; i < 3000; i++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		words["word" + std::to_string(seed >> 52)].push_back(i);
	}
	for (int i = 0; i < 100; i++) {
		try {
			fail(10);
		} catch (const std::exception &e) {
			seed += static_cast<unsigned char>(e.what()[0]);
		}
	}
	std::lock_guard<std::mutex> held(lock);
	sum += seed + words.size();
}

static uint32_t request(unsigned long i)
{
	auto began = clock_type::now();

	compute(i);
	auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(clock_type::now() - began).count();
	return ns < UINT32_MAX ? static_cast<uint32_t>(ns) : UINT32_MAX;
}

int main(int argc, char **argv)
{
	FILE *times = fopen(argc > 1 ? argv[1] : "/dev/null", "wb");
	std::thread other([] {
		for (unsigned long i = 1;; i += 2) {
			compute(i);
			std::this_thread::sleep_for(std::chrono::milliseconds(20));
		}
	});

	for (unsigned long i = 0; times; i += 2) {
		uint32_t ns = request(i);

		fwrite(&ns, sizeof(ns), 1, times);
		if (i % 100 == 0)
			std::thread(compute, i).join();
	}
	return 1;
}
