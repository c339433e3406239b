// SPDX-License-Identifier: GPL-2.0
/*
 * One clock and one Ethernet for the UML guests of a cluster:
 *
 *	calendar SOCKET GUESTS SEED SECONDS [PCAP]
 *
 * SECONDS of the host's time is the most that a guest may compute without a
 * word to the calendar: one that polls memory would never end.
 *
 * Guests (time-travel=ext) and the harness connect to SOCKET and say START with
 * their number; the harness has the number GUESTS. All that is said is a struct
 * msg, and for the operations from FRAME on, seq bytes behind it.
 *
 * A guest runs from RUN's time up to, but not including, FREE_UNTIL's: before
 * that nothing can reach it any more. Then it says WAIT, with the time of its
 * next event. A frame's time is that at which its last bit leaves the guest,
 * and, to a guest, at which it is there. So guests run side by side, and yet
 * nothing depends on which of them the host lets run when, nor on how fast.
 *
 * The harness takes part like a guest, one that computes in no time: what it
 * says and hears takes HARNESS_NS. Its COMMANDs happen at the message's time,
 * when all have come to that; they are
 *
 *	link A B [cut=0|1] [rate=BITS] [delay=NS] [jitter=NS] [loss=PPM]
 *				delay=0: what it was at the beginning
 *	port A rate=BITS	the cable of A, both ways; 0: any
 *	kill A | pause A | resume A
 *	stats			"A B FRAMES BYTES LOST DROPPED HELD;...ok"
 *	digest			"NS FRAMES HEX ok": of all that has arrived by then
 *
 * and are answered by a COMMAND, "...ok" or "error ...". Before its START the
 * harness says how things are at the beginning; that is not answered.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX		65		/* with the harness */
#define NEVER		UINT64_MAX
#define NS		((uint64_t)1000000000)
#define TOD		(1700000000 * NS)	/* of day, at the beginning */
#define HARNESS_NS	((uint64_t)100000)
#define LEAST_DELAY	100		/* of a wire: how far guests run ahead */
#define WIRE_DELAY	1000
#define AHEAD		(1 << 20)	/* bytes of frames before their time */
#define PORT_QUEUE	(16 << 20)	/* bytes that wait for a cable */
#define NIC_QUEUE	256		/* frames that wait for a paused guest */
#define OVERHEAD	24		/* bytes of a frame: preamble, checksum, gap */
#define FNV_BASE	14695981039346656037ULL

/* include/uapi/linux/um_timetravel.h; from FRAME on, ours */
enum {
	ACK, START, REQUEST, WAIT, GET, UPDATE, RUN, FREE_UNTIL, GET_TOD,
	FRAME = 0x100,
	CHANNEL = 0x101,	/* with the harness: u32 guest first */
	COMMAND = 0x102,
	CABLE = 0x103,		/* seq: kbit/s; nothing behind it */
	GONE = 0x104,		/* to the harness: u32 guest, why */
};

struct msg {
	uint32_t op, seq;
	uint64_t time;
};

struct packet {
	uint64_t due, seq, sent;
	uint64_t first;		/* when its first bit is at the cable to its destination */
	uint32_t src, op, len;
	uint8_t data[];
};

struct heap {
	struct packet **p;
	size_t n, room;
};

struct buffer {
	uint8_t *data;
	size_t len, room;
};

struct wire {
	uint64_t delay, usual, jitter, random, last, busy;
	uint64_t frames, bytes, lost, dropped;
	uint32_t loss, kbit;
	bool cut;
};

struct guest {
	int fd;
	pid_t pid;
	enum { ABSENT, RUNNING, WAITING, DEAD } state;
	bool paused, cable_changed;
	uint64_t now, until, want;
	uint64_t in_busy;		/* the cable to it */
	uint32_t kbit;
	struct heap frames, words;
	struct buffer in, out;
};

struct command {
	struct command *next;
	uint64_t at;
	char line[256];
};

static struct guest guests[MAX], *harness;
static struct wire wires[MAX][MAX];
static int n;
static uint64_t lookahead;		/* the shortest wire */
static uint64_t sum, arrived, packets;
static struct command *commands;
static struct heap captured;
static FILE *pcap;
static int compute_seconds;

static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("calendar: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	exit(1);
}

static void *grow(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		die("out of memory");
	return p;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > NEVER - b ? NEVER : a + b;
}

/* kbit/s; 0 is any rate */
static uint32_t kbit_of(uint64_t bits)
{
	uint64_t kbit = bits / 1000;

	return bits && !kbit ? 1 : min64(kbit, UINT32_MAX);
}

/* How long a frame takes at a rate. */
static uint64_t duration(uint32_t len, uint32_t kbit)
{
	return kbit ? (len + OVERHEAD) * 8000000ULL / kbit : 0;
}

static uint64_t fnv(uint64_t h, const void *p, size_t len)
{
	const uint8_t *b = p;

	while (len--)
		h = (h ^ *b++) * 1099511628211ULL;
	return h;
}

/* SplitMix64 */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

/* Heaps of packets: the first due comes first, of equal ones the lower source's. */

static bool before(const struct packet *a, const struct packet *b)
{
	if (a->due != b->due)
		return a->due < b->due;
	if (a->src != b->src)
		return a->src < b->src;
	return a->seq < b->seq;
}

static void push(struct heap *h, struct packet *p)
{
	size_t i;

	if (h->n == h->room) {
		h->room = h->room ? h->room * 2 : 64;
		h->p = grow(h->p, h->room * sizeof(p));
	}
	for (i = h->n++; i && before(p, h->p[(i - 1) / 2]); i = (i - 1) / 2)
		h->p[i] = h->p[(i - 1) / 2];
	h->p[i] = p;
}

static struct packet *pop(struct heap *h)
{
	struct packet *top = h->p[0], *p = h->p[--h->n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < h->n) {
		if (k + 1 < h->n && before(h->p[k + 1], h->p[k]))
			k++;
		if (!before(h->p[k], p))
			break;
		h->p[i] = h->p[k];
		i = k;
	}
	h->p[i] = p;
	return top;
}

static void empty(struct heap *h)
{
	while (h->n)
		free(pop(h));
}

/* Packets of a source that have left after a time go; how many. */
static size_t purge(struct heap *h, uint32_t src, uint64_t after)
{
	struct heap old = *h;
	size_t i;

	*h = (struct heap){ 0 };
	for (i = 0; i < old.n; i++) {
		if (old.p[i]->src == src && old.p[i]->sent >= after)
			free(old.p[i]);
		else
			push(h, old.p[i]);
	}
	free(old.p);
	return old.n - h->n;
}

/* In source order the sequence of packets grows with time: that is enough. */
static struct packet *packet(uint32_t src, uint32_t op, uint64_t sent, uint64_t due,
			     const void *head, uint32_t head_len, const void *data, uint32_t len)
{
	struct packet *p = grow(NULL, sizeof(*p) + head_len + len);

	*p = (struct packet){ .src = src, .op = op, .sent = sent, .due = due,
			      .seq = ++packets, .len = head_len + len };
	if (head_len)
		memcpy(p->data, head, head_len);
	if (len)
		memcpy(p->data + head_len, data, len);
	return p;
}

/* pcap, with nanoseconds: in the order of time, once nothing earlier can come */

static void capture(const struct packet *p, uint64_t at)
{
	struct packet *copy;

	if (!pcap)
		return;
	copy = packet(p->src, FRAME, p->sent, at, NULL, 0, p->data, p->len);
	/* in the order in which they were sent, not in that in which guests are served */
	copy->seq = p->seq;
	push(&captured, copy);
}

static void write_captured(uint64_t before)
{
	while (captured.n && captured.p[0]->due < before) {
		struct packet *p = pop(&captured);
		uint32_t head[] = { p->due / NS, p->due % NS, p->len, p->len };

		if (fwrite(head, sizeof(head), 1, pcap) != 1 ||
		    fwrite(p->data, p->len, 1, pcap) != 1)
			die("writing the capture: %s", strerror(errno));
		free(p);
	}
}

static void open_pcap(const char *path)
{
	struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy, most, link;
	} head = { 0xa1b23c4d, 2, 4, 0, 0, 65535, 1 };

	pcap = fopen(path, "w");
	if (!pcap || fwrite(&head, sizeof(head), 1, pcap) != 1)
		die("%s: %s", path, strerror(errno));
}

static void end(void)
{
	if (pcap) {
		write_captured(NEVER);
		if (fclose(pcap))
			die("writing the capture: %s", strerror(errno));
	}
	exit(0);
}

/* Sockets */

static void put(struct buffer *b, const void *p, size_t len)
{
	if (b->len + len > b->room) {
		b->room = (b->len + len) * 2;
		b->data = grow(b->data, b->room);
	}
	memcpy(b->data + b->len, p, len);
	b->len += len;
}

static void say(struct guest *g, uint32_t op, uint32_t seq, uint64_t time)
{
	struct msg m = { op, seq, time };

	put(&g->out, &m, sizeof(m));
}

static void gone(struct guest *g, const char *why)
{
	uint32_t number = g - guests;

	fprintf(stderr, "calendar: %" PRIu64 ".%09" PRIu64 " s: %u is gone: %s\n", g->now / NS,
		g->now % NS, number, why);
	/*
	 * Without the harness there is nobody to run for; its keepers end the guests, and
	 * the calendar when the harness sees its socket closed: the capture comes first.
	 */
	if (g == harness)
		end();
	close(g->fd);
	g->state = DEAD;
	empty(&g->frames);
	empty(&g->words);
	push(&harness->words, packet(number, GONE, g->now, g->now + HARNESS_NS, &number,
				     sizeof(number), why, strlen(why)));
}

static void flush(struct guest *g)
{
	size_t at = 0;

	while (at < g->out.len) {
		ssize_t k = send(g->fd, g->out.data + at, g->out.len - at, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			gone(g, "its kernel ended");
			break;
		}
		at += k;
	}
	g->out.len = 0;
}

/* The Ethernet */

static void forward(uint32_t src, uint32_t dst, uint64_t sent, const uint8_t *data, uint32_t len)
{
	struct wire *w = &wires[src][dst];
	struct guest *g = &guests[dst];
	struct packet *p;
	uint64_t due;

	if (g->state == DEAD || w->cut) {
		w->dropped++;
		return;
	}
	if (w->loss && next_random(&w->random) % 1000000 < w->loss) {
		w->lost++;
		return;
	}
	due = sent;
	if (w->kbit) {
		if (w->busy > due && w->busy - due > duration(PORT_QUEUE, w->kbit)) {
			w->dropped++;
			return;
		}
		w->busy = max64(w->busy, due) + duration(len, w->kbit);
		due = w->busy;
	}
	due += w->delay;
	if (w->jitter)
		due += next_random(&w->random) % w->jitter;
	/* a wire keeps the order */
	due = max64(due, w->last);
	w->last = due;
	p = packet(src, FRAME, sent, due, NULL, 0, data, len);
	p->first = due - min64(due, duration(len, guests[src].kbit));
	w->frames++;
	w->bytes += len;
	if (g->state == RUNNING && due < g->until)
		die("a frame from %u to %u comes at %" PRIu64 ", before %" PRIu64, src, dst, due,
		    g->until);
	push(&g->frames, p);
}

static void ethernet(uint32_t src, uint64_t sent, const uint8_t *data, uint32_t len)
{
	static const uint8_t ours[4] = { 0x52, 0x54, 0x00, 0x4d };
	int dst;

	if (len < 14)
		return;
	if (data[0] & 1) {
		for (dst = 0; dst < n; dst++)
			if (dst != (int)src)
				forward(src, dst, sent, data, len);
	} else if (!memcmp(data, ours, sizeof(ours))) {
		dst = data[4] << 8 | data[5];
		if (dst < n && dst != (int)src)
			forward(src, dst, sent, data, len);
	}
}

/* Guests may be served in any order: a sum does not mind. */
static void digest(const struct packet *p, uint32_t dst, uint64_t at)
{
	uint64_t key[] = { p->sent, at, p->src, dst, p->op, p->len,
			   fnv(FNV_BASE, p->data, p->len) };

	sum += fnv(FNV_BASE, key, sizeof(key)) * 2 + 1;
}

/* Commands */

static void look(void)
{
	int a, b;

	lookahead = NEVER / 4;
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++)
			if (a != b)
				lookahead = min64(lookahead, wires[a][b].delay);
}

static const char *set_wire(struct wire *w, uint32_t src, struct guest *to, const char *key,
			    uint64_t value)
{
	if (!strcmp(key, "cut")) {
		w->cut = value;
		if (value)
			/* with all that is on the way */
			w->dropped += purge(&to->frames, src, 0);
	} else if (!strcmp(key, "rate")) {
		w->kbit = kbit_of(value);
		w->busy = 0;
	} else if (!strcmp(key, "delay")) {
		if (value && value < LEAST_DELAY)
			return "a wire takes 100 ns at least";
		w->delay = value ? value : w->usual;
		if (harness->state == ABSENT)
			w->usual = w->delay;
		look();
	} else if (!strcmp(key, "jitter")) {
		w->jitter = value;
	} else if (!strcmp(key, "loss")) {
		w->loss = value;
	} else {
		return "no such setting";
	}
	return NULL;
}

static void set_cable(struct guest *g, uint32_t kbit)
{
	g->kbit = kbit;
	g->cable_changed = true;
	g->in_busy = 0;
}

/* What has come meanwhile: as much as its adapter holds is there now. */
static void resume(struct guest *g, uint64_t at)
{
	struct heap old = g->frames;
	size_t kept = 0;

	g->paused = false;
	g->now = at;
	g->frames = (struct heap){ 0 };
	while (old.n) {
		struct packet *p = pop(&old);

		if (p->due < at && ++kept > NIC_QUEUE) {
			wires[p->src][g - guests].dropped++;
			free(p);
		} else {
			p->due = max64(p->due, at);
			push(&g->frames, p);
		}
	}
	free(old.p);
}

static const char *change_guest(const char *what, struct guest *g, uint64_t at)
{
	int i;

	if (g->state == DEAD)
		return "it is gone";
	if (!strcmp(what, "kill")) {
		kill(g->pid, SIGKILL);
		g->now = at;
		/* what has not left does not */
		for (i = 0; i < n; i++)
			purge(&guests[i].frames, g - guests, at);
		gone(g, "killed");
	} else if (!strcmp(what, "pause")) {
		g->paused = true;
	} else if (g->paused) {
		resume(g, at);
	}
	return NULL;
}

static size_t held(uint32_t src, const struct guest *to)
{
	size_t i, count = 0;

	for (i = 0; i < to->frames.n; i++)
		count += to->frames.p[i]->src == src;
	return count;
}

static void stats(struct buffer *reply)
{
	char row[160];
	int a, b;

	for (a = 0; a < n; a++) {
		for (b = 0; b < n; b++) {
			struct wire *w = &wires[a][b];

			if (a != b)
				put(reply, row, sprintf(row, "%d %d %" PRIu64 " %" PRIu64 " %"
							PRIu64 " %" PRIu64 " %zu;", a, b, w->frames,
							w->bytes, w->lost, w->dropped,
							held(a, &guests[b])));
		}
	}
}

/* NULL, or what is wrong with it. */
static const char *obey(char *line, uint64_t at, struct buffer *reply)
{
	char *save, *what = strtok_r(line, " ", &save), *word, text[96];
	const char *wrong = NULL;
	int who[2] = { 0 }, i, numbers;

	if (!what)
		return "nothing to do";
	if (!strcmp(what, "stats")) {
		stats(reply);
		return NULL;
	}
	if (!strcmp(what, "digest")) {
		put(reply, text, sprintf(text, "%" PRIu64 " %" PRIu64 " %016" PRIx64 " ", at,
					 arrived, sum));
		return NULL;
	}
	numbers = strcmp(what, "link") ? 1 : 2;
	for (i = 0; i < numbers; i++) {
		word = strtok_r(NULL, " ", &save);
		who[i] = word ? atoi(word) : -1;
		if (who[i] < 0 || who[i] >= n)
			return "no such guest";
	}
	if (!strcmp(what, "kill") || !strcmp(what, "pause") || !strcmp(what, "resume"))
		return change_guest(what, &guests[who[0]], at);
	if (strcmp(what, "link") && strcmp(what, "port"))
		return "no such command";
	while (!wrong && (word = strtok_r(NULL, " ", &save))) {
		char *value = strchr(word, '=');

		if (!value)
			return "no value";
		*value++ = 0;
		if (numbers == 2)
			wrong = set_wire(&wires[who[0]][who[1]], who[0], &guests[who[1]], word,
					 strtoull(value, NULL, 10));
		else if (!strcmp(word, "rate"))
			set_cable(&guests[who[0]], kbit_of(strtoull(value, NULL, 10)));
		else
			return "no such setting";
	}
	return wrong;
}

static void happen(struct command *c)
{
	struct buffer reply = { 0 };
	const char *wrong;

	wrong = obey(c->line, c->at, &reply);
	if (wrong) {
		reply.len = 0;
		put(&reply, "error ", 6);
		put(&reply, wrong, strlen(wrong));
	} else {
		put(&reply, "ok", 2);
	}
	push(&harness->words, packet(n, COMMAND, c->at, c->at, NULL, 0, reply.data, reply.len));
	free(reply.data);
	free(c);
}

/* Behind all others of that time. */
static void queue_command(const uint8_t *line, uint32_t len, uint64_t at)
{
	struct command *c = grow(NULL, sizeof(*c)), **p = &commands;

	if (len >= sizeof(c->line))
		die("a command of %u bytes", len);
	memcpy(c->line, line, len);
	c->line[len] = 0;
	c->at = at;
	while (*p && (*p)->at <= at)
		p = &(*p)->next;
	c->next = *p;
	*p = c;
}

/* What guests and the harness say */

static void take_data(struct guest *g, const struct msg *m, const uint8_t *data)
{
	uint32_t number = g - guests, dst;

	if (m->op == FRAME && g != harness) {
		ethernet(number, m->time, data, m->seq);
	} else if (m->op == CHANNEL && g != harness) {
		push(&harness->words, packet(number, CHANNEL, m->time, m->time + HARNESS_NS,
					     &number, sizeof(number), data, m->seq));
	} else if (m->op == CHANNEL && m->seq > sizeof(dst)) {
		memcpy(&dst, data, sizeof(dst));
		if (dst >= (uint32_t)n)
			die("a word for %u", dst);
		if (guests[dst].state != DEAD)
			push(&guests[dst].words, packet(number, CHANNEL, g->now,
							g->now + HARNESS_NS, NULL, 0,
							data + sizeof(dst), m->seq - sizeof(dst)));
	} else if (m->op == COMMAND && g == harness) {
		queue_command(data, m->seq, max64(m->time, g->now + HARNESS_NS));
	} else {
		die("operation %#x from %u", m->op, number);
	}
}

static void take(struct guest *g)
{
	size_t at = 0;
	struct msg m;
	ssize_t k;

	if (g->in.room - g->in.len < 65536) {
		g->in.room = g->in.room * 2 + (1 << 18);
		g->in.data = grow(g->in.data, g->in.room);
	}
	k = recv(g->fd, g->in.data + g->in.len, g->in.room - g->in.len, 0);
	if (k < 0 && errno == EINTR)
		return;
	if (k <= 0) {
		gone(g, "its kernel ended");
		return;
	}
	g->in.len += k;
	while (g->in.len - at >= sizeof(m)) {
		memcpy(&m, g->in.data + at, sizeof(m));
		if (m.op >= FRAME) {
			if (g->in.len - at < sizeof(m) + m.seq)
				break;
			take_data(g, &m, g->in.data + at + sizeof(m));
			at += sizeof(m) + m.seq;
			continue;
		}
		at += sizeof(m);
		switch (m.op) {
		case GET_TOD:
		case GET:
			say(g, ACK, m.seq, m.op == GET ? g->now : TOD);
			flush(g);
			break;
		case WAIT:
			/* INT64_MAX is a guest's "never" */
			g->want = m.time >= INT64_MAX ? NEVER : m.time;
			g->state = WAITING;
			break;
		default:
			die("operation %#x from %d", m.op, (int)(g - guests));
		}
	}
	memmove(g->in.data, g->in.data + at, g->in.len - at);
	g->in.len -= at;
}

/* Who may run */

/*
 * When the last bit of the first frame for it is there: the switch lets frames
 * through while they come, as far as the cable behind it is free and as fast.
 */
static uint64_t arrival(const struct guest *g)
{
	const struct packet *p = g->frames.n ? g->frames.p[0] : NULL;

	return p ? max64(p->due, max64(p->first, g->in_busy) + duration(p->len, g->kbit)) : NEVER;
}

/* When the first word from the harness, or for it, is. */
static uint64_t word(const struct guest *g)
{
	return g->words.n ? g->words.p[0]->due : NEVER;
}

/* Before that it does nothing that others would notice. */
static uint64_t next_of(const struct guest *g)
{
	if (g->state == DEAD || g->paused)
		return NEVER;
	if (g->state != WAITING)
		return g->now;
	return max64(g->now, min64(g->want, min64(arrival(g), word(g))));
}

/* The frames that come before a time are final, whatever else is to come. */
static uint64_t give_frames(struct guest *g, uint64_t until)
{
	size_t given = 0;

	while (arrival(g) < until) {
		uint64_t at = arrival(g);
		struct packet *p;

		if (given > AHEAD)
			return at;
		p = pop(&g->frames);
		if (at - p->due > duration(PORT_QUEUE, g->kbit)) {
			wires[p->src][g - guests].dropped++;
			free(p);
			continue;
		}
		g->in_busy = at;
		say(g, FRAME, p->len, at);
		put(&g->out, p->data, p->len);
		given += p->len;
		arrived++;
		digest(p, g - guests, at);
		capture(p, at);
		free(p);
	}
	return until;
}

static void grant(struct guest *g, uint64_t now, uint64_t until)
{
	if (g->cable_changed) {
		say(g, CABLE, g->kbit, now);
		g->cable_changed = false;
	}
	while (word(g) <= now) {
		struct packet *p = pop(&g->words);

		say(g, p->op, p->len, now);
		put(&g->out, p->data, p->len);
		if (p->op == CHANNEL && g == harness)
			digest(p, n, p->due);
		free(p);
	}
	until = min64(until, word(g));
	until = give_frames(g, until);
	say(g, FREE_UNTIL, 0, min64(until, INT64_MAX));
	say(g, RUN, 0, now);
	g->state = RUNNING;
	g->now = now;
	g->until = until;
	flush(g);
}

/* Let all run that may. */
static void schedule(void)
{
	uint64_t next[MAX], least = NEVER, second = NEVER, all, bound;
	int i, first = -1, running = 0;

	for (i = 0; i < n; i++) {
		next[i] = next_of(&guests[i]);
		running += guests[i].state == RUNNING;
		if (next[i] < least) {
			second = least;
			least = next[i];
			first = i;
		} else if (next[i] < second) {
			second = next[i];
		}
	}
	next[n] = next_of(harness);
	running += harness->state == RUNNING;
	all = min64(least, next[n]);
	if (pcap)
		write_captured(all);
	if (commands && all >= commands->at && !running) {
		struct command *c = commands;

		commands = c->next;
		happen(c);
		schedule();
		return;
	}
	for (i = 0; i <= n; i++) {
		struct guest *g = &guests[i];

		if (g->state != WAITING || g->paused || next[i] == NEVER)
			continue;
		/* what others do, and what comes back of what it does itself */
		bound = min64(add(least, i == n ? HARNESS_NS : 2 * HARNESS_NS),
			      add(next[n], i == n ? 2 * HARNESS_NS : HARNESS_NS));
		if (i < n) {
			bound = min64(bound, add(i == first ? second : least, lookahead));
			bound = min64(bound, add(next[i], 2 * lookahead));
		}
		if (commands)
			bound = min64(bound, commands->at);
		if (next[i] < bound)
			grant(g, next[i], bound);
	}
}

/* Until somebody who runs has said something. */
static void listen_to_all(void)
{
	struct guest *of[MAX];
	struct pollfd p[MAX];
	int i, k = 0, got;

	for (i = 0; i <= n; i++) {
		if (guests[i].state != RUNNING)
			continue;
		of[k] = &guests[i];
		p[k++] = (struct pollfd){ .fd = guests[i].fd, .events = POLLIN };
	}
	if (!k)
		die("nobody will ever do anything");
	got = poll(p, k, harness->state == RUNNING ? -1 : compute_seconds * 1000);
	if (!got) {
		char why[80];

		snprintf(why, sizeof(why), "it has computed for %d s without a system call",
			 compute_seconds);
		for (i = 0; i < k; i++) {
			kill(of[i]->pid, SIGKILL);
			gone(of[i], why);
		}
		return;
	}
	for (i = 0; got > 0 && i < k; i++)
		if (p[i].revents)
			take(of[i]);
}

static bool read_whole(int fd, void *to, size_t len)
{
	return recv(fd, to, len, MSG_WAITALL) == (ssize_t)len;
}

/* A guest or the harness: what it says first is who it is. */
static void welcome(int fd)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);
	char line[256] = "";
	struct buffer unread = { 0 };
	int room = 1 << 20;
	struct guest *g;
	struct msg m;

	for (;;) {
		if (!read_whole(fd, &m, sizeof(m)))
			die("a guest did not say who it is");
		if (m.op != COMMAND)
			break;
		memset(line, 0, sizeof(line));
		if (m.seq >= sizeof(line) || !read_whole(fd, line, m.seq))
			die("a command of %u bytes", m.seq);
		if (obey(line, 0, &unread))
			die("command %s", line);
	}
	free(unread.data);
	if (m.op != START || m.time > (uint64_t)n || guests[m.time].state != ABSENT)
		die("operation %#x from a guest %" PRIu64, m.op, m.time);
	g = &guests[m.time];
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	g->fd = fd;
	g->pid = who.pid;
	g->state = RUNNING;
	g->cable_changed = g != harness;
	say(g, ACK, m.seq, 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	uint64_t seed;
	int ls, i, j;

	n = argc > 4 ? atoi(argv[2]) : 0;
	if (n < 1 || n >= MAX || strlen(argv[1]) >= sizeof(sa.sun_path)) {
		fprintf(stderr, "usage: %s SOCKET GUESTS SEED SECONDS [PCAP]\n", argv[0]);
		return 2;
	}
	harness = &guests[n];
	seed = strtoull(argv[3], NULL, 10);
	for (i = 0; i < n; i++)
		for (j = 0; j < n; j++)
			wires[i][j] = (struct wire){ .delay = WIRE_DELAY,
						     .usual = WIRE_DELAY,
						     .random = (seed * MAX + i) * MAX + j };
	look();
	compute_seconds = atoi(argv[4]);
	if (argc > 5)
		open_pcap(argv[5]);
	ls = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	strcpy(sa.sun_path, argv[1]);
	if (ls < 0 || bind(ls, (void *)&sa, sizeof(sa)) || listen(ls, MAX))
		die("%s: %s", argv[1], strerror(errno));
	for (i = 0; i <= n; i++) {
		int fd = accept4(ls, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			die("accept: %s", strerror(errno));
		welcome(fd);
	}
	for (i = 0; i <= n; i++)
		flush(&guests[i]);
	for (;;) {
		listen_to_all();
		schedule();
	}
}
