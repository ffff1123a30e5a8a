/* SPDX-License-Identifier: BSD-2-Clause */
#include "sym/elf_child.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include "base/fork_server.h"
#include "base/full_io.h"
#include "base/reader_jail.h"
#include "sym/elf_symtab.h"
#include "sym/packed_symbols.h"

#define CRC_MAX (512u << 20)	/* bytes that are read only to know whether a file is the right one */
#define KEEP_BYTES (16 << 20)	/* of memory from file to file, as fresh pages are what small ones cost; an idle child ends anyway */
#define KEEP_TABLE (1 << 20)
#define SHORT_NAME 128

static int read_crc(int fd, uint32_t *ret)
{
	static uint8_t buf[1 << 16];
	off_t size = lseek(fd, 0, SEEK_END), at = 0;
	uLong crc = crc32(0, NULL, 0);

	if (size < 0 || size > CRC_MAX)
		return -EFBIG;
	while (at < size) {
		size_t n = size - at < (off_t)sizeof(buf) ? (size_t)(size - at) : sizeof(buf);

		if (pread_full(fd, buf, n, (uint64_t)at))
			return -EIO;
		crc = crc32(crc, buf, (uInt)n);
		at += (off_t)n;
	}
	*ret = (uint32_t)crc;
	return 0;
}

/* What is packed inside the file counts where there is no better. */
static int read_symbols(const struct elf_image *img, int debug_fd, uint32_t along, struct symtab **ret)
{
	struct packed_symbols packed = { .mem = NULL };
	struct elf_image debug;
	int err;

	if (debug_fd >= 0) {
		err = elf_image_open_fd(&debug, debug_fd, NULL);
		if (err)
			return err;
		err = symtab_build(img, &debug, along, ret);
		elf_image_close(&debug);
		return err;
	}
	if (!elf_image_section_of_type(img, SHT_SYMTAB) && !packed_symbols_open(img, &packed)) {
		err = symtab_build(img, &packed.img, UINT32_MAX, ret)	/* which cannot be asked for later */;
		packed_symbols_close(&packed);
		return err;
	}
	return symtab_build(img, NULL, along, ret);
}

static int tell_symbols(const struct elf_image *img, int debug_fd, uint32_t along, int mem, struct elf_answer *a)
{
	struct symtab *t = NULL;
	int err = read_symbols(img, debug_fd, along, &t);

	/* The last one has been taken. */
	if (!err && ((lseek(mem, 0, SEEK_END) > KEEP_TABLE && ftruncate(mem, 0)) || lseek(mem, 0, SEEK_SET)))
		err = -EIO;
	if (!err)
		err = symtab_write(t, mem);
	if (!err) {
		a->n = t->n;
		a->names_len = t->names_len;
		a->cut = t->cut;
		memcpy(a->str, t->str, sizeof(a->str));
	}
	symtab_free(t);
	return err;
}

static int read_name(int fd, const struct elf_ask *ask, char *ret)
{
	uint32_t len = ask->len < SYMTAB_NAME_MAX ? ask->len : SYMTAB_NAME_MAX - 1, want = len < SHORT_NAME ? len : SHORT_NAME;

	/* Most names are short: one small read, and a large one only for the rest. */
	if (pread_full(fd, ret, want, ask->off))
		return -EIO;
	if (want < len && strnlen(ret, want) == want && pread_full(fd, ret, want = len, ask->off))
		return -EIO;
	ret[symtab_name_len(ret, want)] = 0;
	return *ret ? 0 : -ENOENT;
}

static int reply(const struct elf_ask *ask, const int *fds, int mem, struct elf_answer *a)
{
	struct elf_image img;
	int err;

	if (ask->question == ELF_CRC)
		return read_crc(fds[0], &a->crc);
	if (ask->question == ELF_NAME)
		return read_name(fds[ask->debug ? 1 : 0], ask, a->name);
	err = elf_image_open_fd(&img, fds[0], NULL);
	if (err)
		return err;
	if (ask->question == ELF_FACTS)
		elf_facts_read(&img, &a->facts);
	else
		err = tell_symbols(&img, ask->debug ? fds[1] : -1, ask->all_names ? UINT32_MAX : ELF_NAMES_ALONG, mem, a);
	elf_image_close(&img);
	return err;
}

void elf_child_main(int sock, int mem)
{
	static struct elf_answer a;
	struct elf_ask ask;
	int fds[2];

	prctl(PR_SET_NAME, "sfbpf-names");
	reader_jail_enter(&(struct reader_limits){ .memory = ELF_CHILD_MEMORY, .output = SYMTAB_MAX_BYTES, .keep = KEEP_BYTES });
	/* Who asks waits for it. Without the right to it a process like others. */
	setpriority(PRIO_PROCESS, 0, FORK_CHILD_NICE);
	while (!fork_receive(sock, &ask, sizeof(ask), fds, 2, 0)) {
		a = (struct elf_answer){ .question = ask.question };
		a.err = reply(&ask, fds, mem, &a);
		close(fds[0]);
		close(fds[1]);
		if (fork_send(sock, &a, sizeof(a), NULL, 0, 0))
			break;
	}
	_exit(0);
}
