// SPDX-License-Identifier: MIT
/*
 * spindle-perf: messages by system calls, which copy them.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "perf.h"

#define ADAPTIVE_TRIES	200

/* For each direction, as both threads work at once. */
struct copy_batch {
	unsigned char *data;
	struct mmsghdr msgs[PERF_MAX_BATCH];
	union {
		struct cmsghdr hdr;
		unsigned char room[CMSG_SPACE(sizeof(struct spindle_object))];
	} how;
	struct iovec iov[PERF_MAX_BATCH];
	struct sockaddr_spindle from[PERF_MAX_BATCH];
};

struct copy_state {
	struct copy_batch out;
	struct copy_batch in;
};

static int family(void)
{
	int number = AF_SPINDLE_DEFAULT;
	FILE *f = fopen("/sys/module/spindle/parameters/family", "re");

	if (f) {
		if (fscanf(f, "%d", &number) != 1)
			number = AF_SPINDLE_DEFAULT;
		fclose(f);
	}
	return number;
}

int perf_socket_open(struct perf_member *m, const char *addr)
{
	struct timeval left = { .tv_sec = (m->deadline - perf_now()) / 1000000000 + 1 };
	int fd = socket(family(), SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_storage ss;
	socklen_t len = perf_addr(addr, &ss);

	if (fd < 0)
		perf_die(m, "socket: %s", strerror(errno));
	if (bind(fd, (struct sockaddr *)&ss, len))
		perf_die(m, "bind: %s", strerror(errno));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)))
		perf_die(m, "timeouts: %s", strerror(errno));
	if (m->opt->key && setsockopt(fd, SOL_SPINDLE, SPINDLE_KEY, m->opt->key,
				      strlen(m->opt->key)))
		perf_die(m, "key %s: %s", m->opt->key, strerror(errno));
	return fd;
}

int perf_socket_create(int fd, const struct spindle_group_create *group)
{
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, group, sizeof(*group)) ? errno : 0;
}

int perf_socket_join(int fd, const char *contact, const struct spindle_group_join *group)
{
	struct spindle_group_join join = *group;
	struct sockaddr_storage ss;

	memcpy(join.contact, &ss, perf_addr(contact, &ss));
	return setsockopt(fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &join, sizeof(join)) ? errno : 0;
}

static void copy_open(struct perf_flow *f, const char *addr)
{
	f->fd = perf_socket_open(f->member, addr);
}

static void copy_create(struct perf_flow *f, const struct spindle_group_create *group)
{
	int err = perf_socket_create(f->fd, group);

	if (err)
		perf_die(f->member, "creating %s: %s", group->name, strerror(err));
}

static int copy_join(struct perf_flow *f, const char *contact,
		     const struct spindle_group_join *group)
{
	return perf_socket_join(f->fd, contact, group);
}

static void copy_info(struct perf_flow *f, struct spindle_group_info *info)
{
	socklen_t len = sizeof(*info);

	if (getsockopt(f->fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, info, &len))
		perf_die(f->member, "group info: %s", strerror(errno));
}

static void batch_init(struct perf_flow *f, struct copy_batch *b)
{
	const struct perf_options *opt = f->member->opt;
	size_t room = perf_room(opt);
	unsigned int i;

	b->data = malloc(opt->batch * room);
	if (!b->data)
		perf_die(f->member, "no memory for messages");
	/* the pages are there before the clock runs */
	memset(b->data, 0, opt->batch * room);
	for (i = 0; i < opt->batch; i++) {
		b->iov[i] = (struct iovec){ b->data + i * room, room };
		b->msgs[i].msg_hdr.msg_iov = &b->iov[i];
		b->msgs[i].msg_hdr.msg_iovlen = 1;
	}
}

/* Each message says that it is an object. */
static void send_always(struct copy_batch *b, unsigned int n)
{
	const struct spindle_object how = { .flags = SPINDLE_OBJECT_ALWAYS };
	unsigned int i;

	b->how.hdr.cmsg_level = SOL_SPINDLE;
	b->how.hdr.cmsg_type = SPINDLE_CMSG_OBJECT;
	b->how.hdr.cmsg_len = CMSG_LEN(sizeof(how));
	memcpy(CMSG_DATA(&b->how.hdr), &how, sizeof(how));
	for (i = 0; i < n; i++) {
		b->msgs[i].msg_hdr.msg_control = &b->how;
		b->msgs[i].msg_hdr.msg_controllen = sizeof(b->how);
	}
}

static void copy_start(struct perf_flow *f)
{
	struct copy_state *c = calloc(1, sizeof(*c));
	unsigned int i;

	if (!c)
		perf_die(f->member, "no memory for messages");
	f->priv = c;
	batch_init(f, &c->in);
	for (i = 0; i < f->member->opt->batch; i++)
		c->in.msgs[i].msg_hdr.msg_name = &c->in.from[i];
	if (!f->sends)
		return;
	batch_init(f, &c->out);
	for (i = 0; i < f->member->opt->batch; i++)
		c->out.iov[i].iov_len = f->member->opt->size;
	if (f->member->opt->always)
		send_always(&c->out, f->member->opt->batch);
}

/*
 * The flags of the next try, and whether there is one: those who wait by
 * looking yield to who has something to do.
 */
static bool next_try(struct perf_flow *f, unsigned int *tries, int *flags)
{
	enum perf_wait wait = f->member->opt->wait;

	if (wait == PERF_WAIT_BLOCK || (wait == PERF_WAIT_ADAPTIVE && *tries >= ADAPTIVE_TRIES)) {
		*flags = 0;
		return !*tries || wait == PERF_WAIT_ADAPTIVE;
	}
	*flags = MSG_DONTWAIT;
	if (!*tries)
		return true;
	sched_yield();
	return *tries % 1024 || perf_now() < f->member->deadline;
}

static unsigned int copy_send(struct perf_flow *f, unsigned int n)
{
	struct copy_batch *b = &((struct copy_state *)f->priv)->out;
	unsigned int i, tries = 0;
	int flags, done;

	perf_handed_over(f, f->res->sent, n);
	for (i = 0; i < n; i++)
		perf_fill(f, b->iov[i].iov_base, f->res->sent + i);
	for (; next_try(f, &tries, &flags); tries++) {
		f->res->calls++;
		done = n == 1 ? sendmsg(f->fd, &b->msgs[0].msg_hdr, flags | MSG_NOSIGNAL) :
				sendmmsg(f->fd, b->msgs, n, flags | MSG_NOSIGNAL);
		if (done >= 0)
			return n == 1 ? 1 : done;
		if (errno != EAGAIN || !flags)
			break;
	}
	perf_die(f->member, "sending message %llu: %s", (unsigned long long)f->res->sent,
		 errno == EAGAIN ? "no room in time" : strerror(errno));
}

static bool copy_receive(struct perf_flow *f)
{
	struct copy_batch *b = &((struct copy_state *)f->priv)->in;
	unsigned int i, n = f->member->opt->batch, tries = 0;
	int flags, got = -1;

	for (i = 0; i < n; i++)
		b->msgs[i].msg_hdr.msg_namelen = sizeof(b->from[i]);
	for (; next_try(f, &tries, &flags); tries++) {
		f->res->calls++;
		if (n == 1) {
			got = recvmsg(f->fd, &b->msgs[0].msg_hdr, flags);
			if (got >= 0) {
				b->msgs[0].msg_len = got;
				got = 1;
			}
		} else {
			got = recvmmsg(f->fd, b->msgs, n, flags | MSG_WAITFORONE, NULL);
		}
		if (got >= 0 || errno != EAGAIN || !flags)
			break;
	}
	if (got < 0)
		perf_die(f->member, "receiving, after %llu messages: %s",
			 (unsigned long long)f->res->received,
			 errno == EAGAIN ? "nothing came in time" : strerror(errno));
	for (i = 0; i < (unsigned int)got; i++) {
		if (b->msgs[i].msg_hdr.msg_flags & MSG_TRUNC)
			perf_die(f->member, "a message of rank %u is too long", b->from[i].ss_rank);
		if (!(b->msgs[i].msg_hdr.msg_flags & MSG_EOR))
			return false;
		perf_take(f, b->from[i].ss_rank, b->iov[i].iov_base, b->msgs[i].msg_len);
	}
	return true;
}

static void copy_shutdown(struct perf_flow *f)
{
	if (shutdown(f->fd, SHUT_WR))
		perf_die(f->member, "shutdown: %s", strerror(errno));
}

static void copy_close(struct perf_flow *f)
{
	close(f->fd);
}

const struct perf_ops perf_copy_ops = {
	.name = "copy",
	.open = copy_open,
	.create = copy_create,
	.join = copy_join,
	.start = copy_start,
	.info = copy_info,
	.send = copy_send,
	.receive = copy_receive,
	.shutdown = copy_shutdown,
	.close = copy_close,
};
