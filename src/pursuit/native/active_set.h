// The active set of a Lasso in its signed atoms: minimise x'Hx / 2 - g'x over x >= 0.
//
// The s active atoms, which may have weights, are the first members; the others may become active. H is the Gram matrix
// of the members, g = b - H x are their slopes, and `inverse` is M, the inverse of the Gram matrix of the active ones.
// With h = M H_Ai, the combination of active atoms that is nearest to member i, at the squared distance
// p = H_ii - h'H_Ai, the atom enters by
//
//     [ M 0 ]     1  [  h ]
//     [ 0 0 ]  +  -  [ -1 ] [ h' -1 ],
//                 p
//
// and leaves by taking that term away: (h, -1) / p is its row of the inverse, and 1 / p the entry on the diagonal.
#pragma once
#include "candidates.h"
#include "pursuit.h"

namespace {

template <class T> class ActiveSet {
    static constexpr int N = LANES<T>, BLOCK = 4 * N;
    static constexpr T MAX_INVERSE = 1e4;  // of its diagonal, for atoms of norm 1

  public:
    const int width, capacity, stride;  // the most active atoms and members, the entries of a row of a matrix
    int s = 0, members = 0;
    bool ill_conditioned = false;  // whether the inverse is so large that its rounding errors count
    Array<int32_t> atoms;
    Array<bool> excluded;  // members that may not enter any more in this turn
    Array<T> x, g, z, h;   // weights, slopes, the next step, a vector to work with
    Array<T> norms, sign;

    explicit ActiveSet(int width)
        : width(width), capacity(width + MOST_NEW), stride(round_up(capacity, N) | N), atoms(capacity),
          excluded(capacity), x(stride), g(stride), z(stride), h(stride), norms(capacity), sign(capacity),
          image(stride), rest(stride), H(size_t(capacity) * stride), inverse(size_t(capacity) * stride),
          explained(size_t(MOST_NEW) * stride), added(size_t(MOST_NEW) * stride) {}

    void clear() { s = members = 0, ill_conditioned = false; }

    Span<T> gram(int i) { return H.part(size_t(i) * stride, stride); }

    // Sizes of the terms of a residual, that of the signal apart.
    T absolute_sum() const {
        T sum = 0;
        for (int i = 0; i < s; ++i) sum += x[i] * norms[i];
        return sum;
    }

    // z = M g, the way to the minimum over the active atoms, whose slopes before `first` are 0; and how much of it
    // leaves all weights non-negative.
    T find_step(int first) {
        if (ill_conditioned) solve(g, z);
        else multiply(inverse_row(first), g + first, s - first, s, z);
        T step = 1;
        for (int i = 0; i < s; ++i)
            if (!(x[i] + z[i] > 0) && !(x[i] > -step * z[i])) step = x[i] > 0 ? -x[i] / z[i] : 0;
        return step;
    }

    // The slopes after a step along z. Those of active atoms are known, unless the inverse has errors.
    void update_slopes(T step) {
        const int from = ill_conditioned ? 0 : s / N * N;
        multiply(H + from, z, s, members - from, h + from);
        for (int i = 0; i < s; ++i) g[i] = ill_conditioned ? g[i] - step * h[i] : g[i] * (1 - step);
        for (int i = s; i < members; ++i) g[i] -= step * h[i];
    }

    // A step that ends where the first weights are 0: their atoms leave. Where the atom that entered last would at once,
    // it would come back for ever: it is excluded.
    void leave(T step, int &entered) {
        for (int i = s - 1; i >= 0; --i) {
            const bool leaves = !(x[i] + z[i] > 0) && !(x[i] > -step * z[i] * (1 + 4 * EPS<T>));
            x[i] = leaves ? 0 : x[i] + step * z[i];
            if (!leaves) continue;
            if (step == 0 && atoms[i] == entered) excluded[i] = true, entered = -1;
            drop(i);
        }
    }

    // The member from place s on with the largest slope relative to its norm, beyond rounding; -1 if there is none.
    int steepest(T floor) const {
        int found = -1;
        T most = floor;
        for (int i = s; i < members; ++i)
            if (!excluded[i] && g[i] > most * norms[i]) most = g[i] / norms[i], found = i;
        return found;
    }

    // The combination h of the active atoms that is nearest to member i; the squared distance, 0 if that is rounding.
    T distance_square(int i) {
        const Span<T> row = gram(i);
        solve(row, h);
        T sum = norms[i], square = row[i];
        for (int k = 0; k < s; ++k) sum += std::fabs(h[k]) * norms[k], square -= h[k] * (row[k] + rest[k]);
        return square > T(4 * (s + 2)) * EPS<T> * sum * sum ? square : T(0);
    }

    // Member i becomes active; false if it is dependent on the active ones.
    bool enter(int i) {
        const T square = distance_square(i);
        if (square == 0 || s == width) return false;
        exchange(i, s);
        for (int k = 0; k <= s; ++k) inverse_row(s)[k] = inverse_row(k)[s] = 0;
        h[s++] = -1;
        add_square(1 / square, h);
        find_condition();
        return true;
    }

    // Active atom i leaves.
    void drop(int i) {
        const T pivot = inverse_row(i)[i];
        std::memcpy(h, inverse_row(i), s * sizeof(T));
        add_square(-1 / pivot, h);
        exchange(i, --s);
    }

    // The inverse anew, without the rounding errors of atoms that left.
    void invert() {
        const int before = s;
        s = 0, ill_conditioned = false;
        for (int i = 0; i < before; ++i) enter(i);
        for (int i = s; i < before; ++i) remove_weight(i);  // of atoms that are dependent now
    }

    // `share` of member i takes the place of its combination h, which ends the weight of active atom `last`.
    void exchange_weight(int i, int last, T share) {
        for (int k = 0; k < s; ++k) {
            z[k] = -share * h[k];
            x[k] = k == last ? 0 : larger(x[k] + z[k], T(0));
        }
        multiply(H, z, s, members, h);
        for (int k = 0; k < members; ++k) g[k] -= h[k] + share * gram(i)[k];
        x[i] += share;
    }

    void remove_weight(int i) {
        for (int k = 0; k < members; ++k) g[k] += x[i] * gram(i)[k];
        x[i] = 0;
    }

    // The new members that have positive weights v at the minimum over them and the active atoms, these with any sign,
    // become active together; whether there are any.
    //
    // Let B = H_NA, for the new members N. The active atoms explain P = B M of them (`explained`), and minimised over
    // the active weights the problem is min v'Sv / 2 - g_N'v over v >= 0, S = H_NN - P B'. `choose` finds the set I of
    // positive weights and the inverse of S_II. The inverse of the Gram matrix grows by blocks,
    //
    //     [ M + P_I' (1 / S_II) P_I    -P_I' (1 / S_II) ]
    //     [     -(1 / S_II) P_I             1 / S_II    ],
    //
    // in one pass over M. The rows -(1 / S_II) P_I are `added`; they are 0 for members that stay out.
    bool enter_together(T floor) {
        T *const from = inverse, *const products = explained, *const rows = added;
        const T *const B = gram(s);
        const size_t step = stride;
        const int before = s;
        for (int k = 0; k < before; k += N) {
            Vec<T> sums[MOST_NEW] = {};
            for (int i = 0; i < before; ++i) {
                const Vec<T> row = load(from + i * step + k);
                for (int e = 0; e < MOST_NEW; ++e) sums[e] += splat(B[e * step + i]) * row;
            }
            for (int e = 0; e < MOST_NEW; ++e) store(products + e * step + k, sums[e]);
        }
        bool in[MOST_NEW] = {};
        if (!choose(floor, in)) return false;
        for (int k = 0; k < before; k += N) {
            Vec<T> parts[MOST_NEW];
            for (int e = 0; e < MOST_NEW; ++e) parts[e] = load(products + e * step + k);
            for (int e = 0; e < MOST_NEW; ++e) {
                Vec<T> sum{};
                for (int f = 0; f < MOST_NEW; ++f) sum -= splat(pivots[e][f]) * parts[f];
                store(rows + e * step + k, sum);
            }
        }
        for (int k = 0; k < before; k += N) {
            Vec<T> parts[MOST_NEW];
            for (int e = 0; e < MOST_NEW; ++e) parts[e] = load(products + e * step + k);
            for (int i = 0; i < before; ++i) {
                Vec<T> sum = load(from + i * step + k);
                for (int e = 0; e < MOST_NEW; ++e) sum -= splat(rows[e * step + i]) * parts[e];
                store(from + i * step + k, sum);
            }
        }
        for (int e = 0; e < MOST_NEW; ++e) {
            if (!in[e]) continue;
            exchange(before + e, s);
            const Span<T> row = inverse_row(s);
            std::memcpy(row, rows + e * step, before * sizeof(T));
            for (int f = 0, k = before; f <= e; ++f)
                if (in[f]) row[k++] = pivots[e][f];
            for (int k = 0; k < s; ++k) inverse_row(k)[s] = row[k];
            ++s;
        }
        find_condition();
        return true;
    }

  private:
    Array<T> image, rest;  // vectors to work with; `rest` is what `solve` leaves of its right-hand side
    Array<T> H, inverse, explained, added;
    T pivots[MOST_NEW][MOST_NEW];

    Span<T> inverse_row(int i) { return inverse.part(size_t(i) * stride, stride); }

    // out = sum_i factors_i rows_i of a symmetric matrix, for its first `count` columns; a few more are written.
    void multiply(const T *matrix, const T *factors, int terms, int count, T *out) const {
        int k = 0;
        for (; k + BLOCK <= count; k += BLOCK) {
            Vec<T> sums[4] = {};
            for (int i = 0; i < terms; ++i) {
                const T *row = matrix + size_t(i) * stride + k;
                const Vec<T> factor = splat(factors[i]);
                for (int v = 0; v < 4; ++v) sums[v] += factor * load(row + v * N);
            }
            for (int v = 0; v < 4; ++v) store(out + k + v * N, sums[v]);
        }
        for (; k < count; k += N) {
            Vec<T> sum{};
            for (int i = 0; i < terms; ++i) sum += splat(factors[i]) * load(matrix + size_t(i) * stride + k);
            store(out + k, sum);
        }
    }

    // Adds scale v v' to the inverse, for the active atoms; a few more columns are written.
    void add_square(T scale, const T *v) {
        for (int i = 0; i < s; ++i) {
            const Vec<T> factor = splat(scale * v[i]);
            T *row = inverse_row(i);
            for (int k = 0; k < s; k += N) store(row + k, load(row + k) + factor * load(v + k));
        }
    }

    // out = M v, by two steps of iterative refinement if needed; then `rest` = v - H out.
    void solve(const T *v, T *out) {
        multiply(inverse, v, s, s, out);
        for (int k = 0; k < s; ++k) rest[k] = 0;
        for (int turn = 0; turn < 3 && ill_conditioned; ++turn) {
            multiply(H, out, s, s, image);
            for (int k = 0; k < s; ++k) rest[k] = v[k] - image[k];
            if (turn == 2) return;
            multiply(inverse, rest, s, s, image);
            add<T>(out, 1, image, s);
        }
    }

    // The set I of new members with v > 0 at the minimum of v'Sv / 2 - g'v over v >= 0: at it, w = S v - g >= 0 and
    // v'w = 0. Leaves the inverse of S_II in `pivots`, with 0 elsewhere. Whether I has members; nearly dependent ones
    // stay out.
    //
    // Principal pivots: the table holds the equations that give w_a of members that are out and v_a of those that are
    // in, from the v of the former and the w of the latter, which are 0: `q` are the constants (-g at first), `pivots`
    // the coefficients (S at first). Exchanging v_p and w_p solves equation p for the other of the two and puts that
    // into the rest; for all that are in, the coefficients are the inverse of S_II. The member of the least constant
    // changes sides, one that would have a negative weight before all, and that one for good: so this ends.
    bool choose(T floor, bool *in) {
        const int fresh = members - s;
        T q[MOST_NEW];
        T margin[MOST_NEW];  // of slopes over rounding errors; infinite for members that may not enter any more
        for (int a = 0; a < fresh; ++a) {
            q[a] = -g[s + a], margin[a] = floor * norms[s + a];
            for (int b = 0; b <= a; ++b)
                pivots[a][b] = pivots[b][a] = gram(s + a)[s + b] - dot<T>(gram(s + a), explained + b * stride, s);
        }
        int count = 0;
        for (;;) {
            int p = -1;
            T least = 0;
            for (int a = 0; a < fresh; ++a) {
                const T value = in[a] && q[a] < 0 ? -T(INFINITY) : q[a] + margin[a];
                p = value < least ? a : p, least = smaller(value, least);
            }
            if (p < 0) break;
            const T pivot = 1 / pivots[p][p], size = norms[s + p];
            const bool may_enter = pivot > 0 && pivot * size * size < MAX_INVERSE && s + count < width;
            margin[p] = !in[p] && may_enter ? T(0) : T(INFINITY);
            if (!in[p] && !may_enter) continue;
            in[p] = !in[p];
            count += in[p] ? 1 : -1;
            exchange_sides(p, pivot, fresh, q);
        }
        for (int a = 0; a < MOST_NEW; ++a)
            for (int b = 0; b < MOST_NEW; ++b)
                if (!(in[a] && in[b])) pivots[a][b] = 0;
        return count > 0;
    }

    void exchange_sides(int p, T pivot, int fresh, T *q) {
        const T value = q[p];
        for (int a = 0; a < fresh; ++a) {
            if (a == p) continue;
            const T factor = pivots[a][p] * pivot;
            q[a] -= factor * value;
            for (int b = 0; b < MOST_NEW; ++b) pivots[a][b] -= factor * pivots[p][b];
            pivots[a][p] = factor;
        }
        for (int b = 0; b < MOST_NEW; ++b) pivots[p][b] *= -pivot;
        pivots[p][p] = pivot;
        q[p] = -value * pivot;
    }

    void find_condition() {
        for (int k = 0; k < s; ++k) ill_conditioned |= !(inverse_row(k)[k] * norms[k] * norms[k] < MAX_INVERSE);
    }

    void exchange(int i, int k) {
        if (i == k) return;
        swap(atoms[i], atoms[k]), swap(excluded[i], excluded[k]);
        T *vectors[] = {x, g, z, norms, sign};
        for (T *v : vectors) swap(v[i], v[k]);
        for (int t = 0; t < members; ++t) swap(gram(i)[t], gram(k)[t]);
        for (int t = 0; t < members; ++t) swap(gram(t)[i], gram(t)[k]);
        for (int t = 0; t <= s && i < k; ++t)
            swap(inverse_row(i)[t], inverse_row(k)[t]);  // otherwise both are inactive
        for (int t = 0; t <= s && i < k; ++t) swap(inverse_row(t)[i], inverse_row(t)[k]);
    }
};

}  // namespace
