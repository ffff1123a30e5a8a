/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vec.h"

#define SEGMENT	 4096u /* modules per segment of the index */
#define SEGMENTS 8192u

_Static_assert((uint64_t)SEGMENT *SEGMENTS > SF_FRAME_MODULE_MASK, "every id has an index");

typedef struct module *_Atomic module_ptr;

struct modules {
	/* Taken to add, to free, and for lookups in the loader's thread */
	pthread_mutex_t lock;
	module_ptr by_place[SF_MAX_MODULES]; /* newest id first */
	module_ptr *_Atomic segments[SEGMENTS];
	_Atomic uint32_t count; /* indices below this are in use or in `free_index` */
	uint32_t *free_index;	/* indices of freed modules */
	size_t nfree, free_cap;
	struct module *retired, **retired_end; /* oldest first */
	_Atomic uint64_t nretired;	       /* ever */
	uint64_t drained;
};

struct modules *modules_new(void)
{
	struct modules *ms = calloc(1, sizeof(*ms));

	if (!ms)
		return NULL;
	pthread_mutex_init(&ms->lock, NULL);
	ms->retired_end = &ms->retired;
	return ms;
}

static _Atomic uint64_t copied;

void module_set_file(struct module *m, int fd, uint32_t bytes, uint64_t ctime_ns)
{
	m->fd = fd;
	m->copied = bytes;
	m->ctime_ns = bytes ? 0 : ctime_ns;
	copied += bytes;
}

static uint64_t nanoseconds(const struct statx_timestamp *t)
{
	return (uint64_t)t->tv_sec * 1000000000u + t->tv_nsec;
}

enum module_change module_change(const struct module *m, uint64_t *ret_ns)
{
	struct statx st;

	*ret_ns = m->ctime_ns;
	if (!m->ctime_ns || m->fd < 0)
		return MODULE_SAME;
	if (statx(m->fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_CTIME | STATX_MTIME, &st))
		return MODULE_WRITTEN;
	*ret_ns = nanoseconds(&st.stx_ctime);
	if (*ret_ns == m->ctime_ns)
		return MODULE_SAME;
	return nanoseconds(&st.stx_mtime) > m->ctime_ns ? MODULE_WRITTEN : MODULE_TOUCHED;
}

void module_close_file(struct module *m)
{
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	copied -= m->copied;
	m->copied = 0;
}

uint64_t modules_copied(void)
{
	return copied;
}

void module_set_path(struct module *m, const char *path)
{
	char *slash;

	m->path = strndup(path, text_path_len(path));
	slash = m->path ? strrchr(m->path, '/') : NULL;
	m->name = slash ? slash + 1 : m->path ? m->path : "";
}

int module_set_ranges(struct module *m, struct module_range *v, uint32_t n)
{
	struct module_ranges *r = n ? malloc(sizeof(*r)) : NULL;

	if (!r) {
		free(v);
		return n ? -ENOMEM : 0;
	}
	*r = (struct module_ranges){ m->ranges, v, n };
	m->ranges = r;
	return 0;
}

static void free_module(struct module *m)
{
	module_close_file(m);
	free(m->path);
	for (struct module_ranges *r = m->ranges, *older; r; r = older) {
		older = r->older;
		free(r->v);
		free(r);
	}
	free(m->ids);
	free(m->code);
	free(m);
}

void modules_free(struct modules *ms)
{
	if (!ms)
		return;
	for (uint32_t i = 0; i < ms->count; i++)
		if (modules_at(ms, i))
			free_module(modules_at(ms, i));
	for (uint32_t i = 0; i < SEGMENTS; i++)
		free(ms->segments[i]);
	free(ms->free_index);
	pthread_mutex_destroy(&ms->lock);
	free(ms);
}

struct module *modules_find(const struct modules *ms, uint32_t id)
{
	struct module *m = ms->by_place[SF_MODULE_PLACE(id)];

	while (m && m->id != id)
		m = m->older;
	return m;
}

uint32_t modules_count(const struct modules *ms)
{
	return ms->count;
}

struct module *modules_at(const struct modules *ms, uint32_t index)
{
	return index < ms->count ? ms->segments[index / SEGMENT][index % SEGMENT] : NULL;
}

/* Gives m an index. Reserves room in free_index at the same time, so that freeing cannot fail. */
static int add_index(struct modules *ms, struct module *m)
{
	module_ptr *segment;
	uint32_t i;

	if (ms->nfree) {
		m->index = ms->free_index[--ms->nfree];
		ms->segments[m->index / SEGMENT][m->index % SEGMENT] = m;
		return 0;
	}
	i = ms->count;
	if (i >= SEGMENT * SEGMENTS ||
	    vec_reserve(&ms->free_index, &ms->free_cap, i + 1ul, sizeof(*ms->free_index)))
		return -ENOMEM;
	segment = ms->segments[i / SEGMENT];
	if (!segment) {
		segment = calloc(SEGMENT, sizeof(*segment));
		if (!segment)
			return -ENOMEM;
		ms->segments[i / SEGMENT] = segment;
	}
	m->index = i;
	segment[i % SEGMENT] = m;
	ms->count = i + 1;
	return 0;
}

struct module *modules_get(struct modules *ms, uint32_t id)
{
	module_ptr *place = &ms->by_place[SF_MODULE_PLACE(id)];
	struct module *m;

	if (id > SF_FRAME_MODULE_MASK)
		return NULL;
	pthread_mutex_lock(&ms->lock);
	m = modules_find(ms, id);
	if (!m && (m = calloc(1, sizeof(*m)))) {
		m->id = id;
		m->fd = -1;
		m->name = "";
		m->older = *place;
		if (add_index(ms, m)) {
			free(m);
			m = NULL;
		} else {
			*place = m;
		}
	}
	pthread_mutex_unlock(&ms->lock);
	return m;
}

/* ---- Life ---- */

bool module_advance(struct module *m, enum file_event event, uint32_t *ret_retry_ms)
{
	enum file_state next;

	if (!file_life_next(m->state, event, &next, ret_retry_ms))
		return false;
	if (m->known < file_life_known(next))
		m->known = (uint8_t)file_life_known(next);
	m->state = (uint8_t)next;
	return true;
}

void modules_lost(struct modules *ms, uint32_t id, enum file_event event)
{
	uint32_t retry_ms;
	struct module *m;

	pthread_mutex_lock(&ms->lock);
	m = modules_find(ms, id);
	if (m && module_advance(m, event, &retry_ms) && m->state == FILE_RETIRED) {
		m->retired_at = ms->nretired + 1;
		*ms->retired_end = m;
		ms->retired_end = &m->next;
		ms->nretired++;
	}
	pthread_mutex_unlock(&ms->lock);
}

uint64_t modules_retired(struct modules *ms)
{
	return ms->nretired;
}

void modules_drained(struct modules *ms, uint64_t retired)
{
	ms->drained = retired;
}

void modules_mark(const struct modules *ms, uint64_t frame)
{
	uint32_t kind = SF_FRAME_KIND(frame);
	struct module *m = kind == SF_FRAME_ROW || kind == SF_FRAME_NOROW
				   ? modules_find(ms, SF_FRAME_MODULE(frame))
				   : NULL;

	if (m && !m->marked)
		m->marked = true;
}

void modules_unmark(struct modules *ms)
{
	for (uint32_t i = 0; i < ms->count; i++)
		if (modules_at(ms, i))
			modules_at(ms, i)->marked = false;
}

static void unlink_place(struct modules *ms, struct module *m)
{
	module_ptr *head = &ms->by_place[SF_MODULE_PLACE(m->id)];
	struct module *newer = *head;

	if (newer == m) {
		*head = m->older;
		return;
	}
	while (newer->older != m)
		newer = newer->older;
	newer->older = m->older;
}

size_t modules_sweep(struct modules *ms)
{
	struct module **at = &ms->retired, *m;
	size_t kept = 0;

	if (!ms->nretired)
		return 0;
	pthread_mutex_lock(&ms->lock);
	while ((m = *at)) {
		if (m->marked || m->has_symbols || m->retired_at > ms->drained) {
			kept++;
			at = &m->next;
			continue;
		}
		*at = m->next;
		unlink_place(ms, m);
		ms->segments[m->index / SEGMENT][m->index % SEGMENT] = NULL;
		ms->free_index[ms->nfree++] = m->index;
		free_module(m);
	}
	ms->retired_end = at;
	pthread_mutex_unlock(&ms->lock);
	return kept;
}

struct module *modules_next_retired(const struct modules *ms, struct module *pos)
{
	return pos ? pos->next : ms->retired;
}

int module_image(const struct module *m, struct elf_image *ret)
{
	if (m->fd >= 0)
		return elf_image_open_fd(ret, m->fd, NULL);
	if (m->mem)
		return elf_image_open_mem(ret, m->mem, m->size, NULL);
	return -ENOENT;
}

int module_set_code(struct module *m, const struct module_code *segments, uint32_t n)
{
	struct module_code *code = malloc((n ? n : 1) * sizeof(*code));

	if (!code)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t skip = segments[i].off & (MODULE_PAGE - 1);

		code[i] = (struct module_code){ segments[i].off - skip, segments[i].vaddr - skip,
						segments[i].size + skip };
	}
	free(m->code);
	m->code = code;
	m->ncode = n;
	return 0;
}

const struct module_code *module_code_at(const struct module_code *code, uint32_t n,
					 uint64_t offset)
{
	for (uint32_t i = 0; i < n; i++)
		if (offset >= code[i].off && offset - code[i].off < code[i].size)
			return &code[i];
	return NULL;
}
