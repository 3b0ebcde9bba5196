// C++'s ways to wait: all end, and each thread gets through as often as it wants to.
#include <atomic>
#include <barrier>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <latch>
#include <mutex>
#include <semaphore>
#include <shared_mutex>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static std::mutex mutex;
static std::recursive_timed_mutex recursive;
static std::shared_timed_mutex shared;
static std::condition_variable cond;
static std::condition_variable_any cond_any;
static std::counting_semaphore<8> semaphore(2);
static std::latch latch(4);
static std::barrier meet(4);
static std::atomic<int> turn;
static long total, nreads;
static int waiting;

static void work(int me)
{
	latch.arrive_and_wait();
	for (int i = 0; i < 300; i++) {
		std::unique_lock lock(mutex);

		total++;
		waiting++;
		cond.notify_all();
		cond.wait_for(lock, 1ms, [] { return waiting > 2; });
		waiting--;
		lock.unlock();
		semaphore.acquire();
		semaphore.release();
		while (turn.load() % 4 != me)
			turn.wait(turn.load());
		turn++;
		turn.notify_all();
		if (std::unique_lock timed(recursive, 10ms); timed) {
			std::lock_guard again(recursive);

			cond_any.wait_for(timed, 10us);
		}
		if (i % 8 == 0) {
			std::unique_lock writer(shared);

			total += 0;
		} else {
			std::shared_lock reader(shared);

			__atomic_add_fetch(&nreads, 1, __ATOMIC_RELAXED);
		}
		if (i % 50 == 0)
			meet.arrive_and_wait();
	}
}

int main()
{
	std::vector<std::thread> threads;
	auto promised = std::async(std::launch::async, [] { return 7; });

	for (int i = 0; i < 4; i++)
		threads.emplace_back(work, i);
	for (auto &t : threads)
		t.join();
	try {
		std::unique_lock<std::mutex> none;

		none.lock();
		return printf("no exception\n"), 1;
	} catch (const std::system_error &) {
	}
	printf("%ld %ld %d\n", total, nreads, promised.get());
	return total != 1200 || turn != 1200;
}
