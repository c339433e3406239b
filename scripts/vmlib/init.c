// SPDX-License-Identifier: GPL-2.0
/*
 * The first process of a guest: mounts the host's file system with a tmpfs
 * over it, brings the network and soft-RoCE up, then runs commands for the
 * host over a character device until the host goes away.
 *
 * What it is to do stands on the kernel's command line; in virtual time, where
 * all on that line decides on the run, the host says the rest when asked.
 *
 * A frame on the channel is struct frame_head and a payload, little endian.
 * guests.py holds the other end.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

enum frame_type {
	FRAME_START = 1,	/* host: argc, envc, cwd\0 argv\0... env\0... */
	FRAME_SIGNAL = 2,	/* host: u32 signal, to the command's group; id 0: to all */
	FRAME_PARAMS = 3,	/* host: more of the kernel's command line */
	FRAME_READY = 16,	/* guest: set up, commands are taken */
	FRAME_STDOUT = 17,
	FRAME_STDERR = 18,
	FRAME_EXIT = 19,	/* guest: u32 wait status */
	FRAME_FAILED = 20,	/* guest: setup failed, the reason */
	FRAME_TAKEN = 21,	/* guest: u32 bytes that were read from the channel */
	FRAME_ASK = 22,		/* guest: for the parameters */
};

struct frame_head {
	uint32_t len;		/* of the payload */
	uint32_t id;		/* the command it is about */
	uint32_t type;
};

#define MAX_COMMANDS	256
#define MAX_FRAME	(1 << 20)
#define SETUP_SECONDS	120
#define LOOK_MS		250	/* between looks at the free memory */

struct command {
	bool used;
	uint32_t id;
	pid_t pid;		/* 0 once it was waited for */
	int out[2];		/* our ends of stdout and stderr, or -1 */
};

static struct command commands[MAX_COMMANDS];
static int channel = -1;
static bool virtual;		/* time */
static char cmdline[8192];
static char reason[512];

static void say(const char *fmt, ...)
{
	char line[600];
	va_list ap;
	int fd, n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fd = open("/dev/console", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (n > (int)sizeof(line) - 1)
		n = sizeof(line) - 1;
	if (write(fd, line, n) < 0)
		n = 0;
	close(fd);
}

/* Keep the first reason: what follows is mostly its consequence. */
static int fail(const char *fmt, ...)
{
	char line[sizeof(reason)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (!reason[0])
		strcpy(reason, line);
	say("<3>spindle-init: %s\n", line);
	return -1;
}

static void halt(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static int write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };

			poll(&pfd, 1, 1000);
			continue;
		}
		if (n <= 0)
			return -1;
		p += n;
		len -= n;
	}
	return 0;
}

static void send_frame(uint32_t type, uint32_t id, const void *data, uint32_t len)
{
	static char buf[sizeof(struct frame_head) + 65536];
	struct frame_head head = { .len = len, .id = id, .type = type };

	/* one write a frame: on UML each costs a host system call */
	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), data, len);
	if (write_all(channel, buf, sizeof(head) + len))
		halt();
}

/* The value of "key=" on the kernel command line, %XX decoded, or NULL. */
static char *param(const char *key)
{
	size_t len = strlen(key);
	char *p = cmdline, *val, *out;

	while ((p = strstr(p, key))) {
		if ((p == cmdline || p[-1] == ' ') && p[len] == '=')
			break;
		p += len;
	}
	if (!p)
		return NULL;
	val = strndup(p + len + 1, strcspn(p + len + 1, " \n"));
	if (!val)
		return NULL;
	for (p = out = val; *p; p++) {
		unsigned int c;

		if (*p == '%' && sscanf(p + 1, "%2x", &c) == 1) {
			*out++ = c;
			p += 2;
		} else {
			*out++ = *p;
		}
	}
	*out = 0;
	return val;
}

static bool param_is(const char *key, const char *want)
{
	char *val = param(key);
	bool same = val && !strcmp(val, want);

	free(val);
	return same;
}

static void make_dirs(const char *path)
{
	char buf[4096], *p;

	snprintf(buf, sizeof(buf), "%s", path);
	for (p = buf + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		mkdir(buf, 0755);
		*p = '/';
	}
	mkdir(buf, 0755);
}

static int do_mount(const char *src, const char *dst, const char *type,
		    unsigned long flags, const char *data)
{
	if (!mount(src, dst, type, flags, data))
		return 0;
	return fail("mount %s on %s: %s", type ? type : src, dst, strerror(errno));
}

static int read_cmdline(void)
{
	int fd = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return fail("/proc/cmdline: %s", strerror(errno));
	n = read(fd, cmdline, sizeof(cmdline) - 1);
	close(fd);
	cmdline[n > 0 ? n : 0] = 0;
	return 0;
}

/* QEMU's initramfs carries what its kernel needs to reach the 9p root. */
static int load_early_modules(void)
{
	glob_t found;
	size_t i;

	if (glob("/modules/*.ko", 0, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc; i++) {
		int fd = open(found.gl_pathv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
			return fail("module %s: %s", found.gl_pathv[i], strerror(errno));
		close(fd);
	}
	globfree(&found);
	return 0;
}

static int mount_root(bool initramfs)
{
	const char *base = initramfs ? "/rw" : "/tmp";
	const char *lower = initramfs ? "/lower" : "/";
	char data[256], path[64];

	if (initramfs) {
		mkdir("/lower", 0755);
		mkdir("/rw", 0755);
		if (virtual ? do_mount("none", "/lower", "hostfs", MS_RDONLY, "/") :
		    do_mount("root", "/lower", "9p", MS_RDONLY,
			     "trans=virtio,version=9p2000.L,cache=loose,msize=262144"))
			return -1;
	}
	if (do_mount("tmpfs", base, "tmpfs", 0, "mode=755"))
		return -1;
	snprintf(path, sizeof(path), "%s/up", base);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/work", base);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/root", base);
	mkdir(path, 0755);
	snprintf(data, sizeof(data), "lowerdir=%s,upperdir=%s/up,workdir=%s/work",
		 lower, base, base);
	if (do_mount("overlay", path, "overlay", 0, data))
		return -1;
	if (chdir(path) || mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
		return fail("entering the root: %s", strerror(errno));
	return 0;
}

/* A tmpfs on /tmp must not hide a checkout or a cache that lies there. */
static int mount_tmpfs_around(const char *shown)
{
	static const char *const over[] = { "/tmp", "/run", "/dev/shm" };
	char *list = strdup(shown ? shown : ""), *path, *save = NULL;
	int fds[16], nr = 0, i;
	char *paths[16];

	for (path = strtok_r(list, ":", &save); path && nr < 16;
	     path = strtok_r(NULL, ":", &save)) {
		fds[nr] = open(path, O_PATH | O_CLOEXEC);
		if (fds[nr] < 0)
			return fail("%s: %s", path, strerror(errno));
		paths[nr++] = path;
	}
	for (i = 0; i < 3; i++) {
		mkdir(over[i], 01777);
		if (do_mount("tmpfs", over[i], "tmpfs", 0, "mode=1777"))
			return -1;
	}
	for (i = 0; i < nr; i++) {
		char from[64];

		snprintf(from, sizeof(from), "/proc/self/fd/%d", fds[i]);
		make_dirs(paths[i]);
		if (do_mount(from, paths[i], NULL, MS_BIND, NULL))
			return -1;
		close(fds[i]);
	}
	free(list);
	return 0;
}

static int mount_all(bool initramfs)
{
	char *shown, *out, *modules;
	struct utsname uts;
	char path[512];

	/* the kernel's own devtmpfs went with the old root */
	if (do_mount("proc", "/proc", "proc", 0, NULL) ||
	    do_mount("sysfs", "/sys", "sysfs", 0, NULL) ||
	    do_mount("dev", "/dev", "devtmpfs", 0, NULL))
		return -1;
	mkdir("/dev/pts", 0755);
	mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666");
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("configfs", "/sys/kernel/config", "configfs", 0, NULL);
	shown = param("spindle.show");
	if (mount_tmpfs_around(shown))
		return -1;
	free(shown);

	out = param("spindle.out");
	if (out) {
		make_dirs(out);
		if (initramfs && !virtual ?
		    do_mount("out", out, "9p", 0, "trans=virtio,version=9p2000.L,msize=262144") :
		    do_mount("none", out, "hostfs", 0, out))
			return -1;
		free(out);
	}
	modules = param("spindle.modules");
	if (modules) {
		uname(&uts);
		snprintf(path, sizeof(path), "/usr/lib/modules/%s", uts.release);
		make_dirs(path);
		if (do_mount(modules, path, NULL, MS_BIND, NULL))
			return -1;
		free(modules);
	}
	return 0;
}

static pid_t spawn(char *const argv[], const char *input)
{
	int in[2] = { -1, -1 };
	pid_t pid;

	if (input && pipe2(in, O_CLOEXEC))
		return fail("pipe: %s", strerror(errno));
	pid = fork();
	if (!pid) {
		sigset_t none;
		int log = open("/dev/kmsg", O_WRONLY);

		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		if (input)
			dup2(in[0], 0);
		dup2(log, 1);
		dup2(log, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	if (input) {
		close(in[0]);
		write_all(in[1], input, strlen(input));
		close(in[1]);
	}
	return pid;
}

static int reap(pid_t pid, const char *what)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return fail("%s did not start", what);
	if (status)
		return fail("%s failed (status %#x); the kernel log has its output", what, status);
	return 0;
}

static void msleep(int ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&ts, NULL);
}

static int gids_present(int want, const char *prefix)
{
	int i, have = 0;

	for (i = 0; i < 1024 && have < want; i++) {
		char path[96], gid[64] = "";
		int fd;

		snprintf(path, sizeof(path), "/sys/class/infiniband/rxe0/ports/1/gids/%d", i);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			break;
		if (read(fd, gid, sizeof(gid) - 1) > 0 && !strncmp(gid, prefix, strlen(prefix)))
			have++;
		close(fd);
	}
	return have;
}

/*
 * spindle.net=a.b.c.d/len,count: count addresses from a.b.c.d on.
 * spindle.siw: software iWARP instead of soft-RoCE.
 */
static int setup_network(void)
{
	char *siw = param("spindle.siw");
	char *modprobe[] = { "modprobe", "-qa", siw ? "siw" : "rdma_rxe", "rdma_cm", "rdma_ucm",
			     "ib_uverbs", "ib_umad", NULL };
	char *ip[] = { "ip", "-batch", "-", NULL };
	char *rdma[] = { "rdma", "link", "add", siw ? "siw0" : "rxe0", "type",
			 siw ? "siw" : "rxe", "netdev", "eth0", NULL };
	char *rename[] = { "ip", "link", "set", "vec0", "name", "eth0", NULL };
	char *net = param("spindle.net");
	unsigned int a, b, c, d, len, count, i;
	char batch[65536], prefix[64];
	size_t used;
	pid_t mods;

	if (!net)
		return 0;
	if (sscanf(net, "%u.%u.%u.%u/%u,%u", &a, &b, &c, &d, &len, &count) != 6 || count > 512)
		return fail("spindle.net=%s", net);
	free(net);
	mods = spawn(modprobe, NULL);
	if (!access("/sys/class/net/vec0", F_OK) && reap(spawn(rename, NULL), "ip"))
		return -1;
	used = snprintf(batch, sizeof(batch), "link set lo up\nlink set eth0 up\n");
	for (i = 0; i < count; i++)
		used += snprintf(batch + used, sizeof(batch) - used,
				 "addr add %u.%u.%u.%u/%u dev eth0\n", a, b,
				 c + (d + i) / 256, (d + i) % 256, len);
	if (reap(spawn(ip, batch), "ip") || reap(mods, "modprobe"))
		return -1;
	if (reap(spawn(rdma, NULL), "rdma link add"))
		return -1;
	/* iWARP has no GIDs: any address of the interface will do */
	if (siw)
		return 0;
	snprintf(prefix, sizeof(prefix), "0000:0000:0000:0000:0000:ffff:%02x%02x:", a, b);
	for (i = 0; gids_present(count, prefix) < (int)count; i++) {
		if (i > 1000)
			return fail("no RDMA GID for the address after 10 s");
		msleep(10);
	}
	return 0;
}

static int open_channel(bool initramfs)
{
	struct termios raw;
	glob_t found;
	int i;

	channel = open("/dev/vchan", O_RDWR | O_CLOEXEC);
	virtual = channel >= 0;
	for (i = 0; channel < 0 && i < 500; i++) {
		if (!initramfs) {
			channel = open("/dev/ttyS0", O_RDWR | O_NOCTTY | O_CLOEXEC);
		} else if (!glob("/dev/vport*", 0, NULL, &found)) {
			channel = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
			globfree(&found);
		}
		if (channel < 0)
			msleep(10);
	}
	if (channel < 0)
		return fail("no channel to the host: %s", strerror(errno));
	if (!tcgetattr(channel, &raw)) {
		cfmakeraw(&raw);
		tcsetattr(channel, TCSANOW, &raw);
	}
	return 0;
}

static int read_all(int fd, void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= n;
	}
	return 0;
}

/* The rest of the kernel's command line, from the host. */
static int ask_params(void)
{
	size_t have = strcspn(cmdline, "\n");
	struct frame_head head;

	send_frame(FRAME_ASK, 0, "", 0);
	cmdline[have++] = ' ';
	if (read_all(channel, &head, sizeof(head)) || head.type != FRAME_PARAMS ||
	    head.len >= sizeof(cmdline) - have || read_all(channel, cmdline + have, head.len))
		return fail("no parameters from the host");
	cmdline[have + head.len] = 0;
	return 0;
}

static struct command *find_command(uint32_t id)
{
	int i;

	for (i = 0; i < MAX_COMMANDS; i++)
		if (commands[i].used && commands[i].id == id)
			return &commands[i];
	return NULL;
}

static void refuse(uint32_t id, const char *why)
{
	uint32_t status = 127 << 8;

	send_frame(FRAME_STDERR, id, why, strlen(why));
	send_frame(FRAME_EXIT, id, &status, sizeof(status));
}

static char *next_string(char **p, char *end)
{
	char *s = *p, *nul = s < end ? memchr(s, 0, end - s) : NULL;

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

static void run_child(char *cwd, char **argv, char **envp, int out[2][2])
{
	char message[256];
	sigset_t none;
	int null, n;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	dup2(out[0][1], 1);
	dup2(out[1][1], 2);
	close_range(3, ~0U, 0);
	if (chdir(cwd) == 0) {
		environ = envp;
		execvp(argv[0], argv);
		n = snprintf(message, sizeof(message), "%s: %s\n", argv[0], strerror(errno));
	} else {
		n = snprintf(message, sizeof(message), "%s: %s\n", cwd, strerror(errno));
	}
	n = n < (int)sizeof(message) ? n : (int)sizeof(message) - 1;
	if (write(2, message, n) < 0)
		_exit(126);
	_exit(127);
}

static void start_command(uint32_t id, char *p, uint32_t len)
{
	char *end = p + len, *cwd, **argv, **envp;
	struct command *cmd = NULL;
	uint32_t argc, envc, i;
	int out[2][2];

	if (len < 8)
		return refuse(id, "bad frame\n");
	memcpy(&argc, p, 4);
	memcpy(&envc, p + 4, 4);
	p += 8;
	cwd = next_string(&p, end);
	if (!cwd || !argc || argc > len || envc > len)
		return refuse(id, "bad frame\n");
	for (i = 0; i < MAX_COMMANDS && !cmd; i++)
		if (!commands[i].used)
			cmd = &commands[i];
	if (!cmd)
		return refuse(id, "too many commands at once\n");
	argv = calloc(argc + 1, sizeof(*argv));
	envp = calloc(envc + 1, sizeof(*envp));
	for (i = 0; i < argc; i++)
		argv[i] = next_string(&p, end);
	for (i = 0; i < envc; i++)
		envp[i] = next_string(&p, end);
	if (pipe2(out[0], O_CLOEXEC)) {
		refuse(id, "pipe failed\n");
		goto free_args;
	}
	if (pipe2(out[1], O_CLOEXEC)) {
		close(out[0][0]);
		close(out[0][1]);
		refuse(id, "pipe failed\n");
		goto free_args;
	}
	cmd->pid = fork();
	if (!cmd->pid)
		run_child(cwd, argv, envp, out);
	close(out[0][1]);
	close(out[1][1]);
	if (cmd->pid < 0) {
		close(out[0][0]);
		close(out[1][0]);
		refuse(id, "fork failed\n");
		goto free_args;
	}
	cmd->used = true;
	cmd->id = id;
	for (i = 0; i < 2; i++) {
		cmd->out[i] = out[i][0];
		fcntl(cmd->out[i], F_SETFL, O_NONBLOCK);
	}
free_args:
	free(argv);
	free(envp);
}

/* Pass on what there is; false when there is no more for now. */
static bool forward(struct command *cmd, int which)
{
	static char buf[32768];
	ssize_t n;

	if (cmd->out[which] < 0)
		return false;
	n = read(cmd->out[which], buf, sizeof(buf));
	if (n > 0) {
		send_frame(which ? FRAME_STDERR : FRAME_STDOUT, cmd->id, buf, n);
		return true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(cmd->out[which]);
		cmd->out[which] = -1;
	}
	return false;
}

static void maybe_free(struct command *cmd)
{
	if (cmd->used && !cmd->pid && cmd->out[0] < 0 && cmd->out[1] < 0)
		cmd->used = false;
}

static void reap_children(void)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < MAX_COMMANDS; i++) {
			struct command *cmd = &commands[i];
			uint32_t word = status;

			if (!cmd->used || cmd->pid != pid)
				continue;
			/* a grandchild may hold the pipes: take only what is there */
			while (forward(cmd, 0))
				;
			while (forward(cmd, 1))
				;
			cmd->pid = 0;
			send_frame(FRAME_EXIT, cmd->id, &word, sizeof(word));
			maybe_free(cmd);
		}
	}
}

static void take_frame(struct frame_head *head, char *data)
{
	struct command *cmd;
	uint32_t sig;

	switch (head->type) {
	case FRAME_START:
		start_command(head->id, data, head->len);
		break;
	case FRAME_SIGNAL:
		if (head->len != sizeof(sig))
			break;
		memcpy(&sig, data, sizeof(sig));
		if (!head->id) {
			/* everything but ourselves: also what commands left behind */
			kill(-1, sig);
			break;
		}
		cmd = find_command(head->id);
		if (!cmd || !cmd->pid)
			break;
		/* before its setsid() the child has no group yet */
		if (kill(-cmd->pid, sig) && errno == ESRCH)
			kill(cmd->pid, sig);
		break;
	}
}

/*
 * KASAN keeps what was freed, and lets go of it only in allocations that may
 * sleep: under traffic, whose allocations are all atomic, a guest without
 * other work would run out of memory. A cache that is shrunk gets its own back.
 */
static void give_back(void)
{
	static unsigned long least;
	unsigned long part;
	struct sysinfo info;
	glob_t found;
	size_t i;

	if (sysinfo(&info))
		return;
	part = info.totalram / 16;
	if (!least || info.freeram > least)
		least = info.freeram;
	if (info.freeram > 8 * part || info.freeram + part > least)
		return;
	if (!glob("/sys/kernel/slab/*/shrink", 0, NULL, &found)) {
		for (i = 0; i < found.gl_pathc; i++) {
			int fd = open(found.gl_pathv[i], O_WRONLY | O_CLOEXEC);

			if (fd < 0)
				continue;
			write_all(fd, "1", 1);
			close(fd);
		}
		globfree(&found);
	}
	if (!sysinfo(&info))
		least = info.freeram;
}

/* Returns when the host is gone. */
static void serve(int sigfd)
{
	static char buf[sizeof(struct frame_head) + MAX_FRAME];
	size_t have = 0;

	for (;;) {
		struct pollfd pfd[2 + 2 * MAX_COMMANDS];
		struct command *owner[2 + 2 * MAX_COMMANDS];
		int which[2 + 2 * MAX_COMMANDS];
		int nr = 2, i, w;

		pfd[0] = (struct pollfd){ .fd = channel, .events = POLLIN };
		pfd[1] = (struct pollfd){ .fd = sigfd, .events = POLLIN };
		for (i = 0; i < MAX_COMMANDS; i++) {
			for (w = 0; w < 2; w++) {
				if (!commands[i].used || commands[i].out[w] < 0)
					continue;
				owner[nr] = &commands[i];
				which[nr] = w;
				pfd[nr++] = (struct pollfd){ .fd = commands[i].out[w],
							     .events = POLLIN };
			}
		}
		if (poll(pfd, nr, LOOK_MS) < 0)
			continue;
		give_back();
		for (i = 2; i < nr; i++) {
			if (!pfd[i].revents)
				continue;
			forward(owner[i], which[i]);
			maybe_free(owner[i]);
		}
		if (pfd[1].revents) {
			struct signalfd_siginfo info;

			if (read(sigfd, &info, sizeof(info)) == sizeof(info))
				reap_children();
		}
		if (pfd[0].revents) {
			ssize_t n = read(channel, buf + have, sizeof(buf) - have);
			struct frame_head head;
			uint32_t taken = n;
			size_t at = 0;

			if (n < 0 && (errno == EINTR || errno == EAGAIN))
				continue;
			if (n <= 0)
				return;
			have += n;
			send_frame(FRAME_TAKEN, 0, &taken, sizeof(taken));
			while (have - at >= sizeof(head)) {
				memcpy(&head, buf + at, sizeof(head));
				if (head.len > MAX_FRAME)
					return;
				if (have - at < sizeof(head) + head.len)
					break;
				take_frame(&head, buf + at + sizeof(head));
				at += sizeof(head) + head.len;
			}
			memmove(buf, buf + at, have - at);
			have -= at;
		}
	}
}

static int set_up(bool initramfs)
{
	char *rank, name[80];

	if (mount_root(initramfs) || mount_all(initramfs))
		return -1;
	rank = param("spindle.rank");
	snprintf(name, sizeof(name), "node%s", rank ? rank : "");
	sethostname(name, strlen(name));
	free(rank);
	setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
	return setup_network();
}

int main(void)
{
	bool initramfs = !access("/init", X_OK) && !access("/modules", F_OK);
	sigset_t chld;
	int sigfd, err;

	umask(022);
	mkdir("/proc", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	if (read_cmdline())
		halt();
	if (param_is("spindle.mode", "hello")) {
		int fd = open("/dev/ttyS0", O_WRONLY | O_NOCTTY);

		if (fd >= 0)
			write_all(fd, "spindle: hello\n", 15);
		halt();
	}
	if (initramfs && load_early_modules())
		halt();
	/* the channel first: it carries the reason when anything after it fails */
	if (open_channel(initramfs))
		halt();
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	err = virtual ? ask_params() : 0;
	if (!err)
		err = set_up(initramfs);
	if (err) {
		send_frame(FRAME_FAILED, 0, reason, strlen(reason));
		/* the host ends us once it has read that */
		for (;;)
			pause();
	}
	sigprocmask(SIG_BLOCK, &chld, NULL);
	sigfd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	send_frame(FRAME_READY, 0, "", 0);
	serve(sigfd);
	halt();
	return 0;
}
