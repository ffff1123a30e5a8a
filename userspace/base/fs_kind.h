/* SPDX-License-Identifier: BSD-2-Clause */
/* Who has to answer when a file is read or closed: the kernel and its disks, somebody far away, or perhaps the user who mounted the file system. */
#ifndef SFBPF_BASE_FS_KIND_H
#define SFBPF_BASE_FS_KIND_H

enum fs_kind {
	FS_USERS,	/* FUSE and what is not known: somebody who need not answer, also not a close */
	FS_DISTANT,	/* a server, but not for closing a file that was only read */
	FS_STACKED,	/* as its layers are, and those were chosen by who mounted it */
	FS_LOCAL,
	FS_MEMORY,	/* local, also if a user mounted it */
};

#define FS_NAME_MAX 7		/* bytes of a name that count */

enum fs_kind fs_kind_of_name(const char *name);	/* as in /proc/filesystems, cut or padded with NULs to FS_NAME_MAX bytes */
enum fs_kind fs_kind_of_file(int fd);		/* asks the file system */

#endif
