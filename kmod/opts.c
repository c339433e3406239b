// SPDX-License-Identifier: GPL-2.0
/* Socket options: making and joining groups, asking about them. */
#include <linux/ctype.h>
#include <linux/log2.h>
#include <linux/memcontrol.h>
#include <linux/sysctl.h>
#include <linux/uidgid.h>
#include <net/netns/generic.h>

#include "af_spindle.h"
#include "key.h"
#include "rdmc.h"
#include "compat/compat.h"

#define SP_JOIN_SECONDS		10
#define SP_DEFAULT_WINDOW	(256U << 10)
#define SP_DEFAULT_MSG		(16U << 10)
#define SP_DEFAULT_DEPTH	1024U
#define SP_DEFAULT_MEMBERS	16U
#define SP_DEFAULT_OBJECT	(16U << 20)

/* Flags that make sense in one of the two only. */
#define SP_F_CREATE	(SPINDLE_F_ALL & ~(SPINDLE_F_STATE | SPINDLE_F_KEYED))
#define SP_F_JOIN	(SPINDLE_F_RECEIVER | SPINDLE_F_STATE)

/**
 * struct sp_net - what a network namespace has
 * @gid_range: groups whose members may create and join, lowest and highest;
 *	written by sysctl, read once at a time
 * @limits: how much groups may take
 * @sysctl: the table
 */
struct sp_net {
	int gid_range[2];
	struct sp_limits limits;
	struct ctl_table_header *sysctl;
};

static unsigned int sp_net_id;

/**
 * sp_limits_of() - how much groups of a network namespace may take
 * @net: the namespace
 *
 * Return: that.
 */
struct sp_limits *sp_limits_of(const struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);

	return &spn->limits;
}

/**
 * sp_may_join() - may the caller bind, make and join groups
 * @net: in this network namespace
 *
 * Return: true when it has CAP_NET_ADMIN there, or is in a group of gid_range.
 */
bool sp_may_join(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	struct group_info *groups = current_cred()->group_info;
	int low = READ_ONCE(spn->gid_range[0]);
	int high = READ_ONCE(spn->gid_range[1]);
	kgid_t klow, khigh;
	int i;

	if (ns_capable(net->user_ns, CAP_NET_ADMIN))
		return true;
	if (low > high)
		return false;
	klow = make_kgid(net->user_ns, low);
	khigh = make_kgid(net->user_ns, high);
	if (!gid_valid(klow) || !gid_valid(khigh))
		return false;
	if (gid_lte(klow, current_egid()) && gid_lte(current_egid(), khigh))
		return true;
	for (i = 0; i < groups->ngroups; i++)
		if (gid_lte(klow, groups->gid[i]) &&
		    gid_lte(groups->gid[i], khigh))
			return true;
	return false;
}

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
	    sp_range(cfg->senders, 1, cfg->members ?: SPINDLE_MAX_MEMBERS,
		     false) ||
	    /* A ring is mapped by pages. */
	    sp_range(cfg->window, max_t(u32, SPINDLE_MIN_WINDOW, PAGE_SIZE),
		     SPINDLE_MAX_WINDOW, true) ||
	    sp_range(cfg->max_msg, 1, cfg->window ?: SPINDLE_MAX_WINDOW,
		     false) ||
	    sp_range(cfg->depth, SPINDLE_MIN_DEPTH, SPINDLE_MAX_DEPTH, true) ||
	    sp_range(cfg->max_members, max(cfg->members, 1U),
		     SPINDLE_MAX_MEMBERS, false) ||
	    sp_range(cfg->suspect_ms, SPINDLE_MIN_SUSPECT, SPINDLE_MAX_SUSPECT,
		     false) ||
	    sp_range(cfg->max_object, 1, SPINDLE_MAX_OBJECT, false) ||
	    sp_range(cfg->block, max_t(u32, SPINDLE_MIN_BLOCK, PAGE_SIZE),
		     SPINDLE_MAX_BLOCK, true) ||
	    cfg->kind >= SPINDLE_ALGS)
		return -ERANGE;
	return 0;
}

/* What is wrong with an option by itself, whatever the socket's state. */
static int sp_opt_check(const char *name, u32 flags, u32 known,
			const __u32 *resv, size_t n)
{
	if (flags & ~known || memchr_inv(resv, 0, n * sizeof(*resv)))
		return -EINVAL;
	return sp_name_check(name);
}

/* What create and join have in common, before and after. */
static int sp_opt_begin(struct sp_sock *ss)
{
	if (!ss->node)
		return -EDESTADDRREQ;
	if (ss->group)
		return -EISCONN;
	if (ss->joining)
		return -EALREADY;
	if (!ss->local.memcg)
		ss->local.memcg = get_mem_cgroup_from_mm(current->mm);
	sp_payer_take(&ss->local.payer);
	return 0;
}

static u32 sp_member_flags(u32 flags, u32 rack)
{
	BUILD_BUG_ON(SP_MEMBER_RECEIVER != SPINDLE_F_RECEIVER);
	BUILD_BUG_ON(SP_MEMBER_STATE != SPINDLE_F_STATE);
	BUILD_BUG_ON(SP_MEMBER_RACK_MASK != SPINDLE_MAX_RACK);
	BUILD_BUG_ON(SP_SCHEDULE_HYBRID + 1 != (int)SPINDLE_ALG_HYBRID);
	return (flags & (SP_MEMBER_RECEIVER | SP_MEMBER_STATE)) |
	       rack << SP_MEMBER_RACK_SHIFT;
}

static void sp_sock_joined(struct sp_sock *ss)
{
	/* sp_sock_group() pairs with this. */
	smp_store_release(&ss->group, ss->local.group);
}

static void sp_config_take(struct sp_config *cfg,
			   const struct spindle_group_create *opt)
{
	cfg->members = opt->members;
	cfg->senders = opt->senders;
	cfg->window = opt->window ?: SP_DEFAULT_WINDOW;
	cfg->max_msg = opt->max_msg ?: min(cfg->window, SP_DEFAULT_MSG);
	cfg->depth = opt->depth ?: SP_DEFAULT_DEPTH;
	cfg->max_members = opt->max_members ?: max(opt->members,
						   SP_DEFAULT_MEMBERS);
	cfg->suspect_ms = opt->suspect_ms ?: READ_ONCE(sp_suspect_ms);
	cfg->evict_ms = opt->evict_ms;
	cfg->max_object = opt->max_object ?: SP_DEFAULT_OBJECT;
	cfg->block = opt->block;
	cfg->kind = opt->algorithm;
	if (opt->flags & SPINDLE_F_MINORITY)
		cfg->flags |= SP_CONFIG_MINORITY;
	if (!(opt->flags & SPINDLE_F_PLAIN))
		return;
	cfg->flags |= SP_CONFIG_PLAIN;
	cfg->senders = 1;
	cfg->max_members = cfg->members;
}

static int sp_opt_create(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	struct spindle_group_create opt;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_config cfg = {};
	int ret;

	ret = sp_opt_take(&opt, sizeof(opt), sizeof(opt), optval, optlen);
	if (!ret)
		ret = sp_opt_check(opt.name, opt.flags, SP_F_CREATE, opt.__resv,
				   ARRAY_SIZE(opt.__resv));
	if (ret)
		return ret;
	if (!opt.members || opt.rack > SPINDLE_MAX_RACK)
		return -ERANGE;
	if ((opt.flags & SPINDLE_F_PLAIN) &&
	    (opt.senders > 1 || (opt.flags & SPINDLE_F_MINORITY)))
		return -EINVAL;
	sp_config_take(&cfg, &opt);
	ret = sp_config_check(&cfg);
	if (ret)
		return ret;
	/* Somebody must send. */
	if (opt.members == 1 && (opt.flags & SPINDLE_F_RECEIVER))
		return -EINVAL;

	lock_sock(sk);
	ret = sp_opt_begin(ss);
	if (!ret) {
		ss->local.flags = sp_member_flags(opt.flags, opt.rack);
		if (ss->local.key)
			cfg.flags |= SP_CONFIG_KEYED;
		mutex_lock(&sp_ctl);
		ret = sp_member_create(ss->node, opt.name, &cfg, &ss->local);
		mutex_unlock(&sp_ctl);
	}
	if (!ret)
		sp_sock_joined(ss);
	release_sock(sk);
	return ret;
}

static int sp_opt_join(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	struct spindle_group_join opt;
	struct sp_sock *ss = sp_sk(sk);
	struct sp_config cfg = {};
	struct sp_addr contact;
	u32 scope_id;
	long timeo;
	int ret;

	ret = sp_opt_take(&opt, sizeof(opt), sizeof(opt), optval, optlen);
	if (!ret)
		ret = sp_opt_check(opt.name, opt.flags, SP_F_JOIN, opt.__resv,
				   ARRAY_SIZE(opt.__resv));
	if (!ret)
		ret = sp_sockaddr_take((struct sockaddr *)opt.contact,
				       sizeof(opt.contact), &contact,
				       &scope_id);
	if (ret)
		return ret == -EADDRNOTAVAIL ? -EINVAL : ret;
	cfg.members = opt.members;
	cfg.senders = opt.senders;
	cfg.window = opt.window;
	cfg.max_msg = opt.max_msg;
	cfg.depth = opt.depth;
	ret = opt.rack > SPINDLE_MAX_RACK ? -ERANGE : sp_config_check(&cfg);
	if (ret)
		return ret;

	lock_sock(sk);
	ret = sp_opt_begin(ss);
	timeo = sock_sndtimeo(sk, false);
	if (timeo == MAX_SCHEDULE_TIMEOUT)
		timeo = SP_JOIN_SECONDS * HZ;
	if (ret)
		goto out;
	/* Nobody else's call on this socket waits for the answer. */
	ss->local.flags = sp_member_flags(opt.flags, opt.rack);
	ss->joining = true;
	release_sock(sk);
	ret = sp_member_join(ss->node, opt.name, &contact, &cfg, &ss->local,
			     timeo);
	lock_sock(sk);
	ss->joining = false;
	if (!ret)
		sp_sock_joined(ss);
out:
	release_sock(sk);
	return ret;
}

/* SPINDLE_GROUP_LEAVE: it is in the group no more, but reads what is left. */
static int sp_opt_leave(struct sp_sock *ss)
{
	struct sp_group *g = sp_sock_group(ss);
	int ret;

	if (!g)
		return -ENOTCONN;
	mutex_lock(&sp_ctl);
	ret = sp_group_leave(g, &ss->local, SP_LEFT);
	mutex_unlock(&sp_ctl);
	if (ret)
		return ret;
	sp_group_moved(g);
	/* Who waits for room to send waits no longer. */
	ss->sk.sk_state_change(&ss->sk);
	return 0;
}

static int sp_opt_events(struct sp_sock *ss, u32 events)
{
	struct sp_local *local = &ss->local;
	struct sp_group *g;
	bool moved = false;

	if (events & ~SPINDLE_WANT_ALL)
		return -EINVAL;
	/* No reader is in the middle of one. */
	if (mutex_lock_interruptible(&ss->rx_lock))
		return -EINTR;
	mutex_lock(&local->queue.lock);
	g = sp_sock_group(ss);
	/* What it has come by is over, and what was in its way until now. */
	if (g && !sp_rings_mapped(local, SPINDLE_MAP_RX))
		moved = sp_rx_skip(g, local);
	WRITE_ONCE(local->events, events);
	sp_detach_sift(local);
	mutex_unlock(&local->queue.lock);
	mutex_unlock(&ss->rx_lock);
	if (moved)
		sp_group_moved(g);
	if (g)
		sp_rx_pass(g, local);
	return 0;
}

/* Descriptors of an own lane that were delivered here, and so came everywhere. */
static u64 sp_sync_received(const struct sp_group *g,
			    const struct sp_lane_tx *lane)
{
	const struct sp_slot_lane *sl = container_of(lane, struct sp_slot_lane,
						     tx);

	return READ_ONCE(g->core.order.lanes[sl->slot].taken);
}

/* 0 when it has come so far, -EAGAIN, or why it never will. */
static int sp_sync_ready(struct sp_sock *ss, struct sp_group *g, int what,
			 u64 count)
{
	const struct sp_lane_tx *lane = sp_local_lane(&ss->local);
	enum sp_view_state state = sp_group_state(g);
	int error = READ_ONCE(ss->local.error);
	bool out = sp_local_out(&ss->local);
	u64 now;

	now = what == SPINDLE_SYNC_RECEIVED ? sp_sync_received(g, lane) :
		READ_ONCE(lane->tx.freed);
	if (now >= count)
		return 0;
	if (error)
		return error;
	if (state == SP_VIEW_FAILED)
		return g->error;
	/* Nobody says any more who has read. */
	return out || READ_ONCE(g->ending) ? -ECONNABORTED : -EAGAIN;
}

/* Objects that have memory of the program. */
static int sp_sync_pinned(const struct sp_sock *ss)
{
	/* Pairs with the release in sp_tx_pin(). */
	const struct sp_pins *pins = smp_load_acquire(&ss->pins);

	return pins ? atomic_read(&pins->objects) : 0;
}

/* SPINDLE_SYNC_UNPINNED, also of a member that is none any more. */
static int sp_opt_unpinned(struct sp_sock *ss)
{
	/* Likewise. */
	struct sp_pins *pins = smp_load_acquire(&ss->pins);
	long timeo = sock_sndtimeo(&ss->sk, false);
	long left;

	if (!pins)
		return 0;
	left = wait_event_interruptible_timeout(pins->wait,
						!sp_sync_pinned(ss), timeo);
	if (left < 0)
		return sock_intr_errno(timeo);
	return left ? 0 : -EAGAIN;
}

/* SPINDLE_SYNC: wait until what was sent has come so far. */
static int sp_opt_sync(struct sp_sock *ss, int what)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sp_lane_tx *lane;
	long timeo;
	u64 count;

	if (what == SPINDLE_SYNC_UNPINNED)
		return sp_opt_unpinned(ss);
	if (what != SPINDLE_SYNC_RECEIVED && what != SPINDLE_SYNC_DELIVERED)
		return -EINVAL;
	if (!g)
		return -ENOTCONN;
	lane = sp_local_lane(&ss->local);
	if (!lane)
		return 0;
	spin_lock(&lane->lock);
	sp_rings_collect(g, lane);
	count = lane->tx.now.count;
	spin_unlock(&lane->lock);
	sp_group_sent(g);
	timeo = sock_sndtimeo(&ss->sk, false);
	return sp_wait(&ss->sk, timeo, sp_sync_ready(ss, g, what, count));
}

/* SPINDLE_KEY: the secret that the member brings, or none. */
static int sp_opt_key(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	char description[SPINDLE_KEY_LEN] = {};
	struct sp_key *key = NULL, *old = NULL;
	struct sp_sock *ss = sp_sk(sk);
	int ret = 0;

	if (optlen > sizeof(description))
		return -EINVAL;
	if (copy_from_sockptr(description, optval, optlen))
		return -EFAULT;
	if (strnlen(description, sizeof(description)) == sizeof(description))
		return -EINVAL;
	if (description[0])
		key = sp_key_find(description);
	if (IS_ERR(key))
		return PTR_ERR(key);
	lock_sock(sk);
	if (ss->group) {
		ret = -EISCONN;
	} else if (ss->joining) {
		ret = -EALREADY;
	} else {
		old = ss->local.key;
		ss->local.key = key;
	}
	release_sock(sk);
	sp_key_put(ret ? key : old);
	return ret;
}

static int sp_opt_set_int(struct sp_sock *ss, int optname, int value)
{
	switch (optname) {
	case SPINDLE_RECVINFO:
		WRITE_ONCE(ss->recvinfo, !!value);
		return 0;
	case SPINDLE_MAP:
		return sp_rings_map(ss, value);
	case SPINDLE_DETACHED:
		return sp_detach_set(&ss->sk, value);
	case SPINDLE_GROUP_LEAVE:
		return value ? -EINVAL : sp_opt_leave(ss);
	case SPINDLE_EVENTS:
		return sp_opt_events(ss, value);
	case SPINDLE_SYNC:
		return sp_opt_sync(ss, value);
	default:
		return -ENOPROTOOPT;
	}
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
			sp_opt_join(sk, optval, optlen);
	case SPINDLE_KEY:
		if (!sp_may_join(sock_net(sk)))
			return -EPERM;
		return sp_opt_key(sk, optval, optlen);
	case SPINDLE_RECVINFO:
	case SPINDLE_MAP:
	case SPINDLE_DETACHED:
	case SPINDLE_GROUP_LEAVE:
	case SPINDLE_EVENTS:
	case SPINDLE_SYNC:
		if (optlen < sizeof(value))
			return -EINVAL;
		if (copy_from_sockptr(&value, optval, sizeof(value)))
			return -EFAULT;
		return sp_opt_set_int(sp_sk(sk), optname, value);
	default:
		return -ENOPROTOOPT;
	}
}

/**
 * sp_local_uapi_state() - the state of its group as a member knows it
 * @g: the group
 * @local: the member
 * @error: what the group has failed with for it, a positive errno, or 0
 *
 * For who is in no view any more it has come to its end, whatever becomes of it.
 *
 * Return: SPINDLE_STATE_*.
 */
u32 sp_local_uapi_state(const struct sp_group *g, const struct sp_local *local,
			int *error)
{
	enum sp_view_state state = sp_group_state(g);

	*error = -READ_ONCE(local->error);
	if (*error)
		return SPINDLE_STATE_FAILED;
	if (sp_local_out(local))
		return SPINDLE_STATE_CLOSED;
	switch (state) {
	case SP_VIEW_FORMING:
		return SPINDLE_STATE_FORMING;
	case SP_VIEW_ACTIVE:
		return SPINDLE_STATE_ACTIVE;
	case SP_VIEW_CLOSED:
		return SPINDLE_STATE_CLOSED;
	case SP_VIEW_FAILED:
		break;
	}
	*error = -g->error;
	return SPINDLE_STATE_FAILED;
}

static void sp_opt_info(const struct sp_sock *ss,
			struct spindle_group_info *info)
{
	struct sp_group *g = sp_sock_group(ss);
	const struct sp_local *local = &ss->local;
	struct sp_record *r;

	memset(info, 0, sizeof(*info));
	info->rank = ~0U;
	if (!g)
		return;
	strscpy(info->name, g->name, sizeof(info->name));
	info->state = sp_local_uapi_state(g, local, &info->error);
	info->members = g->config.members;
	info->senders = g->config.senders;
	r = sp_record_view(g);
	if (r) {
		info->view = r->id;
		info->members = r->view->nmembers;
		info->senders = r->view->nlanes;
		info->nodes = r->view->nnodes;
		info->rank = READ_ONCE(local->rank);
		sp_record_put(r);
	}
	info->window = g->config.window;
	info->max_msg = g->config.max_msg;
	info->depth = g->config.depth;
	info->sent = READ_ONCE(ss->sent);
	info->received = READ_ONCE(ss->received);
	info->max_members = g->config.max_members;
	info->suspect_ms = g->config.suspect_ms;
	info->evict_ms = g->config.evict_ms;
	info->max_object = g->config.max_object;
	info->flags = local->flags & SPINDLE_F_ALL;
	if (g->config.flags & SP_CONFIG_MINORITY)
		info->flags |= SPINDLE_F_MINORITY;
	if (g->config.flags & SP_CONFIG_PLAIN)
		info->flags |= SPINDLE_F_PLAIN;
	if (g->config.flags & SP_CONFIG_KEYED)
		info->flags |= SPINDLE_F_KEYED;
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
	struct sp_record *r = g ? sp_record_view(g) : NULL;
	struct sockaddr_spindle sa;
	int ret = -EFAULT;
	int need;
	u32 i;

	if (!r)
		return -ENOTCONN;
	need = r->view->nmembers * sizeof(sa);
	if (put_user(need, optlen))
		goto out;
	if (len < need) {
		ret = -ERANGE;
		goto out;
	}
	for (i = 0; i < r->view->nmembers; i++) {
		sp_sockaddr_give(&r->view->members[i].addr, g->node->scope_id,
				 i, &sa);
		if (copy_to_user(optval + i * sizeof(sa), &sa, sizeof(sa)))
			goto out;
	}
	ret = 0;
out:
	sp_record_put(r);
	return ret;
}

/* The view at the place where a member reads, or where it began to map. */
static struct sp_record *sp_opt_reading(struct sp_sock *ss)
{
	struct sp_record *r;

	if (mutex_lock_interruptible(&ss->rx_lock))
		return ERR_PTR(-EINTR);
	mutex_lock(&ss->local.queue.lock);
	r = ss->local.record;
	if (r)
		kref_get(&r->ref);
	mutex_unlock(&ss->local.queue.lock);
	mutex_unlock(&ss->rx_lock);
	return r;
}

/* SPINDLE_EVENT: by the number that the caller has put where it goes. */
static int sp_opt_event(struct sp_sock *ss, char __user *optval,
			int __user *optlen, int len)
{
	struct sp_group *g = sp_sock_group(ss);
	struct spindle_event *event;
	struct sp_record *r;
	u32 number;
	size_t size;
	int ret;

	if (!g)
		return -ENOTCONN;
	if (len < (int)offsetofend(struct spindle_event, number))
		return -EINVAL;
	if (copy_from_user(&number,
			   optval + offsetof(struct spindle_event, number),
			   sizeof(number)))
		return -EFAULT;
	r = number ? sp_record_find(g, number) : sp_opt_reading(ss);
	if (IS_ERR_OR_NULL(r))
		return r ? PTR_ERR(r) : -ENOENT;
	size = sp_event_size(r);
	event = kzalloc(size, GFP_KERNEL);
	if (event) {
		sp_event_fill(&ss->local, r, event);
		ret = sp_opt_give(event, size, optval, optlen, len);
		kfree(event);
	} else {
		ret = -ENOMEM;
	}
	sp_record_put(r);
	return ret;
}

static int sp_opt_stability(const struct sp_sock *ss,
			    struct spindle_stability *s)
{
	struct sp_group *g = sp_sock_group(ss);
	struct sp_lane_tx *lane;
	struct sp_record *r;

	memset(s, 0, sizeof(*s));
	if (!g)
		return -ENOTCONN;
	r = sp_record_view(g);
	if (r)
		s->view = r->id;
	sp_record_put(r);
	s->pinned = sp_sync_pinned(ss);
	lane = sp_local_lane(&ss->local);
	if (!lane)
		return 0;
	/* The end of what it sends has a descriptor, too, and is no message. */
	spin_lock(&lane->lock);
	s->sent = lane->tx.messages;
	s->delivered = min(lane->tx.freed, s->sent);
	spin_unlock(&lane->lock);
	s->received = min(sp_sync_received(g, lane), s->sent);
	return 0;
}

/* SPINDLE_EXPLAIN: how a message would be sent, and why. */
static int sp_opt_explain(const struct sp_sock *ss, char __user *optval,
			  int __user *optlen, int len)
{
	struct sp_group *g = sp_sock_group(ss);
	struct spindle_explain e;
	struct sp_schedule sched;
	struct sp_choice choice;
	int ret;

	if (!g)
		return -ENOTCONN;
	ret = sp_opt_take(&e, sizeof(e), sizeof(e), USER_SOCKPTR(optval), len);
	if (ret)
		return ret;
	if (memchr_inv(e.__resv, 0, sizeof(e.__resv)) ||
	    e.how.algorithm >= SPINDLE_ALGS ||
	    (e.how.flags & ~SPINDLE_OBJECT_ALL))
		return -EINVAL;
	if (e.len > max(g->config.max_msg, g->config.max_object))
		return -EMSGSIZE;
	sp_objects_choose(g, e.len, e.how.algorithm,
			  e.len && (e.how.flags & SPINDLE_OBJECT_ALWAYS),
			  &choice);
	e.object = choice.object;
	e.nodes = READ_ONCE(g->view.nnodes);
	e.racks = READ_ONCE(g->racks);
	strscpy_pad(e.why, choice.why, sizeof(e.why));
	if (choice.object) {
		e.algorithm = choice.kind + 1;
		e.block = choice.block;
		e.blocks = DIV_ROUND_UP(e.len, choice.block);
		/* Of the hybrid only who knows the racks' sizes knows it. */
		if (e.nodes > 1 && choice.kind != SP_SCHEDULE_HYBRID &&
		    !sp_schedule_init(&sched, choice.kind, e.nodes, 0, e.blocks,
				      NULL))
			e.steps = sp_schedule_steps(&sched);
	}
	return sp_opt_give(&e, sizeof(e), optval, optlen, len);
}

static int sp_opt_object_fd(struct sp_sock *ss, char __user *optval,
			    int __user *optlen, int len)
{
	struct spindle_object_fd e;
	struct file *file;
	int ret;

	if (len < (int)sizeof(e))
		return -EINVAL;
	if (copy_from_user(&e, optval, sizeof(e)))
		return -EFAULT;
	file = sp_rx_export(ss, &e);
	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = get_unused_fd_flags(O_CLOEXEC);
	if (ret < 0)
		goto err_file;
	e.fd = ret;
	ret = sp_opt_give(&e, sizeof(e), optval, optlen, len);
	if (ret)
		goto err_fd;
	fd_install(e.fd, file);
	return 0;

err_fd:
	put_unused_fd(e.fd);
err_file:
	fput(file);
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
	struct sp_sock *ss = sp_sk(sock->sk);
	struct spindle_stability stability;
	struct spindle_object_read read;
	struct spindle_group_info info;
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
	case SPINDLE_EXPLAIN:
		return sp_opt_explain(ss, optval, optlen, len);
	case SPINDLE_OBJECT:
		if (len < (int)sizeof(read))
			return -EINVAL;
		if (copy_from_user(&read, optval, sizeof(read)))
			return -EFAULT;
		ret = sp_rx_read_object(ss, &read);
		return ret ?: sp_opt_give(&read, sizeof(read), optval, optlen,
					  len);
	case SPINDLE_OBJECT_FD:
		return sp_opt_object_fd(ss, optval, optlen, len);
	case SPINDLE_STABILITY:
		ret = sp_opt_stability(ss, &stability);
		return ret ?: sp_opt_give(&stability, sizeof(stability), optval,
					  optlen, len);
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

/* Limits of the first namespace bound those of the others: sp_net_init(). */
#define SP_SYSCTL_LIMIT(_name)				\
	{						\
		.procname = #_name,			\
		.maxlen = sizeof(unsigned long),	\
		.mode = 0644,				\
		.proc_handler = proc_doulongvec_minmax,	\
	}

/* What is counted, to be read only. */
#define SP_SYSCTL_USED(_name)				\
	{						\
		.procname = #_name,			\
		.maxlen = sizeof(unsigned long),	\
		.mode = 0444,				\
		.proc_handler = proc_doulongvec_minmax,	\
	}

static const struct ctl_table sp_sysctl_table[] = {
	{
		.procname = "gid_range",
		.maxlen = 2 * sizeof(int),
		.mode = 0644,
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
	},
	SP_SYSCTL_LIMIT(max_groups),
	SP_SYSCTL_LIMIT(max_memory),
	SP_SYSCTL_LIMIT(max_group_memory),
	SP_SYSCTL_USED(groups),
	SP_SYSCTL_USED(memory),
	{ }
};

/* In the order of the table. */
static void sp_sysctl_data(struct ctl_table *table, struct sp_net *spn)
{
	struct sp_limits *first = sp_limits_of(&init_net);
	struct sp_limits *l = &spn->limits;

	table[0].data = spn->gid_range;
	table[1].data = &l->max_groups;
	table[2].data = &l->max_memory;
	table[3].data = &l->max_group_memory;
	table[4].data = &l->groups;
	table[5].data = &l->memory;
	if (l == first)
		return;
	table[1].extra2 = &first->max_groups;
	table[2].extra2 = &first->max_memory;
	table[3].extra2 = &first->max_group_memory;
}

static int __net_init sp_net_init(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	struct ctl_table *table;

	/* Nobody but who has CAP_NET_ADMIN. */
	spn->gid_range[0] = 1;
	spn->gid_range[1] = 0;
	sp_limits_begin(net);
	table = kmemdup(sp_sysctl_table, sizeof(sp_sysctl_table), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	sp_sysctl_data(table, spn);
	spn->sysctl = register_net_sysctl_sz(net, "net/spindle", table,
					     ARRAY_SIZE(sp_sysctl_table) - 1);
	if (!spn->sysctl) {
		kfree(table);
		return -ENOMEM;
	}
	return 0;
}

static void __net_exit sp_net_exit(struct net *net)
{
	struct sp_net *spn = net_generic(net, sp_net_id);
	const struct ctl_table *table = spn->sysctl->ctl_table_arg;

	unregister_net_sysctl_table(spn->sysctl);
	kfree(table);
}

static struct pernet_operations sp_net_ops = {
	.init = sp_net_init,
	.exit = sp_net_exit,
	.id = &sp_net_id,
	.size = sizeof(struct sp_net),
};

/**
 * sp_opts_init() - prepare the network namespaces
 *
 * Return: 0 or a negative errno.
 */
int sp_opts_init(void)
{
	return register_pernet_subsys(&sp_net_ops);
}

/**
 * sp_opts_exit() - undo sp_opts_init()
 */
void sp_opts_exit(void)
{
	unregister_pernet_subsys(&sp_net_ops);
}

#ifdef SPINDLE_KUNIT
#include "tests/opts_test.c"
#endif
