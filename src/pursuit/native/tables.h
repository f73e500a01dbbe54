// The dictionary and its Gram matrix in 16-bit integers or float32; the comment at the top of fast.h defines them.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr int SHORT_MAX = 32767;
constexpr double ATOM_SCALE = 32700;  // the norm of the longest atom, in integers
// the largest norm of a signal, in integers: the product of the two is below 2^31
constexpr double SIGNAL_NORM = 65000;
constexpr int MAX_LEAD = 400;          // units by which the best atom must lead, at most
constexpr int MAX_CLOSE = 16;          // atoms that are compared in full precision
constexpr int SIGNALS_PER_GROUP = 32;  // signals that are multiplied by the dictionary together
// numbers between rows, which would otherwise fall on the same lines of the cache
constexpr int ROW_GAP = 32;
constexpr int STRIP_VECTORS = VECTOR_BYTES == 64 ? 2 : 1;
constexpr int ATOMS_PER_STRIP = STRIP_VECTORS * LANES<int32_t>;  // atoms that `multiply` handles together
constexpr int SIGNALS_PER_BLOCK = 8;                             // signals that `multiply` handles together

template <class S, class T> inline S to_search(T x) {
    if constexpr (std::is_integral_v<S>) return S(int32_t(nearest(x)));
    else return S(x);
}

// Products of words of 4 bytes, two 16-bit integers or one float; and how their sums are stored.
inline Vec<int32_t> add_words(Vec<int32_t> sum, Vec<int32_t> a, Vec<int32_t> y) {
    return add_products(sum, (Vec<int16_t>)a, (Vec<int16_t>)y);
}
inline Vec<float> add_words(Vec<float> sum, Vec<float> a, Vec<float> y) { return sum + a * y; }
inline void store_sum(int16_t *to, Vec<int32_t> sum) {
    auto upper = __builtin_convertvector(sum >> 16, Vec<int16_t, VECTOR_BYTES / 2>);
    std::memcpy(to, &upper, sizeof upper);
}
inline void store_sum(float *to, Vec<float> sum) { store(to, sum); }
inline Vec<int16_t> subtract_product(Vec<int16_t> c, Vec<int16_t> row, Vec<int16_t> weight) {
    using Wrapping = Vec<uint16_t>;  // signed sums that wrap are undefined
    return (Vec<int16_t>)((Wrapping)c - (Wrapping)high_product(row, weight));
}
inline Vec<float> subtract_product(Vec<float> c, Vec<float> row, Vec<float> weight) { return c - row * weight; }

// The dictionary and its Gram matrix in numbers of type S, read by all threads.
template <class T, class S> struct Tables {
    static constexpr bool INT16 = std::is_integral_v<S>;
    using Word = std::conditional_t<INT16, int32_t, float>;
    static constexpr int PER_WORD = sizeof(Word) / sizeof(S);
    static constexpr int BLOCK = 4 * LANES<S>;  // columns that are searched together

    const Dictionary<T> dictionary;
    const int columns, stride, words;
    const bool prefetch;  // whether the Gram matrix is too large for the cache
    T longest = 0, mu = 0;
    T max_offdiagonal = 0;  // m in fast.h
    T rounded_off = 0;      // the largest norm of an atom minus its integers
    Array<S> rows;          // of the Gram matrix
    Array<S> strips;        // atoms, ATOMS_PER_STRIP of them side by side
    Array<float> squares;   // of the norms; infinite where there is no atom

    explicit Tables(const Dictionary<T> &D)
        : dictionary(D), columns(round_up(D.n, BLOCK)), stride(columns + ROW_GAP),
          words((D.d + PER_WORD - 1) / PER_WORD), prefetch(sizeof(T) * D.n * D.n > 1 << 20), rows(size_t(D.n) * stride),
          strips(size_t(PER_WORD) * words * round_up(columns, ATOMS_PER_STRIP)), squares(columns) {
        for (int j = 0; j < columns; ++j) squares[j] = j < D.n ? float(D.gram_row(j)[j]) : INFINITY;
        for (int j = 0; j < D.n; ++j) {
            const T *g = D.gram_row(j);
            const T offdiagonal = larger(largest_magnitude(g, j), largest_magnitude(g + j + 1, D.n - j - 1));
            mu = larger(mu, offdiagonal / D.norms[j] * T(1 + 1e-6));
            longest = larger(longest, larger(D.norms[j], g[j] / D.norms[j]) * T(1 + 1e-6));
        }
        longest = larger(longest, mu);  // a Gram matrix may be right to a few digits only
        max_offdiagonal = smaller(SHORT_MAX * mu / longest + 1, T(SHORT_MAX));
        for (int j = 0; j < D.n; ++j) copy_row(j), copy_atom(j);
    }

  private:
    void copy_row(int j) {
        const T *g = dictionary.gram_row(j), scale = INT16 ? SHORT_MAX / (dictionary.norms[j] * longest) : 1;
        S *row = rows + size_t(j) * stride;
#pragma omp simd
        for (int k = 0; k < dictionary.n; ++k) row[k] = to_search<S>(g[k] * scale);
    }

    void copy_atom(int j) {
        const T scale = INT16 ? T(ATOM_SCALE) / longest : 1, *a = dictionary.atom(j);
        S *to = strips + (size_t(j / ATOMS_PER_STRIP) * words * ATOMS_PER_STRIP + j % ATOMS_PER_STRIP) * PER_WORD;
        T square = 0;
        for (int i = 0; i < dictionary.d; ++i) {
            const T exact = a[i] * scale;
            const S near = to[i / PER_WORD * PER_WORD * ATOMS_PER_STRIP + i % PER_WORD] = to_search<S>(exact);
            square += (exact - near) * (exact - near);
        }
        rounded_off = larger(rounded_off, std::sqrt(square) / scale * T(1 + 1e-5));
    }
};

}  // namespace
