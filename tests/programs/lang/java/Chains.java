// SPDX-License-Identifier: BSD-2-Clause
// Programs that know their own chain: `java Chains CASE SECONDS` prints "CHAIN outer;...;leaf" once
// the leaf runs.
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.LongStream;

public class Chains {
	static volatile long sink;
	static long end;
	static String expected;

	interface Node {
		void go(int depth);
	}

	static class Left implements Node {
		Node next;
		public void go(int depth) { step(next, depth); }
	}

	static class Right implements Node {
		Node next;
		public void go(int depth) { step(next, depth); }
	}

	static void step(Node next, int depth)
	{
		if (depth == 0)
			spin();
		else
			next.go(depth - 1);
	}

	static void say()
	{
		System.out.println("CHAIN " + expected);
		System.out.flush();
	}

	static long work(long x)
	{
		for (int i = 0; i < 20000; i++)
			x = x * 6364136223846793005L + 1442695040888963407L;
		return x;
	}

	static void spin()
	{
		long x = 1;
		while (System.nanoTime() < end)
			x = work(x);
		sink = x;
	}

	static void recurse(int n)
	{
		if (n > 0)
			recurse(n - 1);
		else
			spin();
	}

	static int fib(int n)
	{
		return n < 2 ? n : fib(n - 1) + fib(n - 2);
	}

	/* Calls and returns all the time: prologues and epilogues */
	static void calls()
	{
		while (System.nanoTime() < end)
			sink += fib(25);
	}

	static void alloc()
	{
		List<byte[]> keep = new ArrayList<>();
		while (System.nanoTime() < end) {
			keep.add(new byte[1000]);
			if (keep.size() > 20000)
				keep.clear();
		}
		sink = keep.size();
	}

	static void sleep()
	{
		try {
			while (System.nanoTime() < end)
				Thread.sleep(2);
		} catch (InterruptedException e) {
		}
	}

	/*
	 * The chain of the caller, as it stands, with -XX:+ShowHiddenFrames; names of hidden
	 * classes have no address.
	 */
	static void sayOwn()
	{
		StackTraceElement[] all = new Throwable().getStackTrace();
		StringBuilder b = new StringBuilder();
		for (int i = all.length - 1; i > 0; i--)
			b.append(all[i].getClassName().replaceAll(
					 "(\\$\\$Lambda).*|[+/.]0x.*|/[0-9]+$", "$1"))
				.append('.').append(all[i].getMethodName())
				.append(i > 1 ? ";" : "");
		expected = b.toString();
		say();
	}

	/* A loop without a known end has a safepoint, so HotSpot notes the method there. */
	static long leaf(long x)
	{
		if (expected == null)
			sayOwn();
		do {
			x = x * 6364136223846793005L + 1442695040888963407L;
		} while ((x >>> 50) != 0);
		return x;
	}

	static long inner(long x)
	{
		return leaf(x) ^ 1;
	}

	static long middle(long x)
	{
		return inner(x) + 1;
	}

	static long outer(long x)
	{
		return middle(x) - 1;
	}

	static void inlined()
	{
		while (System.nanoTime() < end)
			sink = outer(sink);
	}

	static long deep(int n, long x)
	{
		return n == 0 ? leaf(x) : deep(n - 1, x) + 1;
	}

	static void inlinedRecursion()
	{
		while (System.nanoTime() < end)
			sink = deep(6, sink);
	}

	/* Interpreted, what a stream does around its functions takes a while. */
	static void stream()
	{
		while (System.nanoTime() < end)
			sink = LongStream.range(0, 50)
				       .map(x -> middle(x) ^ middle(x + 50) ^ middle(x + 100) ^
						 middle(x + 150))
				       .filter(x -> x != 7).sum();
	}

	static void osr()
	{
		long x = sink;
		while (System.nanoTime() < end)
			for (int i = 0; i < 1000; i++)
				x = inner(x);
		sink = x;
	}

	static long yielding(int n)
	{
		if (n > 0)
			return yielding(n - 1) + 1;
		while (System.nanoTime() < end) {
			sink = outer(sink);
			if ((sink & 15) == 0)
				Thread.yield();
		}
		return sink;
	}

	static void virtual(Runnable r) throws Exception
	{
		((Thread)Thread.class.getMethod("startVirtualThread", Runnable.class)
			 .invoke(null, r))
			.join();
	}

	static String join(String... parts)
	{
		StringBuilder b = new StringBuilder();
		for (String p : parts)
			b.append(b.length() > 0 ? ";" : "").append("Chains").append(p);
		return b.toString();
	}

	static String chain(String name, int n)
	{
		List<String> f = new ArrayList<>();
		f.add(".main");
		f.add("." + name);
		for (int i = 1; i <= n; i++)
			f.add("." + name);
		f.add(".spin");
		return join(f.toArray(new String[0]));
	}

	public static void main(String[] args) throws Exception
	{
		end = System.nanoTime() + Long.parseLong(args[1]) * 1000000000L;
		switch (args[0]) {
		case "recurse60":
			expected = chain("recurse", 60);
			say();
			recurse(60);
			break;
		case "recurse300":
			expected = chain("recurse", 300);
			say();
			recurse(300);
			break;
		case "interface": {
			Left l = new Left();
			Right r = new Right();
			l.next = r;
			r.next = l;
			List<String> f = new ArrayList<>(Arrays.asList(".main"));
			for (int i = 0; i <= 20; i++) {
				f.add(i % 2 == 0 ? "$Left.go" : "$Right.go");
				f.add(".step");
			}
			f.add(".spin");
			expected = join(f.toArray(new String[0]));
			say();
			l.go(20);
			break;
		}
		case "thread": {
			Thread t = new Thread(Chains::spin);
			expected = "java.lang.Thread.run;" + join("$$Lambda.run", ".spin");
			say();
			t.start();
			t.join();
			break;
		}
		case "calls":
			expected = join(".main", ".calls", ".fib");
			say();
			calls();
			break;
		case "alloc":
			expected = join(".main", ".alloc");
			say();
			alloc();
			break;
		case "inlined":
			inlined();
			break;
		case "inlinedRecursion":
			inlinedRecursion();
			break;
		case "stream":
			stream();
			break;
		case "osr":
			osr();
			break;
		case "virtual":
			virtual(Chains::inlined);
			break;
		case "yielding":
			virtual(() -> yielding(20));
			break;
		case "sleep":
			expected = join(".main", ".sleep");
			say();
			sleep();
			break;
		}
	}
}
