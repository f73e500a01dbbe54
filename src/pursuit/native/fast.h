// Orthogonal matching pursuit and orthogonal least squares over a shared Gram matrix: several signals in step, atoms
// chosen in a cheap number type with an error bound.
//
// The update. After s atoms the correlations are c = A y - sum_i x_i G_i, with G_i the Gram rows of the active atoms. T
// is lower triangular, and T'T the inverse of the Gram matrix of the active atoms. An atom j with Gram entries h enters
// by u = T h, beta = (-T'u, 1) and pivot = G_jj - |u|^2: the next row of T is beta / sqrt(pivot), and the weights move
// by (c_j / pivot) beta. Each of these short sums waits for the one before: so LANES signals go in step, and what is a
// number for one signal is a vector here.
//
// The search finds the largest |c_j| in numbers of type S, 16-bit integers or float32. Let `longest` be at least the
// norm of every atom and mu at least |G_ij| / |a_i| for all i != j.
//
// In 16 bits,
// - atoms are round(ATOM_SCALE a_j / longest), signals round(t y), with t as large as 16 bits and sums of products in
//   32 bits allow. Products of these, exact in 32 bits and rounded to their upper halves, are <y, a_j> in units of
//   2^16 longest / (ATOM_SCALE t).
// - Gram rows are r_ij = round(SHORT_MAX G_ij / (|a_i| longest)), weights q_i = round((2^15 / SHORT_MAX) longest |a_i|
//   x_i / unit), and s active atoms subtract sum_i q_i r_ij / 2^15 units, each term rounded. Partial sums may wrap; the
//   results do not, as no correlation exceeds 99 % of 2^15 units and no error exceeds MAX_LEAD / 2.
// In units, a correlation errs by at most e + (s + 1) / 2 + sum_i (|q_i| / 2 + |e_i| |r_ij|) / 2^15, where the
// quantisation error e = (|a_j - its integers| |y| + longest |y - its integers|) / unit; (s + 1) / 2 is the rounding of
// s terms and of the product; e_i is the rounding of q_i; and the halves are the rounding of r_ij. Let m be the largest
// |r_ij| with i != j; |r_ij| <= SHORT_MAX for the one i that j itself may be. Then a best atom that leads by more than
//
//     2 e + s + 1 + (sum_i |q_i| + 2 m sum_i |e_i| + SHORT_MAX - m) / 2^15
//
// is the best, and is not active (an active atom has correlation 0). A sixteenth more of the last term and a sixteenth
// of a unit cover the rounding of the bound itself.
//
// In float32, with u = 2^-24, <y, a_j> errs by at most e = u (d + 3) longest |y|, and no partial sum of c exceeds
// M = longest |y| + mu sum_i |x_i| |a_i|. Rounding of entries, weights, products and sums moves c by at most u (s + 3)
// M more: a best atom that leads by 2 e + 2 u (s + 4) M is the best.
//
// Orthogonal least squares takes the atom of the largest c_j^2 / v_j, where v_j is the squared norm of the part of a_j
// that is orthogonal to the active atoms. As an atom enters, the sum t of Gram rows weighted by the new row of T
// updates c to c - t c_j / sqrt(pivot), and v to v - t^2, in float32. t errs by at most u (s + 4) mu sum_i |T_si|
// |a_i|; c and v err by the sum of these, times the step and times 2 |a_j|, plus the rounding of every sum: `error_c`
// and `error_v`. So c_j^2 / v_j lies between (|c| - error_c)^2 / (v + error_v) and (|c| + error_c)^2 / (v - error_v).
// The atom with the largest upper bound is the best if its lower bound exceeds the upper bounds of all others.
//
// At most MAX_CLOSE atoms that are closer to one another are compared in full precision. A signal with more of them, or
// with atoms that are nearly dependent, stays unsolved.
#pragma once
#include "pursuit.h"
#include "tables.h"

namespace {

// One thread's work on a tile.
template <class T, class S, bool OLS> class Fast {
    using V = Vec<T>;
    using Index = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
    using I = Vec<Index>;
    using Word = typename Tables<T, S>::Word;
    // the result of a comparison of numbers of type S
    using Flag = std::conditional_t<Tables<T, S>::INT16, int16_t, int32_t>;
    static constexpr bool INT16 = Tables<T, S>::INT16;
    static constexpr int PER_WORD = Tables<T, S>::PER_WORD, BLOCK = Tables<T, S>::BLOCK;
    static constexpr int SIGNALS = LANES<T>, N = LANES<S>;
    static constexpr T CLEAR_PIVOT = sizeof(T) == 8 ? T(1e-3) : T(1) / 300;  // relative to the squared norm of the atom
    static constexpr T MAX_INVERSE = sizeof(T) == 8 ? T(1e4) : T(300);  // of the diagonal of T'T, for atoms of norm 1

    const Tables<T, S> &tables;
    const Dictionary<T> &D;
    const Tile<T> &tile;
    const T noise;  // rounding of a correlation relative to the norms of its factors
    // of a group of signals: their numbers, entries of type S, products with the atoms, 1 / unit, quantisation errors
    Array<int64_t> numbers;
    Array<S> entries, products;
    Array<T> per_unit, quantisation, lengths;
    // of the signals in step, a vector for each active atom
    Array<V> inverse_factor, x, norm, inverse_diagonal, beta, h;
    Array<I> atoms;
    Array<const S *> rows;  // of the tables
    Array<S> q;             // weights; for OLS, the last row of the inverse factor
    // of the signals in step, for all atoms
    Array<S> merits;      // |c|; for OLS, the most that c^2 / v may be
    Array<S> orthogonal;  // v, infinite for active atoms
    Array<T> residual;    // of one signal
    // of the signals in step
    const int64_t *number = nullptr;
    const T *y[SIGNALS];
    Vec<S> best[SIGNALS];  // the largest merit of each lane of columns; for OLS, and where it is
    Vec<Flag> best_at[SIGNALS];
    V length, residual_square, absolute_sum, largest_term, root, step;
    I chosen, going;
    T lead[SIGNALS];
    V move, error_c, error_v;  // OLS: c_j / sqrt(pivot), and the errors of c and v

  public:
    Fast(const Tables<T, S> &tables, const Tile<T> &tile)
        : tables(tables), D(tables.dictionary), tile(tile), noise(T(4 * std::sqrt(T(D.d)) * EPS<T>)),
          numbers(SIGNALS_PER_GROUP), entries(size_t(SIGNALS_PER_GROUP) * PER_WORD * tables.words),
          products(size_t(SIGNALS_PER_GROUP) * tables.columns), per_unit(SIGNALS_PER_GROUP),
          quantisation(SIGNALS_PER_GROUP), lengths(SIGNALS_PER_GROUP),
          inverse_factor(size_t(tile.width) * (tile.width + 1) / 2), x(tile.width), norm(tile.width),
          inverse_diagonal(tile.width), beta(tile.width), h(tile.width), atoms(tile.width),
          rows(size_t(tile.width) * SIGNALS), q(size_t(tile.width) * SIGNALS), merits(size_t(SIGNALS) * tables.columns),
          orthogonal(OLS ? size_t(SIGNALS) * tables.columns : 0), residual(D.d) {}

    // Finds codes of the unsolved signals; gives up once more than half of them were not sure.
    void solve() {
        int64_t tried = 0, unsure = 0;
        for (int64_t next = 0; 2 * unsure <= tried + SIGNALS_PER_GROUP;) {
            int count = 0;
            for (; next < tile.count && count < SIGNALS_PER_GROUP; ++next)
                if (tile.counts[next] == UNSOLVED) numbers[count++] = next;
            if (count == 0) return;
            for (int p = 0; p < SIGNALS_PER_GROUP; ++p) quantise(p < count ? p : count - 1, p);
            multiply();
            for (int p = 0; p < count; p += SIGNALS) unsure += solve_in_step(p, smaller(SIGNALS, count - p));
            tried += count;
        }
    }

  private:
    // A signal in numbers of type S, 1 / unit and its quantisation error.
    void quantise(int number_in_group, int p) {
        const T *from = tile.y + numbers[number_in_group] * D.d, size = std::sqrt(dot(from, from, D.d));
        S *to = entries + size_t(p) * PER_WORD * tables.words;
        T t = 1, rest = 0;
        lengths[p] = size;
        if (INT16)
            t = smaller(T(SIGNAL_NORM) / larger(size, T(1e-30)),
                        T(ATOM_SCALE) / larger(largest_magnitude(from, D.d), T(1e-30)));
#pragma omp simd reduction(+ : rest)
        for (int i = 0; i < D.d; ++i) {
            const T exact = from[i] * t;
            const S near = to[i] = to_search<S>(exact);
            rest += (exact - near) * (exact - near);
        }
        per_unit[p] = t * T(ATOM_SCALE / 65536) / tables.longest;
        const T off = tables.rounded_off;
        quantisation[p] = INT16 ? per_unit[p] * ((tables.longest + off) * std::sqrt(rest) / t + off * size)
                                : T(0x1p-24 * (1 + 1e-6)) * T(D.d + 4) * tables.longest * size;
    }

    // The products of a group of signals with all atoms, SIGNALS_PER_BLOCK signals and ATOMS_PER_STRIP atoms at a time.
    void multiply() {
        for (int j = 0; j < D.n; j += ATOMS_PER_STRIP)
            for (int p = 0; p < SIGNALS_PER_GROUP; p += SIGNALS_PER_BLOCK) {
                const S *strip = tables.strips + size_t(j) * tables.words * PER_WORD;
                const S *signal = entries + size_t(p) * tables.words * PER_WORD;
                Vec<Word> sums[SIGNALS_PER_BLOCK][STRIP_VECTORS];
                for (auto &row : sums)
                    for (auto &sum : row) sum = splat(Word(INT16 ? 1 << 15 : 0));  // rounds the upper half
                for (int i = 0; i < tables.words; ++i) {
                    Vec<Word> a[STRIP_VECTORS];
                    for (int k = 0; k < STRIP_VECTORS; ++k)
                        std::memcpy(&a[k], strip + (i * STRIP_VECTORS + k) * N, VECTOR_BYTES);
#pragma GCC unroll 8
                    for (int r = 0; r < SIGNALS_PER_BLOCK; ++r) {
                        Word word;
                        std::memcpy(&word, signal + (size_t(r) * tables.words + i) * PER_WORD, sizeof word);
                        for (int k = 0; k < STRIP_VECTORS; ++k) sums[r][k] = add_words(sums[r][k], a[k], splat(word));
                    }
                }
                for (int r = 0; r < SIGNALS_PER_BLOCK; ++r)
                    for (int k = 0; k < STRIP_VECTORS; ++k)
                        store_sum(products + size_t(p + r) * tables.columns + j + k * LANES<Word>, sums[r][k]);
            }
    }

    // Codes of `count` signals of the group, from `place` on; how many were not sure.
    int solve_in_step(int place, int count) {
        int unsure = 0;
        number = numbers + place;
        for (int p = 0; p < SIGNALS; ++p) {
            y[p] = tile.y + number[p < count ? p : count - 1] * D.d;
            going[p] = p < count ? -1 : 0;
            chosen[p] = -1;
        }
        length = load(lengths + place);
        residual_square = length * length;
        absolute_sum = largest_term = V{};
        if constexpr (OLS) begin_ols(place);
        for (int s = 0;; ++s) {
            if (s % 16 == 0) check_interrupt(tile.stop);
            bool any = false;
            for (int p = 0; p < count; ++p) {
                if (going[p] && (s == tile.limits[number[p]] || length[p] == 0 || tolerable(p, s))) finish(p, s);
                any |= going[p] != 0;
            }
            if (!any) break;
            if constexpr (!OLS) round_weights(place, s);
            for (int p = 0; p < count; ++p)
                if (going[p]) {
                    if constexpr (OLS) update_gains(place, p, s);
                    else update_correlations(place, p, s);
                }
            for (int p = 0; p < count; ++p) {
                chosen[p] = going[p] ? choose(place, p, s) : -1;
                if (going[p] && chosen[p] < 0) {
                    const bool ends = only_rounding_left(p, s);
                    unsure += !ends;
                    finish(p, ends ? s : UNSOLVED);
                }
            }
            enter(s);
            const V largest_inverse = extend_factor(s);
            if constexpr (OLS) widen_errors(s);
            for (int p = 0; p < count; ++p)
                if (going[p] && (root[p] == 0 || !(largest_inverse[p] <= MAX_INVERSE)))
                    finish(p, root[p] == 0 && only_rounding_left(p, s) ? s : UNSOLVED);
        }
        write(count);
        return unsure;
    }

    void finish(int p, int64_t count) {
        tile.counts[number[p]] = count;
        going[p] = 0;
    }

    // Weights in numbers of type S, and by how much the best atom of each signal must lead.
    void round_weights(int place, int s) {
        const V t = load(per_unit + place) * (tables.longest * T(32768.0 / SHORT_MAX));
        V rounded{};
        for (int k = 0; k < s; ++k) {
            const V exact = INT16 ? t * x[k] * norm[k] : x[k], near = INT16 ? nearest(exact) : exact;
            rounded += magnitude(near - exact);
            for (int p = 0; p < SIGNALS; ++p) q[k * SIGNALS + p] = INT16 ? S(int32_t(near[p])) : S(near[p]);
        }
        V bound = 2 * load(quantisation + place);
        if (INT16) {
            const T m = tables.max_offdiagonal;
            bound += (T(s + 2) + T(1. / 16)) +
                     ((SHORT_MAX - m) + t * absolute_sum + 2 * m * rounded) * T(0x1p-15 * (1 + 1. / 16));
            bound = ((t * largest_term <= T(SHORT_MAX)) & (bound <= T(MAX_LEAD))) ? bound : splat(T(2 * SHORT_MAX));
        } else bound += T(0x1p-23 * (1 + 1e-6)) * T(s + 4) * (tables.longest * length + tables.mu * absolute_sum);
        for (int p = 0; p < SIGNALS; ++p) lead[p] = INT16 ? T(int(bound[p])) : bound[p];
    }

    // OMP: magnitudes of the correlations of a signal, and a vector of the largest.
    void update_correlations(int place, int p, int s) {
        const S *start = products + size_t(place + p) * tables.columns;
        S *out = merits + size_t(p) * tables.columns;
        Vec<S> top{};
        for (int j = 0; j < tables.columns; j += BLOCK) {
            Vec<S> c[4];
            for (int v = 0; v < 4; ++v) c[v] = load(start + j + v * N);
            for (int k = 0; k < s; ++k) {
                const S *row = rows[k * SIGNALS + p] + j;
                const Vec<S> weight = splat(q[k * SIGNALS + p]);
                for (int v = 0; v < 4; ++v) c[v] = subtract_product(c[v], load(row + v * N), weight);
            }
            for (int v = 0; v < 4; ++v) {
                c[v] = magnitude(c[v]);
                store(out + j + v * N, c[v]);
                top = larger(top, c[v]);
            }
        }
        best[p] = top;
    }

    // OLS, before the first atom.
    void begin_ols(int place) {
        for (int p = 0; p < SIGNALS; ++p)
            std::memcpy(orthogonal + size_t(p) * tables.columns, tables.squares, tables.columns * sizeof(float));
        error_c = load(quantisation + place);
        error_v = splat(T(0x1p-23) * tables.longest * tables.longest);
    }

    // OLS: correlations and orthogonal parts after the last atom; the most that c^2 / v may be, for each atom, and a
    // vector of the largest.
    void update_gains(int place, int p, int s) {
        S *c = products + size_t(place + p) * tables.columns, *v = orthogonal + size_t(p) * tables.columns;
        S *out = merits + size_t(p) * tables.columns;
        if (s > 0) v[atoms[s - 1][p]] = S(INFINITY);
        const Vec<S> last_step = splat(S(s > 0 ? move[p] : 0)), error_of_c = splat(S(error_c[p])),
                     error_of_v = splat(S(error_v[p]));
        Vec<S> top{};
        Vec<Flag> where{};
        for (int j = 0; j < tables.columns; j += BLOCK) {
            Vec<S> t[4] = {};
            for (int k = 0; k < s; ++k) {
                const S *row = rows[k * SIGNALS + p] + j;
                const Vec<S> weight = splat(q[k * SIGNALS + p]);
                for (int e = 0; e < 4; ++e) t[e] += load(row + e * N) * weight;
            }
            for (int e = 0; e < 4; ++e) {
                const int at = j + e * N;
                const Vec<S> now = load(c + at) - last_step * t[e], rest = load(v + at) - t[e] * t[e];
                store(c + at, now);
                store(v + at, rest);
                const Vec<S> most = magnitude(now) + error_of_c, least_v = rest - error_of_v;
                const Vec<S> merit = least_v > 0 ? most * most / least_v : splat(S(INFINITY));
                store(out + at, merit);
                where = merit > top ? splat(Flag(at)) : where;
                top = larger(top, merit);
            }
        }
        best[p] = top;
        best_at[p] = where;
    }

    // OLS: the last row of the inverse factor, and the errors of what it changes.
    void widen_errors(int s) {
        const V *t = inverse_factor + s * (s + 1) / 2;
        V sum{};
        for (int k = 0; k <= s; ++k) {
            sum += magnitude(t[k]) * norm[k];
            for (int p = 0; p < SIGNALS; ++p) q[k * SIGNALS + p] = S(t[k][p]);
        }
        const T tick = T(0x1p-23) * tables.longest;
        const V entry = T(0x1p-23) * T(s + 4) * tables.mu * sum;
        move = root > 0 ? step / root : V{};
        error_c += magnitude(move) * (entry + tick) + tick * length;
        error_v += (2 * tables.longest + entry) * entry + tick * tables.longest;
    }

    // The atom of the largest merit; -1 where that is not clear.
    Index choose(int place, int p, int s) {
        const S *mine = merits + size_t(p) * tables.columns;
        const S top = largest<S>(best[p]);
        const Vec<S> low = splat(OLS ? least_gain(place, p, top) : S(larger(T(top) - lead[p], T(-1))));
        Vec<Flag> hits{}, where{};
        for (int j = 0; j < tables.columns; j += N) {
            const Vec<Flag> is = load(mine + j) > low;
            hits -= is;
            where = is ? splat(Flag(j / N)) : where;
        }
        const uint64_t lanes = bits_above(hits, Vec<Flag>{});
        if (lanes == 0) return -1;
        const int lane = __builtin_ctzll(lanes);
        if ((lanes & (lanes - 1)) == 0 && hits[lane] == 1) return where[lane] * N + lane;  // the only one
        int close[MAX_CLOSE], count = 0;
        for (int j = 0; j < tables.columns; j += N)  // floats that are not negative compare as integers
            for (uint64_t some = bits_above((Vec<Flag>)load(mine + j), (Vec<Flag>)low); some; some &= some - 1) {
                if (count == MAX_CLOSE) return -1;
                close[count++] = j + __builtin_ctzll(some);
            }
        return compare(close, count, p, s);
    }

    // OLS: the least that c^2 / v may be of the atom for which it may be `top`; 0 where v is not known at all.
    S least_gain(int place, int p, S top) const {
        const int lane = __builtin_ctzll(bits_above(Vec<Flag>{}, best[p] == splat(top)));
        const size_t j = best_at[p][lane] + lane;
        const S size = S(std::fabs(products[size_t(place + p) * tables.columns + j])) - S(error_c[p]);
        const S v = orthogonal[size_t(p) * tables.columns + j] + S(error_v[p]);
        return top < S(INFINITY) && size > 0 ? size * size / v * S(1 - 1e-5) : 0;
    }

    // The atom of the largest merit in full precision, the first of equal ones (whose Gram entries may differ in their
    // last bits).
    Index compare(const int *close, int count, int p, int s) {
        Index found = -1;
        T most = 0;
        for (int e = 0; e < count; ++e) {
            const int j = close[e];
            if (j >= D.n || (OLS && orthogonal[size_t(p) * tables.columns + j] == S(INFINITY))) continue;
            const T *row = D.gram_row(j);
            T c = dot(D.atom(j), y[p], D.d);
            for (int i = 0; i < s; ++i) c -= x[i][p] * row[atoms[i][p]];
            T merit = std::fabs(c);
            if constexpr (OLS) {
                T v = row[j];
                const V *t = inverse_factor;
                for (int i = 0; i < s; t += ++i) {
                    T u = 0;
                    for (int k = 0; k <= i; ++k) u += t[k][p] * row[atoms[k][p]];
                    v -= u * u;
                }
                if (!(v > T(16 * (s + 4)) * EPS<T> * row[j])) continue;  // dependent on the active atoms
                merit /= std::sqrt(v);
            }
            if (merit > most) found = j, most = merit;
        }
        for (int e = 0; e < count && close[e] < found; ++e)
            if (same_atom(D, close[e], int(found))) return close[e];
        return found;
    }

    // The chosen atoms enter; `step` and `root` are 0 where there is none, or where it is not clear of the others.
    void enter(int s) {
        const I there = chosen >= 0;
        atoms[s] = there ? chosen : I{};
        const T *gram[SIGNALS], *column[SIGNALS];
        for (int p = 0; p < SIGNALS; ++p) {
            const size_t j = size_t(atoms[s][p]);
            gram[p] = D.gram_row(int(j)), column[p] = D.atom(int(j));
            rows[s * SIGNALS + p] = tables.rows + j * tables.stride;
            norm[s][p] = D.norms[j];
            for (int i = 0; i <= s && tables.prefetch; ++i) __builtin_prefetch(gram[p] + atoms[i][p], 0, 2);
        }
        V c = collected<T>([&](int p) { return dot(column[p], y[p], D.d); });
        for (int i = 0; i <= s; ++i) h[i] = collected<T>([&](int p) { return gram[p][atoms[i][p]]; });
        V pivot = h[s], *t = inverse_factor;
        for (int i = 0; i < s; t += ++i) {
            V u = t[i] * h[i];
            for (int k = 0; k < i; ++k) u += t[k] * h[k];
            for (int k = 0; k < i; ++k) beta[k] -= t[k] * u;
            beta[i] = -t[i] * u;
            pivot -= u * u;
            c -= h[i] * x[i];
        }
        beta[s] = splat(T(1));
        const V floor = noise * (length + absolute_sum) * norm[s];
        const I good = there & (pivot > CLEAR_PIVOT * h[s]) & (magnitude(c) > floor);
        const V r = T(1) / square_root<T>(pivot);
        root = good ? r : V{};
        step = good ? c * r * r : V{};
        residual_square -= good ? c * c * r * r : V{};
    }

    // The next row of the inverse factor, and the weights; the largest diagonal entry of T'T, for atoms of norm 1.
    V extend_factor(int s) {
        V *t = inverse_factor + s * (s + 1) / 2, most{};
        x[s] = inverse_diagonal[s] = absolute_sum = largest_term = V{};
        for (int k = 0; k <= s; ++k) {
            t[k] = root * beta[k];
            x[k] += step * beta[k];
            inverse_diagonal[k] += t[k] * t[k];
            const V term = magnitude(x[k]) * norm[k];
            absolute_sum += term;
            largest_term = larger(largest_term, term);
            most = larger(most, inverse_diagonal[k] * norm[k] * norm[k]);
        }
        return most;
    }

    // The residual of one signal, and its norm.
    T residual_norm(int p, int s) {
        std::memcpy(residual, y[p], D.d * sizeof(T));
        for (int k = 0; k < s; ++k) add<T>(residual, -x[k][p], D.atom(int(atoms[k][p])), D.d);
        return std::sqrt(dot<T>(residual, residual, D.d));
    }

    bool only_rounding_left(int p, int s) { return residual_norm(p, s) <= noise * (length[p] + absolute_sum[p]); }

    // Whether the residual is small enough. It is formed where its norm, as kept up to date, does not decide.
    bool tolerable(int p, int s) {
        const T tol = tile.tols[number[p]];
        if (tol < 0) return false;
        const T size = length[p] + absolute_sum[p], goal = tol * tol, doubt = T(16 * (s + 4)) * EPS<T> * size * size;
        return residual_square[p] < goal - doubt || (residual_square[p] <= goal + doubt && residual_norm(p, s) <= tol);
    }

    // The codes, atoms in increasing order.
    void write(int count) {
        I lengths{};
        int64_t most = 0;
        for (int p = 0; p < count; ++p) {
            lengths[p] = Index(tile.counts[number[p]]);
            most = larger(most, tile.counts[number[p]]);
        }
        for (int i = 0; i < most; ++i) {
            I place{};
            for (int k = 0; k < most; ++k) place -= (atoms[k] < atoms[i]) & (splat(Index(k)) < lengths);
            for (int p = 0; p < count; ++p)
                if (i < lengths[p]) {
                    tile.atoms[number[p] * tile.width + place[p]] = int32_t(atoms[i][p]);
                    tile.x[number[p] * tile.width + place[p]] = x[i][p];
                }
        }
    }
};

// The tables, and the pursuits of any tile over them.
template <class T, class S, bool OLS> class FastOver final : public FastPursuits<T> {
    const Tables<T, S> tables;

  public:
    explicit FastOver(const Dictionary<T> &D) : tables(D) {}
    void solve(const Tile<T> &tile) const override { Fast<T, S, OLS>(tables, tile).solve(); }
};

}  // namespace
