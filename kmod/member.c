// SPDX-License-Identifier: GPL-2.0
/*
 * Programs ask to join. While the first view forms, the node that created the group
 * takes them in, and when all are there tells everybody who they are. Later any node
 * of the group sees to it (welcome.c), and they wait for a view that they are in.
 *
 * All under sp_ctl.
 */
#include <linux/random.h>
#include <linux/slab.h>

#include "engine.h"
#include "group.h"
#include "observe/observe.h"
#include "observe/trace.h"

#define SP_JOIN_HOPS	8	/* contacts that a join may ask one after the other */
#define SP_EARLY_MAX	4096	/* messages kept for views that are not known yet */
#define SP_EARLY_PEER	64	/* of these, from one peer */
#define SP_ANSWERS_MAX	16384	/* messages that wait for room before an answer that is a bye */

/* A key that came before its view, or part of a welcome before the answer to a join. */
struct sp_early {
	struct list_head list;
	struct sp_addr from;
	u64 msg[];	/* struct sp_msg_key, struct sp_msg_part */
};

/* The key, or NULL when it is something else. */
static const struct sp_msg_key *sp_early_key(const struct sp_early *early)
{
	const struct sp_msg *msg = (const struct sp_msg *)early->msg;

	return msg->type == SP_MSG_KEY ? (const struct sp_msg_key *)msg : NULL;
}

static const struct sp_msg_part *sp_early_part(const struct sp_early *early)
{
	const struct sp_msg *msg = (const struct sp_msg *)early->msg;

	return msg->type == SP_MSG_WELCOME ? (const struct sp_msg_part *)msg : NULL;
}

/*
 * The answer to an earlier try, should it come late, is not that to this one. Nor is a
 * member of an earlier life of the node one of this.
 */
static void sp_member_name(const struct sp_node *node, struct sp_local *local)
{
	static u32 cookies;

	lockdep_assert_held(&sp_ctl);
	local->cookie = node->incarnation << 32 | ++cookies;
}

static bool sp_config_meets(const struct sp_config *has,
			    const struct sp_config *want)
{
	return (!want->members || want->members == has->members) &&
	       (!want->limit || want->limit == has->limit) &&
	       (!want->senders || want->senders == has->senders) &&
	       (!want->window || want->window == has->window) &&
	       (!want->max_msg || want->max_msg == has->max_msg) &&
	       (!want->depth || want->depth == has->depth) &&
	       (!want->silent_ms || want->silent_ms == has->silent_ms) &&
	       (!want->link_ms || want->link_ms == has->link_ms) &&
	       (!want->evict_ms || want->evict_ms == has->evict_ms);
}

static bool sp_patience_ok(u32 ms)
{
	return ms >= SPINDLE_MIN_PATIENCE && ms <= SPINDLE_MAX_PATIENCE;
}

/* A configuration that came by the network. */
static bool sp_config_ok(const struct sp_config *cfg)
{
	return cfg->members >= 1 && cfg->members <= cfg->limit &&
	       cfg->limit <= SPINDLE_MAX_MEMBERS &&
	       cfg->senders <= cfg->limit &&
	       is_power_of_2(cfg->window) &&
	       cfg->window >= SPINDLE_MIN_WINDOW && cfg->window >= PAGE_SIZE &&
	       cfg->window <= SPINDLE_MAX_WINDOW &&
	       cfg->max_msg >= 1 && cfg->max_msg <= cfg->window &&
	       is_power_of_2(cfg->depth) && cfg->depth >= SPINDLE_MIN_DEPTH &&
	       cfg->depth <= SPINDLE_MAX_DEPTH &&
	       sp_patience_ok(cfg->silent_ms) && sp_patience_ok(cfg->link_ms) &&
	       (!cfg->evict_ms || sp_patience_ok(cfg->evict_ms)) &&
	       !(cfg->flags & ~SP_CONFIG_ALL);
}

/* Scratch, under sp_ctl. */
static u64 sp_view_out[SP_MSG_MAX / sizeof(u64)];

/* Tell a joiner's node who the members are. */
static void sp_member_tell(struct sp_group *g, struct sp_link *link)
{
	const struct sp_view *v = &g->view;
	struct sp_msg_view *msg = (struct sp_msg_view *)sp_view_out;
	u32 first, i;

	lockdep_assert_held(&sp_ctl);
	memset(msg, 0, sizeof(sp_view_out));
	for (first = 0; first < v->nmembers; first += msg->count) {
		msg->gid = g->gid;
		msg->view = v->id;
		msg->total = v->nmembers;
		msg->first = first;
		msg->count = min_t(u32, v->nmembers - first, SP_VIEW_CHUNK);
		for (i = 0; i < msg->count; i++) {
			const struct sp_member *m = &v->members[first + i];

			msg->members[i].addr = m->addr;
			msg->members[i].cookie = m->cookie;
			msg->members[i].flags = m->flags;
			msg->members[i].pad = 0;
		}
		if (sp_link_say(link, &msg->hdr, SP_MSG_VIEW,
				struct_size(msg, members, msg->count)))
			break;
	}
	if (first < v->nmembers)
		sp_link_set_state(link, SP_LINK_DOWN, -ENOBUFS);
}

static int sp_member_welcomed(struct sp_link *link, const struct sp_msg_part *msg);

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
		sp_group_install(g);
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
 * Return: 0, then @local is in the group; -EEXIST; -ENOMEM.
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
	g = sp_group_alloc(node, name, get_random_u64(), config);
	if (IS_ERR(g))
		return PTR_ERR(g);
	g->forms = true;
	g->coordinator = node->addr;
	sp_member_name(node, local);
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

/*
 * Nothing here uses what a peer said in a view, nor ever will: it need not wait for
 * us. Of a link on which many groups end many byes may wait, but not without bound, as
 * they would when the peer asked on and on and took no answer.
 */
static int sp_member_answer_bye(struct sp_link *link, u64 gid, u64 view, int error)
{
	struct sp_msg_bye bye = {
		.gid = gid,
		.view = view,
		.shared = view,
		.error = error,
	};
	int ret = -ENOBUFS;

	if (link->nout < SP_ANSWERS_MAX)
		ret = sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
	return ret == -ENOTCONN ? 0 : ret;
}

static u64 sp_early_gid(const struct sp_early *early)
{
	const struct sp_msg_key *key = sp_early_key(early);

	return key ? key->gid : sp_early_part(early)->gid;
}

/* The view that it is for; a welcome is for one to come. */
static u64 sp_early_view(const struct sp_early *early)
{
	const struct sp_msg_key *key = sp_early_key(early);

	return key ? key->view : U64_MAX;
}

/* The view that a welcome is for; 0 when this is not how it begins. */
static u64 sp_part_view(const struct sp_msg_part *msg)
{
	const struct sp_wire_welcome *w = (const struct sp_wire_welcome *)msg->data;

	return msg->off || msg->hdr.len < sizeof(*msg) + sizeof(*w) ? 0 : w->view;
}

/* Nobody here comes with the view of a welcome. Said once, for all of its parts. */
static int sp_part_refuse(struct sp_link *link, const struct sp_msg_part *msg)
{
	return msg->off ? 0 : sp_member_answer_bye(link, msg->gid, sp_part_view(msg),
						   -ECONNRESET);
}

static int sp_early_refuse(const struct sp_early *early, struct sp_link *link)
{
	const struct sp_msg_key *key = sp_early_key(early);

	return key ? sp_member_answer_bye(link, key->gid, key->view, -ECONNRESET) :
		     sp_part_refuse(link, sp_early_part(early));
}

static void sp_early_free(struct sp_node *node, struct sp_early *early)
{
	list_del(&early->list);
	node->nearly--;
	kfree(early);
}

/* The program of this node that waits for a view of a group, if there is one. */
static struct sp_join *sp_join_waiting(struct sp_node *node, u64 gid)
{
	struct sp_join *j;

	list_for_each_entry(j, &node->joins, on_node)
		if (j->gid == gid && gid)
			return j;
	return NULL;
}

/* Does a program of this node wait for an answer that may name any group? */
static bool sp_join_unanswered(const struct sp_node *node)
{
	const struct sp_join *j;

	list_for_each_entry(j, &node->joins, on_node)
		if (!j->gid || j->asked)
			return true;
	return false;
}

/* Does nobody here exchange keys for a view of this group, nor is about to? */
static bool sp_member_forgotten(struct sp_node *node, u64 gid, u64 view)
{
	struct sp_group *g = sp_group_find_gid(node, gid);

	return !sp_join_unanswered(node) && !sp_join_waiting(node, gid) &&
	       (!g || (g->ending && (!g->ready || view > g->view.id)));
}

/**
 * sp_member_early_answer() - answer what came for groups that have come to their end
 * @node: the node
 *
 * Who says a key would wait for ours for ever. While programs here wait for
 * answers to their joins, a group that is not known may still be theirs. Changes
 * no link's state. Context: sp_ctl is held.
 */
void sp_member_early_answer(struct sp_node *node)
{
	struct sp_early *early, *next;
	struct sp_link *link;
	int ret;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_safe(early, next, &node->early, list) {
		if (!sp_member_forgotten(node, sp_early_gid(early),
					 sp_early_view(early)))
			continue;
		link = sp_link_find(node, &early->from);
		ret = link ? sp_early_refuse(early, link) : 0;
		if (ret)
			sp_link_break(link, ret, "no room for an answer");
		sp_early_free(node, early);
	}
}

/**
 * sp_member_lost() - a link is lost, and with it the keys that came by it
 * @link: the link
 *
 * The peer revokes them, and says others on its next link. Context: sp_ctl is
 * held.
 */
void sp_member_lost(struct sp_link *link)
{
	struct sp_early *early, *next;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry_safe(early, next, &link->node->early, list)
		if (!sp_addr_cmp(&early->from, &link->peer))
			sp_early_free(link->node, early);
}

/* What a node has said of a welcome so far. */
struct sp_parts {
	struct list_head list;
	struct sp_addr from;
	u32 total;
	u32 got;
	u64 data[];
};

/* Who was to take a program in need not any more. */
static void sp_join_leave(struct sp_join *j)
{
	struct sp_msg_leave leave = { .gid = j->gid, .cookie = j->local->cookie };
	struct sp_group *g = sp_group_find_gid(j->node, j->gid);

	if (!j->gid)
		return;
	if (j->user.link)
		sp_link_say(j->user.link, &leave.hdr, SP_MSG_LEAVE, sizeof(leave));
	else if (g)
		sp_ask_cancel(g, &j->node->addr, leave.cookie);
}

/* A join ends, once. With @ended the caller does not touch it any more. */
static void sp_join_done(struct sp_join *j, int result)
{
	struct sp_node *node = j->node;
	struct sp_parts *parts, *next;
	struct sp_join *other;

	list_del_init(&j->on_node);
	if (result)
		sp_join_leave(j);
	sp_link_unuse(&j->user);
	/* The rest of a welcome may still be for another program of this node. */
	other = sp_join_waiting(node, j->gid);
	if (other)
		list_splice_init(&j->parts, &other->parts);
	list_for_each_entry_safe(parts, next, &j->parts, list)
		kvfree(parts);
	INIT_LIST_HEAD(&j->parts);
	trace_spindle_join(node->name, j->name, result);
	j->result = result;
	complete(&j->done);
	if (j->ended) {
		j->local->join = NULL;
		j->ended(j->local, result);
		mod_delayed_work(sp_wq, &j->end, 0);
	}
	sp_member_early_answer(node);
}

static void sp_join_up(struct sp_link_user *user)
{
	struct sp_join *j = container_of(user, struct sp_join, user);
	struct sp_msg_join msg = {
		.cookie = j->local->cookie,
		.config = j->config,
		.flags = j->local->flags,
	};

	strscpy(msg.name, j->name, sizeof(msg.name));
	if (sp_link_say(user->link, &msg.hdr, SP_MSG_JOIN, sizeof(msg)))
		sp_join_done(j, -EHOSTUNREACH);
}

static int sp_join_ask(struct sp_join *j, const struct sp_addr *contact);

/* Ask another node. The join may have ended when this returns. */
static void sp_join_next(struct sp_join *j, const struct sp_addr *to)
{
	struct sp_addr next = *to;
	int ret;

	sp_link_unuse(&j->user);
	/* @gid stays until there is another answer: the welcome may be on its way. */
	j->asked = true;
	j->again = false;
	ret = j->hops++ < SP_JOIN_HOPS ? sp_join_ask(j, &next) : -ELOOP;
	if (ret)
		sp_join_done(j, ret);
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
	case -ECONNREFUSED:
	case -EPROTO:
	case -ETIMEDOUT:
	case -ENOMEM:
	case -ENODEV:
		break;
	case -EBUSY:
		error = -ECONNREFUSED;
		break;
	default:
		error = -EHOSTUNREACH;
	}
	/* It was to see to it that we are taken in: so can others. */
	if (j->nothers && error != -ENODEV) {
		sp_join_next(j, &j->others[--j->nothers]);
		return;
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

/* Ask @contact, or whoever is known to form the view. */
static int sp_join_ask(struct sp_join *j, const struct sp_addr *contact)
{
	struct sp_group *g = sp_group_find(j->node, j->name);
	int ret;

	if (g && g->view.state == SP_VIEW_FAILED)
		return -EHOSTDOWN;
	if (g && g->view.state == SP_VIEW_CLOSED)
		return -ESHUTDOWN;
	if (g && g->view.id) {
		if (!sp_config_meets(&g->config, &j->config))
			return -EPROTOTYPE;
		ret = sp_ask(g, &j->node->addr, j->local->cookie, j->local->flags);
		if (ret)
			return ret;
		j->gid = g->gid;
		/* The group may end here, and the program come by a welcome. */
		j->config = g->config;
		sp_views_step(g);
		return 0;
	}
	if (g && g->forms) {
		ret = sp_join_here(g, j);
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

static void sp_join_init(struct sp_join *j, struct sp_node *node,
			 const char *name, const struct sp_config *config,
			 struct sp_local *local)
{
	memset(j, 0, sizeof(*j));
	j->node = node;
	j->user.up = sp_join_up;
	j->user.down = sp_join_down;
	j->config = *config;
	j->local = local;
	strscpy(j->name, name, sizeof(j->name));
	INIT_LIST_HEAD(&j->on_node);
	INIT_LIST_HEAD(&j->parts);
	INIT_LIST_HEAD(&j->user.on_link);
	init_completion(&j->done);
}

/* Ask. It may have ended, well or not, when this returns. */
static void sp_join_begin(struct sp_join *j, const struct sp_addr *contact)
{
	struct sp_node *node = j->node;
	int ret = -ENODEV;

	lockdep_assert_held(&sp_ctl);
	sp_member_name(node, j->local);
	list_add_tail(&j->on_node, &node->joins);
	if (!node->dying && !node->sdev->dead)
		ret = sp_join_ask(j, contact);
	if (ret)
		sp_join_done(j, ret);
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
	struct sp_join j;
	long left;

	sp_join_init(&j, node, name, config, local);
	mutex_lock(&sp_ctl);
	sp_join_begin(&j, contact);
	mutex_unlock(&sp_ctl);

	left = wait_for_completion_interruptible_timeout(&j.done, timeout);
	mutex_lock(&sp_ctl);
	/* Should the answer come later, it finds nobody, and we leave again. */
	if (!completion_done(&j.done) && left <= 0)
		sp_join_done(&j, left ? -EINTR : -ETIMEDOUT);
	mutex_unlock(&sp_ctl);
	return j.result;
}

/* A join that nobody waits for has taken too long, or is to be freed. */
static void sp_join_end(struct work_struct *work)
{
	struct sp_join *j = container_of(to_delayed_work(work),
					 struct sp_join, end);

	mutex_lock(&sp_ctl);
	if (!completion_done(&j->done))
		sp_join_done(j, -ETIMEDOUT);
	/* sp_join_done() may have queued this work once more. */
	cancel_delayed_work(&j->end);
	mutex_unlock(&sp_ctl);
	sock_put(j->local->sk);
	kfree(j);
}

/**
 * sp_member_join_begin() - become a member of a group, without waiting
 * @node: the node
 * @name: the group's name, checked
 * @contact: a node that has a member
 * @config: what is expected of the group, 0 for anything
 * @local: the member
 * @timeout: jiffies after which it ends with -ETIMEDOUT
 * @ended: called when it has ended, under sp_ctl, unless this call says how
 *
 * Context: without sp_ctl, may sleep.
 *
 * Return: -EINPROGRESS; else as sp_member_join().
 */
int sp_member_join_begin(struct sp_node *node, const char *name,
			 const struct sp_addr *contact,
			 const struct sp_config *config, struct sp_local *local,
			 long timeout,
			 void (*ended)(struct sp_local *local, int result))
{
	struct sp_join *j;
	int ret;

	j = kmalloc(sizeof(*j), GFP_KERNEL_ACCOUNT);
	if (!j)
		return -ENOMEM;
	sp_join_init(j, node, name, config, local);
	INIT_DELAYED_WORK(&j->end, sp_join_end);
	mutex_lock(&sp_ctl);
	sp_join_begin(j, contact);
	if (completion_done(&j->done)) {
		ret = j->result;
	} else {
		ret = -EINPROGRESS;
		sock_hold(local->sk);
		j->ended = ended;
		local->join = j;
		queue_delayed_work(sp_wq, &j->end, timeout);
	}
	mutex_unlock(&sp_ctl);
	if (ret != -EINPROGRESS)
		kfree(j);
	return ret;
}

/**
 * sp_member_join_cancel() - nobody wants to know any more how a join ends
 * @local: the member; whether it is joining or not
 *
 * Context: sp_ctl is held.
 */
void sp_member_join_cancel(struct sp_local *local)
{
	struct sp_join *j = local->join;

	lockdep_assert_held(&sp_ctl);
	if (!j)
		return;
	local->join = NULL;
	j->ended = NULL;
	sp_join_done(j, -ECANCELED);
	/* A work that runs already frees it. */
	if (cancel_delayed_work(&j->end)) {
		sock_put(local->sk);
		kfree(j);
	}
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
	struct sp_group *g = j->g;
	struct sp_msg_bye bye = { .gid = g->gid, .error = -EHOSTDOWN };

	/* It may be heard again, on a link that others keep. */
	if (user->link->state == SP_LINK_UP)
		sp_link_say(user->link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
	sp_view_del(&g->view, &j->addr, NULL);
	sp_joiner_free(j);
	if (g->view.id && g->view.state == SP_VIEW_FORMING)
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
	j->user.silent_ms = g->config.silent_ms;
	j->user.link_ms = g->config.link_ms;
	j->user.brief = true;
	list_add_tail(&j->list, &g->joiners);
	ret = sp_link_use(g->node, addr, &j->user);
	if (ret) {
		list_del(&j->list);
		kfree(j);
	}
	return ret;
}

/* A program on another node wants to join a group of this one. */
static int sp_member_asked(struct sp_link *link, const struct sp_msg_join *msg)
{
	struct sp_msg_answer answer = { .cookie = msg->cookie };
	struct sp_node *node = link->node;
	char name[SP_NAME_LEN];
	struct sp_group *g;
	bool again = false;
	int ret = 0;

	if (strnlen(msg->name, sizeof(msg->name)) == sizeof(msg->name))
		return -EPROTO;
	strscpy(name, msg->name, sizeof(name));
	g = sp_group_find(node, name);
	if (!g) {
		ret = -ENOENT;
	} else if (g->view.state == SP_VIEW_FAILED) {
		ret = -EHOSTDOWN;
	} else if (g->view.state == SP_VIEW_CLOSED) {
		ret = -ESHUTDOWN;
	} else if (!g->forms && !g->view.id) {
		ret = -EREMOTE;
		answer.coordinator = g->coordinator;
	} else if (!sp_config_meets(&g->config, &msg->config)) {
		ret = -EPROTOTYPE;
	} else if (g->view.id) {
		ret = sp_ask(g, &link->peer, msg->cookie, msg->flags);
		answer.view = g->view.id;
		answer.nothers = sp_asks_others(g, &link->peer, answer.others);
		again = !ret && !sp_ask_waits(g, &link->peer, msg->cookie);
	} else {
		ret = sp_joiner_add(g, &link->peer);
		if (!ret)
			ret = sp_view_add(&g->view, &link->peer, msg->cookie,
					  msg->flags);
	}
	answer.error = ret;
	/* Only members learn the number. */
	if (!ret) {
		answer.gid = g->gid;
		answer.config = g->config;
	}
	if (sp_link_say(link, &answer.hdr, SP_MSG_ANSWER, sizeof(answer)))
		return -ENOBUFS;
	if (ret)
		return 0;
	if (again)
		sp_peer_greet(g, link);
	else if (answer.view)
		sp_views_step(g);
	else
		sp_member_complete(g);
	return 0;
}

static void sp_coord_up(struct sp_link_user *user)
{
}

static void sp_coord_down(struct sp_link_user *user, int error)
{
	struct sp_group *g = container_of(user, struct sp_group, coord);
	struct sp_local *local;

	/* As sp_joiner_down(); of a view that is complete, sp_member_release() tells it. */
	if (user->link->state == SP_LINK_UP && !g->view.id)
		list_for_each_entry(local, &g->locals, on_group)
			sp_member_leave(g, local);
	if (user->link->state != SP_LINK_UP)
		sp_link_unuse(user);
	sp_group_fail(g, error == -ENODEV ? error : -EHOSTDOWN);
	sp_link_unuse(user);
}

/* We are in: make the group here, unless another member has. */
static int sp_member_in(struct sp_link *link, struct sp_join *j,
			const struct sp_msg_answer *msg)
{
	struct sp_group *g = sp_group_find_gid(link->node, msg->gid);
	int ret;

	/* The last member here has just left, and its group is not gone yet. */
	if (g && list_empty(&g->locals))
		return -EUSERS;
	/* It has failed since the contact was asked. */
	if (g && g->view.state == SP_VIEW_FAILED)
		return -EHOSTDOWN;
	if (g && (g->forms || g->view.id || g->coord.link != link ||
		  strcmp(g->name, j->name) ||
		  !sp_config_meets(&g->config, &j->config)))
		return -EPROTO;
	if (!g) {
		if (!sp_config_ok(&msg->config) ||
		    !sp_config_meets(&msg->config, &j->config))
			return -EPROTO;
		if (sp_group_find(link->node, j->name))
			return -EEXIST;
		g = sp_group_alloc(link->node, j->name, msg->gid,
				   &msg->config);
		if (IS_ERR(g))
			return PTR_ERR(g);
		g->coordinator = link->peer;
		g->coord.up = sp_coord_up;
		g->coord.down = sp_coord_down;
		g->coord.silent_ms = g->config.silent_ms;
		g->coord.link_ms = g->config.link_ms;
		g->coord.brief = true;
		sp_group_attach(g, j->local);
		ret = sp_link_use(link->node, &link->peer, &g->coord);
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

/* The group has a view: we come with a later one. */
static int sp_join_waits(struct sp_join *j, const struct sp_msg_answer *msg)
{
	if (!msg->gid || msg->nothers > SP_OTHERS_MAX ||
	    !sp_config_ok(&msg->config) ||
	    !sp_config_meets(&msg->config, &j->config))
		return -EPROTO;
	j->gid = msg->gid;
	j->asked = false;
	j->config = msg->config;
	j->nothers = msg->nothers;
	memcpy(j->others, msg->others, sizeof(j->others));
	return 0;
}

/* It is known now for which group a program waits: what was said of it already. */
static void sp_member_early_welcome(struct sp_node *node, u64 gid)
{
	struct sp_early *early, *next;
	struct sp_link *link;
	LIST_HEAD(ours);
	int ret;

	list_for_each_entry_safe(early, next, &node->early, list)
		if (!sp_early_key(early) && sp_early_gid(early) == gid)
			list_move_tail(&early->list, &ours);
	list_for_each_entry_safe(early, next, &ours, list) {
		link = sp_link_find(node, &early->from);
		ret = link ? sp_member_welcomed(link, sp_early_part(early)) : 0;
		if (ret)
			sp_link_break(link, ret, "a welcome that cannot be");
		sp_early_free(node, early);
	}
}

static int sp_member_answered(struct sp_link *link,
			      const struct sp_msg_answer *msg)
{
	struct sp_msg_leave leave = { .gid = msg->gid, .cookie = msg->cookie };
	struct sp_msg_bye bye = { .gid = msg->gid, .error = -ENOMEM };
	struct sp_group *g;
	struct sp_join *j;
	int ret;

	list_for_each_entry(j, &link->node->joins, on_node)
		if (j->local->cookie == msg->cookie && j->user.link == link)
			goto found;
	g = sp_group_find_gid(link->node, msg->gid);
	/* It has given up in the meantime, unless it has come already. */
	if (!msg->error && !(g && g->view.id &&
			     sp_view_find_member(&g->view, &link->node->addr,
						 msg->cookie) >= 0))
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
	case -ESHUTDOWN:
		break;
	default:
		return -EPROTO;
	}
	if (ret == -EREMOTE) {
		sp_join_next(j, &msg->coordinator);
		return 0;
	}
	if (!ret && msg->view) {
		ret = sp_join_waits(j, msg);
		if (ret)
			sp_join_done(j, ret);
		else
			sp_member_early_welcome(link->node, msg->gid);
		/* It comes to no other group. */
		sp_member_early_answer(link->node);
		return 0;
	}
	/* One of the others may not have known yet that it has left, too. */
	if (ret == -ENOENT && j->nothers) {
		sp_join_next(j, &j->others[--j->nothers]);
		return 0;
	}
	if (!ret) {
		ret = sp_member_in(link, j, msg);
		/* If the view is complete with us, the group fails for it. */
		if (ret == -ENOMEM)
			sp_link_say(link, &bye.hdr, SP_MSG_BYE, sizeof(bye));
		if (ret)
			sp_link_say(link, &leave.hdr, SP_MSG_LEAVE,
				    sizeof(leave));
	}
	sp_join_done(j, ret);
	return 0;
}

/* Members of the first view, from the node that has formed it. */
static int sp_member_told(struct sp_link *link, const struct sp_msg_view *msg)
{
	struct sp_group *g = sp_group_find_gid(link->node, msg->gid);
	struct sp_local *local;
	u32 i;

	if (msg->count > SP_VIEW_CHUNK ||
	    msg->hdr.len != struct_size(msg, members, msg->count))
		return -EPROTO;
	if (!g || g->coord.link != link || g->view.id ||
	    g->view.state != SP_VIEW_FORMING)
		return 0;
	if (msg->first != g->view.nmembers ||
	    msg->total != g->config.members)
		goto bad;
	for (i = 0; i < msg->count; i++) {
		const struct sp_wire_member *m = &msg->members[i];

		if (sp_view_add(&g->view, &m->addr, m->cookie, m->flags))
			goto bad;
	}
	if (!sp_view_complete(&g->view))
		return 0;
	list_for_each_entry(local, &g->locals, on_group)
		if (sp_view_find_member(&g->view, &g->node->addr,
					local->cookie) < 0)
			goto bad;
	if (sp_view_rank(&g->view, msg->view))
		goto bad;
	sp_group_install(g);
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

/* Keep a message until it is known what it is for. */
static int sp_early_keep(struct sp_link *link, const struct sp_msg *msg)
{
	struct sp_node *node = link->node;
	struct sp_early *early;
	int ret;

	early = sp_early_oldest(node, &link->peer);
	if (early) {
		/* What gives way is never answered by a key: that group fails. */
		ret = sp_early_refuse(early, link);
		if (ret)
			return ret;
		sp_early_free(node, early);
	}
	if (node->nearly >= SP_EARLY_MAX)
		return -ENOBUFS;
	/* Without it the link would have to go, for all groups: see sp_link_say(). */
	early = kmalloc(sizeof(*early) + msg->len, GFP_KERNEL | __GFP_NOFAIL);
	early->from = link->peer;
	memcpy(early->msg, msg, msg->len);
	list_add_tail(&early->list, &node->early);
	node->nearly++;
	return 0;
}

/* A key; the view it belongs to may not be known here yet. */
static int sp_member_key(struct sp_link *link, const struct sp_msg_key *key)
{
	struct sp_group *g = sp_group_find_gid(link->node, key->gid);
	struct sp_node *node = link->node;
	bool later;

	if (key->nlanes > SP_MAX_NODE_LANES ||
	    key->hdr.len != struct_size(key, lane, key->nlanes))
		return -EPROTO;
	/* Who has left and waits to come again may be told keys before the view. */
	later = g && g->ending && key->view > g->view.id &&
		(sp_join_waiting(node, key->gid) || sp_join_unanswered(node));
	if (g && g->ready && !later) {
		int when = sp_peer_when(g, link, key);

		if (when < 0)
			return sp_member_answer_bye(link, g->gid, key->view, -ECONNRESET);
		if (!when) {
			sp_peer_key(g, &link->peer, key);
			return 0;
		}
	}
	if (sp_member_forgotten(node, key->gid, key->view))
		return sp_member_answer_bye(link, key->gid, key->view, -ECONNRESET);
	return sp_early_keep(link, &key->hdr);
}

/**
 * sp_member_early() - take the keys that came before their view
 * @g: the group, its memory there
 *
 * Context: sp_ctl is held.
 */
void sp_member_early(struct sp_group *g)
{
	struct sp_early *early, *next;
	LIST_HEAD(ours);

	/* A group that fails for its key may have others looked through. */
	list_for_each_entry_safe(early, next, &g->node->early, list) {
		const struct sp_msg_key *key = sp_early_key(early);

		if (key && key->gid == g->gid && key->view <= g->view.id)
			list_move_tail(&early->list, &ours);
	}
	list_for_each_entry_safe(early, next, &ours, list) {
		sp_peer_key(g, &early->from, sp_early_key(early));
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

	if (g->forms)
		sp_view_del(&g->view, &g->node->addr, &local->cookie);
	else if (g->coord.link)
		sp_link_say(g->coord.link, &leave.hdr, SP_MSG_LEAVE,
			    sizeof(leave));
}

/**
 * sp_member_release() - the view is formed, or never will be
 * @g: the group
 * @error: what it failed with, or 0
 *
 * Context: sp_ctl is held.
 */
void sp_member_release(struct sp_group *g, int error)
{
	struct sp_msg_bye bye = { .gid = g->gid, .error = error };
	bool tell = g->ending && g->view.state != SP_VIEW_CLOSED;
	struct sp_joiner *j, *next;

	list_for_each_entry_safe(j, next, &g->joiners, list) {
		if (tell)
			sp_link_say(j->user.link, &bye.hdr, SP_MSG_BYE,
				    sizeof(bye));
		sp_joiner_free(j);
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

static struct sp_parts *sp_parts_find(struct sp_join *j,
				      const struct sp_addr *from)
{
	struct sp_parts *parts;

	list_for_each_entry(parts, &j->parts, list)
		if (!sp_addr_cmp(&parts->from, from))
			return parts;
	return NULL;
}

/* The program whose welcome goes on; else any that waits for the group. */
static struct sp_join *sp_parts_join(struct sp_node *node, const struct sp_addr *from,
				     const struct sp_msg_part *msg)
{
	struct sp_join *j;

	list_for_each_entry(j, &node->joins, on_node)
		if (msg->off && j->gid == msg->gid && sp_parts_find(j, from))
			return j;
	return sp_join_waiting(node, msg->gid);
}

/* One more part of a welcome. Return: all of it, when this was the last. */
static struct sp_parts *sp_parts_add(struct sp_join *j, const struct sp_addr *from,
				     const struct sp_msg_part *msg)
{
	struct sp_parts *parts = sp_parts_find(j, from);
	u32 some = msg->hdr.len - sizeof(*msg);

	if (!msg->off) {
		if (parts)
			list_del(&parts->list);
		kvfree(parts);
		if (msg->total > SP_WELCOME_MAX)
			return ERR_PTR(-EPROTO);
		parts = kvzalloc(sizeof(*parts) + msg->total, GFP_KERNEL_ACCOUNT);
		if (!parts)
			return ERR_PTR(-ENOMEM);
		parts->from = *from;
		parts->total = msg->total;
		list_add(&parts->list, &j->parts);
	}
	/* Whoever it was begun for has given up. */
	if (!parts)
		return NULL;
	if (msg->off != parts->got || msg->total != parts->total ||
	    some > parts->total - parts->got)
		return ERR_PTR(-EPROTO);
	memcpy((u8 *)parts->data + parts->got, msg->data, some);
	parts->got += some;
	return parts->got == parts->total ? parts : NULL;
}

/*
 * Does a program come with a view of a group? The answer to its join, which names the
 * group, may still be on its way when others tell of the view. The cookie in the view
 * says enough: no other program of this node ever had it.
 */
static bool sp_join_due(const struct sp_join *j, u64 gid, const char *name,
			const struct sp_config *config, const struct sp_view *v)
{
	if (j->comes || sp_view_find_member(v, &j->node->addr, j->local->cookie) < 0)
		return false;
	return j->gid ? j->gid == gid :
	       !strcmp(j->name, name) && sp_config_meets(config, &j->config);
}

/* It comes with the view of a group that begins here. */
static void sp_join_comes(struct sp_join *j, struct sp_group *g)
{
	j->gid = g->gid;
	j->comes = true;
	j->local->group = g;
}

/* Make the group here, with all who wait for it and are in the view. */
static int sp_member_begin(struct sp_node *node, u64 gid, struct sp_join *first,
			   const struct sp_view *v, struct sp_welcome *welcome)
{
	struct sp_group *g;
	struct sp_join *j;
	bool due = false;

	if (sp_view_find_node(v, &node->addr) < 0)
		return -EPROTO;
	if (v->nmembers > first->config.limit)
		return -EPROTO;
	list_for_each_entry(j, &node->joins, on_node)
		due |= sp_join_due(j, gid, first->name, &first->config, v);
	/* All that were to come have given up. Others may come with a later view. */
	if (!due)
		return -ESTALE;
	if (sp_group_find(node, first->name))
		return -EEXIST;
	g = sp_group_alloc(node, first->name, gid, &first->config);
	if (IS_ERR(g))
		return PTR_ERR(g);
	g->coordinator = node->addr;
	g->view = *v;
	g->first = v->id;
	g->welcome = welcome;
	list_for_each_entry(j, &node->joins, on_node) {
		if (!sp_join_due(j, gid, g->name, &g->config, v))
			continue;
		sp_group_attach(g, j->local);
		sp_join_comes(j, g);
	}
	sp_member_come(g);
	sp_group_install(g);
	return 0;
}

/* Programs wait for a group that cannot be made here. */
static void sp_joins_fail(struct sp_node *node, u64 gid, int error)
{
	struct sp_join *j;

	while ((j = sp_join_waiting(node, gid)))
		sp_join_done(j, error);
}

/* A part of a welcome has come: the first one that is whole counts. */
static int sp_member_welcomed(struct sp_link *link, const struct sp_msg_part *msg)
{
	struct sp_node *node = link->node;
	struct sp_group *g = sp_group_find_gid(node, msg->gid);
	struct sp_join *j = sp_parts_join(node, &link->peer, msg);
	struct sp_welcome *welcome;
	struct sp_parts *parts;
	struct sp_view *v;
	int ret = -ENOMEM;
	u64 view = 0;

	/* One more, and none too much. */
	if (g && !g->ending)
		return 0;
	/* The answer that names the group may come by another link. */
	if (!j && sp_join_unanswered(node))
		return sp_early_keep(link, &msg->hdr);
	/* It has given up. Its node is in the view for nothing. */
	if (!j)
		return sp_part_refuse(link, msg);
	parts = sp_parts_add(j, &link->peer, msg);
	if (!parts)
		return 0;
	if (parts == ERR_PTR(-ENOMEM)) {
		view = sp_part_view(msg);
		goto fail;
	}
	if (IS_ERR(parts))
		return PTR_ERR(parts);
	if (parts->total >= sizeof(struct sp_wire_welcome))
		view = ((const struct sp_wire_welcome *)parts->data)->view;
	v = kvzalloc(sizeof(*v), GFP_KERNEL);
	welcome = kvzalloc(sizeof(*welcome), GFP_KERNEL_ACCOUNT);
	if (v && welcome) {
		sp_view_init(v, j->config.members, j->config.senders);
		ret = sp_welcome_decode((u8 *)parts->data, parts->total, v,
					welcome);
		/* Joins that end take the parts with them. */
		if (!ret)
			ret = sp_member_begin(node, msg->gid, j, v, welcome);
	}
	kvfree(v);
	if (!ret)
		return 0;
	kvfree(welcome);
	if (ret == -EPROTO)
		return ret;
	if (ret == -ESTALE)
		return sp_member_answer_bye(link, msg->gid, view, -ECONNRESET);
fail:
	sp_joins_fail(node, msg->gid, ret);
	return sp_member_answer_bye(link, msg->gid, view, -ENOMEM);
}

/**
 * sp_member_due() - the program of this node that comes as a member of a view
 * @g: the group
 * @cookie: what this node calls it
 *
 * Context: sp_ctl and the engine's lock are held.
 *
 * Return: its member, which is the group's from now on; NULL when it has given up.
 */
struct sp_local *sp_member_due(struct sp_group *g, u64 cookie)
{
	struct sp_join *j;

	list_for_each_entry(j, &g->node->joins, on_node) {
		if (j->local->cookie != cookie ||
		    !sp_join_due(j, g->gid, g->name, &g->config, &g->view))
			continue;
		sp_join_comes(j, g);
		return j->local;
	}
	return NULL;
}

/**
 * sp_member_expect() - a view follows: have a group that programs here come to be seen
 * @g: the group, which this node stays in
 * @v: the view
 *
 * A group is hidden when the last socket here closes. While that member has yet to
 * leave, the node is in the view, and a program that joins meanwhile comes to the
 * group that is there. By then another group may have the name: the joins fail, and
 * sp_views_orphans() has their members leave.
 *
 * Context: sp_ctl is held, may sleep.
 */
void sp_member_expect(struct sp_group *g, const struct sp_view *v)
{
	struct sp_join *j;
	int ret = 0;

	lockdep_assert_held(&sp_ctl);
again:
	/* The end of one may be that of others, too. */
	list_for_each_entry(j, &g->node->joins, on_node) {
		if (g->shown || !sp_join_due(j, g->gid, g->name, &g->config, v))
			continue;
		if (!ret)
			ret = sp_group_find(g->node, g->name) ? -EEXIST :
			      sp_observe_group_add(g);
		if (ret)
			sp_join_done(j, ret);
		goto again;
	}
}

/**
 * sp_member_come() - a view has begun: those who have come with it need wait no more
 * @g: the group
 *
 * Context: sp_ctl is held.
 */
void sp_member_come(struct sp_group *g)
{
	struct sp_join *j;

	lockdep_assert_held(&sp_ctl);
again:
	/* The end of one may be that of others, too. */
	list_for_each_entry(j, &g->node->joins, on_node) {
		if (j->gid != g->gid || !j->comes)
			continue;
		sp_join_done(j, 0);
		goto again;
	}
}

/**
 * sp_member_turned_away() - a group of this node ends that a program here waits for
 * @node: the node
 * @cookie: the program
 * @error: why; -EREMOTE: it has gone on elsewhere
 * @other: where
 *
 * Context: sp_ctl is held.
 */
void sp_member_turned_away(struct sp_node *node, u64 cookie, int error,
			   const struct sp_addr *other)
{
	struct sp_join *j;

	list_for_each_entry(j, &node->joins, on_node) {
		if (j->local->cookie != cookie)
			continue;
		if (error == -EREMOTE)
			sp_join_next(j, other);
		else
			sp_join_done(j, error);
		return;
	}
}

/* A member gave up before it knew that it is in the first view. */
static void sp_member_gave_up(struct sp_group *g, const struct sp_addr *addr)
{
	struct sp_group_peer *gp = sp_peer_find(g, addr);

	if (g->view.state == SP_VIEW_FORMING)
		sp_group_fail(g, -ECONNRESET);
	else if (gp)
		sp_views_suspect(g, gp, "has given up before it came");
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
	case SP_MSG_KEY:
		return sizeof(struct sp_msg_key);
	case SP_MSG_BYE:
		return sizeof(struct sp_msg_bye);
	case SP_MSG_REPORT:
	case SP_MSG_WELCOME:
		return sizeof(struct sp_msg_part);
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
	const struct sp_msg_part *part = (const void *)msg;
	const struct sp_msg_leave *leave = (const void *)msg;
	struct sp_msg_bye bye;
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
	case SP_MSG_KEY:
		return sp_member_key(link, (const void *)msg);
	case SP_MSG_REPORT:
		g = sp_group_find_gid(link->node, part->gid);
		if (g)
			sp_views_report(g, link, part);
		return 0;
	case SP_MSG_WELCOME:
		return sp_member_welcomed(link, part);
	case SP_MSG_LEAVE:
		g = sp_group_find_gid(link->node, leave->gid);
		if (g && g->forms && !g->view.id)
			sp_view_del(&g->view, &link->peer, &leave->cookie);
		else if (g && !sp_ask_cancel(g, &link->peer, leave->cookie) &&
			 g->view.id == 1 &&
			 sp_view_find_member(&g->view, &link->peer,
					     leave->cookie) >= 0)
			sp_member_gave_up(g, &link->peer);
		return 0;
	default:
		/* What comes of it may be the end of the link. */
		bye = *(const struct sp_msg_bye *)msg;
		g = sp_peer_meant(link, &bye);
		if (g)
			sp_peer_bye(g, link, &bye);
		if (bye.error && (!g || sp_peer_mute(g, &link->peer)))
			return sp_member_answer_bye(link, bye.gid, bye.shared, 0);
		return 0;
	}
}
