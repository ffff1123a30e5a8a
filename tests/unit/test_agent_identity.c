/* SPDX-License-Identifier: BSD-2-Clause */
/* What identifies files, the kernel's modules and the machine. */
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/identity.h"
#include "agent/kernel_map.h"
#include "agent/window_file.h"
#include "base/num.h"
#include "elf/elf_image.h"
#include "symtab/elf_ids.h"
#include "test.h"

static char root[] = "/tmp/sfbpf-root-XXXXXX";

static void put(const char *name, const void *data, size_t len)
{
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (char *c = path + strlen(root) + 1; *c; c++) {
		if (*c != '/')
			continue;
		*c = 0;
		mkdir(path, 0700);
		*c = '/';
	}
	FILE *f = fopen(path, "w");

	EXPECT(f && fwrite(data, 1, len, f) == len && !fclose(f));
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static void expect_hash(const uint8_t *got, const char *want)
{
	char hex[2 * MODULE_HTLHASH + 1];

	for (int i = 0; i < MODULE_HTLHASH; i++)
		sprintf(hex + 2 * i, "%02x", got[i]);
	EXPECT_STR(hex, want);
}

/* sha256(head + tail + length), by another implementation */
TEST(htlhash)
{
	static uint8_t large[10000];
	struct module_ids ids;
	char path[] = "/tmp/sfbpf-ids-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	EXPECT_EQ(elf_ids_read(fd, NULL, &ids), 0);
	expect_hash(ids.htlhash, "af5570f5a1810b7af78caf4bc70a660f");
	EXPECT_EQ(write(fd, "abc", 3), 3);
	EXPECT_EQ(elf_ids_read(fd, NULL, &ids), 0);
	expect_hash(ids.htlhash, "a7e79e8a85da69bad5c3fea209342ac9");
	EXPECT(ids.hashed && !*ids.go && !ids.rust && elf_ids_sound(&ids));
	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (uint8_t)(i % 251);
	EXPECT_EQ(pwrite(fd, large, sizeof(large), 0), sizeof(large));
	EXPECT_EQ(elf_ids_read(fd, NULL, &ids), 0);
	expect_hash(ids.htlhash, "29e3194e821b97b5565d43a5156ad97a");
	EXPECT_EQ(elf_ids_read_mem(large, sizeof(large), NULL, &ids), 0);
	expect_hash(ids.htlhash, "29e3194e821b97b5565d43a5156ad97a");
	close(fd);
	memset(ids.go, 'x', sizeof(ids.go));
	EXPECT(!elf_ids_sound(&ids));
	strcpy(ids.go, "a\nb");
	EXPECT(!elf_ids_sound(&ids));
}

TEST(kernel_modules)
{
	static const uint8_t note[] = { 4, 0, 0,   0,	4,   0, 0, 0, 3, 0,
					0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4 };
	struct kernel_map map = { .root = root };

	put_text("proc/modules", "nf_tables 4096 1 - Live 0xffffffffc0002000\n"
				 "hidden 4096 0 - Live 0x0000000000000000\n"
				 "torn 40\n"
				 "ext4 8192 2 jbd2,mbcache, Live 0xffffffffc0000000 (E)\n");
	put("sys/module/ext4/notes/.note.gnu.build-id", note, sizeof(note));
	put_text("sys/kernel/notes", "damaged");
	EXPECT_STR(kernel_map_at(&map, 0xffffffff81000000)->name, "[kernel]");
	EXPECT_EQ(kernel_map_at(&map, 0xffffffff81000000)->id_len, 0);
	EXPECT_STR(kernel_map_at(&map, 0xffffffffc0000000)->name, "[ext4]");
	EXPECT_STR(kernel_map_at(&map, 0xffffffffc0001fff)->name, "[ext4]");
	EXPECT_EQ(kernel_map_at(&map, 0xffffffffc0000000)->id_len, 4);
	EXPECT_STR(kernel_map_at(&map, 0xffffffffc0002000)->name, "[nf_tables]");
	EXPECT_EQ(kernel_map_at(&map, 0xffffffffc0002000)->id_len, 0);
	EXPECT_STR(kernel_map_at(&map, 0xffffffffc0003000)->name, "[kernel]");
	EXPECT_STR(kernel_map_at(&map, 0)->name, "[kernel]");
	EXPECT_EQ(map.n, 3);
	kernel_map_free(&map);
}

static size_t windows_left(void)
{
	char path[300];
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/win", root);
	d = opendir(path);
	while (d && readdir(d))
		n++;
	closedir(d);
	return n - 2; /* "." and ".." */
}

/* A window of each of three days; one folder also has a file of another host. */
static void windows_in_folders(const char *dir)
{
	static const char *const days[] = { "1970-01-01", "1970-01-02", "1970-01-03" };
	struct body b = { .kind = BODY_FILE, .data = (uint8_t *)"x 1\n", .len = 4 };
	size_t before = windows_left();
	char path[400];

	for (uint64_t day = 0; day < 3; day++) {
		b.time_ns = (day * 86400 + 86399) * NUM_S;
		EXPECT_EQ(window_file_write(dir, "folded", "a", &b), 0);
		snprintf(path, sizeof(path), "%s/%s/sfbpf-a-%lu-00000000.folded", dir, days[day],
			 (unsigned long)(b.time_ns / NUM_MS));
		EXPECT_EQ(access(path, F_OK), 0);
	}
	put_text("win/1970-01-02/sfbpf-b-86400000-00000000.folded", "another host");
	EXPECT_EQ(windows_left(), before + 3);
	EXPECT_EQ(window_file_prune(dir, "a", 3 * 86400 * NUM_S, 86400 * NUM_S, 0), 2);
	EXPECT_EQ(windows_left(), before + 2); /* the first folder is empty and gone */
	EXPECT_EQ(access(path, F_OK), 0);
	EXPECT_EQ(window_file_prune(dir, "a", 9 * 86400 * NUM_S, 0, 1), 1);
	EXPECT_EQ(windows_left(), before + 1);
}

TEST(old_windows_are_removed)
{
	static const uint8_t data[10000];
	char dir[300], name[100];

	snprintf(dir, sizeof(dir), "%s/win", root);
	put_text("win/notes", "x");
	put_text("win/sfbpf-a-b-5000-0000000f.folded", "another host");
	put_text("win/sfbpf-a-5000.folded", "no window");
	for (int i = 1; i <= 8; i++) {
		snprintf(name, sizeof(name), "win/sfbpf-a-%d-0000000%d.%s", 1000 * i, i,
			 i % 2 ? "pb.gz" : "off_cpu.pb.gz");
		put(name, data, sizeof(data));
	}
	EXPECT_EQ(window_file_prune(dir, "a", 9 * NUM_S, 0, 1 << 20), 0);
	EXPECT_EQ(window_file_prune(dir, "a", 9 * NUM_S, 60 * NUM_S, 0), 0);
	EXPECT_EQ(window_file_prune(dir, "a", 9 * NUM_S, 6 * NUM_S, 0), 2);
	EXPECT_EQ(windows_left(), 9);
	EXPECT_EQ(window_file_prune(dir, "a", 9 * NUM_S, 0, 40000), 3); /* 12288 each on disk */
	EXPECT_EQ(windows_left(), 6);
	EXPECT_EQ(window_file_prune(dir, "a", 1 * NUM_S, NUM_S, 0), 0); /* the clock was set back */
	EXPECT_EQ(window_file_prune("/does/not/exist", "a", 0, 1, 1), 0);
	EXPECT_EQ(window_file_prune(dir, "a", 100 * NUM_S, NUM_S, 0), 3);
	EXPECT_EQ(windows_left(), 3);
	windows_in_folders(dir);
}

TEST(machine)
{
	char etc[300];
	struct identity id;

	snprintf(etc, sizeof(etc), "%s/etc", root);
	put_text("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
	put_text("etc/os-release",
		 "PRETTY_NAME=\"Some OS 1.2\"\nNAME=Some\nVERSION_ID='1.2'\nX\nNAMES=3\n");
	identity_read(&id, etc);
	EXPECT_STR(id.host_id, "0123456789abcdef0123456789abcdef");
	EXPECT_STR(id.os_name, "Some");
	EXPECT_STR(id.os_version, "1.2");
	EXPECT(!strncmp(id.os_description, "Some OS 1.2, Linux ", 19));
	put_text("etc/machine-id", "uninitialized\n");
	identity_read(&id, etc);
	EXPECT_STR(id.host_id, "");
	identity_read(&id, "/does/not/exist");
	EXPECT_STR(id.os_name, "");
	EXPECT(!strncmp(id.os_description, "Linux ", 6));
}

__attribute__((destructor)) static void remove_root(void)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	EXPECT_EQ(system(command), 0);
}

__attribute__((constructor)) static void make_root(void)
{
	if (!mkdtemp(root))
		abort();
}
