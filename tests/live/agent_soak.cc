// agent_soak.cc - a program that never ends: two threads with containers, strings, exceptions and a
// lock, and others that come and go.
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

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

int main()
{
	std::thread other([] {
		for (unsigned long i = 1;; i += 2)
			compute(i);
	});

	for (unsigned long i = 0;; i += 2) {
		compute(i);
		if (i % 100 == 0)
			std::thread(compute, i).join();
	}
}
