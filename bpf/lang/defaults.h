/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What a language does where it has nothing to do. Each language's header includes this one at its
 * end, with LANG as its name, and LANG_HAS as the functions that it defines itself. lang.bpf.h says
 * what they are for.
 */
#ifndef SFBPF_LANG_DEFAULTS_H
#define SFBPF_LANG_DEFAULTS_H

#define LANG_MET     1
#define LANG_UNROWED 2
#define LANG_JITS    4
#define LANG_STEP    8
#define LANG_STARTS  16
#define LANG_GLUES   32
#define LANG_MISSED  64
#define LANG_FINISH  128

#endif

#define LANG_PASTE2(name, op) name##_##op
#define LANG_PASTE(name, op)  LANG_PASTE2(name, op)
#define LANG_OP(op)	      LANG_PASTE(LANG, op)

#if !(LANG_HAS & LANG_MET)
static __always_inline void LANG_OP(met)(u32 slot, u32 i)
{
}
#endif

#if !(LANG_HAS & LANG_UNROWED)
static __always_inline int LANG_OP(unrowed)(struct sf_scratch *s, u32 slot, u32 found)
{
	return NOT_MINE;
}

static __always_inline int LANG_OP(later)(u32 slot, int what)
{
	return what;
}
#endif

#if !(LANG_HAS & LANG_JITS)
static __always_inline bool LANG_OP(jits)(const struct sf_lang_walk *w)
{
	return false;
}
#endif

#if !(LANG_HAS & LANG_STEP)
static __always_inline int LANG_OP(step)(u32 slot)
{
	return SF_STOP_NO_ROW;
}

static __always_inline bool LANG_OP(left)(const struct sf_lang_walk *w)
{
	return false;
}
#endif

#if !(LANG_HAS & LANG_STARTS)
static __always_inline bool LANG_OP(starts)(const struct sf_lang_walk *w)
{
	return false;
}
#endif

#if !(LANG_HAS & LANG_GLUES)
static __always_inline bool LANG_OP(glues)(void)
{
	return false;
}
#endif

#if !(LANG_HAS & LANG_MISSED)
static __always_inline void LANG_OP(missed)(struct sf_scratch *s, u32 slot)
{
}
#endif

#if !(LANG_HAS & LANG_FINISH)
static __always_inline void LANG_OP(finish)(u32 slot)
{
}
#endif

#undef LANG_OP
#undef LANG_PASTE
#undef LANG_PASTE2
#undef LANG
#undef LANG_HAS
