/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/command_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/elf_image.h"
#include "elf/elf_needed.h"
#include "worker/child_end.h"

#define READY_MS    500 /* that the search may take */
#define FILES_MAX   128
#define DIRS_MAX    256
#define WORDS_MAX   1024
#define SCRIPT_TEXT 16384 /* bytes of a script, or of a word, that are looked at */

struct search {
	char *files[FILES_MAX]; /* canonical paths */
	char *dirs[DIRS_MAX];
	size_t nfiles, ndirs;
	const char *in_hand; /* the file whose needs are being found */
	uint8_t *room;
	size_t nmapped, nwords;
	bool shell;  /* a shell is among the programs, so a file may be its script */
	bool shells; /* or was, before a script of another interpreter */
};

static void add_file(struct search *s, const char *path)
{
	char *real = s->nfiles < FILES_MAX ? realpath(path, NULL) : NULL;

	for (size_t i = 0; real && i < s->nfiles; i++)
		if (!strcmp(s->files[i], real)) {
			free(real);
			return;
		}
	if (real)
		s->files[s->nfiles++] = real;
}

static void add_dir(struct search *s, const char *dir, size_t len)
{
	if (len && s->ndirs < DIRS_MAX && (s->dirs[s->ndirs] = strndup(dir, len)))
		s->ndirs++;
}

static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? (size_t)(slash - path) : 0;
}

/* Adds directories that are separated by colons. $ORIGIN is that of the file in hand. */
static void add_dirs(struct search *s, const char *list)
{
	char dir[PATH_MAX];

	for (size_t n; *list; list += n + (list[n] == ':')) {
		const char *rest = list;

		n = strcspn(list, ":");
		dir[0] = 0;
		for (size_t i = 0; i < 2 && s->in_hand; i++) {
			static const char *const origin[] = { "$ORIGIN", "${ORIGIN}" };
			size_t len = strlen(origin[i]);

			if (n < len || strncmp(list, origin[i], len))
				continue;
			snprintf(dir, sizeof(dir), "%.*s", (int)dir_len(s->in_hand), s->in_hand);
			rest = list + len;
		}
		snprintf(dir + strlen(dir), sizeof(dir) - strlen(dir), "%.*s",
			 (int)(list + n - rest), rest);
		add_dir(s, dir, strlen(dir));
	}
}

static bool is_file(const char *path, int mode)
{
	struct stat st;

	return !access(path, mode) && !stat(path, &st) && S_ISREG(st.st_mode);
}

/*
 * Adds a file that may be opened in this way, from one of the directories from `first` on. False:
 * there is none.
 */
static bool find_in(struct search *s, size_t first, const char *name, int mode)
{
	char path[PATH_MAX];
	bool found = strchr(name, '/') && is_file(name, mode);

	if (found)
		add_file(s, name);
	for (size_t i = first; i < s->ndirs && !found && !strchr(name, '/'); i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", s->dirs[i], name);

		found = n < (int)sizeof(path) && is_file(path, mode);
		if (found)
			add_file(s, path);
	}
	return found;
}

/* Finds a program as execvp(3) does. The directories are of no use later. */
static bool find_program(struct search *s, const char *name)
{
	const char *path = getenv("PATH");
	size_t first = s->ndirs;
	bool found;

	add_dirs(s, path ? path : "/bin:/usr/bin");
	found = find_in(s, first, name, X_OK);
	while (s->ndirs > first)
		free(s->dirs[--s->ndirs]);
	return found;
}

static bool is_shell(const char *path)
{
	size_t len = strlen(path);

	return len >= 2 && !strcmp(path + len - 2, "sh");
}

/*
 * Whatever starts a program has its name among its words: nice, prlimit, a dynamic linker, a shell.
 * So each word that names a program counts. Others that have such a name are few and small.
 */
static void take_word(struct search *s, const char *word)
{
	if (s->nwords++ >= WORDS_MAX)
		return;
	if (find_program(s, word)) {
		s->shell |= is_shell(word);
		s->shells |= s->shell;
	} else if (s->shell && is_file(word, R_OK)) { /* its script */
		add_file(s, word);
	}
}

/* The words of a script, or of a command line: `sh -c`, `env -S`. Overwrites the text. */
static void take_words(struct search *s, char *text)
{
	char *rest, *word = strtok_r(text, " \t\n;|&()<>{}`\"'$=", &rest);

	for (; word && s->nwords < WORDS_MAX; word = strtok_r(NULL, " \t\n;|&()<>{}`\"'$=", &rest))
		take_word(s, word);
}

static void take_argument(struct search *s, const char *arg)
{
	char text[SCRIPT_TEXT];

	take_word(s, arg);
	if (!arg[strcspn(arg, " \t\n=")])
		return;
	snprintf(text, sizeof(text), "%s", arg);
	take_words(s, text);
}

static void find_command(struct search *s, char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		take_argument(s, argv[i]);
}

static void take_need(void *ctx, enum elf_needed kind, const char *text)
{
	struct search *s = ctx;
	char *real;

	switch (kind) {
	case ELF_RUNPATH:
		add_dirs(s, text);
		break;
	case ELF_INTERP:
		add_file(s, text);
		real = realpath(text, NULL);
		if (real)
			add_dir(s, real, dir_len(real));
		free(real);
		break;
	case ELF_LIBRARY:
		find_in(s, 0, text, R_OK);
		break;
	}
}

/* The interpreter of a script, and what it says after that; all words of a shell's. */
static void take_script(struct search *s, int fd)
{
	char text[SCRIPT_TEXT];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	size_t line;

	if (n < 2 || memchr(text, 0, (size_t)n))
		return;
	text[n] = 0;
	line = strcspn(text, "\n");
	if (text[0] == '#' && text[1] == '!') {
		char end = text[line];

		text[line] = 0;
		line += end != 0;
		s->shell = false;
		take_words(s, text + 2);
		if (!s->shell)
			return;
	} else if (s->shell) {
		line = 0;
	} else {
		return;
	}
	take_words(s, text + line);
}

static void map_code(struct search *s, const struct elf_image *img, int fd)
{
	const long page = sysconf(_SC_PAGESIZE);

	for (uint32_t i = 0; i < img->nphdrs; i++) {
		const struct elf_phdr *ph = &img->phdrs[i];

		if (ph->type != PT_LOAD || !(ph->flags & PF_X) || !ph->filesz)
			continue;
		if (mmap(s->room + s->nmapped * (size_t)page, (size_t)page, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_FIXED, fd, (off_t)ph->offset & -page) != MAP_FAILED)
			s->nmapped++;
		return;
	}
}

/*
 * Libraries that a library opens with dlopen(3) before the program's first code runs: a launcher's
 * virtual machine. Paths are from the directory of the library.
 */
static const struct {
	const char *launcher, *opens;
} launchers[] = {
	{ "libjli.so", "server/libjvm.so" }, { "libjli.so", "../server/libjvm.so" }, /* Java 8 */
};

static void take_opened(struct search *s, const char *path)
{
	char opened[PATH_MAX];
	size_t dir = dir_len(path);

	for (size_t i = 0; dir && i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		if (strcmp(path + dir + 1, launchers[i].launcher))
			continue;
		if (snprintf(opened, sizeof(opened), "%.*s/%s", (int)dir, path,
			     launchers[i].opens) < (int)sizeof(opened))
			add_file(s, opened);
	}
}

static void look_at(struct search *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct diag diag = { 0 };
	struct elf_image img;
	struct stat st;

	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		if (elf_image_open_fd(&img, fd, &diag)) {
			take_script(s, fd);
		} else {
			s->in_hand = path;
			elf_needed(&img, take_need, s);
			take_opened(s, path);
			map_code(s, &img, fd);
			elf_image_close(&img);
		}
	}
	close(fd);
}

/* Returns whether a shell is among the programs. */
static bool map_files(char *const *argv, void *room)
{
	struct search s = { .room = room };
	const char *dirs = getenv("LD_LIBRARY_PATH");

	find_command(&s, argv);
	if (dirs)
		add_dirs(&s, dirs);
	for (size_t i = 0; i < s.nfiles; i++)
		look_at(&s, s.files[i]);
	for (size_t i = 0; i < s.nfiles; i++)
		free(s.files[i]);
	for (size_t i = 0; i < s.ndirs; i++)
		free(s.dirs[i]);
	return s.shells;
}

/* stop: a pipe that nothing is written to */
static _Noreturn void run(char *const *argv, void *room, int ready, int stop)
{
	char byte = map_files(argv, room);

	if (write(ready, &byte, 1) == 1 && read(stop, &byte, 1) < 0)
		_exit(1);
	_exit(0);
}

int command_files_start(struct command_files *f, char *const *argv)
{
	struct pollfd ready = { .fd = -1, .events = POLLIN };
	int up[2], down[2], err = 0;
	char byte;

	*f = (struct command_files){ .pid = -1, .stop_fd = -1, .room = MAP_FAILED };
	f->room_len = (size_t)sysconf(_SC_PAGESIZE) * FILES_MAX;
	f->room = mmap(NULL, f->room_len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->room == MAP_FAILED || pipe2(up, O_CLOEXEC))
		return -errno;
	if (pipe2(down, O_CLOEXEC)) {
		err = -errno;
		close(up[0]);
		close(up[1]);
		return err;
	}
	f->pid = fork();
	if (!f->pid) {
		close(down[1]);
		run(argv, f->room, up[1], down[0]);
	}
	if (f->pid < 0)
		err = -errno;
	close(up[1]);
	close(down[0]);
	f->stop_fd = down[1];
	ready.fd = up[0];
	if (!err && poll(&ready, 1, READY_MS) < 1)
		err = -ETIMEDOUT;
	if (!err && read(up[0], &byte, 1) != 1)
		err = -ECHILD;
	close(up[0]);
	f->shell = !err && byte;
	return err;
}

void command_files_end(struct command_files *f)
{
	int status;

	if (f->stop_fd >= 0)
		close(f->stop_fd);
	if (f->pid > 0)
		child_kill(f->pid, &status);
	if (f->room != MAP_FAILED)
		munmap(f->room, f->room_len);
}
