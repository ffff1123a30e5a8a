/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/ca_file.h"

#include <stddef.h>

#ifdef SFBPF_STATIC
#include <dirent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEBIAN "/etc/ssl/certs/ca-certificates.crt" /* also Arch, Gentoo and Alpine */
#define FEDORA "/etc/pki/tls/certs/ca-bundle.crt"
#define RHEL   "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem" /* also Fedora from 43 on */
#define SUSE   "/etc/ssl/ca-bundle.pem"
#define ALPINE "/etc/ssl/cert.pem"
#define CERTS  "/etc/ssl/certs"

static const char *const files[] = { DEBIAN, FEDORA, RHEL, SUSE, ALPINE };

/* libcrypto asks for these if $SSL_CERT_FILE and $SSL_CERT_DIR are not set. */
const char *__wrap_X509_get_default_cert_file(void);
const char *__wrap_X509_get_default_cert_dir(void);

const char *__wrap_X509_get_default_cert_file(void)
{
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		if (!access(files[i], R_OK))
			return files[i];
	return files[0];
}

const char *__wrap_X509_get_default_cert_dir(void)
{
	return CERTS;
}

/* Has a certificate under the hash of its name, by which libcrypto looks for it. */
static bool has_certificates(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e;
	bool found = false;

	while (d && !found && (e = readdir(d)))
		found = strspn(e->d_name, "0123456789abcdef") == 8 && e->d_name[8] == '.';
	if (d)
		closedir(d);
	return found;
}

const char *ca_file_missing(void)
{
	const char *file = secure_getenv("SSL_CERT_FILE");
	const char *dir = secure_getenv("SSL_CERT_DIR");

	if (!file)
		file = __wrap_X509_get_default_cert_file();
	if (!access(file, R_OK) || has_certificates(dir ? dir : CERTS))
		return NULL;
	return "no certificates of authorities on this system: neither $SSL_CERT_FILE, "
	       "$SSL_CERT_DIR, " DEBIAN ", " FEDORA ", " RHEL ", " SUSE ", " ALPINE " nor " CERTS;
}
#else
const char *ca_file_missing(void)
{
	return NULL;
}
#endif
