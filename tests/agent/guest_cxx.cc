/* guest_cxx.cc - what C++ programs bring: exceptions, destructors, operators, locks of its library. */
#include <atomic>
#include <condition_variable>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <new>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "guest.h"

static std::atomic<int> ndestroyed;

NOT_INLINED static void throw_from(int depth)
{
	if (depth == 0)
		throw std::runtime_error("thrown");
	throw_from(depth - 1);
	STAYS;
}

static int exceptions()
{
	std::vector<std::thread> threads;
	std::atomic<int> nwrong{ 0 };

	for (int i = 0; i < 3; i++)
		threads.emplace_back([&] {
			int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 200000000;

			while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
				try {
					throw_from(20);
					nwrong++;
				} catch (const std::exception &e) {
					nwrong += std::string(e.what()) != "thrown";
				}
			}
		});
	for (auto &t : threads)
		t.join();
	printf("%d\n", nwrong.load());
	return 0;
}

struct counted {
	~counted()
	{
		ndestroyed++;
		std::string not_short(1000, 'x');
	}
};

static thread_local counted of_thread;

/* A cancelled thread is unwound through the hooks, and through all that the program put there. */
static int cancelled()
{
	for (int i = 0; i < 30; i++) {
		pthread_t thread;
		void *result;

		pthread_create(
			&thread, nullptr,
			[](void *) -> void * {
				static std::mutex lock;
				static std::condition_variable_any never;
				counted here;
				void *p = &of_thread;

				for (;;) {
					std::unique_lock<std::mutex> hold(lock);
					never.wait(hold);
				}
				return p;
			},
			nullptr);
		nap(2);
		pthread_cancel(thread);
		pthread_join(thread, &result);
		CHECK(result == PTHREAD_CANCELED);
	}
	printf("%d\n", ndestroyed.load());
	return 0;
}

struct alignas(256) aligned {
	char bytes[512];
};

static int nhandled;

static int operators()
{
	auto *one = new int(1);
	auto *many = new std::string[100];
	auto *far_apart = new aligned;
	auto *far_many = new aligned[10];
	volatile size_t much = SIZE_MAX / 4;

	CHECK(((uintptr_t)far_apart & 255) == 0 && ((uintptr_t)far_many & 255) == 0);
	delete one;
	delete[] many;
	delete far_apart;
	delete[] far_many;
	CHECK(operator new(much, std::nothrow) == nullptr);
	CHECK(operator new(much, std::align_val_t(64), std::nothrow) == nullptr);
	try {
		operator delete(operator new(much));
		printf("no exception\n");
	} catch (const std::bad_alloc &) {
		printf("bad_alloc\n");
	}
	std::set_new_handler([] {
		if (++nhandled == 3)
			std::set_new_handler(nullptr);
	});
	try {
		operator delete(operator new(much));
	} catch (const std::bad_alloc &) {
		printf("handled %d times\n", nhandled);
	}
	operator delete(operator new(100), std::nothrow);
	operator delete(operator new(100), (size_t)100);
	operator delete[](operator new[](100), (size_t)100);
	operator delete(operator new(100, std::align_val_t(128)), (size_t)100, std::align_val_t(128));
	std::vector<std::unique_ptr<std::string>> some;
	for (int i = 0; i < 10000; i++)
		some.push_back(std::make_unique<std::string>((size_t)i % 500, 'x'));
	return 0;
}

static int locks()
{
	std::shared_mutex shared;
	std::recursive_timed_mutex recursive;
	std::counting_semaphore<10> semaphore(0);
	std::latch all(4);
	std::mutex mutex;
	std::condition_variable cond;
	std::atomic<int> word{ 0 };
	std::vector<std::thread> threads;
	int sum = 0, turn = 0;

	for (int i = 0; i < 4; i++)
		threads.emplace_back([&, i] {
			all.arrive_and_wait();
			for (int k = 0; k < 200; k++) {
				std::unique_lock<std::shared_mutex> write(shared);
				sum++;
			}
			for (int k = 0; k < 200; k++)
				std::shared_lock<std::shared_mutex> read(shared);
			{
				std::lock_guard<std::recursive_timed_mutex> once(recursive);
				std::lock_guard<std::recursive_timed_mutex> twice(recursive);
			}
			semaphore.release();
			std::unique_lock<std::mutex> hold(mutex);
			cond.wait(hold, [&] { return turn == i; });
			turn++;
			cond.notify_all();
		});
	for (int i = 0; i < 4; i++)
		semaphore.acquire();
	CHECK(!semaphore.try_acquire_for(std::chrono::milliseconds(10)));
	CHECK(recursive.try_lock_for(std::chrono::seconds(5)));
	recursive.unlock();
	std::thread waker([&] {
		nap(20);
		word = 1;
		word.notify_all();
	});
	word.wait(0);
	waker.join();
	for (auto &t : threads)
		t.join();
	printf("%d %d\n", sum, turn);
	return 0;
}

static struct at_end {
	~at_end()
	{
		std::string text(100000, 'y');

		printf("destroyed %zu\n", text.size());
		burn(5);
		std::thread([] { free(malloc(5000)); }).join();
	}
} at_end;

static int nothing()
{
	burn(50);
	return 0;
}

static int terminates()
{
	std::thread([] { throw std::runtime_error("nobody catches it"); }).join();
	return 1;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "exceptions", exceptions }, { "cancelled", cancelled }, { "operators", operators },
		{ "locks", locks },	      { "nothing", nothing },	  { "terminates", terminates },
		{ nullptr, nullptr },
	};

	return run_case(argc, argv, cases);
}
