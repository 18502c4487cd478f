/* Bulk TCP flows from network namespace s to namespace d: flows SECONDS WARM_UP SCRIPT CONTROL...
 *
 * Flow i starts at 0.13 i s. Prints the bytes that each flow delivered after the warm-up, then the
 * number, the mean and the 99th percentile (ns) of the times that probes took: a datagram of
 * 8 bytes every 10 ms. At the end of the warm-up it runs SCRIPT by sh. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT 5001
#define FLOWS 64
#define PROBES 100000
#define CHUNK 65536
#define SECOND 1000000000LL
#define STEP 130000000LL
#define GAP 10000000LL

struct shared {
	long long bytes[FLOWS];
	long long delays[PROBES];
	int probes, measures;
};

static struct shared *shared;
static char chunk[CHUNK];

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void sleep_until(long long at)
{
	struct timespec t = { at / SECOND, at % SECOND };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void enter(const char *path)
{
	int space = open(path, O_RDONLY);

	check(space < 0, path);
	check(setns(space, CLONE_NEWNET) < 0, "setns");
	close(space);
}

static struct sockaddr_in receiver(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	to.sin_addr.s_addr = inet_addr("10.9.2.1");
	return to;
}

static int listening(int type, int port)
{
	struct sockaddr_in at = receiver(port);
	int s = socket(AF_INET, type, 0), yes = 1;

	check(s < 0, "socket");
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	check(bind(s, (void *)&at, sizeof(at)) < 0, "bind");
	check(type == SOCK_STREAM && listen(s, 1) < 0, "listen");
	return s;
}

static void receive(int listener, int flow)
{
	int s = accept(listener, NULL, NULL);
	long n;

	check(s < 0, "accept");
	while ((n = read(s, chunk, CHUNK)) > 0)
		shared->bytes[flow] += n;
}

static void transmit(const char *control, int flow, long long start)
{
	struct sockaddr_in to = receiver(PORT + flow);
	int s = socket(AF_INET, SOCK_STREAM, 0);

	check(s < 0, "socket");
	check(setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, control, strlen(control)) < 0, control);
	sleep_until(start + flow * STEP);
	check(connect(s, (void *)&to, sizeof(to)) < 0, "connect");
	while (write(s, chunk, CHUNK) > 0)
		;
}

static void probe(long long start)
{
	struct sockaddr_in to = receiver(PORT - 1);
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	for (long long at = start;; at += GAP) {
		long long sent;

		sleep_until(at);
		sent = now();
		sendto(s, &sent, sizeof(sent), 0, (void *)&to, sizeof(to));
	}
}

static void take_probes(int s)
{
	long long sent;

	while (read(s, &sent, sizeof(sent)) == sizeof(sent))
		if (shared->measures && shared->probes < PROBES)
			shared->delays[shared->probes++] = now() - sent;
}

static int by_size(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int flows = argc - 4, size = sizeof(*shared), sockets[FLOWS], probes, n;
	double seconds = atof(argv[1]), warm = atof(argv[2]), sum = 0;
	long long before[FLOWS], start;

	check(flows < 1 || flows > FLOWS, "flows");
	setpgid(0, 0);
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared == MAP_FAILED, "mmap");
	enter("/run/netns/d");
	for (int i = 0; i < flows; i++)
		sockets[i] = listening(SOCK_STREAM, PORT + i);
	probes = listening(SOCK_DGRAM, PORT - 1);
	for (int i = 0; i < flows; i++)
		if (!fork()) {
			receive(sockets[i], i);
			exit(0);
		}
	if (!fork()) {
		take_probes(probes);
		exit(0);
	}
	enter("/run/netns/s");
	start = now() + SECOND;
	for (int i = 0; i < flows; i++)
		if (!fork()) {
			transmit(argv[4 + i], i, start);
			exit(0);
		}
	if (!fork()) {
		probe(start);
		exit(0);
	}
	sleep_until(start + (long long)(warm * SECOND));
	memcpy(before, shared->bytes, sizeof(before));
	shared->measures = 1;
	snprintf(chunk, CHUNK, "sh %s", argv[3]);
	check(system(chunk) != 0, argv[3]);
	sleep_until(start + (long long)(seconds * SECOND));
	shared->measures = 0;
	for (int i = 0; i < flows; i++)
		printf("%lld ", shared->bytes[i] - before[i]);
	n = shared->probes;
	qsort(shared->delays, n, sizeof(long long), by_size);
	for (int i = 0; i < n; i++)
		sum += shared->delays[i];
	printf("%d %.0f %lld\n", n, n ? sum / n : 0, n ? shared->delays[99LL * n / 100] : 0);
	fflush(stdout);
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	while (wait(NULL) > 0)
		;
	return 0;
}
