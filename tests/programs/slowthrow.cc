// SPDX-License-Identifier: BSD-2-Clause
/*
 * slowthrow CALLS: calls shop::serve() again and again. Each 50th call leaves by an exception; each
 * 100th is slow in shop::planted_wait(). Prints the line of slowcalls.c.
 */
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <unistd.h>

static volatile unsigned long sink;
static long inside_ns; // the last call's time, by the clock inside of it

static long now()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000l + t.tv_nsec;
}

namespace shop
{
__attribute__((noinline)) void planted_wait()
{
	usleep(15000);
	sink = sink + 1;
}

struct order {
	std::string text;

	order(long n) : text(std::to_string(n))
	{
	}
	~order()
	{
		sink = sink + text.size();
	}
};

__attribute__((noinline)) long serve(long n)
{
	long start = now();
	order o(n);

	for (int i = 0; i < 20000; i++)
		sink = sink + (unsigned long)i;
	if (n % 50 == 25)
		throw std::runtime_error("no such order");
	if (n % 100 == 99)
		planted_wait();
	sink = sink + 1;
	inside_ns = now() - start;
	return (long)sink;
}
} // namespace shop

int main(int argc, char **argv)
{
	long calls = 0, slow = 0, slow_ns = 0, left = 0, sure = 0, sure_ns = 0;
	long n = argc > 1 ? atol(argv[1]) : 1000;

	for (long i = 0; i < n; i++) {
		long start = now(), ns;

		try {
			shop::serve(i);
		} catch (const std::exception &) {
			left++;
			continue;
		}
		ns = now() - start;
		calls++;
		if (ns >= 4000000) {
			slow++;
			slow_ns += ns;
			sure += inside_ns >= 4000000;
			sure_ns += inside_ns >= 4000000 ? inside_ns : 0;
		}
	}
	fprintf(stderr, "calls %ld slow %ld slow_us %ld left %ld sure %ld sure_us %ld\n", calls,
		slow, slow_ns / 1000, left, sure, sure_ns / 1000);
	return 0;
}
