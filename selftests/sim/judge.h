/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The judge of virtual synchrony. It knows nothing of how a group works: it is
 * told what programs send, what nodes deliver and which views they install, and
 * says when that cannot be.
 *
 *   order       every node delivers one stretch of one story of messages and views
 *   atomicity   a view stands at one place of the story for every node in it
 *   own fate    what a program sent is delivered, unless it was told otherwise
 *   lineage     a view has one successor, and the same members for every node
 */
#ifndef JUDGE_H
#define JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#define JUDGE_MEMBERS	64
#define JUDGE_NOBODY	UINT32_MAX

struct judge;

/**
 * struct judge_entry - one entry of the story
 * @prog: the program that sent it; JUDGE_NOBODY: it is a view
 * @number: which of the program's messages, from 0; or the view's number
 * @len: bytes of the message
 * @seq: its place in the order
 */
struct judge_entry {
	uint32_t prog;
	uint32_t number;
	uint32_t len;
	int64_t seq;
};

/* A program's fate at the end of a run. */
enum judge_fate {
	JUDGE_MEMBER,	/* it is in the group */
	JUDGE_LEFT,	/* it left in order */
	JUDGE_TOLD,	/* it was told that not all it sent need be delivered */
};

struct judge *judge_new(void);
void judge_free(struct judge *j);
const char *judge_why(const struct judge *j);

bool judge_sent(struct judge *j, uint32_t prog, uint32_t len);
void judge_life(struct judge *j, uint32_t node);
bool judge_message(struct judge *j, uint32_t node, uint32_t prog, uint32_t len,
		   int64_t seq);
bool judge_view(struct judge *j, uint32_t node, uint32_t number, int64_t seq);
bool judge_installed(struct judge *j, uint32_t node, uint32_t number,
		     const uint64_t *members, uint32_t n);

uint32_t judge_newest(const struct judge *j);
uint32_t judge_length(const struct judge *j);
const struct judge_entry *judge_entry(const struct judge *j, uint32_t node,
				      uint32_t back);
bool judge_node_ends(struct judge *j, uint32_t node);
bool judge_prog_ends(struct judge *j, uint32_t prog, enum judge_fate fate);

#endif /* JUDGE_H */
