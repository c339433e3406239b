// SPDX-License-Identifier: GPL-2.0
/*
 * Hosts that speak another version of the wire format: who joins is told, and who is joined
 * refuses. The other host is this program, by way of rdma_cm.
 */
#include "spindle_selftest.h"

#include <rdma/rdma_cma.h>

#define MAGIC		0x5370646cu	/* SP_WIRE_MAGIC of kmod/wire.h */
#define REFUSE_WIRE	1		/* SP_REFUSE_WIRE */
#define VERSION		0xffff		/* that the module does not speak */
#define OTHER		7		/* the node that is no Spindle */

/* struct sp_hello there */
struct hello {
	uint32_t magic;
	uint16_t version;
	uint16_t recvs;
	uint32_t reason;
	uint32_t again;
	uint64_t incarnation;
	uint64_t session;
	uint32_t received;
	uint32_t made;
};

static const struct hello other = {
	.magic = MAGIC, .version = VERSION, .recvs = 64, .reason = REFUSE_WIRE,
	.incarnation = 1, .session = 1, .made = 1,
};

static struct sockaddr_in address(unsigned int node, unsigned int port)
{
	struct sockaddr_in sin = st_in(st_addr(node));

	sin.sin_family = AF_INET;
	sin.sin_port = htons(port);
	return sin;
}

static unsigned int port(void)
{
	char text[32];

	CHECK(st_read_file("/sys/module/spindle/parameters/port", text, sizeof(text)));
	return strtoul(text, NULL, 10);
}

/* The next event, which is to be this; to be acknowledged. */
static struct rdma_cm_event *expect(struct rdma_event_channel *channel,
				    enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	CHECK_OK(rdma_get_cm_event(channel, &event));
	if (event->event != type)
		FAIL("%s, not %s", rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

static void *refuse(void *arg)
{
	struct rdma_cm_event *event = expect(arg, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct hello hello;

	CHECK(event->param.conn.private_data_len >= sizeof(hello));
	memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	CHECK_EQ(hello.magic, MAGIC);
	CHECK(hello.version && hello.version != VERSION);
	CHECK_OK(rdma_reject(event->id, &other, sizeof(other)));
	CHECK_OK(rdma_ack_cm_event(event));
	return NULL;
}

TEST(the_contact_speaks_another_version)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in sin = address(OTHER, port());
	struct spindle_group_join j = { 0 };
	struct rdma_cm_id *listener;
	pthread_t thread;
	int fd;

	if (getenv("SPINDLE_SIW"))
		st_skip("iWARP has another way to refuse");
	CHECK(channel);
	CHECK_OK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
	CHECK_OK(rdma_bind_addr(listener, (struct sockaddr *)&sin));
	CHECK_OK(rdma_listen(listener, 1));
	CHECK_EQ(pthread_create(&thread, NULL, refuse, channel), 0);
	st_name(j.name);
	st_contact(&j, st_addr(OTHER));
	fd = st_bound(0);
	CHECK_ERR(st_join(fd, &j), EPROTO);
	CHECK_EQ(pthread_join(thread, NULL), 0);
	CHECK_EQ(st_info(fd).state, SPINDLE_STATE_NONE);
}

TEST(another_version_asks)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct sockaddr_in from = address(OTHER, 900), to = address(0, port());
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct rdma_conn_param param = {
		.private_data = &other, .private_data_len = sizeof(other),
	};
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct hello hello;
	int fd = st_alone();

	if (getenv("SPINDLE_SIW"))
		st_skip("iWARP has another way to refuse");
	CHECK(channel);
	CHECK_OK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	CHECK_OK(rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 5000));
	CHECK_OK(rdma_ack_cm_event(expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED)));
	CHECK_OK(rdma_resolve_route(id, 5000));
	CHECK_OK(rdma_ack_cm_event(expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED)));
	CHECK_OK(rdma_create_qp(id, NULL, &attr));
	CHECK_OK(rdma_connect(id, &param));
	event = expect(channel, RDMA_CM_EVENT_REJECTED);
	CHECK(event->param.conn.private_data_len >= sizeof(hello));
	memcpy(&hello, event->param.conn.private_data, sizeof(hello));
	CHECK_EQ(hello.magic, MAGIC);
	CHECK(hello.version && hello.version != VERSION);
	CHECK_EQ(hello.reason, REFUSE_WIRE);
	CHECK_OK(rdma_ack_cm_event(event));
	rdma_destroy_qp(id);
	CHECK_OK(rdma_destroy_id(id));
	st_say(fd, "alone");
	st_expect(fd, "alone");
}

int main(int argc, char **argv)
{
	return st_main(argc, argv);
}
