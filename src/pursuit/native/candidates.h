// The few atoms of the largest slopes among very many, without branches that a processor cannot predict.
#pragma once
#include "simd.h"

namespace {

constexpr int MOST_NEW = 8;       // atoms that are named at a time
constexpr int MAX_COMPARED = 64;  // where more slopes may be among the largest, the first of those are compared

// Writes the atoms of the MOST_NEW largest positive slopes, sorted, and returns how many there are. No slope is negative,
// and 64 zeros follow the last.
//
// `tops` has the largest slope of each of at least MOST_NEW sets of atoms: so at least MOST_NEW slopes are as large as
// the least of `tops`. Few others reach it. Each that does takes the place that is the number of larger ones; a sort by
// comparisons would branch.
template <class T> inline int find_steepest(const T *slopes, int n, int32_t *atoms) {
    using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;  // which order slopes, as none is negative
    constexpr int N = LANES<T>, WAYS = larger(1, MOST_NEW / N);
    Vec<T> tops[WAYS] = {};
    for (int j = 0; j < n; j += N) tops[j / N % WAYS] = larger(tops[j / N % WAYS], load(slopes + j));
    for (int way = 1; way < WAYS; ++way) tops[0] = smaller(tops[0], tops[way]);
    const T cut = reduced<T>(tops[0], [](auto a, auto b) { return smaller(a, b); });
    const Vec<Bits> low = (Vec<Bits>)splat(cut * (1 - EPS<T>));
    Bits order[MAX_COMPARED] = {};  // slopes, in whose last digits their numbers make them distinct
    int32_t steep[MAX_COMPARED], sorted[MAX_COMPARED];
    int count = 0;
    for (int first = 0; first < n; first += 64) {
        uint64_t some = 0;
        for (int k = 0; k < 64; k += N) some |= bits_above((Vec<Bits>)load(slopes + first + k), low) << k;
        for (; some && count < MAX_COMPARED; some &= some - 1, ++count) {
            steep[count] = first + __builtin_ctzll(some);
            std::memcpy(order + count, slopes + steep[count], sizeof(T));
            order[count] = (order[count] | (MAX_COMPARED - 1)) - count;
        }
    }
    for (int e = 0; e < count; ++e) {
        int place = 0;
        for (int k = 0; k < count; k += N) place += __builtin_popcountll(bits_above(load(order + k), splat(order[e])));
        sorted[place] = steep[e];
    }
    const int found = smaller(count, MOST_NEW);
    std::memcpy(atoms, sorted, size_t(found) * sizeof(int32_t));
    return found;
}

}  // namespace
