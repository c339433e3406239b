/* SPDX-License-Identifier: MIT */
/*
 * spindle-cp: what its parts share.
 *
 * One member sends (cp-send.c), all others receive (cp-receive.c). What they say
 * to each other besides the files' bytes, which spindle_object_put() and
 * spindle_object_get() move, are messages with a struct cp_wire at their
 * beginning, in the same order for all:
 *
 *	sender		receivers
 *	START
 *	ENTRY				for each file, directory and link
 *			ANSWER		with --skip-same: what is there already
 *	GO				with --skip-same: where it begins
 *	(transfer)			of a file
 *	GAVE_UP				it could not be read
 *			FAILED		an entry that this one does not take
 *			LEAVING		this one cannot go on
 *	FINISH, or CANCEL
 *			DONE
 *
 * Who receives trusts nobody: names, lengths and places are looked at before
 * anything is made (cp-files.c).
 */
#ifndef SPINDLE_CP_H
#define SPINDLE_CP_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "../spindle.h"

#define CP_MAGIC	0x70634e53U	/* "SNcp" */
#define CP_VERSION	1
#define CP_MAX_DEPTH	128		/* components of a name */
#define CP_TEXT		(2 * PATH_MAX)

enum cp_type {
	CP_START = 1,
	CP_ENTRY,
	CP_GO,
	CP_GAVE_UP,
	CP_FINISH,
	CP_CANCEL,
	CP_ANSWER = 16,
	CP_FAILED,
	CP_LEAVING,
	CP_DONE,
};

enum cp_kind {
	CP_FILE = 1,
	CP_DIR,
	CP_LINK,
};

/* cp_wire.kind of ANSWER */
enum cp_have {
	CP_NOTHING,
	CP_PART,			/* @size bytes of it, from an earlier run */
	CP_WHOLE,			/* a file of that length */
	CP_NOT_WANTED,			/* it will not take it */
};

#define CP_SKIP_SAME	(1U << 0)	/* cp_wire.kind of START */
#define CP_HASHED	(1U << 0)	/* of GO: @hash is there */
#define CP_SKIPPED	(1U << 1)	/* of GO: nothing follows, all have it */

/**
 * struct cp_wire - what a message begins with, little endian
 * @magic: CP_MAGIC
 * @version: CP_VERSION
 * @type: enum cp_type
 * @index: which entry, from 0
 * @kind: see above; of DONE: entries that failed
 * @size: of a file; of ANSWER: bytes there; of GO: where it begins; of START and
 *	DONE: bytes in all
 * @mtime: seconds
 * @mtime_ns: and nanoseconds
 * @mode: permissions; of DONE: entries that were there already
 * @error: errno
 * @len: bytes of text that follow: a name and a NUL, and where a link leads to
 * @hash: XXH3 of the file, or of the part that is there
 */
struct cp_wire {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
	uint32_t index;
	uint32_t kind;
	uint64_t size;
	uint64_t mtime;
	uint32_t mtime_ns;
	uint32_t mode;
	uint32_t error;
	uint32_t len;
	unsigned char hash[SPINDLE_HASH_LEN];
};

/* A message that came: the same in the host's order, and its text with a NUL. */
struct cp_msg {
	struct cp_wire w;
	uint32_t uid;
	char text[CP_TEXT + 1];
};

/**
 * struct cp_options - what was asked for
 * @send: this one sends
 * @group: name of the group
 * @addr: own node
 * @contact: a node that is in the group
 * @key: description of the key that its members share, or NULL
 * @files: what to send
 * @nfiles: how many
 * @dir: where to receive
 * @receivers: how many are waited for
 * @overwrite: receive: replace what is there
 * @skip_same: send: ask what is there already
 * @progress: show it
 * @quiet: no words but errors
 * @json: file for the result, "-" for standard output; NULL: none
 * @segment: bytes of a message
 * @algorithm: enum spindle_algorithm
 * @block: of objects
 * @max_object: likewise
 * @rack: of this node
 * @suspect_ms: of the group
 * @evict_ms: likewise
 * @timeout: seconds until the group must be complete
 */
struct cp_options {
	bool send;
	char group[SPINDLE_NAME_LEN];
	const char *addr;
	const char *contact;
	const char *key;
	char **files;
	int nfiles;
	const char *dir;
	unsigned int receivers;
	bool overwrite;
	bool skip_same;
	bool progress;
	bool quiet;
	const char *json;
	uint32_t segment;
	uint32_t algorithm;
	uint32_t block;
	uint32_t max_object;
	uint32_t rack;
	uint32_t suspect_ms;
	uint32_t evict_ms;
	unsigned int timeout;
};

enum cp_state {
	CP_THERE,			/* in the group, not done */
	CP_IS_DONE,			/* has said what became of all */
	CP_HAS_LEFT,			/* has said why it goes */
	CP_LOST,			/* in the group no more */
};

/**
 * struct cp_peer - a member of the first view
 * @uid: its number
 * @addr: its node, as text
 * @state: enum cp_state
 * @reason: enum spindle_reason, of who is lost
 * @error: errno it has left with, or of its first failure
 * @failed: entries that it did not take
 * @skipped: entries that it had
 * @bytes: it has received
 * @why: words to @error
 * @answered: to the current entry
 * @have: with that: what it has
 * @have_len: so much
 * @have_hash: of that
 */
struct cp_peer {
	uint32_t uid;
	char addr[64];
	enum cp_state state;
	uint32_t reason;
	int error;
	unsigned int failed;
	unsigned int skipped;
	uint64_t bytes;
	char why[256];
	bool answered;
	enum cp_have have;
	uint64_t have_len;
	unsigned char have_hash[SPINDLE_HASH_LEN];
};

/**
 * struct cp - all of it
 * @opt: what was asked for
 * @sp: the handle
 * @peers: the members of the first view
 * @npeers: how many
 * @uids: the members of the view that is read, by rank
 * @own: own number
 * @sender: the sender's number; ~0: nobody has begun
 * @lost: receive: the sender is in the group no more
 * @began: ns, when the first entry was sent
 * @total: bytes in all, as far as is known
 * @done: bytes done
 * @base: bytes of entries before the current one
 * @current: its name
 * @shown: ns, when progress was shown last
 * @shown_done: and @done then
 * @rate: bytes/s, smoothed
 * @nfiles: files that were sent, or are in their place
 * @ndirs: directories
 * @nlinks: links
 * @nsame: entries that were there already
 * @spared: bytes that were
 * @nfailed: entries that failed here
 * @error: errno of the first failure
 * @why: words to it
 */
struct cp {
	struct cp_options opt;
	struct spindle *sp;
	struct cp_peer peers[SPINDLE_MAX_MEMBERS];
	unsigned int npeers;
	uint32_t uids[SPINDLE_MAX_MEMBERS];
	uint32_t own;
	uint32_t sender;
	bool lost;
	int64_t began;
	uint64_t total;
	uint64_t done;
	uint64_t base;
	const char *current;
	int64_t shown;
	uint64_t shown_done;
	double rate;
	unsigned int nfiles;
	unsigned int ndirs;
	unsigned int nlinks;
	unsigned int nsame;
	uint64_t spared;
	unsigned int nfailed;
	int error;
	char why[512];
};

/* The signal that came; set by a handler. */
extern volatile sig_atomic_t cp_signal;

/* spindle-cp.c */
__attribute__((format(printf, 1, 2))) void cp_warn(const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void cp_note(struct cp *cp, int err, const char *fmt, ...);
int64_t cp_now(void);

/* cp-options.c */
void cp_parse(struct cp_options *opt, int argc, char **argv);

/* cp-group.c */
int cp_enter(struct cp *cp);
int cp_say(struct cp *cp, enum cp_type type, const struct cp_wire *w, const char *text,
	   size_t len);
bool cp_read(struct cp *cp, const struct spindle_msg *msg, struct cp_msg *to);
void cp_hear_event(struct cp *cp, const struct spindle_msg *msg);
struct cp_peer *cp_peer_of(struct cp *cp, uint32_t uid);
void cp_leave(struct cp *cp);

/* cp-files.c */
bool cp_name_is_good(const char *name, size_t len);
const char *cp_shown(const char *name);
int cp_open_parent(int dir, const char *name, const char **last);
int cp_temporary(int parent, const char *last, char *temp, size_t size);
int cp_leftover(int parent, const char *last, char *temp, size_t size);
int cp_publish(int parent, const char *temp, const char *last, bool overwrite);
int cp_hash(int fd, uint64_t len, unsigned char *hash);

/* cp-send.c, cp-receive.c */
int cp_send_all(struct cp *cp);
int cp_receive_all(struct cp *cp);

/* cp-report.c */
void cp_show(struct cp *cp, bool last);
int cp_report(struct cp *cp, int status);

#endif /* SPINDLE_CP_H */
