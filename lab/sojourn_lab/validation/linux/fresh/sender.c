/* Sends planned frames from device v0 to v1, and records when each arrives there: sender FRAMES OUT.
 *
 * It runs in a kernel whose clock stands still while it computes. A line of FRAMES is: time (ns
 * after the start), flow, length, TOS, priority. A line of OUT: time of sending, time of arrival
 * (-1 for none) and ECN field there. */

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#define FRAMES 100000
#define FLOWS 1000
#define LONGEST 2000
#define SECOND 1000000000LL

static long long sent[FRAMES], left[FRAMES];
static int ecn[FRAMES];

static void check(int failed, const char *what)
{
	if (failed) {
		perror(what);
		exit(1);
	}
}

static long long clock_ns(int clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void sleep_until(long long at)
{
	struct timespec t = {at / SECOND, at % SECOND};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Room for all frames at once: a queue must not stop its sender, nor a full socket lose frames. */
static int opened(const char *device, int option)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP)};
	int made = socket(AF_PACKET, SOCK_RAW, option == SO_RCVBUFFORCE ? htons(ETH_P_IP) : 0);
	int room = 1 << 29;

	check(made < 0, "socket");
	at.sll_ifindex = if_nametoindex(device);
	check(bind(made, (struct sockaddr *)&at, sizeof at), device);
	check(setsockopt(made, SOL_SOCKET, option, &room, sizeof room), "room");
	return made;
}

static unsigned short checksum(const void *from)
{
	const unsigned short *words = from;
	unsigned long sum = 0;

	for (int i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

static void fill(unsigned char *frame, unsigned number, int flow, int size, int tos)
{
	struct ether_header *ethernet = (void *)frame;
	struct iphdr *ip = (void *)(ethernet + 1);
	struct udphdr *udp = (void *)(ip + 1);

	memset(frame, 0, size);
	memcpy(ethernet->ether_dhost, "\2\0\0\0\0\2", 6);
	memcpy(ethernet->ether_shost, "\2\0\0\0\0\1", 6);
	ethernet->ether_type = htons(ETH_P_IP);
	ip->version = 4;
	ip->ihl = 5;
	ip->tos = tos;
	ip->tot_len = htons(size - sizeof *ethernet);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = htonl(0x0a000100 + flow % 3);
	ip->daddr = htonl(0x0a000200 + flow % 2);
	ip->check = checksum(ip);
	udp->source = htons(6000 + flow);
	udp->dest = htons(5002);
	udp->len = htons(size - sizeof *ethernet - sizeof *ip);
	memcpy(udp + 1, &number, sizeof number);
}

static void collect(int tap, long long shift)
{
	unsigned char data[64], notes[64];
	struct iovec part = {data, sizeof data};

	for (;;) {
		struct msghdr message = {
			.msg_iov = &part, .msg_iovlen = 1, .msg_control = notes,
			.msg_controllen = sizeof notes,
		};
		unsigned number;
		struct timespec t;

		if (recvmsg(tap, &message, MSG_DONTWAIT) < 0)
			return;
		memcpy(&number, data + 42, sizeof number);
		memcpy(&t, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof t);
		left[number] = t.tv_sec * SECOND + t.tv_nsec - shift;
		ecn[number] = data[15] & 3;
	}
}

int main(int count, char **names)
{
	static int sockets[FLOWS];
	unsigned char frame[LONGEST];
	long long at, start, shift;
	int flow, size, tos, priority, n = 0, yes = 1;
	FILE *plan = count == 3 ? fopen(names[1], "r") : NULL;
	int tap = opened("v1", SO_RCVBUFFORCE);

	check(!plan, "plan");
	check(prctl(PR_SET_TIMERSLACK, 1), "slack");
	check(setsockopt(tap, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes), "stamps");
	shift = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	/* Two seconds are a whole number of CoDel's units of 1024 ns. */
	start = (clock_ns(CLOCK_MONOTONIC) / SECOND / 2 + 1) * 2 * SECOND;
	while (fscanf(plan, "%lld %d %d %d %d", &at, &flow, &size, &tos, &priority) == 5) {
		check(n == FRAMES || flow < 0 || flow >= FLOWS || size > LONGEST, "frame");
		if (!sockets[flow]) {
			sockets[flow] = opened("v0", SO_SNDBUFFORCE);
			check(setsockopt(sockets[flow], SOL_SOCKET, SO_PRIORITY, &priority,
					 sizeof priority), "priority");
		}
		fill(frame, n, flow, size, tos);
		left[n] = -1;
		sleep_until(start + at);
		sent[n] = clock_ns(CLOCK_MONOTONIC) - start;
		send(sockets[flow], frame, size, 0); /* fails if the queue drops it */
		n++;
	}
	sleep_until(start + at + 5 * SECOND);
	collect(tap, shift);
	FILE *out = fopen(names[2], "w");
	check(!out, names[2]);
	for (int i = 0; i < n; i++)
		fprintf(out, "%lld %lld %d\n", sent[i], left[i] < 0 ? -1 : left[i] - start, ecn[i]);
	return fclose(out);
}
