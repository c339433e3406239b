/* SPDX-License-Identifier: GPL-2.0 */
/* The predicates of a device: a thread, and who comes before it. */
#ifndef SPINDLE_ENGINE_H
#define SPINDLE_ENGINE_H

#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include <linux/wait.h>

struct sp_device;
struct sp_group;
struct sp_local;
struct task_struct;

/**
 * struct sp_engine - what runs the predicates of a device's groups
 * @task: the thread
 * @lock: held for each pass; guards @awake and what the passes touch. Softirqs
 *	take it. Taken within sp_ctl
 * @awake: groups to pass over: those that sleep cost nothing
 * @kick_lock: guards @kicked and each group's on_kicked and engaged; innermost
 * @kicked: groups that were kicked, to be put on @awake
 * @wait: where it sleeps
 * @in_round: the thread is in a round, so nobody else runs passes; under @lock
 * @watches: some group awake wants to pass when requests have completed: see
 *	sp_core_watches(). Written under @lock, read by completion handlers
 * @rest: the next group has rested, or some time before: see sp_core_rests(). Or
 *	one that waits for room in a send queue has waited for a jiffy
 * @soft: runs rounds in softirq while the thread waits
 * @stirred: there is something for the thread to look at. Who has changed something
 *	sets it (after the change), the thread clears it before it looks
 */
struct sp_engine {
	struct task_struct *task;
	spinlock_t lock;
	struct list_head awake;
	spinlock_t kick_lock;
	struct list_head kicked;
	wait_queue_head_t wait;
	bool in_round;
	bool watches;
	struct timer_list rest;
	struct tasklet_struct soft;
	atomic_t stirred;
};

struct sp_engine *sp_engine_start(struct sp_device *sdev);
void sp_engine_stop(struct sp_engine *engine);
void sp_engine_add(struct sp_engine *engine, struct sp_group *g);
void sp_engine_del(struct sp_engine *engine, struct sp_group *g);
void sp_engine_stir(struct sp_engine *engine);
void sp_engine_landed(struct sp_engine *engine);
void sp_engine_lock(struct sp_engine *engine) __acquires(&engine->lock);
void sp_engine_unlock(struct sp_engine *engine) __releases(&engine->lock);
u64 sp_engine_cursor(struct sp_group *g, struct sp_local *local);
u64 sp_engine_released(struct sp_group *g);
void sp_engine_run(struct sp_group *g, const struct sp_local *local);
void sp_engine_raise(struct sp_engine *engine);
void sp_engine_kick(struct sp_engine *engine, struct sp_group *g, bool soft);
bool sp_engine_busy(struct sp_engine *engine, struct sp_group *g);
void sp_engine_peer_gone(struct sp_engine *engine, struct sp_group *g,
			 u32 node);

extern unsigned int sp_spin;

#endif /* SPINDLE_ENGINE_H */
