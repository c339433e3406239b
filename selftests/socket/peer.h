/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A node in user space that speaks the wire format of kmod/wire.h over librdmacm:
 * enough of it to become a member of a group beside real nodes, and to say and
 * write from then on whatever a test wants.
 *
 * While it behaves (peer_pump()) it echoes to each node what that has received,
 * and promises as many rounds as anybody has: so it never holds up anything.
 * Like the tests' other parts it is single-threaded, and every wait is bounded.
 */
#ifndef SPINDLE_PEER_H
#define SPINDLE_PEER_H

#include "spindle_selftest.h"
#include <sys/mman.h>
#include <rdma/rdma_cma.h>
#undef ARRAY_SIZE
#include "../../kmod/wire.h"
#include "../../kmod/core/sst.c"
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

#define PEER_RECVS	64
#define PEER_SENDS	32
#define PEER_LINKS	2
#define PEER_WINDOW	65536U
#define PEER_DEPTH	64U
#define PEER_MAX_MSG	4096U
#define PEER_MAX_OBJECT	(256U << 10)
#define PEER_BLOCK	16384U
#define PEER_RING	65536U		/* where the ring begins in a lane */

/* What a link has in memory that the other side may write, and its buffers. */
struct peer_mem {
	u8 rx[PEER_RECVS][SP_MSG_MAX];
	u8 tx[PEER_SENDS][2 * SP_MSG_MAX];
	u8 rows[4096];
	u8 lane[PEER_RING + PEER_WINDOW];
	u8 object[PEER_MAX_OBJECT];
	u8 junk[65536];
};

struct peer_key {
	u64 iova;
	u64 size;
	u32 rkey;
};

struct peer_link {
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct peer_mem *mem;
	struct rdma_cm_id *bulk;	/* second connection, for objects */
	struct ibv_cq *bulk_cq;
	bool bulk_failed;		/* a request there ended in an error */
	struct sp_addr addr;
	u32 attempt;			/* number of the connection */
	u32 reposted;
	u32 granted;			/* receives it has posted for us */
	u32 said;			/* of these, used */
	u32 posted;			/* requests, each with a completion */
	u32 done;
	bool up;			/* false again when a request has failed */
	bool closed;			/* the other side has disconnected */
	enum ibv_wc_status status;	/* with which the first one failed */
	struct sp_hello theirs;
	struct peer_key rows;
	struct peer_key lane;
	u32 handle;			/* what it calls (group, us) */
	bool polled;
	u64 received;			/* one more than what it has received */
	u64 words[SP_MAX_NODE_LANES];
	u64 told_received, told_round;
	u32 byes;
	s32 bye_error;
	u32 tells;
	struct sp_msg_ready ready;	/* the last one it said */
	u32 readies, gos, stops;
};

struct peer {
	struct rdma_event_channel *ch;
	const char *from;
	u64 incarnation;
	u32 attempts;
	struct peer_link link[PEER_LINKS];
	u64 cookie;
	u64 gid;
	bool answered, seen, quiet;
	s32 error;
	struct sp_config config;
	u64 view;
	s64 start;
	u32 nmembers;
	struct sp_wire_member members[SP_MAX_MEMBERS];
	u64 round, count, tail;		/* of its own lane */
};

static ST_UNUSED struct sp_addr peer_addr(const char *text)
{
	struct in6_addr in6 = st_mapped(text);
	struct sp_addr addr;

	memcpy(addr.b, &in6, sizeof(addr.b));
	return addr;
}

/* The port that nodes listen on. */
static ST_UNUSED int peer_port(void)
{
	char text[32];

	CHECK(st_read_file("/sys/module/spindle/parameters/port", text, sizeof(text)));
	return atoi(text);
}

static ST_UNUSED void peer_post_recv(struct peer_link *l, u32 nr)
{
	struct ibv_sge sge = { (uintptr_t)l->mem->rx[nr], SP_MSG_MAX, l->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = nr, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (!ibv_post_recv(l->id->qp, &wr, &bad))
		l->reposted++;
}

/* The next event of any connection; NULL when there is none in time. */
static ST_UNUSED struct rdma_cm_event *peer_event(struct peer *p, int ms)
{
	struct pollfd pfd = { .fd = p->ch ? p->ch->fd : -1, .events = POLLIN };
	struct rdma_cm_event *event;

	if (poll(&pfd, 1, ms) != 1)
		return NULL;
	return rdma_get_cm_event(p->ch, &event) ? NULL : event;
}

/* Wait for one event of a connection; of others it is noted that they are gone. */
static ST_UNUSED int peer_wait(struct peer *p, struct rdma_cm_id *id, enum rdma_cm_event_type want,
			       struct sp_hello *hello)
{
	double end = st_now() + 2 * ST_SOON;

	while (st_now() < end) {
		struct rdma_cm_event *event = peer_event(p, 1000);
		enum rdma_cm_event_type got;
		struct rdma_cm_id *of;
		unsigned int i;

		if (!event)
			continue;
		got = event->event;
		of = event->id;
		if (hello && event->param.conn.private_data &&
		    event->param.conn.private_data_len >= sizeof(*hello))
			memcpy(hello, event->param.conn.private_data, sizeof(*hello));
		rdma_ack_cm_event(event);
		for (i = 0; i < PEER_LINKS; i++)
			if (got == RDMA_CM_EVENT_DISCONNECTED && p->link[i].id == of)
				p->link[i].closed = true;
		if (of != id)
			continue;
		return got == want ? 0 : (int)got;
	}
	FAIL("no event %s", rdma_event_str(want));
}

/* A connection that is resolved, from a port that programs do not have. */
static ST_UNUSED struct rdma_cm_id *peer_resolve_from(struct peer *p, const char *to, int port)
{
	struct sockaddr_in src = st_in(p->from), dst = st_in(to);
	struct rdma_cm_id *id;

	if (!p->ch) {
		p->ch = rdma_create_event_channel();
		if (!p->ch)
			st_skip("no RDMA CM for programs here");
		/* the library swallows some events, and would wait for the next */
		CHECK_OK(fcntl(p->ch->fd, F_SETFL, O_NONBLOCK));
	}
	CHECK_OK(rdma_create_id(p->ch, &id, p, RDMA_PS_TCP));
	if (port) {
		do {
			src.sin_port = htons(port--);
			if (!rdma_bind_addr(id, (struct sockaddr *)&src))
				break;
		} while (port > 512);
		CHECK(port > 512);
	} else {
		CHECK_OK(rdma_bind_addr(id, (struct sockaddr *)&src));
	}
	dst.sin_port = htons(peer_port());
	CHECK_OK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst, 2000));
	CHECK_EQ(peer_wait(p, id, RDMA_CM_EVENT_ADDR_RESOLVED, NULL), 0);
	CHECK_OK(rdma_resolve_route(id, 2000));
	CHECK_EQ(peer_wait(p, id, RDMA_CM_EVENT_ROUTE_RESOLVED, NULL), 0);
	return id;
}

static ST_UNUSED struct rdma_cm_id *peer_resolve(struct peer *p, const char *to)
{
	return peer_resolve_from(p, to, 1000);
}

static ST_UNUSED void peer_qp(struct peer_link *l, struct rdma_cm_id *id, struct ibv_cq **cq)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 256, .max_recv_wr = PEER_RECVS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	if (!l->pd) {
		l->pd = ibv_alloc_pd(id->verbs);
		CHECK(l->pd);
	}
	*cq = ibv_create_cq(id->verbs, 512, NULL, NULL, 0);
	CHECK(*cq);
	attr.send_cq = *cq;
	attr.recv_cq = *cq;
	CHECK_OK(rdma_create_qp(id, l->pd, &attr));
}

static ST_UNUSED void peer_hello(struct peer *p, struct sp_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = SP_WIRE_MAGIC;
	hello->version = SP_WIRE_VERSION;
	hello->recvs = PEER_RECVS;
	hello->incarnation = p->incarnation;
	hello->attempt = ++p->attempts;
}

static ST_UNUSED struct rdma_conn_param peer_param(const void *data, u8 len)
{
	return (struct rdma_conn_param){
		.private_data = data, .private_data_len = len,
		.retry_count = 6, .rnr_retry_count = 7,
	};
}

/* Everything of a link but the connection. */
static ST_UNUSED void peer_link_open(struct peer_link *l)
{
	u32 i;

	peer_qp(l, l->id, &l->cq);
	l->mem = mmap(NULL, sizeof(*l->mem), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
		      MAP_POPULATE, -1, 0);
	CHECK(l->mem != MAP_FAILED);
	l->mr = ibv_reg_mr(l->pd, l->mem, sizeof(*l->mem),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(l->mr);
	for (i = 0; i < PEER_RECVS; i++)
		peer_post_recv(l, i);
}

static ST_UNUSED struct peer_link *peer_connect(struct peer *p, unsigned int nr, const char *to)
{
	struct peer_link *l = &p->link[nr];
	struct rdma_conn_param param;
	struct sp_hello hello;

	memset(l, 0, sizeof(*l));
	l->addr = peer_addr(to);
	l->id = peer_resolve(p, to);
	peer_link_open(l);
	peer_hello(p, &hello);
	l->attempt = hello.attempt;
	param = peer_param(&hello, sizeof(hello));
	CHECK_OK(rdma_connect(l->id, &param));
	CHECK_EQ(peer_wait(p, l->id, RDMA_CM_EVENT_ESTABLISHED, &l->theirs), 0);
	CHECK_EQ(l->theirs.version, SP_WIRE_VERSION);
	l->granted = l->theirs.recvs;
	l->up = true;
	return l;
}

/* The second connection, for objects; 0 or the event that came instead. */
static ST_UNUSED int peer_connect_bulk(struct peer *p, struct peer_link *l, const char *to)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct rdma_conn_param param;
	struct sp_hello hello;
	unsigned int i;

	l->bulk = peer_resolve(p, to);
	peer_qp(l, l->bulk, &l->bulk_cq);
	for (i = 0; i < PEER_RECVS; i++)
		CHECK_EQ(ibv_post_recv(l->bulk->qp, &wr, &bad), 0);
	peer_hello(p, &hello);
	hello.reason = SP_HELLO_BULK;
	hello.attempt = l->attempt;
	param = peer_param(&hello, sizeof(hello));
	CHECK_OK(rdma_connect(l->bulk, &param));
	return peer_wait(p, l->bulk, RDMA_CM_EVENT_ESTABLISHED, NULL);
}

/* A block as rdmc.c would write it. */
static ST_UNUSED void peer_block(struct peer_link *l, u64 to, u32 rkey, u32 len, u32 imm)
{
	struct ibv_sge sge = { (uintptr_t)l->mem->junk, len, l->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = ~0ULL, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM, .imm_data = htonl(imm),
		.wr.rdma = { .remote_addr = to, .rkey = rkey },
	}, *bad;

	CHECK_EQ(ibv_post_send(l->bulk->qp, &wr, &bad), 0);
}

static ST_UNUSED void peer_post(struct peer_link *l, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->wr_id = ~0ULL;
	if (l->up && !ibv_post_send(l->id->qp, wr, &bad))
		l->posted++;
}

static ST_UNUSED void peer_take(struct peer *p);

static ST_UNUSED void peer_room(struct peer *p, struct peer_link *l)
{
	double end = st_now() + ST_SOON;

	while (l->up && l->posted - l->done >= PEER_SENDS - 1 && st_now() < end)
		peer_take(p);
}

/* A SEND as it is, header and all; whether there is a receive for it or not. */
static ST_UNUSED void peer_send_raw(struct peer *p, struct peer_link *l, const void *data, u32 len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = !!len, .opcode = IBV_WR_SEND };
	u8 *at;

	peer_room(p, l);
	at = l->mem->tx[l->posted % PEER_SENDS];
	memcpy(at, data, len);
	sge = (struct ibv_sge){ (uintptr_t)at, len, l->mr->lkey };
	l->said++;
	peer_post(l, &wr);
}

/* A message of the format, when there is a receive for it. */
static ST_UNUSED void peer_say(struct peer *p, struct peer_link *l, struct sp_msg *msg, u16 type,
			       u16 len)
{
	double end = st_now() + ST_SOON;

	while (l->up && (s32)(l->granted - l->said) <= 0 && st_now() < end)
		peer_take(p);
	msg->type = type;
	msg->len = len;
	msg->credits = l->reposted;
	peer_send_raw(p, l, msg, len);
}

static ST_UNUSED void peer_rdma(struct peer *p, struct peer_link *l, enum ibv_wr_opcode opcode,
				u64 to, u32 rkey, const void *data, u32 len)
{
	struct ibv_sge sge;
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.rdma = { .remote_addr = to, .rkey = rkey },
	};
	u8 *at;

	peer_room(p, l);
	at = l->mem->tx[l->posted % PEER_SENDS];
	if (len > sizeof(l->mem->tx[0]))
		at = l->mem->junk;
	if (data && at != l->mem->junk)
		memcpy(at, data, len);
	sge = (struct ibv_sge){ (uintptr_t)at, len, l->mr->lkey };
	peer_post(l, &wr);
}

static ST_UNUSED void peer_write(struct peer *p, struct peer_link *l, u64 to, u32 rkey,
				 const void *data, u32 len)
{
	peer_rdma(p, l, IBV_WR_RDMA_WRITE, to, rkey, data, len);
}

static ST_UNUSED u64 peer_epoch(const struct peer *p)
{
	return p->gid + p->view;
}

/* Which of the members it is. */
static ST_UNUSED const struct sp_wire_member *peer_self(const struct peer *p)
{
	struct sp_addr self = peer_addr(p->from);
	u32 i;

	for (i = 0; i < p->nmembers; i++)
		if (!sp_addr_cmp(&p->members[i].addr, &self))
			return &p->members[i];
	FAIL("not in the view");
}

/* Its row as it should be for a node. */
static ST_UNUSED u32 peer_row(const struct peer *p, const struct peer_link *l,
			      struct sp_cell *cells)
{
	u32 i;

	for (i = 0; i <= SP_CELL_LANES; i++)
		sp_cell_set(&cells[i], 0, peer_epoch(p));
	sp_cell_set(&cells[SP_CELL_VIEW], p->view, peer_epoch(p));
	sp_cell_set(&cells[SP_CELL_RECEIVED], l->received, peer_epoch(p));
	sp_cell_set(&cells[SP_CELL_CONSUMED], l->received, peer_epoch(p));
	sp_cell_set(&cells[SP_CELL_LANES], sp_progress(p->round, p->count), peer_epoch(p));
	return SP_CELL_LANES + 1;
}

/* Hand over a row, true or not, as the node wants to have it; and a wake. */
static ST_UNUSED void peer_push(struct peer *p, struct peer_link *l, const struct sp_cell *cells,
				u32 n)
{
	struct sp_msg_wake wake = { .handle = l->handle };
	u8 room[sizeof(struct sp_msg_row) + SP_ROW_MAX];
	struct sp_msg_row *row = (struct sp_msg_row *)room;

	if (l->polled) {
		peer_write(p, l, l->rows.iova + sp_row_off(p->view), l->rows.rkey, cells,
			   n * sizeof(*cells));
	} else {
		row->handle = l->handle;
		row->ncells = n;
		row->view = p->view;
		memcpy(row->cells, cells, n * sizeof(*cells));
		peer_say(p, l, &row->hdr, SP_MSG_ROW, sizeof(*row) + n * sizeof(*cells));
	}
	peer_say(p, l, &wake.hdr, SP_MSG_WAKE, sizeof(wake));
}

/* A row with one cell that is not as it should be. */
static ST_UNUSED void peer_push_cell(struct peer *p, struct peer_link *l, u32 cell, u64 value)
{
	struct sp_cell cells[SP_CELL_LANES + 1];
	u32 n = peer_row(p, l, cells);

	sp_cell_set(&cells[cell], value, peer_epoch(p));
	peer_push(p, l, cells, n);
}

/* One more descriptor of its lane, and the word that counts it. */
static ST_UNUSED void peer_desc(struct peer *p, const struct sp_desc *d, const void *data)
{
	u32 i;

	for (i = 0; i < PEER_LINKS; i++) {
		struct peer_link *l = &p->link[i];

		if (data && d->len)
			peer_write(p, l, l->lane.iova + PEER_RING +
				   (u64)(p->tail & (PEER_WINDOW / SP_UNIT - 1)) * SP_UNIT,
				   l->lane.rkey, data, d->len);
		peer_write(p, l, l->lane.iova + (p->count & (PEER_DEPTH - 1)) * sizeof(*d),
			   l->lane.rkey, d, sizeof(*d));
	}
	p->tail += sp_units_of(d->len, d->flags);
	p->round++;
	p->count++;
}

/* A message as a correct node sends it; less than a unit, so that it never wraps. */
static ST_UNUSED void peer_message(struct peer *p, const char *text)
{
	struct sp_desc d = { .index = p->round, .len = strlen(text), .pos = p->tail };

	peer_desc(p, &d, text);
}

static ST_UNUSED void peer_heard(struct peer *p, struct peer_link *l, const void *data, u32 len)
{
	const struct sp_msg_answer *answer = data;
	const struct sp_msg_view *view = data;
	const struct sp_msg_keys *keys = data;
	const struct sp_msg *msg = data;
	u32 i;

	if (len < sizeof(*msg))
		return;
	if ((s32)(msg->credits - l->granted) > 0)
		l->granted = msg->credits;
	switch (msg->type) {
	case SP_MSG_ANSWER:
		if (p->answered)
			break;
		p->answered = true;
		p->error = answer->error;
		p->gid = answer->gid;
		p->config = answer->config;
		break;
	case SP_MSG_VIEW:
		if (view->first != p->nmembers)
			break;
		p->view = view->view;
		p->start = view->start;
		for (i = 0; i < view->count; i++)
			p->members[p->nmembers++] = view->members[i];
		p->seen = p->nmembers == view->total;
		break;
	case SP_MSG_KEYS:
		l->handle = keys->handle;
		l->polled = keys->flags & SP_KEY_POLLED;
		for (i = 0; i < keys->count; i++) {
			struct peer_key *key = keys->keys[i].cookie ? &l->lane : &l->rows;

			*key = (struct peer_key){ keys->keys[i].iova, keys->keys[i].size,
						  keys->keys[i].rkey };
		}
		break;
	case SP_MSG_BYE:
		l->byes++;
		l->bye_error = ((const struct sp_msg_bye *)data)->error;
		break;
	case SP_MSG_TELL:
		l->tells++;
		break;
	case SP_MSG_READY:
		l->readies++;
		memcpy(&l->ready, data, sizeof(l->ready));
		break;
	case SP_MSG_GO:
		l->gos++;
		l->ready.upto = ((const struct sp_msg_go *)data)->upto;
		break;
	case SP_MSG_STOP:
		l->stops++;
		break;
	}
}

/* Take what has come; nothing is said. */
static ST_UNUSED void peer_take(struct peer *p)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;
	u32 i;

	for (i = 0; i < PEER_LINKS; i++) {
		struct peer_link *l = &p->link[i];

		while (l->cq && ibv_poll_cq(l->cq, 1, &wc) == 1) {
			bool send = wc.wr_id == ~0ULL;

			if (send)
				l->done++;
			if (wc.status != IBV_WC_SUCCESS) {
				if (l->up)
					l->status = wc.status;
				l->up = false;
				continue;
			}
			if (send)
				continue;
			peer_heard(p, l, l->mem->rx[wc.wr_id], wc.byte_len);
			peer_post_recv(l, wc.wr_id);
		}
		while (l->bulk_cq && ibv_poll_cq(l->bulk_cq, 1, &wc) == 1)
			l->bulk_failed |= wc.status != IBV_WC_SUCCESS;
	}
	while ((event = peer_event(p, 0))) {
		for (i = 0; i < PEER_LINKS; i++)
			if (event->event == RDMA_CM_EVENT_DISCONNECTED &&
			    event->id == p->link[i].id) {
				p->link[i].closed = true;
				p->link[i].up = false;
			}
		rdma_ack_cm_event(event);
	}
}

/* Look at what a node has written; true when there is something to tell it. */
static ST_UNUSED bool peer_look(struct peer *p, struct peer_link *l)
{
	const struct sp_cell *row = (const struct sp_cell *)(l->mem->rows + sp_row_off(p->view));
	u64 value;
	u32 i;

	if (sp_cell_get(&row[SP_CELL_RECEIVED], peer_epoch(p), &value))
		l->received = value;
	for (i = 0; i < 1; i++)
		if (sp_cell_get(&row[SP_CELL_LANES + i], peer_epoch(p), &value) &&
		    (s32)(sp_progress_round(value) - (u32)p->round) > 0)
			p->round += sp_progress_round(value) - (u32)p->round;
	return l->received != l->told_received || p->round != l->told_round;
}

/* One turn of a node that behaves. */
static ST_UNUSED void peer_pump(struct peer *p)
{
	static double beat;
	struct sp_cell cells[SP_CELL_LANES + 1];
	struct sp_msg msg;
	bool due = st_now() > beat;
	u32 i, n;

	peer_take(p);
	if (p->quiet)
		return;
	for (i = 0; i < PEER_LINKS; i++) {
		struct peer_link *l = &p->link[i];

		if (!l->up)
			continue;
		if (l->rows.rkey && p->seen && peer_look(p, l)) {
			n = peer_row(p, l, cells);
			peer_push(p, l, cells, n);
			l->told_received = l->received;
			l->told_round = p->round;
		}
		/* credits, too */
		if (due)
			peer_say(p, l, &msg, SP_MSG_BEAT, sizeof(msg));
	}
	if (due)
		beat = st_now() + 0.2;
}

#define PEER_UNTIL(p, cond, secs)					\
	do {								\
		double __end = st_now() + (secs);			\
									\
		while (!(cond)) {					\
			if (st_now() > __end)				\
				FAIL("not so in %g s: %s",		\
				     (double)(secs), #cond);		\
			peer_pump(p);					\
			st_pause_us(200);				\
		}							\
	} while (0)

/* Ask the first node to be taken in. */
static ST_UNUSED void peer_join(struct peer *p, const char *group)
{
	struct sp_msg_join join = { .cookie = p->cookie };

	snprintf(join.name, sizeof(join.name), "%s", group);
	peer_say(p, &p->link[0], &join.hdr, SP_MSG_JOIN, sizeof(join));
	PEER_UNTIL(p, p->answered, 2 * ST_SOON);
	CHECK_EQ(p->error, 0);
}

/* Say where a node may write here. */
static ST_UNUSED void peer_grant(struct peer *p, struct peer_link *l)
{
	u8 room[SP_MSG_MAX] = { 0 };
	struct sp_msg_keys *keys = (struct sp_msg_keys *)room;
	u32 i;

	for (i = 0; i < p->nmembers; i++)
		if (!sp_addr_cmp(&p->members[i].addr, &l->addr))
			keys->keys[keys->count++] = (struct sp_wire_key){
				.cookie = p->members[i].cookie,
				.iova = (uintptr_t)l->mem->lane, .size = sizeof(l->mem->lane),
				.rkey = l->mr->rkey,
			};
	keys->keys[keys->count++] = (struct sp_wire_key){
		.iova = (uintptr_t)l->mem->rows, .size = sizeof(l->mem->rows),
		.rkey = l->mr->rkey,
	};
	keys->gid = p->gid;
	keys->handle = 1;
	keys->flags = SP_KEY_POLLED;
	keys->view = p->view;
	peer_say(p, l, &keys->hdr, SP_MSG_KEYS, sizeof(*keys) +
		 keys->count * sizeof(keys->keys[0]));
}

/* It hangs up. */
static ST_UNUSED void peer_gone(struct peer *p, struct peer_link *l)
{
	rdma_disconnect(l->id);
	l->up = false;
	peer_take(p);
}

#endif /* SPINDLE_PEER_H */
