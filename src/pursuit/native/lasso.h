// The Lasso of one signal, min |y - Dx|^2 / 2 + penalty |x|_1, over all x or over x >= 0; with penalty 0 and x >= 0 it
// is non-negative least squares. An active-set method in full precision.
//
// An atom enters with the sign of its correlation. In the signed atoms the weights are non-negative, and the problem is
// to minimise x'Hx / 2 - g'x over x >= 0, with the slopes g = sign <a, r> - penalty: at the minimum, slopes of active
// atoms are 0 and no other atom, with either sign, has a positive slope.
//
// A turn is given the correlations of all atoms with the residual. The few atoms of the largest slopes (candidates.h)
// become members, beside the active ones (active_set.h). First all of them enter together that have positive weights at
// the minimum over the members where active atoms may have any sign: nearly always, that is the minimum over all
// members. The method of Lawson and Hanson goes on from there to that minimum. Slopes of active atoms that are not 0 at
// the beginning of a turn are rounding errors, which its first step corrects.
//
// An atom that depends on the active ones, a = sum_i beta_i a_i, lowers |x|_1 and leaves the residual as it is where it
// takes the place of its combination: until the first of the active weights is 0, and that atom leaves.
#pragma once
#include "active_set.h"

namespace {

template <class T> class Lasso {
    static constexpr int MAX_CORRECTIONS = 4;

    const Dictionary<T> &D;
    const Tile<T> &tile;
    const int d, n;
    const bool positive;
    const T noise;  // rounding of a correlation relative to the norms of its factors
    const T *y = nullptr, *w = nullptr;
    T penalty = 0, length = 0;
    int turns = 0, corrections = 0;  // corrections: turns without new members
    Array<T> candidate_norms;        // infinite for members, and for those that are not tried again
    Array<T> signed_x;               // the weights of the atoms themselves
    Array<T> residual;
    ActiveSet<T> A;

  public:
    bool done = false;

    Lasso(const Dictionary<T> &D, Method method, const Tile<T> &tile)
        : D(D), tile(tile), d(D.d), n(D.n), positive(method == Method::positive_lasso),
          noise(T(4 * std::sqrt(T(d)) * EPS<T>)), candidate_norms(n), signed_x(tile.width), residual(d), A(tile.width) {
    }

    void begin(int64_t number, const T *all_norms) {
        y = tile.y + number * d;
        w = tile.weights ? tile.weights + number * d : nullptr;
        penalty = tile.penalties[number];
        length = std::sqrt(inner<T>(w, y, y, d));
        turns = corrections = 0;
        A.clear();
        done = length == 0;
        std::memcpy(candidate_norms, all_norms, n * sizeof(T));
        std::memcpy(residual, y, d * sizeof(T));
    }

    // One turn, from the correlations c at the present weights; false at the minimum. `slopes` has room for n numbers,
    // and 64 zeros behind them.
    bool turn(const T *c, T *slopes) {
        const T floor = noise * (length + A.absolute_sum());
        bool settled = true;
        for (int i = 0; i < A.s; ++i) {
            A.g[i] = A.sign[i] * c[A.atoms[i]] - penalty;
            settled &= std::fabs(A.g[i]) <= floor * A.norms[i];
        }
        add_candidates(c, slopes, floor);
        if (A.members == A.s && (settled || corrections++ == MAX_CORRECTIONS)) return false;
        if (turns++ == 64 + 2 * tile.width) return false;
        if (A.ill_conditioned) A.invert();
        const bool moved = minimise(floor) || !settled;
        for (int i = A.s; i < A.members; ++i)
            if (moved) candidate_norms[A.atoms[i]] = A.norms[i];  // otherwise they are not tried again
        for (int i = 0; i < A.s; ++i) signed_x[i] = A.sign[i] * A.x[i];
        A.members = A.s;
        return moved;
    }

    // Correlations at the weights, from those of the signal and a Gram matrix.
    void correlate(const T *products, T *c) const {
        combine<T>(1, products, signed_x, [&](int i) { return D.gram_row(A.atoms[i]); }, A.s, n, c);
    }

    // For InStep (direct.h): the vector that is to be multiplied by the dictionary, and a turn from the products.
    T *vectors(T *to) {
        std::memcpy(to, residual, d * sizeof(T));
        return weighted(w, to, d);
    }
    T *advance(T *products, T *slopes) {
        done = !turn(products, slopes);
        if (!done) combine<T>(1, y, signed_x, [&](int i) { return D.atom(A.atoms[i]); }, A.s, d, residual);
        return products + n;
    }

    void finish(int64_t number) const { write_code(tile, number, A.atoms.data(), signed_x.data(), A.s); }

  private:
    // The atoms of the largest slopes beyond rounding become members.
    void add_candidates(const T *c, T *slopes, T floor) {
        const T *const f = candidate_norms;
        const T limit = penalty;
        if (positive) {
#pragma omp simd
            for (int j = 0; j < n; ++j) slopes[j] = c[j] - limit > floor * f[j] ? c[j] - limit : T(0);
        } else {
#pragma omp simd
            for (int j = 0; j < n; ++j) {
                const T slope = std::fabs(c[j]) - limit;
                slopes[j] = slope > floor * f[j] ? slope : T(0);
            }
        }
        A.members = A.s + find_steepest(slopes, n, A.atoms + A.s);
        for (int i = A.s; i < A.members; ++i) {
            const int j = A.atoms[i];
            A.sign[i] = c[j] < 0 ? T(-1) : T(1);
            A.g[i] = slopes[j], A.x[i] = 0, A.norms[i] = f[j], A.excluded[i] = false;
            const T *const all = D.gram ? D.gram_row(j) : nullptr;
            for (int k = 0; k <= i; ++k) {
                const T product = all ? all[A.atoms[k]] : inner<T>(w, D.atom(j), D.atom(A.atoms[k]), d);
                A.gram(k)[i] = A.gram(i)[k] = A.sign[i] * A.sign[k] * product;
            }
        }
        for (int i = A.s; i < A.members; ++i) candidate_norms[A.atoms[i]] = T(INFINITY);
    }

    // The method of Lawson and Hanson over the members; whether an atom entered.
    bool minimise(T floor) {
        bool moved = false;
        int first = 0;  // the active atoms before this one have slope 0
        const int fresh = A.members - A.s;
        // more than MOST_NEW where `invert` has dropped dependent atoms: one by one, then
        const bool together = !A.ill_conditioned && fresh > 0 && fresh <= MOST_NEW && A.enter_together(floor);
        int entered = together ? A.atoms[A.s - 1] : -1;  // the last atom that entered
        for (int turn = 0, most = 3 * A.members + 9; turn < most; ++turn) {
            const T step = A.find_step(first);
            if (step > 0) {
                moved |= entered >= 0;
                A.update_slopes(step);
            }
            if (step < 1) {
                A.leave(step, entered);
                if (A.ill_conditioned) A.invert();
                first = 0;
                continue;
            }
            add<T>(A.x, 1, A.z, A.s);
            first = A.s;
            const int found = A.steepest(floor);
            if (found < 0) break;
            const int j = A.atoms[found];
            if (A.enter(found)) entered = j;
            else if (first = 0, replace(found)) entered = j;
            else A.excluded[found] = true;
        }
        return moved;
    }

    // Member i, which depends on the active atoms, takes the place of as much of its combination as it can; the atom
    // whose weight becomes 0 leaves. False if there is no such atom.
    bool replace(int i) {
        do {
            int first = -1;
            T share = 0;
            A.distance_square(i);
            for (int k = 0; k < A.s; ++k)
                if (A.h[k] > 64 * EPS<T> * A.norms[i] / A.norms[k] && (first < 0 || A.x[k] < share * A.h[k]))
                    share = A.x[k] / A.h[k], first = k;
            if (first < 0) {
                A.remove_weight(i);
                return false;
            }
            A.exchange_weight(i, first, share);
            A.drop(first);
            if (A.ill_conditioned) A.invert();
        } while (!A.enter(i));
        return true;
    }
};

// The signals of one tile over a shared Gram matrix, one after the other; `products` as in `careful`.
template <class T> void lasso(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *products) {
    Lasso<T> P(D, method, tile);
    Array<T> c(D.n), slopes(D.n + 64);
    int turns = 0;
    for (int64_t number = 0; number < tile.count; ++number) {
        if (tile.counts[number] != UNSOLVED) continue;
        P.begin(number, D.norms);
        for (const T *present = products; !P.done && P.turn(present, slopes); present = c) {
            if (turns++ % 16 == 0) check_interrupt(tile.stop);
            P.correlate(products, c);
        }
        P.finish(number);
        products += D.n;
    }
}

}  // namespace
