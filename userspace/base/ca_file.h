/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where distributions keep the certificates of authorities. A static program brings a TLS library
 * that was built for one distribution and runs on all of them, so it looks for the file itself.
 * With shared libraries, libcurl knows its distribution's.
 */
#ifndef SFBPF_BASE_CA_FILE_H
#define SFBPF_BASE_CA_FILE_H

/*
 * Why no certificate can be verified on this system: no file of authorities in any place, with all
 * places. NULL: there is one, or the TLS library decides. The text is static.
 */
const char *ca_file_missing(void);

#endif
