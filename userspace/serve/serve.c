/* SPDX-License-Identifier: BSD-2-Clause */
/* sfbpf serve: what agents wrote, in a browser. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_privs.h"
#include "agent/listen.h"
#include "base/clock.h"
#include "base/exitcode.h"
#include "base/num.h"
#include "cli/tools.h"
#include "report/read_clickhouse.h"
#include "serve/serve_http.h"
#include "serve/serve_pages.h"
#include "worker/jail_files.h"
#include "worker/privs.h"

#define DEFAULT_ADDRESS "127.0.0.1:9420"
#define DEFAULT_MEMORY	(512ull << 20)
#define MIN_MEMORY	(16ull << 20)
#define CAP_DAC_READ	2 /* CAP_DAC_READ_SEARCH */
#define TOKEN_MIN	16
#define TOKEN_MAX	200
/* Windows of the last hour are read as they come for so long after a question. */
#define WARM_NS		(120 * NUM_S)
#define EVERY_NS	(5 * NUM_S)
/* While a query runs, other questions wait. */
#define QUERY_NS	(30 * NUM_S)

enum { OPT_LISTEN = OPT_TOOL, OPT_TOKEN, OPT_MEMORY, OPT_HEADERS, OPT_CA };

static const struct option_spec options[] = {
	{ OPT_LISTEN, "listen", "ADDR:PORT",
	  "address (default " DEFAULT_ADDRESS "); any but loopback needs a token" },
	{ OPT_TOKEN, "token-file", "FILE",
	  "ask for the token in FILE; without it a new one is printed where one is needed" },
	{ OPT_MEMORY, "memory", "SIZE",
	  "memory for windows that were read (default 512M); a longer range is refused" },
	{ OPT_HEADERS, "header-file", "FILE",
	  "HTTP headers for ClickHouse, a line 'Name: value' each, such as its user and key" },
	{ OPT_CA, "ca-file", "FILE", "certificates to trust for ClickHouse" },
	{ 0 }
};

static int serve_run(int argc, char **argv);

const struct tool_spec serve_tool = {
	.name = "serve",
	.usage = "serve [options] DIRECTORY|URL",
	.brief = "show what agents wrote in a browser",
	.summary =
		"Serves a page with the services in a directory of windows that 'sfbpf agent "
		"--protocol file' wrote, or in the ClickHouse at a URL, which has the tables of "
		"'sfbpf agent --protocol clickhouse': their share of CPU time, a time line, flame "
		"graphs, the functions, the difference of two times, and downloads as pprof. Of a "
		"directory, it only reads what is below it.",
	.options = options,
	.permute = true,
	.examples = "  sfbpf serve /var/lib/sfbpf               then open the address it prints\n"
		    "  sfbpf serve --listen 0.0.0.0:9420 /var/lib/sfbpf\n"
		    "  sfbpf serve http://db:8123/?database=profiles\n",
	.run = serve_run,
};

struct serve {
	const char *path, *listen, *token_file;
	struct clickhouse tables; /* url: NULL if it is a directory */
	uint64_t memory;
	char token[TOKEN_MAX + 2];
	struct listener at;
	struct serve_config http;
	struct serve_pages pages;
	pthread_t reader;
};

static int take_option(void *ctx, int id, const char *arg)
{
	struct serve *s = ctx;

	switch (id) {
	case OPT_LISTEN:
		s->listen = arg;
		return 0;
	case OPT_TOKEN:
		s->token_file = arg;
		return 0;
	case OPT_HEADERS:
		s->tables.header_file = arg;
		return 0;
	case OPT_CA:
		s->tables.ca_file = arg;
		return 0;
	default:
		if (num_size(arg, &s->memory) || s->memory < MIN_MEMORY)
			return complain(EXIT_USAGE, "--memory: '%s' is not a size of 16M or more",
					arg);
		return 0;
	}
}

static int parse(struct serve *s, int argc, char **argv)
{
	int err = options_parse(&serve_tool, argc, argv, take_option, s);

	if (err)
		return err;
	if (argc - optind != 1)
		return complain(EXIT_USAGE, "%s; usage: sfbpf %s",
				argc == optind ? "a directory or URL is missing"
					       : "one directory or URL only",
				serve_tool.usage);
	s->path = argv[optind];
	if (clickhouse_is_url(s->path))
		s->tables.url = s->path;
	else if (s->tables.header_file || s->tables.ca_file)
		return complain(EXIT_USAGE, "%s is for ClickHouse: it needs a URL",
				s->tables.header_file ? "--header-file" : "--ca-file");
	return s->tables.url ? clickhouse_check(&s->tables) : 0;
}

/* ---- The token ---- */

static int read_token(struct serve *s)
{
	FILE *f = fopen(s->token_file, "re");
	size_t n;

	if (!f)
		return complain(EXIT_FAILED, "cannot read '%s': %s", s->token_file,
				strerror(errno));
	n = fread(s->token, 1, sizeof(s->token) - 1, f);
	fclose(f);
	s->token[n] = 0;
	n = strcspn(s->token, "\r\n");
	s->token[n] = 0;
	if (n < TOKEN_MIN || n > TOKEN_MAX ||
	    n != strspn(s->token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789-_."))
		return complain(EXIT_FAILED,
				"'%s' holds no token: one line of %d to %d letters, digits, "
				"'-', '_' and '.'",
				s->token_file, TOKEN_MIN, TOKEN_MAX);
	return 0;
}

static int make_token(struct serve *s)
{
	uint8_t raw[16];

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return complain(EXIT_FAILED, "no random numbers: %s", strerror(errno));
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(s->token + 2 * i, 3, "%02x", raw[i]);
	return 0;
}

/* ---- The address ---- */

static int listen_on(struct serve *s, char port[16])
{
	struct sockaddr_storage bound = { 0 };
	socklen_t len = sizeof(bound);
	char text[300];
	int rc = 0;

	if (!listen_address(s->listen, text, sizeof(text)))
		return complain(EXIT_USAGE, "--listen: '%s' is not ADDR:PORT", s->listen);
	if (listen_open(s->listen, &s->at, text, sizeof(text)))
		return complain(EXIT_FAILED, "cannot listen on %s", text);
	getsockname(s->at.fd, (struct sockaddr *)&bound, &len);
	getnameinfo((struct sockaddr *)&bound, len, NULL, 0, port, 16, NI_NUMERICSERV);
	s->http.fd = s->at.fd;
	s->http.host = s->at.host;
	if (s->token_file)
		rc = read_token(s);
	else if (!s->at.loopback)
		rc = make_token(s);
	s->http.token = *s->token ? s->token : NULL;
	return rc;
}

/* ---- Running ---- */

/*
 * Lets the process read below the directory from here on, and nothing else. For a URL (dir is -1)
 * it needs files to resolve names and to check certificates: it reads what its user may.
 */
static int drop_rights(int dir)
{
	int err = privs_keep(dir < 0 ? 0 : PRIVS_CAP(CAP_DAC_READ));

	if (err)
		return complain(EXIT_FAILED, "cannot drop capabilities: %s", strerror(-err));
	err = dir < 0 ? 0 : jail_files(dir);
	if (err == -ENOSYS || err == -EOPNOTSUPP)
		complain(0, "this kernel has no Landlock: only the code keeps the server inside of "
			    "the directory");
	else if (err)
		return complain(EXIT_FAILED, "cannot restrict files: %s", strerror(-err));
	err = privs_filter();
	return err ? complain(EXIT_FAILED, "cannot filter system calls: %s", strerror(-err)) : 0;
}

/* Reads the last hour at the start, and new windows while requests come. */
static void *reader_main(void *arg)
{
	struct serve *s = arg;

	for (;;) {
		uint64_t asked = __atomic_load_n(&s->pages.asked_ns, __ATOMIC_RELAXED);

		if (clock_ns(CLOCK_MONOTONIC) - asked < WARM_NS &&
		    !serve_pages_prepare(&s->pages, 50 * NUM_MS)) {
			usleep(1000); /* questions wait for the lock */
			continue;
		}
		nanosleep(&(struct timespec){ .tv_sec = EVERY_NS / NUM_S }, NULL);
	}
	return NULL;
}

static int run(struct serve *s, const sigset_t *ends, const char *port)
{
	struct serve_http *http;

	s->http.page = serve_pages_answer;
	s->http.ctx = &s->pages;
	s->pages.asked_ns = clock_ns(CLOCK_MONOTONIC);
	http = serve_http_start(&s->http);
	if (!http)
		return complain(EXIT_FAILED, "the HTTP server does not start: %s", strerror(errno));
	printf("http://%s:%s/%s%s\n", s->at.host, port,
	       s->http.token && !s->token_file ? "?token=" : "",
	       s->http.token && !s->token_file ? s->token : "");
	fflush(stdout);
	if (!s->tables.url && pthread_create(&s->reader, NULL, reader_main, s)) {
		serve_http_stop(http);
		return complain(EXIT_FAILED, "cannot start a thread");
	}
	while (sigtimedwait(ends, NULL, &(struct timespec){ .tv_sec = 1 }) < 0)
		serve_http_look(http);
	clickhouse_stop(); /* serve_http_stop waits for the pages that are made */
	serve_http_stop(http);
	return EXIT_OK; /* the reader ends with the process */
}

static int serve_run(int argc, char **argv)
{
	struct serve s = { .listen = DEFAULT_ADDRESS,
			   .memory = DEFAULT_MEMORY,
			   .tables.timeout_ns = QUERY_NS };
	int err = parse(&s, argc, argv), dir = -1;
	char port[16] = "";
	sigset_t ends;

	if (err)
		return err;
	if (!s.tables.url)
		dir = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!s.tables.url && dir < 0)
		return complain(EXIT_FAILED, "cannot read '%s': %s", s.path, strerror(errno));
	err = listen_on(&s, port);
	if (err)
		return err;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signal(SIGPIPE, SIG_IGN);
	err = drop_rights(dir);
	if (err)
		return err;
	s.pages.title = s.path;
	s.pages.store = s.tables.url ? store_new_tables(&s.tables) : store_new(dir, s.memory);
	if (!s.pages.store)
		return complain(EXIT_FAILED, "out of memory");
	err = run(&s, &ends, port);
	if (dir >= 0)
		close(dir);
	return err;
}
