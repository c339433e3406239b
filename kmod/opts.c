// SPDX-License-Identifier: GPL-2.0
/* Socket options: making and joining groups, asking about them. */
#include <linux/build_bug.h>
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>

#include "af_spindle.h"
#include "limits.h"

#define SP_JOIN_SECONDS		10
#define SP_DEFAULT_RINGS	(4U << 20)	/* windows of all senders */
#define SP_DEFAULT_LEAST	(256U << 10)	/* a window */
#define SP_DEFAULT_MOST		(1U << 20)	/* likewise */
#define SP_DEFAULT_MSG		(16U << 10)
#define SP_DEFAULT_DEPTH	1024U

/*
 * Take an option that may be longer or shorter than the one known here: what
 * is missing reads as zero, what is unknown must be zero.
 */
static int sp_opt_take(void *to, size_t size, size_t least, sockptr_t from,
		       unsigned int len)
{
	unsigned int i;
	u8 *rest;
	int ret = 0;

	if (len < least)
		return -EINVAL;
	if (len > PAGE_SIZE)
		return -E2BIG;
	memset(to, 0, size);
	if (copy_from_sockptr(to, from, min_t(size_t, len, size)))
		return -EFAULT;
	if (len <= size)
		return 0;
	rest = kmalloc(len - size, GFP_KERNEL);
	if (!rest)
		return -ENOMEM;
	if (copy_from_sockptr_offset(rest, from, size, len - size))
		ret = -EFAULT;
	for (i = 0; !ret && i < len - size; i++)
		if (rest[i])
			ret = -E2BIG;
	kfree(rest);
	return ret;
}

static int sp_name_check(const char *name)
{
	size_t len = strnlen(name, SPINDLE_NAME_LEN);
	size_t i;

	BUILD_BUG_ON(SPINDLE_NAME_LEN != SP_NAME_LEN);
	if (!len || len == SPINDLE_NAME_LEN || !strcmp(name, ".") ||
	    !strcmp(name, ".."))
		return -EINVAL;
	for (i = 0; i < len; i++)
		if (!isascii(name[i]) || !isgraph(name[i]) || name[i] == '/')
			return -EINVAL;
	return 0;
}

/* A value of a configuration: 0, or within bounds, or a power of two there. */
static int sp_range(u32 value, u32 low, u32 high, bool power)
{
	if (!value)
		return 0;
	if (value < low || value > high || (power && !is_power_of_2(value)))
		return -ERANGE;
	return 0;
}

static int sp_config_check(const struct sp_config *cfg)
{
	if (sp_range(cfg->members, 1, SPINDLE_MAX_MEMBERS, false) ||
	    sp_range(cfg->limit, cfg->members ?: 1, SPINDLE_MAX_MEMBERS, false) ||
	    sp_range(cfg->senders, 1, cfg->limit ?: SPINDLE_MAX_MEMBERS,
		     false) ||
	    /* A ring is mapped by pages. */
	    sp_range(cfg->window, max_t(u32, SPINDLE_MIN_WINDOW, PAGE_SIZE),
		     SPINDLE_MAX_WINDOW, true) ||
	    sp_range(cfg->max_msg, 1, cfg->window ?: SPINDLE_MAX_WINDOW,
		     false) ||
	    sp_range(cfg->depth, SPINDLE_MIN_DEPTH, SPINDLE_MAX_DEPTH, true) ||
	    sp_range(cfg->silent_ms, SPINDLE_MIN_PATIENCE, SPINDLE_MAX_PATIENCE,
		     false) ||
	    sp_range(cfg->link_ms, SPINDLE_MIN_PATIENCE, SPINDLE_MAX_PATIENCE,
		     false) ||
	    sp_range(cfg->evict_ms, SPINDLE_MIN_PATIENCE, SPINDLE_MAX_PATIENCE,
		     false))
		return -ERANGE;
	return 0;
}

/* What is wrong with an option by itself, whatever the socket's state. */
static int sp_opt_check(const char *name, u32 flags, const __u32 *resv,
			size_t n)
{
	if (flags & ~SPINDLE_F_ALL || memchr_inv(resv, 0, n * sizeof(*resv)))
		return -EINVAL;
	return sp_name_check(name);
}

/* Optimisations that are off: that slows down what others do, or stalls it. */
static int sp_opt_off_check(const struct net *net, u32 off)
{
	static_assert(SPINDLE_OFF_SEND == SP_OPT_SEND);
	static_assert(SPINDLE_OFF_RECEIVE == SP_OPT_RECEIVE);
	static_assert(SPINDLE_OFF_DELIVER == SP_OPT_DELIVER);
	static_assert(SPINDLE_OFF_NULL == SP_OPT_NULL);
	static_assert(SPINDLE_OFF_UNLOCK == SP_OPT_UNLOCK);
	static_assert(SPINDLE_OFF_ALL == SP_OPT_ALL);

	if (off & ~SPINDLE_OFF_ALL)
		return -EINVAL;
	return !off || ns_capable(net->user_ns, CAP_NET_ADMIN) ? 0 : -EPERM;
}

/* What create and join have in common, before and after. */
static int sp_opt_begin(struct sp_sock *ss)
{
	if (!ss->node)
		return -EDESTADDRREQ;
	/* Pairs with sp_sock_joined(). */
	if (smp_load_acquire(&ss->joining))
		return -EALREADY;
	if (ss->group)
		return -EISCONN;
	if (!ss->local.memcg)
		ss->local.memcg = get_mem_cgroup_from_mm(current->mm);
	/* How an earlier try ended. */
	WRITE_ONCE(ss->sk.sk_err, 0);
	return 0;
}

/*
 * The socket is in a group, or will not be. Under lock_sock(), or, if nobody
 * waits for the answer, under sp_ctl.
 */
static void sp_sock_joined(struct sp_sock *ss, int result)
{
	if (!result)
		/* sp_sock_group() pairs with this. */
		smp_store_release(&ss->group, ss->local.group);
	/* Who sees that nobody joins any more sees the group. */
	smp_store_release(&ss->joining, false);
	ss->sk.sk_state_change(&ss->sk);
}

/* How a join ended that nobody waited for: as connect(2) says it. */
static void sp_sock_join_ended(struct sp_local *local, int result)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);

	if (result)
		WRITE_ONCE(ss->sk.sk_err, -result);
	sp_sock_joined(ss, result);
}

/* A window for who has not asked for one: the more senders, the smaller. */
static u32 sp_default_window(const struct sp_config *cfg)
{
	u32 senders = clamp(cfg->senders ?: cfg->members, 1U, SPINDLE_MAX_MEMBERS);

	return clamp(rounddown_pow_of_two(SP_DEFAULT_RINGS / senders),
		     SP_DEFAULT_LEAST, SP_DEFAULT_MOST);
}

static int sp_opt_create(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	struct spindle_group_create opt;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_config cfg = {};
	int ret;

	ret = sp_opt_take(&opt, sizeof(opt), sizeof(opt), optval, optlen);
	if (!ret)
		ret = sp_opt_check(opt.name, opt.flags, opt.__resv,
				   ARRAY_SIZE(opt.__resv));
	if (!ret)
		ret = sp_opt_off_check(sock_net(sk), opt.optimise_off);
	if (ret)
		return ret;
	if (!opt.members)
		return -ERANGE;
	cfg.members = opt.members;
	cfg.limit = opt.max_members ?: SPINDLE_MAX_MEMBERS;
	cfg.senders = opt.senders;
	cfg.window = opt.window ?: sp_default_window(&cfg);
	cfg.max_msg = opt.max_msg ?: min(cfg.window, SP_DEFAULT_MSG);
	cfg.depth = opt.depth ?: SP_DEFAULT_DEPTH;
	cfg.silent_ms = opt.silent_ms ?: sp_suspect_ms;
	cfg.link_ms = opt.link_ms ?: cfg.silent_ms;
	cfg.evict_ms = opt.evict_ms;
	if (opt.flags & SPINDLE_F_NO_MAJORITY)
		cfg.flags |= SP_CONFIG_NO_MAJORITY;
	if (opt.flags & SPINDLE_F_STATE)
		cfg.flags |= SP_CONFIG_STATE;
	cfg.flags |= opt.optimise_off << SP_CONFIG_OFF_SHIFT;
	ret = sp_config_check(&cfg);
	if (ret)
		return ret;
	/* Somebody must send. */
	if (opt.members == 1 && (opt.flags & SPINDLE_F_RECEIVER))
		return -EINVAL;

	lock_sock(sk);
	ret = sp_opt_begin(ss);
	if (!ret) {
		ss->local.flags = opt.flags & SPINDLE_F_RECEIVER;
		mutex_lock(&sp_ctl);
		ret = sp_member_create(ss->node, opt.name, &cfg, &ss->local);
		mutex_unlock(&sp_ctl);
	}
	if (!ret)
		sp_sock_joined(ss, 0);
	release_sock(sk);
	return ret;
}

/* May an option have its caller wait? */
static bool sp_opt_blocks(const struct socket *sock)
{
	return !sock->file || !(sock->file->f_flags & O_NONBLOCK);
}

static int sp_opt_join(struct socket *sock, sockptr_t optval,
		       unsigned int optlen)
{
	bool wait = sp_opt_blocks(sock);
	struct spindle_group_join opt;
	struct sock *sk = sock->sk;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_config cfg = {};
	struct sp_addr contact;
	u32 scope_id;
	long timeo;
	int ret;

	ret = sp_opt_take(&opt, sizeof(opt), sizeof(opt), optval, optlen);
	if (!ret)
		ret = sp_opt_check(opt.name, opt.flags, opt.__resv,
				   ARRAY_SIZE(opt.__resv));
	if (!ret)
		ret = sp_sockaddr_take((struct sockaddr *)opt.contact,
				       sizeof(opt.contact), &contact,
				       &scope_id);
	/* What the group is like its creator says. */
	if (!ret && (opt.flags & (SPINDLE_F_NO_MAJORITY | SPINDLE_F_STATE)))
		ret = -EINVAL;
	if (ret)
		return ret == -EADDRNOTAVAIL ? -EINVAL : ret;
	cfg.members = opt.members;
	cfg.limit = opt.max_members;
	cfg.senders = opt.senders;
	cfg.window = opt.window;
	cfg.max_msg = opt.max_msg;
	cfg.depth = opt.depth;
	cfg.silent_ms = opt.silent_ms;
	cfg.link_ms = opt.link_ms;
	cfg.evict_ms = opt.evict_ms;
	ret = sp_config_check(&cfg);
	if (ret)
		return ret;

	lock_sock(sk);
	ret = sp_opt_begin(ss);
	timeo = sock_sndtimeo(sk, false);
	if (timeo == MAX_SCHEDULE_TIMEOUT)
		timeo = SP_JOIN_SECONDS * HZ;
	if (ret)
		goto out;
	ss->local.flags = opt.flags;
	WRITE_ONCE(ss->joining, true);
	if (!wait) {
		ret = sp_member_join_begin(ss->node, opt.name, &contact, &cfg,
					   &ss->local, timeo,
					   sp_sock_join_ended);
		if (ret != -EINPROGRESS)
			sp_sock_joined(ss, ret);
		goto out;
	}
	/* Nobody else's call on this socket waits for the answer. */
	release_sock(sk);
	ret = sp_member_join(ss->node, opt.name, &contact, &cfg, &ss->local,
			     timeo);
	lock_sock(sk);
	sp_sock_joined(ss, ret);
out:
	release_sock(sk);
	return ret;
}

static int sp_opt_leave(struct sock *sk, int value)
{
	struct sp_sock *ss = sp_sk(sk);
	struct sp_group *g;
	int ret = -ENOTCONN;

	if (value)
		return -EINVAL;
	lock_sock(sk);
	mutex_lock(&sp_ctl);
	g = sp_sock_group(ss);
	if (g)
		ret = sp_group_leave(g, &ss->local, SP_LEFT);
	mutex_unlock(&sp_ctl);
	/* Who waits to send waits in vain. */
	if (!ret)
		sk->sk_state_change(sk);
	release_sock(sk);
	return ret;
}

static int sp_opt_events(struct sock *sk, int value)
{
	struct sp_sock *ss = sp_sk(sk);

	if (value & ~SPINDLE_WANT_ALL)
		return -EINVAL;
	/* No reader is in the middle of one. */
	if (mutex_lock_interruptible(&ss->rx_lock))
		return -ERESTARTSYS;
	WRITE_ONCE(ss->local.events, value);
	sp_detach_sift(&ss->local);
	/* What stood behind events that are not wanted any more may be passed by now. */
	if (READ_ONCE(ss->local.group))
		WRITE_ONCE(ss->local.queue.due, true);
	sp_rx_unlock(ss);
	return 0;
}

/**
 * sp_setsockopt() - set an option
 * @sock: the socket
 * @level: SOL_SPINDLE
 * @optname: SPINDLE_*
 * @optval: its value
 * @optlen: bytes of it
 *
 * Return: 0 or a negative errno, see spindle(7).
 */
int sp_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		  unsigned int optlen)
{
	struct sock *sk = sock->sk;
	int value;

	if (level != SOL_SPINDLE)
		return -ENOPROTOOPT;
	switch (optname) {
	case SPINDLE_GROUP_CREATE:
	case SPINDLE_GROUP_JOIN:
		if (!sp_may_join(sock_net(sk)))
			return -EPERM;
		return optname == SPINDLE_GROUP_CREATE ?
			sp_opt_create(sk, optval, optlen) :
			sp_opt_join(sock, optval, optlen);
	case SPINDLE_RECVINFO:
		if (optlen < sizeof(value))
			return -EINVAL;
		if (copy_from_sockptr(&value, optval, sizeof(value)))
			return -EFAULT;
		WRITE_ONCE(sp_sk(sk)->recvinfo, !!value);
		return 0;
	case SPINDLE_DETACHED:
	case SPINDLE_MAP:
	case SPINDLE_GROUP_LEAVE:
	case SPINDLE_EVENTS:
	case SPINDLE_SYNC:
		if (optlen < sizeof(value))
			return -EINVAL;
		if (copy_from_sockptr(&value, optval, sizeof(value)))
			return -EFAULT;
		break;
	default:
		return -ENOPROTOOPT;
	}
	switch (optname) {
	case SPINDLE_GROUP_LEAVE:
		return sp_opt_leave(sk, value);
	case SPINDLE_EVENTS:
		return sp_opt_events(sk, value);
	case SPINDLE_SYNC:
		return sp_stable_sync(sp_sk(sk), value, sp_opt_blocks(sock));
	case SPINDLE_MAP:
		return sp_rings_map(sp_sk(sk), value);
	case SPINDLE_DETACHED:
		return sp_detach_set(sk, value);
	default:
		return -ENOPROTOOPT;
	}
}

/**
 * sp_local_uapi_state() - a group's state as a member's program knows it
 * @g: the group
 * @local: the member
 *
 * Return: SPINDLE_STATE_*.
 */
u32 sp_local_uapi_state(const struct sp_group *g, const struct sp_local *local)
{
	if (sp_local_evicted(local))
		return SPINDLE_STATE_EVICTED;
	if (sp_local_out(local))
		return SPINDLE_STATE_CLOSED;
	switch (sp_group_state(g)) {
	case SP_VIEW_FORMING:
		return SPINDLE_STATE_FORMING;
	case SP_VIEW_ACTIVE:
		return READ_ONCE(g->minority) ? SPINDLE_STATE_MINORITY : SPINDLE_STATE_ACTIVE;
	case SP_VIEW_CLOSED:
		return SPINDLE_STATE_CLOSED;
	case SP_VIEW_FAILED:
		break;
	}
	return SPINDLE_STATE_FAILED;
}

static void sp_opt_info(const struct sp_sock *ss,
			struct spindle_group_info *info)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sp_event *ev;

	memset(info, 0, sizeof(*info));
	info->rank = ~0U;
	info->uid = ~0U;
	if (!g)
		return;
	strscpy(info->name, g->name, sizeof(info->name));
	info->state = sp_local_uapi_state(g, &ss->local);
	info->members = g->config.members;
	info->senders = g->config.senders;
	ev = sp_event_view(g);
	if (ev && info->state != SPINDLE_STATE_FORMING) {
		info->view = ev->view.id;
		info->members = ev->view.nmembers;
		info->senders = ev->view.nlanes;
		info->rank = READ_ONCE(ss->local.rank);
		info->uid = ss->local.uid;
		info->stale = hweight64(READ_ONCE(g->core.order.stale));
	}
	sp_event_put(ev);
	if (info->state == SPINDLE_STATE_FAILED)
		info->error = -g->error;
	else if (info->state == SPINDLE_STATE_EVICTED)
		info->error = ENOBUFS;
	else if (info->state == SPINDLE_STATE_MINORITY)
		info->error = ENETDOWN;
	info->window = g->config.window;
	info->max_msg = g->config.max_msg;
	info->depth = g->config.depth;
	info->sent = READ_ONCE(ss->sent);
	info->received = READ_ONCE(ss->received);
	info->optimise_off = sp_config_off(&g->config);
	info->max_members = g->config.limit;
	info->silent_ms = g->config.silent_ms;
	info->link_ms = g->config.link_ms;
	info->evict_ms = g->config.evict_ms;
}

static int sp_opt_give(const void *from, size_t size, char __user *optval,
		       int __user *optlen, int len)
{
	len = min_t(int, len, size);
	if (put_user(len, optlen) || copy_to_user(optval, from, len))
		return -EFAULT;
	return 0;
}

/* All members of the view; what does not fit is an error, not cut. */
static int sp_opt_view(const struct sp_sock *ss, char __user *optval,
		       int __user *optlen, int len)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sockaddr_spindle sa;
	struct sp_event *ev;
	int need, ret = 0;
	u32 i;

	ev = g && sp_group_state(g) != SP_VIEW_FORMING ? sp_event_view(g) : NULL;
	if (!ev)
		return -ENOTCONN;
	need = ev->view.nmembers * sizeof(sa);
	if (put_user(need, optlen))
		ret = -EFAULT;
	else if (len < need)
		ret = -ERANGE;
	for (i = 0; !ret && i < ev->view.nmembers; i++) {
		sp_sockaddr_give(&ev->view.members[i].addr, g->node->scope_id,
				 i, &sa);
		if (copy_to_user(optval + i * sizeof(sa), &sa, sizeof(sa)))
			ret = -EFAULT;
	}
	sp_event_put(ev);
	return ret;
}

/* The event that the header given in asks for; what does not fit is an error. */
static int sp_opt_event(const struct sp_sock *ss, char __user *optval,
			int __user *optlen, int len)
{
	struct sp_group *g = sp_sock_group(ss);
	struct spindle_event *e, want;
	struct sp_event *ev;
	int need, ret = 0;

	if (len < sizeof(want))
		return -EINVAL;
	/* The rest is output alone. */
	if (copy_from_user(&want, optval, offsetofend(struct spindle_event, number)))
		return -EFAULT;
	if (!g || sp_group_state(g) == SP_VIEW_FORMING)
		return -ENOTCONN;
	ev = sp_event_find(g, want.type, want.number);
	if (!ev)
		return -ENOENT;
	need = sp_event_size(ev);
	e = kvmalloc(need, GFP_KERNEL_ACCOUNT);
	if (!e) {
		ret = -ENOMEM;
		goto out;
	}
	sp_event_give(ev, g, &ss->local, e);
	if (put_user(need, optlen))
		ret = -EFAULT;
	else if (len < need)
		ret = -ERANGE;
	else if (copy_to_user(optval, e, need))
		ret = -EFAULT;
	kvfree(e);
out:
	sp_event_put(ev);
	return ret;
}

/**
 * sp_getsockopt() - get an option
 * @sock: the socket
 * @level: SOL_SPINDLE
 * @optname: SPINDLE_*
 * @optval: where its value goes
 * @optlen: bytes there; the length given back
 *
 * Return: 0 or a negative errno, see spindle(7).
 */
int sp_getsockopt(struct socket *sock, int level, int optname,
		  char __user *optval, int __user *optlen)
{
	const struct sp_sock *ss = sp_sk(sock->sk);
	struct spindle_group_info info;
	struct spindle_stable stable;
	struct spindle_rings rings;
	int value, len, ret;

	if (level != SOL_SPINDLE)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	switch (optname) {
	case SPINDLE_GROUP_INFO:
		sp_opt_info(ss, &info);
		return sp_opt_give(&info, sizeof(info), optval, optlen, len);
	case SPINDLE_GROUP_VIEW:
		return sp_opt_view(ss, optval, optlen, len);
	case SPINDLE_EVENT:
		return sp_opt_event(ss, optval, optlen, len);
	case SPINDLE_STABLE:
		if (!sp_sock_group(ss))
			return -ENOTCONN;
		sp_stable_get(ss, &stable);
		return sp_opt_give(&stable, sizeof(stable), optval, optlen, len);
	case SPINDLE_EVENTS:
		value = READ_ONCE(ss->local.events);
		return sp_opt_give(&value, sizeof(value), optval, optlen, len);
	case SPINDLE_RECVINFO:
		value = READ_ONCE(ss->recvinfo);
		return sp_opt_give(&value, sizeof(value), optval, optlen, len);
	case SPINDLE_MAP:
	case SPINDLE_RINGS:
		ret = sp_rings_info(ss, &rings);
		value = rings.flags;
		if (optname == SPINDLE_MAP)
			return sp_opt_give(&value, sizeof(value), optval,
					   optlen, len);
		return ret ?: sp_opt_give(&rings, sizeof(rings), optval,
					  optlen, len);
	case SPINDLE_DETACHED:
		value = READ_ONCE(ss->local.queue.on);
		return sp_opt_give(&value, sizeof(value), optval, optlen, len);
	default:
		return -ENOPROTOOPT;
	}
}
