// SPDX-License-Identifier: MIT
/*
 * Files and memory of any size as a train of messages.
 *
 * A train is a record that says how long it is, segments, and a record with the
 * hash of all of it; or one that says why there is no more. Each is a message in
 * the order that ends with a struct record, so other messages may stand
 * between them. It stands at the end so that a segment begins with a page, and can
 * be sent from the pages it is in.
 *
 * Nothing here holds more than a segment. A file's bytes are sent from the page
 * cache, and come out of the kernel into it, by system calls on windows of its
 * mapping: the program itself never touches these, for a file may become
 * shorter, and a disk full, at any time, and what is EFAULT to a system call is a
 * signal to the program. Hashes are made of small pieces that are read behind or
 * before, when they are in the processor's cache.
 */
#define _GNU_SOURCE
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
/* taken in whole, so that the library needs no other one (libxxhash-dev) */
#define XXH_INLINE_ALL
#include <xxhash.h>
#include "internal.h"

#define MAGIC		0x74724e53U	/* "SNrt" */
#define VERSION		2
#define SEGMENT		(4U << 20)	/* when nobody says how much */
#define PIECE		(128U << 10)	/* what is hashed, or copied, at once */
#define BEAT_MS		100		/* between two questions whether to go on */
#define SETTLE_MS	2		/* between two looks at what is still pinned */
#define BEAT_NS		(BEAT_MS * 1000000LL)
#define LAST_WORD_NS	2000000000LL	/* for saying that there is no more */

enum record_type {
	RECORD_BEGIN = 1,	/* @len: of all of it */
	RECORD_DATA,		/* @len bytes from @off on follow */
	RECORD_END,		/* @hash of all @len */
	RECORD_ABORT,		/* @error */
};

/* What each message ends with; little endian. */
struct record {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint64_t id;
	uint64_t off;
	uint64_t len;
	uint32_t error;
	uint32_t resv;
	unsigned char hash[SPINDLE_HASH_LEN];
	unsigned char resv2[8];
};

_Static_assert(sizeof(struct record) == SPINDLE_UNIT, "a record's size");

/**
 * struct train - one on its way
 * @sp: the handle
 * @t: the program's
 * @segment: put: bytes of a segment
 * @file: it is a file
 * @regular: a regular one
 * @mapped: whose windows can be mapped
 * @size: get: the file's size, as far as it was made longer here
 * @page: bytes of a page
 * @asked: when the program was asked last whether to go on
 * @until: when to try no more, as spn_now(); 0: never
 * @piece: PIECE bytes; NULL: none were needed
 * @bytes: put: a segment that was read, of a file that cannot be mapped
 * @begun: get: the first record has come
 * @hash: of all so far
 */
struct train {
	struct spindle *sp;
	struct spindle_transfer *t;
	uint32_t segment;
	bool file;
	bool regular;
	bool mapped;
	uint64_t size;
	size_t page;
	int64_t asked;
	int64_t until;
	unsigned char *piece;
	unsigned char *bytes;
	bool begun;
	XXH3_state_t *hash;
};

static int train_open(struct train *tr, struct spindle *sp, struct spindle_transfer *t)
{
	struct stat st;

	*tr = (struct train) { .sp = sp, .t = t, .file = t->fd >= 0 };
	t->done = 0;
	t->error = 0;
	memset(t->hash, 0, sizeof(t->hash));
	if (!sp->ready)
		return -ENOTCONN;
	if (tr->file) {
		if (fstat(t->fd, &st))
			return -errno;
		tr->regular = S_ISREG(st.st_mode);
		tr->size = st.st_size;
		if (t->offset > INT64_MAX)
			return -EINVAL;
	}
	tr->page = sysconf(_SC_PAGESIZE);
	tr->piece = malloc(PIECE);
	tr->hash = XXH3_createState();
	if (!tr->piece || !tr->hash)
		return -ENOMEM;
	XXH3_128bits_reset(tr->hash);
	return 0;
}

static void train_close(struct train *tr)
{
	XXH3_freeState(tr->hash);
	free(tr->piece);
	free(tr->bytes);
}

static void train_digest(const struct train *tr, unsigned char *hash)
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(tr->hash));
	_Static_assert(sizeof(canonical) == SPINDLE_HASH_LEN, "a hash's size");
	memcpy(hash, &canonical, sizeof(canonical));
}

/* A window of the file that a system call may read or write. */
struct window {
	void *base;
	size_t size;
	unsigned char *at;
};

static int window_open(const struct train *tr, struct window *w, uint64_t off, size_t len,
		       int prot)
{
	size_t before = off % tr->page;

	w->size = before + len;
	w->base = mmap(NULL, w->size, prot, MAP_SHARED, tr->t->fd, off - before);
	if (w->base == MAP_FAILED)
		return -errno;
	w->at = (unsigned char *)w->base + before;
	return 0;
}

static void window_close(const struct window *w)
{
	munmap(w->base, w->size);
}

/* All of it, from a place of the file; -ESTALE when it has become shorter. */
static int read_all(int fd, unsigned char *to, size_t len, uint64_t off)
{
	ssize_t n;

	for (; len; to += n, len -= n, off += n) {
		n = pread(fd, to, len, off);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n < 0)
			return -errno;
		else if (!n)
			return -ESTALE;
	}
	return 0;
}

static int write_all(int fd, const unsigned char *from, size_t len, uint64_t off)
{
	ssize_t n;

	for (; len; from += n, len -= n, off += n) {
		n = pwrite(fd, from, len, off);
		if (n < 0 && errno == EINTR)
			n = 0;
		else if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

static int hash_file(struct train *tr, uint64_t off, size_t len)
{
	size_t n;
	int ret = 0;

	for (; !ret && len; off += n, len -= n) {
		n = len < PIECE ? len : PIECE;
		ret = read_all(tr->t->fd, tr->piece, n, off);
		if (!ret)
			XXH3_128bits_update(tr->hash, tr->piece, n);
	}
	return ret;
}

/* Is this message a record of a train? */
static int record_of(struct spindle *sp, const struct spindle_msg *msg, struct record *rec)
{
	int ret;

	if (msg->event || msg->flags & SPINDLE_MSG_STATE || msg->len < sizeof(*rec))
		return 0;
	ret = spindle_object_read(sp, msg, msg->len - sizeof(*rec), rec, sizeof(*rec));
	if (ret)
		return ret;
	if (rec->magic != htole32(MAGIC) || rec->version != htole16(VERSION))
		return 0;
	rec->type = le16toh(rec->type);
	rec->id = le64toh(rec->id);
	rec->off = le64toh(rec->off);
	rec->len = le64toh(rec->len);
	rec->error = le32toh(rec->error);
	return 1;
}

static int ask(struct train *tr)
{
	int ret;

	tr->asked = spn_now();
	if (tr->until)
		return tr->asked < tr->until ? 0 : -ETIMEDOUT;
	ret = tr->t->progress ? tr->t->progress(tr->t) : 0;
	return ret < 0 ? ret : 0;
}

static int give_other(const struct train *tr, const struct spindle_msg *msg)
{
	int ret = 0;

	if (tr->t->other && !tr->until)
		ret = tr->t->other(tr->t, msg);
	return ret < 0 ? ret : 0;
}

/* A while, or less. */
static int rest(struct train *tr, unsigned int events, int ms)
{
	int ret = spindle_wait(tr->sp, events, SPINDLE_WAIT_ADAPTIVE, ms);

	if (ret && ret != -ETIMEDOUT && ret != -EINTR)
		return ret;
	return ret == -EINTR || spn_now() - tr->asked >= BEAT_NS ? ask(tr) : 0;
}

/* Sending */

/* Take what has come: the own records are of no use, all else is the program's. */
static int put_drain(struct train *tr)
{
	struct spindle_msg msg;
	struct record rec;
	unsigned int n;
	int ret;

	for (;;) {
		ret = spindle_peek(tr->sp, &msg, 1, &n);
		if (ret)
			/* the end of the stream, for who wants to send, is none */
			return ret == -EAGAIN ? 0 : ret == -ENODATA ? -EPIPE : ret;
		ret = record_of(tr->sp, &msg, &rec);
		if (ret == 1 && tr->sp->rx.known && rec.id == tr->t->id &&
		    spn_rx_uid(tr->sp, msg.rank) == tr->sp->rx.uid)
			ret = 0;
		else if (ret >= 0)
			ret = give_other(tr, &msg);
		spindle_release(tr->sp, msg.entry);
		if (ret)
			return ret;
	}
}

/* Send a record and what belongs to it; @flags: SPINDLE_OBJECT_IN_PLACE for that. */
static int put_record(struct train *tr, const struct record *rec, const void *data, size_t len,
		      uint32_t flags)
{
	struct iovec iov[2] = {
		{ (void *)data, len },
		{ (void *)rec, sizeof(*rec) },
	};
	struct spindle_object how = tr->t->how;
	unsigned int skip = !len;
	int ret;

	how.flags |= flags;
	for (;;) {
		ret = spindle_object_send(tr->sp, iov + skip, 2 - skip,
					  how.algorithm || how.flags ? &how : NULL);
		if (ret != -EAGAIN)
			return ret;
		ret = put_drain(tr);
		if (!ret)
			ret = rest(tr, SPINDLE_READABLE | SPINDLE_WRITABLE, BEAT_MS);
		if (ret)
			return ret;
	}
}

static struct record put_head(const struct train *tr, enum record_type type, uint64_t off,
			      uint64_t len)
{
	return (struct record) {
		.magic = htole32(MAGIC),
		.version = htole16(VERSION),
		.type = htole16(type),
		.id = htole64(tr->t->id),
		.off = htole64(off),
		.len = htole64(len),
	};
}

/* A segment of a file that can be mapped. */
static int put_window(struct train *tr, const struct record *rec, uint64_t off, size_t len)
{
	struct window w;
	int ret;

	ret = window_open(tr, &w, off, len, PROT_READ);
	if (ret)
		return ret;
	ret = hash_file(tr, off, len);
	if (!ret)
		ret = put_record(tr, rec, w.at, len, SPINDLE_OBJECT_IN_PLACE);
	window_close(&w);
	return ret == -EFAULT ? -ESTALE : ret;
}

static int put_bytes(struct train *tr, const struct record *rec, uint64_t off, size_t len)
{
	int ret;

	if (!tr->bytes)
		tr->bytes = malloc(tr->segment);
	if (!tr->bytes)
		return -ENOMEM;
	ret = read_all(tr->t->fd, tr->bytes, len, off);
	if (ret)
		return ret;
	XXH3_128bits_update(tr->hash, tr->bytes, len);
	return put_record(tr, rec, tr->bytes, len, 0);
}

static int put_segment(struct train *tr, size_t len)
{
	struct record rec = put_head(tr, RECORD_DATA, tr->t->done, len);
	const unsigned char *from;

	if (tr->mapped)
		return put_window(tr, &rec, tr->t->offset + tr->t->done, len);
	if (tr->file)
		return put_bytes(tr, &rec, tr->t->offset + tr->t->done, len);
	from = (const unsigned char *)tr->t->data + tr->t->done;
	XXH3_128bits_update(tr->hash, from, len);
	return put_record(tr, &rec, from, len, SPINDLE_OBJECT_IN_PLACE);
}

/* How much of it a message of the group can have. */
static int put_size(struct train *tr)
{
	struct spindle_group_info info;
	uint32_t most, page = tr->page;
	int ret;

	ret = spindle_info(tr->sp, &info);
	if (ret)
		return ret;
	most = info.max_object > info.max_msg ? info.max_object : info.max_msg;
	if (most <= sizeof(struct record))
		return -EMSGSIZE;
	most -= sizeof(struct record);
	tr->segment = tr->t->segment ? tr->t->segment : SEGMENT;
	if (tr->segment > most)
		tr->segment = most;
	/* windows begin at pages, at least while the first one did */
	if (tr->segment > page)
		tr->segment -= tr->segment % page;
	return 0;
}

static int put_begin(struct train *tr)
{
	struct spindle_transfer *t = tr->t;
	struct window w;
	int ret;

	if (tr->file && t->len == SPINDLE_TO_THE_END && tr->regular)
		t->len = tr->size > t->offset ? tr->size - t->offset : 0;
	if (!t->id || t->len > INT64_MAX || (!tr->file && t->len && !t->data))
		return -EINVAL;
	if (tr->regular && t->len && (t->offset > tr->size || t->len > tr->size - t->offset))
		return -ESTALE;
	ret = put_size(tr);
	if (ret)
		return ret;
	if (tr->regular && t->len && !window_open(tr, &w, t->offset, 1, PROT_READ)) {
		window_close(&w);
		tr->mapped = true;
	}
	return 0;
}

/* Until the file or the memory is the program's alone again. */
static int put_settle(struct train *tr)
{
	struct spindle_stability now;
	int ret;

	for (;;) {
		ret = put_drain(tr);
		if (!ret)
			ret = spindle_stability(tr->sp, &now);
		if (ret || !now.pinned)
			return ret;
		ret = rest(tr, SPINDLE_READABLE, SETTLE_MS);
		if (ret)
			return ret;
	}
}

static int put_train(struct train *tr)
{
	struct spindle_transfer *t = tr->t;
	struct record rec = put_head(tr, RECORD_BEGIN, 0, t->len);
	size_t len;
	int ret;

	ret = put_record(tr, &rec, NULL, 0, 0);
	if (ret)
		return ret;
	while (!ret && t->done < t->len) {
		len = t->len - t->done < tr->segment ? t->len - t->done : tr->segment;
		ret = put_segment(tr, len);
		if (ret)
			break;
		t->done += len;
		ret = ask(tr);
		if (!ret)
			ret = put_drain(tr);
	}
	rec = put_head(tr, ret ? RECORD_ABORT : RECORD_END, 0, t->len);
	if (ret) {
		rec.error = htole32(-ret);
		/* whoever does not want to go on wants this to be said */
		tr->until = spn_now() + LAST_WORD_NS;
		put_record(tr, &rec, NULL, 0, 0);
		return ret;
	}
	train_digest(tr, t->hash);
	memcpy(rec.hash, t->hash, sizeof(rec.hash));
	ret = put_record(tr, &rec, NULL, 0, 0);
	return ret ? ret : put_settle(tr);
}

/**
 * spindle_object_put() - send a file or memory of any size
 * @sp: handle that is ready
 * @t: what, and what is to be called meanwhile; see &struct spindle_transfer
 *
 * Goes through the group as messages of at most @t->segment bytes, which
 * spindle_object_get() puts together, and needs no more memory than one of them.
 * Pages of the file, or whole ones of memory that begins with one, are sent from
 * where they are and not copied; when this returns 0 they are not needed any more,
 * so every member has read them. Until then, and after an error, they are to be
 * left as they are, or the members find that it is not what was sent. Blocks, for
 * as long as the slowest member lets it; takes and releases what comes meanwhile, which goes to
 * @t->other. Wants the handle for itself.
 *
 * When it fails behind its beginning the receivers are told, as long as the group
 * lives, and everybody can go on.
 *
 * Return: 0: all was sent;
 * -ESTALE: the file is, or has become, shorter;
 * -EBUSY: a claim is open;
 * -EINVAL: an @t->id of 0, no memory, or bad numbers;
 * -EMSGSIZE: the group's messages have no room for anything;
 * -ENOMEM; what @t->progress or @t->other returned; errors of pread(2), of
 * spindle_object_send() but -EAGAIN, and of spindle_peek().
 */
int spindle_object_put(struct spindle *sp, struct spindle_transfer *t)
{
	struct train tr;
	int ret;

	ret = train_open(&tr, sp, t);
	if (!ret)
		ret = put_begin(&tr);
	if (!ret)
		ret = put_train(&tr);
	train_close(&tr);
	return ret;
}

/* Receiving */

/* It is to be there: a full disk is best known before all has come. */
static int get_begin(struct train *tr, const struct record *rec)
{
	struct spindle_transfer *t = tr->t;
	int ret;

	if (rec->len > t->len || rec->len > INT64_MAX - t->offset)
		return -EFBIG;
	t->len = rec->len;
	t->id = rec->id;
	tr->begun = true;
	if (!tr->regular || !t->len)
		return 0;
	do
		ret = fallocate(t->fd, FALLOC_FL_KEEP_SIZE, t->offset, t->len) ? errno : 0;
	while (ret == EINTR);
	/* where it cannot be known, windows could not tell of a full disk */
	if (ret == EOPNOTSUPP || ret == EINVAL)
		return 0;
	tr->mapped = !ret;
	return -ret;
}

/* Out of an object into the file's own pages. */
static int get_window(struct train *tr, const struct spindle_msg *msg, uint64_t off, size_t len)
{
	struct window w;
	int ret;

	if (off + len > tr->size) {
		if (ftruncate(tr->t->fd, off + len))
			return -errno;
		tr->size = off + len;
	}
	ret = window_open(tr, &w, off, len, PROT_READ | PROT_WRITE);
	if (ret)
		return ret;
	ret = spindle_object_read(tr->sp, msg, 0, w.at, len);
	window_close(&w);
	/* what is in the file now is what counts */
	return ret ? ret : hash_file(tr, off, len);
}

static int get_pieces(struct train *tr, const struct spindle_msg *msg, uint64_t off, size_t len)
{
	uint64_t from = 0;
	size_t n;
	int ret = 0;

	for (; !ret && len; from += n, off += n, len -= n) {
		n = len < PIECE ? len : PIECE;
		ret = spindle_object_read(tr->sp, msg, from, tr->piece, n);
		if (ret)
			break;
		XXH3_128bits_update(tr->hash, tr->piece, n);
		if (tr->file)
			ret = write_all(tr->t->fd, tr->piece, n, off);
	}
	return ret;
}

static int get_memory(struct train *tr, const struct spindle_msg *msg, size_t len)
{
	unsigned char *to = (unsigned char *)tr->t->data + tr->t->done;
	int ret;

	ret = spindle_object_read(tr->sp, msg, 0, to, len);
	if (!ret)
		XXH3_128bits_update(tr->hash, to, len);
	return ret;
}

static int get_segment(struct train *tr, const struct record *rec, const struct spindle_msg *msg)
{
	struct spindle_transfer *t = tr->t;
	uint64_t off = t->offset + t->done;
	int ret;

	if (rec->off != t->done || rec->len != msg->len - sizeof(*rec) ||
	    rec->len > t->len - t->done)
		return -EPROTO;
	if (tr->mapped && msg->flags & SPINDLE_MSG_OBJECT) {
		ret = get_window(tr, msg, off, rec->len);
		/* the file's own calls say what is wrong, if it is */
		if (ret == -EFAULT || ret == -ENODEV || ret == -EACCES || ret == -EPERM) {
			tr->mapped = false;
			ret = get_pieces(tr, msg, off, rec->len);
		}
	} else if (!tr->file && t->data) {
		ret = get_memory(tr, msg, rec->len);
	} else {
		ret = get_pieces(tr, msg, off, rec->len);
		if (tr->size < off + rec->len)
			tr->size = off + rec->len;
	}
	if (ret)
		return ret;
	t->done += rec->len;
	return ask(tr);
}

/* A record of this train; 1: that was the last. */
static int get_record(struct train *tr, const struct record *rec, const struct spindle_msg *msg)
{
	struct spindle_transfer *t = tr->t;

	switch (rec->type) {
	case RECORD_BEGIN:
		return tr->begun ? -EPROTO : get_begin(tr, rec);
	case RECORD_DATA:
		return get_segment(tr, rec, msg);
	case RECORD_END:
		if (t->done != t->len)
			return -EPROTO;
		train_digest(tr, t->hash);
		return memcmp(t->hash, rec->hash, sizeof(t->hash)) ? -EBADMSG : 1;
	case RECORD_ABORT:
		t->error = rec->error;
		return -ECANCELED;
	}
	return -EPROTO;
}

/* Is it of the train that is wanted? */
static bool get_is_mine(struct train *tr, const struct record *rec, const struct spindle_msg *msg)
{
	struct spindle_transfer *t = tr->t;
	uint32_t uid = spn_rx_uid(tr->sp, msg->rank);

	if ((t->uid != SPINDLE_ANYBODY && uid != t->uid) || (t->id && rec->id != t->id))
		return false;
	/* what was before this call is not for it */
	if (!tr->begun && rec->type != RECORD_BEGIN)
		return false;
	t->uid = uid;
	return true;
}

static int get_next(struct train *tr)
{
	struct spindle_msg msg;
	struct record rec;
	unsigned int n;
	int ret;

	ret = spindle_peek(tr->sp, &msg, 1, &n);
	if (!ret) {
		ret = record_of(tr->sp, &msg, &rec);
		if (ret == 1 && get_is_mine(tr, &rec, &msg))
			ret = get_record(tr, &rec, &msg);
		else if (ret >= 0)
			ret = give_other(tr, &msg);
		spindle_release(tr->sp, msg.entry);
		if (ret)
			return ret;
	}
	/* what it has sent comes before the view that is without it */
	if (tr->t->uid != SPINDLE_ANYBODY && spn_rx_rank(tr->sp, tr->t->uid) == ~0U)
		return -ECONNRESET;
	return ret == -EAGAIN ? rest(tr, SPINDLE_READABLE, BEAT_MS) : ret;
}

/**
 * spindle_object_get() - receive what spindle_object_put() sends
 * @sp: handle that is ready
 * @t: which, where to, and what is to be called meanwhile; see
 *	&struct spindle_transfer
 *
 * Reads the stream up to the end of one transfer and not beyond; what else stands
 * there goes to @t->other. The kernel copies the bytes into the file's pages,
 * where the file can be mapped (open for reading and writing); @t->fd -1 and
 * @t->data NULL drop them. Room on the disk is taken when the transfer begins.
 * Wants the handle for itself.
 *
 * Return: 0: all has come, and is what was sent;
 * -ECANCELED: its sender gave up; @t->error says why;
 * -ECONNRESET: its sender is in the group no more;
 * -EBADMSG: it is not what was sent;
 * -EFBIG: it is longer than @t->len, of which it was at its beginning;
 * -EPROTO: its sender does not keep to the form;
 * -ENODATA: the end of the stream, as by spindle_peek();
 * -ENOSPC, and what else the file has to say; -ENOMEM; what @t->progress or
 * @t->other returned; other errors of spindle_peek(). What is left of the
 * transfer is then in the stream, and goes to who reads on.
 */
int spindle_object_get(struct spindle *sp, struct spindle_transfer *t)
{
	struct train tr;
	int ret;

	ret = train_open(&tr, sp, t);
	while (!ret)
		ret = get_next(&tr);
	train_close(&tr);
	return ret < 0 ? ret : 0;
}
