/* SPDX-License-Identifier: BSD-2-Clause */
/* Packed tables on disk: what comes back is what was stored, what was tampered with does not come back, the directory stays ours and small. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "space.h"
#include "test.h"
#include "unwind/table_cache.h"

#define SPACE (8u << 20)

static struct table_cache *cache;
static struct unwind_file file;
static struct table_key key;
static struct space packed_space, loaded_space;
static struct pack_result packed, loaded;

static struct table_cache *open_cache(uint64_t max_bytes, uint64_t min_bytes)
{
	const struct table_cache_opts opts = { dir, max_bytes, min_bytes };
	const char *why = "";
	struct table_cache *c = table_cache_open(&opts, &why);

	return c;
}

static int store(void)
{
	const struct pack_space inner = { space_alloc, &packed_space };
	struct table_pieces pieces = { .inner = &inner };
	const struct pack_space space = table_pieces_space(&pieces);
	int err;

	free(packed.sframe);
	space_clear(&packed_space);
	err = pack_file(&file, &space, &packed, NULL);
	if (!err)
		err = table_cache_store(cache, &key, &packed, &pieces);
	table_pieces_free(&pieces);
	return err;
}

static int load(void)
{
	const struct pack_space space = { space_alloc, &loaded_space };

	free(loaded.sframe);
	space_clear(&loaded_space);
	memset(loaded_space.mem, 0xa5, SPACE);
	return table_cache_load(cache, &key, &space, &loaded);
}

/* This program: it has a C library's start code, thousands of rows, and on Debian a build-id. */
static bool begin(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	bool ok = make_dir() && fd >= 0 && !unwind_file_open_fd(&file, fd, NULL);

	cache = open_cache(64 << 20, 0);
	ok = ok && cache && space_init(&packed_space, SPACE) && space_init(&loaded_space, SPACE);
	EXPECT(ok);
	if (ok && !table_key_of(table_cache_keying(cache), &file, &key)) {
		printf("  skipped: no build-id\n");
		ok = false;
	}
	return ok;	/* fd stays open: the file reads from it */
}

static void done(void)
{
	table_cache_close(cache);
	unwind_file_close(&file);
	free(packed.sframe);
	free(loaded.sframe);
	free(packed_space.mem);
	free(loaded_space.mem);
	packed = loaded = (struct pack_result){ 0 };
	cache = NULL;
	remove_dir();
}

static char *entry_path(void)
{
	static char path[256];
	char name[TABLE_KEY_NAME];

	table_key_name(&key, name);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void same_tables(void)
{
	const uint32_t *a = space_at(&packed_space, packed.tables.dir), *b = space_at(&loaded_space, loaded.tables.dir);

	EXPECT_EQ(loaded.tables.npages, packed.tables.npages);
	EXPECT_EQ(loaded.tables.first_page, packed.tables.first_page);
	EXPECT_EQ(loaded.tables.flags, packed.tables.flags);
	EXPECT_EQ(loaded.tables.nrules, packed.tables.nrules);
	EXPECT(loaded.rows == packed.rows && loaded.rules == packed.rules && loaded.bytes == packed.bytes);
	EXPECT(!memcmp(space_at(&packed_space, packed.tables.rules), space_at(&loaded_space, loaded.tables.rules), packed.rules * sizeof(struct sf_rule)));
	for (uint32_t i = 0; i < packed.tables.npages && i < loaded.tables.npages; i++) {
		const uint8_t *x = space_at(&packed_space, a[i]), *y = space_at(&loaded_space, b[i]);
		uint16_t n;

		EXPECT_EQ(!b[i], !a[i]);
		if (!a[i] || !b[i])
			continue;
		memcpy(&n, x + 2 * (SF_PAGE_INDEX - 1), 2);
		EXPECT(!memcmp(x, y, 2 * SF_PAGE_INDEX) && !memcmp(x + SF_PAGE_ROWS, y + SF_PAGE_ROWS, 4ul * n));
	}
	EXPECT_EQ(loaded.nsframe, packed.nsframe);
}

TEST(cache_gives_back_what_was_stored)
{
	if (begin()) {
		EXPECT_EQ(load(), -ENOENT);
		EXPECT_EQ(store(), 0);
		EXPECT_EQ(load(), 0);
		same_tables();
		table_cache_close(cache);	/* the next start */
		cache = open_cache(64 << 20, 0);
		EXPECT(cache && table_key_of(table_cache_keying(cache), &file, &key));
		EXPECT_EQ(load(), 0);
		same_tables();
	}
	done();
}

/* Every byte of the entry counts: also one that no bounds check would catch. */
TEST(cache_refuses_a_damaged_entry)
{
	struct stat st = { 0 };
	int fd;

	if (begin()) {
		EXPECT_EQ(store(), 0);
		EXPECT_EQ(stat(entry_path(), &st), 0);
		for (off_t off = 0; off < st.st_size; off += off < 200 ? 1 : st.st_size / 50) {
			uint8_t byte;

			EXPECT_EQ(store(), 0);
			fd = open(entry_path(), O_RDWR);
			EXPECT(pread(fd, &byte, 1, off) == 1);
			byte ^= 0x10;
			EXPECT(pwrite(fd, &byte, 1, off) == 1);
			close(fd);
			EXPECT_EQ(load(), -EBADMSG);
			EXPECT(access(entry_path(), F_OK) != 0);	/* gone, not met again */
		}
		for (off_t len = 0; len < st.st_size; len += st.st_size / 20) {
			EXPECT_EQ(store(), 0);
			EXPECT(!truncate(entry_path(), len));
			EXPECT_EQ(load(), -EBADMSG);
		}
	}
	done();
}

/* The key of this program's file with one byte changed, and bytes added at its end. */
static struct table_key key_of_changed(uint64_t at, off_t more)
{
	char path[128];
	int fd;
	struct unwind_file changed;
	struct table_key ret = { 0 };
	uint8_t byte = 0;

	snprintf(path, sizeof(path), "%s/changed", dir);
	EXPECT(run("cp /proc/$PPID/exe changed && chmod 700 changed"));
	fd = open(path, O_RDWR | O_CLOEXEC);
	EXPECT(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
	byte ^= at ? 1 : 0;
	EXPECT(pwrite(fd, &byte, 1, (off_t)at) == 1 && !ftruncate(fd, (off_t)file.img.size + more));
	EXPECT_EQ(unwind_file_open_fd(&changed, fd, NULL), 0);
	EXPECT(table_key_of(table_cache_keying(cache), &changed, &ret));
	unwind_file_close(&changed);
	close(fd);
	return ret;
}

static bool same_digest(const struct table_key *a, const struct table_key *b)
{
	return !memcmp(&a->digest, &b->digest, sizeof(a->digest));
}

/* A file that takes another one's build-id, or its place, must not get at its tables. */
TEST(cache_key_is_what_the_tables_are_made_from)
{
	const struct elf_shdr *eh, *comment;
	struct table_key other;

	if (begin()) {
		EXPECT_EQ(store(), 0);
		eh = elf_image_section(&file.img, ".eh_frame");
		comment = elf_image_section(&file.img, ".comment");
		other = key_of_changed(0, 0);
		EXPECT(same_digest(&other, &key));
		other = key_of_changed(0, 1);
		EXPECT(!same_digest(&other, &key));
		other = key_of_changed(64 + 56 + 24, 0);	/* the second program header's physical address */
		EXPECT(!same_digest(&other, &key));
		if (eh) {
			other = key_of_changed(eh->offset + eh->size / 2, 0);
			EXPECT(!same_digest(&other, &key));
		}
		if (comment) {	/* which nobody reads */
			other = key_of_changed(comment->offset, 0);
			EXPECT(same_digest(&other, &key));
		}
		/* The entry under another name: the digest in it does not agree. */
		other = key;
		other.digest.words[1]++;
		EXPECT_EQ(table_cache_load(cache, &other, &(struct pack_space){ space_alloc, &loaded_space }, &loaded), -EBADMSG);
	}
	done();
}

/* The key of a file is that of the copy of what was read; and the copy makes the same tables. */
TEST(key_copy_is_all_that_the_tables_need)
{
	const struct pack_space space = { space_alloc, &loaded_space };
	struct elf_reads reads;
	struct unwind_file copied;
	struct digest_value digest;
	struct table_key again;
	int fd;

	if (begin()) {
		EXPECT_EQ(store(), 0);
		fd = table_key_copy(table_cache_keying(cache), file.img.fd, &file.reads, &digest);
		EXPECT(fd >= 0 && !memcmp(&digest, &key.digest, sizeof(digest)));
		EXPECT(pwrite(fd, "", 1, 0) < 0);	/* nobody changes it */
		EXPECT_EQ(unwind_file_open_fd(&copied, fd, NULL), 0);
		EXPECT(table_key_of(table_cache_keying(cache), &copied, &again) && same_digest(&again, &key));
		space_clear(&loaded_space);
		EXPECT_EQ(pack_file(&copied, &space, &loaded, NULL), 0);
		same_tables();
		unwind_file_close(&copied);
		close(fd);
	}
	/* What a broken process may say that it has read. */
	reads = file.reads;
	reads.at[0].size = file.img.size + 1;
	EXPECT(table_key_copy(table_cache_keying(cache), file.img.fd, &reads, &digest) < 0);
	reads = file.reads;
	reads.at[0].offset = UINT64_MAX;
	EXPECT(table_key_copy(table_cache_keying(cache), file.img.fd, &reads, &digest) < 0);
	reads = file.reads;
	reads.n = UINT32_MAX;
	EXPECT(table_key_copy(table_cache_keying(cache), file.img.fd, &reads, &digest) < 0);
	reads = file.reads;
	reads.at[1] = (struct elf_range){ 0, 1 };	/* less than it has read: another key */
	fd = table_key_copy(table_cache_keying(cache), file.img.fd, &reads, &digest);
	EXPECT(fd >= 0 && memcmp(&digest, &key.digest, sizeof(digest)));
	close(fd);
	done();
}

TEST(cache_leaves_small_files_out)
{
	if (begin()) {
		table_cache_close(cache);
		cache = open_cache(64 << 20, 1 << 30);
		EXPECT(cache && !table_key_of(table_cache_keying(cache), &file, &key));
	}
	done();
}

TEST(cache_wants_a_directory_of_its_own)
{
	char path[128], link[160];
	const struct table_cache_opts through = { link, 1 << 20, 0 }, missing = { "/nonexistent/dir", 1 << 20, 0 };
	const char *why = NULL;

	EXPECT(make_dir());
	chmod(dir, 0750);
	EXPECT(!open_cache(1 << 20, 0));
	chmod(dir, 0700);
	snprintf(path, sizeof(path), "%s/real", dir);
	snprintf(link, sizeof(link), "%s/link", dir);
	EXPECT(!mkdir(path, 0700) && !symlink(path, link));
	EXPECT(!table_cache_open(&through, &why) && why);
	EXPECT(!table_cache_open(&missing, &why) && why);
	if (!geteuid()) {
		EXPECT(!chown(dir, 1, 1));
		EXPECT(!open_cache(1 << 20, 0));
		EXPECT(!chown(dir, 0, 0));
	}
	cache = open_cache(1 << 20, 0);
	EXPECT(cache != NULL);
	table_cache_close(cache);
	cache = NULL;
	remove_dir();
}

/* Somebody who could write into the directory after all. */
TEST(cache_follows_no_links)
{
	char moved[256];

	if (begin()) {
		EXPECT_EQ(store(), 0);
		snprintf(moved, sizeof(moved), "%s/moved", dir);
		EXPECT(!rename(entry_path(), moved) && !symlink(moved, entry_path()));
		EXPECT_EQ(load(), -ENOENT);
		EXPECT_EQ(store(), 0);	/* replaces the link, not what it points to */
		EXPECT_EQ(load(), 0);
		chmod(entry_path(), 0644);
		EXPECT_EQ(load(), -ENOENT);
	}
	done();
}

static int entries(void)
{
	char cmd[128];
	int n = -1;
	FILE *p;

	snprintf(cmd, sizeof(cmd), "ls -A %s | grep -vc '^key$'", dir);
	p = popen(cmd, "r");
	if (p && fscanf(p, "%d", &n) != 1)
		n = -1;
	if (p)
		pclose(p);
	return n;
}

TEST(cache_stays_in_its_bounds)
{
	struct table_key first, k;
	struct stat st = { 0 };

	if (begin()) {
		first = key;
		EXPECT_EQ(store(), 0);
		EXPECT_EQ(stat(entry_path(), &st), 0);
		table_cache_close(cache);
		cache = open_cache((uint64_t)st.st_size * 9 / 2, 0);	/* room for four */
		for (int i = 0; i < 9; i++) {
			key.digest.words[0] = (uint64_t)i + 1;
			EXPECT_EQ(store(), 0);
			usleep(20000);	/* file times are as coarse as the tick */
			k = key;
			key = first;
			if (i < 8)
				EXPECT_EQ(load(), 0);	/* in use all the time: stays */
			key = k;
			usleep(20000);
		}
		EXPECT_EQ(entries(), 4);
		EXPECT_EQ(load(), 0);
		key.digest.words[0] = 3;
		EXPECT_EQ(load(), -ENOENT);
		key = first;
		EXPECT_EQ(load(), 0);
		/* What a process that died left behind. */
		EXPECT(run("touch -d '1 hour ago' .tmp-0123"));
		table_cache_close(cache);
		cache = open_cache((uint64_t)st.st_size * 9 / 2, 0);
		EXPECT_EQ(store(), 0);
		EXPECT(run("test ! -e .tmp-0123"));
	}
	done();
}

/* Without the key nothing of the old entries can be told from forgeries. */
TEST(cache_key_file_lost)
{
	struct table_key other;

	if (begin()) {
		EXPECT_EQ(store(), 0);
		table_cache_close(cache);
		EXPECT(run("head -c 7 key > k && mv k key && chmod 600 key"));
		cache = open_cache(64 << 20, 0);
		EXPECT(cache && table_key_of(table_cache_keying(cache), &file, &other));
		EXPECT(memcmp(&other.digest, &key.digest, sizeof(key.digest)) != 0);
		EXPECT_EQ(load(), -EBADMSG);	/* the old name with the new key */
		key = other;
		EXPECT_EQ(store(), 0);
		EXPECT_EQ(load(), 0);
	}
	done();
}
