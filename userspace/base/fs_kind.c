/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/fs_kind.h"

#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/vfs.h>

/* magic 0: the same as another entry's, or none. */
static const struct known {
	const char *name;
	uint32_t magic; /* f_type of statfs(2) */
	enum fs_kind kind;
} known[] = {
	{ "tmpfs", TMPFS_MAGIC, FS_MEMORY },
	{ "ramfs", RAMFS_MAGIC, FS_MEMORY },
	{ "ext4", EXT4_SUPER_MAGIC, FS_LOCAL },
	{ "ext2", 0, FS_LOCAL },
	{ "ext3", 0, FS_LOCAL },
	{ "xfs", XFS_SUPER_MAGIC, FS_LOCAL },
	{ "btrfs", BTRFS_SUPER_MAGIC, FS_LOCAL },
	{ "f2fs", F2FS_SUPER_MAGIC, FS_LOCAL },
	{ "zfs", 0x2fc12fc1, FS_LOCAL },
	{ "bcachefs", 0xca451a4e, FS_LOCAL },
	{ "jfs", 0x3153464a, FS_LOCAL },
	{ "nilfs2", NILFS_SUPER_MAGIC, FS_LOCAL },
	{ "reiserfs", REISERFS_SUPER_MAGIC, FS_LOCAL },
	{ "rootfs", 0, FS_LOCAL },
	{ "devtmpfs", 0, FS_LOCAL },
	{ "hugetlbfs", HUGETLBFS_MAGIC, FS_LOCAL },
	{ "squashfs", SQUASHFS_MAGIC, FS_LOCAL },
	{ "erofs", 0xe0f5e1e2, FS_LOCAL },
	{ "cramfs", CRAMFS_MAGIC, FS_LOCAL },
	{ "romfs", 0x7275, FS_LOCAL },
	{ "vfat", MSDOS_SUPER_MAGIC, FS_LOCAL },
	{ "exfat", 0x2011bab0, FS_LOCAL },
	{ "ntfs3", 0x7366746e, FS_LOCAL },
	{ "iso9660", ISOFS_SUPER_MAGIC, FS_LOCAL },
	{ "udf", 0x15013346, FS_LOCAL },
	{ "overlay", OVERLAYFS_SUPER_MAGIC, FS_STACKED },
	{ "nfs", NFS_SUPER_MAGIC, FS_DISTANT },
	{ "nfs4", 0, FS_DISTANT },
	{ "cifs", 0xff534d42, FS_DISTANT },
	{ "smb3", 0xfe534d42, FS_DISTANT },
	{ "9p", V9FS_MAGIC, FS_DISTANT },
	{ "ceph", 0x00c36400, FS_DISTANT },
	{ "virtiofs", 0, FS_DISTANT },
	{ "lustre", 0x0bd00bd0, FS_DISTANT },
	{ "gpfs", 0x47504653, FS_DISTANT },
	{ "afs", AFS_FS_MAGIC, FS_DISTANT },
};

#define N_KNOWN (sizeof(known) / sizeof(known[0]))

enum fs_kind fs_kind_of_name(const char *name)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		if (!strncmp(known[i].name, name, FS_NAME_MAX))
			return known[i].kind;
	return FS_USERS;
}

enum fs_kind fs_kind_of_file(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return FS_USERS;
	for (size_t i = 0; i < N_KNOWN; i++)
		if (known[i].magic && known[i].magic == (uint32_t)fs.f_type)
			return known[i].kind;
	return FS_USERS;
}
