/* Sends datagrams to itself over the loopback device, and prints when each was sent and arrived:
 * probe COUNT GAP_US. A line has the number of the datagram, the time of sending and of arrival in
 * ns; those that arrive are in order of arrival, the others follow with -1 as their arrival. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SIZE 472
#define QUIET_MS 1500

static long long *sent;
static char *arrived;

static long long now_ns(int clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Prints what has arrived; waits for the first datagram up to `wait_ms`. Returns their number. */
static int receive(int in, int wait_ms)
{
	struct pollfd poll_in = {.fd = in, .events = POLLIN};
	char bytes[2 * SIZE], control[128];
	int count = 0;

	if (poll(&poll_in, 1, wait_ms) <= 0)
		return 0;
	for (;; count++) {
		struct iovec part = {bytes, sizeof bytes};
		struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
					 .msg_controllen = sizeof control};
		struct timespec at = {0};
		unsigned int number;

		if (recvmsg(in, &message, MSG_DONTWAIT) < 0)
			return count;
		for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
			if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
				memcpy(&at, CMSG_DATA(c), sizeof at);
		memcpy(&number, bytes, sizeof number);
		arrived[number] = 1;
		printf("%u %lld %lld\n", number, sent[number],
		       at.tv_sec * 1000000000LL + at.tv_nsec);
	}
}

int main(int count_of_words, char **words)
{
	int packets = atoi(words[1]), gap_us = atoi(words[2]), room = 1 << 26, on = 1;
	int in = socket(AF_INET, SOCK_DGRAM, 0), out = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(9),
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	char bytes[SIZE] = {0};

	(void)count_of_words;
	sent = calloc(packets, sizeof *sent);
	arrived = calloc(packets, 1);
	setsockopt(in, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	setsockopt(out, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
	setsockopt(in, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
	if (bind(in, (struct sockaddr *)&here, sizeof here)) {
		perror("bind");
		return 1;
	}
	long long start = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < packets; i++) {
		long long at = start + i * 1000LL * gap_us, wait = at - now_ns(CLOCK_MONOTONIC);

		if (wait > 0)
			receive(in, wait / 1000000);
		while (now_ns(CLOCK_MONOTONIC) < at)
			;
		memcpy(bytes, &i, sizeof i);
		sent[i] = now_ns(CLOCK_REALTIME);
		sendto(out, bytes, sizeof bytes, 0, (struct sockaddr *)&here, sizeof here);
		receive(in, 0);
	}
	while (receive(in, QUIET_MS))
		;
	for (int i = 0; i < packets; i++)
		if (!arrived[i])
			printf("%d %lld -1\n", i, sent[i]);
	return 0;
}
