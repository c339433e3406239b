/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Large objects: memory, and transfers of blocks between nodes.
 *
 *   what                    written by             read by          paired
 *   ----------------------  ---------------------  ---------------  -------------
 *   object bytes            its sender, before     mover's writes,  lane's lock;
 *                           the commit; the        readers          here
 *                           device, by blocks
 *   object here             the mover, after the   engine           release (I) /
 *                           last block                              acquire (J)
 *   entries of a lane       sender, objects_work;  engine, readers, objects_lock
 *                           engine takes them out  objects_work
 *   transfers               under the mover's lock; begun and stopped under
 *                           sp_ctl, too
 */
#ifndef SPINDLE_RDMC_H
#define SPINDLE_RDMC_H

#include <linux/kref.h>
#include <linux/seq_file.h>
#include <linux/workqueue.h>

#include "core/choose.h"
#include "group.h"

/**
 * struct sp_pins - memory of a socket's program in objects
 * @ref: the socket and these objects hold it
 * @objects: how many; decremented where they are freed
 * @wait: for none to be left
 */
struct sp_pins {
	struct kref ref;
	atomic_t objects;
	wait_queue_head_t wait;
};

/**
 * struct sp_object - an object on this node
 * @ref: the lane's entry, transfers, grants and readers hold it
 * @users: of these, those who need it mapped for the device: all but readers
 * @sdev: the device; held
 * @account: its group's, held; it is charged there
 * @slab: its memory
 * @len: bytes
 * @flags: SP_DESC_* of its descriptor
 * @pins: whose memory is in it, NULL: nobody's
 * @here: all of it is on this node
 * @grants: who may write there: see rdmc.c; under the mover's lock
 * @free: frees it, where that may sleep
 */
struct sp_object {
	struct kref ref;
	atomic_t users;
	struct sp_device *sdev;
	struct sp_account *account;
	struct sp_slab *slab;
	u32 len;
	u32 flags;
	struct sp_pins *pins;
	bool here;
	struct list_head grants;
	struct work_struct free;
};

/* objects.c */
struct sp_object *sp_object_alloc(const struct sp_group *g, u32 len, u32 flags,
				  bool must);
int sp_object_fill(struct sp_object *object, struct iov_iter *from);
struct sp_object *sp_object_pin(const struct sp_group *g, u32 flags,
				struct sp_pins *pins, struct iov_iter *from);
struct sp_pins *sp_pins_new(void);
void sp_pins_put(struct sp_pins *pins);
int sp_object_give(const struct sp_object *object, size_t off, size_t len,
		   struct iov_iter *to);
struct file *sp_export(struct sp_object *object);
int sp_object_read(const struct sp_object *object, size_t off, size_t len,
		   u8 __user *to);
void sp_object_copy(const struct sp_object *object, u8 *to, size_t len);
void sp_object_put(struct sp_object *object);
struct sp_object *sp_object_use(struct sp_object *object);
void sp_object_unuse(struct sp_object *object);
void sp_lane_objects_unmap(struct sp_slot_lane *lane);
int sp_lane_object_add(struct sp_slot_lane *lane, u64 count,
		       struct sp_object *object);
struct sp_object *sp_lane_object_get(struct sp_slot_lane *lane, u32 count);
int sp_objects_commit(struct sp_slot_lane *lane, struct sp_object *object,
		      u32 flags);
void sp_lane_objects_drop(struct sp_slot_lane *lane);
void sp_objects_new(struct sp_core *c, u32 rank);
bool sp_objects_here(struct sp_core *c, u32 rank, u64 count);
void sp_objects_reap(struct sp_group *g);
void sp_objects_work(struct work_struct *work);
void sp_objects_kick(struct sp_group *g);
bool sp_lane_object_room(struct sp_slot_lane *lane);
void sp_objects_choose(const struct sp_group *g, u32 len, u32 wish, bool always,
		       struct sp_choice *choice);

/* rdmc.c */
int sp_rdmc_start(struct sp_group *g, u32 rank, u64 count,
		  struct sp_object *object);
void sp_rdmc_end(struct sp_group *g, u32 rank, u64 count);
void sp_rdmc_stop(struct sp_group *g);
void sp_rdmc_cut(struct sp_peer_node *pn);
void sp_rdmc_mend(struct sp_peer_node *pn);
void sp_rdmc_ready(struct sp_link *link, const struct sp_msg_ready *msg);
bool sp_rdmc_go(struct sp_link *link, const struct sp_msg_go *msg);
void sp_rdmc_go_late(struct sp_link *link, const struct sp_msg_go *msg);
void sp_rdmc_stopped(struct sp_link *link, const struct sp_msg_stop *msg);
void sp_rdmc_forget(struct sp_peer_node *pn);
void sp_rdmc_exit(struct sp_peer_node *pn);
void sp_rdmc_bulk(struct sp_link *link);
void sp_rdmc_bulk_gone(struct sp_link *link);
void sp_rdmc_stir(struct sp_device *sdev);
void sp_rdmc_move(struct work_struct *work);
void sp_rdmc_room(struct sp_device *sdev);
bool sp_rdmc_overdue(struct sp_link *link);
bool sp_rdmc_fenced(struct sp_group *g, struct sp_object *object);
void sp_rdmc_show(struct seq_file *m, struct sp_group *g);

#endif /* SPINDLE_RDMC_H */
