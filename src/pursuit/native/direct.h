// Pursuits from the residuals themselves, all signals of a tile in step: for weighted signals, few signals, many atoms.
//
// With weights every signal has its own inner product, hence its own Gram matrix, of which only entries between active
// atoms are formed. In a turn the caller multiplies the `vectors` of all signals by the dictionary, one matrix product
// for the tile, and hands the products back to `advance`.
#pragma once
#include "pursuit.h"

namespace {

constexpr int REFRESH = 64;  // turns after which OLS computes correlations anew that it kept up to date till then

template <class T> class Direct final : public DirectPursuits<T> {
    const Dictionary<T> D;
    const Tile<T> tile;
    const Method method;
    int64_t signals = 0;
    Array<Pursuit<T> *> pursuits;
    Array<int64_t> numbers;
    Array<T> c, key;     // OLS: correlations, kept up to date; room for `best`
    Array<bool> recomputes;  // whether the correlations of a signal are computed from its residual in this turn

  public:
    Direct(const Dictionary<T> &D, Method method, const Tile<T> &tile, const T *norms, int64_t norms_stride)
        : D(D), tile(tile), method(method), pursuits(tile.count), numbers(tile.count),
          c(method == Method::ols ? size_t(tile.count) * D.n : 0), key(D.n), recomputes(tile.count) {
        for (int64_t number = 0; number < tile.count; ++number) {
            if (tile.counts[number] != UNSOLVED) continue;
            Pursuit<T> &P = *(pursuits[signals] = new Pursuit<T>(D, tile, method));
            numbers[signals++] = number;
            P.begin(tile, number, tile.y + number * D.d, norms + number * norms_stride);
            if (P.done) P.finish(tile, number);
        }
    }
    void destroy() override {
        for (int64_t p = 0; p < signals; ++p) delete pursuits[p];
        delete this;
    }

    // Writes the vectors that are to be multiplied by the dictionary, weights included: residuals and, of OLS, last
    // directions. Returns how many there are, at most two for each signal.
    int64_t vectors(T *out) override {
        T *to = out;
        for (int64_t p = 0; p < signals; ++p) {
            const Pursuit<T> &P = *pursuits[p];
            if (P.done) continue;
            recomputes[p] = method != Method::ols || P.turns % REFRESH == 0 || P.delicate;
            T *weighted = to;
            if (has_direction(P)) P.direction(to), to += D.d;
            if (recomputes[p]) std::memcpy(to, P.residual, D.d * sizeof(T)), to += D.d;
            for (; P.w && weighted < to; weighted += D.d)
                for (int i = 0; i < D.d; ++i) weighted[i] *= P.w[i];
        }
        return (to - out) / D.d;
    }

    // One turn of every signal, from the products of its vectors.
    void advance(T *products) override {
        for (int64_t p = 0; p < signals; ++p) {
            Pursuit<T> &P = *pursuits[p];
            if (P.done) continue;
            T *correlations = method == Method::ols ? c + p * D.n : products;
            if (has_direction(P)) P.remove_direction(products, correlations), products += D.n;
            if (recomputes[p]) {
                if (method == Method::ols) std::memcpy(correlations, products, D.n * sizeof(T));
                products += D.n;
            }
            P.done = !turn(P, correlations);
            if (P.done) P.finish(tile, numbers[p]);
        }
    }

  private:
    bool has_direction(const Pursuit<T> &P) const { return method == Method::ols && P.s > 0; }

    // One turn of one signal; false when it has ended.
    bool turn(Pursuit<T> &P, const T *correlations) {
        for (;;) {
            if (P.limit_reached() || (P.tol >= 0 && P.residual_norm() <= P.tol)) return false;
            const int j = P.best(D, correlations, key);
            if (j < 0) return false;
            const T *column = P.entries(D, j);
            if (method == Method::mp ? P.match(j, column, correlations[j]) : P.enter(j, column)) break;
            if (method == Method::mp) return false;
        }
        const T size = P.residual_norm();
        P.delicate = P.ill_conditioned() || size <= 1024 * P.noise * P.absolute_sum();
        if (P.delicate && (method == Method::omp || method == Method::ols)) P.refine(), P.residual_norm();
        return true;
    }
};

}  // namespace
