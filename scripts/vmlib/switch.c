// SPDX-License-Identifier: GPL-2.0
/*
 * The Ethernet switch between guests, and the wires to it.
 *
 *   switch CONTROL SEED FD...
 *
 * FD i is the switch's end of node i's AF_UNIX datagram socketpair, one frame
 * a datagram. CONTROL is a stream socket with one command a line:
 *
 *   link A B KEY=VALUE...	what frames from A to B meet: cut=0|1,
 *				rate=BITS/S (0: any), delay=NS, loss=PPM
 *   port A KEY=VALUE...	A's own cable: rate=BITS/S in each direction,
 *				stalled=0|1 (the guest is known not to read),
 *				gone=0|1 (there is no guest: nothing is kept for it)
 *   stats			frames, bytes and drops for each pair
 *
 * and one line of answer to each. It ends when CONTROL does.
 *
 * A lost packet costs soft-RoCE a retransmission timeout, so congestion alone
 * loses nothing: while a queue towards some destination is full, the switch
 * does not read from the source, and the source's own queue discipline holds.
 * A destination that takes nothing for STALL_NS would stop everybody that way;
 * from then on its frames are dropped until it reads again.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_PORTS	64
#define FRAME_SIZE	9216
#define BATCH		32
#define QUEUE_READY	128	/* frames held for a destination that is busy */
#define QUEUE_FLYING	16384	/* frames on the wire: rate x delay */
#define BACKLOG_NS	3000000	/* how far a throttled wire may be booked ahead */
#define BURST_NS	200000	/* slack of the pacing: timers are not exact */
#define STALL_NS	500000000ULL
#define SOCKET_BUFFER	(1 << 20)

struct frame {
	struct frame *next;	/* in the free list */
	uint32_t refs;
	uint32_t len;
	uint8_t data[FRAME_SIZE];
};

struct held {
	uint64_t due;
	struct frame *frame;
};

/* What lies between one source and one destination. */
struct wire {
	bool cut;
	uint64_t rate, delay;
	uint32_t loss;
	uint64_t random;
	uint64_t busy_until;
	uint64_t frames, bytes, lost, dropped;
	struct held *ring;	/* FIFO, a power of two of them */
	uint32_t size, head, tail;
	uint64_t last_due;
};

struct port {
	int fd;
	bool open, reading, writable, stalled;
	bool paused, gone;		/* by command */
	uint64_t rate;
	uint64_t out_busy, in_busy;	/* the cable, from and to the node */
	uint64_t blocked_since;
	uint32_t events;		/* what epoll watches now */
	uint32_t held;
	uint32_t next_src;		/* round robin */
};

static struct port ports[MAX_PORTS];
static struct wire wires[MAX_PORTS][MAX_PORTS];
static int nr_ports, control, epfd;
static struct frame *free_frames;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static void *need(void *p)
{
	if (!p) {
		fputs("switch: out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static struct frame *get_frame(void)
{
	struct frame *f = free_frames;

	if (f)
		free_frames = f->next;
	else
		f = need(malloc(sizeof(*f)));
	f->refs = 1;
	return f;
}

static void put_frame(struct frame *f)
{
	if (--f->refs)
		return;
	f->next = free_frames;
	free_frames = f;
}

/* splitmix64: each wire has its own sequence, so a seed fixes which frames go */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static uint64_t wire_time(uint32_t len, uint64_t rate)
{
	/* preamble, checksum and gap are 24 bytes on a real wire */
	return rate ? (len + 24) * 8000000000ULL / rate : 0;
}

static uint32_t wire_held(const struct wire *w)
{
	return w->tail - w->head;
}

static void wire_push(struct wire *w, struct held h)
{
	if (wire_held(w) == w->size) {
		uint32_t size = w->size ? w->size * 2 : 64, i, n = wire_held(w);
		struct held *ring = need(calloc(size, sizeof(*ring)));

		for (i = 0; i < n; i++)
			ring[i] = w->ring[(w->head + i) & (w->size - 1)];
		free(w->ring);
		w->ring = ring;
		w->size = size;
		w->head = 0;
		w->tail = n;
	}
	w->ring[w->tail++ & (w->size - 1)] = h;
}

static void wire_flush(int src, int dst)
{
	struct wire *w = &wires[src][dst];

	for (; w->head != w->tail; w->head++) {
		put_frame(w->ring[w->head & (w->size - 1)].frame);
		w->dropped++;
		ports[dst].held--;
	}
}

static void close_port(int i)
{
	int src;

	epoll_ctl(epfd, EPOLL_CTL_DEL, ports[i].fd, NULL);
	close(ports[i].fd);
	ports[i].open = false;
	for (src = 0; src < nr_ports; src++)
		wire_flush(src, i);
}

static void enqueue(int src, int dst, struct frame *f, uint64_t at, uint64_t now)
{
	struct wire *w = &wires[src][dst];
	struct held h = { .frame = f };

	if (!ports[dst].open || ports[dst].gone || w->cut) {
		w->dropped++;
		return;
	}
	if (w->loss && next_random(&w->random) % 1000000 < w->loss) {
		w->lost++;
		return;
	}
	if (wire_held(w) >= QUEUE_FLYING ||
	    ((ports[dst].stalled || ports[dst].paused) && wire_held(w) >= QUEUE_READY)) {
		w->dropped++;
		return;
	}
	if (w->rate) {
		if (at < w->busy_until)
			at = w->busy_until;
		at += wire_time(f->len, w->rate);
		w->busy_until = at;
	}
	h.due = at + w->delay;
	if (h.due <= now)
		h.due = now;
	/* a delay made shorter must not reorder */
	if (h.due < w->last_due && wire_held(w))
		h.due = w->last_due;
	w->last_due = h.due;
	f->refs++;
	w->frames++;
	w->bytes += f->len;
	wire_push(w, h);
	ports[dst].held++;
}

/* 52:54:00:4d:HI:LO is node HI*256+LO. */
static int node_of(const uint8_t *mac)
{
	static const uint8_t ours[4] = { 0x52, 0x54, 0x00, 0x4d };
	int node = mac[4] << 8 | mac[5];

	return !memcmp(mac, ours, 4) && node < nr_ports ? node : -1;
}

static void forward(int src, struct frame *f, uint64_t now)
{
	struct port *p = &ports[src];
	uint64_t at = now;
	int dst;

	if (f->len < 14)
		return;
	if (p->rate) {
		if (at < p->out_busy)
			at = p->out_busy;
		at += wire_time(f->len, p->rate);
		p->out_busy = at;
	}
	dst = node_of(f->data);
	if (dst >= 0) {
		if (dst != src)
			enqueue(src, dst, f, at, now);
	} else if (f->data[0] & 1) {
		for (dst = 0; dst < nr_ports; dst++)
			if (dst != src)
				enqueue(src, dst, f, at, now);
	}
}

/* May the switch take more from src? If not for now only, *when is set. */
static bool may_read(int src, uint64_t now, uint64_t *when)
{
	struct port *p = &ports[src];
	int dst;

	if (p->rate && p->out_busy > now + BACKLOG_NS) {
		*when = p->out_busy - BACKLOG_NS;
		return false;
	}
	for (dst = 0; dst < nr_ports; dst++) {
		struct wire *w = &wires[src][dst];

		if (w->head == w->tail)
			continue;
		if (w->rate && w->busy_until > now + BACKLOG_NS) {
			*when = w->busy_until - BACKLOG_NS;
			return false;
		}
		/* the oldest QUEUE_READY frames all due: dst is slower than src */
		if (!ports[dst].stalled && !ports[dst].paused && wire_held(w) >= QUEUE_READY &&
		    w->ring[(w->head + QUEUE_READY - 1) & (w->size - 1)].due <= now)
			return false;
	}
	return true;
}

static void receive(int src, uint64_t now)
{
	struct frame *frames[BATCH];
	struct mmsghdr msgs[BATCH];
	struct iovec iov[BATCH];
	int i, n;

	memset(msgs, 0, sizeof(msgs));
	for (i = 0; i < BATCH; i++) {
		frames[i] = get_frame();
		iov[i].iov_base = frames[i]->data;
		iov[i].iov_len = FRAME_SIZE;
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	n = recvmmsg(ports[src].fd, msgs, BATCH, MSG_DONTWAIT, NULL);
	for (i = 0; i < BATCH; i++) {
		if (i < n && msgs[i].msg_len && !(msgs[i].msg_hdr.msg_flags & MSG_TRUNC)) {
			frames[i]->len = msgs[i].msg_len;
			forward(src, frames[i], now);
		}
		put_frame(frames[i]);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		close_port(src);
}

/* Send what is due to dst; returns when there is more to do, 0 for never. */
static uint64_t transmit(int dst, uint64_t now)
{
	struct port *p = &ports[dst];
	uint64_t next = 0;

	while (p->open && p->held && p->writable) {
		struct wire *from[BATCH];
		struct mmsghdr msgs[BATCH];
		struct iovec iov[BATCH];
		uint64_t cable = p->in_busy > now ? p->in_busy : now;
		int n = 0, sent, i, k;
		uint32_t taken[MAX_PORTS] = { 0 };

		memset(msgs, 0, sizeof(msgs));
		next = 0;
		for (k = 0; k < nr_ports && n < BATCH; k++) {
			int src = (p->next_src + k) % nr_ports;
			struct wire *w = &wires[src][dst];

			while (n < BATCH && w->head + taken[src] != w->tail) {
				struct held *h = &w->ring[(w->head + taken[src]) & (w->size - 1)];
				uint64_t when = h->due;

				if (p->rate && cable > now + BURST_NS && when < cable - BURST_NS)
					when = cable - BURST_NS;
				if (when > now) {
					if (!next || when < next)
						next = when;
					break;
				}
				cable += wire_time(h->frame->len, p->rate);
				taken[src]++;
				from[n] = w;
				iov[n].iov_base = h->frame->data;
				iov[n].iov_len = h->frame->len;
				msgs[n].msg_hdr.msg_iov = &iov[n];
				msgs[n].msg_hdr.msg_iovlen = 1;
				n++;
			}
		}
		if (!n)
			return next;
		p->next_src++;
		sent = sendmmsg(p->fd, msgs, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == ECONNREFUSED) {
			close_port(dst);
			return 0;
		}
		for (i = 0; i < sent; i++) {
			struct wire *w = from[i];
			struct frame *f = w->ring[w->head++ & (w->size - 1)].frame;

			if (p->rate)
				p->in_busy = (p->in_busy > now ? p->in_busy : now) +
					     wire_time(f->len, p->rate);
			put_frame(f);
			p->held--;
		}
		if (sent < n) {
			p->writable = false;
			p->blocked_since = now;
			next = now + STALL_NS;
		} else {
			p->stalled = false;
		}
	}
	if (p->open && p->held && !p->writable && !p->stalled) {
		if (now - p->blocked_since >= STALL_NS)
			p->stalled = true;
		else
			next = p->blocked_since + STALL_NS;
	}
	return next;
}

static void watch(int i, bool reading)
{
	struct port *p = &ports[i];
	uint32_t events = (reading ? EPOLLIN : 0) | (p->writable ? 0 : EPOLLOUT);
	struct epoll_event ev = { .events = events, .data.u32 = i };

	p->reading = reading;
	if (events == p->events)
		return;
	p->events = events;
	epoll_ctl(epfd, EPOLL_CTL_MOD, p->fd, &ev);
}

static int parse_pair(const char *key, unsigned long long val, struct wire *w)
{
	if (!strcmp(key, "cut"))
		w->cut = val;
	else if (!strcmp(key, "rate"))
		w->rate = val;
	else if (!strcmp(key, "delay"))
		w->delay = val;
	else if (!strcmp(key, "loss"))
		w->loss = val;
	else
		return -1;
	return 0;
}

static void answer(const char *text)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = send(control, text, len, MSG_NOSIGNAL);

		if (n <= 0)
			exit(0);
		text += n;
		len -= n;
	}
}

static void stats(void)
{
	static char text[MAX_PORTS * MAX_PORTS * 96];
	size_t used = 0;
	int a, b;

	for (a = 0; a < nr_ports; a++)
		for (b = 0; b < nr_ports; b++)
			if (a != b)
				used += snprintf(text + used, sizeof(text) - used,
						 "%d %d %llu %llu %llu %llu %u;", a, b,
						 (unsigned long long)wires[a][b].frames,
						 (unsigned long long)wires[a][b].bytes,
						 (unsigned long long)wires[a][b].lost,
						 (unsigned long long)wires[a][b].dropped,
						 wire_held(&wires[a][b]));
	snprintf(text + used, sizeof(text) - used, "ok\n");
	answer(text);
}

static void command(char *line)
{
	char *save = NULL, *word = strtok_r(line, " ", &save), *arg;
	bool pair;
	int a, b = 0;

	if (word && !strcmp(word, "stats"))
		return stats();
	pair = word && !strcmp(word, "link");
	if (!pair && (!word || strcmp(word, "port")))
		return answer("error: no such command\n");
	arg = strtok_r(NULL, " ", &save);
	a = arg ? atoi(arg) : -1;
	if (pair) {
		arg = strtok_r(NULL, " ", &save);
		b = arg ? atoi(arg) : -1;
	}
	if (a < 0 || b < 0 || a >= nr_ports || b >= nr_ports)
		return answer("error: no such node\n");
	while ((arg = strtok_r(NULL, " ", &save))) {
		char *eq = strchr(arg, '=');
		unsigned long long val;

		if (!eq)
			return answer("error: KEY=VALUE wanted\n");
		*eq = 0;
		val = strtoull(eq + 1, NULL, 10);
		if (pair) {
			if (parse_pair(arg, val, &wires[a][b]))
				return answer("error: no such key\n");
			/* what a cut finds on the wire is lost with it */
			if (wires[a][b].cut)
				wire_flush(a, b);
		} else if (!strcmp(arg, "rate")) {
			ports[a].rate = val;
		} else if (!strcmp(arg, "stalled")) {
			ports[a].stalled = val;
			ports[a].paused = val;
		} else if (!strcmp(arg, "gone")) {
			ports[a].gone = val;
			for (b = 0; val && b < nr_ports; b++)
				wire_flush(b, a);
		} else {
			return answer("error: no such key\n");
		}
	}
	answer("ok\n");
}

static void take_commands(void)
{
	static char buf[4096];
	static size_t have;
	ssize_t n = recv(control, buf + have, sizeof(buf) - 1 - have, 0);
	char *nl;

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0)
		exit(0);
	have += n;
	buf[have] = 0;
	while ((nl = memchr(buf, '\n', have))) {
		size_t used = nl + 1 - buf;

		*nl = 0;
		command(buf);
		memmove(buf, buf + used, have - used);
		have -= used;
	}
	if (have == sizeof(buf) - 1)
		exit(1);
}

static void loop(void)
{
	for (;;) {
		struct epoll_event ev[MAX_PORTS + 1];
		struct timespec ts, *timeout = NULL;
		uint64_t now = now_ns(), next = 0;
		int i, n;

		for (i = 0; i < nr_ports; i++) {
			uint64_t when = transmit(i, now);

			if (when && (!next || when < next))
				next = when;
		}
		for (i = 0; i < nr_ports; i++) {
			uint64_t when = 0;

			if (!ports[i].open)
				continue;
			watch(i, may_read(i, now, &when));
			if (when && (!next || when < next))
				next = when;
		}
		if (next) {
			uint64_t wait = next > now ? next - now : 0;

			ts.tv_sec = wait / 1000000000ULL;
			ts.tv_nsec = wait % 1000000000ULL;
			timeout = &ts;
		}
		n = epoll_pwait2(epfd, ev, nr_ports + 1, timeout, NULL);
		now = now_ns();
		for (i = 0; i < n; i++) {
			uint32_t port = ev[i].data.u32;

			if (port == MAX_PORTS) {
				take_commands();
				continue;
			}
			if (!ports[port].open)
				continue;
			if (ev[i].events & EPOLLOUT) {
				ports[port].writable = true;
				ports[port].stalled = false;
			}
			if (ev[i].events & EPOLLIN && ports[port].reading)
				receive(port, now);
			else if (ev[i].events & (EPOLLHUP | EPOLLERR))
				close_port(port);
		}
	}
}

int main(int argc, char **argv)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u32 = MAX_PORTS };
	struct sched_param prio = { .sched_priority = 1 };
	int size = SOCKET_BUFFER, i, j;
	uint64_t seed;

	if (argc < 3 || argc - 3 > MAX_PORTS) {
		fprintf(stderr, "usage: %s CONTROL SEED FD...\n", argv[0]);
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	/* a Ctrl-C is for whoever holds the control socket */
	signal(SIGINT, SIG_IGN);
	prctl(PR_SET_TIMERSLACK, 1000);
	/* a wire does not wait for polling guests to leave a CPU; without the right, it must */
	sched_setscheduler(0, SCHED_RR, &prio);
	control = atoi(argv[1]);
	seed = strtoull(argv[2], NULL, 0);
	nr_ports = argc - 3;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	epoll_ctl(epfd, EPOLL_CTL_ADD, control, &ev);
	for (i = 0; i < nr_ports; i++) {
		ports[i].fd = atoi(argv[3 + i]);
		ports[i].open = true;
		ports[i].writable = true;
		ports[i].events = EPOLLIN;
		fcntl(ports[i].fd, F_SETFL, O_NONBLOCK);
		if (setsockopt(ports[i].fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
			setsockopt(ports[i].fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
		ev.data.u32 = i;
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, ports[i].fd, &ev)) {
			perror("switch: epoll_ctl");
			return 1;
		}
		for (j = 0; j < nr_ports; j++)
			wires[i][j].random = seed * MAX_PORTS * MAX_PORTS + i * MAX_PORTS + j;
	}
	loop();
	return 0;
}
