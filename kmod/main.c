// SPDX-License-Identifier: GPL-2.0
/* The module: parameters, and the order in which its parts come and go. */
#include <linux/module.h>

#include "af_spindle.h"
#include "engine.h"
#include "limits.h"
#include "observe/observe.h"

static unsigned int family;
module_param(family, uint, 0444);
MODULE_PARM_DESC(family, "Number of the socket family: 18, 13 or 22; 0: the first that is free; reads as the one in use");

char *sp_doorbell = "auto";
module_param_named(doorbell, sp_doorbell, charp, 0444);
MODULE_PARM_DESC(doorbell, "How peers tell of what they wrote: completion, polled, or auto, which is completion");

unsigned short sp_port = 21328;
module_param_named(port, sp_port, ushort, 0444);
MODULE_PARM_DESC(port, "Port that nodes listen on (RDMA CM, RDMA_PS_TCP)");

unsigned int sp_ack_timeout = 16;
module_param_named(ack_timeout, sp_ack_timeout, uint, 0444);
MODULE_PARM_DESC(ack_timeout, "Time before an unacknowledged packet is sent again: 4.096 us * 2^N, N from 8 to 24");

unsigned int sp_suspect_ms = 5000;
module_param_named(suspect_ms, sp_suspect_ms, uint, 0444);
MODULE_PARM_DESC(suspect_ms, "Milliseconds without an answer of a node before it counts as lost, 50 to 600000; groups may say otherwise");

unsigned int sp_spin = 40;
module_param_named(spin, sp_spin, uint, 0644);
MODULE_PARM_DESC(spin, "Passes without news before an engine that polls goes to sleep, 1 to 1000000; for groups made afterwards");

static void sp_tell_engine(struct sp_device *sdev, void (*tell)(struct sp_engine *))
{
	struct sp_engine *engine;

	/* Removal waits for a grace period before the engine goes. */
	rcu_read_lock();
	engine = READ_ONCE(sdev->engine);
	if (engine)
		tell(engine);
	rcu_read_unlock();
}

static void sp_progress_made(struct sp_device *sdev)
{
	sp_tell_engine(sdev, sp_engine_raise);
}

static void sp_requests_landed(struct sp_device *sdev)
{
	sp_tell_engine(sdev, sp_engine_landed);
}

static const struct sp_fabric_upcalls sp_upcalls = {
	.message = sp_member_message,
	.row = sp_group_row,
	.wake = sp_group_woken,
	.progress = sp_progress_made,
	.landed = sp_requests_landed,
	.lost = sp_member_lost,
	.flushed = sp_peers_flushed,
	.removed = sp_member_removed,
	.forget = sp_member_forget,
};

static int sp_params_check(void)
{
	if (strcmp(sp_doorbell, "auto") && strcmp(sp_doorbell, "polled") &&
	    strcmp(sp_doorbell, "completion")) {
		pr_err("spindle: doorbell=%s is none of auto, polled, completion\n",
		       sp_doorbell);
		return -EINVAL;
	}
	if (!sp_port || sp_ack_timeout < 8 || sp_ack_timeout > 24) {
		pr_err("spindle: port must not be 0, ack_timeout be 8 to 24\n");
		return -EINVAL;
	}
	if (sp_suspect_ms < SPINDLE_MIN_PATIENCE ||
	    sp_suspect_ms > SPINDLE_MAX_PATIENCE) {
		pr_err("spindle: suspect_ms must be 50 to 600000\n");
		return -EINVAL;
	}
	sp_spin = clamp(sp_spin, 1U, 1000000U);
	return 0;
}

static int __init sp_init(void)
{
	int ret;

	ret = sp_params_check();
	if (ret)
		return ret;
	ret = sp_observe_init();
	if (ret)
		return ret;
	ret = sp_limits_init();
	if (ret)
		goto err_observe;
	ret = sp_fabric_init(&sp_upcalls);
	if (ret)
		goto err_limits;
	ret = sp_family_register(family);
	if (ret)
		goto err_fabric;
	family = sp_family;
	pr_info("spindle: socket family %u, wire version %u\n", sp_family,
		SP_WIRE_VERSION);
	return 0;

err_fabric:
	sp_fabric_exit();
err_limits:
	sp_limits_exit();
err_observe:
	sp_observe_exit();
	return ret;
}

static void __exit sp_exit(void)
{
	sp_family_unregister();
	sp_fabric_exit();
	sp_limits_exit();
	sp_observe_exit();
	/* Handles and groups were looked up under RCU. */
	rcu_barrier();
}

module_init(sp_init);
module_exit(sp_exit);
MODULE_DESCRIPTION("Reliable, totally ordered RDMA multicast sockets");
MODULE_LICENSE("GPL");
MODULE_VERSION("0.1");
