/* SPDX-License-Identifier: GPL-2.0 */
/* The predicate thread: one a device. */
#ifndef SPINDLE_ENGINE_H
#define SPINDLE_ENGINE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/timer.h>
#include <linux/wait.h>

struct sp_device;
struct sp_group;
struct task_struct;

/**
 * struct sp_engine - the predicate thread of a device
 * @ref: the device holds it, and who runs a pass by himself
 * @task: the thread
 * @lock: held for each round over the groups; guards @awake and what the
 *	passes touch. Taken within sp_ctl
 * @awake: groups to pass over: those that sleep cost nothing
 * @kick_lock: guards @kicked and each group's on_kicked and engaged; innermost
 * @kicked: groups that were kicked, to be put on @awake
 * @wait: where it sleeps
 * @blocks: the thread waits for something to come, or is about to; under @lock
 * @watches: some group awake wants to pass when requests have completed: see
 *	sp_core_watches(). Written under @lock, read by completion handlers
 * @rest: the next group has rested, or some time before: see sp_core_rests()
 * @stirred: there is something to look at. Who has changed something sets it
 *	(after the change), the engine clears it before it looks
 */
struct sp_engine {
	struct kref ref;
	struct task_struct *task;
	struct mutex lock;
	struct list_head awake;
	spinlock_t kick_lock;
	struct list_head kicked;
	wait_queue_head_t wait;
	bool blocks;
	bool watches;
	struct timer_list rest;
	atomic_t stirred;
};

struct sp_engine *sp_engine_start(struct sp_device *sdev);
void sp_engine_stop(struct sp_engine *engine);
void sp_engine_add(struct sp_engine *engine, struct sp_group *g);
void sp_engine_del(struct sp_engine *engine, struct sp_group *g);
void sp_engine_stir(struct sp_engine *engine);
void sp_engine_landed(struct sp_engine *engine);
u64 sp_engine_released(struct sp_group *g);
void sp_engine_run(struct sp_group *g);
void sp_engine_kick(struct sp_engine *engine, struct sp_group *g);
bool sp_engine_busy(struct sp_engine *engine, struct sp_group *g);
void sp_engine_peer_gone(struct sp_engine *engine, struct sp_group *g,
			 u32 node);

extern unsigned int sp_spin;

#endif /* SPINDLE_ENGINE_H */
