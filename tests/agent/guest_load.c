/* guest_load.c - libraries that come and go while their code is sampled. The two that it is given
 * often get the same place. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "guest.h"

static atomic_bool is_over;
static const char *directory;

static void *load(const char *name, void *(*loader)(const char *))
{
	char path[4096];
	void *handle;

	snprintf(path, sizeof(path), "%s/lib%s.so", directory, name);
	handle = loader(path);
	if (!handle)
		printf("%s\n", dlerror());
	return handle;
}

static void *load_now(const char *path)
{
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *load_apart(const char *path)
{
	return dlmopen(LM_ID_NEWLM, path, RTLD_NOW);
}

static void use(void *handle, const char *name, int milliseconds)
{
	char symbol[50];
	void (*run)(int);
	void *(*allocate)(size_t);

	snprintf(symbol, sizeof(symbol), "burn_in_%s", name);
	run = (void (*)(int))dlsym(handle, symbol);
	snprintf(symbol, sizeof(symbol), "allocate_in_%s", name);
	allocate = (void *(*)(size_t))dlsym(handle, symbol);
	run(milliseconds);
	for (int i = 0; i < 10; i++)
		(void)allocate(20000); /* outlives the code that made it */
}

static int in_turns(void)
{
	for (int i = 0; i < 10; i++) {
		const char *name = i % 2 ? "b" : "a";
		void *handle = load(name, load_now);

		use(handle, name, 30);
		CHECK(dlclose(handle) == 0);
		CHECK(dlopen("libguest_b.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
	}
	return 0;
}

static void *burn_for_ever(void *argument)
{
	while (!is_over) {
		free(malloc(1000));
		burn(1);
	}
	return argument;
}

/* As fast as it goes, while other threads are sampled. */
static int storm(void)
{
	int64_t end = clock_ns(CLOCK_MONOTONIC) + 500000000;
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, burn_for_ever, NULL);
	for (int i = 0; clock_ns(CLOCK_MONOTONIC) < end; i++) {
		void *handle = load(i % 2 ? "b" : "a", load_now);

		use(handle, i % 2 ? "b" : "a", 0);
		dlclose(handle);
	}
	is_over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* In a name space of its own, with a libc of its own. */
static int apart(void)
{
	void *handle = load("a", load_apart);

	use(handle, "a", 150);
	return dlclose(handle);
}

/* The agent itself, in the middle of the program's life. */
static int agent_late(void)
{
	const char *agent = getenv("GUEST_LATE");

	burn(20);
	if (agent)
		CHECK(dlopen(agent, RTLD_NOW | RTLD_GLOBAL) != NULL);
	burn(200);
	if (agent)
		dlclose(dlopen(agent, RTLD_NOW));
	return 0;
}

static int errors(void)
{
	CHECK(dlopen("/no/such/library", RTLD_NOW) == NULL);
	printf("%s\n", dlerror());
	CHECK(dlsym(RTLD_DEFAULT, "no_such_symbol") == NULL);
	printf("%s\n", dlerror());
	CHECK(dlerror() == NULL);
	CHECK(dlsym(RTLD_DEFAULT, "malloc") != NULL);
	CHECK(dlsym(RTLD_NEXT, "malloc") != NULL);
	CHECK(dlerror() == NULL);
	burn(50);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "in_turns", in_turns },     { "storm", storm },   { "apart", apart },
		{ "agent_late", agent_late }, { "errors", errors }, { NULL, NULL },
	};

	directory = argc > 2 ? argv[2] : ".";
	return run_case(argc, argv, cases);
}
