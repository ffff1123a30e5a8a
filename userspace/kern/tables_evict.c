/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Evicts tables when memory or module ids run short. For the order of the steps see kern/tables.h.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "base/share.h"
#include "kern/tables_internal.h"

/* Interval of scans for the modules in use; after a scan, every CPU looks its mappings up again */
#define SCAN_MS	      30000u
#define SCAN_SHORT_MS 1000u /* the interval while memory or ids are short */
#define SCAN_LEAST_MS 250u
#define HOT_MS	      2000u /* modules used within this time are in use */
#define USE	      16u   /* weight of a lookup in place.uses, so that it decays gradually */
#define LOADING_MS    1000u /* no BPF program is still filling in a new place after this */
/* Free ids that are kept for a burst (bpf/core/vma.bpf.h, NEED_BURST) */
#define IDS_LOW	      (SF_MAX_MODULES / 4)
#define IDS_BATCH     (SF_MAX_MODULES / 16)
#define IDS_PAUSE_MS  100u
/* Fraction of the budget that is evicted at once: each wait for all programs takes some 20 ms */
#define CELLS_BATCH   16u

static bool has_file(const struct sf_module *m)
{
	return m->key.ino || m->key.dev || m->state == SF_MOD_VOID;
}

void tables_forget_mappings(struct tables *t)
{
	__atomic_fetch_add(t->maps.epoch, 1, __ATOMIC_SEQ_CST);
}

/*
 * Modules used since the last scan count as used now. BPF does not look up cached mappings again,
 * so its cache is dropped.
 */
static void scan(struct tables *t, uint64_t now)
{
	for (uint32_t i = 1; i < SF_MAX_MODULES; i++) {
		struct place *p = &t->places[i];

		if (p->uses) /* pages of places that are not used stay untouched */
			p->uses -= p->uses / 4;
		if (t->modules[i].used) {
			p->uses += (uint64_t)t->modules[i].used * USE;
			t->modules[i].used = 0;
			p->last_ms = now;
		} else if (!p->last_ms && has_file(&t->modules[i])) {
			p->last_ms = now;
		}
	}
	tables_forget_mappings(t);
	t->scan_ms = now;
}

static bool short_of_memory(const struct tables *t)
{
	return t->nchunks > t->max_chunks - t->max_chunks / 4;
}

static uint32_t free_ids(const struct tables *t)
{
	return *t->maps.free_tail - __atomic_load_n(t->maps.free_head, __ATOMIC_ACQUIRE);
}

/* ---- Evicting ---- */

/*
 * Programs do not find the tables from now on. If the file's entry cannot be removed, the module
 * keeps its place.
 */
static void begin_evict(struct tables *t, uint32_t at, bool id_too)
{
	struct sf_module *m = &t->modules[at];

	if (id_too && m->state != SF_MOD_VOID && bpf_map_delete_elem(t->maps.files_fd, &m->key) &&
	    errno != ENOENT)
		return;
	/*
	 * Not SF_MOD_RETRY yet: BPF must not request the tables before the place can be filled
	 * again.
	 */
	__atomic_store_n(&m->state, (sf_u32)SF_MOD_LOADING, __ATOMIC_RELEASE);
	t->places[at].leaving = true;
	t->places[at].id_too = id_too;
	t->pending = true;
}

/*
 * An update of a map of maps returns after all programs that were running have ended (kernel commit
 * 1ae80cf31938, 4.19).
 */
static bool wait_for_programs(struct tables *t)
{
	uint32_t zero = 0;

	__atomic_fetch_add(t->maps.epoch, 1, __ATOMIC_SEQ_CST);
	return !bpf_map_update_elem(t->maps.chunks_fd, &zero, &t->grace_fd, BPF_ANY);
}

/* The rules that programs cached are those of the old tables. Their numbers may mean others now. */
static bool empty_cache(struct tables_cache cache, const void *zero)
{
	for (uint32_t i = 0; i < cache.n; i++)
		if (bpf_map_update_elem(cache.fd, &i, zero, BPF_ANY))
			return false;
	return true;
}

static bool empty_caches(const struct tables *t)
{
	void *zero = calloc(1, SF_CACHE_BYTES);
	bool empty = zero && empty_cache(t->maps.cache, zero) && empty_cache(t->off_cache, zero);

	free(zero);
	return empty;
}

bool tables_retract(struct tables *t, struct sf_module *m)
{
	bool gone;

	if (pthread_mutex_trylock(&t->hold))
		return false;
	__atomic_store_n(&m->state, (sf_u32)SF_MOD_LOADING, __ATOMIC_RELEASE);
	gone = wait_for_programs(t) && empty_caches(t);
	if (!gone)
		__atomic_store_n(&m->state, (sf_u32)SF_MOD_READY, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&t->hold);
	return gone;
}

/* Frees the place for another file, under its next id. */
static void recycle(struct tables *t, uint32_t at)
{
	struct sf_module *m = &t->modules[at];
	uint32_t next = m->id + SF_MAX_MODULES, tail = *t->maps.free_tail;

	t->lost(t->lost_ctx, m->id, EVENT_ID_REUSED);
	t->recycled++;
	memset(m, 0, sizeof(*m));
	t->places[at] = (struct place){ 0 };
	if (next > SF_FRAME_MODULE_MASK)
		return; /* all ids of the place are used up: one place less */
	m->id = next;
	t->maps.free_ids[tail & (SF_MAX_MODULES - 1)] = next;
	__atomic_store_n(t->maps.free_tail, tail + 1, __ATOMIC_RELEASE);
}

/*
 * Completes the evictions once no program can read the tables. If waiting fails, they stay pending
 * until the next call.
 */
static bool finish(struct tables *t)
{
	if (!t->pending)
		return true;
	if (!wait_for_programs(t))
		return false;
	t->pending = false;
	for (uint32_t at = 1; at < SF_MAX_MODULES; at++) {
		struct place *p = &t->places[at];
		struct sf_module *m = &t->modules[at];

		if (!p->leaving)
			continue;
		p->leaving = false;
		t->evicted += p->n != 0;
		tables_free_cells(t, p);
		if (p->id_too) {
			recycle(t, at);
			continue;
		}
		t->lost(t->lost_ctx, m->id, EVENT_EVICTED);
		m->retry_ms = (uint32_t)tables_now_ms();
		__atomic_store_n(&m->state, (sf_u32)file_life_bpf(FILE_EVICTED), __ATOMIC_RELEASE);
	}
	return true;
}

/* ---- Choosing ---- */

static bool can_evict(const struct tables *t, uint32_t at, uint64_t now)
{
	const struct place *p = &t->places[at];
	const struct sf_module *m = &t->modules[at];

	if (p->pinned || p->leaving || m->id == t->loading)
		return false;
	return m->state != SF_MOD_LOADING || (p->last_ms && now - p->last_ms >= LOADING_MS);
}

/* All holdings: sizes in cells, or 1 per id. NULL: out of memory. */
static struct share_item *held_items(const struct tables *t, bool ids, uint64_t now, size_t *ret_n)
{
	struct share_item *items = malloc(SF_MAX_MODULES * sizeof(*items));

	*ret_n = 0;
	for (uint32_t at = 1; items && at < SF_MAX_MODULES; at++) {
		const struct place *p = &t->places[at];

		if (has_file(&t->modules[at]) && (ids || p->n))
			items[(*ret_n)++] = (struct share_item){
				at,	 t->modules[at].owner,	ids ? 1 : p->cells, p->last_ms,
				p->uses, !can_evict(t, at, now)
			};
	}
	return items;
}

/* Begins to evict the modules that share_choose selects. Returns their number. */
static long choose(struct tables *t, const struct share_request *req, bool ids, uint64_t now)
{
	struct share_item *items;
	size_t n;
	long chosen;

	items = held_items(t, ids, now, &n);
	chosen = items ? share_choose(items, n, req) : -ENOMEM;
	for (long i = 0; i < chosen; i++)
		begin_evict(t, items[i].id, ids);
	free(items);
	return chosen;
}

bool tables_evict(struct tables *t, uint64_t cells)
{
	uint64_t now = tables_now_ms(), batch = (uint64_t)t->max_chunks * CHUNK_CELLS / CELLS_BATCH;
	struct share_request req = { .owner = t->owner,
				     .want = cells > batch ? cells : batch,
				     .hot_since = now - HOT_MS };
	bool gone;

	/* Use is not known before sampling starts. */
	if (!t->started || pthread_mutex_trylock(&t->hold))
		return false;
	if (now - t->scan_ms >= SCAN_LEAST_MS)
		scan(t, now);
	gone = choose(t, &req, false, now) > 0 && finish(t);
	pthread_mutex_unlock(&t->hold);
	return gone;
}

static void free_some_ids(struct tables *t, uint64_t now)
{
	struct share_request req = { .owner = SHARE_NO_USER,
				     .want = IDS_LOW - free_ids(t) + IDS_BATCH,
				     .hot_since = now - HOT_MS };

	if (now - t->ids_ms < IDS_PAUSE_MS)
		return;
	t->ids_ms = now;
	if (now - t->scan_ms >= SCAN_LEAST_MS)
		scan(t, now);
	choose(t, &req, true, now);
}

int tables_maintain(struct tables *t)
{
	uint64_t now = tables_now_ms();
	bool low = free_ids(t) < IDS_LOW;
	uint32_t period = low || short_of_memory(t) ? SCAN_SHORT_MS : SCAN_MS;

	t->started = true;
	if (now - t->scan_ms >= period) {
		scan(t, now);
		tables_release_chunks(t);
	}
	if ((low || t->pending) && !pthread_mutex_trylock(&t->hold)) {
		if (low)
			free_some_ids(t, now);
		finish(t);
		pthread_mutex_unlock(&t->hold);
	}
	return (int)period;
}

void tables_unmapped(struct tables *t, const uint32_t *modules, size_t n, uint64_t idle_ms)
{
	uint64_t now = tables_now_ms();

	if (!n || !t->started || pthread_mutex_trylock(&t->hold))
		return;
	if (now - t->scan_ms >= SCAN_LEAST_MS)
		scan(t, now);
	for (size_t i = 0; i < n; i++) {
		uint32_t at = SF_MODULE_PLACE(modules[i]);

		if (t->modules[at].id != modules[i] || !has_file(&t->modules[at]) ||
		    !can_evict(t, at, now) || now - t->places[at].last_ms < idle_ms)
			continue;
		begin_evict(t, at, true);
		t->idle++;
	}
	finish(t);
	pthread_mutex_unlock(&t->hold);
}

void tables_off_cache(struct tables *t, struct tables_cache cache)
{
	pthread_mutex_lock(&t->hold);
	t->off_cache = cache;
	pthread_mutex_unlock(&t->hold);
}

void tables_hold(struct tables *t)
{
	pthread_mutex_lock(&t->hold);
}

void tables_release(struct tables *t)
{
	pthread_mutex_unlock(&t->hold);
}
