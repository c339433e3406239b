/* SPDX-License-Identifier: GPL-2.0 */
/* Sockets of the family. */
#ifndef SPINDLE_AF_SPINDLE_H
#define SPINDLE_AF_SPINDLE_H

#include <linux/sched/signal.h>
#include <net/sock.h>

#include "group.h"

/**
 * struct sp_sock - a socket
 * @sk: must be first
 * @local: the member it is, once it has joined
 * @node: what it is bound to; set once, under lock_sock (release)
 * @group: what it has joined; set once, under lock_sock (release)
 * @joining: it waits to be taken into a group; under lock_sock
 * @tx_lock: one sender copies at a time. Not held while it waits for room
 * @rx_lock: one reader copies at a time. Not held while it waits for messages
 * @recvinfo: SPINDLE_RECVINFO is on
 * @want: bytes of the object that was refused last, for want of room, and not
 *	sent since; 0: none was. Written under @tx_lock; by the engine, when
 *	submissions are mapped and the program goes on with these
 * @pins: memory of the program that objects have; NULL: none ever had. Set once,
 *	under @tx_lock (release)
 * @sent: messages sent; written under the lane's lock
 * @received: messages received; written under @rx_lock, or by the engine once
 *	deliveries are mapped
 */
struct sp_sock {
	struct sock sk;
	struct sp_local local;
	struct sp_node *node;
	struct sp_group *group;
	bool joining;
	struct mutex tx_lock;
	struct mutex rx_lock;
	bool recvinfo;
	u32 want;
	struct sp_pins *pins;
	u64 sent;
	u64 received;
};

static inline struct sp_sock *sp_sk(const struct sock *sk)
{
	return container_of(sk, struct sp_sock, sk);
}

static inline struct sp_group *sp_sock_group(const struct sp_sock *ss)
{
	/* Pairs with the release in sp_sock_joined(). */
	return smp_load_acquire(&ss->group);
}

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

int sp_family_register(unsigned int wanted);
void sp_family_unregister(void);
extern unsigned int sp_family;

int sp_sockaddr_take(const struct sockaddr *sa, int len, struct sp_addr *addr,
		     u32 *scope_id);
void sp_sockaddr_give(const struct sp_addr *addr, u32 scope_id, u32 rank,
		      struct sockaddr_spindle *to);

/* A member has sent messages. Under its lane's lock. */
static inline void sp_local_sent(struct sp_local *local, u64 messages)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);

	WRITE_ONCE(ss->sent, ss->sent + messages);
}

/* A member's program has released messages in its rings. */
static inline void sp_local_received(struct sp_local *local, u64 messages)
{
	struct sp_sock *ss = container_of(local, struct sp_sock, local);

	WRITE_ONCE(ss->received, ss->received + messages);
}

u32 sp_local_uapi_state(const struct sp_group *g, const struct sp_local *local,
			int *error);
int sp_rings_map(struct sp_sock *ss, int flags);
int sp_rings_info(const struct sp_sock *ss, struct spindle_rings *info);
int sp_mmap(struct file *file, struct socket *sock, struct vm_area_struct *vma);

/* State for another member, which the program is not given as such. */
static inline bool sp_rx_foreign(const struct sp_local *local,
				 const struct sp_log *log)
{
	return (log->flags & SP_DESC_STATE) &&
	       log->flags >> SP_DESC_UID_SHIFT != local->uid;
}

/* What a reader has before it, and what it means: af_spindle.c */
u64 sp_rx_limit(const struct sp_group *g, const struct sp_local *local);
bool sp_rx_wants(const struct sp_local *local, const struct sp_log *log);
bool sp_rx_look(const struct sp_group *g, const struct sp_local *local,
		u64 *cursor, struct sp_log *log);
bool sp_rx_skip(struct sp_group *g, struct sp_local *local);
void sp_rx_past(struct sp_group *g, struct sp_local *local,
		const struct sp_log *log);
void sp_rx_pass(struct sp_group *g, struct sp_local *local);
bool sp_rx_bytes(const struct sp_group *g, const struct sp_log *log,
		 const u8 **bytes, struct sp_object **object);
struct file *sp_rx_export(struct sp_sock *ss, struct spindle_object_fd *e);
int sp_rx_read_object(struct sp_sock *ss, struct spindle_object_read *read);
size_t sp_event_size(const struct sp_record *event);
void sp_event_fill(const struct sp_local *local, const struct sp_record *event,
		   struct spindle_event *to);

int sp_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
		  unsigned int optlen);
int sp_getsockopt(struct socket *sock, int level, int optname,
		  char __user *optval, int __user *optlen);
bool sp_may_join(struct net *net);
int sp_opts_init(void);
void sp_opts_exit(void);

#endif /* SPINDLE_AF_SPINDLE_H */
