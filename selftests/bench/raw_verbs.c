// SPDX-License-Identifier: GPL-2.0
/*
 * What verbs alone do between two addresses: the yardstick of the benchmarks.
 *
 *	raw_verbs serve ADDR PORT
 *	raw_verbs bw ADDR PORT SIZE SECONDS DEPTH
 *	raw_verbs lat ADDR PORT SIZE COUNT poll|event
 *	raw_verbs write ADDR PORT SIZE COUNT
 *
 * bw writes messages of SIZE bytes one behind another into the server's memory,
 * DEPTH at a time, and sleeps until completions come (which perftest does not).
 * lat writes one message, which the server answers with a write of eight bytes:
 * a write and its answer. Either both look at their memory and yield
 * the processor between two looks, or both sleep until a completion comes.
 * write writes one message after the other, and sleeps until its completion.
 * Prints one line of "key=value" words; the server ends with its client.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define MAX_DEPTH	512
#define SIGNAL_EVERY	8
#define MAX_INLINE	64
#define ANSWER		8
#define MAX_LOOKS	500000000
#define GIVE_UP_SECONDS	120

/* Told by the server in its private data, and by the client in its own. */
struct region {
	uint64_t addr;
	uint32_t rkey;
	uint32_t size;
	uint32_t events;	/* with immediates, and sleep until they come */
	uint32_t len;
	uint32_t rounds;	/* messages to be answered */
};

struct side {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *completions;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	volatile unsigned char *buf;
	uint32_t size;
	struct region peer;
};

static struct rdma_cm_event *expect(struct side *s, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	if (rdma_get_cm_event(s->channel, &event))
		fail("no event: %s", strerror(errno));
	if (event->event != type)
		fail("%s, not %s", rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

static void post_receive(struct side *s)
{
	struct ibv_recv_wr wr = { 0 }, *bad;

	if (ibv_post_recv(s->id->qp, &wr, &bad))
		fail("post_recv");
}

/* The queue pair and memory; twice the size, so that both directions have some. */
static void make_qp(struct side *s, uint32_t size)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = MAX_DEPTH, .max_recv_wr = MAX_DEPTH,
			.max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = MAX_INLINE,
		},
	};
	unsigned int i;

	s->size = (size + 63) & ~63U;
	s->pd = ibv_alloc_pd(s->id->verbs);
	s->completions = ibv_create_comp_channel(s->id->verbs);
	s->cq = ibv_create_cq(s->id->verbs, 2 * MAX_DEPTH, NULL, s->completions, 0);
	s->buf = aligned_alloc(4096, ((2 * (size_t)s->size + 4095) & ~4095UL) + 4096);
	if (!s->pd || !s->completions || !s->cq || !s->buf)
		fail("resources: %s", strerror(errno));
	memset((void *)s->buf, 0, 2 * (size_t)s->size);
	s->mr = ibv_reg_mr(s->pd, (void *)s->buf, 2 * (size_t)s->size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!s->mr)
		fail("reg_mr: %s", strerror(errno));
	attr.send_cq = s->cq;
	attr.recv_cq = s->cq;
	if (rdma_create_qp(s->id, s->pd, &attr))
		fail("create_qp: %s", strerror(errno));
	for (i = 0; i < 64; i++)
		post_receive(s);
}

static struct region own_region(const struct side *s)
{
	return (struct region){
		.addr = (uintptr_t)s->buf, .rkey = s->mr->rkey, .size = s->size,
	};
}

/* Write the beginning of the own buffer into the peer's second half, @n times. */
static void post_writes(struct side *s, uint32_t len, bool events, unsigned int n, bool signaled)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)s->buf, .length = len, .lkey = s->mr->lkey,
	};
	struct ibv_send_wr wr[SIGNAL_EVERY], *bad;
	unsigned int i;

	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge, .num_sge = 1,
			.opcode = events ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
			.send_flags = (signaled && i + 1 == n ? IBV_SEND_SIGNALED : 0) |
				      (len <= MAX_INLINE ? IBV_SEND_INLINE : 0),
			.wr.rdma = {
				.remote_addr = s->peer.addr + s->peer.size,
				.rkey = s->peer.rkey,
			},
		};
	if (ibv_post_send(s->id->qp, wr, &bad))
		fail("post_send: %s", strerror(errno));
}

/* Completions that are there: those of sends are counted. False: none at all. */
static bool reap(struct side *s, unsigned int *sent, unsigned int *received)
{
	struct ibv_wc wc[32];
	int i, n = ibv_poll_cq(s->cq, 32, wc);

	if (n < 0)
		fail("poll_cq");
	for (i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			if (wc[i].status == IBV_WC_WR_FLUSH_ERR)
				return false;
			fail("completion: %s", ibv_wc_status_str(wc[i].status));
		}
		if (wc[i].opcode & IBV_WC_RECV) {
			(*received)++;
			post_receive(s);
		} else {
			(*sent)++;
		}
	}
	return n > 0;
}

/* Sleep until there is a completion. */
static void doze(struct side *s, unsigned int *sent, unsigned int *received)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(s->cq, 0))
		fail("req_notify_cq");
	if (reap(s, sent, received))
		return;
	if (ibv_get_cq_event(s->completions, &cq, &context))
		fail("get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static struct sockaddr_in address(const char *addr, const char *port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	if (inet_pton(AF_INET, addr, &sin.sin_addr) != 1)
		fail("%s: not an address", addr);
	return sin;
}

/* The number of the round stands in the last four bytes, which land last. */
static volatile uint32_t *mark(struct side *s, uint32_t at, uint32_t len)
{
	return (volatile uint32_t *)(s->buf + at + len - 4);
}

/* Until the mark is there, or the completion of it. */
static void await(struct side *s, uint32_t len, uint32_t round, bool events, unsigned int *received)
{
	unsigned int sent = 0, looks = 0;

	if (events) {
		while (*received < round)
			if (!reap(s, &sent, received))
				doze(s, &sent, received);
		return;
	}
	while (*mark(s, s->size, len) != round) {
		sched_yield();
		if (++looks > MAX_LOOKS)
			fail("nothing came");
	}
	reap(s, &sent, received);
}

static void serve(const char *addr, const char *port)
{
	struct side s = { .channel = rdma_create_event_channel() };
	struct sockaddr_in sin = address(addr, port);
	struct rdma_conn_param param = { .rnr_retry_count = 6, .retry_count = 6 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener;
	unsigned int received = 0;
	struct region own;
	uint32_t round;

	if (!s.channel || rdma_create_id(s.channel, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&sin) || rdma_listen(listener, 4))
		fail("listen: %s", strerror(errno));
	puts("ready");
	fflush(stdout);
	event = expect(&s, RDMA_CM_EVENT_CONNECT_REQUEST);
	memcpy(&s.peer, event->param.conn.private_data, sizeof(s.peer));
	s.id = event->id;
	rdma_ack_cm_event(event);
	make_qp(&s, s.peer.size);
	own = own_region(&s);
	param.private_data = &own;
	param.private_data_len = sizeof(own);
	if (rdma_accept(s.id, &param))
		fail("accept: %s", strerror(errno));
	rdma_ack_cm_event(expect(&s, RDMA_CM_EVENT_ESTABLISHED));
	for (round = 1; round <= s.peer.rounds; round++) {
		await(&s, s.peer.len, round, s.peer.events, &received);
		*mark(&s, 0, ANSWER) = round;
		post_writes(&s, ANSWER, s.peer.events, 1, round % SIGNAL_EVERY == 0);
	}
	rdma_ack_cm_event(expect(&s, RDMA_CM_EVENT_DISCONNECTED));
	rdma_destroy_qp(s.id);
	rdma_destroy_id(s.id);
	rdma_destroy_id(listener);
}

static void reach(struct side *s, const char *addr, const char *port, struct region *own)
{
	struct sockaddr_in sin = address(addr, port);
	struct rdma_conn_param param = { .rnr_retry_count = 6, .retry_count = 6 };
	struct rdma_cm_event *event;

	s->channel = rdma_create_event_channel();
	if (!s->channel || rdma_create_id(s->channel, &s->id, NULL, RDMA_PS_TCP) ||
	    rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&sin, 5000))
		fail("resolve: %s", strerror(errno));
	rdma_ack_cm_event(expect(s, RDMA_CM_EVENT_ADDR_RESOLVED));
	if (rdma_resolve_route(s->id, 5000))
		fail("route: %s", strerror(errno));
	rdma_ack_cm_event(expect(s, RDMA_CM_EVENT_ROUTE_RESOLVED));
	make_qp(s, own->size);
	own->addr = (uintptr_t)s->buf;
	own->rkey = s->mr->rkey;
	own->size = s->size;
	param.private_data = own;
	param.private_data_len = sizeof(*own);
	if (rdma_connect(s->id, &param))
		fail("connect: %s", strerror(errno));
	event = expect(s, RDMA_CM_EVENT_ESTABLISHED);
	memcpy(&s->peer, event->param.conn.private_data, sizeof(s->peer));
	rdma_ack_cm_event(event);
}

static void bandwidth(char **argv)
{
	uint32_t size = atoi(argv[2]);
	double seconds = atof(argv[3]), start, begin = 0, end;
	unsigned int depth = atoi(argv[4]), sent = 0, ignored = 0, posted = 0, before = 0;
	struct region own = { .size = size };
	struct side s = { 0 };

	if (!size || depth < SIGNAL_EVERY || depth > MAX_DEPTH)
		fail("a size, and a depth from %d to %d", SIGNAL_EVERY, MAX_DEPTH);
	reach(&s, argv[0], argv[1], &own);
	start = now();
	for (;;) {
		while (posted + SIGNAL_EVERY - sent * SIGNAL_EVERY <= depth) {
			post_writes(&s, size, false, SIGNAL_EVERY, true);
			posted += SIGNAL_EVERY;
		}
		if (!reap(&s, &sent, &ignored))
			doze(&s, &sent, &ignored);
		end = now();
		/* the first tenth is for warming up */
		if (begin == 0 && end >= start + seconds / 10) {
			begin = end;
			before = sent;
		}
		if (begin > 0 && end >= begin + seconds)
			break;
	}
	printf("bytes_per_second=%.0f messages=%u seconds=%.6f\n",
	       (double)(sent - before) * SIGNAL_EVERY * size / (end - begin),
	       (sent - before) * SIGNAL_EVERY, end - begin);
	/* what is still on its way may go */
	while (sent * SIGNAL_EVERY < posted)
		if (!reap(&s, &sent, &ignored))
			doze(&s, &sent, &ignored);
	rdma_disconnect(s.id);
}

static void latency(char **argv)
{
	struct region own = {
		.size = atoi(argv[2]), .len = atoi(argv[2]), .rounds = atoi(argv[3]),
		.events = !strcmp(argv[4], "event"),
	};
	double *us = calloc(own.rounds, sizeof(*us)), from;
	uint32_t len = own.len, rounds = own.rounds, round;
	unsigned int received = 0;
	struct side s = { 0 };

	if (len < ANSWER || !rounds || !us)
		fail("a size of at least %d, and a count", ANSWER);
	reach(&s, argv[0], argv[1], &own);
	for (round = 1; round <= rounds; round++) {
		from = now();
		*mark(&s, 0, len) = round;
		post_writes(&s, len, own.events, 1, round % SIGNAL_EVERY == 0);
		await(&s, ANSWER, round, own.events, &received);
		us[round - 1] = (now() - from) * 1e6;
	}
	print_latencies(us, rounds);
	puts("");
	rdma_disconnect(s.id);
}

static void writes(char **argv)
{
	struct region own = { .size = atoi(argv[2]), .len = atoi(argv[2]) };
	uint32_t count = atoi(argv[3]), i;
	double *us = calloc(count, sizeof(*us)), from;
	unsigned int sent = 0, received = 0;
	struct side s = { 0 };

	if (!own.size || !count || !us)
		fail("a size, and a count");
	reach(&s, argv[0], argv[1], &own);
	for (i = 0; i < count; i++) {
		from = now();
		post_writes(&s, own.len, false, 1, true);
		while (sent <= i)
			if (!reap(&s, &sent, &received))
				doze(&s, &sent, &received);
		us[i] = (now() - from) * 1e6;
	}
	print_latencies(us, count);
	puts("");
	rdma_disconnect(s.id);
}

int main(int argc, char **argv)
{
	alarm(GIVE_UP_SECONDS);
	if (argc == 4 && !strcmp(argv[1], "serve"))
		serve(argv[2], argv[3]);
	else if (argc == 7 && !strcmp(argv[1], "bw"))
		bandwidth(argv + 2);
	else if (argc == 7 && !strcmp(argv[1], "lat"))
		latency(argv + 2);
	else if (argc == 6 && !strcmp(argv[1], "write"))
		writes(argv + 2);
	else
		fail("see the top of its source");
	return 0;
}
