// Correlations of templates with a signal, and among themselves: sums of products over all channels, rows and samples.
//
// Vectors that begin at every sample cross cache lines, and take twice as long to load. So the samples of a tile are
// stored strided: entry s of a row is a vector whose lane i is sample i * across + s. All vectors are aligned then,
// and the correlations come out in the same order, from which `transpose` brings them back.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

constexpr int OVERRUN = 128;  // `correlate` computes a multiple of this many positions
constexpr int ACROSS = 128;   // the most positions of a lane: a tile and its samples stay in cache
template <class T> constexpr int TILE = ACROSS * LANES<T>;  // positions that are correlated at once

inline int64_t up_to_multiple(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

// out[t] = sum_i sum_l filters_i[l] rows_i[t + l * STEP] for t < n. STEP is 1, or LANES for strided samples.
template <class T, int STEP>
void correlate_rows(const T *const *rows, const T *const *filters, int terms, int width, int64_t n, T *out) {
    constexpr int N = LANES<T>, M = 8;
    for (int64_t t = 0; t < n; t += N * M) {
        Vec<T> sums[M] = {};
        for (int i = 0; i < terms; ++i) {
            const T *row = rows[i] + t, *filter = filters[i];
            for (int l = 0; l < width; ++l) {
                const Vec<T> factor = splat(filter[l]);
                for (int m = 0; m < M; ++m) sums[m] += factor * load(row + l * STEP + m * N);
            }
        }
        for (int m = 0; m < M; ++m) store(out + t + m * N, sums[m]);
    }
}

template <class T> void template_products(const Templates<T> &A, int k, T *out) {
    const int width = A.width, span = 2 * width - 1, padded = 3 * width + OVERRUN, parts = A.parts(k);
    const int32_t first = A.part_starts[k];
    Array<T> shifted(size_t(parts) * padded), pair(span + OVERRUN);
    Array<int32_t> place(size_t(A.channels) * A.height);  // 1 + the part of k on a channel and row
    int most = 0;
    for (int j = 0; j < A.count; ++j) most = larger(most, A.parts(j));
    Array<const T *> rows(most), filters(most);
    for (int i = 0; i < parts; ++i) {
        std::memcpy(shifted + size_t(i) * padded + width - 1, A.samples + size_t(first + i) * width, width * sizeof(T));
        place[size_t(A.part_channels[first + i]) * A.height + A.part_rows[first + i]] = 1 + i;
    }
    for (int64_t m = A.neighbour_starts[k]; m < A.neighbour_starts[k + 1]; ++m)
        for (int dy = 1 - A.height; dy < A.height; ++dy, out += span) {
            int terms = 0;
            const int j = A.neighbours[m];
            for (int p = A.part_starts[j]; p < A.part_starts[j + 1]; ++p) {
                const int row = A.part_rows[p] + dy;
                if (row < 0 || row >= A.height) continue;
                const int i = place[size_t(A.part_channels[p]) * A.height + row];
                if (!i) continue;
                rows[terms] = shifted + size_t(i - 1) * padded;
                filters[terms++] = A.samples + size_t(p) * width;
            }
            correlate_rows<T, 1>(rows, filters, terms, width, span, pair);
            std::memcpy(out, pair, span * sizeof(T));
        }
}

// The samples that a tile of positions sees, of all channels and of `height` rows, and their correlations with a template.
template <class T> class Window {
    static constexpr int N = LANES<T>;
    const Templates<T> &A;
    const Signal<T> &y;
    const int64_t pitch, line;  // of a row of samples: its length, strided, and before
    int64_t across = 0, entries = 0;
    Array<T> samples, lines, mixed, found;
    Array<const T *> rows, filters;

    T *row(int64_t channel, int64_t r) { return samples + (channel * A.height + r) * pitch; }
    const T *row_of(int part) { return row(A.part_channels[part], A.part_rows[part]); }

  public:
    Window(const Templates<T> &A, const Signal<T> &y)
        : A(A), y(y), pitch(up_to_multiple(ACROSS + A.width + 8, N) * N),
          line(TILE<T> + up_to_multiple(A.width + 8, N) + N), samples(size_t(A.channels) * A.height * pitch),
          lines(size_t(N) * line), found(TILE<T>) {
        int64_t most = 0, factors = 0;
        for (int k = 0; k < A.count; ++k) {
            most = larger<int64_t>(most, A.parts(k));
            if (A.factor_starts) factors = larger<int64_t>(factors, A.factor_starts[k + 1] - A.factor_starts[k]);
        }
        mixed.allocate(factors * pitch);
        rows.allocate(larger(most, factors));
        filters.allocate(larger(most, factors));
    }

    // The samples that n positions see, from `first` of a row on.
    void read(int64_t first_row, int64_t first, int64_t n) {
        across = up_to_multiple((n + N - 1) / N, larger(N, 8));
        entries = up_to_multiple(across + A.width - 1, 8);
        for (int64_t r = 0; r < A.height; ++r)
            for (int64_t c = 0; c < A.channels; c += N) {
                const int64_t channels = smaller<int64_t>(N, A.channels - c);
                read_lines(y.data + c * y.channel_stride + (first_row + r) * y.row_stride + first * y.stride, channels,
                           smaller(line, y.columns - first));
                for (int64_t i = 0; i < channels; ++i) spread(lines + i * line, row(c + i, r));
            }
    }

    void correlate(int k, int64_t n, T *out) {
        const int32_t first = A.part_starts[k];
        int terms = 0;
        if (!A.factor_starts)
            for (; terms < A.parts(k); ++terms) {
                rows[terms] = row_of(first + terms);
                filters[terms] = A.samples + size_t(first + terms) * A.width;
            }
        else {
            mix(k);
            for (int f = A.factor_starts[k]; f < A.factor_starts[k + 1]; ++f, ++terms) {
                rows[terms] = mixed + terms * pitch;
                filters[terms] = A.filters + size_t(f) * A.width;
            }
        }
        correlate_rows<T, N>(rows, filters, terms, A.width, across * N, found);
        for (int64_t t = 0; t < across; t += N) {
            Vec<T> block[N];
            for (int i = 0; i < N; ++i) block[i] = load(found + (t + i) * N);
            transpose<T>(block);
            for (int i = 0; i < N && i * across + t < n; ++i) store(out + i * across + t, block[i]);
        }
    }

  private:
    // The next samples of some channels. Channels may be next to one another: a transposition by pieces.
    void read_lines(const T *from, int64_t channels, int64_t have) {
        for (int64_t t = 0; t < have; t += 16)
            for (int64_t c = 0; c < channels; ++c) {
                const T *at = from + c * y.channel_stride;
                for (int64_t u = t; u < smaller(t + 16, have); ++u) lines[c * line + u] = at[u * y.stride];
            }
        for (int64_t c = 0; c < channels; ++c) std::memset(lines + c * line + have, 0, (line - have) * sizeof(T));
    }

    void spread(const T *from, T *to) const {
        for (int64_t s = 0; s < entries; s += N) {
            Vec<T> block[N];
            for (int i = 0; i < N; ++i) block[i] = load(from + i * across + s);
            transpose<T>(block);
            for (int i = 0; i < N; ++i) store(to + (s + i) * N, block[i]);
        }
    }

    // The channels of a template, mixed by its factors; a few factors at a time.
    void mix(int k) {
        const int count = A.factor_starts[k + 1] - A.factor_starts[k];
        const T *factors = A.mixing + A.mixing_starts[k];
        for (int f = 0; f < count;) {
            const int together = smaller(count - f, count - f == 5 ? 3 : 4);
            T *out = mixed + f * pitch;
            const T *of = factors + int64_t(f) * A.parts(k);
            if (together == 1) mix<1>(k, of, out);
            else if (together == 2) mix<2>(k, of, out);
            else if (together == 3) mix<3>(k, of, out);
            else mix<4>(k, of, out);
            f += together;
        }
    }
    template <int TOGETHER> void mix(int k, const T *factors, T *out) {
        constexpr int M = 8 / (TOGETHER == 3 ? 4 : TOGETHER);
        const int parts = A.parts(k), first = A.part_starts[k];
        for (int64_t t = 0; t < entries * N; t += N * M) {
            Vec<T> sums[TOGETHER][M] = {};
            for (int i = 0; i < parts; ++i) {
                const T *from = row_of(first + i) + t;
                for (int m = 0; m < M; ++m) {
                    const Vec<T> sample = load(from + m * N);
                    for (int f = 0; f < TOGETHER; ++f) sums[f][m] += splat(factors[f * parts + i]) * sample;
                }
            }
            for (int f = 0; f < TOGETHER; ++f)
                for (int m = 0; m < M; ++m) store(out + f * pitch + t + m * N, sums[f][m]);
        }
    }
};

// Calls done(k, r, t, n) once the correlations of template k at n positions from t on of row r are at out(k, r, t).
template <class T, class Out, class Done>
void correlate_all(const Templates<T> &A, const Signal<T> &y, Out out, Done done) {
    const int64_t rows = y.rows - A.height + 1, columns = y.columns - A.width + 1;
    Window<T> window(A, y);
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t t = 0; t < columns; t += TILE<T>) {
            const int64_t n = smaller<int64_t>(TILE<T>, columns - t);
            window.read(r, t, n);
            for (int k = 0; k < A.count; ++k) {
                window.correlate(k, n, out(k, r, t));
                done(k, r, t, n);
            }
        }
}

template <class T> void correlate(const Templates<T> &A, const Signal<T> &y, T *out) {
    const int64_t rows = y.rows - A.height + 1, pitch = up_to_multiple(y.columns - A.width + 1, OVERRUN);
    correlate_all<T>(
        A, y, [=](int k, int64_t r, int64_t t) { return out + (k * rows + r) * pitch + t; },
        [](int, int64_t, int64_t, int64_t) {});
}

}  // namespace
