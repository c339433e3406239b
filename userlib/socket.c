// SPDX-License-Identifier: MIT
/* The socket below a handle: from its making to its end. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "internal.h"

#define FAMILY_FILE	"/sys/module/spindle/parameters/family"

union address {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static int parse_scope(const char *text, uint32_t *id)
{
	unsigned long value;
	char *end;

	*id = if_nametoindex(text);
	if (*id)
		return 0;
	value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || !value || value > UINT32_MAX)
		return -EINVAL;
	*id = value;
	return 0;
}

/* An address from text, its length or -EINVAL. */
static int parse_address(const char *text, union address *addr)
{
	char host[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "%");

	memset(addr, 0, sizeof(*addr));
	if (len >= sizeof(host))
		return -EINVAL;
	memcpy(host, text, len);
	host[len] = 0;
	if (!text[len] && inet_pton(AF_INET, host, &addr->in.sin_addr) == 1) {
		addr->in.sin_family = AF_INET;
		return sizeof(addr->in);
	}
	if (inet_pton(AF_INET6, host, &addr->in6.sin6_addr) != 1)
		return -EINVAL;
	addr->in6.sin6_family = AF_INET6;
	if (text[len] && parse_scope(text + len + 1, &addr->in6.sin6_scope_id))
		return -EINVAL;
	return sizeof(addr->in6);
}

/* The number the module has; the usual one where it is not loaded. */
static int family_in_use(void)
{
	int family = AF_SPINDLE_DEFAULT;
	FILE *f;

	f = fopen(FAMILY_FILE, "re");
	if (f) {
		if (fscanf(f, "%d", &family) != 1)
			family = AF_SPINDLE_DEFAULT;
		fclose(f);
	}
	return family;
}

static int open_socket_of(int family)
{
	int fd = socket(family, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

static int open_socket(void)
{
	int family = family_in_use();
	int again, ret;

	ret = open_socket_of(family);
	if (ret != -EAFNOSUPPORT)
		return ret;
	/* that may have loaded the module, which may have another number */
	again = family_in_use();
	return again == family ? ret : open_socket_of(again);
}

/**
 * spindle_open() - make a handle, bound to a node
 * @sp: where it goes; spindle_close() ends it
 * @node: IPv4 or IPv6 address of this host on an RDMA device, as text; "%" and
 *	the name or number of an interface may follow an IPv6 address
 *
 * Return: 0;
 * -EINVAL: @node is no address;
 * -EAFNOSUPPORT: the module is not there;
 * -EADDRNOTAVAIL: no address of this host;
 * -ENODEV: an address without an RDMA device;
 * -EPERM: the program may not, see spindle(7);
 * -ENOMEM, and other errors of socket(2) and bind(2).
 */
int spindle_open(struct spindle **sp, const char *node)
{
	union address addr;
	int len, ret;
	void *mem;

	*sp = NULL;
	len = parse_address(node, &addr);
	if (len < 0)
		return len;
	ret = posix_memalign(&mem, __alignof__(struct spindle), sizeof(struct spindle));
	if (ret)
		return -ret;
	*sp = memset(mem, 0, sizeof(struct spindle));
	ret = open_socket();
	if (ret < 0)
		goto fail;
	(*sp)->fd = ret;
	if (bind((*sp)->fd, &addr.sa, len)) {
		ret = -errno;
		close((*sp)->fd);
		goto fail;
	}
	return 0;

fail:
	free(mem);
	*sp = NULL;
	return ret;
}

/**
 * spindle_create() - make a group and be its first member
 * @sp: handle in no group
 * @group: its name, configuration and flags of this member; see spindle(7) for
 *	units, ranges and what 0 means
 *
 * Does not wait for other members; spindle_ready() does.
 *
 * Return: 0, or the errors of SPINDLE_GROUP_CREATE in spindle(7), among them
 * -EEXIST: the node has a group of this name;
 * -EISCONN: the handle is in a group;
 * -EINVAL, -ERANGE: a bad name, flag or number.
 */
int spindle_create(struct spindle *sp, const struct spindle_group_create *group)
{
	if (setsockopt(sp->fd, SOL_SPINDLE, SPINDLE_GROUP_CREATE, group, sizeof(*group)))
		return -errno;
	return 0;
}

/**
 * spindle_join() - become a member of a group
 * @sp: handle in no group
 * @contact: address of any node that has a member, as text like that of
 *	spindle_open()
 * @group: its name and flags of this member; the contact in it is not read, a
 *	number that is not 0 must be the group's
 *
 * Blocks until the contact has answered, about ten seconds at most, unless
 * O_NONBLOCK was set on the handle's socket.
 *
 * Return: 0, or the errors of SPINDLE_GROUP_JOIN in spindle(7), among them
 * -EINVAL: @contact is no address;
 * -ENOENT, -ECONNREFUSED: no such group, or no node there; a program that may
 *	come before the creator tries again;
 * -EUSERS: it has all its members;
 * -EPROTOTYPE: its configuration is another one;
 * -EHOSTUNREACH, -ETIMEDOUT: the contact did not answer;
 * -EINPROGRESS: O_NONBLOCK is set; spindle_ready() may be called when poll(2)
 *	says POLLOUT and SO_ERROR 0;
 * -EINTR: a signal came.
 */
int spindle_join(struct spindle *sp, const char *contact,
		 const struct spindle_group_join *group)
{
	struct spindle_group_join join = *group;
	union address addr;
	int len;

	len = parse_address(contact, &addr);
	if (len < 0)
		return len;
	memset(join.contact, 0, sizeof(join.contact));
	memcpy(join.contact, &addr, len);
	if (setsockopt(sp->fd, SOL_SPINDLE, SPINDLE_GROUP_JOIN, &join, sizeof(join)))
		return -errno;
	return 0;
}

/**
 * spindle_shutdown() - say this member's last word
 * @sp: handle in a group
 *
 * What was committed goes before it; an open claim is given up. Receiving goes
 * on: when every sender has shut down and all was read, spindle_peek() says
 * -ENODATA. Belongs to the sending thread. A second call does nothing.
 *
 * Return: 0; -ENOTCONN: in no group; other errors of shutdown(2).
 */
int spindle_shutdown(struct spindle *sp)
{
	if (sp->tx.shut)
		return 0;
	sp->tx.claimed = 0;
	/* the kernel collects in this call what it has not yet */
	full_barrier();
	if (shutdown(sp->fd, SHUT_WR))
		return -errno;
	sp->tx.shut = true;
	return 0;
}

/**
 * spindle_leave() - leave the group, and read what is left
 * @sp: handle in a group that is active
 *
 * What was committed goes before it; an open claim is given up, and nothing more
 * can be sent. Does not wait: receiving goes on, up to the view that is without
 * this member; then spindle_peek() says -ENODATA. The others go on. Belongs to
 * the sending thread. A second call does nothing.
 *
 * Return: 0;
 * -ENOTCONN: in no group that is active;
 * other errors of setsockopt(2).
 */
int spindle_leave(struct spindle *sp)
{
	const int none = 0;

	if (sp->tx.left)
		return 0;
	/* the kernel collects in this call what it has not yet */
	full_barrier();
	/* the program may have said so to the socket itself */
	if (setsockopt(sp->fd, SOL_SPINDLE, SPINDLE_GROUP_LEAVE, &none, sizeof(none)) &&
	    errno != EALREADY)
		return -errno;
	sp->tx.claimed = 0;
	sp->tx.shut = true;
	sp->tx.left = true;
	return 0;
}

/**
 * spindle_sync() - wait until something is true of all that was sent
 * @sp: handle in a group
 * @what: SPINDLE_SYNC_RECEIVED: every node has received it; SPINDLE_SYNC_CONSUMED:
 *	every member has released it, this one, too. With SPINDLE_SYNC_DONTWAIT: say
 *	whether it is so
 *
 * Covers what was committed before the call. For any thread; waits for as long as
 * SO_SNDTIMEO of the handle's socket says.
 *
 * Return: 0;
 * -EAGAIN: it is not true yet, and that time is over;
 * -EPIPE: this member has left, and it is not known;
 * -EINTR: a signal came;
 * -EINVAL, -ENOTCONN, and the error of a group that has failed.
 */
int spindle_sync(struct spindle *sp, unsigned int what)
{
	int value = what;

	/* the kernel collects in this call what it has not yet */
	full_barrier();
	return setsockopt(sp->fd, SOL_SPINDLE, SPINDLE_SYNC, &value, sizeof(value)) ?
		-errno : 0;
}

/**
 * spindle_stable() - how far messages have come
 * @sp: handle in a group
 * @stable: where it goes; all zero on failure
 *
 * A system call, for any thread.
 *
 * Return: 0; -ENOTCONN: in no group.
 */
int spindle_stable(struct spindle *sp, struct spindle_stable *stable)
{
	socklen_t len = sizeof(*stable);

	memset(stable, 0, sizeof(*stable));
	return getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_STABLE, stable, &len) ? -errno : 0;
}

/**
 * spindle_close() - end a handle
 * @sp: handle that no thread uses any more; NULL is none
 *
 * Everything that was peeked or claimed is gone with it. A member that closes
 * leaves its group: what it has committed is still delivered, and the others go
 * on without it. Before the first view is complete it leaves its place to
 * another; from then until messages flow here the group fails.
 *
 * Return: 0, or an error of close(2); the handle is gone in any case.
 */
int spindle_close(struct spindle *sp)
{
	int ret = 0;

	if (!sp)
		return 0;
	if (sp->ready)
		spn_unmap(&sp->map);
	if (close(sp->fd))
		ret = -errno;
	free(sp);
	return ret;
}

/**
 * spindle_fd() - the handle's socket
 * @sp: handle
 * @fd: where its number goes
 *
 * For poll(2) and epoll(7), and for the socket options of spindle(7). POLLIN
 * says what SPINDLE_READABLE does of spindle_wait(), POLLOUT what
 * SPINDLE_WRITABLE does; the handle closes it.
 *
 * Return: 0.
 */
int spindle_fd(const struct spindle *sp, int *fd)
{
	*fd = sp->fd;
	return 0;
}

/**
 * spindle_info() - a group as this member sees it
 * @sp: handle
 * @info: what spindle(7) says of SPINDLE_GROUP_INFO
 *
 * A system call, for any thread.
 *
 * Return: 0, or an error of getsockopt(2).
 */
int spindle_info(struct spindle *sp, struct spindle_group_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_GROUP_INFO, info, &len))
		return -errno;
	return 0;
}

/**
 * spindle_view() - the members of the current view, by rank
 * @sp: handle
 * @members: where they go
 * @n: on entry how many there is room for (SPINDLE_MAX_MEMBERS always
 *	suffice), on return how many there are
 *
 * The current view is the newest one: what is yet to be read may be of an older
 * one, and an event of type VIEW says in its place who is in which. A system
 * call, for any thread.
 *
 * Return: 0;
 * -ERANGE: too little room; @n says how much is needed, nothing was written;
 * -ENOTCONN: there is no view yet.
 */
int spindle_view(struct spindle *sp, struct sockaddr_spindle *members, unsigned int *n)
{
	unsigned int room = *n < SPINDLE_MAX_MEMBERS ? *n : SPINDLE_MAX_MEMBERS;
	socklen_t len = room * sizeof(*members);
	int ret = 0;

	if (getsockopt(sp->fd, SOL_SPINDLE, SPINDLE_GROUP_VIEW, members, &len))
		ret = -errno;
	if (!ret || ret == -ERANGE)
		*n = len / sizeof(*members);
	return ret;
}

/**
 * spindle_stats() - what a handle has done
 * @sp: handle
 * @stats: counters from the handle's beginning
 *
 * No system call, and for any thread; while others go on the numbers are of
 * almost the same moment.
 *
 * Return: 0.
 */
int spindle_stats(struct spindle *sp, struct spindle_stats *stats)
{
	const struct spn_tx *tx = &sp->tx;
	const struct spn_rx *rx = &sp->rx;

	*stats = (struct spindle_stats) {
		.sent = load_relaxed(&tx->sent),
		.sent_bytes = load_relaxed(&tx->sent_bytes),
		.received = load_relaxed(&rx->received),
		.received_bytes = load_relaxed(&rx->received_bytes),
		.claims_refused = load_relaxed(&tx->refused),
		.kicks = load_relaxed(&tx->kicks) + load_relaxed(&rx->kicks),
		.waits = load_relaxed(&sp->waits),
		.copied_bytes = load_relaxed(&tx->copied) + load_relaxed(&rx->copied),
	};
	return 0;
}
