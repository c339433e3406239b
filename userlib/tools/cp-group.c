// SPDX-License-Identifier: MIT
/*
 * spindle-cp: the group, and the messages in it.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cp.h"

#define PACE_NS		50000000L	/* between two tries to join */
#define BEAT_MS		100
#define WORD_SECONDS	30		/* for a word of our own to be taken */

static bool may_come(int ret)
{
	return ret == -ENOENT || ret == -ECONNREFUSED || ret == -EHOSTUNREACH ||
	       ret == -ETIMEDOUT || ret == -EHOSTDOWN;
}

static int create(struct cp *cp)
{
	struct spindle_group_create group = {
		.members = cp->opt.receivers + 1,
		.max_members = cp->opt.receivers + 1,
		/*
		 * Only the part with the sender in it can do anything, so that two
		 * parts that go on do no harm.
		 */
		.flags = SPINDLE_F_MINORITY,
		.suspect_ms = cp->opt.suspect_ms,
		.evict_ms = cp->opt.evict_ms,
		.max_object = cp->opt.max_object,
		.block = cp->opt.block,
		.algorithm = cp->opt.algorithm,
		.rack = cp->opt.rack,
	};
	int ret;

	memcpy(group.name, cp->opt.group, sizeof(group.name));
	ret = spindle_create(cp->sp, &group);
	if (ret)
		cp_warn("%s: the group cannot be made: %s", cp->opt.group, strerror(-ret));
	return ret;
}

static int join(struct cp *cp, int64_t until)
{
	const struct timespec pace = { .tv_nsec = PACE_NS };
	struct spindle_group_join group = { .rack = cp->opt.rack };
	int ret;

	memcpy(group.name, cp->opt.group, sizeof(group.name));
	for (;;) {
		ret = spindle_join(cp->sp, cp->opt.contact, &group);
		if (!may_come(ret) || cp_now() > until || cp_signal)
			break;
		nanosleep(&pace, NULL);
	}
	if (ret)
		cp_warn("%s@%s: the group cannot be joined: %s", cp->opt.group,
			cp->opt.contact, strerror(-ret));
	return ret;
}

static int await_view(struct cp *cp, int64_t until)
{
	struct spindle_group_info info;
	int ret;

	do {
		ret = spindle_ready(cp->sp, BEAT_MS);
	} while ((ret == -ETIMEDOUT || ret == -EINTR) && cp_now() < until && !cp_signal);
	if (ret == -ETIMEDOUT || ret == -EINTR) {
		/* members are those waited for: nobody knows how many have come */
		if (cp->opt.send)
			cp_warn("not all %u receivers have come within %u s",
				cp->opt.receivers, cp->opt.timeout);
		else
			cp_warn("the group was not complete within %u s", cp->opt.timeout);
	} else if (ret) {
		cp_warn("the group cannot be used: %s", strerror(-ret));
	} else {
		ret = spindle_info(cp->sp, &info);
	}
	return ret;
}

/**
 * cp_enter() - be a member of the complete group
 * @cp: all of it
 *
 * Return: 0, or a negative errno, of which the user was told.
 */
int cp_enter(struct cp *cp)
{
	int64_t until = cp_now() + cp->opt.timeout * 1000000000LL;
	int ret;

	cp->sender = ~0U;
	cp->own = ~0U;
	ret = spindle_open(&cp->sp, cp->opt.addr);
	if (ret) {
		cp_warn("%s: %s", cp->opt.addr, strerror(-ret));
		return ret;
	}
	if (cp->opt.key) {
		ret = spindle_key(cp->sp, cp->opt.key);
		if (ret) {
			cp_warn("key %s: %s", cp->opt.key, strerror(-ret));
			return ret;
		}
	}
	ret = spindle_map(cp->sp, SPINDLE_MAP_RX);
	if (!ret)
		ret = spindle_events(cp->sp, SPINDLE_WANT_VIEW);
	if (!ret)
		ret = cp->opt.send ? create(cp) : join(cp, until);
	if (!ret)
		ret = await_view(cp, until);
	return ret;
}

/**
 * cp_say() - send a message
 * @cp: all of it
 * @type: enum cp_type
 * @w: what it says, in the host's order; may be NULL
 * @text: what follows
 * @len: bytes of it
 *
 * Return: 0 or a negative errno.
 */
int cp_say(struct cp *cp, enum cp_type type, const struct cp_wire *w, const char *text,
	   size_t len)
{
	int64_t until = cp_now() + WORD_SECONDS * 1000000000LL;
	static unsigned char room[sizeof(*w) + CP_TEXT];
	struct cp_wire wire = { 0 };
	int ret;

	if (len > CP_TEXT)
		return -ENAMETOOLONG;
	if (w)
		wire = *w;
	wire.magic = htole32(CP_MAGIC);
	wire.version = htole16(CP_VERSION);
	wire.type = htole16(type);
	wire.index = htole32(wire.index);
	wire.kind = htole32(wire.kind);
	wire.size = htole64(wire.size);
	wire.mtime = htole64(wire.mtime);
	wire.mtime_ns = htole32(wire.mtime_ns);
	wire.mode = htole32(wire.mode);
	wire.error = htole32(wire.error);
	wire.len = htole32(len);
	memcpy(room, &wire, sizeof(wire));
	if (len)
		memcpy(room + sizeof(wire), text, len);
	for (;;) {
		ret = spindle_send(cp->sp, room, sizeof(wire) + len);
		if (ret != -EAGAIN || cp_now() > until)
			return ret;
		ret = spindle_wait(cp->sp, SPINDLE_WRITABLE, SPINDLE_WAIT_BLOCK, BEAT_MS);
		if (ret && ret != -ETIMEDOUT && ret != -EINTR)
			return ret;
	}
}

struct cp_peer *cp_peer_of(struct cp *cp, uint32_t uid)
{
	unsigned int i;

	for (i = 0; i < cp->npeers; i++)
		if (cp->peers[i].uid == uid)
			return &cp->peers[i];
	return NULL;
}

union event {
	struct spindle_event event;
	unsigned char room[SPINDLE_EVENT_SIZE];
};

static void take_members(struct cp *cp, const struct spindle_event *e)
{
	const struct spindle_event_member *m;
	struct cp_peer *peer;
	unsigned int i;

	for (i = 0; i < e->members && i < SPINDLE_MAX_MEMBERS; i++) {
		m = &e->member[i];
		peer = &cp->peers[cp->npeers++];
		peer->uid = m->uid;
		if (IN6_IS_ADDR_V4MAPPED(&m->addr))
			inet_ntop(AF_INET, &m->addr.s6_addr[12], peer->addr, sizeof(peer->addr));
		else
			inet_ntop(AF_INET6, &m->addr, peer->addr, sizeof(peer->addr));
		if (m->flags & SPINDLE_EM_SELF)
			cp->own = m->uid;
	}
}

static void take_gone(struct cp *cp, const struct spindle_event *e)
{
	const struct spindle_event_member *m;
	struct cp_peer *peer;
	unsigned int i;

	for (i = 0; i < e->left; i++) {
		m = &e->member[e->members + i];
		if (m->uid == cp->sender)
			cp->lost = true;
		peer = cp_peer_of(cp, m->uid);
		if (!peer || peer->state != CP_THERE)
			continue;
		peer->state = CP_LOST;
		peer->reason = m->reason;
	}
}

/* Who is there, and who is no more. */
void cp_hear_event(struct cp *cp, const struct spindle_msg *msg)
{
	size_t size = sizeof(union event);
	unsigned int i;
	union event u;

	if (msg->event != SPINDLE_EVENT_VIEW ||
	    spindle_event(cp->sp, msg->number, &u.event, &size))
		return;
	for (i = 0; i < SPINDLE_MAX_MEMBERS; i++)
		cp->uids[i] = i < u.event.members ? u.event.member[i].uid : ~0U;
	if (!cp->npeers)
		take_members(cp, &u.event);
	else
		take_gone(cp, &u.event);
}

/**
 * cp_read() - what a message says
 * @cp: all of it
 * @msg: the message
 * @to: where that goes
 *
 * Return: false when it is none of spindle-cp.
 */
bool cp_read(struct cp *cp, const struct spindle_msg *msg, struct cp_msg *to)
{
	struct cp_wire *w = &to->w;

	if (msg->event || msg->flags & SPINDLE_MSG_STATE || msg->len < sizeof(*w) ||
	    msg->len - sizeof(*w) > CP_TEXT ||
	    spindle_object_read(cp->sp, msg, 0, w, sizeof(*w)))
		return false;
	if (w->magic != htole32(CP_MAGIC) || w->version != htole16(CP_VERSION))
		return false;
	w->type = le16toh(w->type);
	w->index = le32toh(w->index);
	w->kind = le32toh(w->kind);
	w->size = le64toh(w->size);
	w->mtime = le64toh(w->mtime);
	w->mtime_ns = le32toh(w->mtime_ns);
	w->mode = le32toh(w->mode);
	w->error = le32toh(w->error);
	w->len = le32toh(w->len);
	if (w->len != msg->len - sizeof(*w) ||
	    spindle_object_read(cp->sp, msg, sizeof(*w), to->text, w->len))
		return false;
	to->text[w->len] = 0;
	to->uid = msg->rank < SPINDLE_MAX_MEMBERS ? cp->uids[msg->rank] : ~0U;
	return true;
}

/* Out of the group; what was said is heard. */
void cp_leave(struct cp *cp)
{
	int64_t until = cp_now() + 10 * 1000000000LL;
	struct spindle_msg msgs[16];
	unsigned int n;
	int ret;

	ret = spindle_leave(cp->sp);
	while (!ret && cp_now() < until) {
		ret = spindle_peek(cp->sp, msgs, 16, &n);
		if (!ret)
			ret = spindle_release(cp->sp, msgs[n - 1].entry);
		else if (ret == -EAGAIN)
			ret = spindle_wait(cp->sp, SPINDLE_READABLE, SPINDLE_WAIT_BLOCK, BEAT_MS);
		if (ret == -ETIMEDOUT || ret == -EINTR)
			ret = 0;
	}
}
