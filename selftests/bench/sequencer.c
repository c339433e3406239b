// SPDX-License-Identifier: GPL-2.0
/*
 * A sequencer over TCP, the plain way to one order for all: what Spindle is
 * compared with.
 *
 *	sequencer lat ADDR PORT NODE NODES SIZE COUNT INTERVAL_US SENDER
 *	sequencer stream ADDR PORT NODE NODES SIZE SECONDS
 *
 * One runs on each node. Node 0, at ADDR, is the sequencer: the others send it
 * their messages, it gives each the next place, and sends it to all of them, the
 * sender too. That is when the sender delivers it. Nobody acknowledges anything:
 * a message may be delivered that is lost with the sequencer, and known to
 * nobody else.
 *
 * lat has one node send COUNT messages, each when the one before was delivered
 * there and a pause is over. stream has all nodes send as fast as they can, up to
 * a ring of bytes each that are not back yet; the first tenth is for warming up.
 * Messages are made and read where they lie, and as many of them are read or
 * written at once as are there. Prints one line of "key=value" words.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bench.h"

#define MAX_NODES	16
#define RING		(1U << 20)	/* of a sender, as Spindle's are */
#define UNIT		16U		/* headers and numbers lie in one piece */
#define MAX_RUNS	1024U
#define MAX_PIECES	64
#define WARMUP		20
#define GIVE_UP_SECONDS	120

enum kind {
	BEGIN,		/* all are there */
	DATA,
	LAST,		/* of its sender */
};

struct header {
	uint32_t len;		/* with this, and what fills the last unit */
	uint16_t from;
	uint16_t kind;
	uint64_t place;
};

_Static_assert(sizeof(struct header) == UNIT, "a header is a unit");

/* @head bytes were made or read, and @tail of them are no longer needed. */
struct ring {
	_Alignas(UNIT) unsigned char data[RING];
	uint64_t head;
	uint64_t tail;
};

/* Messages one behind another in a ring, and in the order. */
struct run {
	struct ring *ring;
	uint64_t at;
	uint32_t len;
};

/* Another node: at the sequencer each of them, elsewhere the sequencer. */
struct peer {
	int fd;
	struct ring in;
	uint64_t seen;		/* bytes of @in: ordered, or delivered */
	uint64_t run;		/* the sequencer: the next one for it */
	uint32_t done;		/* bytes of that run that are written */
};

/* The sequencer has an entry of @peers for itself, without a connection. */
static struct {
	unsigned int node, nodes, senders;
	struct peer peers[MAX_NODES];
	struct ring own;
	uint64_t own_seen;	/* bytes of @own: ordered, or written */
	struct run runs[MAX_RUNS];
	uint64_t first_run, end_run;
	uint64_t place;
	/* what is sent */
	bool lat, sends, begun, ended, full;
	uint32_t size;
	double interval, until, due;
	uint64_t sent, count;
	double sent_at, *us;
	/* what is delivered */
	uint64_t next, from[MAX_NODES], bytes, hash;
	unsigned int lasts;
	/* when the stream had warmed up, and what was delivered before */
	double warm, warm_at;
	uint64_t warm_bytes;
} me;

static void *at(struct ring *ring, uint64_t pos)
{
	return ring->data + pos % RING;
}

/* One or two pieces. */
static int pieces(struct ring *ring, uint64_t pos, uint32_t len, struct iovec *iov)
{
	uint32_t first = RING - pos % RING;

	if (first >= len) {
		iov[0] = (struct iovec){ at(ring, pos), len };
		return 1;
	}
	iov[0] = (struct iovec){ at(ring, pos), first };
	iov[1] = (struct iovec){ ring->data, len - first };
	return 2;
}

static uint32_t length(uint32_t size)
{
	return sizeof(struct header) + (size + UNIT - 1) / UNIT * UNIT;
}

/* False: the ring is full. */
static bool make(enum kind kind, uint32_t size)
{
	struct header h = { .len = length(size), .from = me.node, .kind = kind };

	if (me.own.head + h.len - me.own.tail > RING) {
		me.full = true;
		return false;
	}
	memcpy(at(&me.own, me.own.head), &h, sizeof(h));
	if (kind == DATA)
		memcpy(at(&me.own, me.own.head + sizeof(h)), &me.sent, sizeof(me.sent));
	me.own.head += h.len;
	return true;
}

/* The next message of the order. */
static void deliver(struct ring *ring, uint64_t pos, const struct header *h)
{
	uint64_t number;

	if (h->place != me.next++ || h->from >= me.nodes)
		fail("place %llu of node %u", (unsigned long long)h->place, h->from);
	if (h->from == me.node && me.node)
		me.own.tail += h->len;
	if (h->kind == BEGIN) {
		me.begun = true;
		me.due = now();
		me.warm = me.due + me.until / 10;
		me.until += me.warm;
		return;
	}
	if (h->kind == LAST) {
		me.lasts++;
		return;
	}
	memcpy(&number, at(ring, pos + sizeof(*h)), sizeof(number));
	if (number != me.from[h->from]++ || h->len != length(me.size))
		fail("message %llu of node %u", (unsigned long long)number, h->from);
	me.hash = (me.hash ^ (uint64_t)h->from << 56 ^ number) * 0x100000001b3ULL;
	me.hash ^= me.hash >> 29;
	me.bytes += me.size;
	if (!me.lat || h->from != me.node)
		return;
	me.due = now();
	me.us[number] = (me.due - me.sent_at) * 1e6;
	me.due += me.interval;
}

/* The message at @pos, if all of it is there. */
static struct header *whole(struct ring *ring, uint64_t pos)
{
	struct header *h = at(ring, pos);

	if (ring->head - pos < sizeof(*h))
		return NULL;
	if (h->len < sizeof(*h) || h->len > RING || h->len % UNIT)
		fail("a message of %u bytes", h->len);
	return ring->head - pos < h->len ? NULL : h;
}

/*
 * What may be sent by now. In a stream the sequencer, whose own messages have no
 * way to go, is not ahead of any other node by more than a ring.
 */
static void send_own(void)
{
	uint64_t least = UINT64_MAX;
	double time;
	unsigned int i;

	if (!me.sends || !me.begun || me.ended || (me.lat && me.from[me.node] < me.sent))
		return;
	time = now();
	if (!me.lat && !me.warm_at && time >= me.warm) {
		me.warm_at = time;
		me.warm_bytes = me.bytes;
	}
	if (me.lat ? me.sent == me.count : time >= me.until) {
		me.ended = make(LAST, 0);
	} else if (!me.lat) {
		for (i = 1; !me.node && i < me.nodes; i++)
			least = me.peers[i].seen < least ? me.peers[i].seen : least;
		while ((me.node || me.own.head < least + RING) && make(DATA, me.size))
			me.sent++;
	} else if (time >= me.due && make(DATA, me.size)) {
		me.sent_at = time;
		me.sent++;
	}
}

/* Give places to all messages of the ring from @seen on that are whole. */
static void order(struct ring *ring, uint64_t *seen)
{
	uint64_t pos = *seen;
	struct header *h;

	if (me.end_run - me.first_run == MAX_RUNS) {
		me.full = true;
		return;
	}
	while ((h = whole(ring, pos))) {
		h->place = me.place++;
		pos += h->len;
	}
	if (pos == *seen)
		return;
	me.runs[me.end_run++ % MAX_RUNS] = (struct run){ ring, *seen, pos - *seen };
	*seen = pos;
}

/* Write; the number of bytes that were taken. */
static size_t write_pieces(int fd, const struct iovec *iov, int n)
{
	ssize_t done = n ? writev(fd, iov, n) : 0;

	if (done < 0 && errno != EAGAIN && errno != EINTR)
		fail("writev: %s", strerror(errno));
	return done < 0 ? 0 : done;
}

static void read_some(struct peer *p)
{
	struct iovec iov[2];
	ssize_t done;

	done = readv(p->fd, iov, pieces(&p->in, p->in.head, RING - (p->in.head - p->in.tail), iov));
	if (!done)
		fail("node %u: the connection has ended", me.node);
	if (done < 0 && errno != EAGAIN && errno != EINTR)
		fail("readv: %s", strerror(errno));
	p->in.head += done < 0 ? 0 : done;
}

static void write_runs(struct peer *p)
{
	struct iovec iov[MAX_PIECES + 1];
	const struct run *run;
	uint64_t i;
	size_t done;
	int n = 0;

	for (i = p->run; i < me.end_run && n < MAX_PIECES; i++) {
		uint32_t skip = i == p->run ? p->done : 0;

		run = &me.runs[i % MAX_RUNS];
		n += pieces(run->ring, run->at + skip, run->len - skip, iov + n);
	}
	done = p->done + write_pieces(p->fd, iov, n);
	for (; p->run < me.end_run; p->run++) {
		run = &me.runs[p->run % MAX_RUNS];
		if (done < run->len)
			break;
		done -= run->len;
	}
	p->done = done;
}

/* The sequencer is a member, too. */
static void deliver_runs(struct peer *self)
{
	for (; self->run < me.end_run; self->run++) {
		const struct run *run = &me.runs[self->run % MAX_RUNS];
		uint64_t pos = run->at;

		while (pos < run->at + run->len) {
			const struct header *h = at(run->ring, pos);

			deliver(run->ring, pos, h);
			pos += h->len;
		}
	}
}

/* Runs that are written to all and delivered here are no longer needed. True: there were some. */
static bool free_runs(void)
{
	uint64_t least = me.peers[0].run, before = me.first_run;
	unsigned int i;

	for (i = 1; i < me.nodes; i++)
		least = me.peers[i].run < least ? me.peers[i].run : least;
	for (; me.first_run < least; me.first_run++) {
		const struct run *run = &me.runs[me.first_run % MAX_RUNS];

		run->ring->tail = run->at + run->len;
	}
	return me.first_run > before;
}

/* Sleep until there is something to do, for no time at all if there is already. */
static void doze(struct pollfd *fds, unsigned int n, bool busy)
{
	bool sends = me.sends && me.begun && !me.ended;
	bool waits = busy || (sends && (!me.lat || me.from[me.node] == me.sent));
	double left = busy || !waits ? 0 : (me.lat ? me.due : me.until) - now();
	struct timespec ts = { 0 };

	if (left > 0) {
		ts.tv_sec = left;
		ts.tv_nsec = (left - ts.tv_sec) * 1e9;
	}
	if (ppoll(fds, n, waits ? &ts : NULL, NULL) < 0)
		fail("ppoll: %s", strerror(errno));
}

/* Node 0. */
static void sequence(void)
{
	struct pollfd fds[MAX_NODES] = { { .fd = -1 } };
	bool more, freed;
	unsigned int i;

	make(BEGIN, 0);
	for (;;) {
		me.full = false;
		for (i = 1; i < me.nodes; i++)
			order(&me.peers[i].in, &me.peers[i].seen);
		send_own();
		order(&me.own, &me.own_seen);
		more = false;
		for (i = 1; i < me.nodes; i++) {
			write_runs(&me.peers[i]);
			more |= me.peers[i].run < me.end_run;
		}
		deliver_runs(&me.peers[0]);
		if (me.lasts == me.senders && !more)
			break;
		freed = free_runs();
		for (i = 1; i < me.nodes; i++) {
			const struct peer *p = &me.peers[i];

			fds[i].fd = p->fd;
			fds[i].events = (p->in.head - p->in.tail < RING ? POLLIN : 0) |
					(p->run < me.end_run ? POLLOUT : 0);
		}
		doze(fds, me.nodes, me.full && freed);
		for (i = 1; i < me.nodes; i++)
			if (fds[i].revents & ~POLLOUT)
				read_some(&me.peers[i]);
	}
}

/* The other nodes. */
static void follow(void)
{
	struct peer *p = &me.peers[0];
	struct pollfd fd = { .fd = p->fd };
	struct iovec iov[2];
	struct header *h;
	uint32_t left;

	while (me.lasts < me.senders) {
		send_own();
		left = me.own.head - me.own_seen;
		if (left)
			me.own_seen += write_pieces(p->fd, iov,
						    pieces(&me.own, me.own_seen, left, iov));
		fd.events = POLLIN | (me.own_seen < me.own.head ? POLLOUT : 0);
		doze(&fd, 1, false);
		if (!(fd.revents & ~POLLOUT))
			continue;
		read_some(p);
		for (; (h = whole(&p->in, p->seen)); p->seen += h->len)
			deliver(&p->in, p->seen, h);
		p->in.tail = p->seen;
	}
}

static void set_up(int fd)
{
	int one = 1;

	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    fcntl(fd, F_SETFL, O_NONBLOCK))
		fail("socket: %s", strerror(errno));
}

static void meet(const struct sockaddr_in *sin)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd, one = 1;
	unsigned int i, node;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (const struct sockaddr *)sin, sizeof(*sin)) ||
	    listen(listener, MAX_NODES))
		fail("listen: %s", strerror(errno));
	for (i = 1; i < me.nodes; i++) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0 || read(fd, &node, sizeof(node)) != sizeof(node) || !node ||
		    node >= me.nodes || me.peers[node].fd >= 0)
			fail("accept: %s", strerror(errno));
		me.peers[node].fd = fd;
		set_up(fd);
	}
	close(listener);
}

/* The sequencer may be late. */
static void reach(const struct sockaddr_in *sin)
{
	int fd;

	while ((fd = socket(AF_INET, SOCK_STREAM, 0)) >= 0 &&
	       connect(fd, (const struct sockaddr *)sin, sizeof(*sin))) {
		if (errno != ECONNREFUSED)
			fail("connect: %s", strerror(errno));
		close(fd);
		usleep(20000);
	}
	if (write(fd, &me.node, sizeof(me.node)) != sizeof(me.node))
		fail("write: %s", strerror(errno));
	me.peers[0].fd = fd;
	set_up(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	unsigned int i;
	double seconds;

	alarm(GIVE_UP_SECONDS);
	me.lat = argc == 10 && !strcmp(argv[1], "lat");
	if (!me.lat && (argc != 8 || strcmp(argv[1], "stream")))
		fail("see the top of its source");
	sin.sin_port = htons(atoi(argv[3]));
	me.node = atoi(argv[4]);
	me.nodes = atoi(argv[5]);
	me.size = atoi(argv[6]);
	if (inet_pton(AF_INET, argv[2], &sin.sin_addr) != 1 || me.nodes > MAX_NODES ||
	    me.node >= me.nodes || me.size < sizeof(me.sent) || me.size > RING / 4)
		fail("an address, up to %d nodes, a size from 8 to %u", MAX_NODES, RING / 4);
	me.senders = me.lat ? 1 : me.nodes;
	me.sends = !me.lat || me.node == (unsigned int)atoi(argv[9]);
	if (me.lat) {
		me.count = WARMUP + atoi(argv[7]);
		me.interval = atof(argv[8]) / 1e6;
		me.us = calloc(me.count, sizeof(*me.us));
		if (me.count == WARMUP || !me.us || atoi(argv[9]) >= (int)me.nodes)
			fail("a count, and one of the nodes as the sender");
	} else {
		me.until = atof(argv[7]);
	}
	me.hash = 0xcbf29ce484222325ULL;
	for (i = 0; i < me.nodes; i++)
		me.peers[i].fd = -1;
	if (me.node) {
		reach(&sin);
		follow();
	} else {
		meet(&sin);
		sequence();
	}
	seconds = now() - me.warm_at;
	if (me.lat && me.sends)
		print_latencies(me.us + WARMUP, me.count - WARMUP);
	if (!me.lat)
		printf("bytes_per_second=%.0f seconds=%.6f sent=%llu ",
		       (me.bytes - me.warm_bytes) / seconds, seconds,
		       (unsigned long long)me.sent);
	printf("messages=%llu hash=%016llx\n",
	       (unsigned long long)(me.next - 1 - me.senders), (unsigned long long)me.hash);
	return 0;
}
