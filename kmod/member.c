// SPDX-License-Identifier: GPL-2.0
/*
 * Coming to a group. The first view: programs ask to join, the node that
 * created the group takes them in, and when all are there tells everybody who
 * they are. From then on any node with a member puts forward who asks it, and
 * all old members welcome who comes with the next view.
 *
 * All under sp_ctl.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "engine.h"
#include "group.h"
#include "key.h"
#include "rdmc.h"
#include "observe/observe.h"

#define SP_JOIN_HOPS	3	/* contacts that send us on to another */
#define SP_JOIN_ASKED	256	/* proofs that a contact asks for */
#define SP_EARLY_MAX	4096	/* keys kept for views that are not known yet */
#define SP_EARLY_PEER	64	/* of these, from one peer */

static int sp_member_ask(struct sp_group *g, const struct sp_addr *addr,
			 u64 cookie, u32 flags);
static void sp_member_unask(struct sp_group *g, const struct sp_addr *addr,
			    u64 cookie);

/* Keys that came before their view. */
struct sp_early {
	struct list_head list;
	struct sp_addr from;
	struct sp_link *link;
	struct sp_msg_keys *keys;
};

static bool sp_config_meets(const struct sp_config *has,
			    const struct sp_config *want)
{
	return (!want->members || want->members == has->members) &&
	       (!want->senders || want->senders == has->senders) &&
	       (!want->window || want->window == has->window) &&
	       (!want->max_msg || want->max_msg == has->max_msg) &&
	       (!want->depth || want->depth == has->depth);
}

/* A configuration that came by the network. */
static bool sp_config_ok(const struct sp_config *cfg)
{
	return cfg->members >= 1 && cfg->members <= cfg->max_members &&
	       cfg->max_members <= SPINDLE_MAX_MEMBERS &&
	       cfg->senders <= cfg->max_members &&
	       cfg->suspect_ms >= SPINDLE_MIN_SUSPECT &&
	       cfg->suspect_ms <= SPINDLE_MAX_SUSPECT &&
	       is_power_of_2(cfg->window) &&
	       cfg->window >= SPINDLE_MIN_WINDOW && cfg->window >= PAGE_SIZE &&
	       cfg->window <= SPINDLE_MAX_WINDOW &&
	       cfg->max_msg >= 1 && cfg->max_msg <= cfg->window &&
	       is_power_of_2(cfg->depth) && cfg->depth >= SPINDLE_MIN_DEPTH &&
	       cfg->depth <= SPINDLE_MAX_DEPTH &&
	       cfg->max_object <= SPINDLE_MAX_OBJECT &&
	       cfg->kind < SPINDLE_ALGS &&
	       (!cfg->block ||
		(is_power_of_2(cfg->block) && cfg->block >= PAGE_SIZE &&
		 cfg->block <= SPINDLE_MAX_BLOCK));
}

/* Where a member's lane enters the view. Under the engine's lock. */
static void sp_member_point(const struct sp_group *g, const struct sp_member *m,
			    struct sp_wire_member *to)
{
	struct sp_point at = {};

	if (m->lane >= 0 && g->view.id > 1)
		sp_lane_point(sp_order_lane(&g->core.order, m->lane),
			      g->core.order.depth, &at);
	to->addr = m->addr;
	to->cookie = m->cookie;
	to->flags = m->flags;
	to->uid = m->uid;
	to->lane = m->lane;
	to->nr = m->nr;
	to->round = at.round;
	to->count = at.count;
	to->tail = at.tail;
}

/* Tell a node who the members are, and where the view begins. */
static void sp_member_tell(struct sp_group *g, struct sp_link *link)
{
	struct sp_engine *engine = g->node->sdev->engine;
	const struct sp_view *v = &g->view;
	struct sp_msg_view *msg;
	u32 first, i;

	msg = kzalloc(SP_MSG_MAX, GFP_KERNEL);
	for (first = 0; msg && first < v->nmembers; first += msg->count) {
		msg->gid = g->gid;
		msg->view = v->id;
		msg->start = g->core.order.start;
		msg->next_uid = v->next_uid;
		msg->total = v->nmembers;
		msg->first = first;
		msg->count = min_t(u32, v->nmembers - first, SP_VIEW_CHUNK);
		mutex_lock(&engine->lock);
		for (i = 0; i < msg->count; i++)
			sp_member_point(g, &v->members[first + i],
					&msg->members[i]);
		mutex_unlock(&engine->lock);
		if (sp_link_say(link, &msg->hdr, SP_MSG_VIEW,
				struct_size(msg, members, msg->count)))
			break;
	}
	if (!msg || first < v->nmembers)
		sp_link_set_state(link, SP_LINK_DOWN, -ENOMEM);
	kfree(msg);
}

/**
 * sp_member_welcome() - tell a node of the view that took it in
 * @pn: the node, its link up. Nothing was delivered in the view yet, for
 *	nothing can be before this node has received it
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_member_welcome(struct sp_peer_node *pn)
{
	lockdep_assert_held(&sp_ctl);
	/* Once more on the next link, if this one fails before it is open. */
	sp_member_tell(pn->g, pn->user.link);
}

static struct sp_joiner *sp_joiner_untold(struct sp_group *g)
{
	struct sp_joiner *j;

	list_for_each_entry(j, &g->joiners, list)
		if (!j->told)
			return j;
	return NULL;
}

/* All members are there: fix the view and tell everybody. */
static void sp_member_complete(struct sp_group *g)
{
	struct sp_joiner *j;
	int ret;

	if (!sp_view_complete(&g->view) || g->view.state != SP_VIEW_FORMING)
		return;
	ret = sp_view_rank(&g->view, 1);
	if (ret) {
		sp_group_fail(g, ret);
		return;
	}
	/* A link that breaks meanwhile takes joiners off the list. */
	while ((j = sp_joiner_untold(g))) {
		j->told = true;
		sp_member_tell(g, j->user.link);
	}
	if (g->view.state == SP_VIEW_FORMING)
		sp_change_first(g);
}

/**
 * sp_member_create() - make a group whose first member is here
 * @node: the node
 * @name: its name, checked
 * @config: its configuration, checked
 * @local: the member
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0, then @local is in the group; -EEXIST; -ENODEV; or as
 * sp_group_alloc().
 */
int sp_member_create(struct sp_node *node, const char *name,
		     const struct sp_config *config, struct sp_local *local)
{
	struct sp_group *g;
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (node->dying || node->sdev->dead)
		return -ENODEV;
	if (sp_group_find(node, name))
		return -EEXIST;
	g = sp_group_alloc(node, name, get_random_u64(), config, &local->payer,
			   local->key);
	if (IS_ERR(g))
		return PTR_ERR(g);
	g->forms = true;
	g->coordinator = node->addr;
	ret = sp_view_add(&g->view, &node->addr, local->cookie, local->flags);
	sp_group_attach(g, local);
	local->group = g;
	if (ret) {
		/* Nobody knows of it yet. */
		sp_group_detach(g, local);
		local->group = NULL;
		return ret;
	}
	sp_member_complete(g);
	return 0;
}

static void sp_join_done(struct sp_join *j, int result)
{
	if (j->g && result && !j->g->ending && j->g->ready)
		sp_member_unask(j->g, &j->node->addr, j->local->cookie);
	j->g = NULL;
	list_del_init(&j->on_node);
	sp_link_unuse(&j->user);
	j->result = result;
	complete(&j->done);
}

static void sp_join_msg(const struct sp_join *j, struct sp_msg_join *msg)
{
	memset(msg, 0, sizeof(*msg));
	msg->cookie = j->local->cookie;
	msg->config = j->config;
	msg->flags = j->local->flags;
	msg->keyed = j->local->key ? SP_JOIN_KEYED : SP_JOIN_PLAIN;
	strscpy(msg->name, j->name, sizeof(msg->name));
}

static void sp_join_up(struct sp_link_user *user)
{
	struct sp_join *j = container_of(user, struct sp_join, user);
	struct sp_msg_join msg;

	memset(&j->proof, 0, sizeof(j->proof));
	sp_join_msg(j, &msg);
	if (sp_link_say(user->link, &msg.hdr, SP_MSG_JOIN, sizeof(msg)))
		sp_join_done(j, -ENOMEM);
}

static void sp_join_down(struct sp_link_user *user, int error)
{
	struct sp_join *j = container_of(user, struct sp_join, user);
	struct sp_addr peer = user->link->peer;
	bool retry = user->told && !j->again && error != -ENODEV;

	sp_link_unuse(user);
	/* A link that was left over from before says nothing of the peer now. */
	if (retry) {
		j->again = true;
		error = sp_link_use(j->node, &peer, user);
		if (!error)
			return;
	}
	switch (error) {
	case -EAGAIN:
		error = -ECONNREFUSED;
		break;
	case -ECONNREFUSED:
	case -EPROTO:
	case -ETIMEDOUT:
	case -ENOMEM:
	case -ENODEV:
		break;
	default:
		error = -EHOSTUNREACH;
	}
	sp_join_done(j, error);
}

/* Take in a member of this node, the node that forms the view. */
static int sp_join_here(struct sp_group *g, struct sp_join *j)
{
	int ret;

	if (g->view.state == SP_VIEW_FAILED)
		return -EHOSTDOWN;
	if (!sp_config_meets(&g->config, &j->config))
		return -EPROTOTYPE;
	ret = sp_view_add(&g->view, &g->node->addr, j->local->cookie,
			  j->local->flags);
	if (ret)
		return ret;
	sp_group_attach(g, j->local);
	j->local->group = g;
	sp_member_complete(g);
	return 0;
}

/* Has a group of this name been here that has not given all back yet? */
static bool sp_join_early(const struct sp_join *j)
{
	struct sp_group *g;

	list_for_each_entry(g, &j->node->groups, on_node)
		if (!g->gone && list_empty(&g->locals) &&
		    !strcmp(g->name, j->name))
			return true;
	/* With members who have not closed their sockets yet. */
	list_for_each_entry(g, &j->node->groups, on_node)
		if (!g->gone && g->ending && !strcmp(g->name, j->name))
			return true;
	return false;
}

/*
 * Ask @j->contact, or whoever is known to form the view; or put the join
 * forward here when this node is in the group. A join that has to wait for
 * something on this node is tried again by sp_member_settle().
 */
static int sp_join_ask(struct sp_join *j)
{
	const struct sp_addr *contact = &j->contact;
	struct sp_group *g;

	if (sp_join_early(j))
		return 0;
	g = sp_group_find(j->node, j->name);
	/* This node knows the secret; that does not help its other programs. */
	if (g && sp_key_match(g->key, j->local->key))
		return sp_key_match(g->key, j->local->key);
	if (g && g->view.state == SP_VIEW_ACTIVE) {
		if (!sp_config_meets(&g->config, &j->config))
			return -EPROTOTYPE;
		j->g = g;
		return sp_member_ask(g, &j->node->addr, j->local->cookie,
				     j->local->flags);
	}
	if (g && g->view.state != SP_VIEW_FORMING)
		return -EHOSTDOWN;
	if (g && (g->live || g->view.id))
		return 0;
	if (g && g->forms) {
		int ret = sp_join_here(g, j);

		if (!ret)
			sp_join_done(j, 0);
		return ret;
	}
	if (g)
		contact = &g->coordinator;
	if (!sp_addr_cmp(contact, &j->node->addr))
		return -ENOENT;
	return sp_link_use(j->node, contact, &j->user);
}

/**
 * sp_member_join() - become a member of a group, and wait for the answer
 * @node: the node
 * @name: the group's name, checked
 * @contact: a node that has a member
 * @config: what is expected of the group, 0 for anything
 * @local: the member
 * @timeout: jiffies to wait
 *
 * Context: without sp_ctl, may sleep, interruptible.
 *
 * Return: 0, then @local is in the group; or a negative errno, see spindle(7).
 */
int sp_member_join(struct sp_node *node, const char *name,
		   const struct sp_addr *contact,
		   const struct sp_config *config, struct sp_local *local,
		   long timeout)
{
	struct sp_join j = {
		.node = node,
		.user = { .up = sp_join_up, .down = sp_join_down },
		.config = *config,
		.local = local,
		.contact = *contact,
	};
	long left = 0;
	int ret;

	strscpy(j.name, name, sizeof(j.name));
	INIT_LIST_HEAD(&j.on_node);
	INIT_LIST_HEAD(&j.user.on_link);
	init_completion(&j.done);

	mutex_lock(&sp_ctl);
	if (node->dying || node->sdev->dead) {
		mutex_unlock(&sp_ctl);
		return -ENODEV;
	}
	list_add_tail(&j.on_node, &node->joins);
	ret = sp_join_ask(&j);
	if (ret)
		sp_join_done(&j, ret);
	mutex_unlock(&sp_ctl);

	left = wait_for_completion_interruptible_timeout(&j.done, timeout);
	mutex_lock(&sp_ctl);
	/* Should the answer come later, it finds nobody, and we leave again. */
	if (!completion_done(&j.done) && left <= 0)
		sp_join_done(&j, left ? -EINTR : -ETIMEDOUT);
	mutex_unlock(&sp_ctl);
	return j.result;
}

static void sp_joiner_up(struct sp_link_user *user)
{
}

static void sp_joiner_free(struct sp_joiner *j)
{
	list_del(&j->list);
	sp_link_unuse(&j->user);
	kfree(j);
}

/* A node whose members we were taking in is gone. */
static void sp_joiner_down(struct sp_link_user *user, int error)
{
	struct sp_joiner *j = container_of(user, struct sp_joiner, user);
	struct sp_addr addr = j->addr;
	struct sp_group *g = j->g;
	struct sp_asked *asked;

	if (!g->view.id)
		sp_view_del(&g->view, &j->addr, NULL);
	sp_joiner_free(j);
again:
	list_for_each_entry(asked, &g->asked, list) {
		if (sp_addr_cmp(&asked->who.addr, &addr))
			continue;
		/* What follows from it may change the list. */
		sp_member_unask(g, &addr, asked->who.cookie);
		goto again;
	}
	/* It was told who is in the first view, or was not. */
	if (g->view.id && !g->ready && sp_view_find_node(&g->view, &addr) >= 0)
		sp_group_fail(g, -EHOSTDOWN);
}

static int sp_joiner_add(struct sp_group *g, const struct sp_addr *addr)
{
	struct sp_joiner *j;
	int ret;

	list_for_each_entry(j, &g->joiners, list)
		if (!sp_addr_cmp(&j->addr, addr))
			return 0;
	j = kzalloc(sizeof(*j), GFP_KERNEL);
	if (!j)
		return -ENOMEM;
	j->g = g;
	j->addr = *addr;
	j->user.up = sp_joiner_up;
	j->user.down = sp_joiner_down;
	list_add_tail(&j->list, &g->joiners);
	ret = sp_link_use(g->node, addr, &j->user);
	if (ret) {
		list_del(&j->list);
		kfree(j);
	}
	return ret;
}

/* Put forward what has been asked, as much as can be at once. */
static void sp_member_put(struct sp_group *g)
{
	struct sp_asked *asked;

	/* Until the first view begins there is nobody to put it to. */
	if (!g->ready)
		return;
	list_for_each_entry(asked, &g->asked, list)
		if (sp_agree_ask(&g->agree, &asked->who) > 0)
			g->unsaid = true;
}

/* A program wants to be taken into a group that has a view. */
static int sp_member_ask(struct sp_group *g, const struct sp_addr *addr,
			 u64 cookie, u32 flags)
{
	struct sp_asked *asked;

	if (flags & ~SP_MEMBER_ALL)
		return -EINVAL;
	if (g->view.nmembers >= g->config.max_members)
		return -EUSERS;
	list_for_each_entry(asked, &g->asked, list)
		if (asked->who.cookie == cookie &&
		    !sp_addr_cmp(&asked->who.addr, addr))
			return -EEXIST;
	if (sp_view_find_member(&g->view, addr, cookie) >= 0)
		return -EEXIST;
	asked = kzalloc(sizeof(*asked), GFP_KERNEL);
	if (!asked)
		return -ENOMEM;
	asked->who.addr = *addr;
	asked->who.cookie = cookie;
	asked->who.flags = flags;
	list_add_tail(&asked->list, &g->asked);
	sp_member_put(g);
	sp_change_step(g);
	return 0;
}

static void sp_member_unask(struct sp_group *g, const struct sp_addr *addr,
			    u64 cookie)
{
	struct sp_asked *asked;

	list_for_each_entry(asked, &g->asked, list) {
		if (asked->who.cookie != cookie ||
		    sp_addr_cmp(&asked->who.addr, addr))
			continue;
		list_del(&asked->list);
		kfree(asked);
		break;
	}
	if (!g->ready || g->ending)
		return;
	sp_agree_unask(&g->agree, addr, cookie);
	g->unsaid = true;
	sp_change_step(g);
}

/* How many ask here. */
static u32 sp_member_asking(const struct sp_group *g)
{
	struct sp_asked *asked;
	u32 n = 0;

	list_for_each_entry(asked, &g->asked, list)
		n++;
	return n;
}

/* A program on another node wants to join a group of this one. */
static int sp_member_asked(struct sp_link *link, const struct sp_msg_join *msg)
{
	struct sp_msg_answer answer = { .cookie = msg->cookie };
	struct sp_msg_bye bye = { .error = -EHOSTDOWN };
	struct sp_node *node = link->node;
	struct sp_proof proof = {};
	char name[SP_NAME_LEN];
	struct sp_group *g;
	bool live;
	int ret = 0;

	if (strnlen(msg->name, sizeof(msg->name)) == sizeof(msg->name))
		return -EPROTO;
	strscpy(name, msg->name, sizeof(name));
	g = sp_group_find(node, name);
	/* When the first view is complete, who comes later comes with the next. */
	live = g && (g->view.state == SP_VIEW_ACTIVE ||
		     (g->forms && g->view.id));
	if (!g) {
		ret = -ENOENT;
	} else if (g->view.state == SP_VIEW_FAILED ||
		   g->view.state == SP_VIEW_CLOSED) {
		ret = -EHOSTDOWN;
	} else {
		ret = sp_trust_join(g, link, msg, &proof);
	}
	/* It is to say it once more. */
	if (ret == -EINPROGRESS)
		return 0;
	if (ret) {
		;
	} else if (!live && !g->forms) {
		ret = -EREMOTE;
		answer.coordinator = g->coordinator;
	} else if (!sp_config_meets(&g->config, &msg->config)) {
		ret = -EPROTOTYPE;
	} else {
		ret = sp_joiner_add(g, &link->peer);
		/* The answer is to come before the view. */
		if (!ret && !live)
			ret = sp_view_add(&g->view, &link->peer, msg->cookie,
					  msg->flags);
		else if (!ret && (g->view.nmembers >= g->config.max_members ||
				  sp_member_asking(g) >= SP_MAX_MEMBERS))
			ret = -EUSERS;
	}
	answer.error = ret;
	answer.live = live;
	/* Only members learn the number, and who is asked for a proof. */
	if (!ret) {
		answer.gid = g->gid;
		answer.config = g->config;
		bye.gid = g->gid;
	}
	if (proof.role && sp_trust_answer(g, &proof, &answer))
		return -ENOMEM;
	if (sp_link_say(link, &answer.hdr, SP_MSG_ANSWER, sizeof(answer)))
		return -ENOMEM;
	if (!ret && live && sp_member_ask(g, &link->peer, msg->cookie,
					  msg->flags))
		sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
	else if (!ret && !live)
		sp_member_complete(g);
	return 0;
}

/* Does a node wait here to be taken in? */
static bool sp_member_waits(const struct sp_group *g, const struct sp_addr *addr)
{
	struct sp_asked *asked;

	list_for_each_entry(asked, &g->asked, list)
		if (!sp_addr_cmp(&asked->who.addr, addr))
			return true;
	return false;
}

/* Who has asked and was taken in asks no more; who cannot be is told. */
static void sp_member_settle_asked(struct sp_group *g)
{
	bool full = g->view.nmembers >= g->config.max_members;
	struct sp_msg_bye bye = { .gid = g->gid, .error = -EUSERS };
	struct sp_asked *asked, *next;
	struct sp_joiner *j, *jnext;

	list_for_each_entry_safe(asked, next, &g->asked, list) {
		const struct sp_newcomer *who = &asked->who;

		if (sp_view_find_member(&g->view, &who->addr, who->cookie) < 0 &&
		    !full)
			continue;
		sp_agree_unask(&g->agree, &who->addr, who->cookie);
		list_del(&asked->list);
		kfree(asked);
	}
	list_for_each_entry_safe(j, jnext, &g->joiners, list) {
		if (sp_member_waits(g, &j->addr))
			continue;
		if (sp_view_find_node(&g->view, &j->addr) < 0)
			sp_link_say(j->user.link, &bye.hdr, SP_MSG_BYE,
				    sizeof(bye));
		sp_joiner_free(j);
	}
	sp_member_put(g);
}

/* A program of this node that something may have changed for. */
static struct sp_join *sp_member_next(struct sp_group *g)
{
	struct sp_join *j;

	list_for_each_entry(j, &g->node->joins, on_node)
		if (!j->waits && !j->user.link && (!j->g || j->g == g) &&
		    !strcmp(j->name, g->name))
			return j;
	return NULL;
}

/**
 * sp_member_settle() - a view has begun, or a group has come to its end: what
 * becomes of those who wait
 * @g: the group
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_member_settle(struct sp_group *g)
{
	struct sp_join *j;
	int ret;

	lockdep_assert_held(&sp_ctl);
	if (g->ready && !g->ending)
		sp_member_settle_asked(g);
	list_for_each_entry(j, &g->node->joins, on_node)
		j->waits = false;
	/* Each may change all: they are looked for anew. */
	while ((j = sp_member_next(g))) {
		j->waits = true;
		ret = 0;
		if (j->g != g || g->ending) {
			j->g = NULL;
			ret = sp_join_ask(j);
		} else if (g->view.nmembers >= g->config.max_members) {
			ret = -EUSERS;
		}
		if (ret)
			sp_join_done(j, ret);
	}
}

/**
 * sp_member_taken() - programs of this node are in the view that begins
 * @g: the group; its view is the new one
 * @at: entry of the log that says so
 *
 * Context: sp_ctl and the engine's lock are held.
 */
void sp_member_taken(struct sp_group *g, u64 at)
{
	struct sp_join *j, *next;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_safe(j, next, &g->node->joins, on_node) {
		struct sp_local *local = j->local;

		/* Others of this node may have waited for the group to be here. */
		if ((j->g != g && (j->g || j->user.link ||
				   strcmp(j->name, g->name))) ||
		    sp_view_find_member(&g->view, &g->node->addr,
					local->cookie) < 0)
			continue;
		local->cursor = at;
		sp_group_attach(g, local);
		local->group = g;
		sp_change_local(g, local, &g->view, at);
		sp_join_done(j, 0);
	}
}

static void sp_coord_up(struct sp_link_user *user)
{
}

static void sp_coord_down(struct sp_link_user *user, int error)
{
	struct sp_group *g = container_of(user, struct sp_group, coord);

	sp_link_unuse(user);
	/* Others may yet welcome us, but we would not know for how long. */
	sp_group_fail(g, error == -ENODEV ? error : -EHOSTDOWN);
}

/* We are in: make the group here, unless another member has. */
static int sp_member_in(struct sp_link *link, struct sp_join *j,
			const struct sp_msg_answer *msg)
{
	struct sp_group *g = sp_group_find_gid(link->node, msg->gid);
	int ret;

	if (g && (g->forms || g->live || msg->live || g->view.id ||
		  list_empty(&g->locals) ||
		  g->coord.link != link || strcmp(g->name, j->name) ||
		  !sp_config_meets(&g->config, &j->config)))
		return -EPROTO;
	if (g && sp_key_match(g->key, j->local->key))
		return sp_key_match(g->key, j->local->key);
	if (!g) {
		if (!sp_config_ok(&msg->config) ||
		    !sp_config_meets(&msg->config, &j->config) ||
		    !(msg->config.flags & SP_CONFIG_KEYED) != !j->local->key)
			return -EPROTO;
		if (sp_join_early(j) || sp_group_find(link->node, j->name))
			return -EEXIST;
		g = sp_group_alloc(link->node, j->name, msg->gid,
				   &msg->config, &j->local->payer,
				   j->local->key);
		if (IS_ERR(g))
			return PTR_ERR(g);
		g->live = msg->live;
		g->coordinator = link->peer;
		g->coord.up = sp_coord_up;
		g->coord.down = sp_coord_down;
		sp_group_attach(g, j->local);
		ret = sp_trust_set(g, link) ?:
		      sp_link_use(link->node, &link->peer, &g->coord);
		if (ret) {
			sp_group_detach(g, j->local);
			return ret;
		}
	} else {
		sp_group_attach(g, j->local);
	}
	j->local->group = g;
	return 0;
}

/* Has this node come to the group while a program was asking for itself? */
static bool sp_member_here(struct sp_link *link, const struct sp_join *j,
			   const struct sp_msg_answer *msg)
{
	struct sp_group *g = sp_group_find(link->node, j->name);

	return g && g->gid == msg->gid && (g->live || g->view.id);
}

static int sp_member_answered(struct sp_link *link,
			      const struct sp_msg_answer *msg)
{
	struct sp_msg_leave leave = { .gid = msg->gid, .cookie = msg->cookie };
	struct sp_join *j;
	int ret;

	list_for_each_entry(j, &link->node->joins, on_node)
		if (j->local->cookie == msg->cookie && j->user.link == link)
			goto found;
	/* It has given up in the meantime. */
	if (!msg->error)
		sp_link_say(link, &leave.hdr, SP_MSG_LEAVE, sizeof(leave));
	return 0;

found:
	ret = msg->error;
	switch (ret) {
	case 0:
	case -EREMOTE:
	case -ENOENT:
	case -EHOSTDOWN:
	case -EPROTOTYPE:
	case -EUSERS:
	case -EEXIST:
	case -EINVAL:
	case -ENOMEM:
	case -ENOKEY:
	case -EKEYREJECTED:
		break;
	default:
		return -EPROTO;
	}
	/* Who does not know the secret can refuse us, and nothing else. */
	if ((!ret || ret == -EREMOTE) && j->local->key) {
		int error = sp_trust_answered(j, msg);

		if (error) {
			pr_warn_ratelimited("spindle: %s: group %s: %s answers without its key\n",
					    link->node->name, j->name,
					    link->name);
			sp_join_done(j, error);
			return 0;
		}
	}
	if (ret == -EREMOTE) {
		j->contact = msg->coordinator;
		sp_link_unuse(&j->user);
		ret = j->hops++ < SP_JOIN_HOPS ? sp_join_ask(j) : -ELOOP;
		if (ret)
			sp_join_done(j, ret);
		return 0;
	}
	if (!ret && sp_member_here(link, j, msg)) {
		/* Another program of this node has come first: it goes by that. */
		sp_link_say(link, &leave.hdr, SP_MSG_LEAVE, sizeof(leave));
		sp_link_unuse(&j->user);
		ret = sp_join_ask(j);
		if (ret)
			sp_join_done(j, ret);
		return 0;
	}
	if (!ret) {
		ret = sp_member_in(link, j, msg);
		if (ret)
			sp_link_say(link, &leave.hdr, SP_MSG_LEAVE,
				    sizeof(leave));
	}
	sp_join_done(j, ret);
	return 0;
}

/* The contact wants to know whether the program knows the group's secret. */
static int sp_member_challenged(struct sp_link *link,
				const struct sp_msg_challenge *msg)
{
	struct sp_msg_join join;
	struct sp_join *j;
	int ret;

	list_for_each_entry(j, &link->node->joins, on_node)
		if (j->local->cookie == msg->cookie && j->user.link == link)
			goto found;
	return 0;

found:
	if (!j->local->key)
		return -EPROTO;
	if (j->asked++ == SP_JOIN_ASKED) {
		sp_join_done(j, -EKEYREJECTED);
		return 0;
	}
	sp_join_msg(j, &join);
	ret = sp_trust_prove(j, msg, &join) ?:
	      sp_link_say(link, &join.hdr, SP_MSG_JOIN, sizeof(join));
	if (ret)
		sp_join_done(j, ret);
	return 0;
}

/* A part of the first view that this node is in has come. */
static bool sp_member_heard(struct sp_group *g, const struct sp_msg_view *msg)
{
	struct sp_view *v = &g->view;
	u32 i;

	for (i = 0; i < msg->count; i++) {
		const struct sp_wire_member *m = &msg->members[i];
		struct sp_member *to = &v->members[v->nmembers];
		struct sp_point *at = &g->points[v->nmembers];

		if (sp_view_add(v, &m->addr, m->cookie, m->flags))
			return false;
		if (msg->view == 1)
			continue;
		if (m->lane >= 0 && m->nr >= SP_MAX_NODE_LANES)
			return false;
		to->lane = m->lane < 0 ? -1 : 0;
		to->nr = m->nr;
		to->uid = m->uid & SP_UID_MASK;
		at->round = m->round;
		at->count = m->count;
		at->tail = m->tail;
	}
	return true;
}

/* Of all that tell us of it, the last to begin is the one to tell us all. */
static bool sp_member_first(struct sp_group *g, struct sp_link *link,
			    const struct sp_msg_view *msg)
{
	if (msg->first)
		return g->told_by == link && msg->first == g->view.nmembers;
	if (!g->points)
		g->points = kvcalloc(SP_MAX_MEMBERS, sizeof(*g->points),
				     GFP_KERNEL);
	if (!g->points) {
		/* It is said once: nobody is to wait for us. */
		sp_group_fail(g, -ENOMEM);
		return false;
	}
	g->told_by = link;
	sp_view_init(&g->view, msg->total, g->config.senders);
	g->view.next_uid = msg->view == 1 ? 0 : msg->next_uid;
	g->start = msg->start;
	return true;
}

/* Does a program of this node wait for a contact's answer? */
static bool sp_join_waits(const struct sp_node *node)
{
	const struct sp_join *j;

	list_for_each_entry(j, &node->joins, on_node)
		if (j->user.link)
			return true;
	return false;
}

/* Members of a view that this node is in, from a node that is in it. */
static int sp_member_told(struct sp_link *link, const struct sp_msg_view *msg)
{
	struct sp_msg_bye bye = { .gid = msg->gid, .error = -ECONNRESET };
	struct sp_group *g = sp_group_find_gid(link->node, msg->gid);
	struct sp_local *local;

	if (msg->count > SP_VIEW_CHUNK || msg->total > SP_MAX_MEMBERS ||
	    msg->hdr.len != struct_size(msg, members, msg->count))
		return -EPROTO;
	/* Faster than the answer by which the group becomes known here. */
	if (!g && sp_join_waits(link->node))
		return 0;
	if (!g || g->ending ||
	    (g->view.state == SP_VIEW_FORMING && list_empty(&g->locals))) {
		/* Who wanted to join has given up: they are not to wait for it. */
		sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
		return 0;
	}
	if (g->forms || g->view.id || g->view.state != SP_VIEW_FORMING ||
	    (!g->live && g->coord.link != link) || !sp_trusts(g, link))
		return 0;
	if (!sp_member_first(g, link, msg))
		return 0;
	if ((!g->live && (msg->view != 1 || msg->total != g->config.members)) ||
	    !sp_member_heard(g, msg))
		goto bad;
	if (!sp_view_complete(&g->view))
		return 0;
	list_for_each_entry(local, &g->locals, on_group)
		if (sp_view_find_member(&g->view, &g->node->addr,
					local->cookie) < 0)
			goto bad;
	if (sp_view_rank(&g->view, msg->view))
		goto bad;
	sp_change_first(g);
	return 0;

bad:
	pr_warn_ratelimited("spindle: %s: group %s: impossible view from %s\n",
			    g->node->name, g->name, link->name);
	sp_group_fail(g, -EPROTO);
	return 0;
}

/* The one to forget for a peer that has sent as many as we keep of it. */
static struct sp_early *sp_early_oldest(struct sp_node *node,
					const struct sp_addr *from)
{
	struct sp_early *early, *oldest = NULL;
	u32 n = 0;

	list_for_each_entry(early, &node->early, list) {
		if (sp_addr_cmp(&early->from, from))
			continue;
		if (!n++)
			oldest = early;
	}
	return n < SP_EARLY_PEER ? NULL : oldest;
}

static void sp_early_free(struct sp_node *node, struct sp_early *early)
{
	list_del(&early->list);
	node->nearly--;
	sp_link_put(early->link);
	kfree(early->keys);
	kfree(early);
}

/* Keys of a node that is in no view that is known here yet. */
static int sp_early_keep(struct sp_link *link, const struct sp_msg_keys *keys)
{
	struct sp_node *node = link->node;
	struct sp_early *early;

	early = sp_early_oldest(node, &link->peer);
	if (early)
		sp_early_free(node, early);
	if (node->nearly >= SP_EARLY_MAX)
		sp_early_free(node, list_first_entry(&node->early,
						     struct sp_early, list));
	early = kzalloc(sizeof(*early), GFP_KERNEL);
	if (!early)
		return -ENOMEM;
	early->keys = kmemdup(keys, keys->hdr.len, GFP_KERNEL);
	if (!early->keys) {
		kfree(early);
		return -ENOMEM;
	}
	early->from = link->peer;
	/* They are good on that connection only. */
	kref_get(&link->ref);
	early->link = link;
	list_add_tail(&early->list, &node->early);
	node->nearly++;
	return 0;
}

/*
 * Keys that no group here has taken, or will: who granted them waits for our
 * word that we do not write there, and nobody else says it.
 */
static void sp_early_decline(struct sp_link *link, u64 gid)
{
	struct sp_msg_bye bye = { .gid = gid, .error = -ECONNRESET };
	struct sp_node *node = link->node;
	struct sp_early *early, *next;
	bool any = false;

	/* With the last of them the link may go. */
	kref_get(&link->ref);
	list_for_each_entry_safe(early, next, &node->early, list) {
		if (early->link != link || early->keys->gid != gid)
			continue;
		sp_early_free(node, early);
		any = true;
	}
	if (any)
		sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
	sp_link_put(link);
}

/**
 * sp_member_decline() - a group ends: keys to come into it are of no use
 * @g: the group, ending; its nodes have been told
 *
 * Context: sp_ctl is held.
 */
void sp_member_decline(struct sp_group *g)
{
	struct sp_early *early;

again:
	list_for_each_entry(early, &g->node->early, list)
		if (early->keys->gid == g->gid) {
			sp_early_decline(early->link, g->gid);
			goto again;
		}
}

/* A node writes nothing more, and waits for the same word of us. */
static void sp_member_bye(struct sp_link *link, const struct sp_msg_bye *bye)
{
	struct sp_group *g = sp_group_find_gid(link->node, bye->gid);

	if (g && !sp_trusts(g, link))
		return;
	if (g)
		sp_peer_bye(g, link, bye);
	/* Who joins may be about to take what was granted since. */
	if ((!g || g->ending) && !sp_join_waits(link->node))
		sp_early_decline(link, bye->gid);
}

/* Did a group of that number fail here, of which nothing is left? */
static bool sp_member_failed(const struct sp_node *node, u64 gid)
{
	u32 i;

	for (i = 0; i < min(node->nfailed, SP_FAILED); i++)
		if (node->failed[i] == gid)
			return true;
	return false;
}

/* Keys; the view they belong to may not be known here yet. */
static int sp_member_keys(struct sp_link *link, const struct sp_msg_keys *keys)
{
	struct sp_group *g = sp_group_find_gid(link->node, keys->gid);
	struct sp_msg_bye bye = { .gid = keys->gid, .error = -ECONNABORTED };
	struct sp_peer_node *pn;

	if (keys->count > SP_KEYS_CHUNK ||
	    keys->hdr.len != struct_size(keys, keys, keys->count))
		return -EPROTO;
	/* Who joins may come back to a group that failed here. */
	if (!g && sp_member_failed(link->node, keys->gid) &&
	    !sp_join_waits(link->node)) {
		bye.error = -ECONNRESET;
		sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
		return 0;
	}
	if (!g || (!g->ready && !g->ending))
		return sp_early_keep(link, keys);
	if (g->ending) {
		/*
		 * What it was told before it had a place for us it has not
		 * heard; twice does no harm.
		 */
		bye.error = sp_group_last_word(g);
		sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
		return 0;
	}
	pn = sp_peer_find(g, &link->peer);
	if (pn && pn->user.link == link && pn->trusted) {
		sp_peer_keys(g, link, keys);
		return 0;
	}
	/* It is ahead of us, or has a connection that we do not use yet. */
	if (pn || keys->view > g->view.id)
		return sp_early_keep(link, keys);
	/* It was put out, and does not know. */
	sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
	return 0;
}

/* Can keys that came early be used now, or never? */
static bool sp_early_due(struct sp_group *g, const struct sp_early *early)
{
	struct sp_peer_node *pn = sp_peer_find(g, &early->from);

	if (early->keys->gid != g->gid)
		return false;
	if (early->link->state == SP_LINK_DOWN)
		return true;
	if (pn)
		return pn->user.link == early->link && pn->trusted;
	/* Of those that come with a view we connect to one after the other. */
	return early->keys->view <= g->view.id &&
	       sp_view_find_node(&g->view, &early->from) < 0;
}

/**
 * sp_member_early() - take the keys that came before their view, or by a link
 * before it was used
 * @g: the group, its memory there
 *
 * Context: sp_ctl is held.
 */
void sp_member_early(struct sp_group *g)
{
	struct sp_early *early, *next;
	LIST_HEAD(mine);

	/* What follows from any may bring us here again. */
	list_for_each_entry_safe(early, next, &g->node->early, list)
		if (sp_early_due(g, early))
			list_move_tail(&early->list, &mine);
	while ((early = list_first_entry_or_null(&mine, struct sp_early, list))) {
		struct sp_peer_node *pn = sp_peer_find(g, &early->from);

		if (pn && !g->ending && pn->user.link == early->link &&
		    early->link->state == SP_LINK_UP)
			sp_peer_keys(g, early->link, early->keys);
		sp_early_free(g->node, early);
	}
}

/**
 * sp_member_leave() - a member gives up before the first view
 * @g: the group
 * @local: the member, off the group's list
 *
 * Context: sp_ctl is held.
 */
void sp_member_leave(struct sp_group *g, struct sp_local *local)
{
	struct sp_msg_leave leave = { .gid = g->gid, .cookie = local->cookie };

	if (g->forms && !g->view.id)
		sp_view_del(&g->view, &g->node->addr, &local->cookie);
	else if (g->coord.link)
		sp_link_say(g->coord.link, &leave.hdr, SP_MSG_LEAVE,
			    sizeof(leave));
}

/**
 * sp_member_release() - the first view is there, or never will be
 * @g: the group
 * @error: what it failed with, or 0
 *
 * Context: sp_ctl is held.
 */
void sp_member_release(struct sp_group *g, int error)
{
	struct sp_msg_bye bye = { .gid = g->gid, .error = error };
	struct sp_msg_bye late = { .gid = g->gid, .error = -EHOSTDOWN };
	bool tell = g->ending && g->view.state != SP_VIEW_CLOSED;
	struct sp_asked *asked, *anext;
	struct sp_joiner *j, *next;

	list_for_each_entry_safe(j, next, &g->joiners, list) {
		bool waits = sp_member_waits(g, &j->addr);

		/* It may come with the second view. */
		if (waits && !g->ending)
			continue;
		/* Who still waits is to ask somebody else. */
		if (waits)
			sp_link_say(j->user.link, &late.hdr, SP_MSG_BYE,
				    sizeof(late));
		else if (tell)
			sp_link_say(j->user.link, &bye.hdr, SP_MSG_BYE,
				    sizeof(bye));
		sp_joiner_free(j);
	}
	list_for_each_entry_safe(asked, anext, &g->asked, list) {
		if (!g->ending)
			break;
		list_del(&asked->list);
		kfree(asked);
	}
	if (!g->coord.link)
		return;
	if (tell && g->view.id)
		sp_link_say(g->coord.link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
	sp_link_unuse(&g->coord);
}

/**
 * sp_member_removed() - a node's device goes away
 * @node: the node
 *
 * Context: sp_ctl is held.
 */
void sp_member_removed(struct sp_node *node)
{
	struct sp_group *g, *gnext;
	struct sp_join *j, *jnext;

	list_for_each_entry_safe(g, gnext, &node->groups, on_node) {
		sp_group_fail(g, -ENODEV);
		/* One that had come to its end needs the device no more. */
		sp_group_end(g, 0);
		/* The address may be bound again before this one is let go. */
		sp_observe_group_del(g);
	}
	list_for_each_entry_safe(j, jnext, &node->joins, on_node)
		sp_join_done(j, -ENODEV);
}

/**
 * sp_member_forget() - drop the keys whose view never came
 * @node: the node, going away
 *
 * Context: sp_ctl is held.
 */
void sp_member_forget(struct sp_node *node)
{
	struct sp_early *early, *next;

	list_for_each_entry_safe(early, next, &node->early, list)
		sp_early_free(node, early);
}

/* A program of another node has given up; it may have been taken in already. */
static void sp_member_given_up(struct sp_group *g, const struct sp_addr *addr,
			       u64 cookie)
{
	int rank = sp_view_find_member(&g->view, addr, cookie);
	u32 same = 0;
	u32 i;

	sp_member_unask(g, addr, cookie);
	if (rank < 0 || !g->ready || g->ending)
		return;
	/* A node with other members says itself that this one is gone. */
	for (i = 0; i < g->view.nmembers; i++)
		same += g->view.members[i].node == g->view.members[rank].node;
	if (same == 1)
		sp_change_suspect(g, g->view.members[rank].node,
				  "has given up before it came");
}

/* Bytes a message must have at least, by its type. */
static size_t sp_msg_min(u16 type)
{
	switch (type) {
	case SP_MSG_JOIN:
		return sizeof(struct sp_msg_join);
	case SP_MSG_ANSWER:
		return sizeof(struct sp_msg_answer);
	case SP_MSG_LEAVE:
		return sizeof(struct sp_msg_leave);
	case SP_MSG_VIEW:
		return sizeof(struct sp_msg_view);
	case SP_MSG_KEYS:
		return sizeof(struct sp_msg_keys);
	case SP_MSG_TELL:
		return sizeof(struct sp_msg_tell);
	case SP_MSG_BYE:
		return sizeof(struct sp_msg_bye);
	case SP_MSG_BULK:
		return sizeof(struct sp_msg);
	case SP_MSG_READY:
		return sizeof(struct sp_msg_ready);
	case SP_MSG_STOP:
		return sizeof(struct sp_msg_stop);
	case SP_MSG_GO:
		return sizeof(struct sp_msg_go);
	case SP_MSG_CHALLENGE:
		return sizeof(struct sp_msg_challenge);
	case SP_MSG_PROVE:
		return sizeof(struct sp_msg_prove);
	default:
		return SIZE_MAX;
	}
}

/**
 * sp_member_message() - a control message has come
 * @link: from the peer of this link
 * @msg: the message; the peer cannot change it any more
 *
 * Context: sp_ctl is held, may sleep.
 *
 * Return: 0, or the errno to take the link down with.
 */
int sp_member_message(struct sp_link *link, const struct sp_msg *msg)
{
	const struct sp_msg_leave *leave = (const void *)msg;
	const struct sp_msg_tell *tell = (const void *)msg;
	const struct sp_msg_bye *bye = (const void *)msg;
	struct sp_group *g;

	if (msg->len < sp_msg_min(msg->type)) {
		pr_warn_ratelimited("spindle: %s: unknown or short message %u from %s\n",
				    link->node->name, msg->type, link->name);
		return -EPROTO;
	}
	switch (msg->type) {
	case SP_MSG_JOIN:
		return sp_member_asked(link, (const void *)msg);
	case SP_MSG_ANSWER:
		return sp_member_answered(link, (const void *)msg);
	case SP_MSG_VIEW:
		return sp_member_told(link, (const void *)msg);
	case SP_MSG_KEYS:
		return sp_member_keys(link, (const void *)msg);
	case SP_MSG_TELL:
		g = sp_group_find_gid(link->node, tell->gid);
		if (g)
			sp_change_told(g, link, tell);
		return 0;
	case SP_MSG_LEAVE:
		g = sp_group_find_gid(link->node, leave->gid);
		if (!g || !sp_trusts(g, link))
			return 0;
		if (g->forms && !g->view.id)
			sp_view_del(&g->view, &link->peer, &leave->cookie);
		else if (g->view.id)
			sp_member_given_up(g, &link->peer, leave->cookie);
		return 0;
	case SP_MSG_BYE:
		sp_member_bye(link, bye);
		return 0;
	case SP_MSG_BULK:
		sp_bulk_want(link);
		return 0;
	case SP_MSG_READY:
		sp_rdmc_ready(link, (const void *)msg);
		return 0;
	case SP_MSG_CHALLENGE:
		return sp_member_challenged(link, (const void *)msg);
	case SP_MSG_PROVE:
		return sp_trust_heard(link, (const void *)msg);
	case SP_MSG_STOP:
		sp_rdmc_stopped(link, (const void *)msg);
		return 0;
	case SP_MSG_GO:
		sp_rdmc_go_late(link, (const void *)msg);
		return 0;
	default:
		return -EPROTO;
	}
}
