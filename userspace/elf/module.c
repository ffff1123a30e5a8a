/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/module.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_MODULES 65536

struct modules {
	pthread_mutex_t lock;			/* taken to add */
	struct module *_Atomic by_id[MAX_MODULES];
	_Atomic uint32_t max_id;
};

struct modules *modules_new(void)
{
	struct modules *ms = calloc(1, sizeof(*ms));

	if (ms)
		pthread_mutex_init(&ms->lock, NULL);
	return ms;
}

void modules_free(struct modules *ms)
{
	if (!ms)
		return;
	for (uint32_t id = 0; id <= ms->max_id; id++) {
		struct module *m = ms->by_id[id];

		if (!m)
			continue;
		if (m->fd >= 0)
			close(m->fd);
		free(m->path);
		free(m->sframe);
		free(m);
	}
	pthread_mutex_destroy(&ms->lock);
	free(ms);
}

struct module *modules_find(const struct modules *ms, uint32_t id)
{
	return id < MAX_MODULES ? ms->by_id[id] : NULL;
}

struct module *modules_get(struct modules *ms, uint32_t id)
{
	struct module *m = modules_find(ms, id);

	if (m || id >= MAX_MODULES)
		return m;
	pthread_mutex_lock(&ms->lock);
	m = ms->by_id[id];
	if (!m) {
		m = calloc(1, sizeof(*m));
		if (m) {
			m->id = id;
			m->fd = -1;
			m->name = "";
			ms->by_id[id] = m;
			if (id > ms->max_id)
				ms->max_id = id;
		}
	}
	pthread_mutex_unlock(&ms->lock);
	return m;
}

uint32_t modules_max_id(const struct modules *ms)
{
	return ms->max_id;
}

int module_image(const struct module *m, struct elf_image *ret)
{
	if (m->fd >= 0)
		return elf_image_open_fd(ret, m->fd, NULL);
	if (m->mem)
		return elf_image_open_mem(ret, m->mem, m->size, NULL);
	return -ENOENT;
}

uint32_t module_code(const struct module *m, struct module_code ret[MODULE_MAX_CODE])
{
	struct elf_image img;
	uint32_t n = 0;

	if (module_image(m, &img))
		return 0;
	for (uint32_t i = 0; i < img.nphdrs && n < MODULE_MAX_CODE; i++) {
		const struct elf_phdr *ph = &img.phdrs[i];
		uint64_t skip = ph->offset & (MODULE_PAGE - 1);

		if (ph->type == PT_LOAD && ph->flags & PF_X && ph->filesz && ph->filesz <= SF_FRAME_OFFSET_MASK &&
		    ph->offset <= SF_FRAME_OFFSET_MASK - ph->filesz)
			ret[n++] = (struct module_code){ ph->offset - skip, ph->vaddr - skip, ph->filesz + skip };
	}
	elf_image_close(&img);
	return n;
}

const struct module_code *module_code_at(const struct module_code *code, uint32_t n, uint64_t offset)
{
	for (uint32_t i = 0; i < n; i++)
		if (offset >= code[i].off && offset - code[i].off < code[i].size)
			return &code[i];
	return NULL;
}
