/* SPDX-License-Identifier: BSD-2-Clause */
#include "symtab/elf_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <zlib.h>

#include "base/full_io.h"
#include "elf/elf_digest.h"
#include "symtab/elf_data.h"
#include "symtab/elf_linked.h"
#include "symtab/elf_symtab.h"
#include "symtab/elf_versions.h"
#include "symtab/packed_symbols.h"
#include "symtab/sym_names.h"
#include "worker/jail.h"
#include "worker/worker.h"

/* The most bytes to read to check whether a file is the right one */
#define CRC_MAX	   (512u << 20)
/*
 * Bytes of memory kept from file to file, because fresh pages dominate the cost of small files. An
 * idle child ends anyway.
 */
#define KEEP_BYTES (16 << 20)
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

/* .gnu_debugdata is used only if there is nothing better. */
static int read_symbols(const struct elf_image *img, int debug_fd, uint32_t along,
			struct symtab **ret)
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
		/* All names: they cannot be asked for later. */
		err = symtab_build(img, &packed.img, UINT32_MAX, ret);
		packed_symbols_close(&packed);
		return err;
	}
	return symtab_build(img, NULL, along, ret);
}

/* The main process has read the previous output. */
static int clear_output(int mem)
{
	bool failed = (lseek(mem, 0, SEEK_END) > KEEP_TABLE && ftruncate(mem, 0)) ||
		      lseek(mem, 0, SEEK_SET);

	return failed ? -EIO : 0;
}

static int tell_code(const struct elf_image *img, const struct elf_code *what, int mem,
		     struct elf_answer *a)
{
	struct elf_instruction *v = NULL;
	int err = elf_code_read(img, what, &v, &a->n);

	if (!err)
		err = clear_output(mem);
	if (!err)
		err = write_full(mem, v, a->n * sizeof(*v));
	free(v);
	return err;
}

static int tell_steps(const struct elf_image *img, const struct elf_code *what, int mem,
		      struct elf_answer *a)
{
	uint32_t *v = NULL;
	int err = elf_steps_read(img, what, &v, &a->n);

	if (!err)
		err = clear_output(mem);
	if (!err)
		err = write_full(mem, v, a->n * sizeof(*v));
	free(v);
	return err;
}

static int tell_places(const struct elf_image *img, const struct elf_ask *ask, int mem,
		       struct elf_answer *a)
{
	struct go_places p;
	size_t n = ask->len / sizeof(ask->offsets[0]);
	int err = ask->question == ELF_GO ? go_places_read(img, ask->offsets, n, &p)
					  : elf_linked_read(img, ask->offsets, n, &p);

	if (!err)
		err = clear_output(mem);
	if (!err)
		err = go_places_write(&p, mem);
	a->n = p.n;
	a->names_len = p.text_len;
	go_places_free(&p);
	return err;
}

static int tell_probes(const struct elf_image *img, const struct elf_ask *ask, int mem,
		       struct elf_answer *a)
{
	struct elf_probes p;
	/* The byte after the bytes of ask->raw that were sent is 0. */
	int err = elf_probes_read(img, (enum elf_probes_of)ask->off, ask->raw, &p);

	if (!err)
		err = clear_output(mem);
	if (!err)
		err = elf_probes_write(&p, mem);
	a->n = p.n;
	a->names_len = p.text_len;
	a->cut = elf_probes_flags(&p);
	elf_probes_free(&p);
	return err;
}

static int tell_symbols(const struct elf_image *img, int debug_fd, uint32_t along, int mem,
			struct elf_answer *a)
{
	struct symtab *t = NULL;
	int err = read_symbols(img, debug_fd, along, &t);

	if (!err)
		err = clear_output(mem);
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

/* Most names have no version, so the file is opened only for those with an @. */
static size_t cut_version(int fd, const char *name, size_t most)
{
	struct elf_versions versions = { .read = false };
	size_t len = strnlen(name, most);
	struct elf_image img;

	if (!memchr(name, '@', len) || elf_image_open_fd(&img, fd, NULL))
		return len;
	len = elf_versions_cut(&versions, &img, name, len);
	elf_versions_free(&versions);
	elf_image_close(&img);
	return len;
}

static int read_name(const int *fds, const struct elf_ask *ask, char *ret)
{
	int fd = fds[ask->debug ? 1 : 0];
	uint32_t len = ask->len < SYMTAB_NAME_MAX ? ask->len : SYMTAB_NAME_MAX - 1,
		 want = len < SHORT_NAME ? len : SHORT_NAME;

	/* Most names are short: one small read, then a larger one only if needed. */
	if (pread_full(fd, ret, want, ask->off))
		return -EIO;
	if (want < len && strnlen(ret, want) == want && pread_full(fd, ret, want = len, ask->off))
		return -EIO;
	ret[cut_version(fds[0], ret, want)] = 0;
	return *ret ? 0 : -ENOENT;
}

static int tell_name(const struct elf_ask *ask, const int *fds, char *ret)
{
	char raw[SYMTAB_NAME_MAX];
	int err;

	if (!ask->demangle)
		return read_name(fds, ask, ret);
	err = ask->question == ELF_NAME ? read_name(fds, ask, raw) : 0;
	/* The byte after the bytes of ask->raw that were sent is 0. */
	if (!err && !sym_demangle(ask->question == ELF_NAME ? raw : ask->raw, ret, SYM_NAME_MAX))
		err = -ENOENT;
	return err;
}

static int reply(const struct elf_ask *ask, const struct worker_request *r, struct elf_answer *a)
{
	struct elf_image img;
	int err;

	if (ask->question == ELF_CRC)
		return read_crc(r->fds[0], &a->crc);
	if (ask->question == ELF_NAME || ask->question == ELF_DEMANGLE)
		return tell_name(ask, r->fds, a->name);
	err = elf_image_open_fd(&img, r->fds[0], NULL);
	if (err)
		return ask->question == ELF_IDS ? elf_ids_read(r->fds[0], NULL, &a->ids) : err;
	if (ask->question == ELF_IDS)
		err = elf_ids_read(r->fds[0], &img, &a->ids);
	else if (ask->question == ELF_FACTS)
		elf_facts_read(&img, &a->facts);
	else if (ask->question == ELF_DIGEST)
		err = (a->digest = elf_digest(&img)) ? 0 : -EIO;
	else if (ask->question == ELF_TLS)
		err = elf_tls_find(&img, ELF_TLS_NAME, &a->tls);
	else if (ask->question == ELF_GO || ask->question == ELF_LINKED)
		err = tell_places(&img, ask, r->mem, a);
	else if (ask->question == ELF_PROBES)
		err = tell_probes(&img, ask, r->mem, a);
	else if (ask->question == ELF_DATA)
		err = elf_data_name(&img, ask->off, ask->distance, a->name, SYM_NAME_MAX);
	else if (ask->question == ELF_CODE)
		err = tell_code(&img, &ask->code, r->mem, a);
	else if (ask->question == ELF_STEPS)
		err = tell_steps(&img, &ask->code, r->mem, a);
	else
		err = tell_symbols(&img, ask->debug ? r->fds[1] : -1,
				   ask->all_names ? UINT32_MAX : ELF_NAMES_ALONG, r->mem, a);
	elf_image_close(&img);
	return err;
}

static int answer(const struct worker_request *r)
{
	const struct elf_ask *ask = r->ask;
	struct elf_answer *a = r->answer;

	a->question = ask->question;
	a->err = reply(ask, r, a);
	return -1;
}

void elf_worker_main(int sock, int mem)
{
	static const struct worker_service service = {
		.least = offsetof(struct elf_ask, raw),
		.most = sizeof(struct elf_ask),
		.nfds = 2,
		.answer_len = sizeof(struct elf_answer),
		.reply = answer,
	};

	prctl(PR_SET_NAME, "sfbpf-names");
	jail_enter_reader(&(struct jail_reader){
		.memory = ELF_CHILD_MEMORY, .output = SYMTAB_MAX_BYTES, .keep = KEEP_BYTES });
	worker_serve(sock, mem, &service);
}
