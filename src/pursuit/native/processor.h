// Which of the levels of CMakeLists.txt this processor and its operating system can run.
//
// __builtin_cpu_supports would tell, too, but does not link with zig.
#pragma once
#if defined(__x86_64__)
#include <cpuid.h>

// 2, 3 or 4; 1 if it is older than all levels.
inline int processor_level() {
    const auto has = [](unsigned word, unsigned bits) { return (word & bits) == bits; };
    unsigned a, b, c, d, extended, saved, upper;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT)) return 1;
    if (!has(c, bit_FMA | bit_OSXSAVE | bit_AVX)) return 2;
    __asm__("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));  // registers that the operating system saves
    if (!__get_cpuid(0x80000001, &a, &b, &extended, &d) || !has(extended, bit_LZCNT) || !has(saved, 0x06)) return 2;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has(b, bit_BMI | bit_AVX2 | bit_BMI2)) return 2;
    const bool wide = has(b, bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL) && has(c, bit_AVX512VNNI);
    return wide && has(saved, 0xe6) ? 4 : 3;
}
#else
inline int processor_level() { return 0; }
#endif
