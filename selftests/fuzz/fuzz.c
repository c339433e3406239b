// SPDX-License-Identifier: GPL-2.0
/*
 * A hostile user, guided by coverage where the kernel has KCOV.
 *
 * An input is a sequence of calls on a few sockets. Its fields say all about it,
 * so that it can be mutated, kept, and run again (--replay). Workers run each in
 * a child of its own: as root, as a user that gid_range lets in, as one that it
 * does not, or as one who is root in a namespace of its own. Beside them a live
 * group of well-behaved members goes on, which inputs join: it must lose nothing.
 * What the kernel says of it all, and whether it gives back all memory, is for
 * the harness to judge.
 *
 * Before an input runs it stands in SPINDLE_OUT/last.WORKER.
 */
#include "spindle_selftest.h"

#include <getopt.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <linux/sockios.h>

#define NODES		6	/* addresses; the first LIVE have live members */
#define LIVE		3
#define SOCKETS		6
#define MAX_OPS		40
#define WORKERS		4
#define MAX_WORKERS	16
#define CORPUS		2048
#define THREADS		4
#define COVER		(128 << 10)	/* places that one input may pass */
#define EDGE_BITS	20
#define LET_IN		4000		/* uid and gid */
#define SHUT_OUT	5000
#define INPUT_SECONDS	15		/* an input that takes longer is ended */
#define STUCK_SECONDS	120		/* then the kernel holds something up */

/* <linux/kcov.h> is not there on each host */
#define KCOV_INIT_TRACE	_IOR('c', 1, unsigned long)
#define KCOV_ENABLE	_IO('c', 100)
#define KCOV_TRACE_PC	0

enum call {
	C_SOCKET, C_BIND, C_CREATE, C_JOIN, C_SET_INT, C_SET, C_GET, C_SEND, C_RECV, C_IOCTL,
	C_MAP, C_MMAP, C_RING, C_SCRIBBLE, C_UNMAP, C_POLL, C_SHUTDOWN, C_CLOSE, C_WAIT,
	C_SOCK_OPT, C_OTHER, C_OBJECT, C_RELEASE, CALLS,
};

/* How often each is chosen. */
static const uint8_t weight[CALLS] = {
	[C_SOCKET] = 2, [C_BIND] = 3, [C_CREATE] = 3, [C_JOIN] = 5, [C_SET_INT] = 10,
	[C_SET] = 3, [C_GET] = 10, [C_SEND] = 18, [C_RECV] = 14, [C_IOCTL] = 5, [C_MAP] = 6,
	[C_MMAP] = 5, [C_RING] = 16, [C_SCRIBBLE] = 3, [C_UNMAP] = 3, [C_POLL] = 4,
	[C_SHUTDOWN] = 2, [C_CLOSE] = 2, [C_WAIT] = 5, [C_SOCK_OPT] = 4, [C_OTHER] = 3,
	[C_OBJECT] = 3, [C_RELEASE] = 6,
};

enum who { ROOT, USER, OUTSIDER, ELSEWHERE, WHOS };

struct op {
	uint8_t call;
	uint8_t sock;		/* its slot; ASYNC: in a thread */
	uint16_t kind;		/* which variant */
	uint32_t value;
	uint32_t seed;		/* of whatever else it needs */
};

#define ASYNC	0x80

struct input {
	uint8_t who;
	uint8_t n;
	uint16_t zero;
	struct op op[MAX_OPS];
};

#define INPUT_SIZE(i)	(offsetof(struct input, op) + (i)->n * sizeof(struct op))

/* What all processes share. */
struct shared {
	uint64_t inputs, ended, kept, edges, places, failed_maps;
	uint64_t rounds, messages, views, foreign;
	uint32_t complaints;
	int ready, stop;
	uint32_t ncorpus;
	struct input corpus[CORPUS];
	uint8_t edge[1 << EDGE_BITS];
	uint8_t place[1 << EDGE_BITS];
	uint64_t calls[CALLS], good[CALLS];
};

static struct shared *shared;
static const char *out_dir;
static char live_name[SPINDLE_NAME_LEN] = "live";
static int family;
static unsigned int worker;
static uint64_t *cover;
static int cover_fd = -1;
static int corpus_fd = -1;

static void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void complain(const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	__atomic_add_fetch(&shared->complaints, 1, __ATOMIC_SEQ_CST);
	dprintf(1, "complaint: worker %u: %s\n", worker, text);
}

static uint32_t any(uint64_t *rng, uint32_t below)
{
	return st_random(rng) % below;
}

/* Mostly near what means something, at times anything. */
static uint32_t number(uint64_t *rng)
{
	static const uint32_t edges[] = {
		0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 63, 64, 65, 128, 255, 256, 1000, 1024, 4095,
		4096, 4097, 8192, 16383, 16384, 16385, 65535, 65536, 262144, 1 << 20, 8 << 20,
		16 << 20, 64 << 20, 0x7fffffff, 0x80000000, 0xffff0000, 0xfffffffe, 0xffffffff,
	};

	return any(rng, 5) ? edges[any(rng, ARRAY_SIZE(edges))] : (uint32_t)st_random(rng);
}

/* Making inputs */

static uint8_t pick_call(uint64_t *rng)
{
	unsigned int sum = 0, i, at;

	for (i = 0; i < CALLS; i++)
		sum += weight[i];
	at = any(rng, sum);
	for (i = 0; at >= weight[i]; i++)
		at -= weight[i];
	return i;
}

static struct op random_op(uint64_t *rng, unsigned int sockets)
{
	struct op op = {
		.call = pick_call(rng),
		.sock = any(rng, sockets),
		.kind = st_random(rng),
		.value = number(rng),
		.seed = st_random(rng),
	};

	if (!any(rng, 12))
		op.sock |= ASYNC;
	return op;
}

static void add(struct input *in, uint8_t call, uint8_t sock, uint16_t kind, uint32_t value,
		uint32_t seed)
{
	if (in->n < MAX_OPS)
		in->op[in->n++] = (struct op){ call, sock, kind, value, seed };
}

/* Kinds that the beginnings of inputs rely on. */
#define K_BIND_NODE	0	/* value: which */
#define K_CREATE_SANE	0	/* value: members */
#define K_JOIN_OWN	0	/* value: where its first member is */
#define K_JOIN_LIVE	1
#define K_WAIT_ACTIVE	0

/* A beginning that gets somewhere, then anything. */
static void generate(struct input *in, uint64_t *rng)
{
	unsigned int members = 1 + any(rng, 3), i;
	unsigned int first = any(rng, NODES);
	unsigned int sockets = 1;

	memset(in, 0, sizeof(*in));
	in->who = any(rng, 16) ? (any(rng, 3) ? USER : ROOT) : OUTSIDER + any(rng, 2);
	switch (any(rng, 6)) {
	case 0:
		sockets = SOCKETS;
		break;
	case 1:
	case 2:
		sockets = members;
		for (i = 0; i < members; i++) {
			uint32_t node = (first + i * any(rng, 2)) % NODES;

			add(in, C_SOCKET, i, 0, 0, 0);
			add(in, C_BIND, i, K_BIND_NODE, i ? node : first, 0);
			if (i)
				add(in, C_JOIN, i, K_JOIN_OWN, first, st_random(rng));
			else
				add(in, C_CREATE, i, K_CREATE_SANE, members, st_random(rng));
		}
		for (i = 0; i < members; i++)
			add(in, C_WAIT, i, K_WAIT_ACTIVE, 0, 0);
		break;
	default:
		sockets = 1 + any(rng, 2);
		for (i = 0; i < sockets; i++) {
			add(in, C_SOCKET, i, 0, 0, 0);
			add(in, C_BIND, i, K_BIND_NODE, any(rng, NODES), 0);
			add(in, C_JOIN, i, K_JOIN_LIVE, any(rng, LIVE), st_random(rng));
			add(in, C_WAIT, i, K_WAIT_ACTIVE, 0, 0);
		}
		break;
	}
	if (any(rng, 3))
		add(in, C_MAP, any(rng, 2) ? any(rng, sockets) : 0, 0, any(rng, 4), st_random(rng));
	for (i = 4 + any(rng, MAX_OPS - 4); i; i--)
		if (in->n < MAX_OPS)
			in->op[in->n++] = random_op(rng, sockets);
}

static void mutate(struct input *in, uint64_t *rng)
{
	const struct input *other = &shared->corpus[any(rng, shared->ncorpus)];
	unsigned int at, n;

	do {
		at = in->n ? any(rng, in->n) : 0;
		switch (any(rng, 8)) {
		case 0:
			in->op[at] = random_op(rng, 1 + any(rng, 3));
			in->n += !in->n;
			break;
		case 1:
			if (in->n < MAX_OPS) {
				memmove(in->op + at + 1, in->op + at,
					(in->n - at) * sizeof(in->op[0]));
				in->op[at] = random_op(rng, 2);
				in->n++;
			}
			break;
		case 2:
			if (in->n > 1) {
				in->n--;
				memmove(in->op + at, in->op + at + 1,
					(in->n - at) * sizeof(in->op[0]));
			}
			break;
		case 3:
			in->op[at].value = any(rng, 2) ? number(rng) :
				in->op[at].value + any(rng, 9) - 4;
			break;
		case 4:
			in->op[at].kind = st_random(rng);
			break;
		case 5:
			in->op[at].seed = st_random(rng);
			break;
		case 6:
			/* the end of another */
			n = other->n ? any(rng, other->n) : 0;
			while (n < other->n && at < MAX_OPS)
				in->op[at++] = other->op[n++];
			if (at > in->n)
				in->n = at;
			break;
		default:
			if (any(rng, 4))
				in->op[at].sock ^= ASYNC;
			else
				in->who = any(rng, WHOS);
			break;
		}
	} while (any(rng, 3));
}

/* Running one */

struct slot {
	int fd;
	struct spindle_rings rings;
	struct spindle_user *user;
	const struct spindle_status *status;
	const void *deliveries;
	void *own;
};

static struct slot slots[SOCKETS];
static unsigned char *junk;		/* JUNK bytes, then a page that is not there */
static int running_as;
static volatile int scribbling;

#define JUNK	(256 << 10)

static unsigned char *junk_of(uint64_t *rng, size_t len)
{
	size_t n = len < 4096 ? len : 4096, i;
	unsigned char *at = junk + JUNK - len;
	uint64_t word;

	/* some of it ends where the program's memory does */
	if (len > JUNK || any(rng, 3))
		at = junk;
	for (i = 0; i + 8 <= n; i += 8) {
		word = any(rng, 3) ? 0 : st_random(rng);
		memcpy(at + i, &word, 8);
	}
	return at;
}

static void *pointer(uint64_t *rng)
{
	switch (any(rng, 12)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)st_random(rng);
	case 2:
		return (void *)(uintptr_t)0xffff888000000000ULL;
	case 3:
		return junk + JUNK - any(rng, 64);
	case 4:
		/* the kernel copies between a shared page and itself */
		return slots[any(rng, SOCKETS)].own ?: (void *)junk;
	default:
		return junk;
	}
}

static void node_addr(struct sockaddr_in *sin, unsigned int node)
{
	*sin = st_in(st_addr(node % NODES));
}

static void private_name(char *name, unsigned int which)
{
	snprintf(name, SPINDLE_NAME_LEN, "w%u.%d.%u", worker, getpid(), which % 2);
}

static int do_socket(struct slot *s, const struct op *op)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_RDM };
	struct timeval tv = { 0, 20000 };
	int type = op->kind % 32 == 31 ? types[op->value % 4] : SOCK_SEQPACKET;
	int fd;

	fd = socket(family, type | (op->kind & 1 ? SOCK_NONBLOCK : 0),
		    op->kind % 32 == 30 ? (int)op->value : 0);
	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	/* a join needs longer */
	tv.tv_usec = 300000;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	return 0;
}

static int do_bind(struct slot *s, const struct op *op, uint64_t *rng)
{
	struct sockaddr_spindle ss = { .ss_family = family };
	struct sockaddr_in sin;
	unsigned char *sa;
	int ret;

	switch (op->kind % 8) {
	case 5:
		ss.ss_addr = st_mapped(st_addr(op->value % NODES));
		ss.ss_scope_id = any(rng, 2) ? number(rng) : 0;
		ss.ss_rank = any(rng, 4) ? 0 : number(rng);
		ret = bind(s->fd, (struct sockaddr *)&ss, any(rng, 4) ? sizeof(ss) : any(rng, 140));
		break;
	case 6:
	case 7:
		sa = junk_of(rng, 128);
		*(sa_family_t *)sa = any(rng, 3) ? AF_INET6 : any(rng, 50);
		ret = bind(s->fd, (struct sockaddr *)sa, any(rng, 140));
		break;
	default:
		node_addr(&sin, op->value);
		ret = bind(s->fd, (struct sockaddr *)&sin, sizeof(sin));
		break;
	}
	if (!ret && running_as >= OUTSIDER)
		complain("who is not let in could bind");
	return ret;
}

/* Some words of a structure go wrong. */
static void spoil(void *fields, size_t words, uint64_t *rng)
{
	uint32_t value;

	do {
		value = number(rng);
		memcpy((uint32_t *)fields + any(rng, words), &value, sizeof(value));
	} while (!any(rng, 3));
}

static int do_create(struct slot *s, const struct op *op, uint64_t *rng)
{
	struct spindle_group_create c = {
		.members = 1 + (op->value - 1) % 4,
		.window = 4096U << any(rng, 5),
		.max_msg = any(rng, 2) ? 1 + any(rng, 4096) : 0,
		.depth = 16U << any(rng, 4),
		.max_members = any(rng, 2) ? 4 + any(rng, 8) : 0,
		.evict_ms = any(rng, 2) ? 20 + any(rng, 200) : 0,
		.suspect_ms = any(rng, 8) ? 60000 : 0,
		.max_object = any(rng, 2) ? 65536 : 0,
		.block = any(rng, 2) ? 4096 : 0,
		.algorithm = any(rng, SPINDLE_ALGS),
		.flags = any(rng, 4) ? 0 : (any(rng, 2) ? SPINDLE_F_PLAIN : SPINDLE_F_MINORITY),
		.rack = any(rng, 2) ? any(rng, 3) : 0,
	};
	size_t len = sizeof(c);
	int ret;

	private_name(c.name, 0);
	if (op->kind % 4 == 1)
		spoil(&c.members, (sizeof(c) - offsetof(typeof(c), members)) / 4, rng);
	if (op->kind % 8 == 2)
		private_name(c.name, 1);
	if (op->kind % 8 == 6)
		snprintf(c.name, sizeof(c.name), "%s", live_name);
	if (op->kind % 16 == 7)
		c.name[any(rng, sizeof(c.name))] = st_random(rng);
	if (op->kind % 16 == 11)
		len = any(rng, sizeof(c) + 8);
	/* what the guest can bear: a few MiB a group */
	if (c.window > 1 << 20 && c.window <= SPINDLE_MAX_WINDOW)
		c.window = 1 << 20;
	ret = setsockopt(s->fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, &c, len);
	if (!ret && running_as >= OUTSIDER)
		complain("who is not let in could create");
	return ret;
}

static int do_join(struct slot *s, const struct op *op, uint64_t *rng)
{
	struct spindle_group_join j = {
		.flags = any(rng, 4) ? 0 : 1 + any(rng, 3),
		.rack = any(rng, 3),
	};
	struct sockaddr_in sin;
	size_t len = sizeof(j);
	int ret;

	node_addr(&sin, op->value % (op->kind % 2 == K_JOIN_LIVE ? LIVE : NODES));
	memcpy(j.contact, &sin, sizeof(sin));
	if (op->kind % 2 == K_JOIN_LIVE)
		snprintf(j.name, sizeof(j.name), "%s", live_name);
	else
		private_name(j.name, op->kind % 32 == 30);
	if (op->kind % 8 == 4)
		spoil(&j.members, (sizeof(j) - offsetof(typeof(j), members)) / 4, rng);
	if (op->kind % 16 == 6)
		spoil(j.contact, sizeof(j.contact) / 4, rng);
	if (op->kind % 16 == 7)
		j.name[any(rng, sizeof(j.name))] = st_random(rng);
	if (op->kind % 16 == 11)
		len = any(rng, sizeof(j) + 8);
	ret = setsockopt(s->fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &j, len);
	if (!ret && running_as >= OUTSIDER)
		complain("who is not let in could join");
	return ret;
}

static int do_set_int(struct slot *s, const struct op *op, uint64_t *rng)
{
	static const int opts[] = {
		SPINDLE_RECVINFO, SPINDLE_MAP, SPINDLE_DETACHED, SPINDLE_EVENTS, SPINDLE_EVENTS,
		SPINDLE_SYNC, SPINDLE_SYNC, SPINDLE_DETACHED, SPINDLE_GROUP_LEAVE,
	};
	int opt = opts[op->kind % ARRAY_SIZE(opts)];
	int value = op->value;

	if (any(rng, 4)) {
		if (opt == SPINDLE_EVENTS)
			value &= SPINDLE_WANT_ALL;
		else if (opt == SPINDLE_GROUP_LEAVE)
			value = 0;
		else if (opt == SPINDLE_MAP || opt == SPINDLE_SYNC)
			value %= 4;
	}
	return setsockopt(s->fd, SOL_SPINDLE, opt, any(rng, 16) ? &value : pointer(rng),
			  any(rng, 16) ? sizeof(value) : number(rng));
}

static int do_set(struct slot *s, const struct op *op, uint64_t *rng)
{
	socklen_t len = any(rng, 2) ? any(rng, 512) : number(rng);
	int level = any(rng, 8) ? SOL_SPINDLE : (int)number(rng);

	junk_of(rng, 512);
	return setsockopt(s->fd, level, op->kind % 18, pointer(rng), len);
}

static int do_get(struct slot *s, const struct op *op, uint64_t *rng)
{
	static const int opts[] = {
		SPINDLE_GROUP_INFO, SPINDLE_RECVINFO, SPINDLE_GROUP_VIEW, SPINDLE_MAP,
		SPINDLE_RINGS, SPINDLE_DETACHED, SPINDLE_EVENTS, SPINDLE_EVENT, SPINDLE_EVENT,
		SPINDLE_STABILITY, SPINDLE_EXPLAIN, SPINDLE_EXPLAIN, SPINDLE_OBJECT,
	};
	int opt = op->kind % 32 == 31 ? (int)op->value : opts[op->kind % ARRAY_SIZE(opts)];
	struct spindle_explain *e;
	unsigned char buf[4096];
	socklen_t len, given;
	unsigned int i;
	int ret;

	if (!any(rng, 10)) {
		len = number(rng);
		return getsockopt(s->fd, any(rng, 4) ? SOL_SPINDLE : (int)number(rng), opt,
				  pointer(rng), any(rng, 3) ? &len : pointer(rng));
	}
	memset(buf, 0xa5, sizeof(buf));
	len = any(rng, 3) ? 3000 : any(rng, 300);
	if (opt == SPINDLE_EVENT) {
		memcpy(buf + offsetof(struct spindle_event, number), &op->value, 4);
	} else if (opt == SPINDLE_EXPLAIN) {
		memset(buf, 0, sizeof(*e));
		e = (void *)buf;
		e->len = op->value;
		e->how.algorithm = any(rng, SPINDLE_ALGS + 1);
		e->how.flags = any(rng, 2);
		len = any(rng, 4) ? sizeof(*e) : any(rng, 300);
	}
	given = len;
	ret = getsockopt(s->fd, SOL_SPINDLE, opt, buf, &len);
	for (i = given; i < sizeof(buf); i++)
		if (buf[i] != 0xa5 && !(opt == SPINDLE_EXPLAIN && i < sizeof(*e)) &&
		    !(opt == SPINDLE_EVENT && i < 8)) {
			complain("option %d wrote at %u of %u", opt, i, given);
			break;
		}
	return ret;
}

static int do_send(struct slot *s, const struct op *op, uint64_t *rng)
{
	union {
		struct cmsghdr align;
		char buf[256];
	} control;
	static const uint32_t sizes[] = { 0, 1, 64, 100, 1000, 4096, 4097, 16384, 16385, 65536 };
	uint32_t len = any(rng, 4) ? sizes[op->value % ARRAY_SIZE(sizes)] : op->value;
	struct iovec iov[3];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg = &control.align;
	struct spindle_object object = { 0 };
	struct spindle_state state = { 0 };
	int flags = MSG_NOSIGNAL | (any(rng, 2) ? MSG_DONTWAIT : 0);

	iov[0] = (struct iovec){ len <= JUNK ? junk_of(rng, len) : junk, len };
	memset(&control, 0, sizeof(control));
	switch (op->kind % 10) {
	case 0:
		object.algorithm = any(rng, SPINDLE_ALGS + (any(rng, 8) == 0));
		object.flags = any(rng, 6) ? any(rng, 4) : number(rng);
		cmsg->cmsg_level = SOL_SPINDLE;
		cmsg->cmsg_type = SPINDLE_CMSG_OBJECT;
		cmsg->cmsg_len = CMSG_LEN(sizeof(object));
		memcpy(CMSG_DATA(cmsg), &object, sizeof(object));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(object));
		break;
	case 1:
		state.uid = any(rng, 4) ? any(rng, 6) : number(rng);
		state.flags = any(rng, 6) ? any(rng, 2) * SPINDLE_INFO_LAST : number(rng);
		cmsg->cmsg_level = SOL_SPINDLE;
		cmsg->cmsg_type = SPINDLE_CMSG_STATE;
		cmsg->cmsg_len = CMSG_LEN(sizeof(state));
		memcpy(CMSG_DATA(cmsg), &state, sizeof(state));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(sizeof(state));
		break;
	case 2:
		/* several, and none of them quite right */
		spoil(control.buf, sizeof(control) / 4, rng);
		cmsg->cmsg_len = any(rng, 2) ? CMSG_LEN(any(rng, 32)) : number(rng);
		cmsg->cmsg_level = any(rng, 4) ? SOL_SPINDLE : SOL_SOCKET;
		cmsg->cmsg_type = any(rng, 5);
		msg.msg_control = &control;
		msg.msg_controllen = any(rng, sizeof(control));
		break;
	case 3:
		msg.msg_iovlen = any(rng, 4);
		iov[0].iov_len = any(rng, 5000);
		iov[1] = (struct iovec){ pointer(rng), any(rng, 5000) };
		iov[2] = (struct iovec){ pointer(rng), any(rng, 4) ? any(rng, 99) : number(rng) };
		break;
	case 4:
		flags |= number(rng);
		break;
	case 5:
		msg.msg_name = pointer(rng);
		msg.msg_namelen = any(rng, 200);
		break;
	}
	return sendmsg(s->fd, &msg, flags);
}

static int do_recv(struct slot *s, const struct op *op, uint64_t *rng)
{
	unsigned char control[256];
	struct sockaddr_storage from;
	struct iovec iov[2];
	struct msghdr msg = {
		.msg_name = &from, .msg_namelen = sizeof(from),
		.msg_iov = iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int flags = any(rng, 3) ? MSG_DONTWAIT : 0;

	iov[0] = (struct iovec){ junk, op->value <= JUNK ? op->value : JUNK };
	switch (op->kind % 8) {
	case 0:
		flags |= MSG_PEEK;
		break;
	case 1:
		flags |= MSG_TRUNC | (any(rng, 2) ? MSG_PEEK : 0);
		break;
	case 2:
		flags |= number(rng);
		break;
	case 3:
		iov[0].iov_base = pointer(rng);
		iov[1] = (struct iovec){ pointer(rng), any(rng, 5000) };
		msg.msg_iovlen = 2;
		break;
	case 4:
		msg.msg_controllen = any(rng, 64);
		msg.msg_namelen = any(rng, 64);
		break;
	}
	return recvmsg(s->fd, &msg, flags);
}

static int do_ioctl(struct slot *s, const struct op *op, uint64_t *rng)
{
	static const unsigned int cmds[] = {
		SIOCSPINDLEKICK, SIOCSPINDLEKICK, SIOCSPINDLEKICK, FIONREAD, FIONREAD, TIOCOUTQ,
		SIOCINQ, SIOCOUTQ, 0x8906, 0x8907, 0x89e1, 0x89ff,
	};
	unsigned int cmd = any(rng, 12) ? cmds[op->kind % ARRAY_SIZE(cmds)] : op->value;

	return ioctl(s->fd, cmd, any(rng, 4) ? junk : pointer(rng));
}

static void *region(int fd, uint64_t off, uint64_t size, int prot)
{
	void *at = mmap(NULL, size, prot, MAP_SHARED, fd, off);

	if (at != MAP_FAILED)
		return at;
	__atomic_add_fetch(&shared->failed_maps, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Give directions over, and map all that there is. */
static int do_map(struct slot *s, const struct op *op, uint64_t *rng)
{
	int flags = op->value % 4 ?: SPINDLE_MAP_ALL;
	struct spindle_rings r;
	socklen_t len = sizeof(r);
	unsigned int i;

	setsockopt(s->fd, SOL_SPINDLE, SPINDLE_MAP, &flags, sizeof(flags));
	if (getsockopt(s->fd, SOL_SPINDLE, SPINDLE_RINGS, &r, &len))
		return -1;
	s->rings = r;
	s->user = region(s->fd, r.user_off, r.user_size, PROT_READ | PROT_WRITE);
	s->status = region(s->fd, r.status_off, r.status_size, PROT_READ);
	s->deliveries = region(s->fd, r.delivery_off, r.delivery_size, PROT_READ);
	if (r.flags & SPINDLE_MAP_TX)
		s->own = region(s->fd, r.own_off, 2ULL * r.window, PROT_READ | PROT_WRITE);
	for (i = any(rng, 4); i < 3; i++)
		region(s->fd, r.lane_off + i * r.lane_stride, 2ULL * r.window, PROT_READ);
	return 0;
}

/* What is not as it should be. */
static int do_mmap(struct slot *s, const struct op *op, uint64_t *rng)
{
	int prot = any(rng, 2) ? PROT_READ : any(rng, 8);
	int flags = any(rng, 6) ? MAP_SHARED : MAP_PRIVATE;
	const struct spindle_rings *r = &s->rings;
	const uint64_t sizes[] = { 4096, r->user_size, r->delivery_size, 2ULL * r->window,
		2ULL * r->window, 4096 };
	uint64_t off = (uint64_t)(op->kind % 6) << 32;
	uint64_t size = sizes[op->kind % 6];
	volatile unsigned char *at;

	if (op->kind % 6 == 4)
		off += (uint64_t)any(rng, any(rng, 4) ? 4 : 200) << 25;
	if (!any(rng, 10))
		off += (uint64_t)number(rng) << 12;
	if (!size || size > 32 << 20 || !any(rng, 8))
		size = 1 + any(rng, 1 << 20);
	at = mmap(NULL, size, prot, flags, s->fd, off);
	if (at == MAP_FAILED)
		return -1;
	if (prot & PROT_EXEC)
		complain("executable: prot %d flags %d off %#llx", prot, flags,
			 (unsigned long long)off);
	/* user and own are the two that may be written */
	if ((prot & PROT_WRITE) && off != 1ULL << 32 && off != 3ULL << 32)
		complain("writable: off %#llx", (unsigned long long)off);
	if ((prot & PROT_READ) && any(rng, 2))
		(void)at[any(rng, size)];
	if (!any(rng, 2) && !mprotect((void *)at, size, PROT_READ | PROT_WRITE) &&
	    off != 1ULL << 32 && off != 3ULL << 32)
		complain("made writable: off %#llx", (unsigned long long)off);
	if (any(rng, 2))
		munmap((void *)at, size);
	return 0;
}

static uint64_t wild(uint64_t base, uint64_t *rng)
{
	switch (any(rng, 8)) {
	case 0:
		return base - 1;
	case 1:
		return base + any(rng, 40000);
	case 2:
		return base + (1ULL << any(rng, 64));
	case 3:
		return ~0ULL;
	case 4:
		return 0;
	case 5:
		return number(rng);
	case 6:
		return base + any(rng, 20);
	default:
		return st_random(rng);
	}
}

/* Submit some, as a program should but for what goes wrong now and then. */
static void submit(struct slot *s, unsigned int n, unsigned int wrong, uint64_t *rng)
{
	volatile struct spindle_user *user = s->user;
	uint64_t tail = user->tx_tail;
	uint32_t max = s->rings.max_msg, len, flags;

	for (; n; n--, tail++) {
		volatile struct spindle_submission *sub =
			&user->submissions[tail & (s->rings.depth - 1)];

		len = any(rng, 4) ? any(rng, max + 1) : any(rng, 65);
		flags = 0;
		if (wrong && !any(rng, wrong))
			len = any(rng, 2) ? max + any(rng, 8192) : number(rng);
		if (wrong && !any(rng, wrong))
			flags = any(rng, 2) ? st_random(rng) : 1U << any(rng, 32);
		if (!any(rng, 6))
			flags = SPINDLE_DELIVERY_STATE | any(rng, 2) * SPINDLE_DELIVERY_LAST |
				any(rng, 6) << SPINDLE_DELIVERY_UID_SHIFT;
		sub->len = len;
		sub->flags = flags;
	}
	__atomic_store_n(&s->user->tx_tail, tail, __ATOMIC_RELEASE);
}

static int do_ring(struct slot *s, const struct op *op, uint64_t *rng)
{
	struct spindle_user *user = s->user;
	uint64_t *words = (uint64_t *)user;
	size_t n, i;

	if (!user)
		return -1;
	switch (op->kind % 12) {
	case 0:
	case 1:
	case 2:
		submit(s, 1 + op->value % 4, 0, rng);
		break;
	case 3:
	case 4:
		submit(s, 1 + op->value % (s->rings.depth + 2), 5, rng);
		break;
	case 5:
		user->tx_tail = wild(user->tx_tail, rng);
		break;
	case 6:
		user->rx_released = wild(user->rx_released, rng);
		break;
	case 7:
		user->tx_want_head = wild(s->status ? s->status->tx_head : 0, rng);
		user->tx_want_freed = wild(s->status ? s->status->tx_freed : 0, rng);
		user->rx_seen = wild(user->rx_seen, rng);
		break;
	case 8:
		n = s->rings.user_size / 8;
		for (i = any(rng, n); i < n; i += 1 + any(rng, 64))
			words[i] = any(rng, 2) ? st_random(rng) : wild(words[i], rng);
		break;
	case 9:
		words[any(rng, s->rings.user_size / 8)] = st_random(rng);
		break;
	default:
		if (!s->own)
			break;
		for (i = any(rng, 4096); i < 2ULL * s->rings.window; i += 1 + any(rng, 4096))
			((unsigned char *)s->own)[i] = st_random(rng);
		break;
	}
	if (any(rng, 2))
		ioctl(s->fd, SIOCSPINDLEKICK, 0);
	return 0;
}

/* As a program should: what was published was read. */
static int do_release(struct slot *s, const struct op *op)
{
	uint64_t upto;

	if (!s->user || !s->status)
		return -1;
	upto = __atomic_load_n(&s->status->published, __ATOMIC_ACQUIRE);
	s->user->rx_seen = upto;
	__atomic_store_n(&s->user->rx_released, upto - (op->kind % 4 ? 0 : op->value % 4),
			 __ATOMIC_RELEASE);
	return ioctl(s->fd, SIOCSPINDLEKICK, 0);
}

struct scribble {
	struct slot slot;
	uint64_t rng;
};

/* Everything that can be written changes while the kernel reads it. */
static void *scribbler(void *arg)
{
	struct scribble *sc = arg;
	struct slot *s = &sc->slot;
	volatile uint64_t *words = (uint64_t *)s->user;
	uint64_t tail = s->user->tx_tail, released = s->user->rx_released;
	unsigned int depth = s->rings.depth, i;

	while (scribbling) {
		for (i = 0; i < 200 && scribbling; i++) {
			volatile struct spindle_submission *sub =
				&s->user->submissions[any(&sc->rng, depth)];

			sub->len = any(&sc->rng, 2) ? any(&sc->rng, 64) : number(&sc->rng);
			sub->flags = any(&sc->rng, 2) ? 0 : (uint32_t)st_random(&sc->rng);
			switch (any(&sc->rng, 5)) {
			case 0:
				s->user->tx_tail = any(&sc->rng, 8) ? ++tail :
					wild(tail, &sc->rng);
				break;
			case 1:
				s->user->rx_released = any(&sc->rng, 8) ? ++released :
					wild(released, &sc->rng);
				break;
			case 2:
				words[any(&sc->rng, s->rings.user_size / 8)] =
					st_random(&sc->rng);
				break;
			default:
				if (s->own)
					((volatile unsigned char *)s->own)
						[any(&sc->rng, 2 * s->rings.window)] ^= 1;
				break;
			}
		}
		sched_yield();
	}
	return NULL;
}

static int do_unmap(struct slot *s, const struct op *op, uint64_t *rng)
{
	uint64_t size = s->rings.user_size, off = (uint64_t)any(rng, 4) << 12;
	static const int advice[] = {
		MADV_DONTNEED, MADV_DOFORK, MADV_DONTFORK, MADV_REMOVE, MADV_MERGEABLE,
		MADV_HUGEPAGE, MADV_PAGEOUT, MADV_COLD, MADV_POPULATE_READ, MADV_POPULATE_WRITE,
	};
	void *at = s->user;
	pid_t pid;

	if (any(rng, 2) && s->own) {
		at = s->own;
		size = 2ULL * s->rings.window;
	}
	if (!at || !size)
		return -1;
	switch (op->kind % 8) {
	case 0:
		munmap(at, size);
		break;
	case 1:
		return munmap((char *)at + off, 4096);
	case 2:
		return mprotect((char *)at + off, 4096, any(rng, 8));
	case 3:
	case 4:
		return madvise((char *)at + off, any(rng, 2) ? 4096 : size,
			       advice[op->value % ARRAY_SIZE(advice)]);
	case 5:
		at = mremap(at, any(rng, 3) ? size : 0, size + 4096 * any(rng, 3),
			    MREMAP_MAYMOVE);
		return at == MAP_FAILED ? -1 : 0;
	case 6:
		return mlock(at, size);
	default:
		/* who inherits the sockets, and what was not kept from it */
		pid = fork();
		if (!pid) {
			ioctl(s->fd, SIOCSPINDLEKICK, 0);
			_exit(0);
		}
		return pid > 0 ? waitpid(pid, NULL, 0) : -1;
	}
	if (at == s->own)
		s->own = NULL;
	else
		s->user = NULL;
	return 0;
}

static int do_wait(struct slot *s, const struct op *op)
{
	double end = st_now() + 1;
	struct spindle_group_info info;
	struct pollfd pfd = { .fd = s->fd, .events = op->value & 0xff };
	socklen_t len;

	if (op->kind % 3 == 1)
		return usleep(op->value % 20000);
	if (op->kind % 3 == 2)
		return poll(&pfd, 1, op->value % 40);
	do {
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (getsockopt(s->fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, &info, &len))
			return -1;
		if (info.state != SPINDLE_STATE_FORMING)
			return 0;
		usleep(500);
	} while (st_now() < end);
	return -1;
}

static int do_sock_opt(struct slot *s, const struct op *op, uint64_t *rng)
{
	static const int opts[] = {
		SO_RCVBUF, SO_SNDBUF, SO_PEEK_OFF, SO_PEEK_OFF, SO_LINGER, SO_RCVLOWAT,
		SO_TIMESTAMP, SO_BUSY_POLL, SO_PASSCRED, SO_ZEROCOPY, SO_ATTACH_FILTER, SO_ERROR,
	};
	int value[2] = { op->value, any(rng, 3) };
	int opt = opts[op->kind % ARRAY_SIZE(opts)];
	socklen_t len = sizeof(value);

	if (!any(rng, 4))
		return getsockopt(s->fd, SOL_SOCKET, opt, value, &len);
	return setsockopt(s->fd, SOL_SOCKET, opt, value, opt == SO_LINGER ? 8 : 4);
}

static int do_other(struct slot *s, const struct op *op, uint64_t *rng)
{
	struct sockaddr_storage name;
	socklen_t len = any(rng, 2) ? any(rng, 160) : number(rng);
	struct sockaddr_in sin;
	int fd, ret, ends[2];

	node_addr(&sin, op->value);
	switch (op->kind % 11) {
	case 9:
	case 10:
		if (pipe2(ends, O_NONBLOCK))
			return -1;
		if (op->kind % 11 == 9) {
			ret = write(ends[1], junk, 1 + any(rng, 8192));
			ret = splice(ends[0], NULL, s->fd, NULL, ret > 0 ? ret : 1, any(rng, 16));
		} else {
			ret = splice(s->fd, NULL, ends[1], NULL, any(rng, 65536),
				     SPLICE_F_NONBLOCK);
		}
		close(ends[0]);
		close(ends[1]);
		return ret;
	case 0:
		return getsockname(s->fd, (struct sockaddr *)&name, &len);
	case 1:
		return getpeername(s->fd, (struct sockaddr *)&name, &len);
	case 2:
		return connect(s->fd, (struct sockaddr *)&sin, sizeof(sin));
	case 3:
		return listen(s->fd, op->value);
	case 4:
		return accept(s->fd, NULL, NULL);
	case 5:
		return fcntl(s->fd, F_SETFL, any(rng, 2) ? O_NONBLOCK : O_ASYNC);
	case 6:
		fd = dup(s->fd);
		ret = any(rng, 2) ? write(fd, junk, any(rng, 5000)) : read(fd, junk, 5000);
		close(fd);
		return ret;
	case 7:
		return lseek(s->fd, op->value, SEEK_SET);
	default:
		return fsync(s->fd);
	}
}

static int do_object(struct slot *s, const struct op *op, uint64_t *rng)
{
	struct spindle_object_read read = {
		.delivery = op->value,
		.addr = (uintptr_t)(any(rng, 4) ? junk : pointer(rng)),
		.off = any(rng, 2) ? 0 : number(rng),
		.len = any(rng, 2) ? any(rng, JUNK) : number(rng),
	};
	const struct spindle_delivery *d = s->deliveries;
	struct spindle_object_fd file = { 0 };
	uint64_t at, end;
	socklen_t len = sizeof(read);
	int ret, prot;
	void *mem;

	if (read.len > JUNK)
		read.len = JUNK;
	if (any(rng, 4) && d && s->status) {
		end = s->status->published;
		for (at = end > 64 ? end - 64 : 0; at < end; at++)
			if (d[at & (s->rings.deliveries - 1)].flags & SPINDLE_DELIVERY_OBJECT)
				read.delivery = at;
	}
	if (any(rng, 2))
		return getsockopt(s->fd, SOL_SPINDLE, SPINDLE_OBJECT, &read, &len);
	file.delivery = any(rng, 4) && !s->status ? 0 : read.delivery;
	file.__resv[any(rng, 3)] = any(rng, 50) ? 0 : op->value;
	len = any(rng, 20) ? sizeof(file) : any(rng, 64);
	ret = getsockopt(s->fd, SOL_SPINDLE, SPINDLE_OBJECT_FD, &file, &len);
	if (ret || file.fd <= 2)
		return ret;
	prot = any(rng, 3) ? PROT_READ : (int)op->value & 7;
	mem = mmap(NULL, any(rng, 3) ? file.len : number(rng) % (1 << 26), prot,
		   any(rng, 2) ? MAP_SHARED : MAP_PRIVATE, file.fd, any(rng, 3) ? 0 : 4096);
	if (mem != MAP_FAILED) {
		if (prot & PROT_READ)
			*(volatile char *)mem;
		mprotect(mem, 4096, op->value >> 8 & 7);
		munmap(mem, file.len);
	}
	ret = pread(file.fd, any(rng, 4) ? junk : pointer(rng), any(rng, JUNK), read.off);
	lseek(file.fd, number(rng), any(rng, 4));
	close(file.fd);
	return ret;
}

static int run_op(const struct op *op)
{
	struct slot *s = &slots[(op->sock & ~ASYNC) % SOCKETS];
	uint64_t rng = (uint64_t)op->seed << 32 | op->value;
	struct pollfd pfd = { .fd = s->fd, .events = op->kind };

	switch (op->call) {
	case C_SOCKET:
		return do_socket(s, op);
	case C_BIND:
		return do_bind(s, op, &rng);
	case C_CREATE:
		return do_create(s, op, &rng);
	case C_JOIN:
		return do_join(s, op, &rng);
	case C_SET_INT:
		return do_set_int(s, op, &rng);
	case C_SET:
		return do_set(s, op, &rng);
	case C_GET:
		return do_get(s, op, &rng);
	case C_SEND:
		return do_send(s, op, &rng);
	case C_RECV:
		return do_recv(s, op, &rng);
	case C_IOCTL:
		return do_ioctl(s, op, &rng);
	case C_MAP:
		return do_map(s, op, &rng);
	case C_MMAP:
		return do_mmap(s, op, &rng);
	case C_RING:
		return do_ring(s, op, &rng);
	case C_UNMAP:
		return do_unmap(s, op, &rng);
	case C_POLL:
		return poll(&pfd, 1, op->value % 10);
	case C_SHUTDOWN:
		return shutdown(s->fd, op->value % 4);
	case C_CLOSE:
		/* what it has mapped stays */
		close(s->fd);
		s->fd = -1;
		return 0;
	case C_WAIT:
		return do_wait(s, op);
	case C_SOCK_OPT:
		return do_sock_opt(s, op, &rng);
	case C_OTHER:
		return do_other(s, op, &rng);
	case C_OBJECT:
		return do_object(s, op, &rng);
	case C_RELEASE:
		return do_release(s, op);
	}
	return -1;
}

static void *run_async(void *arg)
{
	run_op(arg);
	return NULL;
}

static void become(enum who who)
{
	unsigned int id = who == USER ? LET_IN : SHUT_OUT;

	running_as = who;
	if (who == ROOT)
		return;
	CHECK_OK(setgroups(0, NULL));
	CHECK_OK(setresgid(id, id, id));
	CHECK_OK(setresuid(id, id, id));
	/* a kernel may have none; then it is an outsider like others */
	if (who == ELSEWHERE)
		unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

/* The whole of an input, in a process of its own. */
static void run_child(struct input *in)
{
	static struct scribble scribble[THREADS];
	struct rlimit none = { 0, 0 };
	pthread_t thread[THREADS];
	unsigned int n = 0, i;
	size_t stack;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	setrlimit(RLIMIT_CORE, &none);
	alarm(INPUT_SECONDS);
	for (i = 0; i < SOCKETS; i++)
		slots[i].fd = -1;
	junk = mmap(NULL, JUNK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK_OK(mprotect(junk + JUNK, 4096, PROT_NONE));
	/* they take no more than they need */
	stack = 64 << 10;
	become(in->who);
	if (cover_fd >= 0 && ioctl(cover_fd, KCOV_ENABLE, KCOV_TRACE_PC))
		FAIL("KCOV_ENABLE: %s", st_err(errno));
	scribbling = 1;
	for (i = 0; i < in->n; i++) {
		struct op *op = &in->op[i];
		struct slot *s = &slots[(op->sock & ~ASYNC) % SOCKETS];
		bool scribbles = op->call == C_SCRIBBLE && s->user;
		pthread_attr_t attr;

		if (op->call >= CALLS)
			continue;
		__atomic_add_fetch(&shared->calls[op->call], 1, __ATOMIC_RELAXED);
		if (n < THREADS && (scribbles || (op->sock & ASYNC && op->call != C_SCRIBBLE))) {
			pthread_attr_init(&attr);
			pthread_attr_setstacksize(&attr, stack);
			scribble[n] = (struct scribble){ *s, op->seed };
			if (!pthread_create(&thread[n], &attr, scribbles ? scribbler : run_async,
					    scribbles ? (void *)&scribble[n] : op))
				n++;
			sched_yield();
		} else if (run_op(op) >= 0) {
			__atomic_add_fetch(&shared->good[op->call], 1, __ATOMIC_RELAXED);
		}
	}
	scribbling = 0;
	/* some with calls that others make at that time */
	if (in->n & 1)
		for (i = 0; i < SOCKETS; i++)
			close(slots[i].fd);
	/* and some in the midst of calls */
	for (i = 0; i < n && in->n % 4 != 2; i++)
		pthread_join(thread[i], NULL);
	for (i = 0; i < SOCKETS; i++)
		close(slots[i].fd);
	_exit(0);
}

static void to_hex(const struct input *in, char *text)
{
	const unsigned char *bytes = (const unsigned char *)in;
	size_t i;

	for (i = 0; i < INPUT_SIZE(in); i++)
		sprintf(text + 2 * i, "%02x", bytes[i]);
	strcat(text, "\n");
}

static bool from_hex(const char *text, struct input *in)
{
	unsigned char *bytes = (unsigned char *)in;
	unsigned int byte;
	size_t i;

	memset(in, 0, sizeof(*in));
	for (i = 0; i < sizeof(*in) && sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
		bytes[i] = byte;
	return i >= offsetof(struct input, op) && in->n <= MAX_OPS && INPUT_SIZE(in) <= i &&
	       in->who < WHOS;
}

/* It has to be there even if the guest is not, afterwards. */
static void tell_last(const char *text)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/last.%u", out_dir, worker);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		FAIL("%s: %s", path, st_err(errno));
	close(fd);
}

static bool mark(uint8_t *map, uint64_t what)
{
	uint8_t *at = &map[what * 0x9e3779b97f4a7c15ULL >> (64 - EDGE_BITS)];

	return !*at && !__atomic_exchange_n(at, 1, __ATOMIC_RELAXED);
}

/* Was it anywhere where none was before? */
static bool new_cover(void)
{
	uint64_t n, i, before = 0;
	bool new = false;

	if (!cover)
		return false;
	n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	for (i = 1; i <= n && i < COVER; i++) {
		if (mark(shared->place, cover[i]))
			__atomic_add_fetch(&shared->places, 1, __ATOMIC_RELAXED);
		if (mark(shared->edge, before * 3 + cover[i])) {
			__atomic_add_fetch(&shared->edges, 1, __ATOMIC_RELAXED);
			new = true;
		}
		before = cover[i];
	}
	return new;
}

static void keep(const struct input *in, const char *text)
{
	uint64_t at = __atomic_fetch_add(&shared->kept, 1, __ATOMIC_SEQ_CST);

	shared->corpus[at % CORPUS] = *in;
	if (at < CORPUS)
		shared->ncorpus = at + 1;
	if (text && corpus_fd >= 0 && write(corpus_fd, text, strlen(text)) < 0)
		FAIL("corpus: %s", st_err(errno));
}

static void run_input(struct input *in)
{
	static char text[2 * sizeof(*in) + 2];
	int status;
	pid_t pid;

	to_hex(in, text);
	tell_last(text);
	if (cover)
		__atomic_store_n(&cover[0], 0, __ATOMIC_RELAXED);
	pid = CHECK_OK(fork());
	if (!pid)
		run_child(in);
	if (st_wait_child(pid, INPUT_SECONDS + STUCK_SECONDS, &status)) {
		complain("no end: %s", text);
		kill(pid, SIGKILL);
		/* it is not waited for: unloading tells */
		_exit(1);
	}
	kill(-pid, SIGKILL);
	__atomic_add_fetch(&shared->inputs, 1, __ATOMIC_RELAXED);
	if (WIFSIGNALED(status))
		__atomic_add_fetch(&shared->ended, 1, __ATOMIC_RELAXED);
	else if (status)
		complain("status %#x: %s", status, text);
	if (new_cover())
		keep(in, text);
}

static void open_cover(void)
{
	cover_fd = open("/sys/kernel/debug/kcov", O_RDWR | O_CLOEXEC);
	if (cover_fd < 0)
		return;
	CHECK_OK(ioctl(cover_fd, KCOV_INIT_TRACE, (unsigned long)COVER));
	cover = mmap(NULL, COVER * sizeof(*cover), PROT_READ | PROT_WRITE, MAP_SHARED, cover_fd,
		     0);
	if (cover == MAP_FAILED)
		FAIL("kcov: %s", st_err(errno));
}

static void block_child(void)
{
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, NULL);
}

static void work(uint64_t seed, double end)
{
	uint64_t rng = seed * 1000003 + worker;
	struct input in;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_cover();
	while (st_now() < end && !__atomic_load_n(&shared->stop, __ATOMIC_RELAXED)) {
		if (shared->ncorpus && any(&rng, 3)) {
			in = shared->corpus[any(&rng, shared->ncorpus)];
			mutate(&in, &rng);
		} else {
			generate(&in, &rng);
		}
		run_input(&in);
	}
	_exit(0);
}

static void replay(const char *path, unsigned int times)
{
	char text[2 * sizeof(struct input) + 3];
	struct input in;
	FILE *f;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_cover();
	while (times--) {
		f = fopen(path, "r");
		if (!f)
			FAIL("%s: %s", path, st_err(errno));
		while (fgets(text, sizeof(text), f))
			if (from_hex(text, &in))
				run_input(&in);
			else
				FAIL("%s: no input: %s", path, text);
		fclose(f);
	}
	_exit(0);
}

static void read_corpus(const char *path)
{
	char text[2 * sizeof(struct input) + 3];
	struct input in;
	FILE *f = fopen(path, "r");

	while (f && fgets(text, sizeof(text), f))
		if (from_hex(text, &in))
			keep(&in, NULL);
	if (f)
		fclose(f);
}

/* The live group: each of its members sends, and reads what all of them sent */

#define LIVE_MSG	4096
#define LIVE_OBJECT	65536
#define CHAINS		65536

struct letter {
	uint64_t secret[2];	/* nobody else knows it */
	uint32_t from;
	uint32_t len;
	uint64_t number;
	unsigned char bytes[];
};

static struct {
	int fd;
	uint64_t sent;
	uint64_t got[LIVE];
	uint64_t chain;		/* of all it was given so far */
	uint64_t events;
} member[LIVE];

static struct {
	uint64_t number, chain;
} chains[LIVE][CHAINS];

static uint64_t secret[2];
static unsigned int rank_of[LIVE];	/* who has which rank */
static unsigned char letter_buf[LIVE_OBJECT + 64];

static void live_lost(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void live_lost(const char *fmt, ...)
{
	struct spindle_group_info info;
	char text[300];
	unsigned int i;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	complain("live group: %s", text);
	for (i = 0; i < LIVE; i++) {
		info = st_info(member[i].fd);
		dprintf(1, "# live member %u: state %u error %s view %llu members %u sent %llu got %llu %llu %llu\n",
			i, info.state, st_err(info.error), (unsigned long long)info.view,
			info.members, (unsigned long long)member[i].sent,
			(unsigned long long)member[i].got[0], (unsigned long long)member[i].got[1],
			(unsigned long long)member[i].got[2]);
	}
	__atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
	_exit(1);
}

static void chain(unsigned int i, uint64_t what)
{
	uint64_t state = member[i].chain ^ what;

	member[i].chain = st_random(&state);
}

static uint32_t live_len(unsigned int from, uint64_t number)
{
	uint64_t rng = secret[1] + from * 77777 + number;

	if (!any(&rng, 24))
		return sizeof(struct letter) + any(&rng, LIVE_OBJECT - sizeof(struct letter));
	return sizeof(struct letter) + any(&rng, LIVE_MSG - sizeof(struct letter));
}

static void live_fill(struct letter *l, unsigned int from, uint64_t number)
{
	uint32_t len = live_len(from, number), i;
	uint64_t rng = secret[0] + from + number * 8;
	unsigned int step = 1 + any(&rng, 255);

	*l = (struct letter){ { secret[0], secret[1] }, from, len, number };
	for (i = 0; i < len - sizeof(*l); i++)
		l->bytes[i] = i * step + number;
}

static bool live_send(unsigned int i)
{
	static unsigned char buf[LIVE_OBJECT];
	struct letter *l = (void *)buf;
	ssize_t n;

	live_fill(l, i, member[i].sent);
	n = send(member[i].fd, l, l->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n != (ssize_t)l->len)
		live_lost("member %u could not send: %zd %s", i, n, st_err(errno));
	member[i].sent++;
	return true;
}

static void live_letter(unsigned int i, struct letter *l, ssize_t len, unsigned int rank)
{
	static unsigned char buf[LIVE_OBJECT];
	struct letter *want = (void *)buf;
	unsigned int from = rank_of[rank];
	uint64_t at;

	if (len < (ssize_t)sizeof(*l) || l->from != from || member[i].got[from] != l->number)
		live_lost("member %u got number %llu of %u", i, (unsigned long long)l->number,
			  from);
	at = member[i].got[from]++;
	live_fill(want, from, at);
	if (len != (ssize_t)want->len || memcmp(l, want, len))
		live_lost("member %u: number %llu of %u is not what was sent", i,
			  (unsigned long long)at, from);
	if (chains[from][at % CHAINS].number != at + 1) {
		chains[from][at % CHAINS].number = at + 1;
		chains[from][at % CHAINS].chain = member[i].chain;
	} else if (chains[from][at % CHAINS].chain != member[i].chain) {
		live_lost("member %u: other order before number %llu of %u", i,
			  (unsigned long long)at, from);
	}
	shared->messages++;
}

/* False when there is nothing, or nothing any more. */
static bool live_recv(unsigned int i, bool *ended)
{
	char control[CMSG_SPACE(sizeof(struct spindle_msg_info))];
	struct iovec iov = { letter_buf, sizeof(letter_buf) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct letter *l = (void *)letter_buf;
	struct spindle_msg_info info;
	ssize_t n;

	n = recvmsg(member[i].fd, &msg, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return false;
	if (n < 0)
		live_lost("member %u could not receive: %s", i, st_err(errno));
	if (!n && !(msg.msg_flags & MSG_EOR)) {
		if (!ended)
			live_lost("member %u came to an end", i);
		*ended = true;
		return false;
	}
	if (msg.msg_flags & MSG_SPINDLE_EVENT) {
		struct spindle_event *e = (void *)letter_buf;

		if (e->type != SPINDLE_EVENT_VIEW)
			live_lost("member %u: event %u", i, e->type);
		chain(i, e->view << 16 ^ e->members << 8 ^ e->left);
		shared->views++;
		return true;
	}
	if (!CMSG_FIRSTHDR(&msg))
		live_lost("member %u: no info", i);
	memcpy(&info, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(info));
	/* state is for one of them */
	if (info.flags & SPINDLE_INFO_STATE)
		return true;
	/* they came first and stay, so their ranks do; others may say what these did */
	if (info.rank < LIVE)
		live_letter(i, l, n, info.rank);
	else
		shared->foreign++;
	chain(i, info.seq << 8 ^ info.rank ^ (uint64_t)n << 40);
	return true;
}

/* Each sends up to a number, and reads until it has all. */
static void live_round(uint64_t upto)
{
	double end = st_now() + STUCK_SECONDS;
	struct pollfd pfd[LIVE];
	bool more = true, moved;
	unsigned int i, k;

	while (more) {
		more = false;
		moved = false;
		for (i = 0; i < LIVE; i++) {
			if (member[i].sent < upto && live_send(i))
				moved = true;
			/* not for ever: others send too */
			for (k = 0; k < 64 && live_recv(i, NULL); k++)
				moved = true;
			more |= member[i].sent < upto;
			for (k = 0; k < LIVE; k++)
				more |= member[i].got[k] < upto;
			pfd[i] = (struct pollfd){ member[i].fd, POLLIN, 0 };
			if (member[i].sent < upto)
				pfd[i].events |= POLLOUT;
		}
		if (st_now() > end)
			live_lost("no end of a round in %d s", STUCK_SECONDS);
		if (more && !moved)
			poll(pfd, LIVE, 1000);
	}
	shared->rounds++;
}

static void live_end(void)
{
	double end = st_now() + STUCK_SECONDS;
	bool ended[LIVE] = { 0 };
	unsigned int i, left = LIVE;

	for (i = 0; i < LIVE; i++) {
		if (st_info(member[i].fd).state != SPINDLE_STATE_ACTIVE)
			live_lost("member %u is not active", i);
		CHECK_OK(shutdown(member[i].fd, SHUT_WR));
	}
	while (left) {
		if (st_now() > end)
			live_lost("it does not end");
		for (left = 0, i = 0; i < LIVE; i++) {
			while (!ended[i] && live_recv(i, &ended[i]))
				;
			left += !ended[i];
		}
		usleep(2000);
	}
}

static void live(void)
{
	struct spindle_group_create c = {
		.members = LIVE,
		.max_members = 16,
		.window = 65536,
		.max_msg = LIVE_MSG,
		.depth = 64,
		.max_object = LIVE_OBJECT,
		.suspect_ms = 600000,
		/* who keeps it up is put out; these read all the time */
		.evict_ms = 5000,
	};
	struct spindle_group_join j = { 0 };
	struct sockaddr_in sin;
	int on = 1, events = SPINDLE_WANT_VIEW;
	unsigned int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* a guest has little entropy to wait for */
	CHECK_EQ(getrandom(secret, sizeof(secret), GRND_INSECURE), sizeof(secret));
	snprintf(c.name, sizeof(c.name), "%s", live_name);
	snprintf(j.name, sizeof(j.name), "%s", live_name);
	node_addr(&sin, 0);
	memcpy(j.contact, &sin, sizeof(sin));
	for (i = 0; i < LIVE; i++) {
		member[i].fd = st_bound(i);
		CHECK_OK(setsockopt(member[i].fd, SOL_SPINDLE, SPINDLE_RECVINFO, &on, sizeof(on)));
		CHECK_OK(setsockopt(member[i].fd, SOL_SPINDLE, SPINDLE_EVENTS, &events,
				    sizeof(events)));
		CHECK_OK(i ? st_join(member[i].fd, &j) : st_create(member[i].fd, &c));
	}
	for (i = 0; i < LIVE; i++) {
		st_wait_state(member[i].fd, SPINDLE_STATE_ACTIVE);
		rank_of[st_info(member[i].fd).rank % LIVE] = i;
	}
	__atomic_store_n(&shared->ready, 1, __ATOMIC_SEQ_CST);
	for (i = 4; !__atomic_load_n(&shared->stop, __ATOMIC_SEQ_CST); i += 4) {
		live_round(i);
		usleep(2000);
	}
	/* those that came may be on their way out */
	live_round(i);
	live_end();
	_exit(0);
}

static void stop(int sig ST_UNUSED)
{
	__atomic_store_n(&shared->stop, 1, __ATOMIC_SEQ_CST);
}

static int usage(void)
{
	fprintf(stderr, "usage: fuzz [-s SECONDS] [-S SEED] [-w WORKERS] [-c CORPUS] [-r REPLAY [-t TIMES]]\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *corpus = NULL, *again = NULL;
	unsigned int seconds = 30, workers = WORKERS, times = 1, i;
	pid_t pid[MAX_WORKERS], live_pid;
	struct sigaction sa = { .sa_handler = stop };
	char path[300], range[32];
	uint64_t seed = 1;
	int opt, status;

	while ((opt = getopt(argc, argv, "s:S:w:c:r:t:")) != -1) {
		switch (opt) {
		case 's':
			seconds = atoi(optarg);
			break;
		case 'S':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'w':
			workers = atoi(optarg);
			break;
		case 'c':
			corpus = optarg;
			break;
		case 'r':
			again = optarg;
			break;
		case 't':
			times = atoi(optarg);
			break;
		default:
			return usage();
		}
	}
	if (optind < argc || !workers || workers > MAX_WORKERS)
		return usage();
	setvbuf(stdout, NULL, _IOLBF, 0);
	out_dir = getenv("SPINDLE_OUT") ?: "/tmp";
	family = st_family();
	st_addr(NODES - 1);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	if (shared == MAP_FAILED)
		FAIL("mmap: %s", st_err(errno));
	snprintf(range, sizeof(range), "%d %d", LET_IN, LET_IN);
	if (!st_write_file("/proc/sys/net/spindle/gid_range", range))
		FAIL("gid_range: %s", st_err(errno));
	if (corpus)
		read_corpus(corpus);
	snprintf(path, sizeof(path), "%s/corpus", out_dir);
	corpus_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	block_child();
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);

	live_pid = CHECK_OK(fork());
	if (!live_pid) {
		worker = 99;
		live();
	}
	WAIT_UNTIL(shared->ready || waitpid(live_pid, NULL, WNOHANG), 60);
	if (!shared->ready)
		FAIL("the live group did not begin");
	if (again)
		workers = 1;
	for (i = 0; i < workers; i++) {
		pid[i] = CHECK_OK(fork());
		if (pid[i])
			continue;
		worker = i;
		if (again)
			replay(again, times);
		work(seed, st_now() + seconds);
	}
	for (i = 0; i < workers; i++)
		if (waitpid(pid[i], &status, 0) != pid[i] || status)
			complain("worker %u: status %#x", i, status);
	stop(0);
	if (st_wait_child(live_pid, 4 * STUCK_SECONDS, &status))
		complain("the live group does not end");
	else if (status)
		complain("live group: status %#x", status);
	for (i = 0; i < CALLS; i++)
		printf("# call %u: %llu, %llu good\n", i, (unsigned long long)shared->calls[i],
		       (unsigned long long)shared->good[i]);
	printf("# mappings refused: %llu\n", (unsigned long long)shared->failed_maps);
	printf("live: %llu rounds, %llu messages, %llu of others, %llu views\n",
	       (unsigned long long)shared->rounds, (unsigned long long)shared->messages,
	       (unsigned long long)shared->foreign, (unsigned long long)shared->views);
	printf("done: %llu inputs, %u complaints, %llu kept, %llu places, %llu edges, %llu ended by signal\n",
	       (unsigned long long)shared->inputs, shared->complaints,
	       (unsigned long long)shared->kept, (unsigned long long)shared->places,
	       (unsigned long long)shared->edges, (unsigned long long)shared->ended);
	return shared->complaints ? 1 : 0;
}
