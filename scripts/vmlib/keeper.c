// SPDX-License-Identifier: GPL-2.0
/*
 * Holds one process of a cluster, whatever becomes of the harness:
 *
 *   keeper LIFE PIDFD [-d DIR] -- COMMAND...
 *
 * Runs COMMAND, writes its pid to PIDFD, and ends with its status. When LIFE
 * reads as end of file (the harness is gone, however it went), COMMAND is
 * killed. As a subreaper it then kills what COMMAND left behind; UML has helper
 * processes. With -d it removes the directory last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where LIFE and the signals are kept once COMMAND has its descriptors. */
enum { KEPT_LIFE = 3, KEPT_SIGNALS = 4 };

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path) && errno != ENOENT;
}

static void remove_tree(const char *dir)
{
	int i;

	/* others of the cluster may still be writing to it as they die */
	for (i = 0; i < 50; i++) {
		if (!nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) || access(dir, F_OK))
			return;
		usleep(20000);
	}
}

/* Orphans of COMMAND are our children now. */
static void kill_orphans(void)
{
	char path[64], list[4096], *p, *end;
	int fd, i;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	for (i = 0; i < 100; i++) {
		ssize_t n;

		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return;
		n = read(fd, list, sizeof(list) - 1);
		close(fd);
		if (n <= 0)
			return;
		list[n] = 0;
		for (p = list; ; p = end) {
			long pid = strtol(p, &end, 10);

			if (end == p)
				break;
			kill(pid, SIGKILL);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		usleep(2000);
	}
}

int main(int argc, char **argv)
{
	const char *dir = NULL;
	struct pollfd pfd[2];
	int life, pidfd, at = 3, status = 0;
	sigset_t set, old;
	pid_t pid, got;

	if (argc > at + 1 && !strcmp(argv[at], "-d")) {
		dir = argv[at + 1];
		at += 2;
	}
	if (argc < at + 2 || strcmp(argv[at], "--")) {
		fprintf(stderr, "usage: %s LIFE PIDFD [-d DIR] -- COMMAND...\n", argv[0]);
		return 2;
	}
	life = atoi(argv[1]);
	pidfd = atoi(argv[2]);
	fcntl(life, F_SETFD, FD_CLOEXEC);
	fcntl(pidfd, F_SETFD, FD_CLOEXEC);
	/* not in the terminal's foreground group: a Ctrl-C there is for the harness */
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &old);
	pfd[0] = (struct pollfd){ .fd = life, .events = POLLIN };
	pfd[1] = (struct pollfd){ .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
				  .events = POLLIN };
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &old, NULL);
		execvp(argv[at + 1], argv + at + 1);
		perror(argv[at + 1]);
		_exit(127);
	}
	if (pid < 0 || dprintf(pidfd, "%d\n", pid) < 0)
		return 1;
	/* the other ends of COMMAND's sockets must see it end */
	life = fcntl(life, F_DUPFD, 16);
	pfd[1].fd = fcntl(pfd[1].fd, F_DUPFD, 16);
	if (dup2(life, KEPT_LIFE) < 0 || dup2(pfd[1].fd, KEPT_SIGNALS) < 0)
		return 1;
	pfd[0].fd = KEPT_LIFE;
	pfd[1].fd = KEPT_SIGNALS;
	close_range(KEPT_SIGNALS + 1, ~0U, 0);
	for (;;) {
		struct signalfd_siginfo info;

		poll(pfd, 2, -1);
		if (pfd[0].revents) {
			kill(pid, SIGKILL);
			pfd[0].fd = -1;
		}
		while (read(pfd[1].fd, &info, sizeof(info)) == sizeof(info))
			if (info.ssi_signo != SIGCHLD)
				kill(pid, SIGKILL);
		while ((got = waitpid(-1, &status, WNOHANG)) > 0)
			if (got == pid)
				goto ended;
	}
ended:
	kill_orphans();
	if (dir) {
		/* only the harness's end is the cluster's end */
		if (pfd[0].fd >= 0)
			while (poll(pfd, 1, -1) < 0)
				;
		remove_tree(dir);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
