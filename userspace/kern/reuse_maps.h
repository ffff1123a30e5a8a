/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SFBPF_KERN_REUSE_MAPS_H
#define SFBPF_KERN_REUSE_MAPS_H

struct bpf_object;

/*
 * Gives an object the maps of another one with the same maps, which is loaded; constants stay its
 * own. Call between open and load. 0 or -errno.
 */
int reuse_maps(struct bpf_object *to, const struct bpf_object *from);

#endif
