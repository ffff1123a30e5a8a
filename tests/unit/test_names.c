/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names through the child that demangles them: those that never end, and mutated ones.
 * NAMES=1000000 build/unit/test_names: so many of these.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "elf_reader.h"
#include "symtab/sym_names.h"
#include "test.h"

/* With 60 levels libiberty never ends: each level costs 1.6 times the one before. */
static void endless_name(char *ret, size_t cap, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char s[1024] = "S_IccE", more[1040], sid[8];

	for (int k = 1; k < levels; k++) {
		if (k == 1)
			strcpy(sid, "S0_");
		else if (k <= 36)
			snprintf(sid, sizeof(sid), "S%c_", digits[k - 1]);
		else
			snprintf(sid, sizeof(sid), "S%c%c_", digits[(k - 1) / 36],
				 digits[(k - 1) % 36]);
		snprintf(more, sizeof(more), "S_I%s%sE", s, sid);
		snprintf(s, sizeof(s), "%.1000s", more);
	}
	snprintf(ret, cap, "_Z1fIDp1a%sEEvv", s + 2);
}

static struct worker_totals totals_of(const struct test_reader *reader)
{
	return reader->allowance->totals;
}

#define GOOD	   "_ZN2ns5twiceIiEET_S1_"
#define GOOD_SHOWN "ns::twice<int>"

/* As elf_reader_demangle, again where the machine was too busy to tell. */
static const char *shown(struct test_reader *reader, struct elf_source from, const char *raw)
{
	static char buf[SYM_NAME_MAX];

	while (!elf_reader_demangle(reader->r, from, raw, buf, sizeof(buf)))
		usleep(100000);
	return buf;
}

/* 900 names that would never end: they stay as linked, and cost a fraction of a second in all. */
TEST(names_that_take_for_ever)
{
	const struct elf_source bad = { 1, 1000 }, same_user = { 2, 1000 }, other = { 3, 1001 };
	struct test_reader reader = open_reader(elf_worker_main);
	uint64_t start = clock_ns(CLOCK_MONOTONIC), took;
	char raw[1100];

	EXPECT_STR(shown(&reader, bad, GOOD), GOOD_SHOWN);
	for (int i = 0; i < 900; i++) {
		endless_name(raw, sizeof(raw), 60 + i % 3);
		EXPECT_STR(shown(&reader, bad, raw), raw);
	}
	took = clock_ns(CLOCK_MONOTONIC) - start;
	printf("# 900 endless names: %d ms, %d ms of them CPU time, %d children late\n",
	       (int)(took / NUM_MS), (int)(totals_of(&reader).cpu_ns / NUM_MS),
	       (int)totals_of(&reader).late);
	EXPECT(totals_of(&reader).cpu_ns < 500 * NUM_MS && took < 4 * NUM_S);
	EXPECT_EQ(totals_of(&reader).mangled, 900);
	EXPECT(totals_of(&reader).late >= ELF_SLOW_FILE);
	/* That file's others stay as they are, too; those of the user's next one do not. */
	EXPECT_STR(shown(&reader, bad, GOOD), GOOD);
	EXPECT_STR(shown(&reader, same_user, GOOD), GOOD_SHOWN);
	/* With a file for each name it is the user. */
	for (uint32_t file = 10; file < 110; file++)
		EXPECT_STR(shown(&reader, (struct elf_source){ file, 1000 }, raw), raw);
	EXPECT_STR(shown(&reader, same_user, GOOD), GOOD);
	EXPECT_STR(shown(&reader, other, GOOD), GOOD_SHOWN);
	EXPECT(totals_of(&reader).cpu_ns < 500 * NUM_MS);
	EXPECT_EQ(totals_of(&reader).mangled, 900 + 1 + 100 + 1);
	EXPECT_EQ(totals_of(&reader).died + totals_of(&reader).failed, 0);
	close_reader(&reader);
}

/* Other names cost no question. Without a reader or time names stay as linked. */
TEST(names_without_a_question)
{
	struct test_reader reader = open_reader(elf_worker_main);
	struct elf_source from = { 1, 0 };
	char buf[64];

	EXPECT(elf_reader_demangle(reader.r, from, "mal\x1bloc", buf, sizeof(buf)));
	EXPECT_STR(buf, "mal.loc");
	EXPECT_EQ(totals_of(&reader).cpu_ns, 0);
	EXPECT(elf_reader_demangle(NULL, from, GOOD, buf, sizeof(buf)));
	EXPECT_STR(buf, GOOD);
	reader.allowance->left[ALLOWANCE_ROOT].ns = 0;
	EXPECT(!elf_reader_demangle(reader.r, from, GOOD, buf, sizeof(buf)));
	EXPECT_STR(buf, GOOD);
	EXPECT_EQ(totals_of(&reader).deferred, 1);
	close_reader(&reader);
}

/*
 * The names of a large table are read and demangled in one question. One that takes too long is
 * asked for again as it is; after a few of these the others of the file are, too.
 */
TEST(names_in_the_file)
{
	struct test_reader reader = open_reader(elf_worker_main);
	struct symtab_sym syms[] = { { 16, 8, 1 }, { 32, 8, 64 }, { 48, 8, 1024 } };
	struct symtab t = { .syms = syms, .n = 3, .str = { { 0, 2048 } }, .debug_fd = -1 };
	char bytes[2048] = "", buf[SYM_NAME_MAX];
	int fd = memfd_create("names", MFD_CLOEXEC);
	struct symtab_hit good, plain, bad;

	strcpy(bytes + 1, GOOD);
	strcpy(bytes + 64, "plain");
	endless_name(bytes + 1024, 1024, 60);
	EXPECT(write(fd, bytes, sizeof(bytes)) == sizeof(bytes));
	EXPECT(symtab_at(&t, 0, &good) && symtab_at(&t, 1, &plain) && symtab_at(&t, 2, &bad));
	EXPECT_EQ(elf_reader_name(reader.r, fd, 1, &t, &good, buf, sizeof(buf)), 0);
	EXPECT_STR(buf, GOOD_SHOWN);
	EXPECT_EQ(totals_of(&reader).mangled, 0);
	for (int i = 0; i < ELF_SLOW_FILE; i++) {
		EXPECT_EQ(elf_reader_name(reader.r, fd, 1, &t, &bad, buf, sizeof(buf)), 0);
		EXPECT_STR(buf, bytes + 1024);
	}
	EXPECT_EQ(totals_of(&reader).late, ELF_SLOW_FILE);
	EXPECT_EQ(elf_reader_name(reader.r, fd, 1, &t, &good, buf, sizeof(buf)), 0);
	EXPECT_STR(buf, GOOD);
	EXPECT_EQ(elf_reader_name(reader.r, fd, 2, &t, &good, buf, sizeof(buf)), 0);
	EXPECT_STR(buf, GOOD_SHOWN);
	EXPECT_EQ(elf_reader_name(reader.r, fd, 1, &t, &plain, buf, sizeof(buf)), 0);
	EXPECT_STR(buf, "plain");
	EXPECT_EQ(totals_of(&reader).mangled, ELF_SLOW_FILE + 1);
	EXPECT_EQ(totals_of(&reader).died + totals_of(&reader).failed, 0);
	close_reader(&reader);
	close(fd);
}

/* ---- Mutated names ---- */

#define MUTATED	     20000 /* NAMES=N: so many; SEED=N: others */
/* A look may come late on a busy machine, and a new child has a cost, too. */
#define UNNOTICED_NS (4 * ELF_DEMANGLE_CPU_NS)

static const char *const seeds[] = {
	"_ZNSt6vectorIiSaIiEE9push_backEOi",
	"_ZNK3Foo3barEv",
	"_ZZ4mainENKUliE_clEi.cold",
	"_ZNSt8__detail9_Map_baseISsSt4pairIKSsiESaIS3_ENS_10_Select1stESt8equal_toISsESt4hashISsE"
	"NS_18_Mod_range_hashingENS_20_Default_ranged_hashENS_20_Prime_rehash_policyE"
	"NS_17_Hashtable_traitsILb1ELb0ELb1EEELb1EEixERS2_",
	"_ZN5boost6spirit2qi6detailL13attr_reserverIDpT_EEvOS4_",
	"_ZN12_GLOBAL__N_13fooEv",
	"_ZSt7forwardIRKSsEOT_RNSt16remove_referenceIS2_E4typeE",
	"_ZN1AIXadL_Z1fvEEEC2Ev",
	"_ZN2nsdlsEDnT_DTfp_E",
	"_Z1fIJiLi3EcEEvDpT_",
	"_ZTVN10__cxxabiv117__class_type_infoE",
	"_ZNKSt3__18functionIFvRKNS_6vectorIiNS_9allocatorIiEEEEEEclES6_",
	"_ZlsI1XEvRSoT_",
	"_Z3addIdEDTplfp_fp0_ET_S1_",
	"_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
	"_RNvXs_C7mycrateNtB4_3FooNtNtC4core3fmt5Debug3fmt",
	"_RINvNtC3std3mem8align_ofjdE",
	"_RNvNtNtCs1234_7mycrate3foo3bar3baz",
	"_RNCNvC4main4main0",
	"_RNvC6_123foo3bar",
	("_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_E"
	 "Cs1iopQbuBiw2_3std"),
	"_RNvMsr_NtCs3ssYzQotkvD_3std4pathNtB5_7PathBuf3newCs15kBYyAo9fc_7mycrate",
	"_RMC0INtC8arrayvec8ArrayVechKj7b_E",
	"_RNvC9backtrace3foou30____7hkackfecea1cbdathfdh9hlq6y",
	"_D3std5stdio__T7writelnTAyaZQnFNfQjZv",
	"_D5dprog__T3fooVAyaa3_612962ZQsFiZv",
	"_D3std5array__T8AppenderTAyaZQo4Data11__xopEqualsMxFKxSQCbQCa__TQBxTQBrZQCfQBsZb",
	"camlStdlib__List__map_236",
	"camlStdlib.$2b._123",
	"camlFib$$$5e$$2a_272",
	"containerszm0zi6zi5zi1_DataziMapziInternal_insert_info",
	"ghczmprim_GHCziTuple_Z2T_con_info",
};

static uint64_t random_state = 88172645463325252ull;

static size_t random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)(random_state >> 11) % n;
}

/* A piece of one name into another, or the same piece several times. */
static size_t splice(char *s, size_t len, const char *piece, size_t n, size_t times)
{
	size_t at = 2 + random_below(len - 1);

	for (; times && len + n < 2000; times--) {
		memmove(s + at + n, s + at, len - at + 1);
		memcpy(s + at, piece, n);
		len += n;
	}
	return len;
}

static void mutate(char *s)
{
	static const char alphabet[] = "SIEJTDpXLNZKRPOGFtTsdavcij0123456789_BCMYQWhu$.";
	size_t len = strlen(s);
	char piece[256];

	for (size_t k = 1 + random_below(6); k; k--) {
		const char *other = seeds[random_below(sizeof(seeds) / sizeof(seeds[0]))];
		size_t from = random_below(strlen(other) - 2),
		       n = 1 + random_below(strlen(other) - from);

		switch (random_below(6)) {
		case 0:
			len = splice(s, len, other + from, n, 1);
			break;
		case 1: /* its own, with what refers back to it */
			from = 2 + random_below(len - 2);
			n = 1 + random_below(len - from < 200 ? len - from : 200);
			memcpy(piece, s + from, n);
			len = splice(s, len, piece, n, 1 + random_below(40));
			break;
		case 2:
			n = 1 + random_below(8);
			if (len > n + 8) {
				from = 2 + random_below(len - n - 2);
				memmove(s + from, s + from + n, len - from - n + 1);
				len -= n;
			}
			break;
		case 3:
			s[2 + random_below(len - 2)] = (char)(1 + random_below(255));
			break;
		default:
			s[2 + random_below(len - 2)] = alphabet[random_below(sizeof(alphabet) - 1)];
		}
	}
}

static void next_name(char *ret, size_t cap)
{
	size_t which = random_below(sizeof(seeds) / sizeof(seeds[0]) + 1);

	if (which == sizeof(seeds) / sizeof(seeds[0]))
		endless_name(ret, 512, 8 + (int)random_below(30));
	else
		snprintf(ret, cap, "%s", seeds[which]);
	mutate(ret);
}

/* Each is within the limit or counted, and an honest name is demangled all the time. */
TEST(names_mutated)
{
	struct test_reader reader = open_reader(elf_worker_main);
	size_t count = getenv("NAMES") ? strtoul(getenv("NAMES"), NULL, 10) : MUTATED,
	       demangled = 0;
	struct worker_totals before, now = totals_of(&reader);
	uint64_t most = 0, used;
	char raw[2048];
	const char *got;

	if (getenv("SEED"))
		random_state ^= strtoul(getenv("SEED"), NULL, 10) << 20;
	for (size_t i = 0; i < count; i++) {
		/* What it would wait for on a machine that does other things, too */
		if (i % 100 == 0) {
			before = totals_of(&reader);
			allowance_init(reader.allowance);
			reader.allowance->totals = before;
			EXPECT_STR(shown(&reader, (struct elf_source){ UINT32_MAX, 0 }, GOOD),
				   GOOD_SHOWN);
		}
		next_name(raw, sizeof(raw));
		before = totals_of(&reader);
		got = shown(&reader, (struct elf_source){ (uint32_t)i, 0 }, raw);
		now = totals_of(&reader);
		used = now.cpu_ns - before.cpu_ns;
		most = used > most ? used : most;
		demangled += strncmp(got, raw, strlen(got)) != 0;
		if (now.mangled == before.mangled &&
		    (used > UNNOTICED_NS || now.died != before.died)) {
			printf("  %s: %.1f ms, not counted\n", raw, (double)used / 1e6);
			test_errors++;
		}
		EXPECT(strlen(got) < SYM_NAME_MAX);
	}
	printf("# %zu names: %zu demangled, %d too slow, %d children died, "
	       "at most %.1f ms of CPU time\n",
	       count, demangled, (int)now.mangled, (int)now.died, (double)most / 1e6);
	EXPECT(demangled > count / 20);
	close_reader(&reader);
}
