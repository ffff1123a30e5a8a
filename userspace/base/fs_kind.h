/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which side must answer when a file is read or closed: the kernel and its disks, a remote server,
 * or possibly the user who mounted the file system.
 */
#ifndef SFBPF_BASE_FS_KIND_H
#define SFBPF_BASE_FS_KIND_H

enum fs_kind {
	/* FUSE and unknown types: their server may never answer, not even a close */
	FS_USERS,
	FS_DISTANT, /* a remote server; closing a file that was only read does not wait for it */
	FS_STACKED, /* equal to its layers, which the user who mounted it chose */
	FS_LOCAL,
	FS_MEMORY, /* local, even if a user mounted it */
};

#define FS_NAME_MAX 7 /* significant bytes of a name */

/* name as in /proc/filesystems, cut or padded with NULs to FS_NAME_MAX bytes */
enum fs_kind fs_kind_of_name(const char *name);
enum fs_kind fs_kind_of_file(int fd); /* calls the file system (fstatfs) */

#endif
