// Coordinate descent for a quadratic model of a loss, with a price on the size of each coefficient.
#pragma once
#include "kernels.h"
#include "simd.h"

namespace {

// Lowers sum_i s_i h_i (s_i / 2 + g_i / h_i) + sum_j (prices_j |b_j| + ridges_j b_j^2 / 2), s being the change of X b.
// On entry v is g, the gradient at b; on return it is that of the model. Passes over all columns and over those in use
// take turns until no step is worth more than `tol`; the number of passes is returned.
int descend(const PricedColumns &X, const double *h, double tol, int most, double *v, double *b) {
    const auto each_entry = [&](int64_t j, auto act) {
        if (X.indices)
            for (int64_t e = X.pointers[j]; e < X.pointers[j + 1]; ++e) act(X.indices[e], X.values[e]);
        else
            for (int i = 0; i < X.rows; ++i) act(i, X.values[j * X.rows + i]);
    };
    Array<double> curvature(X.count);
    for (int64_t j = 0; j < X.count; ++j) {
        double sum = X.ridges[j];
        each_entry(j, [&](int i, double x) { sum += h[i] * x * x; });
        curvature[j] = sum;
    }
    int pass = 0;
    for (bool all = true; pass < most; ++pass) {
        double largest = 0;
        for (int64_t j = 0; j < X.count; ++j) {
            if (!(curvature[j] > 0) || (!all && b[j] == 0.0)) continue;
            double slope = X.ridges[j] * b[j];
            if (X.indices) each_entry(j, [&](int i, double x) { slope += x * v[i]; });
            else slope += dot(X.values + j * X.rows, v, X.rows);
            const double free = b[j] - slope / curvature[j], price = X.prices[j] / curvature[j];
            const double next = free > price ? free - price : free < -price ? free + price : 0.0, step = next - b[j];
            if (step == 0) continue;
            b[j] = next;
            each_entry(j, [&](int i, double x) { v[i] += step * h[i] * x; });
            largest = larger(largest, step * step * curvature[j]);
        }
        if (largest <= tol && all) break;
        all = largest <= tol || pass % 20 == 19;
    }
    return pass;
}

}  // namespace
