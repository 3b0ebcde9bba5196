/* primes.c - a server of numbers, with profiles of itself.
 *
 *	cc -g -O2 -o primes primes.c $(pkg-config --cflags --libs kiln) -pthread
 *	./primes 7070 :8070 &
 *	printf '1000000\n' | nc -N localhost 7070	how many primes are below a million?
 *	kiln -top http://localhost:8070			where does the time go?
 *	kiln -tags http://localhost:8070/debug/pprof/profile?seconds=5
 *	kiln -traces http://localhost:8070/debug/pprof/connections
 *
 * A thread for each client. Its samples have the label "digits", so that requests of different size
 * can be told apart; open connections are a profile of their own.
 */
#include <arpa/inet.h>
#include <kiln.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LIMIT = 50000000 };

static kiln_profile *connections;

static long count_primes(long below)
{
	unsigned char *is_composite = calloc((size_t)below + 1, 1);
	long n = 0;

	if (!is_composite)
		return -1;
	for (long i = 2; i < below; i++) {
		if (is_composite[i])
			continue;
		n++;
		for (long k = i * i; k < below; k += i)
			is_composite[k] = 1;
	}
	free(is_composite);
	return n;
}

static void answer(FILE *client, const char *line)
{
	char digits[16];
	long below = strtol(line, NULL, 10);

	snprintf(digits, sizeof(digits), "%zu", strspn(line, "0123456789"));
	KILN_LABEL("digits", digits);
	if (below < 0 || below > LIMIT)
		fprintf(client, "from 0 to %d, please\n", LIMIT);
	else
		fprintf(client, "%ld\n", count_primes(below));
	fflush(client);
}

static void *serve_client(void *argument)
{
	int fd = (int)(intptr_t)argument;
	FILE *client = fdopen(fd, "r+");
	char line[64];

	if (!client) {
		close(fd);
		return NULL;
	}
	kiln_profile_add(connections, client, 0);
	while (fgets(line, sizeof(line), client)) {
		fseek(client, 0, SEEK_CUR); /* from reading to writing */
		answer(client, line);
	}
	kiln_profile_remove(connections, client);
	fclose(client);
	return NULL;
}

static int listen_on(unsigned short port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(fd, 64) != 0)
		return -1;
	return fd;
}

int main(int argc, char **argv)
{
	int fd, failed;

	if (argc != 3) {
		fprintf(stderr, "usage: primes PORT PROFILES, e.g. primes 7070 :8070\n");
		return 2;
	}
	connections = kiln_profile_new("connections");
	failed = kiln_serve(argv[2]);
	if (failed)
		fprintf(stderr, "primes: no profiles on %s: %s\n", argv[2], strerror(-failed));
	fd = listen_on((unsigned short)atoi(argv[1]));
	if (fd < 0) {
		perror("primes");
		return 1;
	}
	for (;;) {
		int client = accept(fd, NULL, NULL);
		pthread_t thread;

		if (client >= 0 &&
		    pthread_create(&thread, NULL, serve_client, (void *)(intptr_t)client) == 0)
			pthread_detach(thread);
		else if (client >= 0)
			close(client);
	}
}
