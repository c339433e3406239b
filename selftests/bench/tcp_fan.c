// SPDX-License-Identifier: GPL-2.0
/*
 * One copy of so many bytes to each receiver, all at once over TCP, so many times: when it
 * begins and who has them when, in ns of CLOCK_MONOTONIC.
 *
 *	tcp_fan serve PORT BYTES TIMES
 *	tcp_fan send PORT BYTES TIMES ADDR...
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_RECEIVERS	64
#define GIVE_UP_SECONDS	280

static char *buf;
static size_t bytes;

static void fail(const char *what)
{
	fprintf(stderr, "tcp_fan: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void serve(int port, int times)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };
	int on = 1, i, fd, listener = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&sin, sizeof(sin)) || listen(listener, 1))
		fail("listen");
	puts("ready");
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		fail("accept");
	for (i = 0; i < times; i++) {
		size_t at = 0;
		ssize_t n;

		while (at < bytes) {
			n = recv(fd, buf + at, bytes - at, 0);
			if (n <= 0)
				fail("recv");
			at += n;
		}
		printf("bcast %d 1 0 %llu\n", i, now());
		if (send(fd, "x", 1, MSG_NOSIGNAL) != 1)
			fail("send");
	}
}

/* Each receiver says when it has all of it; then the next time begins. */
static void fan(int port, int times, char **addrs, unsigned int n)
{
	struct pollfd pfds[MAX_RECEIVERS];
	size_t at[MAX_RECEIVERS];
	unsigned int i, left;
	int on = 1, k;

	for (i = 0; i < n; i++) {
		struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

		if (inet_pton(AF_INET, addrs[i], &sin.sin_addr) != 1)
			fail(addrs[i]);
		pfds[i].fd = socket(AF_INET, SOCK_STREAM, 0);
		if (connect(pfds[i].fd, (struct sockaddr *)&sin, sizeof(sin)))
			fail("connect");
		setsockopt(pfds[i].fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		fcntl(pfds[i].fd, F_SETFL, O_NONBLOCK);
	}
	for (k = 0; k < times; k++) {
		memset(at, 0, sizeof(at));
		printf("bcast %d 0 %llu 0\n", k, now());
		for (left = n; left;) {
			for (i = 0; i < n; i++)
				pfds[i].events = at[i] < bytes ? POLLOUT :
						 at[i] == bytes ? POLLIN : 0;
			if (poll(pfds, n, -1) < 0)
				fail("poll");
			for (i = 0; i < n; i++) {
				ssize_t some;
				char x;

				if (!(pfds[i].revents & pfds[i].events))
					continue;
				if (at[i] == bytes) {
					if (recv(pfds[i].fd, &x, 1, 0) != 1)
						fail("recv");
					at[i]++;
					left--;
					continue;
				}
				some = send(pfds[i].fd, buf + at[i], bytes - at[i], MSG_NOSIGNAL);
				if (some < 0 && errno != EAGAIN)
					fail("send");
				at[i] += some > 0 ? some : 0;
			}
		}
	}
}

int main(int argc, char **argv)
{
	alarm(GIVE_UP_SECONDS);
	setlinebuf(stdout);
	if (argc < 5 || argc > 5 + MAX_RECEIVERS)
		return 2;
	bytes = strtoul(argv[3], NULL, 0);
	buf = malloc(bytes);
	if (!buf)
		fail("malloc");
	memset(buf, 1, bytes);
	if (!strcmp(argv[1], "serve"))
		serve(atoi(argv[2]), atoi(argv[4]));
	else
		fan(atoi(argv[2]), atoi(argv[4]), argv + 5, argc - 5);
	return 0;
}
