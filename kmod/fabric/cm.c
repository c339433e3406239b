// SPDX-License-Identifier: GPL-2.0
/*
 * Connection management: listening, asking, answering, and what to do when two
 * nodes ask each other at once.
 *
 * Handlers run under the id's handler mutex and take sp_ctl within it; so no
 * rdma_cm call that waits for handlers is made under sp_ctl, and ids are
 * destroyed from works only.
 */
#include <linux/inet.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <rdma/ib_cm.h>

#include "fabric.h"

#define SP_MUTE_MS	3000	/* so long refusals that do not say why are not believed */
#define SP_TIE_MS	100	/* an own attempt that is older may come to nothing */
#define SP_LATE_NS	(60 * (s64)NSEC_PER_SEC) /* no request is under way for longer */
#define SP_LINKS_IDLE	256	/* links of a node that no group here uses */

/**
 * sp_addr_to_sockaddr() - a node's address as rdma_cm wants it
 * @addr: the address
 * @scope_id: interface of a link-local address
 * @port: port, host order
 * @ss: the result
 */
void sp_addr_to_sockaddr(const struct sp_addr *addr, u32 scope_id, u16 port,
			 struct sockaddr_storage *ss)
{
	struct in6_addr in6;

	memset(ss, 0, sizeof(*ss));
	memcpy(&in6, addr->b, sizeof(in6));
	if (ipv6_addr_v4mapped(&in6)) {
		struct sockaddr_in *sin = (struct sockaddr_in *)ss;

		sin->sin_family = AF_INET;
		sin->sin_addr.s_addr = in6.s6_addr32[3];
		sin->sin_port = htons(port);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;

		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr = in6;
		sin6->sin6_port = htons(port);
		sin6->sin6_scope_id = scope_id;
	}
}

/**
 * sp_addr_from_sockaddr() - the address of a node from an IP socket address
 * @sa: AF_INET or AF_INET6
 * @addr: the result
 */
void sp_addr_from_sockaddr(const struct sockaddr *sa, struct sp_addr *addr)
{
	struct in6_addr in6;

	if (sa->sa_family == AF_INET)
		ipv6_addr_set_v4mapped(((const struct sockaddr_in *)sa)->sin_addr.s_addr,
				       &in6);
	else
		in6 = ((const struct sockaddr_in6 *)sa)->sin6_addr;
	memcpy(addr->b, &in6, sizeof(addr->b));
}

/**
 * sp_addr_name() - an address as text
 * @addr: the address
 * @buf: where it goes
 * @len: bytes of it
 */
void sp_addr_name(const struct sp_addr *addr, char *buf, size_t len)
{
	struct in6_addr in6;

	memcpy(&in6, addr->b, sizeof(in6));
	if (ipv6_addr_v4mapped(&in6))
		snprintf(buf, len, "%pI4", &in6.s6_addr32[3]);
	else
		snprintf(buf, len, "%pI6c", &in6);
}

static void sp_hello_init(const struct sp_node *node, struct sp_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = SP_WIRE_MAGIC;
	hello->version = SP_WIRE_VERSION;
	hello->recvs = SP_RQ_DEPTH;
	hello->incarnation = node->incarnation;
}

/* The same, of a link that both sides know or are about to. */
static void sp_hello_link(const struct sp_link *link, struct sp_hello *hello)
{
	sp_hello_init(link->node, hello);
	hello->session = link->session;
	hello->made = link->passive ? link->node->made : link->number;
	hello->again = link->state == SP_LINK_UP;
	/* All receives of the connection before have completed. */
	hello->received = READ_ONCE(link->received);
}

static bool sp_hello_ok(const struct sp_hello *hello, u8 len)
{
	return hello && len >= sizeof(*hello) &&
	       hello->magic == SP_WIRE_MAGIC &&
	       hello->version == SP_WIRE_VERSION && hello->recvs > 2 &&
	       hello->again <= 1;
}

static void sp_hello_take(struct sp_link *link, const struct sp_hello *hello)
{
	link->peer_incarnation = hello->incarnation;
	link->peer_made = hello->made;
	link->theirs = hello->received;
	/*
	 * A message may have come first, and have granted more. What was granted by
	 * earlier connections holds.
	 */
	if (link->state == SP_LINK_CONNECTING &&
	    (s32)(hello->recvs - link->granted) > 0)
		WRITE_ONCE(link->granted, hello->recvs);
}

static void sp_conn_param(const struct sp_hello *hello,
			  struct rdma_conn_param *param)
{
	memset(param, 0, sizeof(*param));
	param->private_data = hello;
	param->private_data_len = sizeof(*hello);
	/*
	 * The most there is. An adapter gives up after eight tries; soft-RoCE
	 * takes 7 as for ever, and sp_link_beat() gives up.
	 */
	param->retry_count = 7;
	param->rnr_retry_count = 7;
}

static void sp_cm_refuse(struct rdma_cm_id *id, struct sp_node *node,
			 enum sp_refusal reason)
{
	struct sp_hello hello;

	sp_hello_init(node, &hello);
	hello.reason = reason;
	rdma_reject(id, &hello, sizeof(hello), IB_CM_REJ_CONSUMER_DEFINED);
}

/* The port that a request comes from. */
static u16 sp_cm_port(const struct rdma_cm_id *id)
{
	const struct sockaddr *sa = (struct sockaddr *)&id->route.addr.dst_addr;

	return ntohs(sa->sa_family == AF_INET ?
		     ((const struct sockaddr_in *)sa)->sin_port :
		     ((const struct sockaddr_in6 *)sa)->sin6_port);
}

/* Keep no more links that nobody uses than we can bear: the oldest goes. */
static void sp_cm_make_room(struct sp_node *node)
{
	struct sp_link *link, *oldest = NULL;
	u32 idle = 0;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(link, &node->links, on_node) {
		if (!list_empty(&link->users))
			continue;
		if (!idle++)
			oldest = link;
	}
	if (idle >= SP_LINKS_IDLE)
		sp_link_set_state(oldest, SP_LINK_DOWN, -ESHUTDOWN);
}

/* What fails here may not fail in the next attempt, whatever the driver calls it. */
static int sp_cm_trouble(const struct sp_link *link, int error)
{
	if (!error)
		return 0;
	return link->state == SP_LINK_UP ? -EHOSTUNREACH : sp_conn_errno(error);
}

/* Take an id that asks for a connection: it is the link's, and goes with it. */
static void sp_cm_accept(struct sp_link *link, struct rdma_cm_id *id,
			 const struct sp_hello *theirs)
{
	struct rdma_conn_param param;
	struct sp_hello hello;
	int ret;

	lockdep_assert_held(&sp_ctl);
	link->passive = true;
	link->began = jiffies;
	link->id = id;
	id->context = link;
	id->event_handler = sp_cm_handler;

	sp_hello_take(link, theirs);
	ret = sp_conn_open(link);
	if (!ret) {
		sp_hello_link(link, &hello);
		sp_conn_param(&hello, &param);
		rdma_set_ack_timeout(id, sp_ack_timeout);
		ret = rdma_accept(id, &param);
	}
	if (ret) {
		sp_cm_refuse(id, link->node, SP_REFUSE_BUSY);
		sp_conn_failed(link, id, sp_cm_trouble(link, ret));
	}
}

/*
 * How long a request of the other side is refused for an own attempt to connect again:
 * longer each time, where all takes long.
 */
static u32 sp_cm_tie_ms(const struct sp_link *link)
{
	return SP_TIE_MS << min_t(u32, link->tried / 2, 4);
}

/*
 * A peer has lost the connection of a link. Return: 0 when this side has, too, and the
 * request can be accepted; else why not.
 */
static enum sp_refusal sp_cm_again(struct sp_link *link,
				   const struct sp_hello *theirs)
{
	if (!link || link->state != SP_LINK_UP || link->session != theirs->session ||
	    link->peer_incarnation != theirs->incarnation)
		return SP_REFUSE_GONE;
	/* This side asks, too. What the peer says shows that the way is open by now. */
	if (link->id && !link->wired && !link->passive &&
	    time_before(jiffies, link->began + msecs_to_jiffies(sp_cm_tie_ms(link))) &&
	    sp_addr_cmp(&link->node->addr, &link->peer) < 0)
		return SP_REFUSE_TIE;
	/* The peer's next request goes first: it would meet another one of ours again. */
	if (link->id && !link->wired)
		link->yields = true;
	if (link->id && !sp_conn_lose(link, link->wired ? "the other side has lost it" : NULL)) {
		sp_link_set_state(link, SP_LINK_DOWN, -EHOSTDOWN);
		return SP_REFUSE_GONE;
	}
	return link->old ? SP_REFUSE_BUSY : 0;
}

/*
 * Has the peer's node asked for this before it went and came again? Such a request may
 * come late, when the node has a link already. A clock may be set back: what is much
 * older is not late.
 */
static bool sp_cm_late(const struct sp_link *old, const struct sp_hello *theirs)
{
	s64 older = old->peer_incarnation - theirs->incarnation;

	return older > 0 && older < SP_LATE_NS;
}

/*
 * A peer asks for a link. Return: 0 when it can have one; else why not. When both ends
 * ask at once, the request of the lower address counts.
 */
static enum sp_refusal sp_cm_first(struct sp_node *node, struct sp_link *old,
				   const struct sp_addr *peer,
				   const struct sp_hello *theirs)
{
	if (!old)
		return 0;
	if (old->state == SP_LINK_CONNECTING && !old->passive &&
	    sp_addr_cmp(&node->addr, peer) < 0)
		return SP_REFUSE_TIE;
	/*
	 * The losing request of a tie may come when the winner is accepted, or up,
	 * already. One that was made later comes of a peer that has given the link up.
	 */
	if (old->state != SP_LINK_UP && !old->passive)
		return 0;
	if (sp_cm_late(old, theirs) ||
	    (old->peer_incarnation == theirs->incarnation &&
	     (s32)(theirs->made - old->peer_made) <= 0))
		return SP_REFUSE_BUSY;
	return 0;
}

/* Make the link that a peer asks for; an older one goes down. */
static struct sp_link *sp_cm_make(struct sp_node *node, struct sp_link *old,
				  const struct sp_addr *peer,
				  const struct sp_hello *theirs)
{
	struct sp_link *link;

	if (!old)
		sp_cm_make_room(node);
	link = sp_link_alloc(node, peer);
	if (IS_ERR(link))
		return NULL;
	link->session = theirs->session;
	if (old) {
		if (old->state == SP_LINK_CONNECTING)
			sp_link_move_users(old, link);
		sp_link_set_state(old, SP_LINK_DOWN, -EHOSTDOWN);
	}
	return link;
}

/* Somebody connects. */
static int sp_cm_request(struct sp_node *node, struct rdma_cm_id *id,
			 const struct rdma_conn_param *asked)
{
	const struct sp_hello *theirs = asked->private_data;
	enum sp_refusal reason;
	struct sp_link *link;
	struct sp_addr peer;

	sp_addr_from_sockaddr((struct sockaddr *)&id->route.addr.dst_addr,
			      &peer);
	if (sp_cm_port(id) >= PROT_SOCK) {
		pr_warn_ratelimited("spindle: %s: a program asks for a connection, refused\n",
				    node->name);
		sp_cm_refuse(id, node, SP_REFUSE_BUSY);
		return -EPERM;
	}
	if (!sp_hello_ok(theirs, asked->private_data_len)) {
		pr_warn_ratelimited("spindle: %s: a peer speaks another wire format, refused\n",
				    node->name);
		sp_cm_refuse(id, node, SP_REFUSE_WIRE);
		return -EPROTO;
	}

	mutex_lock(&sp_ctl);
	link = sp_link_find(node, &peer);
	if (sp_fault_is_cut(node, &peer))
		reason = SP_REFUSE_BUSY;
	else if (theirs->again)
		reason = sp_cm_again(link, theirs);
	else
		reason = sp_cm_first(node, link, &peer, theirs);
	if (!reason && !theirs->again) {
		link = sp_cm_make(node, link, &peer, theirs);
		if (!link)
			reason = SP_REFUSE_BUSY;
	}
	if (!reason)
		sp_cm_accept(link, id, theirs);
	mutex_unlock(&sp_ctl);
	if (!reason)
		return 0;
	sp_cm_refuse(id, node, reason);
	return -EALREADY;
}

static int sp_cm_listen_handler(struct rdma_cm_id *id,
				struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return sp_cm_request(id->context, id, &event->param.conn);
	return 0;
}

/**
 * sp_cm_bind_privileged() - give a connection a port that programs cannot have
 * @id: the connection
 * @node: its local end
 *
 * A request from such a port comes from a kernel, or from who may speak for
 * one: see sp_cm_request(). Ports take turns: iWARP's are TCP's, which rests
 * one for a minute. Context: may sleep; without sp_ctl.
 *
 * Return: 0 or a negative errno.
 */
int sp_cm_bind_privileged(struct rdma_cm_id *id, struct sp_node *node)
{
	static atomic_t turn = ATOMIC_INIT(0);
	struct sockaddr_storage ss;
	int ret = -EADDRINUSE;
	u16 port;
	u32 i;

	/* The second is what a port says that somebody has on all addresses. */
	for (i = 0; i < SP_CM_PORTS &&
	     (ret == -EADDRINUSE || ret == -EADDRNOTAVAIL); i++) {
		port = PROT_SOCK - 1 -
		       (u32)atomic_inc_return(&turn) % SP_CM_PORTS;
		sp_addr_to_sockaddr(&node->addr, node->scope_id, port, &ss);
		ret = rdma_bind_addr(id, (struct sockaddr *)&ss);
	}
	return ret;
}

static int sp_cm_ask(struct sp_link *link,
		     int (*connect)(struct rdma_cm_id *id,
				    struct rdma_conn_param *param))
{
	struct rdma_conn_param param;
	struct sp_hello hello;

	sp_hello_link(link, &hello);
	sp_conn_param(&hello, &param);
	return connect(link->id, &param);
}

/**
 * sp_cm_connect() - ask the peer, once the way to it is known
 * @link: open
 *
 * Context: may sleep, for as long as TCP tries to connect when the device is
 * siw; without sp_ctl.
 *
 * Return: 0 or a negative errno: -EADDRNOTAVAIL or -EADDRINUSE when TCP does
 * not give the port that rdma_cm gave.
 */
int sp_cm_connect(struct sp_link *link)
{
	return sp_cm_ask(link, rdma_connect);
}

/**
 * sp_cm_listen() - listen on a node's address
 * @node: the node; its net and address are set
 * @listener: the result
 *
 * Context: may sleep; without sp_ctl.
 *
 * Return: 0; -EADDRNOTAVAIL when the address is not of this host; -ENODEV when
 * it has no RDMA device; another negative errno.
 */
int sp_cm_listen(struct sp_node *node, struct rdma_cm_id **listener)
{
	struct sockaddr_storage ss;
	struct rdma_cm_id *id;
	int ret;

	id = rdma_create_id(node->net, sp_cm_listen_handler, node, RDMA_PS_TCP,
			    IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	sp_addr_to_sockaddr(&node->addr, node->scope_id, sp_port, &ss);
	ret = rdma_bind_addr(id, (struct sockaddr *)&ss);
	if (ret)
		goto err;
	if (!id->device) {
		ret = -ENODEV;
		goto err;
	}
	ret = rdma_listen(id, 64);
	if (ret)
		goto err;
	*listener = id;
	return 0;

err:
	rdma_destroy_id(id);
	return ret;
}

/*
 * A refusal that says nothing of us comes of a host where nobody listens, or of the CM
 * itself. The latter refuses an attempt that it has given up, and one that it knows no
 * way to answer, as after a cable was put back; but also one to an address that nobody
 * has any more. Which of these it is tells how long it says nothing else.
 */
static int sp_cm_mute(struct sp_link *link, int reason)
{
	/* Who has asked has given it up. */
	if (link->passive)
		return -EBUSY;
	if (link->state != SP_LINK_UP || reason == IB_CM_REJ_INVALID_SERVICE_ID)
		return -ECONNREFUSED;
	if (!link->mute)
		link->mute_ms = link->clock_ms;
	link->mute = 2;
	return link->clock_ms - link->mute_ms < SP_MUTE_MS ? -EBUSY : -ECONNREFUSED;
}

static int sp_cm_rejected(struct sp_link *link, struct rdma_cm_event *event)
{
	/* rdma_consumer_reject_data() knows none of siw's refusals as one of ours. */
	const struct sp_hello *hello = event->param.conn.private_data;

	if (!hello || event->param.conn.private_data_len < sizeof(*hello) ||
	    hello->magic != SP_WIRE_MAGIC)
		return sp_cm_mute(link, event->status);
	switch (hello->reason) {
	case SP_REFUSE_WIRE:
		pr_warn_ratelimited("spindle: %s: %s speaks wire version %u, not %u\n",
				    link->node->name, link->name,
				    hello->version, SP_WIRE_VERSION);
		return -EPROTO;
	case SP_REFUSE_TIE:
		/* Its own request is on the way, and takes over our users. */
		return link->state == SP_LINK_UP ? -EBUSY : 0;
	case SP_REFUSE_BUSY:
		return -EBUSY;
	default:
		return -ECONNREFUSED;
	}
}

/**
 * sp_cm_handler() - events of a link's connection
 * @id: the connection
 * @event: the event
 *
 * Return: 0: the id is destroyed by the link alone.
 */
int sp_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct sp_link *link = id->context;
	int ret = 0;

	mutex_lock(&sp_ctl);
	/* It may be of a connection that is lost already. */
	if (link->state == SP_LINK_DOWN || link->id != id)
		goto out;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		ret = sp_cm_trouble(link, rdma_resolve_route(id, SP_RESOLVE_MS));
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ret = sp_cm_trouble(link, sp_conn_open(link));
		if (ret)
			break;
		if (!link->iwarp) {
			ret = sp_cm_trouble(link, sp_cm_ask(link, rdma_connect_locked));
			break;
		}
		/* Not from here: siw waits in it for TCP to connect. */
		kref_get(&link->ref);
		queue_work(sp_tcp_wq, &link->connect);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!link->passive) {
			const struct sp_hello *theirs;

			theirs = event->param.conn.private_data;
			if (!sp_hello_ok(theirs,
					 event->param.conn.private_data_len)) {
				ret = -EPROTO;
				break;
			}
			sp_hello_take(link, theirs);
		}
		ret = sp_link_established(link);
		break;
	case RDMA_CM_EVENT_REJECTED:
		ret = sp_cm_rejected(link, event);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		ret = sp_conn_errno(event->status);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		sp_link_take(link);
		ret = -EHOSTDOWN;
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		ret = -ENODEV;
		break;
	default:
		break;
	}
	if (ret)
		sp_conn_failed(link, id, ret);
out:
	mutex_unlock(&sp_ctl);
	return 0;
}
