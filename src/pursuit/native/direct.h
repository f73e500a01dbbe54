// Pursuits from the residuals themselves, all signals of a tile in step: for weights, few signals and many atoms.
//
// With weights every signal has its own inner product, hence its own Gram matrix, of which only entries between active
// atoms are formed. In a turn the caller multiplies the `vectors` of all signals by the dictionary, one matrix product
// for the tile, and hands the products back to `advance`.
#pragma once
#include "pursuit.h"

namespace {

constexpr int REFRESH = 64;  // turns after which OLS computes correlations anew that it kept up to date till then

template <class T> class Direct {
    const Dictionary<T> D;
    const Tile<T> tile;
    const Method method;
    const int64_t signals;
    Array<Pursuit<T> *> pursuits;
    Array<T> c, key;  // OLS: correlations, kept up to date; room for `best`
    Array<int64_t> numbers;
    Array<bool> renews;  // OLS: whether the correlations of a signal are computed anew in this turn

  public:
    Direct(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t norms_stride)
        : D(D), tile(tile), method(method), signals(unsolved(tile)), pursuits(signals),
          c(method == Method::ols ? size_t(signals) * D.n : 0), key(D.n), numbers(signals), renews(signals) {
        int64_t p = 0;
        for (int64_t number = 0; number < tile.count; ++number) {
            if (tile.counts[number] != UNSOLVED) continue;
            pursuits[p] = new Pursuit<T>(D, tile, method);
            pursuits[p]->begin(tile, number, norms + number * norms_stride);
            if (pursuits[p]->over) pursuits[p]->finish(tile, number);
            numbers[p++] = number;
        }
    }
    ~Direct() {
        for (int64_t p = 0; p < signals; ++p) delete pursuits[p];
    }

    // What is to be multiplied by the dictionary, weights included: residuals and, of OLS, last directions. How many: at
    // most two for each signal.
    int64_t vectors(T *out) {
        int64_t count = 0;
        for (int64_t p = 0; p < signals; ++p) {
            const Pursuit<T> &P = *pursuits[p];
            if (P.over) continue;
            renews[p] = method != Method::ols || P.turns % REFRESH == 0 || P.ill_conditioned();
            T *const first = out + count * D.d;
            if (has_direction(P)) {
                T *q = out + count++ * D.d;
                std::memset(q, 0, D.d * sizeof(T));
                for (int i = 0; i < P.s; ++i) add<T>(q, P.u[i], P.columns[i], D.d);
            }
            if (renews[p]) std::memcpy(out + count++ * D.d, P.residual, D.d * sizeof(T));
            for (T *v = first; P.w && v < out + count * D.d; v += D.d)
                for (int i = 0; i < D.d; ++i) v[i] *= P.w[i];
        }
        return count;
    }

    // One turn of every signal, from the products of its vector.
    void advance(T *products) {
        for (int64_t p = 0; p < signals; ++p) {
            Pursuit<T> &P = *pursuits[p];
            if (P.over) continue;
            T *correlations = method == Method::ols ? c + p * D.n : products;
            if (has_direction(P)) {
                P.remove_direction(products, correlations);
                products += D.n;
            }
            if (renews[p]) {
                if (method == Method::ols) std::memcpy(correlations, products, D.n * sizeof(T));
                products += D.n;
            }
            P.over = !turn(P, correlations);
            if (P.over) P.finish(tile, numbers[p]);
        }
    }

  private:
    static int64_t unsolved(const Tile<T> &tile) {
        int64_t count = 0;
        for (int64_t number = 0; number < tile.count; ++number) count += tile.counts[number] == UNSOLVED;
        return count;
    }

    bool has_direction(const Pursuit<T> &P) const { return method == Method::ols && P.s > 0; }

    // False at the end.
    bool turn(Pursuit<T> &P, const T *correlations) {
        for (;;) {
            if (P.limit_reached() || (P.tol >= 0 && P.residual_norm() <= P.tol)) return false;
            const int j = P.best(correlations, key);
            if (j < 0) return false;
            const T *column = P.entries(D, j);
            if (method == Method::mp) {
                if (!P.match(j, column, correlations[j])) return false;
                break;
            }
            const auto gram = [&](int k) { return inner(P.w, k < P.s ? P.columns[k] : column, column, D.d); };
            const T correlation = inner<T>(P.w, column, P.residual, D.d);
            if (P.enter(j, column, correlation, inner(P.w, column, P.y, D.d), gram)) break;
        }
        P.residual_norm();
        return true;
    }
};

}  // namespace
