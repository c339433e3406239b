/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets of the family. */
#ifndef SPINDLE_AF_SPINDLE_H
#define SPINDLE_AF_SPINDLE_H

#include <net/sock.h>

#include "group.h"

/**
 * struct sp_sock - a socket
 * @sk: must be first
 * @local: the member it is, once it has joined
 * @node: what it is bound to; set once, under lock_sock (release)
 * @group: what it has joined; set once (release), as @joining is cleared
 * @joining: it waits to be taken into a group. Set under lock_sock; cleared by
 *	who has set @group, or knows that there is none (release)
 * @failed: the error of its group was put into sk_err
 * @tx_lock: one sender copies at a time. Not held while it waits for room
 * @rx_lock: one reader copies at a time. Not held while it waits for messages
 * @recvinfo: SPINDLE_RECVINFO is on
 * @sent: messages sent; written under @tx_lock, or by the engine once
 *	submissions are mapped
 * @received: messages received; likewise
 */
struct sp_sock {
	struct sock sk;
	struct sp_local local;
	struct sp_node *node;
	struct sp_group *group;
	bool joining;
	atomic_t failed;
	struct mutex tx_lock;
	struct mutex rx_lock;
	bool recvinfo;
	u64 sent;
	u64 received;
};

static inline struct sp_sock *sp_sk(const struct sock *sk)
{
	return container_of(sk, struct sp_sock, sk);
}

/* Drop rx_lock, and have done what sp_detach_skip() could not do meanwhile. */
static inline void sp_rx_unlock(struct sp_sock *ss)
{
	mutex_unlock(&ss->rx_lock);
	/* Pairs with sp_detach_skip(). */
	smp_mb();
	if (READ_ONCE(ss->local.queue.due))
		queue_work(system_unbound_wq, &ss->local.queue.fill);
}

static inline struct sp_group *sp_sock_group(const struct sp_sock *ss)
{
	/* Pairs with the release in sp_sock_joined(). */
	return smp_load_acquire(&ss->group);
}

int sp_family_register(unsigned int wanted);
void sp_family_unregister(void);
extern unsigned int sp_family;

int sp_sockaddr_take(const struct sockaddr *sa, int len, struct sp_addr *addr,
		     u32 *scope_id);
void sp_sockaddr_give(const struct sp_addr *addr, u32 scope_id, u32 rank,
		      struct sockaddr_spindle *to);

/* Messages of a member whose program maps its rings. */
static inline void sp_local_sent(struct sp_local *local, u64 messages)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);

	WRITE_ONCE(ss->sent, ss->sent + messages);
}

static inline void sp_local_received(struct sp_local *local, u64 messages)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);

	WRITE_ONCE(ss->received, ss->received + messages);
}

/**
 * struct sp_rx_at - where a member reads
 * @cursor: entries of the log that it has passed
 * @view: number of the view there
 */
struct sp_rx_at {
	u64 cursor;
	u64 view;
};

/**
 * struct sp_held - a message, or an event, that is about to be copied
 * @log: what the log says of it
 * @addr: of a message: the node that sent it
 * @slab: of a message: where it is, held; else NULL
 */
struct sp_held {
	struct sp_log log;
	struct sp_addr addr;
	struct sp_slab *slab;
};

/*
 * Wait until a condition gives something else than -EAGAIN. Without locks:
 * whoever waits here must not keep another thread from a call that does not.
 */
#define sp_wait(sk, timeo, ready)					\
({									\
	DEFINE_WAIT_FUNC(__wait, woken_wake_function);			\
	int __ret;							\
									\
	add_wait_queue(sk_sleep(sk), &__wait);				\
	/* Pairs with skwq_has_sleeper() of who changes what we test. */ \
	smp_mb();							\
	for (;;) {							\
		__ret = (ready);					\
		if (__ret != -EAGAIN || !(timeo))			\
			break;						\
		if (signal_pending(current)) {				\
			__ret = sock_intr_errno(timeo);			\
			break;						\
		}							\
		(timeo) = wait_woken(&__wait, TASK_INTERRUPTIBLE,	\
				     timeo);				\
	}								\
	remove_wait_queue(sk_sleep(sk), &__wait);			\
	__ret;								\
})

u32 sp_local_uapi_state(const struct sp_group *g, const struct sp_local *local);
int sp_rings_map(struct sp_sock *ss, int flags);
int sp_rings_info(const struct sp_sock *ss, struct spindle_rings *info);
int sp_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma);
const struct sp_log *sp_rx_log(const struct sp_group *g,
			       const struct sp_local *local,
			       struct sp_rx_at *at);
bool sp_rx_wants(const struct sp_local *local, u32 type);
bool sp_rx_gives(const struct sp_local *local, const struct sp_log *log);
void sp_rx_pass(const struct sp_group *g, const struct sp_local *local,
		struct sp_rx_at *at);
bool sp_rx_tells(const struct sp_local *local, const struct sp_log *log);
bool sp_rx_hold(struct sp_group *g, const struct sp_local *local,
		const struct sp_log *log, struct sp_held *held);
const u8 *sp_rx_bytes(const struct sp_held *held);

/* stable.c */
void sp_stable_get(const struct sp_sock *ss, struct spindle_stable *to);
int sp_stable_sync(struct sp_sock *ss, int what, bool block);
void sp_stable_told(struct sp_local *local, u32 what);
void sp_stable_event(const struct sp_sock *ss, u32 what, struct spindle_event *to);

int sp_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		  unsigned int optlen);
int sp_getsockopt(struct socket *sock, int level, int optname,
		  char __user *optval, int __user *optlen);

#endif /* SPINDLE_AF_SPINDLE_H */
