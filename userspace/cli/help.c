/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/help.h"

#include <string.h>

#include "kern/perf_event.h"

#define WIDTH 80 /* columns of --help */
#define LEFT  30 /* columns of an option and its argument */

static const char exit_status[] =
	"0: success. 1: runtime failure. 2: usage error. 3: a permission is missing. "
	"4: the kernel lacks a feature. With COMMAND: its exit status, or 128 + N if signal N "
	"ended it.";

static const char overview[] =
	"A system-wide sampling profiler. It records full user and kernel stacks of every process. "
	"A BPF program unwinds them in the kernel, from the .sframe and .eh_frame tables of the "
	"mapped files.";

static const struct option_spec always[] = {
	{ 'h', "help", NULL, "print this text and exit" },
	{ OPT_VERSION, "version", NULL, "print the version and exit" },
	{ 0 },
};

/* ---- The options of a tool, table by table ---- */

struct walk {
	const struct tool_spec *tool;
	int table;
	const struct option_spec *at;
};

static const struct option_spec *table_of(const struct tool_spec *tool, int table)
{
	static const struct option_spec none[] = { { 0 } };

	switch (table) {
	case 0:
		return tool_options(tool);
	case 1:
		return tool->common ? common_options : none;
	case 2:
		return always;
	default:
		return NULL;
	}
}

static bool is_refused(const struct walk *w)
{
	return w->table == 1 && w->tool->without && w->at->id < 256 &&
	       strchr(w->tool->without, w->at->id);
}

/* The next option that the tool takes; NULL at the end. *w starts as { .tool = tool }. */
static const struct option_spec *next_option(struct walk *w)
{
	for (;;) {
		if (!w->at)
			w->at = table_of(w->tool, w->table);
		else
			w->at++;
		while (w->at && !w->at->id)
			w->at = table_of(w->tool, ++w->table);
		if (!w->at || !is_refused(w))
			return w->at;
	}
}

static bool has_letter(const struct option_spec *o)
{
	return o->id < 256;
}

/* ---- --help ---- */

/* Prints words from column `at` on, and further lines from column `indent` on. */
static void print_wrapped(FILE *f, const char *text, int at, int indent)
{
	while (*text) {
		int len = (int)strcspn(text, " ");

		if (at > indent && at + 1 + len > WIDTH) {
			fprintf(f, "\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			fputc(' ', f);
			at++;
		}
		fprintf(f, "%.*s", len, text);
		at += len;
		text += len + (text[len] == ' ');
	}
	fputc('\n', f);
}

static void print_option(FILE *f, const struct option_spec *o)
{
	char left[64];
	int n = has_letter(o) ? snprintf(left, sizeof(left), "  -%c", o->id)
			      : snprintf(left, sizeof(left), "    ");

	if (o->name)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "%s --%s",
			      has_letter(o) ? "," : " ", o->name);
	if (o->arg)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "%s%s",
			      !strncmp(o->arg, "[=", 2) ? "" : " ", o->arg);
	fprintf(f, "%-*s", LEFT, left);
	if (n >= LEFT)
		fprintf(f, "\n%*s", LEFT, "");
	print_wrapped(f, o->help, LEFT, LEFT);
}

void help_text(const struct tool_spec *tool, FILE *f)
{
	struct walk w = { .tool = tool };
	const struct option_spec *o;

	fprintf(f, "usage: sfbpf %s\n\n", tool->usage);
	print_wrapped(f, tool->summary, 0, 0);
	fputs("\noptions:\n", f);
	while ((o = next_option(&w)))
		print_option(f, o);
	if (tool->examples)
		fprintf(f, "\nexamples:\n%s", tool->examples);
	fputs("\nexit status:\n  ", f);
	print_wrapped(f, exit_status, 2, 2);
}

/* ---- man pages ---- */

/* Escapes text for roff: dashes that can be copied, and no accidental control lines. */
static void man_put(FILE *f, const char *s)
{
	for (bool start = true; *s; s++) {
		if (start && (*s == '.' || *s == '\''))
			fputs("\\&", f);
		if (*s == '-')
			fputs("\\-", f);
		else if (*s == '\\')
			fputs("\\e", f);
		else
			fputc(*s, f);
		start = *s == '\n';
	}
}

static void man_head(FILE *f, const char *name, const char *brief)
{
	fprintf(f, ".TH %s 1 \"\" \"sfbpf " SFBPF_VERSION "\" \"User Commands\"\n.SH NAME\n", name);
	man_put(f, name);
	fputs(" \\- ", f);
	man_put(f, brief);
	fputc('\n', f);
}

static void man_option(FILE *f, const struct option_spec *o)
{
	fputs(".TP\n", f);
	if (has_letter(o))
		fprintf(f, "\\fB\\-%c\\fR%s", o->id, o->name ? ", " : "");
	if (o->name) {
		fputs("\\fB\\-\\-", f);
		man_put(f, o->name);
		fputs("\\fR", f);
	}
	if (o->arg) {
		fputs(!strncmp(o->arg, "[=", 2) ? "\\fI" : " \\fI", f);
		man_put(f, o->arg);
		fputs("\\fR", f);
	}
	fputc('\n', f);
	man_put(f, o->help);
	fputc('\n', f);
}

void help_man(const struct tool_spec *tool, FILE *f)
{
	struct walk w = { .tool = tool };
	const struct option_spec *o;
	char name[32];

	snprintf(name, sizeof(name), "sfbpf-%s", tool->name);
	man_head(f, name, tool->brief);
	fputs(".SH SYNOPSIS\n\\fBsfbpf\\fR ", f);
	man_put(f, tool->usage);
	fputs("\n.SH DESCRIPTION\n", f);
	man_put(f, tool->summary);
	fputs("\n.SH OPTIONS\n", f);
	while ((o = next_option(&w)))
		man_option(f, o);
	if (tool->examples) {
		fputs(".SH EXAMPLES\n.nf\n", f);
		man_put(f, tool->examples);
		fputs(".fi\n", f);
	}
	fputs(".SH EXIT STATUS\n", f);
	man_put(f, exit_status);
	fputs("\n.SH SEE ALSO\n.BR sfbpf (1)\n", f);
}

void help_man_overview(const struct tool_spec *const *tools, FILE *f)
{
	man_head(f, "sfbpf", "system-wide sampling profiler");
	fputs(".SH SYNOPSIS\n\\fBsfbpf\\fR \\fITOOL\\fR [options]\n.br\n"
	      "\\fBsfbpf\\-\\fITOOL\\fR [options]\n"
	      ".SH DESCRIPTION\n",
	      f);
	man_put(f, overview);
	fputs("\n.SH TOOLS\n", f);
	for (; *tools; tools++) {
		fprintf(f, ".TP\n.BR sfbpf\\-%s (1)\n", (*tools)->name);
		man_put(f, (*tools)->brief);
		fputc('\n', f);
	}
	fputs(".SH EXIT STATUS\n", f);
	man_put(f, exit_status);
	fputc('\n', f);
}

/* ---- Completions ---- */

#define VALUES 2048

/* What an option's value can be: words, which depend on the machine if the rest is not NULL. */
struct values {
	char words[VALUES];
	const char *bash, *zsh; /* commands that print words; a function of zsh */
};

static void add_value(struct values *v, const char *word, size_t len)
{
	size_t at = strlen(v->words);

	snprintf(v->words + at, VALUES - at, "%s%.*s", at ? " " : "", (int)len, word);
}

/* The metavariable says it; "a|b" lists all that there is. False: any text, or a file */
static bool values_of(const struct tool_spec *tool, const struct option_spec *o, struct values *v)
{
	/* The other tools with --format write text, JSON or files of the agent. */
	bool profiles = tool->mixed || tool->permute;
	const struct perf_event_kind *kind;
	const struct out_format *format;
	const char *arg = o->arg ? o->arg : "";

	*v = (struct values){ .bash = NULL };
	for (size_t i = 0; profiles && !strcmp(arg, "FORMAT") && (format = out_format_at(i)); i++)
		add_value(v, format->name, strlen(format->name));
	for (unsigned int i = 0; !strcmp(arg, "EVENT") && (kind = perf_event_at(i)); i++)
		add_value(v, kind->name, strlen(kind->name));
	for (const char *at = strchr(arg, '|') ? arg : ""; *at; at += strspn(at, "|")) {
		add_value(v, at, strcspn(at, "|"));
		at += strcspn(at, "|");
	}
	if (o->id == OPT_BY)
		add_value(v, "process thread container", strlen("process thread container"));
	if (!strcmp(arg, "PID[,PID]")) {
		v->bash = "ps -eo pid=,comm= 2>/dev/null";
		v->zsh = "_pids";
	} else if (!strcmp(arg, "USER")) {
		v->bash = "compgen -u";
		v->zsh = "_users";
	}
	return *v->words || v->bash;
}

static void bash_values(const struct tool_spec *tool, FILE *f)
{
	struct walk w = { .tool = tool };
	const struct option_spec *o;
	struct values v;

	while ((o = next_option(&w))) {
		if (!values_of(tool, o, &v))
			continue;
		fputs("\t", f);
		if (has_letter(o))
			fprintf(f, "'%s -%c'%s", tool->name, o->id, o->name ? " | " : "");
		if (o->name)
			fprintf(f, "'%s --%s'", tool->name, o->name);
		if (v.bash)
			fprintf(f, ") values=$(%s) ;;\n", v.bash);
		else
			fprintf(f, ") values='%s' ;;\n", v.words);
	}
}

static void bash_options(const struct tool_spec *tool, FILE *f)
{
	struct walk w = { .tool = tool };
	const struct option_spec *o;

	while ((o = next_option(&w))) {
		if (has_letter(o))
			fprintf(f, " -%c", o->id);
		if (o->name)
			fprintf(f, " --%s", o->name);
	}
}

void help_bash(const struct tool_spec *const *tools, FILE *f)
{
	fputs("# bash completion of sfbpf, made by `sfbpf help --completion bash`.\n"
	      "_sfbpf()\n{\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} tool=${COMP_WORDS[0]##*/} words= values=\n"
	      "\tlocal prev=${COMP_WORDS[COMP_CWORD-1]}\n"
	      "\t[ \"$cur\" != = ] || cur=\n"
	      "\t[ \"$prev\" != = ] || prev=${COMP_WORDS[COMP_CWORD-2]}\n"
	      "\tcase $tool in\n"
	      "\tsfbpf-*) tool=${tool#sfbpf-} ;;\n"
	      "\t*) tool= ; [ \"$COMP_CWORD\" -lt 2 ] || tool=${COMP_WORDS[1]} ;;\n"
	      "\tesac\n"
	      "\tcase $tool in\n",
	      f);
	for (const struct tool_spec *const *t = tools; *t; t++) {
		fprintf(f, "\t%s) words=\"", (*t)->name);
		bash_options(*t, f);
		fputs("\" ;;\n", f);
	}
	fputs("\t'') words=\"", f);
	for (const struct tool_spec *const *t = tools; *t; t++)
		fprintf(f, "%s ", (*t)->name);
	fputs("\" ;;\n\tesac\n"
	      "\tcase \"$tool $prev\" in\n",
	      f);
	for (const struct tool_spec *const *t = tools; *t; t++)
		bash_values(*t, f);
	fputs("\tesac\n"
	      "\tif [ -n \"$values\" ]; then\n"
	      "\t\tmapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$cur\")\n"
	      "\t\treturn\n"
	      "\tfi\n"
	      "\tcase $cur in\n"
	      "\t-*) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\") ;;\n"
	      "\t*)\n"
	      "\t\tif [ -z \"$tool\" ]; then\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
	      "\t\telse\n"
	      "\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	      "\t\tfi ;;\n"
	      "\tesac\n}\n"
	      "complete -o filenames -F _sfbpf sfbpf",
	      f);
	for (const struct tool_spec *const *t = tools; *t; t++)
		fprintf(f, " sfbpf-%s", (*t)->name);
	fputc('\n', f);
}

/* Escapes text for single quotes and an _arguments specification. */
static void zsh_put(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", f);
		else if (strchr("[]:\\", *s))
			fprintf(f, "\\%c", *s);
		else
			fputc(*s, f);
	}
}

static void zsh_option(FILE *f, const struct tool_spec *tool, const struct option_spec *o,
		       const char *dashes, const char *name)
{
	struct values v;

	fprintf(f, "\t\t'*%s%s[", dashes, name);
	zsh_put(f, o->help);
	fputc(']', f);
	if (o->arg) {
		fputc(':', f);
		zsh_put(f, o->arg);
		if (values_of(tool, o, &v) && v.zsh)
			fprintf(f, ":%s", v.zsh);
		else if (*v.words)
			fprintf(f, ":(%s)", v.words);
		else
			fputs(strstr(o->arg, "FILE") || strstr(o->arg, "DIR") ? ":_files" : ":", f);
	}
	fputs("' \\\n", f);
}

void help_zsh(const struct tool_spec *const *tools, FILE *f)
{
	fputs("#compdef sfbpf", f);
	for (const struct tool_spec *const *t = tools; *t; t++)
		fprintf(f, " sfbpf-%s", (*t)->name);
	fputs("\n# zsh completion of sfbpf, made by `sfbpf help --completion zsh`.\n"
	      "local tool=${service#sfbpf-}\n"
	      "if [[ $service == sfbpf ]]; then\n"
	      "\tif (( CURRENT == 2 )); then\n"
	      "\t\tlocal -a tools=(\n",
	      f);
	for (const struct tool_spec *const *t = tools; *t; t++) {
		fprintf(f, "\t\t\t'%s:", (*t)->name);
		zsh_put(f, (*t)->brief);
		fputs("'\n", f);
	}
	fputs("\t\t)\n\t\t_describe tool tools\n\t\treturn\n\tfi\n"
	      "\ttool=$words[2]\n\tshift words\n\t(( CURRENT-- ))\nfi\ncase $tool in\n",
	      f);
	for (const struct tool_spec *const *t = tools; *t; t++) {
		struct walk w = { .tool = *t };
		const struct option_spec *o;

		fprintf(f, "%s)\n\t_arguments -s \\\n", (*t)->name);
		while ((o = next_option(&w))) {
			if (has_letter(o))
				zsh_option(f, *t, o, "-", (char[]){ (char)o->id, 0 });
			if (o->name)
				zsh_option(f, *t, o, "--", o->name);
		}
		fputs("\t\t'*:file:_files' ;;\n", f);
	}
	fputs("esac\n", f);
}
