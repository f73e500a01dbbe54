// Coordinate descent for a quadratic model of a loss, with a price on the norm of each block of coefficients.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

// Lowers <g, s> + <s, h s> / 2 + sum_k (prices_k |b_k| + ridges_k |b_k|^2 / 2), s being the change of X b, which is
// added to `along`. On entry v is g, the gradient at b; on return it is that of the model. Passes over all blocks and
// over those in use take turns until one is worth at most `tol`; the number of passes is returned.
int descend(const PricedColumns &X, const double *h, double tol, int most, double *v, double *b, double *along) {
    const auto each_entry = [&](int64_t at, auto act) {
        const int64_t j = X.columns[at];
        if (j == X.width)
            for (int i = 0; i < X.rows; ++i) act(i, 1.0);
        else if (X.indices)
            for (int64_t e = X.pointers[j]; e < X.pointers[j + 1]; ++e) act(X.indices[e], X.values[e]);
        else
            for (int i = 0; i < X.rows; ++i) act(i, X.values[j * X.rows + i]);
    };
    const auto product = [&](int64_t at, const double *w) {
        if (!X.indices && X.columns[at] < X.width) return dot(X.values + X.columns[at] * X.rows, w, X.rows);
        double sum = 0;
        each_entry(at, [&](int i, double x) { sum += x * w[i]; });
        return sum;
    };
    const int64_t *starts = X.starts, total = starts[X.count];
    Array<int64_t> place(X.count + 1);  // of the Hessian of a block
    int64_t widest = 1;
    for (int64_t k = 0; k < X.count; ++k) {
        const int64_t m = starts[k + 1] - starts[k];
        place[k + 1] = place[k] + m * m, widest = larger(widest, m);
    }
    Array<double> hessian(place[X.count]), steepest(X.count), t(larger(int64_t(X.rows), widest)), before(total),
        slope(widest), next(widest);
    std::memcpy(before, b, total * sizeof(double));
    for (int64_t k = 0; k < X.count; ++k) {
        const int64_t first = starts[k], m = starts[k + 1] - first;
        double *H = hessian + place[k], squares = 0;
        for (int64_t a = 0; a < m; ++a) {
            if (m == 1) {
                each_entry(first, [&](int i, double x) { H[0] += h[i] * x * x; });
            } else {
                std::memset(t, 0, X.rows * sizeof(double));
                each_entry(first + a, [&](int i, double x) { t[i] = h[i] * x; });
                for (int64_t c = 0; c <= a; ++c) H[a * m + c] = H[c * m + a] = product(first + c, t);
            }
            H[a * m + a] += X.ridges[k];
        }
        for (int64_t e = 0; e < m * m; ++e) squares += H[e] * H[e];
        steepest[k] = std::sqrt(squares);  // no direction has a larger curvature
    }
    int pass = 0;
    for (bool all = true; pass < most; ++pass) {
        double worth = 0;
        for (int64_t k = 0; k < X.count; ++k) {
            const int64_t first = starts[k], m = starts[k + 1] - first;
            const double *H = hessian + place[k], L = steepest[k];
            bool zero = true;
            for (int64_t a = 0; a < m; ++a) zero &= b[first + a] == 0.0;
            if (!(L > 0) || (!all && zero && X.prices[k] > 0)) continue;
            for (int64_t a = 0; a < m; ++a) {
                slope[a] = product(first + a, v) + X.ridges[k] * b[first + a];
                next[a] = b[first + a];
            }
            double gained = 0;
            for (int turn = 0; turn < (m == 1 ? 1 : 50); ++turn) {  // proximal steps within the block
                double norm = 0, change = 0;
                for (int64_t a = 0; a < m; ++a) t[a] = next[a] - slope[a] / L, norm += t[a] * t[a];
                norm = std::sqrt(norm);
                const double kept = norm * L > X.prices[k] ? 1 - X.prices[k] / (norm * L) : 0.0;
                for (int64_t a = 0; a < m; ++a) {
                    const double step = kept * t[a] - next[a];
                    next[a] += t[a] = step, change += step * step;
                }
                for (int64_t a = 0; a < m; ++a) slope[a] += dot(H + a * m, t.data(), int(m));
                gained += change * L;
                if (change * L <= 1e-3 * gained) break;
            }
            worth += gained;
            for (int64_t a = 0; a < m; ++a)
                if (const double step = next[a] - b[first + a]; step != 0)
                    each_entry(first + a, [&](int i, double x) { v[i] += step * h[i] * x; });
            std::memcpy(b + first, next, m * sizeof(double));
        }
        if (worth <= tol && all) break;
        all = worth <= tol || pass % 20 == 19;
    }
    for (int64_t at = 0; at < total; ++at)
        if (const double step = b[at] - before[at]; step != 0)
            each_entry(at, [&](int i, double x) { along[i] += step * x; });
    return pass;
}

}  // namespace
