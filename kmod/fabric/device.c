// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices, and the nodes on them: local addresses that programs have
 * bound sockets to.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../engine.h"
#include "../observe/observe.h"
#include "fabric.h"

#define SP_FAREWELL_MS	10000	/* what a node says last has so long to arrive, or suspect_ms */

/* The control plane's lock: see fabric.h and Documentation/locking.rst. */
DEFINE_MUTEX(sp_ctl);
struct workqueue_struct *sp_wq;
struct workqueue_struct *sp_tcp_wq;
const struct sp_fabric_upcalls *sp_up;

static LIST_HEAD(sp_devices);
/* Woken when a dying node is gone. */
static DECLARE_WAIT_QUEUE_HEAD(sp_node_gone);

/* Held while a node is made. Outside sp_ctl; no handler takes it. */
static DEFINE_MUTEX(sp_node_making);

static struct ib_client sp_client;

static void sp_device_release(struct kref *ref)
{
	kfree(container_of(ref, struct sp_device, ref));
}

/**
 * sp_device_put() - drop a reference to a device
 * @sdev: the device
 */
void sp_device_put(struct sp_device *sdev)
{
	kref_put(&sdev->ref, sp_device_release);
}

/**
 * sp_device_object_gone() - one link or mapped slab less
 * @sdev: the device; somebody else holds a reference
 */
void sp_device_object_gone(struct sp_device *sdev)
{
	/* Whoever waits for the last one does so under no lock of ours. */
	if (atomic_dec_and_test(&sdev->objects))
		wake_up_all(&sdev->idle);
}

static bool sp_device_polls(const struct ib_device *ib)
{
	/* A sleep flag has to have landed when its write completes. */
	if (rdma_protocol_iwarp(ib, rdma_start_port(ib)))
		return false;
	/*
	 * By choice alone. Devices with relaxed ordering do not make the writes of
	 * one queue pair visible in order to a CPU that polls. Soft-RoCE does, but
	 * it runs on the processors that would be polling.
	 */
	return !strcmp(sp_doorbell, "polled");
}

static int sp_client_add(struct ib_device *ib)
{
	struct sp_device *sdev;

	if (!(ib->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS)) {
		pr_info("spindle: %s: no memory management extensions, not used\n",
			dev_name(&ib->dev));
		return -EOPNOTSUPP;
	}
	sdev = kzalloc(sizeof(*sdev), GFP_KERNEL);
	if (!sdev)
		return -ENOMEM;
	sdev->ib = ib;
	kref_init(&sdev->ref);
	INIT_LIST_HEAD(&sdev->nodes);
	init_waitqueue_head(&sdev->idle);
	sdev->polled = sp_device_polls(ib);
	sdev->max_sge = ib->attrs.max_send_sge;
	sdev->max_pages = ib->attrs.max_fast_reg_page_list_len;
	mutex_lock(&sp_ctl);
	list_add_tail(&sdev->all, &sp_devices);
	mutex_unlock(&sp_ctl);
	ib_set_client_data(ib, &sp_client, sdev);
	return 0;
}

/* A node that still listens; its listener is the caller's from now on. */
static struct sp_node *sp_client_listening(struct sp_device *sdev,
					   struct rdma_cm_id **listener)
{
	struct sp_node *node, *found = NULL;

	mutex_lock(&sp_ctl);
	list_for_each_entry(node, &sdev->nodes, on_device) {
		if (!node->listener)
			continue;
		*listener = node->listener;
		node->listener = NULL;
		/* Its handler may run until the listener is destroyed. */
		kref_get(&node->ref);
		found = node;
		break;
	}
	mutex_unlock(&sp_ctl);
	return found;
}

/* Take down everything on a device, then wait until it holds no object of it. */
static void sp_client_remove(struct ib_device *ib, void *client_data)
{
	struct sp_device *sdev = client_data;
	struct rdma_cm_id *listener;
	struct sp_engine *engine;
	struct sp_link *link;
	struct sp_node *node;

	mutex_lock(&sp_ctl);
	sdev->dead = true;
	list_for_each_entry(node, &sdev->nodes, on_device) {
		sp_up->removed(node);
		while ((link = list_first_entry_or_null(&node->links,
							struct sp_link,
							on_node)))
			sp_link_set_state(link, SP_LINK_DOWN, -ENODEV);
		sp_observe_node_del(node);
	}
	mutex_unlock(&sp_ctl);

	/* Groups give their keys back and drop their links from works. */
	while ((node = sp_client_listening(sdev, &listener))) {
		rdma_destroy_id(listener);
		sp_node_put(node);
	}
	wait_event(sdev->idle, !atomic_read(&sdev->objects));

	mutex_lock(&sp_ctl);
	list_del(&sdev->all);
	/* A bind() that has found the device by its listener looks here. */
	ib_set_client_data(ib, &sp_client, NULL);
	engine = sdev->engine;
	WRITE_ONCE(sdev->engine, NULL);
	mutex_unlock(&sp_ctl);
	wake_up_all(&sp_node_gone);
	if (engine) {
		/* Kicks look the engine up under RCU. */
		synchronize_rcu();
		sp_engine_stop(engine);
	}
	sp_device_put(sdev);
}

static struct ib_client sp_client = {
	.name = "spindle",
	.add = sp_client_add,
	.remove = sp_client_remove,
};

static void sp_node_release(struct kref *ref)
{
	struct sp_node *node = container_of(ref, struct sp_node, ref);

	sp_fault_forget(node);
	put_net(node->net);
	sp_device_put(node->sdev);
	kfree(node);
}

/**
 * sp_node_put() - drop a reference that keeps a node's memory
 * @node: the node
 */
void sp_node_put(struct sp_node *node)
{
	kref_put(&node->ref, sp_node_release);
}

static bool sp_node_talking(struct sp_node *node)
{
	bool talking = false;
	struct sp_link *link;

	mutex_lock(&sp_ctl);
	list_for_each_entry(link, &node->links, on_node)
		if (link->state == SP_LINK_UP &&
		    (link->nout ||
		     sp_post_completed(link) != READ_ONCE(link->built)))
			talking = true;
	mutex_unlock(&sp_ctl);
	return talking;
}

/* The last user is gone: stop listening, drop the links, forget the node. */
static void sp_node_destroy(struct work_struct *work)
{
	struct sp_node *node = container_of(work, struct sp_node, destroy);
	struct rdma_cm_id *listener;
	struct sp_link *link;
	unsigned long end;

	mutex_lock(&sp_ctl);
	listener = node->listener;
	node->listener = NULL;
	mutex_unlock(&sp_ctl);
	if (listener)
		rdma_destroy_id(listener);

	/* What was said last, a bye, should arrive before the links go. */
	end = jiffies + msecs_to_jiffies(min_t(u32, sp_suspect_ms,
					       SP_FAREWELL_MS));
	while (sp_node_talking(node) && time_before(jiffies, end))
		usleep_range(1000, 2000);

	mutex_lock(&sp_ctl);
	while ((link = list_first_entry_or_null(&node->links, struct sp_link,
						on_node)))
		sp_link_set_state(link, SP_LINK_DOWN, -ESHUTDOWN);
	sp_up->forget(node);
	sp_observe_node_del(node);
	list_del(&node->on_device);
	mutex_unlock(&sp_ctl);
	wake_up_all(&sp_node_gone);
	sp_node_put(node);
}

static struct sp_node *sp_node_find(struct net *net, const struct sp_addr *addr,
				    u32 scope_id)
{
	struct sp_device *sdev;
	struct sp_node *node;

	lockdep_assert_held(&sp_ctl);
	list_for_each_entry(sdev, &sp_devices, all)
		list_for_each_entry(node, &sdev->nodes, on_device)
			if (node->net == net && node->scope_id == scope_id &&
			    !sp_addr_cmp(&node->addr, addr))
				return node;
	return NULL;
}

/* Use the node at an address. NULL: none is there; -EAGAIN: it goes away. */
static struct sp_node *sp_node_lookup(struct net *net,
				      const struct sp_addr *addr, u32 scope_id)
{
	struct sp_node *node;

	mutex_lock(&sp_ctl);
	node = sp_node_find(net, addr, scope_id);
	if (node && (node->dying || node->sdev->dead))
		node = ERR_PTR(-EAGAIN);
	else if (node)
		sp_node_user(node);
	mutex_unlock(&sp_ctl);
	return node;
}

/* Bring a new node into the world. */
static struct sp_node *sp_node_publish(struct sp_node *node)
{
	struct sp_device *sdev = node->sdev;
	int ret = 0;

	mutex_lock(&sp_ctl);
	if (sdev->dead) {
		ret = -ENODEV;
	} else if (!sdev->engine) {
		struct sp_engine *engine = sp_engine_start(sdev);

		if (IS_ERR(engine))
			ret = PTR_ERR(engine);
		else
			sdev->engine = engine;
	}
	if (!ret)
		ret = sp_observe_node_add(node);
	if (!ret) {
		list_add_tail(&node->on_device, &sdev->nodes);
		node->users = 1;
		node->dying = false;
	}
	mutex_unlock(&sp_ctl);
	return ret ? ERR_PTR(ret) : node;
}

/* An address may be there once in each namespace, and on each interface. */
static void sp_node_name(struct sp_node *node)
{
	char addr[48];

	sp_addr_name(&node->addr, addr, sizeof(addr));
	if (net_eq(node->net, &init_net))
		strscpy(node->name, addr, sizeof(node->name));
	else
		snprintf(node->name, sizeof(node->name), "%s@%u", addr,
			 node->net->ns.inum);
	if (node->scope_id)
		snprintf(node->name + strlen(node->name),
			 sizeof(node->name) - strlen(node->name), "%%%u",
			 node->scope_id);
}

/* When a node is made. A later one has a later time, also when the clock was set back. */
static u64 sp_incarnation(void)
{
	static u64 last;

	lockdep_assert_held(&sp_ctl);
	last = max(last + 1, ktime_get_real_ns());
	return last;
}

static struct sp_node *sp_node_create(struct net *net,
				      const struct sp_addr *addr, u32 scope_id)
{
	struct sp_device *sdev;
	struct sp_node *node;
	struct sp_node *made;
	int ret;

	node = kzalloc(sizeof(*node), GFP_KERNEL);
	if (!node)
		return ERR_PTR(-ENOMEM);
	node->net = get_net(net);
	node->addr = *addr;
	node->scope_id = scope_id;
	sp_node_name(node);
	kref_init(&node->ref);
	INIT_LIST_HEAD(&node->links);
	INIT_LIST_HEAD(&node->groups);
	INIT_LIST_HEAD(&node->joins);
	INIT_LIST_HEAD(&node->early);
	INIT_LIST_HEAD(&node->faults);
	INIT_WORK(&node->destroy, sp_node_destroy);
	/* Until it is on the device's list, requests to it are refused. */
	node->dying = true;

	ret = sp_cm_listen(node, &node->listener);
	if (ret)
		goto err_free;
	mutex_lock(&sp_ctl);
	sdev = ib_get_client_data(node->listener->device, &sp_client);
	if (sdev && !sdev->dead) {
		kref_get(&sdev->ref);
		node->sdev = sdev;
	}
	node->incarnation = sp_incarnation();
	mutex_unlock(&sp_ctl);
	if (!node->sdev) {
		ret = -ENODEV;
		goto err_listen;
	}
	made = sp_node_publish(node);
	if (IS_ERR(made)) {
		rdma_destroy_id(node->listener);
		sp_node_put(node);
		return made;
	}
	return node;

err_listen:
	rdma_destroy_id(node->listener);
err_free:
	put_net(node->net);
	kfree(node);
	return ERR_PTR(ret);
}

/**
 * sp_node_get() - be a user of the node at an address; make it if need be
 * @net: network namespace
 * @addr: the address
 * @scope_id: interface of a link-local address
 *
 * Context: may sleep; without sp_ctl. Waits for a node of that address that is
 * going away; interruptible.
 *
 * Return: the node, to be given back with sp_node_unuse(); or an ERR_PTR:
 * -EADDRNOTAVAIL, -ENODEV, -ERESTARTSYS and others.
 */
struct sp_node *sp_node_get(struct net *net, const struct sp_addr *addr,
			    u32 scope_id)
{
	/* A lookup takes sp_ctl: a wait_event() may not. */
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	struct sp_node *node;
	bool going;

	add_wait_queue(&sp_node_gone, &wait);
	for (;;) {
		/* Two that come at once would both listen. */
		mutex_lock(&sp_node_making);
		node = sp_node_lookup(net, addr, scope_id);
		going = node == ERR_PTR(-EAGAIN);
		if (!node)
			node = sp_node_create(net, addr, scope_id);
		mutex_unlock(&sp_node_making);
		if (!going)
			break;
		if (signal_pending(current)) {
			node = ERR_PTR(-ERESTARTSYS);
			break;
		}
		wait_woken(&wait, TASK_INTERRUPTIBLE, MAX_SCHEDULE_TIMEOUT);
	}
	remove_wait_queue(&sp_node_gone, &wait);
	return node;
}

/**
 * sp_node_user() - be one more user of a node
 * @node: the node, in use
 *
 * Context: sp_ctl is held.
 */
void sp_node_user(struct sp_node *node)
{
	lockdep_assert_held(&sp_ctl);
	node->users++;
}

/**
 * sp_node_unuse() - be a user no longer; with the last one the node goes
 * @node: the node
 *
 * Context: sp_ctl is held.
 */
void sp_node_unuse(struct sp_node *node)
{
	lockdep_assert_held(&sp_ctl);
	if (--node->users)
		return;
	node->dying = true;
	queue_work(sp_wq, &node->destroy);
}

/**
 * sp_fabric_init() - find the RDMA devices
 * @upcalls: what to call
 *
 * Return: 0 or a negative errno.
 */
int sp_fabric_init(const struct sp_fabric_upcalls *upcalls)
{
	int ret;

	sp_up = upcalls;
	sp_wq = alloc_workqueue("spindle", WQ_UNBOUND | WQ_SYSFS, 0);
	if (!sp_wq)
		return -ENOMEM;
	ret = -ENOMEM;
	sp_tcp_wq = alloc_workqueue("spindle_tcp", WQ_UNBOUND | WQ_SYSFS, 0);
	if (!sp_tcp_wq)
		goto err_wq;
	ret = ib_register_client(&sp_client);
	if (!ret)
		return 0;
	destroy_workqueue(sp_tcp_wq);
err_wq:
	destroy_workqueue(sp_wq);
	return ret;
}

/**
 * sp_fabric_exit() - let go of all devices. No socket is open any more
 */
void sp_fabric_exit(void)
{
	ib_unregister_client(&sp_client);
	/* Works that wait for a grace period are queued after it: see sp_peer_forget(). */
	rcu_barrier();
	/* Those, and nodes whose last user went just now. */
	destroy_workqueue(sp_wq);
	destroy_workqueue(sp_tcp_wq);
}
