/* SPDX-License-Identifier: BSD-2-Clause */
/* stdsort [SECONDS]: std::sort over virtual objects, busy in a virtual function of one of them. */
#include <algorithm>
#include <vector>
#include "prog.h"

HOT(so)

namespace shapes
{

struct Shape {
	unsigned long w;
	explicit Shape(unsigned long width) : w(width)
	{
	}
	virtual ~Shape()
	{
	}
	virtual unsigned long area(const Shape &other) const = 0;
};

struct Square : Shape {
	explicit Square(unsigned long width) : Shape(width)
	{
	}
	NOIPA unsigned long area(const Shape &other) const override
	{
		return other.area(*this) + w;
	}
};

struct Circle : Shape {
	explicit Circle(unsigned long width) : Shape(width)
	{
	}
	NOIPA unsigned long area(const Shape &other) const override
	{
		return so_hot(w + other.w) | 1;
	}
};

struct Less {
	NOIPA bool operator()(const Shape *a, const Shape *b) const
	{
		return a->area(*b) < b->w;
	}
};

} // namespace shapes

static NOIPA void so_run(std::vector<shapes::Shape *> &v)
{
	std::sort(v.begin(), v.end(), shapes::Less());
	prog_keep(v.data());
}

int main(int argc, char **argv)
{
	shapes::Circle c(static_cast<unsigned long>(argc));
	shapes::Square s(2);
	std::vector<shapes::Shape *> v = { &c, &s };

	prog_init(argc, argv);
	so_run(v);
	return 0;
}
